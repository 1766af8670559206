#!/usr/bin/env bash
# host/swarm.sh: what is refused before anything is done on a node, sending of images, and going down.
# shellcheck disable=SC2016,SC2034  # quoted code: fakes, and checks that `check` evaluates
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. host/tests/fakes.sh

# machines: two engines, of which ssh://a is a manager's. FAKE_THERE: images that nodes have (as the local engine has
# them); FAKE_LEFT: what is left on nodes. What the driver's image would write is here already.
machines() {
  fresh
  mkdir -p "$state/several" "$lab/prometheus/servers"
  printf '[nodes]\n' >"$lab/hosts.toml"
  printf 'LAB_UID=7\nLAB_GID=8\nCOMPOSE_PROFILES=grafana\n' >"$state/env"
  printf 'a ssh://a id-a generator\nb ssh://b id-b generator,server,downstream,monitor\n' >"$lab/nodes"
  fake docker <<'FAKE'
lab=$(cd "$(dirname "$0")/.." && pwd)
at=here
if [[ $1 == -H ]]; then at=$2; shift 2; fi
printf '%s: docker %s\n' "$at" "$*" >>"$lab/calls"
if [[ $at == "${FAKE_AWAY-}" ]]; then exit 1; fi
case "$1 ${2-}" in
  "run --rm") printf '%s\n' "${FAKE_NODES-a ssh://a generator
b ssh://b server,downstream,monitor}" ;;
  "info --format")
    case $3 in
      *json*) printf '{"ServerVersion": "26.1.5", "ControlAvailable":%s, "SecurityOptions": [%s]}\n' "$([[ $at == *a ]] && echo true || echo false)" "${FAKE_OPTIONS-"name=no-new-privileges"}" ;;
      *SystemTime*) date -d "${FAKE_CLOCK-now}" +%FT%T.%NZ -u ;;
      *) echo x86_64 ;;
    esac ;;
  "node ls") echo "id-a Ready Active" ;;
  "node inspect") if [[ -n ${FAKE_LABEL-} ]]; then printf '%s.%s\n' "$FAKE_LABEL" "${*: -1}" | sed 's/id-//'; fi ;;
  "image inspect")
    if [[ $* == *RepoTags* ]]; then echo "${FAKE_TAGS-0}"; exit; fi
    if [[ $at == here || " ${FAKE_THERE-} " == *" ${*: -1} "* || -e $lab/loaded ]]; then echo "sha256:of-${*: -1}"; else exit 1; fi ;;
  "load ") cat >"$lab/loaded" ;;
  "save "*) echo "${*:2}" ;;
  "volume ls") if [[ $* == *_home* && -e $lab/home ]]; then echo home; fi ;;
  "exec --interactive") cat >"$lab/taken" ;;
  "exec "*)
    case $* in
      *" test -e "*) [[ -e $lab/of-node ]] ;;
      *) for one in ${FAKE_RUNS-}; do printf '%s %s\n' "$one" "$(cat "$lab/of-node/"{manifest.json,trials.csv} 2>/dev/null | cksum)"; done ;;
    esac ;;
  # `--quiet` came with a client of 23.0.
  "cp --quiet") exit 125 ;;
  "cp "*) if [[ -e $lab/of-node ]]; then cp -R "$lab/of-node" "${*: -1}"; else mkdir "${*: -1}"; fi ;;
  "stack services") if [[ $* == *Replicas* ]]; then echo "concurrency-lab_downstream 0/1"; fi ;;
  "service logs") if [[ $* == *--since* ]]; then echo "${FAKE_SAID-}"; fi ;;
  "ps "*)
    if [[ -s $lab/agent-away ]]; then sed -i 1d "$lab/agent-away"; else printf '%s' "${FAKE_LEFT-}"; fi ;;
esac
FAKE
}

# --- check -------------------------------------------------------------------------------
machines
run "$lab/host/swarm.sh" check
check "a lab on one machine asks nobody" '[[ $status == 0 && -z $out && $(wc -l <"$calls") == 0 ]]'

machines
run env HOSTS="$lab/none.toml" "$lab/host/swarm.sh" check
check "a file that is not there is one line" '[[ $status == 1 && $out == "lab: HOSTS=$lab/none.toml is not a file that can be read" ]]'

for verb in jmh gate; do
  machines
  run env HOSTS="$lab/hosts.toml" LAB_VERB="$verb" BASE=some/image "$lab/host/swarm.sh" check
  check "$verb is refused" '[[ $status == 1 && $out == "lab: $verb "*"not possible on several machines yet"* && $(wc -l <<<"$out") == 1 ]]'
