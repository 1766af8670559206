#!/usr/bin/env bash
# Writes .mvn/checksums/checksums.sha256 anew: the SHA-256 of every file that Maven resolves for the servers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. host/common.sh

image=concurrency-lab/checksums:$(setting LAB_TAG)
sums=servers/.mvn/checksums/checksums.sha256
DOCKER_BUILDKIT=1 docker build -q -t "$image" --target checksums --build-arg MAVEN_IMAGE="$(present_image MAVEN_IMAGE)" servers >/dev/null
docker run --rm --network none "$image" >"$sums.new"
mv "$sums.new" "$sums"
docker image rm "$image" >/dev/null
printf '%s: %d files\n' "$sums" "$(wc -l <"$sums")"
