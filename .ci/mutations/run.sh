#!/usr/bin/env bash
# make test SUITE=mutations: makes each fault of mutations.toml in a copy of the checkout and runs the
# tests of that part; a fault that no test catches is a failure. For maintainers, not for CI.
#
#   ONLY="3 5"   only these, by their place in the file
#
# Needs the tests' image (`make test`) and takes about a minute for each, three where servers are built.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
logs=.lab/test/mutations
rm -rf "$logs" && mkdir -p "$logs"
copy=$(mktemp -d)
# The tests' image has a user of its own, who reads it.
chmod 755 "$copy"
trap 'rm -rf "$copy"' EXIT
git ls-files -z | xargs -0 cp --parents -t "$copy"
: "${TEST_IMAGE:=concurrency-lab/loadgen-test:local}"

# Those of the host's scripts, whose other names are not for here.
setting() { (. host/common.sh && setting "$1"); }
present_image() { (. host/common.sh && present_image "$1"); }
# The image holds the lab as it is; the mutated code must be found first.
in_copy() {
  docker run --rm --network none --cap-drop ALL --read-only --tmpfs /tmp:exec,mode=1777 -e HOME=/tmp -e LAB_REPO=/lab/repo -e PYTHONPATH=/lab/repo/loadgen/src \
    -v "$copy:/lab/repo:ro" -w "/lab/repo/$1" "$TEST_IMAGE" "${@:2}"
}
applied() {
  docker run --rm --network none -u "$(id -u):$(id -g)" -v "$copy:/lab/repo" "$TEST_IMAGE" \
    python -B /lab/repo/.ci/mutations/apply.py /lab/repo "$1"
}
built() {
  DOCKER_BUILDKIT=1 docker build --progress plain --target test --tag concurrency-lab/mutated-test:local "${@:2}" "$copy/$1" &&
    docker run --rm --network none concurrency-lab/mutated-test:local
}
# passes LAYER: whether its tests pass; the first failure is enough.
passes() {
  local room rules tests
  case $1 in
    # Those of the mutated room first: they are the likely ones.
    python)
      room=tests/$(sed -n 's|^loadgen/src/lab/\([a-z]*\)/.*|\1|p' <<<"$file")
      if [[ $room != tests/ ]]; then in_copy loadgen pytest -p no:cacheprovider -q -x "$room" || return; fi
      # Not the one that asks whether each fault still finds its text: this one has changed its own.
      in_copy loadgen pytest -p no:cacheprovider -q -n 2 -x --deselect tests/test_conventions.py::test_every_planted_fault_finds_its_text tests ;;
    java) built servers --build-arg PROFILE=none --build-arg MAVEN_IMAGE="$(present_image MAVEN_IMAGE)" --build-arg JRE_IMAGE="$(present_image JRE_IMAGE)" ;;
    go) built go --build-arg GOLANG_IMAGE="$(present_image GOLANG_IMAGE)" ;;
    host) (cd "$copy" && host/test.sh) ;;
    promtool)
      rules=(prometheus/rules/*.yml) tests=(prometheus/rule-tests/*.yml)
      docker run --rm --network none --read-only -v "$copy/prometheus:/etc/prometheus:ro" -w /etc/prometheus --tmpfs /tmp --entrypoint /bin/sh \
        "$(present_image PROMETHEUS_IMAGE)" -c "promtool check rules ${rules[*]#prometheus/} && promtool test rules ${tests[*]#prometheus/}" ;;
    *) printf 'no such tests: %s\n' "$1"; return 1 ;;
  esac
}
# who LOG: the first test in it that failed. Without one the tests did not run, which catches nothing.
who() { grep -m 1 -oE '^FAILED: .*|^FAILED [^ ]+|--- FAIL: [A-Za-z]+|\[ERROR\] +[A-Za-z$]+Test[A-Za-z$>]*\.[a-z][A-Za-z]+|FAILED:.*|COMPILATION ERROR' "$1"; }

caught=0 missed=0 number=0
while :; do
  number=$((number + 1))
  said=$(applied "$number") || status=$?
  if [[ ${status:-0} == 2 ]]; then break; fi
  file="" name="" layers=() problem=""
  { read -r file; read -r name; read -r -a layers; read -r problem; } <<<"$said"
  if [[ -n ${ONLY-} && " $ONLY " != *" $number "* ]]; then
    cp "$file" "$copy/$file" 2>/dev/null
    status=0
    continue
  fi
  if [[ ${status:-0} != 0 && -z $problem ]]; then
    printf 'no mutation could be read or made (exit status %d): is the tests'"'"' image there (make test)?\n' "$status"
    missed=$((missed + 1))
    break
  fi
  if [[ ${status:-0} != 0 ]]; then
    printf 'STALE   %2d %s: %s\n' "$number" "$name" "$problem"
    missed=$((missed + 1)) status=0
    continue
  fi
  by=""
  for layer in "${layers[@]}"; do
    log=$logs/$number-$layer.log
    if passes "$layer" >"$log" 2>&1 </dev/null; then continue; fi
    if by=$(who "$log"); then by="$layer: $by"; break; fi
    problem="the $layer tests did not run: $(tail -n 1 "$log")"
  done
  if [[ -z $by && -n $problem ]]; then
    printf 'BROKEN  %2d %s: %s\n' "$number" "$name" "$problem"
    missed=$((missed + 1))
  elif [[ -n $by ]]; then
    printf 'caught  %2d %s (%s)\n' "$number" "$name" "$by"
    caught=$((caught + 1))
  else
    printf 'MISSED  %2d %s: %s\n' "$number" "$name" "$file"
    missed=$((missed + 1))
  fi
  cp "$file" "$copy/$file"
done
printf '%d passed, %d failed\n' "$caught" "$missed"
((missed == 0 && caught > 0))
