"""The stack says all that compose.yaml says, or it is refused by name."""

import copy
import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import pytest

from lab.errors import WordError
from lab.experiments.reading.words import server_lists
from lab.model.hosts import GENERATORS, Node, read_hosts
from lab.model.swarm import (
    CADVISOR,
    DRIVER,
    HOME,
    LEFT_OUT,
    RETRIES,
    RULES,
    Derived,
    Lab,
    derive,
    without_front,
)
from lab.store.several import files_of
from support.composed import CHECKOUT, PROJECT, composed
from support.repo import REPO

NODES = read_hosts(
    """
[nodes.load]
address = "ssh://load"
roles = ["generator"]
[nodes.tested]
address = "ssh://tested"
roles = ["server"]
[nodes.called]
address = "ssh://called"
roles = ["downstream", "monitor"]
"""
).nodes
CORE = ("fixed-pool", "virtual-threads", "event-loop", "netty", "netty-virtual")
SERVERS = frozenset(
    server for _, names in server_lists(REPO / "prometheus/servers") for server in names
)


def read(path: str) -> Mapping[str, bytes]:
    """What make wrote is not in a checkout."""
    if path.startswith(".lab/"):
        return {"": b"{}"} if path.endswith(".json") else {}
    return files_of(REPO / path)


def config(*profiles: str) -> dict[str, Any]:
    told = composed({"SERVER_CPUS": "1.5"}, frozenset(("driver", "grafana", *profiles)))
    return dict(json.loads(without_front(json.dumps(told))))


def derived(told: Mapping[str, Any], nodes: tuple[Node, ...] = NODES) -> Derived:
    images = {one["image"]: f"sha256:{one['image']}" for one in told["services"].values()}
    return derive(told, Lab(PROJECT, nodes, SERVERS, images, CHECKOUT, read))


TOLD = config()
FOUND = derived(TOLD)
STACK = FOUND.stack["services"]


def is_in(part: Any, whole: Any) -> bool:
    """Whether all of the part is there."""
    if isinstance(part, Mapping):
        return isinstance(whole, Mapping) and all(is_in(v, whole.get(k)) for k, v in part.items())
    return bool(part == whole)


# Keys whose service in a stack has nothing in their place, as RULES say.
GONE = (
    "build",
    "pull_policy",
    "profiles",
    "depends_on",
    "cpu_shares",
    "security_opt",
    "ports",
    "extra_hosts",
)


def check(key: str, value: Any, made: dict[str, Any]) -> None:
    """Read one key of a service back out of the stack's."""
    limits = made["deploy"].get("resources", {}).get("limits", {})
    match key:
        case _ if RULES[key].becomes == "the same":
            assert is_in(value, made[key])
        case _ if key in GONE:
            assert key not in made
        case "image":
            assert made["image"].startswith("sha256:")
        case "restart":
            assert value == "unless-stopped"
            assert made["deploy"]["restart_policy"] == {"condition": "any", "delay": "0s"}
        case "cpus":
            assert limits["cpus"] == value
        case "mem_limit":
            assert limits["memory"] == value
        case "pids_limit":
            assert limits["pids"] == value
        case "cpuset" | "userns_mode":
            assert value == ""
        case "network_mode":
            assert list(made["networks"]) == ["lab"]
        case "networks":
            assert list(made["networks"]) == list(value)
        case "healthcheck":
            assert made["healthcheck"] == {**value, "retries": RETRIES}
        case "tmpfs":
            assert value == ["/tmp:size=256m,mode=1777"]
            assert {"type": "tmpfs", "target": "/tmp", "tmpfs": {"size": 2**28}} in made["volumes"]
        case "volumes":
            for one in value:
                assert is_mounted(one["target"], made), one
        case _:
            pytest.fail(f"{key}: nobody looks for it in the stack")


def is_mounted(target: str, made: Mapping[str, Any]) -> bool:
    mounts = [one["target"] for one in made["volumes"]]
    configs = [one["target"] for one in made.get("configs", ())]
    below = any(f"{one}/".startswith(f"{target}/") for one in configs)
    in_home = target.startswith(HOME) and HOME.rstrip("/") in mounts
    # The user's own servers: none here.
    return target in mounts or below or in_home or target == "/etc/lab/own"


def in_stack(name: str) -> list[str]:
    return [f"{CADVISOR}-{node.name}" for node in NODES] if name == CADVISOR else [name]


