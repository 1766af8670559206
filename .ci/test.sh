#!/usr/bin/env bash
# Every test of the lab, in containers: static checks, unit tests, and a smoke test on the
# real lab. Needs what the lab needs (Docker, make) and ends with `N passed, N failed`.
# The smoke test is a second lab beside yours: own project name, ports and results folder.
# Full output of every step: .lab/test/<step>.log
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

export COMPOSE_PROJECT_NAME=concurrency-lab-test
logs=.lab/test
rm -rf "$logs" && mkdir -p "$logs"
passed=0 failed=0 began=$SECONDS

# count LOG KIND: "passed failed" as the tool that wrote LOG says it; a tool that says
# nothing counts as the one step it is.
count() {
  case $2 in
    pytest) awk '/ in [0-9.]+s/ && / (passed|failed|error)/ {p=f=0; for (i=2; i<=NF; i++) {if ($i ~ /^passed/) p=$(i-1); if ($i ~ /^(failed|error)/) f+=$(i-1)}} END {if (p+f) print p, f}' "$1" ;;
    maven) awk '/Tests run: [0-9]+, Failures: [0-9]+, Errors: [0-9]+, Skipped: [0-9]+$/ {sub(/^.*Tests run/, ""); gsub(/[^0-9 ]/, ""); t+=$1; f+=$2+$3; s+=$4} END {if (t) print t-f-s, f}' "$1" ;;
    go) awk '/^ *--- PASS/ {p++} /^ *--- FAIL/ {f++} END {if (p+f) print p+0, f+0}' "$1" ;;
    plain) awk '/^[0-9]+ passed, [0-9]+ failed/ {p=$1; f=$3} END {if (p+f) print p, f}' "$1" ;;
  esac
}

# step NAME KIND COMMAND…: run it, say in a line how it went, add to the totals.
step() {
  local name=$1 kind=$2 start=$SECONDS log status=0 p=0 f=0 counts
  shift 2
  log=$logs/$name.log
  "$@" >"$log" 2>&1 </dev/null || status=$?
  counts=$(count "$log" "$kind")
  if [[ -n $counts ]]; then read -r p f <<<"$counts"; else p=$((status == 0)); fi
  if ((status != 0 && f == 0)); then f=1; fi
  # A tool that counts and counted nothing has tested nothing.
  if [[ $kind != one && -z $counts && $status == 0 ]]; then p=0 f=1; printf 'no test was counted\n' >>"$log"; fi
  passed=$((passed + p)) failed=$((failed + f))
  if ((f == 0)); then
    printf 'ok      %-24s %4d passed  %4d s\n' "$name" "$p" $((SECONDS - start))
  else
    printf 'FAILED  %-24s %4d passed, %d failed  %4d s  (%s)\n' "$name" "$p" "$f" $((SECONDS - start)) "$log"
    tail -n 60 "$log" | sed 's/^/        | /'
  fi
  ((f == 0))
}

finish() {
  printf '%d s in all\n' $((SECONDS - began))
  printf '%d passed, %d failed\n' "$passed" "$failed"
  ((failed == 0)) && ((passed > 0))
  exit
}

setting() { sed -n "s/^$1=//p" .env; }
test_image=concurrency-lab/loadgen-test:local

# The tests' own container: the repository read-only, nothing to reach but itself.
in_tests() {
  docker run --rm --network none --cap-drop ALL --read-only --tmpfs /tmp:exec,mode=1777 -e HOME=/tmp \
    -v "$PWD:/lab/repo:ro" -w "/lab/repo/$1" "$test_image" "${@:2}"
}
promtool() {
  docker run --rm --network none --read-only --tmpfs /tmp -v "$PWD/prometheus:/etc/prometheus:ro" -w /etc/prometheus \
    --entrypoint /bin/promtool "$(setting PROMETHEUS_IMAGE)" "$@"
}
promtool_all() {
  local rules tests
  rules=(prometheus/rules/*.yml) tests=(prometheus/rule-tests/*.yml)
  promtool check config prometheus.yml && promtool check rules "${rules[@]#prometheus/}" &&
    promtool test rules "${tests[@]#prometheus/}"
}
# Tests of compiled services: their image's target `test`, which tells its counts when run.
built_tests() {
  local context=$1 tag=concurrency-lab/$1-test:local
  shift
  DOCKER_BUILDKIT=1 docker build --progress plain --target test --tag "$tag" "$@" "$context" &&
    docker run --rm --network none "$tag"
}
test_image_build() {
  host/lab.sh compose build loadgen &&
    DOCKER_BUILDKIT=1 docker build --progress plain --target test --tag "$test_image" \
      --build-arg DEBIAN_IMAGE="$(setting DEBIAN_IMAGE)" --build-arg OHA_IMAGE="$(setting OHA_IMAGE)" \
      --build-arg WRK2_IMAGE="$(sed -n 's/^WRK2_IMAGE=//p' ".lab/$COMPOSE_PROJECT_NAME/env")" loadgen
}

only=${ONLY:-all}
wanted() { [[ $only == all || " $only " == *" $1 "* ]]; }

step host one make ready || finish
step test-image one test_image_build || finish

if wanted static; then
  step compose-config one host/lab.sh compose config -q
  step shellcheck one in_tests . bash -c 'shellcheck -x -S warning .ci/run .ci/test.sh $(git -c safe.directory=* ls-files "*.sh")'
  step promtool one promtool_all
  step ruff one in_tests loadgen bash -c 'ruff check --no-cache . ../grafana && ruff format --no-cache --check . ../grafana'
  step mypy one in_tests loadgen mypy --cache-dir=/tmp/mypy
  step import-linter one in_tests loadgen lint-imports --no-cache
fi
if wanted unit; then
  step python pytest in_tests loadgen pytest -p no:cacheprovider -q
  step host-scripts plain host/test.sh
  step downstream go built_tests downstream --build-arg GOLANG_IMAGE="$(setting GOLANG_IMAGE)"
  step servers maven built_tests servers --build-arg MAVEN_IMAGE="$(setting MAVEN_IMAGE)" --build-arg JRE_IMAGE="$(setting JRE_IMAGE)"
fi
if wanted smoke; then
  . .ci/smoke.sh
fi
finish
