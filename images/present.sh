#!/usr/bin/env bash
# Makes the upstream images that .env pins present in the local engine.
#
#   present.sh          every image the lab needs here
#   present.sh NAME…    only these: debian jre jre21 maven golang prometheus toxiproxy cadvisor
#                       grafana nix nixpkgs
#
# An image is there, else pulled, else built from package registries (images/NAME/) under a name of the lab's own:
# concurrency-lab/debian:trixie-slim for debian:trixie-slim. One that is pinned by digest too (name:tag@sha256:…) is pulled by it.
# Grafana and Nix cannot be built, and the wrk2 of nixpkgs not without the network: without them
# the lab goes on and says what is missing. The JRE 21 only where JDK asks for it. One line per image; logs are in .lab/logs/. Runs on bash 3.2 (macOS) too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. host/common.sh

ALL="debian jre jre21 maven golang prometheus toxiproxy cadvisor grafana nix nixpkgs"
LOGS=.lab/logs
# What takes long in the lab's own images: a stage of a Dockerfile, and the upstream image that it waits for.
OWN="servers:build:maven loadgen:installed:debian loadgen:runtime:golang go:build:golang"
# A registry that has not said a word for this long is not reachable. Downloads themselves
# take as long as they take.
: "${PULL_DEADLINE_S:=20}"
# Registries that could not be reached, one "<epoch second> <host>" a line, so that neither
# the next image nor the next `make up` waits for them again. Asked anew after this long, or
# when an image is named on the command line.
UNREACHABLE=.lab/unreachable-registries
FORGET_AFTER_S=3600

# variable NAME: its pin in .env.
variable() { printf '%s_IMAGE' "$(tr '[:lower:]' '[:upper:]' <<<"$1")"; }
# pin NAME: the image .env names for it.
pin() {
  local variable image
  if [[ $1 == nixpkgs ]]; then nixpkgs_image; return; fi
  variable=$(variable "$1")
  image=$(setting "$variable")
  if [[ -z $image ]]; then
    fail "$variable is set neither in .env nor in the environment"
  fi
  printf '%s' "$image"
}

# digest NAME: that of its pin; nothing for a pin by tag alone.
digest() {
  local variable
  variable=$(tr '[:lower:]' '[:upper:]' <<<"$1")_DIGEST
  printf '%s' "${!variable-}"
}

# is_there NAME IMAGE: as its pin says, or built here.
is_there() {
  if [[ $1 != nixpkgs ]] && is_upstream "$(variable "$1")"; then return 0; fi
  [[ -d $(recipe "$1") ]] && has_image "$(local_name "$2")"
}

# recipe NAME: the folder that builds it.
recipe() { printf 'images/%s' "${1%21}"; }

# needs NAME: the images its Dockerfile builds on.
needs() {
  case $1 in
    jre | jre21 | maven | golang | prometheus) echo debian ;;
    toxiproxy) echo golang ;;
    cadvisor) echo debian golang ;;
    nixpkgs) echo nix ;;
  esac
}

# without NAME: what the lab does without an image. Empty: it cannot.
without() {
  case $1 in
    grafana) echo "no dashboards on screen; Prometheus and the reports show the same numbers" ;;
    nix | nixpkgs) echo "no wrk2 here, pacer is used instead" ;;
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

# One process at a time does what has a NAME; the others wait for its end. Folders, as macOS has no flock.
# Without the folder of all of them there is nothing more to wait for.
take() {
  while ! mkdir "$locks/$1" 2>/dev/null; do
    [[ -d $locks ]] || exit 1
    sleep 0.1
  done
}
give_back() { rmdir "$locks/$1"; }

# pull IMAGE DIGEST LOG: 0 when pulled; otherwise `why_not` says why. Of those who want something of a registry the
# first waits for its first word; downloads themselves go on side by side.
why_not=""
pull() {
  local image=$1 digest=$2 log=$3 host status=0
  host=$(registry_of "$image")
  take "registry-$host"
  if is_unreachable "$host"; then
    why_not="$host cannot be reached"
    status=1
  else
    start_pull "$image${digest:+@$digest}" "$log" "$host" || status=$?
  fi
  give_back "registry-$host"
  if ((status != 0)); then return "$status"; fi
  if ! wait "$pid"; then no_pull "$log" "$host"; return; fi
  # What is pulled by digest has no tag.
  if [[ -n $digest ]]; then docker tag "$image@$digest" "$image"; fi
}

