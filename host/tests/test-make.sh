#!/usr/bin/env bash
# host/lab.sh idle and the Makefile: a measurement under way, and the words of a verb.
# shellcheck disable=SC2016  # quoted code: fakes, and checks that `check` evaluates
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. host/tests/fakes.sh

# --- lab.sh idle -----------------------------------------------------------------------
# locked LINES STATUS…: docker, with the containers that have the lock's volume (service and id each, another
# lab's name before them), and what the lock answers each time it is asked, the last from then on.
locked() {
  fake docker <<'FAKE'
lab=$(cd "$(dirname "$0")/.." && pwd)
printf 'docker %s\n' "$*" >>"$lab/calls"
case $1 in
  ps) if [[ $* == *"--filter volume=/lab/lock"* ]]; then sed '/^[a-z]* [a-z]*$/s/^/concurrency-lab /' <<<"$FAKE_SEES"; fi ;;
  exec)
    answers=($FAKE_LOCK) asked=$(grep -c "^docker exec" "$lab/calls")
    exit "${answers[asked - 1]:-${answers[-1]}}" ;;
  inspect) echo "${FAKE_RUNNING:-true}" ;;
  info) if [[ $* == *NCPU* ]]; then echo 4; fi ;;
  compose) if [[ $* == *"ps --all --quiet netty" ]]; then echo "${FAKE_NETTY-}"; fi ;;
  run)
    if [[ $* == *"--entrypoint flock"* ]]; then
      if [[ -n ${FAKE_HOLD-} ]]; then echo "no engine"; exit "$FAKE_HOLD"; fi
      echo held
      cat >/dev/null
      printf 'let go\n' >>"$lab/calls"
    elif [[ $* == *--interactive* ]]; then cat >/dev/null; fi ;;
  wait) echo 7 ;;
esac
FAKE
  export FAKE_SEES=$1 FAKE_LOCK="${*:2}"
}
# idle LINES STATUS…: what it says then.
idle() {
  fresh
  locked "$@"
  run "$lab/host/lab.sh" idle
}
# shellcheck disable=SC2034 # used by checks, as text
under_way="lab: another measurement is under way; wait for its end"
idle "" 0
check "idle: neither lab nor driver, nothing measured, nothing asked" '[[ $status == 0 && -z $out && $(count exec) == 0 ]]'
idle "loadgen agent" 0
check "idle: nobody holds the lock" '[[ $status == 0 && -z $out && $(count "exec agent flock --shared .* /lab/lock true") == 1 ]]'
idle "loadgen agent" 1
check "idle: an agent that does not answer: nobody knows, so one line" '[[ $status == 1 && $out == "lab: the lab'"'"'s agent does not answer, "*"make down"* ]]'
FAKE_RUNNING=false idle "driver ended" 1
check "idle: a driver that ended meanwhile measures nothing" '[[ $status == 0 && -z $out ]]'
idle "loadgen agent" 75
check "idle: a measurement is under way: one line" '[[ $status == 1 && $out == "$under_way" ]]'
idle "driver busy" 75
check "idle: no lab, and yet a driver measures" '[[ $status == 1 && $out == "$under_way" && $(count "exec busy flock") == 1 ]]'
idle $'driver busy\nloadgen agent' 0
check "idle: the agent is asked before a driver" '[[ $status == 0 && $(count "exec agent") == 1 && $(count "exec busy") == 0 ]]'
idle $'driver ended\nloadgen agent\ndriver busy' 1 75
check "idle: a container that tells nothing is not the last word" '[[ $status == 1 && $out == "$under_way" && $(count exec) == 2 ]]'

idle $'other loadgen theirs\nloadgen agent' 75
check "idle: another lab on this machine measures: one line, that names it" \
  '[[ $status == 1 && $out == "lab: another measurement is under way, in the lab other of this machine; wait for its end" && $(count "exec theirs") == 1 ]]'
idle $'other loadgen theirs\nother driver his\nloadgen agent' 1 0
check "idle: of other labs one that answers is enough, and one that does not is theirs" \
  '[[ $status == 0 && -z $out && $(count "exec theirs") == 1 && $(count "exec his") == 1 && $(count "exec agent") == 1 ]]'

