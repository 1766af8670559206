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


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load((REPO / "compose.yaml").read_text())


@pytest.fixture(scope="module")
def models() -> set[str]:
    """A folder with a MODEL.md is a model."""
    return {page.parent.name for page in (REPO / "servers").glob("*/*/MODEL.md")}


# A lane that is another one's image with a property changed.
SECOND_LANES = {"spring-mvc-virtual": "spring-mvc"}
PUBLISHED = ("LOADGEN_PORT}:9464", "PROMETHEUS_PORT}:9090", "TOXIPROXY_PORT}:8475")


def servers(compose: dict[str, Any]) -> dict[str, Any]:
    """Services whose image is built from servers/ and that serve (jmh is a program)."""
    return {
        name: service
        for name, service in compose["services"].items()
        if isinstance(service.get("build"), dict)
        and service["build"].get("context") == "servers"
        and name != "jmh"
    }


def test_servers_and_what_they_call_start_at_once(compose: dict[str, Any]) -> None:
    # `make up` waits until all are healthy: in turn that would take them longer.
    waits = {
        name: other
        for name, service in compose["services"].items()
        for other, how in service.get("depends_on", {}).items()
        if how["condition"] != "service_started"
    }
    assert waits == {"grafana": "prometheus"}


def test_every_model_is_a_module(models: set[str]) -> None:
    assert models >= {"fixed-pool", "virtual-threads"}
    modules = set(re.findall(r"<module>([^<]+)</module>", (REPO / "servers/pom.xml").read_text()))
    assert models <= {Path(module).name for module in modules}
    for module in modules:
        assert (REPO / "servers" / module / "pom.xml").is_file(), module


def test_every_model_is_a_service_with_an_image(models: set[str], compose: dict[str, Any]) -> None:
    services = servers(compose)
    assert set(services) == models | set(SECOND_LANES)
    pom = (REPO / "servers/pom.xml").read_text()
    of_frameworks = pom.partition("<id>frameworks</id>")[2].partition("</profile>")[0]
    for name, service in services.items():
        # A second name of one image, so that a run's record has an image for each server.
        assert service["image"] == f"concurrency-lab/{name}:${{LAB_TAG:-local}}"
        args = service["build"]["args"]
        assert Path(args["MODEL"]).name == SECOND_LANES.get(name, name)
        # Frameworks are built by their own part of the pom, all others with the core's.
        apart = f"<module>{args['MODEL']}</module>" in of_frameworks
        assert args.get("PROFILE") == ("frameworks" if apart else None), name
        # What can run on an older JDK is compiled for it.
        own_pom = (REPO / "servers" / args["MODEL"] / "pom.xml").read_text()
        older = "<maven.compiler.release>21</maven.compiler.release>" in own_pom
        assert ("BLOCKING_JRE_IMAGE" in args["JRE_IMAGE"]) == older, name


def test_models_differ_in_nothing_but_name_image_and_profile(compose: dict[str, Any]) -> None:
    apart = {"image", "build", "profiles"}
    alike = {
        name: {key: value for key, value in service.items() if key not in apart}
        for name, service in servers(compose).items()
    }
    plain = alike["fixed-pool"]["environment"]
    for name, service in alike.items():
        own = {"SPRING_THREADS_VIRTUAL_ENABLED": "true"} if name in SECOND_LANES else {}
        ours = service["environment"]
        assert {key: ours[key] for key in set(ours) - set(plain)} == own, name
        service["environment"] = {key: ours[key] for key in plain}
        # Some frameworks bring a native library.
        service["tmpfs"] = [disk.removesuffix(",exec") for disk in service["tmpfs"]]
    assert all(service == alike["fixed-pool"] for service in alike.values())


def test_every_model_is_scraped_where_its_profile_says(compose: dict[str, Any]) -> None:
    listed = {}
    for path in (REPO / "prometheus/servers").glob("*.json"):
        for group in json.loads(path.read_text()):
            listed |= dict.fromkeys(group["targets"], path.stem)
    profiles = {name: of.get("profiles", ["core"])[0] for name, of in servers(compose).items()}
    assert listed == profiles


