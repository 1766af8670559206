"""What runs found out of the JVMs that still run, in a file beside the runs.

A JVM stays warm until it ends, so a run need not prove again what a run before it has proven. The
file only spares time: one that is missing or cannot be read is as good as an empty one.
"""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from lab.errors import RawDataError
from lab.model import Demand, Json, Record, Snapshot, Warmth
from lab.store.records import read_json, write_json


class Cost(Record):
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


class WarmJvm(Record):
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
    known = {(jvm.server, jvm.started_ms, jvm.route): jvm for jvm in _all(path)}
    return known.get((server, started_ms, route))


def remember(path: Path, jvm: WarmJvm) -> None:
    """Keep this beside what is known of other JVMs and routes. A JVM of the same server that
    started at another time has ended, and is forgotten. Raises CannotWrite."""

    def stays(known: WarmJvm) -> bool:
        same = known.started_ms == jvm.started_ms and known.route != jvm.route
        return known.server != jvm.server or same

    write_json(path, [*filter(stays, _all(path)), jvm])


def _all(path: Path) -> list[WarmJvm]:
    try:
        return read_json(path, list[WarmJvm])
    except RawDataError:
        return []
