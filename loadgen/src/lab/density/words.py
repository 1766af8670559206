"""The words of `density` as a Plan, or one line saying what is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.config import SPARE_DESCRIPTORS, refuse_unknown
from lab.density.model import KINDS, Kind, Plan
from lab.errors import WordError

DENSITY_WORDS = ("CONNECTIONS", "SERVER", "KIND", "LAUNCHES", "NAME")
DEFAULT_CONNECTIONS = 8000
DEFAULT_LAUNCHES = 3
MAX_LAUNCHES = 100
# Ports that other connections to the same server may hold.
SPARE_PORTS = 500
PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


def density_plan(
    words: Mapping[str, str], servers: Sequence[str], file_limit: int, ports: int | None
) -> Plan:
    """The words as a Plan. `file_limit` is how many files one process may hold open, `ports`
    how many connections one address can have (None: unknown). Raises WordError."""
    refuse_unknown(words, DENSITY_WORDS, "density")
    asked = _number(words, "CONNECTIONS", DEFAULT_CONNECTIONS, 1_000_000)
    possible, why = _possible(asked, file_limit, ports)
    kind = words.get("KIND", "both")
    if kind not in (*KINDS, "both"):
        raise WordError(f"density: KIND={kind} is not allowed; allowed: {', '.join(KINDS)}, both")
    name = words.get("NAME", "density")
    if not _NAME.fullmatch(name):
        raise WordError(
            f"density: NAME={name} is not allowed; allowed: up to 40 of a-z, 0-9 and '-', "
            "starting with a letter or digit"
        )
    kinds: tuple[Kind, ...] = tuple(one for one in KINDS if kind in (one, "both"))
    return Plan(
        name=name,
        servers=_servers(words, servers),
        kinds=kinds,
        asked=asked,
        connections=possible,
        why_fewer=why,
        launches=_number(words, "LAUNCHES", DEFAULT_LAUNCHES, MAX_LAUNCHES),
        words=tuple(f"{key}={value}" for key, value in words.items()),
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


def _servers(words: Mapping[str, str], servers: Sequence[str]) -> tuple[str, ...]:
    given = words.get("SERVER")
    if given is None:
        return tuple(servers)
    chosen = tuple(given.split(","))
    if len(set(chosen)) != len(chosen):
        raise WordError(f"density: SERVER={given} names the same twice")
    for one in chosen:
        if one not in servers:
            raise WordError(
                f"density: SERVER={one} is not a server of the lab; allowed: {', '.join(servers)}"
            )
    return chosen


def _number(words: Mapping[str, str], key: str, default: int, most: int) -> int:
    given = words.get(key, str(default))
    if not re.fullmatch(r"[1-9][0-9]{0,6}", given) or int(given) > most:
        raise WordError(f"density: {key}={given} is not allowed; allowed: 1..{most}")
    return int(given)
