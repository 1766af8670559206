#!/usr/bin/env bash
# The lab's tests, in containers. Needs what the lab needs (Docker, make); the last line is
# `N passed, N failed`.
#
#   SUITE=quick      (default) static checks, unit and contract tests, the core of the smoke test
#   SUITE=full       what CI runs: every kind of experiment, the core's lanes and all planted cases but a few (docs/maintaining.md)
#   SUITE=long       full, then what compares models or takes many JVMs, and experiments at their own length; what passed at
#                    this commit is not run again, so it goes on where it stopped
#   SUITE=mutations  seeded faults, each of which the quick suite's tests must catch
#   SUITE=mutants    the share of drawn mutants that the Python tests kill: NUMBER=600 SEED=1
#   ONLY="static …"  only these parts: static python truth host go servers, and of the smoke test
#                    core words verbs faults cells kinds planted queueing own (words looks at core's run); of SUITE=long
#                    also gated several frameworks
#   CELLS="kill-agent/window …"  only these of the cells (.ci/cells.csv)
#
# The smoke test is a second lab beside yours: own project name, ports and results folder.
# Full output of every step: .lab/test/<step>.log; of SUITE=long: .lab/test/long/<step>.log
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

# The words of `make test` are not for the verbs that are tested.
unset MAKEFLAGS MAKELEVEL MAKEOVERRIDES MFLAGS LAB_WORDS LAB_SETTING_NAMES
suite=${SUITE:-quick} only=${ONLY:-}
unset SUITE ONLY
export COMPOSE_PROJECT_NAME=concurrency-lab-test
logs=.lab/test state="" budget=""
case $suite in
  quick) budget=600 ;;
  full) budget=1800 ;;
  long) logs=.lab/test/long state=$logs/passed ;;
  mutations) ONLY=$only exec .ci/mutations/run.sh ;;
  mutants) exec .ci/mutations/drawn.sh ;;
  *) printf 'SUITE=%s is not a suite; allowed: quick, full, long, mutations, mutants\n' "$suite" >&2; exit 2 ;;
esac

# The parts of each suite; those from `core` on are of the smoke test.
parts=(static python host go servers)
smoke=(core words)
if [[ $suite != quick ]]; then parts+=(truth) smoke+=(verbs faults cells kinds planted queueing own); fi
if [[ $suite == long ]]; then smoke+=(gated several frameworks all_cells long_planted long_routes long_explained long_sweep long_own long_looked_at); fi
parts+=("${smoke[@]}")
for part in $only; do
  if [[ " ${parts[*]} " != *" $part "* ]]; then
    printf 'ONLY=%s is not a part of SUITE=%s; allowed: %s\n' "$part" "$suite" "${parts[*]}" >&2
    exit 2
  fi
done

# at_commit: what the tests of SUITE=long are of; a change of any file is another.
at_commit() { { git rev-parse HEAD && git diff HEAD && git ls-files -z --others --exclude-standard | xargs -0r sha256sum; } 2>&1 | sha256sum; }

if [[ $suite != long ]]; then
  mkdir -p "$logs" && find "$logs" -mindepth 1 -maxdepth 1 ! -name long -exec rm -rf {} +
elif [[ ! -f $logs/commit || $(<"$logs/commit") != "$(at_commit)" ]]; then
  rm -rf "$logs" && mkdir -p "$logs" && at_commit >"$logs/commit" && : >"$state"
fi
. .ci/steps.sh
if [[ -n $state ]]; then forget_unpassed; fi
# Ctrl-C ends what runs beside, too, and leaves no second lab.
trap 'kill $(jobs -p) 2>/dev/null; make down FORCE=yes >/dev/null 2>&1; if [[ -e .lab/two-engines ]]; then engines_down; fi; exit 130' INT TERM

# Those of the host's scripts, whose other names are not for here.
setting() { (. host/common.sh && setting "$1"); }
present_image() { (. host/common.sh && present_image "$1"); }
test_image=concurrency-lab/loadgen-test:local

