#!/usr/bin/env bash
# Tests of engine.sh, present.sh, host.sh, grafana.sh and hands.sh with programs that only pretend: a directory of fakes in
# front of PATH records every call. Nothing is installed, pulled, built or started.
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
  cp -R images "$lab/"
  cat >"$lab/.env" <<'ENV'
DEBIAN_IMAGE=debian:trixie-slim
JRE_IMAGE=eclipse-temurin:25-jre
MAVEN_IMAGE=maven:3.9-eclipse-temurin-25
GOLANG_IMAGE=golang:1.24-trixie
PROMETHEUS_IMAGE=prom/prometheus:v2.53.3
TOXIPROXY_IMAGE=ghcr.io/shopify/toxiproxy:2.12.0
CADVISOR_IMAGE=ghcr.io/google/cadvisor:0.55.1
OHA_IMAGE=ghcr.io/hatoo/oha:1.12.0
GRAFANA_IMAGE=grafana/grafana:12.3.1
NIX_IMAGE=nixos/nix:2.28.2
WRK2_IMAGE=
COMPOSE_PROFILES=grafana
ENV
  calls=$lab/calls
  : >"$calls"
  # FAKE_PULL: ok, refused (no registry), missing (registry without the image) or silent.
  # FAKE_BUILD: ok or broken. An image is there when there/<name> is.
  fake docker <<'FAKE'
lab=$(cd "$(dirname "$0")/.." && pwd)
file() { printf '%s/there/%s' "$lab" "$(tr '/:' '__' <<<"$1")"; }
printf 'docker %s\n' "$*" >>"$lab/calls"
case "$1 ${2-}" in
  "image inspect") shift 2; for image in "$@"; do [[ -e $(file "$image") ]] || exit 1; done ;;
  "pull "*)
    case $FAKE_PULL in
      ok) echo "Pulling from somewhere"; touch "$(file "$2")" ;;
      refused) echo "Error response from daemon: dial tcp: no such host" >&2; exit 1 ;;
      missing) echo "Error response from daemon: manifest unknown" >&2; exit 1 ;;
      silent) exec sleep 60 ;;
    esac ;;
  "build "*)
    while [[ $1 != --tag ]]; do shift; done
    [[ $FAKE_BUILD == ok ]] || { echo "the last thing the build said"; exit 1; }
    touch "$(file "$2")" ;;
  "import "*) touch "$(file "${*: -1}")" ;;
  "version "*)
    [[ -e $lab/engine ]] || { echo "Cannot connect to the Docker daemon" >&2; exit 1; }
    if [[ $* == *Client* ]]; then echo "$(<"$lab/engine") 26.1.5"; else cat "$lab/engine"; fi ;;
  "compose version") echo "${FAKE_COMPOSE:-2.26.1-4}" ;;
esac
FAKE
  export FAKE_PULL=refused FAKE_BUILD=ok
  unset WRK2_IMAGE COMPOSE_PROFILES INSTALL_ENGINE DOCKER_HOST FAKE_COMPOSE PROFILE SERVER EXP RESUME
}

fake() { { printf '#!/usr/bin/env bash\n'; cat; } >"$lab/fake/$1" && chmod +x "$lab/fake/$1"; }

there() {
  local image
  for image in "$@"; do touch "$lab/there/$(tr '/:' '__' <<<"$image")"; done
}

