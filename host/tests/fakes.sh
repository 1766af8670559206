# shellcheck shell=bash
# What the tests of the host's scripts share, sourced from the root of the checkout: a lab in a place of
# its own, and programs that only pretend. A directory of fakes in front of PATH records every call.
# shellcheck disable=SC2016  # quoted code: fakes, and checks that `check` evaluates
set -euo pipefail

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
JRE21_IMAGE=eclipse-temurin:21-jre
MAVEN_IMAGE=maven:3.9-eclipse-temurin-25
GOLANG_IMAGE=golang:1.27.4-trixie
PROMETHEUS_IMAGE=prom/prometheus:v2.53.3
TOXIPROXY_IMAGE=ghcr.io/shopify/toxiproxy:2.12.0
CADVISOR_IMAGE=ghcr.io/google/cadvisor:0.55.1
GRAFANA_IMAGE=grafana/grafana:13.2.0
NIX_IMAGE=nixos/nix:2.28.7
NIXPKGS_RELEASE=26.05
WRK2_IMAGE=
COMPOSE_PROFILES=grafana
ENV
  calls=$lab/calls
  : >"$calls"
  # FAKE_PULL: ok, refused (no registry), missing (registry without the image), other (than its digest),
  # limited (429), dies (half-way) or silent.
  # FAKE_BUILD: ok, broken, blocked until there is a file `go`, or meet: that of jre and that of prometheus wait for each other. An image is there when there/<name> is.
  fake docker <<'FAKE'
lab=$(cd "$(dirname "$0")/.." && pwd)
file() { printf '%s/there/%s' "$lab" "$(tr '/:' '__' <<<"$1")"; }
printf 'docker %s\n' "$*" >>"$lab/calls"
case "$1 ${2-}" in
  "image inspect")
    if [[ $3 == --format && $4 == *RepoDigests* ]]; then cat "$(file "$5")" 2>/dev/null; exit; fi
    if [[ $3 == --format ]]; then [[ $5 != */prometheus:* ]] || echo "a package of another version"; exit; fi
    shift 2; for image in "$@"; do [[ -e $(file "$image") ]] || exit 1; done ;;
  "pull "*)
    case $FAKE_PULL in
      ok) echo "Pulling from somewhere"; touch "$(file "$2")" ;;
      refused) echo "Error response from daemon: dial tcp: no such host" >&2; exit 1 ;;
      missing) echo "Error response from daemon: manifest for $2 not found: manifest unknown: manifest unknown" >&2; exit 1 ;;
      other) echo "Pulling from somewhere"; echo "manifest verification failed for digest ${2#*@}" >&2; exit 1 ;;
      limited) echo "Error response from daemon: toomanyrequests: too many, wait" >&2; exit 1 ;;
      dies) echo "Pulling from somewhere"; sleep 0.3; echo "unexpected EOF" >&2; exit 1 ;;
      silent) exec sleep 60 ;;
    esac ;;
  "build "*)
    [[ $* == *--tag* ]] || exit 0
    while [[ $1 != --tag ]]; do shift; done
    if [[ $FAKE_BUILD == meet && $2 == *[jp]r[eo]* ]]; then
      mkdir -p "$lab/met" && touch "$(sed 's|/there/|/met/|' <<<"$(file "$2")")"
      for _ in {1..1200}; do [[ $(ls "$lab/met" | wc -l) == 2 ]] && break; sleep 0.1; done
      [[ $(ls "$lab/met" | wc -l) == 2 ]] || { echo "nobody came"; exit 1; }
    fi
    if [[ $FAKE_BUILD == blocked ]]; then for _ in {1..6000}; do [[ ! -e $lab/go ]] || break; sleep 0.1; done; fi
    [[ $FAKE_BUILD != broken ]] || { echo "the last thing the build said"; exit 1; }
    printf '[] %s\n' "$2" >"$(file "$2")" ;;
  "tag "*) [[ -e $(file "$2") ]] && printf '[%s] \n' "${2%:*@*}@${2#*@}" >"$(file "$3")" ;;
  "import "*) touch "$(file "${*: -1}")" ;;
  "version "*)
    [[ -e $lab/engine ]] || { echo "Cannot connect to the Docker daemon" >&2; exit 1; }
    if [[ $* == *Client* ]]; then echo "$(<"$lab/engine") 26.1.5"; else cat "$lab/engine"; fi ;;
  "compose version") echo "${FAKE_COMPOSE:-2.26.1-4}" ;;
