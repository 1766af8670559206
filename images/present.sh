#!/usr/bin/env bash
# Makes the upstream images that .env pins present in the local engine.
#
#   present.sh          every image the lab needs here
#   present.sh NAME…    only these: debian jre maven golang prometheus toxiproxy cadvisor oha
#                       grafana nix
#
# An image is there, else pulled, else built from package registries under the same name and
# tag (images/NAME/). Grafana and Nix cannot be built: without them the lab goes on and says
# what is missing. One line per image; logs are in .lab/logs/. Runs on bash 3.2 (macOS) too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. host/common.sh

ALL="debian jre maven golang prometheus toxiproxy cadvisor oha grafana nix"
LOGS=.lab/logs
# A registry that has not said a word for this long is not reachable. Downloads themselves
# take as long as they take.
: "${PULL_DEADLINE_S:=20}"
# Registries that could not be reached, one "<epoch second> <host>" a line, so that neither
# the next image nor the next `make up` waits for them again. Asked anew after this long, or
# when an image is named on the command line.
UNREACHABLE=.lab/unreachable-registries
FORGET_AFTER_S=3600

# pin NAME: the image .env names for it.
pin() {
  local variable image
  variable=$(tr '[:lower:]' '[:upper:]' <<<"$1")_IMAGE
  image=$(setting "$variable")
  if [[ -z $image ]]; then
    fail "$variable is set neither in .env nor in the environment"
  fi
  printf '%s' "$image"
}

# needs NAME: the images its Dockerfile builds on.
needs() {
  case $1 in
    jre | maven | golang | prometheus | oha) echo debian ;;
    toxiproxy) echo golang ;;
    cadvisor) echo debian golang ;;
  esac
}

# without NAME: what the lab does without an image that can only be pulled. Empty: it cannot.
without() {
  case $1 in
    grafana) echo "no dashboards on screen; Prometheus and the reports show the same numbers" ;;
    nix) echo "no wrk2 here, oha is used instead" ;;
  esac
}

registry_of() {
  local first=${1%%/*}
  if [[ $1 == */* && ($first == *.* || $first == *:* || $first == localhost) ]]; then
    printf '%s' "$first"
  else
    printf 'docker.io'
  fi
}

is_unreachable() {
  [[ -f $UNREACHABLE ]] &&
    awk -v host="$1" -v since="$(($(date +%s) - FORGET_AFTER_S))" \
      '$2 == host && $1 > since {found = 1} END {exit !found}' "$UNREACHABLE"
}

# pull IMAGE LOG: 0 when pulled; otherwise `why_not` says why.
why_not=""
pull() {
  local image=$1 log=$2 host pid started=$SECONDS
  host=$(registry_of "$image")
  if is_unreachable "$host"; then
    why_not="$host cannot be reached"
    return 1
  fi
  docker pull "$image" >"$log" 2>&1 &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    # The first word of the registry; from then on the download has all the time it needs.
    if [[ -s $log ]]; then break; fi
    if ((SECONDS - started >= PULL_DEADLINE_S)); then
      kill "$pid" 2>/dev/null || true
      wait "$pid" 2>/dev/null || true
      printf 'no answer from %s within %s s\n' "$host" "$PULL_DEADLINE_S" >>"$log"
      remember_unreachable "$host"
      return 1
    fi
    sleep 0.1
  done
  if wait "$pid"; then return 0; fi
  if grep -qiE 'manifest unknown|not found|no matching manifest|denied|unauthorized|toomanyrequests|rate limit' "$log"; then
    # This registry answers, only not with this image.
    why_not=$(tail -n 1 "$log" | cut -c 1-160)
  else
    remember_unreachable "$host"
  fi
  return 1
}

remember_unreachable() {
  why_not="$1 cannot be reached"
  printf '%s %s\n' "$(date +%s)" "$1" >>"$UNREACHABLE"
}