everything() {
  there debian:trixie-slim eclipse-temurin:25-jre maven:3.9-eclipse-temurin-25 golang:1.24-trixie \
    prom/prometheus:v2.53.3 ghcr.io/shopify/toxiproxy:2.12.0 ghcr.io/google/cadvisor:0.55.1 \
    ghcr.io/hatoo/oha:1.12.0 grafana/grafana:12.3.1 nixos/nix:2.28.2
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
  '[[ $status == 0 && $(count "^docker import") == 1 && $(built) == "eclipse-temurin:25-jre maven:3.9-eclipse-temurin-25 golang:1.24-trixie prom/prometheus:v2.53.3 ghcr.io/shopify/toxiproxy:2.12.0 ghcr.io/google/cadvisor:0.55.1 ghcr.io/hatoo/oha:1.12.0" ]]'
check "no registry: the base comes from the mirrors this machine uses" \
  '[[ $(count "mmdebstrap .* trixie .*deb http://mirror.test/debian/ trixie main deb http://mirror.test/debian/ trixie-updates main deb http://mirror.test/security/ trixie-security main") == 1 ]]'
check "no registry: one line each says what is missing and what is used instead" \
  '[[ $(grep -c "grafana/grafana:12.3.1 .*absent (docker.io cannot be reached): no dashboards" <<<"$out") == 1 && $(grep -c "nixos/nix:2.28.2 .*oha is used instead" <<<"$out") == 1 ]]'
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
  '[[ $status == 0 && $(count "^docker import") == 1 && $(built) == "golang:1.24-trixie ghcr.io/google/cadvisor:0.55.1" ]]'

fresh; debian_host; there debian:trixie-slim; export FAKE_BUILD=broken
run "$lab/images/present.sh" jre
check "a broken build fails and shows the end of its log" \
  '[[ $status == 1 && $out == *"neither pulled (docker.io cannot be reached) nor built"*"the last thing the build said"* ]]'

fresh; debian_host; fake id <<<'[[ $1 == -u ]] && echo 1000 || echo user'
run "$lab/images/present.sh" debian
check "not root: one clear line" '[[ $status == 1 && $out == *"debian:trixie-slim can only be built by root"* ]]'

fresh; everything; debian_host; rm "$lab/there/nixos_nix_2.28.2" "$lab/there/grafana_grafana_12.3.1"
there my/wrk2:1
WRK2_IMAGE=my/wrk2:1 COMPOSE_PROFILES=none run "$lab/images/present.sh"
check "neither Nix nor Grafana is asked for where the settings do without them" \
  '[[ $status == 0 && $out == "images: all 9 there" && $(count nixos) == 0 && $(count grafana) == 0 ]]'
WRK2_IMAGE=my/wrk2:2 run "$lab/images/present.sh"
check "a wrk2 image of the user's that cannot be had is an error" '[[ $status == 1 && $out == *"my/wrk2:2 "*ABSENT* ]]'

fresh; everything; debian_host; rm "$lab/there/nixos_nix_2.28.2"; fake uname <<<'[[ $1 == -m ]] && echo aarch64 || echo Linux'
run "$lab/images/present.sh"
check "arm64: Nix is not asked for, its wrk2 is for amd64" '[[ $status == 0 && $out == "images: all 9 there" ]]'

fresh; run "$lab/images/present.sh" grafanaa
check "an unknown name is refused with the known ones" "[[ \$status == 2 && \$out == *\"'grafanaa' is not one of: debian jre\"* ]]"

# --- engine.sh ------------------------------------------------------------------------
fresh; debian_host; echo 26.1.5 >"$lab/engine"
run "$lab/images/engine.sh"
check "an engine that answers: silence" '[[ $status == 0 && -z $out ]]'
echo 29.0.1 >"$lab/engine"; FAKE_COMPOSE=v5.0.0 run "$lab/images/engine.sh"
check "newer engine and Compose: silence" '[[ $status == 0 && -z $out ]]'
echo 20.10.24 >"$lab/engine"; run "$lab/images/engine.sh"
check "the oldest engine: silence" '[[ $status == 0 && -z $out ]]'
echo 19.03.15 >"$lab/engine"; run "$lab/images/engine.sh"
check "an engine too old: one line" '[[ $status == 1 && $out == "lab: this Docker engine is 19.03.15; the lab needs 20.10 or later" ]]'
echo 26.1.5 >"$lab/engine"; FAKE_COMPOSE=1.29.2 run "$lab/images/engine.sh"
check "Compose v1: one line" '[[ $status == 1 && $out == "lab: this Docker Compose is 1.29.2;"* ]]'

fresh; debian_host
INSTALL_ENGINE=no run "$lab/images/engine.sh"
check "INSTALL_ENGINE=no: one line, nothing installed" \
  '[[ $status == 1 && $out == "lab: no Docker engine answers, and INSTALL_ENGINE=no forbids to install one" && $(count apt-get) == 0 ]]'
INSTALL_ENGINE=perhaps run "$lab/images/engine.sh"
check "another value of INSTALL_ENGINE is refused" '[[ $status == 1 && $out == *"neither yes nor no" ]]'
DOCKER_HOST=tcp://far:2375 run "$lab/images/engine.sh"
check "an engine elsewhere that does not answer: nothing is installed here" \
  '[[ $status == 1 && $out == "lab: no Docker engine answers at DOCKER_HOST=tcp://far:2375" && $(count apt-get) == 0 ]]'

fresh; debian_host; fake dockerd <<<'exit 1'
fake id <<<'[[ $1 == -u ]] && echo 1000 || echo user'
run "$lab/images/engine.sh"
check "not root: one line" '[[ $status == 1 && $out == "lab: no Docker engine answers, and only root can start one"* ]]'
fake uname <<<'[[ $1 == -m ]] && echo arm64 || echo Darwin'
run "$lab/images/engine.sh"
check "macOS: one line" '[[ $status == 1 && $out == "lab: no Docker engine answers: start Docker Desktop"* ]]'

fresh; debian_host
fake dockerd <<<'echo started >>"$(dirname "$0")/../calls"; echo 26.1.5 >"$(dirname "$0")/../engine"; exec sleep 20'
DOCKERD_LOG=$lab/dockerd.log run "$lab/images/engine.sh"
check "an engine installed but not running is started, once, and said so" \
  '[[ $status == 0 && $(count started) == 1 && $(count apt-get) == 0 && $out == "lab: started the Docker engine that was installed"* ]]'

fresh; debian_host; fake dockerd <<<'echo "cannot mount the world" >&2; exit 1'
DOCKERD_LOG=$lab/dockerd.log run "$lab/images/engine.sh"
check "an engine that stops at once: its own words" '[[ $status == 1 && $out == *"cannot mount the world"* ]]'

fresh; debian_host; fake pidof <<<'echo 123'
fake dockerd <<<'echo started >>"$(dirname "$0")/../calls"'
START_DEADLINE_S=1 run "$lab/images/engine.sh"
check "a dockerd that runs but does not answer: never a second one" \
  '[[ $status == 1 && $(count started) == 0 && $out == *"does not answer after 1 s"* ]]'

# --- hands.sh -------------------------------------------------------------------------
# handy: a lab that is up, for hands; ask TEXT: a request, its answer in $out.
handy() {
  fresh
  mkdir -p "$lab/.lab/servers" "$lab/ask"
  cp prometheus/servers/core.json "$lab/.lab/servers/"
  printf 'NOFILE=20000\n' >"$lab/.lab/env"
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
  PATH="$lab/fake:/usr/bin:/bin" "$lab/images/hands.sh" "$lab/ask" the-driver "$parent" 2>"$lab/said" &
  hands=$!
  asked=0 status=0
  # A child that is ended before it became its program runs this script's own EXIT trap.
  until [[ -e $lab/.lab/logs/hands.log ]]; do sleep 0.01; done
}
ask() {
  local i
  asked=$((asked + 1))
  printf '%s' "$1" >"$lab/ask/part" && mv "$lab/ask/part" "$lab/ask/$asked.request.json"
  for ((i = 0; i < 1200; i++)); do
    if [[ -e $lab/ask/$asked.answer.json ]]; then break; fi
    sleep 0.05
  done
  out=$(cat "$lab/ask/$asked.answer.json")
  rm -f "$lab/ask/$asked.answer.json"
}
at_rest() { kill "$1" && wait "$hands" || true; kill "$parent" 2>/dev/null || true; out=$(<"$lab/said"); }
# shellcheck disable=SC2034  # in what `check` evaluates
okay='{"ok":true}'

handy
ask '{"server":"netty","settings":{"SERVER_CPUS":"0.5"}}'
check "hands: a CPU limit alone keeps the container" \
  '[[ $out == "$okay" && $(<"$calls") == "docker update --cpus 0.5 id-of-netty,"* ]]'
: >"$calls"
ask '{"server":"netty","settings":{}}'
check "hands: no limit is a limit to all CPUs" '[[ $out == "$okay" && $(<"$calls") == *"--cpus 4 id-of-netty,"* ]]'
: >"$calls"
ask '{"server":"netty","settings":{"SERVER_JVM_FLAGS":"-Xms64m -Xmx64m -XX:+UseG1GC","NOFILE":"300","SERVER_CPUS":"0.5"}}'
check "hands: other settings take a new container, of this server only" \
  '[[ $out == "$okay" && $(<"$calls") == "docker compose up "*"--force-recreate --wait netty, cpus=0.5 nofile=300 flags=-Xms64m -Xmx64m -XX:+UseG1GC" ]]'
: >"$calls"
ask '{"server":"netty","settings":{"SERVER_JVM_FLAGS":"-Xms64m -Xmx64m -XX:+UseG1GC","NOFILE":"300"}}'
check "hands: the CPU limit of such a container is lifted live" '[[ $out == "$okay" && $(<"$calls") == *"--cpus 4 id-of-netty,"* ]]'
: >"$calls"
ask '{"server":"generator","settings":{"GENERATOR_CPUS":"0.05"}}'
check "hands: the driver's own limit" '[[ $out == "$okay" && $(<"$calls") == "docker update --cpus 0.05 the-driver,"* ]]'
: >"$calls"
touch "$lab/x"
for wrong in '{"server":"netty","settings":{"NOFILE":"300;x"}}' '{"server":"netty","settings":{"PATH":"1"}}' \
  '{"server":"grafana","settings":{}}' '{"server":"targets","settings":{}}' 'rubbish' \
  '{"server":"netty","settings":{"SERVER_JVM_FLAGS":"-XX:OnError=sh"}}' '{"server":"netty","settings":{"GENERATOR_CPUS":"1"}}' \
  '{"server":"netty","settings":{"SERVER_MEMORY":"$(id)"}}' '{"server":"netty","settings":{"NOFILE":"300"},"x":"1"}'; do
  ask "$wrong"
  check "hands: refused: $wrong" '[[ $out == "{\"ok\":false,\"error\":\""*"\"}" && ! -s $calls ]]'
done
ln -s "$lab/x" "$lab/ask/900.request.json"
sleep 0.5
check "hands: a link is not a request" '[[ ! -e $lab/ask/900.answer.json && ! -s $calls ]]'
rm "$lab/ask/900.request.json"
touch "$lab/broken"
ask '{"server":"fixed-pool","settings":{"LOOPS":"1"}}'
check "hands: what the engine says, as one line of JSON" '[[ $out == "{\"ok\":false,\"error\":\"container '"'x'"' is/unhealthy\"}" ]]'
rm "$lab/broken"
: >"$calls"
at_rest "$hands"
check "hands: what a dead driver left is put back" \
  '[[ $(count "^docker compose up") == 2 && $(grep -c "was left changed; its defaults are back" <<<"$out") == 2 ]]'

handy
ask '{"server":"netty","settings":{"SERVER_BACKLOG":"1"}}'
ask '{"server":"netty","settings":{}}'
: >"$calls"
at_rest "$parent"
check "hands: they end with the driver's script, and have nothing to put back" '[[ ! -s $calls && -z $out ]] && ! kill -0 "$hands" 2>/dev/null'

# --- host.sh env: profiles ---------------------------------------------------------------
# profiled WORD…: the profiles and lists that `host.sh env` makes of these words; FAKE_RUNNING are
# the services that run.
profiled() {
  fresh
  mkdir -p "$lab/prometheus" "$lab/experiments" "$lab/results/a-run"
  cp -R prometheus/servers "$lab/prometheus/"
  cp experiments/*.toml "$lab/experiments/"
  printf '{"experiment": {}, "servers": {"vertx": {}}}\n' >"$lab/results/a-run/manifest.json"
  printf 'LAB_RESULTS_DIR=./results\n' >>"$lab/.env"
  fake docker <<'FAKE'
case "$1 ${2-}" in
  "ps "*) printf '%s\n' $FAKE_RUNNING ;;
  "image inspect") exit 1 ;;
esac
FAKE
  mkdir -p "$lab/.lab/servers" && cp "$lab/prometheus/servers/frameworks.json" "$lab/.lab/servers/"
  run env FAKE_RUNNING="${FAKE_RUNNING-}" "$@" "$lab/images/host.sh" env
  if ((status == 0)); then
    out="$(sed -n 's/^COMPOSE_PROFILES=//p' "$lab/.lab/env") $(cd "$lab/.lab/servers" && echo ./*.json | sed "s|\./||g")"
  fi
}
# shellcheck disable=SC2034 # used by checks, as text
none="'' core.json" both="frameworks core.json frameworks.json"
profiled
check "profiles: without a word only the core, whatever was up before" '[[ $out == "$none" ]]'
profiled PROFILE=frameworks
check "profiles: asked for by name" '[[ $out == "$both" ]]'
profiled PROFILE=framework
check "profiles: a wrong name is one line with what is allowed" \
  '[[ $status == 1 && $out == "lab: PROFILE=framework is not a profile; allowed: frameworks" ]]'
profiled SERVER=fixed-pool,vertx
check "profiles: one of its servers is asked for" '[[ $out == "$both" ]]'
profiled SERVER=fixed-pool
check "profiles: a server of the core needs none" '[[ $out == "$none" ]]'
profiled EXP=frameworks
check "profiles: an experiment names its servers" '[[ $out == "$both" ]]'
profiled EXP=frameworks SERVER=netty
check "profiles: SERVER wins over the experiment" '[[ $out == "$none" ]]'
profiled RESUME=a-run
check "profiles: a run that goes on needs what it measured" '[[ $out == "$both" ]]'
FAKE_RUNNING="loadgen helidon" profiled
check "profiles: what is up stays up" '[[ $out == "$both" ]]'

# --- host.sh facts ------------------------------------------------------------------------
fresh
mkdir -p "$lab/.lab"
printf 'NOFILE=20000\n' >"$lab/.lab/env"
printf 'LOADGEN_CPUSET=7\nTOXIPROXY_CPUSET=2\nDOWNSTREAM_CPUSET=3\n' >>"$lab/.env"
LOADGEN_CPUSET=0-1 DOWNSTREAM_CPUSET='' run "$lab/images/host.sh" facts
check "facts: the CPU sets around the servers, a word before .env, an empty one too" \
  '[[ $status == 0 && $(<"$lab/.lab/host.json") == *"\"cpusets\": {\"loadgen\": \"0-1\", \"toxiproxy\": \"2\", \"downstream\": \"\"}"* ]]'

# --- Grafana's password -------------------------------------------------------------------
# guarded WORD…: `host.sh env`, `host.sh where` and grafana.sh, with Grafana's image there.
guarded() {
  profiled
  rm "$lab/.lab/grafana-password"
  printf 'GRAFANA_ADMIN_PASSWORD=\n' >>"$lab/.env"
  fake docker <<'FAKE'
lab=$(cd "$(dirname "$0")/.." && pwd)
printf 'docker %s, password %s\n' "$*" "${GRAFANA_ADMIN_PASSWORD-}" >>"$lab/calls"
if [[ "$1 ${2-}" == "compose exec" ]]; then exit "${FAKE_EXEC:-0}"; fi
FAKE
  run env "$@" bash -c "'$lab/images/host.sh' env && '$lab/images/grafana.sh' && '$lab/images/host.sh' where"
}
guarded X=1
check "password: a random one, given to Grafana, and where it is is said" \
  '[[ $status == 0 && $out == *"with the password in .lab/grafana-password" && $(count "compose exec -T grafana sh") == 1 && $(<"$calls") == *"password $(<"$lab/.lab/grafana-password")"* && $(stat -c %a "$lab/.lab/env") == 600 ]]'
guarded GRAFANA_ADMIN_PASSWORD="it's mine"
check "password: the user's own, and none is made" \
  '[[ $status == 0 && $out == *"with the password in GRAFANA_ADMIN_PASSWORD" && $out != *mine* && $(<"$calls") == *"password it'"'"'s mine"* && ! -e $lab/.lab/grafana-password ]]'
FAKE_EXEC=1 guarded X=1
check "password: a Grafana that does not take it is one warning, and the lab is up" \
  '[[ $status == 0 && $out == *"lab: warning: Grafana did not take the password"* && $out == *"lab: up."* ]]'
profiled
run bash -c "'$lab/images/grafana.sh' && '$lab/images/host.sh' where"
check "password: without Grafana nothing is asked or said of one" \
  '[[ $status == 0 && $out != *password* && $(count "compose exec") == 0 ]]'

# --- services of the user's own -------------------------------------------------------------
profiled
# shellcheck disable=SC2034 # used by checks, as text
own=$lab/.lab/servers/own/own.json
check "own services: none listed, none read" '[[ $status == 0 && ! -e $own ]]'
printf '[{"targets": ["mine"]}]' >"$lab/prometheus/own.json"
run "$lab/images/host.sh" env
check "own services: listed in prometheus/own.json, read by Prometheus and no server of the lab" \
  '[[ $status == 0 && $(<"$own") == *mine* && ! -e $lab/.lab/servers/own.json ]]'
rm "$lab/prometheus/own.json"
run "$lab/images/host.sh" env
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
run "$lab/images/host.sh" jmx
check "own services: the exporter comes out of a server's image, which leaves no container" \
  '[[ $status == 0 && $(<"$lab/.lab/jmx/jmx-exporter.jar") == "a jar" && -e $lab/.lab/jmx/jmx-exporter.yaml && $(count "docker rm --force made") == 1 ]]'
run "$lab/images/host.sh" jmx
check "own services: once for each image" '[[ $status == 0 && $(count "docker create") == 1 ]]'
FAKE_ID=sha256:two run "$lab/images/host.sh" jmx
check "own services: again for another image" '[[ $status == 0 && $(count "docker create") == 2 ]]'
FAKE_ID=sha256:three FAKE_CP_FAILS=1 run "$lab/images/host.sh" jmx
check "own services: without an exporter make up goes on, with one line, and leaves no container" \
  '[[ $status == 0 && $out == *"warning: no JMX exporter"* && $(wc -l <<<"$out") == 1 && $(count "docker rm --force made") == 3 && ! -e $lab/.lab/jmx/jmx-exporter.jar.part && -s $lab/.lab/jmx/jmx-exporter.jar ]]'
unset FAKE_ID

# --- host.sh idle -----------------------------------------------------------------------
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
  wait) echo 7 ;;
esac
FAKE
  export FAKE_SEES=$1 FAKE_LOCK="${*:2}"
}
# idle LINES STATUS…: what it says then.
idle() {
  fresh
  locked "$@"
  run "$lab/images/host.sh" idle
}
# shellcheck disable=SC2034 # used by checks, as text
under_way="lab: another measurement is under way; wait for its end"
idle "" 0
check "idle: neither lab nor driver, nothing measured, nothing asked" '[[ $status == 0 && -z $out && $(count exec) == 0 ]]'
idle "loadgen agent" 0
check "idle: nobody holds the lock" '[[ $status == 0 && -z $out && $(count "exec agent flock --shared .* /lab/lock true") == 1 ]]'
idle "loadgen agent" 66
check "idle: an agent from before the lock" '[[ $status == 0 && -z $out ]]'
idle "loadgen agent" 75
check "idle: a measurement is under way: one line" '[[ $status == 1 && $out == "$under_way" ]]'
idle "driver busy" 75
check "idle: no lab, and yet a driver measures" '[[ $status == 1 && $out == "$under_way" && $(count "exec busy flock") == 1 ]]'
idle $'driver busy\nloadgen agent' 0
check "idle: the agent is asked before a driver" '[[ $status == 0 && $(count "exec agent") == 1 && $(count "exec busy") == 0 ]]'
idle $'driver ended\nloadgen agent\ndriver busy' 1 75
check "idle: a container that tells nothing is not the last word" '[[ $status == 1 && $out == "$under_way" && $(count exec) == 2 ]]'

idle "loadgen agent" 75
mkdir -p "$lab/.lab" && printf 'NOFILE=300\n' >"$lab/.lab/env"
run env NOFILE=9000 "$lab/images/host.sh" check bench
check "host.sh check: refused at once under a measurement" '[[ $status == 1 && $out == "$under_way" && $(<"$lab/.lab/env") == NOFILE=300 ]]'
run env NOFILE=9000 "$lab/images/host.sh" env
check "host.sh env: what a measurement's containers are made from stays" '[[ $status == 0 && $(<"$lab/.lab/env") == NOFILE=300 ]]'

# --- make: what changes containers, and a measurement beside it ----------------------------
# made VERB STATUS…: the verb itself, where a driver runs and the lock answers so.
made() {
  fresh
  cp Makefile "$lab/"
  mkdir -p "$lab/prometheus" "$lab/servers"
  touch "$lab/servers/jmx-exporter.yaml"
  cp -R prometheus/servers "$lab/prometheus/"
  printf 'LAB_RESULTS_DIR=./results\n' >>"$lab/.env"
  printf '#!/bin/sh\n' | tee "$lab/images/engine.sh" "$lab/images/present.sh" >"$lab/images/grafana.sh"
  locked "driver other" "${@:2}"
  run env -u MAKEFLAGS -u MAKELEVEL make -C "$lab" "$1" </dev/null
}
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

# --- host.sh drive ----------------------------------------------------------------------
handy; at_rest "$parent"
printf 'LAB_RESULTS_DIR=./results\n' >>"$lab/.env"
printf 'NOFILE=20000\nLAB_UID=%s\nLAB_GID=%s\n' "$(id -u)" "$(id -g)" >"$lab/.lab/env"
# The driver asks once, and tells what the host said.
fake docker <<'FAKE'
lab=$(cd "$(dirname "$0")/.." && pwd)
printf 'docker %s\n' "$*" >>"$lab/calls"
case "$1 ${2-}" in
  "info "*) echo 4 ;;
  "logs "*)
    for folder in "$lab"/results/.hands/*/; do
      printf '{"server":"netty","settings":{"SERVER_CPUS":"0.5"}}' >"$folder/1.request.json"
      for ((i = 0; i < 1200; i++)); do if [[ -e $folder/1.answer.json ]]; then cat "$folder/1.answer.json"; break; fi; sleep 0.05; done
    done ;;
  "wait "*) echo 7 ;;
esac
FAKE
: >"$calls"
run "$lab/images/host.sh" drive run </dev/null
check "drive: a run has hands, and what its driver left is put back when it ends" \
  '[[ $status == 7 && $out == *"$okay"*"netty was left changed"* && $(count "compose run .* -e LAB_HANDS=[0-9]* --detach driver run") == 1 && -z $(ls -A "$lab/results/.hands") ]]'
: >"$calls"
run "$lab/images/host.sh" drive toxics </dev/null
check "drive: other verbs have none" '[[ $status == 7 && $(count LAB_HANDS) == 0 && -z $(ls -A "$lab/results/.hands") ]]'

printf '%s passed, %s failed\n' "$passed" "$failed"
((failed == 0))
