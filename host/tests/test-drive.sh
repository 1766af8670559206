#!/usr/bin/env bash
# host/lab.sh drive and stored: the driver, and what it leaves changed.
# shellcheck disable=SC2016,SC2034  # quoted code: fakes, and checks that `check` evaluates
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. host/tests/fakes.sh

# --- lab.sh drive, lab.sh stored ----------------------------------------------------------
changing; at_rest "$parent"
printf 'LAB_RESULTS_DIR=./results\n' >>"$lab/.env"
printf 'NOFILE=20000\nLAB_UID=%s\nLAB_GID=%s\n' "$(id -u)" "$(id -g)" >"$state/env"
# The driver asks once, and tells what the host said.
fake docker <<'FAKE'
lab=$(cd "$(dirname "$0")/.." && pwd)
printf 'docker %s\n' "$*" >>"$lab/calls"
case "$1 ${2-}" in
  "info "*) echo 4 ;;
  "compose ps") echo id-of-netty ;;
  "logs "*)
    for folder in "$lab"/.lab/concurrency-lab/driver.*/; do
      [[ -d $folder ]] || continue
      ln -s $'SERVER=netty\nSERVER_CPUS=0.5' "$folder/requests/1"
      for ((i = 0; i < 1200; i++)); do if [[ -e $folder/answers/1 ]]; then cat "$folder/answers/1"; break; fi; sleep 0.05; done
      ls -ld "$folder/requests" "$folder/answers"
    done ;;
  "wait "*) echo 7 ;;
esac
FAKE
: >"$calls"
run bash -c 'umask 077 && exec "$0/host/lab.sh" drive run' "$lab" </dev/null
check "drive: a run can change the host, and what its driver left is put back when it ends" \
  '[[ $status == 7 && $out == *ok*"netty was left changed"* && -z $(compgen -G "$state/driver.*") ]]'
check "drive: its driver reads answers, which only the host writes, and nothing of that is in results/" \
  '[[ $(count "compose run .* --volume $state/driver.\([A-Za-z0-9]*\)/requests:/lab/requests --volume $state/driver.\1/answers:/lab/answers:ro --detach driver run") == 1 \
    && $out == *"drwxr-xr-x"*/answers*"drwx------"*/requests* && ! -e $lab/results ]]'
: >"$calls"
run bash -c 'echo "$$" >"$0/number" && exec "$0/host/lab.sh" drive run' "$lab" </dev/null
check "drive: its folder has no name that comes again, as numbers of processes do, with the answers of a run that was killed" \
  '[[ $(count "driver.[A-Za-z0-9]*/answers") == 1 && $(count "driver.$(<"$lab/number")/answers") == 0 ]]'
: >"$calls"
run "$lab/host/lab.sh" drive toxics </dev/null
check "drive: other verbs cannot" '[[ $status == 7 && $(count /lab/requests) == 0 && -z $(compgen -G "$state/driver.*") ]]'
: >"$calls"
mkdir "$lab/results"
run "$lab/host/lab.sh" stored report </dev/null
check "stored: results and nothing else, no lab" \
  '[[ $status == 0 && $(count "^docker run --rm .*--network none .*--pids-limit 2048 --memory .*--user $(id -u):$(id -g) -v $lab/results:/lab/results concurrency-lab/loadgen:local report$") == 1 && $(wc -l <"$calls") == 1 ]]'

fake docker <<'FAKE'
lab=$(cd "$(dirname "$0")/.." && pwd)
printf 'docker %s\n' "$*" >>"$lab/calls"
case $1 in
  # As a Ctrl-C ends it. The driver still runs.
  wait) if [[ $(grep -c "^docker wait" "$lab/calls") -lt 3 ]]; then exit 130; fi; echo 7 ;;
  inspect) if [[ -n ${FAKE_GONE-} ]]; then echo "Error: No such object: x"; exit 1; fi; echo '[{}]' ;;
esac
FAKE
: >"$calls"
run "$lab/host/lab.sh" drive toxics </dev/null
check "drive: however often somebody presses Ctrl-C, the end of the driver is waited for, and it is removed" \
  '[[ $status == 7 && $(count "docker wait") == 3 && $(count "docker rm concurrency-lab-driver-") == 1 && -z $(ls "$state"/ended.* 2>/dev/null) ]]'
