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
  waited_for=""
  kill -INT -- "-$pid"
  wait "$pid" || true
  within 60 no_driver && ((status == 0))
}
