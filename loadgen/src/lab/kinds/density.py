"""What a connection costs in memory, while it is idle or has a request in flight.

Every connection sends one request and stays open. Each trial has another number of them on the same
JVM, and the memory of one is the slope.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence

from msgspec import Struct

from lab.errors import WordError
from lab.judge.intervals import slope_of
from lab.kinds.kind import Kind, Outcome, ToMeasure, ends, settings_of
from lab.kinds.order import Design, Listed, Planner, launches, turned
from lab.kinds.reading import Asked, read_load
from lab.kinds.reading.settings import MAX_DURATION_S
from lab.load.held import SETTLE_S
from lab.model import AS_IT_IS, Condition, Finding, Hold, PerConnection, Row
from lab.model.knobs import KNOBS

# The column of each finding.
COLUMNS = {
    "live heap per connection": "live_heap_bytes",
    "resident memory per connection": "resident_bytes",
}
# What each connection asks for once.
ROUTES: dict[Hold, str] = {"idle": "/health", "in-flight": "/downstream"}
# Two full collections of a large heap on a busy machine, and a margin.
DEFAULT_WINDOW_S = 8
# What is set up each second at least: pacer opens 2,000, and a busy Toxiproxy takes some 300.
OPENED_PER_S: dict[Hold, int] = {"idle": 1000, "in-flight": 200}
LEAST_OPENING_S = 4
# The first answer comes so long after the end of the load.
ANSWER_S = 10
# The servers' deadline is so many times as long.
DEADLINE = 2
LONGEST_DEADLINE_MS = next(knob.most for knob in KNOBS if knob.name == "downstream_timeout_ms")
TOXIC = "in-flight"


class Density(Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of [density]: what the connections do."""

    hold: Hold = "idle"


def read(asked: Asked) -> ToMeasure:
    """The connections that a file describes. Raises WordError for a load without a slope."""
    density = asked.settings.table("density", Density)
    hold, place = density.hold, asked.settings.place
    usual = {"load.routes": ROUTES[hold], "load.duration": f"{DEFAULT_WINDOW_S}s"}
    settings = asked.settings.with_defaults(usual)
    load = read_load(copy.replace(asked, settings=settings), ("closed",), exact=True)
    connections, window_s = load.draft.concurrencies, load.draft.duration_s
    opening_s = max(LEAST_OPENING_S, math.ceil(max(connections) / OPENED_PER_S[hold]))
    if len(connections) < 2:
        raise WordError(f"{place}: one number of connections has no slope; allowed: two or more")
    least_s, most_s = math.floor(SETTLE_S) + 1, MAX_DURATION_S
    if hold == "in-flight":
        most_s = LONGEST_DEADLINE_MS // DEADLINE // 1000 - ANSWER_S - opening_s
    if not least_s <= window_s <= most_s:
        raise WordError(
            f"{place}: a window of {window_s} s (DURATION × SCALE) is not allowed: the memory is "
            f"read {SETTLE_S:g} s into it, and requests cannot be in flight for longer than the "
            f"longest deadline; allowed: {least_s}..{most_s} s with so many connections"
        )
    # No work of others takes memory of the server.
    return load.experiment("density", density, warmup_s=opening_s, patience_s=0), load.notes


def design(planner: Planner) -> Design:
    """On each JVM the fewest connections first; every other launch has the servers in reverse. What
    is invalid by accident is measured once more. Raises WordError."""
    experiment = planner.experiment
    hold = settings_of(Density, experiment).hold
    plans = [
        planner.single(
            server,
            connections,
            launch=launch,
            condition=_condition(planner, server) if hold == "in-flight" else AS_IT_IS,
            duration_s=experiment.duration_s,
            hold=hold,
        )
        for launch in launches(experiment)
        for server in turned(experiment.servers, launch)
        for connections in sorted(experiment.concurrencies)
    ]
    return Listed(planner.numbered(plans), repeats=True)


def _condition(planner: Planner, server: str) -> Condition:
    """The lab in which so many requests wait at once: the answers of the downstream come after the
    load, so that none is left before the next trial. A pool has a thread for each."""
    experiment = planner.experiment
    answer_ms = 1000 * ((experiment.warmup_s or 0) + experiment.duration_s + ANSWER_S)
    knobs = {"downstream_timeout_ms": DEADLINE * answer_ms}
    size = planner.snapshots[server].setting("pool_size")
    if size is not None:
        knobs["pool_size"] = max(int(size), *experiment.concurrencies)
    toxic = {"TYPE": "latency", "NAME": TOXIC, "LATENCY": str(answer_ms)}
    return Condition(knobs=knobs, toxics=(toxic,))


def findings(outcome: Outcome) -> Iterator[Finding]:
    """The slopes of live heap and resident memory over connections, of each server."""
    for server in outcome.experiment.servers:
        rows = [row for row in outcome.of(server) if row.valid]
        yield from (_finding(name, server, rows) for name in COLUMNS)


def _finding(name: str, server: str, rows: Sequence[Row]) -> Finding:
    points = [(row.concurrency, getattr(row, COLUMNS[name])) for row in rows]
    points = [(connections, size) for connections, size in points if size is not None]
    connections = [count for count, _ in points]
    value = low = high = None
    if len({*connections}) > 1:
        slope = slope_of([*map(float, connections)], [float(size) for _, size in points])
        value, (low, high) = slope.per_s, ends(slope.interval)
    return PerConnection(
        *(name, server, 0, value, "bytes/connection", low, high),
        trials=len(points),
        fewest=min(connections, default=0),
        most=max(connections, default=0),
    )


KIND = Kind(
    name="density",
    title="memory per open connection",
    uses=("load.servers", "load.concurrency", "load.duration", "repeat.launches"),
    table=Density,
    words={"HOLD": "density.hold"},
    target=False,
    read=read,
    design=design,
    findings=findings,
)
