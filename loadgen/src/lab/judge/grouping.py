"""Rows in groups: lanes (the sides of a comparison), cells (the loads), one value per launch."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Literal

from lab.judge.intervals import MedianOf, median_of
from lab.judge.metrics import without_none
from lab.model import AGAIN, CpuSplit, Row, TimeSplit, TrialPlan, error_share, goodput

Metric = Literal["goodput_rps", "p50_ms", "p95_ms", "p99_ms", "raw_p95_ms", "cpu_server_us"]
# What is measured of a trial: a metric, or what is computed of its row. None if unknown.
Measure = Metric | Callable[[Row], float | None]
# A fresh JVM: its run, its arm and its number there.
Launch = tuple[str, str | None, int]


@dataclass(frozen=True, slots=True)
class Cell:
    """One load: trials of the same cell may be compared, and launches of it pooled. `duration_s`
    and `warmup_s` are as planned; None is the warm-up that the engine needs."""

    route: str
    engine: str
    mode: str
    concurrency: int
    offered_rps: int | None
    duration_s: int | None = None
    warmup_s: int | None = None

    @classmethod
    def of(cls, row: Row) -> Cell:
        load = row.route, row.engine, row.mode, row.concurrency, row.offered_rps
        return cls(*load, row.duration_s, row.warmup_s)

    @property
    def any_window(self) -> Cell:
        """The same load, of whatever length its windows are."""
        return replace(self, duration_s=None)

    @property
    def any_warmup(self) -> Cell:
        """The same load, however long it was warmed up."""
        return replace(self, warmup_s=None)


def grouped[K: Hashable](rows: Iterable[Row], key: Callable[[Row], K]) -> dict[K, list[Row]]:
    """The rows by that key, in the order of the first of each."""
    groups: dict[K, list[Row]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return dict(groups)


def lane_of(row: Row | TrialPlan) -> str:
    """The lane of a trial: its server, or server@arm where the server is in arms (of an A/A
    comparison, or of conditions that were changed on purpose)."""
    return f"{row.server}@{row.arm}" if row.arm else row.server


def named_lanes(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each lane, by a name that has its route and engine, too, where these differ."""
    routes, engines = {row.route for row in rows}, {row.engine for row in rows}

    def name(row: Row) -> str:
        route = row.route if len(routes) > 1 else ""
        engine = row.engine if len(engines) > 1 else ""
        return " ".join(filter(None, (lane_of(row), route, engine)))

    return grouped(rows, name)


def without_shorter(rows: Sequence[Row]) -> list[Row]:
    """The rows without those in whose place their load was measured again in a longer window."""
    again = {
        (row.run, row.trial.removesuffix(AGAIN)): row.duration_s
        for row in rows
        if row.trial.endswith(AGAIN)
    }
    return [
        row for row in rows if again.get((row.run, row.trial), row.duration_s) == row.duration_s
    ]


def most_answered(rows: Sequence[Row]) -> tuple[list[Row], MedianOf] | None:
    """The valid rows of the load with most goodput, and its median over launches; None without."""
    valid = [row for row in without_shorter(rows) if row.valid and goodput(row) is not None]
    answered = [
        (group, median)
        for group in grouped(valid, Cell.of).values()
        if (median := median_per_launch(group, "goodput_rps")) is not None
    ]
    return max(answered, key=lambda pair: pair[1].median, default=None)


def measured(row: Row, metric: Measure) -> float | None:
    """The trial's value of this metric; None where there is none."""
    if not isinstance(metric, str):
        return metric(row)
    return goodput(row) if metric == "goodput_rps" else getattr(row, metric)


def per_launch(rows: Sequence[Row], metric: Measure) -> tuple[float, ...]:
    """One value for each fresh JVM in these rows, in their order. Invalid rows have no value.

    Trials of one JVM are not independent, so their median counts. JVMs that ran already (launch 0)
    cannot be told apart, and count as one JVM, whatever their run.
    """
    return tuple(_of_jvms(rows, metric).values())


def per_round(rows: Sequence[Row], metric: Measure) -> dict[tuple[str, int], float]:
    """One value for each run and launch of fresh JVMs: the median of its JVMs in these rows."""
    values: dict[tuple[str, int], list[float]] = defaultdict(list)
    for (run, _, launch), value in _of_jvms(rows, metric).items():
        if launch:
            values[run, launch].append(value)
    return {launch: statistics.median(jvms) for launch, jvms in values.items()}


def _of_jvms(rows: Sequence[Row], metric: Measure) -> dict[Launch, float]:
    values: dict[Launch, list[float]] = defaultdict(list)
    for row in rows:
        value = measured(row, metric)
        if row.valid and value is not None:
            jvm = (row.run, row.arm, row.launch) if row.launch else ("", None, 0)
            values[jvm].append(value)
    return {jvm: statistics.median(trials) for jvm, trials in values.items()}


def median_per_launch(rows: Sequence[Row], metric: Measure) -> MedianOf | None:
    """The median over launches; None where no valid row has a value."""
    values = per_launch(rows, metric)
    return median_of(values) if values else None


