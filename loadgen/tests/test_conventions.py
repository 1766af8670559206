"""One kebab-case name is a model's folder, Maven module, image, service and scrape target."""

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.live.agent.metrics import BUCKETS_S
from lab.model import Row
from lab.model.knobs import DIRECT, HOST, PROXIED
from support.repo import REPO

COMPOSE: dict[str, Any] = yaml.safe_load((REPO / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
# A folder with a MODEL.md is a model.
MODELS = {page.parent.name for page in (REPO / "servers").glob("*/*/MODEL.md")}
# Those built from servers/ that serve (jmh is a program).
SERVERS = {
    name: service
    for name, service in SERVICES.items()
    if isinstance(service.get("build"), dict)
    and service["build"].get("context") == "servers"
    and name != "jmh"
}
# A lane that is another one's image with a property changed.
SECOND_LANES = {"spring-mvc-virtual": "spring-mvc"}
PUBLISHED = ("LOADGEN_PORT}:9464", "PROMETHEUS_PORT}:9090", "TOXIPROXY_PORT}:8475")


def text(name: str) -> str:
    return (REPO / name).read_text()


def test_servers_and_what_they_call_start_at_once() -> None:
    # `make up` waits until all are healthy: in turn that would take them longer.
    waits = {
        name: other
        for name, service in SERVICES.items()
        for other, how in service.get("depends_on", {}).items()
        if how["condition"] != "service_started"
    }
    assert waits == {"grafana": "prometheus"}


def test_every_model_is_a_module() -> None:
    assert {"fixed-pool", "virtual-threads"} <= MODELS
    modules = set(re.findall(r"<module>([^<]+)</module>", text("servers/pom.xml")))
    assert {Path(module).name for module in modules} >= MODELS
    assert [name for name in modules if not (REPO / "servers" / name / "pom.xml").is_file()] == []


def test_every_model_is_a_service_with_an_image() -> None:
    assert set(SERVERS) == MODELS | set(SECOND_LANES)
    pom = text("servers/pom.xml")
    of_frameworks = pom.partition("<id>frameworks</id>")[2].partition("</profile>")[0]
    for name, service in SERVERS.items():
        # A second name of one image, so that a run's record has an image for each server.
        assert service["image"] == f"concurrency-lab/{name}:${{LAB_TAG:-local}}"
        args = service["build"]["args"]
        assert Path(args["MODEL"]).name == SECOND_LANES.get(name, name)
        # Frameworks are built by their own part of the pom, all others with the core's.
        apart = f"<module>{args['MODEL']}</module>" in of_frameworks
        assert args.get("PROFILE") == ("frameworks" if apart else None), name
        # What can run on an older JDK is compiled for it.
        release = "<maven.compiler.release>21</maven.compiler.release>"
        older = release in text(f"servers/{args['MODEL']}/pom.xml")
        assert ("BLOCKING_JRE_IMAGE" in args["JRE_IMAGE"]) == older, name


def test_models_differ_in_nothing_but_name_image_and_profile() -> None:
    def alike(service: dict[str, Any], own: set[str]) -> dict[str, Any]:
        apart = {"image", "build", "profiles"}
        found = {key: value for key, value in service.items() if key not in apart}
        environment = {key: value for key, value in found["environment"].items() if key not in own}
        # Some frameworks bring a native library.
        tmpfs = [disk.removesuffix(",exec") for disk in found["tmpfs"]]
        return {**found, "environment": environment, "tmpfs": tmpfs}

    plain = alike(SERVERS["fixed-pool"], set())
    for name, service in SERVERS.items():
        own = {"SPRING_THREADS_VIRTUAL_ENABLED"} if name in SECOND_LANES else set()
        assert alike(service, own) == plain, name
        assert {service["environment"][key] for key in own} <= {"true"}, name


def test_every_model_is_scraped_where_its_profile_says() -> None:
    listed = {
        target: path.stem
        for path in (REPO / "prometheus/servers").glob("*.json")
        for group in json.loads(path.read_text())
        for target in group["targets"]
    }
    assert listed == {name: of.get("profiles", ["core"])[0] for name, of in SERVERS.items()}


def test_every_container_is_hardened() -> None:
    for name, service in SERVICES.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["mem_limit"] not in ("", "0"), name
        assert service["pids_limit"] > 0, name
        more = {"privileged", "ipc", "cap_add", "devices", "cgroup", "uts"}
        assert not more & set(service), name
        for volume in service.get("volumes", ()):
            if name != "cadvisor":
                assert "docker.sock" not in volume, name
                assert not volume.startswith("/"), name
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), (name, port)
            assert not port.endswith(":8081"), f"{name} publishes its management port"
        # Two labs of one machine share no image.
        if service["image"].startswith("concurrency-lab/"):
            assert service["image"].endswith(":${LAB_TAG:-local}"), name


def test_grafana_answers_to_localhost_only() -> None:
    settings = SERVICES["grafana"]["environment"]
    assert settings["GF_SERVER_DOMAIN"] == "localhost"
    assert settings["GF_SERVER_ENFORCE_DOMAIN"] == "true"


def test_a_server_has_threads_for_any_pool_and_what_can_be_changed() -> None:
    server = SERVERS["fixed-pool"]
    source = text("servers/spec/src/main/java/lab/spec/Settings.java")
    largest = re.search(r'IntOption\("pool_size", \d+, \d+, ([\d_]+)\)', source)
    assert server["pids_limit"] > int(largest[1])
    assert [name for name in HOST if f"${{{name}:-" not in str(server)] == []


def test_a_driver_that_is_told_to_end_has_time_to_put_things_back() -> None:
    assert SERVICES["driver"]["stop_grace_period"] == "25s"


def test_only_programs_that_end_have_the_results() -> None:
    mounts = [(name, path) for name, of in SERVICES.items() for path in of.get("volumes", ())]
    having = {name for name, path in mounts if path.split(":")[-1] == "/lab/results"}
    assert having == {"driver", "jmh"}


def test_load_engine_and_downstream_have_more_weight_than_servers() -> None:
    shares = {name: of["cpu_shares"] for name, of in SERVICES.items() if "cpu_shares" in of}
    # Docker gives every other container 1024.
    assert shares == dict.fromkeys(("driver", "downstream"), 8 * 1024)


def test_the_engines_socket_is_out_of_reach_of_all_but_prometheus() -> None:
    assert SERVICES["cadvisor"]["networks"] == ["cadvisor"]
    assert COMPOSE["networks"]["cadvisor"]["internal"] is True
    beside = [name for name, of in SERVICES.items() if "cadvisor" in of.get("networks", ())]
    assert beside == ["prometheus", "cadvisor"]
    # Of this machine it sees counters, two sockets and the names of layers; no files.
    containerd = "${CONTAINERD_SOCKET:-/run/containerd/containerd.sock}"
    folder = "${ENGINE_FOLDER:-/var/lib/docker}"
    assert SERVICES["cadvisor"]["volumes"] == [
        "/proc:/rootfs/proc:ro",
        "/sys/fs/cgroup:/sys/fs/cgroup:ro",
        "${ENGINE_SOCKET:-/var/run/docker.sock}:/var/run/docker.sock:ro",
        f"{containerd}:{containerd}:ro",
        f"{folder}/image:/rootfs{folder}/image:ro",
    ]


def test_proxy_and_downstream_share_namespaces() -> None:
    name = "downstream-network"
    holder = SERVICES[name]
    for namespace in ("network_mode", "pid"):
        joined = {other: of[namespace] for other, of in SERVICES.items() if namespace in of}
        assert joined == dict.fromkeys(("downstream", "toxiproxy"), f"service:{name}")
    # Who shares a PID namespace may read the environment of processes of its own user.
    users = [SERVICES[other].get("user") for other in (name, *joined)]
    users += re.findall(r"^USER (\d+:\d+)$", text("go/Dockerfile"), re.MULTILINE)
    assert len(set(filter(None, users))) == 3
    for other in joined:
        assert not {"networks", "ports", "sysctls"} & set(SERVICES[other]), other
    # What the host asks comes past its front: no other container publishes what it passes on.
    published = [f"127.0.0.1:${{{port}" for port in PUBLISHED]
    assert sorted(re.sub(r":-\d+\}", "}", port) for port in holder["ports"]) == published
    routes = ["8475=127.0.0.1:8474", "9090=prometheus:9090", "9464=loadgen:9464"]
    assert holder["command"] == ["-hold", *routes]
    assert [other for other, of in SERVICES.items() if "ports" in of] == [name, "grafana"]
    # Nobody reaches Toxiproxy's API but by the front.
    assert "-host=127.0.0.1" in SERVICES["toxiproxy"]["command"]
    # It alone has the token of the page, and driver and agent alone have the secret of all others.
    having = {
        secret: {other for other, of in SERVICES.items() if secret in of.get("environment", ())}
        for secret in ("LAB_PAGE_TOKEN", "LAB_SECRET")
    }
    assert having == {"LAB_PAGE_TOKEN": {name}, "LAB_SECRET": {"driver", "loadgen"}}
    # `up --wait` of Compose 2.26 fails where the image has a health check and the service none.
    assert not holder["healthcheck"].get("disable")
    assert holder["networks"] == {"lab": {"aliases": ["toxiproxy", "downstream"]}}
    # The downstream reads the proxy's accept queue, by its port.
    (proxy,) = json.loads(text("toxiproxy/toxiproxy.json"))
    ports = dict(re.findall(r"(\w+Port): (\d+)", text("go/downstream/service/settings.go")))
    assert proxy["upstream"] == f"127.0.0.1:{ports['HTTPPort']}"
    assert proxy["listen"] == f"0.0.0.0:{ports['ProxyPort']}"
    # A server can call what the proxy calls.
    assert f"http://toxiproxy:{ports['ProxyPort']}/" == PROXIED
    assert f"http://downstream:{ports['HTTPPort']}/" == DIRECT


def test_two_labs_of_one_checkout_share_no_state() -> None:
    mounted = set(re.findall(r"- \./\.lab/(\S+):/", text("compose.yaml")))
    assert len(mounted) == 2
    assert all(path.startswith("${COMPOSE_PROJECT_NAME:-concurrency-lab}/") for path in mounted)


def test_every_upstream_image_is_pinned_and_its_page_has_each_digest() -> None:
    settings, page = text(".env"), text("images/README.md")
    pins = dict(re.findall(r"(?m)^([A-Z0-9]+_IMAGE)=(\S+)$", settings))
    assert len(pins) >= 8
    for name, image in pins.items():
        tagged, _, digest = image.partition("@")
        assert re.search(r":[\w.-]+$", tagged), f"{name} has no tag"
        assert not tagged.endswith(":latest"), name
        assert re.fullmatch(r"|sha256:[0-9a-f]{64}", digest), name
    digests = re.findall(r"(?m)@sha256:(\w+)$", settings)
    assert re.findall(r"`sha256:(\w{12})…`", page) == [digest[:12] for digest in digests]
    [nixpkgs] = re.findall(r"(?m)^NIXPKGS_SHA256=(\w+)$", settings)
    assert f"`{nixpkgs[:12]}…`" in page


def test_servers_and_probe_share_one_list_of_buckets() -> None:
    source = text("servers/observe/src/main/java/lab/observe/Buckets.java")
    listed = re.search(r"new double\[\] \{([^}]*)\}", source)
    assert tuple(float(bound) for bound in listed[1].split(",")) == BUCKETS_S


def test_make_help_fits_one_screen_and_every_verb_is_on_its_page() -> None:
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    asked = subprocess.run(["make", "help"], cwd=REPO, env=env, capture_output=True, check=True)
    lines = asked.stdout.decode().splitlines()
    assert 10 <= len(lines) <= 24
    assert max(map(len, lines)) <= 80
    makefile = text("Makefile")
    helped = re.findall(r"^([a-z-]+):.*## .", makefile, re.MULTILINE)
    parts = text("docs/verbs.md").split("## For maintainers")
    users, maintainers = (re.findall(r"(?m)^\| `([a-z-]+)` \|", part) for part in parts)
    assert users == helped
    [phony] = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    steps = {"help", "ready", "idle", "driver"}
    assert {*users, *maintainers} == {*phony.split()} - steps


def test_doctor_says_of_the_first_run_what_the_readme_says() -> None:
    page = text("README.md").partition("## What you need")[2]
    script = text("host/lab/doctor.sh")
    for verb, name in (("make up", "first_up_s"), ("make bench CONC=200", "first_bench_s")):
        took = re.search(rf"^\| `{verb}`.*\| (\d+) s \|$", page, re.MULTILINE)
        assert f"{name}={took[1]} " in script


def test_every_column_is_documented_in_its_order() -> None:
    table = text("docs/results.md").partition("## `trials.csv`")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert tuple(re.findall(r"`(\w+)`", " ".join(cells))) == Row.columns()


@pytest.mark.parametrize(("version", "newer"), [("25.0.5", True), ("21.0.13", False)])
def test_no_jvm_gets_a_flag_it_does_not_know(tmp_path: Path, version: str, newer: bool) -> None:
    (tmp_path / "release").write_text(f'IMPLEMENTOR="Debian"\nJAVA_VERSION="{version}"\n')
    (tmp_path / "java").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "java").chmod(0o755)
    [flags] = re.findall(r"(?m)^SERVER_JVM_FLAGS=(.*)$", text(".env"))
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "JAVA_HOME": str(tmp_path), "LAB_JVM_FLAGS": flags}
    command = ["sh", REPO / "servers/start.sh"]
    given = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    for flag in ("-XX:+UseCompactObjectHeaders", "--sun-misc-unsafe-memory-access=allow"):
        assert (flag in given) == newer
    assert "-Xmx1g" in given


