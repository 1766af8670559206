#!/usr/bin/env bash
# The steps of make's verbs that only the host can do. Everything else is Python in the driver's image.
#
#   lab.sh ready        an engine, the images, and .lab/<project>/: what Compose is told. LAB_VERB
#                       names a verb whose wrong words are refused at once
#   lab.sh room         fail or warn, in one line, where this machine's memory does not hold the servers
#   lab.sh facts        write host.json: what a run's manifest records of this machine
#   lab.sh jmx          put the JMX exporter into jmx/, for services of the user's own
#   lab.sh step LOG TEXT WORD…  docker compose WORD…, as a step of `make up`; its output is logs/LOG.log
#   lab.sh compose WORD…        docker compose WORD…
#   lab.sh drive VERB           run the driver in the lab, and end it with us
#   lab.sh stored VERB          run a verb that only works on stored results
#   lab.sh start        the containers, here or on several machines; nothing can begin to measure meanwhile
#   lab.sh where        say where the running lab is to be seen
#   lab.sh need-up      fail with one line unless the lab is up
#   lab.sh idle         fail with one line while something is being measured
#   lab.sh down         end the lab; while it measures only with FORCE=yes
#   lab.sh doctor       one line for each thing that can be right or wrong
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. host/common.sh

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
    else
      hard=$(ulimit -Hn)
    fi
  fi
  if [[ $hard =~ ^[0-9]+$ ]] && ((hard < most)); then most=$hard; fi
  printf '%s' "$most"
}

