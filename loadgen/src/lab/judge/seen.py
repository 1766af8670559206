"""A measured trial with the observation of its window: figures, each with the query it came from.

A method gives None for a figure that the observation does not have, and notes every other."""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from lab.judge.cpu_split import machine_cpus
from lab.judge.heap import AFTER, USED, heap_after_collections
from lab.judge.predict import hold_time_ms
from lab.judge.quantities import CPUS, offered_rps, think_ms
from lab.judge.time_split import time_split
from lab.model import (
    Evidence,
    Judgement,
    Measurement,
    Observation,
    Reading,
    Snapshot,
    TimeSplit,
    TrialPlan,
    TrialRecord,
    error_share,
    goodput,
)
from lab.model.routes import RouteCall, foreign, parse

# Prometheus scrapes every exporter so often.
_SCRAPE_S = 2.0


@dataclass(frozen=True)
class SeenTrial:
    """One measured trial."""

    measurement: Measurement
    judgement: Judgement
    reading: Reading
    observation: Observation
    # The numbers that were looked up, with where each came from: the evidence of a resource.
    figures: list[Evidence] = field(default_factory=list, compare=False)

    @property
    def record(self) -> TrialRecord:
        return self.measurement.record

    @property
    def plan(self) -> TrialPlan:
        return self.record.plan

    @property
    def before(self) -> Snapshot:
        return self.record.before

    @property
    def server(self) -> str:
        return self.plan.server

    @property
    def is_open(self) -> bool:
        return self.plan.offered_rps is not None

    @cached_property
    def call(self) -> RouteCall:
        return (foreign if self.before.foreign else parse)(self.plan.route)

    @cached_property
    def split(self) -> TimeSplit | None:
        """None where the parts of the mean time are not known."""
        found = time_split(self.measurement, self.observation)
        return None if found == TimeSplit() else found

    @property
    def window_s(self) -> float:
        opens, closes = self.observation.window
        return closes - opens

    @property
    def rps(self) -> float:
        """Answers per second without errors: a refusal is quicker than any work."""
        return goodput(self.reading)

    @property
    def offered_rps(self) -> float | None:
        return offered_rps(self.record, self.reading)

    @property
    def error_share(self) -> float:
        return error_share(self.reading, self.plan.offered_rps)

    @property
    def requests(self) -> float:
        """Requests that ended in the window; at least one, as they are divided by."""
        errors = self.error_share
        return max(1.0, self.rps * self.window_s / (1 - errors) if errors < 1 else 1.0)

    @property
    def think_ms(self) -> float:
        """The generator's think time Z of a closed load; 0 in an open one, and where unknown."""
        return 0.0 if self.is_open else think_ms(self.reading) or 0.0

    @cached_property
    def hold_s(self) -> float:
        """How long the server holds a request that waits for nothing, without its computing."""
        if self.before.foreign:
            return (self.record.demand.r0_ms or 0.0) / 1000 if self.record.demand else 0.0
        return hold_time_ms(self.call, self.before) / 1000

    @cached_property
    def cpus(self) -> float | None:
        """CPUs of the machine, or those that the server sees."""
        return machine_cpus(self.observation) or self.before.cpus

    def noted(self, what: str, number: float | None, unit: str, source: str) -> float | None:
        """A number that is evidence."""
        if number is not None:
            self.figures.append(Evidence(what, number, unit, source))
        return number

    def each_ms(self, level: float | None) -> float | None:
        """The mean time per request of what `level` requests are in at a time (Little's law)."""
        return None if level is None or self.rps <= 0 else level * 1000 / self.rps

    def mean(self, what: str, unit: str, name: str, **labels: str) -> float | None:
        """The mean of a gauge's samples in the window, its series summed."""
        means = [statistics.fmean(values) for values in self._values(name, labels)]
        query = f"sum(avg_over_time({self.range_of(name, labels)}))"
        return self.noted(what, sum(means) if means else None, unit, query)

    def peak(self, what: str, unit: str, name: str, **labels: str) -> float | None:
        peak = max(map(max, self._values(name, labels)), default=None)
        return self.noted(what, peak, unit, f"max(max_over_time({self.range_of(name, labels)}))")

    def total(self, what: str, unit: str, name: str, **labels: str) -> float | None:
        """By how much counters rose in the window, in sum."""
        rise = self.observation.increase(name, **labels)
        return self.noted(what, rise, unit, f"sum(increase({self.range_of(name, labels)}))")

    def rate(self, what: str, unit: str, name: str, **labels: str) -> float | None:
        """By how much counters rose per second of the window, in sum."""
        rise = self.observation.increase(name, **labels)
        rate = None if rise is None else rise / self.window_s
        return self.noted(what, rate, unit, f"sum(rate({self.range_of(name, labels)}))")

    def mean_time(self, what: str, name: str, **labels: str) -> float | None:
        """The mean of a histogram's observations in the window, in seconds."""
        total = self.observation.increase(f"{name}_sum", **labels)
        count = self.observation.increase(f"{name}_count", **labels)
        sums, counts = (self.range_of(f"{name}_{part}", labels) for part in ("sum", "count"))
        each = total / count if total is not None and count else None
        return self.noted(what, each, "s", f"sum(increase({sums})) / sum(increase({counts}))")

    def each(self, label: str, name: str, **labels: str) -> list[str]:
        """The values of a label among a metric's series, sorted."""
        found = self.observation.series(name, **labels)
        return sorted({series.labels.get(label, "") for series in found})

    def failed_calls(self, *outcomes: str) -> float:
        """The share of the downstream calls with one of these outcomes."""
        name, mine = "lab_downstream_calls_total", {"server": self.server}
        every = self.observation.increase(name, **mine)
        found = (self.observation.increase(name, outcome=outcome, **mine) for outcome in outcomes)
        return sum(known(*found)) / every if every else 0.0

    def cpu_of(self, job: str) -> tuple[float | None, float | None]:
        """The CPUs that a Go process used, and the most that it may use."""
        used = self.rate("used", "CPUs", "process_cpu_seconds_total", job=job)
        return used, self.peak("CPUs", "CPUs", CPUS[job], job=job)

    def heap_after_collections(self) -> float | None:
        left = heap_after_collections(self.observation, server=self.server)
        opens, closes = self.observation.window
        within = [used for at, used in left if opens <= at <= closes]
        mean = statistics.fmean(within) if within else None
        return self.noted("heap after collections", mean, "bytes", f"{AFTER}, {USED}")

    def range_of(self, name: str, labels: dict[str, str]) -> str:
        matchers = ", ".join(f'{label}="{text}"' for label, text in labels.items())
        return f"{name}{{{matchers}}}[{self.window_s:.0f}s]"

    def _values(self, name: str, labels: dict[str, str]) -> Iterator[list[float]]:
        """The samples in the window of each series. A window shorter than a scrape has the sample
        nearest to its middle; a longer one without any has the last one before it, as a later one
        is of a server at rest."""
        opens, closes = self.observation.window
        middle = (opens + closes) / 2
        for series in self.observation.series(name, **labels):
            values = [value for at, value in series.points if opens <= at <= closes]
            points = series.points
            if not values and closes - opens > _SCRAPE_S:
                points = tuple(point for point in points if point[0] < opens)
            if not values and points:
                at, value = min(points, key=lambda point: abs(point[0] - middle))
                values = [value] if opens - _SCRAPE_S <= at <= closes + _SCRAPE_S else []
            if values:
                yield values


def known[T](*figures: T | None) -> tuple[T, ...]:
    return tuple(figure for figure in figures if figure is not None)
