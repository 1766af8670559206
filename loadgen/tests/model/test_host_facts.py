"""What the host tells of itself, as a manifest has it."""

import json
from typing import Any

import pytest

from lab.model.host_facts import cpus_of, host_facts, host_id
from support.fakes import snapshot

TOLD = r"""
commit 0123abcd
commit_dirty yes
cpu_model Some "CPU" \ 3.0
os Debian GNU/Linux 12
engine {"docker_version": "26.1.5", "cores": 2, "kernel": "6.1"}
compose_version 2.26.1
nofile 20000
cpuset LOADGEN 0-1
cpuset TOXIPROXY 2
cpuset DOWNSTREAM
cpuset OBSERVATION 3
toxiproxy_gomaxprocs 2
cpu_sets auto
image prom/prometheus:v2 {"id": "sha256:1", "digests": [], "built_from": "packages"}
"""


def test_the_container_of_a_service_of_the_users_own_is_told() -> None:
    def told(*environment: str) -> dict[str, Any]:
        of = {"image": "sha256:2", "nano_cpus": 0, "config": [environment, None, ["run"]]}
        return host_facts([f"service my-shop {json.dumps(of)}"])

    one = told("TOKEN=secret")["services"]["my-shop"]
    assert (one["image"], one["nano_cpus"], len(one["config"])) == ("sha256:2", 0, 64)
    assert "secret" not in json.dumps(told("TOKEN=secret"))
    assert told("TOKEN=secret") == told("TOKEN=secret") != told("TOKEN=other")
    # Compose sets them in any order.
    assert told("A=1", "B=2") == told("B=2", "A=1")


def test_a_clean_checkout_control_characters_and_several_machines() -> None:
    machine = 'machine load {"roles": "generator", "engine": {"cores": 4}}'
    lines = ["commit unknown", "cpu_model a\tb\x1bc", "toxiproxy_gomaxprocs ", machine]
    facts = host_facts(lines)
    # Told, but not limited: that is another fact than one that nobody told.
    assert facts["toxiproxy_gomaxprocs"] == ""
    assert facts["commit_dirty"] is False
    assert facts["cpu_model"] == "abc"
    assert facts["machines"] == {"load": {"roles": "generator", "engine": {"cores": 4}}}


def test_the_facts_as_a_manifest_has_them() -> None:
    assert host_facts(TOLD.splitlines()) == {
        "commit": "0123abcd",
        "commit_dirty": True,
        "cpu_model": 'Some "CPU" \\ 3.0',
        "kernel": "6.1",
        "os": "Debian GNU/Linux 12",
        "docker_version": "26.1.5",
        "cores": 2,
        "compose_version": "2.26.1",
        "nofile": 20000,
        "cpusets": {"loadgen": "0-1", "toxiproxy": "2", "downstream": "", "observation": "3"},
        "toxiproxy_gomaxprocs": "2",
        "cpu_sets": "auto",
        "images": {
            "prom/prometheus:v2": {"id": "sha256:1", "digests": [], "built_from": "packages"}
        },
    }


def test_the_id_of_a_host_names_its_cpus_and_kernel_and_tells_hosts_apart() -> None:
    facts = {"cpu_model": "AMD EPYC", "cpu_id": "AuthenticAMD 25 17", "cores": 2}
    facts |= {"memory_bytes": 25_276_514_304, "kernel": "6.18.44-fc-v595"}
    assert host_id(facts) == "amd25-2c-k6.18-2b68"
    assert host_id({**facts, "docker_version": "26.1.5", "commit": "1"}) == host_id(facts)
    others = [
        {**facts, "memory_bytes": 25_276_510_208},
        {**facts, "kernel": "6.18.44-fc-v657"},
        {**facts, "cpu_id": "AuthenticAMD 25 1"},
        {**facts, "machines": {"load": {"cores": 4}}},
    ]
    assert len({host_id(one) for one in (facts, *others)}) == 5
    # Of ARM there are implementer and part.
    arm = host_id({**facts, "cpu_model": "", "cpu_id": "0x41 0xd0c"})
    assert arm is not None
    assert arm.startswith("cpu0xd0c-2c-k6.18-")
    older = {name: of for name, of in facts.items() if name != "cpu_id"}
    assert (host_id(older) or "").startswith("amd-2c-k6.18-")
    named = {"cpu_model": "Intel(R) Xeon(R)", "cpu_id": "GenuineIntel 6 143"}
    assert (host_id({**facts, **named}) or "").startswith("intel6-2c-k6.18-")
    assert host_id({**facts, "kernel": None}) is None
    assert host_facts(["cpu_model x"]).get("id") is None
    lines = ["cpu_model x", 'engine {"cores": 2, "memory_bytes": 1, "kernel": "6.1"}']
    assert host_facts(lines)["id"].startswith("cpu-2c-k6.1-")


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("", set()), ("3", {3}), ("0-1,4", {0, 1, 4}), ("2,8-10", {2, 8, 9, 10})],
)
def test_a_cpu_set_is_its_cpus(text: str, cpus: set[int]) -> None:
    assert cpus_of(text) == cpus
    # A server that is kept to some tells how many.
    assert snapshot(settings={"cpuset": text}).cpu_set == (len(cpus) or None)
    for wrong in ("a", "1-b", "0..3"):
        with pytest.raises(ValueError, match="invalid literal"):
            cpus_of(wrong)
    with pytest.raises(ValueError, match="below"):
        cpus_of("0-99999999999")
    assert [snapshot(settings=of).cpu_set for of in ({}, {"cpuset": None})] == [None, None]
