# shellcheck shell=bash
# The smoke test, sourced by test.sh: the lab's own verbs on real containers. It asserts
# plumbing, never speed. What needs looking inside the lab is in loadgen/tests/smoke/.
#
# Its steps are in parts. Each begins with a lab that is up and idle, and leaves one. Where bringing
# the lab up is not the point, the driver is started without it (drive): that spares a look at every
# image and container.

: "${test_image:?test.sh says which}" "${logs:?test.sh says where}" "${suite:?test.sh says which}" "${smoke[0]:?test.sh says which parts}"
export GRAFANA_PORT=23000 PROMETHEUS_PORT=29090 TOXIPROXY_PORT=28474 LOADGEN_PORT=29464
export LAB_RESULTS_DIR=./$logs/results
# listed LIST: the servers of prometheus/servers/LIST.json, with commas.
listed() { tr -d ' \n' <"prometheus/servers/$1.json" | sed 's/.*\["\(.*\)"\].*/\1/; s/","/,/g'; }
# Nothing here asserts speed, and most of its time was the JIT compiler's: its first stage alone is done
# in half of that. Experiments at their own length have the servers' own flags.
SERVER_JVM_FLAGS="$(setting SERVER_JVM_FLAGS) -XX:TieredStopAtLevel=1"
export SERVER_JVM_FLAGS
# Who is benched in the core: one of each kind of thread. The contract's tests have all models.
benched=fixed-pool,virtual-threads,event-loop
if [[ $suite != quick ]]; then benched=$(listed core); fi

# drive VERB WORDS…: a verb of the driver, on the lab that is up.
drive() { LAB_WORDS="${*:2}" host/lab.sh drive "$1"; }

# refuses TEXT COMMAND…: it must exit non-zero with one line that holds TEXT.
refuses() {
  local text=$1 out status=0
  shift
  out=$("$@" 2>&1) || status=$?
  out=$(grep -v '^make: \*\*\*\|^make\[' <<<"$out")
  printf '%s\nexit status %d\n' "$out" "$status"
  ((status != 0)) && [[ $(wc -l <<<"$out") == 1 ]] && grep -q -- "$text" <<<"$out"
}

# ran COMMAND…: it measured. Where a busy machine left no valid trial, the reasons are judged inside.
ran() {
  local status=0
  "$@" 2>&1 | tee "$logs/ran.txt"
  status=${PIPESTATUS[0]}
  ((status == 0)) || grep -q 'none of the [0-9]* trials is valid' "$logs/ran.txt"
}

