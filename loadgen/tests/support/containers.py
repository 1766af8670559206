"""The checklist that every container of the lab is held to, as `docker inspect` tells of it.

It follows the CIS Docker Benchmark's section on container runtimes. docs/security.md explains it,
and lists what is allowed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

type Container = Mapping[str, Any]


@dataclass(frozen=True)
class Finding:
    """What a service's container has that a rule forbids."""

    service: str
    rule: str
    what: str


SOCKETS = "the engine's socket is root's"
NAMES = "names and labels of containers; what is written to a socket is done, `:ro` or not"
# Everything that is allowed, by whom and why. Nothing else is.
ALLOWED: Mapping[Finding, str] = {
    Finding("cadvisor", "user", "root"): SOCKETS,
    Finding("cadvisor", "host path", "/var/run/docker.sock"): NAMES,
    Finding("cadvisor", "host path", "containerd.sock"): NAMES,
    Finding("cadvisor", "host path", "/var/lib/docker/image"): "names of layers, read-only",
    Finding("cadvisor", "host path", "/proc"): "network counters of containers, read-only",
    Finding("cadvisor", "host path", "/sys/fs/cgroup"): "CPU and memory of containers, read-only",
    Finding("driver", "writes", "/lab/results"): "runs",
    Finding("driver", "writes", "/lab/requests"): "requests to the host, which opens no file there",
    Finding("prometheus", "writes", "/prometheus"): "series, in a volume",
    Finding("grafana", "writes", "/var/lib/grafana"): "users and edited dashboards, in a volume",
    Finding("driver", "health", "not checked"): "it ends with its verb, which says how",
    Finding("downstream-network", "published", "9464"): "the control page, behind the front",
    Finding("downstream-network", "published", "8475"): "Toxiproxy's API, behind the front",
    Finding("downstream-network", "published", "9090"): "Prometheus, behind the front",
    Finding("grafana", "published", "3000"): "Grafana, which knows itself as localhost only",
}


def service_of(container: Container) -> str:
    """The Compose service that it is of."""
    return str(container["Config"]["Labels"]["com.docker.compose.service"])


def findings(container: Container) -> Iterator[Finding]:
    """All that the checklist forbids, allowed or not."""
    for rule, seen in RULES.items():
        for what in seen(container):
            yield Finding(service_of(container), rule, what)


def _if(wrong: object, what: str) -> list[str]:
    return [what] if wrong else []


def _capabilities(container: Container) -> Iterator[str]:
    host = container["HostConfig"]
    if host["CapDrop"] != ["ALL"]:
        yield "not all dropped"
    yield from host["CapAdd"] or ()
    if host["Privileged"]:
        yield "privileged"


def _privileges(container: Container) -> Iterator[str]:
    options = container["HostConfig"]["SecurityOpt"] or ()
    if "no-new-privileges:true" not in options:
        yield "can grow"
    yield from (one for one in options if "unconfined" in one or one == "label:disable")


def _namespaces(container: Container) -> Iterator[str]:
    for of in ("NetworkMode", "PidMode", "IpcMode", "UTSMode", "UsernsMode"):
        if container["HostConfig"].get(of) == "host":
            yield f"{of} host"
    if container["HostConfig"]["NetworkMode"] in ("default", "bridge"):
        yield "the engine's default network"


def _host_paths(container: Container) -> Iterator[str]:
    """What is mounted from outside of the checkout, but for results, which may be anywhere."""
    checkout = container["Config"]["Labels"]["com.docker.compose.project.working_dir"]
    for mount in container["Mounts"]:
        source = str(mount.get("Source"))
        inside = source.startswith(f"{checkout}/") or mount["Destination"] == "/lab/results"
        if mount["Type"] == "bind" and not inside:
            # An engine that runs its own containerd has it in a folder of its own.
            name = "containerd.sock"
            yield name if source.endswith(f"/{name}") else source


def _sockets(container: Container) -> Iterator[str]:
    """Networks from which a container that has the engine's socket can be reached."""
    if any(str(mount.get("Source")).endswith(".sock") for mount in container["Mounts"]):
        for network in container["NetworkSettings"]["Networks"]:
            if not network.endswith("_cadvisor"):
                yield network


def _bindings(container: Container) -> Iterator[tuple[str, Mapping[str, str]]]:
    for port, bound in (container["HostConfig"]["PortBindings"] or {}).items():
        yield from ((port.partition("/")[0], one) for one in bound)


def _addresses(container: Container) -> Iterator[str]:
    for port, bound in _bindings(container):
        if bound["HostIp"] != "127.0.0.1":
            yield f"{port} on {bound['HostIp'] or 'every address'}"


RULES: Mapping[str, Callable[[Container], Iterable[str]]] = {
    "user": lambda c: _if(c["Config"]["User"].partition(":")[0] in ("", "0", "root"), "root"),
    "capabilities": _capabilities,
    "root filesystem": lambda c: _if(not c["HostConfig"]["ReadonlyRootfs"], "writable"),
    "privileges": _privileges,
    "memory": lambda c: _if(not c["HostConfig"]["Memory"], "no limit"),
    "processes": lambda c: _if((c["HostConfig"]["PidsLimit"] or 0) <= 0, "no limit"),
    "namespaces": _namespaces,
    "devices": lambda c: (one["PathOnHost"] for one in c["HostConfig"]["Devices"] or ()),
    "host path": _host_paths,
    "writes": lambda c: (mount["Destination"] for mount in c["Mounts"] if mount["RW"]),
    # What is mounted must not reach the host. The other way is the engine's own choice (`rslave`).
    "mount propagation": lambda c: (
        mount["Destination"]
        for mount in c["Mounts"]
        if mount.get("Propagation") in ("shared", "rshared")
    ),
    "socket in reach": _sockets,
    "address": _addresses,
    "published": lambda c: (port for port, _ in _bindings(c)),
    "health": lambda c: _if(
        (c["Config"].get("Healthcheck") or {}).get("Test") in (None, [], ["NONE"]), "not checked"
    ),
    "logs": lambda c: _if("max-size" not in c["HostConfig"]["LogConfig"]["Config"], "without end"),
    "open files": lambda c: _if(
        "nofile" not in [one["Name"] for one in c["HostConfig"]["Ulimits"] or ()], "no limit"
    ),
}
