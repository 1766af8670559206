#!/usr/bin/env bash
# Three Docker engines on this machine that form a Swarm, to try a lab on several machines (docs/several-machines.md).
#
#   three-engines.sh up       start them, and write .lab/three-engines/hosts.toml for HOSTS=
#   three-engines.sh status   what of them is there: a line each; exit 1 unless all three answer
#   three-engines.sh kill NAME       as if its power was cut: nothing of the engine and its containers runs any more
#   three-engines.sh again NAME      start one that was killed
#   three-engines.sh cut NAME SECONDS  nothing gets to it or from it for so long
#   three-engines.sh lose NAME PERCENT SECONDS  so much of what the overlay sends to it and from it is lost meanwhile
#   three-engines.sh down     end them, and leave no namespace, mount, process, cgroup or file
#
# Each engine has a network namespace of its own, with an address on a bridge that is in a namespace, too; and a mount
# namespace, in which /run and /var/lib/docker are folders of its own. So data root, containerd, exec root and socket
# are where every engine has them, and the engine of this machine is not touched. They have no way out: images come
# by load. Two CPUs remain two CPUs: this proves the wiring, not the speed. Needs root, iproute2, and iptables for `lose`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

root=$PWD/.lab/three-engines
names=(load tested called)
# The third one puts a share of each load on, too.
roles=('"generator"' '"server"' '"generator", "downstream", "monitor"')
prefix=lab3 network=10.213.77
: "${START_DEADLINE_S:=60}"

fail() { printf 'three-engines: %s\n' "$*" >&2; exit 1; }
engine() { docker -H "unix://$root/$1/run/docker.sock" "${@:2}"; }
answers() { engine "$1" version --format '{{.Server.Version}}' >/dev/null 2>&1; }

# own PID: whether it is the process that `up` began, and not another one that has its number now.
own() { [[ -n $1 && -r /proc/$1/cmdline ]] && tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | grep -Fq -- "--pidfile=$root/"; }
pid_of() { cat "$root/$1/dockerd.pid" 2>/dev/null || true; }

# start NAME NUMBER
start() {
  local name=$1 space=$prefix-$1 here=$root/$1
  mkdir -p "$here/run" "$here/lib"
  # A stack cannot say no-new-privileges of a service: the engine does, of all of its containers.
  printf '{"no-new-privileges": true}\n' >"$here/daemon.json"
  ip netns add "$space"
  ip link add "$prefix-v$2" netns "$prefix-switch" type veth peer name eth0 netns "$space"
  ip -n "$prefix-switch" link set "$prefix-v$2" master bridge up
  ip -n "$space" address add "$network.1$2/24" dev eth0
  ip -n "$space" link set lo up
  ip -n "$space" link set eth0 up
  # Not `ip netns exec`: it hides the cgroups.
  # shellcheck disable=SC2016 # expanded by that shell
  setsid nsenter --net="/run/netns/$space" unshare --mount --propagation slave bash -c '
    umount --recursive --lazy /var/lib/docker 2>/dev/null
    mkdir -p /var/lib/docker
    mount --bind "$1/lib" /var/lib/docker && mount --bind "$1/run" /run &&
      exec dockerd --config-file="$1/daemon.json" --pidfile="$1/dockerd.pid" --cgroup-parent="$2" --ip6tables=false' \
    engine "$here" "$prefix-$name" >"$here/log" 2>&1 </dev/null &
}

# await NAME
await() {
  local until=$((SECONDS + START_DEADLINE_S))
  until answers "$1"; do
    if ((SECONDS >= until)); then fail "the engine $1 does not answer; the end of its log: $(tail -n 3 "$root/$1/log" | tr '\n' ' ')"; fi
    sleep 0.2
  done
}

up() {
  local at name token
  [[ $(id -u) == 0 ]] || fail "only root can make network namespaces"
  if [[ -e $root ]]; then fail "$root is there: \`.ci/three-engines.sh down\` first"; fi
  if ip netns list | grep -q "^$prefix-"; then fail "three engines are there already, of another checkout: there can be one set on a machine. Where that is gone: end \`pgrep -f .lab/three-engines\`, then \`ip netns delete\` of each $prefix-…"; fi
  mkdir -p "$root"
  # Whatever does not come up: nothing is left.
  trap down EXIT
  ip netns add "$prefix-switch"
  ip -n "$prefix-switch" link add bridge type bridge
  ip -n "$prefix-switch" link set bridge up
  for at in "${!names[@]}"; do start "${names[at]}" "$at"; done
  for name in "${names[@]}"; do await "$name"; done
  engine "${names[0]}" swarm init --advertise-addr "$network.10" >/dev/null
  token=$(engine "${names[0]}" swarm join-token --quiet worker)
  for at in 1 2; do
    engine "${names[at]}" swarm join --token "$token" --advertise-addr "$network.1$at" "$network.10:2377" >/dev/null
  done
  for at in "${!names[@]}"; do
    printf '[nodes.%s]\naddress = "unix://%s/%s/run/docker.sock"\nroles = [%s]\n' "${names[at]}" "$root" "${names[at]}" "${roles[at]}"
  done >"$root/hosts.toml"
  trap - EXIT
  status
}

