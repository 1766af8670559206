#!/usr/bin/env bash
# host/lab.sh ready and facts: what Compose is told, and what a run records of the machine.
# shellcheck disable=SC2016,SC2034  # quoted code: fakes, and checks that `check` evaluates
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. host/tests/fakes.sh

# --- lab.sh ready -----------------------------------------------------------------------
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
readied COMPOSE_FILE=compose.yaml:own.yaml
check "ready: the driver is told which services are the user's own" \
  '[[ $(<"$state/env") == *"LAB_OWN=my-service\\ my-database"* && $(count "plan, .*own=my-service my-database") == 1 ]]'
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
  readied FAKE_NCPU="${cpus%:*}" CPU_SETS=off
  check "ready: of ${cpus%:*} CPUs Toxiproxy runs on ${cpus#*:}" '[[ $(grep TOXIPROXY_GO "$state/env") == "TOXIPROXY_GOMAXPROCS=${cpus#*:}" ]]'
done
readied TOXIPROXY_CPUSET=0-1 FAKE_NCPU=64
check "ready: of a CPU set of its own Toxiproxy uses all" '[[ $(grep TOXIPROXY_GO "$state/env") == "TOXIPROXY_GOMAXPROCS='"''"'" ]]'
readied FAKE_NCPU=64
check "ready: so it does of one that the lab chose" '[[ $(grep TOXIPROXY_GO "$state/env") == "TOXIPROXY_GOMAXPROCS='"''"'" && $(grep -c TOXIPROXY_CPUSET=0-15 "$state/env") == 1 ]]'
readied TOXIPROXY_GOMAXPROCS=7 TOXIPROXY_CPUSET=0-1
check "ready: what the user says of it wins" '[[ $(grep TOXIPROXY_GO "$state/env") == TOXIPROXY_GOMAXPROCS=7 ]]'
readied TOXIPROXY_GOMAXPROCS=many
check "ready: it is a number" '[[ $status == 1 && $out == *"TOXIPROXY_GOMAXPROCS=many is not a number of CPUs" ]]'
readied JDK=21
check "ready: with JDK=21 the models without a library get its JRE" '[[ $(grep BLOCKING_JRE "$state/env") == BLOCKING_JRE_IMAGE=eclipse-temurin:21-jre ]]'
check "ready: Compose gets the images that .env pins" '[[ $(grep -c "_IMAGE=concurrency-lab/" "$state/env") == 0 && $(<"$state/env") == *$'"'\n'"'MAVEN_IMAGE=maven:3.9-eclipse-temurin-25$'"'\n'"'* ]]'
readied FAKE_IMAGES=built JDK=21
check "ready: and those that were built here by their own names" \
  '[[ $(sed -n "/^WRK2/d; s/^\([A-Z0-9_]*\)_IMAGE=concurrency-lab/\1/p" "$state/env" | paste -sd " ") == "DEBIAN/debian:trixie-slim JRE/eclipse-temurin:25-jre MAVEN/maven:3.9-eclipse-temurin-25 GOLANG/golang:1.27.4-trixie PROMETHEUS/prometheus:v2.53.3 TOXIPROXY/toxiproxy:2.12.0 CADVISOR/cadvisor:0.55.1 BLOCKING_JRE/eclipse-temurin:21-jre" ]]'
for wrong in JDK=17 BLOCK_THE_LOOP=yes SERVER_POOL_ORDER=random CONNECTION_THREADS=green NETTY_TRANSPORT=iouring FRAMEWORK_DEFAULTS=own DOWNSTREAM_CLIENT=own FRONTS=0 FRONTS=65 FRONTS=one; do
  readied "$wrong"
  check "ready: $wrong is refused with what is allowed" '[[ $status == 1 && $out == "lab: $wrong: allowed are "* && ! -e $state/env ]]'
done
for wrong in LAB_RESULTS_DIR=runs 'LAB_RESULTS_DIR=~/runs'; do
  readied "$wrong"
  check "ready: $wrong would be another folder for Compose" \
    '[[ $status == 1 && $out == "lab: $wrong: a folder begins with / or ./ or ../" && ! -e $lab/runs && ! -e $lab/~ && ! -e $state/env ]]'
