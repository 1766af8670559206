"""Rows put in order: by lane (what is compared), by cell (the load), a value per launch. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from lab.judge.intervals import MedianOf, median_of
from lab.model import Row, error_share, goodput

Metric = Literal["goodput_rps", "achieved_rps", "p95_ms", "raw_p95_ms"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One load: trials of the same cell may be compared, and launches of it pooled."""

    route: str
    engine: str
    mode: str
    concurrency: int
    offered_rps: int | None

    @classmethod
    def of(cls, row: Row) -> Cell:
        """The cell of a trial."""
        return cls(row.route, row.engine, row.mode, row.concurrency, row.offered_rps)


def lane_of(row: Row) -> str:
    """What a trial says something about: its server, as server@arm where that is in arms (of an
    A/A comparison, or of conditions that were changed on purpose)."""
    return f"{row.server}@{row.arm}" if row.arm else row.server


def measured(row: Row, metric: Metric) -> float | None:
    """The trial's number of this metric; None where there is none."""
    return goodput(row) if metric == "goodput_rps" else getattr(row, metric)


def per_launch(rows: Sequence[Row], metric: Metric) -> tuple[float, ...]:
    """One value for each fresh JVM in these rows, in their order; invalid rows have none.

    Trials of one JVM are not independent: of several, their median counts. JVMs that ran
    already (launch 0) cannot be told from each other and count as one, whatever their run.
    """
    values: dict[tuple[str, str | None, int], list[float]] = {}
    for row in rows:
        value = measured(row, metric)
        if row.valid and value is not None:
            jvm = (row.run, row.arm, row.launch) if row.launch else ("", None, 0)
            values.setdefault(jvm, []).append(value)
    return tuple(statistics.median(of_one) for of_one in values.values())


def median_per_launch(rows: Sequence[Row], metric: Metric) -> MedianOf | None:
    """The median over launches; None where no valid row has a value."""
    values = per_launch(rows, metric)
    return median_of(values) if values else None


def bound_of(bounds: Iterable[float | None]) -> float | None:
    """The bound of several trials of one load: one that a trial really had, the middle one where
    they had several (the lower of two); None where none had any."""
    known = [bound for bound in bounds if bound is not None]
    return statistics.median_low(known) if known else None


def most_errors(rows: Sequence[Row]) -> float:
    """The largest share of errors in a valid one of these trials, 0 without any: latencies are of
    all answers, errors included."""
    return max((error_share(row, row.offered_rps) for row in rows if row.valid), default=0.0)


@dataclass(frozen=True, slots=True)
class Load:
    """The closed and the open trials of one lane at one load, side by side.

    `bound_rps` is what was predicted for the closed load (for the open one where there is no
    closed). Medians are over launches, of valid trials only; None without any. `…_rps` are
    goodput; latencies are of all answers, so `error_share` stands beside them: the largest share
    of errors in a valid trial. `errors` are HTTP errors, socket errors and timeouts of all trials
    in their whole runs, None where no trial could tell. `valid` of `trials` are valid.
    """

    lane: str
    route: str
    engine: str
    concurrency: int
    offered_rps: int | None
    bound_rps: float | None
    closed_rps: MedianOf | None
    closed_p95_ms: MedianOf | None
    open_rps: MedianOf | None
    open_p95_ms: MedianOf | None
    open_raw_p95_ms: MedianOf | None
    errors: int | None
    error_share: float
    valid: int
    trials: int


def loads(rows: Sequence[Row]) -> tuple[Load, ...]:
    """All loads: by route, engine, concurrency and offered rate as they first appear, lanes
    innermost. A closed load stands beside the first rate offered at its concurrency."""
    places = dict.fromkeys((row.route, row.engine, row.concurrency) for row in rows)
    lanes = dict.fromkeys(map(lane_of, rows))
    found = []
    for place in places:
        here = [row for row in rows if (row.route, row.engine, row.concurrency) == place]
        rates = dict.fromkeys(row.offered_rps for row in here if row.offered_rps is not None)
        for index, rate in enumerate(rates or [None]):
            for lane in lanes:
                mine = [row for row in here if lane_of(row) == lane]
                closed = [row for row in mine if row.mode == "closed" and index == 0]
                opened = [row for row in mine if row.mode == "open" and row.offered_rps == rate]
                if closed or opened:
                    found.append(_load(lane, rate, closed, opened))
    return tuple(found)


def _load(lane: str, rate: int | None, closed: Sequence[Row], opened: Sequence[Row]) -> Load:
    both = (*closed, *opened)
    bounds = [row.predicted_rps for row in closed or opened]
    errors = [
        count
        for row in both
        for count in (row.http_errors, row.socket_errors, row.timeouts)
        if count is not None
    ]
    return Load(
        lane=lane,
        route=both[0].route,
        engine=both[0].engine,
        concurrency=both[0].concurrency,
        offered_rps=rate,
        bound_rps=bound_of(bounds),
        closed_rps=median_per_launch(closed, "goodput_rps"),
        closed_p95_ms=median_per_launch(closed, "raw_p95_ms"),
        open_rps=median_per_launch(opened, "goodput_rps"),
        open_p95_ms=median_per_launch(opened, "p95_ms"),
        open_raw_p95_ms=median_per_launch(opened, "raw_p95_ms"),
        errors=sum(errors) if errors else None,
        error_share=most_errors(both),
        valid=sum(row.valid for row in both),
        trials=len(both),
    )
