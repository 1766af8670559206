#!/usr/bin/env bash
# The lab on kinds of Docker engines that this machine does not have (docs/hosts.md). By hand, as root; ten minutes or so each:
#
#   .ci/hosts.sh rootless      an engine of an unprivileged user
#   .ci/hosts.sh userns        --userns-remap
#   .ci/hosts.sh containerd    images in containerd's store, as Docker 29 has them
#   .ci/hosts.sh ipv6          --ipv6, with an IPv6 network as default
#   .ci/hosts.sh start KIND    only start it; `in WORD…` runs a command there, `end` ends it
#
# The engine has a network namespace, whose way out is slirp4netns; a mount namespace, in which /run and /var/lib/docker
# are its own; and a process namespace, with which all of it ends. The images that the lab's own are built from come from
# this machine's engine, which only saves them. The lab is a clone of this checkout's last commit. The last line is
# `N passed, N failed`. Needs Debian's slirp4netns, and for rootless also rootlesskit and uidmap.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

name=lab-hosts
root=/tmp/concurrency-lab-hosts
: "${START_DEADLINE_S:=60}"
# shellcheck disable=SC1091
. host/common.sh

# Of the process that holds the namespaces.
init() { cat "$root/init" 2>/dev/null; }
# there WORD…: in the engine's namespaces, as the owner of the checkout there.
there() {
  local user=()
  if [[ -e $root/rootless ]]; then
    user=(setpriv --reuid "$name" --regid "$name" --init-groups env "HOME=$root/home" "XDG_RUNTIME_DIR=/run/user/$(id -u "$name")"
      "DOCKER_HOST=unix:///run/user/$(id -u "$name")/docker.sock")
  fi
  nsenter --target "$(init)" --net --mount --pid --wd="$root/lab" ${user[@]+"${user[@]}"} "$@"
}

start() {
  local kind=$1 options=() images=() image try words='{}'
  case $kind in
    rootless) ;;
    userns) options=(--userns-remap=default) ;;
    containerd) words='{"features": {"containerd-snapshotter": true}}' ;;
    ipv6) options=(--ipv6 --fixed-cidr-v6=fd00:1ab::/64 --ip6tables=false) ;;
    *) fail "hosts.sh: '$kind' is not one of rootless, userns, containerd, ipv6" ;;
  esac
  [[ $(id -u) == 0 ]] || fail "hosts.sh: only root can make namespaces"
  command -v slirp4netns >/dev/null || fail "hosts.sh: slirp4netns is missing"
  if [[ -e $root ]]; then fail "hosts.sh: $root is there: \`.ci/hosts.sh end\` first"; fi
  trap end EXIT
  mkdir -p "$root"/{run,lib,home}
  git clone -q . "$root/lab"
  if [[ $kind == rootless ]]; then
    useradd --home-dir "$root/home" --no-create-home --shell /bin/bash "$name"
    : >"$root/rootless"
    mkdir -p "$root/run/user/$(id -u "$name")"
    chown -R "$name:$name" "$root/home" "$root/lab" "$root/run/user/$(id -u "$name")"
  else
    printf '%s\n' "$words" >"$root/daemon.json"
    options+=(--config-file="$root/daemon.json" --cgroup-parent="$name")
  fi
  ip netns add "$name"
  ip -n "$name" link set lo up
  setsid slirp4netns --configure --mtu=1500 --disable-host-loopback --netns-type=path "/run/netns/$name" tap0 >"$root/slirp.log" 2>&1 </dev/null &
  echo $! >"$root/slirp"
  # Not `ip netns exec`: it hides the cgroups.
  # shellcheck disable=SC2016 # expanded by that shell
  setsid nsenter --net="/run/netns/$name" unshare --mount --propagation slave --pid --fork --kill-child --mount-proc bash -c '
    root=$1 name=$2
    shift 2
    umount --recursive --lazy /var/lib/docker 2>/dev/null
    mkdir -p /var/lib/docker
    mount --bind "$root/lib" /var/lib/docker && mount --bind "$root/run" /run || exit
    if [[ -e $root/rootless ]]; then
      # As it is on an ordinary machine; here only root may open it.
      mknod -m 666 "$root/tun" c 10 200 && mount --bind "$root/tun" /dev/net/tun
      setpriv --reuid "$name" --regid "$name" --init-groups env "HOME=$root/home" "XDG_RUNTIME_DIR=/run/user/$(id -u "$name")" \
        /usr/share/docker.io/contrib/dockerd-rootless.sh &
    else
      dockerd "$@" &
    fi
    wait' engine "$root" "$name" ${options[@]+"${options[@]}"} >"$root/log" 2>&1 </dev/null &
  for ((try = 0; try < START_DEADLINE_S * 5; try++)); do
    sleep 0.2
    awk "{print \$1}" "/proc/$!/task/$!/children" >"$root/init" 2>/dev/null || true
    if [[ -s $root/init ]] && there docker version >/dev/null 2>&1; then break; fi
  done
  there docker version >/dev/null || fail "hosts.sh: the engine does not answer; the end of its log: $(tail -n 3 "$root/log")"
  for image in DEBIAN JRE MAVEN GOLANG PROMETHEUS TOXIPROXY CADVISOR; do images+=("$(present_image "${image}_IMAGE")"); done
  docker save "${images[@]}" | there docker load --quiet >/dev/null
  trap - EXIT
}