done
# In a child: its limit does not come back.
said=$(ulimit -n 512; readied; cat "$state/env")
check "ready: an engine that is no process here has no limit of this shell's" '[[ $(grep ^NOFILE <<<"$said") == NOFILE=1048576 ]]'
readied
printf '#!/bin/sh\ntouch "$(dirname "$0")/../started"\n' >"$lab/host/engine.sh"
fake pidof <<<'[[ -e $(dirname "$0")/../started ]] && echo $PPID'
said=$(ulimit -n 512; run "$lab/host/lab.sh" ready; cat "$state/env")
check "ready: an engine that was just started has the limit of who started it" '[[ $(grep ^NOFILE <<<"$said") == NOFILE=512 ]]'
readied COMPOSE_PROJECT_NAME=other
check "ready: another lab has its own images" '[[ $(count "concurrency-lab/loadgen:other plan,") == 1 && $(count "concurrency-lab/[a-z-]*:local") == 0 ]]'
check "ready: another lab of this checkout has its own state" \
  '[[ $status == 0 && -s $lab/.lab/other/env && -d $lab/.lab/other/own && ! -e $state/env && $(count "project=other") -ge 1 ]]'
readied COMPOSE_PROJECT_NAME=../other
check "ready: a project is a name" '[[ $status == 1 && $out == "lab: COMPOSE_PROJECT_NAME=../other: "* ]]'
readied FAKE_ELSEWHERE=/somewhere/else
check "ready: a lab of the same name in another checkout is not taken over" \
  '[[ $status == 1 && $out == "lab: a lab of this name is there, of the checkout /somewhere/else: \`make down\` ends it, or COMPOSE_PROJECT_NAME "* && ! -e $state/env ]]'
readied FAKE_ELSEWHERE="$lab"
check "ready: this checkout's own is" '[[ $status == 0 && -s $state/env ]]'

run env FAKE_ELSEWHERE=/somewhere/else "$lab/host/lab.sh" need-up
check "need-up: toxics of another checkout's lab are left alone" '[[ $status == 1 && $out == "lab: a lab of this name is there, of the checkout /somewhere/else: "* ]]'

# --- what a starting bench has written down --------------------------------------------------
readied
# Of a gate of two images that is being built, of a server that no profile starts.
printf 'COMPOSE_PROFILES=frameworks\nNOFILE=300\n' >>"$state/env"
printf 'SERVER_IMAGE lab/x:1\n' >>"$state/allowed-changes"
printf '[cpu]\nat_most = 1.05\n' >"$lab/gate.toml"
for verb in report compare gate; do
  run env LAB_VERB="$verb" BASE=one CANDIDATE=other "$lab/host/lab.sh" ready
  check "ready: $verb of stored runs leaves that as it is" '[[ $status == 0 && $(<"$state/env") == *"COMPOSE_PROFILES=frameworks"$'"'\n'"'NOFILE=300 && $(<"$state/allowed-changes") == *SERVER_IMAGE* ]]'
done
run env LAB_VERB=bench "$lab/host/lab.sh" ready
check "ready: what starts containers writes its own" '[[ $status == 0 && $(<"$state/env") != *frameworks* && $(<"$state/allowed-changes") != *SERVER_IMAGE* ]]'
printf '%s\n' 'QUOTED="two # words"' "SINGLE='x'" 'PLAIN=-Dx="a b" -Dy=1  # why' 'EMPTY=' >>"$lab/.env"
run bash -c "cd '$lab'; . host/common.sh; for name in QUOTED SINGLE PLAIN EMPTY; do printf '<%s>' \"\$(setting \$name)\"; done"
check "a value of .env is what Compose makes of it" '[[ $out == '"'<two # words><x><-Dx=\"a b\" -Dy=1><>'"' ]]'