status() {
  local name bad=0
  for name in "${names[@]}"; do
    if answers "$name"; then
      printf '%s: Docker %s, Swarm %s, %s containers\n' "$name" \
        "$(engine "$name" info --format '{{.ServerVersion}}, {{.Driver}}')" \
        "$(engine "$name" info --format '{{.Swarm.LocalNodeState}} at {{.Swarm.NodeAddr}}')" "$(engine "$name" ps -q | wc -l)"
    else
      printf '%s: no engine\n' "$name"
      bad=1
    fi
  done
  if ((bad == 0)); then printf 'HOSTS=%s\n' "$root/hosts.toml"; fi
  return "$bad"
}

# What an engine that was killed has left in its cgroups is of its containers.
left() { cat /sys/fs/cgroup/{,*/}"$prefix-$1"/{,*/}cgroup.procs 2>/dev/null | sort -u; }

# gone PID: it ended within 20 s.
gone() {
  local try
  for ((try = 0; try < 100; try++)); do if ! own "$1"; then return 0; fi; sleep 0.2; done
  return 1
}

# end NAME SIGNAL: its engine, and whatever it has left: no process, cgroup or network namespace.
end() {
  local pid group try
  pid=$(pid_of "$1")
  if own "$pid"; then
    kill "-$2" "$pid" 2>/dev/null || true
    gone "$pid" || kill -KILL "$pid" 2>/dev/null || true
  fi
  # Its containerd and shims are in its mount namespace, and in no other.
  for pid in $(left "$1") $(in_mounts_of "$1"); do kill -KILL "$pid" 2>/dev/null || true; done
  for ((try = 0; try < 50; try++)); do if [[ -z $(left "$1")$(in_mounts_of "$1") ]]; then break; fi; sleep 0.2; done
  for group in /sys/fs/cgroup/{,*/}"$prefix-$1"; do
    if [[ -d $group ]]; then find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true; fi
  done
  # Its port by name, too: a namespace that is deleted may last until the kernel has closed all of its connections.
  if [[ -e /run/netns/$prefix-switch ]]; then ip -n "$prefix-switch" link delete "$prefix-v$(number_of "$1")" 2>/dev/null || true; fi
  if [[ -e /run/netns/$prefix-$1 ]]; then ip netns delete "$prefix-$1"; fi
}

# number_of NAME
number_of() {
  local at
  for at in "${!names[@]}"; do if [[ ${names[at]} == "$1" ]]; then printf '%s' "$at"; return; fi; done
  fail "'$1' is not one of ${names[*]}"
}

# As after a power cut: /run is empty.
again() {
  local number
  number=$(number_of "$1")
  if own "$(pid_of "$1")"; then fail "the engine $1 runs"; fi
  rm -rf "${root:?}/$1/run" "$root/$1/dockerd.pid"
  start "$1" "$number"
  await "$1"
}

cut() {
  local port
  port=$prefix-v$(number_of "$1")
  ip -n "$prefix-switch" link set "$port" down
  # Whoever ends this has the link back, too.
  # shellcheck disable=SC2064 # as it is now
  trap "ip -n '$prefix-switch' link set '$port' up" EXIT
  sleep "$2"
}

# dropping -A|-D NAME PERCENT: begin to drop so much of the overlay's packets, or end it.
dropping() {
  local chain
  for chain in PREROUTING OUTPUT; do
    nsenter --net="/run/netns/$prefix-$2" iptables -t raw "$1" "$chain" -p udp --dport 4789 \
      -m statistic --mode random --probability "$(printf '0.%02d' "$3")" -j DROP
  done
}

lose() {
  number_of "$1" >/dev/null
  [[ $2 =~ ^[1-9][0-9]?$ ]] || fail "'$2' is not a percentage from 1 to 99"
  # Whoever ends this has the packets back, too.
  # shellcheck disable=SC2064 # as it is now
  trap "dropping -D '$1' '$2' 2>/dev/null || true" EXIT
  dropping -A "$1" "$2"
  sleep "$3"
}

down() {
  local name space
  # What is there then is another checkout's.
  if [[ ! -e $root ]]; then return 0; fi
  for name in "${names[@]}"; do
    if answers "$name"; then
      timeout 60 docker -H "unix://$root/$name/run/docker.sock" swarm leave --force >/dev/null 2>&1 || true
      engine "$name" ps -aq | xargs -r docker -H "unix://$root/$name/run/docker.sock" rm --force >/dev/null 2>&1 || true
    fi
  done
  for name in "${names[@]}"; do end "$name" TERM; done
  if [[ -e /run/netns/$prefix-switch ]]; then ip netns delete "$prefix-switch"; fi
  rm -rf "$root"
}

# in_mounts_of NAME: the processes that see this engine's folder as their /run.
in_mounts_of() {
  # As the file system that it is on knows it.
  local here=$root/$1/run disk
  disk=$(stat -c %m .)
  awk -v here="/${here#"${disk%/}/"}" '
    FNR == 1 {split(FILENAME, of, "/")}
    $5 == "/run" && $4 == here {print of[3]}' /proc/[0-9]*/mountinfo 2>/dev/null || true
}

case ${1-} in
  up) up ;;
  status) status ;;
  kill) number_of "${2-}" >/dev/null && end "$2" KILL ;;
  again) again "${2-}" ;;
  cut) cut "${2-}" "${3?: seconds}" ;;
  lose) lose "${2-}" "${3?: percent}" "${4?: seconds}" ;;
  down) down ;;
  *) fail "'${1-}' is not one of up, status, kill, again, cut, lose, down" ;;
esac
