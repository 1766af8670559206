"""The metrics that the agent exports. Their names and labels are the lab's vocabulary
(prometheus/vocabulary.json). Buckets are those of the servers, so both sides compare.

One thread: the agent's event loop.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from prometheus_client.core import CounterMetricFamily as Counter
from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.core import HistogramMetricFamily as Histogram
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from lab.live.agent.watch import ToxicsWatch
from lab.live.clock import Clock
from lab.system.agent import Trial

# 5 % apart from 0.1 to 1 s, and 20 % outside: so exact is a percentile that is read from them. The
# servers' contract has the same list (a test compares them).
# fmt: off
BUCKETS_S = (
    0.001, 0.00115, 0.00139, 0.00168, 0.00203, 0.00246, 0.00297, 0.00359, 0.00435, 0.00526,
    0.00637, 0.00771, 0.00932, 0.0113, 0.0137, 0.0165, 0.02, 0.0242, 0.0293, 0.0354, 0.0428,
    0.0518, 0.0627, 0.0759, 0.0918, 0.101, 0.106, 0.111, 0.117, 0.123, 0.129, 0.135, 0.142, 0.149,
    0.157, 0.165, 0.173, 0.181, 0.19, 0.2, 0.205, 0.21, 0.221, 0.232, 0.243, 0.255, 0.268, 0.281,
    0.295, 0.31, 0.326, 0.342, 0.359, 0.377, 0.396, 0.416, 0.437, 0.458, 0.481, 0.505, 0.531,
    0.557, 0.585, 0.614, 0.645, 0.677, 0.711, 0.747, 0.784, 0.823, 0.864, 0.908, 0.953, 1.05, 1.27,
    1.53, 1.86, 2.25, 2.72, 3.29, 3.98, 4.82, 5.83, 7.05, 8.53, 10.3, 12.5, 15.1, 18.3, 22.1, 26.8,
    32.4, 39.2, 47.4, 60.0,
)
# fmt: on
_BOUNDS = (*map(str, BUCKETS_S), "+Inf")
# The figures are those of the load, or of the probe.
SOURCES = ("load", "probe")
OUTCOMES = ("ok", "http_error", "timeout", "error")
# A latency counts from when the request was due (corrected), or sent (raw).
SINCE = ("due", "sent")
LEVELS = ("requests_in_flight", "requests_waiting", "connections_open")
# Ten scrapes.
KEPT_S = 10.0
CLIENT = ("server", "route", "mode", "source")
TRIAL = ("run", "trial", "server", "route", "engine", "mode", "concurrency", "phase")
TOXIC = ("proxy", "toxic", "type", "stream", "attribute")
ROUTE, PROXY = ("server", "route"), ("proxy",)
# Each metric: type, text and labels. Latencies are those of answers without an error, and of the
# probe's requests that timed out. What toxics add is absent if it is unknown of one of them.
METRICS = {
    "lab_client_requests_in_flight": (Gauge, "Sent and not answered yet.", CLIENT),
    "lab_client_requests_waiting": (Gauge, "Due, not sent: no connection was free.", CLIENT),
    "lab_client_connections_open": (Gauge, "Connections of the load that are open.", CLIENT),
    "lab_client_requests": (Counter, "Requests that ended, by outcome.", (*CLIENT, "outcome")),
    "lab_client_requests_offered": (Counter, "Requests of an open load that fell due.", CLIENT),
    "lab_client_connect_failures": (Counter, "Connections that could not be opened.", CLIENT),
    "lab_client_requests_skipped": (Counter, "Not sent: too many were unanswered.", CLIENT),
    "lab_client_request_seconds": (Histogram, "Latencies.", (*CLIENT, "phase", "since")),
    "lab_trial_info": (Gauge, "The trial that runs now: 1.", TRIAL),
    "lab_trial_concurrency": (Gauge, "Connections of the trial that runs.", ROUTE),
    "lab_trial_offered_rps": (Gauge, "Requests per second that an open trial offers.", ROUTE),
    "lab_toxiproxy_proxy_enabled": (Gauge, "1 if the proxy takes connections.", PROXY),
    "lab_toxics_in_force": (Gauge, "Number of toxics in force.", PROXY),
    "lab_toxics_added_latency_seconds": (Gauge, "Mean latency added to a round trip.", PROXY),
    "lab_toxics_changed_timestamp_seconds": (Gauge, "When last seen to change; 0: not yet.", PROXY),
    "lab_toxic_attribute": (Gauge, "Attributes in Toxiproxy's units, and toxicity.", TOXIC),
}
# A metric, the values of its labels, and its value; for a histogram buckets and sum.
Sample = tuple[Any, ...]


@dataclass(slots=True)
class Latencies:
    """Latencies by bucket of BUCKETS_S; the last one has no bound."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    sum_s: float = 0.0

    def add(self, latency_s: float, count: int = 1) -> None:
        """The caller adds to `sum_s`, and may know it more exactly."""
        self.counts[bisect_left(BUCKETS_S, latency_s)] += count


