#!/usr/bin/env bash
# Measure what the gate's operating curve is drawn from: base, base again, +5 % and +10 % of CPU planted in
# the request path, in turns by round, in blocks by sitting.
#
#   [BLOCKS=3 ROUNDS=12 CONC=1400 SERVER=virtual-threads FIVE=1800 TEN=3600] .ci/gate-arms.sh
#
# FIVE and TEN are steps of Marsaglia's xorshift64, 1.5 to 2.5 ns each, for each request. (A multiplication and an
# addition would not do: the compiler folds 16 of them into one, and +10 % was +0.3 %.) A
# block is one run of one sitting; one that is complete is not measured again, and one that was interrupted
# goes on, so the same line continues after a stop. It takes a lab of its own: a worktree next to this
# checkout, whose servers have the fault (remove it to plant another one). Its four arms are values of
# SERVER_DOWNSTREAM_TIMEOUT_MS, which every server reads back and nothing else feels: 10001 base, 10002 base
# again, 10003 +5 %, 10004 +10 %.
#
# Then, in the driver's test image: PYTHONPATH=src:tests python tests/support/operating_curve.py <its results>/*-gate-arms-*
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
blocks=${BLOCKS:-3} rounds=${ROUNDS:-12} conc=${CONC:-1400} server=${SERVER:-virtual-threads} five=${FIVE:-1800} ten=${TEN:-3600}
# make would take them for words of its own.
unset BLOCKS ROUNDS CONC SERVER FIVE TEN

tree=$PWD-gate-arms
routes=servers/work/src/main/java/lab/work/blocking/BlockingRoutes.java
if ! [[ -d $tree ]]; then
  git worktree add --quiet --detach "$tree" HEAD
  if [[ -f .env ]]; then cp .env "$tree/.env"; fi
fi
cd "$tree"
if ! grep -q planted "$routes"; then
  # A lane that has other routes than these cannot be planted.
  sed -i -e 's|^      case DOWNSTREAM -> downstream.call();|      case DOWNSTREAM -> {\n        planted();\n        yield downstream.call();\n      }|' \
    -e 's|^  private Answer hello(int waitMs) throws InterruptedException {|  private void planted() {\n    long value = 1L + System.identityHashCode(Thread.currentThread());\n    int timeoutMs = (int) context.settings().downstreamTimeout().toMillis();\n    int count = timeoutMs == 10_003 ? FIVE : timeoutMs == 10_004 ? TEN : 0;\n    for (int i = 0; i < count; i++) {\n      value ^= value << 13;\n      value ^= value >>> 7;\n      value ^= value << 17;\n    }\n    if (value == 0) {\n      throw new IllegalStateException("planted");\n    }\n  }\n\n&|' "$routes"
  sed -i -e "s|? FIVE :|? $five :|" -e "s|? TEN :|? $ten :|" "$routes"
  [[ $(grep -c 'planted()' "$routes") == 2 ]] || { printf 'gate-arms: the fault could not be planted in %s\n' "$routes" >&2 && exit 2; }
  cat >experiments/gate-arms.toml <<TOML
question = "How often is a gate right?"
hypothesis = "Of 9 launches, +10 % is worse in 9 of 10 gates, and an unchanged server in at most 1 of 100."

[load]
servers = ["$server"]
routes = ["/downstream"]
concurrency = [$conc]
modes = ["closed"]
duration = "10s"

[repeat]
launches = $rounds
arms = [$(printf '"SERVER_DOWNSTREAM_TIMEOUT_MS=%d", ' 10001 10002 10003 10004 | sed 's/, $//')]
TOML
  git add -A
  git -c user.name=gate-arms -c user.email=gate-arms@localhost commit --quiet -m "CPU time planted: $five and $ten iterations for each request"
fi

make up
for ((block = 1; block <= blocks; block++)); do
  # The newest of this block: complete, interrupted, or none yet.
  status=none run=
  for folder in "${LAB_RESULTS_DIR:-results}"/*-gate-arms-"$block"; do
    [[ -f $folder/manifest.json ]] || continue
    run=${folder##*/} status=$(sed -n 's/^ *"status": "\(.*\)",$/\1/p' "$folder/manifest.json")
  done
  case $status in
    complete) printf 'block %d is complete: %s\n' "$block" "$run" ;;
    none) make run EXP=gate-arms NAME="gate-arms-$block" ;;
    *) make run RESUME="$run" ;;
  esac
done
