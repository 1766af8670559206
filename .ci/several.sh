# shellcheck shell=bash
# The lab on several machines, sourced by smoke.sh: two engines on this one, with compose.swarm.yaml on them and a bench by
# two generators. loadgen/tests/smoke/test_several.py looks at the run. Each engine has its network, mount, host name and
# process namespace; with the latter all of it ends. Two engines share the CPUs: this proves the wiring, not the speed.

: "${COMPOSE_PROJECT_NAME:?}" "${LAB_RESULTS_DIR:?}"
two=$PWD/.lab/two-engines stack=lab-several

at_node() { docker -H "unix://$two/$1/run/docker.sock" "${@:2}"; }
engine_answers() { at_node "$1" version >/dev/null 2>&1; }

# start_engine NAME: in its network namespace, which is there.
start_engine() {
  mkdir -p "$two/$1/run" "$two/$1/lib"
  # Not `ip netns exec`: it hides the cgroups.
  # shellcheck disable=SC2016 # expanded by that shell
  setsid nsenter --net="/run/netns/lab2-$1" unshare --mount --uts --propagation slave --pid --fork --kill-child --mount-proc bash -c '
    umount --recursive --lazy /var/lib/docker 2>/dev/null
    mkdir -p /var/lib/docker
    hostname "$2" && mount --bind "$1/lib" /var/lib/docker && mount --bind "$1/run" /run &&
      exec dockerd --no-new-privileges --cgroup-parent="lab2-$2" --ip6tables=false' \
    engine "$two/$1" "$1" >"$two/$1/log" 2>&1 </dev/null &
  echo $! >"$two/$1/pid"
  within 60 engine_answers "$1"
}

engines_up() {
  local name
  engines_down
  for name in tested load; do ip netns add "lab2-$name" && ip -n "lab2-$name" link set lo up; done
  ip link add eth0 netns lab2-tested type veth peer name eth0 netns lab2-load
  for name in tested load; do
    ip -n "lab2-$name" address add "10.213.77.$([[ $name == load ]] && echo 2 || echo 1)/24" dev eth0
    ip -n "lab2-$name" link set eth0 up
    start_engine "$name" || return 1
  done
  at_node tested swarm init --advertise-addr 10.213.77.1 &&
    at_node load swarm join --token "$(at_node tested swarm join-token --quiet worker)" 10.213.77.1:2377 &&
    at_node tested node update --label-add lab.server=yes tested &&
    at_node tested node update --label-add lab.generator=yes --label-add lab.downstream=yes load
}

no_cgroup() {
  find /sys/fs/cgroup -depth -type d -path "*/lab2-$1*" -exec rmdir {} + 2>/dev/null
  [[ -z $(find /sys/fs/cgroup -type d -path "*/lab2-$1*" -print -quit) ]]
}
# engines_down: no process, cgroup, namespace or file is left.
engines_down() {
  local name pid
  for name in tested load; do
    pid=$(cat "$two/$name/pid" 2>/dev/null) || true
    if [[ -n $pid ]] && grep -qs "$two/$name" "/proc/$pid/cmdline"; then kill -KILL "$pid" && within 20 test ! -e "/proc/$pid"; fi
    within 20 no_cgroup "$name"
    if [[ -e /run/netns/lab2-$name ]]; then ip netns delete "lab2-$name"; fi
  done
  rm -rf "$two"
}

all_ready() { ! at_node tested stack services --format '{{.Replicas}}' "$stack" | awk '{split($1, n, "/")} n[1] != n[2] || n[2] == 0' | grep -q .; }

stack_up() (
  local images node
  set -a
  # shellcheck disable=SC1090 # written by make
  . ".lab/$COMPOSE_PROJECT_NAME/env"
  set +a
  export LAB_TAG=$COMPOSE_PROJECT_NAME MACHINES="tested load" GENERATORS=second:9465
  read -ra images < <(docker stack config -c compose.swarm.yaml | awk '$1 == "image:" {print $2}' | sort -u | paste -sd ' ')
  for node in tested load; do docker save "${images[@]}" | at_node "$node" load --quiet >/dev/null || return 1; done
  DOCKER_HOST=unix://$two/tested/run/docker.sock host/lab.sh facts &&
    at_node tested stack deploy --resolve-image never -c compose.swarm.yaml "$stack" && within 300 all_ready &&
    at_node tested run --detach --name second --network "${stack}_lab" --read-only --cap-drop ALL --entrypoint pacer \
      "concurrency-lab/loadgen:$LAB_TAG" serve :9465
)

bench_there() {
  local driver run status=0
  driver=$(at_node load ps --quiet --filter label=com.docker.compose.service=driver)
  at_node load exec "$driver" lab bench SERVER=fixed-pool CONC=50 RATE=225 DURATION=8s WARMUP=2s ENGINE=pacer NAME=several || status=$?
  run=$(at_node load exec "$driver" sh -c 'cd results && echo *-several')
  at_node load cp "$driver:/lab/results/$run" "$LAB_RESULTS_DIR" && ((status == 0))
}

several() {
  if [[ $(id -u) != 0 ]] || ! command -v ip >/dev/null; then printf 'untried several machines: two engines need root, and iproute2\n'; return; fi
  if step several-engines one engines_up && step several-up one stack_up; then
    step several-bench one ran bench_there
    step several-came-home pytest inside test_several.py
  fi
  step several-down one engines_down
  # host.json is that of the lab here again.
  step several-facts one host/lab.sh facts
}
