#!/usr/bin/env bash
# The lab on several machines: the nodes of a hosts.toml, which form a Docker Swarm (docs/several-machines.md).
#
#   swarm.sh check     fail with one line where a node, or the verb LAB_VERB, is not possible; else write the nodes down
#   swarm.sh up        images to the nodes, the stack, and wait until all of it is ready
#   swarm.sh resumed   take the run that RESUME= names to the generator's node, where it is not there
#   swarm.sh results   bring home the runs that are on the generator's node
#   swarm.sh down      bring them home, and leave nothing on any node
#
# Whether this lab is on several machines at all, `several` of common.sh tells. What the driver's image makes of
# Compose's words is in .lab/<project>/several (loadgen/src/lab/store/several.py).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. host/common.sh

folder=$state/several
: "${START_DEADLINE_S:=300}"
# How long the agent of an engine that was restarted may take to be there again.
: "${AGENT_DEADLINE_S:=60}"
# How far a node's clock may be from this one's: a window's figures come from several nodes.
: "${CLOCKS_MS:=50}"

# ask NODE WORD…: docker, at a node's engine.
ask() { docker -H "$(address_of "$1")" "${@:2}"; }
# Of its line of `nodes`: name, address, id in the Swarm, roles.
address_of() { awk -v name="$1" '$1 == name {print $2}' "$folder/nodes"; }
id_of() { awk -v name="$1" '$1 == name {print $3}' "$folder/nodes"; }
# The first one: of several generators the driver's.
node_with() { awk -v role="$1" '"," $4 "," ~ "," role "," {print $1; exit}' "$folder/nodes"; }
node_names() { awk '{print $1}' "$folder/nodes"; }
manager() { cat "$folder/manager"; }

# code WORD…: this checkout's code, in the driver's image, on the folder.
code() {
  driver --user "$(id -u):$(id -g)" -e PYTHONPATH=/lab/src -e "LAB_PROJECT=$project" -v "$PWD/loadgen/src:/lab/src:ro" \
    -v "$PWD/$folder:/lab/several" -v "$PWD:/lab/repo:ro" -v "$PWD/prometheus/servers:/lab/servers:ro" "$driver_image" "$@"
}

