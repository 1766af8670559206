#!/usr/bin/env bash
# `make truth`: how often is the lab right? Its oracles first, in the tests' own lab; then two long runs in
# the user's lab, each of which goes on where it stopped and is not repeated at this commit; then the page.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. host/common.sh
results=$(setting LAB_RESULTS_DIR)
commit=$(git rev-parse HEAD)

# newest NAME: the last run of that name at this commit.
newest() {
  local run found=""
  for run in "$results"/*-"$1"; do
    if grep -qs "\"commit\": \"$commit\"" "$run/manifest.json"; then found=${run##*/}; fi
  done
  printf '%s' "$found"
}

# measured NAME: a complete run of the experiment at this commit.
measured() {
  local run
  run=$(newest "$1")
  if [[ -z $run ]]; then
    make run EXP="$1"
  elif ! grep -q '"status": "complete"' "$results/$run/manifest.json"; then
    make run RESUME="$run"
  else
    printf 'results/%s: measured at this commit already\n' "$run"
  fi
}

unset MAKEFLAGS MAKELEVEL MAKEOVERRIDES MFLAGS LAB_WORDS LAB_SETTING_NAMES
(export SUITE=full ONLY="truth queueing" && .ci/test.sh)
measured truth
measured truth-doses
LAB_WORDS="RUN=$(newest truth) DOSES=$(newest truth-doses)" host/lab.sh stored truth >"$state/truth.md"
cp "$state/truth.md" docs/truth.md
printf 'docs/truth.md: written\n'
