#!/usr/bin/env bash
# What this machine has, read once for the whole lab.
#
#   host.sh env         write .lab/env: what compose needs to know of this machine
#   host.sh facts       write .lab/host.json: what a run's manifest records of it
#   host.sh jmx         put the JMX exporter into .lab/jmx, for services of the user's own
#   host.sh step LOG TEXT COMMAND…  run a step of `make up`; its output is .lab/logs/LOG.log
#   host.sh drive VERB…             run the driver, and end it with us
#   host.sh where       say where the running lab is to be seen
#   host.sh check VERB  refuse wrong words of a verb early, if the driver's image is there
#   host.sh need-up     fail with one line unless the lab is up
#   host.sh idle        fail with one line while something is being measured
#   host.sh doctor      one line for each thing that can be right or wrong
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '%s\n' "$*" >&2; }
fail() { say "lab: $*"; exit 1; }

# setting NAME: the value of a setting, the shell's before .env's.
setting() {
  if [[ -n ${!1-} ]]; then printf '%s' "${!1}"; else sed -n "s/^$1=//p" .env | head -n 1; fi
}

# read_off NAME: what write_env wrote down of this machine.
read_off() { sed -n "s/^$1=//p" .lab/env; }

# All of it, for docker compose.
export_env() { set -a; . ./.lab/env; set +a; }

has_image() { docker image inspect "$1" >/dev/null 2>&1; }

