"""A lab on several machines: compose.yaml, as `docker compose config` tells it, as a Swarm stack.

RULES is the one list of what becomes of each key of a service. Nothing is lost silently: a key is
carried over, or something stands in its place, or it is refused by name. The driver is no part of
the stack: it is a container of its own on the generator's node, which Compose starts there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from lab.errors import WordError
from lab.model.hosts import GENERATORS, MACHINES, Node, further_generators, node_of

type Told = Mapping[str, Any]
type Part = dict[str, Any]

DRIVER, AGENT, CADVISOR = "driver", "loadgen", "cadvisor"
# Takes a share of each load, on a node of its own: the driver's image, for nothing else.
GENERATOR, GENERATOR_PORT = "generator", 9465
# On which node a service is, beside the servers. cAdvisor is on every one, under a name of its own.
PLACES = {AGENT: "generator", "toxiproxy": "downstream", "downstream": "downstream"}
PLACES |= {"prometheus": "monitor", "grafana": "monitor"}
# It holds the network namespace of two services, and passes on what comes to published ports.
HOLDER = "downstream-network"
LEFT_OUT = {
    HOLDER: "each of the two that were in its network namespace has one of its own, and no port is "
    "published",
}
# What the agent and the driver find below it comes from one volume, which make fills.
HOME, HOME_VOLUME = "/lab/", "home"
# So many bad checks in a row before Swarm takes the container for broken.
RETRIES = 100
# What Toxiproxy calls: the downstream, which on one machine is in its own network namespace.
LOOPBACK, DOWNSTREAM = b'"127.0.0.1:', b'"downstream:'
# Where Toxiproxy's API is asked.
FRONT, FRONTLESS = "toxiproxy:8475", "toxiproxy:8474"
COMPOSE_LABEL = "com.docker.compose."


@dataclass(frozen=True, slots=True)
class Lab:
    """What a stack is made for: the Compose project, the nodes, the names of the servers, the id of
    each image, and the checkout as Compose's bind mounts name it. `read` gives the files of a path
    of the checkout: their own paths below it ("" for a file), and what is in them. `encrypted`:
    whether the overlay networks are (IPsec)."""

    project: str
    nodes: tuple[Node, ...]
    servers: frozenset[str]
    images: Mapping[str, str]
    checkout: str
    read: Callable[[str], Mapping[str, bytes]]
    encrypted: bool = False


@dataclass(slots=True)
class Derived:
    """The stack, the Compose file of the driver, the files that the stack's configs are made of,
    those that the volume of agent and driver begins with, and the images of each node."""

    stack: Part = field(default_factory=dict)
    driver: Part = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    home: dict[str, bytes] = field(default_factory=dict)
    images: set[tuple[str, str]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Scene:
    """The service that a key is of."""

    name: str
    told: Told
    lab: Lab
    derived: Derived

    def refused(self, key: str, given: object, why: str) -> WordError:
        """The refusal of what a stack cannot have."""
        return WordError(f"{self.name}: {key}: {given} is not possible on several machines: {why}")


@dataclass(frozen=True, slots=True)
class Rule:
    """What becomes of a key, in words, and as a part of the stack's service."""

    becomes: str
    make: Callable[[Scene, Any], Part]


def derive(config: Told, lab: Lab) -> Derived:
    """The stack of a lab. `config` is what `docker compose config --format json` says, with the
    profile of the driver. Raises WordError for what a stack cannot have."""
    for key in config.keys() - {"name", "services", "networks", "volumes"}:
        if not key.startswith("x-"):
            raise WordError(f"compose: {key} is not possible on several machines")
    config = json.loads(without_front(json.dumps(config)))
    derived, services = Derived(), dict[str, Part]()
    _check_holder(config["services"])
    for name, told in config["services"].items():
        if name == DRIVER:
            derived.driver = _driver(told, config, lab, derived)
            for node in further_generators(lab.nodes):
                one = Scene(_generator(node), _as_generator(told), lab, derived)
                services[one.name] = _service(one, GENERATOR, node)
        elif name == CADVISOR:
            for node in lab.nodes:
                one = Scene(f"{CADVISOR}-{node.name}", told, lab, derived)
                services[one.name] = _service(one, CADVISOR, node)
        elif name not in LEFT_OUT:
            one = Scene(name, told, lab, derived)
            services[name] = _service(one, name, node_of(lab.nodes, _role(name, lab)))
    derived.stack = {
        "version": "3.13",
        "services": services,
        "networks": dict(_networks(config, lab)),
        "volumes": {**dict(_volumes(config)), HOME_VOLUME: {"name": _named(lab, HOME_VOLUME)}},
        "configs": {name: {"file": f"./files/{name}"} for name in sorted(derived.files)},
    }
    return derived


