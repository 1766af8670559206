#!/usr/bin/env bash
# What the lab is made of, and what is known against it: `make audit`. Not a part of `make test`: its answer
# changes without the lab, and it asks OSV. It needs the driver's image, and looks at the images that are here.
#
# In .lab/audit/: sbom.cdx.json (CycloneDX: the packages of the images), found.json (what is known against them).
# OSV is asked about Debian, Go, Maven and Python, the locks of the driver and its tests included: AUDIT_OSV=<address>, or
# empty: not asked.
# Exit status: 0 all was checked and nothing is known, 1 something is known, 2 not everything could be checked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. host/common.sh

driver=concurrency-lab/loadgen:$LAB_TAG
audit=.lab/audit
docker version >/dev/null 2>&1 || fail "no Docker engine answers, so nobody knows what the images hold"
has_image "$driver" || fail "the driver's image is not here: \`make up\` builds it"
rm -rf "$audit"
mkdir -p "$audit"

# in_driver OPTION… -- WORD…: WORD… in the driver's image, with no more than it needs.
in_driver() {
  local options=()
  while [[ $1 != -- ]]; do options+=("$1"); shift; done
  docker run --rm --interactive --read-only --tmpfs /tmp:exec,mode=1777 --cap-drop ALL --security-opt no-new-privileges:true --pids-limit 2048 --memory 4g \
    -e HOME=/tmp -v "$PWD/.ci/audit.py:/audit.py:ro" "${options[@]}" "$driver" "${@:2}"
}

# What pins say, and what is here instead.
bare=()
while IFS='=' read -r name image; do
  if [[ $name == *_IMAGE && -n $image && $image != *@sha256:* ]]; then bare+=("$image"); fi
done <.env
printf 'pins         by tag and digest: %s; by tag alone: %s\n' "$(grep -c '^[A-Z0-9]*_IMAGE=.*@sha256:' .env)" "${bare[*]}"

# The images of all services: each once, however many names it has. A container that is made, and never started.
number=0 absent=() seen=" " container=""
trap '[[ -z $container ]] || docker rm "$container" >/dev/null 2>&1 || true' EXIT
for image in $(compose --profile '*' config --images | sort -u); do
  if ! id=$(docker image inspect --format '{{.Id}}' "$image" 2>/dev/null); then absent+=("$image"); continue; fi
  if [[ $seen == *" $id "* ]]; then continue; fi
  seen+="$id " number=$((number + 1))
  if [[ -t 1 ]]; then printf '%s …\033[K\r' "$image"; fi
  container=$(docker create "$image" nothing)
  status=0
  docker export "$container" |
    in_driver --network none -v "$PWD/servers:/servers:ro" --entrypoint python -- \
      /audit.py inventory "$image" /servers >"$audit/image-$number.json" || status=$?
  docker rm "$container" >/dev/null
  container=""
  if ((status != 0)); then fail "audit: what $image holds could not be read"; fi
done
for image in ${absent[@]+"${absent[@]}"}; do
  number=$((number + 1))
  printf '{"image": "%s", "components": [["image", "%s", ""]]}\n' "$image" "$image" >"$audit/image-$number.json"
done
printf 'images       %s looked at\n' "$((number - ${#absent[@]}))"

release=$(docker run --rm --network none --entrypoint cat "$(present_image DEBIAN_IMAGE)" /etc/os-release 2>/dev/null | sed -n 's/^VERSION_ID="\(.*\)"/\1/p')
in_driver -v "$PWD/$audit:/lab/$audit" -v "$PWD/loadgen:/lab/loadgen:ro" -w /lab -u "$(id -u):$(id -g)" ${AUDIT_OSV+-e AUDIT_OSV} --entrypoint python -- \
  /audit.py scan "$audit" "${release:-13}" "$(git rev-parse --verify -q HEAD || echo unknown)" loadgen/requirements.txt loadgen/requirements-dev.txt </dev/null
