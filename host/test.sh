#!/usr/bin/env bash
# Tests of the scripts in host/, of images/present.sh and of the Makefile, with programs that only
# pretend: a directory of fakes in front of PATH records every call. Nothing is installed, pulled, built or started.
# shellcheck disable=SC2016  # quoted code: fakes, and checks that `check` evaluates
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

root=$(mktemp -d)
trap 'rm -rf "$root"; kill $(jobs -p) 2>/dev/null || true' EXIT
passed=0 failed=0

# A copy of what is tested, in a place of its own, and the fakes.
fresh() {
  lab=$root/lab
  rm -rf "$lab"
  mkdir -p "$lab/fake" "$lab/there"
  cp -R images host "$lab/"
  cat >"$lab/.env" <<'ENV'
DEBIAN_IMAGE=debian:trixie-slim
JRE_IMAGE=eclipse-temurin:25-jre
MAVEN_IMAGE=maven:3.9-eclipse-temurin-25
GOLANG_IMAGE=golang:1.27.4-trixie
PROMETHEUS_IMAGE=prom/prometheus:v2.53.3
TOXIPROXY_IMAGE=ghcr.io/shopify/toxiproxy:2.12.0
CADVISOR_IMAGE=ghcr.io/google/cadvisor:0.55.1
OHA_IMAGE=ghcr.io/hatoo/oha:1.12.0
GRAFANA_IMAGE=grafana/grafana:13.2.0
NIX_IMAGE=nixos/nix:2.28.7
WRK2_IMAGE=
COMPOSE_PROFILES=grafana
ENV
  calls=$lab/calls
  : >"$calls"
  # FAKE_PULL: ok, refused (no registry), missing (registry without the image) or silent.
  # FAKE_BUILD: ok, broken, blocked until there is a file `go`, or meet: that of jre and that of prometheus wait for each other. An image is there when there/<name> is.
  fake docker <<'FAKE'
lab=$(cd "$(dirname "$0")/.." && pwd)
file() { printf '%s/there/%s' "$lab" "$(tr '/:' '__' <<<"$1")"; }
printf 'docker %s\n' "$*" >>"$lab/calls"
case "$1 ${2-}" in
  "image inspect")
    if [[ $3 == --format ]]; then [[ $5 != prom/* ]] || echo "a package of another version"; exit; fi
    shift 2; for image in "$@"; do [[ -e $(file "$image") ]] || exit 1; done ;;
  "pull "*)
    case $FAKE_PULL in
      ok) echo "Pulling from somewhere"; touch "$(file "$2")" ;;
      refused) echo "Error response from daemon: dial tcp: no such host" >&2; exit 1 ;;
      missing) echo "Error response from daemon: manifest unknown" >&2; exit 1 ;;
      silent) exec sleep 60 ;;
    esac ;;
  "build "*)
    while [[ $1 != --tag ]]; do shift; done
    if [[ $FAKE_BUILD == meet && $2 == *[jp]r[eo]* ]]; then
      mkdir -p "$lab/met" && touch "$(sed 's|/there/|/met/|' <<<"$(file "$2")")"
      for _ in {1..200}; do [[ $(ls "$lab/met" | wc -l) == 2 ]] && break; sleep 0.1; done
      [[ $(ls "$lab/met" | wc -l) == 2 ]] || { echo "nobody came"; exit 1; }
    fi
    if [[ $FAKE_BUILD == blocked ]]; then for _ in {1..900}; do [[ ! -e $lab/go ]] || break; sleep 0.1; done; fi
    [[ $FAKE_BUILD != broken ]] || { echo "the last thing the build said"; exit 1; }
    touch "$(file "$2")" ;;
  "import "*) touch "$(file "${*: -1}")" ;;
  "version "*)
    [[ -e $lab/engine ]] || { echo "Cannot connect to the Docker daemon" >&2; exit 1; }
    if [[ $* == *Client* ]]; then echo "$(<"$lab/engine") 26.1.5"; else cat "$lab/engine"; fi ;;
  "compose version") echo "${FAKE_COMPOSE:-2.26.1-4}" ;;
esac
FAKE
  export FAKE_PULL=refused FAKE_BUILD=ok
  unset WRK2_IMAGE COMPOSE_PROFILES INSTALL_ENGINE DOCKER_HOST FAKE_COMPOSE COMPOSE_PROJECT_NAME LAB_VERB NOFILE
  state=$lab/.lab/concurrency-lab
}

fake() { { printf '#!/usr/bin/env bash\n'; cat; } >"$lab/fake/$1" && chmod +x "$lab/fake/$1"; }

there() {
  local image
  for image in "$@"; do touch "$lab/there/$(tr '/:' '__' <<<"$image")"; done
}

everything() {
  there debian:trixie-slim eclipse-temurin:25-jre maven:3.9-eclipse-temurin-25 golang:1.27.4-trixie \
    prom/prometheus:v2.53.3 ghcr.io/shopify/toxiproxy:2.12.0 ghcr.io/google/cadvisor:0.55.1 \
    ghcr.io/hatoo/oha:1.12.0 grafana/grafana:13.2.0 nixos/nix:2.28.7
}

# A root Debian machine whose mmdebstrap makes nothing.
debian_host() {
  fake id <<<'[[ $1 == -u ]] && echo 0 || echo root'
  fake apt-get <<'FAKE'
printf 'apt-get %s\n' "$*" >>"$(dirname "$0")/../calls"
case $* in
  *"Label: Debian-Security"*) echo http://mirror.test/security/ ;;
  *"Label: Debian"*) echo http://mirror.test/debian/ ;;
esac
FAKE
  fake mmdebstrap <<<'printf "mmdebstrap %s\n" "$*" >>"$(dirname "$0")/../calls"'
  fake uname <<<'[[ $1 == -m ]] && echo x86_64 || echo Linux'
  fake pidof <<<'exit 1'
}

# run COMMAND…: its output in $out, its status in $status. No sbin: a real dockerd is not seen.
run() { status=0; out=$(PATH="$lab/fake:/usr/bin:/bin" "$@" 2>&1) || status=$?; }

check() {
  if eval "$2"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAILED: %s\n  status %s, output:\n%s\n  calls:\n%s\n' "$1" "$status" "$out" "$(tail -n 20 "$calls")"
  fi
}

count() { grep -c -- "$1" "$calls" || true; }
built() { sed -n 's/^docker build .*--tag \([^ ]*\).*/\1/p' "$calls" | paste -sd' ' -; }
# before A B: the image A was built before the image B.
before() { [[ " $(built) " == *" $1 "*"$2 "* ]]; }

# --- present.sh -----------------------------------------------------------------------
fresh; everything; debian_host
run "$lab/images/present.sh"
check "everything there: one question to the engine, one line" \
  '[[ $status == 0 && $(wc -l <"$calls") == 1 && $out == "images: all 10 there" ]]'

fresh; debian_host; export FAKE_PULL=ok
run "$lab/images/present.sh"
check "what can be pulled is pulled, not built" \
  '[[ $status == 0 && $(count "^docker pull") == 10 && -z $(built) && $(grep -c " pulled, " <<<"$out") == 10 ]]'

fresh; debian_host
run "$lab/images/present.sh"
check "no registry: each registry is asked once" \
  '[[ $(count "^docker pull") == 2 && $(count "^docker pull ghcr.io") == 1 ]]'
check "no registry: everything that can be is built, bases first" \
  '[[ $status == 0 && $(count "^docker import") == 1 && $(built | wc -w) == 7 && $(grep -c " built from packages, " <<<"$out") == 7 ]] \
    && before golang:1.27.4-trixie ghcr.io/shopify/toxiproxy:2.12.0 && before golang:1.27.4-trixie ghcr.io/google/cadvisor:0.55.1 \
    && [[ $(grep -nE "^docker (import|build)" "$calls" | sed -n 1p) == *import* ]]'
check "no registry: an image that is not what its tag says tells what it is" \
  '[[ $(grep -c " built from packages, " <<<"$out") == 7 && $(grep "built from a" <<<"$out") == *"prom/prometheus:v2.53.3 "*" built from a package of another version, "* ]]'
check "no registry: the base comes from the mirrors this machine uses" \
  '[[ $(count "mmdebstrap .* trixie .*deb http://mirror.test/debian/ trixie main deb http://mirror.test/debian/ trixie-updates main deb http://mirror.test/security/ trixie-security main") == 1 ]]'
check "no registry: one line each says what is missing and what is used instead" \
  '[[ $(grep -c "grafana/grafana:13.2.0 .*absent (docker.io cannot be reached): no dashboards" <<<"$out") == 1 && $(grep -c "nixos/nix:2.28.7 .*oha is used instead" <<<"$out") == 1 ]]'
check "no build asks a registry for its base" '[[ $(count "docker build.*--pull") == 0 ]]'
: >"$calls"
run "$lab/images/present.sh"
check "the next run waits for no registry and builds nothing" \
  '[[ $status == 0 && $(count "^docker pull") == 0 && -z $(built) && $out == "images: 8 of 10 there"* ]]'
: >"$calls"
run "$lab/images/present.sh" grafana
check "naming an image asks its registry again" '[[ $status == 0 && $(count "^docker pull grafana") == 1 ]]'
printf '%s docker.io\n%s ghcr.io\n' "$(($(date +%s) - 4000))" "$(($(date +%s) - 4000))" >"$lab/.lab/unreachable-registries"
: >"$calls"
run "$lab/images/present.sh"
check "a registry is asked again after an hour" '[[ $(count "^docker pull") == 1 ]]'

fresh; debian_host; export FAKE_PULL=silent PULL_DEADLINE_S=1
run "$lab/images/present.sh" debian
check "a registry that says nothing is given up at the deadline" \
  '[[ $status == 0 && $out == *"debian:trixie-slim "*"built from packages"* && $(count "^docker import") == 1 ]]'
unset PULL_DEADLINE_S

fresh; debian_host; export FAKE_PULL=missing
run "$lab/images/present.sh"
check "a registry that lacks one image is asked for the next" '[[ $status == 0 && $(count "^docker pull") == 10 ]]'

fresh; debian_host
run "$lab/images/present.sh" cadvisor
check "an image by name: what it builds on comes first" \
  '[[ $status == 0 && $(count "^docker import") == 1 && $(built) == "golang:1.27.4-trixie ghcr.io/google/cadvisor:0.55.1" ]]'

fresh; debian_host; there debian:trixie-slim; export FAKE_BUILD=broken
run "$lab/images/present.sh" jre
check "a broken build fails and shows the end of its log" \
  '[[ $status == 1 && $out == *"neither pulled (docker.io cannot be reached) nor built"*"the last thing the build said"* ]]'

fresh; debian_host; there debian:trixie-slim; export FAKE_BUILD=meet
run "$lab/images/present.sh" jre prometheus
check "images are built side by side" '[[ $status == 0 && $(built | wc -w) == 2 ]]'

# blocking: present.sh, process $main, builds Go's image until there is a file `go`, and Toxiproxy's waits for that.
blocking() {
  fresh; debian_host; there debian:trixie-slim; mkdir "$lab/tmp"
  FAKE_BUILD=blocked TMPDIR=$lab/tmp PATH="$lab/fake:/usr/bin:/bin" "$lab/images/present.sh" golang toxiproxy >"$lab/said" 2>&1 &
  main=$!
  # Toxiproxy's own lock, which it takes before it waits for the one of Go's.
  while kill -0 "$main" 2>/dev/null && ! [[ -n $(built) && -e $(echo "$lab"/tmp/*/toxiproxy) ]]; do sleep 0.05; done
  status=0
}
# living: the processes of that lab.
living() { { find /proc -mindepth 2 -maxdepth 2 -name cwd -lname "$lab" 2>/dev/null || true; } | cut -d / -f 3; }
# all_end: whether all end within 20 seconds. Those that do not are ended.
all_end() {
  local until=$((SECONDS + 20))
  while ((SECONDS < until)); do [[ -n $(living) ]] || return 0; sleep 0.1; done
  # shellcheck disable=SC2046 # numbers
  kill -KILL $(living)
  return 1
}
blocking
# shellcheck disable=SC2034 # used by checks, as text
before_it=$(living | wc -l)
kill -TERM "$main"; wait "$main" || status=$?; out=$(<"$lab/said")
check "ended by a signal it leaves no process behind, and no folder" \
  'all_end && [[ $status == 143 && $before_it -ge 4 && -z $(ls "$lab/tmp") ]]'
blocking
kill -KILL "$main"; { wait "$main"; } 2>/dev/null || status=$?; out=$(<"$lab/said")
rm -r "$lab"/tmp/*; touch "$lab/go"
check "who waits for another ends when nobody is left to tell" 'all_end && [[ $status == 137 ]]'

fresh; debian_host; fake mmdebstrap <<<'exit 1'
run "$lab/images/present.sh"
check "a base that cannot be built is tried once, and told once" \
  '[[ $status == 1 && $(count "^apt-get indextargets.*Label: Debian$") == 2 && $(grep -c ABSENT <<<"$out") == 1 && -z $(built) ]]'

fresh; debian_host; fake id <<<'[[ $1 == -u ]] && echo 1000 || echo user'
run "$lab/images/present.sh" debian
check "not root: one clear line" '[[ $status == 1 && $out == *"debian:trixie-slim can only be built by root"* ]]'

fresh; everything; debian_host; rm "$lab/there/nixos_nix_2.28.7" "$lab/there/grafana_grafana_13.2.0"
there my/wrk2:1
WRK2_IMAGE=my/wrk2:1 COMPOSE_PROFILES=none run "$lab/images/present.sh"
check "neither Nix nor Grafana is asked for where the settings do without them" \
  '[[ $status == 0 && $out == "images: all 9 there" && $(count nixos) == 0 && $(count grafana) == 0 ]]'
WRK2_IMAGE=my/wrk2:2 run "$lab/images/present.sh"
check "a wrk2 image of the user's that cannot be had is an error" '[[ $status == 1 && $out == *"my/wrk2:2 "*ABSENT* ]]'

fresh; everything; debian_host; rm "$lab/there/nixos_nix_2.28.7"; fake uname <<<'[[ $1 == -m ]] && echo aarch64 || echo Linux'
run "$lab/images/present.sh"
check "arm64: Nix is not asked for, its wrk2 is for amd64" '[[ $status == 0 && $out == "images: all 9 there" ]]'

fresh; run "$lab/images/present.sh" grafanaa
check "an unknown name is refused with the known ones" "[[ \$status == 2 && \$out == *\"'grafanaa' is not one of: debian jre\"* ]]"

# --- engine.sh ------------------------------------------------------------------------
fresh; debian_host; echo 26.1.5 >"$lab/engine"
run "$lab/host/engine.sh"
check "an engine that answers: silence" '[[ $status == 0 && -z $out ]]'
echo 29.0.1 >"$lab/engine"; FAKE_COMPOSE=v5.0.0 run "$lab/host/engine.sh"
check "newer engine and Compose: silence" '[[ $status == 0 && -z $out ]]'
echo 20.10.24 >"$lab/engine"; run "$lab/host/engine.sh"
check "the oldest engine: silence" '[[ $status == 0 && -z $out ]]'
echo 19.03.15 >"$lab/engine"; run "$lab/host/engine.sh"
check "an engine too old: one line" '[[ $status == 1 && $out == "lab: this Docker engine is 19.03.15; the lab needs 20.10 or later" ]]'
echo 26.1.5 >"$lab/engine"; FAKE_COMPOSE=1.29.2 run "$lab/host/engine.sh"
check "Compose v1: one line" '[[ $status == 1 && $out == "lab: this Docker Compose is 1.29.2;"* ]]'

fresh; debian_host
INSTALL_ENGINE=no run "$lab/host/engine.sh"
check "INSTALL_ENGINE=no: one line, nothing installed" \
  '[[ $status == 1 && $out == "lab: no Docker engine answers, and INSTALL_ENGINE=no forbids to install one" && $(count apt-get) == 0 ]]'
INSTALL_ENGINE=perhaps run "$lab/host/engine.sh"
check "another value of INSTALL_ENGINE is refused" '[[ $status == 1 && $out == *"neither yes nor no" ]]'
DOCKER_HOST=tcp://far:2375 run "$lab/host/engine.sh"
check "an engine elsewhere that does not answer: nothing is installed here" \
  '[[ $status == 1 && $out == "lab: no Docker engine answers at DOCKER_HOST=tcp://far:2375" && $(count apt-get) == 0 ]]'

fresh; debian_host; fake dockerd <<<'exit 1'
fake id <<<'[[ $1 == -u ]] && echo 1000 || echo user'
run "$lab/host/engine.sh"
check "not root: one line" '[[ $status == 1 && $out == "lab: no Docker engine answers, and only root can start one"* ]]'
fake uname <<<'[[ $1 == -m ]] && echo arm64 || echo Darwin'
run "$lab/host/engine.sh"
check "macOS: one line" '[[ $status == 1 && $out == "lab: no Docker engine answers: start Docker Desktop"* ]]'

fresh; debian_host
fake dockerd <<<'echo started >>"$(dirname "$0")/../calls"; echo 26.1.5 >"$(dirname "$0")/../engine"; exec sleep 20'
DOCKERD_LOG=$lab/dockerd.log run "$lab/host/engine.sh"
check "an engine installed but not running is started, once, and said so" \
  '[[ $status == 0 && $(count started) == 1 && $(count apt-get) == 0 && $out == "lab: started the Docker engine that was installed"* ]]'

fresh; debian_host; fake dockerd <<<'echo "cannot mount the world" >&2; exit 1'
DOCKERD_LOG=$lab/dockerd.log run "$lab/host/engine.sh"
check "an engine that stops at once: its own words" '[[ $status == 1 && $out == *"cannot mount the world"* ]]'

fresh; debian_host; fake pidof <<<'echo 123'
fake dockerd <<<'echo started >>"$(dirname "$0")/../calls"'
START_DEADLINE_S=1 run "$lab/host/engine.sh"
check "a dockerd that runs but does not answer: never a second one" \
  '[[ $status == 1 && $(count started) == 0 && $out == *"does not answer after 1 s"* ]]'

# --- changes.sh -----------------------------------------------------------------------
# changing: a lab that is up, and changes.sh beside a driver; ask LINE…: a request, its answer in $out.
changing() {
  fresh
  mkdir -p "$state" "$lab/ask"
  printf 'NOFILE=20000\n' >"$state/env"
  # As the driver's image writes it (loadgen/tests/system/test_host_changes.py has the real patterns).
  cat >"$state/allowed-changes" <<'ALLOWED'
SERVER fixed-pool|netty|generator
SERVER_CPUS [0-9]{1,3}(\.[0-9]{1,3})?
SERVER_MEMORY [1-9][0-9]{0,5}[kmg]
SERVER_JVM_FLAGS (-X(ms|mx)[0-9]{1,5}m|-XX:[+-]Use[A-Za-z0-9]{1,40})( (-X(ms|mx)[0-9]{1,5}m|-XX:[+-]Use[A-Za-z0-9]{1,40}))*
SERVER_BACKLOG [1-9][0-9]{0,4}
NOFILE [1-9][0-9]{1,6}
LOOPS [0-9]{1,3}
GENERATOR_CPUS [0-9]{1,3}(\.[0-9]{1,3})?
ALLOWED
  printf 'SERVER_CPUS=0\n' >>"$lab/.env"
  fake docker <<'FAKE'
lab=$(cd "$(dirname "$0")/.." && pwd)
case "$1 ${2-}" in
  "info "*) echo 4; exit ;;
  "compose ps") echo "id-of-$4"; exit ;;
esac
printf 'docker %s, cpus=%s nofile=%s flags=%s\n' "$*" "${SERVER_CPUS-}" "${NOFILE-}" "${SERVER_JVM_FLAGS-}" >>"$lab/calls"
if [[ -e $lab/broken ]]; then echo; echo 'container "x" is\unhealthy' >&2; exit 1; fi
FAKE
  sleep 60 &
  parent=$!
  PATH="$lab/fake:/usr/bin:/bin" "$lab/host/changes.sh" "$lab/ask" the-driver "$parent" 2>"$lab/said" &
  changes=$!
  asked=0 status=0
  # A child that is ended before it became its program runs this script's own EXIT trap.
  until [[ -e $state/logs/changes.log ]]; do sleep 0.01; done
}
ask() {
  local i
  asked=$((asked + 1))
  printf '%s\n' "$@" >"$lab/ask/part" && mv "$lab/ask/part" "$lab/ask/$asked.request"
  for ((i = 0; i < 1200; i++)); do
    if [[ -e $lab/ask/$asked.answer ]]; then break; fi
    sleep 0.05
  done
  out=$(cat "$lab/ask/$asked.answer")
  rm -f "$lab/ask/$asked.answer"
}
at_rest() { kill "$1" && wait "$changes" || true; kill "$parent" 2>/dev/null || true; out=$(<"$lab/said"); }

changing
ask SERVER=netty SERVER_CPUS=0.5
check "changes: a CPU limit alone keeps the container" \
  '[[ $out == ok && $(<"$calls") == "docker update --cpus 0.5 id-of-netty,"* ]]'
: >"$calls"
ask SERVER=netty
check "changes: no limit is a limit to all CPUs" '[[ $out == ok && $(<"$calls") == *"--cpus 4 id-of-netty,"* ]]'
: >"$calls"
ask SERVER=netty "SERVER_JVM_FLAGS=-Xms64m -Xmx64m -XX:+UseG1GC" NOFILE=300 SERVER_CPUS=0.5
check "changes: other settings take a new container, of this server only" \
  '[[ $out == ok && $(<"$calls") == "docker compose up "*"--force-recreate --wait netty, cpus=0.5 nofile=300 flags=-Xms64m -Xmx64m -XX:+UseG1GC" ]]'
: >"$calls"
ask SERVER=netty "SERVER_JVM_FLAGS=-Xms64m -Xmx64m -XX:+UseG1GC" NOFILE=300
check "changes: the CPU limit of such a container is lifted live" '[[ $out == ok && $(<"$calls") == *"--cpus 4 id-of-netty,"* ]]'
: >"$calls"
ask SERVER=generator GENERATOR_CPUS=0.05
check "changes: the driver's own limit" '[[ $out == ok && $(<"$calls") == "docker update --cpus 0.05 the-driver,"* ]]'
: >"$calls"
touch "$lab/x"
refused() {
  ask "$@"
  check "changes: refused: $*" '[[ $out == "failed: "* && ! -s $calls ]]'
}
refused SERVER=netty 'NOFILE=300;x'
refused SERVER=netty PATH=1
refused SERVER=netty 'S.*=1'
refused SERVER=grafana
refused SERVER=netty SERVER=fixed-pool
refused NOFILE=300 SERVER=netty
refused rubbish
refused ''
refused SERVER=netty SERVER_JVM_FLAGS=-XX:OnError=sh
refused SERVER=netty GENERATOR_CPUS=1
refused SERVER=generator NOFILE=300
refused SERVER=netty 'SERVER_MEMORY=$(id)'
refused SERVER=netty NOFILE=300 x
refused SERVER=netty NOFILE=300 x=1
ln -s "$lab/x" "$lab/ask/900.request"
sleep 0.5
check "changes: a link is not a request" '[[ ! -e $lab/ask/900.answer && ! -s $calls ]]'
rm "$lab/ask/900.request"
touch "$lab/broken"
ask SERVER=fixed-pool LOOPS=1
check "changes: what the engine says, as one line" '[[ $out == '"'failed: container \"x\" is\unhealthy'"' ]]'
rm "$lab/broken"
: >"$calls"
at_rest "$changes"
check "changes: what a dead driver left is put back" \
  '[[ $(count "^docker compose up") == 2 && $(grep -c "was left changed; its defaults are back" <<<"$out") == 2 ]]'

changing
ask SERVER=netty SERVER_BACKLOG=1
ask SERVER=netty
: >"$calls"
at_rest "$parent"
check "changes: it ends with the driver's script, and has nothing to put back" '[[ ! -s $calls && -z $out ]] && ! kill -0 "$changes" 2>/dev/null'

changing
ask SERVER=netty SERVER_CPUS=0.05
disown "$changes" "$parent"
kill -KILL "$changes" "$parent"
while kill -0 "$changes" 2>/dev/null; do sleep 0.01; done
: >"$calls"
run "$lab/host/changes.sh" put-back
check "changes: what a killed host left is put back at the next start, once" \
  '[[ $(<"$calls") == *"--cpus 4 id-of-netty,"* && $out == *"netty was left changed; its defaults are back" && -z $(ls "$state/changed") ]]'
changing
ask SERVER=netty SERVER_CPUS=0.05
: >"$calls"
run "$lab/host/changes.sh" put-back
check "changes: nothing is put back under a measurement" '[[ ! -s $calls && -z $out ]]'
at_rest "$parent"

# --- lab.sh ready -----------------------------------------------------------------------
# readied NAME=VALUE…: what `lab.sh ready` makes of these settings. The driver's image is there, and
# answers FAKE_PLAN with the status FAKE_PLANNED (each a word a call, the last from then on). The engine
# has FAKE_NCPU CPUs, and can pin unless FAKE_CPUSET=false. With FAKE_CPUS (as `lscpu -p=CPU,CORE` tells them) it is a process of this machine.
readied() {
  fresh
  fake pidof <<<'[[ -n ${FAKE_CPUS-} ]] && echo 4194305'
  fake taskset <<<'echo "pid 4194305'"'"'s current affinity list: $FAKE_ALLOWED"'
  fake lscpu <<<'printf "# CPU,Core\n%s\n" "$FAKE_CPUS"'
  printf '#!/bin/sh\n' | tee "$lab/host/engine.sh" >"$lab/images/present.sh"
  mkdir -p "$lab/prometheus"
  cp -R prometheus/servers "$lab/prometheus/"
  printf 'LAB_RESULTS_DIR=./results\nGRAFANA_ADMIN_PASSWORD=\n' >>"$lab/.env"
  grep '^CPU_SETS=' .env >>"$lab/.env"
  fake docker <<'FAKE'
lab=$(cd "$(dirname "$0")/.." && pwd)
printf 'docker %s, password %s profiles=%s running=%s\n' "$*" "${GRAFANA_ADMIN_PASSWORD-}" "${LAB_PROFILES-}" "${LAB_RUNNING-}" >>"$lab/calls"
case "$1 ${2-}" in
  "ps "*) printf '%s\n' ${FAKE_RUNNING-} ;;
  "info "*)
    if [[ $* == *.CPUSet*NCPU* ]]; then echo "${FAKE_CPUSET-true} ${FAKE_NCPU-}"; elif [[ $* == *NCPU* ]]; then echo "${FAKE_NCPU-}"; fi ;;
  "version --format") echo "${FAKE_ENGINE-26.1.5+dfsg1}" ;;
  "compose version") echo "${FAKE_COMPOSE-2.26.1-4}" ;;
  "compose -f") printf 'netty\ndriver\nexecutors\ntoxiproxy\n' ;;
  "image inspect") [[ ${FAKE_IMAGES-driver} == *all* || ${FAKE_IMAGES-driver} == driver && $3 == concurrency-lab/loadgen:local ]] ;;
  "run --rm")
    statuses=(${FAKE_PLANNED-0}) asked=$(grep -c "^docker run" "$lab/calls")
    status=${statuses[asked - 1]:-${statuses[${#statuses[@]} - 1]}}
    case $status in
      0) ;;
      9) echo "ModuleNotFoundError: No module named 'new'" >&2; exit 1 ;;
      *) echo "lab: the words are wrong" >&2; exit "$status" ;;
    esac
    printf 'profiles %s\nSERVER netty\nNOFILE [0-9]+\n' "${FAKE_PROFILES-grafana}" ;;
  "compose exec") exit "${FAKE_EXEC:-0}" ;;
esac
FAKE
  run env "$@" "$lab/host/lab.sh" ready
}
readied
check "ready: without a profile only the core, whatever was up before; no Grafana without its image" \
  '[[ $status == 0 && $(<"$state/env") == *"COMPOSE_PROFILES='"''"'"* && $(count "^docker run") == 1 ]]'
check "ready: what may be changed is written down before a driver starts" \
  '[[ $(<"$state/allowed-changes") == $'"'SERVER netty\nNOFILE [0-9]+'"' ]]'
sed -i 's|"compose exec")|"compose up") echo "container is unhealthy"; exit 1 ;;\n  "compose logs") echo "downstream: DOWNSTREAM_DELAY_MS=\\"fast\\" is not a number" ;;\n  &|' "$lab/fake/docker"
run "$lab/host/lab.sh" step up "containers" up --wait
check "step: a setting that the downstream refuses is said, with what is allowed" \
  '[[ $status == 1 && $out == *unhealthy*$'"'\\ndownstream: DOWNSTREAM_DELAY_MS=\"fast\" is not a number\\n'"'*"failed: containers"* ]]'
readied FAKE_PROFILES=grafana,frameworks FAKE_RUNNING=$'loadgen\nhelidon' LAB_VERB=bench
check "ready: the driver says which profiles, from what is set and what runs" \
  '[[ $status == 0 && $(<"$state/env") == *"COMPOSE_PROFILES=frameworks"* && $(count "plan bench, .*profiles=grafana running=loadgen") == 1 ]]'
check "ready: the driver asked has no network and no socket" '[[ $(count "^docker run --rm .*--network none") == 1 && $(count docker.sock) == 0 ]]'
check "ready: health is rarely checked where the engine looks often at what starts" \
  '[[ $(<"$state/env") == *"HEALTH_INTERVAL=2m"*"COMPOSE_FILE=compose.yaml:.lab/concurrency-lab/start-interval.yaml"* && $(<"$state/start-interval.yaml") == services:*"  netty: {healthcheck: {start_interval: 2s}}"*toxiproxy* && $(<"$state/start-interval.yaml") != *driver* ]]'
for old in FAKE_ENGINE=24.0.9 FAKE_COMPOSE=2.23.3; do
  readied "$old"
  check "ready: with $old as often as make up needs it" \
    '[[ $(<"$state/env") == *"HEALTH_INTERVAL=5s"* && $(<"$state/env") != *start-interval* && ! -e $state/start-interval.yaml ]]'
done
readied HEALTH_INTERVAL=7s
check "ready: but as the user says, where the user says it" '[[ $(<"$state/env") == *"HEALTH_INTERVAL=7s"* ]]'
readied FAKE_PLANNED=2
check "ready: wrong words are one line, before anything is done" \
  '[[ $status == 2 && $out == "lab: the words are wrong" && ! -e $state/env && $(count "docker compose") == 0 ]]'
readied FAKE_PLANNED=1
check "ready: so is what is wrong otherwise" '[[ $status == 1 && $out == "lab: the words are wrong" && $(count "docker compose") == 0 ]]'
readied FAKE_PLANNED="9 0"
check "ready: an image too old to answer is built first" \
  '[[ $status == 0 && $(count "docker compose build loadgen") == 1 && $(count "^docker run") == 2 && -s $state/allowed-changes ]]'
readied FAKE_IMAGES=none FAKE_PROFILES=frameworks
check "ready: on the first run the driver's image is built, then asked" \
  '[[ $status == 0 && $(count "docker compose build loadgen") == 1 && $(count "^docker run") == 1 && $(<"$state/env") == *"COMPOSE_PROFILES=frameworks"* ]]'
readied FAKE_PLANNED="9 2"
check "ready: wrong words of a first run are refused before the servers are built" '[[ $status == 2 && $out == *"lab: the words are wrong" ]]'
readied NOFILE='300;x'
check "ready: NOFILE is a number" '[[ $status == 1 && $out == "lab: NOFILE=300;x is not a number of open files" && ! -e $state/env ]]'
for cpus in 1:1 2:1 3:2 4:2 64:32; do
  readied FAKE_NCPU="${cpus%:*}"
  check "ready: of ${cpus%:*} CPUs Toxiproxy runs on ${cpus#*:}" '[[ $(grep TOXIPROXY_GO "$state/env") == "TOXIPROXY_GOMAXPROCS=${cpus#*:}" ]]'
done
readied TOXIPROXY_CPUSET=0-1 FAKE_NCPU=64
check "ready: of a CPU set of its own Toxiproxy uses all" '[[ $(grep TOXIPROXY_GO "$state/env") == "TOXIPROXY_GOMAXPROCS='"''"'" ]]'
readied FAKE_NCPU=64 CPU_SETS=auto
check "ready: so it does of one that the lab chose" '[[ $(grep TOXIPROXY_GO "$state/env") == "TOXIPROXY_GOMAXPROCS='"''"'" && $(grep -c TOXIPROXY_CPUSET=0-15 "$state/env") == 1 ]]'
readied TOXIPROXY_GOMAXPROCS=7 TOXIPROXY_CPUSET=0-1
check "ready: what the user says of it wins" '[[ $(grep TOXIPROXY_GO "$state/env") == TOXIPROXY_GOMAXPROCS=7 ]]'
readied TOXIPROXY_GOMAXPROCS=many
check "ready: it is a number" '[[ $status == 1 && $out == *"TOXIPROXY_GOMAXPROCS=many is not a number of CPUs" ]]'
readied COMPOSE_PROJECT_NAME=other
check "ready: another lab of this checkout has its own state" \
  '[[ $status == 0 && -s $lab/.lab/other/env && -d $lab/.lab/other/own && ! -e $state/env && $(count "project=other") -ge 1 ]]'
readied COMPOSE_PROJECT_NAME=../other
check "ready: a project is a name" '[[ $status == 1 && $out == "lab: COMPOSE_PROJECT_NAME=../other: "* ]]'

# --- lab.sh facts -------------------------------------------------------------------------
readied
printf 'LOADGEN_CPUSET=7\nTOXIPROXY_CPUSET=2\nDOWNSTREAM_CPUSET=3\n' >>"$lab/.env"
printf 'TOXIPROXY_GOMAXPROCS=3\n' >>"$state/env"
fake docker <<'FAKE'
if [[ $1 == run ]]; then cat; elif [[ "$1 $2" == "compose config" ]]; then echo "some/image:1${COMPOSE_PROFILES//,/}"; elif [[ "$1 $2" == "image inspect" ]]; then echo "image $5"; fi
FAKE
LOADGEN_CPUSET=0-1 DOWNSTREAM_CPUSET='' run "$lab/host/lab.sh" facts
check "facts: the CPU sets around the servers, a word before .env, an empty one too" \
  '[[ $status == 0 && $(<"$state/host.json") == *$'"'cpuset LOADGEN 0-1\ncpuset TOXIPROXY 2\ncpuset DOWNSTREAM \ncpuset OBSERVATION \nimage some/image:1'"'* ]]'
printf 'COMPOSE_PROFILES=frameworks\n' >>"$state/env"
check "facts: on how many CPUs Toxiproxy runs" '[[ $(<"$state/host.json") == *$'"'\ntoxiproxy_gomaxprocs 3\n'"'* ]]'
COMPOSE_PROFILES=executors run "$lab/host/lab.sh" facts
check "facts: the images of the profiles that are up, and of the verb's own" '[[ $status == 0 && $(<"$state/host.json") == *"image some/image:1frameworksexecutors"* ]]'

# --- CPU sets -----------------------------------------------------------------------------
# sets: what Compose is told of them: servers, generator, all others.
# shellcheck disable=SC2034 # used by checks, as text
sets() (
  unset "${!SERVER_@}" "${!LOADGEN_@}"
  . "$state/env"
  [[ $DOWNSTREAM_CPUSET$OBSERVATION_CPUSET == "$TOXIPROXY_CPUSET$TOXIPROXY_CPUSET" ]] && echo "$SERVER_CPUSET $LOADGEN_CPUSET $TOXIPROXY_CPUSET"
)
unpinned() { [[ $status == 0 && $(<"$state/env") != *CPUSET* ]]; }
for machine in "8=4-7 2-3 0-1" "9=4-8 2-3 0-1" "12=4-11 2-3 0-1" "16=8-15 4-7 0-3" "20=8-19 4-7 0-3" "64=32-63 16-31 0-15"; do
  readied FAKE_NCPU="${machine%%=*}" CPU_SETS=auto
  check "CPU sets: of ${machine%%=*} CPUs the servers get half, the others an even number" '[[ $status == 0 && $(sets) == "${machine#*=}" ]]'
done
for count in 2 4 7 ""; do
  readied FAKE_NCPU="$count" CPU_SETS=auto
  check "CPU sets: none of '$count' CPUs" unpinned
done
cores=$(for cpu in 0 1 2 3 4 5 6 7; do echo "$cpu,$((cpu % 4))"; done)
readied FAKE_NCPU=8 CPU_SETS=auto FAKE_CPUS="$cores" FAKE_ALLOWED=0-7
check "CPU sets: no core is shared by two parts" '[[ $(sets) == "2-3,6-7 1,5 0,4" ]]'
cores=$(for cpu in {0..11}; do echo "$cpu,$((cpu % 6))"; done)
readied FAKE_NCPU=12 CPU_SETS=auto FAKE_CPUS="$cores" FAKE_ALLOWED=0-11
check "CPU sets: nor where a quarter is an odd number" '[[ $(sets) == "2-5,8-11 1,7 0,6" ]]'
cores=$(for cpu in {0..15}; do echo "$cpu,$cpu"; done)
readied FAKE_NCPU=9 CPU_SETS=auto FAKE_CPUS="$cores" FAKE_ALLOWED=1,4-10,15
check "CPU sets: only of CPUs that the engine may use" '[[ $(sets) == "7-10,15 5-6 1,4" ]]'
readied FAKE_NCPU=10 CPU_SETS=auto FAKE_CPUS="$cores" FAKE_ALLOWED=1,4-10,15
check "CPU sets: none where the engine tells another number" unpinned
readied FAKE_NCPU=8 CPU_SETS=auto FAKE_CPUS=none FAKE_ALLOWED=0-7
check "CPU sets: none where nobody tells the CPUs" unpinned
readied FAKE_NCPU=8 CPU_SETS=auto FAKE_CPUSET=false
check "CPU sets: none where the engine cannot pin" unpinned
readied FAKE_NCPU=64
check "CPU sets: none unless asked for" unpinned
for word in CPU_SETS=off SERVER_CPUSET=0-3 SERVER_CPUSET= OBSERVATION_CPUSET=0; do
  readied FAKE_NCPU=8 CPU_SETS=auto "$word"
  check "CPU sets: none but the user's own after $word" unpinned
done
readied FAKE_NCPU=8 CPU_SETS=on
check "CPU sets: auto or off" '[[ $status == 1 && $out == "lab: CPU_SETS=on: allowed are auto and off" && ! -e $state/env ]]'
readied FAKE_NCPU=8
printf 'TOXIPROXY_CPUSET=7\n' >>"$lab/.env"
CPU_SETS=auto FAKE_NCPU=8 run "$lab/host/lab.sh" ready
check "CPU sets: none but the user's own after one in .env" unpinned

readied FAKE_NCPU=8 CPU_SETS=auto
run "$lab/host/lab.sh" where
# shellcheck disable=SC2034 # used by checks, as text
said="CPU sets: servers 4-7, generator and agent 2-3, all others 0-1 (CPU_SETS=off undoes it)"
check "CPU sets: make up says them" '[[ $status == 0 && $(tail -n 1 <<<"$out") == "lab: $said" ]]'
FAKE_NCPU=8 run "$lab/host/lab.sh" doctor
check "CPU sets: so does the doctor" '[[ $out == *"ok    $said"* ]]'
fake docker <<'FAKE'
if [[ $1 == run ]]; then cat; fi
FAKE
run "$lab/host/lab.sh" facts
check "CPU sets: a run records them" \
  '[[ $status == 0 && $(<"$state/host.json") == *$'"'cpuset LOADGEN 2-3\ncpuset TOXIPROXY 0-1\ncpuset DOWNSTREAM 0-1\ncpuset OBSERVATION 0-1\ncpu_sets auto'"'* ]]'
for machine in FAKE_NCPU=2 FAKE_NCPU=7 "FAKE_NCPU=8 FAKE_CPUSET=false" "FAKE_NCPU=8 SERVER_CPUSET=0-3"; do
  # shellcheck disable=SC2086 # words
  readied $machine
  # shellcheck disable=SC2086 # words
  run env $machine bash -c "'$lab/host/lab.sh' where && '$lab/host/lab.sh' doctor"
  check "CPU sets: nothing is said of them with $machine" '[[ $out == *"lab: up."*"the lab is not up"* && $out != *"CPU sets"* ]]'
done
readied FAKE_NCPU=8
# shellcheck disable=SC2034 # used by checks, as text
said="CPU sets: none; CPU_SETS=auto keeps the parts of the lab to CPUs of their own (untried)"
FAKE_NCPU=8 run bash -c "'$lab/host/lab.sh' where && '$lab/host/lab.sh' doctor"
check "CPU sets: on 8 CPUs make up and the doctor say how to have some" \
  '[[ $(grep -c "CPU sets" <<<"$out") == 2 && $out == *"lab: $said"*"ok    $said"* ]]'

# --- compose.yaml ---------------------------------------------------------------------------
# shellcheck disable=SC2034 # used by checks, as text
starts=$(sed -n 's/^ *start_period: *//p' compose.yaml)
check "compose.yaml: a slow machine has 180 s until a health check counts, and no service less" '[[ $starts == 180s ]]'

# --- Grafana's password -------------------------------------------------------------------
# guarded WORD…: `lab.sh ready`, grafana-password.sh and `lab.sh where`, with Grafana's image there.
guarded() {
  readied FAKE_IMAGES=all "$@"
  run env "$@" bash -c "'$lab/host/grafana-password.sh' && '$lab/host/lab.sh' where"
}
guarded X=1
check "password: a random one, given to Grafana, and where it is is said" \
  '[[ $status == 0 && $out == *"with the password in .lab/concurrency-lab/grafana-password" && $(count "compose exec -T grafana sh") == 1 && $(<"$calls") == *"password $(<"$state/grafana-password")"* && $(stat -c %a "$state/env") == 600 ]]'
guarded GRAFANA_ADMIN_PASSWORD="it's mine"
check "password: the user's own, and none is made" \
  '[[ $status == 0 && $out == *"with the password in GRAFANA_ADMIN_PASSWORD" && $out != *mine* && $(<"$calls") == *"password it'"'"'s mine"* && ! -e $state/grafana-password ]]'
FAKE_EXEC=1 guarded X=1
check "password: a Grafana that does not take it is one warning, and the lab is up" \
  '[[ $status == 0 && $out == *"lab: warning: Grafana did not take the password"* && $out == *"lab: up."* ]]'
readied
run bash -c "'$lab/host/grafana-password.sh' && '$lab/host/lab.sh' where"
check "password: without Grafana nothing is asked or said of one" \
  '[[ $status == 0 && $out != *password* && $(count "compose exec") == 0 ]]'

# --- services of the user's own -------------------------------------------------------------
readied
# shellcheck disable=SC2034 # used by checks, as text
own=$state/own/own.json
check "own services: none listed, none read" '[[ $status == 0 && ! -e $own ]]'
printf '[{"targets": ["mine"]}]' >"$lab/prometheus/own.json"
run "$lab/host/lab.sh" ready
check "own services: listed in prometheus/own.json, read by Prometheus" \
  '[[ $status == 0 && $(<"$own") == *mine* ]]'
rm "$lab/prometheus/own.json"
run "$lab/host/lab.sh" ready
check "own services: no longer listed, no longer read" '[[ $status == 0 && ! -e $own ]]'

mkdir -p "$lab/servers/netty" && touch "$lab/servers/netty/MODEL.md" "$lab/servers/jmx-exporter.yaml"
fake docker <<'FAKE'
lab=$(cd "$(dirname "$0")/.." && pwd)
printf 'docker %s\n' "$*" >>"$lab/calls"
case "$1 ${2-}" in
  "image inspect") if [[ $* == *Id* ]]; then echo "$FAKE_ID"; fi ;;
  "create "*) echo made ;;
  "cp "*) [[ -z ${FAKE_CP_FAILS-} ]] || exit 1; printf 'a jar' >"$lab/jmx-exporter.jar"; tar -C "$lab" -c jmx-exporter.jar ;;
esac
FAKE
export FAKE_ID=sha256:one
run "$lab/host/lab.sh" jmx
check "own services: the exporter comes out of a server's image, which leaves no container" \
  '[[ $status == 0 && $(<"$state/jmx/jmx-exporter.jar") == "a jar" && -e $state/jmx/jmx-exporter.yaml && $(count "docker rm --force made") == 1 ]]'
run "$lab/host/lab.sh" jmx
check "own services: once for each image" '[[ $status == 0 && $(count "docker create") == 1 ]]'
FAKE_ID=sha256:two run "$lab/host/lab.sh" jmx
check "own services: again for another image" '[[ $status == 0 && $(count "docker create") == 2 ]]'
FAKE_ID=sha256:three FAKE_CP_FAILS=1 run "$lab/host/lab.sh" jmx
check "own services: without an exporter make up goes on, with one line, and leaves no container" \
  '[[ $status == 0 && $out == *"warning: no JMX exporter"* && $(wc -l <<<"$out") == 1 && $(count "docker rm --force made") == 3 && ! -e $state/jmx/jmx-exporter.jar.part && -s $state/jmx/jmx-exporter.jar ]]'
unset FAKE_ID

# --- lab.sh idle -----------------------------------------------------------------------
# locked LINES STATUS…: docker, with the containers that have the lock's volume (service and id each),
# and what the lock answers each time it is asked, the last from then on.
locked() {
  fake docker <<'FAKE'
lab=$(cd "$(dirname "$0")/.." && pwd)
printf 'docker %s\n' "$*" >>"$lab/calls"
case $1 in
  ps) if [[ $* == *"--filter volume=/lab/lock"* ]]; then printf '%s\n' "$FAKE_SEES"; fi ;;
  exec)
    answers=($FAKE_LOCK) asked=$(grep -c "^docker exec" "$lab/calls")
    exit "${answers[asked - 1]:-${answers[-1]}}" ;;
  inspect) echo "${FAKE_RUNNING:-true}" ;;
  run) if [[ $* == *--interactive* ]]; then cat >/dev/null; fi ;;
  wait) echo 7 ;;
