#!/usr/bin/env bash
# host/lab.sh doctor, before anything is built: what the machine has, what the first run takes, what cannot work.
# shellcheck disable=SC2016  # quoted code: fakes, and checks that `check` evaluates
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. host/tests/fakes.sh

# doctored NAME=VALUE…: what it says of an engine with FAKE_MIB of memory and FAKE_FREE MB of disk, on a root
# Debian machine. FAKE_ENGINE=none: there is none. FAKE_BUILT=yes: the driver's image is there.
doctored() {
  fresh
  debian_host
  mkdir -p "$lab/prometheus"
  cp -R prometheus/servers "$lab/prometheus/"
  grep -E '^(SERVER_JVM_FLAGS|CPU_SETS)=' .env >>"$lab/.env"
  printf 'ID=debian\nVERSION_CODENAME=bookworm\n' >"$lab/os-release"
  fake df <<<'printf "head\n/dev/x 0 0 %s 0%% /\n" "$((FAKE_FREE * 1000000 / 1024))"'
  fake docker <<'FAKE'
: "${FAKE_ENGINE=26.1.5}" "${FAKE_COMPOSE=2.26.1}" "${FAKE_MIB=24105}"
if [[ $FAKE_ENGINE == none ]]; then exit 1; fi
case "$*" in
  "version "*Client*) echo "$FAKE_ENGINE 26.1.5" ;;
  "compose version"*) [[ -n $FAKE_COMPOSE ]] && echo "$FAKE_COMPOSE" ;;
  "image inspect "*) [[ -n ${FAKE_BUILT-} ]] ;;
  "info "*DockerRootDir*) echo / ;;
  "info "*MemTotal*) echo "$((FAKE_MIB * 1048576))" ;;
  "info "*CgroupDriver*) echo "${FAKE_CGROUPS-cgroupfs}" ;;
  "info "*SecurityOptions*) echo "[name=seccomp,profile=builtin name=${FAKE_SECURITY-cgroupns}]" ;;
  "info --format {{.NCPU}}") echo 2 ;;
  "info "*CPUSet*) echo "true 2" ;;
  "info "*) echo "26.1.5, cgroup v2, 2 CPUs, x86_64" ;;
esac
FAKE
  run env FAKE_FREE=65000 OS_RELEASE="$lab/os-release" "$@" "$lab/host/lab.sh" doctor
}
doctored X=1
check "doctor: before anything is built it says what there is, and what the first run takes" \
  '[[ $status == 0 && $out == *"ok    disk: 65000 MB free; "* && $out == *"ok    on 2 cores "*" took "*" s, and \`make bench CONC=200\` after it "*" s"* && $out == *"ok    memory: 24105 MiB; 6 servers "*" 7644 MiB"* && $out == *"ok    Docker 26.1.5, "* && $out != *FAIL* ]]'
doctored FAKE_FREE=2000
check "doctor: a disk that does not hold the images is refused" '[[ $status == 1 && $out == *"FAIL  disk: 2000 MB free; "* ]]'
doctored FAKE_FREE=2000 FAKE_BUILT=yes
check "doctor: but not where they are built" '[[ $status == 0 && $out != *disk:* && $out != *"on 2 cores"* ]]'
doctored FAKE_MIB=3900
check "doctor: memory for fewer servers: it says for how many, and which" \
  '[[ $status == 0 && $out == *"warn  memory: 3900 MiB is for 2 of 6 servers "*" SERVER=fixed-pool,virtual-threads, "* ]]'
doctored FAKE_MIB=3900 SERVER_JVM_FLAGS="-Xms256m -Xmx256m"
check "doctor: with smaller heaps for all" '[[ $status == 0 && $out == *"ok    memory: 3900 MiB; 6 servers "* ]]'
doctored FAKE_MIB=2000
check "doctor: memory for no whole heap is a warning" '[[ $status == 0 && $out == *"warn  memory: 2000 MiB is not for one server "* ]]'
doctored FAKE_MIB=1300
check "doctor: memory for no lab at all is refused" '[[ $status == 1 && $out == *"FAIL  memory: 1300 MiB; the lab takes some 1500 MiB before any load"* ]]'
doctored FAKE_ENGINE=19.03.15
check "doctor: an engine too old: one line" '[[ $status == 1 && $out == "FAIL  this Docker engine is 19.03.15; the lab needs 20.10 or later" ]]'
doctored FAKE_COMPOSE=
check "doctor: no Compose: one line" '[[ $status == 1 && $out == "FAIL  Docker Compose v2 is missing: "* ]]'
doctored FAKE_ENGINE=none
check "doctor: no engine where make up installs one: said, and nothing is done" \
  '[[ $status == 0 && $out == *"warn  no Docker engine answers: \`make up\` will install one" && $out == *"ok    disk: "* && $(count apt-get) == 0 ]]'
doctored FAKE_ENGINE=none INSTALL_ENGINE=no
check "doctor: no engine, and none may be installed: one line" '[[ $status == 1 && $out == "FAIL  no Docker engine answers, and INSTALL_ENGINE=no "* ]]'
for with in rootless selinux; do
  doctored FAKE_SECURITY=$with
  check "doctor: an engine with $with, never tried, is a warning" '[[ $status == 0 && $out == *"warn  the engine runs with $with: "* ]]'
done
doctored FAKE_SECURITY=userns
check "doctor: an engine with users of its own: who keeps this machine's" '[[ $status == 0 && $out == *"warn  "*"(userns-remap): agent, driver and cAdvisor keep this machine'"'"'s"* && $out != *"never tried"* ]]'
doctored FAKE_SECURITY=rootless FAKE_CGROUPS=none
check "doctor: a rootless engine without cgroups: what does not hold there" \
  '[[ $status == 0 && $out == *"warn  the engine has no cgroups "*"no limit of CPU or memory holds"* && $out != *"never tried"* ]]'

finish
