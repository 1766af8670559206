#!/usr/bin/env bash
# The path of ordinary users, on a machine without an image registry: images/present.sh pulls from one of its own. It is
# Debian's docker-registry, with Toxiproxy in front of it. By hand: .ci/pulling.sh (one to three
# minutes). It needs the images of Debian, Go, Toxiproxy and the driver.
#
# Everything it makes has a name of its own, and is gone afterwards. .env and .lab of the checkout are left alone: it works
# in a copy. The last line is `N passed, N failed`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. host/common.sh

name=concurrency-lab-pulling
# What present.sh pulls: a registry on the loopback address may speak plain HTTP.
front=127.0.0.1:${PULLING_PORT:-5443}
limited=127.0.0.1:${PULLING_LIMITED_PORT:-5445}
work=$(mktemp -d)
lab=$work/lab
debian=$(present_image DEBIAN_IMAGE) toxiproxy=$(present_image TOXIPROXY_IMAGE) driver=concurrency-lab/loadgen:$LAB_TAG
for image in "$debian" "$toxiproxy" "$driver" "$(present_image GOLANG_IMAGE)"; do
  has_image "$image" || fail "pulling.sh: $image is not here: \`make up\` first"
done

# Of this script alone: tags under the registries' addresses, what was built in their place, and containers by their label.
forget() {
  local image
  for image in $(docker images --format '{{.Repository}}:{{.Tag}}' | grep -E "^($front|$limited)/" | grep -v '<none>'); do
    docker image rm "$image" >/dev/null 2>&1 || true
  done
  docker image rm concurrency-lab/pulled-toxiproxy:2.12.0 >/dev/null 2>&1 || true
  for image in $(docker images --digests --format '{{.Repository}}@{{.Digest}}' | grep -E "^($front|$limited)/.*@sha256"); do
    docker image rm "$image" >/dev/null 2>&1 || true
  done
}
clean_up() {
  local container
  for container in "$name-registry" "$name-front" "$name-limited"; do docker rm --force --volumes "$container" >/dev/null 2>&1 || true; done
  docker network rm "$name" >/dev/null 2>&1 || true
  docker image rm "$name:local" >/dev/null 2>&1 || true
  forget
  rm -rf "$work"
}
trap clean_up EXIT
clean_up
mkdir -p "$work"

passed=0 failed=0
check() {
  if eval "$2"; then
    passed=$((passed + 1))
    printf 'ok      %s\n' "$1"
  else
    failed=$((failed + 1))
    printf 'FAILED  %s (status %s):\n%s\n' "$1" "$status" "$(sed 's/^/        | /' <<<"$out")"
  fi
}

