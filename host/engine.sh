#!/usr/bin/env bash
# Makes a Docker engine answer that the lab can use, and says nothing when one does.
#
#   engine.sh        does it
#   engine.sh look   only says whether it would start or install one; exit 1 with the reason where neither can be
#
# On a root Debian machine without one it installs engine, Compose and buildx from Debian's
# packages and starts dockerd, and says so in one line; INSTALL_ENGINE=no forbids that.
# Anywhere else one line says what is missing. Never starts a second dockerd.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. host/common.sh

LOG=.lab/logs/engine.log
: "${DOCKERD_LOG:=/var/log/dockerd.log}"
: "${START_DEADLINE_S:=60}"
: "${OS_RELEASE:=/etc/os-release}"

# refuse_podman: its command `docker` looks like one.
refuse_podman() {
  if docker --version 2>/dev/null | grep -qi podman; then
    fail "\`docker\` is Podman here, which the lab does not know: it needs a Docker engine, 20.10 or later"
  fi
}

answers() { docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

check_versions() {
  local engine client compose
  read -r engine client <<<"$(docker version --format '{{.Server.Version}} {{.Client.Version}}')"
  if ! at_least "$engine" 20 10; then
    refuse_podman
    fail "this Docker engine is $engine; the lab needs 20.10 or later"
  fi
  compose=$(docker compose version --short 2>/dev/null) ||
    fail "Docker Compose v2 is missing: install the plugin (docker-compose-plugin, or Debian's docker-compose 2)"
  at_least "$compose" 2 5 || fail "this Docker Compose is $compose; the lab needs 2.5 or later"
  if at_least "$client" 23 0 && ! docker buildx version >/dev/null 2>&1; then
    fail "the buildx plugin of Docker is missing: install docker-buildx-plugin, or Debian's docker-buildx"
  fi
}

# why_no_answer: fails with one line where starting or installing an engine is no way out.
why_no_answer() {
  local said
  if ! command -v docker >/dev/null; then return; fi
  refuse_podman
  if [[ -n ${DOCKER_HOST-} ]]; then fail "no Docker engine answers at DOCKER_HOST=$DOCKER_HOST"; fi
  said=$(docker version 2>&1 || true)
  if [[ $said == *"permission denied"* ]]; then
    fail "$(id -un) may not talk to the Docker engine: run as root, or join the group docker"
  fi
}

may_install() {
  if [[ ${INSTALL_ENGINE:-yes} == no ]]; then
    fail "no Docker engine answers, and INSTALL_ENGINE=no forbids to $1 one"
  fi
  [[ $(uname -s) == Linux ]] ||
    fail "no Docker engine answers: start Docker Desktop (or another engine, 20.10 or later)"
  [[ $(id -u) == 0 ]] ||
    fail "no Docker engine answers, and only root can $1 one: do that, or run this as root"
}

# The mirror apt already takes Debian from; no other is ever asked.
mirror() {
  apt-get indextargets --format "\$(REPO_URI)" \
    'Created-By: Packages' 'Origin: Debian' 'Label: Debian' "Codename: $1" 2>/dev/null | sed -n 1p
}

# debian_release: sets $from to what apt needs to be told to take the engine from trixie.
debian_release() {
  local id codename
  # shellcheck disable=SC1090
  id=$(. "$OS_RELEASE" 2>/dev/null && printf '%s' "${ID-}") || true
  # shellcheck disable=SC1090
  codename=$(. "$OS_RELEASE" 2>/dev/null && printf '%s' "${VERSION_CODENAME-}") || true
  case $id/$codename in
    debian/trixie) from="" ;;
    debian/bookworm) from=/trixie ;;
    *) fail "no Docker engine here, and this is neither Debian 12 nor 13: install Docker 20.10 or later with Compose v2" ;;
  esac
}