# within SECONDS COMMAND…: it comes true in time, and before the process $waited_for ends, if that is
# set. The seconds are patience, not a measure.
within() {
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    if ((SECONDS >= until)) || { [[ -n ${waited_for-} ]] && ! kill -0 "$waited_for" 2>/dev/null; }; then printf 'not in time: %s\n' "$*"; return 1; fi
    sleep 0.2
  done
}
exists() { compgen -G "$LAB_RESULTS_DIR/$1" >/dev/null; }
# rows NAME: how many trials the run of that name has measured.
rows() { tail -q -n +2 "$LAB_RESULTS_DIR"/*-"$1"/trials.csv 2>/dev/null | wc -l; }
has_rows() { (($(rows "$1") >= $2)); }
drivers() { docker ps -q --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME" --filter label=com.docker.compose.service=driver; }
no_driver() { [[ -z $(drivers) ]]; }

# Ctrl-C in the second trial: the first trial's row stays, no load goes on.
interrupted() {
  local pid status=0 waited_for=""
  # A job in the background of a script ignores SIGINT unless told otherwise.
  env --default-signal=INT setsid make bench SERVER=fixed-pool,event-loop CONC=20 DURATION=3s WARMUP=2s ENGINE=pacer NAME=interrupted &
  pid=$! waited_for=$!
  within 300 has_rows interrupted 1 && within 120 exists '*-interrupted/raw/02-*'
  # For smoke-containers, while there is a driver, too.
  docker ps -q --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME" | xargs docker inspect >"$logs/containers.json"
  waited_for=""
  kill -INT -- "-$pid"
  within 60 no_driver || { printf 'its load goes on\n'; status=1; }
  if wait "$pid"; then printf 'it exited with 0\n'; status=1; fi
  printf 'rows %d\n' "$(rows interrupted)"
  ((status == 0)) && has_rows interrupted 1 && grep -q '"status": "interrupted"' "$LAB_RESULTS_DIR"/*-interrupted/manifest.json
}

# Nothing else is measured beside an experiment. kill -9 of the driver in the middle of a trial, then
# RESUME: no trial is lost or repeated, and what was measured before is what is there afterwards.
resumed() {
  local pid run before trials alone=no waited_for=""
  drive run EXP=sweep SERVER=fixed-pool LAUNCHES=0 CONC=20,30,40,50 MODE=closed DURATION=4s WARMUP=2s ENGINE=pacer NAME=resumed &
  pid=$! waited_for=$!
  within 300 has_rows resumed 1
  refuses 'another measurement is under way' make bench CONC=5 NAME=beside &&
    refuses 'another measurement is under way' make up SERVER_POOL_SIZE=150 &&
    refuses 'a measurement is under way' make down && alone=yes
  within 300 has_rows resumed 2 && within 120 exists '*-resumed/raw/03-*'
  docker kill --signal KILL "$(drivers)"
  wait "$pid"
  run=$(cd "$LAB_RESULTS_DIR" && echo *-resumed)
  before=$(<"$LAB_RESULTS_DIR/$run/trials.csv")
  # The Python tests run beside this one: its trials may all be invalid.
  ran make run RESUME="$run" || return 1
  trials=$(tail -n +2 "$LAB_RESULTS_DIR/$run/trials.csv" | cut -d, -f2 | sort)
  printf 'killed after %d rows; at the end:\n%s\n' "$(($(wc -l <<<"$before") - 1))" "$trials"
  # A busy machine has some measured again.
  [[ $alone == yes && $(grep -vc -- '-again$' <<<"$trials") == 4 && -z $(uniq -d <<<"$trials") ]] &&
    [[ $(head -n "$(wc -l <<<"$before")" "$LAB_RESULTS_DIR/$run/trials.csv") == "$before" ]] &&
    grep -q '"status": "complete"' "$LAB_RESULTS_DIR/$run/manifest.json" || return 1
  # Nothing is left to do, and nothing is done.
  if drive run RESUME="$run" >"$logs/resumed-again.log" 2>&1; then return 1; fi
  grep 'nothing is left' "$logs/resumed-again.log"
}

# The trials of a search, and how long it takes at most: said, and not measured.
planned() {
  local before
  before=$(ls "$LAB_RESULTS_DIR")
  make capacity SERVER=fixed-pool OBJECTIVE="p95 < 0.3 s, errors<2%" PLAN=yes >"$logs/planned.log" || return 1
  grep 'at most [0-9]* trials (more if .*, about [0-9hms]* in all' "$logs/planned.log" && grep '^001-fixed-pool-open-c187: .* 500 req/s' "$logs/planned.log" &&
    [[ $(ls "$LAB_RESULTS_DIR") == "$before" ]]
}

# judged_again NAME: from raw data, without the lab: the same bytes.
judged_again() {
  local run before
  run=$(cd "$LAB_RESULTS_DIR" && echo *-"$1")
  before=$(cd "$LAB_RESULTS_DIR/$run" && sha256sum ./*.*)
  rm "$LAB_RESULTS_DIR/$run"/{trials.csv,trials.jsonl,REPORT.md,report.html}
  make report RUN="$run" && (cd "$LAB_RESULTS_DIR/$run" && sha256sum --check --quiet <<<"$before")
}

# Toxics by the clock of a trial: they do not make it invalid, and none is left.
scripted() {
  drive run EXP=faults SCALE=0.2 LAUNCHES=0 SERVER=event-loop CONC=100 RATE=250 WARMUP=2s NAME=scripted &&
    grep ',true,' "$LAB_RESULTS_DIR"/*-scripted/trials.csv && make toxics
}

# Every planted bottleneck once; what the verdict said of each is judged inside. Afterwards the
# lab is as it was: the same limits and knobs for all. A small heap takes most of a minute to warm up, and its window is never
# valid: its verdict is that of a stored run (loadgen/tests/app/stored), and SUITE=long plants it.
bottlenecks() {
  local name limit cases
  local plant=(drive run EXP=bottlenecks PATIENCE=30s DURATION=5s WARMUP=2s ENGINE=pacer) missed
  cases=$(sed -n 's/^name = "\(.*\)"$/\1/p' experiments/bottlenecks.toml | grep -vx small-heap | paste -sd, -)
  "${plant[@]}" CASE="$cases" NAME=bottlenecks || return 1
  missed=$(in_lab env PYTHONPATH=tests python -m support.planted_run bottlenecks) || return 1
  printf 'missed: %s\n' "${missed:-none}"
  # One case alone may have no valid trial: its window is short.
  if [[ -n $missed ]]; then ran "${plant[@]}" CASE="$missed" NAME=bottlenecks-again || return 1; fi
  for name in virtual-threads event-loop; do
    limit=$(docker inspect --format '{{range .HostConfig.Ulimits}}{{.Hard}}{{end}} {{.Config.Env}}' "$COMPOSE_PROJECT_NAME-$name-1")
    printf '%s: %s\n' "$name" "$limit"
    [[ $limit != 300\ * && $limit != *-Xmx16m* && $limit != *LAB_BACKLOG=1\ * ]] || return 1
  done
  make toxics | tee /dev/stderr | grep -q 'none' && ! compgen -G ".lab/$COMPOSE_PROJECT_NAME/driver.*"
}

# A verdict put to the test: twice the threads are twice the goodput of a pool that is the limit. So
# small a pool that any machine does twice its work. One pair is no proof (that takes six), but the
# whole way there.
explained() {
  local status=0
  plant ask PATCH fixed-pool /settings '{"pool_size": 40}' || return 1
  drive explain PATIENCE=30s CONC=100 SERVER=fixed-pool STEPS=1 PAIRS=1 DURATION=4s WARMUP=2s ENGINE=pacer NAME=explained || status=1
  plant ask PATCH fixed-pool /settings '{"pool_size": 200}' && ((status == 0)) &&
    grep -E 'step 1, worker pool .*pool_size 40 → 80; goodput ×(1\.[6-9]|2\.[0-4])' "$LAB_RESULTS_DIR"/*-explained/REPORT.md
}

# The lanes of frameworks measured once, on the JVM that has just been started: its profile comes up as one
# of its servers is named, and then stays. All containers are made anew with a setting of make's line.
anew=SERVER_POOL_SIZE=150
frameworks() {
  make run EXP=frameworks SERVER="$(listed frameworks)" "$anew" LAUNCHES=0 ROUTE=/downstream CONC=100 MODE=closed SCALE=0.2 WARMUP=1s \
    ENGINE=pacer NAME=frameworks &&
    grep -q '^COMPOSE_PROFILES=.*frameworks' ".lab/$COMPOSE_PROJECT_NAME/env" && make doctor
}

# What only runs when it is named: the frameworks as they ship, and models without a library on JDK 21.
more() {
  ran make bench SERVER="$(listed more)" JDK=21 "$anew" CONC=100 MODE=closed DURATION=3s WARMUP=1s ENGINE=pacer NAME=more &&
    make up PROFILE=frameworks FRAMEWORK_DEFAULTS=shipped JDK=21 "$anew"
}

nothing_left() {
  local label=label=com.docker.compose.project=$COMPOSE_PROJECT_NAME left
  make down FORCE=yes && left=$(docker ps -aq --filter "$label" && docker network ls -q --filter "$label" && docker volume ls -q --filter "$label")
  printf 'left behind: %s\n' "${left:-nothing}"
  [[ -z $left ]]
}

# env_value NAME: what make told Compose.
# shellcheck disable=SC1090  # written by make
env_value() { (. ".lab/$COMPOSE_PROJECT_NAME/env" && printf '%s' "${!1}"); }

# in_lab COMMAND…: the tests' container inside the lab's network.
in_lab() {
  docker run --rm --network "${COMPOSE_PROJECT_NAME}_lab" --cap-drop ALL --read-only --tmpfs /tmp:exec,mode=1777 -e HOME=/tmp \
    -v "$PWD:/lab/repo:ro" -w /lab/repo/loadgen -e LAB_SMOKE_RESULTS="/lab/repo/${LAB_RESULTS_DIR#./}" \
    -e LAB_SMOKE_BENCHED="$benched" -e GRAFANA_ADMIN_PASSWORD="$(env_value GRAFANA_ADMIN_PASSWORD)" -e LAB_SECRET="$(env_value LAB_SECRET)" \
    "$test_image" "$@"
}
inside() { in_lab pytest -p no:cacheprovider -q "tests/smoke/$1"; }

. .ci/page.sh
. .ci/faults.sh
. .ci/cells.sh
. .ci/own-service.sh
. .ci/several.sh

# Somebody runs an image of the lab by hand: the container has the labels of its image.
by_hand() {
  docker run --detach --rm --network none --name "$COMPOSE_PROJECT_NAME-by-hand" --label "com.docker.compose.project=$COMPOSE_PROJECT_NAME" \
    --label com.docker.compose.service=fixed-pool "$test_image" sleep 3600
}

# Two servers of a bench as base and candidate: of one trial each nobody can tell, which is no pass.
untold() {
  local status=0
  ./lab gate BASE=latest:fixed-pool CANDIDATE=latest:virtual-threads || status=$?
  printf 'exit status %d\n' "$status"
  ((status == 3)) && exists '*-smoke/gates/*/gate.xml'
}