done
machines
run env HOSTS="$lab/hosts.toml" LAB_VERB=report "$lab/host/swarm.sh" check
check "a verb of stored runs asks no node" '[[ $status == 0 && -z $out && $(count "^ssh") == 0 ]]'
machines
run env HOSTS="$lab/hosts.toml" FAKE_NODES="b tcp://b:2376 server" "$lab/host/swarm.sh" check
check "an engine's port without TLS is refused" '[[ $status == 1 && $out == "lab: hosts.toml: node b: tcp://b:2376 without TLS"* && $(count "^tcp") == 0 ]]'

machines
cp "$lab/nodes" "$state/several/nodes"
run env HOSTS="$lab/hosts.toml" LAB_VERB=bench "$lab/host/swarm.sh" check
check "good machines need no word" '[[ $status == 0 && -z $out && $(<"$state/several/manager") == a && $(count "^ssh://b: docker info") == 2 ]]'
check "the Swarm is asked of a manager only" '[[ $(count "^ssh://a: docker node ls") == 1 && $(count "^ssh://b: docker node") == 0 ]]'
check "nothing on a node is changed" '! grep -E "load|deploy|update|rm |volume|run" <(grep ^ssh "$calls")'

machines
cp "$lab/nodes" "$state/several/nodes"
run env HOSTS="$lab/hosts.toml" FAKE_OPTIONS="" FAKE_CLOCK="-1 hour" "$lab/host/swarm.sh" check
check "an engine without no-new-privileges is warned of" '[[ $status == 0 && $out == *"node b: its engine does not say no-new-privileges"* ]]'
check "so is a clock" '[[ $out =~ "the clock of node a is -"3[56][0-9]{5}" ms off" ]]'

machines
touch "$state/several/up"
printf 'other\n' >"$state/several/hosts.toml"
run env HOSTS="$lab/hosts.toml" "$lab/host/swarm.sh" check
check "a lab that is up stays on its machines" '[[ $status == 1 && $out == *"another hosts.toml: \`make down\` first"* ]]'

# --- facts -----------------------------------------------------------------------------------------------
machines
cp "$lab/nodes" "$lab/hosts.toml" "$state/several/"
facts() { run bash -c "cd '$lab'; . host/common.sh; . host/lab/facts.sh; of_server"; }
facts
check "each machine is told" '[[ $status == 0 && $(grep -c "^machine [ab] " <<<"$out") == 2 && $out != *encrypted* ]]'
printf 'encrypted = true\n' | cat - "$lab/hosts.toml" >"$state/several/hosts.toml"
facts
check "what is encrypted between them is another lab" '[[ $(grep -c "\"encrypted\": true}$" <<<"$out") == 2 ]]'

# --- images: only what a node lacks, and remembered before it is sent ------------------------------
sed '/^case \${1-} in/,$d' host/swarm.sh >"$root/functions.sh"
functions() { sed "s|^cd .*|cd '$lab'|" "$root/functions.sh"; }
machines
cp "$lab/nodes" "$lab/hosts.toml" "$state/several/"
printf 'a one:1\na two:2\nb two:2\n' >"$state/several/images"
run env FAKE_THERE="one:1" bash -c "$(functions); log=\$state/log; send a"
check "an image that is there is not sent" '[[ $status == 0 && $(count "^here: docker save two:2$") == 1 && $(count "docker load") == 1 && $(<"$state/several/sent") == "a two:2"$'"'\n'"'"a sha256:of-two:2" ]]'

# --- down --------------------------------------------------------------------------------------------
machines
cp "$lab/nodes" "$lab/hosts.toml" "$state/several/"
touch "$state/several/up"
echo a >"$state/several/manager"
printf 'b two:2\nb sha256:of-two:2\n' >"$state/several/sent"
run env FAKE_LABEL=concurrency-lab "$lab/host/swarm.sh" down
check "down removes the stack, labels and what was sent" '[[ $status == 0 && $out == "lab: down on all nodes" && $(count "^ssh://a: docker stack rm concurrency-lab") == 1 && $(count "label-rm lab.node") == 2 && $(count "^ssh://b: docker image rm two:2") == 1 && $(count "^ssh://a: docker image rm") == 0 ]]'
check "and forgets the machines" '[[ ! -e $state/several ]]'
check "so is what a later build took the name from" '[[ $(count "^ssh://b: docker image rm sha256:of-two:2") == 1 ]]'
machines
cp "$lab/nodes" "$lab/hosts.toml" "$state/several/"
touch "$state/several/up"
echo a >"$state/several/manager"
printf 'b sha256:of-two:2\n' >"$state/several/sent"
run env FAKE_TAGS=1 "$lab/host/swarm.sh" down
check "but not what has another name by now" '[[ $status == 0 && $(count "image rm") == 0 ]]'

