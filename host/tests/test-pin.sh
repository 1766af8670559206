#!/usr/bin/env bash
# images/pin.sh: what came from the registry is written into .env, and nothing else.
# shellcheck disable=SC2016  # quoted code: fakes, and checks that `check` evaluates
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. host/tests/fakes.sh

# shellcheck disable=SC2034 # used by checks, as text
digest=sha256:$(printf '%064d' 7)
# pinning WHAT WORD…: pin.sh WORD… where the registry does WHAT, and the engine says FAKE_SAYS.
pinning() {
  fresh
  fake docker <<'FAKE'
printf 'docker %s\n' "$*" >>"$(dirname "$0")/../calls"
case $1 in
  pull) [[ $FAKE_PULL == ok ]] || { echo "no such thing" >&2; exit 1; }; printf '2.13.0: Pulling from somewhere\n%s\nStatus: new\n' "$FAKE_SAYS" ;;
esac
FAKE
  cp "$lab/.env" "$lab/before"
  export FAKE_PULL=$1
  run "$lab/images/pin.sh" "${@:2}"
}
export FAKE_SAYS="Digest: $digest"
pinning ok toxiproxy 2.13.0
check "pin: tag and digest of what came, in one line of .env" \
  '[[ $status == 0 && $(count "docker pull ghcr.io/shopify/toxiproxy:2.13.0$") == 1 && $out == "TOXIPROXY_IMAGE=ghcr.io/shopify/toxiproxy:2.13.0@$digest" \
    && $(diff "$lab/before" "$lab/.env" | grep -c "^[<>]") == 2 && $(grep -c "^TOXIPROXY_IMAGE=ghcr.io/shopify/toxiproxy:2.13.0@$digest$" "$lab/.env") == 1 ]]'
run "$lab/images/pin.sh" toxiproxy
check "pin: without a tag that of the pin, whose digest is another's" '[[ $status == 0 && $(count "pull ghcr.io/shopify/toxiproxy:2.13.0$") == 2 && $(grep -c "@sha256" "$lab/.env") == 1 ]]'
run "$lab/images/present.sh" toxiproxy
check "pin: and present.sh takes it" '[[ $(count "docker image inspect .*ghcr.io/shopify/toxiproxy:2.13.0$") -ge 1 ]]'
for words in "toxiproxy 2.13.0" grafana; do
  # shellcheck disable=SC2086 # two words
  pinning refused $words
  check "pin: what cannot be pulled is not pinned: $words" '[[ $status == 1 && $out == *"cannot be pulled, so nobody knows its digest; .env is as it was" ]] && cmp -s "$lab/before" "$lab/.env"'
done
FAKE_SAYS="Digest: sha256:7" pinning ok grafana
check "pin: half a digest is none" '[[ $status == 1 && $out == *"tells no digest of grafana/grafana:13.2.0; "* ]] && cmp -s "$lab/before" "$lab/.env"'
for words in "" "a b c" "nobody" "grafana a|b" "../x"; do
  # shellcheck disable=SC2086 # words
  pinning ok $words
  check "pin: refused in one line: $words" '[[ $status == 1 && $out == "lab: "* && $(wc -l <<<"$out") == 1 && $(count "docker pull") == 0 ]] && cmp -s "$lab/before" "$lab/.env"'
done

finish