# --- who owns results ---------------------------------------------------------------------
readied
fake id <<<'[[ $1 == -u ]] && echo 0 || echo root'
fake chown <<<'printf "chown %s\n" "$*" >>"$(dirname "$0")/../calls"'
rm -rf "$lab/results" && mkdir "$root/theirs" && : >"$calls"
LAB_RESULTS_DIR=$root/theirs run "$lab/host/lab.sh" ready
check "ready: root gives away no folder that was there" \
  '[[ $status == 1 && $out == "lab: LAB_RESULTS_DIR=$root/theirs is there and not of user 10001, "* && $(count "^chown") == 0 ]]'
run "$lab/host/lab.sh" ready
check "ready: but one that it makes" '[[ $status == 0 && $(count "^chown 10001:10001 ./results$") == 1 ]]'

fake docker <<<'if [[ $1 == compose ]]; then printf %s "${BUILDX_NO_DEFAULT_ATTESTATIONS-}"; fi'
run "$lab/host/lab.sh" compose build
check "build: an image is its layers, without what a build attests of itself" '[[ $out == 1 ]]'

# --- lab.sh room --------------------------------------------------------------------------
# room GIB PROFILES: what it says of an engine with so much memory, and heaps of 1 GiB.
room() {
  readied FAKE_PROFILES="$2"
  FAKE_MEMORY=${1:+$(($1 * 1073741824))} SERVER_JVM_FLAGS='-Xms1g -Xmx2g -XX:+UseG1GC -Xmx1g' run "$lab/host/lab.sh" room
}
room 8 grafana
check "room: six fit into 8 GiB" '[[ $status == 0 && -z $out ]]'
room 24 frameworks
check "room: thirteen fit into 24 GiB" '[[ $status == 0 && -z $out ]]'
room 8 frameworks
check "room: what the heaps may grow to is a warning, with what to do" \
  '[[ $status == 0 && $out == "lab: warning: 13 servers "*" 15862 MiB, and the engine has 8192 MiB: "*"SERVER_JVM_FLAGS"*"make down"* && $out != *$'"'\n'"'* ]]'
room 2 frameworks
check "room: what does not even start is refused, with fewer" \
  '[[ $status == 1 && $out == "lab: 13 servers and the rest of the lab take 2550 MiB "*" has 2048 MiB: \`make down\`, then one profile at a time"* ]]'
room "" frameworks
check "room: an engine that does not tell is not judged" '[[ $status == 0 && -z $out ]]'

# A rootless engine on cgroup v1.
readied
fake docker <<'FAKE'
case $* in
  "info "*CgroupDriver*) echo none ;;
  "info "*SecurityOptions*) echo "[name=seccomp,profile=builtin name=rootless]" ;;
  "info "*DockerRootDir*) echo /home/me/.local/share/docker ;;
  "context inspect"*) echo unix:///run/user/1000/docker.sock ;;
esac
FAKE
run "$lab/host/lab.sh" room
check "room: an engine without cgroups holds no limit: said" '[[ $status == 0 && $out == "lab: warning: the engine has no cgroups "* ]]'
for asked in SERVER_CPUS=1 SERVER_CPUSET=0; do
  run env "$asked" "$lab/host/lab.sh" room
  check "room: $asked would not hold there, and is refused" '[[ $status == 1 && $out == "lab: $asked would not hold: the engine has no cgroups "* && $out != *$'"'\n'"'* ]]'
done
run env SERVER_CPUS=0 "$lab/host/lab.sh" room
check "room: no limit is none there, too" '[[ $status == 0 ]]'
asked_of() { run bash -c "cd '$lab' && . host/common.sh && . host/lab/machine.sh && $1"; }
asked_of 'engine_folder; echo; engine_socket; echo; containerd_socket "$(engine_socket)"'
check "ready: a user's own engine has its folder and socket elsewhere" \
  '[[ $out == $'"'/home/me/.local/share/docker\n/run/user/1000/docker.sock\n/run/containerd/containerd.sock'"' ]]'
