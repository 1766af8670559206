#!/usr/bin/env bash
# Changes containers for a driver, which has no Docker socket. Only what is on a list is done. The driver's side, and what
# requests look like: loadgen/src/lab/system/host_changes.py.
#
#   changes.sh FOLDER DRIVER PARENT   answer FOLDER/requests in FOLDER/answers while the process PARENT or the driver
#                                     lives; DRIVER is the name of the driver's container
#   changes.sh put-back               put back what is left of a host that died
#
# The driver can write to FOLDER/requests, so nothing in there is created, opened, followed or removed. A request is the
# target of a symbolic link, which the kernel bounds: it is read as text, each line is matched as a whole, and never
# evaluated. The list was written before that container began (`lab.sh ready`). An answer is a code, and holds nothing of
# the request: details are in the log. When told to end (SIGTERM) this puts back what a driver that died has left. Where
# this was killed itself, the next start puts it back.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
. host/common.sh
if [[ $1 == put-back ]]; then folder="" driver="" parent=""; else folder=${1:?} driver=${2:?} parent=${3:?}; fi

# Ctrl-C is for the driver: it still needs us to put things back.
trap '' INT HUP
over=""
trap 'over=yes' TERM

# What each server's container has that is not its default: NAME=VALUE lines by server, in of.SERVER.
# The folder outlives a process that is killed, and one of the same number has what that one left.
changed=$state/changed/$$
mkdir -p "$changed"
log=$state/logs/changes.log
mkdir -p "$state/logs"
: >"$log"
# The answer, and what the log says if it is not `ok`.
code="" problem=""

# pattern_of NAME: what a value may be, as an extended regular expression; nothing for another name.
pattern_of() { if [[ $1 =~ ^[A-Z][A-Z0-9_]{0,59}$ ]]; then sed -n "s/^$1 //p" "$state/allowed-changes"; fi; }

# is_own SERVER: whether it is a service of the user's own. No other gets what a subject's levers name, and it gets nothing else.
is_own() { [[ -n $1 && $1 =~ ^($(pattern_of OWN_SERVER))$ ]]; }
# fits SERVER NAME: whether the setting is one of such a container.
fits() {
  case $2 in
    SERVER | OWN_SERVER) return 1 ;;
    GENERATOR_*) [[ $1 == generator ]] ;;
    ENV_* | OWN_*) is_own "$1" ;;
    FRESH) [[ $1 != generator ]] ;;
    *) [[ $1 != generator ]] && ! is_own "$1" ;;
  esac
}

# read_request TEXT: $server, and its settings as NAME=VALUE lines in $wanted; or it is not allowed.
read_request() {
  local line name value pattern
  server="" wanted="" code=not-allowed
  printf -v problem '%q' "$1"
  while IFS= read -r line; do
    name=${line%%=*} value=${line#*=}
    pattern=$(pattern_of "$name")
    if [[ $line != *=* || -z $server && $name != SERVER || -n $server && $name == SERVER ]]; then return 1; fi
    if [[ -z $pattern ]] || { [[ -n $server ]] && ! fits "$server" "$name"; }; then return 1; fi
    # Whatever the list allows: of what Compose reads as YAML nothing may have a meaning there.
    if ! [[ $value =~ ^($pattern)$ ]] || [[ $name == ENV_* && ! $value =~ ^[A-Za-z0-9\ ._:=+,/%@-]+$ ]]; then return 1; fi
    if [[ $name == SERVER ]]; then server=$value; else wanted+=$line$'\n'; fi
  done <<<"$1"
}

# logged COMMAND…: run it; the last line it wrote is the problem.
logged() {
  printf '%s\n' "$*" >>"$log"
  "$@" >"$changed/said" 2>&1 </dev/null && return 0
  cat "$changed/said" >>"$log"
  problem=$(grep -v '^ *$' "$changed/said" | tail -n 1)
  problem=${problem:-$1 failed}
  return 1
}

# limit CONTAINER CPUS: 0 and nothing mean all of them. `docker update --cpus 0` changes nothing,
# so no limit is a limit to all CPUs.
limit() {
  local cpus=$2
  if [[ -z $cpus || $cpus == 0 ]]; then cpus=$(docker info --format '{{.NCPU}}'); fi
  logged docker update --cpus "$cpus" "$1"
}

# value NAME LINES; starting LINES: those that only a new JVM takes.
value() { sed -n "s/^$1=//p" <<<"$2"; }
starting() { grep -v '^SERVER_CPUS=' <<<"$1" | grep . | sort; }

# of_service LINES: what Compose reads of one service alone, in YAML.
of_service() {
  local line variables="" keys="" value
  while IFS= read -r line; do
    value=${line#*=}
    case $line in
      SERVER_IMAGE=*) keys+=", image: \"$value\"" ;;
      OWN_CPUS=*) keys+=", cpus: $value" ;;
      OWN_MEMORY=*) keys+=", mem_limit: $value" ;;
      ENV_*) line=${line#ENV_} && variables+=", ${line%%=*}: \"$value\"" ;;
    esac
  done <<<"$1"
  if [[ -n $variables ]]; then keys+=", environment: {${variables#, }}"; fi
  printf '%s' "${keys#, }"
}