# The open files a container may have: no more than the engine itself may hand on.
max_open_files() {
  local most=1048576 hard="" pid
  if [[ $(uname -s) == Linux ]]; then
    pid=$(pidof dockerd 2>/dev/null | tr ' ' '\n' | head -n 1 || true)
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

# The compose profiles of servers: a list of names in prometheus/servers/ each, besides the core.
server_profiles() {
  local list
  for list in prometheus/servers/*.json; do basename "$list" .json; done | grep -vx core
}

# in_list NAME FILE: whether it is one of that list's servers.
in_list() { sed -n '/"targets"/,/]/p' "$2" | grep -qF "\"$1\""; }

# needed PROFILE: whether the words name one of its servers, or their experiment does, or one runs.
needed() {
  local list=prometheus/servers/$1.json word running
  for word in $(tr , " " <<<"${SERVER-}"); do
    if in_list "$word" "$list"; then return 0; fi
  done
  if [[ -n ${EXP-} && -f experiments/$EXP.toml && -z ${SERVER-} ]]; then
    for word in $(sed -n '/^servers *=/,/]/p' "experiments/$EXP.toml" | grep -o '"[^"]*"' | tr -d '"'); do
      if in_list "$word" "$list"; then return 0; fi
    done
  fi
  if [[ -n ${RESUME-} ]]; then
    for word in $(sed -n '/"servers"/,$p' "$(setting LAB_RESULTS_DIR)/$RESUME/manifest.json" 2>/dev/null | grep -o '"[a-z0-9-]*"' | tr -d '"' | sort -u); do
      if in_list "$word" "$list"; then return 0; fi
    done
  fi
  running=$(docker ps --filter "label=com.docker.compose.project=${COMPOSE_PROJECT_NAME:-concurrency-lab}" \
    --format '{{.Label "com.docker.compose.service"}}' 2>/dev/null)
  for word in $running; do
    if in_list "$word" "$list"; then return 0; fi
  done
  return 1
}

# The lists of the servers that are to be up, for Prometheus and the driver.
write_servers() {
  local list name
  mkdir -p .lab/servers
  for list in .lab/servers/*.json; do
    name=$(basename "$list" .json)
    if [[ $name != core && ",$1," != *",$name,"* ]]; then rm -f "$list"; fi
  done
  for name in core ${1//,/ }; do
    list=prometheus/servers/$name.json
    if [[ -f $list ]] && ! cmp -s "$list" ".lab/servers/$name.json"; then
      cp "$list" ".lab/servers/.$name.part" && mv ".lab/servers/.$name.part" ".lab/servers/$name.json"
    fi
  done
  # Services of the user's own: for Prometheus only, they are no servers of the lab.
  mkdir -p .lab/servers/own
  list=${LAB_OWN_SERVERS:-prometheus/own.json}
  if [[ ! -f $list ]]; then
    rm -f .lab/servers/own/own.json
  elif ! cmp -s "$list" .lab/servers/own/own.json; then
    cp "$list" .lab/servers/own/.part && mv .lab/servers/own/.part .lab/servers/own/own.json
  fi
}

# What Compose is told. Containers of a measurement under way are made anew from what is there
# already: it stays as it is.
write_env() {
  if [[ -s .lab/env ]] && measuring; then return 0; fi
  local uid gid wrk2 profiles profile password results
  results=$(setting LAB_RESULTS_DIR)
  mkdir -p .lab "$results"
  read -r uid gid <<<"$(owner)"
  if [[ $(id -u) == 0 ]]; then chown "$uid:$gid" "$results"; fi

  wrk2=$(setting WRK2_IMAGE)
  if [[ -z $wrk2 ]]; then
    if has_image "$(setting NIX_IMAGE)"; then wrk2='wrk2-nixpkgs'; else wrk2='wrk2-none'; fi
  fi

  profiles=$(setting COMPOSE_PROFILES)
  if ! has_image "$(setting GRAFANA_IMAGE)"; then
    profiles=$(tr ',' '\n' <<<"$profiles" | grep -vx grafana | paste -sd, - || true)
  fi

  for profile in $(tr , " " <<<"${PROFILE-}"); do
    if ! server_profiles | grep -qx -- "$profile"; then
      fail "PROFILE=$profile is not a profile; allowed: $(server_profiles | paste -sd, - | sed 's/,/, /g')"
    fi
    profiles=${profiles:+$profiles,}$profile
  done
  for profile in $(server_profiles); do
    if [[ ,$profiles, != *",$profile,"* ]] && needed "$profile"; then profiles=${profiles:+$profiles,}$profile; fi
  done
  write_servers "$profiles"

  password=$(setting GRAFANA_ADMIN_PASSWORD)
  if [[ -z $password ]]; then
    if [[ ! -s .lab/grafana-password ]]; then
      (umask 077 && head -c 18 /dev/urandom | base64 | tr '+/' '-_' >.lab/grafana-password)
    fi
    password=$(<.lab/grafana-password)
  fi

  [[ -e .lab/host.json ]] || printf '{}\n' >.lab/host.json
  (
    umask 077
    {
      printf 'NOFILE=%s\n' "${NOFILE:-$(max_open_files)}"
      printf 'CONTAINERD_SOCKET=%s\n' "$(containerd_socket)"
      printf 'LAB_UID=%s\nLAB_GID=%s\n' "$uid" "$gid"
      printf 'WRK2_IMAGE=%q\nCOMPOSE_PROFILES=%q\nGRAFANA_ADMIN_PASSWORD=%q\n' "$wrk2" "$profiles" "$password"
      printf 'GRAFANA_WITHOUT_ADMIN=false\n'
    } >.lab/env.part
  )
  mv .lab/env.part .lab/env
}

# copy_jmx IMAGE: its exporter, as .lab/jmx/jmx-exporter.jar.part. Leaves no container, whatever happens.
copy_jmx() (
  container=$(docker create "$1" 2>/dev/null) || return 1
  trap 'docker rm --force "$container" >/dev/null 2>&1 || true' EXIT
  docker cp "$container:/lab/jmx-exporter.jar" - 2>/dev/null | tar -xO >.lab/jmx/jmx-exporter.jar.part 2>/dev/null \
    && [[ -s .lab/jmx/jmx-exporter.jar.part ]]
)

# What a JVM of the user's own needs to be read (docs/your-own-service.md): the exporter, out of the
# image of a server that is there, and its rules.
put_jmx() {
  local page image="" id container
  mkdir -p .lab/jmx
  cat servers/jmx-exporter.yaml >.lab/jmx/jmx-exporter.yaml
  for page in servers/*/MODEL.md; do
    page=$(basename "$(dirname "$page")")
    if has_image "concurrency-lab/$page:local"; then image=concurrency-lab/$page:local; break; fi
  done
  [[ -n $image ]] || return 0
  id=$(docker image inspect --format '{{.Id}}' "$image")
  if [[ -s .lab/jmx/jmx-exporter.jar && $(cat .lab/jmx/from 2>/dev/null) == "$id" ]]; then return 0; fi
  if copy_jmx "$image"; then
    mv .lab/jmx/jmx-exporter.jar.part .lab/jmx/jmx-exporter.jar
    printf '%s\n' "$id" >.lab/jmx/from
  else
    rm -f .lab/jmx/jmx-exporter.jar.part
    say "lab: warning: no JMX exporter for services of your own: it could not be copied out of $image"
  fi
}

# A JSON string of whatever text comes in.
json() { printf '"%s"' "$(tr -d '\000-\037' <<<"${1-}" | sed 's/\\/\\\\/g; s/"/\\"/g')"; }

# cpus NAME: the CPU set of a container as compose sees it, where an empty word wins over .env too.
cpus() { if [[ -n ${!1+set} ]]; then json "${!1}"; else json "$(setting "$1")"; fi; }

cpu_model() {
  if [[ -r /proc/cpuinfo ]]; then
    awk -F ': *' '/^(model name|Hardware|Model)/ {print $2; exit}' /proc/cpuinfo
  else
    sysctl -n machdep.cpu.brand_string 2>/dev/null || true
  fi
}

write_facts() {
  local commit=unknown dirty=false images
  if git rev-parse --verify -q HEAD >/dev/null 2>&1; then
    commit=$(git rev-parse HEAD)
    if [[ -n $(git status --porcelain 2>/dev/null) ]]; then dirty=true; fi
  fi
  images=$(docker compose config --images 2>/dev/null | sort -u)
  {
    printf '{\n  "commit": %s,\n  "commit_dirty": %s,\n' "$(json "$commit")" "$dirty"
    printf '  "cpu_model": %s,\n  "kernel": %s,\n  "os": %s,\n' \
      "$(json "$(cpu_model)")" "$(json "$(uname -r)")" \
      "$(json "$(. /etc/os-release 2>/dev/null && printf '%s' "${PRETTY_NAME-}" || uname -s)")"
    docker info --format '  "docker_version": {{json .ServerVersion}},
  "cores": {{.NCPU}},
  "memory_bytes": {{.MemTotal}},
  "arch": {{json .Architecture}},
  "cgroup_version": {{json .CgroupVersion}},
  "storage_driver": {{json .Driver}},
  "engine_os": {{json .OperatingSystem}},'
    printf '  "compose_version": %s,\n  "nofile": %s,\n' "$(json "$(docker compose version --short)")" "$(read_off NOFILE)"
    printf '  "cpusets": {"loadgen": %s, "toxiproxy": %s, "downstream": %s},\n  "images": {' \
      "$(cpus LOADGEN_CPUSET)" "$(cpus TOXIPROXY_CPUSET)" "$(cpus DOWNSTREAM_CPUSET)"
    local separator="" image
    for image in $images; do
      has_image "$image" || continue
      printf '%s\n    %s: ' "$separator" "$(json "$image")"
      docker image inspect --format \
        '{"id": {{json .Id}}, "digests": {{json .RepoDigests}}, "built_from": {{with .Config.Labels}}{{json (index . "lab.built-from")}}{{else}}""{{end}}}' \
        "$image" | tr -d '\n'
      separator=,
    done
    printf '\n  }\n}\n'
  } >.lab/host.json.part
  # Written in place: running containers hold this very file mounted.
  cat .lab/host.json.part >.lab/host.json
  rm .lab/host.json.part
}

step() {
  local log=.lab/logs/$1.log text=$2 start=$SECONDS
  shift 2
  mkdir -p .lab/logs
  export_env
  if [[ -t 1 ]]; then printf '%s …\r' "$text"; fi
  if ! "$@" >"$log" 2>&1 </dev/null; then
    tail -n 30 "$log" >&2
    fail "failed: $text (all of its output: $log)"
  fi
  printf '%s: ready, %d s\n' "$text" $((SECONDS - start))
}

where() {
  local profiles password=.lab/grafana-password
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
}

is_up() { [[ -f .lab/env ]] && [[ -n $(docker compose ps --quiet --status running loadgen 2>/dev/null) ]]; }

# What a driver may ask of this host while it measures is done by hands.sh, in a folder that both
# see; $hands is its process, empty for verbs that ask nothing.
start_hands() {
  local results name=$2
  hands="" hands_folder=""
  case $1 in run | bench | explain) ;; *) return 0 ;; esac
  results=$(setting LAB_RESULTS_DIR)
  hands_folder=$results/.hands/$$
  mkdir -p "$hands_folder"
  if [[ $(id -u) == 0 ]]; then chown "$(read_off LAB_UID):$(read_off LAB_GID)" "$results/.hands" "$hands_folder"; fi
  images/hands.sh "$(cd "$hands_folder" && pwd)" "$name" $$ &
  hands=$!
}

