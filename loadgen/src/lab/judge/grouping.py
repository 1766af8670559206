"""Rows in groups: lanes (the sides of a comparison), cells (the loads), one value per launch."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import replace
from dataclasses import dataclass

from lab.judge.intervals import MedianOf, median_of
from lab.model import AGAIN, Row, TrialPlan, error_share, goodput

# A figure of a trial; None if unknown.
Measure = Callable[[Row], float | None]
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
        if (median := median_per_launch(group, goodput)) is not None
    ]
    return max(answered, key=lambda pair: pair[1].median, default=None)


def launch_of(row: Row) -> Launch:
    return row.run, row.arm, row.launch


def per_launch(rows: Sequence[Row], measure: Measure) -> tuple[float, ...]:
    """One value for each fresh JVM in these rows, in their order. Invalid rows have no value.

    Trials of one JVM are not independent, so their median counts. JVMs that ran already (launch 0)
    cannot be told apart, and count as one JVM, whatever their run.
    """
    return tuple(_of_jvms(rows, measure).values())


def per_round(rows: Sequence[Row], measure: Measure) -> dict[tuple[str, int], float]:
    """One value for each run and launch of fresh JVMs: the median of its JVMs in these rows."""
    values: dict[tuple[str, int], list[float]] = defaultdict(list)
    for (run, _, launch), value in _of_jvms(rows, measure).items():
        if launch:
            values[run, launch].append(value)
    return {launch: statistics.median(jvms) for launch, jvms in values.items()}


def _of_jvms(rows: Sequence[Row], measure: Measure) -> dict[Launch, float]:
    values: dict[Launch, list[float]] = defaultdict(list)
    for row in rows:
        if row.valid and (value := measure(row)) is not None:
            jvm = launch_of(row) if row.launch else ("", None, 0)
            values[jvm].append(value)
    return {jvm: statistics.median(trials) for jvm, trials in values.items()}


def median_per_launch(rows: Sequence[Row], measure: Measure) -> MedianOf | None:
    """The median over launches; None where no valid row has a value."""
    values = per_launch(rows, measure)
    return median_of(values) if values else None


@dataclass(frozen=True, slots=True)
class Tries:
    """The launches of one side at one load, of whatever length its windows are: `lost` have no
    valid trial with the figure that is asked for, and `again` have none at their first try."""

    launches: int
    again: int
    lost: int

    @classmethod
    def from_rows(cls, rows: Sequence[Row], measure: Measure) -> Tries:
        """A trial that was repeated already is not measured again in a longer window: its launch is
        in the shorter cell only."""
        launches = grouped(rows, launch_of).values()
        valid = [
            [row for row in trials if row.valid and measure(row) is not None] for trials in launches
        ]
        lost = sum(not trials for trials in valid)
        late = sum(all(row.trial.endswith(AGAIN) for row in trials) for trials in valid)
        return cls(len(launches), late - lost, lost)

    @property
    def share(self) -> float:
        """The share of the launches that did not count at their first try."""
        return (self.again + self.lost) / self.launches if self.launches else 0.0


def most_errors(rows: Sequence[Row]) -> float:
    """The largest share of errors in a valid trial of these, 0 without any."""
    return max((error_share(row, row.offered_rps) for row in rows if row.valid), default=0.0)


def usual_errors(rows: Iterable[Row]) -> float:
    """The median share of errors in the valid trials of these, 0 without any."""
    shares = [error_share(row, row.offered_rps) for row in rows if row.valid]
    return statistics.median(shares) if shares else 0.0