# lab's compose, with the settings of these lines beside those of this machine and of .env.
compose_with() {
  local lines=$1 line
  shift
  (
    set -a
    # shellcheck source=/dev/null
    . "./$state/env"
    while IFS= read -r line; do
      if [[ -n $line ]]; then export "${line?}"; fi
    done <<<"$lines"
    # Only of this server: one more file of Compose's, for that is where images and own services are named.
    only=$(of_service "$lines")
    if [[ -n $only ]]; then
      printf 'services: {%s: {%s}}\n' "${!#}" "$only" >"$changed/only.yaml"
      COMPOSE_FILE=${COMPOSE_FILE:-compose.yaml}:$changed/only.yaml
    fi
    set +a
    logged docker compose "$@"
    status=$?
    printf '%s' "$problem" >"$changed/problem"
    exit "$status"
  )
}

# recreate SERVER LINES: a new container with these settings; where that fails, $problem.
recreate() {
  compose_with "$2" up --detach --no-deps --no-build --force-recreate --wait "$1" && return 0
  problem=$(<"$changed/problem")
  return 1
}

# takes_away SERVER LINES: whether a limit that is to give a service of the user's own more is below what its container
# has now: then its subject is wrong, and more of it would look as if it were no help. 0 is no limit.
takes_away() {
  local name asked now
  while read -r name now; do
    asked=$(value "$name" "$2")
    case $asked in *m) asked=$((${asked%m} << 20)) ;; *g) asked=$((${asked%g} << 30)) ;; esac
    if [[ -n $asked ]] && awk -v asked="$asked" -v now="$now" 'BEGIN { exit !(now == 0 || asked < now) }'; then
      code=takes-away problem="$name=$(value "$name" "$2") would take away from $1, which has $now now (0: no limit)"
      return 0
    fi
  done < <(docker inspect --format '{{.HostConfig.NanoCpus}} {{.HostConfig.CpuQuota}} {{.HostConfig.CpuPeriod}} {{.HostConfig.Memory}}' "$(compose_id "$1")" 2>/dev/null |
    awk 'NF == 4 { print "OWN_CPUS", $1 ? $1 / 1e9 : ($2 > 0 ? $2 / ($3 ? $3 : 1e5) : 0); printf "OWN_MEMORY %.0f\n", $4 }')
  return 1
}

# remember SERVER LINES: what its container has from now on. It is on the disk before the change is made, as whatever
# becomes of that is put back in the end; where it cannot be, as on a full disk, nothing is changed.
remember() {
  if { printf '%s' "$2" >"$changed/next" && { sync "$changed/next" || sync; } && mv -f "$changed/next" "$changed/of.$1"; } 2>/dev/null; then return 0; fi
  problem="$changed/of.$1 cannot be written"
  return 1
}

