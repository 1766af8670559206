# shellcheck shell=bash
# One fault at one phase of a run is a cell; sourced by smoke.sh. .ci/cells.csv lists them: the fault, the phase, the
# suite that has it (or the step of the smoke test that plants it already), whether the run may go on or may end, and
# what the trial that was hit has to say. Each cell is a run of three short trials that is hit once; where several faults
# hit one run (kill-toxiproxy+kill-agent), each has a trial of its own. Afterwards:
#
#   - what was measured before is there, byte for byte, and the run has all of its trials, with RESUME= where it ended
#   - what the rows say is right, or they are invalid (.ci/cells.py)
#   - the lab is as it was found
#   - a trial after the fault is measured as if there had been none
#
# CELLS="kill-agent/window …" runs these only. An engine belongs to all on a machine: FAULTS_ENGINE=yes ends or stops
# it, too. Each cell that passed is a line of $logs/cells.csv, for docs/reliability.md.

: "${COMPOSE_PROJECT_NAME:?}" "${LAB_RESULTS_DIR:?}" "${logs:?}" "${test_image:?}" "${faulty:?}"

# words_of FAULT: the run that is hit, its server, and the trials in it: one before, one for each fault, the last. What the host's
# hands do is changes of containers: one trial has one.
words_of() {
  local faults loads=(40 50 60 70 80)
  IFS=+ read -ra faults <<<"$1"
  case $1 in
    *-hands)
      server=virtual-threads
      words=(run EXP=bottlenecks CASE=cpu-limit DURATION=4s WARMUP=1s ENGINE=pacer)
      trials=(cpu-limit cpu-limit cpu-limit)
      ;;
    *)
      server=$faulty
      loads=("${loads[@]:0:${#faults[@]}+2}")
      words=(bench SERVER="$faulty" "CONC=$(IFS=,; printf '%s' "${loads[*]}")" MODE=closed DURATION=3s WARMUP=1s ENGINE=pacer)
      trials=("${loads[@]/#/c}")
      ;;
  esac
}

# begin NAME WORD…: a run in a process group of its own, as a terminal would have it: $run_pid.
begin() {
  # A job in the background of a script ignores SIGINT unless told otherwise.
  LAB_WORDS="${*:3} NAME=$1" env --default-signal=INT setsid host/lab.sh drive "$2" </dev/null &
  run_pid=$!
}
# ended: no driver is left. Its host then ends.
ended() { within 300 no_driver && { wait "$run_pid" || printf 'exit status %d\n' $?; }; }
run_dir() { compgen -G "$LAB_RESULTS_DIR/*-$1" | tail -n 1; }
has_row() { grep -q -- "$2," "$LAB_RESULTS_DIR"/*-"$1"/trials.csv 2>/dev/null; }
is_complete() { grep -q '"status": "complete"' "$LAB_RESULTS_DIR"/*-"$1"/manifest.json; }

# at PHASE NAME NUMBER: wait for it, for the fault of that number. It is looked for every 0.2 s.
at() {
  # shellcheck disable=SC2034  # of within
  local waited_for=$run_pid
  case $1 in
    warm-up) within 120 exists "*-$2/warm-up" && sleep 1 ;;
    window) plant trial "${trials[$3]}" ;;
    between) within 120 has_row "$2" "${trials[0]}" ;;
    report) within 200 has_row "$2" "${trials[2]}" ;;
  esac
}

# of_part PART: its container. The process of the host's hands has the name of its folder.
of_part() {
  case $1 in
    driver) drivers ;;
    agent) container_of loadgen ;;
    server) container_of "$faulty" ;;
    *) container_of "$1" ;;
  esac
}
hands() {
  local one
  for one in ".lab/$COMPOSE_PROJECT_NAME/changed"/*/; do if kill -0 "$(basename "$one")" 2>/dev/null; then basename "$one"; fi; done
}
pid_of() { docker inspect --format '{{.State.Pid}}' "$(of_part "$1")"; }
# Not `docker kill`: what that ends the engine takes for stopped on purpose. Who is not root needs a container for it.
kill_9() {
  kill -KILL "$1" 2>/dev/null ||
    docker run --rm --pid host --network none --cap-drop ALL --cap-add KILL --user 0 "$test_image" kill -KILL "$1"
}

