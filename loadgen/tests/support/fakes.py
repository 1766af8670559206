"""A lab made of fakes: HTTP answers and an engine; and records of its trials."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from copy import replace
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, unquote

import httpx
from msgspec.structs import asdict

from lab.errors import RawDataError
from lab.judge.checks import judge
from lab.judge.cpu_split import CPUS, USED, cpu_split
from lab.judge.resources import verdict_of
from lab.judge.row import row_of
from lab.judge.thread_times import RUN, RUNQ
from lab.load.engines import Engine, Schedule
from lab.load.engines.base import StartCheck
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
    ThreadTimes,
    TimeSplit,
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
from lab.system.stack import Stack, Urls
from support.system import START, FakeSystem

JOBS = ("server", "jvm", "downstream", "toxiproxy", "cadvisor", "loadgen")
IDENTITY = Identity("a", "1", "25", 1, 1000, 2, 2**29, ("G1 Young Generation",), ("-Xmx512m",))
USAGE = Usage(5.0, 3.0, 0.5, 0.0, 0.1, 10_000, 0.0)
SETTINGS = {"pool_size": 200, "downstream_connections": 20000}


def of_model(name: str) -> Identity:
    return replace(IDENTITY, model=name)


@dataclass
class FakeLab:
    """What the parts of the lab answer, in the time of its `system`, and its clients' `stack`.
    Tests change it while a trial runs."""

    identities: dict[str, Identity] = field(default_factory=lambda: {n: of_model(n) for n in "ab"})
    pool_sizes: dict[str, int | None] = field(default_factory=lambda: {"a": 200, "b": None})
    system: FakeSystem = field(default_factory=lambda: FakeSystem())
    engine: FakeEngine = field(default_factory=lambda: FakeEngine())
    settings: dict[str, dict[str, object]] = field(default_factory=dict)
    delay_ms: int = 200
    # What the downstream tells instead, where it draws each delay.
    drawn: dict[str, object] | None = None
    toxics: list[dict[str, object]] = field(default_factory=list)
    enabled: bool = True
    toxic_calls: list[tuple[float, str]] = field(default_factory=list)
    toxiproxy_stuck: bool = False
    # From this change on Toxiproxy is stuck.
    stuck_from: int | None = None
    # Its descriptors, those of requests in flight, and whether its proxy accepts nothing any more.
    proxy_files: int = 12
    proxy_deaf: bool = False
    in_flight: int = 0
    agent_up: bool = True
    down: set[str] = field(default_factory=set)
    route_status: int = 200
    # The routes that a server declares; of others: all.
    declared: dict[str, tuple[str, ...]] = field(default_factory=dict)
    answering_model: str | None = None
    toxic_changes: list[dict[str, str]] = field(default_factory=list)
    # When the agent first looked at the toxics, in seconds since START (None: no look was ever
    # answered), and when it could not.
    first_look_s: float | None = -3600.0
    blind_s: list[tuple[float, float]] = field(default_factory=list)
    marks: list[tuple[str, str]] = field(default_factory=list)
    attended: list[list[str]] = field(default_factory=list)
    probe_rates: set[float | None] = field(default_factory=set)
    # What the agent was told of the load: the lines of each call. And what happens meanwhile.
    load_told: list[list[str]] = field(default_factory=list)
    while_told: Callable[[], object] = lambda: None
    marked_routes: set[str] = field(default_factory=set)
    targets_down: bool = False
    targets_health: str | None = None
    restarts: list[str] = field(default_factory=list)
    never_back: set[str] = field(default_factory=set)
    heap_bytes: Callable[[str], int] = lambda server: 10_000_000
    resident_bytes: Callable[[str], int] = lambda server: 100_000_000
    # What a server shows of itself after so many seconds: JIT compile time, requests of a
    # route (each took from 200 to 210 ms).
    compiled_s: Callable[[float], float] = lambda at: 5.0
    # The CPU time of its compiler, and how long that waited; None: it does not tell.
    jit_s: Callable[[float], tuple[float, float]] | None = None
    answered: Callable[[float], float] = lambda at: 500 * at
    failed: Callable[[float], float] = lambda at: 0.0
    cpu_s: Callable[[float], float] = lambda at: 0.1 * at
    no_exporter: bool = False
    # Hosts of services that are not the lab's, and those whose JMX exporter Prometheus reads.
    foreign: set[str] = field(default_factory=set)
    scraped_jvms: set[str] = field(default_factory=set)
    foreign_started_s: float = 1000.0
    # What else its exporter tells.
    foreign_tells: str = ""
    asked: list[tuple[str, int | None]] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)
    patches: list[tuple[str, dict[str, int]]] = field(default_factory=list)
    # What is recorded where, since when; what each recording tells; and what was asked of them.
    recording: dict[str, str] = field(default_factory=dict)
    stacks: dict[str, int] = field(default_factory=lambda: {"a.B.run:1;a.C.hot:7": 400})
    recordings: list[tuple[str, str, dict[str, int]]] = field(default_factory=list)
    # A pool that grows starts its threads before it answers.
    patch_takes_s: float = 0.0
    # What Prometheus scraped, as (labels, value at a time in seconds since START).
    scraped: list[tuple[dict[str, str], Callable[[float], float]]] = field(
        default_factory=lambda: [
            *(({"__name__": "up", "job": job}, lambda at: 1.0) for job in JOBS),
            # Whatever used the two CPUs of the machine was the lab.
            ({"__name__": USED, "job": "cadvisor", "service": "driver"}, lambda at: 2000 + 2 * at),
            ({"__name__": CPUS}, lambda at: 2.0),
        ]
    )
    scraped_until: float = 1e9
    # The machines of several that give Prometheus no answer.
    away: set[str] = field(default_factory=set)
    # How far the clock of Prometheus is ahead; None: it does not tell its time.
    ahead_s: float | None = None
    # Whether it is on several machines; how far the clocks of its parts there are ahead, and the
    # ways between them, where somebody tells.
    several: bool = False
    parts_ahead_s: dict[str, float] = field(default_factory=dict)
    reached: Reached | None = None
    round_trip_us: int | None = None
    queries: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock: Callable[[], float] = self.system.monotonic
        transport, many = httpx.MockTransport(self.answer), self.several
        self.stack = Stack(Urls.read({}), transport, several=many, reach=lambda *_: self.reached)

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
        if host in self.down:
            raise httpx.ConnectError("refused", request=request)
        if host == "toxiproxy":
            return self._toxiproxy(request)
        if path == "/time":
            return self._time(host)
        if host == "downstream":
            return httpx.Response(200, json=self.drawn or {"delay_ms": self.delay_ms})
        if host == "prometheus":
            return httpx.Response(200, json=self._prometheus(request))
        if host == "loadgen":
            return self._agent(request)
        if port == 9405 and request.method == "GET":
            return httpx.Response(200, json={"status": "up"})
        if port in (8081, 9405) and request.method == "POST":
            return self._told(host, path, json.loads(request.content or b"{}"))
        if port == 8081 and request.method == "PATCH":
            if request.extensions["timeout"]["read"] < self.patch_takes_s:
                raise httpx.ReadTimeout("timed out", request=request)
            return self._change(host, json.loads(request.content))
        if port == 8081:
            return self._management(host, path)
        if port == 9404:
            if self.no_exporter:
                raise httpx.ReadTimeout("slow", request=request)
            text = (
                f"jvm_compilation_time_seconds_total {self.compiled_s(self.clock())}\n"
                f"process_resident_memory_bytes {float(self.resident_bytes(host))}\n"
                f"process_cpu_seconds_total {self.cpu_s(self.clock())}\n"
                f"process_start_time_seconds {self.foreign_started_s}\n"
                'jvm_runtime_info{runtime="x",vendor="y",version="21.0.1"} 1\n'
                'jvm_memory_max_bytes{area="heap"} 1.048576E9\n'
                'lab_worker_pool_size{connector="http-nio-8080"} 200.0\n'
                f"{self.foreign_tells}"
            )
            return httpx.Response(200, text=text)
        if host in self.foreign:
            return httpx.Response(self.route_status, stream=httpx.ByteStream(b"{}"))
        model = self.answering_model or self.identities[host].model
        return httpx.Response(self.route_status, headers={"Lab-Model": model}, json={})

    def _time(self, part: str) -> httpx.Response:
        if part not in self.parts_ahead_s:
            return httpx.Response(404, json={"error": "no such call"})
        told_s = START.timestamp() + self.clock() + self.parts_ahead_s[part]
        return httpx.Response(200, json={"unix_ms": round(told_s * 1000)})

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
            late = self.stuck_from is not None and len(self.toxic_calls) > self.stuck_from
            if self.toxiproxy_stuck or late:
                raise httpx.ReadTimeout("slow", request=request)
        body = json.loads(request.content or b"{}")
        name = request.url.path.rpartition("/")[2]
        if request.method == "DELETE":
            self.toxics = [toxic for toxic in self.toxics if toxic["name"] != name]
        elif request.method == "POST" and name == "toxics":
            self.toxics.append(body)
        elif request.method == "POST" and "enabled" in body:
            self.enabled = body["enabled"]
            if not self.enabled:
                self.proxy_files, self.proxy_deaf = 12, False
        elif request.method == "POST":
            self.toxics = [one | body if one["name"] == name else one for one in self.toxics]
        proxy = {"name": "downstream", "listen": ":8666", "upstream": "downstream:8080"}
        proxy |= {"enabled": self.enabled, "toxics": self.toxics}
        return httpx.Response(200, json={"downstream": proxy})

    def _told(self, server: str, path: str, body: dict[str, int]) -> httpx.Response:
        if path == "/gc":
            return httpx.Response(200, json={"heap_used_bytes": self.heap_bytes(server)})
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
            said = "nothing was recorded" if what == "end" else "a recording is under way"
            return httpx.Response(409, json={"error": said})
        if what != "end":
            self.recording[server] = what
            return httpx.Response(200, json={"events": ["jdk.CPUTimeSample"]})
        self.recording.pop(server)
        told = {"events": ["jdk.CPUTimeSample"], "whole": True, "stacks": self.stacks}
        told["flamegraph"] = "<!DOCTYPE html>\n<title>drawn</title>"
        return httpx.Response(200, json={**told, "samples": sum(self.stacks.values())})

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
            return httpx.Response(200, json={**asdict(identity), "routes": routes})
        if path == "/settings":
            settings = {**SETTINGS, "pool_size": self.pool_sizes[server]}
            settings |= self.settings.get(server, {})
            return httpx.Response(200, json={"model": identity.model, "settings": settings})
        if path == "/round-trip":
            if self.round_trip_us is None:
                return httpx.Response(502, json={"error": "it does not accept"})
            return httpx.Response(200, json={"microseconds": self.round_trip_us})
        name = "lab_http_requests_in_flight"
        answered, failed = (float(of(self.clock())) for of in (self.answered, self.failed))
        text = (
            f"# HELP {name} Requests being handled\n# TYPE {name} gauge\n"
            f'{name}{{route="/downstream"}} {float(self.in_flight)}\n{name}{{route="/"}} 0.0\n'
        )
        for route in ROUTES:
            for outcome, count in (("ok", answered - failed), ("downstream_error", failed)):
                labels = f'outcome="{outcome}",route="{route.path}"'
                text += f"lab_http_requests_total{{{labels}}} {count}\n"
            for le, count in (("0.2", 0.0), ("0.21", answered), ("+Inf", answered)):
                for phase, times in (("queue", 0.5), ("total", 1)):
                    labels = f'route="{route.path}",phase="{phase}",le="{le}"'
                    text += f"lab_http_request_seconds_bucket{{{labels}}} {count * times}\n"
        if self.jit_s is not None:
            used, waited = self.jit_s(self.clock())
            for name, value in ((RUN, used), (RUNQ, waited)):
                text += f'{name}{{threads="compiler"}} {value}\n{name}{{threads="worker"}} 9.0\n'
        return httpx.Response(200, text=text)

    def _agent(self, request: httpx.Request) -> httpx.Response:
        if not self.agent_up:
            raise httpx.ConnectError("refused", request=request)
        if request.url.path == "/attention":
            told = json.loads(request.content)
            self.attended.append(told["servers"])
        elif request.url.path == "/load":
            self.while_told()
            self.load_told.append(request.content.decode().split("\n"))
        elif request.method == "PUT":
            mark = json.loads(request.content)
            self.marks.append((mark["trial"], mark["phase"]))
            self.probe_rates.add(mark["probe_rps"])
            self.marked_routes.add(mark["route"])
        elif request.method == "DELETE":
            self.marks.append(("", "end"))
        elif request.url.path == "/toxics":
            return httpx.Response(200, json=self._toxics_seen())
        return httpx.Response(200, json={})

    def _toxics_seen(self) -> dict[str, object]:
        """As lab.system.agent.ToxicsSeen."""

        def span(first_s: float, last_s: float) -> list[str]:
            return [(START + timedelta(seconds=at)).isoformat() for at in (first_s, last_s)]

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
        if path.endswith("query"):
            asked = parse_qs(request.content.decode())
            if asked["query"] == ["vector(time())"]:
                now = START.timestamp() + self.clock() + (self.ahead_s or 0.0)
                found = [{"metric": {}, "value": [now, f"{now:.3f}"]}]
                found *= self.ahead_s is not None
            elif "time" not in asked:
                found = [{"metric": {"machine": one}, "value": [0, "0"]} for one in self.away]
            else:
                query, until = asked["query"][0], float(asked["time"][0]) - START.timestamp()
                self.queries.append(query)
                found = self._samples(query, until)
            return {"status": "success", "data": {"result": found}}
        if path.endswith("buildinfo"):
            return {"data": {"version": "2.53.3"}}
        health = self.targets_health or ("down" if self.targets_down else "up")
        target = {"labels": {"job": "server", "instance": "a"}, "health": health, "lastError": "x"}
        names = (f"{name}:9404" for name in sorted(self.scraped_jvms))
        jvms = [{"labels": {"job": "jvm", "instance": at}, "health": health} for at in names]
        return {"data": {"activeTargets": [target, *jvms]}}

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

    def settled_s(self, plan: TrialPlan, opens_s: float, lines: Sequence[str]) -> int | None:
        return self.enough_s

    def condense(self, plan: TrialPlan, raw: Path) -> None:
        """Nothing."""

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
    judgement = judge(whole)
    verdict = verdict_of(whole, judgement, None)
    split = cpu_split(whole, None)
    return row_of(run, whole, judgement, verdict, split, TimeSplit(), ThreadTimes())


def cells(remarks: Iterable[Remark]) -> list[str]:
    """Remarks as a file has them, with their spaces."""
    return [unquote(remark.cell) for remark in remarks]


def rounded(row: Row) -> Row:
    """A row as a CSV of three decimals holds it."""
    cells = {name: getattr(row, name) for name in Row.columns()}
    floats = {name: round(cell, 3) for name, cell in cells.items() if isinstance(cell, float)}
    return Row(**{**cells, **floats})
