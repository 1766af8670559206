#!/usr/bin/env bash
# host/engine.sh: an engine that answers, is started, is installed or is refused.
# shellcheck disable=SC2016  # quoted code: fakes, and checks that `check` evaluates
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. host/tests/fakes.sh

# --- engine.sh ------------------------------------------------------------------------
fresh; debian_host; echo 26.1.5 >"$lab/engine"
run "$lab/host/engine.sh"
check "an engine that answers: silence" '[[ $status == 0 && -z $out ]]'
echo 29.0.1 >"$lab/engine"; FAKE_COMPOSE=v5.0.0 run "$lab/host/engine.sh"
check "newer engine and Compose: silence" '[[ $status == 0 && -z $out ]]'
echo 20.10.24 >"$lab/engine"; run "$lab/host/engine.sh"
check "the oldest engine: silence" '[[ $status == 0 && -z $out ]]'
echo 19.03.15 >"$lab/engine"; run "$lab/host/engine.sh"
check "an engine too old: one line" '[[ $status == 1 && $out == "lab: this Docker engine is 19.03.15; the lab needs 20.10 or later" ]]'
echo 26.1.5 >"$lab/engine"; FAKE_COMPOSE=1.29.2 run "$lab/host/engine.sh"
check "Compose v1: one line" '[[ $status == 1 && $out == "lab: this Docker Compose is 1.29.2;"* ]]'

FAKE_COMPOSE=2.4.1 run "$lab/host/engine.sh"
check "a Compose that does not know all of compose.yaml: one line" '[[ $status == 1 && $out == "lab: this Docker Compose is 2.4.1; the lab needs 2.5 or later" ]]'

fresh; debian_host
INSTALL_ENGINE=no run "$lab/host/engine.sh"
check "INSTALL_ENGINE=no: one line, nothing installed" \
  '[[ $status == 1 && $out == "lab: no Docker engine answers, and INSTALL_ENGINE=no forbids to install one" && $(count apt-get) == 0 ]]'
INSTALL_ENGINE=perhaps run "$lab/host/engine.sh"
check "another value of INSTALL_ENGINE is refused" '[[ $status == 1 && $out == *"neither yes nor no" ]]'
DOCKER_HOST=tcp://far:2375 run "$lab/host/engine.sh"
check "an engine elsewhere that does not answer: nothing is installed here" \
  '[[ $status == 1 && $out == "lab: no Docker engine answers at DOCKER_HOST=tcp://far:2375" && $(count apt-get) == 0 ]]'
printf 'ID=debian\nVERSION_CODENAME=trixie\n' >"$lab/os-release"
OS_RELEASE=$lab/os-release run "$lab/host/engine.sh" look
check "look: says that it would install one, and does nothing" \
  '[[ $status == 0 && $out == "no Docker engine answers: \`make up\` will install one" && $(count apt-get) == 0 && ! -e $lab/.lab ]]'
for podman in 'exit 125' 'echo 5.4.2'; do
  fake docker <<<"if [[ \$1 == --version ]]; then echo podman version 5.4.2; else $podman; fi"
  run "$lab/host/engine.sh"
  check "Podman in Docker's place: one line ($podman)" '[[ $status == 1 && $out == "lab: \`docker\` is Podman here, "* && $(count apt-get) == 0 ]]'
done

fresh; debian_host; fake dockerd <<<'exit 1'
fake id <<<'[[ $1 == -u ]] && echo 1000 || echo user'
run "$lab/host/engine.sh"
check "not root: one line" '[[ $status == 1 && $out == "lab: no Docker engine answers, and only root can start one"* ]]'
fake uname <<<'[[ $1 == -m ]] && echo arm64 || echo Darwin'
run "$lab/host/engine.sh"
check "macOS: one line" '[[ $status == 1 && $out == "lab: no Docker engine answers: start Docker Desktop"* ]]'

fresh; debian_host
fake dockerd <<<'echo started >>"$(dirname "$0")/../calls"; echo 26.1.5 >"$(dirname "$0")/../engine"; exec sleep 20'
DOCKERD_LOG=$lab/dockerd.log run "$lab/host/engine.sh"
check "an engine installed but not running is started, once, and said so" \
  '[[ $status == 0 && $(count started) == 1 && $(count apt-get) == 0 && $out == "lab: started the Docker engine that was installed"* ]]'

fresh; debian_host; fake dockerd <<<'echo "cannot mount the world" >&2; exit 1'
DOCKERD_LOG=$lab/dockerd.log run "$lab/host/engine.sh"
check "an engine that stops at once: its own words" '[[ $status == 1 && $out == *"cannot mount the world"* ]]'

fresh; debian_host; fake pidof <<<'echo 123'
fake dockerd <<<'echo started >>"$(dirname "$0")/../calls"'
START_DEADLINE_S=1 run "$lab/host/engine.sh"
check "a dockerd that runs but does not answer: never a second one" \
  '[[ $status == 1 && $(count started) == 0 && $out == *"does not answer after 1 s"* ]]'

finish