# --- the registry ---------------------------------------------------------------------------
docker build --quiet --tag "$name:local" --build-arg "DEBIAN_IMAGE=$debian" - >/dev/null <<'DOCKERFILE'
ARG DEBIAN_IMAGE
FROM ${DEBIAN_IMAGE}
RUN apt-get update && apt-get install -y --no-install-recommends docker-registry && rm -rf /var/lib/apt/lists/*
RUN printf 'version: 0.1\nstorage: {filesystem: {rootdirectory: /registry}}\nhttp: {addr: ":5000"}\n' >/registry.yml
ENTRYPOINT ["docker-registry", "serve", "/registry.yml"]
DOCKERFILE
# Answers 429 to everything, as Docker Hub does to who has pulled too often.
cat >"$work/limited.py" <<'PYTHON'
from http.server import BaseHTTPRequestHandler, HTTPServer
class Limited(BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'{"errors": [{"code": "TOOMANYREQUESTS", "message": "You have reached your pull rate limit."}]}'
        self.send_response(429 if len(self.path) > 4 else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
    do_HEAD = do_GET
HTTPServer(("0.0.0.0", 5000), Limited).serve_forever()
PYTHON
docker network create "$name" >/dev/null
docker run --detach --name "$name-registry" --network "$name" --network-alias registry "$name:local" >/dev/null
docker run --detach --name "$name-front" --network "$name" -p "$front:5000" "$toxiproxy" -host=0.0.0.0 >/dev/null
docker run --detach --name "$name-limited" -p "$limited:5000" -v "$work/limited.py:/limited.py:ro" --entrypoint python "$driver" /limited.py >/dev/null

toxic() { docker exec "$name-front" /toxiproxy-cli "$@" >/dev/null; }
for _ in {1..100}; do if toxic list 2>/dev/null; then break; fi; sleep 0.2; done
toxic create -l 0.0.0.0:5000 -u registry:5000 registry
for _ in {1..100}; do
  if docker exec "$name-limited" python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:5000/v2/')" 2>/dev/null; then break; fi
  sleep 0.2
done

docker tag "$toxiproxy" "$front/lab/pulled-toxiproxy:2.12.0"
# A layer whose download takes its time, and that no compression makes small. Not built: the cache of builds would keep
# the layer, and nothing would be downloaded.
mkdir "$work/layer"
head -c 30000000 /dev/urandom >"$work/layer/noise"
tar -C "$work/layer" -c noise | docker import --change 'CMD ["none"]' - "$front/lab/grafana:1" >/dev/null
pushed() { docker push "$1" 2>&1 | sed -n 's/.*digest: \(sha256:[0-9a-f]*\) .*/\1/p'; }
for _ in {1..50}; do
  toxiproxy_digest=$(pushed "$front/lab/pulled-toxiproxy:2.12.0")
  if [[ -n $toxiproxy_digest ]]; then break; fi
  sleep 0.2
done
grafana_digest=$(pushed "$front/lab/grafana:1")
if [[ -z $toxiproxy_digest || -z $grafana_digest ]]; then fail "pulling.sh: the registry took nothing"; fi
# shellcheck disable=SC2034 # used by checks, as text
other=sha256:$(printf '%064d' 7)

# --- what present.sh makes of it ---------------------------------------------------------------
# pulled NAME=IMAGE WORD…: present.sh WORD… where .env pins that image, and nothing of an earlier pull is here.
pulled() {
  forget
  rm -rf "$lab"
  mkdir -p "$lab"
  cp -R images host .env "$lab/"
  again "$@"
}
# again NAME=IMAGE WORD…: the same, where what came before is still here.
again() {
  sed "s|^${1%%=*}=.*|$1|" .env >"$lab/.env"
  status=0
  out=$(cd "$lab" && env -u TOXIPROXY_DIGEST -u GRAFANA_DIGEST -u TOXIPROXY_IMAGE -u GRAFANA_IMAGE "${shorter[@]}" timeout 300 images/present.sh "${@:2}" 2>&1) || status=$?
}
shorter=(PULL_DEADLINE_S=20)
t=$front/lab/pulled-toxiproxy:2.12.0 g=$front/lab/grafana:1

pulled "TOXIPROXY_IMAGE=$t" toxiproxy
check "a pin by tag is pulled" '[[ $status == 0 && $out == *"$t "*" pulled, "*" s" ]] && has_image "$t"'
pulled "TOXIPROXY_IMAGE=$t@$toxiproxy_digest" toxiproxy
check "a pin by tag and digest is pulled by its digest, and has its tag" \
  '[[ $status == 0 && $out == *" pulled, "*", of the digest that is pinned" ]] && has_image "$t"'
again "TOXIPROXY_IMAGE=$t@$toxiproxy_digest" toxiproxy
check "and is there the next time" '[[ $status == 0 && $out == "images: all 1 there" ]]'
again "TOXIPROXY_IMAGE=$t@$other" toxiproxy
check "a digest that the registry does not have: built instead, and said" \
  '[[ $status == 0 && $out == *" built from packages, "*"; not pulled: $front has none of the digest that .env pins" ]]'
pulled "GRAFANA_IMAGE=$g@$other" grafana
check "the same of what cannot be built: absent, and said" '[[ $status == 0 && $out == *" absent ($front has none of the digest that .env pins): "* ]]'
pulled "GRAFANA_IMAGE=$front/lab/nobody:1" grafana
check "an image that the registry does not have: absent, with the reason" '[[ $status == 0 && $out == *" absent ("*"not found"*"): "* ]]'

