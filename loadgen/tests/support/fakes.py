"""A lab made of fakes: HTTP answers and an engine; and records of its trials."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import replace
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

import httpx
from msgspec.structs import asdict

from lab.errors import RawDataError
from lab.judge.checks import judge
from lab.judge.metrics import CPUS, RUN, RUNQ, USED
from lab.judge.resources import verdict_of
from lab.judge.row import row_of
from lab.judge.trial import Trial
from lab.load.engines import Engine, Schedule
from lab.load.engines.base import StartCheck
from lab.load.engines.pacer_output import Line
from lab.model import (
    Counts,
    Identity,
    Latency,
    Measurement,
    Mode,
    Observation,
    Reading,
    Remark,
    Row,
    Series,
    Snapshot,
    ToxicState,
    TrialPlan,
    TrialRecord,
    Usage,
    Warmth,
)
from lab.model.routes import ROUTES
from lab.subject.external_service import ExternalService
from lab.subject.lab_server import LabServer
from lab.subject.subject import Subject
from lab.system.host_changes import HostChanges
from lab.system.network import Reached
from lab.system.stack import Stack
from support.pacer import second
from support.system import START, FakeSystem
from support.toxiproxy import FakeToxiproxy

JOBS = ("server", "jvm", "downstream", "toxiproxy", "cadvisor", "loadgen")
IDENTITY = Identity("a", "1", "25", 1, 1000, 2, 2**29, ("G1 Young Generation",), ("-Xmx512m",))
USAGE = Usage(5.0, 3.0, 0.5, 0.0, 0.1, 10_000, 0.0)
SETTINGS = {"pool_size": 200, "downstream_connections": 20000}


def of_model(name: str) -> Identity:
    return replace(IDENTITY, model=name)


@dataclass
class FakeLab:
    """The answers of the lab's parts, in the time of its `system`, and its clients' `stack`. Tests
    change them while a trial runs."""

    system: FakeSystem = field(default_factory=lambda: FakeSystem())
    engine: FakeEngine = field(default_factory=lambda: FakeEngine())
    # Parts that refuse connections.
    down: set[str] = field(default_factory=set)
    agent_up: bool = True

    # Servers: what they read back, and the routes that they declare (None: all).
    identities: dict[str, Identity] = field(default_factory=lambda: {n: of_model(n) for n in "ab"})
    pool_sizes: dict[str, int | None] = field(default_factory=lambda: {"a": 200, "b": None})
    settings: dict[str, dict[str, object]] = field(default_factory=dict)
    declared: dict[str, tuple[str, ...]] = field(default_factory=dict)
    route_status: int = 200
    answering_model: str | None = None
    never_back: set[str] = field(default_factory=set)
    # A pool that grows starts its threads before it answers.
    patch_takes_s: float = 0.0
    in_flight: int = 0
    heap_bytes: Callable[[str], int] = lambda server: 10_000_000
    resident_bytes: Callable[[str], int] = lambda server: 100_000_000
    # Counters after so many seconds: JIT compile time, requests of a route (each took from 200 to
    # 210 ms), those that failed, and CPU time.
    compiled_s: Callable[[float], float] = lambda at: 5.0
    answered: Callable[[float], float] = lambda at: 500 * at
    failed: Callable[[float], float] = lambda at: 0.0
    cpu_s: Callable[[float], float] = lambda at: 0.1 * at
    # The CPU time of the compiler, and how long that waited; None: not exported.
    jit_s: Callable[[float], tuple[float, float]] | None = None
    no_exporter: bool = False
    # Hosts of services that are not the lab's, those whose JMX exporter Prometheus reads, and what
    # else that exports.
    foreign: set[str] = field(default_factory=set)
    scraped_jvms: set[str] = field(default_factory=set)
    # What a load of so many connections gets of it: answers a second, their times in turn, and how
    # long each connection waits before its next request (ms); and the share of errors.
    answers: Callable[[int], tuple[float, Sequence[float], float]] = lambda n: (5.0 * n, [200], 0)
    errors: float = 0.0
    # What else its exporter tells.
    foreign_tells: str = ""
    # Which kind is recorded where, and the stacks of a recording.
    recording: dict[str, str] = field(default_factory=dict)
    stacks: dict[str, int] = field(default_factory=lambda: {"a.B.run:1;a.C.hot:7": 400})

    # The downstream: its delay, or its whole answer where it draws each delay.
    delay_ms: int = 200
    drawn: dict[str, object] | None = None
    # Toxiproxy; after so many changes it is stuck. Its descriptors without those of requests, and
    # whether its proxy accepts nothing any more.
    toxics: list[dict[str, Any]] = field(default_factory=list)
    enabled: bool = True
    stuck_from: int | None = None
    proxy_files: int = 12
    proxy_deaf: bool = False

    # The agent: when it first looked at the toxics, in seconds since START (None: no look was
    # answered), when it could not, and what it saw change. What happens while it hears of a load.
    first_look_s: float | None = -3600.0
    blind_s: list[tuple[float, float]] = field(default_factory=list)
    toxic_changes: list[dict[str, str]] = field(default_factory=list)
    while_told: Callable[[], object] = lambda: None

    # Prometheus: what it scraped, as (labels, value at a time in seconds since START), until when,
    # the machines that give it no answer, and how far its clock is ahead (None: unknown).
    scraped: list[tuple[dict[str, str], Callable[[float], float]]] = field(
        default_factory=lambda: [
            *(({"__name__": "up", "job": job}, lambda at: 1.0) for job in JOBS),
            # Whatever used the two CPUs of the machine was the lab.
            ({"__name__": USED, "job": "cadvisor", "service": "driver"}, lambda at: 2000 + 2 * at),
            ({"__name__": CPUS}, lambda at: 2.0),
        ]
    )
    scraped_until: float = 1e9
    targets_health: str = "up"
    away: set[str] = field(default_factory=set)
    ahead_s: float | None = None
    # On several machines: how far the clocks of the parts are ahead, and the ways between them.
    several: bool = False
    parts_ahead_s: dict[str, float] = field(default_factory=dict)
    reached: Reached | None = None
    round_trip_us: int | None = None

    # What was asked, in the order of time.
    asked: list[tuple[str, int | None]] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)
    queries: list[str] = field(default_factory=list)
    toxic_calls: list[tuple[float, str]] = field(default_factory=list)
    patches: list[tuple[str, dict[str, int]]] = field(default_factory=list)
    restarts: list[str] = field(default_factory=list)
    recordings: list[tuple[str, str, dict[str, int]]] = field(default_factory=list)
    # Of the agent: trial and phase of each mark, the servers and lines of each call.
    marks: list[tuple[str, str]] = field(default_factory=list)
    marked_routes: set[str] = field(default_factory=set)
    probe_rates: set[float | None] = field(default_factory=set)
    attended: list[list[str]] = field(default_factory=list)
    load_told: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock: Callable[[], float] = self.system.monotonic
        self.system.pacer = self._second
        transport, many = httpx.MockTransport(self.answer), self.several
        self.stack = Stack("", transport, several=many, reach=lambda *_: self.reached)

    def _second(self, connections: int, at: int) -> str:
        rps, times_ms, late_ms = self.answers(connections)
        count = int((at + 1) * rps) - int(at * rps)
        bad = round(self.errors * count)
        took_ms = [times_ms[n % len(times_ms)] for n in range(count)]
        statuses = {"200": count - bad, "500": bad}
        whole = second(at, took_ms, None, [late_ms] * count, statuses)
        return json.dumps(whole) + "\n"

    def subject(self, name: str, host: HostChanges | None = None) -> Subject:
        """A server, or a service that is not the lab's, as a run has it."""
        if name not in self.foreign:
            return LabServer(name, self.stack)
        url = f"http://{name}:8080"
        return ExternalService(name, url, "/", self.stack, host or HostChanges(None))

    def new_jvm(self, server: str) -> None:
        """Its JVM is another from now on, of the same settings."""
        old = self.identities[server]
        self.identities[server] = replace(old, start_time_ms=old.start_time_ms + 1)

    def answer(self, request: httpx.Request) -> httpx.Response:
        host, port, path = request.url.host, request.url.port, request.url.path
        self.asked.append((host, port))
        self.paths.add(path)
        if host in self.down or (host == "loadgen" and not self.agent_up):
            raise httpx.ConnectError("refused", request=request)
        if host == "toxiproxy":
            return self._toxiproxy(request)
        if path == "/time":
            if host not in self.parts_ahead_s:
                return httpx.Response(404, json={"error": "no such call"})
            return _json({"unix_ms": round(1000 * (self._now_s() + self.parts_ahead_s[host]))})
        if host == "downstream":
            return _json(self.drawn or {"delay_ms": self.delay_ms})
        if host == "prometheus":
            return _json(self._prometheus(request))
        if host == "loadgen":
            return _json(self._agent(request))
        body = json.loads(request.content or b"{}")
        match port, request.method:
            case 9405, "GET":
                return _json({"status": "up"})
            case 8081 | 9405, "POST":
                return self._post(host, path, body)
            case 8081, "PATCH":
                if request.extensions["timeout"]["read"] < self.patch_takes_s:
                    raise httpx.ReadTimeout("timed out", request=request)
                return self._change(host, body)
            case 8081, _:
                return self._management(host, path)
            case 9404, _:
                if self.no_exporter:
                    raise httpx.ReadTimeout("slow", request=request)
                return httpx.Response(200, text=self._exported(host))
        if host in self.foreign:
            return httpx.Response(self.route_status, stream=httpx.ByteStream(b"{}"))
        model = self.answering_model or self.identities[host].model
        return httpx.Response(self.route_status, headers={"Lab-Model": model}, json={})

    def _now_s(self) -> float:
        return START.timestamp() + self.clock()

    def _toxiproxy(self, request: httpx.Request) -> httpx.Response:
        if request.url.port == 8666:
            if self.proxy_deaf:
                raise httpx.ReadTimeout("slow", request=request)
            return httpx.Response(200)
        if request.url.path == "/metrics":
            text = f"process_open_fds {self.proxy_files}\nprocess_max_fds 20000\n"
            return httpx.Response(200, text=text)
        if request.method != "GET":
            self.toxic_calls.append((self.clock(), f"{request.method} {request.url.path}"))
            if self.stuck_from is not None and len(self.toxic_calls) > self.stuck_from:
                raise httpx.ReadTimeout("slow", request=request)
        proxy = FakeToxiproxy()
        proxy.toxics, proxy.enabled = {toxic["name"]: toxic for toxic in self.toxics}, self.enabled
        answer = proxy.handle_request(request)
        if self.enabled and not proxy.enabled:
            self.proxy_files, self.proxy_deaf = 12, False
        self.toxics[:], self.enabled = proxy.toxics.values(), proxy.enabled
        return answer

    def _post(self, server: str, path: str, body: dict[str, int]) -> httpx.Response:
        if path == "/gc":
            return _json({"heap_used_bytes": self.heap_bytes(server)})
        if path.startswith("/recording/"):
            return self._recorded(server, path.rpartition("/")[2], body)
        self.recording.pop(server, None)
        self.restarts.append(server)
        if server not in self.never_back:
            self.new_jvm(server)
        return httpx.Response(202, json={"restarting": True})

    def _recorded(self, server: str, what: str, body: dict[str, int]) -> httpx.Response:
        """As lab.recorder.Recorder."""
        self.recordings.append((server, what, body))
        if (what == "end") != (server in self.recording):
            error = "nothing was recorded" if what == "end" else "a recording is under way"
            return httpx.Response(409, json={"error": error})
        found: dict[str, Any] = {"events": ["jdk.CPUTimeSample"]}
        if what != "end":
            self.recording[server] = what
            return _json(found)
        self.recording.pop(server)
        found |= {"whole": True, "stacks": self.stacks, "samples": sum(self.stacks.values())}
        return _json({**found, "flamegraph": "<!DOCTYPE html>\n<title>drawn</title>"})

    def _change(self, server: str, wanted: dict[str, int]) -> httpx.Response:
        self.patches.append((server, wanted))
        if "pool_size" in wanted and self.pool_sizes[server] is None:
            error = "'pool_size' cannot be changed while this server runs; what can: []"
            return httpx.Response(400, json={"error": error})
        settings = self.settings.setdefault(server, {})
        settings |= wanted
        self.pool_sizes[server] = settings.pop("pool_size", self.pool_sizes[server])
        return self._management(server, "/settings")

    def _management(self, server: str, path: str) -> httpx.Response:
        identity = self.identities[server]
        if path == "/identity":
            routes = self.declared.get(server, tuple(route.path for route in ROUTES))
            return _json({**asdict(identity), "routes": routes})
        if path == "/settings":
            settings = {**SETTINGS, "pool_size": self.pool_sizes[server]}
            settings |= self.settings.get(server, {})
            return _json({"model": identity.model, "settings": settings})
        if path == "/round-trip":
            if self.round_trip_us is None:
                return httpx.Response(502, json={"error": "it does not accept"})
            return _json({"microseconds": self.round_trip_us})
        return httpx.Response(200, text="".join(f"{line}\n" for line in self._metrics()))

    def _metrics(self) -> Iterator[str]:
        """Those of a server."""
        name = "lab_http_requests_in_flight"
        yield f"# HELP {name} Requests being handled\n# TYPE {name} gauge"
        yield f'{name}{{route="/downstream"}} {float(self.in_flight)}\n{name}{{route="/"}} 0.0'
        answered, failed = float(self.answered(self.clock())), float(self.failed(self.clock()))
        for route in ROUTES:
            for outcome, count in (("ok", answered - failed), ("downstream_error", failed)):
                labels = f'outcome="{outcome}",route="{route.path}"'
                yield f"lab_http_requests_total{{{labels}}} {count}"
            for le, count in (("0.2", 0.0), ("0.21", answered), ("+Inf", answered)):
                for phase, times in (("queue", 0.5), ("total", 1)):
                    labels = f'route="{route.path}",phase="{phase}",le="{le}"'
                    yield f"lab_http_request_seconds_bucket{{{labels}}} {count * times}"
        times_s = (RUN, RUNQ), self.jit_s(self.clock()) if self.jit_s else ()
        for name, value in zip(*times_s, strict=False):
            yield f'{name}{{threads="compiler"}} {value}\n{name}{{threads="worker"}} 9.0'

    def _exported(self, server: str) -> str:
        """What its JMX exporter answers."""
        return (
            f"jvm_compilation_time_seconds_total {self.compiled_s(self.clock())}\n"
            f"process_resident_memory_bytes {float(self.resident_bytes(server))}\n"
            f"process_cpu_seconds_total {self.cpu_s(self.clock())}\n"
            "process_start_time_seconds 1000.0\n"
            'jvm_runtime_info{runtime="x",vendor="y",version="21.0.1"} 1\n'
            'jvm_memory_max_bytes{area="heap"} 1.048576E9\n'
            'lab_worker_pool_size{connector="http-nio-8080"} 200.0\n'
            f"{self.foreign_tells}"
        )

    def _agent(self, request: httpx.Request) -> dict[str, object]:
        match request.url.path, request.method:
            case "/attention", _:
                self.attended.append(json.loads(request.content)["servers"])
            case "/load", _:
                self.while_told()
                self.load_told.append(request.content.decode().split("\n"))
            case _, "PUT":
                mark = json.loads(request.content)
                self.marks.append((mark["trial"], mark["phase"]))
                self.probe_rates.add(mark["probe_rps"])
                self.marked_routes.add(mark["route"])
            case _, "DELETE":
                self.marks.append(("", "end"))
            case "/toxics", _:
                return self._toxics_seen()
        return {}

    def _toxics_seen(self) -> dict[str, object]:
        """As lab.system.agent.ToxicsSeen."""

        def span(*ends_s: float) -> list[str]:
            return [(START + timedelta(seconds=at)).isoformat() for at in ends_s]

        if self.first_look_s is None:
            return {"answers": False, "watched": None}
        now_s = self.clock()
        blind = next((gap for gap in self.blind_s if gap[0] <= now_s < gap[1]), None)
        gaps = [span(*gap) for gap in self.blind_s if gap[1] <= now_s]
        watched = span(self.first_look_s, blind[0] if blind else now_s)
        history = [[seen["since"], seen["proxy"], seen["toxic"]] for seen in self.toxic_changes]
        return {"answers": not blind, "watched": watched, "gaps": gaps, "history": history}

    def _prometheus(self, request: httpx.Request) -> dict[str, object]:
        path = request.url.path
        if path.endswith("buildinfo"):
            return {"data": {"version": "2.53.3"}}
        if not path.endswith("query"):
            at = [("server", "a"), *(("jvm", f"{name}:9404") for name in sorted(self.scraped_jvms))]
            state = {"health": self.targets_health, "lastError": "x"}
            targets = [{"labels": {"job": job, "instance": name}, **state} for job, name in at]
            return {"data": {"activeTargets": targets}}
        asked = parse_qs(request.content.decode())
        found: list[dict[str, object]] = []
        if asked["query"] == ["vector(time())"]:
            if self.ahead_s is not None:
                now_s = self._now_s() + self.ahead_s
                found = [{"metric": {}, "value": [now_s, f"{now_s:.3f}"]}]
        elif "time" not in asked:
            found = [{"metric": {"machine": name}, "value": [0, "0"]} for name in self.away]
        else:
            self.queries.append(asked["query"][0])
            found = self._samples(asked["query"][0], float(asked["time"][0]) - START.timestamp())
        return {"status": "success", "data": {"result": found}}

    def _samples(self, query: str, until: float) -> list[dict[str, object]]:
        """Scraped every second on the second; a query is known by its name, job and range."""
        jobs = re.findall(r'job=~?"([^"]*)"', query)
        called = query.partition("{")[0] or "".join(re.findall(r'__name__=~"([^"]*)"', query))
        length = re.findall(r"\[(\d+)(ms|s|m)[\]:]", query)[0]
        first = until - int(length[0]) * {"ms": 0.001, "s": 1, "m": 60}[length[1]]
        times = [at for at in range(-600, 600) if first <= at <= min(until, self.scraped_until)]
        return [
            {"metric": labels, "values": [[START.timestamp() + at, str(value(at))] for at in times]}
            for labels, value in self.scraped
            if (not jobs or labels.get("job") in jobs[0].split("|"))
            and re.fullmatch(called or ".+", labels["__name__"])
        ]