def without_front(text: str) -> str:
    """There is no front before Toxiproxy's API, which is open to the overlay network."""
    return text.replace("-host=127.0.0.1", "-host=0.0.0.0").replace(FRONT, FRONTLESS)


def label(role: str) -> str:
    """The node's label that a service with this role is placed by. Its value is the project."""
    return f"lab.{role}"


def _role(name: str, lab: Lab) -> str:
    if name in lab.servers:
        return "server"
    if name not in PLACES:
        raise WordError(
            f"{name}: nobody knows on which machine it belongs: services of your own are not "
            "possible on several machines yet"
        )
    return PLACES[name]


def _service(scene: Scene, called: str, node: Node) -> Part:
    """The stack's service. Its containers have Compose's labels, by which cAdvisor and the host
    know the lab's."""
    service: Part = {
        "labels": {
            f"{COMPOSE_LABEL}project": scene.lab.project,
            f"{COMPOSE_LABEL}service": called,
            f"{COMPOSE_LABEL}oneoff": "False",
        },
        "deploy": {
            "endpoint_mode": "dnsrr",
            "placement": {
                "constraints": [f"node.labels.{label('node')} == {_at(scene.lab, node)}"]
            },
        },
    }
    for key, value in scene.told.items():
        if value is None:
            continue
        if key not in RULES:
            raise scene.refused(key, value, "no rule says what a stack has in its place")
        _merge(service, RULES[key].make(scene, value))
    scene.derived.images.add((node.name, scene.told["image"]))
    if _has_home(scene.told):
        _merge(service, {"environment": _machines(scene.lab)})
    return service


def _at(lab: Lab, node: Node) -> str:
    return f"{lab.project}.{node.name}"


def _merge(into: Part, part: Told) -> None:
    for key, value in part.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        elif isinstance(value, list) and isinstance(into.get(key), list):
            into[key] = [*into[key], *value]
        else:
            into[key] = value


def _machines(lab: Lab) -> dict[str, str]:
    return {MACHINES: " ".join(node.name for node in lab.nodes)}


def _generator(node: Node) -> str:
    return f"{GENERATOR}-{node.name}"


def _as_generator(driver: Told) -> Told:
    """A generator beside the driver's: its container without its files and its settings."""
    gone = ("profiles", "environment", "volumes", "extra_hosts")
    kept = {key: value for key, value in driver.items() if key not in gone}
    serves = {"entrypoint": ["pacer"], "command": ["serve", f":{GENERATOR_PORT}"]}
    return {**kept, **serves, "restart": "unless-stopped"}


def _named(lab: Lab, what: str) -> str:
    return f"{lab.project}_{what}"


def _networks(config: Told, lab: Lab) -> Iterator[tuple[str, Part]]:
    """An overlay each. The driver's container may join that of the lab."""
    for name, told in config.get("networks", {}).items():
        network: Part = {"driver": "overlay", "attachable": not told.get("internal", False)}
        if lab.encrypted:
            network["driver_opts"] = {"encrypted": "true"}
        for key, value in told.items():
            if key in ("name", "internal"):
                network[key] = value
            elif value:
                raise WordError(f"network {name}: {key} is not possible on several machines")
        yield name, network


def _volumes(config: Told) -> Iterator[tuple[str, Part]]:
    for name, told in config.get("volumes", {}).items():
        for key in told.keys() - {"name"}:
            raise WordError(f"volume {name}: {key} is not possible on several machines")
        yield name, dict(told)


def _driver(told: Told, config: Told, lab: Lab, derived: Derived) -> Part:
    """What Compose is told of the driver, on the generator's node: all that compose.yaml says, but
    what is there already is the stack's."""
    scene = Scene(DRIVER, told, lab, derived)
    gone = ("build", "depends_on", "profiles")
    service = {key: value for key, value in told.items() if key not in gone}
    service["volumes"] = _volumes_of(scene, told.get("volumes", ())).get("volumes", [])
    others = " ".join(
        f"{_generator(node)}:{GENERATOR_PORT}" for node in further_generators(lab.nodes)
    )
    service["environment"] = {
        **told.get("environment", {}),
        **_machines(lab),
        GENERATORS: others,
    }
    derived.images.add((node_of(lab.nodes, "generator").name, told["image"]))
    named = {one["source"] for one in service["volumes"]}
    return {
        "name": lab.project,
        "services": {DRIVER: service},
        "networks": {
            name: {"external": True, "name": config["networks"][name]["name"]}
            for name in told["networks"]
        },
        "volumes": {name: {"external": True, "name": _named(lab, name)} for name in sorted(named)},
    }


