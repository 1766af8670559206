#!/usr/bin/env bash
# The host's hands of a driver, which has no Docker socket: requests are files, and only what is
# on the list below is done. Its other side, and what requests look like: loadgen/src/lab/system/host_changes.py.
#
#   hands.sh FOLDER DRIVER PARENT   answer requests in FOLDER while the process PARENT lives;
#                                   DRIVER is the name of the driver's container
#
# What comes in was written in a container: it is matched as a whole, and never evaluated. When
# told to end (SIGTERM) it puts back what a driver that died has left.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
folder=${1:?} driver=${2:?} parent=${3:?}

# Ctrl-C is for the driver: it still needs hands to put things back.
trap '' INT HUP
over=""
trap 'over=yes' TERM

# What each server's container has that is not its default: NAME=VALUE lines by server.
state=$(mktemp -d)
log=.lab/logs/hands.log
mkdir -p .lab/logs
: >"$log"
problem=""

setting() {
  if [[ -n ${!1-} ]]; then printf '%s' "${!1}"; else sed -n "s/^$1=//p" .env | head -n 1; fi
}

# pattern_of NAME: what a value may be; lab.knobs.HOST has the same.
pattern_of() {
  local flag='(-X(ms|mx|mn|ss)[0-9]{1,5}[kmgKMG]|-XX:[+-]Use[A-Za-z0-9]{1,40}|-XX:[+-]ExitOnOutOfMemoryError|-XX:[A-Z][A-Za-z0-9]{1,60}=[0-9]{1,9}[kmgKMG]?)'
  case $1 in
    SERVER_CPUS | GENERATOR_CPUS) printf '%s' '[0-9]{1,3}(\.[0-9]{1,3})?' ;;
    SERVER_MEMORY) printf '%s' '[1-9][0-9]{0,5}[kmg]' ;;
    SERVER_JVM_FLAGS) printf '%s( %s)*' "$flag" "$flag" ;;
    SERVER_BACKLOG) printf '%s' '[1-9][0-9]{0,4}' ;;
    NOFILE) printf '%s' '[1-9][0-9]{1,6}' ;;
    LOOPS) printf '%s' '[0-9]{1,3}' ;;
    BLOCK_THE_LOOP) printf '%s' '(true|false)' ;;
    SERVER_POOL_SIZE) printf '%s' '[1-9][0-9]{0,4}' ;;
    SERVER_QUEUE_BOUND) printf '%s' '[0-9]{1,7}' ;;
    SERVER_DOWNSTREAM_CONNECTIONS) printf '%s' '[1-9][0-9]{0,4}' ;;
    SERVER_DOWNSTREAM_TIMEOUT_MS) printf '%s' '[1-9][0-9]{0,5}' ;;
    *) return 1 ;;
  esac
}

