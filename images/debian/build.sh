#!/usr/bin/env bash
# Makes the Debian base image from Debian's packages: build.sh IMAGE, where the tag of IMAGE
# begins with a release name (debian:trixie-slim). For a root Debian machine.
#
# The mirror is the one this machine's own apt uses, and stays in the image. So do the
# machine's private CAs: where HTTPS is re-signed, package managers then work in every build
# on top of it, with no change to any Dockerfile.
set -euo pipefail

image=$1
tag=${image##*:}
release=${tag%%-*}

fail() { printf '%s\n' "$*" >&2; exit 1; }
command -v apt-get >/dev/null || fail "$image can only be built on Debian (no apt-get here)"
[[ $(id -u) == 0 ]] || fail "$image can only be built by root"

# mirror LABEL: where apt gets Debian's packages of that label from.
mirror() {
  apt-get indextargets --format "\$(REPO_URI)" \
    'Created-By: Packages' 'Origin: Debian' "Label: $1" 2>/dev/null | sed -n 1p
}
# Without lists (a fresh container) apt does not know yet.
if [[ -z $(mirror Debian) ]] || ! command -v mmdebstrap >/dev/null; then apt-get update -qq; fi
main=$(mirror Debian)
security=$(mirror Debian-Security)
if ! command -v mmdebstrap >/dev/null; then
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends mmdebstrap
fi
[[ -n $main ]] || fail "apt on this machine names no Debian mirror"
sources=("deb $main $release main" "deb $main $release-updates main")
if [[ -n $security ]]; then sources+=("deb $security $release-security main"); fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/ca"
find /usr/local/share/ca-certificates -name '*.crt' -exec cp {} "$work/ca/" \; 2>/dev/null || true

# As in the slim images: no manuals, documentation or translations, and no apt caches. The
# directory for manual pages stays: OpenJDK's installation links into it.
# shellcheck disable=SC2016  # $1 is mmdebstrap's, the root of the new system
mmdebstrap --variant=minbase --include=ca-certificates \
  --aptopt='Acquire::Languages "none"' \
  --aptopt='APT::Install-Recommends "true"' \
  --aptopt='APT::AutoRemove::SuggestsImportant "false"' \
  --aptopt='DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true"; }' \
  --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/info/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-include=/usr/share/doc/*/copyright' \
  --dpkgopt='force-unsafe-io' \
  --customize-hook='mkdir -p "$1/usr/share/man/man1"' \
  --customize-hook="mkdir -p \"\$1/usr/local/share/ca-certificates\" && cp -R '$work/ca/.' \"\$1/usr/local/share/ca-certificates/\"" \
  --customize-hook='chroot "$1" update-ca-certificates' \
  --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*.bin "$1"/var/log/*' \
  "$release" "$work/rootfs.tar" "${sources[@]}"

docker import --change 'CMD ["bash"]' --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
  --change "LABEL lab.built-from=packages" "$work/rootfs.tar" "$image"