def _check_holder(services: Told) -> None:
    """That nothing but the known two is in the namespace of the holder, and each under its own
    name. Raises WordError."""
    networks = services.get(HOLDER, {}).get("networks") or {}
    aliases = {alias for one in networks.values() for alias in (one or {}).get("aliases", ())}
    joined = {n for n, s in services.items() if s.get("network_mode") == f"service:{HOLDER}"}
    if aliases - joined:
        raise WordError(f"{HOLDER}: {min(aliases - joined)} is no service in its network namespace")


def _nothing(_scene: Scene, _value: Any) -> Part:
    return {}


def _kept(key: str) -> Rule:
    return Rule("the same", lambda _scene, value: {key: value})


def _refused(why: str, key: str) -> Rule:
    def refuse(scene: Scene, value: Any) -> Part:
        if value == "":
            return {}
        raise scene.refused(key, value, why)

    return Rule(f"refused, unless empty: {why}", refuse)


def _image(scene: Scene, value: str) -> Part:
    if not scene.lab.images.get(value):
        raise WordError(f"{scene.name}: there is no image {value} on this machine")
    return {"image": scene.lab.images[value]}


def _restart(scene: Scene, value: str) -> Part:
    conditions = {"unless-stopped": "any", "always": "any", "no": "none"}
    if value not in conditions:
        raise scene.refused("restart", value, f"allowed: {', '.join(conditions)}")
    return {"deploy": {"restart_policy": {"condition": conditions[value], "delay": "0s"}}}


def _limit(name: str) -> Callable[[Scene, Any], Part]:
    def limit(_scene: Scene, value: Any) -> Part:
        if str(value) in ("0", "0.0"):
            return {}
        whole = value if name == "pids" else str(value)
        return {"deploy": {"resources": {"limits": {name: whole}}}}

    return limit


def _security_opt(scene: Scene, value: list[str]) -> Part:
    for option in value:
        if option not in ("no-new-privileges:true", "no-new-privileges=true"):
            raise scene.refused("security_opt", option, "a stack cannot say it")
    return {}


def _network_mode(scene: Scene, value: str) -> Part:
    if value != f"service:{HOLDER}":
        raise scene.refused("network_mode", value, "every service has a namespace of its own")
    return {"networks": {"lab": {}}}


def _networks_of(scene: Scene, value: Mapping[str, Told | None]) -> Part:
    for told in value.values():
        for key in (told or {}).keys() - {"aliases"}:
            raise scene.refused("networks", key, "only aliases are carried over")
    return {"networks": {name: dict(told or {}) for name, told in value.items()}}


def _ports(scene: Scene, value: list[Told]) -> Part:
    for port in value:
        if port.get("host_ip") != "127.0.0.1":
            raise scene.refused(
                "ports", port.get("target"), "nothing is published beyond 127.0.0.1"
            )
    return {}


def _extra_hosts(scene: Scene, value: list[str]) -> Part:
    for line in value:
        if not line.endswith("host-gateway"):
            raise scene.refused("extra_hosts", line, "only that of this machine is known")
    return {}


def _healthcheck(_scene: Scene, value: Told) -> Part:
    return {"healthcheck": dict(value) if value.get("disable") else {**value, "retries": RETRIES}}


def _tmpfs(scene: Scene, value: list[str]) -> Part:
    return {"volumes": [_one_tmpfs(scene, line) for line in value]}


def _one_tmpfs(scene: Scene, line: str) -> Part:
    target, _, options = line.partition(":")
    mount: Part = {"type": "tmpfs", "target": target}
    for option in filter(None, options.split(",")):
        name, _, text = option.partition("=")
        if name == "size" and text[:-1].isdigit() and text[-1] == "m":
            mount["tmpfs"] = {"size": int(text[:-1]) * 1_048_576}
        # The engine's own default.
        elif option != "mode=1777":
            raise scene.refused("tmpfs", option, "allowed: a size in m, and mode=1777")
    return mount


def _has_home(told: Told) -> bool:
    return "LAB_HOME" in (told.get("environment") or {})


def _volumes_of(scene: Scene, value: list[Told]) -> Part:
    """Named volumes stay. What a service reads of the checkout goes to its node as configs of the
    Swarm; for the agent and the driver it is in their volume. Other paths are the node's own."""
    mounts: list[Part] = []
    configs: list[Part] = []
    checkout = PurePosixPath(scene.lab.checkout)
    if _has_home(scene.told):
        mounts.append({"type": "volume", "source": HOME_VOLUME, "target": HOME.rstrip("/")})
    for one in value:
        kind, target = one.get("type"), str(one["target"])
        known = {"type", "source", "target", "read_only", "bind", "volume"}
        for key in one.keys() - known:
            raise scene.refused("volumes", key, "a stack cannot say it of a mount")
        if kind not in ("bind", "volume") or (one.get("bind") or {}).keys() - {"create_host_path"}:
            raise scene.refused("volumes", target, "only plain volumes and bind mounts are known")
        mount = {key: one[key] for key in ("type", "source", "target", "read_only") if key in one}
        if kind == "volume":
            mounts.append(mount)
            continue
        source = PurePosixPath(one["source"])
        inside = str(source.relative_to(checkout)) if source.is_relative_to(checkout) else None
        if _has_home(scene.told) and target.startswith(HOME):
            if one.get("read_only") and inside is not None:
                _keep_home(scene, inside, target.removeprefix(HOME))
        elif inside is None:
            mounts.append(mount)
        elif one.get("read_only"):
            configs += _configs(scene, inside, target)
        else:
            raise scene.refused("volumes", target, "nobody may write to the checkout")
    return {"volumes": mounts, **({"configs": configs} if configs else {})}


