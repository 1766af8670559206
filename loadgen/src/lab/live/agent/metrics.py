"""The metrics that the agent exports, in one registry. Their names and labels are the lab's
vocabulary (prometheus/vocabulary.json). Buckets are those of the servers, so both sides compare.

One thread: the agent's event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from lab.live.agent.trial import Trial
from lab.live.agent.watch import ToxicsSeen

# Bounds are 5 % apart from 0.1 to 1 s, and 20 % outside: a percentile read from them is that exact.
# The servers' contract has the same list (a test compares them).
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
OUTCOMES = ("ok", "http_error", "timeout", "error")


class ProbeMetrics:
    """Counts and latencies of the probe, by server, route and load mode."""

    def __init__(self, registry: CollectorRegistry) -> None:
        probed = ("server", "route", "mode")
        self._latency = Histogram(
            "lab_probe_latency_seconds",
            "Client-side latency of the probe, from when each request was meant to be sent. "
            "Errors of status are in it; a timeout counts as the time waited.",
            probed,
            buckets=BUCKETS_S,
            registry=registry,
        )
        self._requests = Counter(
            "lab_probe_requests",
            "Probe requests by outcome: ok, http_error (status 400 and up), timeout, error.",
            ("server", "route", "outcome"),
            registry=registry,
        )
        self._skipped = Counter(
            "lab_probe_skipped",
            "Probe requests not sent because too many were unanswered.",
            ("server", "route"),
            registry=registry,
        )
        self._in_flight = Gauge(
            "lab_probe_in_flight",
            "Probe requests sent and not answered yet.",
            ("server", "route"),
            registry=registry,
        )

    def prepare(self, trial: Trial) -> None:
        """Make every series of the trial exist at zero, so that its first rate is right."""
        self._latency.labels(trial.server, trial.route, trial.mode)
        self._skipped.labels(trial.server, trial.route)
        self._in_flight.labels(trial.server, trial.route)
        for outcome in OUTCOMES:
            self._requests.labels(trial.server, trial.route, outcome)

    def sent(self, trial: Trial) -> None:
        """Count a request that is sent."""
        self._in_flight.labels(trial.server, trial.route).inc()

    def gone(self, trial: Trial) -> None:
        """Count a request that is no longer waited for."""
        self._in_flight.labels(trial.server, trial.route).dec()

    def answered(self, trial: Trial, outcome: str, latency_s: float) -> None:
        """Count a request that ended with ``outcome``, one of OUTCOMES. A failed connection has no
        latency."""
        self._requests.labels(trial.server, trial.route, outcome).inc()
        if outcome != "error":
            self._latency.labels(trial.server, trial.route, trial.mode).observe(latency_s)

    def skipped(self, trial: Trial) -> None:
        """Count a request that was not sent."""
        self._skipped.labels(trial.server, trial.route).inc()


class TrialCollector(Collector):
    """The marks of the trial that runs; without a trial there are none."""

    def __init__(self, current: Callable[[], Trial | None]) -> None:
        self._current = current

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One sample of each mark of the current trial."""
        trial = self._current()
        names = ("run", "trial", "server", "route", "engine", "mode", "concurrency", "phase")
        info = GaugeMetricFamily("lab_trial_info", "The trial that runs now: 1.", labels=names)
        where = ("server", "route")
        concurrency = GaugeMetricFamily(
            "lab_trial_concurrency", "Connections of the trial that runs now.", labels=where
        )
        offered = GaugeMetricFamily(
            "lab_trial_offered_rps",
            "Requests per second the running trial offers; absent in closed mode.",
            labels=where,
        )
        if trial is not None:
            info.add_metric([str(getattr(trial, name)) for name in names], 1)
            concurrency.add_metric([trial.server, trial.route], trial.concurrency)
            if trial.offered_rps is not None:
                offered.add_metric([trial.server, trial.route], trial.offered_rps)
        yield from (info, concurrency, offered)


class ToxicsCollector(Collector):
    """The toxics in force at the last look; nothing while Toxiproxy does not answer."""

    def __init__(self, seen: Callable[[], ToxicsSeen | None]) -> None:
        self._seen = seen

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One sample per proxy, and per attribute of each toxic."""
        per_proxy = ("proxy",)
        enabled = GaugeMetricFamily(
            "lab_toxiproxy_proxy_enabled", "1 if the proxy takes connections.", labels=per_proxy
        )
        in_force = GaugeMetricFamily(
            "lab_toxics_in_force", "Number of toxics in force.", labels=per_proxy
        )
        added = GaugeMetricFamily(
            "lab_toxics_added_latency_seconds",
            "Mean latency the latency toxics of both streams add to a round trip.",
            labels=per_proxy,
        )
        changed = GaugeMetricFamily(
            "lab_toxics_changed_timestamp_seconds",
            "When the proxy or its toxics were last seen to change; 0 = not since the agent runs.",
            labels=per_proxy,
        )
        attribute = GaugeMetricFamily(
            "lab_toxic_attribute",
            "Attributes of the toxics in force, in Toxiproxy's units; toxicity is one of them.",
            labels=("proxy", "toxic", "type", "stream", "attribute"),
        )
        seen = self._seen()
        for proxy in seen.in_force.proxies if seen else ():
            enabled.add_metric([proxy.name], float(proxy.enabled))
            in_force.add_metric([proxy.name], len(proxy.toxics))
            delays_ms = [toxic.added_latency_ms or 0.0 for toxic in proxy.toxics]
            added.add_metric([proxy.name], sum(delays_ms) / 1000)
            changed.add_metric([proxy.name], seen.last_change(proxy.name) if seen else 0.0)
            for toxic in proxy.toxics:
                identity = [proxy.name, toxic.name, toxic.type, toxic.stream]
                attribute.add_metric([*identity, "toxicity"], toxic.toxicity)
                for name, value in toxic.attributes:
                    attribute.add_metric([*identity, name], value)
        yield from (enabled, in_force, added, changed, attribute)
