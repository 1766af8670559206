"""Reach the lab over HTTP: health, identity, settings, toxics, marks of trials.

Everything is read back from the parts themselves; nothing is assumed from configuration.
Every call has a deadline. One thread.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from lab.errors import LabUnreachable
from lab.model import Exported, Identity, Json, Series, Snapshot, ToxicState, TrialPlan
from lab.model.routes import EXPORTER_PORT, THIS_MACHINE
from lab.model.toxics import ToxicsInForce
from lab.store.records import from_json
from lab.system.toxiproxy import Toxiproxy

TRAFFIC_PORT = 8080
MANAGEMENT_PORT = 8081
DEADLINE_S = 5.0
# A route's first answer on a cold JVM, through a delay and toxics.
ROUTE_DEADLINE_S = 30.0
# A foreign service's first answer may be a stream that never ends: no more is read of it.
BODY_DEADLINE_S = 10.0
BODY_BYTES = 1 << 20
AGENT_DEADLINE_S = 2.0
# The agent looks at Toxiproxy before it tells what it saw.
LOOK_DEADLINE_S = 10.0
# The most of a server's bound (of a foreign service: of what its light load did) that the live
# probe may use: what a trial may miss (99 % kept).
PROBE_SHARE = 0.01
# The counter is read at the edges of a trial's window: late is worse than not at all.
COMPILATION_DEADLINE_S = 2.0
# A thousand series of minutes on a busy machine.
SERIES_DEADLINE_S = 60.0
# A full collection of a large heap on a busy machine.
COLLECTION_DEADLINE_S = 60.0
MODEL_HEADER = "Lab-Model"
_IN_FLIGHT = re.compile(r"(?m)^lab_http_requests_in_flight(?:\{[^}]*\})? ([0-9.eE+-]+)")

_PROCESS = re.compile(r"(?m)^process_(resident_memory_bytes|open_fds) ([0-9.eE+]+)")
_LEASED = re.compile(r"(?m)^lab_downstream_connections_leased ([0-9.eE+]+)")
_DESCRIPTORS = re.compile(r"(?m)^process_(open|max)_fds ([0-9.eE+]+)")
_CPU = re.compile(r"(?m)^process_cpu_seconds_total ([0-9.eE+-]+)")
_STARTED = re.compile(r"(?m)^process_start_time_seconds ([0-9.eE+]+)")
_JDK = re.compile(r'(?m)^jvm_runtime_info\{[^}]*version="([^"]+)"')
_POOL_SIZE = re.compile(r"(?m)^lab_worker_pool_size(?:\{[^}]*\})? ([0-9.eE+-]+)$")
_MAX_HEAP = re.compile(r'(?m)^jvm_memory_max_bytes\{area="heap",?\} (\S+)')
_COMPILATION = re.compile(r"(?m)^jvm_compilation_time_seconds_total ([0-9.eE+-]+)")
_WORK = re.compile(r"(?m)^(lab_http_requests_total|lab_http_request_seconds_bucket)\{(.*)\} (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Urls:
    """Where the parts of the lab are, besides the servers (which are reached by name)."""

    prometheus: str
    toxiproxy: str
    downstream: str
    agent: str

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Urls:
        """From LAB_*_URL; the defaults are the names inside the lab's network."""

        def url(name: str, default: str) -> str:
            return environ.get(f"LAB_{name}_URL", default).rstrip("/")

        return cls(
            prometheus=url("PROMETHEUS", "http://prometheus:9090"),
            toxiproxy=url("TOXIPROXY", "http://toxiproxy:8474"),
            downstream=url("DOWNSTREAM", "http://downstream:8081"),
            agent=url("AGENT", "http://loadgen:9464"),
        )


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """What a server's process has of the machine."""

    resident_bytes: int
    open_files: int


@dataclass(frozen=True, slots=True)
class RouteWork:
    """What a server counted of one route since its start: requests answered, and (upper bound
    in seconds, requests up to it) pairs of the time they took in all. `failed` of the requests
    had another outcome than ok."""

    requests: float
    buckets: tuple[tuple[float, float], ...]
    failed: float = 0.0