def test_every_planted_fault_finds_its_text() -> None:
    """As .ci/mutations/apply.py asks it, but in every run of the unit tests: code moves on."""
    for fault in tomllib.loads(text(".ci/mutations/mutations.toml"))["mutation"]:
        root = REPO / fault["in"]
        files = [root] if root.is_file() else [path for path in root.rglob("*") if path.is_file()]
        places = sum(path.read_bytes().count(fault["find"].encode()) for path in files)
        assert places == 1, f"{fault['name']}: its text is in {fault['in']} {places} times"


def test_what_maven_fetches_has_sums_of_the_versions_in_use() -> None:
    sums = text("servers/.mvn/checksums/checksums.sha256")
    lines = sums.splitlines()
    assert all(re.fullmatch(r"[0-9a-f]{64}  [\w./+-]+", line) for line in lines)
    # The lab's own jars change with its code.
    assert "  lab/" not in sums
    # What is fetched in the place of a file on the other architecture has one, too.
    native = [line[66:] for line in lines if "/native-linux-x86_64/" in line]
    assert [name for name in native if name.replace("x86_64", "aarch64") not in sums] == []
    poms = [path.read_text() for path in (REPO / "servers").glob("**/pom.xml")]
    used = {version for pom in poms for version in re.findall(r"<version\.[\w-]+>([^<]+)<", pom)}
    assert used
    assert [each for each in sorted(used) if f"/{each}/" not in sums] == [], "make lock"
    (exporter,) = re.findall(r"(?m)^ARG JMX_EXPORTER_VERSION=(.+)$", text("servers/Dockerfile"))
    assert f"/jmx_prometheus_javaagent/{exporter}/" in sums, "make lock"


def test_scripts_of_the_host_use_what_macos_has_too() -> None:
    folders = ("host/lab", "images", "host")
    scripts = [REPO / "lab", *(path for name in folders for path in (REPO / name).glob("*.sh"))]
    assert len(scripts) > 12
    not_there = re.compile(
        r"\b(realpath|mapfile|readarray|readlink -f|sed -i|declare -A|wait -n|xargs -r|grep -P)\b"
    )
    lines = [(path.name, line) for path in scripts for line in path.read_text().splitlines()]
    code = [(name, line) for name, line in lines if not line.lstrip().startswith("#")]
    assert [line for line in code if not_there.search(line[1])] == []


def test_make_down_removes_the_volumes_of_the_lab_and_no_others() -> None:
    removed = re.findall(r'"\$\{project\}_(\w+)"', text("host/lab/containers.sh"))
    assert set(removed) == set(COMPOSE["volumes"])


def test_no_two_scripts_of_the_suite_define_one_function() -> None:
    # All are sourced into one shell: the later would take the place of the other without a word.
    texts = [script.read_text() for script in (REPO / ".ci").glob("*.sh")]
    names = [name for text in texts for name in re.findall(r"(?m)^(\w+)\(\)", text)]
    assert len(names) == len(set(names))