def _json(body: object) -> httpx.Response:
    return httpx.Response(200, json=body)


@dataclass(eq=False)
class FakeEngine(Engine):
    """Warm-up 10 s, then the duration; its reading is what the test gives it."""

    name: str = "wrk2"
    here: bool = True
    broken: str | None = None
    start_check: StartCheck | None = None
    streams: bool = False
    # So many seconds of the window are enough.
    enough_s: int | None = None

    def version(self) -> str | None:
        return "fake 1.0" if self.here else None

    def schedule(self, plan: TrialPlan, raw: Path) -> Schedule:
        run_s = 10 + plan.duration_s
        return Schedule(
            argv=("fake", str(run_s)),
            output="fake.txt",
            run_s=run_s,
            window_offset_s=10,
            window_s=plan.duration_s,
            start_check=self.start_check,
            streams=self.streams,
        )

    def settled_s(self, plan: TrialPlan, opens_s: float, seconds: Sequence[Line]) -> int | None:
        return self.enough_s

    def read(self, plan: TrialPlan, raw: Path) -> Reading:
        if self.broken is not None:
            raise RawDataError(raw / "fake.txt", 7, self.broken)
        rate = plan.offered_rps or plan.concurrency * 5
        return reading(achieved_rps=float(rate), window_s=plan.duration_s)


