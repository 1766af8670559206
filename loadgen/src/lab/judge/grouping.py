"""Rows in groups: lanes (the sides of a comparison), cells (the loads), one value per launch."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import replace
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from lab.judge.intervals import MedianOf, median_of
from lab.judge.time_split import mean_split
from lab.model import AGAIN, CpuSplit, Row, TimeSplit, TrialPlan, error_share, goodput

Metric = Literal["goodput_rps", "p50_ms", "p95_ms", "p99_ms", "raw_p95_ms", "cpu_server_us"]
# What is measured of a trial: a metric, or what is computed of its row. None where nothing tells.
Measure = Metric | Callable[[Row], float | None]


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


def named_lanes(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each lane, by a name that has its route and engine, too, where these differ."""
    lanes: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        lanes.setdefault((row.route, row.engine, lane_of(row)), []).append(row)
    routes, engines = (len({lane[at] for lane in lanes}) > 1 for at in (0, 1))
    return {
        " ".join([lane, *([route] if routes else []), *([engine] if engines else [])]): its
        for (route, engine, lane), its in lanes.items()
    }


def most_answered(rows: Sequence[Row]) -> tuple[list[Row], MedianOf] | None:
    """The valid rows of the load with most goodput, and its median over launches; None without."""
    cells: dict[Cell, list[Row]] = {}
    for row in without_shorter(rows):
        if row.valid and goodput(row) is not None:
            cells.setdefault(Cell.of(row), []).append(row)
    medians = ((its, median_per_launch(its, "goodput_rps")) for its in cells.values())
    known = [(its, median) for its, median in medians if median is not None]
    return max(known, key=lambda one: one[1].median, default=None)


def lane_of(row: Row | TrialPlan) -> str:
    """The lane of a trial: its server, or server@arm where the server is in arms (of an A/A
    comparison, or of conditions that were changed on purpose)."""
    return f"{row.server}@{row.arm}" if row.arm else row.server


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
    values: dict[tuple[str, int], list[float]] = {}
    for (run, _, launch), value in _of_jvms(rows, metric).items():
        if launch:
            values.setdefault((run, launch), []).append(value)
    return {one: statistics.median(of_one) for one, of_one in values.items()}


def _of_jvms(rows: Sequence[Row], metric: Measure) -> dict[tuple[str, str | None, int], float]:
    values: dict[tuple[str, str | None, int], list[float]] = {}
    for row in rows:
        value = measured(row, metric)
        if row.valid and value is not None:
            jvm = (row.run, row.arm, row.launch) if row.launch else ("", None, 0)
            values.setdefault(jvm, []).append(value)
    return {jvm: statistics.median(of_one) for jvm, of_one in values.items()}


def median_per_launch(rows: Sequence[Row], metric: Measure) -> MedianOf | None:
    """The median over launches; None where no valid row has a value."""
    values = per_launch(rows, metric)
    return median_of(values) if values else None


def of_load(rows: Iterable[Row], cell: Cell) -> Iterator[Row]:
    """The rows of a cell's load, of whatever length their windows are."""
    return (row for row in rows if Cell.of(row).any_window == cell.any_window)


@dataclass(frozen=True, slots=True)
class Tries:
    """The launches of one side at one load, of whatever length its windows are: `lost` have no
    valid trial that tells what is asked, and `again` have none that did at its first try."""

    launches: int
    again: int
    lost: int

    @classmethod
    def of(cls, rows: Sequence[Row], cell: Cell, metric: Measure) -> Tries:
        """Those of one side's rows at a cell's load, by what they tell of a metric. A trial that
        was repeated already is not measured again in a longer window: its launch is in the shorter
        cell only."""
        at_first: dict[tuple[str, str | None, int], list[bool]] = {}
        for row in of_load(rows, cell):
            tries = at_first.setdefault((row.run, row.arm, row.launch), [])
            if row.valid and measured(row, metric) is not None:
                tries.append(not row.trial.endswith(AGAIN))
        found = at_first.values()
        lost = sum(not tries for tries in found)
        return cls(len(found), sum(not any(tries) for tries in found) - lost, lost)

    @property
    def share(self) -> float:
        """The share of the launches that did not count at their first try."""
        return (self.again + self.lost) / self.launches if self.launches else 0.0


def bound_of(bounds: Iterable[float | None]) -> float | None:
    """The bound of several trials of one load: their median, or the lower of the two in the middle,
    so that some trial really had it. None where no trial had a bound."""
    known = [bound for bound in bounds if bound is not None]
    return statistics.median_low(known) if known else None


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
    their whole runs, None where no trial could tell. `closed_cpu` and `open_cpu` are medians of the
    valid trials of a mode: CPU time per answered request by part. `closed_time` and `open_time` are
    means of those valid trials whose parts are known, so that they add up: where the mean time of a
    request went. `closed_s` and `open_s` are the planned lengths of the windows, None without a
    trial of that mode. `valid` of `trials` are valid."""

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
    places = dict.fromkeys((row.route, row.engine, row.concurrency) for row in rows)
    lanes = dict.fromkeys(map(lane_of, rows))
    found = []
    for place in places:
        here = [row for row in rows if (row.route, row.engine, row.concurrency) == place]
        of_modes = (
            dict.fromkeys(Cell.of(row).any_warmup for row in here if row.mode == mode)
            for mode in ("closed", "open")
        )
        for cells in zip_longest(*of_modes):
            for lane in lanes:
                mine = [row for row in here if lane_of(row) == lane]
                closed, opened = (
                    [row for row in mine if Cell.of(row).any_warmup == one] for one in cells
                )
                if closed or opened:
                    found.append(_load(lane, closed, opened))
    return tuple(found)


def _load(lane: str, closed: Sequence[Row], opened: Sequence[Row]) -> Load:
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
        offered_rps=opened[0].offered_rps if opened else None,
        bound_rps=bound_of(bounds),
        closed_rps=median_per_launch(closed, "goodput_rps"),
        closed_p95_ms=median_per_launch(closed, "raw_p95_ms"),
        open_rps=median_per_launch(opened, "goodput_rps"),
        open_p95_ms=median_per_launch(opened, "p95_ms"),
        open_raw_p95_ms=median_per_launch(opened, "raw_p95_ms"),
        errors=sum(errors) if errors else None,
        error_share=most_errors(both),
        closed_cpu=_cpu(closed),
        open_cpu=_cpu(opened),
        closed_time=mean_split(row for row in closed if row.valid),
        open_time=mean_split(row for row in opened if row.valid),
        closed_s=closed[0].duration_s if closed else None,
        open_s=opened[0].duration_s if opened else None,
        valid=sum(row.valid for row in both),
        trials=len(both),
    )


def _cpu(rows: Sequence[Row]) -> CpuSplit:
    medians = {}
    for name in CpuSplit.columns():
        values = (getattr(row, name) for row in rows if row.valid)
        known = [value for value in values if value is not None]
        medians[name] = statistics.median(known) if known else None
    return CpuSplit(**medians)