install_engine() {
  apt-get update >>"$LOG" 2>&1 || fail "apt-get update failed; the end of $LOG: $(tail -n 2 "$LOG" | tr '\n' ' ')"
  if [[ -n $from ]]; then
    # Bookworm has no Compose v2. Trixie's packages of the engine run on it; pinned at 100,
    # trixie changes nothing else on this machine.
    local uri sources=/etc/apt/sources.list.d/lab-trixie.sources
    uri=$(mirror bookworm)
    [[ -n $uri ]] || fail "apt on this machine names no mirror of bookworm to take Docker from"
    if [[ ! -e $sources ]]; then
      mkdir -p /etc/apt/preferences.d "${sources%/*}"
      printf 'Package: *\nPin: release n=trixie\nPin-Priority: 100\n' >/etc/apt/preferences.d/lab-trixie
      printf 'Types: deb\nURIs: %s\nSuites: trixie\nComponents: main\nSigned-By: %s\n' \
        "$uri" /usr/share/keyrings/debian-archive-keyring.gpg >"$sources"
      apt-get update >>"$LOG" 2>&1 || fail "apt-get update failed; the end of $LOG: $(tail -n 2 "$LOG" | tr '\n' ' ')"
    fi
  fi
  {
    # `name/trixie`, not `-t trixie`: that would upgrade libc too.
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
      ca-certificates iptables containerd runc \
      "docker.io$from" "docker-cli$from" "docker-compose$from" "docker-buildx$from"
  } >>"$LOG" 2>&1 || fail "installing Docker from Debian's packages failed; the end of $LOG: $(tail -n 3 "$LOG" | tr '\n' ' ')"
}

# The engine's own process, whoever started it.
daemon() { pidof dockerd 2>/dev/null; }

start_engine() {
  local pid="" waited
  if [[ -n $(daemon) ]]; then
    : # It is on its way up, or the packages' own scripts started it.
  elif [[ -d /run/systemd/system ]]; then
    systemctl start docker >>"$LOG" 2>&1 || fail "systemctl start docker failed: see journalctl -u docker"
  else
    setsid nohup dockerd >>"$DOCKERD_LOG" 2>&1 </dev/null &
    pid=$!
  fi
  for ((waited = 0; waited < START_DEADLINE_S * 5; waited++)); do
    if answers; then return; fi
    if [[ -n $pid ]] && ! kill -0 "$pid" 2>/dev/null && [[ -z $(daemon) ]]; then
      fail "dockerd stopped at once; the end of $DOCKERD_LOG: $(tail -n 2 "$DOCKERD_LOG" | cut -c 1-300 | tr '\n' ' ')"
    fi
    sleep 0.2
  done
  fail "dockerd runs but does not answer after $START_DEADLINE_S s; see $DOCKERD_LOG"
}

main() {
  case ${INSTALL_ENGINE:-yes} in
    yes | no) ;;
    *) fail "INSTALL_ENGINE='$INSTALL_ENGINE' is neither yes nor no" ;;
  esac
  if ! answers; then
    why_no_answer
    local began=$SECONDS todo=install from=""
    if command -v dockerd >/dev/null && command -v docker >/dev/null; then
      if [[ -n $(daemon) ]]; then todo="wait for"; else todo=start; fi
    fi
    if [[ $todo != wait* ]]; then may_install "$todo"; fi
    if [[ $todo == install ]]; then debian_release; fi
    if [[ ${1-} == look ]]; then
      printf "no Docker engine answers: \`make up\` will %s one\n" "$todo"
      return
    fi
    mkdir -p "${LOG%/*}"
    if [[ $todo == install ]]; then install_engine; fi
    start_engine
    if [[ $todo == start ]]; then
      printf 'lab: started the Docker engine that was installed but not running (%s s)\n' "$((SECONDS - began))"
    elif [[ $todo == install ]]; then
      printf "lab: no Docker engine here: installed %s from Debian's packages and started it (%s s; INSTALL_ENGINE=no prevents this)\n" \
        "$(docker version --format '{{.Server.Version}}')" "$((SECONDS - began))"
    fi
  fi
  check_versions
}

main "$@"