# --- lab.sh down ---------------------------------------------------------------------------
# downed STATUS NAME=VALUE…: a lab that is told to end, whose agent answers so.
downed() {
  fresh
  locked "loadgen agent" "$1"
  run env "${@:2}" "$lab/host/lab.sh" down
}
downed 75 X=1
check "down: not under a measurement" \
  '[[ $status == 1 && $out == "lab: a measurement is under way; wait for its end, or \`make down FORCE=yes\`" && $(count "docker compose") == 0 ]]'
FAKE_HOLD=75 downed 0
check "down: one that began after the look is left alone" \
  '[[ $status == 1 && $out == "$under_way, or \`make down FORCE=yes\`" && $(count "docker compose") == 0 ]]'
FAKE_HOLD=75 downed 1
check "down: where nobody answers and yet somebody holds, FORCE=yes is named" '[[ $status == 1 && $out == *"FORCE=yes"* && $(count "docker compose") == 0 ]]'
downed 0
check "down: nothing can begin to measure meanwhile" \
  '[[ $status == 0 && $(grep -oE -e "--exclusive|compose .* down|let go|volume rm" "$calls" | paste -sd, -) == "--exclusive,compose --profile * down,let go,volume rm" ]]'
fresh; locked "loadgen agent" 1; touch "$lab/.lab"
run env "$lab/host/lab.sh" down
check "down: where nothing can be written down, too" '[[ $status == 0 && $(count "docker compose --profile .* down") == 1 ]]'
FAKE_HOLD=125 downed 1
check "down: where nobody can tell, the lab is ended all the same" '[[ $status == 0 && $(count "docker compose --profile .* down") == 1 ]]'
for answer in "75 FORCE=yes" "0 FORCE=" "1 FORCE="; do
  # shellcheck disable=SC2086  # two words
  downed $answer
  check "down: with FORCE=yes, when idle, and when nobody answers: $answer" \
    '[[ $status == 0 && $(count "docker compose --profile \* down --remove-orphans") == 1 && $(count "docker volume rm --force .*_lock .*_prometheus .*_grafana$") == 1 ]]'
done

# Since `make up` the user's file has gone, and so has a service, as in another checkout.
fresh; locked "loadgen agent" 1
mkdir -p "$state" && printf 'COMPOSE_FILE=compose.yaml:compose.override.yaml:.lab/concurrency-lab/start-interval.yaml\n' >"$state/env"
sed -i 's|^  compose) |&printf "of %s\\n" "$COMPOSE_FILE" >>"$lab/calls"; |' "$lab/fake/docker"
run "$lab/host/lab.sh" down
check "down: a lab whose files have gone is ended, and what Compose was told goes with it, the secret too" \
  '[[ $status == 0 && $(grep "^of " "$calls") == "of compose.yaml" && ! -e $state/env ]]'
printf 'COMPOSE_FILE=compose.yaml:compose.override.yaml:.lab/concurrency-lab/start-interval.yaml\n' >"$state/env"
: >"$calls"
run "$lab/host/lab.sh" compose build loadgen
check "build: nor does it ask of health" '[[ $status == 0 && $(grep "^of " "$calls") == "of compose.yaml" ]]'
touch "$lab/compose.override.yaml"; : >"$calls"
run "$lab/host/lab.sh" compose ps
check "compose: the user's own file counts while it is there" \
  '[[ $status == 0 && $(grep "^of " "$calls") == "of compose.yaml:compose.override.yaml:.lab/concurrency-lab/start-interval.yaml" ]]'

idle "loadgen agent" 75
mkdir -p "$state" && printf 'NOFILE=300\n' >"$state/env"
printf '#!/bin/sh\n' | tee "$lab/host/engine.sh" >"$lab/images/present.sh"
printf 'LAB_RESULTS_DIR=./results\n' >>"$lab/.env"
run env NOFILE=9000 "$lab/host/lab.sh" ready
check "ready: what a measurement's containers are made from stays" \
  '[[ $status == 0 && $(<"$state/env") == NOFILE=300 && ! -e $state/allowed-changes ]]'