def toxic(name: str = "latency", latency: int = 300, toxicity: float = 1.0) -> dict[str, object]:
    """A latency toxic, as Toxiproxy tells of it."""
    kind = {"name": name, "type": "latency", "stream": "downstream", "toxicity": toxicity}
    return {**kind, "attributes": {"latency": latency, "jitter": 0}}


def latency(p50_ms: float = 200.0) -> Latency:
    return Latency(p50_ms, p50_ms, p50_ms + 10, p50_ms + 20, p50_ms + 30)


def flat(ms: float) -> Latency:
    """All as long."""
    return Latency(ms, ms, ms, ms, ms)


def reading(achieved_rps: float = 450.0, window_s: float = 15.0, **changes: object) -> Reading:
    samples = round(achieved_rps * window_s)
    whole = Reading(
        window_s=window_s,
        samples=samples,
        achieved_rps=achieved_rps,
        corrected=latency(),
        raw=latency(),
        counts=Counts(None, samples, 0, 0, None, None, window_s),
    )
    return replace(whole, **changes)


def observation(*more: Series) -> Observation:
    """The window of `record()`, with every job scraped in it and around it. Whatever used the two
    CPUs of the machine was the lab, unless `more` has series of that."""
    opens = START.timestamp() + 10.5
    times = tuple(opens - 1 + at for at in range(18))
    named = {one.labels["__name__"] for one in more}
    quiet = (
        *(Series({"__name__": "up", "job": job}, times, (1.0,) * 18) for job in JOBS),
        Series({"__name__": USED, "service": "driver"}, times, tuple(2.0 * at for at in range(18))),
        Series({"__name__": CPUS}, times, (2.0,) * 18),
    )
    kept = (one for one in quiet if one.labels["__name__"] not in named - {"up"})
    return Observation((opens, opens + 15), (*kept, *more))


