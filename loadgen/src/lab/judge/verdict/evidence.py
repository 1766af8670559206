"""The evidence for a verdict: numbers of a trial and its window, each with its query."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from lab.judge.cpu_split import USED as CPU_USED
from lab.judge.cpu_split import machine_busy
from lab.judge.gates.generator import HOST_CROWDED, LEAST_SHARE, offered_rps, think_ms
from lab.judge.heap import AFTER, OLD, USED, heap_after_collections
from lab.judge.predict import (
    hold_spread,
    hold_time_ms,
    response_spread,
    response_time_ms,
    uncovered,
)
from lab.model import (
    TO_SERVER,
    Evidence,
    Judgement,
    Measurement,
    Observation,
    Reading,
    Spread,
    TrialRecord,
    error_share,
    goodput,
)
from lab.model.routes import RouteCall, foreign, parse

# Rounding, and the edges of a window, may put the rate this far above N / R0, where R0 was
# measured.
MOST_OF_R0 = 1.05
# A resource in use for this share of its capacity is full: a sample every 1 or 2 s catches some
# worker between two requests, and the edges of the window lose some.
FULL = 0.95
# Measured of a bound: the bound explains the measurement. The rest is what requests take beside R0
# (computing, the network): pools gave 967 to 978 of 1,000 (docs/sweep.md), busier machines less.
EXPLAINED = 0.9
# Something waits when this share of the load does, and at least one request. Fewer are those that
# a scrape catches on their way to a free worker.
WAITING_SHARE = 0.02
# What takes this share longer than predicted waited for something that is not predicted. The load
# engines themselves add up to 57 ms to the p95 of an answer of 200 ms (wrk2 sends in bursts), and
# less to its mean.
EXCESS = 0.25
# Prometheus asks every exporter so often.
_SCRAPE_S = 2.0


@dataclass(frozen=True)
class SeenTrial:
    """One measured trial, with the `observation` of its window. A method gives None for a figure
    that the observation does not hold."""

    measurement: Measurement
    judgement: Judgement
    reading: Reading
    observation: Observation

    @property
    def record(self) -> TrialRecord:
        """The trial's plan, and what was read back."""
        return self.measurement.record

    @property
    def server(self) -> str:
        return self.record.plan.server

    @cached_property
    def call(self) -> RouteCall:
        if self.record.before.foreign:
            return foreign(self.record.plan.route)
        return parse(self.record.plan.route)

    @property
    def rps(self) -> float:
        """Answers per second without errors: a refusal comes faster than any work."""
        return goodput(self.reading)

    @cached_property
    def r0_s(self) -> float:
        """R0: how long one request takes when nothing waits in a queue, without its computing. Of a
        foreign service it is the mean of a single connection, 0 where that is not known."""
        if self.record.before.foreign:
            demand = self.record.demand
            # Three digits: the mean of one connection is no more precise.
            return float(f"{(demand.r0_ms or 0.0) / 1000:.3g}") if demand else 0.0
        return response_time_ms(self.call, self.record.before) / 1000

    @cached_property
    def hold_s(self) -> float:
        """How long the server holds a request when nothing waits in a queue, without its computing:
        R0 without the way to the generator. Of a foreign service it is R0, as nothing tells."""
        if self.record.before.foreign:
            return self.r0_s
        return hold_time_ms(self.call, self.record.before) / 1000

    @cached_property
    def spread(self) -> Spread | None:
        """How R0 spreads; None where all requests wait alike, or nobody knows."""
        before = self.record.before
        return None if before.foreign else response_spread(self.call, before)

    @property
    def p95_hold_s(self) -> float:
        """The p95 of `hold_s`, which is `hold_s` itself where all requests wait alike."""
        before = self.record.before
        spread = None if before.foreign else hold_spread(self.call, before)
        return spread.p95_ms / 1000 if spread else self.hold_s

    @property
    def p95_r0_s(self) -> float:
        """The p95 of R0, which is R0 itself where all requests wait alike."""
        return self.spread.p95_ms / 1000 if self.spread else self.r0_s

    @property
    def think_s(self) -> float:
        """The generator's think time Z of a closed load; 0 where its engine does not tell it, and
        in an open load."""
        closed = self.record.plan.mode == "closed"
        return (think_ms(self.reading) or 0.0) / 1000 if closed else 0.0

    @property
    def cycle(self) -> str:
        """What a closed load's connections are divided by, in letters: Z only where a reader should
        know of it."""
        thinks = self.think_s >= LEAST_SHARE * (self.r0_s + self.think_s) > 0
        return "(R0 + Z)" if thinks else "R0"

    @property
    def load_bound_text(self) -> str:
        each, connections = f"{self.r0_s:g} s", self.record.plan.concurrency
        if self.cycle != "R0":
            each = f"({self.r0_s * 1000:.3g} ms + {self.think_s * 1000:.2g} ms)"
        rps = connections / (self.r0_s + self.think_s)
        return f"{connections} connections / {each} = {rps:,.0f} req/s"

    @property
    def at_load_bound(self) -> float:
        """The measured rate as a share of the load's own bound: N / (R0 + Z) (closed), or the
        offered rate (open). 0 where a request only computes."""
        offered = offered_rps(self.record, self.reading)
        return self.rps / offered if offered else self.of_connections

    @property
    def beyond_r0(self) -> bool:
        """Whether a closed load got clearly more than N / R0. Then the R0 that was measured of a
        foreign service is not its real R0."""
        of_r0 = self.record.before.foreign and self.record.plan.mode == "closed"
        return of_r0 and self.at_load_bound > MOST_OF_R0

    @property
    def of_connections(self) -> float:
        """The measured rate as a share of connections / (R0 + Z), in either kind of load; 0 where a
        request only computes."""
        cycle_s = self.r0_s + self.think_s if self.r0_s else 0.0
        return self.rps * cycle_s / self.record.plan.concurrency

    @cached_property
    def expected_ms(self) -> float | None:
        """The mean response time where nothing waits: R0 and the CPU time of a request. None where
        nobody knows it: the condition has toxics that no bound covers, or a script of them, or the
        request only computes and nobody measured its cost."""
        record, demand = self.record, self.record.demand
        if uncovered(self.call, record.before) or record.plan.script:
            return None
        # R0 of a foreign service is measured, so it includes the computing.
        line = demand.server if demand and not record.before.foreign else None
        own_s = line.each_s(self.rps) if line and self.rps else None
        if not self.r0_s and not own_s:
            return None
        # R0 leaves out the way of a request that only computes.
        least_s = self.r0_s or record.before.way_ms(TO_SERVER) / 1000
        return (least_s + (own_s or 0.0)) * 1000

    @cached_property
    def cpus_busy(self) -> float:
        """The share of its time that the CPUs of the server's machine were busy; 0 where nobody
        knows. Of a lab on several machines the series tell of each."""
        busy = self.record.usage.host_taken
        if busy is None:
            labels = (one.labels for one in self.observation.series(CPU_USED, service=self.server))
            machine = next((one["machine"] for one in labels if "machine" in one), None)
            busy = None if machine is None else machine_busy(self.observation, machine)
        return busy or 0.0

    @property
    def crowded(self) -> bool:
        """Whether requests had to wait for the CPUs of the server's machine. False where nobody
        knows."""
        return self.cpus_busy >= HOST_CROWDED

    @property
    def error_share(self) -> float:
        """HTTP errors, socket errors and timeouts among all requests that ended."""
        return error_share(self.reading, self.record.plan.offered_rps)

    @property
    def window_s(self) -> float:
        opens, closes = self.observation.window
        return closes - opens

    def waiting_beside(self, busy: Evidence) -> Evidence | None:
        """The requests in flight, by Little's law (N = X·R, R from sending to answer), less the
        busy ones. None where the engine does not tell R."""
        if self.reading.answer_ms is None:
            return None
        source = f"Little's law: achieved_rps × answer_ms, less {busy.source}"
        waiting = max(0.0, self.reading.in_flight - busy.value)
        return Evidence("requests waiting for a worker", waiting, "requests", source)

    def mean(self, what: str, unit: str, name: str, **labels: str) -> Evidence | None:
        """The mean of a gauge's samples in the window, its series summed."""
        means = [statistics.fmean(values) for values in self._values(name, labels)]
        query = f"sum(avg_over_time({self._range(name, labels)}))"
        return _told(what, sum(means) if means else None, unit, query)

    def heap_after_collections(self) -> Evidence | None:
        """The mean heap of the server after collections, in bytes. Dead old objects count until an
        old collection finds them."""
        left = self._within(heap_after_collections(self.observation, server=self.server))
        if not left:
            return None
        mine, span = f'server="{self.server}"', f"[{self.window_s:.0f}s]"
        query = (
            f'sum(avg_over_time({AFTER}{{{mine}, pool!~"{OLD}"}}{span}) '
            f'or avg_over_time({USED}{{{mine}, pool=~"{OLD}"}}{span}))'
        )
        return Evidence("heap after collection", statistics.fmean(left), "bytes", query)

    def halves(self, name: str, **labels: str) -> tuple[float, float] | None:
        """The median of a gauge, its series summed, in the first and in the second half of the
        window: one pause moves no median. None where a series has no sample in one of them."""
        opens, closes = self.observation.window
        middle = (opens + closes) / 2
        first = second = 0.0
        found = self.observation.series(name, **labels)
        for series in found:
            early = [value for at, value in series.points if opens <= at < middle]
            late = [value for at, value in series.points if middle <= at <= closes]
            if not early or not late:
                return None
            first += statistics.median(early)
            second += statistics.median(late)
        return (first, second) if found else None

    def peak(self, what: str, unit: str, name: str, **labels: str) -> Evidence | None:
        """The greatest sample of a gauge in the window."""
        peak = max(map(max, self._values(name, labels)), default=None)
        return _told(what, peak, unit, f"max(max_over_time({self._range(name, labels)}))")

    def machine_cpus(self) -> Evidence | None:
        """How many CPUs the machine has, by a recording rule: cAdvisor itself tells it only every
        few minutes."""
        return self.peak("CPUs of the host", "CPUs", "machine:machine_cpu_cores:max")

    def total(self, what: str, unit: str, name: str, **labels: str) -> Evidence | None:
        """By how much counters rose in the window, in sum."""
        rise = self.observation.increase(name, **labels)
        return _told(what, rise, unit, f"sum(increase({self._range(name, labels)}))")

    def rate(self, what: str, unit: str, name: str, **labels: str) -> Evidence | None:
        """By how much counters rose per second of the window, in sum."""
        rise = self.observation.increase(name, **labels)
        rate = None if rise is None else rise / self.window_s
        return _told(what, rate, unit, f"sum(rate({self._range(name, labels)}))")

    def each(self, label: str, name: str, **labels: str) -> list[str]:
        """The values of a label among a metric's series, sorted."""
        found = self.observation.series(name, **labels)
        return sorted({series.labels.get(label, "") for series in found})

    def samples(self, name: str, **labels: str) -> Evidence:
        """How many samples of a metric's series fell into the window."""
        opens, closes = self.observation.window
        count = sum(
            opens <= at <= closes
            for series in self.observation.series(name, **labels)
            for at in series.times
        )
        query = f"sum(count_over_time({self._range(name, labels)}))"
        return Evidence(f"samples of {name}", count, "samples", query)

    def mean_time(self, what: str, name: str, **labels: str) -> Evidence | None:
        """The mean of a histogram's observations in the window, in seconds."""
        total = self.observation.increase(f"{name}_sum", **labels)
        count = self.observation.increase(f"{name}_count", **labels)
        if total is None or not count:
            return None
        sums, counts = (self._range(f"{name}_{part}", labels) for part in ("sum", "count"))
        query = f"sum(increase({sums})) / sum(increase({counts}))"
        return Evidence(what, total / count, "s", query)

    def _range(self, name: str, labels: dict[str, str]) -> str:
        """The PromQL of a metric's samples in the window."""
        matchers = ", ".join(f'{label}="{text}"' for label, text in labels.items())
        return f"{name}{{{matchers}}}[{self.window_s:.0f}s]"

    def _values(self, name: str, labels: dict[str, str]) -> Iterator[list[float]]:
        """The samples in the window of each series that has any there."""
        for series in self.observation.series(name, **labels):
            within = self._within(series.points)
            if within:
                yield within

    def _within(self, points: Sequence[tuple[float, float]]) -> list[float]:
        """The values in the window. A window too short to hold a scrape, of which there is one
        every 2 s, has the value nearest to its middle. A longer one without any has the one before
        it: what came later is of a server at rest."""
        opens, closes = self.observation.window
        within = [value for at, value in points if opens <= at <= closes]
        if not within and closes - opens > _SCRAPE_S:
            points = [point for point in points if point[0] < opens]
        if within or not points:
            return within
        middle = (opens + closes) / 2
        at, value = min(points, key=lambda point: abs(point[0] - middle))
        return [value] if opens - _SCRAPE_S <= at <= closes + _SCRAPE_S else []


def kept[T](*found: T | None) -> tuple[T, ...]:
    """What is known of it."""
    return tuple(one for one in found if one is not None)


def value(evidence: Evidence | None) -> float | None:
    """The number of the evidence, None where it is not known."""
    return None if evidence is None else evidence.value


def _told(what: str, number: float | None, unit: str, query: str) -> Evidence | None:
    return None if number is None else Evidence(what, number, unit, query)
