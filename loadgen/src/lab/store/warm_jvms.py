"""What runs found out of the JVMs that still run, in a file beside the runs.

A JVM stays warm until it ends, so a run need not prove again what a run before it has proven. The
file only spares time: one that is missing or cannot be read is as good as an empty one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lab.model import Demand, Snapshot, Warmth
from lab.store.records import UNREADABLE, from_json, write_json


@dataclass(frozen=True, slots=True)
class WarmJvm:
    """The JVM of `server` that started at `started_ms`, proven warm on `route` by `run` under a
    load of `connections`. `demand` is what a request cost then, with `engine` and as `server_then`
    was read back; None: unknown."""

    server: str
    started_ms: int
    route: str
    connections: int
    run: str
    at: datetime
    warmth: Warmth
    engine: str
    demand: Demand | None
    server_then: Snapshot


def find(path: Path, server: str, started_ms: int, route: str) -> WarmJvm | None:
    """What is known of this JVM and route; None: nothing."""
    wanted = (server, started_ms, route)
    return next((one for one in _all(path) if _key(one) == wanted), None)


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


def _all(path: Path) -> list[WarmJvm]:
    try:
        return [from_json(WarmJvm, one) for one in json.loads(path.read_text())]
    except UNREADABLE:
        return []
