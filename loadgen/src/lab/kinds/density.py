"""What a connection costs in memory, while it is idle or has a request in flight.

Every connection sends one request and stays open. Each trial has another number of them on the same
JVM, and the memory of one is the slope.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

from msgspec import Struct

from lab.errors import WordError
from lab.judge.intervals import slope_of
from lab.kinds.kind import Kind, Outcome, ToMeasure, ends, settings_of
from lab.kinds.order import Design, Listed, Planner, launches, turned
from lab.kinds.reading import Asked, read_load
from lab.kinds.reading.settings import MAX_DURATION_S
from lab.load.held import SETTLE_S
from lab.model import AS_IT_IS, Condition, Experiment, Finding, Hold, PerConnection, Row
from lab.model.knobs import KNOBS

# The names of the findings, each with its column.
HEAP, RESIDENT = "live heap per connection", "resident memory per connection"
COLUMNS = {HEAP: "live_heap_bytes", RESIDENT: "resident_bytes"}
UNIT = "bytes/connection"
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


class Density(Struct, frozen=True):
    """The keys of [density]: what the connections do."""

    hold: Hold = "idle"


def read(asked: Asked) -> ToMeasure:
    """The connections that a file describes. Raises WordError."""
    density = asked.settings.table("density", Density)
    hold = density.hold
    usual = {"load.routes": ROUTES[hold], "load.duration": f"{DEFAULT_WINDOW_S}s"}
    settings = asked.settings.with_defaults(usual)
    load = read_load(copy.replace(asked, settings=settings), ("closed",), exact=True)
    opening_s = math.ceil(max(load.draft.concurrencies) / OPENED_PER_S[hold])
    # No work of others takes memory of the server.
    changes = {"warmup_s": max(LEAST_OPENING_S, opening_s), "patience_s": 0}
    experiment = load.experiment("density", density, **changes)
    _check(experiment, hold, settings.place)
    return experiment, load.notes


def _check(experiment: Experiment, hold: Hold, place: str) -> None:
    """Raises WordError for a load of which no slope can come out."""
    window_s = experiment.duration_s
    if len(experiment.concurrencies) < 2:
        raise WordError(f"{place}: one number of connections has no slope; allowed: two or more")
    least_s, most_s = math.floor(SETTLE_S) + 1, MAX_DURATION_S
    if hold == "in-flight":
        most_s = LONGEST_DEADLINE_MS // DEADLINE // 1000 - ANSWER_S - (experiment.warmup_s or 0)
    if not least_s <= window_s <= most_s:
        raise WordError(
            f"{place}: a window of {window_s} s (DURATION × SCALE) is not allowed: the memory is "
            f"read {SETTLE_S:g} s into it, and requests cannot be in flight for longer than the "
            f"longest deadline; allowed: {least_s}..{most_s} s with so many connections"
        )


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
            condition=_condition(planner, server, hold),
            duration_s=experiment.duration_s,
            hold=hold,
        )
        for launch in launches(experiment)
        for server in turned(experiment.servers, launch)
        for connections in sorted(experiment.concurrencies)
    ]
    return Listed(planner.numbered(plans), repeats=True)


def _condition(planner: Planner, server: str, hold: Hold) -> Condition:
    """The lab in which so many requests wait at once: the answers of the downstream come after the
    load, so that none is left before the next trial. A pool has a thread for each."""
    experiment = planner.experiment
    if hold == "idle":
        return AS_IT_IS
    answer_ms = 1000 * ((experiment.warmup_s or 0) + experiment.duration_s + ANSWER_S)
    knobs = {"downstream_timeout_ms": DEADLINE * answer_ms}
    size = planner.snapshots[server].setting("pool_size")
    if size is not None:
        knobs["pool_size"] = max(int(size), *experiment.concurrencies)
    toxic = {"TYPE": "latency", "NAME": TOXIC, "LATENCY": str(answer_ms)}
    return Condition(knobs=knobs, toxics=(toxic,))


def findings(outcome: Outcome) -> tuple[Finding, ...]:
    """The slopes of live heap and resident memory over connections, of each server."""
    return tuple(
        _finding(name, server, [row for row in outcome.of(server) if row.valid])
        for server in outcome.experiment.servers
        for name in COLUMNS
    )


def _finding(name: str, server: str, rows: Sequence[Row]) -> Finding:
    column = COLUMNS[name]
    rows = [row for row in rows if getattr(row, column) is not None]
    connections = [row.concurrency for row in rows]
    value = low = high = None
    if len({*connections}) > 1:
        slope = slope_of([*map(float, connections)], [float(getattr(row, column)) for row in rows])
        value, (low, high) = slope.per_s, ends(slope.interval)
    return PerConnection(
        *(name, server, 0, value, UNIT, low, high),
        trials=len(rows),
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