# --- make: what changes containers, and a measurement beside it ----------------------------
# making WORD…: make with these words, in a lab of fakes. making_ready: that lab.
making_ready() {
  fresh
  cp Makefile "$lab/"
  mkdir -p "$lab/prometheus" "$lab/servers"
  touch "$lab/servers/jmx-exporter.yaml"
  cp -R prometheus/servers "$lab/prometheus/"
  printf 'LAB_RESULTS_DIR=./results\n' >>"$lab/.env"
  printf '#!/bin/sh\n' | tee "$lab/host/engine.sh" "$lab/images/present.sh" >"$lab/host/grafana-password.sh"
}
making() { run env -u MAKEFLAGS -u MAKELEVEL make -C "$lab" "$@" </dev/null; }
# made VERB STATUS…: the verb itself, where a driver runs and the lock answers so.
made() {
  making_ready
  locked "driver other" "${@:2}"
  making "$1"
}
made bench 75
check "make bench: refused at once under a measurement" \
  '[[ $status == 2 && $out == *"$under_way"* && $(count "docker compose") == 0 && ! -e $state/env ]]'
made jmh 75
check "make jmh: refused at once" '[[ $status == 2 && $out == *"$under_way"* && $(count "docker compose build") == 0 ]]'
made jmh 0
check "make jmh: nothing can begin to measure meanwhile" \
  '[[ $status == 0 && $(grep -oE -e "volume create|--exclusive|compose run|let go" "$calls" | paste -sd, -) == "volume create,--exclusive,compose run,let go" ]]'
FAKE_HOLD=75 made jmh 0
check "make jmh: nor does it begin beside one that began" '[[ $status == 2 && $out == *"$under_way"* && $(count "docker compose run") == 0 ]]'
# A TERM of make, as a pipeline's end is one, while the benchmarks run.
making_ready; locked "loadgen agent" 0
sed -i 's|^  compose) |  kill) touch "$lab/killed" ;;\n&if [[ $2 == run ]]; then until [[ -e $lab/killed ]]; do sleep 0.05; done; exit 137; fi; |' "$lab/fake/docker"
PATH="$lab/fake:/usr/bin:/bin" "$lab/host/lab.sh" alone jmh >/dev/null 2>&1 &
alone=$!
for ((i = 0; i < 1200; i++)); do if [[ $(count "docker compose run") == 1 ]]; then break; fi; sleep 0.05; done
status=0; kill -TERM "$alone"; wait "$alone" || status=$?
for ((i = 0; i < 1200; i++)); do if [[ $(count "let go") == 1 ]]; then break; fi; sleep 0.05; done
check "make jmh: the benchmarks end with it" \
  '[[ ($status == 137 || $status == 143) && $(count "docker kill concurrency-lab-jmh-$alone") == 1 && $(tail -n 1 "$calls") == "let go" ]]'
fresh
cp Makefile "$lab/"
run env MAKEFLAGS=-j4 make -C "$lab" --dry-run --print-data-base up
check "make: what comes first comes first with -j, too" '[[ $out == *$'"'\n.NOTPARALLEL:'"'* ]]'
made up 0 75
check "make up: a measurement that began during the build is left alone" \
  '[[ $status == 2 && $out == *"$under_way"* && $(count "docker compose build") == 1 && $(count "docker compose up") == 0 ]]'
made up 0
check "make up: while it changes containers nothing can begin to measure" \
  '[[ $status == 0 && $(grep -oE -e "--exclusive|compose up|let go" "$calls" | paste -sd, -) == "--exclusive,compose up,let go" && -z $(ls "$state"/held.* 2>/dev/null) ]]'
# What a killed host left of netty: a twentieth of a CPU.
making_ready
mkdir -p "$state/changed/999999" && printf 'SERVER_CPUS=0.05\n' >"$state/changed/999999/of.netty"
printf 'SERVER_CPUS=0\n' >>"$lab/.env"
locked "driver other" 0
FAKE_NETTY=id-of-netty making up
check "make up: what a killed host left changed is put back first, and once" \
  '[[ $status == 0 && $(grep -oE -e "--exclusive|update --cpus 4 id-of-netty|compose up|let go" "$calls" | paste -sd, -) == "--exclusive,update --cpus 4 id-of-netty,compose up,let go" && $out == *"netty was left changed; its defaults are back"* && ! -e $state/changed/999999 ]]'