def test_every_container_is_hardened(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
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


def test_grafana_answers_to_localhost_only(compose: dict[str, Any]) -> None:
    told = compose["services"]["grafana"]["environment"]
    assert (told["GF_SERVER_DOMAIN"], told["GF_SERVER_ENFORCE_DOMAIN"]) == ("localhost", "true")


def test_a_server_has_threads_for_any_pool_and_what_can_be_changed(compose: dict[str, Any]) -> None:
    server = compose["services"]["fixed-pool"]
    source = (REPO / "servers/spec/src/main/java/lab/spec/Settings.java").read_text()
    largest = re.search(r'IntOption\("pool_size", \d+, \d+, ([\d_]+)\)', source)
    assert server["pids_limit"] > int(largest[1])
    assert [name for name in HOST if f"${{{name}:-" not in str(server)] == []


def test_a_driver_that_is_told_to_end_has_time_to_put_things_back(compose: dict[str, Any]) -> None:
    assert compose["services"]["driver"]["stop_grace_period"] == "25s"


def test_only_programs_that_end_have_the_results(compose: dict[str, Any]) -> None:
    services = compose["services"].items()
    mounts = [(name, path) for name, of in services for path in of.get("volumes", ())]
    having = {name for name, path in mounts if path.split(":")[-1] == "/lab/results"}
    assert having == {"driver", "jmh"}


def test_load_engine_and_downstream_have_more_weight_than_servers(compose: dict[str, Any]) -> None:
    services = compose["services"].items()
    shares = {name: of["cpu_shares"] for name, of in services if "cpu_shares" in of}
    # Docker gives every other container 1024.
    assert shares == dict.fromkeys(("driver", "downstream"), 8 * 1024)


def test_the_engines_socket_is_out_of_reach_of_all_but_prometheus(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert services["cadvisor"]["networks"] == ["cadvisor"]
    assert compose["networks"]["cadvisor"]["internal"] is True
    beside = [name for name, of in services.items() if "cadvisor" in of.get("networks", ())]
    assert beside == ["prometheus", "cadvisor"]
    # Of this machine it sees counters, two sockets and the names of layers; no files.
    containerd = "${CONTAINERD_SOCKET:-/run/containerd/containerd.sock}"
    folder = "${ENGINE_FOLDER:-/var/lib/docker}"
    assert services["cadvisor"]["volumes"] == [
        "/proc:/rootfs/proc:ro",
        "/sys/fs/cgroup:/sys/fs/cgroup:ro",
        "${ENGINE_SOCKET:-/var/run/docker.sock}:/var/run/docker.sock:ro",
        f"{containerd}:{containerd}:ro",
        f"{folder}/image:/rootfs{folder}/image:ro",
    ]


def test_proxy_and_downstream_share_namespaces(compose: dict[str, Any]) -> None:
    services = compose["services"]
    holder = "downstream-network"
    for namespace in ("network_mode", "pid"):
        joined = {name: of[namespace] for name, of in services.items() if namespace in of}
        assert joined == dict.fromkeys(("downstream", "toxiproxy"), f"service:{holder}")
    # Who shares a PID namespace may read the environment of processes of its own user.
    image = (REPO / "go" / "Dockerfile").read_text()
    users = [services[name].get("user") or "" for name in (holder, *joined)]
    users += re.findall(r"^USER (\d+:\d+)$", image, re.MULTILINE)
    assert len(set(filter(None, users))) == 3
    for name in joined:
        assert not {"networks", "ports", "sysctls"} & set(services[name]), name
    # What the host asks comes past its front: no other container publishes what it passes on.
    published = [f"127.0.0.1:${{{port}" for port in PUBLISHED]
    assert sorted(re.sub(r":-\d+\}", "}", port) for port in services[holder]["ports"]) == published
    routes = ["8475=127.0.0.1:8474", "9090=prometheus:9090", "9464=loadgen:9464"]
    assert services[holder]["command"] == ["-hold", *routes]
    assert [name for name, of in services.items() if "ports" in of] == [holder, "grafana"]
    # Nobody reaches Toxiproxy's API but by the front.
    assert "-host=127.0.0.1" in services["toxiproxy"]["command"]
    # It alone has the token of the page, and driver and agent alone have the secret of all others.
    told = {name: of.get("environment", ()) for name, of in services.items()}
    assert [name for name, of in told.items() if "LAB_PAGE_TOKEN" in of] == [holder]
    assert sorted(name for name, of in told.items() if "LAB_SECRET" in of) == ["driver", "loadgen"]
    # `up --wait` of Compose 2.26 fails where the image has a health check and the service none.
    assert not services[holder]["healthcheck"].get("disable")
    assert services[holder]["networks"] == {"lab": {"aliases": ["toxiproxy", "downstream"]}}
    # The downstream tells the proxy's accept queue, by its port.
    (proxy,) = json.loads((REPO / "toxiproxy/toxiproxy.json").read_text())
    settings = (REPO / "go/downstream/service/settings.go").read_text()
    ports = dict(re.findall(r"(\w+Port): (\d+)", settings))
    assert proxy["upstream"] == f"127.0.0.1:{ports['HTTPPort']}"
    assert proxy["listen"] == f"0.0.0.0:{ports['ProxyPort']}"
    # A server can call what the proxy calls.
    assert f"http://toxiproxy:{ports['ProxyPort']}/" == PROXIED
    assert f"http://downstream:{ports['HTTPPort']}/" == DIRECT


def test_two_labs_of_one_checkout_share_no_state() -> None:
    text = (REPO / "compose.yaml").read_text()
    mounted = set(re.findall(r"- \./\.lab/(\S+):/", text))
    assert len(mounted) == 2
    assert all(path.startswith("${COMPOSE_PROJECT_NAME:-concurrency-lab}/") for path in mounted)


def test_every_upstream_image_is_pinned_and_its_page_has_each_digest() -> None:
    settings, page = ((REPO / name).read_text() for name in (".env", "images/README.md"))
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
    source = (REPO / "servers/observe/src/main/java/lab/observe/Buckets.java").read_text()
    listed = re.search(r"new double\[\] \{([^}]*)\}", source)
    assert tuple(float(bound) for bound in listed[1].split(",")) == BUCKETS_S


def test_make_help_fits_one_screen_and_every_verb_is_on_its_page() -> None:
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    asked = subprocess.run(["make", "help"], cwd=REPO, env=env, capture_output=True, check=True)
    lines = asked.stdout.decode().splitlines()
    assert 10 <= len(lines) <= 24
    assert max(map(len, lines)) <= 80
    makefile = (REPO / "Makefile").read_text()
    helped = re.findall(r"^([a-z-]+):.*## .", makefile, re.MULTILINE)
    parts = (REPO / "docs/verbs.md").read_text().split("## For maintainers")
    users, maintainers = (re.findall(r"(?m)^\| `([a-z-]+)` \|", part) for part in parts)
    assert users == helped
    [phony] = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    steps = {"help", "ready", "idle", "driver"}
    assert {*users, *maintainers} == {*phony.split()} - steps


def test_doctor_says_of_the_first_run_what_the_readme_says() -> None:
    page = (REPO / "README.md").read_text().partition("## What you need")[2]
    said = (REPO / "host/lab/doctor.sh").read_text()
    for verb, name in (("make up", "first_up_s"), ("make bench CONC=200", "first_bench_s")):
        took = re.search(rf"^\| `{verb}`.*\| (\d+) s \|$", page, re.MULTILINE)
        assert f"{name}={took[1]} " in said


def test_every_column_is_documented_in_its_order() -> None:
    page = (REPO / "docs" / "results.md").read_text()
    table = page.partition("## `trials.csv`")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert tuple(re.findall(r"`(\w+)`", " ".join(cells))) == Row.columns()


@pytest.mark.parametrize(("version", "newer"), [("25.0.5", True), ("21.0.13", False)])
def test_no_jvm_gets_a_flag_it_does_not_know(tmp_path: Path, version: str, newer: bool) -> None:
    (tmp_path / "release").write_text(f'IMPLEMENTOR="Debian"\nJAVA_VERSION="{version}"\n')
    (tmp_path / "java").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "java").chmod(0o755)
    [flags] = re.findall(r"(?m)^SERVER_JVM_FLAGS=(.*)$", (REPO / ".env").read_text())
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "JAVA_HOME": str(tmp_path), "LAB_JVM_FLAGS": flags}
    command = ["sh", REPO / "servers/start.sh"]
    given = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    for flag in ("-XX:+UseCompactObjectHeaders", "--sun-misc-unsafe-memory-access=allow"):
        assert (flag in given) == newer
    assert "-Xmx1g" in given