# fill PART: its memory, by a file that cannot be given back, up to a limit that is soon reached. The kernel then ends
# what has most of it: the part itself.
fill_memory() {
  local one used had
  one=$(of_part "$1")
  had=$(docker inspect --format '{{.HostConfig.Memory}} {{.HostConfig.MemorySwap}}' "$one")
  used=$(docker exec "$one" sh -c 'cat /sys/fs/cgroup/memory.current 2>/dev/null || cat /sys/fs/cgroup/memory/memory.usage_in_bytes')
  printf 'it has %d bytes, of %s\n' "$used" "$had"
  docker update --memory $((used + 33554432)) --memory-swap $((used + 33554432)) "$one" || return 1
  docker exec "$one" dd if=/dev/zero of=/tmp/filled bs=1M count=220
  if [[ $1 == server ]]; then docker update --memory "${had% *}" --memory-swap "${had#* }" "$one"; fi
}

# checkout FOLDER: this one once more, as its files are now.
checkout() { rm -rf "$1" && mkdir -p "$1" && { git ls-files -z && git ls-files -z --others --exclude-standard; } | tar --create --null --files-from - | tar --extract --directory "$1"; }

# prepare FAULT: what there must be before the run. With a disk of its own the run's folder is another: $LAB_RESULTS_DIR.
# A stepped clock is the driver's alone: no container can set this machine's (Debian's libfaketime).
# shellcheck disable=SC1090  # written by make
prepare() {
  local to
  case $1 in
    disk-full)
      LAB_RESULTS_DIR+=/small
      mkdir -p "$LAB_RESULTS_DIR" && mount -t tmpfs -o size=40m,mode=1777 faults "$LAB_RESULTS_DIR"
      ;;
    clock-*)
      to=$PWD/$logs/clock && mkdir -p "$to" && cp ".lab/$COMPOSE_PROJECT_NAME/env" "$logs/env-before" &&
        docker build --quiet --tag concurrency-lab/test-clock:local - <<<"FROM $(present_image DEBIAN_IMAGE)
RUN apt-get update && apt-get install -y --no-install-recommends libfaketime && rm -rf /var/lib/apt/lists/*" &&
        docker run --rm --network none concurrency-lab/test-clock:local sh -c 'cat /usr/lib/*/faketime/libfaketimeMT.so.1' >"$to/faketime.so" &&
        printf '+0\n' >"$to/now" &&
        printf 'services: {driver: {volumes: ["%s:/clock:ro"], environment: {LD_PRELOAD: /clock/faketime.so, FAKETIME_TIMESTAMP_FILE: /clock/now, FAKETIME_NO_CACHE: "1", FAKETIME_DONT_FAKE_MONOTONIC: "1"}}}\n' "$to" >"$to/compose.yaml" &&
        printf 'COMPOSE_FILE=%q\n' "$(. ".lab/$COMPOSE_PROJECT_NAME/env" && printf '%s' "$COMPOSE_FILE"):$to/compose.yaml" >>".lab/$COMPOSE_PROJECT_NAME/env"
      ;;
    two-checkouts) checkout "$logs/second" ;;
  esac
}