FAKE_HOLD=75 made up 0
check "make up: one that began after the last look is left alone" \
  '[[ $status == 2 && $out == *"$under_way"* && $(count "docker compose build") == 1 && $(count "docker compose up") == 0 ]]'
FAKE_HOLD=125 made up 0
check "make up: where nothing tells, containers stay as they are" \
  '[[ $status == 2 && $out == *"lab: nobody knows whether something is measured: no engine"* && $(count "docker compose up") == 0 ]]'
unset FAKE_SEES FAKE_LOCK

# --- make: words ------------------------------------------------------------------------
# No word of the command line is run, or loses a part on its way to the driver.
making_ready
for word in 'NAME=$(shell touch pwned)' 'NAME=${shell touch pwned}' 'NAME=`touch pwned`' 'TARGET=http://a/$(shell touch pwned)' \
  "NAME='" 'NAME="' 'NAME=a\b' $'NAME=a\nb' 'SERVER_JVM_FLAGS=$$(touch pwned)'; do
  making bench CONC=5 "$word"
  check "make: refused: $word" \
    '[[ $status == 2 && $(grep -vc "^make" <<<"$out") == 1 && $out == *"*** ${word%%=*}: allowed is a word without"* && ! -s $calls && ! -e $lab/pwned ]]'
done
# Whatever its name: a setting's, a verb's, make's own, that of what looks at it, or none. `help` does nothing itself.
names=$(sed -n 's/^\([A-Z][A-Z0-9_]*\)=.*/\1/p' .env && grep -oE '[A-Z]{2,}=' Makefile | tr -d = | sort -u)
ran="" tried=0
for name in $names nosuch word sign 1 UNSAFE unsafe LINE_BREAK NOT_WORDS SHELL MAKE LAB_WORDS PATH; do
  making help "$name=\$(shell touch pwned)"
  tried=$((tried + 1))
  if [[ -e $lab/pwned ]]; then ran+=" $name" && rm "$lab/pwned"; fi
done
out=$ran
check "make: no word is run, whatever its name" '[[ -z $ran && $tried -gt 60 ]]'
for word in UNSAFE= unsafe= NOT_WORDS= LINE_BREAK=x; do
  making help "$word" 'NAME=$(shell touch pwned)'
  check "make: $word does not blind what looks" '[[ $status == 2 && $out == *"*** NAME: allowed is a word without"* && ! -e $lab/pwned ]]'
done
fake evil <<<'touch pwned'
for name in SHELL .SHELLFLAGS MAKE DRIVER TOOLS LAB_VERB PATH BASH_ENV LD_PRELOAD GIT_EXTERNAL_DIFF; do
  making bench CONC=5 "$name=./fake/evil"
  check "make: refused: $name, by which programs run" \
    '[[ $status == 2 && $out == *"*** $name: it is neither a word of a verb nor a setting of .env"* && ! -s $calls && ! -e $lab/pwned ]]'
done
fake docker <<'FAKE'
lab=$(cd "$(dirname "$0")/.." && pwd)
if [[ "$1 ${2-}" == "run --rm" ]]; then printf '%s\n' "$LAB_WORDS" >"$lab/words"; exit 2; fi
FAKE
for word in 'ROUTE=/block?wait_ms=100&x=1' 'SUSPECT=worker\ pool' 'TARGET=http://a:1/b?a=1&b=2' 'SERVER_JVM_FLAGS=-Xms1g\ -Xmx1g' \
  'NAME=a(b),{c};<d>|e#f' 'SERVER='; do
  rm -f "$lab/words"
  # As make writes words down: a backslash before a blank is its own.
  making bench "${word//\\/}"
  check "make: handed on: $word" '[[ $(<"$lab/words") == "$word" ]]'
done

finish