def test_every_planted_fault_finds_its_text() -> None:
    """As .ci/mutations/apply.py asks it, but in every run of the unit tests: code moves on."""
    for one in tomllib.loads((REPO / ".ci/mutations/mutations.toml").read_text())["mutation"]:
        root = REPO / one["in"]
        files = [root] if root.is_file() else [path for path in root.rglob("*") if path.is_file()]
        places = sum(path.read_bytes().count(one["find"].encode()) for path in files)
        assert places == 1, f"{one['name']}: its text is in {one['in']} {places} times"


def test_what_maven_fetches_has_sums_of_the_versions_in_use() -> None:
    sums = (REPO / "servers/.mvn/checksums/checksums.sha256").read_text()
    lines = sums.splitlines()
    assert all(re.fullmatch(r"[0-9a-f]{64}  [\w./+-]+", line) for line in lines)
    # The lab's own jars change with its code.
    assert "  lab/" not in sums
    # What is fetched in the place of a file on the other architecture has one, too.
    native = [line[66:] for line in lines if "/native-linux-x86_64/" in line]
    assert [name for name in native if name.replace("x86_64", "aarch64") not in sums] == []
    poms = [path.read_text() for path in (REPO / "servers").glob("**/pom.xml")]
    used = {one for pom in poms for one in re.findall(r"<version\.[\w-]+>([^<]+)<", pom)}
    assert used
    assert [one for one in sorted(used) if f"/{one}/" not in sums] == [], "make lock"
    recipe = (REPO / "servers/Dockerfile").read_text()
    (exporter,) = re.findall(r"^ARG JMX_EXPORTER_VERSION=(.+)$", recipe, re.MULTILINE)
    assert f"/jmx_prometheus_javaagent/{exporter}/" in sums, "make lock"


