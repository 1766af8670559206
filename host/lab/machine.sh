# shellcheck shell=bash
# What this machine gives a lab: results and their owner, open files, the engine's folder and sockets, CPUs. Sourced by lab.sh.

: "${state:?}"

cpu_sets=(SERVER_CPUSET LOADGEN_CPUSET TOXIPROXY_CPUSET DOWNSTREAM_CPUSET OBSERVATION_CPUSET)

# results_folder: where runs are kept, made for the driver where it is not there.
results_folder() {
  local folder uid gid
  folder=$(setting LAB_RESULTS_DIR)
  if [[ ! -d $folder ]]; then
    mkdir -p "$folder"
    if [[ $(id -u) == 0 ]]; then
      read -r uid gid <<<"$(owner)"
      chown "$uid:$gid" "$folder"
    fi
  fi
  (cd "$folder" && pwd -P)
}

# check_results FOLDER UID GID: that root named a folder which the driver may write to. One in this checkout is the
# lab's own; any other can be one of the system's, which nobody gives away by a word.
check_results() {
  if [[ $(id -u) != 0 || -n $(find "$1" -maxdepth 0 -user "$2") ]]; then return 0; fi
  if [[ $1 != "$(pwd -P)"/* ]]; then
    fail "LAB_RESULTS_DIR=$1 is there and not of user $2, as whom the driver writes: name one that is not there yet, or \`chown $2\` it"
  fi
  chown "$2:$3" "$1"
}

dockerd_pid() { pidof dockerd 2>/dev/null | tr ' ' '\n' | head -n 1 || true; }

# The open files a container may have: no more than the engine itself may hand on.
max_open_files() {
  local most=1048576 hard="" pid
  if [[ -n ${NOFILE-} ]]; then
    if ! [[ $NOFILE =~ ^[1-9][0-9]{0,8}$ ]]; then fail "NOFILE=$NOFILE is not a number of open files"; fi
    printf '%s' "$NOFILE"
    return
  fi
  if [[ $(uname -s) == Linux ]]; then
    pid=$(dockerd_pid)
    if [[ -n $pid && -r /proc/$pid/limits ]]; then
      hard=$(awk '/^Max open files/ {print $5}' "/proc/$pid/limits")
    elif [[ -n $pid ]]; then
      hard=$(ulimit -Hn)
    fi
  fi
  if [[ $hard =~ ^[0-9]+$ ]] && ((hard < most)); then most=$hard; fi
  printf '%s' "$most"
}

# Where the engine has its folder and its sockets, which cAdvisor reads. What is mounted is looked up where the engine is, so
# these paths need not be of this machine.
engine_folder() {
  local folder
  folder=$(docker info --format '{{.DockerRootDir}}' 2>/dev/null) || true
  printf '%s' "${folder:-/var/lib/docker}"
}

is_rootless() { docker info --format '{{.SecurityOptions}}' 2>/dev/null | grep -q name=rootless; }

# engine_socket: a user's own engine listens where this user asks it. Docker Desktop's is asked through another one
# than it has itself.
engine_socket() {
  local asked=""
  if is_rootless; then asked=$(docker context inspect --format '{{.Endpoints.docker.Host}}' 2>/dev/null) || true; fi
  if [[ $asked == unix:///* ]]; then printf '%s' "${asked#unix://}"; else printf /var/run/docker.sock; fi
}

# containerd_socket ENGINE_SOCKET: cAdvisor asks containerd too: the one the engine runs itself, or the system's.
containerd_socket() {
  local own=/run/docker/containerd/containerd.sock
  if [[ $1 != /var/run/docker.sock ]]; then own=${1%/*}/docker/containerd/containerd.sock; fi
  if [[ -S $own ]]; then printf '%s' "$own"; else printf /run/containerd/containerd.sock; fi
}

# engine_cpus COUNT: the CPUs that the engine may use, one a line, those of one core beside each other. An
# engine that is no process of this machine (Docker Desktop) numbers its own from 0 on.
engine_cpus() {
  local pid allowed
  pid=$(dockerd_pid)
  if [[ -z $pid ]]; then
    seq 0 $(($1 - 1))
  elif allowed=$(taskset -cp "$pid" 2>/dev/null); then
    lscpu -p=CPU,CORE 2>/dev/null | sort -t, -n -k2,2 -k1,1 | awk -F, -v allowed="${allowed##*: }" '
      BEGIN {
        count = split(allowed, parts, ",")
        for (part = 1; part <= count; part++) {
          ends = split(parts[part], range, "-")
          for (cpu = range[1]; cpu <= range[ends]; cpu++) may[cpu + 0] = 1
        }
      }
      !/^#/ && $1 + 0 in may {print $1}'
  fi
}

# cpu_list CPU…: as Docker takes it: 0-3,8.
cpu_list() {
  printf '%s\n' "$@" | sort -n | awk '
    NR > 1 && $1 == last + 1 {last = $1; next}
    NR > 1 {printf "%s%s,", first, first == last ? "" : "-" last}
    {first = last = $1}
    END {printf "%s%s", first, first == last ? "" : "-" last}'
}

# pinnable_cpus: how many CPUs an engine has that can keep containers to some of them; nothing where it
# cannot, where they are fewer than 8, and where the user named a set.
pinnable_cpus() {
  local name told
  for name in "${cpu_sets[@]}"; do
    if [[ -n ${!name+given} || -n $(setting "$name") ]]; then return 0; fi
  done
  told=$(docker info --format '{{.CPUSet}} {{.NCPU}}' 2>/dev/null) || true
  if [[ $told =~ ^true\ ([0-9]+)$ ]] && ((BASH_REMATCH[1] >= 8)); then printf '%s' "${BASH_REMATCH[1]}"; fi
}

# The CPU sets that the lab chooses, "NAME=SET" a line: Toxiproxy gets two eighths, the downstream and what
# observes one, generator and agent one, the servers the rest. Toxiproxy gets the first CPUs, which serve most
# interrupts, and shares its set with nobody: the verdict compares its own CPU time with it. Nothing where
# `pinnable_cpus` says nothing, and where nobody can tell which CPUs the engine may use.
auto_cpu_sets() {
  local name count eighth cpus=()
  case $(setting CPU_SETS) in
    off | "") return 0 ;;
    auto) ;;
    *) fail "CPU_SETS=$(setting CPU_SETS): allowed are auto and off" ;;
  esac
  count=$(pinnable_cpus)
  if [[ -z $count ]]; then return 0; fi
  # shellcheck disable=SC2207  # numbers
  cpus=($(engine_cpus "$count"))
  if ((${#cpus[@]} != count)); then return 0; fi
  eighth=$((count / 8))
  printf 'TOXIPROXY_CPUSET=%s\n' "$(cpu_list "${cpus[@]:0:2*eighth}")"
  for name in DOWNSTREAM OBSERVATION; do
    printf '%s_CPUSET=%s\n' "$name" "$(cpu_list "${cpus[@]:2*eighth:eighth}")"
  done
  printf 'LOADGEN_CPUSET=%s\n' "$(cpu_list "${cpus[@]:3*eighth:eighth}")"
  printf 'SERVER_CPUSET=%s\n' "$(cpu_list "${cpus[@]:4*eighth}")"
}

# Whether the sets in force are those that the lab chose.
own_cpu_sets() { grep -q '^SERVER_CPUSET=' "$state/env" 2>/dev/null; }

# cpu_set NAME: what Compose is told: an empty word wins over .env, too.
cpu_set() { if own_cpu_sets; then read_off "$1"; else printf '%s' "${!1-$(setting "$1")}"; fi; }

# What there is to say of CPU sets: those that the lab chose, or that it could. Else nothing.
cpu_sets_text() {
  if own_cpu_sets; then
    printf 'CPU sets: servers %s, generator and agent %s, Toxiproxy %s, all others %s (CPU_SETS=off undoes it)' \
      "$(cpu_set SERVER_CPUSET)" "$(cpu_set LOADGEN_CPUSET)" "$(cpu_set TOXIPROXY_CPUSET)" "$(cpu_set DOWNSTREAM_CPUSET)"
  elif [[ $(setting CPU_SETS) != auto && -n $(pinnable_cpus) ]]; then
    printf 'CPU sets: none; CPU_SETS=auto keeps the parts of the lab to CPUs of their own'
  fi
}

# user_namespace: `host` where the engine gives containers other users (userns-remap), nothing elsewhere.
user_namespace() {
  if docker info --format '{{.SecurityOptions}}' 2>/dev/null | grep -q name=userns; then printf host; fi
}

# Who owns what the driver writes to results/: the user, or a plain user when that is root.
# A rootless engine maps root to the user already.
owner() {
  if is_rootless; then
    printf '0 0'
  elif [[ $(id -u) == 0 ]]; then
    printf '10001 10001'
  else
    printf '%s %s' "$(id -u)" "$(id -g)"
  fi
}

# toxiproxy_cpus SETS: on how many CPUs Toxiproxy runs at a time; empty: on all that it may use, as with a
# CPU set of its own. Beside a server that does next to nothing it needs about a third of the machine.
toxiproxy_cpus() {
  local given cpus
  given=$(setting TOXIPROXY_GOMAXPROCS)
  if [[ -z $given && -z $1 && -z $(setting TOXIPROXY_CPUSET) ]]; then
    cpus=$(docker info --format '{{.NCPU}}')
    given=${cpus:+$(((cpus + 1) / 2))}
  fi
  if ! [[ $given =~ ^([1-9][0-9]{0,3})?$ ]]; then fail "TOXIPROXY_GOMAXPROCS=$given is not a number of CPUs"; fi
  printf '%s' "$given"
}
