"""compose.swarm.yaml has the core of compose.yaml: the same services with the same settings."""

import re
from typing import Any

import pytest
import yaml

from support.repo import REPO

HOLDER = "downstream-network"

KEYS = {"image", "command", "environment", "read_only", "cap_drop", "ulimits", "sysctls"}
KEYS |= {"logging", "init", "stop_grace_period"}
# What differs on purpose, of `service` or of `service.environment`.
DIFFERENT = {
    # No front and no shared network namespace.
    "toxiproxy": {"command", "healthcheck"},
    # A project that `make up` does not know; only the core's servers, no published ports, no CPU
    # sets, no own services.
    "driver.environment": {
        *("LAB_PROJECT", "LAB_MACHINES", "LAB_GENERATORS"),
        *("LAB_PROFILES", "LAB_CPUSET", "LAB_OWN"),
    },
    "loadgen.environment": {
        *("LAB_PROJECT", "LAB_MACHINES", "LAB_PROFILES"),
        *("LAB_CONTROL_PORT", "LAB_GRAFANA_PORT", "LAB_PROMETHEUS_PORT"),
    },
}


def loaded(name: str, known: dict[str, str]) -> dict[str, Any]:
    return filled(yaml.safe_load((REPO / name).read_text()), known)


def filled(value: Any, known: dict[str, str]) -> Any:
    """With its variables: ${NAME}, ${NAME:-default} with another one in it, ${NAME:?reason}."""
    if isinstance(value, dict):
        return {key: filled(part, known) for key, part in value.items()}
    if isinstance(value, list):
        return [filled(part, known) for part in value]
    if not isinstance(value, str):
        return value
    while found := re.search(r"(?<!\$)\$\{(\w+)(?::-([^${}]*)|:\?[^}]*)?\}", value):
        value = value.replace(found[0], known.get(found[1]) or found[2] or "", 1)
    return value


@pytest.fixture(scope="module")
def lab() -> dict[str, Any]:
    """What `make up` starts, and the driver."""
    settings = re.findall(r"^([A-Z]\w*)=(.*)$", (REPO / ".env").read_text(), re.MULTILINE)
    # A pin of one machine may end in a digest, which no image that was sent to a node has.
    known = {name: value.partition("@")[0] for name, value in settings}
    services = loaded("compose.yaml", known)["services"]
    # Two of them are in the network namespace of a third one.
    sysctls = services[HOLDER]["sysctls"]
    return {
        name: {**service, "sysctls": sysctls} if "network_mode" in service else service
        for name, service in services.items()
        if service.get("profiles", ["driver"]) == ["driver"] and name != HOLDER
    }


@pytest.fixture(scope="module")
def swarm() -> dict[str, Any]:
    return loaded("compose.swarm.yaml", {})


def differences(name: str, here: dict[str, Any], there: dict[str, Any]) -> set[str]:
    found = set()
    for key in KEYS:
        was, now = here.get(key), there.get(key)
        if key == "environment" and was and now:
            found |= {f"{name}.{key}.{v}" for v in {*was, *now} if was.get(v) != now.get(v)}
        elif was != now:
            found.add(f"{name}.{key}")
    limits = there["deploy"]["resources"]["limits"]
    if (here["mem_limit"], here["pids_limit"]) != (limits["memory"], limits["pids"]):
        found.add(f"{name}.limits")
    checks = [service.get("healthcheck", {"disable": True}) for service in (here, there)]
    if any(checks[0].get(key) != checks[1].get(key) for key in ("test", "disable")):
        found.add(f"{name}.healthcheck")
    return found


def test_services_are_those_of_one_machine(lab: dict[str, Any], swarm: dict[str, Any]) -> None:
    assert set(swarm["services"]) == set(lab)
    found = [differences(name, lab[name], there) for name, there in swarm["services"].items()]
    different = {f"{name}.{key}" for name, keys in DIFFERENT.items() for key in keys}
    assert set().union(*found) == different


def test_each_service_is_placed_and_named_for_cadvisor(swarm: dict[str, Any]) -> None:
    at = {}
    for name, service in swarm["services"].items():
        assert service["labels"]["com.docker.compose.service"] == name
        assert service["labels"]["com.docker.compose.project"] == "concurrency-lab-swarm"
        if service["deploy"].get("mode") != "global":
            [at[name]] = service["deploy"]["placement"]["constraints"]
    labels = {
        **dict.fromkeys(at, "server"),
        **dict.fromkeys(("driver", "loadgen"), "generator"),
        **dict.fromkeys(("toxiproxy", "downstream", "prometheus"), "downstream"),
    }
    assert at == {name: f"node.labels.lab.{label} == yes" for name, label in labels.items()}
    assert set(swarm["services"]) - set(at) == {"cadvisor"}


def test_its_files_are_those_of_the_checkout(swarm: dict[str, Any]) -> None:
    files = {name: config["file"] for name, config in swarm["configs"].items()}
    assert files.pop("host") == "./.lab/concurrency-lab/host.json"
    assert [file for file in files.values() if not (REPO / file).is_file()] == []
    rules = {f"./prometheus/rules/{path.name}" for path in (REPO / "prometheus/rules").iterdir()}
    assert rules < set(files.values())
    used = [config for of in swarm["services"].values() for config in of.get("configs", ())]
    assert {config["source"] for config in used} == set(swarm["configs"])
    # Toxiproxy calls the downstream by name.
    names = ("toxiproxy.json", "toxiproxy.swarm.json")
    here, there = ((REPO / "toxiproxy" / name).read_text() for name in names)
    assert there == here.replace("127.0.0.1:8080", "downstream:8080")
