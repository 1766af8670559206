"""The metrics that the agent exports, in one registry. Their names and labels are the lab's
vocabulary (prometheus/vocabulary.json). Buckets are those of the servers, so both sides compare.

One thread: the agent's event loop.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from lab.live.agent.load import Told
from lab.live.agent.trial import Trial
from lab.live.agent.watch import ToxicsSeen
from lab.live.clock import Clock

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
_BOUNDS = (*map(str, BUCKETS_S), "+Inf")
# Whose figures they are: those of the load itself, or of the probe beside it.
SOURCES = ("load", "probe")
OUTCOMES = ("ok", "http_error", "timeout", "error")
# From when a latency counts: when the request was due (corrected), or when it was sent (raw).
SINCE = ("due", "sent")
# The other things that a client counts.
OTHERS = {
    "requests_offered": "Requests of an open load that fell due, if they could be sent or not.",
    "connect_failures": "Attempts of the load to open a connection that failed: no requests.",
    "requests_skipped": "Probe requests not sent because too many were unanswered.",
}
CLIENT = ("server", "route", "mode", "source")
# Many scrapes of a second each.
KEPT_S = 10.0


@dataclass(slots=True)
class _Latencies:
    """Latencies by the bucket of BUCKETS_S they fall in, the last one without a bound."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    sum_s: float = 0.0

    def add(self, latency_s: float, count: int = 1) -> None:
        self.counts[bisect_left(BUCKETS_S, latency_s)] += count


@dataclass(slots=True)
class _Client:
    """One client: its counts, of which only latencies are by phase, and its levels (None: it has no
    such). A rate over two series, of which one begins, is too low for a while: requests have one.
    ``at`` is when (monotonic) it last counted something, by phase."""

    others: dict[str, int]
    outcomes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    latencies: dict[str, dict[str, _Latencies]] = field(default_factory=dict)
    at: dict[str, float] = field(default_factory=dict)
    in_flight: int = 0
    waiting: int | None = None
    connections: int | None = None


class ClientMetrics(Collector):
    """What the clients of a trial see: the load itself where its engine tells that while it runs,
    or else the probe. Everything begins at 0 with each trial, and is gone KEPT_S after the last
    request or second of it, so that a scrape is as long after many trials as after one.

    ``due`` gives what the load has told that counts by now, and ``current`` the trial that runs.
    """

    def __init__(
        self,
        clock: Clock,
        current: Callable[[], Trial | None],
        due: Callable[[], Iterable[Told]],
    ) -> None:
        self._clock = clock
        self._current = current
        self._due = due
        self._clients: dict[tuple[str, ...], _Client] = {}

    def probes(self, trial: Trial) -> None:
        """A probe begins: make its series exist at zero, so that its first rate is right."""
        self._clients.pop(_labels(trial, "probe"), None)
        self._probe(trial)

    def sent(self, trial: Trial) -> None:
        self._probe(trial).in_flight += 1

    def gone(self, trial: Trial) -> None:
        """Count a request of the probe that is no longer waited for."""
        if client := self._clients.get(_labels(trial, "probe")):
            client.in_flight -= 1

    def answered(self, trial: Trial, outcome: str, latency_s: float) -> None:
        """Count a request of the probe that ended with ``outcome``, one of OUTCOMES. A failed
        connection has no latency, and a status that is an error has none of an answer."""
        probe = self._probe(trial)
        probe.outcomes[outcome] += 1
        if outcome in ("ok", "timeout"):
            latencies = probe.latencies[""]["due"]
            latencies.add(latency_s)
            latencies.sum_s += latency_s

    def skipped(self, trial: Trial) -> None:
        self._probe(trial).others["requests_skipped"] += 1

    def collect(self) -> Iterator[Metric]:
        """The series of every client that did something in the last KEPT_S."""
        for told in self._due():
            self._load(told)
        trial, now = self._current(), self._clock.monotonic()
        if trial is not None and _labels(trial, "probe") in self._clients:
            self._probe(trial)  # It may be slow: it has its series as long as it runs.
        for labels, client in tuple(self._clients.items()):
            for phase, at in tuple(client.at.items()):
                if now - at > KEPT_S:
                    del client.at[phase], client.latencies[phase]
            if not client.at:
                del self._clients[labels]
        yield from self._families()

    def _families(self) -> Iterator[Metric]:
        levels = (
            _gauge("lab_client_requests_in_flight", "Sent and not answered yet.", CLIENT),
            _gauge(
                "lab_client_requests_waiting",
                "Due, and not sent, as no connection is free. The load's alone.",
                CLIENT,
            ),
            _gauge("lab_client_connections_open", "Open. The load's alone.", CLIENT),
        )
        requests = CounterMetricFamily(
            "lab_client_requests",
            "Requests by outcome: ok, http_error (status 400 and up, or not as a subject expects), "
            "timeout, error.",
            labels=(*CLIENT, "outcome"),
        )
        others = {
            name: CounterMetricFamily(f"lab_client_{name}", text, labels=CLIENT)
            for name, text in OTHERS.items()
        }
        seconds = HistogramMetricFamily(
            "lab_client_request_seconds",
            "Latency of requests as their client sees it, from when each was due, or was sent. "
            "Errors of status are not in it; a timeout of the probe counts as the time waited.",
            labels=(*CLIENT, "phase", "since"),
        )
        for labels, client in self._clients.items():
            now = (client.in_flight, client.waiting, client.connections)
            for gauge, level in zip(levels, now, strict=True):
                if level is not None:
                    gauge.add_metric(labels, level)
            for outcome, count in client.outcomes.items():
                requests.add_metric((*labels, outcome), count)
            for name, count in client.others.items():
                others[name].add_metric(labels, count)
            for phase, by_since in client.latencies.items():
                for since, latencies in by_since.items():
                    buckets = list(zip(_BOUNDS, accumulate(latencies.counts), strict=True))
                    seconds.add_metric((*labels, phase, since), buckets, latencies.sum_s)
        yield from (*levels, requests, *others.values(), seconds)

    def _load(self, told: Told) -> None:
        if told.begins:
            self._clients.pop(_labels(told.trial, "load"), None)
        is_open = told.trial.mode == "open"
        since = SINCE if is_open else ("sent",)
        others = ("connect_failures", "requests_offered") if is_open else ("connect_failures",)
        client = self._client(told.trial, "load", told.phase, since, others)
        second, by_since = told.second, client.latencies[told.phase]
        client.in_flight = second.unfinished - second.waiting
        client.waiting, client.connections = second.waiting, second.connections
        client.others["connect_failures"] += sum(second.connect_failed.values())
        if is_open:
            client.others["requests_offered"] += second.due
        errors = sum(second.socket_errors.values())
        ended = (second.ok, second.http_errors, second.timeouts, errors)
        for outcome, count in zip(OUTCOMES, ended, strict=True):
            client.outcomes[outcome] += count
        for one, times in (("due", second.corrected), ("sent", second.raw)):
            if times is not None and one in by_since:
                for upper_us, count in times.buckets:
                    by_since[one].add(upper_us / 1e6, count)
                by_since[one].sum_s += times.sum_us / 1e6

    def _probe(self, trial: Trial) -> _Client:
        """Its latencies are of no phase: it sends the same in both."""
        return self._client(trial, "probe", "", ("due",), ("requests_skipped",))

    def _client(
        self, trial: Trial, source: str, phase: str, since: Iterable[str], others: Iterable[str]
    ) -> _Client:
        """The client, from zero on where it is new, and so its latencies of a phase."""
        client = self._clients.setdefault(_labels(trial, source), _Client(dict.fromkeys(others, 0)))
        client.latencies.setdefault(phase, {one: _Latencies() for one in since})
        client.at[phase] = self._clock.monotonic()
        return client


