# shellcheck shell=bash
# Services of the user's own: which there are, Prometheus's list of them, the JMX exporter for them. Sourced by lab.sh.

: "${state:?}"

# own_services: the services that only the user's own Compose files have, on one line.
own_services() {
  if [[ -z ${COMPOSE_FILE-} && ! -e compose.override.yaml ]]; then return 0; fi
  docker compose --profile '*' config --services 2>/dev/null |
    grep -Fvx "$(docker compose -f compose.yaml --profile '*' config --services)" | paste -sd ' ' - || true
}

# replace FROM TO: whole, and only where it differs: Prometheus reads the folder at any time.
replace() {
  if ! cmp -s "$1" "$2"; then cp "$1" "$2.part" && mv "$2.part" "$2"; fi
}

# Services of the user's own, for Prometheus.
write_own_servers() {
  local own=${LAB_OWN_SERVERS:-prometheus/own.json}
  mkdir -p "$state/own"
  if [[ -f $own ]]; then replace "$own" "$state/own/own.json"; else rm -f "$state/own/own.json"; fi
}

# copy_jmx IMAGE: its exporter, as jmx/jmx-exporter.jar.part. Leaves no container, whatever happens.
copy_jmx() (
  container=$(docker create "$1" 2>/dev/null) || return 1
  trap 'docker rm --force "$container" >/dev/null 2>&1 || true' EXIT
  docker cp "$container:/lab/jmx-exporter.jar" - 2>/dev/null | tar -xO >"$state/jmx/jmx-exporter.jar.part" 2>/dev/null \
    && [[ -s $state/jmx/jmx-exporter.jar.part ]]
)

# What a JVM of the user's own needs to be read (docs/your-own-service.md): the exporter, out of the
# image of a server that is there, and its rules.
put_jmx() {
  local page image="" id jmx=$state/jmx
  mkdir -p "$jmx"
  cat servers/jmx-exporter.yaml >"$jmx/jmx-exporter.yaml"
  for page in servers/*/MODEL.md; do
    page=$(basename "$(dirname "$page")")
    if has_image "concurrency-lab/$page:$LAB_TAG"; then image=concurrency-lab/$page:$LAB_TAG; break; fi
  done
  [[ -n $image ]] || return 0
  id=$(docker image inspect --format '{{.Id}}' "$image")
  if [[ -s $jmx/jmx-exporter.jar && $(cat "$jmx/from" 2>/dev/null) == "$id" ]]; then return 0; fi
  if copy_jmx "$image"; then
    mv "$jmx/jmx-exporter.jar.part" "$jmx/jmx-exporter.jar"
    printf '%s\n' "$id" >"$jmx/from"
  else
    rm -f "$jmx/jmx-exporter.jar.part"
    say "lab: warning: no JMX exporter for services of your own: it could not be copied out of $image"
  fi
}
