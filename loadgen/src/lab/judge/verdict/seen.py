"""A trial and its window, as the verdict asks them: every number with the query it came from."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from lab.judge.heap import AFTER, OLD, USED, heap_after_collections
from lab.judge.predict import response_time_ms
from lab.model import (
    Evidence,
    Judgement,
    Measurement,
    Observation,
    Reading,
    TrialRecord,
    error_share,
    goodput,
)
from lab.model.routes import RouteCall, foreign, parse

# Of N / R0, where R0 was measured: rounding, and the edges of a window.
MOST_OF_R0 = 1.05


@dataclass(frozen=True)
class Seen:
    """One measured trial. `observation` is of its window; the methods that ask it give None for
    what it does not hold."""

    measurement: Measurement
    judgement: Judgement
    reading: Reading
    observation: Observation

    @property
    def record(self) -> TrialRecord:
        """What was planned and read back."""
        return self.measurement.record

    @property
    def server(self) -> str:
        """The server under test."""
        return self.record.plan.server

    @cached_property
    def call(self) -> RouteCall:
        """The route with its parameters."""
        if self.record.before.foreign:
            return foreign(self.record.plan.route)
        return parse(self.record.plan.route)

    @property
    def path(self) -> str:
        """The route without its query: the label `route`."""
        return self.call.route.path

    @property
    def rps(self) -> float:
        """Answers per second that were no errors: a refusal is answered faster than any work."""
        return goodput(self.reading)

    @cached_property
    def r0_s(self) -> float:
        """R0: what one request takes when nothing waits in a queue, its computing left out; of a
        foreign service what a single connection met, 0 where that is not known."""
        if self.record.before.foreign:
            demand = self.record.demand
            # Three digits: one connection's mean tells no more.
            return float(f"{(demand.r0_ms or 0.0) / 1000:.3g}") if demand else 0.0
        return response_time_ms(self.call, self.record.before) / 1000

    @property
    def at_load_bound(self) -> float:
        """Measured of N / R0, the bound of the load itself (closed), or of what was offered
        (open); 0 where a request only computes."""
        plan = self.record.plan
        if plan.offered_rps is not None:
            return self.rps / plan.offered_rps
        return self.rps * self.r0_s / plan.concurrency

    @property
    def beyond_r0(self) -> bool:
        """Whether a closed load got clearly more than N / R0: then the R0 that was measured of a
        foreign service is not its R0."""
        of_r0 = self.record.before.foreign and self.record.plan.mode == "closed"
        return of_r0 and self.at_load_bound > MOST_OF_R0

    @property
    def error_share(self) -> float:
        """HTTP errors, socket errors and timeouts among all requests that ended."""
        return error_share(self.reading, self.record.plan.offered_rps)

    @property
    def window_s(self) -> float:
        """Length of the measured window."""
        opens, closes = self.observation.window
        return closes - opens

    def waiting_beside(self, busy: Evidence) -> Evidence | None:
        """Requests in flight, by Little's law (N = X·R, R from sending to answer), that are not
        among the busy; None where the engine does not tell R."""
        if self.reading.raw is None:
            return None
        in_flight = self.reading.achieved_rps * self.reading.raw.mean_ms / 1000
        source = f"Little's law: achieved_rps × raw_mean_ms, less {busy.source}"
        waiting = max(0.0, in_flight - busy.value)
        return Evidence("requests waiting for a worker", waiting, "requests", source)

    def mean(self, what: str, unit: str, name: str, **labels: str) -> Evidence | None:
        """The mean of a gauge's samples in the window, its series summed."""
        means = [statistics.fmean(values) for values in self._values(name, labels)]
        if not means:
            return None
        query = f"sum(avg_over_time({name}{_braces(labels)}[{self.window_s:.0f}s]))"
        return Evidence(what, sum(means), unit, query)

    def heap_after_collections(self) -> Evidence | None:
        """The mean of what collections leave of the server's heap, in bytes; of old objects all
        that an old collection has not yet found dead."""
        left = self._within(heap_after_collections(self.observation, server=self.server))
        if not left:
            return None
        mine, span = f'server="{self.server}"', f"[{self.window_s:.0f}s]"
        query = (
            f'sum(avg_over_time({AFTER}{{{mine}, pool!~"{OLD}"}}{span}) '
            f'or avg_over_time({USED}{{{mine}, pool=~"{OLD}"}}{span}))'
        )
        return Evidence("heap after collection", statistics.fmean(left), "bytes", query)

    def peak(self, what: str, unit: str, name: str, **labels: str) -> Evidence | None:
        """The greatest sample of a gauge in the window."""
        peaks = [max(values) for values in self._values(name, labels)]
        if not peaks:
            return None
        query = f"max(max_over_time({name}{_braces(labels)}[{self.window_s:.0f}s]))"
        return Evidence(what, max(peaks), unit, query)

    def machine_cpus(self) -> Evidence | None:
        """How many CPUs the machine has."""
        return self.peak("CPUs of the host", "CPUs", "machine:machine_cpu_cores:max")

    def total(self, what: str, unit: str, name: str, **labels: str) -> Evidence | None:
        """By how much counters rose in the window, in sum."""
        rise = self.observation.increase(name, **labels)
        query = f"sum(increase({name}{_braces(labels)}[{self.window_s:.0f}s]))"
        return None if rise is None else Evidence(what, rise, unit, query)

    def rate(self, what: str, unit: str, name: str, **labels: str) -> Evidence | None:
        """By how much counters rose per second of the window, in sum."""
        rise = self.observation.increase(name, **labels)
        query = f"sum(rate({name}{_braces(labels)}[{self.window_s:.0f}s]))"
        return None if rise is None else Evidence(what, rise / self.window_s, unit, query)

    def each(self, label: str, name: str, **labels: str) -> list[str]:
        """The values that a label has among a metric's series, sorted."""
        found = self.observation.series(name, **labels)
        return sorted({series.labels.get(label, "") for series in found})

    def samples(self, name: str, **labels: str) -> Evidence:
        """How many samples of a metric fell into the window, of all its series."""
        opens, closes = self.observation.window
        count = sum(
            opens <= at <= closes
            for series in self.observation.series(name, **labels)
            for at in series.times
        )
        query = f"sum(count_over_time({name}{_braces(labels)}[{self.window_s:.0f}s]))"
        return Evidence(f"samples of {name}", count, "samples", query)

    def mean_time(self, what: str, name: str, **labels: str) -> Evidence | None:
        """The mean of a histogram's observations in the window, in seconds."""
        total = self.observation.increase(f"{name}_sum", **labels)
        count = self.observation.increase(f"{name}_count", **labels)
        if total is None or not count:
            return None
        span = f"{_braces(labels)}[{self.window_s:.0f}s]"
        query = f"sum(increase({name}_sum{span})) / sum(increase({name}_count{span}))"
        return Evidence(what, total / count, "s", query)

    def _values(self, name: str, labels: dict[str, str]) -> Iterator[list[float]]:
        """The samples in the window, series by series, of those that have any."""
        for series in self.observation.series(name, **labels):
            within = self._within(series.points)
            if within:
                yield within

    def _within(self, points: Sequence[tuple[float, float]]) -> list[float]:
        """The values in the window; where it is too short to hold one, the nearest to its
        middle."""
        opens, closes = self.observation.window
        within = [value for at, value in points if opens <= at <= closes]
        if within or not points:
            return within
        middle = (opens + closes) / 2
        at, value = min(points, key=lambda point: abs(point[0] - middle))
        return [value] if opens - 2 <= at <= closes + 2 else []


def kept(*evidence: Evidence | None) -> tuple[Evidence, ...]:
    """Those that could be told."""
    return tuple(one for one in evidence if one is not None)


def value(evidence: Evidence | None) -> float | None:
    """Its number."""
    return None if evidence is None else evidence.value


def _braces(labels: dict[str, str]) -> str:
    return "{" + ", ".join(f'{name}="{text}"' for name, text in labels.items()) + "}"
