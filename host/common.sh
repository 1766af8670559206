# shellcheck shell=bash
# What the scripts of the host share. Sourced from the checkout's root; runs on bash 3.2 (macOS) too.

say() { printf '%s\n' "$*" >&2; }
fail() { say "lab: $*"; exit 1; }

# setting NAME: the value of a setting. The shell's value wins over .env's.
setting() {
  if [[ -n ${!1-} ]]; then printf '%s' "${!1}"; else sed -n "s/^$1=//p" .env | head -n 1; fi
}

# at_least HAVE MAJOR MINOR: whether the version HAVE is that one or later.
at_least() {
  local major minor rest
  IFS=. read -r major minor rest <<<"${1#v}."
  minor=${minor%%[^0-9]*}
  [[ $major =~ ^[0-9]+$ ]] && ((major > $2 || (major == $2 && ${minor:-0} >= $3)))
}

# The image with wrk2 that is made of the package in nixpkgs (images/nixpkgs).
nixpkgs_image() { printf 'concurrency-lab/wrk2:nixpkgs-%s' "$(setting NIXPKGS_RELEASE)"; }

has_image() { docker image inspect "$1" >/dev/null 2>&1; }

# A checkout can run several labs beside each other: each has its own state. compose.yaml builds the
# same path. What belongs to the machine (the engine's log, the images' logs) is in .lab/ itself.
project=$(setting COMPOSE_PROJECT_NAME)
project=${project:-concurrency-lab}
if ! [[ $project =~ ^[a-z0-9][a-z0-9_-]*$ ]]; then
  fail "COMPOSE_PROJECT_NAME=$project: allowed are lower-case letters, digits, - and _"
fi
state=.lab/$project

# compose WORD…: docker compose, with what `lab.sh ready` wrote down for it.
compose() (
  set -a
  # shellcheck source=/dev/null
  if [[ -f $state/env ]]; then . "./$state/env"; fi
  set +a
  docker compose "$@"
)