esac
FAKE
  export FAKE_SEES=$1 FAKE_LOCK="${*:2}"
}
# idle LINES STATUS…: what it says then.
idle() {
  fresh
  locked "$@"
  run "$lab/host/lab.sh" idle
}
# shellcheck disable=SC2034 # used by checks, as text
under_way="lab: another measurement is under way; wait for its end"
idle "" 0
check "idle: neither lab nor driver, nothing measured, nothing asked" '[[ $status == 0 && -z $out && $(count exec) == 0 ]]'
idle "loadgen agent" 0
check "idle: nobody holds the lock" '[[ $status == 0 && -z $out && $(count "exec agent flock --shared .* /lab/lock true") == 1 ]]'
idle "loadgen agent" 1
check "idle: an agent that does not answer: nobody knows, so one line" '[[ $status == 1 && $out == "lab: the lab'"'"'s agent does not answer, "*"make down"* ]]'
FAKE_RUNNING=false idle "driver ended" 1
check "idle: a driver that ended meanwhile measures nothing" '[[ $status == 0 && -z $out ]]'
idle "loadgen agent" 75
check "idle: a measurement is under way: one line" '[[ $status == 1 && $out == "$under_way" ]]'
idle "driver busy" 75
check "idle: no lab, and yet a driver measures" '[[ $status == 1 && $out == "$under_way" && $(count "exec busy flock") == 1 ]]'
idle $'driver busy\nloadgen agent' 0
check "idle: the agent is asked before a driver" '[[ $status == 0 && $(count "exec agent") == 1 && $(count "exec busy") == 0 ]]'
idle $'driver ended\nloadgen agent\ndriver busy' 1 75
check "idle: a container that tells nothing is not the last word" '[[ $status == 1 && $out == "$under_way" && $(count exec) == 2 ]]'

