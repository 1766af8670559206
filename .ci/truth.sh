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

complete() { grep -qs '"status": "complete"' "$results/$1/manifest.json"; }
# measured NAME: a complete run of the experiment at this commit. It exits with 1 where a trial gave no
# figures, as some that are planted do.
measured() {
  local run
  run=$(newest "$1")
  if [[ -z $run ]]; then
    make run EXP="$1" || true
  elif complete "$run"; then
    printf 'results/%s: measured at this commit already\n' "$run"
  else
    make run RESUME="$run" || true
  fi
  if ! complete "$(newest "$1")"; then fail "$1 is not complete; make truth goes on with it"; fi
}

unset MAKEFLAGS MAKELEVEL MAKEOVERRIDES MFLAGS LAB_WORDS LAB_SETTING_NAMES
(export SUITE=full ONLY="truth queueing" && .ci/test.sh)
measured truth
measured truth-doses
LAB_WORDS="RUN=$(newest truth) DOSES=$(newest truth-doses)" host/lab.sh stored truth >"$state/truth.md"
# Between its marks; what people wrote below stays.
for mark in '<!-- truth -->' '<!-- end of truth -->'; do
  if [[ $(grep -cxF -- "$mark" docs/truth.md) != 1 ]]; then fail "docs/truth.md has not one line $mark; the new part is $state/truth.md"; fi
done
sed '/^<!-- truth -->$/q' docs/truth.md >"$state/page.md"
cat "$state/truth.md" >>"$state/page.md"
sed -n '/^<!-- end of truth -->$/,$p' docs/truth.md >>"$state/page.md"
cp "$state/page.md" docs/truth.md
printf 'docs/truth.md: written between its marks\n'
