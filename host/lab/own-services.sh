# shellcheck shell=bash
# Services of the user's own: which there are, Prometheus's list of them, the agents for their JVMs. Sourced by lab.sh.

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

agents=(jmx-exporter.jar lab-recorder.jar)

# copy_agents IMAGE: into jmx/, what it has of them; fails where it lacks one. Leaves no container, whatever happens.
copy_agents() (
  container=$(docker create "$1" 2>/dev/null) || return 1
  trap 'docker rm --force "$container" >/dev/null 2>&1 || true' EXIT
  failed=0
  for jar in "${agents[@]}"; do
    part=$state/jmx/$jar.part
    if docker cp "$container:/lab/$jar" - 2>/dev/null | tar -xO >"$part" 2>/dev/null && [[ -s $part ]]; then
      mv "$part" "$state/jmx/$jar"
    else
      rm -f "$part"
      failed=1
    fi
  done
  return "$failed"
)

# What a JVM of the user's own needs to be read and recorded (docs/your-own-service.md): the exporter with its
# rules, and the recorder with the sum of its token, out of the image of a server that is there.
put_agents() {
  local page image="" id jmx=$state/jmx
  mkdir -p "$jmx"
  cat servers/jmx-exporter.yaml >"$jmx/jmx-exporter.yaml"
  # By this the recorder knows the token of the lab's driver (docs/security.md).
  sed -nE 's/^(.*,)?recorder=([0-9a-f]+)(,.*)?$/\2/p' <<<"$(read_off LAB_TOKEN_SUMS)" >"$jmx/lab-recorder.sum"
  for page in servers/*/*/MODEL.md; do
    page=$(basename "$(dirname "$page")")
    if has_image "concurrency-lab/$page:$LAB_TAG"; then image=concurrency-lab/$page:$LAB_TAG; break; fi
  done
  [[ -n $image ]] || return 0
  id=$(docker image inspect --format '{{.Id}}' "$image")
  if [[ -s $jmx/lab-recorder.jar && $(cat "$jmx/from" 2>/dev/null) == "$id" ]]; then return 0; fi
  if copy_agents "$image"; then
    printf '%s\n' "$id" >"$jmx/from"
  else
    say "lab: warning: no JMX exporter, or no recorder, for services of your own: one could not be copied out of $image"
  fi
}
