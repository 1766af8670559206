"""The words of `density`, or a file of that kind, as a Plan, or one line of what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.errors import WordError
from lab.experiments.reading import (
    SPARE_DESCRIPTORS,
    DensityFile,
    Head,
    Settings,
    refuse_unknown,
    rules,
)
from lab.experiments.reading.bench import given_words
from lab.experiments.reading.words import as_given
from lab.model.density import KINDS, Kind, Plan

# Each word, and the setting that it is.
DENSITY_WORDS = {
    "CONNECTIONS": "density.connections",
    "SERVER": "load.servers",
    "KIND": "density.kind",
    "LAUNCHES": "repeat.launches",
    "NAME": "name",
}
DEFAULT_CONNECTIONS = 8000
DEFAULT_LAUNCHES = 3
MAX_LAUNCHES = 100
# Ports that other connections to the same server may hold.
SPARE_PORTS = 500
PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def density_plan(
    words: Mapping[str, str], servers: Sequence[str], file_limit: int, ports: int | None
) -> Plan:
    """The words as a Plan. `file_limit` is how many files one process may hold open, `ports`
    how many connections one address can have (None: unknown). Raises WordError."""
    refuse_unknown(words, tuple(DENSITY_WORDS), "density")
    settings = Settings("density", given_words(words, DENSITY_WORDS, "density"))
    given = as_given(words)
    name = settings.one("name", rules.name, "density")
    return _plan(settings, Head(name, "", "", given), servers, file_limit, ports)


def file_plan(
    file: DensityFile, servers: Sequence[str], file_limit: int, ports: int | None
) -> Plan:
    """A file of kind density as a Plan; the rest as for density_plan."""
    return _plan(file.settings, file.head, servers, file_limit, ports)


def _plan(
    settings: Settings, head: Head, servers: Sequence[str], file_limit: int, ports: int | None
) -> Plan:
    asked = settings.one("density.connections", rules.number(1, 1_000_000), DEFAULT_CONNECTIONS)
    possible, why = _possible(asked, file_limit, ports)
    kind = settings.one("density.kind", rules.one_of((*KINDS, "both")), "both")
    kinds: tuple[Kind, ...] = tuple(one for one in KINDS if kind in (one, "both"))
    return Plan(
        name=head.name,
        servers=settings.each("load.servers", rules.server(servers)) or tuple(servers),
        kinds=kinds,
        asked=asked,
        connections=possible,
        why_fewer=why,
        launches=settings.one("repeat.launches", rules.number(1, MAX_LAUNCHES), DEFAULT_LAUNCHES),
        words=head.words,
        question=head.question,
        hypothesis=head.hypothesis,
    )


def source_ports(path: Path = PORT_RANGE) -> int | None:
    """How many connections to one address this network namespace has ports for (ip(7));
    None where the system does not tell."""
    try:
        low, high = map(int, path.read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return None
    return high - low + 1


def _possible(asked: int, file_limit: int, ports: int | None) -> tuple[int, str | None]:
    """How many of them this machine can have, and what stands in the way of the others."""
    limits = [(file_limit - SPARE_DESCRIPTORS, f"{file_limit} open files per process")]
    if ports is not None:
        limits.append((ports - SPARE_PORTS, f"{ports} source ports"))
    most, why = min(limits)
    if most < 1:
        raise WordError(f"density: no connection is possible here: {why}")
    return (asked, None) if asked <= most else (most, why)
