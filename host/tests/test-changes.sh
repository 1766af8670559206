#!/usr/bin/env bash
# host/changes.sh: what is done of the requests of a driver, and put back.
# shellcheck disable=SC2016  # quoted code: fakes, and checks that `check` evaluates
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. host/tests/fakes.sh

# --- changes.sh -----------------------------------------------------------------------

changing
ask SERVER=netty SERVER_CPUS=0.5
check "changes: a CPU limit alone keeps the container" \
  '[[ $out == ok && $(<"$calls") == "docker update --cpus 0.5 id-of-netty,"* ]]'
: >"$calls"
ask SERVER=netty
check "changes: no limit is a limit to all CPUs" '[[ $out == ok && $(<"$calls") == *"--cpus 4 id-of-netty,"* ]]'
: >"$calls"
ask SERVER=netty "SERVER_JVM_FLAGS=-Xms64m -Xmx64m -XX:+UseG1GC" NOFILE=300 SERVER_CPUS=0.5
check "changes: other settings take a new container, of this server only" \
  '[[ $out == ok && $(<"$calls") == "docker compose up "*"--force-recreate --wait netty, cpus=0.5 nofile=300 flags=-Xms64m -Xmx64m -XX:+UseG1GC" ]]'
: >"$calls"
ask SERVER=netty "SERVER_JVM_FLAGS=-Xms64m -Xmx64m -XX:+UseG1GC" NOFILE=300
check "changes: the CPU limit of such a container is lifted live" '[[ $out == ok && $(<"$calls") == *"--cpus 4 id-of-netty,"* ]]'
: >"$calls"
ask SERVER=netty SERVER_IMAGE=lab/netty:new
check "changes: another image, of this server only" \
  '[[ $out == ok && $(<"$calls") == "docker compose up "*"--no-build --force-recreate --wait netty,"* && $(<"$lab/image") == '"'services: {netty: {image: \"lab/netty:new\"}}'"' ]]'
rm "$lab/image"
ask SERVER=netty NOFILE=300
check "changes: its own image again" '[[ $out == ok && $(count "^docker compose up .* netty,") == 2 && ! -e $lab/image ]]'
: >"$calls"
ask SERVER=generator GENERATOR_CPUS=0.05
check "changes: the driver's own limit" '[[ $out == ok && $(<"$calls") == "docker update --cpus 0.05 the-driver,"* ]]'
: >"$calls"
ask SERVER=my-shop ENV_POOL_SIZE2=40 'ENV_JAVA_OPTS=-XX:+UseG1GC -Xmx512m' OWN_CPUS=1.5 OWN_MEMORY=1024m
check "changes: what the levers of a service of the user name, in a new container of it" \
  '[[ $out == ok && $(<"$calls") == "docker compose up "*"--force-recreate --wait my-shop,"* && $(<"$lab/image") == '"'services: {my-shop: {cpus: 1.5, mem_limit: 1024m, environment: {POOL_SIZE2: \"40\", JAVA_OPTS: \"-XX:+UseG1GC -Xmx512m\"}}}'"' ]]'
: >"$calls"
rm "$lab/image"
ask SERVER=my-shop FRESH=yes
check "changes: a fresh container of it keeps them" '[[ $out == ok && $(<"$lab/image") == *"POOL_SIZE2: \"40\""* ]]'
for change in FRESH=yes OWN_CPUS=2; do
  echo sha256:two >"$lab/its-image"
  ask SERVER=my-shop "$change"
  check "changes: $change: a container of another image is none of this run" \
    '[[ $out == another-image && $(tail -n 1 "$state/logs/changes.log") == "another-image: the image of my-shop is another one since "* ]]'
  rm "$lab/its-image"
done
rm "$lab/image"
ask SERVER=my-shop
check "changes: it is put back as its own file says" '[[ $out == ok && $(count "^docker compose up .* my-shop,") == 4 && ! -e $lab/image ]]'
: >"$calls"
ask SERVER=my-shop
check "changes: its own limits are not lifted" '[[ $out == ok && ! -s $calls ]]'
# What its container has now: NanoCpus, quota and period, bytes.
for limits in "0 0 0 0" "1510000000 0 0 1073741824" "0 151000 100000 1073741824" "1500000000 0 0 1073741825"; do
  printf '%s\n' "$limits" >"$lab/limits"
  ask SERVER=my-shop OWN_CPUS=1.5 OWN_MEMORY=1g
  check "changes: a limit that takes away is none: $limits" '[[ $out == takes-away && ! -s $calls && $(tail -n 1 "$state/logs/changes.log") == "takes-away: OWN_"*" would take away from my-shop, which has "* ]]'