def plan(mode: Mode = "open", **changes: object) -> TrialPlan:
    whole = TrialPlan(
        trial="01-a",
        server="a",
        url="http://a:8080/downstream",
        route="/downstream",
        engine="wrk2",
        mode=mode,
        concurrency=100,
        offered_rps=450 if mode == "open" else None,
        predicted_rps=450.0 if mode == "open" else 500.0,
        duration_s=15,
        warmup_s=None,
        cores=2,
    )
    return replace(whole, **changes)


def snapshot(**changes: object) -> Snapshot:
    return replace(Snapshot(IDENTITY, SETTINGS, ToxicState(), 200.0), **changes)


def record(of: TrialPlan | None = None, **changes: object) -> TrialRecord:
    whole = TrialRecord(
        plan=of or plan(),
        engine_version="fake 1.0",
        argv=("fake",),
        status=0,
        run_started_at=START,
        run_s=26.0,
        window_offset_s=10.5,
        before=snapshot(),
        after=snapshot(),
        after_problem=None,
        usage=USAGE,
        warmth=Warmth(True, ()),
        jit_share=0.02,
    )
    return replace(whole, **changes)


def measurement(of: TrialRecord | None = None, said: Reading | None = None) -> Measurement:
    return Measurement(of or record(), said or reading())


def judged_row(run: str, whole: Measurement) -> Row:
    """The row of a measurement of whose window nothing was stored."""
    trial = Trial(whole)
    trial = replace(trial, judgement=judge(trial))
    return row_of(run, trial, verdict_of(trial))


def cells(remarks: Iterable[Remark]) -> list[str]:
    """Remarks as a file has them, with their spaces."""
    return [unquote(remark.cell) for remark in remarks]


def rounded(row: Row) -> Row:
    """A row as a CSV of three decimals holds it."""
    cells = {name: getattr(row, name) for name in Row.columns()}
    floats = {name: round(cell, 3) for name, cell in cells.items() if isinstance(cell, float)}
    return Row(**{**cells, **floats})
