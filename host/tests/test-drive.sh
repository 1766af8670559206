#!/usr/bin/env bash
# host/lab.sh drive and stored: the driver, and what it leaves changed.
# shellcheck disable=SC2016  # quoted code: fakes, and checks that `check` evaluates
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
    for folder in "$lab"/results/.host-changes/*/; do
      [[ -d $folder ]] || continue
      printf 'SERVER=netty\nSERVER_CPUS=0.5\n' >"$folder/1.request"
      for ((i = 0; i < 1200; i++)); do if [[ -e $folder/1.answer ]]; then cat "$folder/1.answer"; break; fi; sleep 0.05; done
    done ;;
  "wait "*) echo 7 ;;
esac
FAKE
: >"$calls"
run "$lab/host/lab.sh" drive run </dev/null
check "drive: a run can change the host, and what its driver left is put back when it ends" \
  '[[ $status == 7 && $out == *ok*"netty was left changed"* && $(count "compose run .* -e LAB_HOST_CHANGES=[A-Za-z0-9]* --detach driver run") == 1 && -z $(ls -A "$lab/results/.host-changes") ]]'
: >"$calls"
run "$lab/host/lab.sh" drive toxics </dev/null
check "drive: other verbs cannot" '[[ $status == 7 && $(count LAB_HOST_CHANGES) == 0 && -z $(ls -A "$lab/results/.host-changes") ]]'
: >"$calls"
run "$lab/host/lab.sh" stored report </dev/null
check "stored: results and nothing else, no lab" \
  '[[ $status == 0 && $(count "^docker run --rm .*--network none .*--pids-limit 2048 --memory .*--user $(id -u):$(id -g) -v $lab/results:/lab/results concurrency-lab/loadgen:local report$") == 1 && $(wc -l <"$calls") == 1 ]]'

finish
