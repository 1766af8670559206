#!/usr/bin/env bash
# .ci/audit.sh: which images it looks at, and how it ends.
# shellcheck disable=SC2016  # quoted code: fakes, and checks that `check` evaluates
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. host/tests/fakes.sh

# auditing NAME=VALUE…: with three images, of which one has two names and one is not here.
auditing() {
  fresh
  mkdir -p "$lab/.ci" "$lab/servers" "$lab/loadgen"
  cp .ci/audit.sh "$lab/.ci/"
  fake docker <<'FAKE'
lab=$(cd "$(dirname "$0")/.." && pwd)
printf 'docker %s\n' "$*" >>"$lab/calls"
case "$1 ${2-}" in
  "version "*) exit "${FAKE_VERSION:-0}" ;;
  "compose --profile") printf 'concurrency-lab/loadgen:local\nlab/gone:1\nlab/second-name:1\n' ;;
  "image inspect") if [[ $* == *lab/gone:1* ]]; then exit 1; fi; echo sha256:one ;;
  "create "*) echo made ;;
  "run "*)
    case $* in
      *" inventory "*) printf '{}\n'; exit "${FAKE_INVENTORY:-0}" ;;
      *" scan "*) exit "${FAKE_SCAN:-0}" ;;
    esac ;;
esac
FAKE
  run env "$@" "$lab/.ci/audit.sh"
}

for scan in 0 1 2; do
  auditing FAKE_SCAN=$scan
  check "audit: it ends as its scan does: $scan" '[[ $status == "$scan" && $(count " scan .lab/audit 13 ") == 1 ]]'
done
check "audit: an image of two names is looked at once, and its container removed" \
  '[[ $(count " inventory ") == 1 && $(count "docker rm made") == 1 && $out == *"images       1 looked at"* ]]'
check "audit: of one that is not here is said that it was not looked at" \
  '[[ $(<"$lab/.lab/audit/image-2.json") == '"'"'{"image": "lab/gone:1", "components": [["image", "lab/gone:1", ""]]}'"'"' ]]'
check "audit: the scan has a network, and no image" '[[ $(count "docker run .* inventory ") == $(count "docker run .*--network none .* inventory ") ]]'
auditing FAKE_INVENTORY=1
check "audit: an image that cannot be read is one line, and leaves no container" \
  '[[ $status == 1 && $(tail -n 1 <<<"$out") == "lab: audit: what concurrency-lab/loadgen:local holds could not be read" && $(count "docker rm made") == 1 && $(count " scan ") == 0 ]]'
auditing FAKE_VERSION=1
check "audit: without an engine it says so" '[[ $status == 1 && $out == "lab: no Docker engine answers, so nobody knows what the images hold" ]]'

finish
