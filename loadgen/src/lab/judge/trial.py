"""A measured trial and its figures, as checks, resources and rows ask for them.

A figure that a trial does not have is None.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property

from lab.judge import predict
from lab.judge.metrics import CALLS, MOST_CPUS, Metrics, machine_cpus, without_none
from lab.judge.splits import cpu_split, time_split
from lab.model import (
    CpuSplit,
    Evidence,
    Judgement,
    Measurement,
    Observation,
    Reading,
    Snapshot,
    Spread,
    TimeSplit,
    TrialPlan,
    TrialRecord,
    Usage,
    error_share,
    good_share,
    goodput,
    lost_rps,
)
from lab.model.routes import RouteCall, parse

# An open trial has kept up when requests ended at this share of the offered rate.
KEPT_UP = 0.99
# With more than this share of the connections busy, the server kept them busy. With less, requests
# were due and connections were free, so the generator did not send. The share is lowered by one
# latency per window: an answer that the window's edge cuts off counts nowhere.
BUSY_CONNECTIONS = 0.9
# Beyond this share of the median raw latency the generator measures itself: how late it sends, and
# how long it waits for a CPU. The corrected latency of an overloaded load grows with the window.
LAG_SHARE = 0.1
LEAST_LAG_MS = 1.0
# CPUs this busy on average are full in bursts: requests wait for a CPU, and clocks that run on
# during these waits (pauses, calls) show more than was worked.
HOST_CROWDED = 0.8
# A reader should know where the generator waited for a CPU for this share of its cores' time.
WAITED = 0.2
# By so much of those in flight, or in a queue, the count of a window may be off without a finding.
MOST_RISE = 0.1
# That of a trial of whose window nothing was stored.
UNOBSERVED = Observation((0.0, 1.0), ())
NO_REASONS = Judgement((), ())


@dataclass(frozen=True, eq=False)
class Trial:
    """A trial, and then its judgement. `start` is what the trials of its server began with, None if
    each has other conditions. `figures` are those that were asked of its series."""

    measurement: Measurement
    observation: Observation = UNOBSERVED
    start: Snapshot | None = None
    judgement: Judgement = NO_REASONS
    figures: list[Evidence] = field(default_factory=list)

    @property
    def record(self) -> TrialRecord:
        return self.measurement.record

    @property
    def reading(self) -> Reading:
        if self.measurement.reading is None:
            raise ValueError(f"{self.plan.trial} has no reading")
        return self.measurement.reading

    @property
    def plan(self) -> TrialPlan:
        return self.record.plan

    @property
    def before(self) -> Snapshot:
        return self.record.before

    @property
    def usage(self) -> Usage:
        return self.record.usage

    @property
    def server(self) -> str:
        return self.plan.server

    @property
    def route(self) -> str:
        """Without its query, as in the labels of series."""
        return self.plan.route.partition("?")[0]

    @property
    def is_open(self) -> bool:
        return self.plan.offered_rps is not None

    # What a request does.

    @property
    def has_contract(self) -> bool:
        """True if the server has the lab's routes, so that it is known what a request does and
        calls. A service of the user's own has no identity."""
        return self.before.identity is not None

    @cached_property
    def call(self) -> RouteCall | None:
        """None without the contract. Raises ValueError for a route that no server has."""
        return parse(self.plan.route) if self.has_contract else None

    @property
    def calls_downstream(self) -> bool:
        return self.call is not None and self.call.route.calls_downstream

    @cached_property
    def hold_s(self) -> float:
        """How long the server holds a request when nothing queues; the measured R0 without the
        lab's contract. 0 if unknown."""
        if self.call is None:
            return (self.record.demand.r0_ms or 0.0) / 1000 if self.record.demand else 0.0
        return predict.hold_time_ms(self.call, self.before) / 1000

    @property
    def drawn(self) -> RouteCall | None:
        """The call, if its delay may have been drawn."""
        return self.call if self.before.spread is not None else None

    @property
    def spread(self) -> Spread | None:
        """How R0 spreads; None where all requests wait alike."""
        return predict.response_spread(self.drawn, self.before)

    def rate_error(self, answers: float) -> float:
        """The standard error of the rate, as a share of it, by so many drawn delays."""
        return predict.rate_error(self.drawn, self.before, answers) if self.drawn else 0.0

    # Rates.

    @property
    def rps(self) -> float:
        """Answers per second without errors: a refusal is quicker than any work."""
        return goodput(self.reading)

    @property
    def offered_rps(self) -> float | None:
        """What was due in the window, if the engine counts that, else what was planned: arrivals at
        random are never just as many. None for a closed load."""
        planned, due = self.plan.offered_rps, self.reading.due
        return planned if planned is None or due is None else due / self.reading.window_s

    @property
    def ended_rps(self) -> float:
        """Requests that ended, with an answer or without one (socket errors, timeouts)."""
        return self.reading.achieved_rps + lost_rps(self.reading, self.plan.offered_rps)

    @property
    def error_share(self) -> float:
        return error_share(self.reading, self.plan.offered_rps)

    @property
    def answers(self) -> tuple[int, int]:
        """Answers of the window, without and with an error (by the share in the whole run, if the
        engine counts errors only there)."""
        good = round(good_share(self.reading) * self.reading.samples)
        return good, self.reading.samples - good

    @property
    def requests(self) -> float:
        """Requests that ended in the observed window; at least one, as they are divided by."""
        errors, seconds = self.error_share, self.observation.window_s
        return max(1.0, self.rps * seconds / (1 - errors) if errors < 1 else 1.0)

    @cached_property
    def overloaded(self) -> bool:
        """True if fewer requests ended than were offered, by more than `edges` and `unanswered`
        explain."""
        return self._fell_behind(self.unanswered)

    def _fell_behind(self, more: int = 0) -> bool:
        """True if fewer than were offered ended, with so many more than are counted."""
        offered = self.offered_rps
        if offered is None:
            return False
        return self.ended_rps + more / self.reading.window_s < (KEPT_UP - self.edges) * offered

    @cached_property
    def unanswered(self) -> int:
        """How many requests of an open load may never be answered: an engine gives up after many
        seconds, so a short run counts none of them. They are those due in the window less those
        that ended in it, if that is more than chance (`edges`), a pause of the engine, a rise of
        the latency by MOST_RISE and a queue explain, and some request waits (`hangs`). 0 if
        requests waited on purpose (spikes, scripts), or if their number is unknown."""
        reading, queued = self.reading, self._queued
        if reading.due is None or reading.answer_ms is None or not reading.hangs:
            return 0
        if self.record.peaks or self.plan.script or (queued is None and self._fell_behind()):
            return 0
        left = reading.due - reading.samples - (reading.window_lost or 0) - (queued or 0)
        paused = reading.pause_s * reading.due / reading.window_s
        rise = MOST_RISE * (reading.in_flight + (queued or 0))
        return left if left > 3 * math.sqrt(2 * reading.in_flight) + paused + rise else 0

    @property
    def _queued(self) -> int | None:
        """By how many requests a first-come-first-served queue grew in the window: answers of its
        last second waited longer than those of its first, and as many requests as came meanwhile
        are behind (Little's law). None for requests of several kinds: their queues may differ."""
        means = [second.mean_ms for second in self.reading.seconds if second.mean_ms is not None]
        if len(means) < 2 or self.reading.due is None or len(self.plan.requests) > 1:
            return None
        # These are means of seconds, so they are a second less apart than the window's ends.
        longer_s = max(0.0, means[-1] - means[0]) / 1000 * len(means) / (len(means) - 1)
        return round(longer_s * self.reading.due / self.reading.window_s)

    @cached_property
    def edges(self) -> float:
        """By what share of an open load's requests the count of its window may be off: by the
        engine's pauses, and by chance where arrivals or delays are random. Then as many are in
        flight at each edge as chance wants: λR on average, with a standard deviation of at most
        √(λR) where nothing queues (M/G/∞ is Poisson: W. Feller, An Introduction to Probability
        Theory 1, 1968, XVII.7). Three deviations of the difference of two edges are allowed."""
        reading, offered, pause_s = self.reading, self.offered_rps, self.reading.pause_s
        drawn = self.drawn is not None and self.calls_downstream
        if offered and (drawn or self.plan.arrivals != "constant"):
            pause_s = max(pause_s, 3 * math.sqrt(2 * reading.in_flight) / offered)
        return pause_s / reading.window_s

    # Times.

    def each_ms(self, level: float | None) -> float | None:
        """The mean time per request of what `level` requests are in at a time (Little's law)."""
        return None if level is None or self.rps <= 0 else level * 1000 / self.rps

    @property
    def think_ms(self) -> float:
        """The generator's think time Z of a closed load; 0 in an open one, and where unknown."""
        return 0.0 if self.is_open else think_ms(self.reading) or 0.0

    @cached_property
    def split(self) -> TimeSplit | None:
        """The mean time of a request by its parts; None where these are not known."""
        split = time_split(self)
        return None if split == TimeSplit() else split

    @cached_property
    def cpu(self) -> CpuSplit:
        return cpu_split(self)

    @property
    def crossing_s(self) -> float:
        """The mean latency of the requests that are under way at an edge of the window."""
        answer_s = (self.reading.answer_ms or 0.0) / 1000
        return predict.crossing_s(answer_s, self.drawn, self.before)

    @property
    def least_window_s(self) -> float:
        """The shortest window in which this mean latency can be judged."""
        return predict.LEAST_LATENCIES * self.crossing_s

    # The generator and the CPUs.

    @property
    def connections_busy(self) -> float | None:
        """The share of connections with a request in flight (Little's law)."""
        reading = self.reading
        return None if reading.answer_ms is None else reading.in_flight / self.plan.concurrency

    @property
    def cores(self) -> int:
        """The CPUs that the generator can use: all that it has, or fewer where its threads are."""
        return min(self.plan.cores, self.reading.threads or self.plan.cores)

    @property
    def waited_share(self) -> float | None:
        """The share of its cores' time that the generator waited for a CPU."""
        wait_s = self.usage.window_wait_s
        return None if wait_s is None else wait_s / (self.reading.window_s * self.cores)

    @cached_property
    def cpus(self) -> float | None:
        """CPUs of the machine, or those that the server sees."""
        return machine_cpus(self.observation) or self.before.cpus

    # The series of its window.

    def metrics(self, **labels: str) -> Metrics:
        """The series with these labels; what is asked of them is noted as evidence."""
        return Metrics(self.observation, labels, self.figures)

    def server_metrics(self, **labels: str) -> Metrics:
        return self.metrics(**labels, server=self.server)

    def note(self, what: str, value: float | None, unit: str, source: str) -> None:
        self.metrics().note(what, value, unit, source)

    def failed_calls(self, *outcomes: str) -> float:
        """The share of the downstream calls with one of these outcomes."""
        name, seen = "lab_downstream_calls_total", self.observation
        every = seen.increase(name, server=self.server)
        failed = (seen.increase(name, outcome=outcome, server=self.server) for outcome in outcomes)
        return sum(without_none(*failed)) / every if every else 0.0

    def cpu_of(self, job: str) -> tuple[float | None, float | None]:
        """The CPUs that a Go process used, and the most that it may use."""
        process = self.metrics(job=job)
        used = process.rate("used", "CPUs", "process_cpu_seconds_total")
        return used, process.peak("CPUs", "CPUs", MOST_CPUS[job])

    def mean_call_s(self) -> float | None:
        """How long the server waited for a call of the downstream."""
        return self.server_metrics(phase="call").mean_time("mean call", CALLS)


def think_ms(reading: Reading) -> float | None:
    """The mean think time Z of a closed load: from when a connection has its answer until the
    generator has sent its next request. By the interactive response time law R = N / X - Z (P. J.
    Denning, J. P. Buzen, ACM Computing Surveys 10(3), 1978) it is part of the rate, and of no
    latency."""
    return reading.late.mean_ms if reading.late else None


def think_share(reading: Reading) -> float:
    """Z / (R + Z): the share of a closed load's cycle that is the generator's; 0 if unknown."""
    think = think_ms(reading)
    return think / (think + reading.answer_ms) if think and reading.answer_ms is not None else 0.0


def allowed_ms(latency_ms: float) -> float:
    """By how much the generator itself may be late where requests take so long."""
    return max(LEAST_LAG_MS, LAG_SHARE * latency_ms)