pulled "GRAFANA_IMAGE=$g" grafana
check "an image of which no layer is here is pulled whole" '[[ $status == 0 && $out == *" pulled, "* ]] && has_image "$g"'

forget; rm -rf "$lab"; mkdir -p "$lab"; cp -R images host "$lab/"
sed "s|^GRAFANA_IMAGE=.*|GRAFANA_IMAGE=$g|" .env >"$lab/.env"
status=0; out=$(cd "$lab" && env -u GRAFANA_IMAGE images/pin.sh grafana 2>&1) || status=$?
check "pin.sh writes the digest that the registry has" \
  '[[ $status == 0 && $out == "GRAFANA_IMAGE=$g@$grafana_digest" && $(grep -c "^GRAFANA_IMAGE=$g@$grafana_digest$" "$lab/.env") == 1 ]]'

# Another content under the digest: what a registry that was broken into would send.
blob=/registry/docker/registry/v2/blobs/sha256/${grafana_digest:7:2}/${grafana_digest:7}/data
docker exec "$name-registry" sh -c "cp $blob /tmp/was && printf ' ' >>$blob"
pulled "GRAFANA_IMAGE=$g@$grafana_digest" grafana
check "content that is not of its digest is refused, and said" '[[ $status == 0 && $out == *" absent ("*" digest "*"): "* && $out != *" pulled, "* ]] && ! has_image "$g"'
docker exec "$name-registry" cp /tmp/was "$blob"

pulled "TOXIPROXY_IMAGE=$limited/lab/pulled-toxiproxy:2.12.0" toxiproxy
check "a registry that answers 429: built instead, its words told" \
  '[[ $status == 0 && $out == *" built from packages, "*"; not pulled: "*toomanyrequests* ]]'
check "and it is not taken for unreachable" '[[ ! -s $lab/.lab/unreachable-registries ]]'
pulled "GRAFANA_IMAGE=$limited/lab/grafana:1" grafana
check "the same of what cannot be built: absent, its words told" '[[ $status == 0 && $out == *" absent ("*toomanyrequests*"): "* ]]'

# 30 MB at 3 MB/s. The deadline is for the first word only.
toxic toxic add -t bandwidth -a rate=3000 -n slow registry
shorter=(PULL_DEADLINE_S=3)
pulled "GRAFANA_IMAGE=$g@$grafana_digest" grafana
check "a slow registry has all the time it needs" '[[ $status == 0 && $out =~ \ pulled,\ ([0-9]+)\ s,\ of\ the\ digest\ that\ is\ pinned$ ]] && ((BASH_REMATCH[1] > 5))'
toxic toxic remove -n slow registry

# It ends each connection after 1 MB, so a layer of 30 MB never comes whole. The engine tries again, for a minute or so.
toxic toxic add -t limit_data -a bytes=1000000 -n dies registry
pulled "GRAFANA_IMAGE=$g" grafana
check "a registry that dies half-way: absent, and said" '[[ $status == 0 && $out == *" absent ($front broke off: "*"): "* ]] && ! has_image "$g"'
toxic toxic remove -n dies registry
again "GRAFANA_IMAGE=$g" grafana
check "and the next time it is asked by name, the pull goes through" '[[ $status == 0 && $out == *" pulled, "* ]]'

# It takes the connection, and says nothing.
toxic toxic add -t timeout -a timeout=0 -n silent registry
pulled "GRAFANA_IMAGE=$g" grafana
check "a registry that says nothing is given up at the deadline" '[[ $status == 0 && $out == *" absent ($front cannot be reached): "* ]]'
toxic toxic remove -n silent registry

docker rm --force "$name-front" >/dev/null
pulled "GRAFANA_IMAGE=$g" grafana
check "no registry at all: absent, and said" '[[ $status == 0 && $out == *" absent ($front cannot be reached): "* ]]'

printf '%s passed, %s failed\n' "$passed" "$failed"
((failed == 0))