esac
FAKE
  export FAKE_PULL=refused FAKE_BUILD=ok
  unset WRK2_IMAGE TOXIPROXY_DIGEST GRAFANA_DIGEST COMPOSE_PROFILES INSTALL_ENGINE DOCKER_HOST FAKE_COMPOSE COMPOSE_PROJECT_NAME LAB_VERB NOFILE
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
    grafana/grafana:13.2.0 concurrency-lab/wrk2:nixpkgs-26.05
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

# changing: a lab that is up, and changes.sh beside a driver; ask LINE…: a request, its answer in $out.
changing() {
  fresh
  mkdir -p "$state" "$lab/asks/requests" "$lab/asks/answers"
  printf 'NOFILE=20000\n' >"$state/env"
  # As the driver's image writes it (loadgen/tests/system/test_host_changes.py has the real patterns).
  cat >"$state/allowed-changes" <<'ALLOWED'
SERVER fixed-pool|netty|my-shop|generator
OWN_SERVER my-shop
ENV_POOL_SIZE2 [0-9]{1,9}
ENV_ANY .*
ENV_JAVA_OPTS -XX:\+UseG1GC -Xmx[0-9]{1,9}m
OWN_CPUS [0-9]{1,3}(\.[0-9]{1,3})?
OWN_MEMORY [1-9][0-9]{0,6}[mg]
SERVER_CPUS [0-9]{1,3}(\.[0-9]{1,3})?
SERVER_MEMORY [1-9][0-9]{0,5}[kmg]
SERVER_JVM_FLAGS (-X(ms|mx)[0-9]{1,5}m|-XX:[+-]Use[A-Za-z0-9]{1,40})( (-X(ms|mx)[0-9]{1,5}m|-XX:[+-]Use[A-Za-z0-9]{1,40}))*
SERVER_BACKLOG [1-9][0-9]{0,4}
SERVER_IMAGE [a-z0-9][a-z0-9._/-]{0,200}(:[A-Za-z0-9_.-]+)?
NOFILE [1-9][0-9]{1,6}
LOOPS [0-9]{1,3}
GENERATOR_CPUS [0-9]{1,3}(\.[0-9]{1,3})?
FRESH yes
ALLOWED
  printf 'SERVER_CPUS=0\n' >>"$lab/.env"
  fake docker <<'FAKE'
lab=$(cd "$(dirname "$0")/.." && pwd)
if [[ -e $lab/no-engine ]]; then echo "no engine" >&2; exit 1; fi
case "$1 ${2-}" in
  "info "*) echo 4; exit ;;
  "version "*) exit ;;
  "compose ps")
    if [[ -e $lab/no-compose ]]; then exit 1; fi
    if [[ $3 == --all && ! -e $lab/no-container ]]; then echo "id-of-$5"; fi; exit ;;
  "inspect "*)
    if [[ $3 == *.State.Running* ]]; then if [[ -e $lab/driver-runs ]]; then echo true; fi; exit; fi
    if [[ $3 == *.Image* ]]; then cat "$lab/its-image" 2>/dev/null || echo sha256:one; exit; fi
    cat "$lab/limits" 2>/dev/null; exit ;;
