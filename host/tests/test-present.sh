#!/usr/bin/env bash
# images/present.sh: what is there, pulled, built or missing.
# shellcheck disable=SC2016  # quoted code: fakes, and checks that `check` evaluates
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. host/tests/fakes.sh

# java_layer NAME: the first layer of its Dockerfile.
java_layer() { sed -n '/^ARG JAVA/,/java -version$/p' "images/$1/Dockerfile"; }

# --- present.sh -----------------------------------------------------------------------
fresh; everything; debian_host
run "$lab/images/present.sh"
check "everything there: nothing is pulled or built, one line" \
  '[[ $status == 0 && $(count "^docker image inspect") == "$(wc -l <"$calls")" && $out == "images: all 9 there" ]]'

fresh; debian_host; export FAKE_PULL=ok
run "$lab/images/present.sh"
check "what can be pulled is pulled, not built; only wrk2 is made of its package, by Nix" \
  '[[ $status == 0 && $(count "^docker pull") == 9 && $(built) == "concurrency-lab/wrk2:nixpkgs-26.05" && $(count "_IMAGE=concurrency-lab/") == 0 && $(grep -c " pulled, " <<<"$out") == 9 ]]'

fresh; everything; debian_host; there nixos/nix:2.28.7; rm "$lab/there/concurrency-lab_wrk2_nixpkgs-26.05"; export FAKE_BUILD=broken
run "$lab/images/present.sh"
check "nixos/nix is there and nixpkgs not: one line says so, and the lab goes on" \
  '[[ $status == 0 && $(grep -c "nixpkgs-26.05 .*absent (it cannot be built, see .lab/logs/nixpkgs.log): no wrk2 here, pacer is used instead" <<<"$out") == 1 ]]'
: >"$calls"
run "$lab/images/present.sh"
check "and the next run does not try again" '[[ $status == 0 && -z $(built) && $out == "images: 8 of 9 there"* ]]'

fresh; debian_host
run "$lab/images/present.sh"
check "no registry: each registry is asked once" \
  '[[ $(count "^docker pull") == 2 && $(count "^docker pull ghcr.io") == 1 ]]'
check "no registry: everything that can be is built, bases first" \
  '[[ $status == 0 && $(count "^docker import") == 1 && $(built | wc -w) == 6 && $(grep -c " built from packages, " <<<"$out") == 6 ]] \
    && before concurrency-lab/golang:1.27.4-trixie concurrency-lab/toxiproxy:2.12.0 && before concurrency-lab/golang:1.27.4-trixie concurrency-lab/cadvisor:0.55.1 \
    && [[ $(grep -nE "^docker (import|build)" "$calls" | sed -n 1p) == *import* ]]'
check "no registry: no name of upstream's is given to anything" \
  '[[ $(count "^docker tag") == 0 && $(count "^docker build .*--tag") == "$(count "^docker build .*--tag concurrency-lab/")" && $(count "^docker import") == 1 ]]'
check "no registry: what builds on it takes it by that name" \
  '[[ $(count "^docker build .*DEBIAN_IMAGE=concurrency-lab/debian:trixie-slim .*images/jre$") == 1 && $(count "^docker build .*GOLANG_IMAGE=concurrency-lab/golang:1.27.4-trixie .*images/cadvisor$") == 1 \
    && $(count "--target build .*MAVEN_IMAGE=concurrency-lab/maven:3.9-eclipse-temurin-25 servers") == 1 ]]'
check "no registry: an image that is not what its tag says tells what it is" \
  '[[ $(grep -c " built from packages, " <<<"$out") == 6 && $(grep "built from a" <<<"$out") == *"concurrency-lab/prometheus:v2.53.3 "*" built from a package of another version, "* ]]'
check "no registry: the base comes from the mirrors this machine uses" \
  '[[ $(count "mmdebstrap .* trixie .*deb http://mirror.test/debian/ trixie main deb http://mirror.test/debian/ trixie-updates main deb http://mirror.test/security/ trixie-security main") == 1 ]]'
check "no registry: one line each says what is missing and what is used instead" \
  '[[ $(grep -c "grafana/grafana:13.2.0 .*absent (docker.io cannot be reached): no dashboards" <<<"$out") == 1 && $(grep -c "pacer is used instead" <<<"$out") == 1 && $(grep -c "nixos/nix:2.28.7 .*pacer is used instead" <<<"$out") == 1 ]]'
