# shellcheck shell=bash
# What a run's manifest records of this machine: host.json. Sourced by lab.sh.

: "${state:?}" "${driver_image:?}"

cpu_model() {
  if [[ -r /proc/cpuinfo ]]; then
    awk -F ': *' '/^(model name|Hardware|Model)/ {print $2; exit}' /proc/cpuinfo
  else
    sysctl -n machdep.cpu.brand_string 2>/dev/null || true
  fi
}

# cpu_id: vendor, family and model (of ARM implementer and part), which a virtual machine may leave out of the name; nothing
# where there are none.
cpu_id() {
  awk -F '[\t ]*: ' '$1 ~ /^(vendor_id|cpu family|model|CPU implementer|CPU part)$/ {printf "%s ", $2; seen = 1} seen && !NF {exit}' /proc/cpuinfo 2>/dev/null || true
}

# of_engine: what an engine says of its machine, as JSON on one line.
of_engine() {
  docker info --format '{"docker_version": {{json .ServerVersion}}, "cores": {{.NCPU}}, "memory_bytes": {{.MemTotal}},
    "arch": {{json .Architecture}}, "cgroup_version": {{json .CgroupVersion}}, "storage_driver": {{json .Driver}},
    "engine_os": {{json .OperatingSystem}}, "kernel": {{json .KernelVersion}}}' | tr -d '\n'
}

# machines: those of a Swarm, by their host names, as a manager describes them (docs/several-machines.md).
machines() {
  local name
  for name in ${MACHINES-}; do
    docker node inspect --format "machine $name"' {"engine": {{json .Description.Engine.EngineVersion}}, "arch": {{json .Description.Platform.Architecture}}, "nano_cpus": {{.Description.Resources.NanoCPUs}}, "memory_bytes": {{.Description.Resources.MemoryBytes}}, "labels": {{json .Spec.Labels}}}' "$name"
  done
}

# What this machine says of itself, "name value" a line (loadgen/src/lab/model/host_facts.py).
tell_facts() {
  local image name
  printf 'commit %s\n' "$(git rev-parse --verify -q HEAD 2>/dev/null || echo unknown)"
  if [[ -n $(git status --porcelain 2>/dev/null) ]]; then printf 'commit_dirty yes\n'; fi
  printf 'cpu_model %s\n' "$(cpu_model)"
  printf 'cpu_id %s\n' "$(cpu_id)"
  printf 'os %s\n' "$(. /etc/os-release 2>/dev/null && printf '%s' "${PRETTY_NAME-}" || uname -s)"
  printf 'engine %s\n' "$(of_engine)"
  machines
  printf 'compose_version %s\nnofile %s\n' "$(docker compose version --short)" "$(read_off NOFILE)"
  # Empty: all CPUs that it may use.
  printf 'toxiproxy_gomaxprocs %s\n' "$(read_off TOXIPROXY_GOMAXPROCS)"
  for name in LOADGEN TOXIPROXY DOWNSTREAM OBSERVATION; do
    printf 'cpuset %s %s\n' "$name" "$(cpu_set "${name}_CPUSET")"
  done
  if own_cpu_sets; then printf 'cpu_sets auto\n'; fi
  # Of the profiles that are up, and of one that only this verb is about to start. The lab's own have one name in
  # every lab, so that runs of two labs can be compared.
  # shellcheck source=/dev/null
  for image in $(further=${COMPOSE_PROFILES-}; set -a; . "./$state/env"; COMPOSE_PROFILES+=,$further; docker compose config --images 2>/dev/null | sort -u); do
    if [[ $image == concurrency-lab/*:"$LAB_TAG" ]]; then tell_image "$image" "${image%:*}:local"; else tell_image "$image" "$image"; fi
  done
  # Of services of the user's own no JVM says what it is made of: the engine does.
  for name in $(own_services); do tell_service "$name"; done
  if [[ ${LAB_VERB-} == gate ]]; then
    for image in "${BASE-}" "${CANDIDATE-}"; do tell_image "$image" "$image"; done
  fi
}

# tell_service NAME: what its container is made of and its limits, of the first one where it has several. 0: no limit.
# `config` is what it runs with: a run keeps only a sum of it. `binds` are the folders of the host that it sees, and null.
tell_service() {
  local ids
  ids=$(docker compose ps --quiet "$1" 2>/dev/null || true)
  if [[ -z $ids ]]; then return 0; fi
  docker inspect --format \
    "service $1 {\"containers\": $(wc -l <<<"$ids" | tr -d ' '), "'"image": {{json .Image}}, "config": [{{json .Config.Env}}, {{json .Config.Entrypoint}}, {{json .Config.Cmd}}], "nano_cpus": {{.HostConfig.NanoCpus}}, "cpu_quota": {{.HostConfig.CpuQuota}}, "cpu_period": {{.HostConfig.CpuPeriod}}, "cpuset": {{json .HostConfig.CpusetCpus}}, "memory_bytes": {{.HostConfig.Memory}}, "binds": [{{range .Mounts}}{{if eq .Type "bind"}}{{json .Destination}}, {{end}}{{end}}null]}' \
    "${ids%%$'\n'*}" 2>/dev/null || true
}

tell_image() {
  docker image inspect --format \
    "image $2"' {"id": {{json .Id}}, "digests": {{json .RepoDigests}}, "built_from": {{with .Config.Labels}}{{json (index . "lab.built-from")}}{{else}}""{{end}}}' \
    "$1" 2>/dev/null || true
}

write_facts() {
  tell_facts | driver --interactive "$driver_image" host-facts >"$state/host.json.part"
  # Written in place: running containers hold this very file mounted.
  cat "$state/host.json.part" >"$state/host.json"
  rm "$state/host.json.part"
}