@dataclass(frozen=True, slots=True)
class ToxicsSeen:
    """What the agent saw of the toxics. `history` has every change as (when, proxy, toxic, "" for
    down and up); `watched` are its first and last look (None: none was answered), and `gaps` times
    in between without any."""

    history: tuple[tuple[datetime, str, str], ...]
    watched: tuple[datetime, datetime] | None
    gaps: tuple[tuple[datetime, datetime], ...]


@dataclass(frozen=True, slots=True)
class Target:
    """A scrape target as Prometheus sees it."""

    job: str
    instance: str
    up: bool
    error: str


@dataclass(frozen=True, slots=True)
class _Foreign:
    """A service that is not the lab's; `exporter`: a JMX exporter answers on its host, and
    `scraped`: Prometheus has it in its list."""

    url: str
    route: str
    exporter: bool
    scraped: bool


class Stack:
    """The running lab. `transport` is the seam for tests (httpx.MockTransport)."""

    def __init__(self, urls: Urls, transport: httpx.BaseTransport | None = None) -> None:
        self._urls = urls
        self._transport = transport
        self._http = httpx.Client(transport=transport, timeout=DEADLINE_S, trust_env=False)
        self._foreign: dict[str, _Foreign] = {}

    def adopt(self, server: str, url: str, route: str = "/") -> None:
        """From now on `server` is a service that is not the lab's (foreign), at `url` (scheme,
        host and port), asked on `route`. Whether a JMX exporter answers on its host is asked once,
        here: a host may run other JVMs beside the service, so it counts only where the user has
        listed the host for Prometheus."""
        exporter = scraped = False
        with suppress(LabUnreachable):
            instance = f"{server}:{EXPORTER_PORT}"
            scraped = any(one.job == "jvm" and one.instance == instance for one in self.targets())
        with suppress(LabUnreachable):
            if scraped:
                self._exported(server, _STARTED, "process_start_time_seconds")
                exporter = True
        self._foreign[server] = _Foreign(url, route, exporter, scraped)

    def is_foreign(self, server: str) -> bool:
        """Whether it was adopted."""
        return server in self._foreign

    def answers(self, server: str, deadline_s: float) -> bool:
        """Whether a foreign service begins to answer its route within the deadline, whatever it
        says."""
        url = self.traffic_url(server, self._foreign[server].route)
        try:
            with self._http.stream("GET", url, timeout=deadline_s):
                pass
        except httpx.TimeoutException:
            return False
        except httpx.HTTPError:
            return True
        return True

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    @property
    def prometheus_url(self) -> str:
        """Where its Prometheus is."""
        return self._urls.prometheus

    def traffic_url(self, server: str, route: str) -> str:
        """The URL a load engine asks."""
        foreign = self._foreign.get(server)
        if foreign is not None:
            return foreign.url + route
        return f"http://{server}:{TRAFFIC_PORT}{route}"

    def identity(self, server: str) -> Identity:
        """Who answers on the server's management port. Raises LabUnreachable."""
        answer = self._get(self._management(server, "/identity"), server)
        try:
            known = {name: answer[name] for name in Identity.__dataclass_fields__}
            return from_json(Identity, known)
        except KeyError as failure:
            raise LabUnreachable(f"{server}: its identity has no {failure}") from None
        except ValueError as failure:
            raise LabUnreachable(f"{server}: its identity is wrong: {failure}") from None

    def settings(self, server: str) -> Mapping[str, Json]:
        """The server's effective settings. Raises LabUnreachable."""
        answer = self._get(self._management(server, "/settings"), server)
        settings = answer.get("settings")
        if not isinstance(settings, dict):
            raise LabUnreachable(f"{server}: its settings hold no object 'settings'")
        return settings

    def change_knobs(self, server: str, wanted: Mapping[str, int]) -> None:
        """Change knobs of a running server, all or none, and read them back. Raises
        LabUnreachable, also with the server's own words where it refuses."""
        url = self._management(server, "/settings")
        try:
            answer = self._http.patch(url, json=dict(wanted))
        except httpx.HTTPError as failure:
            raise LabUnreachable(f"{server}: {url} does not answer: {_text(failure)}") from None
        if not answer.is_success:
            refused = self._object(answer, server).get("error", answer.status_code)
            raise LabUnreachable(f"{server}: {refused}")
        now = self.settings(server)
        for name, value in wanted.items():
            if now.get(name) != value:
                raise LabUnreachable(f"{server}: {name} reads back {now.get(name)}, not {value}")

    def downstream_delay_ms(self) -> float:
        """The delay the downstream says it has. Raises LabUnreachable."""
        answer = self._get(f"{self._urls.downstream}/settings", "downstream")
        delay = answer.get("delay_ms")
        if isinstance(delay, bool) or not isinstance(delay, int | float):
            raise LabUnreachable("downstream: its settings hold no delay_ms")
        return float(delay)

    def toxiproxy(self) -> Toxiproxy:
        """To change toxics; the caller closes it."""
        return Toxiproxy(self._urls.toxiproxy, self._transport)

    def proxy_files_used(self) -> float:
        """The share of Toxiproxy's descriptors that is in use. Raises LabUnreachable."""
        url = f"{self._urls.toxiproxy}/metrics"
        text = self._call(lambda: self._http.get(url), "toxiproxy").text
        known = {name: float(value) for name, value in _DESCRIPTORS.findall(text)}
        if len(known) < 2 or not known["max"]:
            raise LabUnreachable(f"toxiproxy: {url} does not tell its descriptors")
        return known["open"] / known["max"]

    def proxy_answers(self, deadline_s: float) -> bool:
        """Whether every proxy that is up answers a request in time, whatever it says. Raises
        LabUnreachable when Toxiproxy itself does not tell which there are."""
        host = httpx.URL(self._urls.toxiproxy).host
        with self.toxiproxy() as toxiproxy:
            proxies = toxiproxy.in_force().proxies
        for proxy in proxies:
            port = proxy.listen.rpartition(":")[2]
            try:
                if proxy.enabled:
                    self._http.get(f"http://{host}:{port}/", timeout=deadline_s)
            except httpx.HTTPError:
                return False
        return True

    def toxics(self) -> ToxicState:
        """The toxics in force. Raises LabUnreachable."""
        with self.toxiproxy() as toxiproxy:
            return toxic_state(toxiproxy.in_force())

    def snapshot(self, server: str) -> Snapshot:
        """All that a trial on this server depends on. Raises LabUnreachable."""
        foreign = self._foreign.get(server)
        if foreign is not None:
            return Snapshot(
                identity=None,
                settings={"url": foreign.url},
                toxics=self.toxics(),
                downstream_delay_ms=self.downstream_delay_ms(),
                exported=self._exporter(server, foreign) if foreign.exporter else None,
            )
        return Snapshot(
            identity=self.identity(server),
            settings=self.settings(server),
            toxics=self.toxics(),
            downstream_delay_ms=self.downstream_delay_ms(),
        )

    def _check_foreign(self, server: str, route: str) -> str | None:
        """One request to a service that is not the lab's. Returns what is wrong with its answer
        where the load would be answered all the same, None when all is well. Raises LabUnreachable
        when it does not answer, or not on this path."""
        url = self.traffic_url(server, route)
        try:
            with self._http.stream("GET", url, timeout=ROUTE_DEADLINE_S) as answer:
                ended = _ends(answer, time.monotonic() + BODY_DEADLINE_S)
        except httpx.HTTPError as failure:
            hint = ""
            if server == THIS_MACHINE:
                hint = (
                    "; on this machine it must listen on an address that containers can reach "
                    "(0.0.0.0, or that of docker0), not only on 127.0.0.1"
                )
            raise LabUnreachable(f"{url} does not answer: {_text(failure)}{hint}") from None
        if answer.status_code in (404, 405):
            raise LabUnreachable(f"{url} answers {answer.status_code}: not served")
        if answer.is_redirect:
            return f"{route} answers {answer.status_code}: redirects are measured, not followed"
        if not answer.is_success:
            return f"{route} answers {answer.status_code}"
        if not ended:
            return (
                f"{route} still answers after {BODY_DEADLINE_S:.0f} s: requests that do not end "
                "in the window are not counted"
            )
        return None

    def check_route(self, server: str, route: str) -> str | None:
        """One request of the route: that it is served, and by the right model.

        Returns what is wrong with the answer where toxics may be the reason (a bad status),
        None when all is well. Raises LabUnreachable when it is not that server's route.
        """
        if server in self._foreign:
            return self._check_foreign(server, route)
        url = self.traffic_url(server, route)
        try:
            answer = self._http.get(url, timeout=ROUTE_DEADLINE_S)
        except httpx.HTTPError as failure:
            raise LabUnreachable(f"{server}: {url} does not answer: {_text(failure)}") from None
        model = answer.headers.get(MODEL_HEADER)
        if model != server:
            raise LabUnreachable(
                f"{server}: {url} is answered by {model or 'something without a name'}"
            )
        if answer.status_code in (404, 405):
            raise LabUnreachable(f"{server}: {route} answers {answer.status_code}: not served")
        return None if answer.status_code == 200 else f"{route} answers {answer.status_code}"

    def in_flight(self, server: str) -> int:
        """Requests the server still works on, queued ones included. Raises LabUnreachable, as a
        foreign service does not tell."""
        if server in self._foreign:
            raise LabUnreachable(f"{server}: what it still works on is not known")
        url = self._management(server, "/metrics")
        text = self._call(lambda: self._http.get(url), server).text
        return round(sum(float(found[1]) for found in _IN_FLIGHT.finditer(text)))

    def leased(self, server: str) -> int:
        """Downstream calls under way, as the server's JMX exporter tells it; 0 where it does not.
        Raises LabUnreachable."""
        url = f"http://{server}:{EXPORTER_PORT}/metrics"
        found = _LEASED.search(self._call(lambda: self._http.get(url), server).text)
        return round(float(found[1])) if found else 0

    def restart(self, server: str) -> None:
        """Tell the server's JVM to end; Docker starts the next. Raises LabUnreachable."""
        self._call(lambda: self._http.post(self._management(server, "/restart")), server)

    def healthy(self, server: str) -> None:
        """Raises LabUnreachable unless the server's traffic port answers, as itself."""
        url = self.traffic_url(server, "/health")
        answer = self._call(lambda: self._http.get(url), server)
        if answer.headers.get(MODEL_HEADER) != server:
            raise LabUnreachable(f"{server}: {url} is answered by another server")

    def collect_garbage(self, server: str) -> int:
        """Make the server's JVM collect everything; the bytes of heap that are live then.
        Raises LabUnreachable."""
        url = self._management(server, "/gc")
        answer = self._object(
            self._call(lambda: self._http.post(url, timeout=COLLECTION_DEADLINE_S), server), server
        )
        used = answer.get("heap_used_bytes")
        if isinstance(used, bool) or not isinstance(used, int):
            raise LabUnreachable(f"{server}: its answer to /gc holds no heap_used_bytes")
        return used

    def process(self, server: str) -> ProcessUse:
        """The server's process as its JMX exporter sees it. Raises LabUnreachable."""
        url = f"http://{server}:{EXPORTER_PORT}/metrics"
        text = self._call(lambda: self._http.get(url), server).text
        known = {name: float(value) for name, value in _PROCESS.findall(text)}
        try:
            return ProcessUse(
                resident_bytes=round(known["resident_memory_bytes"]),
                open_files=round(known["open_fds"]),
            )
        except KeyError as failure:
            missing = f"process_{failure.args[0]}"
            raise LabUnreachable(f"{server}: {url} has no {missing}") from None

    def compilation_s(self, server: str) -> float:
        """JIT compile time of the server's JVM so far, as its JMX exporter tells it: summed over
        the compiler's threads, each compilation when it ends. Raises LabUnreachable."""
        self._need_exporter(server)
        return self._exported(server, _COMPILATION, "jvm_compilation_time_seconds_total")

    def cpu_s(self, server: str) -> float:
        """CPU seconds the server's process used so far, as its JMX exporter tells it. Raises
        LabUnreachable."""
        self._need_exporter(server)
        return self._exported(server, _CPU, "process_cpu_seconds_total")

    def work(self, server: str, route: str) -> RouteWork:
        """What the server counted of a route (its query is ignored). Raises LabUnreachable."""
        url = self._management(server, "/metrics")
        text = self._call(lambda: self._http.get(url), server).text
        requests, failed, buckets = 0.0, 0.0, []
        for name, inner, value in _WORK.findall(text):
            labels = dict(_LABEL.findall(inner))
            if labels.get("route") != route.partition("?")[0]:
                continue
            if name == "lab_http_requests_total":
                requests += float(value)
                failed += float(value) if labels.get("outcome") != "ok" else 0.0
            elif labels.get("phase") == "total":
                buckets.append((float(labels["le"]), float(value)))
        return RouteWork(requests, tuple(sorted(buckets)), failed)

    def mark(
        self,
        run: str,
        plan: TrialPlan,
        phase: str,
        expires_s: float,
        light_rps: float | None = None,
    ) -> None:
        """Tell the agent which trial runs, in which phase; it forgets by itself after
        `expires_s`, should the driver die. `light_rps` is what a foreign service did under its
        light load: without, nothing tells how little a probe may send, and none is sent. Raises
        LabUnreachable."""
        most_rps = plan.predicted_rps
        if plan.server in self._foreign:
            most_rps = min(light_rps or 0.0, plan.offered_rps or math.inf)
        mark = {
            "run": run,
            "trial": plan.trial,
            "server": plan.server,
            # The label of the servers' own metrics is the path alone.
            "route": plan.route.partition("?")[0],
            "engine": plan.engine,
            "mode": plan.mode,
            "concurrency": plan.concurrency,
            "offered_rps": plan.offered_rps,
            "phase": phase,
            "url": plan.url,
            "probe_rps": None if most_rps is None else PROBE_SHARE * most_rps,
            "expires_s": expires_s,
        }
        url = f"{self._urls.agent}/trial"
        self._call(lambda: self._http.put(url, json=mark, timeout=AGENT_DEADLINE_S), "agent")

    def unmark(self) -> None:
        """Tell the agent that no trial runs. Raises LabUnreachable."""
        url = f"{self._urls.agent}/trial"
        self._call(lambda: self._http.delete(url, timeout=AGENT_DEADLINE_S), "agent")

    def toxics_seen(self) -> ToxicsSeen:
        """What the agent saw of the toxics up to now. Raises LabUnreachable."""
        url = f"{self._urls.agent}/toxics"
        answer = self._object(
            self._call(lambda: self._http.get(url, timeout=LOOK_DEADLINE_S), "agent"), "agent"
        )
        try:
            watched = answer["watched"]
            return ToxicsSeen(
                history=tuple(
                    (datetime.fromisoformat(one["since"]), str(one["proxy"]), str(one["toxic"]))
                    for one in answer["history"]
                ),
                watched=_span(watched) if watched else None,
                gaps=tuple(_span(gap) for gap in watched["gaps"]) if watched else (),
            )
        except (KeyError, TypeError, ValueError) as failure:
            raise LabUnreachable(f"agent: what it saw of the toxics is wrong: {failure}") from None

    def agent_health(self) -> None:
        """Raises LabUnreachable unless the agent is well."""
        self._call(lambda: self._http.get(f"{self._urls.agent}/health"), "agent")

    def targets(self) -> tuple[Target, ...]:
        """Prometheus' active targets. Raises LabUnreachable."""
        answer = self._get(f"{self._urls.prometheus}/api/v1/targets?state=active", "prometheus")
        try:
            return tuple(
                Target(
                    job=str(target["labels"]["job"]),
                    instance=str(target["labels"]["instance"]),
                    up=target["health"] == "up",
                    error=str(target.get("lastError", "")),
                )
                for target in answer["data"]["activeTargets"]
            )
        except (KeyError, TypeError) as failure:
            raise LabUnreachable(f"prometheus: its targets have no {failure}") from None

    def prometheus_version(self) -> str:
        """Raises LabUnreachable."""
        url = f"{self._urls.prometheus}/api/v1/status/buildinfo"
        return str(self._get(url, "prometheus").get("data", {}).get("version", "unknown"))

    def series(self, selector: str, until_s: float) -> tuple[Series, ...]:
        """The samples Prometheus has of a range selector that ends at `until_s` (seconds since
        1970), without those that are not finite. Raises LabUnreachable."""
        url = f"{self._urls.prometheus}/api/v1/query"
        asked = {"query": selector, "time": f"{until_s:.3f}"}
        answer = self._object(
            self._call(
                lambda: self._http.post(url, data=asked, timeout=SERIES_DEADLINE_S), "prometheus"
            ),
            "prometheus",
        )
        try:
            found = []
            for result in answer["data"]["result"]:
                pairs = [(float(at), float(value)) for at, value in result["values"]]
                finite = [(at, value) for at, value in pairs if math.isfinite(value)]
                if finite:
                    times, values = zip(*finite, strict=True)
                    found.append(Series(result["metric"], times, values))
            return tuple(found)
        except (KeyError, TypeError, ValueError) as failure:
            raise LabUnreachable(f"prometheus: its answer to {selector} is wrong: {failure}") from (
                None
            )

    def _exporter(self, server: str, foreign: _Foreign) -> Exported:
        url = f"http://{server}:{EXPORTER_PORT}/metrics"
        text = self._call(lambda: self._http.get(url), server).text
        started, jdk, heap = (one.search(text) for one in (_STARTED, _JDK, _MAX_HEAP))
        if started is None:
            raise LabUnreachable(f"{server}: {url} has no process_start_time_seconds")
        most = float(heap[1]) if heap else 0.0
        pools = [float(size) for size in _POOL_SIZE.findall(text)]
        return Exported(
            start_time_ms=round(float(started[1]) * 1000),
            jdk=jdk[1] if jdk else None,
            max_heap_bytes=round(most) if most > 0 else None,
            pool_size=round(pools[0]) if len(pools) == 1 and pools[0] > 0 else None,
            scraped=foreign.scraped,
        )

    def _need_exporter(self, server: str) -> None:
        """Spares a foreign service without one the wait for a deadline. Raises LabUnreachable."""
        foreign = self._foreign.get(server)
        if foreign is not None and not foreign.exporter:
            raise LabUnreachable(
                f"{server}: no JMX exporter on port {EXPORTER_PORT} that prometheus/own.json lists"
            )

    def _exported(self, server: str, pattern: re.Pattern[str], name: str) -> float:
        url = f"http://{server}:{EXPORTER_PORT}/metrics"
        text = self._call(lambda: self._http.get(url, timeout=COMPILATION_DEADLINE_S), server).text
        found = pattern.search(text)
        if found is None:
            raise LabUnreachable(f"{server}: {url} has no {name}")
        return float(found[1])

    def _management(self, server: str, path: str) -> str:
        return f"http://{server}:{MANAGEMENT_PORT}{path}"

    def _get(self, url: str, who: str) -> dict[str, Any]:
        return self._object(self._call(lambda: self._http.get(url), who), who)

    @staticmethod
    def _object(answer: httpx.Response, who: str) -> dict[str, Any]:
        try:
            body = answer.json()
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise LabUnreachable(f"{who}: {answer.url} does not answer with a JSON object")
        return body

    def _call(self, ask: Callable[[], httpx.Response], who: str) -> httpx.Response:
        try:
            return ask().raise_for_status()
        except httpx.HTTPStatusError as failure:
            request, status = failure.request, failure.response.status_code
            raise LabUnreachable(f"{who}: {request.url} answers {status}") from None
        except httpx.HTTPError as failure:
            url = failure.request.url
            raise LabUnreachable(f"{who}: {url} does not answer: {_text(failure)}") from None