idle "loadgen agent" 75
mkdir -p "$state" && printf 'NOFILE=300\n' >"$state/env"
printf '#!/bin/sh\n' | tee "$lab/host/engine.sh" >"$lab/images/present.sh"
printf 'LAB_RESULTS_DIR=./results\n' >>"$lab/.env"
run env NOFILE=9000 "$lab/host/lab.sh" ready
check "ready: what a measurement's containers are made from stays" \
  '[[ $status == 0 && $(<"$state/env") == NOFILE=300 && ! -e $state/allowed-changes ]]'

# --- make: what changes containers, and a measurement beside it ----------------------------
# making WORD…: make with these words, in a lab of fakes. making_ready: that lab.
making_ready() {
  fresh
  cp Makefile "$lab/"
  mkdir -p "$lab/prometheus" "$lab/servers"
  touch "$lab/servers/jmx-exporter.yaml"
  cp -R prometheus/servers "$lab/prometheus/"
  printf 'LAB_RESULTS_DIR=./results\n' >>"$lab/.env"
  printf '#!/bin/sh\n' | tee "$lab/host/engine.sh" "$lab/images/present.sh" >"$lab/host/grafana-password.sh"
}
making() { run env -u MAKEFLAGS -u MAKELEVEL make -C "$lab" "$@" </dev/null; }
# made VERB STATUS…: the verb itself, where a driver runs and the lock answers so.
made() {
  making_ready
  locked "driver other" "${@:2}"
  making "$1"
}
made bench 75
check "make bench: refused at once under a measurement" \
  '[[ $status == 2 && $out == *"$under_way"* && $(count "docker compose") == 0 && ! -e $state/env ]]'