@dataclass(frozen=True, slots=True)
class Tries:
    """The launches of one side at one load, of whatever length its windows are: `lost` have no
    valid trial with the figure that is asked for, and `again` have none at their first try."""

    launches: int
    again: int
    lost: int

    @classmethod
    def from_rows(cls, rows: Sequence[Row], metric: Measure) -> Tries:
        """A trial that was repeated already is not measured again in a longer window: its launch is
        in the shorter cell only."""
        launches = grouped(rows, lambda row: (row.run, row.arm, row.launch)).values()
        valid = [
            [row for row in trials if row.valid and measured(row, metric) is not None]
            for trials in launches
        ]
        lost = sum(not trials for trials in valid)
        late = sum(all(row.trial.endswith(AGAIN) for row in trials) for trials in valid)
        return cls(len(launches), late - lost, lost)

    @property
    def share(self) -> float:
        """The share of the launches that did not count at their first try."""
        return (self.again + self.lost) / self.launches if self.launches else 0.0


def bound_of(bounds: Iterable[float | None]) -> float | None:
    """The bound of several trials of one load: their median, or the lower of the two in the middle,
    so that some trial really had it. None where no trial had a bound."""
    there = without_none(*bounds)
    return statistics.median_low(there) if there else None


def most_errors(rows: Sequence[Row]) -> float:
    """The largest share of errors in a valid trial of these, 0 without any."""
    return max((error_share(row, row.offered_rps) for row in rows if row.valid), default=0.0)


def usual_errors(rows: Iterable[Row]) -> float:
    """The median share of errors in the valid trials of these, 0 without any."""
    shares = [error_share(row, row.offered_rps) for row in rows if row.valid]
    return statistics.median(shares) if shares else 0.0


@dataclass(frozen=True, slots=True)
class Load:
    """The closed and the open trials of one lane at one load, side by side.

    `bound_rps` is predicted for the closed load, or for the open load where there is no closed one.
    Medians are over launches, of valid trials only; None without any. `…_rps` are goodput.
    Latencies are of answers without an error, so `error_share` is given too: the largest share of
    errors in a valid trial. `errors` are HTTP errors, socket errors and timeouts of all trials in
    their whole runs, None if unknown. `closed_cpu` and `open_cpu` are medians of the valid trials
    of a mode: CPU time per answered request by part. `closed_time` and `open_time` are means of
    those valid trials whose parts are known, so that they add up: where the mean time of a request
    went. `closed_s` and `open_s` are the planned lengths of the windows, None without a trial of
    that mode. `valid` of `trials` are valid."""

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
    closed_cpu: CpuSplit
    open_cpu: CpuSplit
    closed_time: TimeSplit
    open_time: TimeSplit
    closed_s: int | None
    open_s: int | None
    valid: int
    trials: int


def loads(rows: Sequence[Row]) -> tuple[Load, ...]:
    """All loads, by route, engine, concurrency and offered rate in the order of their first trials,
    and then by lane. A closed load goes with the first rate offered at its concurrency.

    Trials with windows of another length are another load: what grows with the window, such as the
    p95 of an overloaded load, is of one length. Their warm-ups may differ. What was measured again
    in a longer window counts in that one only."""
    rows = without_shorter(rows)
    lanes = grouped(rows, lane_of)
    table = []
    for here in grouped(rows, lambda row: (row.route, row.engine, row.concurrency)).values():
        cells = grouped(here, lambda row: Cell.of(row).any_warmup).values()
        modes = ([rows for rows in cells if rows[0].mode == mode] for mode in ("closed", "open"))
        for closed, opened in zip_longest(*modes, fillvalue=[]):
            for lane in lanes:
                sides = [[row for row in rows if lane_of(row) == lane] for rows in (closed, opened)]
                if any(sides):
                    table.append(_load(lane, *sides))
    return tuple(table)


def _load(lane: str, closed: Sequence[Row], opened: Sequence[Row]) -> Load:
    both = (*closed, *opened)
    counts = ((row.http_errors, row.socket_errors, row.timeouts) for row in both)
    errors = [error for count in counts for error in without_none(*count)]
    return Load(
        lane=lane,
        route=both[0].route,
        engine=both[0].engine,
        concurrency=both[0].concurrency,
        offered_rps=opened[0].offered_rps if opened else None,
        bound_rps=bound_of(row.predicted_rps for row in closed or opened),
        closed_rps=median_per_launch(closed, "goodput_rps"),
        closed_p95_ms=median_per_launch(closed, "raw_p95_ms"),
        open_rps=median_per_launch(opened, "goodput_rps"),
        open_p95_ms=median_per_launch(opened, "p95_ms"),
        open_raw_p95_ms=median_per_launch(opened, "raw_p95_ms"),
        errors=sum(errors) if errors else None,
        error_share=most_errors(both),
        closed_cpu=_pooled(CpuSplit, closed, statistics.median),
        open_cpu=_pooled(CpuSplit, opened, statistics.median),
        closed_time=_pooled(TimeSplit, _timed(closed), statistics.fmean),
        open_time=_pooled(TimeSplit, _timed(opened), statistics.fmean),
        closed_s=closed[0].duration_s if closed else None,
        open_s=opened[0].duration_s if opened else None,
        valid=sum(row.valid for row in both),
        trials=len(both),
    )


def _timed(rows: Sequence[Row]) -> list[Row]:
    """Those whose parts of the time are known."""
    return [row for row in rows if row.time_own_ms is not None]


def _pooled[S: (CpuSplit, TimeSplit)](
    kind: type[S], rows: Sequence[Row], middle: Callable[[Sequence[float]], float]
) -> S:
    """The middle of each part over the valid trials that have it."""
    valid = [row for row in rows if row.valid]
    parts = {name: without_none(*(getattr(row, name) for row in valid)) for name in kind.columns()}
    return kind(**{name: middle(values) for name, values in parts.items() if values})
