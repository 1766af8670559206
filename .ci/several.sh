# shellcheck shell=bash
# A lab on several machines, sourced by smoke.sh: three engines on this one (.ci/three-engines.sh) and, beside the lab of
# the smoke test, one over all of them. A bench whose driver is killed and which goes on, a toxic, and a way down that leaves
# nothing on any node. loadgen/tests/smoke/test_several.py looks at what came home. Only root can make the engines.

: "${COMPOSE_PROJECT_NAME:?}" "${LAB_RESULTS_DIR:?}" "${logs:?}" "${suite:?}"

# there COMMAND…: of the lab on several machines.
there() { local -x COMPOSE_PROJECT_NAME=${COMPOSE_PROJECT_NAME%-there}-there; "$@"; }
# at_node NAME WORD…: docker, at its engine.
at_node() { docker -H "unix://$PWD/.lab/three-engines/$1/run/docker.sock" "${@:2}"; }

# A suite that was ended has left some. Those that somebody put up by hand may have runs that are not home yet.
engines() {
  if [[ -e .lab/three-engines && ! -e .lab/three-engines/of-suite ]]; then printf 'three engines are up that no suite put up: .ci/three-engines.sh down\n'; return 1; fi
  .ci/three-engines.sh down && rm -rf ".lab/$COMPOSE_PROJECT_NAME-there/several" && .ci/three-engines.sh up && : >.lab/three-engines/of-suite
}

driver_there() { at_node load ps -q --filter label=com.docker.compose.service=driver; }
# agent_there WORD…: a command in the agent's container.
agent_there() { at_node load exec "$(at_node load ps -q --filter label=com.docker.compose.service=loadgen)" "$@"; }
# has_row_there: the second trial of the run is under way, and the first one has a row.
has_row_there() {
  agent_there sh -c 'cd /lab/results && grep -q closed *-several/trials.csv && ls -d *-several/raw/02-*' >/dev/null 2>&1
}

# kill -9 of the driver in the second trial: the first one's row comes home. Then RESUME, on the run that is there.
bench_there() {
  local pid run before trials waited_for=""
  drive bench SERVER=fixed-pool CONC=50 RATE=225 DURATION=3s WARMUP=2s ENGINE=pacer NAME=several &
  # shellcheck disable=SC2034  # of within
  pid=$! waited_for=$!
  within 200 has_row_there && at_node load kill --signal KILL "$(driver_there)"
  if wait "$pid"; then printf 'its driver was killed, and it exited with 0\n'; return 1; fi
  run=$(cd "$LAB_RESULTS_DIR" && echo *-several)
  before=$(<"$LAB_RESULTS_DIR/$run/trials.csv") || return 1
  printf 'killed after %d rows\n' "$(rows several)"
  ran drive run RESUME="$run" || return 1
  trials=$(tail -n +2 "$LAB_RESULTS_DIR/$run/trials.csv" | cut -d, -f2 | sort)
  printf 'at the end:\n%s\n' "$trials"
  [[ $(grep -vc -- '-again$' <<<"$trials") == 2 && -z $(uniq -d <<<"$trials") ]] &&
    [[ $(head -n "$(wc -l <<<"$before")" "$LAB_RESULTS_DIR/$run/trials.csv") == "$before" ]] &&
    grep -q '"status": "complete"' "$LAB_RESULTS_DIR/$run/manifest.json"
}

toxic_there() {
  make toxic TYPE=latency LATENCY=300 && make toxics | tee /dev/stderr | grep -q 'latency=300' &&
    make toxics-reset | tee /dev/stderr | grep -q none
}

scripted_there() {
  drive run EXP=faults SCALE=0.2 LAUNCHES=0 SERVER=event-loop CONC=100 RATE=250 WARMUP=2s NAME=several-scripted &&
    make toxics | tee /dev/stderr | grep -q none
}