# --- another lab on the same nodes ---------------------------------------------------------------------
machines
cp "$lab/nodes" "$lab/hosts.toml" "$state/several/"
echo a >"$state/several/manager"
run env FAKE_LABEL=concurrency-lab "$lab/host/swarm.sh" up
check "nodes of a lab that this checkout did not start are refused, and left as they are" \
  '[[ $status == 1 && $out == "lab: node a has the label lab.node=concurrency-lab.a, of a lab that this checkout did not start: "* && $(wc -l <<<"$out") == 1 && ! -e $state/several/up && $(count "docker load") == 0 ]]'
run env FAKE_LABEL=concurrency-lab "$lab/host/swarm.sh" down
check "nor are they brought down from here" '[[ $status == 1 && $out == "lab: node a has the label "* && $(count "stack rm") == 0 ]]'
run env FAKE_LABEL=concurrency-lab FORCE=yes "$lab/host/swarm.sh" down
check "but where that is meant" '[[ $status == 0 && $(count "stack rm") == 1 && $(count "label-rm") == 2 ]]'
machines
cp "$lab/nodes" "$lab/hosts.toml" "$state/several/"
echo a >"$state/several/manager"
touch "$state/several/up"
run env FAKE_LABEL=other "$lab/host/swarm.sh" down
check "whoever goes down leaves the label of another lab" '[[ $status == 0 && $(count "label-rm") == 0 ]]'

machines
cp "$lab/nodes" "$state/several/"
echo a >"$state/several/manager"
run env START_DEADLINE_S=60 FAKE_SAID="DOWNSTREAM_DELAY_MS=fast: allowed are whole ms" bash -c "$(functions); log=\$state/log; await"
check "a setting that the downstream refuses is one line at once" '[[ $status == 1 && $out == "lab: DOWNSTREAM_DELAY_MS=fast: allowed are whole ms" ]]'

machines
cp "$lab/nodes" "$lab/hosts.toml" "$state/several/"
touch "$state/several/up" "$lab/home"
echo a >"$state/several/manager"
run env AGENT_DEADLINE_S=0 "$lab/host/swarm.sh" down
check "without the agent, which has the runs, nothing is removed" '[[ $status == 1 && $out == "lab: not all runs could be brought home from node a; "* && $(count "stack rm") == 0 ]]'
run env FORCE=yes "$lab/host/swarm.sh" down
check "unless they are given up" '[[ $status == 0 && $(count "stack rm") == 1 ]]'

gone_node() {
  machines
  cp "$lab/nodes" "$lab/hosts.toml" "$state/several/"
  touch "$state/several/up"
  echo a >"$state/several/manager"
}
gone_node
run env FAKE_AWAY=ssh://b "$lab/host/swarm.sh" down
check "a node that is away keeps nobody else up, and is not forgotten" \
  '[[ $status == 1 && $out == "lab: down, but for node b, which does not answer: "* && $out != *$'"'\n'"'* && $(count "^ssh://a: docker stack rm") == 1 && -e $state/several/up ]]'
run "$lab/host/swarm.sh" down
check "once it is back it is cleared, too" '[[ $status == 0 && $out == "lab: down on all nodes" && $(count "^ssh://b: docker volume ls") != 0 && ! -e $state/several ]]'
gone_node
run env FAKE_AWAY=ssh://b FORCE=yes "$lab/host/swarm.sh" down
check "unless it is given up" '[[ $status == 0 && $out == "lab: down on all nodes but b" && ! -e $state/several ]]'
gone_node
run env FAKE_AWAY=ssh://a FORCE=yes "$lab/host/swarm.sh" down
check "without the manager nobody can end a stack" '[[ $status == 1 && $out == *"lab: the manager, node a, does not answer: nothing was removed" && -e $state/several/up ]]'

# The engine of the node was restarted: its agent is there again at the third question.
machines
cp "$lab/nodes" "$state/several/"
touch "$lab/home"
printf 'x\nx\n' >"$lab/agent-away"
run env LAB_RESULTS_DIR="$lab/results" FAKE_LEFT=agent "$lab/host/swarm.sh" results
check "an agent that comes back is waited for" '[[ $status == 0 && $(count "service=loadgen") == 3 ]]'

