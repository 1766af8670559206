#!/usr/bin/env bash
# Removes what the lab has made on this machine, and says what each held: its own images, those it built in the place of
# upstream images, images that a newer build left without a name, logs of builds and tests. An image of the lab with a tag
# of your own stays.
#
#   clean.sh            stored runs are kept and counted
#   RUNS=yes clean.sh   they go, too, and the list of them
#
# Nothing is forced: an image that a container uses stays. The engine's build cache belongs to all who build
# with it, so it stays, too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. host/common.sh

# line DONE WHAT BYTES [WHY]
line() { printf '%-8s %-46s %6d MB%s\n' "$1" "$2" "$((($3 + 500000) / 1000000))" "${4:+  ($4)}"; }
bytes_of() { du -sk "$@" | awk '{all += $1} END {printf "%d", all * 1024}'; }

# image NAME WHAT: remove one that is there, by its name or id.
image() {
  local size
  size=$(docker image inspect --format '{{.Size}}' "$1" 2>/dev/null) || return 0
  if docker image rm "$1" >/dev/null 2>&1; then line removed "$2" "$size"; else line kept "$2" "$size" "in use"; fi
}

folder() {
  local size
  if [[ ! -d $1 || -L $1 ]]; then return 0; fi
  size=$(bytes_of "$1")
  rm -rf "$1"
  line removed "$1" "$size"
}

case ${RUNS-} in yes | "") ;; *) fail "RUNS=$RUNS: allowed is yes" ;; esac
docker version >/dev/null 2>&1 || fail "no Docker engine answers, so nobody knows which images are there"
if [[ -n $(docker ps --all --quiet --filter "label=com.docker.compose.project=$project") ]]; then
  fail "the lab is up: \`make down\` first"
fi
# Results and logs are of all labs of this checkout.
if [[ -n $(docker ps --quiet --filter volume=/lab/lock) ]]; then
  fail "another lab of this machine is up, and what is removed here may be its own: stop that one first"
fi

for name in $(docker images --filter 'reference=concurrency-lab/*:local' --filter "reference=concurrency-lab/*:$LAB_TAG" \
  --filter 'reference=concurrency-lab/*:concurrency-lab-test' --filter 'reference=concurrency-lab/wrk2:nixpkgs-*' --format '{{.Repository}}:{{.Tag}}' | grep -v '<none>' | sort -u); do
  image "$name" "$name"
done
for name in $(sed -n 's/^[A-Z0-9]*_IMAGE=\([^@][^@]*\).*/\1/p' .env | sort -u); do
  image "$(local_name "$name")" "$(local_name "$name")"
  if size=$(docker image inspect --format '{{.Size}}' "$name" 2>/dev/null); then line kept "$name" "$size" "others may use it: docker image rm $name"; fi
done
for id in $(docker images --quiet --filter dangling=true --filter "label=com.docker.compose.project=$project" | sort -u); do
  image "$id" "$id, without a name"
done
# What SUITE=long has passed is hours of work.
if [[ ! -e .lab/test/long ]]; then folder .lab/test; fi
folder .lab/logs

runs=()
for run in "$(setting LAB_RESULTS_DIR)"/*Z-*; do
  if [[ -d $run && ! -L $run && ${run##*/} =~ ^[0-9]{8}T[0-9]{6}Z- && -f $run/manifest.json ]]; then runs+=("$run"); fi
done
if ((${#runs[@]} == 0)); then exit; fi
if [[ ${RUNS-} == yes ]]; then
  for run in "${runs[@]}"; do folder "$run"; done
  # It led to one of them.
  if [[ -L ${runs[0]%/*}/latest ]]; then rm "${runs[0]%/*}/latest"; fi
  rm -f "${runs[0]%/*}"/{index.html,runs.csv}
else
  line kept "${#runs[@]} runs in ${runs[0]%/*}" "$(bytes_of "${runs[@]}")" "RUNS=yes removes them"
fi
