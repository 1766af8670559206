# shellcheck shell=bash
# Faults planted on real containers, sourced by smoke.sh: while a bench runs its trials one after
# the other, each gets a fault of its own. loadgen/tests/smoke/test_faults.py then finds every
# one of them invalid, for the reason that was planted. The engine is oha: any machine has it.

: "${COMPOSE_PROJECT_NAME:?}" "${LAB_RESULTS_DIR:?}"
faulty=virtual-threads

container_of() { printf '%s-%s-1' "$COMPOSE_PROJECT_NAME" "$1"; }
driver_id() {
  docker ps -q --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME" --filter label=com.docker.compose.service=driver
}
# manage METHOD SERVER PATH [JSON]: ask a server's management port from inside the lab; in the
# agent's container, as starting one would take a good part of the trial.
manage() {
  docker exec "$(container_of loadgen)" python -c 'import httpx, sys
method, server, path, body = sys.argv[1:]
print(httpx.request(method, f"http://{server}:8081{path}", content=body).raise_for_status().text)' "$1" "$2" "$3" "${4-}"
}
# There is a path that matches the pattern, within two minutes of waiting.
appears() {
  local i
  for ((i = 0; i < 600; i++)); do
    if compgen -G "$LAB_RESULTS_DIR/$1" >/dev/null; then return 0; fi
    sleep 0.2
  done
  printf 'never there: %s\n' "$1"
  return 1
}

# A folder that matches the pattern was made after the file was touched, within two minutes.
begins_again() {
  local i folder
  for ((i = 0; i < 600; i++)); do
    for folder in "$LAB_RESULTS_DIR"/$1; do
      if [[ $folder -nt $2 ]]; then return 0; fi
    done
    sleep 0.2
  done
  printf 'never there again: %s\n' "$1"
  return 1
}

# One bench of six trials; each is known by its connections. A trial's folder appears when its
# load begins; its window is from the 2nd to the 8th second.
planted() {
  local bench raw='*-faults/raw' stamp="$LAB_RESULTS_DIR/.restarted" status=0
  make bench SERVER="$faulty" CONC=40,200,2,42,43,44 MODE=closed DURATION=6s WARMUP=2s ENGINE=oha NAME=faults &
  bench=$!
  {
    # A toxic that is gone again before the trial ends; the agent looks once a second.
    appears "$raw/*-c40" && sleep 2.5 && make toxic TYPE=latency LATENCY=50 && sleep 2 && make toxics-reset &&
      # A generator that may use a fiftieth of a CPU; then, as before, all of them.
      appears "$raw/*-c200" && sleep 3 && docker update --cpus 0.02 "$(driver_id)" && sleep 3 &&
      docker update --cpus "$(docker info --format '{{.NCPU}}')" "$(driver_id)" &&
      # Two connections: far too few answers. Nothing to do.
      appears "$raw/*-c2" &&
      # A server that stops answering until the load is over: Little's law cannot hold.
      appears "$raw/*-c42" && sleep 4 && docker pause "$(container_of "$faulty")" && sleep 5 &&
      docker unpause "$(container_of "$faulty")" &&
      # A JVM that crashes, and comes back. (Told to restart, it would finish its requests first.)
      appears "$raw/*-c43" && sleep 3 && docker exec "$(container_of "$faulty")" sh -c 'kill -SEGV 1' &&
      # The new JVM is warmed up before the next trial. Another one in the middle is warmed up
      # again; one more in the middle of that is measured as it is.
      appears '*-faults/warm-up' && sleep 3 && touch "$stamp" && manage POST "$faulty" /restart &&
      begins_again '*-faults/warm-up' "$stamp" && sleep 3 && manage POST "$faulty" /restart
  } || status=1
  wait "$bench" && return "$status"
}

# Two servers with unlike limits, of which a JVM knows one and its container the other. Each row of
# a comparison that is not fair is invalid.
unequal() {
  local status=0
  manage PATCH "$faulty" /settings '{"downstream_timeout_ms": 9000}' &&
    docker update --cpus 0.9 "$(container_of "$faulty")" || return 1
  make bench SERVER=fixed-pool,"$faulty" CONC=60 MODE=closed DURATION=2s WARMUP=1s ENGINE=oha NAME=unequal || status=1
  docker update --cpus "$(docker info --format '{{.NCPU}}')" "$(container_of "$faulty")" &&
    manage PATCH "$faulty" /settings '{"downstream_timeout_ms": 10000}' && return "$status"
}

# Another server has the name: refused before there is any load. Not through `make bench`, which
# would bring the lab up again first.
wrong_server() {
  local net=${COMPOSE_PROJECT_NAME}_lab right other status=0
  right=$(container_of fixed-pool) other=$(container_of "$faulty")
  docker network disconnect "$net" "$right" && docker network disconnect "$net" "$other" &&
    docker network connect --alias "$faulty" --alias fixed-pool "$net" "$other" &&
    LAB_WORDS='SERVER=fixed-pool CONC=10 DURATION=2s' refuses "answered by $faulty" host/lab.sh drive bench || status=1
  docker network disconnect "$net" "$other"
  docker network connect --alias "$faulty" "$net" "$other" &&
    docker network connect --alias fixed-pool "$net" "$right" && return "$status"
}
