#!/usr/bin/env bash
# CPU sets: who gets which CPUs, when nobody does, and what is said of it.
# shellcheck disable=SC2016  # quoted code: fakes, and checks that `check` evaluates
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. host/tests/fakes.sh

# --- CPU sets -----------------------------------------------------------------------------
# sets: what Compose is told of them: servers, generator, downstream and what observes, Toxiproxy.
# shellcheck disable=SC2034 # used by checks, as text
sets() (
  unset "${!SERVER_@}" "${!LOADGEN_@}"
  . "$state/env"
  [[ $DOWNSTREAM_CPUSET == "$OBSERVATION_CPUSET" ]] && echo "$SERVER_CPUSET $LOADGEN_CPUSET $DOWNSTREAM_CPUSET $TOXIPROXY_CPUSET"
)
unpinned() { [[ $status == 0 && $(<"$state/env") != *CPUSET* ]]; }
for machine in "8=4-7 3 2 0-1" "9=4-8 3 2 0-1" "15=4-14 3 2 0-1" "16=8-15 6-7 4-5 0-3" "20=8-19 6-7 4-5 0-3" "64=32-63 24-31 16-23 0-15"; do
  readied FAKE_NCPU="${machine%%=*}" CPU_SETS=auto
  check "CPU sets: of ${machine%%=*} CPUs the servers get half, Toxiproxy a quarter" '[[ $status == 0 && $(sets) == "${machine#*=}" ]]'
done
for count in 2 4 7 ""; do
  readied FAKE_NCPU="$count" CPU_SETS=auto
  check "CPU sets: none of '$count' CPUs" unpinned
done
cores=$(for cpu in {0..15}; do echo "$cpu,$((cpu % 8))"; done)
readied FAKE_NCPU=16 CPU_SETS=auto FAKE_CPUS="$cores" FAKE_ALLOWED=0-15
check "CPU sets: no core is shared by two parts" '[[ $(sets) == "4-7,12-15 3,11 2,10 0-1,8-9" ]]'
cores=$(for cpu in 0 1 2 3 4 5 6 7; do echo "$cpu,$((cpu % 4))"; done)
readied FAKE_NCPU=8 CPU_SETS=auto FAKE_CPUS="$cores" FAKE_ALLOWED=0-7
check "CPU sets: of 8 CPUs generator and downstream share one" '[[ $(sets) == "2-3,6-7 5 1 0,4" ]]'
cores=$(for cpu in {0..15}; do echo "$cpu,$cpu"; done)
readied FAKE_NCPU=9 CPU_SETS=auto FAKE_CPUS="$cores" FAKE_ALLOWED=1,4-10,15
check "CPU sets: only of CPUs that the engine may use" '[[ $(sets) == "7-10,15 6 5 1,4" ]]'
readied FAKE_NCPU=10 CPU_SETS=auto FAKE_CPUS="$cores" FAKE_ALLOWED=1,4-10,15
check "CPU sets: none where the engine tells another number" unpinned
readied FAKE_NCPU=8 CPU_SETS=auto FAKE_CPUS=none FAKE_ALLOWED=0-7
check "CPU sets: none where nobody tells the CPUs" unpinned
readied FAKE_NCPU=8 CPU_SETS=auto FAKE_CPUSET=false
check "CPU sets: none where the engine cannot pin" unpinned
readied FAKE_NCPU=64
check "CPU sets: without a word" '[[ $(sets) == "32-63 24-31 16-23 0-15" ]]'
for word in CPU_SETS=off SERVER_CPUSET=0-3 SERVER_CPUSET= OBSERVATION_CPUSET=0; do
  readied FAKE_NCPU=8 CPU_SETS=auto "$word"
  check "CPU sets: none but the user's own after $word" unpinned
done
readied FAKE_NCPU=8 CPU_SETS=on
check "CPU sets: auto or off" '[[ $status == 1 && $out == "lab: CPU_SETS=on: allowed are auto and off" && ! -e $state/env ]]'
readied FAKE_NCPU=8
printf 'TOXIPROXY_CPUSET=7\n' >>"$lab/.env"
CPU_SETS=auto FAKE_NCPU=8 run "$lab/host/lab.sh" ready
check "CPU sets: none but the user's own after one in .env" unpinned

readied FAKE_NCPU=8 CPU_SETS=auto
run "$lab/host/lab.sh" where
# shellcheck disable=SC2034 # used by checks, as text
said="CPU sets: servers 4-7, generator and agent 3, Toxiproxy 0-1, all others 2 (CPU_SETS=off undoes it)"
check "CPU sets: make up says them" '[[ $status == 0 && $(tail -n 1 <<<"$out") == "lab: $said" ]]'
FAKE_NCPU=8 run "$lab/host/lab.sh" doctor
check "CPU sets: so does the doctor" '[[ $out == *"ok    $said"* ]]'
fake docker <<'FAKE'
if [[ $1 == run ]]; then cat; fi
FAKE
run "$lab/host/lab.sh" facts
check "CPU sets: a run records them" \
  '[[ $status == 0 && $(<"$state/host.json") == *$'"'cpuset LOADGEN 3\ncpuset TOXIPROXY 0-1\ncpuset DOWNSTREAM 2\ncpuset OBSERVATION 2\ncpu_sets auto'"'* ]]'
for machine in FAKE_NCPU=2 FAKE_NCPU=7 "FAKE_NCPU=8 FAKE_CPUSET=false" "FAKE_NCPU=8 SERVER_CPUSET=0-3"; do
  # shellcheck disable=SC2086 # words
  readied $machine
  # shellcheck disable=SC2086 # words
  run env $machine bash -c "'$lab/host/lab.sh' where && '$lab/host/lab.sh' doctor"
  check "CPU sets: nothing is said of them with $machine" '[[ $out == *"lab: up."*"the lab is not up"* && $out != *"CPU sets"* ]]'
done
readied FAKE_NCPU=8 CPU_SETS=off
# shellcheck disable=SC2034 # used by checks, as text
said="CPU sets: none; CPU_SETS=auto keeps the parts of the lab to CPUs of their own"
CPU_SETS=off FAKE_NCPU=8 run bash -c "'$lab/host/lab.sh' where && '$lab/host/lab.sh' doctor"
check "CPU sets: on 8 CPUs make up and the doctor say how to have some" \
  '[[ $(grep -c "CPU sets" <<<"$out") == 2 && $out == *"lab: $said"*"ok    $said"* ]]'

finish
