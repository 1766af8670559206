"""hosts.toml: the machines of a lab that is on several of them, and which part is on which.

    encrypted = true
    [nodes.load]
    address = "ssh://lab@192.0.2.11"
    roles = ["generator", "monitor"]

What is wrong gets one line (WordError) that names the node and what is allowed.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lab.errors import WordError

FILE = "hosts.toml"
# In the environment of the agent and the driver: the nodes' names. Empty: one machine.
MACHINES = "LAB_MACHINES"
# Of the driver: where further generators take loads, HOST:PORT, with spaces between.
GENERATORS = "LAB_GENERATORS"
# Each but SHARED is of one node; a node may have several.
ROLES: Mapping[str, str] = {
    "generator": "the driver with its load engines, and the agent",
    "server": "the servers under test",
    "downstream": "Toxiproxy and the downstream",
    "monitor": "Prometheus and Grafana",
}
# The first node that has it has all of it, the others a share of the load.
SHARED = "generator"
# The first engine that checks a container's health more often while it starts.
OLDEST = (25, 0)
_KEYS = ("address", "roles")
# Also part of a service's name, which is a host name.
_NAME = re.compile(r"[a-z]([a-z0-9-]{0,29}[a-z0-9])?")
_ADDRESS = re.compile(
    r"(ssh|tcp)://([A-Za-z0-9_][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?"
    r"|unix:///[A-Za-z0-9._/-]+"
)
_VERSION = re.compile(r"v?(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Node:
    """A machine: its name in the lab, where its engine answers, and the parts that it has."""

    name: str
    address: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hosts:
    """The machines, and whether what passes between them is `encrypted`."""

    nodes: tuple[Node, ...]
    encrypted: bool = False


def read_hosts(text: str) -> Hosts:
    """What a hosts.toml says. Raises WordError."""
    try:
        loaded = tomllib.loads(text)
    except (ValueError, RecursionError) as failure:
        raise WordError(f"{FILE}: {failure}") from None
    for key in loaded.keys() - {"nodes", "encrypted"}:
        raise WordError(f"{FILE}: {key} is not allowed; allowed: encrypted, [nodes.<name>]")
    encrypted = loaded.get("encrypted", False)
    if not isinstance(encrypted, bool):
        raise WordError(f"{FILE}: encrypted={encrypted!r} is not allowed; allowed: true, false")
    tables = loaded.get("nodes")
    if not isinstance(tables, dict) or not tables:
        raise WordError(f"{FILE}: it has no node; allowed: tables [nodes.<name>]")
    nodes = tuple(_node(name, table) for name, table in tables.items())
    _refuse_shared(nodes)
    return Hosts(nodes, encrypted)


def node_of(nodes: Iterable[Node], role: str) -> Node:
    """The one that has the role; of several generators the driver's."""
    return next(node for node in nodes if role in node.roles)