stop_hands() {
  if [[ -z $hands ]]; then return 0; fi
  kill -TERM "$hands" 2>/dev/null || true
  while kill -0 "$hands" 2>/dev/null; do wait "$hands" || true; done
  rm -rf "$hands_folder"
  hands=""
}

# The driver in a container of its own. A signal ends the load, not only the client that
# shows it: without a terminal, `docker compose run` leaves the container running (seen with
# Compose 2.26), so there the container runs detached and gets the signal by name.
drive() {
  local name=${COMPOSE_PROJECT_NAME:-concurrency-lab}-driver-$$ status=0 logs
  local run=(docker compose run --no-deps --name "$name" -e LAB_WORDS -e LAB_SETTING_NAMES)
  local hands hands_folder
  export_env
  start_hands "${1-}" "$name"
  if [[ -n $hands ]]; then run+=(-e "LAB_HANDS=$$"); fi
  trap 'docker kill --signal INT "$name" >/dev/null 2>&1 || true' INT TERM HUP
  if [[ -t 0 && -t 1 ]]; then
    "${run[@]}" --rm driver "$@" || status=$?
    # However the client ended, no load goes on.
    docker kill --signal INT "$name" >/dev/null 2>&1 && docker wait "$name" >/dev/null 2>&1
    stop_hands
    return "$status"
  fi
  if ! "${run[@]}" --detach driver "$@" >/dev/null; then
    stop_hands
    return 1
  fi
  docker logs --follow "$name" &
  logs=$!
  while kill -0 "$logs" 2>/dev/null; do
    status=0
    wait "$logs" || status=$?
  done
  # The client of the log ends with a Ctrl-C; the driver still has something to say then.
  if ((status != 0)); then
    docker wait "$name" >/dev/null
    docker logs --tail 20 "$name"
  fi
  status=$(docker wait "$name")
  docker rm "$name" >/dev/null
  stop_hands
  return "$status"
}