done
for limits in "1500000000 0 0 1073741824" "0 75000 50000 1073741824" "100000000 0 0 1"; do
  printf '%s\n' "$limits" >"$lab/limits"
  ask SERVER=my-shop OWN_CPUS=1.5 OWN_MEMORY=1g
  check "changes: as much or more is given: $limits" '[[ $out == ok && -s $calls ]]'
  ask SERVER=my-shop
  : >"$calls"
done
rm "$lab/limits" "$lab/image"
touch "$lab/x"
refused() {
  ask "$@"
  check "changes: refused, with no word of the request: $*" '[[ $out == not-allowed && ! -s $calls ]]'
}
refused SERVER=netty 'NOFILE=300;x'
refused SERVER=netty PATH=1
refused SERVER=netty 'S.*=1'
refused SERVER=netty 'N.*=300'
refused SERVER=grafana
refused SERVER=netty SERVER=fixed-pool
refused NOFILE=300 SERVER=netty
refused rubbish
refused SERVER=netty SERVER_JVM_FLAGS=-XX:OnError=sh
refused SERVER=netty GENERATOR_CPUS=1
refused SERVER=netty 'SERVER_IMAGE=lab/x:1"}'
refused SERVER=generator NOFILE=300
refused SERVER=generator FRESH=yes
refused SERVER=netty FRESH=no
refused SERVER=netty 'SERVER_MEMORY=$(id)'
refused SERVER=netty ENV_POOL_SIZE2=40
refused SERVER=netty OWN_CPUS=1
refused SERVER=netty OWN_SERVER=my-shop
refused SERVER=my-shop OWN_SERVER=my-shop
refused SERVER=my-shop NOFILE=300
refused SERVER=my-shop SERVER_IMAGE=lab/x:1
refused SERVER=my-shop GENERATOR_CPUS=1
refused SERVER=my-shop ENV_OTHER=1
refused SERVER=my-shop ENV_path=1
refused SERVER=my-shop 'ENV_POOL_SIZE2=4"0'
refused SERVER=my-shop 'ENV_POOL_SIZE2=$HOME'
refused SERVER=my-shop 'ENV_ANY=20"}, privileged: true, labels: {q: "r'
refused SERVER=my-shop 'ENV_JAVA_OPTS=-XX:+UseG1GC -Xmx512m -agentpath:/x'
refused SERVER=my-shop 'ENV_JAVA_OPTS=-XX:+UseG1GC -Xmxm'
refused SERVER=generator OWN_CPUS=1
refused SERVER=netty NOFILE=300 x
refused SERVER=netty NOFILE=300 x=1
touch "$lab/broken"
ask SERVER=fixed-pool LOOPS=1
check "changes: what the engine says is in the log" '[[ $out == failed && $(tail -n 1 "$state/logs/changes.log") == '"'failed: container \"x\" is\unhealthy'"' ]]'
rm "$lab/broken"
: >"$calls"
# As on a disk that is full.
mkdir "$state/changed/$changes/next"
ask SERVER=fixed-pool NOFILE=300
check "changes: what cannot be remembered is not done" '[[ $out == failed && ! -s $calls && $(tail -n 1 "$state/logs/changes.log") == "failed: "*"/of.fixed-pool cannot be written" ]]'
ask SERVER=netty SERVER_CPUS=0.05
check "changes: and what was remembered still is" '[[ $out == failed && ! -s $calls && $(<"$state/changed/$changes/of.netty") == NOFILE=300 ]]'
ask SERVER=netty
check "changes: what is put back needs nothing to be written" '[[ $out == ok && $(count "^docker compose up .* netty,") == 1 ]]'
rmdir "$state/changed/$changes/next"
ask SERVER=netty NOFILE=300
: >"$calls"
at_rest "$changes"
check "changes: what a dead driver left is put back" \
  '[[ $(count "^docker compose up") == 2 && $(grep -c "was left changed; its defaults are back" <<<"$out") == 2 ]]'