check "first run: what takes long in the lab's own images is built beside them, each stage after its base" \
  '[[ $(grep -E "^docker build .*--target" "$calls" | sed -E "s/.*--file ([^ ]*) --target ([^ ]*) .*/\2 \1/" | sort | paste -sd, -) == "build go/Dockerfile,build servers/Dockerfile,installed loadgen/Dockerfile,runtime loadgen/Dockerfile" \
    && $(grep -n -m 1 -- "--target build .* go$" "$calls" | cut -d: -f1) -gt $(grep -n -m 1 -- "--tag concurrency-lab/golang" "$calls" | cut -d: -f1) ]]'
check "the JRE and Maven build on one and the same layer: their Dockerfiles begin alike, and name the same Java" \
  '[[ $(count "JAVA=25 .*images/jre$") == 1 && $(count "JAVA=25 .*images/maven$") == 1 && $(java_layer jre) == *"\${JAVA}-jre"* && $(java_layer jre) == "$(java_layer maven)" ]]'
check "no build asks a registry for its base" '[[ $(count "docker build.*--pull") == 0 ]]'
: >"$calls"
run "$lab/images/present.sh"
check "the next run waits for no registry and builds nothing" \
  '[[ $status == 0 && $(count "^docker pull") == 0 && -z $(built) && $out == "images: 7 of 9 there"* ]]'
: >"$calls"
there concurrency-lab/loadgen:local
run "$lab/images/present.sh" grafana
check "naming an image asks its registry again" '[[ $status == 0 && $(count "^docker pull grafana") == 1 ]]'
printf '%s docker.io\n%s ghcr.io\n' "$(($(date +%s) - 4000))" "$(($(date +%s) - 4000))" >"$lab/.lab/unreachable-registries"
: >"$calls"
run "$lab/images/present.sh"
check "a registry is asked again after an hour" '[[ $(count "^docker pull") == 1 ]]'
check "the lab's own images are only begun where they are not there" '[[ $(count "--target") == 0 ]]'

fresh; debian_host; export FAKE_PULL=silent PULL_DEADLINE_S=1
run "$lab/images/present.sh" debian
check "a registry that says nothing is given up at the deadline" \
  '[[ $status == 0 && $out == *"concurrency-lab/debian:trixie-slim "*"built from packages"* && $(count "^docker import") == 1 ]]'
unset PULL_DEADLINE_S

fresh; debian_host; export FAKE_PULL=missing
run "$lab/images/present.sh"
check "a registry that lacks one image is asked for the next" '[[ $status == 0 && $(count "^docker pull") == 9 ]]'

fresh; debian_host
run "$lab/images/present.sh" cadvisor
check "an image by name: what it builds on comes first" \
  '[[ $status == 0 && $(count "^docker import") == 1 && $(built) == "concurrency-lab/golang:1.27.4-trixie concurrency-lab/cadvisor:0.55.1" ]]'

fresh; debian_host; there debian:trixie-slim; export FAKE_BUILD=broken
run "$lab/images/present.sh" jre
check "a broken build fails and shows the end of its log" \
  '[[ $status == 1 && $out == *"neither pulled (docker.io cannot be reached) nor built"*"the last thing the build said"* ]]'

fresh; debian_host; there debian:trixie-slim; export FAKE_BUILD=meet
run "$lab/images/present.sh" jre prometheus
check "images are built side by side" '[[ $status == 0 && $(built | wc -w) == 2 ]]'

