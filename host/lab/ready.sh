# shellcheck shell=bash
# Before anything is built or started: wrong words are refused, and what Compose is told is written. Sourced by lab.sh.

: "${state:?}" "${project:?}" "${driver_image:?}"

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

# plan: what the driver says of this verb's words (loadgen/src/lab/kinds/reading/words.py). This
# checkout's code answers, not the code of an older image.
plan() {
  local running
  mkdir -p "$state/logs"
  running=$(docker ps --filter "label=com.docker.compose.project=$project" \
    --format '{{.Label "com.docker.compose.service"}}')
  LAB_PROFILES=$(setting COMPOSE_PROFILES) LAB_RUNNING=$running LAB_OWN=$own LAB_SECRET=$secret driver --ulimit "nofile=$nofile" \
    -e LAB_PROFILES -e LAB_RUNNING -e LAB_OWN -e LAB_SECRET -e PROFILE -e PYTHONPATH=/lab/src \
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

# is_number NAME LEAST MOST: fail unless a setting is a whole number from LEAST to MOST, or nothing.
is_number() {
  local given
  given=$(setting "$1")
  if [[ -z $given ]] || { [[ $given =~ ^[0-9]{1,7}$ ]] && ((10#$given >= $2 && 10#$given <= $3)); }; then return 0; fi
  fail "$1=$given: allowed are $2 to $3"
}

# is_a_folder NAME: fail unless Compose takes a setting for the same folder as the shell. A bare name is a volume's for it,
# and `~` another folder than one of that name.
is_a_folder() {
  case $(setting "$1") in
    /* | ./* | ../* | . | ..) ;;
    *) fail "$1=$(setting "$1"): a folder begins with / or ./ or ../" ;;
  esac
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
    services=$(docker compose -f compose.yaml --profile '*' config --services | grep -Evx 'driver|jmh')
    { echo services: && sed 's/.*/  &: {healthcheck: {start_interval: 2s}}/' <<<"$services"; } >"$often"
    compose_file+=:$often
    : "${health_interval:=2m}"
  fi
  : "${health_interval:=5s}"
}

# of_stored: whether the verb works on stored results alone.
of_stored() {
  case ${LAB_VERB-} in
    compare | report) return 0 ;;
    gate) [[ ${BASE-}${CANDIDATE-} != */* ]] ;;
    *) return 1 ;;
  esac
}

# write_env PLAN: what Compose is told. Containers of a measurement under way are made anew from what is there already: it
# stays as it is, also where nobody knows whether there is one. A verb that makes no containers leaves it as it is, too: a
# bench may be about to make them from it.
write_env() {
  local uid gid profiles password results sets cpus health_interval compose_file socket pin status=0
  results=$(results_folder)
  read -r uid gid <<<"$(owner)"
  if [[ -s $state/env ]]; then
    measuring || status=$?
    if ((status != 1)); then return 0; fi
  fi
  check_results "$results" "$uid" "$gid"
  if [[ -s $state/env ]] && of_stored; then return 0; fi
  sets=$(auto_cpu_sets)
  mkdir -p "$state"

  profiles=$(sed -n 's/^profiles //p' <<<"$1")
  if ! has_image "$(setting GRAFANA_IMAGE)"; then
    profiles=$(tr ',' '\n' <<<"$profiles" | grep -Fvx grafana | paste -sd, - || true)
  fi
  write_own_servers
  write_health
  sed -E '/^(profiles|env) /d' <<<"$1" >"$state/allowed-changes"

  password=$(setting GRAFANA_ADMIN_PASSWORD)
  if [[ -z $password ]]; then
    if [[ ! -s $state/grafana-password ]]; then
      (umask 077 && head -c 18 /dev/urandom | base64 | tr '+/' '-_' >"$state/grafana-password")
    fi
    password=$(<"$state/grafana-password")
  fi

  cpus=$(toxiproxy_cpus "$sets")
  socket=$(engine_socket)
  [[ -e $state/host.json ]] || printf '{}\n' >"$state/host.json"
  (
    umask 077
    printf '%s=%q\n' NOFILE "$nofile" ENGINE_FOLDER "$(engine_folder)" ENGINE_SOCKET "$socket" \
      CONTAINERD_SOCKET "$(containerd_socket "$socket")" LAB_UID "$uid" LAB_GID "$gid" TOXIPROXY_GOMAXPROCS "$cpus" WRK2_IMAGE "$(wrk2_source)" COMPOSE_PROFILES "$profiles" USERNS "$(user_namespace)" \
      GRAFANA_ADMIN_PASSWORD "$password" GRAFANA_WITHOUT_ADMIN false LAB_OWN "$own" LAB_SECRET "$secret" \
      HEALTH_INTERVAL "$health_interval" COMPOSE_FILE "$compose_file" >"$state/env.part"
    { printf '%s\n' "$sets" && sed -n 's/^env //p' <<<"$1"; } >>"$state/env.part"
    # As they are called here.
    for pin in DEBIAN JRE MAVEN GOLANG PROMETHEUS TOXIPROXY CADVISOR; do printf '%s_IMAGE=%q\n' "$pin" "$(present_image "${pin}_IMAGE")" >>"$state/env.part"; done
    if [[ $(setting JDK) == 21 ]]; then printf 'BLOCKING_JRE_IMAGE=%q\n' "$(present_image JRE21_IMAGE)" >>"$state/env.part"; fi
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
    --format '{{.Label "com.docker.compose.project.working_dir"}}' 2>/dev/null | sort -u)
}

# lab_secret: what the tokens of this lab's parts follow from (docs/security.md): the same until `make down`.
lab_secret() {
  local kept=""
  if [[ -s $state/env ]]; then kept=$(read_off LAB_SECRET); fi
  printf '%s' "${kept:-$(head -c 32 /dev/urandom | base64 | tr -d '\n')}"
}

# Wrong words are refused before anything else is done, if the driver's image is there. Only a line of
# the lab's own counts then: an older image may lack what this checkout's code needs.
ready() {
  local nofile own="" planned="" secret status=0
  refused() { cat "$state/logs/plan.log" >&2; exit "$status"; }
  one_of BLOCK_THE_LOOP false true spin
  one_of SERVER_POOL_ORDER fifo lifo
  one_of CONNECTION_THREADS virtual platform
  one_of NETTY_TRANSPORT nio epoll
  one_of FRAMEWORK_DEFAULTS lab shipped
  one_of DOWNSTREAM_CLIENT framework lab
  is_number FRONTS 1 64
  is_number LOOPS 0 256
  one_of JDK 25 21
  is_a_folder LAB_RESULTS_DIR
  secret=$(lab_secret)
  nofile=$(max_open_files)
  if docker version >/dev/null 2>&1 && has_image "$driver_image"; then
    own=$(own_services)
    planned=$(plan) || status=$?
    if ((status != 0)) && grep -q '^lab: ' "$state/logs/plan.log"; then refused; fi
  else
    status=1
  fi
  host/engine.sh
  # An engine that has just been started hands on no more than it was given itself.
  nofile=$(max_open_files)
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