# A search with both generators, short: what it holds is not asked.
searched_there() {
  drive capacity SERVER=fixed-pool DURATION=4s WARMUP=2s NAME=several-searched PATIENCE=0s &&
    grep -E 'holds (at least )?[0-9,]+ req/s' "$LAB_RESULTS_DIR"/*-several-searched/REPORT.md
}

# begun_there NAME TRIAL: that trial of the run is under way.
begun_there() { agent_there sh -c "ls -d /lab/results/*-$1/raw/$2-*" >/dev/null 2>&1; }
# A Swarm whose manager was restarted knows no names of containers for more than half a minute.
named_there() { agent_there getent hosts fixed-pool; }
# hit_there NAME COMMAND…: a run of three trials, and the command 3 s into the second one. Its exit status is the driver's.
hit_there() {
  local pid waited_for
  drive run EXP=sweep SERVER=fixed-pool LAUNCHES=0 CONC=20,30,40 MODE=closed DURATION=8s WARMUP=2s ENGINE=pacer NAME="$1" &
  # shellcheck disable=SC2034  # of within
  pid=$! waited_for=$!
  within 200 begun_there "$1" 02 && sleep 3 && "${@:2}" >&2
  wait "$pid"
}
power_cut() { .ci/three-engines.sh kill "$1" && sleep "$2" && .ci/three-engines.sh again "$1"; }
# The generator's node, which is the manager: the driver ends with it, and the run goes on.
generator_lost_there() {
  local run status=0
  hit_there several-lost power_cut load 5 || status=$?
  ((status != 0)) || { printf 'the machine of the driver was away, and it exited with 0\n'; return 1; }
  run=$(cd "$LAB_RESULTS_DIR" && echo *-several-lost)
  printf 'killed after %d rows\n' "$(rows several-lost)"
  within 200 named_there && ran drive run RESUME="$run" && grep -q '"status": "complete"' "$LAB_RESULTS_DIR/$run/manifest.json"
}

# left_at NAME: what of the lab is left at a node.
left_at() {
  at_node "$1" ps --all --format 'container {{.Names}}'
  at_node "$1" volume ls --format 'volume {{.Name}}'
  at_node "$1" image ls --all --format 'image {{.ID}} {{.Repository}}'
  # A Swarm's own, without any stack.
  at_node "$1" network ls --filter type=custom --format 'network {{.Name}}' | grep -vx 'network ingress\|network docker_gwbridge' || true
}
down_there() {
  local node left=""
  make down || return 1
  for node in load tested called; do left+=$(left_at "$node")$'\n'; done
  left+=$(at_node load service ls --quiet && at_node load config ls --quiet && at_node load secret ls --quiet)
  left+=$(at_node load node ls --quiet | xargs docker -H "unix://$PWD/.lab/three-engines/load/run/docker.sock" node inspect --format '{{range $name, $_ := .Spec.Labels}}label {{$name}}{{end}}')
  left+=$(find ".lab/$COMPOSE_PROJECT_NAME/several" 2>/dev/null)
  printf 'left behind: %s\n' "$left"
  [[ -z ${left//$'\n'/} ]]
}
# The tags that this lab gave the images of the smoke test's.
engines_gone() {
  local left
  docker image ls --filter "reference=concurrency-lab/*:$COMPOSE_PROJECT_NAME-there" --format '{{.Repository}}:{{.Tag}}' | xargs -r docker image rm >/dev/null
  .ci/three-engines.sh down || return 1
  left=$(ip netns list | grep '^lab3-'; pgrep -f "pidfile=$PWD/.lab/three-engines"; find .lab /sys/fs/cgroup -maxdepth 2 '(' -name three-engines -o -name 'lab3-*' ')' 2>/dev/null)
  printf 'left behind: %s\n' "${left:-nothing}"
  [[ -z $left ]]
}

several() {
  if [[ $(id -u) != 0 ]] || ! command -v ip >/dev/null; then printf 'untried several machines: three engines need root, and iproute2\n'; return; fi
  step several-engines one engines &&
    if step several-up one there make up HOSTS=.lab/three-engines/hosts.toml; then
      step several-refused one there refuses 'not possible on several machines yet' make explain CONC=50
      step several-toxic one there toxic_there
      step several-bench one there bench_there
      if [[ $suite == long ]]; then
        step several-scripted one there scripted_there
        step several-searched one there searched_there
        step several-cut one there ran hit_there several-cut .ci/three-engines.sh cut tested 5
        step several-cut-long one there ran hit_there several-cut-long .ci/three-engines.sh cut tested 60
        step several-lossy one there ran hit_there several-lossy .ci/three-engines.sh lose tested 5 120
        step several-power one there ran hit_there several-power power_cut tested 20
        step several-lost one there generator_lost_there
      fi
      step several-down one there down_there
      step several-came-home pytest inside test_several.py
      if [[ $suite == long ]]; then step several-failures pytest inside test_several_failures.py; fi
    fi
  if [[ -e .lab/three-engines/of-suite ]]; then step several-engines-gone one engines_gone; fi
}