# blocking: present.sh, process $main, builds Go's image until there is a file `go`, and Toxiproxy's waits for that.
blocking() {
  fresh; debian_host; there debian:trixie-slim; mkdir "$lab/tmp"
  FAKE_BUILD=blocked TMPDIR=$lab/tmp PATH="$lab/fake:/usr/bin:/bin" "$lab/images/present.sh" golang toxiproxy >"$lab/said" 2>&1 &
  main=$!
  # Toxiproxy's own lock, which it takes before it waits for the one of Go's.
  while kill -0 "$main" 2>/dev/null && ! [[ -n $(built) && -e $(echo "$lab"/tmp/*/toxiproxy) ]]; do sleep 0.05; done
  status=0
}
# living: the processes of that lab.
living() { { find /proc -mindepth 2 -maxdepth 2 -name cwd -lname "$lab" 2>/dev/null || true; } | cut -d / -f 3; }
# all_end: whether all end within two minutes. Those that do not are ended.
all_end() {
  local until=$((SECONDS + 120))
  while ((SECONDS < until)); do [[ -n $(living) ]] || return 0; sleep 0.1; done
  # shellcheck disable=SC2046 # numbers
  kill -KILL $(living)
  return 1
}
blocking
# shellcheck disable=SC2034 # used by checks, as text
before_it=$(living | wc -l)
kill -TERM "$main"; wait "$main" || status=$?; out=$(<"$lab/said")
check "ended by a signal it leaves no process behind, and no folder" \
  'all_end && [[ $status == 143 && $before_it -ge 4 && -z $(ls "$lab/tmp") ]]'
blocking
kill -KILL "$main"; { wait "$main"; } 2>/dev/null || status=$?; out=$(<"$lab/said")
# Who goes on meanwhile may put something in.
until [[ -z $(ls "$lab/tmp") ]]; do rm -rf "$lab"/tmp/* || true; done
touch "$lab/go"
check "who waits for another ends when nobody is left to tell" 'all_end && [[ $status == 137 ]]'

fresh; debian_host; fake mmdebstrap <<<'exit 1'
run "$lab/images/present.sh"
check "a base that cannot be built is tried once, and told once" \
  '[[ $status == 1 && $(count "^apt-get indextargets.*Label: Debian$") == 2 && $(grep -c ABSENT <<<"$out") == 1 && -z $(built) ]]'

fresh; debian_host; fake id <<<'[[ $1 == -u ]] && echo 1000 || echo user'
run "$lab/images/present.sh" debian
check "not root: one clear line" '[[ $status == 1 && $out == *"concurrency-lab/debian:trixie-slim can only be built by root"* ]]'

fresh; everything; debian_host; rm "$lab/there/concurrency-lab_wrk2_nixpkgs-26.05" "$lab/there/grafana_grafana_13.2.0"
there my/wrk2:1
WRK2_IMAGE=my/wrk2:1 COMPOSE_PROFILES=none run "$lab/images/present.sh"
check "neither Nix nor Grafana is asked for where the settings do without them" \
  '[[ $status == 0 && $out == "images: all 8 there" && $(count nixos) == 0 && $(count grafana) == 0 ]]'
WRK2_IMAGE=my/wrk2:2 run "$lab/images/present.sh"
check "a wrk2 image of the user's that cannot be had is an error" '[[ $status == 1 && $out == *"my/wrk2:2 "*ABSENT* ]]'

fresh; everything; debian_host; rm "$lab/there/concurrency-lab_wrk2_nixpkgs-26.05"; fake uname <<<'[[ $1 == -m ]] && echo aarch64 || echo Linux'
run "$lab/images/present.sh"
check "arm64: Nix is not asked for, its wrk2 is for amd64" '[[ $status == 0 && $out == "images: all 8 there" ]]'

# --- pins with a digest -------------------------------------------------------------------
# shellcheck disable=SC2034 # used by checks, as text
digest=sha256:$(printf '%064d' 7)
# pinned WHAT NAME…: present.sh NAME… where toxiproxy and grafana have a digest, and the registry does WHAT.
pinned() {
  fresh; debian_host; there debian:trixie-slim golang:1.27.4-trixie
  sed -i.was -E "s/^((TOXIPROXY|GRAFANA)_IMAGE=.*)/\1@$digest/" "$lab/.env"
  export FAKE_PULL=$1
  run "$lab/images/present.sh" "${@:2}"
}
pinned ok toxiproxy
check "a digest: pulled by it, and tagged" \
  '[[ $status == 0 && $(count "^docker pull ghcr.io/shopify/toxiproxy:2.12.0@$digest$") == 1 && $(count "^docker tag ghcr.io/shopify/toxiproxy:2.12.0@$digest ghcr.io/shopify/toxiproxy:2.12.0$") == 1 && $out == *"toxiproxy:2.12.0 "*" pulled, "*", of the digest that is pinned" ]]'
: >"$calls"
run "$lab/images/present.sh" toxiproxy
check "a digest: what has it is there" '[[ $status == 0 && $out == "images: all 1 there" && $(count "docker pull") == 0 ]]'
sed -i.was "s/${digest#sha256:}/${digest:7:63}8/" "$lab/.env"
run "$lab/images/present.sh" toxiproxy
check "a digest: what has another is pulled anew" '[[ $status == 0 && $out == "images: 0 of 1 there"* && $(count "docker pull .*8$") == 1 ]]'
pinned refused toxiproxy
check "a digest: what cannot be pulled is built, under name and tag" '[[ $status == 0 && $(built) == concurrency-lab/toxiproxy:2.12.0 && $out == *" built from packages, "*" s" ]]'
: >"$calls"
run "$lab/images/present.sh" toxiproxy
check "a digest: what was built here is there" '[[ $status == 0 && $out == "images: all 1 there" && -z $(built) ]]'
pinned missing toxiproxy
check "a digest that the registry does not have: built, and said" \
  '[[ $status == 0 && $(built) == concurrency-lab/toxiproxy:2.12.0 && $out == *"; not pulled: ghcr.io has none of the digest that .env pins" ]]'
pinned other toxiproxy
check "a digest that is not of what was sent: built, and said" '[[ $status == 0 && $out == *"; not pulled: what ghcr.io sent is not of the digest that .env pins" ]]'
pinned other grafana
check "what cannot be built is absent, with the reason" '[[ $status == 0 && $out == *"grafana/grafana:13.2.0 "*" absent (what docker.io sent is not of the digest that .env pins): no dashboards"* ]]'
there grafana/grafana:13.2.0
run "$lab/images/present.sh" grafana
check "but one of another digest under that name is refused: it would be used" \
  '[[ $status == 1 && $out == *"is there, but not of the digest that .env pins, and cannot be pulled (what docker.io sent "*"docker image rm grafana/grafana:13.2.0"* ]]'
pinned limited toxiproxy grafana
check "a registry that limits: it is not taken for unreachable, and its words are told" \
  '[[ $status == 0 && $out == *" built from packages, "*"; not pulled: "*"toomanyrequests: too many, wait"* && $out == *"absent ("*"toomanyrequests"* && ! -s $lab/.lab/unreachable-registries ]]'
pinned dies toxiproxy
check "a registry that dies half-way: built, and said" '[[ $status == 0 && $out == *"; not pulled: ghcr.io broke off: unexpected EOF" && -s $lab/.lab/unreachable-registries ]]'
pinned ok toxiproxy
: >"$calls"
TOXIPROXY_IMAGE=my/toxiproxy:1 run "$lab/images/present.sh" toxiproxy
check "an image of the user's without a digest is held to none" '[[ $status == 0 && $(count "docker pull my/toxiproxy:1$") == 1 ]]'
for wrong in my/toxiproxy@$digest my/toxiproxy:1@sha256:7 my/toxiproxy:1@md5:7; do
  TOXIPROXY_IMAGE=$wrong run "$lab/images/present.sh" toxiproxy
  check "a pin is name:tag@sha256:…, not $wrong" '[[ $status == 1 && $out == "lab: TOXIPROXY_IMAGE=$wrong: an image is name:tag, or "* && $(wc -l <<<"$out") == 1 ]]'
done
pinned ok toxiproxy
fake docker <<<'if [[ $1 == compose ]]; then printf %s "$TOXIPROXY_IMAGE"; fi'
run "$lab/host/lab.sh" compose config
check "Compose goes by name and tag" '[[ $out == ghcr.io/shopify/toxiproxy:2.12.0 ]]'

fresh; everything; debian_host; there nixos/nix:2.28.7; rm "$lab/there/concurrency-lab_wrk2_nixpkgs-26.05"
echo NIXPKGS_SHA256=0am8 >>"$lab/.env"
run "$lab/images/present.sh" nixpkgs
check "the archive of nixpkgs is held to its sum" '[[ $status == 0 && $(count "NIXPKGS_RELEASE=26.05 .*NIXPKGS_SHA256=0am8 .*images/nixpkgs$") == 1 ]]'

# The recipe's own line, beside a nix-build that only says what it is asked.
fresh; printf 'printf "%%s\\n" "$@"\n' | fake nix-build
asked=$(sed -n '/^RUN nix-build/,/}) {}"/{s/^RUN //;s/}) {}".*/}) {}"/;p;}' images/nixpkgs/Dockerfile)
run env NIXPKGS_RELEASE=26.05 NIXPKGS_SHA256=0am8 sh -c "$asked"
check "and Nix is told that sum" \
  '[[ $status == 0 && $out == *"url = \"https://github.com/NixOS/nixpkgs/archive/refs/tags/26.05.tar.gz\";"*"sha256 = \"0am8\"; }) {}" ]]'
run env NIXPKGS_RELEASE=26.05 NIXPKGS_SHA256= sh -c "$asked"
check "without one it has none to hold it to" '[[ $status == 0 && $out == *26.05.tar.gz* && $out != *sha256* ]]'

fresh; everything; debian_host
JDK=21 run "$lab/images/present.sh"
check "an older JRE is built by the same recipe, only where it is asked for" \
  '[[ $status == 0 && $(built) == concurrency-lab/eclipse-temurin:21-jre && $(count "JAVA=21 .*images/jre$") == 1 ]]'

fresh; run "$lab/images/present.sh" grafanaa
check "an unknown name is refused with the known ones" "[[ \$status == 2 && \$out == *\"'grafanaa' is not one of: debian jre\"* ]]"

finish
