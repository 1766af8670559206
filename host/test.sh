#!/usr/bin/env bash
# Tests of the scripts in host/, of images/present.sh and of the Makefile, with programs that only
# pretend. Nothing is installed, pulled, built or started. Each file of tests/ has a lab of its own, so
# they run side by side; each runs alone, too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

said=$(mktemp -d)
trap 'rm -rf "$said"; kill $(jobs -p) 2>/dev/null || true' EXIT
passed=0 failed=0
tests=(host/tests/test-*.sh)
for test in "${tests[@]}"; do "$test" >"$said/${test##*/}" 2>&1 & done
wait
for test in "${tests[@]}"; do
  # One that ended before its last line has tested nothing.
  if read -r p _ f _ < <(tail -n 1 "$said/${test##*/}") && [[ $p$f =~ ^[0-9]+$ ]]; then
    passed=$((passed + p)) failed=$((failed + f))
    sed '$d' "$said/${test##*/}"
  else
    failed=$((failed + 1))
    printf 'FAILED: %s ended before its end:\n' "$test"
    tail -n 20 "$said/${test##*/}"
  fi
done
printf '%s passed, %s failed\n' "$passed" "$failed"
((failed == 0))