def _gauge(name: str, text: str, labels: tuple[str, ...]) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=labels)


def _labels(trial: Trial, source: str) -> tuple[str, ...]:
    return trial.server, trial.route, trial.mode, source


class TrialCollector(Collector):
    """The marks of the trial that runs; without a trial there are none."""

    def __init__(self, current: Callable[[], Trial | None]) -> None:
        self._current = current

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One sample of each mark of the current trial."""
        trial = self._current()
        names = ("run", "trial", "server", "route", "engine", "mode", "concurrency", "phase")
        info = _gauge("lab_trial_info", "The trial that runs now: 1.", names)
        where = ("server", "route")
        concurrency = _gauge("lab_trial_concurrency", "Connections of the trial that runs.", where)
        offered = _gauge(
            "lab_trial_offered_rps",
            "Requests per second the running trial offers; absent in closed mode.",
            where,
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
        of = ("proxy",)
        enabled = _gauge("lab_toxiproxy_proxy_enabled", "1 if the proxy takes connections.", of)
        in_force = _gauge("lab_toxics_in_force", "Number of toxics in force.", of)
        added = _gauge(
            "lab_toxics_added_latency_seconds",
            "Mean latency the toxics of both streams add to a round trip; absent while that of one "
            "is not known.",
            of,
        )
        changed = _gauge(
            "lab_toxics_changed_timestamp_seconds",
            "When the proxy or its toxics were last seen to change; 0 = not since the agent runs.",
            of,
        )
        attribute = _gauge(
            "lab_toxic_attribute",
            "Attributes of the toxics in force, in Toxiproxy's units; toxicity is one of them.",
            ("proxy", "toxic", "type", "stream", "attribute"),
        )
        seen = self._seen()
        for proxy in seen.in_force.proxies if seen else ():
            enabled.add_metric([proxy.name], float(proxy.enabled))
            in_force.add_metric([proxy.name], len(proxy.toxics))
            delays_ms = [t.added_latency_ms for t in proxy.toxics if t.added_latency_ms is not None]
            if len(delays_ms) == len(proxy.toxics):
                added.add_metric([proxy.name], sum(delays_ms) / 1000)
            changed.add_metric([proxy.name], seen.last_change(proxy.name) if seen else 0.0)
            for toxic in proxy.toxics:
                identity = [proxy.name, toxic.name, toxic.type, toxic.stream]
                attribute.add_metric([*identity, "toxicity"], toxic.toxicity)
                for name, value in toxic.attributes.items():
                    attribute.add_metric([*identity, name], value)
        yield from (enabled, in_force, added, changed, attribute)
