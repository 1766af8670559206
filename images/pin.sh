#!/usr/bin/env bash
# Renews a pin of .env:  images/pin.sh NAME [TAG]
#
# It pulls the image of that name (present.sh names them) by tag, the present one where none is given, and writes tag
# and digest of what came into .env. What cannot be pulled is not pinned. Where each digest was read: README.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. host/common.sh

if (($# < 1 || $# > 2)); then fail "images/pin.sh NAME [TAG]"; fi
name=$(tr '[:lower:]' '[:upper:]' <<<"$1")_IMAGE
pinned=""
if [[ $name =~ ^[A-Z0-9]+_IMAGE$ ]]; then pinned=$(sed -n "s/^$name=\([^@]*\).*/\1/p" .env); fi
if [[ -z $pinned ]]; then fail "pin.sh: .env pins no image as $name"; fi
tag=${2:-${pinned##*:}}
if ! [[ $tag =~ ^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$ ]]; then fail "pin.sh: '$tag' is not a tag"; fi
image=${pinned%:*}:$tag

# Of what came now: an image that is there under two digests does not say which is the newer.
said=$(docker pull "$image") || fail "pin.sh: $image cannot be pulled, so nobody knows its digest; .env is as it was"
digest=$(sed -n 's|^Digest: \(sha256:[0-9a-f]\{64\}\)$|\1|p' <<<"$said")
if [[ -z $digest ]]; then fail "pin.sh: the engine tells no digest of $image; .env is as it was"; fi
sed "s|^$name=.*|$name=$image@$digest|" .env >.env.part
# Written in place: its owner and mode stay.
cat .env.part >.env
rm .env.part
printf '%s=%s@%s\n' "$name" "$image" "$digest"