# Verbs that need what no driver gets of several machines yet; of experiments lab.sh has asked the driver already.
# Returns 1 for those that need no machine.
possible() {
  case ${LAB_VERB-} in
    compare | report) return 1 ;;
    jmh) fail "$LAB_VERB is not possible on several machines yet; possible: bench, run, and all verbs of stored runs and of toxics" ;;
    gate)
      if [[ ${BASE-}${CANDIDATE-} == */* ]]; then fail "gate of two images is not possible on several machines yet; of two runs it is"; fi
      return 1
      ;;
  esac
}

# ask_engines: what each node's engine says of itself, or why it says nothing; and of the Swarm, a manager.
ask_engines() {
  local name address _
  rm -rf "$folder/engines" "$folder/members" "$folder/manager.now"
  mkdir "$folder/engines"
  : >"$folder/members"
  while read -r name address _; do
    if [[ $address == tcp://* && -z ${DOCKER_TLS_VERIFY-} ]]; then
      fail "hosts.toml: node $name: $address without TLS is open to everybody: set DOCKER_TLS_VERIFY and DOCKER_CERT_PATH, or use ssh://"
    fi
    timeout 30 docker -H "$address" info --format '{{json .}}' >"$folder/engines/$name" 2>"$folder/said" </dev/null ||
      { { cat "$folder/said" && printf 'no answer in 30 s, or an error\n'; } | head -n 1 >"$folder/engines/$name"; }
    if grep -q '"ControlAvailable":true' "$folder/engines/$name" && [[ ! -e $folder/manager.now ]]; then
      docker -H "$address" node ls --format '{{.ID}} {{.Status}} {{.Availability}}' >"$folder/members" </dev/null
      printf '%s\n' "$name" >"$folder/manager.now"
    fi
  done
}

check() {
  local hosts=${HOSTS:-$folder/hosts.toml} name
  if ! several || ! possible; then return 0; fi
  if ! command -v timeout >/dev/null; then fail "several machines take the command timeout (GNU coreutils), which this machine lacks"; fi
  if ! [[ -f $hosts && -r $hosts ]]; then fail "HOSTS=$hosts is not a file that can be read"; fi
  if [[ -e $folder/up ]]; then
    if ! cmp -s "$hosts" "$folder/hosts.toml"; then fail "the lab is up on the machines of another hosts.toml: \`make down\` first"; fi
  elif [[ -n $(docker ps --quiet --filter "label=com.docker.compose.project=$project" --filter label=com.docker.compose.config-hash) ]]; then
    fail "the lab is up on this machine alone: \`make down\` first"
  fi
  mkdir -p "$folder"
  chmod 700 "$folder"
  if [[ $hosts != "$folder/hosts.toml" ]]; then cp "$hosts" "$folder/hosts.toml"; fi
  rm -rf "$folder/engines"
  code hosts >"$folder/asked"
  ask_engines <"$folder/asked"
  docker info --format '{{.Architecture}}' >"$folder/architecture"
  code hosts >/dev/null
  mv "$folder/manager.now" "$folder/manager"
  for name in $(node_names); do
    if [[ $(<"$folder/engines/$name") != *name=no-new-privileges* ]]; then
      say "lab: warning: node $name: its engine does not say no-new-privileges (daemon.json), and a stack cannot"
    fi
    clock "$name"
  done
}

# clock NODE: warn where its clock is away from this one's by more than it takes to ask.
clock() {
  local before told after
  before=$(date +%s.%N)
  told=$(date -d "$(ask "$1" info --format '{{.SystemTime}}')" +%s.%N) || return 0
  after=$(date +%s.%N)
  awk -v node="$1" -v before="$before" -v told="$told" -v after="$after" -v most="$CLOCKS_MS" 'BEGIN {
    off = 1000 * (told - (before + after) / 2); far = 500 * (after - before); away = off < 0 ? -off : off
    if (away - far > most) printf "lab: warning: the clock of node %s is %.0f ms off (give or take %.0f): windows of its figures are, too\n", node, off, far
  }' >&2
}

# send NODE: the images of its parts that it does not have, over its engine's own connection. What was sent is
# remembered, for `down`.
send() {
  local image id missing=()
  for image in $(awk -v node="$1" '$1 == node {print $2}' "$folder/images"); do
    id=$(docker image inspect --format '{{.Id}}' "$image")
    if [[ $(ask "$1" image inspect --format '{{.Id}}' "$image" 2>/dev/null) != "$id" ]]; then missing+=("$image"); fi
  done
  if ((${#missing[@]} == 0)); then return 0; fi
  # By its id, too: the next build takes the name away from it.
  for image in "${missing[@]}"; do printf '%s %s\n' "$1" "$image" "$1" "$(docker image inspect --format '{{.Id}}' "$image")" >>"$folder/sent"; done
  docker save "${missing[@]}" | ask "$1" load >>"$log" 2>&1 || fail "the images did not get to node $1: $(tail -n 1 "$log")"
  for image in "${missing[@]}"; do
    if [[ $(ask "$1" image inspect --format '{{.Id}}' "$image" 2>/dev/null) != "$(docker image inspect --format '{{.Id}}' "$image")" ]]; then
      fail "node $1 knows the image $image by another id: its engine keeps images in another kind of store than this machine's"
    fi
  done
}

# The label that services are placed by: label_of NODE, what it is now; place NODE, gives it; unlabelled NODE, fails where
# another lab has given it, be it one of the same name.
label_of() { ask "$(manager)" node inspect --format '{{index .Spec.Labels "lab.node"}}' "$(id_of "$1")"; }
place() {
  local now
  now=$(label_of "$1")
  if [[ -n $now && $now != "$project.$1" ]]; then unlabelled "$1"; fi
  if [[ -z $now ]]; then ask "$(manager)" node update --label-add "lab.node=$project.$1" "$(id_of "$1")" >>"$log"; fi
}
unlabelled() {
  local now
  now=$(label_of "$1")
  if [[ -n $now ]]; then
    fail "node $1 has the label lab.node=$now, of a lab that this checkout did not start: \`make down\` in the other checkout removes it, or \`make down HOSTS=… FORCE=yes\` here if it is left over"
  fi
}

# fill: the volume of the agent and the driver, with what they read of this checkout.
fill() {
  local volume=${project}_home generator uid gid
  generator=$(node_with generator)
  uid=$(read_off LAB_UID) gid=$(read_off LAB_GID)
  mkdir -p "$folder"/home/{results,subjects,experiments,servers,lock}
  cp "$state/host.json" "$folder/home/host.json"
  ask "$generator" volume create --label "com.docker.stack.namespace=$project" "$volume" >>"$log"
  tar -C "$folder/home" -c . | ask "$generator" run --rm --interactive --network none --read-only --user 0:0 --cap-drop ALL \
    --cap-add CHOWN --cap-add DAC_OVERRIDE --cap-add FOWNER -v "$volume:/lab" --entrypoint sh "$driver_image" \
    -c "tar -x --no-same-owner -C /lab && chown -R $uid:$gid /lab && chmod -R u+rwX,go+rX /lab" >>"$log" 2>&1 ||
    fail "the files of the driver did not get to node $generator: $(tail -n 1 "$log")"
}

# What a service of the stack waits for, a name each line.
not_ready() {
  ask "$(manager)" stack services --format '{{.Name}} {{.Replicas}}' "$project" | awk '{split($2, of, "/"); if (of[1] != of[2]) print $1}'
  ask "$(manager)" stack services --quiet "$project" | xargs docker -H "$(address_of "$(manager)")" service inspect \
    --format '{{.Spec.Name}} {{if .UpdateStatus}}{{.UpdateStatus.State}}{{end}}' | awk '$2 == "updating" {print $1}'
}

await() {
  local begun=$SECONDS until=$((SECONDS + START_DEADLINE_S)) left why
  sleep 1
  while left=$(not_ready) && [[ -n $left ]]; do
    # The downstream says in its own log which setting it refuses, and what is allowed. An earlier start has lines there, too.
    if [[ $left == *downstream* ]]; then
      why=$(ask "$(manager)" service logs --raw --since "$((SECONDS - begun + 1))s" --tail 1 "${project}_downstream" 2>&1 </dev/null | grep DOWNSTREAM_ | head -n 1 || true)
      if [[ -n $why ]]; then fail "$why"; fi
    fi
    if ((SECONDS >= until)); then
      why=$(ask "$(manager)" stack ps --no-trunc --format '{{.Name}} on {{.Node}}: {{.Error}}' "$project" | grep -v ': $' | head -n 1 || true)
      fail "not ready after $START_DEADLINE_S s: $(sort -u <<<"$left" | paste -sd ' ' -)${why:+; $why}"
    fi
    sleep 1
  done
}

# timed TEXT COMMAND…
timed() {
  local start=$SECONDS
  "${@:2}"
  printf '%s: ready, %d s\n' "$1" $((SECONDS - start))
}

up() {
  local profile profiles=() images name
  umask 077
  log=$state/logs/several.log
  mkdir -p "$state/logs"
  : >"$log"
  if [[ ! -e $folder/up ]]; then for name in $(node_names); do unlabelled "$name"; done; fi
  touch "$folder/up"
  IFS=, read -r -a profiles <<<"$(read_off COMPOSE_PROFILES),driver"
  images=(compose)
  for profile in "${profiles[@]}"; do if [[ -n $profile ]]; then images+=(--profile "$profile"); fi; done
  "${images[@]}" config --format json >"$folder/config.json"
  "${images[@]}" config --images | sort -u | while read -r name; do
    printf '%s %s\n' "$name" "$(docker image inspect --format '{{.Id}}' "$name")"
  done >"$folder/image-ids"
  printf '%s\n' "$PWD" >"$folder/checkout"
  code stack
  timed "images on all nodes" send_all
  host/lab.sh facts
  for name in $(node_names); do place "$name"; done
  fill
  timed "the stack, until all of it is ready" deploy
  awk '{printf "%s%s (%s)", (NR > 1 ? ", " : "lab: up on "), $1, $4} END {print "; nothing is published: `make bench`, `make toxics`, and `make down`"}' "$folder/nodes"
}

# To all nodes at a time: what takes long is the loading, on the node. Each in a process group of its own, which can be ended.
send_all() {
  local name pid pids=() status=0
  # shellcheck disable=SC2154 # in quotes
  trap 'for pid in "${pids[@]}"; do kill -- "-$pid" 2>/dev/null; done; exit 130' INT TERM HUP
  set -m
  for name in $(node_names); do
    { log=${log%.log}-$name.log; send "$name"; } </dev/null &
    pids+=("$!")
  done
  set +m
  # Who fails has said why.
  for pid in "${pids[@]}"; do wait "$pid" || status=1; done
  trap - INT TERM HUP
  return "$status"
}

deploy() {
  ask "$(manager)" stack deploy --resolve-image never --prune --compose-file "$folder/stack.json" "$project" >>"$log" 2>&1 ||
    fail "the stack is refused: $(tail -n 1 "$log")"
  await
}

# container SERVICE: its id, on the generator's node.
container() {
  ask "$(node_with generator)" ps --quiet --filter "label=com.docker.compose.project=$project" --filter "label=com.docker.compose.service=$1" | head -n 1
}

# agent_there: the agent's container, which brings the runs: an engine that was restarted has one again after some seconds.
# Nothing where its volume is not there: then there are no runs.
agent_there() {
  local until=$((SECONDS + AGENT_DEADLINE_S)) agent volume
  if [[ ${FORCE-} == yes ]]; then until=0; fi
  while agent=$(container loadgen) || return 1; [[ -z $agent ]]; do
    volume=$(ask "$(node_with generator)" volume ls --quiet --filter "name=^${project}_home\$") || return 1
    if [[ -z $volume ]]; then return 0; fi
    if ((SECONDS >= until)); then return 1; fi
    sleep 1
  done
  printf '%s' "$agent"
}

# stored CONTAINER: a line for each run on the generator's node: its name, and the checksum of its manifest and rows.
stored() {
  # shellcheck disable=SC2016 # expanded there
  ask "$(node_with generator)" exec "$1" sh -c \
    'cd /lab/results && for run in */; do printf "%s " "${run%/}"; cat "$run/manifest.json" "$run/trials.csv" 2>/dev/null | cksum; done'
}

# with_rows OLD NEW: whether all rows of a run are those that the other begins with.
with_rows() { [[ ! -s $1/trials.csv ]] || cmp -s "$1/trials.csv" <(head -c "$(wc -c <"$1/trials.csv")" "$2/trials.csv" 2>/dev/null); }

# put_home PART RUN: in the place of what is here of that run: as it was before it went on. Whatever is only here stays.
put_home() {
  local one before=${2%/*}/.${2##*/}.before
  # Whoever was killed here has moved it away.
  if [[ -e $before && ! -e $2 ]]; then mv "$before" "$2" || return 1; fi
  if [[ -e $2 ]]; then
    if with_rows "$2" "$1"; then
      for one in "$2"/*; do if [[ ! -e $1/${one##*/} ]]; then cp -pR "$one" "$1/" || return 1; fi; done
      rm -rf "$before"
    else
      before=${2}-before
      if [[ -e $before ]]; then say "lab: $2 is there with other rows than on node $(node_with generator), and so is $before: move one away"; return 1; fi
      say "lab: warning: $2 had other rows than on node $(node_with generator); what was here is $before now"
    fi
    mv "$2" "$before" || return 1
  fi
  mv "$1" "$2" || return 1
  if [[ $before == */.*.before ]]; then rm -rf "$before"; fi
}