# A pipeline's step: the script of the GitHub action fails where the candidate is an image that needs more CPU.
# Beside that JVM something computes, for several times what so light a load costs. Six launches tell it.
regressed() {
  local status=0 out=$logs/regressed base=concurrency-lab/event-loop:$COMPOSE_PROJECT_NAME image=concurrency-lab/event-loop:regressed
  # What this checkout builds has no name of its own.
  docker tag "$base" "${base%:*}:base" && base=${base%:*}:base
  docker build --quiet --tag "$image" --build-arg BASE="$base" - <<'DOCKERFILE' || return 1
ARG BASE
FROM ${BASE}
USER root
RUN mv /lab/start.sh /lab/as-it-was.sh && chmod 755 /lab && printf '%s\n' '#!/bin/bash' \
  'while :; do for ((i = 0; i < 20000; i++)); do :; done; sleep 0.1; done &' 'exec /lab/as-it-was.sh' >/lab/start.sh && chmod 755 /lab/start.sh
USER 10001:10001
DOCKERFILE
  BASE=$base CANDIDATE=$image CANNOT_TELL=fail GITHUB_OUTPUT=$out.output GITHUB_STEP_SUMMARY=$out.md \
    WORDS="SERVER=event-loop CONC=20 DURATION=8s WARMUP=2s ENGINE=pacer NAME=regressed" \
    bash --noprofile --norc -eo pipefail -c "$(sed -n '/^ *run: |$/,$ s/^        //p' .github/actions/gate/action.yml)" || status=$?
  docker image rm "$image" "$base"
  printf 'exit status %d\n' "$status"
  ((status == 1)) && grep -x 'answer=worse' "$out.output" && grep 'cpu' "$out.md"
}