# What a driver that is somebody else's has in the place of a request, one after the other while it is served: a link to a
# folder of the host, a link to a device that never ends, a pipe that nobody writes to.
changing
mkdir "$lab/elsewhere"
swap() {
  local number request
  for number in {1..20}; do
    request=$lab/asks/requests/$number
    until [[ -e $lab/asks/answers/$number ]]; do
      ln -sfn "$lab/elsewhere" "$request" && ln -sfn /dev/zero "$request" && ln -sfn SERVER=secret "$request"
      rm "$request" && mkfifo "$request"
    done
  done
}
swap &
swapper=$!
for ((i = 0; i < 6000; i++)); do if [[ -e $lab/asks/answers/20 ]]; then break; fi; sleep 0.1; done
kill "$swapper" 2>/dev/null || wait "$swapper"
out=$(cat "$lab"/asks/answers/* | sort | uniq -c)
check "changes: 20 requests that are swapped while they are served have answers, which are a code" \
  '[[ $out =~ ^\ *20\ not-allowed$ && ! -s $calls ]]'
check "changes: and nothing is written elsewhere" '[[ -z $(ls "$lab/elsewhere") ]]'
# One that opened the pipe would never end.
disown "$changes" "$parent"
kill -KILL "$changes" "$parent"

changing
big=$(printf '%4000s' "" | tr ' ' x)
refused "SERVER=$big"
refused SERVER=netty "$(printf 'LOOPS=1\n%.0s' {1..500})" "SECRET=1"
at_rest "$parent"
check "changes: what a driver writes stays as it was" '[[ $(ls "$lab/asks/requests" | paste -sd " ") == "1 2" ]]'

changing
ask SERVER=netty SERVER_BACKLOG=1
ask SERVER=netty
for again in 1 2; do
  : >"$calls"
  ask SERVER=fixed-pool FRESH=yes
  check "changes: a fresh container as it is, time $again" \
    '[[ $out == ok && $(<"$calls") == "docker compose up "*"--force-recreate --wait fixed-pool, "* ]]'
done
: >"$calls"
at_rest "$parent"
check "changes: it ends with the driver's script, and has nothing to put back" '[[ ! -s $calls && -z $out ]] && ! kill -0 "$changes" 2>/dev/null'

changing
ask SERVER=netty SERVER_CPUS=0.05
disown "$changes" "$parent"
kill -KILL "$changes" "$parent"
while kill -0 "$changes" 2>/dev/null; do sleep 0.01; done
touch "$lab/no-engine"
run "$lab/host/changes.sh" put-back
check "changes: where no engine answers it stays remembered" \
  '[[ $out == *"netty was left changed and could not be put back: no Docker engine answers" && -s $(echo "$state"/changed/*/of.netty) ]]'
rm "$lab/no-engine"
touch "$lab/no-compose"
run "$lab/host/changes.sh" put-back
check "changes: so it does where Compose cannot tell whether there is such a container" \
  '[[ $out == *"netty was left changed and could not be put back: Compose cannot tell its container" && -s $(echo "$state"/changed/*/of.netty) ]]'
rm "$lab/no-compose"
: >"$calls"
run "$lab/host/changes.sh" put-back
check "changes: what a killed host left is put back at the next start, once" \
  '[[ $(<"$calls") == *"--cpus 4 id-of-netty,"* && $out == *"netty was left changed; its defaults are back" && -z $(ls "$state/changed") ]]'
changing
ask SERVER=netty SERVER_CPUS=0.05
touch "$lab/no-container"
: >"$calls"
at_rest "$changes"
check "changes: a container that is gone took its changes with it" '[[ ! -s $calls && -z $out && -z $(ls "$state/changed") ]]'
rm "$lab/no-container"

changing
touch "$lab/driver-runs"
ask SERVER=netty SERVER_CPUS=0.05
disown "$parent"
kill -KILL "$parent"
: >"$calls"
ask SERVER=netty SERVER_CPUS=0.5
check "changes: a driver whose parent was killed still has what it asks for" \
  '[[ $out == ok && $(<"$calls") == *"--cpus 0.5 id-of-netty,"* ]] && kill -0 "$changes"'
: >"$calls"
rm "$lab/driver-runs"
wait "$changes" || true
check "changes: and what it has left changed is put back when it has ended" '[[ $(<"$calls") == *"--cpus 4 id-of-netty,"* && -z $(ls "$state/changed") ]]'

# After a start of the machine numbers of processes come again.
mkdir -p "$state/changed"
: >"$calls"
run bash -c 'mkdir -p "$0/changed/$$" && printf "SERVER_CPUS=0.05\n" >"$0/changed/$$/of.netty" && exec "$1/host/changes.sh" put-back' "$state" "$lab"
check "changes: so it is where the next start has the number of the killed one" \
  '[[ $(<"$calls") == *"--cpus 4 id-of-netty,"* && $out == *"netty was left changed; its defaults are back" && -z $(ls "$state/changed") ]]'
changing
ask SERVER=netty SERVER_CPUS=0.05
: >"$calls"
run "$lab/host/changes.sh" put-back
check "changes: nothing is put back under a measurement" '[[ ! -s $calls && -z $out ]]'
at_rest "$parent"

finish
