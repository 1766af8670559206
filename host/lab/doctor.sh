# shellcheck shell=bash
# What can be right or wrong with this machine, and whether its memory has room for the servers. Sourced by lab.sh.

: "${driver_image:?}" "${cpu_sets:?}"

without_cgroups() { [[ $(docker info --format '{{.CgroupDriver}}' 2>/dev/null) == none ]]; }
without="the engine has no cgroups (a rootless one has them with cgroup v2 and systemd only): no limit of CPU or memory holds, and CPU and memory of containers are not counted"

# limits: an engine without cgroups takes limits, and says nothing. What the user asked for is refused, the default is warned of.
limits() {
  local name given
  if ! without_cgroups; then return 0; fi
  for name in SERVER_CPUS "${cpu_sets[@]}"; do
    given=$(setting "$name")
    # 0 CPUs are no limit; the set 0 is one.
    if [[ -n $given && $name$given != SERVER_CPUS0 ]]; then fail "$name=$given would not hold: $without"; fi
  done
  say "lab: warning: $without"
}

# Asked before servers are built or started. A heap is no memory until it is used: so what all of them take
# idle must be there, and what they may grow to is worth a warning.
room() {
  local memory idle full profiles profile servers=0 fewer="the engine needs more"
  limits
  memory=$(docker info --format '{{.MemTotal}}' 2>/dev/null) || true
  if ! [[ $memory =~ ^[1-9][0-9]*$ ]]; then return 0; fi
  memory=$((memory / 1048576)) profiles=$(read_off COMPOSE_PROFILES)
  for profile in core ${profiles//,/ }; do
    if [[ ! -f prometheus/servers/$profile.json ]]; then continue; fi
    servers=$((servers + $(grep -o '"[a-z-]*"' "prometheus/servers/$profile.json" | grep -vc '"targets"')))
    if [[ $profile != core ]]; then fewer="\`make down\`, then one profile at a time, starts fewer"; fi
  done
  idle=$(memory_needed "$servers" 0) full=$(memory_needed "$servers" "$servers")
  if ((idle > memory)); then
    fail "$servers servers and the rest of the lab take $idle MiB of memory before any load, and the engine has $memory MiB: $fewer"
  fi
  if ((full > memory)); then
    say "lab: warning: $servers servers with all of their heaps in use, and the rest of the lab, take $full MiB, and the engine" \
      "has $memory MiB: measure few of them, or with a smaller -Xmx (SERVER_JVM_FLAGS); $fewer"
  fi
}

# What the first `make up` and the bench after it took on 2 cores without a registry, in seconds (README, What you
# need), and the MB that the images of the core (1,339, each layer once) and a cache of builds (1,406) were seen to hold.
first_up_s=122 first_bench_s=299 first_mb=2800

# free_mb: what is free where the engine keeps its images; nothing where that is no folder of this machine.
free_mb() {
  local folder
  folder=$(docker info --format '{{.DockerRootDir}}' 2>/dev/null) || folder=/var/lib
  if [[ -d $folder ]]; then df -Pk "$folder" | awk 'NR == 2 {printf "%.0f", $4 * 1.024 / 1000}'; fi
}

# first_contact: what this machine has for a lab that is not built yet.
first_contact() {
  local free
  free=$(free_mb) || true
  if [[ -z $free ]]; then
    warn "disk: the engine's cannot be seen from here; images and their builds take some $first_mb MB"
  elif ((free < first_mb)); then
    wrong "disk: $free MB free; images and their builds take some $first_mb MB, more where images are pulled"
  else
    ok "disk: $free MB free; images and their builds take some $first_mb MB, more where images are pulled"
  fi
  ok "on 2 cores without a registry the first \`make up\` took $first_up_s s, and \`make bench CONC=200\` after it $first_bench_s s"
}

# memory_for_servers: whether the core's servers fit, and how many can be measured.
memory_for_servers() {
  local total servers count some
  total=$(docker info --format '{{.MemTotal}}' 2>/dev/null) || total=$(awk '/^MemTotal:/ {printf "%.0f", $2 * 1024}' /proc/meminfo 2>/dev/null) || true
  if ! [[ $total =~ ^[1-9][0-9]*$ ]]; then return 0; fi
  total=$((total / 1048576))
  # shellcheck disable=SC2207  # names
  servers=($(core_servers))
  count=${#servers[@]} some=${#servers[@]}
  while ((some > 0 && total < $(memory_needed "$count" "$some"))); do some=$((some - 1)); done
  if ((some == count)); then
    ok "memory: $total MiB; $count servers that have each been measured, and all else, take at most some $(memory_needed "$count" "$count") MiB"
  elif ((some > 0)); then
    warn "memory: $total MiB is for $some of $count servers with all of their heap in use: measure fewer before a \`make down\`," \
      "SERVER=$(IFS=, && printf '%s' "${servers[*]:0:some}"), or give them less (SERVER_JVM_FLAGS in .env)"
  elif ((total < $(memory_needed "$count" 0))); then
    wrong "memory: $total MiB; the lab takes some $(memory_needed "$count" 0) MiB before any load"
  else
    warn "memory: $total MiB is not for one server with all of its heap in use: give them less (SERVER_JVM_FLAGS in .env)"
  fi
}

# In bash: it must tell what is missing before the driver's image exists.
doctor() {
  local bad=0 nofile sets wrk2 said name
  ok() { printf 'ok    %s\n' "$*"; }
  warn() { printf 'warn  %s\n' "$*"; }
  wrong() { printf 'FAIL  %s\n' "$*"; bad=1; }

  if ! said=$(host/engine.sh look 2>&1); then
    wrong "${said#lab: }"
    return 1
  fi
  if ! has_image "$driver_image"; then first_contact; fi
  memory_for_servers
  if [[ -n $said ]]; then
    warn "$said"
    return "$bad"
  fi
  ok "Docker $(docker info --format '{{.ServerVersion}}, cgroup v{{.CgroupVersion}}, {{.NCPU}} CPUs, {{.Architecture}}')"
  ok "Compose $(docker compose version --short)"
  said=$(docker info --format '{{.SecurityOptions}}')
  for name in rootless userns selinux; do
    if [[ $said != *name=$name* ]]; then continue; fi
    if [[ $name == rootless ]] && without_cgroups; then
      warn "$without"
    elif [[ $name == userns ]]; then
      warn "the engine gives containers other users (userns-remap): agent, driver and cAdvisor keep this machine's"
    else
      warn "the engine runs with $name: the lab was never tried with it"
    fi
  done
  nofile=$(max_open_files)
  if ((nofile >= 20000)); then
    ok "open files per container: $nofile, so up to $((nofile / 2 - 500)) connections"
  else
    warn "open files per container: $nofile, so only up to $((nofile / 2 - 500)) connections; raise the engine's own limit"
  fi
  if [[ $(docker info --format '{{.NCPU}}') -lt 4 ]]; then
    warn "fewer than 4 CPUs: generator, proxy, downstream and server share them; compare ratios within one run"
  fi
  sets=$(cpu_sets_text)
  if [[ -n $sets ]]; then ok "$sets"; fi
  wrk2=$(wrk2_source)
  case $wrk2 in
    wrk2-none) ok "no wrk2 here ($(nixpkgs_image) is not present and WRK2_IMAGE names none): pacer is the load engine" ;;
    *) ok "wrk2 from $wrk2" ;;
  esac
  if has_image "$(setting GRAFANA_IMAGE)"; then
    ok "Grafana image present"
  else
    warn "no Grafana image ($(setting GRAFANA_IMAGE)): its dashboards' queries can be run in Prometheus"
  fi
  if is_up; then
    drive doctor || bad=1
  else
    warn "the lab is not up: \`make up\` starts it"
  fi
  return "$bad"
}