def toxic_state(in_force: ToxicsInForce) -> ToxicState:
    """Toxiproxy's records as the part of them that a trial depends on."""
    names = []
    for proxy, toxic in in_force.toxics:
        values = " ".join(f"{name}={value}" for name, value in toxic.attributes)
        names.append(
            f"{proxy}/{toxic.name} {toxic.type} {values} stream={toxic.stream} "
            f"toxicity={toxic.toxicity:g}"
        )
    names += [f"{proxy.name} down" for proxy in in_force.proxies if not proxy.enabled]
    return ToxicState(
        in_force=tuple(sorted(names)),
        added_latency_ms=in_force.added_latency_ms,
        unpredicted=in_force.unpredicted,
    )


def _ends(answer: httpx.Response, until_s: float) -> bool:
    """Whether the answer's body ends before `until_s` (of time.monotonic), as far as it is read:
    one of more than BODY_BYTES counts as one that does. Raises httpx.HTTPError, but not for a
    body that pauses until then."""
    read = 0
    try:
        for chunk in answer.iter_raw():
            read += len(chunk)
            if read > BODY_BYTES:
                return True
            if time.monotonic() >= until_s:
                return False
    except httpx.ReadTimeout:
        return False
    return True


def _span(told: Mapping[str, str]) -> tuple[datetime, datetime]:
    return datetime.fromisoformat(told["from"]), datetime.fromisoformat(told["to"])


def _text(failure: Exception) -> str:
    return str(failure) or type(failure).__name__