# have SERVER LINES: its container with these settings, all others by default; with FRESH a new one,
# as it is now, of which nothing more is to be put back.
have() {
  local had="" id cpus
  # Not remembered: that limit ends with its container.
  if [[ $1 == generator ]]; then limit "$driver" "$(value GENERATOR_CPUS "$2")"; return; fi
  if [[ -f $changed/of.$1 ]]; then had=$(<"$changed/of.$1"); fi
  if [[ $2 == FRESH=* ]]; then recreate "$1" "$had"; return; fi
  if is_own "$1" && takes_away "$1" "$2"; then return 1; fi
  if [[ $(starting "$had") == "$(starting "$2")" ]]; then
    # What is put back is remembered as it was, until it is back.
    if [[ -n $2 ]] && ! remember "$1" "$2"; then return 1; fi
    # A service of the user's own has the limits of its own file.
    if ! is_own "$1"; then
      cpus=$(value SERVER_CPUS "$2")
      id=$(compose_id "$1")
      if ! limit "${id:-$1}" "${cpus:-$(setting SERVER_CPUS)}"; then return 1; fi
    fi
  else
    # Until it is known to have them, whatever is asked for next takes a new container.
    if [[ -n $2 ]] && ! remember "$1" $'BROKEN=yes\n'; then return 1; fi
    if ! recreate "$1" "$2"; then return 1; fi
    if [[ -n $2 ]] && ! remember "$1" "$2"; then return 1; fi
  fi
  if [[ -z $2 ]]; then rm -f "$changed/of.$1"; fi
}

# Also of one that is stopped: its limits wait for its next start. Fails where nobody can tell.
compose_id() {
  local ids
  ids=$(compose ps --all --quiet "$1" 2>/dev/null </dev/null) || return
  head -n 1 <<<"$ids"
}

# image_of SERVER: the image that its container is made of; nothing where there is none.
image_of() { docker inspect --format '{{.Image}}' "$(compose_id "$1")" 2>/dev/null </dev/null || true; }

# same_image SERVER: whether a service of the user's own has the image that it had at this driver's first request. A new
# container takes it by its name, which somebody may have given to another build meanwhile.
same_image() {
  if ! is_own "$1" || [[ ! -s $changed/image.$1 || $(image_of "$1") == "$(<"$changed/image.$1")" ]]; then return 0; fi
  code=another-image problem="the image of $1 is another one since this run began to change it"
  return 1
}

# serve NUMBER: the answer is there as a whole or not at all.
serve() {
  local server="" wanted=""
  if read_request "$(readlink "$folder/requests/$1")"; then
    code=failed problem=""
    if is_own "$server" && [[ ! -s $changed/image.$server ]]; then image_of "$server" >"$changed/image.$server"; fi
    if have "$server" "$wanted" && same_image "$server"; then code=ok; fi
  fi
  if [[ $code != ok ]]; then printf '%s: %s\n' "$code" "$problem" >>"$log"; fi
  printf '%s\n' "$code" >"$folder/answer" && chmod 0644 "$folder/answer" && mv -f "$folder/answer" "$folder/answers/$1"
}

# adopt: what killed processes have left of theirs.
adopt() {
  local folder left
  for folder in "$state"/changed/*/; do
    if [[ $folder == "$changed/" || ! -d $folder ]]; then continue; fi
    if [[ $(ps -p "$(basename "$folder")" -o args= 2>/dev/null) == *changes.sh* ]]; then continue; fi
    for left in "$folder"of.*; do
      if [[ -f $left && ! -f $changed/${left##*/} ]]; then mv "$left" "$changed/"; fi
    done
    rm -rf "$folder"
  done
}

put_back() {
  local left server id
  # What is left is remembered as this process's own.
  adopt
  for left in "$changed"/of.*; do
    if [[ ! -f $left ]]; then continue; fi
    server=${left##*/of.}
    problem=""
    if ! id=$(compose_id "$server"); then
      problem="Compose cannot tell its container"
      if ! docker version >/dev/null 2>&1; then problem="no Docker engine answers"; fi
    elif [[ -z $id ]]; then
      # A container that is gone took its changes with it.
      rm "$left"
      continue
    elif have "$server" ""; then
      printf 'lab: %s was left changed; its defaults are back\n' "$server" >&2
      continue
    fi
    printf 'lab: %s was left changed and could not be put back: %s\n' "$server" "$problem" >&2
  done
}

put_back
# A driver goes on to measure after its parent was killed. It still needs the limits that it has asked for.
needed() { kill -0 "$parent" 2>/dev/null || [[ $(docker inspect --format '{{.State.Running}}' "$driver" 2>/dev/null) == true ]]; }
# Of one driver: each request leaves an answer behind.
most=100000 number=1
while [[ -z $over && -n $parent ]] && needed; do
  if ((number <= most)) && [[ -L $folder/requests/$number ]]; then
    serve "$number"
    number=$((number + 1))
  fi
  sleep 0.2
done
if [[ -n $parent ]]; then put_back; fi
# A server that could not be put back stays remembered.
if ! compgen -G "$changed/of.*" >/dev/null; then rm -rf "$changed"; fi