: >"$calls"
FAKE_GONE=yes run "$lab/host/lab.sh" drive toxics </dev/null
check "drive: a driver that is gone is waited for no longer" '[[ $status == 1 && $(count "docker wait") == 1 ]]'
# shellcheck source=host/lab/driver.sh
state=$state project=x driver_image=x . host/lab/driver.sh
engine_says() { eval "docker() { printf '%s\\n' \"$1\"; }"; }
check "drive: an engine without a socket does not say that it is gone" \
  'engine_says "dial unix /var/run/docker.sock: connect: no such file or directory" && ! is_gone x && engine_says "error: no such object: x" && is_gone x; unset -f docker'

# Something began to be measured while containers were made ready.
fake docker <<'FAKE'
printf 'docker %s\n' "$*" >>"$(dirname "$0")/../calls"
case $1 in ps) echo "other loadgen c1" ;; exec) exit 75 ;; wait) echo 7 ;; esac
FAKE
: >"$calls"
run "$lab/host/lab.sh" drive bench </dev/null
check "drive: nothing is measured beside another lab of this machine" \
  '[[ $status == 1 && $out == "lab: another measurement is under way, in the lab other of this machine; wait for its end" && $(count "compose run") == 0 ]]'
run "$lab/host/lab.sh" drive toxic </dev/null
check "drive: a toxic is for what is measured" '[[ $status == 7 && $(count "compose run") == 1 ]]'

# --- the driver's own exit status -----------------------------------------------------------
# answering STATUS: a driver that ends with it.
answering() {
  printf 'printf "%%s" "${LAB_LIMITS-}" >"$(dirname "$0")/../limits"; [[ $1 != run ]] || exit %s\n' "$1" | fake docker
}
printf '[cpu]\nat_most = 1.05\n' >"$lab/gate.toml"
for one in "report 0 0" "report 1 1" "report 2 2" "compare 11 0" "compare 13 0" "compare 1 1" "gate 0 0" "gate 11 11" "gate 13 13"; do
  read -r verb ended wanted <<<"$one"
  answering "$ended"
  run "$lab/host/lab.sh" stored "$verb" </dev/null
  check "stored $verb: to make $ended is $wanted" '[[ $status == "$wanted" ]]'
  run env LAB_ANSWER="$lab/answer" "$lab/host/lab.sh" stored "$verb" </dev/null
  check "stored $verb: who asks is told $ended" '[[ $status == 0 && $(<"$lab/answer") == "$ended" ]]'
done
check "stored gate: the driver gets the limits" '[[ $(<"$lab/limits") == "[cpu]"*"at_most = 1.05" ]]'
printf '[p99]\n' >"$lab/own.toml"
run env LIMITS=own.toml "$lab/host/lab.sh" stored gate </dev/null
check "stored gate: or those of another file" '[[ $(<"$lab/limits") == "[p99]" ]]'
rm "$lab/answer"
run env LIMITS=none.toml LAB_ANSWER="$lab/answer" "$lab/host/lab.sh" stored gate </dev/null
check "stored gate: without that file there is no answer" \
  '[[ $status == 1 && $out == "lab: gate: LIMITS=none.toml is not a file that can be read" && ! -e $lab/answer ]]'

fake docker <<<'[[ $1 != image ]]'
run env BASE=lab/x:1 CANDIDATE=some-run "$lab/host/lab.sh" stored gate </dev/null
check "stored gate: an image that is not there" \
  '[[ $status == 1 && $out == "lab: gate: BASE=lab/x:1 is not an image that this engine has" ]]'

# --- ./lab ------------------------------------------------------------------------------------
cp lab "$lab/lab"
for one in "0 0 0" "0 11 1" "0 13 3" "0 1 2" "0 130 2" "0 - 0" "2 - 2" "2 11 2"; do
  read -r made answer wanted <<<"$one"
  if [[ $answer == - ]]; then answer=""; fi
  printf 'echo "$*" >"$(dirname "$0")/../made"; printf "%%s" "%s" >"$LAB_ANSWER"; exit %s\n' "$answer" "$made" | fake make
  run "$lab/lab" gate "BASE=a b" CANDIDATE=c
  check "./lab: where make ends with $made and the driver with '$answer': $wanted" \
    '[[ $status == "$wanted" && $(<"$lab/made") == "gate BASE=a b CANDIDATE=c" ]]'
done
rm "$lab/made"
for words in "-f/tmp/x" "-C /tmp gate" "gate -f/tmp/x" "gate --eval=x:" "gate BASE=a -j" "gate up" "gate base=a" "gate BASE:=a" "gate =a" "A=b gate"; do
  # shellcheck disable=SC2086 # words
  run "$lab/lab" $words
  check "./lab: refused in one line: $words" '[[ $status == 2 && $out == "lab: "*": ./lab takes a verb, then words as NAME=VALUE" && $(wc -l <<<"$out") == 1 && ! -e $lab/made ]]'
done

finish
