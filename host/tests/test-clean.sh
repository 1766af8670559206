#!/usr/bin/env bash
# host/clean.sh: what it removes, and what it leaves alone.
# shellcheck disable=SC2016  # quoted code: fakes, and checks that `check` evaluates
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. host/tests/fakes.sh

# cleaned NAME=VALUE…: `make clean` with two runs stored. The lab built Toxiproxy; all others were pulled, but Go and Maven,
# which are not there; a container uses the agent's image.
cleaned() {
  fresh
  printf 'LAB_RESULTS_DIR=./results\n' >>"$lab/.env"
  mkdir -p "$lab"/results/{20261122T231332Z-bench,20261122T231947Z-aa,notes,20261122-mine} "$lab"/.lab/{test,logs}
  touch "$lab"/results/{20261122T231332Z-bench,20261122T231947Z-aa}/manifest.json
  mkdir "$lab/results/20261122T000001Z-backup"
  touch "$lab"/results/{index.html,runs.csv}
  ln -s 20261122T231947Z-aa "$lab/results/latest"
  ln -s ../results/notes "$lab/results/20261122T000000Z-link"
  fake docker <<'FAKE'
lab=$(cd "$(dirname "$0")/.." && pwd)
case "$*" in
  "ps --all --quiet --filter label=com.docker.compose.project=concurrency-lab") printf '%s' "${FAKE_UP-}" ;;
  "ps --quiet --filter volume=/lab/lock") printf '%s' "${FAKE_OTHER-}" ;;
  "images --filter reference=concurrency-lab/"*:local*) printf 'concurrency-lab/%s:local\n' netty loadgen ;;
  "images --quiet --filter dangling=true --filter label=com.docker.compose.project=concurrency-lab") echo 0123abcd ;;
  "images "*) echo somebody/elses:1 ;;
  "image inspect "*" concurrency-lab/"*:local | "image inspect "*" concurrency-lab/toxiproxy:"*) echo 84000000 ;;
  "image inspect "*" concurrency-lab/"*) exit 1 ;;
  "image inspect "*" "*golang* | "image inspect "*" "*maven*) exit 1 ;;
  "image inspect "*) echo 84000000 ;;
  "image rm "*loadgen*) exit 1 ;;
  "image rm "*) printf 'rm %s\n' "${*:3}" >>"$lab/calls" ;;
esac
FAKE
  run env "$@" "$lab/host/clean.sh"
}
# shellcheck disable=SC2034 # used by checks, as text
removed=$'rm concurrency-lab/netty:local\nrm concurrency-lab/toxiproxy:2.12.0\nrm 0123abcd'
cleaned X=1
check "clean: the lab's own images, the upstream ones it built, and what newer builds left; nothing else" '[[ $status == 0 && $(<"$calls") == "$removed" ]]'
check "clean: each is named, with what it held" \
  '[[ $(grep -cE "^removed  (concurrency-lab/netty:local|concurrency-lab/toxiproxy:2.12.0|0123abcd, without a name) +84 MB$" <<<"$out") == 3 ]]'
check "clean: what stays says why" \
  '[[ $out == *"kept     concurrency-lab/loadgen:local "*"(in use)"* && $out == *"kept     eclipse-temurin:25-jre "*"(others may use it: docker image rm eclipse-temurin:25-jre)"* && $out == *"kept     prom/prometheus:"* ]]'
check "clean: runs stay, and are counted; logs of builds and tests go" \
  '[[ $out == *"kept     2 runs in ./results "*" MB  (RUNS=yes removes them)" && -d $lab/results/20261122T231332Z-bench && -L $lab/results/latest && -e $lab/results/index.html && ! -e $lab/.lab/test && ! -e $lab/.lab/logs ]]'
cleaned RUNS=yes
check "clean: RUNS=yes removes runs, and what is no run stays" \
  '[[ $status == 0 && $(grep -cE "^removed  ./results/20261122T[0-9]+Z-(bench|aa) " <<<"$out") == 2 && $(ls "$lab/results" | paste -sd,) == 20261122-mine,20261122T000000Z-link,20261122T000001Z-backup,notes ]]'
cleaned RUNS=all
check "clean: RUNS is yes, or nothing is done" '[[ $status == 1 && $out == "lab: RUNS=all: allowed is yes" && ! -s $calls && -d $lab/.lab/test ]]'
cleaned FAKE_UP=0123
check "clean: a lab that is up is left alone" '[[ $status == 1 && $out == "lab: the lab is up: \`make down\` first" && ! -s $calls && -d $lab/.lab/test ]]'
cleaned FAKE_OTHER=0123
check "clean: so is another one, which shares results and logs" \
  '[[ $status == 1 && $out == "lab: another lab of this machine is up, "* && ! -s $calls && -d $lab/.lab/test ]]'

finish