# cAdvisor asks containerd too: the one the engine runs itself, or the system's.
containerd_socket() {
  local own=/run/docker/containerd/containerd.sock
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
  # A part has a machine of its own then.
  if several; then return 0; fi
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

# Who owns what the driver writes to results/: the user, or a plain user when that is root.
# A rootless engine maps root to the user already.
owner() {
  if docker info --format '{{.SecurityOptions}}' 2>/dev/null | grep -q rootless; then
    printf '0 0'
  elif [[ $(id -u) == 0 ]]; then
    printf '10001 10001'
  else
    printf '%s %s' "$(id -u)" "$(id -g)"
  fi
}

# Where the image build takes wrk2 from.
wrk2_source() {
  local given
  given=$(setting WRK2_IMAGE)
  if [[ -z $given ]]; then
    given=$(nixpkgs_image)
    has_image "$given" || given='wrk2-none'
  fi
  printf '%s' "$given"
}

# toxiproxy_cpus SETS: on how many CPUs Toxiproxy runs at a time; empty: on all that it may use, as with a
# CPU set of its own. Beside a server that does next to nothing it needs about a third of the machine.
toxiproxy_cpus() {
  local given cpus
  given=$(setting TOXIPROXY_GOMAXPROCS)
  if [[ -z $given && -z $1 && -z $(setting TOXIPROXY_CPUSET) ]] && ! several; then
    cpus=$(docker info --format '{{.NCPU}}')
    given=${cpus:+$(((cpus + 1) / 2))}
  fi
  if ! [[ $given =~ ^([1-9][0-9]{0,3})?$ ]]; then fail "TOXIPROXY_GOMAXPROCS=$given is not a number of CPUs"; fi
  printf '%s' "$given"
}

# own_services: the services that only the user's own Compose files have, on one line.
own_services() {
  if [[ -z ${COMPOSE_FILE-} && ! -e compose.override.yaml ]]; then return 0; fi
  docker compose --profile '*' config --services 2>/dev/null |
    grep -Fvx "$(docker compose -f compose.yaml --profile '*' config --services)" | paste -sd ' ' - || true
}

# plan: what the driver says of this verb's words (loadgen/src/lab/experiments/reading/profiles.py). This
# checkout's code answers, not the code of an older image.
plan() {
  local running
  mkdir -p "$state/logs"
  running=$(docker ps --filter "label=com.docker.compose.project=$project" \
    --format '{{.Label "com.docker.compose.service"}}')
  LAB_PROFILES=$(setting COMPOSE_PROFILES) LAB_RUNNING=$running LAB_OWN=$own LAB_MACHINES=$(if several; then echo several; fi) driver --ulimit "nofile=$nofile" \
    -e LAB_PROFILES -e LAB_RUNNING -e LAB_OWN -e LAB_MACHINES -e PROFILE -e PYTHONPATH=/lab/src \
    -v "$PWD/loadgen/src:/lab/src:ro" -v "$PWD/prometheus/servers:/lab/servers:ro" \
    -v "$PWD/experiments:/lab/experiments:ro" -v "$PWD/${LAB_SUBJECTS_DIR:-subjects}:/lab/subjects:ro" -v "$(results_folder):/lab/results:ro" \
    "$driver_image" plan ${LAB_VERB:+"$LAB_VERB"} 2>"$state/logs/plan.log"
}

# one_of NAME WORD…: fail unless a setting is one of these words, or none.
one_of() {
  local name=$1 given word
  given=$(setting "$1")
  shift
  for word in "" "$@"; do if [[ $given == "$word" ]]; then return 0; fi; done
  fail "$name=$given: allowed are $*"
}

# replace FROM TO: whole, and only where it differs: Prometheus reads the folder at any time.
replace() {
  if ! cmp -s "$1" "$2"; then cp "$1" "$2.part" && mv "$2.part" "$2"; fi
}

# Services of the user's own, for Prometheus.
write_own_servers() {
  local own=${LAB_OWN_SERVERS:-prometheus/own.json}
  mkdir -p "$state/own"
  if [[ -f $own ]]; then replace "$own" "$state/own/own.json"; else rm -f "$state/own/own.json"; fi
}

# Health checks: often while a container starts, and rarely after that. Engines from 25 on can, if
# Compose from 2.24 on tells them; for others Compose refuses the word, so it is in a file of its own.
# Sets $health_interval and $compose_file.
write_health() {
  local services often=$state/start-interval.yaml
  health_interval=$(setting HEALTH_INTERVAL) compose_file=${COMPOSE_FILE:-compose.yaml}
  if [[ -z ${COMPOSE_FILE-} && -e compose.override.yaml ]]; then compose_file+=:compose.override.yaml; fi
  if at_least "$(docker version --format '{{.Server.Version}}')" 25 0 &&
    at_least "$(docker compose version --short)" 2 24; then
    services=$(docker compose -f compose.yaml --profile '*' config --services | grep -Evx 'driver|executors|costs')
    { echo services: && sed 's/.*/  &: {healthcheck: {start_interval: 2s}}/' <<<"$services"; } >"$often"
    compose_file+=:$often
    : "${health_interval:=2m}"
  fi
  : "${health_interval:=5s}"
}

# write_env PLAN: what Compose is told. Containers of a measurement under way are made anew from what
# is there already: it stays as it is.
write_env() {
  local uid gid profiles password results sets cpus health_interval compose_file
  if [[ -s $state/env ]] && measuring; then return 0; fi
  sets=$(auto_cpu_sets)
  results=$(results_folder)
  mkdir -p "$state"
  read -r uid gid <<<"$(owner)"
  check_results "$results" "$uid" "$gid"

  profiles=$(sed -n 's/^profiles //p' <<<"$1")
  if ! has_image "$(setting GRAFANA_IMAGE)"; then
    profiles=$(tr ',' '\n' <<<"$profiles" | grep -Fvx grafana | paste -sd, - || true)
  fi
  write_own_servers
  write_health
  sed '/^profiles /d' <<<"$1" >"$state/allowed-changes"

  password=$(setting GRAFANA_ADMIN_PASSWORD)
  if [[ -z $password ]]; then
    if [[ ! -s $state/grafana-password ]]; then
      (umask 077 && head -c 18 /dev/urandom | base64 | tr '+/' '-_' >"$state/grafana-password")
    fi
    password=$(<"$state/grafana-password")
  fi

  cpus=$(toxiproxy_cpus "$sets")
  [[ -e $state/host.json ]] || printf '{}\n' >"$state/host.json"
  (
    umask 077
    printf '%s=%q\n' NOFILE "$nofile" CONTAINERD_SOCKET "$(containerd_socket)" LAB_UID "$uid" \
      LAB_GID "$gid" TOXIPROXY_GOMAXPROCS "$cpus" WRK2_IMAGE "$(wrk2_source)" COMPOSE_PROFILES "$profiles" \
      GRAFANA_ADMIN_PASSWORD "$password" GRAFANA_WITHOUT_ADMIN false LAB_OWN "$own" \
      HEALTH_INTERVAL "$health_interval" COMPOSE_FILE "$compose_file" >"$state/env.part"
    printf '%s\n' "$sets" >>"$state/env.part"
    if [[ $(setting JDK) == 21 ]]; then printf 'BLOCKING_JRE_IMAGE=%q\n' "$(setting JRE21_IMAGE)" >>"$state/env.part"; fi
  )
  mv "$state/env.part" "$state/env"
}

# check_project: that no other checkout has a lab of this name: Compose would take its containers over. What
# somebody runs by hand of the lab's images says nothing of a checkout.
check_project() {
  local other
  while read -r other; do
    if [[ -n $other && $(cd "$other" 2>/dev/null && pwd -P) != "$(pwd -P)" ]]; then
      fail "a lab of this name is there, of the checkout $other: \`make down\` ends it, or COMPOSE_PROJECT_NAME and ports of its own (.env) let this one be beside it"
    fi
  done < <(docker ps --all --filter "label=com.docker.compose.project=$project" \
    --format '{{.Label "com.docker.compose.project.working_dir"}}' | sort -u)
}

# Wrong words are refused before anything else is done, if the driver's image is there. Only a line of
# the lab's own counts then: an older image may lack what this checkout's code needs.
ready() {
  local nofile own="" planned="" status=0
  refused() { cat "$state/logs/plan.log" >&2; exit "$status"; }
  one_of BLOCK_THE_LOOP false true spin
  one_of JDK 25 21
  nofile=$(max_open_files)
  if docker version >/dev/null 2>&1 && has_image "$driver_image"; then
    own=$(own_services)
    planned=$(plan) || status=$?
    if ((status != 0)) && grep -q '^lab: ' "$state/logs/plan.log"; then refused; fi
  else
    status=1
  fi
  host/engine.sh
  check_project
  images/present.sh
  if ((status != 0)); then
    own=$(own_services)
    write_env "profiles $(setting COMPOSE_PROFILES)"
    step build-loadgen "the driver's image" build loadgen
    status=0
    planned=$(plan) || status=$?
    if ((status != 0)); then refused; fi
  fi
  write_env "$planned"
}

# Asked before servers are built or started. A heap is no memory until it is used: so what all of them take
# idle must be there, and what they may grow to is worth a warning.
room() {
  local memory idle full profiles profile servers=0 fewer="the engine needs more"
  if several; then return 0; fi
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

# copy_jmx IMAGE: its exporter, as jmx/jmx-exporter.jar.part. Leaves no container, whatever happens.
copy_jmx() (
  container=$(docker create "$1" 2>/dev/null) || return 1
  trap 'docker rm --force "$container" >/dev/null 2>&1 || true' EXIT
  docker cp "$container:/lab/jmx-exporter.jar" - 2>/dev/null | tar -xO >"$state/jmx/jmx-exporter.jar.part" 2>/dev/null \
    && [[ -s $state/jmx/jmx-exporter.jar.part ]]
)

# What a JVM of the user's own needs to be read (docs/your-own-service.md): the exporter, out of the
# image of a server that is there, and its rules.
put_jmx() {
  local page image="" id jmx=$state/jmx
  mkdir -p "$jmx"
  cat servers/jmx-exporter.yaml >"$jmx/jmx-exporter.yaml"
  for page in servers/*/MODEL.md; do
    page=$(basename "$(dirname "$page")")
    if has_image "concurrency-lab/$page:$LAB_TAG"; then image=concurrency-lab/$page:$LAB_TAG; break; fi
  done
  [[ -n $image ]] || return 0
  id=$(docker image inspect --format '{{.Id}}' "$image")
  if [[ -s $jmx/jmx-exporter.jar && $(cat "$jmx/from" 2>/dev/null) == "$id" ]]; then return 0; fi
  if copy_jmx "$image"; then
    mv "$jmx/jmx-exporter.jar.part" "$jmx/jmx-exporter.jar"
    printf '%s\n' "$id" >"$jmx/from"
  else
    rm -f "$jmx/jmx-exporter.jar.part"
    say "lab: warning: no JMX exporter for services of your own: it could not be copied out of $image"
  fi
}

cpu_model() {
  if [[ -r /proc/cpuinfo ]]; then
    awk -F ': *' '/^(model name|Hardware|Model)/ {print $2; exit}' /proc/cpuinfo
  else
    sysctl -n machdep.cpu.brand_string 2>/dev/null || true
  fi
}

# of_engine OPTION…: what an engine says of its machine, as JSON on one line.
of_engine() {
  docker "$@" info --format '{"docker_version": {{json .ServerVersion}}, "cores": {{.NCPU}}, "memory_bytes": {{.MemTotal}},
    "arch": {{json .Architecture}}, "cgroup_version": {{json .CgroupVersion}}, "storage_driver": {{json .Driver}},
    "engine_os": {{json .OperatingSystem}}}' | tr -d '\n'
}

# Of several machines the server's is the one that figures are of; all are told, too.
of_server() {
  local name address id roles
  while read -r name address id roles; do
    printf 'machine %s {"roles": "%s", "kernel": "%s", "engine": %s}\n' "$name" "$roles" \
      "$(docker -H "$address" info --format '{{.KernelVersion}}' </dev/null)" "$(of_engine -H "$address" </dev/null)"
    if [[ ,$roles, == *,server,* ]]; then
      docker -H "$address" info --format 'kernel {{.KernelVersion}}{{"\n"}}os {{.OperatingSystem}}' </dev/null
      printf 'engine %s\n' "$(of_engine -H "$address" </dev/null)"
      printf 'cpu_model %s\n' "$(docker -H "$address" run --rm --network none --read-only --cap-drop ALL --entrypoint cat \
        "$(setting CADVISOR_IMAGE)" /proc/cpuinfo 2>/dev/null </dev/null | awk -F ': *' '/^(model name|Hardware|Model)/ {print $2; exit}')"
    fi
  done <"$state/several/nodes"
}

# What this machine says of itself, "name value" a line (loadgen/src/lab/model/host_facts.py).
tell_facts() {
  local image name
  printf 'commit %s\n' "$(git rev-parse --verify -q HEAD 2>/dev/null || echo unknown)"
  if [[ -n $(git status --porcelain 2>/dev/null) ]]; then printf 'commit_dirty yes\n'; fi
  if several; then
    of_server
  else
    printf 'cpu_model %s\nkernel %s\n' "$(cpu_model)" "$(uname -r)"
    printf 'os %s\n' "$(. /etc/os-release 2>/dev/null && printf '%s' "${PRETTY_NAME-}" || uname -s)"
    printf 'engine %s\n' "$(of_engine)"
  fi
  printf 'compose_version %s\nnofile %s\n' "$(docker compose version --short)" "$(read_off NOFILE)"
  # Empty: all CPUs that it may use.
  printf 'toxiproxy_gomaxprocs %s\n' "$(read_off TOXIPROXY_GOMAXPROCS)"
  for name in LOADGEN TOXIPROXY DOWNSTREAM OBSERVATION; do
    printf 'cpuset %s %s\n' "$name" "$(cpu_set "${name}_CPUSET")"
  done
  if own_cpu_sets; then printf 'cpu_sets auto\n'; fi
  # Of the profiles that are up, and of one that only this verb is about to start. The lab's own have one name in
  # every lab, so that runs of two labs can be compared.
  for image in $(COMPOSE_PROFILES=$(read_off COMPOSE_PROFILES),${COMPOSE_PROFILES-} docker compose config --images 2>/dev/null | sort -u); do
    if [[ $image == concurrency-lab/*:"$LAB_TAG" ]]; then tell_image "$image" "${image%:*}:local"; else tell_image "$image" "$image"; fi
  done
  if [[ ${LAB_VERB-} == gate ]]; then
    for image in "${BASE-}" "${CANDIDATE-}"; do tell_image "$image" "$image"; done
  fi
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

step() {
  local log=$state/logs/$1.log text=$2 start=$SECONDS
  shift 2
  mkdir -p "$state/logs"
  if [[ -t 1 ]]; then printf '%s …\r' "$text"; fi
  if ! compose "$@" >"$log" 2>&1 </dev/null; then
    tail -n 30 "$log" >&2
    # The downstream says in its own log which setting it refuses, and what is allowed.
    if [[ $1 == up ]]; then compose logs --no-log-prefix --tail 1 downstream 2>/dev/null | grep 'DOWNSTREAM_' >&2 || true; fi
    fail "failed: $text (all of its output: $log)"
  fi
  printf '%s: ready, %d s\n' "$text" $((SECONDS - start))
}

where() {
  local profiles sets password=$state/grafana-password
  profiles=$(read_off COMPOSE_PROFILES)
  printf 'lab: up. Control page http://localhost:%s' "$(setting LOADGEN_PORT)"
  if [[ $profiles == *grafana* ]]; then
    printf ' · Grafana http://localhost:%s' "$(setting GRAFANA_PORT)"
  fi
  printf ' · Prometheus http://localhost:%s · Toxiproxy API http://localhost:%s\n' \
    "$(setting PROMETHEUS_PORT)" "$(setting TOXIPROXY_PORT)"
  if [[ $profiles == *grafana* ]]; then
    if [[ -n $(setting GRAFANA_ADMIN_PASSWORD) ]]; then password=GRAFANA_ADMIN_PASSWORD; fi
    printf 'lab: who edits dashboards logs in to Grafana as admin, with the password in %s\n' "$password"
  fi
  sets=$(cpu_sets_text)
  if [[ -n $sets ]]; then printf 'lab: %s\n' "$sets"; fi
}

is_up() {
  if [[ -e $state/several/up ]]; then
    (at_generator && [[ -n $(docker ps --quiet --filter "label=com.docker.compose.project=$project" --filter label=com.docker.compose.service=loadgen) ]])
    return
  fi
  [[ -f $state/env && -n $(docker compose ps --quiet --status running loadgen 2>/dev/null) ]]
}

# at_generator: from now on docker asks the generator's node, and compose knows the driver alone, where the lab is up on
# several machines.
at_generator() {
  if [[ ! -e $state/several/up ]]; then return 1; fi
  DOCKER_HOST=$(awk -v role=generator '"," $4 "," ~ "," role "," {print $2}' "$state/several/nodes")
  export DOCKER_HOST
  driver_only=yes
}

# What a driver may ask of this host while it measures is done by changes.sh, in a folder that both
# see. $changes is its process, empty for verbs that ask nothing.
start_changes() {
  local parent
  changes="" changes_folder=""
  # Nobody on that machine answers.
  if [[ -n ${driver_only-} ]]; then return 0; fi
  case $1 in run | bench | capacity | explain | gate) ;; *) return 0 ;; esac
  parent=$(results_folder)/.host-changes
  # Containers can write beside it: a link there would lead elsewhere.
  if [[ -L $parent ]]; then fail "$parent is a link; remove it"; fi
  mkdir -p "$parent"
  changes_folder=$(mktemp -d "$parent/XXXXXX")
  if [[ $(id -u) == 0 ]]; then chown -h "$(read_off LAB_UID):$(read_off LAB_GID)" "$parent" "$changes_folder"; fi
  host/changes.sh "$changes_folder" "$2" $$ &
  changes=$!
}

stop_changes() {
  if [[ -z $changes ]]; then return 0; fi
  kill -TERM "$changes" 2>/dev/null || true
  while kill -0 "$changes" 2>/dev/null; do wait "$changes" || true; done
  rm -rf "$changes_folder"
  changes=""
}

# await_driver FILE: its exit status, once it has ended. A Ctrl-C ends whoever waits for that, too. An engine that is
# away for a minute is not awaited any longer.
await_driver() {
  local away=0
  : >"$1"
  until docker wait "$name" >"$1" 2>/dev/null; do
    if [[ $(docker inspect "$name" 2>&1) == *"o such "* ]]; then return; fi
    if docker version >/dev/null 2>&1; then away=0; else away=$((away + 1)); fi
    if ((away > 60)); then say "lab: the engine does not answer any more; nobody knows what became of the run"; return; fi
    sleep 1
  done
}

# The driver in a container of its own. A signal ends the load, not only the client that
# shows it: without a terminal, `docker compose run` leaves the container running (seen with
# Compose 2.26), so there the container runs detached and gets the signal by name.
drive() {
  local name=$project-driver-$$ status=0 logs changes changes_folder word ended=$state/ended.$$
  local run=(compose run --no-deps --name "$name" -e LAB_WORDS -e LAB_SETTING_NAMES)
  for word in LAB_LIMITS NO_COLOR COLUMNS; do if [[ -n ${!word-} ]]; then run+=(-e "$word"); fi; done
  start_changes "${1-}" "$name"
  if [[ -n $changes ]]; then run+=(-e "LAB_HOST_CHANGES=$(basename "$changes_folder")"); fi
  trap 'docker kill --signal INT "$name" >/dev/null 2>&1 || true' INT TERM HUP
  if [[ -t 0 && -t 1 ]]; then
    "${run[@]}" --rm driver "$@" || status=$?
    # However the client ended, no load goes on.
    if docker kill --signal INT "$name" >/dev/null 2>&1; then await_driver /dev/null; fi
    stop_changes
    return "$status"
  fi
  if ! "${run[@]}" --detach driver "$@" >/dev/null; then
    stop_changes
    return 1
  fi
  docker logs --follow "$name" &
  logs=$!
  while kill -0 "$logs" 2>/dev/null; do
    status=0
    wait "$logs" || status=$?
  done
  await_driver "$ended"
  # Nothing is left to be ended.
  trap '' INT TERM HUP
  # The client of the log ends with a Ctrl-C; the driver had something to say after it.
  if ((status != 0)); then docker logs --tail 20 "$name" || true; fi
  status=$(<"$ended")
  rm "$ended"
  docker rm "$name" >/dev/null 2>&1 || true
  stop_changes
  return "${status:-1}"
}

# drive_there VERB: on the generator's node, with the run that it goes on with; its runs come home, however it ended.
drive_there() {
  local status=0
  env -u DOCKER_HOST host/swarm.sh resumed
  drive "$@" || status=$?
  unset DOCKER_HOST
  host/swarm.sh results || fail "the run could not be brought here: it is on the generator's node, and \`make down\` tries again"
  return "$status"
}

# A verb that works on stored results needs no lab: no network, no volume.
stored() {
  local terminal=()
  if [[ -t 0 && -t 1 ]]; then terminal=(--interactive --tty); fi
  driver ${terminal[@]+"${terminal[@]}"} --user "$(read_off LAB_UID):$(read_off LAB_GID)" \
    -v "$(results_folder):/lab/results" "$driver_image" "$@"
}

# What measures, in whatever container, holds a lock (loadgen/src/lab/system/lock.py), and every container
# with its volume sees that: the agent's, or where no lab is up a driver's own. Without any, nothing
# is measured. Exits with 0 where this lab measures, with `all` where any lab on this machine does ($measured_in),
# with 1 where not, and with 2 where no container of this lab that runs answers.
measuring() {
  local of container status answer=1 told="" label=com.docker.compose.project
  if [[ ${1-} != all ]]; then label+="=$project"; fi
  # In reverse, so that loadgen comes before driver, which may be at work.
  while read -r of _ container; do
    # One container of that lab has answered.
    if [[ $of == "$told" ]]; then continue; fi
    status=0
    docker exec "$container" flock --shared --nonblock --conflict-exit-code 75 /lab/lock true >/dev/null 2>&1 </dev/null || status=$?
    if ((status == 75)); then
      measured_in=$of
      return 0
    elif ((status == 0)); then
      told=$of
      if [[ $of == "$project" ]]; then answer=1; fi
    # It may have ended meanwhile.
    elif [[ $of == "$project" && $(docker inspect --format '{{.State.Running}}' "$container" 2>/dev/null) == true ]]; then
      answer=2
    fi
  done < <(docker ps --filter status=running --filter status=paused --filter "label=$label" --filter volume=/lab/lock \
    --format '{{.Label "com.docker.compose.project"}} {{.Label "com.docker.compose.service"}} {{.ID}}' 2>/dev/null | sort -r)
  return "$answer"
}

# Another lab on this machine counts, too: what is built or started here would be in its figures.
idle() {
  local status=0 measured_in="" where=""
  measuring all || status=$?
  if ((status == 1)) && at_generator; then
    status=0
    measuring all || status=$?
  fi
  if [[ $measured_in != "$project" ]]; then where=", in the lab $measured_in of this machine"; fi
  if ((status == 0)); then fail "another measurement is under way$where; wait for its end"; fi
  if ((status == 2)); then fail "the lab's agent does not answer, so nobody knows whether something is measured; \`make down\` stops the lab"; fi
}

# hold: nothing can begin to measure any more, until `let_go` or the end of this process, however it ends: what
# measurements hold is held here. Where no lab has been there is nothing to hold, and nobody who measures.
hold() {
  local volume=${project}_lock
  if ! docker volume inspect "$volume" >/dev/null 2>&1; then return 0; fi
  # Another `make up` has a file of its own.
  said=$state/held.$$
  : >"$said"
  # It ends with its standard input.
  exec 9> >(
    driver --interactive --volume "$volume:/lab/lock:ro" --entrypoint flock "$driver_image" \
      --exclusive --wait 2 --conflict-exit-code 75 /lab/lock sh -c 'echo held; cat >/dev/null' >"$said" 2>&1 &&
      echo ended 0 >>"$said" || echo "ended $?" >>"$said"
  )
  until grep -q -e '^held' -e '^ended' "$said"; do sleep 0.1; done
  if grep -q '^ended 75' "$said"; then fail "another measurement is under way; wait for its end"; fi
  if grep -q '^ended' "$said"; then fail "nobody knows whether something is measured: $(head -n 1 "$said")"; fi
}
let_go() {
  if [[ -z ${said-} ]]; then return 0; fi
  exec 9>&-
  # Whoever else makes this lab's containers may have taken the file away.
  while [[ -e $said ]] && ! grep -q '^ended' "$said"; do sleep 0.05; done
  rm -f "$said"
}

# The containers, all built: on this machine, or on those of HOSTS=. Between a look and the change there would be time for a bench to begin.
start() {
  # In a process of its own: it may turn to the generator's engine.
  (idle)
  if several; then exec host/swarm.sh up; fi
  hold
  host/changes.sh put-back
  step up "containers, until all are healthy" up --detach --wait --remove-orphans
  write_facts
  let_go
  host/grafana-password.sh
  where
}

down() {
  local measured_in
  if [[ ${FORCE-} != yes ]] && { measuring || (at_generator && measuring); }; then
    fail "a measurement is under way; wait for its end, or \`make down FORCE=yes\`"
  fi
  if several; then exec host/swarm.sh down; fi
  compose --profile '*' down --volumes --remove-orphans
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
    if [[ $said == *name=$name* ]]; then warn "the engine runs with $name: the lab was never tried with it"; fi
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
    if at_generator; then warn "the lab is up on several machines: what is said above is of this one"; fi
    drive doctor || bad=1
  else
    warn "the lab is not up: \`make up\` starts it"
  fi
  return "$bad"
}

# gated: what the gate is judged by is a file of the host's, which no container sees; and its images are here.
gated() {
  local word file=${LIMITS:-gate.toml}
  if ! [[ -f $file && -r $file ]]; then fail "gate: LIMITS=$file is not a file that can be read"; fi
  LAB_LIMITS=$(<"$file")
  export LAB_LIMITS
  for word in BASE CANDIDATE; do
    if [[ ${!word-} == */* ]] && docker version >/dev/null 2>&1 && ! has_image "${!word}"; then
      fail "gate: $word=${!word} is not an image that this engine has"
    fi
  done
}