def further_generators(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Those that put on a share of a load beside the driver's node."""
    return tuple(node for node in nodes if SHARED in node.roles)[1:]


def _node(name: str, table: object) -> Node:
    place = f"{FILE}: node {name}"
    if not _NAME.fullmatch(name):
        raise WordError(
            f"{place}: the name is not allowed; allowed: small letters, digits and -, at most 31"
        )
    if not isinstance(table, dict):
        raise WordError(f"{place}: {table!r} is not allowed; allowed: a table [nodes.{name}]")
    for key in table.keys() - set(_KEYS):
        raise WordError(f"{place}: {key} is not allowed; allowed: {', '.join(_KEYS)}")
    address, roles = table.get("address"), table.get("roles")
    if not isinstance(address, str) or not _ADDRESS.fullmatch(address):
        raise WordError(
            f"{place}: address={address!r} is not allowed; allowed: the engine's endpoint, "
            "ssh://user@host, tcp://host:port (with TLS) or unix:///path"
        )
    if not isinstance(roles, list) or not roles:
        raise WordError(f"{place}: roles={roles!r} is not allowed; allowed: a list of {_roles()}")
    for role in roles:
        if role not in ROLES or roles.count(role) > 1:
            raise WordError(
                f"{place}: role {role!r} is not allowed; allowed, once each: {_roles()}"
            )
    return Node(name, address, tuple(roles))


def _roles() -> str:
    return ", ".join(ROLES)


def _refuse_shared(nodes: tuple[Node, ...]) -> None:
    for role, what in ROLES.items():
        having = [node.name for node in nodes if role in node.roles]
        if not having:
            raise WordError(f"{FILE}: no node has the role {role} ({what}); allowed: one of them")
        if len(having) > 1 and role != SHARED:
            raise WordError(
                f"{FILE}: {' and '.join(having)} have the role {role}; allowed: one of them"
            )
    by_address: dict[str, str] = {}
    for node in nodes:
        other = by_address.setdefault(node.address, node.name)
        if other != node.name:
            raise WordError(f"{FILE}: {other} and {node.name} have one address, {node.address}")


def check_engines(
    nodes: Iterable[Node], told: Mapping[str, str], architecture: str, members: str
) -> dict[str, str]:
    """The Swarm's own name (NodeID) of each node, once every engine is one that the lab can use.

    `told` is what each node's engine said of itself (`docker info`, JSON), or why nothing was said;
    `architecture` that of the engine that built the images; `members` what a manager tells of the
    Swarm's nodes, "NodeID status availability" a line. Raises WordError.
    """
    ready = dict(line.split(maxsplit=1) for line in members.splitlines() if " " in line)
    found: dict[str, str] = {}
    for node in nodes:
        info = _info(node, told.get(node.name, ""))
        place = f"{FILE}: node {node.name}"
        version = _VERSION.match(str(info.get("ServerVersion")))
        if version is None or (int(version[1]), int(version[2])) < OLDEST:
            raise WordError(
                f"{place}: its engine is Docker {info.get('ServerVersion')}; allowed: "
                f"{OLDEST[0]}.{OLDEST[1]} or later"
            )
        if info.get("OSType") != "linux" or info.get("Architecture") != architecture:
            raise WordError(
                f"{place}: it is {info.get('OSType')}/{info.get('Architecture')}; allowed: "
                f"linux/{architecture}, for which this machine builds the images"
            )
        swarm = info.get("Swarm")
        swarm_id = str(swarm.get("NodeID") or "") if isinstance(swarm, dict) else ""
        if not isinstance(swarm, dict) or swarm.get("LocalNodeState") != "active":
            raise WordError(
                f"{place}: it is in no Swarm; allowed: `docker swarm init` on one node, and "
                "`docker swarm join` on all others"
            )
        if not ready:
            raise WordError(f"{FILE}: none of the nodes is a manager of the Swarm; allowed: one")
        if swarm_id not in ready:
            raise WordError(f"{place}: it is in another Swarm than the manager among the nodes")
        if ready[swarm_id].lower() != "ready active":
            raise WordError(
                f"{place}: the Swarm says it is {ready[swarm_id]}; allowed: Ready Active"
            )
        for other, other_id in found.items():
            if other_id == swarm_id:
                raise WordError(f"{FILE}: {other} and {node.name} are one machine")
        found[node.name] = swarm_id
    return found


def _info(node: Node, told: str) -> Mapping[str, Any]:
    """What an engine told. Without an engine the client's own part is there, with its errors."""
    try:
        info = json.loads(told)
    except ValueError:
        info = {"ServerErrors": told.split("\n")}
    if not isinstance(info, dict) or info.get("ServerErrors") or not info.get("ServerVersion"):
        errors = info.get("ServerErrors") if isinstance(info, dict) else None
        said = " ".join(map(str, errors or ["it says nothing"])).strip()[:300]
        raise WordError(f"{FILE}: node {node.name} is not reachable at {node.address}: {said}")
    return info