fake docker <<<'case $* in *DockerRootDir*) echo /data/docker ;; "context inspect"*) echo unix:///Users/me/.docker/run/docker.sock ;; esac'
asked_of 'engine_folder; echo; engine_socket'
check "ready: any other engine has its socket where all have it, and its folder where it says" '[[ $out == $'"'/data/docker\n/var/run/docker.sock'"' ]]'
fake docker <<<'case $* in *SecurityOptions*) echo "[name=seccomp,profile=builtin name=userns]" ;; esac'
asked_of 'user_namespace'
check "ready: where the engine remaps users, who needs the host's keeps them" '[[ $out == host ]]'
fake docker <<<'case $* in *SecurityOptions*) echo "[name=seccomp,profile=builtin name=cgroupns]" ;; esac'
asked_of 'user_namespace'
check "ready: elsewhere nobody is told of users" '[[ $status == 0 && -z $out ]]'
readied
check "ready: an engine that does not tell has its folder where all have it" '[[ $(<"$state/env") == *$'"'\nENGINE_FOLDER=/var/lib/docker\nENGINE_SOCKET=/var/run/docker.sock\n'"'* ]]'

# --- lab.sh facts -------------------------------------------------------------------------
readied
printf 'LOADGEN_CPUSET=7\nTOXIPROXY_CPUSET=2\nDOWNSTREAM_CPUSET=3\n' >>"$lab/.env"
printf 'TOXIPROXY_GOMAXPROCS=3\n' >>"$state/env"
fake docker <<'FAKE'
if [[ $1 == run ]]; then cat; elif [[ "$1 $2" == "compose config" ]]; then echo "some/image:1${COMPOSE_PROFILES//,/} $TOXIPROXY_IMAGE"; elif [[ "$1 $2" == "image inspect" ]]; then echo "image $5"; fi
FAKE
LOADGEN_CPUSET=0-1 DOWNSTREAM_CPUSET='' run "$lab/host/lab.sh" facts
check "facts: the CPU sets around the servers, a word before .env, an empty one too" \
  '[[ $status == 0 && $(<"$state/host.json") == *$'"'cpuset LOADGEN 0-1\ncpuset TOXIPROXY 2\ncpuset DOWNSTREAM \ncpuset OBSERVATION \nimage some/image:1'"'* ]]'
printf 'COMPOSE_PROFILES=frameworks\nTOXIPROXY_IMAGE=concurrency-lab/toxiproxy:2.12.0\n' >>"$state/env"
check "facts: on how many CPUs Toxiproxy runs" '[[ $(<"$state/host.json") == *$'"'\ntoxiproxy_gomaxprocs 3\n'"'* ]]'
COMPOSE_PROFILES=jmh run "$lab/host/lab.sh" facts
check "facts: the images of the profiles that are up, and of the verb's own" '[[ $status == 0 && $(<"$state/host.json") == *"image some/image:1frameworksjmh"* ]]'
check "facts: of what was built here in the place of an upstream image" '[[ $(<"$state/host.json") == *"image concurrency-lab/toxiproxy:2.12.0"* ]]'

readied COMPOSE_PROJECT_NAME=other
fake docker <<'FAKE'
if [[ $1 == run ]]; then cat; elif [[ "$1 $2" == "compose config" ]]; then echo "concurrency-lab/netty:$LAB_TAG"; elif [[ "$1 $2" == "image inspect" ]]; then echo "${4%% {*} is $5"; fi
FAKE
COMPOSE_PROJECT_NAME=other run "$lab/host/lab.sh" facts
check "facts: the lab's own images have one name in every lab" \
  '[[ $status == 0 && $(<"$lab/.lab/other/host.json") == *"image concurrency-lab/netty:local is concurrency-lab/netty:other"* ]]'

readied
touch "$lab/compose.override.yaml"
fake docker <<'FAKE'
case $* in
  run*) cat ;;
  "compose -f compose.yaml "*"config --services") echo netty ;;
  *"config --services") printf 'netty\nmy-shop\nstopped\n' ;;
  "compose ps --quiet my-shop") printf 'one\ntwo\n' ;;
  "inspect --format "*) echo "${3%%, \"image*} is of $4" ;;
esac
FAKE
run "$lab/host/lab.sh" facts
check "facts: of services of the user's own the container's image and limits, of the first one" \
  '[[ $status == 0 && $(<"$state/host.json") == *"service my-shop {"?containers?": 2 is of one"* && $(<"$state/host.json") != *@(stopped|netty)* ]]'
rm "$lab/compose.override.yaml"

finish
