# shellcheck shell=bash
# The lab's containers: built, started, ended; whether they are up, where they are to be seen. Sourced by lab.sh.

: "${state:?}" "${project:?}"

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
  [[ -f $state/env && -n $(docker compose ps --quiet --status running loadgen 2>/dev/null) ]]
}

# The containers, all built. Between a look and the change there would be time for a bench to begin.
start() {
  idle
  hold
  host/changes.sh put-back
  step up "containers, until all are healthy" up --detach --wait --remove-orphans
  write_facts
  let_go
  host/grafana-password.sh
  where
}

down() {
  # shellcheck disable=SC2034  # `measuring` sets it
  local measured_in
  if [[ ${FORCE-} != yes ]] && measuring; then
    fail "a measurement is under way; wait for its end, or \`make down FORCE=yes\`"
  fi
  # What began to be measured since that look is left alone.
  if [[ ${FORCE-} != yes ]]; then hold anyway; fi
  to_end=yes compose --profile '*' down --remove-orphans
  let_go
  # Not with its `--volumes`: a service of your own in compose.override.yaml may keep its data in one.
  docker volume rm --force "${project}_lock" "${project}_prometheus" "${project}_grafana" >/dev/null
  # With its secret: the next lab has other tokens.
  rm -f "$state/env"
}
