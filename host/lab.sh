#!/usr/bin/env bash
# The steps of make's verbs that only the host can do. Everything else is Python in the driver's image.
#
#   lab.sh ready        an engine, the images, and .lab/<project>/: what Compose is told. LAB_VERB
#                       names a verb whose wrong words are refused at once
#   lab.sh room         fail or warn, in one line, where this machine's memory does not hold the servers
#   lab.sh facts        write host.json: what a run's manifest records of this machine
#   lab.sh jmx          put the JMX exporter and the recorder into jmx/, for services of the user's own
#   lab.sh step LOG TEXT WORD…  docker compose WORD…, as a step of `make up`; its output is logs/LOG.log
#   lab.sh compose WORD…        docker compose WORD…
#   lab.sh alone step … the same, and `jmh`, the benchmarks, while nothing can begin to measure
#   lab.sh drive VERB           run the driver in the lab, and end it with us
#   lab.sh stored VERB          run a verb that only works on stored results
#   lab.sh start        the containers; nothing can begin to measure meanwhile
#   lab.sh where        say where the running lab is to be seen
#   lab.sh need-up      fail with one line unless the lab is up
#   lab.sh idle         fail with one line while something is being measured
#   lab.sh down         end the lab; while it measures only with FORCE=yes
#   lab.sh doctor       one line for each thing that can be right or wrong
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. host/common.sh
. host/lab/machine.sh
. host/lab/own-services.sh
. host/lab/ready.sh
. host/lab/doctor.sh
. host/lab/facts.sh
. host/lab/measuring.sh
. host/lab/containers.sh
. host/lab/driver.sh

# gated: what the gate is judged by is a file of the host's, which no container sees; and its images are here.
gated() {
  local word file=${LIMITS:-gate.toml}
  if ! [[ -f $file && -r $file ]]; then fail "gate: LIMITS=$file is not a file that can be read"; fi
  LAB_LIMITS=$(<"$file")
  export LAB_LIMITS
  for word in BASE CANDIDATE; do
    if [[ ${!word-} == */* ]] && docker version >/dev/null 2>&1 && ! has_image "${!word}"; then
      fail "gate: $word=${!word} is not an image that this engine has"
    fi
  done
}

# ended VERB: ./lab gets the driver's own exit status as a file, as make makes 2 of any. To make an answer
# (11: worse or slower, 13: cannot tell) is no failure, but a gate's.
ended() {
  local status=$?
  if [[ -n ${LAB_ANSWER-} ]]; then printf '%s\n' "$status" >"$LAB_ANSWER" && exit 0; fi
  if [[ $1 != gate && ($status == 11 || $status == 13) ]]; then exit 0; fi
}

if [[ ${LAB_VERB-} == gate || ${2-} == gate ]]; then gated; fi
case ${1-} in
  ready) ready ;;
  room) room ;;
  start) start ;;
  facts) write_facts ;;
  jmx) put_agents ;;
  compose) compose "${@:2}" ;;
  step) step "${@:2}" ;;
  alone)
    # Where no lab is up there is nothing yet that could be held.
    docker volume create --label "com.docker.compose.project=$project" --label com.docker.compose.volume=lock "${project}_lock" >/dev/null
    hold
    "${@:2}"
    let_go
    ;;
  drive | stored)
    # By then $2 may be that of a function.
    verb=${2-}
    trap 'ended "$verb"' EXIT
    # Something may have begun to be measured while containers were made ready.
    if [[ $1 == drive && $verb != toxic* && $verb != doctor ]]; then idle; fi
    "$@"
    ;;
  where) where ;;
  need-up)
    check_project
    is_up || fail "the lab is not up: \`make up\` starts it"
    ;;
  idle) idle ;;
  down) down ;;
  doctor) doctor ;;
  *) fail "host/lab.sh: '${1-}' is not one of ready, room, start, facts, jmx, compose, step, alone, drive, stored, where, need-up, idle, down, doctor" ;;
esac