def test_nothing_of_compose_yaml_is_lost() -> None:
    for name, told in TOLD["services"].items():
        if name == DRIVER or name in LEFT_OUT:
            continue
        for one in in_stack(name):
            for key, value in told.items():
                if value is not None:
                    check(key, value, STACK[one])
    every = {one for name in TOLD["services"] for one in in_stack(name)}
    assert every == {*STACK, DRIVER, *LEFT_OUT}
    assert set(FOUND.stack["volumes"]) == {*TOLD["volumes"], "home"}
    assert set(FOUND.stack["networks"]) == set(TOLD["networks"])
    assert FOUND.stack["networks"]["cadvisor"]["internal"]
    assert FOUND.stack["networks"]["lab"]["attachable"]


def test_a_service_is_on_the_node_of_its_role() -> None:
    at = {name: one["deploy"]["placement"]["constraints"] for name, one in STACK.items()}
    assert set(map(len, at.values())) == {1}
    nodes = {
        name: lines[0].removeprefix(f"node.labels.lab.node == {PROJECT}.")
        for name, lines in at.items()
    }
    assert nodes == {
        **dict.fromkeys(CORE, "tested"),
        "loadgen": "load",
        **dict.fromkeys(("toxiproxy", "downstream", "prometheus", "grafana"), "called"),
        **{f"{CADVISOR}-{node.name}": node.name for node in NODES},
    }
    assert ("load", "concurrency-lab/loadgen:local") in FOUND.images
    assert ("tested", "concurrency-lab/loadgen:local") not in FOUND.images


def test_containers_are_known_by_the_labels_of_compose() -> None:
    assert STACK["cadvisor-load"]["labels"] == {
        "com.docker.compose.project": PROJECT,
        "com.docker.compose.service": "cadvisor",
        "com.docker.compose.oneoff": "False",
    }


def test_files_go_as_configs_and_toxiproxy_calls_the_downstream_by_name() -> None:
    [config] = STACK["toxiproxy"]["configs"]
    assert config["target"] == "/etc/toxiproxy.json"
    assert b'"upstream": "downstream:8080"' in FOUND.files[config["source"]]
    rules = [one["target"] for one in STACK["prometheus"]["configs"]]
    assert "/etc/prometheus/prometheus.yml" in rules
    assert "/etc/prometheus/rules/containers.yml" in rules
    used = {one["source"] for made in STACK.values() for one in made.get("configs", ())}
    assert used == set(FOUND.files) == set(FOUND.stack["configs"])
    assert all(len(content) < 500_000 for content in FOUND.files.values())


def test_agent_and_driver_have_one_volume() -> None:
    assert {"experiments/sweep.toml", "servers/core.json", "host.json"} <= set(FOUND.home)
    assert "grafana/dashboards/lab.json" in FOUND.home
    driver = FOUND.driver["services"][DRIVER]
    for made in (STACK["loadgen"], driver):
        assert {"type": "volume", "source": "home", "target": "/lab"} in made["volumes"]
        assert made["environment"]["LAB_MACHINES"] == "load tested called"


def test_the_driver_is_all_that_compose_yaml_says() -> None:
    told, made = TOLD["services"][DRIVER], FOUND.driver["services"][DRIVER]
    assert set(told) - set(made) == {"build", "profiles"} & set(told)
    for key in set(made) - {"volumes", "environment"}:
        assert made[key] == told[key]
    assert is_in(told["environment"], made["environment"])
    assert FOUND.driver["networks"]["lab"] == {"external": True, "name": f"{PROJECT}_lab"}
    assert FOUND.driver["volumes"]["lock"] == {"external": True, "name": f"{PROJECT}_lock"}


def test_a_further_generator_is_the_driver_s_image_that_takes_loads_and_nothing_else() -> None:
    two = tuple(
        dataclasses.replace(node, roles=("generator", *node.roles))
        if node.name == "called"
        else node
        for node in NODES
    )
    found = derived(TOLD, two)
    made = found.stack["services"]["generator-called"]
    assert (made["entrypoint"], made["command"]) == (["pacer"], ["serve", ":9465"])
    assert made["deploy"]["placement"] == {
        "constraints": [f"node.labels.lab.node == {PROJECT}.called"]
    }
    assert made["labels"]["com.docker.compose.service"] == "generator"
    assert made["deploy"]["restart_policy"]["condition"] == "any"
    assert (made["cap_drop"], made["read_only"]) == (["ALL"], True)
    assert set(made["networks"]) == {"lab"}
    assert not {"environment", "configs", "ports"} & set(made)
    assert [one["type"] for one in made["volumes"]] == ["tmpfs"]
    assert made["image"] == STACK["loadgen"]["image"]
    assert ("called", "concurrency-lab/loadgen:local") in found.images
    environment = found.driver["services"][DRIVER]["environment"]
    assert environment[GENERATORS] == "generator-called:9465"
    assert FOUND.driver["services"][DRIVER]["environment"][GENERATORS] == ""