# Each way to start the JVM once: cold, with an AOT cache, warm; time and memory.
benchmarked() {
  make jmh JMH="SleepingTasks -f 1 -p tasks=400 -p sleepMs=20" &&
    grep -q '"lab.jmh.SleepingTasks.virtualThreadsAot"' "$LAB_RESULTS_DIR"/*-jmh/time.json &&
    grep -q '"heap.live"' "$LAB_RESULTS_DIR"/*-jmh/memory.json && [[ -s $(echo "$LAB_RESULTS_DIR"/*-jmh/host.json) ]]
}

# Servers measured, and what is seen of them.
part_core() {
  step smoke-by-hand one by_hand
  step smoke-bench one ran make bench SERVER="$benched" CONC=50 RATE=225 DURATION=4s WARMUP=2s NAME=smoke
  step smoke-results pytest inside test_results.py
  step smoke-observed pytest inside test_observed.py
  step smoke-from-inside one from_inside
  step smoke-by-hand-ended one docker rm -f "$COMPOSE_PROJECT_NAME-by-hand"
  # Grafana's image is in no package registry: its own test is for machines that could pull it.
  if docker image inspect "$(setting GRAFANA_IMAGE)" >/dev/null 2>&1; then
    step smoke-grafana pytest inside test_grafana.py
  else
    printf 'untried  smoke-grafana: its image is not here\n'
  fi
}
# That run compared; wrong words; toxics; Ctrl-C.
part_words() {
  step smoke-compare one make compare A=latest:fixed-pool B=latest:virtual-threads
  step smoke-gate one untold
  step smoke-compare-wrong one refuses 'nosuchrun' make compare A=nosuchrun B=latest
  step smoke-words-wrong one refuses 'CONC' make bench CONC=many
  step smoke-objective-wrong one refuses 'OBJECTIVE=fast' make capacity OBJECTIVE=fast
  step smoke-plan one planned
  step smoke-exp-wrong one refuses 'sweep' make run EXP=nosuch
  step smoke-toxic-wrong one refuses 'latency' make toxic TYPE=lateny LATENCY=300
  step smoke-toxic one make toxic TYPE=latency LATENCY=300
  step smoke-toxic-seen pytest inside test_toxic_in_force.py
  step smoke-toxics one make toxics
  step smoke-toxics-reset one make toxics-reset
  step smoke-toxic-gone pytest inside test_toxic_gone.py
  step smoke-page one page localhost 200
  step smoke-page-foreign one page evil.example 403
  step smoke-interrupted one interrupted
  step smoke-containers pytest inside test_containers.py
}
part_verbs() {
  step smoke-page-toxic one page_toxic
  step smoke-resumed one resumed
  # Of a server whose JVM nobody needs warm later.
  step smoke-density one make density CONC=100,200 LAUNCHES=1 SERVER=netty-virtual
  step smoke-density-report one make report
  step smoke-jmh one benchmarked
  step smoke-doctor one make doctor
  step smoke-profile-wrong one refuses 'allowed: frameworks' make bench PROFILE=framework CONC=10
}
# Each kind of experiment, made small; what they left is looked at inside. A search and two arms have
# fresh JVMs; the others take those that are warm. More connections than before are a warm-up of their own: they come last.
part_kinds() {
  step smoke-scripted one scripted
  step smoke-endured one ran drive run EXP=endurance SERVER=event-loop CONC=50 RATE=100 DURATION=280s SCALE=0.025 LAUNCHES=0 WARMUP=1s ENGINE=pacer NAME=endured
  step smoke-spiked one ran drive run EXP=spike SERVER=event-loop CONC=1000 RATE=220 SCALE=0.04 LAUNCHES=0 WARMUP=1s NAME=spiked
  step smoke-searched one drive run EXP=capacity PATIENCE=30s SERVER=fixed-pool LAUNCHES=1 DURATION=6s WIDTH=0.2 NAME=searched
  step smoke-launched one ran drive run EXP=aa SERVER=event-loop LAUNCHES=1 CONC=60 MODE=closed SCALE=0.2 WARMUP=1s ENGINE=pacer RECORD=cpu NAME=launched
  step smoke-kinds pytest inside test_kinds.py
  step smoke-recording pytest inside test_recording.py
  step smoke-explained one explained
}
part_planted() {
  step smoke-bottlenecks one bottlenecks
  step smoke-bottlenecks-named pytest inside test_bottlenecks.py
}
# What queueing theory says of a pool, beside what is measured: test_queueing.py has the oracle.
part_queueing() {
  step smoke-queueing one drive run EXP=truth PATIENCE=30s CASE=queue-05-closed,queue-2-closed,queue-09-open,queue-12-open DURATION=8s WARMUP=1s NAME=queueing
  step smoke-queueing-oracle pytest inside test_queueing.py
}
# A regression that is planted, in a pipeline's own script.
part_gated() { step smoke-regressed one regressed; }
part_faults() {
  step smoke-faults one planted
  step smoke-unequal one unequal
  step smoke-wrong-server one wrong_server
  step smoke-way-back one way_back
  step smoke-crowd pytest inside test_crowd.py
  step smoke-faults-caught pytest inside test_faults.py
}
# Faults at a phase of a run: some, and all of them.
part_cells() {
  # The agent last: it is what sees the others' moments.
  if [[ -z ${CELLS-} ]]; then
    step smoke-parts one cell kill-toxiproxy+kill-downstream+kill-agent window goes-on \
      'part-restarted part=toxiproxy|part-restarted part=downstream'
  fi
  cells full
}
part_all_cells() { cells all; }
part_own() {
  step smoke-target-wrong one refuses 'is not an address; allowed: http' make bench TARGET=ftp://x/ CONC=5
  step smoke-tomcat one tomcat
  step smoke-locked one locked
  step smoke-shop one shop
  step smoke-lifted one lifted
  step smoke-nginx one outside
  step smoke-own-service pytest inside test_own_service.py
  # Last: its `make up` takes Tomcat from Prometheus's targets, which the test before it asks for.
  step smoke-witness one witnessed
  step smoke-witness-agrees pytest inside test_witness.py
}
part_several() { several; }
part_frameworks() {
  step smoke-frameworks one frameworks
  step smoke-frameworks-measured pytest inside test_frameworks.py
  step smoke-more one more
  step smoke-more-asked pytest inside test_more.py
}
# Experiments at their own length, which SUITE=full has no time for; each is a part, so that it is not
# repeated where only a later one failed.
part_long_planted() { step long-planted one drive run EXP=bottlenecks NAME=long-planted; }
part_long_routes() {
  step long-routes one drive run EXP=routes SCALE=0.5 NAME=long-routes
  step long-demonstrations one drive run EXP=demonstrations SCALE=0.5 NAME=long-demonstrations
}
part_long_explained() { step long-explained one drive run EXP=next-bottleneck NAME=long-explained; }
part_long_own() {
  rm -rf "${LAB_RESULTS_DIR:?}"/*-own-*
  every_verb node-calls 60 60
  every_verb tomcat-calls 300 400
  services=boot every_verb boot 80 150
}
part_long_sweep() { step long-sweep one drive run EXP=sweep NAME=long-sweep; }
part_long_looked_at() { step long-looked-at pytest inside test_long.py; }

# The runs of each part, by name.
declare -A runs=(
  [core]=smoke [words]=interrupted [verbs]="page resumed" [planted]="bottlenecks bottlenecks-again" [faults]="faults unequal"
  [queueing]=queueing [gated]=regressed [kinds]="scripted searched spiked endured launched explained" [own]="tomcat locked shop lifted nginx witness" [several]=several [frameworks]=frameworks
  [long_planted]=long-planted [long_routes]=long-routes [long_explained]=long-explained [long_sweep]=long-sweep
)
some_wanted() {
  local one
  for one in "${smoke[@]}"; do if wanted "$one"; then return 0; fi; done
  return 1
}
# These parts accept invalid trials: they ask for a planted reason, or that a figure is possible. So the Python tests run beside
# them, and beside no other.
unjudged=(words verbs faults cells)
# shellcheck disable=SC2086  # names without spaces
without_figures() {
  local one
  for one in "${unjudged[@]}"; do if [[ " ${smoke[*]} " == *" $one "* ]]; then part "$one" ${runs[$one]-}; fi; done
}
in_python() { part python; }
smoke_test() {
  local one
  mkdir -p "$LAB_RESULTS_DIR"
  if step smoke-up one make up; then
    # shellcheck disable=SC2086  # names without spaces
    for one in "${smoke[@]}"; do
      if [[ $one == long_* && -n ${SERVER_JVM_FLAGS-} ]]; then
        unset SERVER_JVM_FLAGS
        step smoke-up-own-flags one make up
      fi
      if [[ $one == "${unjudged[0]}" ]]; then
        beside in_python without_figures
      elif [[ " ${unjudged[*]} " != *" $one "* ]]; then
        part "$one" ${runs[$one]-}
      fi
    done
  else
    part python
  fi
  step smoke-stopped one make down FORCE=yes
  for one in smoke resumed; do
    if exists "*-$one"; then step "smoke-report-$one" one judged_again "$one"; fi
  done
  step smoke-down one nothing_left
}