# ended VERB: ./lab gets the driver's own exit status as a file, as make makes 2 of any. To make an answer
# (11: worse or slower, 13: cannot tell) is no failure, but a gate's.
ended() {
  local status=$?
  if [[ -n ${LAB_ANSWER-} ]]; then printf '%s\n' "$status" >"$LAB_ANSWER" && exit 0; fi
  if [[ $1 != gate && ($status == 11 || $status == 13) ]]; then exit 0; fi
}

if [[ ${LAB_VERB-} == gate || ${2-} == gate ]]; then gated; fi
case ${1-} in
  ready) ready ;;
  room) room ;;
  start) start ;;
  facts) write_facts ;;
  jmx) put_jmx ;;
  compose) compose "${@:2}" ;;
  step) step "${@:2}" ;;
  drive | stored)
    # By then $2 may be that of a function.
    verb=${2-}
    trap 'ended "$verb"' EXIT
    if [[ $1 == drive ]] && at_generator; then drive_there "${@:2}"; else "$@"; fi
    ;;
  where) where ;;
  need-up) is_up || fail "the lab is not up: \`make up\` starts it" ;;
  idle) idle ;;
  down) down ;;
  doctor) doctor ;;
  *) fail "host/lab.sh: '${1-}' is not one of ready, room, start, facts, jmx, compose, step, drive, stored, where, need-up, idle, down, doctor" ;;
esac
