"""The checklist of containers notices each fault, and docs/security.md says what it allows."""

import copy
import re
from typing import Any

import pytest
import yaml

from support.containers import ALLOWED, RULES, Finding, findings
from support.repo import REPO

HOST = {
    "CapDrop": ["ALL"],
    "Privileged": False,
    "ReadonlyRootfs": True,
    "SecurityOpt": ["no-new-privileges:true"],
    "Memory": 2**31,
    "PidsLimit": 32768,
    "NetworkMode": "lab_lab",
    "IpcMode": "private",
    "PortBindings": {},
    "LogConfig": {"Type": "json-file", "Config": {"max-size": "10m"}},
    "Ulimits": [{"Name": "nofile", "Hard": 20000, "Soft": 20000}],
    **dict.fromkeys(("CapAdd", "Devices")),
    **dict.fromkeys(("PidMode", "UTSMode", "UsernsMode"), ""),
}
COMPOSE = "com.docker.compose"
LABELS = {f"{COMPOSE}.service": "fixed-pool", f"{COMPOSE}.project.working_dir": "/checkout"}
# Of `docker inspect`, what the checklist reads: a server's container, without fault.
GOOD: dict[str, Any] = {
    "Config": {"User": "10001:10001", "Healthcheck": {"Test": ["CMD", "true"]}, "Labels": LABELS},
    "HostConfig": HOST,
    "Mounts": [
        {"Type": "bind", "Source": "/checkout/a", "Destination": "/a", "RW": False},
        {"Type": "volume", "Source": "/var/lib/x", "Destination": "/lock", "RW": False},
    ],
    "NetworkSettings": {"Networks": {"lab_lab": {}}},
}


def host(**changes: object) -> dict[str, Any]:
    return {"HostConfig": changes}


def mount(source: str, **changes: object) -> dict[str, Any]:
    plain = {"Type": "bind", "Source": source, "Destination": "/inside", "RW": False}
    return {"Mounts": [{**plain, "Propagation": "rprivate", **changes}]}


NO_END = {"Type": "json-file", "Config": {}}
EVERYWHERE = {"8080/tcp": [{"HostIp": "", "HostPort": "80"}]}
UNCONFINED = ["no-new-privileges:true", "seccomp=unconfined"]
FAULTS: list[tuple[str, str, dict[str, Any]]] = [
    ("user", "root", {"Config": {"User": ""}}),
    ("user", "root", {"Config": {"User": "0:10001"}}),
    ("capabilities", "not all dropped", host(CapDrop=None)),
    ("capabilities", "NET_ADMIN", host(CapAdd=["NET_ADMIN"])),
    ("capabilities", "privileged", host(Privileged=True)),
    ("root filesystem", "writable", host(ReadonlyRootfs=False)),
    ("privileges", "can grow", host(SecurityOpt=None)),
    ("privileges", "seccomp=unconfined", host(SecurityOpt=UNCONFINED)),
    ("memory", "no limit", host(Memory=0)),
    ("processes", "no limit", host(PidsLimit=None)),
    ("processes", "no limit", host(PidsLimit=-1)),
    ("namespaces", "PidMode host", host(PidMode="host")),
    ("namespaces", "the engine's default network", host(NetworkMode="bridge")),
    ("devices", "/dev/kmsg", host(Devices=[{"PathOnHost": "/dev/kmsg"}])),
    ("host path", "/etc", mount("/etc")),
    ("host path", "/checkout-of-another", mount("/checkout-of-another")),
    ("writes", "/inside", mount("/checkout/a", RW=True)),
    ("mount propagation", "/inside", mount("/checkout/a", Propagation="rshared")),
    ("socket in reach", "lab_lab", mount("/checkout/a.sock")),
    ("address", "8080 on every address", host(PortBindings=EVERYWHERE)),
    ("health", "not checked", {"Config": {"Healthcheck": None}}),
    ("health", "not checked", {"Config": {"Healthcheck": {"Test": ["NONE"]}}}),
    ("logs", "without end", host(LogConfig=NO_END)),
    ("open files", "no limit", host(Ulimits=None)),
]


def test_a_container_without_fault_keeps_every_rule_and_each_rule_is_tried() -> None:
    assert list(findings(GOOD)) == []
    assert {rule for rule, _, _ in FAULTS} == RULES - {"published"}


@pytest.mark.parametrize(("rule", "what", "changes"), FAULTS)
def test_each_fault_is_found(rule: str, what: str, changes: dict[str, Any]) -> None:
    faulty = copy.deepcopy(GOOD)
    for part, change in changes.items():
        faulty[part] = {**faulty[part], **change} if isinstance(change, dict) else change
    found = [each for each in findings(faulty) if each.rule != "published"]
    assert found == [Finding("fixed-pool", rule, what)]
    assert found[0] not in ALLOWED


PAGE = (REPO / "docs" / "security.md").read_text()


def rows(section: str) -> list[list[str]]:
    """The cells of a section's table, without marks of code."""
    table = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")][1:]
    cells = [line.replace("`", "").strip("|").split("|") for line in lines]
    return [[cell.strip() for cell in line] for line in cells]


def test_the_page_lists_what_is_allowed_and_why() -> None:
    allowed = [
        [finding.service, finding.rule, finding.what, why.replace("`", "")]
        for finding, why in ALLOWED.items()
        if finding.rule != "published"
    ]
    assert rows("What is allowed") == allowed


def test_the_page_lists_what_is_published() -> None:
    services = yaml.safe_load((REPO / "compose.yaml").read_text())["services"]
    published = {
        (name, *re.fullmatch(r"127\.0\.0\.1:\$\{(\w+):-(\d+)\}:(\d+)", port).groups())
        for name, service in services.items()
        for port in service.get("ports", ())
    }
    listed = {(name, setting, port) for _, name, setting, port, _ in rows("What is published")}
    assert listed == {(name, setting, port) for name, setting, port, _ in published}
    inside = {(name, port) for name, _, _, port in published}
    assert inside == {
        (finding.service, finding.what) for finding in ALLOWED if finding.rule == "published"
    }
