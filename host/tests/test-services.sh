#!/usr/bin/env bash
# compose.yaml, the password of Grafana, and services of the user's own.
# shellcheck disable=SC2016  # quoted code: fakes, and checks that `check` evaluates
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. host/tests/fakes.sh

# --- compose.yaml ---------------------------------------------------------------------------
# shellcheck disable=SC2034 # used by checks, as text
starts=$(sed -n 's/^ *start_period: *//p' compose.yaml)
check "compose.yaml: a slow machine has 180 s until a health check counts, and no service less" '[[ $starts == 180s ]]'

# --- Grafana's password -------------------------------------------------------------------
# guarded WORD…: `lab.sh ready`, grafana-password.sh and `lab.sh where`, with Grafana's image there.
guarded() {
  readied FAKE_IMAGES=all "$@"
  run env "$@" bash -c "'$lab/host/grafana-password.sh' && '$lab/host/lab.sh' where"
}
guarded X=1
check "password: a random one, given to Grafana, and where it is is said" \
  '[[ $status == 0 && $out == *"with the password in .lab/concurrency-lab/grafana-password" && $(count "compose exec -T grafana sh") == 1 && $(<"$calls") == *"password $(<"$state/grafana-password")"* && $(stat -c %a "$state/env") == 600 ]]'
guarded GRAFANA_ADMIN_PASSWORD="it's mine"
check "password: the user's own, and none is made" \
  '[[ $status == 0 && $out == *"with the password in GRAFANA_ADMIN_PASSWORD" && $out != *mine* && $(<"$calls") == *"password it'"'"'s mine"* && ! -e $state/grafana-password ]]'
FAKE_EXEC=1 guarded X=1
check "password: a Grafana that does not take it is one warning, and the lab is up" \
  '[[ $status == 0 && $out == *"lab: warning: Grafana did not take the password"* && $out == *"lab: up."* ]]'
readied
run bash -c "'$lab/host/grafana-password.sh' && '$lab/host/lab.sh' where"
check "password: without Grafana nothing is asked or said of one" \
  '[[ $status == 0 && $out != *password* && $(count "compose exec") == 0 ]]'

# --- the secret of a lab ------------------------------------------------------------------
readied
# shellcheck disable=SC2034 # used by checks, as text
secret=$(. "$state/env" && printf '%s' "$LAB_SECRET")
check "secret: a long one, in a file of this user's alone, with what follows from it" \
  '[[ $status == 0 && ${#secret} == 44 && $(stat -c %a "$state/env") == 600 && $(grep TOKEN "$state/env") == "LAB_TOKEN_SUMS=of-$secret" && $out != *"$secret"* ]]'
check "secret: no container may read it but one without a network" '[[ $(grep -c -- "-e LAB_SECRET" "$calls") == $(grep -c -- "--network none.*-e LAB_SECRET" "$calls") && $(<"$state/allowed-changes") != *TOKEN* ]]'
run env SERVER_MEMORY=1g "$lab/host/lab.sh" ready
check "secret: the same as long as the lab is up" '[[ $status == 0 && $(. "$state/env" && printf "%s" "$LAB_SECRET") == "$secret" ]]'
rm "$state/env"
run "$lab/host/lab.sh" ready
check "secret: another one for the next lab" '[[ $status == 0 && $(. "$state/env" && printf "%s" "$LAB_SECRET") != "$secret" && $(<"$state/env") == *LAB_SECRET=?????????* ]]'

# --- services of the user's own -------------------------------------------------------------
readied
# shellcheck disable=SC2034 # used by checks, as text
own=$state/own/own.json
check "own services: none listed, none read" '[[ $status == 0 && ! -e $own ]]'
printf '[{"targets": ["mine"]}]' >"$lab/prometheus/own.json"
run "$lab/host/lab.sh" ready
check "own services: listed in prometheus/own.json, read by Prometheus" \
  '[[ $status == 0 && $(<"$own") == *mine* ]]'
rm "$lab/prometheus/own.json"
run "$lab/host/lab.sh" ready
check "own services: no longer listed, no longer read" '[[ $status == 0 && ! -e $own ]]'

mkdir -p "$lab/servers/lanes/netty" && touch "$lab/servers/lanes/netty/MODEL.md" "$lab/servers/jmx-exporter.yaml"
fake docker <<'FAKE'
lab=$(cd "$(dirname "$0")/.." && pwd)
printf 'docker %s\n' "$*" >>"$lab/calls"
case "$1 ${2-}" in
  "image inspect") if [[ $* == *Id* ]]; then echo "$FAKE_ID"; fi ;;
  "create "*) echo made ;;
  "cp "*) [[ -z ${FAKE_CP_FAILS-} ]] || exit 1; jar=$(basename "${2#*:}"); printf 'a jar' >"$lab/$jar"; tar -C "$lab" -c "$jar" ;;
esac
FAKE
export FAKE_ID=sha256:one
printf 'LAB_TOKEN_SUMS=netty=1a,recorder=2b,vertx=3c\n' >>"$state/env"
run "$lab/host/lab.sh" jmx
check "own services: the recorder knows its token by the sum beside it" \
  '[[ $(<"$state/jmx/lab-recorder.sum") == 2b ]]'
check "own services: the exporter and the recorder come out of a server's image, which leaves no container" \
  '[[ $status == 0 && $(<"$state/jmx/jmx-exporter.jar") == "a jar" && -s $state/jmx/lab-recorder.jar && -e $state/jmx/jmx-exporter.yaml && $(count "docker rm --force made") == 1 ]]'
run "$lab/host/lab.sh" jmx
check "own services: once for each image" '[[ $status == 0 && $(count "docker create") == 1 ]]'
FAKE_ID=sha256:two run "$lab/host/lab.sh" jmx
check "own services: again for another image" '[[ $status == 0 && $(count "docker create") == 2 ]]'
FAKE_ID=sha256:three FAKE_CP_FAILS=1 run "$lab/host/lab.sh" jmx
check "own services: without an exporter make up goes on, with one line, and leaves no container" \
  '[[ $status == 0 && $out == *"warning: no JMX exporter, or no recorder"* && $(wc -l <<<"$out") == 1 && $(count "docker rm --force made") == 3 && ! -e $state/jmx/jmx-exporter.jar.part && -s $state/jmx/jmx-exporter.jar ]]'
unset FAKE_ID

finish