# start_pull IMAGE LOG HOST: until the registry's first word; from then on the download, process `pid`, has
# all the time it needs.
start_pull() {
  local started=$SECONDS
  # Before the first look at it: a word in the log of an earlier pull is none of this one.
  : >"$2"
  docker pull "$1" >"$2" 2>&1 &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    if grep -qv '^Error' "$2"; then return 0; fi
    if ((SECONDS - started >= PULL_DEADLINE_S)); then
      kill "$pid" 2>/dev/null || true
      wait "$pid" 2>/dev/null || true
      printf 'no answer from %s within %s s\n' "$3" "$PULL_DEADLINE_S" >>"$2"
      remember_unreachable "$3"
      return 1
    fi
    sleep 0.1
  done
  if wait "$pid"; then return 0; fi
  no_pull "$2" "$3"
}

# no_pull LOG HOST: 1, and why.
no_pull() {
  local said
  said=$(tail -n 1 "$1" | cut -c 1-160)
  if grep -qiE 'verification failed|unexpected (commit )?digest' "$1"; then
    why_not="what $2 sent is not of the digest that .env pins"
  elif grep -qiE 'manifest unknown|not found|no matching manifest|denied|unauthorized|toomanyrequests|rate limit|429 too many' "$1"; then
    # This registry answers, only not with this image.
    why_not=$said
    if grep -qE '@sha256:.*(not found|manifest unknown)' "$1"; then why_not="$2 has none of the digest that .env pins"; fi
  elif grep -qv '^Error' "$1"; then
    remember_unreachable "$2"
    why_not="$2 broke off: $said"
  else
    remember_unreachable "$2"
  fi
  return 1
}

remember_unreachable() {
  why_not="$1 cannot be reached"
  printf '%s %s\n' "$(date +%s)" "$1" >>"$UNREACHABLE"
}

# build_ahead FOLDER:STAGE:NAME: a stage of the lab's own, while other images are still pulled or built. Then
# `docker compose build` finds it in the cache. What fails here fails there, and is told there.
build_ahead() {
  local folder stage name context
  IFS=: read -r folder stage name <<<"$1"
  ensure "$name" || return 0
  context=$folder
  if [[ $folder == loadgen ]]; then context=.; fi
  DOCKER_BUILDKIT=1 docker build --progress=plain --file "$folder/Dockerfile" --target "$stage" \
    --build-arg "DEBIAN_IMAGE=$(present_image DEBIAN_IMAGE)" --build-arg "GOLANG_IMAGE=$(present_image GOLANG_IMAGE)" \
    --build-arg "MAVEN_IMAGE=$(present_image MAVEN_IMAGE)" "$context" >"$LOGS/$folder-$stage.log" 2>&1 || true
}