# inject FAULT NAME
inject() {
  local one
  case $1 in
    kill-hands) kill_9 "$(hands)" ;;
    stop-hands) one=$(hands) && kill -STOP "$one" && sleep 5 && kill -CONT "$one" ;;
    kill-engine) kill -KILL "$(pidof dockerd)" && sleep 2 && host/engine.sh ;;
    stop-engine) one=$(pidof dockerd) && kill -STOP "$one" && sleep 5 && kill -CONT "$one" ;;
    kill-*) kill_9 "$(pid_of "${1#kill-}")" ;;
    # All processes of its container.
    stop-*) one=$(of_part "${1#stop-}") && docker pause "$one" && sleep 5 && docker unpause "$one" ;;
    ctrl-c) kill -INT -- "-$run_pid" ;;
    ctrl-c-twice) kill -INT -- "-$run_pid" && sleep 1 && { kill -INT -- "-$run_pid" 2>/dev/null || true; } ;;
    disk-full) dd if=/dev/zero of="$LAB_RESULTS_DIR/filled" bs=64k 2>/dev/null || true ;;
    read-only) chmod -R a-w "$(run_dir "$2")" ;;
    clock-forward) printf '+3600\n' >"$logs/clock/now" ;;
    clock-back) printf -- '-3600\n' >"$logs/clock/now" ;;
    memory-*) fill_memory "${1#memory-}" ;;
    two-checkouts)
      refuses 'another measurement is under way' env -C "$logs/second" make up &&
        refuses "in the lab $COMPOSE_PROJECT_NAME of this machine" env -C "$logs/second" "COMPOSE_PROJECT_NAME=$COMPOSE_PROJECT_NAME-two" make up
      ;;
    two-makes)
      refuses 'another measurement is under way' make up SERVER_POOL_SIZE=150 &&
        refuses 'a measurement is under way' make down
      ;;
    *) printf 'nobody knows how to inject %s\n' "$1" && return 1 ;;
  esac
}

# take_back FAULT NAME: once the run has ended, what the fault itself has changed.
take_back() {
  case $1 in
    # An engine that was killed ends all containers as it starts, and starts none of them (seen with 26.1.5).
    kill-engine) make up ;;
    disk-full) rm -f "$LAB_RESULTS_DIR/filled" ;;
    read-only) chmod -R u+w "$(run_dir "$2")" ;;
    clock-*) cp "$logs/env-before" ".lab/$COMPOSE_PROJECT_NAME/env" ;;
    two-checkouts) refuses 'a lab of this name is there' env -C "$logs/second" make up && rm -rf "$logs/second" ;;
  esac
}

