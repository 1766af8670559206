# shellcheck shell=bash
# Faults planted on real containers, sourced by smoke.sh: while a bench runs its trials one after
# the other, each gets a fault of its own. loadgen/tests/smoke/test_faults.py then finds every
# one of them invalid, for the reason that was planted. The engine is pacer: any machine has it.

: "${COMPOSE_PROJECT_NAME:?}" "${LAB_RESULTS_DIR:?}"
# Its JVM is warm soonest, and the faults are no model's own.
faulty=event-loop

container_of() { printf '%s-%s-1' "$COMPOSE_PROJECT_NAME" "$1"; }
# plant WHAT …: .ci/plant.py, in the agent's container: it waits for a moment of a run.
plant() { docker exec -i "$(container_of loadgen)" python - "$@" <.ci/plant.py; }

# is_removed FD: whether the folder that is open there has been removed. While it is open, no other folder gets its inode.
is_removed() { [[ $(stat -L --format %h "/proc/self/fd/$1") == 0 ]]; }

# is_warming_up: whether pacer has written the first second of a warm-up. The agent's container sees no run, so the host looks.
is_warming_up() { [[ -s $(compgen -G "$LAB_RESULTS_DIR/*-faults/warm-up/pacer.jsonl") ]]; }

# kill_in_warm_up: kill -9 of the server's JVM in the next warm-up; returns when that warm-up is over.
kill_in_warm_up() {
  local folder status=0
  within 300 is_warming_up && exec {folder}<"$(compgen -G "$LAB_RESULTS_DIR/*-faults/warm-up")" || return 1
  kill_9 "$(pid_of server)" && within 60 is_removed "$folder" || status=1
  exec {folder}<&-
  return "$status"
}

# One bench of six trials; each is known by its connections. Each fault is planted when the window of
# its trial (6 s) has begun.
planted() {
  local bench status=0 cpus
  cpus=$(docker info --format '{{.NCPU}}')
  drive bench SERVER="$faulty" CONC=40,200,2,42,43,44 MODE=closed DURATION=6s WARMUP=2s ENGINE=pacer NAME=faults &
  bench=$!
  {
    # A toxic that is gone again before the trial ends; the agent looks once a second.
    plant toxic -c40 &&
      # A generator that may use a fiftieth of a CPU; then, as before, all of them.
      plant trial -c200 && docker update --cpus 0.02 "$(drivers)" && sleep 3 && docker update --cpus "$cpus" "$(drivers)" &&
      # -c2: two connections: far too few answers. Nothing to do.
      # A server that stops answering until the load is over.
      plant trial -c42 && sleep 2 && docker pause "$(container_of "$faulty")" && plant over -c42 &&
      docker unpause "$(container_of "$faulty")" &&
      # A JVM that crashes, and comes back. (Told to restart, it would finish its requests first.)
      plant trial -c43 && sleep 1 && docker exec "$(container_of "$faulty")" sh -c 'kill -SEGV 1' &&
      # The new JVM is warmed up before the next trial. Another one in the middle is warmed up
      # again; one more in the middle of that is measured as it is.
      kill_in_warm_up && kill_in_warm_up
  } || status=1
  docker unpause "$(container_of "$faulty")" 2>/dev/null
  # No trial is valid, and the bench says so.
  if wait "$bench"; then return 1; fi
  return "$status"
}

# Two servers with unlike limits, of which a JVM knows one and its container the other. Each row of
# a comparison that is not fair is invalid. Another server than the faulty one, whose JVM is new.
unequal() {
  local status=0 one=netty
  plant ask PATCH "$one" /settings '{"downstream_timeout_ms": 9000}' &&
    docker update --cpus 0.9 "$(container_of "$one")" || return 1
  drive bench SERVER=fixed-pool,"$one" CONC=60 MODE=closed DURATION=2s WARMUP=1s ENGINE=pacer NAME=unequal && status=1
  docker update --cpus "$(docker info --format '{{.NCPU}}')" "$(container_of "$one")" &&
    plant ask PATCH "$one" /settings '{"downstream_timeout_ms": 10000}' && return "$status"
}

# answers STATUS: to a client of a server that calls the downstream.
answers() { [[ $(plant status "$faulty" /downstream) == "$1" ]]; }

# The way to the downstream is cut, and comes back; so it does when one of its parts is restarted. The
# network namespace that they share stays: a new one would leave the other part behind.
way_back() {
  local part shared
  shared=$(docker inspect --format '{{.State.StartedAt}}' "$(container_of downstream-network)")
  within 60 answers 200 && drive toxic TYPE=down && within 60 answers 502 && drive toxic TYPE=up && within 60 answers 200 || return 1
  for part in toxiproxy downstream; do
    docker restart "$(container_of "$part")" && within 60 answers 200 || return 1
  done
  [[ $(docker inspect --format '{{.State.StartedAt}}' "$(container_of downstream-network)") == "$shared" ]]
}

# Another server has the name: refused before there is any load.
wrong_server() {
  local net=${COMPOSE_PROJECT_NAME}_lab right other status=0
  right=$(container_of fixed-pool) other=$(container_of "$faulty")
  docker network disconnect "$net" "$right" && docker network disconnect "$net" "$other" &&
    docker network connect --alias "$faulty" --alias fixed-pool "$net" "$other" &&
    refuses "answered by $faulty" drive bench SERVER=fixed-pool CONC=10 DURATION=2s || status=1
  docker network disconnect "$net" "$other"
  docker network connect --alias "$faulty" "$net" "$other" &&
    docker network connect --alias fixed-pool "$net" "$right" && return "$status"
}
