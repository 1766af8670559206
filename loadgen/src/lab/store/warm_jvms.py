"""What runs found out of the JVMs that still run, in a file beside the runs.

A JVM stays warm until it ends, so a run need not prove again what a run before it has proven. The
file only spares time: one that is missing or cannot be read is as good as an empty one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lab.errors import RawDataError
from lab.model import Demand, Json, Snapshot, Warmth
from lab.store.records import UNREADABLE, from_json, json_value, read_bytes, write_json


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a request at one moment, under a closed load of `connections` by `engine`.

    `server` was read back then, and `host` is the machine as make found it. `demand` is None where
    nobody could tell it.
    """

    at: datetime
    engine: str
    connections: int
    server: Snapshot
    host: Mapping[str, Json]
    demand: Demand | None


@dataclass(frozen=True, slots=True)
class WarmJvm:
    """The JVM of `server` that started at `started_ms`, proven warm on `route` under a load of
    `connections`; the warmth names the run. `cost` is the newest one."""

    server: str
    started_ms: int
    route: str
    connections: int
    warmth: Warmth
    cost: Cost


def find(path: Path, server: str, started_ms: int, route: str) -> WarmJvm | None:
    """What is known of this JVM and route; None: nothing."""
    return next((jvm for jvm in _all(path) if _key(jvm) == (server, started_ms, route)), None)


def remember(path: Path, jvm: WarmJvm) -> None:
    """Keep this beside what is known of other JVMs and routes. A JVM of the same server that
    started at another time has ended, and is forgotten. Raises CannotWrite."""
    kept = [
        one
        for one in _all(path)
        if one.server != jvm.server or (one.started_ms == jvm.started_ms and one.route != jvm.route)
    ]
    write_json(path, [*kept, jvm])


def _key(jvm: WarmJvm) -> tuple[str, int, str]:
    return jvm.server, jvm.started_ms, jvm.route


def _all(path: Path) -> Iterator[WarmJvm]:
    try:
        found = json_value(read_bytes(path))
    except (*UNREADABLE, RawDataError):
        return
    for one in found if isinstance(found, list) else []:
        try:
            yield from_json(WarmJvm, one)
        except UNREADABLE:
            continue