# lab_now: what a run, or a fault, may leave otherwise than it was. A limit to all CPUs is none.
lab_now() {
  docker ps --all --quiet --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME" | xargs docker inspect --format \
    '{{.Name}} {{.Image}} {{.State.Status}} {{with .State.Health}}{{.Status}}{{end}} cpus={{.HostConfig.NanoCpus}} memory={{.HostConfig.Memory}},{{.HostConfig.MemorySwap}}' |
    sed "s/ cpus=$(docker info --format '{{.NCPU}}')000000000 / cpus=0 /" | sort
  plant found
  find ".lab/$COMPOSE_PROJECT_NAME/changed" -mindepth 1 -maxdepth 1 2>/dev/null
  compgen -G ".lab/$COMPOSE_PROJECT_NAME/driver.*"
  compgen -G "$LAB_RESULTS_DIR/.changed.*"
  return 0
}
all_healthy() { ! docker ps --all --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME" --format '{{.Status}}' | grep -qv '(healthy)$'; }
as_found() { lab_now >"$logs/lab-now" 2>/dev/null && cmp -s "$logs/lab-found" "$logs/lab-now"; }

# still_kept: the rows that were there before the last fault, $kept.
still_kept() {
  if [[ -z $kept || $(head -c "${#kept}" "$(run_dir "$name")/trials.csv") == "$kept" ]]; then return 0; fi
  printf 'rows that were there have changed\n'
  return 1
}

# cell FAULT[+FAULT…] PHASE AFTER HIT[|HIT…]
cell() {
  local fault=$1 phase=$2 after=$3 hit=$4 name=cell-${1/*+*/parts}-$2 start=$SECONDS status=0 run_pid="" kept="" words trials server next=""
  local faults number one
  local LAB_RESULTS_DIR=$LAB_RESULTS_DIR
  IFS=+ read -ra faults <<<"$fault"
  words_of "$fault"
  rm -rf "$LAB_RESULTS_DIR"/*-"$name" "$LAB_RESULTS_DIR"/*-"$name-next"
  lab_now >"$logs/lab-found"
  prepare "$fault" || status=1
  if [[ $phase == warm-up ]]; then plant ask POST "$server" /restart && sleep 1 && within 60 all_healthy || status=1; fi
  begin "$name" "${words[@]}"
  for ((number = 1; number <= ${#faults[@]}; number++)); do
    one=${faults[number - 1]}
    if at "$phase" "$name" "$number" && kill -0 "$run_pid"; then
      still_kept || status=1
      kept=$(cat "$LAB_RESULTS_DIR"/*-"$name"/trials.csv 2>/dev/null)
      printf '%s at: %s, with %d rows\n' "$one" "$phase" "$(rows "$name")"
      inject "$one" "$name" || status=1
    else
      printf '%s: the run had ended before: nothing was tried\n' "$one"
      status=1
    fi
  done
  ended || status=1
  take_back "$fault" "$name" || status=1
  # An engine takes a container for unhealthy from the moment that it is paused, until it looks at it again: after two minutes.
  within 150 all_healthy || status=1
  if is_complete "$name"; then
    if [[ $after == ends ]]; then printf 'it was to end the run, which is complete\n' && status=1; fi
    # Its report may be what was hit.
    if [[ ! -s $(run_dir "$name")/report.html ]]; then LAB_WORDS="RUN=$(basename "$(run_dir "$name")")" host/lab.sh stored report || status=1; fi
  else
    if [[ $after == goes-on ]]; then printf 'the run was to go on, and ended\n' && status=1; fi
    ran drive run RESUME="$(basename "$(run_dir "$name")")" || status=1
  fi
  # After the last trial nothing of this run tells whether the lab works; and what killed hands left changed the next run puts back.
  # And as long as the driver's clock is another, no trial is valid.
  if [[ $phase == report || $fault == *-hands || $fault == clock-* ]]; then
    next=$name-next
    ran drive bench SERVER="$faulty" CONC=40 MODE=closed DURATION=3s WARMUP=1s ENGINE=pacer NAME="$next" || status=1
  fi
  within 60 as_found || { diff "$logs/lab-found" "$logs/lab-now" && status=1; status=1; }
  still_kept || status=1
  in_tests . env PYTHONPATH=loadgen/tests python .ci/cells.py judged "$LAB_RESULTS_DIR" "$name" "$(IFS=,; printf '%s' "${trials[*]}")" "$hit" ${next:+"$next"} || status=1
  if [[ $fault == disk-full ]]; then umount "$LAB_RESULTS_DIR" && rmdir "$LAB_RESULTS_DIR"; fi
  if ((status == 0)); then
    for one in "${faults[@]}"; do printf '%s,%s,%s,%d\n' "$one" "$phase" "$(date -u +%F)" $((SECONDS - start)) >>"$logs/cells.csv"; done
  fi
  return "$status"
}

# untried FAULT: why a cell of it cannot be run here; nothing where it can.
untried() {
  case $1 in
    *-engine) if [[ ${FAULTS_ENGINE-} != yes ]]; then printf 'FAULTS_ENGINE=yes where nobody else uses this engine'; fi ;;
    disk-full) if [[ $(id -u) != 0 || $(uname -s) != Linux ]]; then printf 'a small disk needs root'; fi ;;
  esac
}

# cells full | all: one step each. Those that steps of the smoke test plant already are not repeated in the full suite.
cells() {
  local fault phase in after hit why wanted=" ${CELLS-} "
  while IFS=, read -r fault phase in after hit; do
    if [[ $fault == fault ]] || [[ $1 == full && $in != full ]] || [[ $1 == all && $in == full && -z ${CELLS-} ]]; then continue; fi
    if [[ -n ${CELLS-} && " $CELLS " != *" $fault/$phase "* ]]; then continue; fi
    wanted=${wanted/ $fault\/$phase / }
    why=$(untried "$fault")
    if [[ -n $why ]]; then printf 'untried cell-%s-%s: %s\n' "$fault" "$phase" "$why"; continue; fi
    step "cell-$fault-$phase" one cell "$fault" "$phase" "$after" "$hit"
  done <.ci/cells.csv
  if [[ -n ${wanted// /} ]]; then step cells-named one refused_cells "$wanted" "$1"; fi
}
refused_cells() {
  printf 'no cells of this suite (%s):%s\n' "$2" "$1"
  return 1
}
