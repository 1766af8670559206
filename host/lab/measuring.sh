# shellcheck shell=bash
# Whether something is measured on this machine, and the hold under which nothing can begin to be. Sourced by lab.sh.

: "${state:?}" "${project:?}" "${driver_image:?}"

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
  if [[ $measured_in != "$project" ]]; then where=", in the lab $measured_in of this machine"; fi
  if ((status == 0)); then fail "another measurement is under way$where; wait for its end"; fi
  if ((status == 2)); then fail "the lab's agent does not answer, so nobody knows whether something is measured; \`make down\` stops the lab"; fi
}

# hold [ANYWAY]: nothing can begin to measure any more, until `let_go` or the end of this process, however it ends: what
# measurements hold is held here. Where no lab has been there is nothing to hold, and nobody who measures. ANYWAY goes on
# where nobody can tell, as where the driver's image is gone.
hold() {
  local volume=${project}_lock tenths=0
  if ! docker volume inspect "$volume" >/dev/null 2>&1; then return 0; fi
  # Another `make up` has a file of its own.
  said=$state/held.$$
  if ! { mkdir -p "$state" && : >"$said"; } 2>/dev/null; then
    said=""
    if [[ -n ${1-} ]]; then return 0; fi
    fail "nobody knows whether something is measured: $state cannot be written"
  fi
  # It ends with its standard input.
  exec 9> >(
    driver --interactive --volume "$volume:/lab/lock:ro" --entrypoint flock "$driver_image" \
      --exclusive --wait 2 --conflict-exit-code 75 /lab/lock sh -c 'echo held; cat >/dev/null' >"$said" 2>&1 &&
      echo ended 0 >>"$said" || echo "ended $?" >>"$said"
  )
  # A disk that is full takes no word of it, and an engine may be stuck.
  until grep -q -e '^held' -e '^ended' "$said" 2>/dev/null || ((tenths >= 300)); do sleep 0.1 && tenths=$((tenths + 1)); done
  if grep -q '^ended 75' "$said"; then fail "another measurement is under way; wait for its end${1:+, or \`make down FORCE=yes\`}"; fi
  if [[ -z ${1-} ]] && { grep -q '^ended' "$said" || ! grep -q '^held' "$said"; }; then
    fail "nobody knows whether something is measured: $(grep . "$said" | head -n 1 | grep . || printf 'no answer within 30 s')"
  fi
}
let_go() {
  local twentieths=0
  if [[ -z ${said-} ]]; then return 0; fi
  exec 9>&-
  # Whoever else makes this lab's containers may have taken the file away.
  while [[ -e $said ]] && ! grep -q '^ended' "$said" && ((twentieths < 600)); do sleep 0.05 && twentieths=$((twentieths + 1)); done
  rm -f "$said"
}