esac
printf 'docker %s, cpus=%s nofile=%s flags=%s\n' "$*" "${SERVER_CPUS-}" "${NOFILE-}" "${SERVER_JVM_FLAGS-}" >>"$lab/calls"
if [[ -n ${COMPOSE_FILE-} ]]; then (IFS=: && cd "$lab" && cat ${COMPOSE_FILE#compose.yaml:} >"$lab/image"); fi
if [[ -e $lab/broken ]]; then echo; echo 'container "x" is\unhealthy' >&2; exit 1; fi
FAKE
  fake sleep <<<'exec /bin/sleep 0.01'
  /bin/sleep 3600 &
  parent=$!
  PATH="$lab/fake:/usr/bin:/bin" "$lab/host/changes.sh" "$lab/asks" the-driver "$parent" 2>"$lab/said" &
  changes=$!
  asked=0 status=0
  # A child that is ended before it became its program runs this script's own EXIT trap.
  until [[ -e $state/logs/changes.log ]]; do sleep 0.01; done
}
ask() {
  local i
  asked=$((asked + 1))
  ln -s "$(printf '%s\n' "$@")" "$lab/asks/requests/$asked"
  for ((i = 0; i < 1200; i++)); do
    if [[ -e $lab/asks/answers/$asked ]]; then break; fi
    sleep 0.05
  done
  out=$(cat "$lab/asks/answers/$asked")
}
at_rest() { kill "$1" && wait "$changes" || true; kill "$parent" 2>/dev/null || true; out=$(<"$lab/said"); }

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
printf 'docker %s, password %s profiles=%s running=%s own=%s\n' "$*" "${GRAFANA_ADMIN_PASSWORD-}" "${LAB_PROFILES-}" "${LAB_RUNNING-}" "${LAB_OWN-}" >>"$lab/calls"
case "$1 ${2-}" in
  "ps --all") printf '\n%s\n' "${FAKE_ELSEWHERE-}" ;;
  "ps "*) printf '%s\n' ${FAKE_RUNNING-} ;;
  "info "*)
    if [[ $* == *.CPUSet*NCPU* ]]; then echo "${FAKE_CPUSET-true} ${FAKE_NCPU-}"; elif [[ $* == *NCPU* ]]; then echo "${FAKE_NCPU-}"; elif [[ $* == *MemTotal* ]]; then echo "${FAKE_MEMORY-}"; fi ;;
  "version --format") echo "${FAKE_ENGINE-26.1.5+dfsg1}" ;;
  "compose version") echo "${FAKE_COMPOSE-2.26.1-4}" ;;
  "compose -f") printf 'netty\ndriver\njmh\ntoxiproxy\n' ;;
  "compose --profile") printf 'netty\nmy-service\ndriver\njmh\ntoxiproxy\nmy-database\n' ;;
  "image inspect") [[ ${FAKE_IMAGES-driver} == *all* || ${FAKE_IMAGES-driver} == driver && $3 == concurrency-lab/loadgen:* || ${FAKE_IMAGES-} == built && $3 == concurrency-lab/* ]] ;;
  "run --rm")
    statuses=(${FAKE_PLANNED-0}) asked=$(grep -c "^docker run" "$lab/calls")
    status=${statuses[asked - 1]:-${statuses[${#statuses[@]} - 1]}}
    case $status in
      0) ;;
      9) echo "ModuleNotFoundError: No module named 'new'" >&2; exit 1 ;;
      *) echo "lab: the words are wrong" >&2; exit "$status" ;;
    esac
    printf 'profiles %s\nenv LAB_TOKEN_SUMS=of-%s\nSERVER netty\nNOFILE [0-9]+\n' "${FAKE_PROFILES-grafana}" "$LAB_SECRET" ;;
  "compose exec") exit "${FAKE_EXEC:-0}" ;;
esac
FAKE
  run env "$@" "$lab/host/lab.sh" ready
}

# finish: the last line of a test.
finish() {
  printf '%s passed, %s failed\n' "$passed" "$failed"
  ((failed == 0))
}