made executors 75
check "make executors: refused at once" '[[ $status == 2 && $out == *"$under_way"* && $(count "docker compose build") == 0 ]]'
made executors 0 75
check "make executors: one that began during the build keeps its launcher" \
  '[[ $status == 2 && $out == *"$under_way"* && $(count "docker compose build") == 1 && $(count "docker compose up") == 0 && $(count "docker compose rm") == 0 ]]'
made executors 0 0 75
check "make executors: refused by the lock itself, it does not take the launcher away" \
  '[[ $status == 2 && $out != *"$under_way"* && $(count "docker compose run") == 1 && $(count "docker compose rm") == 0 ]]'
made executors 0
check "make executors: in the end its launcher is gone" '[[ $status == 2 && $(count "docker compose rm --stop --force executors") == 1 ]]'
made up 0 75
check "make up: a measurement that began during the build is left alone" \
  '[[ $status == 2 && $out == *"$under_way"* && $(count "docker compose build") == 1 && $(count "docker compose up") == 0 ]]'
unset FAKE_SEES FAKE_LOCK

# --- make: words ------------------------------------------------------------------------
# No word of the command line is run, or loses a part on its way to the driver.
making_ready
for word in 'NAME=$(shell touch pwned)' 'NAME=${shell touch pwned}' 'NAME=`touch pwned`' 'TARGET=http://a/$(shell touch pwned)' \
  "NAME='" 'NAME="' 'NAME=a\b' $'NAME=a\nb' 'SERVER_JVM_FLAGS=$$(touch pwned)'; do
  making bench CONC=5 "$word"
  check "make: refused: $word" \
    '[[ $status == 2 && $(grep -vc "^make" <<<"$out") == 1 && $out == *"*** ${word%%=*}: allowed is a word without"* && ! -s $calls && ! -e $lab/pwned ]]'