# What measures, in whatever container, holds a lock (loadgen/src/lab/system/lock.py), and every container
# with its volume sees that: the agent's, or where no lab is up a driver's own. Without any, nothing
# is measured.
measuring() {
  local container status
  # In reverse, so that loadgen comes before driver, which may be at work.
  for container in $(docker ps --filter "label=com.docker.compose.project=${COMPOSE_PROJECT_NAME:-concurrency-lab}" \
    --filter volume=/lab/lock --format '{{.Label "com.docker.compose.service"}} {{.ID}}' 2>/dev/null | sort -r | cut -d ' ' -f 2); do
    status=0
    docker exec "$container" flock --shared --nonblock --conflict-exit-code 75 /lab/lock true >/dev/null 2>&1 || status=$?
    if ((status == 75)); then return 0; fi
    if ((status == 0)); then return 1; fi
  done
  return 1
}

idle() {
  if measuring; then fail "another measurement is under way; wait for its end"; fi
}

# The words are checked again by the driver; this only spares a wait for a typing error. This
# checkout's code judges, not what an older image holds; only its "wrong word" (2) ends the verb.
check() {
  case $1 in compare | report) ;; *) idle ;; esac
  docker info >/dev/null 2>&1 && has_image concurrency-lab/loadgen:local && [[ -f .lab/env ]] || return 0
  local said status=0
  write_env
  said=$(docker run --rm --network none --read-only --cap-drop ALL -e LAB_WORDS -e LAB_SETTING_NAMES \
    --ulimit "nofile=$(read_off NOFILE)" -e LAB_HOME=/lab -e PYTHONPATH=/lab/src \
    -v "$PWD/loadgen/src:/lab/src:ro" -v "$PWD/.lab/servers:/lab/servers:ro" \
    -v "$PWD/experiments:/lab/experiments:ro" -v "$(realpath "$(setting LAB_RESULTS_DIR)"):/lab/results:ro" \
    concurrency-lab/loadgen:local check "$1" 2>&1) || status=$?
  if ((status == 2)); then
    say "$said"
    return 2
  fi
}