# A run that is here as it is there is not touched. One that is half here has another name.
results() {
  local run sum newest="" to agent generator uid gid status=0
  generator=$(node_with generator)
  to=$(setting LAB_RESULTS_DIR)
  agent=$(agent_there) || return 1
  if [[ -z $agent ]]; then return 0; fi
  stored "$agent" >"$folder/stored" || return 1
  mkdir -p "$to"
  uid=$(read_off LAB_UID) gid=$(read_off LAB_GID)
  while read -r run sum; do
    if ! [[ $run =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] || [[ $run == latest ]]; then continue; fi
    if [[ -e $to/$run && $(cat "$to/$run/manifest.json" "$to/$run/trials.csv" 2>/dev/null | cksum) == "$sum" ]]; then continue; fi
    rm -rf "$to/.$run.part"
    # One that stays there keeps no other away.
    if ! ask "$generator" cp "$agent:/lab/results/$run" "$to/.$run.part" </dev/null >/dev/null; then status=1; continue; fi
    if [[ $(id -u) == 0 ]]; then chown -R "$uid:$gid" "$to/.$run.part"; fi
    if ! put_home "$to/.$run.part" "$to/$run"; then status=1; continue; fi
    newest=$run
  done <"$folder/stored"
  # As a run on this machine leaves it: names begin with the time, and an older one may have come home later.
  if [[ -n $newest && ! $newest < $(readlink "$to/latest") ]]; then ln -sfn "$newest" "$to/latest"; fi
  return "$status"
}

# A run may have begun before a `make down`, so that it is only here.
resumed() {
  local word=" RESUME=([A-Za-z0-9][A-Za-z0-9-]*) " run to agent
  if ! [[ " ${LAB_WORDS-} " =~ $word ]]; then return 0; fi
  run=${BASH_REMATCH[1]}
  to=$(setting LAB_RESULTS_DIR)
  if [[ $run == latest ]]; then run=$(readlink "$to/latest") || return 0; fi
  agent=$(container loadgen)
  # What is wrong with it the driver says.
  if [[ -z $agent || ! -d $to/$run ]] || ask "$(node_with generator)" exec "$agent" test -e "/lab/results/$run"; then return 0; fi
  tar -C "$to" -c "$run" | ask "$(node_with generator)" exec --interactive "$agent" sh -c \
    "cd /lab/results && rm -rf .$run.part && mkdir .$run.part && tar -x --no-same-owner -C .$run.part && mv .$run.part/$run . && rmdir .$run.part && { [ -e latest ] || ln -s $run latest; }" ||
    fail "the run $run did not get to node $(node_with generator)"
}

# rest NODE: what is left of the lab there.
rest() {
  ask "$1" ps --all --quiet --filter "label=com.docker.compose.project=$project"
  ask "$1" volume ls --quiet --filter "label=com.docker.stack.namespace=$project"
  ask "$1" network ls --quiet --filter "label=com.docker.stack.namespace=$project"
}

# clear NODE: its volumes, which no stack removes, and the images that were sent.
clear_node() {
  local image
  ask "$1" volume ls --quiet --filter "label=com.docker.stack.namespace=$project" | xargs -r docker -H "$(address_of "$1")" volume rm >>"$log"
  if [[ -e $folder/sent ]]; then
    for image in $(awk -v node="$1" '$1 == node {print $2}' "$folder/sent" | sort -u); do
      # What has another name by now is somebody else's.
      if [[ $image == sha256:* && $(ask "$1" image inspect --format '{{len .RepoTags}}' "$image" 2>/dev/null) != 0 ]]; then continue; fi
      ask "$1" image rm "$image" >>"$log" || ! ask "$1" image inspect "$image" >/dev/null 2>&1 || fail "node $1 does not remove the image $image: $(tail -n 1 "$log")"
    done
  fi
}

down() {
  local name until=$((SECONDS + 120)) there=() away=()
  log=$state/logs/several.log
  mkdir -p "$state/logs"
  if [[ ! -e $folder/nodes ]]; then LAB_VERB="" check; fi
  for name in $(node_names); do
    if [[ ! -e $folder/up && ${FORCE-} != yes ]]; then unlabelled "$name"; fi
    if ask "$name" version >>"$log" 2>&1; then there+=("$name"); else away+=("$name"); fi
  done
  results || { if [[ ${FORCE-} != yes ]]; then fail "not all runs could be brought home from node $(node_with generator); \`make down FORCE=yes\` gives them up"; fi; }
  if [[ " ${there[*]-} " == *" $(node_with generator) "* ]]; then
    ask "$(node_with generator)" ps --all --quiet --filter "label=com.docker.compose.project=$project" --filter label=com.docker.compose.oneoff=True |
      xargs -r docker -H "$(address_of "$(node_with generator)")" rm --force >>"$log"
  fi
  ask "$(manager)" stack rm "$project" >>"$log" 2>&1 || fail "the manager, node $(manager), does not answer: nothing was removed"
  for name in ${there[@]+"${there[@]}"}; do
    while [[ -n $(ask "$name" ps --all --quiet --filter "label=com.docker.compose.project=$project") ]]; do
      if ((SECONDS >= until)); then fail "node $name still has containers of the lab"; fi
      sleep 1
    done
    clear_node "$name"
    if [[ $(label_of "$name") == "$project.$name" ]]; then ask "$(manager)" node update --label-rm lab.node "$(id_of "$name")" >>"$log" 2>&1 || true; fi
  done
  for name in ${there[@]+"${there[@]}"}; do
    until [[ -z $(rest "$name") ]]; do
      if ((SECONDS >= until)); then fail "node $name still has something of the lab: $(rest "$name" | paste -sd ' ' -)"; fi
      sleep 1
    done
  done
  # Whoever gives up runs gives up a node, too.
  if ((${#away[@]} > 0)) && [[ ${FORCE-} != yes ]]; then
    fail "down, but for node ${away[*]}, which does not answer: \`make down\` once it does, or FORCE=yes leaves there what is there"
  fi
  rm -rf "$folder"
  if ((${#away[@]} > 0)); then printf 'lab: down on all nodes but %s\n' "${away[*]}"; else printf 'lab: down on all nodes\n'; fi
}

case ${1-} in
  check) check ;;
  up) up ;;
  resumed) resumed ;;
  results) results ;;
  down) down ;;
  *) fail "host/swarm.sh: '${1-}' is not one of check, up, resumed, results, down" ;;
esac
