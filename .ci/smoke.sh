# shellcheck shell=bash
# The smoke test, sourced by test.sh: the lab's own verbs on real containers. It asserts
# plumbing, never speed. What needs looking inside the lab is in loadgen/tests/smoke/.

: "${test_image:?test.sh says which}" "${logs:?test.sh says where}"
export GRAFANA_PORT=23000 PROMETHEUS_PORT=29090 TOXIPROXY_PORT=28474 LOADGEN_PORT=29464
export LAB_RESULTS_DIR=./.lab/test/results

# refuses TEXT COMMAND…: it must exit non-zero with one line that holds TEXT.
refuses() {
  local text=$1 out status=0
  shift
  out=$("$@" 2>&1) || status=$?
  out=$(grep -v '^make: \*\*\*\|^make\[' <<<"$out")
  printf '%s\nexit status %d\n' "$out" "$status"
  ((status != 0)) && [[ $(wc -l <<<"$out") == 1 ]] && grep -q -- "$text" <<<"$out"
}

# Ctrl-C in the second trial: the first trial's row stays, no load goes on.
interrupted() {
  local pid i rows
  # A job in the background of a script ignores SIGINT unless told otherwise.
  env --default-signal=INT setsid make bench SERVER=fixed-pool,virtual-threads CONC=20 DURATION=3s WARMUP=2s ENGINE=oha NAME=interrupted &
  pid=$!
  for ((i = 0; i < 120; i++)); do
    sleep 1
    rows=$(cat "$LAB_RESULTS_DIR"/*-interrupted/trials.csv 2>/dev/null | wc -l)
    if ((rows >= 2)); then break; fi
  done
  sleep 1
  kill -INT -- "-$pid"
  for ((i = 0; i < 20; i++)); do
    if [[ -z $(docker ps -q --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME" --filter label=com.docker.compose.oneoff=True) ]]; then break; fi
    sleep 1
  done
  wait "$pid"
  local status=$?
  printf 'rows %d, exit status %d, after %d s\n' "$rows" "$status" "$i"
  ((status != 0 && rows >= 2 && i < 20)) &&
    grep -q '"status": "interrupted"' "$LAB_RESULTS_DIR"/*-interrupted/manifest.json
}

# Nothing else is measured beside an experiment. kill -9 of the driver in the middle of it, then
# RESUME: no trial is lost or repeated, and what was measured before is what is there afterwards.
resumed() {
  local words=(SERVER="fixed-pool,virtual-threads" CONC="20,50" MODE=closed DURATION=4s WARMUP=2s ENGINE=oha NAME=resumed)
  local pid i run before rows=0 alone=no
  make run EXP=sweep "${words[@]}" &
  pid=$!
  for ((i = 0; i < 240; i++)); do
    sleep 0.5
    rows=$(cat "$LAB_RESULTS_DIR"/*-resumed/trials.csv 2>/dev/null | wc -l)
    if ((rows >= 3)); then break; fi
  done
  refuses 'another measurement is under way' make bench CONC=5 NAME=beside && alone=yes
  sleep 4
  docker kill --signal KILL "$(docker ps -q --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME" --filter label=com.docker.compose.service=driver)"
  wait "$pid"
  run=$(cd "$LAB_RESULTS_DIR" && echo *-resumed)
  before=$(<"$LAB_RESULTS_DIR/$run/trials.csv")
  make run RESUME="$run" || return 1
  rows=$(tail -n +2 "$LAB_RESULTS_DIR/$run/trials.csv" | cut -d, -f2 | sort -u | wc -l)
  printf 'killed after %d rows; %d different trials at the end\n' "$(($(wc -l <<<"$before") - 1))" "$rows"
  [[ $alone == yes ]] && ((rows == 4)) && [[ $(wc -l <"$LAB_RESULTS_DIR/$run/trials.csv") == 5 ]] &&
    [[ $(head -n "$(wc -l <<<"$before")" "$LAB_RESULTS_DIR/$run/trials.csv") == "$before" ]] &&
    grep -q '"status": "complete"' "$LAB_RESULTS_DIR/$run/manifest.json" || return 1
  # Nothing is left to do, and nothing is done.
  if make run RESUME="$run" >"$logs/resumed-again.log" 2>&1; then return 1; fi
  grep 'nothing is left' "$logs/resumed-again.log"
}

# Judged again from raw data, without the lab: the same bytes.
judged_again() {
  local run before
  run=$(cd "$LAB_RESULTS_DIR" && echo *-resumed)
  before=$(cd "$LAB_RESULTS_DIR/$run" && sha256sum ./*.*)
  rm "$LAB_RESULTS_DIR/$run"/{trials.csv,trials.jsonl,REPORT.md,report.html}
  make report RUN="$run" && (cd "$LAB_RESULTS_DIR/$run" && sha256sum --check --quiet <<<"$before")
}

# Toxics by the clock of a trial: they do not make it invalid, and none is left.
scripted() {
  make run EXP=faults SCALE=0.3 SERVER=virtual-threads CONC=100 RATE=250 NAME=scripted &&
    grep ',true,' "$LAB_RESULTS_DIR"/*-scripted/trials.csv && make toxics
}

# Every planted bottleneck once; what the verdict said of each is judged inside. Afterwards the
# lab is as it was: the same limits and knobs for all.
bottlenecks() {
  local name limit
  make run EXP=bottlenecks DURATION=5s WARMUP=2s ENGINE=oha NAME=bottlenecks || return 1
  for name in virtual-threads event-loop; do
    limit=$(docker inspect --format '{{range .HostConfig.Ulimits}}{{.Hard}}{{end}} {{.Config.Env}}' "$COMPOSE_PROJECT_NAME-$name-1")
    printf '%s: %s\n' "$name" "$limit"
    [[ $limit != 300\ * && $limit != *-Xmx40m* && $limit != *LAB_BACKLOG=1\ * ]] || return 1
  done
  make toxics | tee /dev/stderr | grep -q 'none' && [[ -z $(ls -A "$LAB_RESULTS_DIR/.host-changes") ]]
}

# A verdict put to the test: twice the threads are twice the goodput of a pool that is the limit.
# One pair is no proof (that takes six), but the whole way there.
explained() {
  make explain CONC=400 SERVER=fixed-pool STEPS=1 PAIRS=1 DURATION=4s WARMUP=2s ENGINE=oha NAME=explained &&
    grep -E 'step 1, worker pool .*pool_size 200 → 400 makes goodput ×(1\.[6-9]|2\.[0-4])' "$LAB_RESULTS_DIR"/*-explained/REPORT.md
}

# Every framework's lane measured once. Its profile comes up as one of its servers is named, and
# then stays.
frameworks() {
  local servers
  servers=$(tr -d ' \n' <prometheus/servers/frameworks.json | sed 's/.*\["\(.*\)"\].*/\1/; s/","/,/g')
  make run EXP=frameworks SERVER="$servers" ROUTE=/downstream CONC=20 MODE=closed SCALE=0.2 WARMUP=2s ENGINE=oha NAME=frameworks &&
    [[ -f .lab/$COMPOSE_PROJECT_NAME/servers/frameworks.json ]] && make doctor
}

# The other kinds, and fresh JVMs, with as little load as they go; what they left is looked at inside.
# Not through `make run`: the lab is up, and bringing it up again takes longer than a trial.
# kind WORDS: an experiment that users run, made small.
kind() { LAB_WORDS="$* WARMUP=1s" host/lab.sh drive run; }

# The control page, on 127.0.0.1, under its own name only.
page() {
  local name=$1 status=$2 line
  exec 3<>"/dev/tcp/127.0.0.1/$LOADGEN_PORT" || return 1
  printf 'GET / HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\n\r\n' "$name" "$LOADGEN_PORT" >&3
  read -r -t 10 line <&3
  exec 3>&-
  printf '%s: %s\n' "$name" "$line"
  [[ $line == *" $status "* ]]
}

# within SECONDS COMMAND…: it comes true in time.
within() {
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    if ((SECONDS >= until)); then printf 'not in time: %s\n' "$*"; return 1; fi
    sleep 0.5
  done
}
# ask METHOD PATH [JSON]: the page's API, as its own script asks it; status line, headers and answer.
ask() {
  local body=${3-}
  exec 3<>"/dev/tcp/127.0.0.1/$LOADGEN_PORT" || return 1
  printf '%s %s HTTP/1.1\r\nHost: localhost:%s\r\nConnection: close\r\n' "$1" "$2" "$LOADGEN_PORT" >&3
  printf 'Lab-Control: 1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' "${#body}" "$body" >&3
  timeout 20 cat <&3
  exec 3>&-
}
# changes METHOD PATH JSON: it is done.
changes() {
  local out
  out=$(ask "$@")
  printf '%s\n' "$*" "$out"
  [[ $out == "HTTP/1.1 2"* ]]
}
shown() { [[ $(ask GET /api/live) == *"$1"* ]]; }
# The p95 that clients of a server meet, as the page shows it, is at least so many seconds.
slow() {
  local p95
  p95=$(ask GET /api/live | sed -n "s/.*\"$1\":{\([^}]*\)}.*/\1/p" | sed -n 's/.*"client_p95_s":\([0-9.]*\).*/\1/p')
  printf 'client p95 of %s: %s s\n' "$1" "${p95:-none}"
  awk -v p95="${p95:-0}" -v least="$2" 'BEGIN {exit !(p95 >= least)}'
}
has_rows() { (($(cat "$LAB_RESULTS_DIR"/*-page/trials.csv 2>/dev/null | wc -l) > $1)); }

# A bench of the page: a toxic that is put in force there is in its live p95, and Stop keeps what
# was measured.
page_bench() {
  local status=0 bench='"SERVER": "fixed-pool", "CONC": "20,30,40", "MODE": "closed", "ENGINE": "oha", "NAME": "page"'
  changes POST /api/bench "{\"words\": {$bench, \"DURATION\": \"3s\", \"WARMUP\": \"1s\"}}" || return 1
  within 60 shown '"trial":{' && changes POST /api/toxics '{"words": {"TYPE": "latency", "LATENCY": "300"}}' &&
    within 15 slow fixed-pool 0.45 && within 15 has_rows 1 || status=1
  changes DELETE /api/bench '{}' || status=1
  within 20 shown '"running":false' || status=1
  changes POST /api/toxics/reset '{}' || status=1
  ((status == 0)) && shown '"status":130' && has_rows 1 && ! has_rows 3 &&
    grep -q '"status": "interrupted"' "$LAB_RESULTS_DIR"/*-page/manifest.json
}

nothing_left() {
  local label=label=com.docker.compose.project=$COMPOSE_PROJECT_NAME left
  make down && left=$(docker ps -aq --filter "$label" && docker network ls -q --filter "$label" && docker volume ls -q --filter "$label")
  printf 'left behind: %s\n' "${left:-nothing}"
  [[ -z $left ]]
}

# in_lab COMMAND…: the tests' container inside the lab's network.
# shellcheck disable=SC1090  # written by make
in_lab() {
  docker run --rm --network "${COMPOSE_PROJECT_NAME}_lab" --cap-drop ALL --read-only --tmpfs /tmp:exec,mode=1777 -e HOME=/tmp \
    -v "$PWD:/lab/repo:ro" -w /lab/repo/loadgen -e LAB_SMOKE_RESULTS="/lab/repo/${LAB_RESULTS_DIR#./}" \
    -e LAB_PROMETHEUS_URL=http://prometheus:9090 -e LAB_TOXIPROXY_URL=http://toxiproxy:8474 \
    -e LAB_AGENT_URL=http://loadgen:9464 -e GRAFANA_ADMIN_PASSWORD="$(. ".lab/$COMPOSE_PROJECT_NAME/env"; printf '%s' "$GRAFANA_ADMIN_PASSWORD")" \
    "$test_image" "$@"
}
inside() { in_lab pytest -p no:cacheprovider -q "tests/smoke/$1"; }

mkdir -p "$LAB_RESULTS_DIR"
if step smoke-up one make up; then
  step smoke-bench one make bench CONC=50 DURATION=5s NAME=smoke
  step smoke-results pytest inside test_results.py
  step smoke-observed pytest inside test_observed.py
  # Grafana's image is in no package registry: its own test is for machines that could pull it.
  if docker image inspect "$(setting GRAFANA_IMAGE)" >/dev/null 2>&1; then
    step smoke-grafana pytest inside test_grafana.py
  fi
  step smoke-toxic-wrong one refuses 'latency' make toxic TYPE=lateny LATENCY=300
  step smoke-words-wrong one refuses 'CONC' make bench CONC=many
  step smoke-toxic one make toxic TYPE=latency LATENCY=300
  step smoke-toxic-seen pytest inside test_toxic_in_force.py
  step smoke-toxics one make toxics
  step smoke-toxics-reset one make toxics-reset
  step smoke-toxic-gone pytest inside test_toxic_gone.py
  step smoke-page one page localhost 200
  step smoke-page-foreign one page evil.example 403
  step smoke-page-bench one page_bench
  step smoke-interrupted one interrupted
  step smoke-scripted one scripted
  step smoke-resumed one resumed
  step smoke-compare one make compare A=latest:fixed-pool B=latest:virtual-threads
  step smoke-compare-wrong one refuses 'nosuchrun' make compare A=nosuchrun B=latest
  step smoke-exp-wrong one refuses 'sweep' make run EXP=nosuch
  step smoke-bottlenecks one bottlenecks
  step smoke-bottlenecks-named pytest inside test_bottlenecks.py
  step smoke-explained one explained
  step smoke-searched one kind EXP=stress SERVER=fixed-pool MODE=closed DURATION=1s ENGINE=oha NAME=searched
  step smoke-spiked one kind EXP=spike SERVER=event-loop CONC=1000 RATE=220 SCALE=0.04 NAME=spiked
  step smoke-endured one kind EXP=endurance SERVER=event-loop CONC=50 RATE=100 DURATION=11m SCALE=0.01 ENGINE=oha NAME=endured
  step smoke-launched one kind EXP=aa SERVER=event-loop LAUNCHES=2 CONC=60 MODE=closed SCALE=0.2 ENGINE=oha NAME=launched
  step smoke-kinds pytest inside test_kinds.py
  . .ci/faults.sh
  step smoke-faults one planted
  step smoke-unequal one unequal
  step smoke-wrong-server one wrong_server
  step smoke-faults-caught pytest inside test_faults.py
  step smoke-density one make density CONNECTIONS=100 LAUNCHES=1 SERVER=event-loop
  step smoke-density-report one make report
  step smoke-executors-wrong one refuses 'LAUNCHES' make executors LAUNCHES=x
  step smoke-executors one make executors LAUNCHES=1 TASKS=400 SLEEP=20ms
  . .ci/own-service.sh
  step smoke-target-wrong one refuses 'TARGET=https://x/ is not allowed' make bench TARGET=https://x/ CONC=5
  step smoke-tomcat one tomcat
  step smoke-nginx one outside
  step smoke-own-service pytest inside test_own_service.py
  step smoke-doctor one make doctor
  step smoke-profile-wrong one refuses 'allowed: frameworks' make bench PROFILE=framework CONC=10
  step smoke-frameworks one frameworks
  step smoke-frameworks-measured pytest inside test_frameworks.py
fi
step smoke-stopped one make down
step smoke-report one judged_again
step smoke-down one nothing_left