done
fake docker <<'FAKE'
lab=$(cd "$(dirname "$0")/.." && pwd)
if [[ "$1 ${2-}" == "run --rm" ]]; then printf '%s\n' "$LAB_WORDS" >"$lab/words"; exit 2; fi
FAKE
for word in 'ROUTE=/block?wait_ms=100&x=1' 'SUSPECT=worker\ pool' 'TARGET=http://a:1/b?a=1&b=2' 'SERVER_JVM_FLAGS=-Xms1g\ -Xmx1g' \
  'NAME=a(b),{c};<d>|e#f' 'SERVER='; do
  rm -f "$lab/words"
  # As make writes words down: a backslash before a blank is its own.
  making bench "${word//\\/}"
  check "make: handed on: $word" '[[ $(<"$lab/words") == "$word" ]]'
done

# --- lab.sh drive, lab.sh stored ----------------------------------------------------------
changing; at_rest "$parent"
printf 'LAB_RESULTS_DIR=./results\n' >>"$lab/.env"
printf 'NOFILE=20000\nLAB_UID=%s\nLAB_GID=%s\n' "$(id -u)" "$(id -g)" >"$state/env"
# The driver asks once, and tells what the host said.
fake docker <<'FAKE'
lab=$(cd "$(dirname "$0")/.." && pwd)
printf 'docker %s\n' "$*" >>"$lab/calls"
case "$1 ${2-}" in
  "info "*) echo 4 ;;
  "compose ps") echo id-of-netty ;;
  "logs "*)
    for folder in "$lab"/results/.host-changes/*/; do
      printf 'SERVER=netty\nSERVER_CPUS=0.5\n' >"$folder/1.request"
      for ((i = 0; i < 1200; i++)); do if [[ -e $folder/1.answer ]]; then cat "$folder/1.answer"; break; fi; sleep 0.05; done
    done ;;
  "wait "*) echo 7 ;;
esac
FAKE
: >"$calls"
run "$lab/host/lab.sh" drive run </dev/null
check "drive: a run can change the host, and what its driver left is put back when it ends" \
  '[[ $status == 7 && $out == *ok*"netty was left changed"* && $(count "compose run .* -e LAB_HOST_CHANGES=[A-Za-z0-9]* --detach driver run") == 1 && -z $(ls -A "$lab/results/.host-changes") ]]'
: >"$calls"
run "$lab/host/lab.sh" drive toxics </dev/null
check "drive: other verbs cannot" '[[ $status == 7 && $(count LAB_HOST_CHANGES) == 0 && -z $(ls -A "$lab/results/.host-changes") ]]'
: >"$calls"
run "$lab/host/lab.sh" stored report </dev/null
check "stored: results and nothing else, no lab" \
  '[[ $status == 0 && $(count "^docker run --rm .*--network none .*--user $(id -u):$(id -g) -v $lab/results:/lab/results concurrency-lab/loadgen:local report$") == 1 && $(wc -l <"$calls") == 1 ]]'

printf '%s passed, %s failed\n' "$passed" "$failed"
((failed == 0))