@dataclass(slots=True)
class Figures:
    """The counts of one client of a trial, from zero on. Only latencies are by phase and `since`: a
    rate over two series, of which one begins, is too low for a while. The latencies of a phase are
    exported up to its `until` (monotonic), and all figures up to the last of them."""

    client: tuple[str, ...]
    counts: dict[str, float]
    since: Sequence[str]
    outcomes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    phases: dict[str, dict[str, Latencies]] = field(default_factory=dict)
    until: dict[str, float] = field(default_factory=dict)

    def keep(self, phase: str, until: float) -> dict[str, Latencies]:
        """The latencies of a phase by `since`."""
        self.until[phase] = until
        return self.phases.setdefault(phase, {since: Latencies() for since in self.since})


class AgentMetrics(Collector):
    """The metrics of a trial while it runs, of the toxics while Toxiproxy answers, and of the
    client of a trial: the load itself if its engine streams its figures, else the probe."""

    def __init__(self, clock: Clock, trial: Callable[[], Trial | None], watch: ToxicsWatch) -> None:
        self._clock = clock
        self._trial = trial
        self._watch = watch
        self._figures: Figures | None = None

    def begin(
        self, trial: Trial, source: str, counts: Iterable[str], since: Sequence[str]
    ) -> Figures:
        """A client begins at zero, and replaces the one before."""
        client = (trial.server, trial.route, trial.mode, source)
        self._figures = Figures(client, dict.fromkeys(counts, 0.0), since)
        return self._figures

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Any] = {
            name: kind(name, text, labels=labels) for name, (kind, text, labels) in METRICS.items()
        }
        for name, labels, *values in (*self._of_client(), *self._of_trial(), *self._of_toxics()):
            families[name].add_metric(labels, *values)
        yield from families.values()

    def _of_client(self) -> Iterator[Sample]:
        figures, now = self._figures, self._clock.monotonic()
        if figures is None or max(figures.until.values()) < now:
            return
        for name, value in figures.counts.items():
            yield f"lab_client_{name}", figures.client, value
        for outcome, count in figures.outcomes.items():
            yield "lab_client_requests", (*figures.client, outcome), count
        for phase, by_since in figures.phases.items():
            for since, latencies in by_since.items() if now <= figures.until[phase] else ():
                buckets = list(zip(_BOUNDS, accumulate(latencies.counts), strict=True))
                labels = (*figures.client, phase, since)
                yield "lab_client_request_seconds", labels, buckets, latencies.sum_s

    def _of_trial(self) -> Iterator[Sample]:
        if (trial := self._trial()) is not None:
            where = (trial.server, trial.route)
            yield "lab_trial_info", [str(getattr(trial, name)) for name in TRIAL], 1
            yield "lab_trial_concurrency", where, trial.concurrency
            if trial.offered_rps is not None:
                yield "lab_trial_offered_rps", where, trial.offered_rps

    def _of_toxics(self) -> Iterator[Sample]:
        for proxy in self._watch.in_force.proxies if self._watch.in_force else ():
            where = (proxy.name,)
            times = self._watch.seen.last_changes(proxy.name).values()
            changed = max(times).timestamp() if times else 0.0
            yield "lab_toxiproxy_proxy_enabled", where, proxy.enabled
            yield "lab_toxics_in_force", where, len(proxy.toxics)
            yield "lab_toxics_changed_timestamp_seconds", where, changed
            added_ms = [t.added_latency_ms for t in proxy.toxics if t.added_latency_ms is not None]
            if len(added_ms) == len(proxy.toxics):
                yield "lab_toxics_added_latency_seconds", where, sum(added_ms) / 1000
            for toxic in proxy.toxics:
                labels = (proxy.name, toxic.name, toxic.type, toxic.stream)
                for name, value in {"toxicity": toxic.toxicity, **toxic.attributes}.items():
                    yield "lab_toxic_attribute", (*labels, name), value