# build NAME IMAGE LOG: IMAGE is its name here.
build() {
  local name=$1 image=$2 log=$3 java
  # 25 of 25-jre and of 3.9-eclipse-temurin-25.
  java=${image##*:} java=${java##*temurin-}
  if [[ $name == debian ]]; then
    images/debian/build.sh "$image" >>"$log" 2>&1
  else
    DOCKER_BUILDKIT=1 docker build --progress=plain --tag "$image" \
      --build-arg "DEBIAN_IMAGE=$(present_image DEBIAN_IMAGE)" --build-arg "GOLANG_IMAGE=$(present_image GOLANG_IMAGE)" \
      --build-arg "NIX_IMAGE=$(setting NIX_IMAGE)" --build-arg "NIXPKGS_RELEASE=$(setting NIXPKGS_RELEASE)" \
      --build-arg "NIXPKGS_SHA256=$(setting NIXPKGS_SHA256)" \
      --build-arg "JAVA=${java%%-*}" --build-arg "TAG=${image##*:}" "$(recipe "$name")" >>"$log" 2>&1
  fi
}

# What an image built here says it was built from: packages, or more where it is not what its tag says.
built_from() {
  local said
  said=$(docker image inspect --format '{{index .Config.Labels "lab.built-from"}}' "$1" 2>/dev/null || true)
  printf '%s' "${said:-packages}"
}

line() { printf '  %-44s %s\n' "$1" "$2"; }

# ensure NAME: makes one image present, those it builds on first. A waiter for one that failed fails silently.
ensure() {
  local failed=$locks/$1.failed
  take "$1"
  if [[ -e $failed ]] || ! make_present "$1" "$(pin "$1")"; then
    : >"$failed"
    give_back "$1"
    return 1
  fi
  give_back "$1"
}

make_present() {
  local name=$1 image=$2 log needed reason started=$SECONDS pid
  if is_there "$name" "$image"; then return 0; fi
  log=$LOGS/$name.log
  why_not=""
  if [[ $name != nixpkgs ]] && pull "$image" "$(digest "$name")" "$log"; then
    line "$image" "pulled, $((SECONDS - started)) s$([[ -z $(digest "$name") ]] || printf ', of the digest that is pinned')"
    return 0
  fi
  if [[ ! -d $(recipe "$name") ]]; then
    if [[ -z $(without "$name") ]]; then
      line "$image" "ABSENT: it cannot be pulled ($why_not)"
      return 1
    fi
    # It would be used all the same.
    if has_image "$image"; then
      line "$image" "is there, but not of the digest that .env pins, and cannot be pulled ($why_not): \`docker image rm $image\`, or pin another"
      return 1
    fi
    line "$image" "absent ($why_not): $(without "$name")"
    return 0
  fi
  reason=$why_not
  for needed in $(needs "$name"); do ensure "$needed" || return 1; done
  # Its base tells for itself that it is absent. GitHub is asked once an hour, as a registry is.
  if [[ $name == nixpkgs ]] && { ! has_image "$(pin nix)" || is_unreachable nixpkgs; }; then return 0; fi
  started=$SECONDS image=$(local_name "$image")
  if [[ -t 1 ]]; then line "$image" "is built from packages …"; fi
  if ! build "$name" "$image" "$log"; then
    if [[ -n $(without "$name") ]]; then
      remember_unreachable "$name"
      line "$image" "absent (it cannot be built, see $log): $(without "$name")"
      return 0
    fi
    line "$image" "ABSENT: it can be neither pulled ($reason) nor built; the end of $log:"
    tail -n 15 "$log" >&2
    return 1
  fi
  # That there is no registry is said once, by the images that cannot be built.
  if [[ $reason == *"cannot be reached" ]]; then reason=""; fi
  line "$image" "built from $(built_from "$image"), $((SECONDS - started)) s${reason:+; not pulled: $reason}"
}

# What the lab needs on this machine.
needed_names() {
  local name wrk2
  wrk2=$(setting WRK2_IMAGE)
  for name in $ALL; do
    case $name in
      grafana) if [[ ",$(setting COMPOSE_PROFILES)," == *,grafana,* ]]; then echo grafana; fi ;;
      jre21) if [[ $(setting JDK) == 21 ]]; then echo jre21; fi ;;
      # Nix is only there for it. It is marked broken on arm64.
      nixpkgs) if [[ -z $wrk2 && $(uname -m) =~ ^(x86_64|amd64)$ ]]; then echo nixpkgs; fi ;;
      nix) ;;
      *) echo "$name" ;;
    esac
  done
  # Not a stage of loadgen/Dockerfile: an image of the user's that holds wrk2.
  case $wrk2 in '' | wrk2-none) ;; *) echo wrk2 ;; esac
}

main() {
  local name image names all=0 there=0 pids=() pid status=0
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
    all=$((all + 1))
    if is_there "$name" "$image"; then there=$((there + 1)); fi
  done
  if ((there == all)); then
    printf 'images: all %s there\n' "$all"
    return
  fi
  printf 'images: %s of %s there\n' "$there" "$all"
  # Side by side: one downloads or unpacks while another compiles.
  locks=$(mktemp -d)
  # Whatever ends this shell ends them, too: each is a process group, with its pull or build.
  trap 'for pid in $(jobs -p); do kill -- "-$pid" 2>/dev/null || true; done; rm -rf "$locks"' EXIT
  set -m
  for name in $names; do
    ensure "$name" </dev/null &
    pids+=($!)
  done
  if (($# == 0)) && ! has_image "concurrency-lab/loadgen:$LAB_TAG"; then
    for name in $OWN; do
      build_ahead "$name" </dev/null &
      pids+=($!)
    done
  fi
  set +m
  for pid in "${pids[@]}"; do wait "$pid" || status=1; done
  return "$status"
}

main "$@"