def _keep_home(scene: Scene, source: str, target: str) -> None:
    for name, content in scene.lab.read(source).items():
        scene.derived.home[f"{target}/{name}".rstrip("/")] = content


def _configs(scene: Scene, source: str, target: str) -> Iterator[Part]:
    for name, content in sorted(scene.lab.read(source).items()):
        if scene.told.get("network_mode") == f"service:{HOLDER}":
            content = content.replace(LOOPBACK, DOWNSTREAM)
        content = content.replace(FRONT.encode(), FRONTLESS.encode())
        path = f"{target}/{name}".rstrip("/")
        # A config of a Swarm never changes: another content is another one.
        called = f"{hashlib.sha256(content).hexdigest()[:16]}-{PurePosixPath(path).name}"[:60]
        scene.derived.files[called] = content
        yield {"source": called, "target": path, "mode": 0o444}


# What a key of compose.yaml becomes in a stack. docs/several-machines.md has the same list.
RULES: Mapping[str, Rule] = {
    **{
        key: _kept(key)
        for key in (
            "cap_add",
            "cap_drop",
            "command",
            "deploy",
            "entrypoint",
            "environment",
            "init",
            "labels",
            "logging",
            "read_only",
            "stop_grace_period",
            "stop_signal",
            "sysctls",
            "ulimits",
            "user",
            "working_dir",
        )
    },
    "image": Rule("the image's id, which no node ever asks a registry for", _image),
    "build": Rule("built on the machine of make, sent to the nodes by save and load", _nothing),
    "pull_policy": Rule("an id is never pulled", _nothing),
    "profiles": Rule("a service is in the stack where its profile is asked for", _nothing),
    "depends_on": Rule("all start at once, and ask for one another until they answer", _nothing),
    "restart": Rule(
        "`deploy.restart_policy`: what ends is followed by a new container, with another address, "
        "and not started again in place",
        _restart,
    ),
    "cpus": Rule("`deploy.resources.limits.cpus`", _limit("cpus")),
    "mem_limit": Rule("`deploy.resources.limits.memory`", _limit("memory")),
    "pids_limit": Rule("`deploy.resources.limits.pids`", _limit("pids")),
    "cpu_shares": Rule(
        "load engine and downstream have a machine each, and nobody to wait for", _nothing
    ),
    "security_opt": Rule(
        "`no-new-privileges` is the engine's to say, in its `daemon.json`: make warns of a node "
        "whose engine does not; any other option is refused",
        _security_opt,
    ),
    "network_mode": Rule(
        "a network namespace of its own for Toxiproxy and for the downstream: Toxiproxy calls the "
        "downstream by name, and its accept queue is not seen; any other mode is refused",
        _network_mode,
    ),
    "networks": Rule("an overlay network, with the same aliases", _networks_of),
    "ports": Rule(
        "nothing is published: a stack cannot say 127.0.0.1; ports on another address are refused",
        _ports,
    ),
    "extra_hosts": Rule(
        "`host.docker.internal` is gone, as there is no one host; others are refused", _extra_hosts
    ),
    "healthcheck": Rule(
        f"the same, but for {RETRIES} retries: Swarm would put a new container in the place of one "
        "that is busy",
        _healthcheck,
    ),
    "tmpfs": Rule("a mount of type tmpfs, of the same size; `exec` is refused", _tmpfs),
    "volumes": Rule(
        "named volumes stay, on their node; files of the checkout are configs of the Swarm, and of "
        "the agent and the driver one volume `home`, which make fills; other paths are the node's",
        _volumes_of,
    ),
    **{
        key: _refused(why, key)
        for key, why in {
            "cpuset": "a part has its machine, not a set of CPUs",
            "container_name": "Swarm names containers itself",
            "privileged": "a stack cannot say it",
            "devices": "a stack cannot say it",
            "pid": "a stack cannot say it",
            "ipc": "a stack cannot say it",
            "userns_mode": "a stack cannot say it",
        }.items()
    },
}