@pytest.mark.parametrize(
    ("service", "changes", "says"),
    [
        ("netty", {"cap_of_mine": 1}, "netty: cap_of_mine: 1 is not possible .*: no rule says"),
        ("netty", {"cpuset": "0-1"}, "netty: cpuset: 0-1 is not possible"),
        ("loadgen", {"userns_mode": "host"}, "loadgen: userns_mode: host is not possible"),
        ("netty", {"security_opt": ["seccomp=unconfined"]}, "security_opt: seccomp=unconfined"),
        ("netty", {"network_mode": "host"}, "network_mode: host is not possible"),
        ("netty", {"networks": {"lab": {"ipv4_address": "10.0.0.9"}}}, "networks: ipv4_address"),
        ("netty", {"ports": [{"host_ip": "0.0.0.0", "target": 80}]}, "ports: 80 is not possible"),
        ("netty", {"ports": [{"target": 80}]}, "ports: 80 is not possible"),
        ("netty", {"extra_hosts": ["a:10.0.0.1"]}, "extra_hosts: a:10.0.0.1"),
        ("netty", {"restart": "on-failure"}, "restart: on-failure is not possible"),
        ("netty", {"tmpfs": ["/tmp:size=256m,mode=1777,exec"]}, "tmpfs: exec is not possible"),
        ("netty", {"container_name": "mine"}, "container_name: mine .* names containers itself"),
        ("netty", {"privileged": True}, "privileged: True is not possible"),
        ("netty", {"image": "other:local"}, "netty: there is no image other:local"),
        ("my-shop", {"image": "concurrency-lab/netty:local"}, "my-shop: nobody knows"),
        (
            "netty",
            {"volumes": [{"type": "bind", "source": f"{CHECKOUT}/a", "target": "/a"}]},
            "volumes: /a is not possible .*: nobody may write to the checkout",
        ),
        (
            "netty",
            {"volumes": [{"type": "bind", "source": "/a", "target": "/a", "consistency": "x"}]},
            "volumes: consistency is not possible",
        ),
        ("netty", {"volumes": [{"type": "npipe", "target": "/a"}]}, "volumes: /a is not possible"),
        (
            "downstream-network",
            {"networks": {"lab": {"aliases": ["proxy"]}}},
            "downstream-network: proxy is no service",
        ),
    ],
)
def test_what_a_stack_cannot_have_is_refused_by_name(
    service: str, changes: dict[str, Any], says: str
) -> None:
    told = copy.deepcopy(TOLD)
    told["services"].setdefault(service, {}).update(changes)
    images = {one["image"]: "sha256:1" for one in TOLD["services"].values()}
    with pytest.raises(WordError, match=says) as refused:
        derive(told, Lab(PROJECT, NODES, SERVERS, images, CHECKOUT, read))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"secrets": {"a": {}}}, "compose: secrets is not possible"),
        ({"networks": {**TOLD["networks"], "a": {"driver": "macvlan"}}}, "network a: driver"),
        ({"volumes": {**TOLD["volumes"], "a": {"driver": "nfs"}}}, "volume a: driver"),
    ],
)
def test_nor_is_anything_else_lost(change: dict[str, Any], says: str) -> None:
    with pytest.raises(WordError, match=says):
        derived({**TOLD, **change})


def test_lanes_of_other_profiles_are_possible_or_refused() -> None:
    [at] = derived(config("frameworks")).stack["services"]["spring-mvc"]["deploy"]["placement"][
        "constraints"
    ]
    assert at.endswith(".tested")
    with pytest.raises(WordError, match="tmpfs: exec is not possible"):
        derived(config("shipped"))


PAGE = (REPO / "docs" / "several-machines.md").read_text()


def test_the_page_lists_what_becomes_of_each_key() -> None:
    table = PAGE.partition("## What a stack says otherwise\n")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    listed = dict(line.strip("| ").split(" | ", 1) for line in rows)
    assert listed == {
        **{f"`{key}`": rule.becomes for key, rule in RULES.items() if rule.becomes != "the same"},
        **{f"`{name}`, the service": f"left out: {why}" for name, why in LEFT_OUT.items()},
    }
    same = ", ".join(f"`{key}`" for key, rule in RULES.items() if rule.becomes == "the same")
    assert same in " ".join(table.split())


def test_networks_are_overlays_and_encrypted_where_the_user_says_so() -> None:
    images = {one["image"]: one["image"] for one in TOLD["services"].values()}
    lab = Lab(PROJECT, NODES, SERVERS, images, CHECKOUT, read, encrypted=True)
    for found, options in ((FOUND, None), (derive(TOLD, lab), {"encrypted": "true"})):
        networks = found.stack["networks"].values()
        assert {one["driver"] for one in networks} == {"overlay"}
        assert all(one.get("driver_opts") == options for one in networks)
