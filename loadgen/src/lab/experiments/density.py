"""What a connection costs in memory, while it is idle or has a request in flight.

Every connection sends one request and stays open. Each trial has another number of them on the same
JVM, and the memory of one is the slope.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lab.errors import WordError
from lab.experiments.kind import Outcome, ToMeasure, TrialKind, settings_of
from lab.experiments.order import Design, Listed, Planner, launches, turned
from lab.experiments.reading import Asked, Key, Word, read_load, rules
from lab.experiments.reading.load import Load
from lab.experiments.reading.settings import Given, Settings
from lab.judge.intervals import slope_of
from lab.load.held import SETTLE_S
from lab.model import (
    AS_IT_IS,
    HOLDS,
    Condition,
    Experiment,
    Finding,
    Hold,
    PerConnection,
    Row,
    TrialPlan,
)
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
LONGEST_DEADLINE_MS = next(one.most for one in KNOBS if one.name == "downstream_timeout_ms")
TOXIC = "in-flight"
KEYS = {"hold": Key(rules.one_of(HOLDS), "idle")}


@dataclass(frozen=True, slots=True)
class Density:
    """`hold`: what the connections do."""

    hold: Hold


def read(asked: Asked) -> ToMeasure:
    """The connections that a file describes. Raises WordError."""
    density = Density(**asked.settings.table("density", KEYS))
    route = ROUTES[density.hold]
    load = read_load(dataclasses.replace(asked, settings=_on(asked.settings, route)), ("closed",))
    load = dataclasses.replace(
        load,
        warmup_s=max(
            LEAST_OPENING_S, math.ceil(max(load.concurrencies) / OPENED_PER_S[density.hold])
        ),
        # No work of others takes memory of the server.
        patience_s=0,
    )
    _check(load, density)
    return load.experiment("density", density), load.notes


def _check(load: Load, density: Density) -> None:
    """Raises WordError for a load of which no slope can come out."""
    place, window_s = load.asked.settings.place, load.duration_s
    if len(load.concurrencies) < 2:
        raise WordError(
            f"{place}: {load.concurrencies[0]} connections alone have no slope; allowed: at least "
            "two numbers of connections"
        )
    if window_s <= SETTLE_S:
        raise WordError(
            f"{place}: the memory is read {SETTLE_S:g} s into the window, which takes {window_s} s "
            f"(DURATION × SCALE); allowed: at least {math.floor(SETTLE_S) + 1} s"
        )
    longest_s = LONGEST_DEADLINE_MS // DEADLINE // 1000 - ANSWER_S - (load.warmup_s or 0)
    if density.hold == "in-flight" and window_s > longest_s:
        raise WordError(
            f"{place}: requests cannot be in flight for a window of {window_s} s "
            f"(DURATION × SCALE); allowed: at most {longest_s} s with so many connections"
        )


def _on(settings: Settings, route: str) -> Settings:
    """The settings with the route that is asked for, and the usual window."""
    place = settings.place
    return settings.with_defaults(
        {
            "load.routes": Given(f"{place}: load.routes", (route,), by_user=False),
            "load.duration": Given(
                f"{place}: load.duration", (f"{DEFAULT_WINDOW_S}s",), by_user=False
            ),
        }
    )


def design(planner: Planner) -> Design:
    """On each JVM the fewest connections first; every other launch has the servers in reverse. What
    is invalid by accident is measured once more. Raises WordError."""
    experiment = planner.experiment
    hold = settings_of(Density, experiment).hold
    plans = [
        dataclasses.replace(plan, hold=hold)
        for launch in launches(experiment)
        for server in turned(experiment.servers, launch)
        for plan in _of_jvm(planner, server, launch)
    ]
    return Listed(planner.numbered(plans), repeats=True)


def _of_jvm(planner: Planner, server: str, launch: int) -> Iterator[TrialPlan]:
    experiment = planner.experiment
    condition = _condition(planner, server)
    for connections in sorted(experiment.concurrencies):
        yield planner.single(
            server,
            connections,
            launch=launch,
            condition=condition,
            duration_s=experiment.duration_s,
        )


def _condition(planner: Planner, server: str) -> Condition:
    """The lab in which so many requests wait at once: the answers of the downstream come after the
    load, so that none is left before the next trial. A pool has a thread for each."""
    experiment = planner.experiment
    if settings_of(Density, experiment).hold == "idle":
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
        _finding(name, server, [row for row in outcome.rows if row.valid and row.server == server])
        for server in outcome.experiment.servers
        for name in COLUMNS
    )


def _finding(name: str, server: str, rows: Sequence[Row]) -> Finding:
    points = [
        (float(row.concurrency), float(value))
        for row in rows
        if (value := getattr(row, COLUMNS[name])) is not None
    ]
    connections = [round(count) for count, _ in points]
    slope = None
    if len(set(connections)) > 1:
        slope = slope_of([count for count, _ in points], [value for _, value in points])
    interval = slope.interval if slope else None
    return PerConnection(
        name=name,
        server=server,
        launch=0,
        value=slope.per_s if slope else None,
        unit=UNIT,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        text="",
        trials=len(points),
        fewest=min(connections, default=0),
        most=max(connections, default=0),
    )


def answers(experiment: Experiment, found: Sequence[Finding]) -> tuple[tuple[str, ...], ...]:
    """A line for each server: heap and resident memory of a connection."""
    lines: list[tuple[str, ...]] = []
    for server in experiment.servers:
        mine = {one.name: one for one in found if one.server == server}
        if HEAP in mine:
            heap, resident = (_bytes(mine[name]) for name in (HEAP, RESIDENT))
            lines.append((server, f"{heap} B of heap each", f"{resident} B resident each"))
    return tuple(lines)


def _bytes(of: Finding) -> str:
    if of.value is None:
        return "unknown"
    if of.low is None or of.high is None:
        return f"{of.value:,.0f}"
    return f"{of.value:,.0f} [{of.low:,.0f}, {of.high:,.0f}]"


KIND = TrialKind(
    name="density",
    title="memory per open connection",
    uses=("load.servers", "load.concurrency", "load.duration", "repeat.launches"),
    keys=KEYS,
    words={"HOLD": Word("density.hold")},
    read=read,
    design=design,
    findings=findings,
    load_said="connections that send one request each and stay open",
    answers=answers,
    exact="it alone holds connections that have sent one request",
)
