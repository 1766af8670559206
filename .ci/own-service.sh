# shellcheck shell=bash
# Services that are not the lab's, sourced by smoke.sh: a stock Tomcat and a Node program as containers
# of the lab, and a stock nginx outside it, on the address of docker0 as a program on this machine would
# have it. loadgen/tests/smoke/test_own_service.py then looks at what the benches left.

: "${COMPOSE_PROJECT_NAME:?}" "${LAB_RESULTS_DIR:?}"
nginx=$COMPOSE_PROJECT_NAME-nginx

owned() {
  COMPOSE_FILE=compose.yaml:.ci/own-service/compose.yaml LAB_OWN_SERVERS=.ci/own-service/own.json \
    LAB_SUBJECTS_DIR=.ci/own-service/subjects make "$@"
}

tomcat() { owned bench TARGET=tomcat CONC=400 LAUNCHES=1 DURATION=4s WARMUP=2s ENGINE=pacer NAME=tomcat; }

# Beside the Tomcat, which `tomcat` has started with it.
shop() { drive bench TARGET=http://shop:8080/ CONC=60 DURATION=4s WARMUP=2s NAME=shop; }

# Its pool is twice as large in one trial of a pair, in a container of its own.
lifted() { owned explain PATIENCE=30s TARGET=shop CONC=60 PAIRS=1 STEPS=1 SUSPECT="downstream connections" DURATION=4s WARMUP=2s NAME=lifted; }

outside() {
  local gateway status=0
  # Tomcat is in no compose file here, which is no concern of the line that is asked for.
  local -x COMPOSE_IGNORE_ORPHANS=true
  docker build --quiet --target nginx --tag concurrency-lab/test-nginx:local \
    --build-arg DEBIAN_IMAGE="$(setting DEBIAN_IMAGE)" .ci/own-service || return 1
  gateway=$(docker network inspect --format '{{(index .IPAM.Config 0).Gateway}}' bridge)
  docker run --detach --rm --name "$nginx" --publish "$gateway:28481:80" concurrency-lab/test-nginx:local || return 1
  drive bench TARGET=http://localhost:28481/ CONC=20 RATE=300 DURATION=4s WARMUP=1s ENGINE=pacer NAME=nginx || status=1
  docker stop -t 2 "$nginx"
  refuses 'must listen on an address that containers can reach' drive bench TARGET=http://127.0.0.1:28481/ CONC=20 && return "$status"
}
