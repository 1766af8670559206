"""The checklist that every container of the lab is held to, as `docker inspect` tells of it.

It follows the CIS Docker Benchmark's section on container runtimes. docs/security.md explains it,
and lists what is allowed.
"""

from collections.abc import Iterator, Mapping
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


RULES = frozenset(
    ("user", "capabilities", "root filesystem", "privileges", "memory", "processes", "namespaces",
     "devices", "host path", "writes", "mount propagation", "socket in reach", "address",
     "published", "health", "logs", "open files")
)  # fmt: skip


def service_of(container: Container) -> str:
    """The Compose service that it is of."""
    return str(container["Config"]["Labels"]["com.docker.compose.service"])


def findings(container: Container) -> Iterator[Finding]:
    """All that the checklist forbids, allowed or not."""
    for rule, what in (*_of_process(container), *_of_mounts(container), *_of_ports(container)):
        assert rule in RULES
        yield Finding(service_of(container), rule, what)


def _of_process(container: Container) -> Iterator[tuple[str, str]]:
    config, host = container["Config"], container["HostConfig"]
    options, network = host["SecurityOpt"] or (), host["NetworkMode"]
    check = (config.get("Healthcheck") or {}).get("Test")
    limits = [limit["Name"] for limit in host["Ulimits"] or ()]
    for rule, what, is_wrong in (
        ("user", "root", config["User"].partition(":")[0] in ("", "0", "root")),
        ("capabilities", "not all dropped", host["CapDrop"] != ["ALL"]),
        ("capabilities", "privileged", host["Privileged"]),
        ("root filesystem", "writable", not host["ReadonlyRootfs"]),
        ("privileges", "can grow", "no-new-privileges:true" not in options),
        ("memory", "no limit", not host["Memory"]),
        ("processes", "no limit", (host["PidsLimit"] or 0) <= 0),
        ("namespaces", "the engine's default network", network in ("default", "bridge")),
        ("health", "not checked", check in (None, [], ["NONE"])),
        ("logs", "without end", "max-size" not in host["LogConfig"]["Config"]),
        ("open files", "no limit", "nofile" not in limits),
    ):
        if is_wrong:
            yield rule, what
    yield from (("capabilities", name) for name in host["CapAdd"] or ())
    loose = (name for name in options if "unconfined" in name or name == "label:disable")
    yield from (("privileges", name) for name in loose)
    yield from (("devices", device["PathOnHost"]) for device in host["Devices"] or ())
    for name in ("NetworkMode", "PidMode", "IpcMode", "UTSMode", "UsernsMode"):
        if host.get(name) == "host":
            yield "namespaces", f"{name} host"


def _of_mounts(container: Container) -> Iterator[tuple[str, str]]:
    checkout = container["Config"]["Labels"]["com.docker.compose.project.working_dir"]
    sources = [str(mount.get("Source")) for mount in container["Mounts"]]
    for mount, source in zip(container["Mounts"], sources, strict=True):
        inside = mount["Destination"]
        if mount["RW"]:
            yield "writes", inside
        # What is mounted must not reach the host. The other way is the engine's own choice
        # (`rslave`).
        if mount.get("Propagation") in ("shared", "rshared"):
            yield "mount propagation", inside
        # Results may be anywhere.
        outside = not source.startswith(f"{checkout}/") and inside != "/lab/results"
        if mount["Type"] == "bind" and outside:
            # An engine that runs its own containerd has it in a folder of its own.
            name = "containerd.sock"
            yield "host path", name if source.endswith(f"/{name}") else source
    # Networks from which a container that has the engine's socket can be reached.
    if any(source.endswith(".sock") for source in sources):
        for network in container["NetworkSettings"]["Networks"]:
            if not network.endswith("_cadvisor"):
                yield "socket in reach", network


def _of_ports(container: Container) -> Iterator[tuple[str, str]]:
    for port, bindings in (container["HostConfig"]["PortBindings"] or {}).items():
        for bound in bindings:
            number = port.partition("/")[0]
            yield "published", number
            if bound["HostIp"] != "127.0.0.1":
                yield "address", f"{number} on {bound['HostIp'] or 'every address'}"