# --- runs come home ----------------------------------------------------------------------------------
machines
cp "$lab/nodes" "$state/several/"
mkdir -p "$lab/results/20260101T000000Z-here" && ln -s 20260101T000000Z-here "$lab/results/latest"
fake id <<<'echo 7'
run env LAB_RESULTS_DIR="$lab/results" FAKE_LEFT=agent FAKE_RUNS="20260101T000000Z-here 20260102T000000Z-there latest" "$lab/host/swarm.sh" results
check "a run that came home is the latest" '[[ $status == 0 && $(readlink "$lab/results/latest") == 20260102T000000Z-there && $(count "docker cp") == 1 ]]'

# went_on ROWS: the node has a run of that name whose manifest is another one, and these rows.
went_on() {
  machines
  cp "$lab/nodes" "$state/several/"
  mkdir -p "$lab/results/20260101T000000Z-one"/{gates,raw/02-half} "$lab/of-node/raw"
  printf 'head\nfirst\n' >"$lab/results/20260101T000000Z-one/trials.csv"
  printf 'head\n%s\n' "$@" >"$lab/of-node/trials.csv"
  echo interrupted >"$lab/results/20260101T000000Z-one/manifest.json"
  echo complete >"$lab/of-node/manifest.json"
  export LAB_RESULTS_DIR=$lab/results FAKE_LEFT=agent FAKE_RUNS="20260101T000000Z-one"
}
went_on $'first\nsecond'
run "$lab/host/swarm.sh" results
one=$lab/results/20260101T000000Z-one
check "a run that went on takes the place of what was here, which is not mixed with it" \
  '[[ $status == 0 && -z $out && $(tail -n 1 "$one/trials.csv") == second && -e $one/gates && ! -e $one/raw/02-half && $(ls -A "$lab/results" | wc -l) == 2 ]]'
run "$lab/host/swarm.sh" results
check "and is then left alone" '[[ $status == 0 && $(count "docker cp") == 1 ]]'
# A run that goes on has the manifest that it began with.
went_on $'first\nsecond'
cp "$lab/of-node/manifest.json" "$lab/results/20260101T000000Z-one/"
run "$lab/host/swarm.sh" results
check "a run with more rows comes home whatever its manifest says" '[[ $status == 0 && $(tail -n 1 "$one/trials.csv") == second ]]'
went_on $'first\nsecond'
mv "$one" "$lab/results/.20260101T000000Z-one.before"
run "$lab/host/swarm.sh" results
check "what a killed one had moved away is not lost" '[[ $status == 0 && -e $one/gates && $(tail -n 1 "$one/trials.csv") == second && $(ls -A "$lab/results" | wc -l) == 2 ]]'
went_on other
run "$lab/host/swarm.sh" results
check "rows that the other has not are kept" '[[ $status == 0 && $out == "lab: warning: "*" had other rows"* && $(tail -n 1 "$one-before/trials.csv") == first && $(tail -n 1 "$one/trials.csv") == other ]]'

went_on first
run env LAB_WORDS="RESUME=20260101T000000Z-one" "$lab/host/swarm.sh" resumed
check "a run that is on the node is not sent there" '[[ $status == 0 && ! -e $lab/taken ]]'
rm -r "$lab/of-node"
run env LAB_WORDS="CONC=5" "$lab/host/swarm.sh" resumed
check "nor is one that goes on with none" '[[ $status == 0 && ! -e $lab/taken ]]'
ln -s 20260101T000000Z-one "$lab/results/latest"
run env LAB_WORDS="EXP=x RESUME=latest" "$lab/host/swarm.sh" resumed
check "one that is only here is" '[[ $status == 0 && -z $out ]] && tar -t -f "$lab/taken" | grep -qx "20260101T000000Z-one/trials.csv"'
unset LAB_RESULTS_DIR FAKE_LEFT FAKE_RUNS

# --- start -------------------------------------------------------------------------------------------
machines
cp "$lab/nodes" "$state/several/"
touch "$state/several/up"
printf '%s\n' '#!/bin/bash' 'echo "swarm.sh $1 ${DOCKER_HOST-here}"' >"$lab/host/swarm.sh"
run "$lab/host/lab.sh" start
check "up asks the engine of this machine, whoever looked at the generator's before" '[[ $status == 0 && $out == "swarm.sh up here" ]]'

finish
