# shellcheck shell=bash
# What is published on 127.0.0.1, asked over bash's own sockets. Sourced by smoke.sh.

# page NAME STATUS: what the control page, Prometheus and Toxiproxy's API answer to who knows them under this name.
page() {
  local name=$1 status=$2 line asked
  for asked in "$LOADGEN_PORT/" "$PROMETHEUS_PORT/-/ready" "$TOXIPROXY_PORT/version"; do
    exec 3<>"/dev/tcp/127.0.0.1/${asked%%/*}" || return 1
    printf 'GET /%s HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\n\r\n' "${asked#*/}" "$name" "${asked%%/*}" >&3
    read -r -t 30 line <&3
    exec 3>&-
    printf '%s: %s: %s\n' "$name" "$asked" "$line"
    [[ $line == *" $status "* ]] || return 1
  done
}
# from_inside: what a container under test gets of the rest of the lab. Each line: address, Host, call, status; 0 is no connection.
from_inside() {
  local asked
  asked=$(docker exec -i "$(container_of fixed-pool)" bash -c 'while read -r address host method path status; do
      line=none
      if exec 3<>"/dev/tcp/$address"; then
        printf "%s %s HTTP/1.1\r\nHost: %s\r\nLab-Control: 1\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}" "$method" "$path" "$host" >&3
        read -r -t 30 line <&3; exec 3>&-
      fi 2>/dev/null
      if [[ $line == *" $status "* || $status$line == 0none ]]; then printf "as it should be: "; else printf "WRONG: "; fi
      printf "%s\n" "$address, Host: $host: $method $path: $line"
    done' <<LINES
event-loop/8081 event-loop GET /metrics 200
event-loop/8081 event-loop PATCH /settings 403
event-loop/8081 event-loop POST /restart 403
event-loop/8081 event-loop POST /gc 403
downstream/8081 downstream GET /metrics 200
downstream/8081 downstream PATCH /settings 403
toxiproxy/8475 toxiproxy GET /metrics 200
toxiproxy/8475 localhost:$TOXIPROXY_PORT POST /reset 403
toxiproxy/8474 toxiproxy POST /reset 0
toxiproxy/9464 localhost:$LOADGEN_PORT GET / 403
toxiproxy/9090 localhost:$PROMETHEUS_PORT GET / 403
loadgen/9464 loadgen:9464 GET /metrics 200
loadgen/9464 loadgen:9464 PUT /trial 403
loadgen/9464 localhost:$LOADGEN_PORT GET / 403
loadgen/9464 localhost:$LOADGEN_PORT GET /api/runs 403
loadgen/9464 localhost:$LOADGEN_PORT POST /api/toxics/reset 403
LINES
  ) || return 1
  printf '%s\n' "$asked"
  [[ $(grep -c '^as it should be' <<<"$asked") == 16 ]]
}
# ask METHOD PATH [JSON]: the page's API, as its own script asks it; status line, headers and answer.
ask() {
  local body=${3-}
  exec 3<>"/dev/tcp/127.0.0.1/$LOADGEN_PORT" || return 1
  printf '%s %s HTTP/1.1\r\nHost: localhost:%s\r\nConnection: close\r\n' "$1" "$2" "$LOADGEN_PORT" >&3
  printf 'Lab-Control: 1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' "${#body}" "$body" >&3
  timeout 30 cat <&3
  exec 3>&-
}
# changes METHOD PATH JSON: it is done.
changes() {
  local out
  out=$(ask "$@")
  printf '%s\n' "$*" "$out"
  [[ $out == "HTTP/1.1 2"* ]]
}
shown() { [[ $(ask GET /api/live) == *"$1"* ]]; }
# slow SERVER SECONDS: the p95 that clients of it meet, as the page shows it, is at least that much.
slow() {
  local p95
  p95=$(ask GET /api/live | sed -n "s/.*\"$1\":{\([^}]*\)}.*/\1/p" | sed -n 's/.*"client_p95_s":\([0-9.]*\).*/\1/p')
  printf 'client p95 of %s: %s s\n' "$1" "${p95:-none}"
  awk -v p95="${p95:-0}" -v least="$2" 'BEGIN {exit !(p95 >= least)}'
}

# A toxic that is put in force on the page is in the live p95 of the bench that runs.
page_toxic() {
  local pid status=0 waited_for=""
  env --default-signal=INT setsid make bench SERVER=fixed-pool CONC=20 MODE=closed DURATION=10m WARMUP=1s ENGINE=pacer NAME=page &
  pid=$! waited_for=$!
  within 300 shown '"trial":{' && changes POST /api/toxics '{"words": {"TYPE": "latency", "LATENCY": "300"}}' &&
    within 120 slow fixed-pool 0.45 || status=1
  changes POST /api/toxics/reset '{}' || status=1
  # shellcheck disable=SC2034  # `within` reads it
  waited_for=""
  kill -INT -- "-$pid"
  wait "$pid" || true
  within 60 no_driver && ((status == 0))
}