build() {
  local name=$1 image=$2 log=$3
  if [[ $name == debian ]]; then
    images/debian/build.sh "$image" >>"$log" 2>&1
  else
    DOCKER_BUILDKIT=1 docker build --progress=plain --tag "$image" \
      --build-arg "DEBIAN_IMAGE=$(pin debian)" --build-arg "GOLANG_IMAGE=$(pin golang)" \
      --build-arg "TAG=${image##*:}" "images/$name" >>"$log" 2>&1
  fi
}

# What an image built here says it was built from: packages, or more where it is not what its tag says.
built_from() {
  local said
  said=$(docker image inspect --format '{{index .Config.Labels "lab.built-from"}}' "$1" 2>/dev/null || true)
  printf '%s' "${said:-packages}"
}

line() { printf '  %-42s %s\n' "$1" "$2"; }

# ensure NAME IMAGE: makes one image present, those it builds on first.
ensure() {
  local name=$1 image=$2 log needed started=$SECONDS
  if has_image "$image"; then return 0; fi
  log=$LOGS/$name.log
  if pull "$image" "$log"; then
    line "$image" "pulled, $((SECONDS - started)) s"
    return 0
  fi
  if [[ ! -d images/$name ]]; then
    if [[ -z $(without "$name") ]]; then
      line "$image" "ABSENT: it cannot be pulled ($why_not)"
      exit 1
    fi
    line "$image" "absent ($why_not): $(without "$name")"
    return 0
  fi
  if [[ $image == *@* ]]; then
    line "$image" "ABSENT: it cannot be pulled ($why_not), and what is pinned by digest cannot be built"
    exit 1
  fi
  local reason=$why_not
  for needed in $(needs "$name"); do ensure "$needed" "$(pin "$needed")"; done
  started=$SECONDS
  if [[ -t 1 ]]; then printf '  %-42s building …\r' "$image"; fi
  if ! build "$name" "$image" "$log"; then
    line "$image" "ABSENT: it can be neither pulled ($reason) nor built; the end of $log:"
    tail -n 15 "$log" >&2
    exit 1
  fi
  line "$image" "built from $(built_from "$image"), $((SECONDS - started)) s"
}

# What the lab needs on this machine.
needed_names() {
  local name wrk2
  wrk2=$(setting WRK2_IMAGE)
  for name in $ALL; do
    case $name in
      grafana) if [[ ",$(setting COMPOSE_PROFILES)," == *,grafana,* ]]; then echo grafana; fi ;;
      # Its only use is the wrk2 of nixpkgs, which is marked broken on arm64.
      nix) if [[ -z $wrk2 && $(uname -m) =~ ^(x86_64|amd64)$ ]]; then echo nix; fi ;;
      *) echo "$name" ;;
    esac
  done
  # Not a stage of loadgen/Dockerfile: an image of the user's that holds wrk2.
  case $wrk2 in '' | wrk2-nixpkgs | wrk2-none) ;; *) echo wrk2 ;; esac
}

main() {
  local name image names images=() absent=0
  mkdir -p "$LOGS"
  if (($# > 0)); then
    for name in "$@"; do
      if [[ " $ALL " != *" $name "* ]]; then
        printf "lab: present.sh: '%s' is not one of: %s\n" "$name" "$ALL" >&2
        exit 2
      fi
    done
    names=$*
    rm -f "$UNREACHABLE"
  else
    names=$(needed_names)
  fi
  for name in $names; do
    image=$(pin "$name")
    images+=("$image")
  done
  if docker image inspect "${images[@]}" >/dev/null 2>&1; then
    printf 'images: all %s there\n' "${#images[@]}"
    return
  fi
  for image in "${images[@]}"; do
    if ! has_image "$image"; then absent=$((absent + 1)); fi
  done
  printf 'images: %s of %s there\n' "$((${#images[@]} - absent))" "${#images[@]}"
  for name in $names; do
    image=$(pin "$name")
    ensure "$name" "$image"
  done
}

main "$@"
