# shellcheck shell=bash
# Services that are not the lab's, sourced by smoke.sh: a stock Tomcat and a Node program as containers
# of the lab, and a stock nginx outside it, on the address of docker0 as a program on this machine would
# have it. loadgen/tests/smoke/test_own_service.py then looks at what the benches left.

: "${COMPOSE_PROJECT_NAME:?}" "${LAB_RESULTS_DIR:?}"
nginx=$COMPOSE_PROJECT_NAME-nginx

# The files of the services: $services.yaml and $services.json.
services=compose
owned() {
  COMPOSE_FILE=compose.yaml:.ci/own-service/$services.yaml LAB_OWN_SERVERS=.ci/own-service/$services.json \
    LAB_SUBJECTS_DIR=.ci/own-service/subjects make "$@"
}

tomcat() { owned bench TARGET=tomcat CONC=400 LAUNCHES=1 DURATION=4s WARMUP=2s ENGINE=pacer RECORD=alloc NAME=tomcat; }

# One lock that each request holds for 10 ms: 100 answers a second, and all other requests wait for it.
locked() { owned bench TARGET=http://tomcat:8080/lock.jsp CONC=60 DURATION=4s WARMUP=2s NAME=locked; }

# Beside the Tomcat, which `tomcat` has started with it.
shop() { drive bench TARGET=http://shop:8080/ CONC=60 DURATION=4s WARMUP=2s NAME=shop; }

# Its pool is twice as large in one trial of a pair, in a container of its own.
lifted() { owned explain PATIENCE=30s TARGET=shop CONC=60 PAIRS=1 STEPS=1 SUSPECT="downstream connections" DURATION=4s WARMUP=2s NAME=lifted; }

outside() {
  local gateway status=0
  # Tomcat is in no compose file here, which is no concern of the line that is asked for.
  local -x COMPOSE_IGNORE_ORPHANS=true
  docker build --quiet --target nginx --tag concurrency-lab/test-nginx:local \
    --build-arg DEBIAN_IMAGE="$(present_image DEBIAN_IMAGE)" .ci/own-service || return 1
  gateway=$(docker network inspect --format '{{(index .IPAM.Config 0).Gateway}}' bridge)
  docker run --detach --rm --name "$nginx" --publish "$gateway:28481:80" concurrency-lab/test-nginx:local || return 1
  drive bench TARGET=http://localhost:28481/ CONC=20 RATE=300 DURATION=4s WARMUP=1s ENGINE=pacer NAME=nginx || status=1
  docker stop -t 2 "$nginx"
  refuses 'must listen on an address that containers can reach' drive bench TARGET=http://127.0.0.1:28481/ CONC=20 && return "$status"
}

# The load engines against a log that is not the lab's: nginx's own, of each request (loadgen/tests/smoke/test_witness.py). Delays
# are drawn, so each percentile is another. No WARMUP=: wrk2 refuses one that is shorter than its calibration.
witnessed() {
  local status=0
  plant ask PATCH downstream /settings '{"delay_ms": "lognormal:median=100,p99=200"}' || return 1
  COMPOSE_FILE=compose.yaml:.ci/own-service/nginx.yaml ran make run EXP=engines TARGET=http://nginx:8080/witnessed \
    CONC=100 RATE=400 LAUNCHES=0 DURATION=5s NAME=witness || status=1
  docker logs "$(container_of nginx)" >"$LAB_RESULTS_DIR/witness.log" 2>/dev/null || status=1
  plant ask PATCH downstream /settings '{"delay_ms": 200}' && return "$status"
}

# every_verb SUBJECT CONC RATE: all verbs, short (SUITE=long): a load of so many connections, and a rate that the service holds.
every_verb() {
  local name=$1 conc=$2 rate=$3
  local short=(TARGET="$name" DURATION=4s WARMUP=2s PATIENCE=30s)
  own() { step "long-own-$name-$1" one ran owned "$2" "${short[@]}" "${@:3}" NAME="own-$name-$1"; }
  own bench bench CONC="$conc" RATE="$rate" LAUNCHES=2
  own again bench CONC="$conc" RATE="$rate" LAUNCHES=2
  own capacity capacity OBJECTIVE="p95<600ms,errors<1%" LAUNCHES=1
  own stress run EXP=stress MODE=closed
  own explain explain CONC="$conc" PAIRS=1 STEPS=1
  short=(TARGET="$name" WARMUP=2s PATIENCE=30s)
  own sweep run EXP=sweep MODE=closed CONC="$((conc / 2)),$conc" LAUNCHES=0 SCALE=0.2
  own spike run EXP=spike CONC=1000 RATE="$rate" SCALE=0.1
  own faults run EXP=faults CONC="$conc" RATE="$rate" SCALE=0.2
  own endurance run EXP=endurance CONC="$conc" RATE="$rate" DURATION=20m SCALE=0.02
  step "long-own-$name-compare" one compared "$name"
  step "long-own-$name-report" one judged_again "own-$name-bench"
}

# compared SUBJECT: both benches of it by `compare`, and as base and candidate: of 2 launches nobody can tell.
compared() {
  local a b status=0
  a=$(cd "$LAB_RESULTS_DIR" && echo *-own-"$1"-bench) b=$(cd "$LAB_RESULTS_DIR" && echo *-own-"$1"-again)
  make compare A="$a" B="$b" || return 1
  ./lab gate BASE="$a" CANDIDATE="$b" || status=$?
  printf 'exit status %d\n' "$status"
  ((status == 3)) && exists "$b/gates/*/gate.xml"
}