end() {
  local pid group try
  for pid in $(cat "$root/init" "$root/slirp" 2>/dev/null); do
    kill -KILL "$pid" 2>/dev/null || true
    # Where it is this shell's own, nothing is said of its end.
    wait "$pid" 2>/dev/null || true
    for ((try = 0; try < 100; try++)); do if [[ ! -e /proc/$pid ]]; then break; fi; sleep 0.1; done
  done
  for group in /sys/fs/cgroup/{,*/}"$name"; do
    if [[ -d $group ]]; then find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true; fi
  done
  if [[ -e /run/netns/$name ]]; then ip netns delete "$name"; fi
  if id "$name" >/dev/null 2>&1; then userdel "$name"; fi
  rm -rf "$root"
}

passed=0 failed=0
# check TEXT WORD…
check() {
  if "${@:2}"; then passed=$((passed + 1)) && printf 'ok      %s\n' "$1"; else failed=$((failed + 1)) && printf 'FAILED  %s\n' "$1"; fi
}
# ran WORD…: what it says at its end is shown where it fails.
ran() { there env WRK2_IMAGE=wrk2-none "$@" >"$root/said" 2>&1 || { tail -n 15 "$root/said" && return 1; }; }
ids() {
  there docker images --no-trunc --format '{{.Repository}} {{.ID}}' | grep ^concurrency-lab/ | sort
  there docker ps --no-trunc --format '{{.Names}} {{.ID}}' | sort
}
same_ids() { local before; before=$(ids) && ran make up && [[ -n $before && $before == "$(ids)" ]]; }
trials() { [[ $(cat "$root"/lab/results/2*/trials.csv 2>/dev/null | wc -l) -gt 1 ]]; }
empty() { [[ -z $(there docker ps --all --quiet) ]]; }
answers() { there curl -sSf --max-time 5 -o "$root/page" "$1" 2>/dev/null; }
# counted: how many containers of the lab cAdvisor sees, as Prometheus has them.
counted() {
  there curl -sS --get --data-urlencode 'query=count(container_cpu_usage_seconds_total{service!=""})' http://127.0.0.1:9090/api/v1/query |
    sed -n 's/.*"value":\[[^,]*,"\([0-9]*\)".*/\1/p'
}

trial() {
  start "$1"
  trap end EXIT
  there docker info --format "$1: Docker {{.ServerVersion}}, {{.Driver}}, cgroup driver {{.CgroupDriver}}, {{.SecurityOptions}}" 2>/dev/null
  check "make up" ran make up
  check "make up again: the same images and containers" same_ids
  printf 'seen    containers counted by cAdvisor: %s\n' "$(counted || true)"
  printf 'seen    http://localhost:9464 answers: %s; http://[::1]:9464: %s\n' \
    "$(answers http://localhost:9464/ && echo yes || echo no)" "$(answers 'http://[::1]:9464/' && echo yes || echo no)"
  check "make bench" ran make bench SERVER=netty CONC=50 DURATION=3s WARMUP=1s
  check "its trials are in results/" trials
  check "make down" ran make down
  check "and no container is left" empty
  printf '%s passed, %s failed\n' "$passed" "$failed"
  ((failed == 0))
}

case ${1-} in
  rootless | userns | containerd | ipv6) trial "$1" ;;
  start) start "${2-}" ;;
  in) there "${@:2}" ;;
  end) end ;;
  *) fail "hosts.sh: '${1-}' is not one of rootless, userns, containerd, ipv6, start, in, end" ;;
esac