# in_tests FOLDER COMMAND…: the tests' own container: the repository read-only, nothing to reach
# but itself. `shares` of the CPUs: 1024 is a usual container's.
in_tests() {
  docker run --rm --network none --cpu-shares "${shares:-1024}" --cap-drop ALL --read-only --tmpfs /tmp:exec,mode=1777 -e HOME=/tmp \
    -v "$PWD:/lab/repo:ro" -w "/lab/repo/$1" "$test_image" "${@:2}"
}
promtool() {
  docker run --rm --network none --read-only --tmpfs /tmp -v "$PWD/prometheus:/etc/prometheus:ro" -w /etc/prometheus \
    --entrypoint /bin/promtool "$(present_image PROMETHEUS_IMAGE)" "$@"
}
promtool_all() {
  local rules tests
  rules=(prometheus/rules/*.yml) tests=(prometheus/rule-tests/*.yml)
  promtool check config prometheus.yml && promtool check rules "${rules[@]#prometheus/}" &&
    promtool test rules "${tests[@]#prometheus/}"
}
# Tests of compiled services: a target of an image, which reports its counts when run.
# built_tests NAME TARGET FOLDER OPTION…
built_tests() {
  local tag=concurrency-lab/$1-test:local
  DOCKER_BUILDKIT=1 docker build --progress plain --target "$2" --tag "$tag" "${@:4}" "$3" && docker run --rm --network none "$tag"
}
test_image_build() {
  host/lab.sh compose build loadgen &&
    DOCKER_BUILDKIT=1 docker build --progress plain --target test --tag "$test_image" \
      --build-arg DEBIAN_IMAGE="$(present_image DEBIAN_IMAGE)" --build-arg GOLANG_IMAGE="$(present_image GOLANG_IMAGE)" \
      --build-arg WRK2_IMAGE="$(sed -n 's/^WRK2_IMAGE=//p' ".lab/$COMPOSE_PROJECT_NAME/env")" --file loadgen/Dockerfile .
}

part_static() {
  step compose-config one host/lab.sh compose config -q
  step stack-config one env MACHINES=a LAB_TOKEN_SUMS=a LAB_SECRET=a docker stack config -c compose.swarm.yaml
  step shellcheck one in_tests . bash -c 'files=$(git -c safe.directory=* ls-files "*.sh") && [[ $files ]] && shellcheck -x -S warning .ci/run lab $files'
  step promtool one promtool_all
  step ruff one in_tests loadgen bash -c 'ruff check --no-cache . ../grafana ../.ci && ruff format --no-cache --check . ../grafana ../.ci'
  step mypy one in_tests loadgen mypy --cache-dir=/tmp/mypy
  step import-linter one in_tests loadgen lint-imports --no-cache
}
# Those in a browser take a third of the time, and what they draw changes seldom: not in quick.
part_python() {
  local shares=128 without=()
  if [[ $suite == quick ]]; then without=(--ignore tests/browser); fi
  # The longest test first: at the end it would run alone.
  step python pytest in_tests loadgen pytest -p no:cacheprovider -q -n 2 "${without[@]}" tests/test_published.py tests
}
# The lab against oracles. It waits more than it computes, and allows for what a busy machine adds: it has a CPU
# before the builds and tests beside it.
part_truth() { local shares=16384; step truth pytest in_tests loadgen env LAB_TRUTH=yes pytest -p no:cacheprovider -q -n 2 tests/truth; }
part_host() { step host-scripts plain host/test.sh; }
part_go() { step go go built_tests go test go --build-arg GOLANG_IMAGE="$(present_image GOLANG_IMAGE)"; }
# The core's models and, except in quick, the frameworks: all hold to one contract.
part_servers() {
  local profile=frameworks
  if [[ $suite == quick ]]; then profile=none; fi
  step servers maven built_tests servers test servers --build-arg PROFILE="$profile" \
    --build-arg MAVEN_IMAGE="$(present_image MAVEN_IMAGE)" --build-arg JRE_IMAGE="$(present_image JRE_IMAGE)"
}
# None of these steps measures, so lanes run side by side: half of the work is waiting. The Python tests, the longest
# of them, run later: beside those parts of the smoke test that ask nothing of a figure.
in_checks() {
  part static
  part go
}
oracles() { if [[ $suite != quick ]]; then part truth; fi; }
in_java() {
  local profiles=()
  if [[ $suite == full ]]; then profiles=(--profile jmh); fi
  if [[ $suite == long ]]; then profiles=(--profile frameworks --profile jmh --profile more); fi
  if [[ -z $only ]]; then step lab-images one host/lab.sh compose "${profiles[@]}" build; fi
  part servers
}
in_scripts() { part host; }
# What needs the tests' image, as soon as that is built; and Go's tests, as the scripts take as long without them.
in_the_image() {
  trap 'kill $(jobs -p) 2>/dev/null; exit 143' TERM
  if step test-image one test_image_build; then beside in_checks oracles; fi
}

step host one make ready || finish
beside in_the_image in_java in_scripts
. .ci/smoke.sh
if some_wanted; then smoke_test; else part python; fi
finish