def test_scripts_of_the_host_use_what_macos_has_too() -> None:
    folders = ("host/lab", "images", "host")
    scripts = [REPO / "lab", *(path for name in folders for path in (REPO / name).glob("*.sh"))]
    assert len(scripts) > 12
    not_there = re.compile(
        r"\b(realpath|mapfile|readarray|readlink -f|sed -i|declare -A|wait -n|xargs -r|grep -P)\b"
    )
    lines = [(one.name, line) for one in scripts for line in one.read_text().splitlines()]
    code = [(name, line) for name, line in lines if not line.lstrip().startswith("#")]
    assert [one for one in code if not_there.search(one[1])] == []


def test_make_down_removes_the_volumes_of_the_lab_and_no_others(compose: dict[str, Any]) -> None:
    removed = re.findall(r'"\$\{project\}_(\w+)"', (REPO / "host/lab/containers.sh").read_text())
    assert set(removed) == set(compose["volumes"])


def test_no_two_scripts_of_the_suite_define_one_function() -> None:
    # All are sourced into one shell: the later would take the place of the other without a word.
    texts = [script.read_text() for script in (REPO / ".ci").glob("*.sh")]
    names = [name for text in texts for name in re.findall(r"(?m)^(\w+)\(\)", text)]
    assert len(names) == len(set(names))
