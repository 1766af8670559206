# shellcheck shell=bash
# The driver in a container: in the lab, or on stored results alone. Sourced by lab.sh.

: "${state:?}" "${project:?}" "${driver_image:?}"

# What a driver may ask of this host while it measures is done by changes.sh. In one folder the driver writes requests, in
# the other the host writes answers, and neither is in results/, which other containers can change. $changes is the process
# of changes.sh, empty for verbs that ask nothing.
start_changes() {
  changes="" changes_folder=""
  case $1 in run | bench | capacity | explain | gate) ;; *) return 0 ;; esac
  changes_folder=$(mktemp -d "$state/driver.XXXXXX")
  mkdir "$changes_folder/requests" "$changes_folder/answers"
  # Whatever the umask is.
  chmod 0755 "$changes_folder/answers"
  if [[ $(id -u) == 0 ]]; then chown "$(read_off LAB_UID):$(read_off LAB_GID)" "$changes_folder/requests"; fi
  run+=(--volume "$PWD/$changes_folder/requests:/lab/requests" --volume "$PWD/$changes_folder/answers:/lab/answers:ro")
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

# is_gone CONTAINER: whether the engine says so. Without an engine the client says "no such file", which tells nothing.
is_gone() { [[ $(docker inspect "$1" 2>&1) =~ [Nn]o\ such\ (object|container) ]]; }

# await_driver FILE: its exit status, once it has ended. A Ctrl-C ends whoever waits for that, too. An engine that is
# away for a minute is not awaited any longer.
await_driver() {
  local away=0
  : >"$1"
  until docker wait "$name" >"$1" 2>/dev/null; do
    if is_gone "$name"; then return; fi
    if docker version >/dev/null 2>&1; then away=0; else away=$((away + 1)); fi
    if ((away > 60)); then say "lab: the engine does not answer any more; nobody knows what became of the run"; return; fi
    sleep 1
  done
}

# end_load: ends the driver where it still runs.
end_load() { if docker kill --signal INT "$name" >/dev/null 2>&1; then await_driver /dev/null; fi; }

# The driver in a container of its own. A signal ends the load, not only the client that
# shows it: without a terminal, `docker compose run` leaves the container running (seen with
# Compose 2.26), so there the container runs detached and gets the signal by name.
drive() {
  local name=$project-driver-$$ status=0 logs changes changes_folder word ended=$state/ended.$$
  local run=(compose run --no-deps --name "$name" -e LAB_WORDS -e LAB_SETTING_NAMES)
  for word in LAB_LIMITS NO_COLOR COLUMNS; do if [[ -n ${!word-} ]]; then run+=(-e "$word"); fi; done
  start_changes "${1-}" "$name"
  trap 'docker kill --signal INT "$name" >/dev/null 2>&1 || true' INT TERM HUP
  if [[ -t 0 && -t 1 ]]; then
    "${run[@]}" --rm driver "$@" || status=$?
    # However the client ended, no load goes on.
    end_load
    stop_changes
    return "$status"
  fi
  if ! "${run[@]}" --detach driver "$@" >/dev/null; then
    # A Ctrl-C may have ended the client, and not the start that it had asked for.
    end_load
    docker rm "$name" >/dev/null 2>&1 || true
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

# jmh: the benchmarks, with JMH's own options (JMH=), into a folder of results/. They end with us.
jmh() {
  local name=$project-jmh-$$ client status=0 ending="" words run
  read -ra words <<<"${JMH-}"
  run=$(date -u +%Y%m%dT%H%M%SZ)-jmh
  trap 'ending=yes' INT TERM HUP
  compose run --rm --no-deps --name "$name" jmh "/lab/results/$run" /lab/host.json ${words[@]+"${words[@]}"} </dev/null &
  client=$!
  while :; do
    status=0
    wait "$client" || status=$?
    # A signal ends the wait, and not the client.
    if ! kill -0 "$client" 2>/dev/null; then
      if ((status == 0)); then say "results/$run"; fi
      return "$status"
    fi
    # Its container may not be there yet.
    while [[ -n $ending ]] && kill -0 "$client" 2>/dev/null && ! docker kill "$name" >/dev/null 2>&1; do sleep 0.2; done
    ending=""
  done
}

# A verb that works on stored results needs no lab: no network, no volume.
stored() {
  local terminal=()
  if [[ -t 0 && -t 1 ]]; then terminal=(--interactive --tty); fi
  driver ${terminal[@]+"${terminal[@]}"} --userns "$(read_off USERNS)" --user "$(read_off LAB_UID):$(read_off LAB_GID)" \
    -v "$(results_folder):/lab/results" "$driver_image" "$@"
}
