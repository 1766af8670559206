# shellcheck shell=bash
# What the scripts of the host share. Sourced from the checkout's root; runs on bash 3.2 (macOS) too.

say() { printf '%s\n' "$*" >&2; }
fail() { say "lab: $*"; exit 1; }

# Docker 29 counts what a build attests of itself into an image's id: the same layers would be another image
# after each build, all JVMs would be started anew, and runs would not be comparable.
export BUILDX_NO_DEFAULT_ATTESTATIONS=1

# setting NAME: the value of a setting. The shell's value wins over .env's, of which quotes around a value and a comment
# behind it are no part, as for Compose.
setting() {
  if [[ -n ${!1-} ]]; then
    printf '%s' "${!1}"
  else
    sed -n "s/^$1=//p" .env | head -n 1 |
      sed -e '/^"/{' -e 's/^"\([^"]*\)".*/\1/' -e 'b' -e '}' -e "/^'/{" -e "s/^'\([^']*\)'.*/\1/" -e 'b' -e '}' -e 's/[[:space:]]#.*//' -e 's/[[:space:]]*$//'
  fi
}

# A pin of .env may end in a digest (name:tag@sha256:…), which the registry is held to (images/present.sh). Everybody
# else goes by name and tag: so NAME_IMAGE is exported without the digest, for Compose too, and NAME_DIGEST has it.
while IFS='=' read -r pin image; do
  if [[ $pin != *_IMAGE ]]; then continue; fi
  if [[ -n ${!pin-} ]]; then image=${!pin}; fi
  if [[ $image != *@* ]]; then continue; fi
  if ! [[ $image =~ ^[^@]+:[^@/:]+@sha256:[0-9a-f]{64}$ ]]; then
    fail "$pin=$image: an image is name:tag, or name:tag@sha256: and 64 digits and letters a to f"
  fi
  export "$pin=${image%%@*}" "${pin%_IMAGE}_DIGEST=${image#*@}"
done <.env
unset -v pin image

# at_least HAVE MAJOR MINOR: whether the version HAVE is that one or later.
at_least() {
  local major minor rest
  IFS=. read -r major minor rest <<<"${1#v}."
  minor=${minor%%[^0-9]*}
  [[ $major =~ ^[0-9]+$ ]] && ((major > $2 || (major == $2 && ${minor:-0} >= $3)))
}

# The image with wrk2 that is made of the package in nixpkgs (images/nixpkgs).
nixpkgs_image() { printf 'concurrency-lab/wrk2:nixpkgs-%s' "$(setting NIXPKGS_RELEASE)"; }

# core_servers: those that `make up` starts, one a line.
core_servers() { grep -o '"[a-z-]*"' prometheus/servers/core.json | tr -d '"' | grep -vx targets; }

# heap_mib: the largest heap of a server: 1 GiB where SERVER_JVM_FLAGS does not say.
heap_mib() {
  local flag='.* -Xmx([0-9]+)([kKmMgG]?) '
  [[ " $(setting SERVER_JVM_FLAGS) " =~ $flag ]] || { printf 1024; return 0; }
  case ${BASH_REMATCH[2]} in
    g | G) printf '%s' $((BASH_REMATCH[1] * 1024)) ;;
    m | M) printf '%s' "${BASH_REMATCH[1]}" ;;
    k | K) printf '%s' $((BASH_REMATCH[1] / 1024)) ;;
    *) printf '%s' $((BASH_REMATCH[1] / 1048576)) ;;
  esac
}

# memory_needed SERVERS MEASURED: MiB that so many servers and all other containers take, once MEASURED of
# them have used their whole heaps. Read off stored benches: a JVM without load holds 83 to 230 MiB (150 is
# counted), all else 584 MiB at 2,000 connections.
memory_needed() { printf '%s' $((600 + $1 * 150 + $2 * $(heap_mib))); }

has_image() { docker image inspect "$1" >/dev/null 2>&1; }

# is_upstream PIN: whether the image that a pin names is there, of its digest if it has one.
is_upstream() {
  local told digest=${1%_IMAGE}_DIGEST
  told=$(docker image inspect --format '{{.RepoDigests}}' "$(setting "$1")" 2>/dev/null) && [[ $told == *"${!digest:+@}${!digest-}"* ]]
}
# local_name IMAGE: what an upstream image is called that is built here: under its own name every project of this machine
# would take it for upstream's.
local_name() { printf 'concurrency-lab/%s' "${1##*/}"; }
# present_image PIN: the image that builds and containers take for a pin.
present_image() {
  local image
  image=$(setting "$1")
  if [[ -n $image ]] && ! is_upstream "$1" && has_image "$(local_name "$image")"; then image=$(local_name "$image"); fi
  printf '%s' "$image"
}

# A checkout can run several labs beside each other: each has its own state. compose.yaml builds the
# same path. What belongs to the machine (the engine's log, the images' logs) is in .lab/ itself.
project=$(setting COMPOSE_PROJECT_NAME)
project=${project:-concurrency-lab}
if ! [[ $project =~ ^[a-z0-9][a-z0-9_-]*$ ]]; then
  fail "COMPOSE_PROJECT_NAME=$project: allowed are lower-case letters, digits, - and _"
fi
state=.lab/$project
# And each has its own images: what one of them builds, of whatever checkout, no container of another is made of.
if [[ $project == concurrency-lab ]]; then LAB_TAG=local; else LAB_TAG=$project; fi
export LAB_TAG

# read_off NAME: what write_env wrote down of this machine.
# shellcheck source=/dev/null
read_off() { (. "./$state/env" && printf '%s' "${!1-}"); }

# shellcheck disable=SC2034 # of those who source this
driver_image=concurrency-lab/loadgen:$LAB_TAG

# driver OPTION… WORD…: the driver's image without a network, for what needs no lab.
driver() {
  local memory
  memory=$(setting PART_MEMORY)
  docker run --rm --init --pull never --network none --read-only --tmpfs /tmp --cap-drop ALL \
    --security-opt no-new-privileges:true --pids-limit 2048 --memory "${memory:-4g}" \
    -e LAB_WORDS -e LAB_SETTING_NAMES -e LAB_LIMITS -e LAB_TAG -e NO_COLOR -e COLUMNS "$@"
}

# compose WORD…: docker compose, with what `lab.sh ready` wrote down for it.
compose() (
  set -a
  # shellcheck source=/dev/null
  if [[ -f $state/env ]]; then . "./$state/env"; fi
  # What the lab itself put into the list: a file of the user's that is gone by now; and what knows services that this checkout
  # may not have any more, where nothing is started: that file is about health checks.
  if [[ -n ${COMPOSE_FILE-} && ! -e compose.override.yaml ]]; then COMPOSE_FILE=${COMPOSE_FILE/:compose.override.yaml/}; fi
  if [[ -n ${COMPOSE_FILE-} && ( -n ${to_end-} || ${1-} == build ) ]]; then COMPOSE_FILE=${COMPOSE_FILE%":$state/start-interval.yaml"}; fi
  set +a
  docker compose "$@"
)