doctor() {
  local bad=0
  ok() { printf 'ok    %s\n' "$*"; }
  warn() { printf 'warn  %s\n' "$*"; }
  wrong() { printf 'FAIL  %s\n' "$*"; bad=1; }

  if docker info >/dev/null 2>&1; then
    ok "Docker $(docker info --format '{{.ServerVersion}}, cgroup v{{.CgroupVersion}}, {{.NCPU}} CPUs, {{.Architecture}}')"
  else
    wrong "no Docker engine answers: \`make up\` installs one on a root Debian machine; elsewhere install Docker 20.10 or later"
    return 1
  fi
  if docker compose version >/dev/null 2>&1; then
    ok "Compose $(docker compose version --short)"
  else
    wrong "no Docker Compose v2 (the plugin \`docker compose\`)"
  fi
  write_env
  local nofile
  nofile=$(read_off NOFILE)
  if ((nofile >= 20000)); then
    ok "open files per container: $nofile, so up to $((nofile / 2 - 500)) connections"
  else
    warn "open files per container: $nofile, so only up to $((nofile / 2 - 500)) connections; raise the engine's own limit"
  fi
  if [[ $(docker info --format '{{.NCPU}}') -lt 4 ]]; then
    warn "fewer than 4 CPUs: generator, proxy, downstream and server share them; compare ratios within one run"
  fi
  case $(read_off WRK2_IMAGE) in
    wrk2-none) warn "no wrk2 here ($(setting NIX_IMAGE) is not present and WRK2_IMAGE is not set): oha is the load engine" ;;
    *) ok "wrk2 from $(read_off WRK2_IMAGE)" ;;
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

case ${1-} in
  env) write_env ;;
  facts) write_facts ;;
  jmx) put_jmx ;;
  drive) drive "${@:2}" ;;
  step) step "${@:2}" ;;
  where) where ;;
  check) check "${2:?}" ;;
  need-up) is_up || fail "the lab is not up: \`make up\` starts it" ;;
  idle) idle ;;
  doctor) doctor ;;
  *) fail "images/host.sh: '${1-}' is not one of env, facts, jmx, step, drive, where, check, need-up, idle, doctor" ;;
esac