is_server() { cat .lab/servers/*.json | sed -n '/"targets"/,/]/p' | sed 's/.*\[//' | grep -qF "\"$1\""; }

# read_request TEXT: $server, and its settings as NAME=VALUE lines in $wanted; or a $problem.
read_request() {
  local whole='^\{"server":"([a-z0-9][a-z0-9.-]{0,62})","settings":\{(.*)\}\}$'
  local one='^"([A-Z_]{1,40})":"([^"\\]*)"(,|$)' rest name value pattern whose
  wanted=""
  [[ $1 =~ $whole ]] || { problem="a request that is none"; return 1; }
  server=${BASH_REMATCH[1]} rest=${BASH_REMATCH[2]}
  if [[ $server != generator ]] && ! is_server "$server"; then
    problem="$server is not a server"
    return 1
  fi
  while [[ -n $rest ]]; do
    [[ $rest =~ $one ]] || { problem="a request that is none"; return 1; }
    name=${BASH_REMATCH[1]} value=${BASH_REMATCH[2]}
    rest=${rest#"${BASH_REMATCH[0]}"}
    whose=server
    if [[ $server == generator ]]; then whose=generator; fi
    if ! pattern=$(pattern_of "$name") || [[ $name == GENERATOR_* && $whose == server || $name != GENERATOR_* && $whose == generator ]]; then
      problem="$name is not a setting of $server"
      return 1
    fi
    if ! [[ $value =~ ^($pattern)$ ]]; then
      problem="$name=$value is not allowed"
      return 1
    fi
    wanted+="$name=$value"$'\n'
  done
}

# logged COMMAND…: run it; the last line it wrote is the problem.
logged() {
  printf '%s\n' "$*" >>"$log"
  "$@" >"$state/said" 2>&1 </dev/null && return 0
  cat "$state/said" >>"$log"
  problem=$(grep -v '^ *$' "$state/said" | tail -n 1)
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

# lab's compose, with the settings of these lines beside those of this machine and of .env.
compose_with() {
  local lines=$1 line
  shift
  (
    set -a
    . ./.lab/env
    while IFS= read -r line; do
      if [[ -n $line ]]; then export "${line?}"; fi
    done <<<"$lines"
    set +a
    logged docker compose "$@"
    status=$?
    printf '%s' "$problem" >"$state/problem"
    exit "$status"
  )
}

# have SERVER LINES: its container with these settings, all others by default.
have() {
  local had="" id cpus
  # Not remembered: that limit ends with its container.
  if [[ $1 == generator ]]; then limit "$driver" "$(value GENERATOR_CPUS "$2")"; return; fi
  if [[ -f $state/of.$1 ]]; then had=$(<"$state/of.$1"); fi
  # Whatever becomes of it: what is not the default is put back in the end.
  printf '%s' "$2" >"$state/of.$1"
  if [[ $(starting "$had") == "$(starting "$2")" ]]; then
    cpus=$(value SERVER_CPUS "$2")
    id=$(compose_id "$1")
    if ! limit "${id:-$1}" "${cpus:-$(setting SERVER_CPUS)}"; then return 1; fi
  elif ! compose_with "$2" up --detach --no-deps --no-build --force-recreate --wait "$1"; then
    problem=$(<"$state/problem")
    # Whatever is asked for next, it takes a new container.
    printf 'BROKEN=yes\n' >"$state/of.$1"
    return 1
  fi
  if [[ -z $2 ]]; then rm "$state/of.$1"; fi
}

compose_id() { (set -a; . ./.lab/env; set +a; docker compose ps --quiet "$1" 2>/dev/null </dev/null | head -n 1); }

# The answer: a line of JSON, there as a whole or not at all, and never through a link.
answer() {
  local to=$folder/$1.answer.json text='{"ok":true}'
  if [[ -n $problem ]]; then
    problem=$(printf '%s' "${problem:0:300}" | tr -d '\000-\037' | tr '"\\' "'/")
    text="{\"ok\":false,\"error\":\"$problem\"}"
  fi
  if [[ -e $to || -L $to ]]; then return; fi
  printf '%s\n' "$text" >"$state/answer"
  chmod 0644 "$state/answer"
  mv -f "$state/answer" "$to"
}

serve() {
  local file=$1 number text server="" wanted=""
  number=$(basename "$file" .request.json)
  if ! [[ $number =~ ^[0-9]{1,6}$ && -f $file && ! -L $file ]]; then return; fi
  text=$(head -c 4096 "$file")
  rm -f "$file"
  problem=""
  if read_request "$text"; then have "$server" "$wanted" || problem=${problem:-failed}; fi
  answer "$number"
}

put_back() {
  local left server
  for left in "$state"/of.*; do
    if [[ ! -f $left ]]; then continue; fi
    server=${left##*/of.}
    problem=""
    if have "$server" ""; then
      printf 'lab: %s was left changed; its defaults are back\n' "$server" >&2
    else
      printf 'lab: %s was left changed and could not be put back: %s\n' "$server" "$problem" >&2
    fi
  done
}

while [[ -z $over ]] && kill -0 "$parent" 2>/dev/null; do
  if [[ -d $folder && ! -L $folder ]]; then
    for request in "$folder"/*.request.json; do
      if [[ -e $request ]]; then serve "$request"; fi
    done
  fi
  sleep 0.2
done
put_back
rm -rf "$state"
