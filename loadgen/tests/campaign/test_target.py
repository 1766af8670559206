"""A service that is not the lab's, from its word to its verdict."""

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from campaign.test_run import Bench
from judge.test_verdict import CLOSES, OPENS, counter, gauge
from lab.campaign.doctor import examine
from lab.campaign.tools import Place
from lab.errors import LabError, LabUnreachable, WordError
from lab.experiments.plans import of_file, of_verb
from lab.experiments.reading import Here
from lab.judge.fairness import compare
from lab.judge.gates import judge
from lab.judge.predict import predict
from lab.judge.verdict import verdict_of
from lab.load.demand import demand_of_foreign
from lab.load.engines import Schedule
from lab.load.short_load import LEAD_S, short_load
from lab.load.warm import FIXED_WARM_S, warm_foreign
from lab.model import (
    HIGH,
    Demand,
    Experiment,
    Exported,
    Judgement,
    Latency,
    Observation,
    Reading,
    Series,
    Snapshot,
    TrialPlan,
    TrialRecord,
    Usage,
    Verdict,
    Warmth,
)
from lab.system.observe import selectors
from lab.system.stack import Stack, Urls
from lab.system.traffic import BODY_BYTES
from support.fakes import (
    FakeEngine,
    FakeLab,
    FakeSystem,
    latency,
    measurement,
    observation,
    plan,
    reading,
    record,
    snapshot,
)
from support.runs import HOST_FILE

URL = "http://my-service:8080"
JVM = Exported(1_000_000, "21.0.1", 2**30, 200, scraped=True)
UNPROVEN = Warmth(False, (), "nothing tells", provable=False)


def bench(**words: str) -> Experiment:
    given = {"TARGET": f"{URL}/x?a=1&b=2", "CONC": "200", **words}
    found, _ = of_verb("bench", given, Here(("fixed-pool",), 20_000))
    assert isinstance(found, Experiment)
    return found


def notes(target: str) -> tuple[str, ...]:
    return of_verb("bench", {"TARGET": target, "CONC": "5"}, Here(("fixed-pool",), 20_000))[1]


# --- words ---------------------------------------------------------------------------------


def test_a_target_is_the_only_server_and_its_load_is_closed() -> None:
    experiment = bench()
    assert (experiment.servers, experiment.routes) == (("my-service",), ("/x?a=1&b=2",))
    assert experiment.target == URL
    assert experiment.modes == ("closed",)
    # The generator holds one descriptor per connection; the service's are its own affair.
    assert bench(CONC="19000").concurrencies == (19_000,)


def test_a_rate_of_ones_own_makes_it_both() -> None:
    assert bench(RATE="500").modes == ("closed", "open")
    assert bench(RATE="500", MODE="open").modes == ("open",)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "0.0.0.0", "[::1]"]
)
def test_this_machine_is_reached_by_its_name_in_a_container_and_a_note_says_so(host: str) -> None:
    experiment = bench(TARGET=f"http://{host}:3000/x")
    assert experiment.target == "http://host.docker.internal:3000"
    assert experiment.servers == ("host.docker.internal",)
    (note,) = notes(f"http://{host}:3000/x")
    assert "loaded as http://host.docker.internal:3000" in note
    without = of_verb("bench", {"CONC": "5"}, Here(("fixed-pool",), 20_000))
    assert notes(f"{URL}/") == without[1] == ()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"SERVER": "fixed-pool"}, "bench: SERVER with TARGET is not allowed"),
        ({"ROUTE": "/"}, "bench: ROUTE with TARGET is not allowed"),
        ({"LAUNCHES": "2"}, "bench: LAUNCHES with TARGET is not allowed"),
        ({"RATE": "auto"}, "RATE=auto is not allowed with TARGET: the lab does not know what"),
        ({"MODE": "both"}, "MODE=both without RATE is not allowed with TARGET"),
        ({"MODE": "open"}, "MODE=open without RATE is not allowed with TARGET"),
        ({"MODE": "up"}, "MODE=up is not allowed; allowed: open, closed, both"),
        ({"TARGET": "https://x/"}, "TARGET=https://x/ is not allowed: TLS"),
        ({"TARGET": "my-service:8080"}, "TARGET=my-service:8080 is not an address; allowed: http"),
        ({"TARGET": "http://a b/"}, "is not an address"),
        ({"TARGET": 'http://a/"'}, "is not an address"),
        ({"TARGET": "http://u:p@a/"}, "is not an address"),
        ({"TARGET": "http://a:0/"}, "port 0 is not allowed; allowed: 1..65535"),
        ({"TARGET": "http://[fe80::1]/"}, "allowed: a host name or an IPv4 address"),
        ({"TARGET": "http://a/$(x)"}, "is not an address"),
        ({"TARGET": "http://a/" + "x" * 200}, "212 characters as it is asked (http://a:80/…)"),
        # What is asked is longer than what was given.
        ({"TARGET": "http://localhost/" + "x" * 180}, "asked (http://host.docker.internal:80/…)"),
        ({"CONC": "19001"}, "19001 is more than this machine holds"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(words: dict[str, str], says: str) -> None:
    with pytest.raises(WordError) as refused:
        bench(**words)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_only_a_bench_takes_a_target(tmp_path: Path) -> None:
    words = {"TARGET": f"{URL}/", "CONC": "5"}
    with pytest.raises(WordError, match="explain: TARGET is not allowed; allowed: make bench"):
        of_verb("explain", words, Here(("a",), 20_000))
    with pytest.raises(WordError, match="run: TARGET is not allowed; allowed: make bench"):
        of_file({**words, "EXP": "x"}, Here(("a",), 20_000), tmp_path)


# --- the lab as it is reached --------------------------------------------------------------


@pytest.fixture
def outside(stack: Stack, fake_lab: FakeLab) -> Stack:
    """The lab with a service that is not its own, which has a JMX exporter that is scraped."""
    fake_lab.foreign = {"my-service"}
    fake_lab.scraped_jvms = {"my-service"}
    stack.adopt("my-service", URL)
    return stack


def test_a_snapshot_has_what_an_exporter_tells(outside: Stack, fake_lab: FakeLab) -> None:
    now = outside.snapshot("my-service")
    assert now.foreign
    assert now.exported == Exported(1_000_000, "21.0.1", 1_048_576_000, 200, scraped=True)
    assert now.jvm_started_ms == 1_000_000
    assert now.settings == {"url": URL}
    assert not outside.snapshot("a").foreign
    assert outside.traffic.url("my-service", "/x") == f"{URL}/x"
    # Nobody asks a management port that it does not have.
    assert ("my-service", 8081) not in fake_lab.asked


def test_an_exporter_that_is_not_listed_proves_nothing(outside: Stack, fake_lab: FakeLab) -> None:
    fake_lab.scraped_jvms = set()
    outside.adopt("my-service", URL)
    assert outside.snapshot("my-service").exported is None
    with pytest.raises(LabUnreachable, match=r"that prometheus/own\.json lists"):
        outside.exporter.cpu_s("my-service")


def test_an_answer_that_never_ends_is_not_read_to_its_end(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Endless(httpx.SyncByteStream):
        def __init__(self, chunk: bytes) -> None:
            self.chunk, self.read = chunk, 0

        def __iter__(self) -> Iterator[bytes]:
            while True:
                self.read += len(self.chunk)
                yield self.chunk

    paths: list[str] = []

    def stack_of(stream: Endless) -> Stack:
        def answer(request: httpx.Request) -> httpx.Response:
            if request.url.host != "my-service":
                return fake_lab.answer(request)
            paths.append(request.url.path)
            return httpx.Response(200, stream=stream)

        made = Stack(Urls.read({}), httpx.MockTransport(answer))
        made.adopt("my-service", URL, "/events")
        return made

    large = Endless(b"x" * 1000)
    assert stack_of(large).traffic.check_route("my-service", "/events") is None
    assert large.read < BODY_BYTES + 10_000
    seconds = iter(range(1000))
    monkeypatch.setattr("lab.system.traffic.time", SimpleNamespace(monotonic=lambda: next(seconds)))
    slow = Endless(b".")
    stack = stack_of(slow)
    assert "/events still answers after 10 s" in (
        stack.traffic.check_route("my-service", "/events") or ""
    )
    assert slow.read <= 20
    # Whether it answers at all is asked where it was loaded.
    paths.clear()
    assert stack.traffic.answers("my-service", 1.0)
    assert paths == ["/events"]


def test_without_an_exporter_none_is_asked_again(stack: Stack, fake_lab: FakeLab) -> None:
    fake_lab.foreign, fake_lab.no_exporter = {"my-service"}, True
    stack.adopt("my-service", URL)
    fake_lab.asked.clear()
    assert stack.snapshot("my-service").exported is None
    with pytest.raises(LabUnreachable, match="no JMX exporter on port 9404"):
        stack.exporter.compilation_s("my-service")
    assert ("my-service", 9404) not in fake_lab.asked


def test_an_exporter_on_a_host_with_others_counts_only_where_it_is_listed(
    stack: Stack, fake_lab: FakeLab
) -> None:
    host = "host.docker.internal"
    fake_lab.foreign = {host}
    stack.adopt(host, f"http://{host}:3000")
    assert stack.snapshot(host).exported is None
    fake_lab.scraped_jvms = {host}
    stack.adopt(host, f"http://{host}:3000")
    assert stack.snapshot(host).scraped


def test_one_that_does_not_answer_is_refused_with_what_to_do(
    stack: Stack, fake_lab: FakeLab
) -> None:
    host = "host.docker.internal"
    stack.adopt(host, f"http://{host}:3000")
    fake_lab.down.add(host)
    with pytest.raises(LabUnreachable, match="listen on an address that containers can reach"):
        stack.traffic.check_route(host, "/x")


def test_an_answer_that_is_no_success_is_a_warning_and_a_missing_path_a_refusal(
    outside: Stack, fake_lab: FakeLab
) -> None:
    assert outside.traffic.check_route("my-service", "/x") is None
    fake_lab.route_status = 500
    assert outside.traffic.check_route("my-service", "/x") == "/x answers 500"
    fake_lab.route_status = 302
    assert "not followed" in (outside.traffic.check_route("my-service", "/x") or "")
    fake_lab.route_status = 404
    with pytest.raises(LabUnreachable, match="answers 404: not served"):
        outside.traffic.check_route("my-service", "/x")


def test_a_path_is_taken_as_it_is_in_queries() -> None:
    asked = selectors("my-service", "/a.b*(c)?d=1", foreign=True)
    pattern = re.findall(r'route=~"([^"]*)\|"', asked[1])[0].replace("\\\\", "\\")
    assert re.fullmatch(pattern, "/a.b*(c)")
    assert not re.fullmatch(pattern, "/aXb*(c)")
    assert not any("downstream" in one or 'job="server"' in one for one in asked)


# --- warm, and what a request costs --------------------------------------------------------


def warm_up(stack: Stack, system: FakeSystem, engine: FakeEngine, raw: Path) -> Warmth:
    of = plan("closed", server="my-service", url=f"{URL}/x", route="/x")
    return warm_foreign(of, 100, engine, stack, system, raw, lambda _: None)


def test_warm_is_proven_by_the_compiler_and_what_the_engine_saw(
    outside: Stack, system: FakeSystem, engine: FakeEngine, fake_lab: FakeLab, tmp_path: Path
) -> None:
    # The fake engine takes 12 s a cycle. It compiles for the first two of them.
    fake_lab.compiled_s = lambda at: 0.3 * min(at, 24) + 0.01 * at
    warmth = warm_up(outside, system, engine, tmp_path / "warm-up")
    assert warmth.steady
    assert warmth.provable
    assert [cycle.rps for cycle in warmth.cycles] == [500.0] * 5
    assert [cycle.p50_ms for cycle in warmth.cycles] == [200.0] * 5
    assert [cycle.jit_share > 0.1 for cycle in warmth.cycles] == [True, True, False, False, False]
    assert not (tmp_path / "warm-up").exists()


def test_a_jvm_that_restarts_while_it_is_warmed_up_is_cold(
    outside: Stack, system: FakeSystem, engine: FakeEngine, fake_lab: FakeLab, tmp_path: Path
) -> None:
    fake_lab.compiled_s = lambda at: 5.0 if at < 11 else 0.1
    warmth = warm_up(outside, system, engine, tmp_path / "warm-up")
    assert warmth.problem == "its JVM restarted meanwhile"
    assert warmth.cold


def test_an_engine_that_never_ends_its_short_load_is_ended(
    outside: Stack, system: FakeSystem, engine: FakeEngine, tmp_path: Path
) -> None:
    original = system.start
    system.start = lambda argv, output: original(("fake", "100000"), output)  # type: ignore[method-assign]
    warmth = warm_up(outside, system, engine, tmp_path / "warm-up")
    assert warmth.problem == "wrk2 did not end its short load in time, and was stopped"
    assert warmth.cold
    assert system.processes[0].stopped_early


def test_one_that_compiles_on_is_cold(
    outside: Stack, system: FakeSystem, engine: FakeEngine, fake_lab: FakeLab, tmp_path: Path
) -> None:
    fake_lab.compiled_s = lambda at: 0.3 * at
    warmth = warm_up(outside, system, engine, tmp_path / "warm-up")
    assert warmth.cold
    assert "not steady within 60 s" in (warmth.problem or "")


def test_without_an_exporter_it_is_loaded_for_a_fixed_time_which_proves_nothing(
    stack: Stack, system: FakeSystem, engine: FakeEngine, fake_lab: FakeLab, tmp_path: Path
) -> None:
    fake_lab.foreign, fake_lab.no_exporter = {"my-service"}, True
    stack.adopt("my-service", URL)
    warmth = warm_up(stack, system, engine, tmp_path / "warm-up")
    assert (warmth.steady, warmth.provable, warmth.cold) == (False, False, False)
    assert "no JMX exporter at my-service:9404" in (warmth.problem or "")
    assert len(system.started) == 1
    assert system.elapsed_s == pytest.approx(10 + FIXED_WARM_S, abs=1)


def test_one_connection_tells_r0_and_a_light_load_the_cost(
    outside: Stack, system: FakeSystem, engine: FakeEngine, fake_lab: FakeLab, tmp_path: Path
) -> None:
    # One connection for 3 s is too little at 200 ms each, so there is a second try.
    fake_lab.cpu_s = lambda at: 0.1 * at + (0.5 * max(0.0, at - 33))
    of = plan("closed", server="my-service", url=f"{URL}/x", route="/x", concurrency=100)
    demand = demand_of_foreign(of, 100, engine, outside, system, tmp_path / "light", 2)
    assert demand is not None
    assert (demand.r0_ms, demand.light_rps) == (200, 500)
    assert demand.connections == 100
    # 100 connections do 500 req/s, with half a CPU more than the idle lab uses.
    assert demand.server_cpu_s == pytest.approx(0.001, rel=0.01)
    assert demand.requests == pytest.approx(2000, rel=0.1)


def test_where_most_fails_neither_is_told(
    outside: Stack, system: FakeSystem, engine: FakeEngine, tmp_path: Path
) -> None:
    def failing(of: TrialPlan, raw: Path) -> Reading:
        said = reading(500.0, of.duration_s)
        return dataclasses.replace(said, counts=dataclasses.replace(said.counts, http_errors=900))

    engine.read = failing  # type: ignore[method-assign]
    of = plan("closed", server="my-service", url=f"{URL}/x", route="/x")
    assert demand_of_foreign(of, 100, engine, outside, system, tmp_path / "light", 2) is None


def test_an_engine_that_needs_its_own_warm_up_gets_it(system: FakeSystem, tmp_path: Path) -> None:
    class Calibrates(FakeEngine):
        def schedule(self, plan: TrialPlan, raw: Path) -> Schedule:
            if plan.warmup_s == LEAD_S:
                raise WordError("less than its own calibration")
            return super().schedule(plan, raw)

    of = plan("open")
    done = short_load(of, Calibrates(), system, tmp_path / "x", 7, 2, system.monotonic)
    assert not isinstance(done, str)
    assert done.opened == pytest.approx(10, abs=0.5)
    assert done.closed == pytest.approx(12, abs=0.5)


def test_an_engine_that_says_nothing_readable_gives_no_figures(
    system: FakeSystem, engine: FakeEngine, tmp_path: Path
) -> None:
    engine.broken = "is empty"
    done = short_load(plan(), engine, system, tmp_path / "x", 7, 2, system.monotonic)
    assert done == "its load gave no figures: is empty"


# --- prediction, gates, verdict ------------------------------------------------------------


def foreign(exported: Exported | None = JVM, **changes: object) -> Snapshot:
    whole = snapshot(identity=None, settings={"url": URL}, exported=exported)
    return dataclasses.replace(whole, **changes)  # type: ignore[arg-type]


def foreign_record(
    exported: Exported | None = JVM,
    after: Snapshot | None = None,
    concurrency: int = 400,
    r0_ms: float | None = 200.0,
    **changes: object,
) -> TrialRecord:
    of = plan(
        "closed",
        server="my-service",
        url=f"{URL}/x",
        route="/x",
        concurrency=concurrency,
        predicted_rps=None,
    )
    before = foreign(exported)
    whole = record(
        of,
        before=before,
        after=after or before,
        demand=None if r0_ms is None else Demand(200, 4000, None, None, r0_ms),
        usage=Usage(1.0, 1.0, 0.4, 0.0, 0.1, 1000),
    )
    return dataclasses.replace(whole, **changes)  # type: ignore[arg-type]


def test_all_but_what_is_offered_is_an_estimate() -> None:
    demand = Demand(200, 4000, None, 0.001, 200.0)
    closed = predict("/x", 400, None, foreign(), demand, 2)
    assert closed.rps is None
    assert [(one.resource, one.rps, one.estimate) for one in closed.bounds] == [
        ("worker pool", 1000.0, True),
        ("connections", 2000.0, True),
        ("host CPU", 2000.0, True),
    ]
    assert closed.expected_p95_ms == 400
    opened = predict("/x", 400, 500, foreign(None), demand, 2)
    assert (opened.rps, opened.expected_p95_ms) == (500, None)
    assert predict("/x", 400, None, foreign(None)).bounds == ()


def test_an_r0_that_the_light_load_did_not_have_is_no_expectation() -> None:
    slower = Demand(20, 4000, None, None, 0.13, light_rps=9000)
    assert predict("/x", 20, None, foreign(None), slower, 2).bounds == ()
    held = Demand(200, 4000, None, None, 200.0, light_rps=990)
    assert predict("/x", 400, None, foreign(None), held, 2).bounds[0].rps == 2000


def test_a_trial_without_an_exporter_is_valid_and_says_what_was_not_asked() -> None:
    said = judge(
        measurement(foreign_record(None, warmth=UNPROVEN), reading(2000, raw=latency(200))),
        observation(),
    )
    assert said.valid
    assert any("identity, restart, settings" in note for note in said.notes)
    assert "warm-up was not proven: nothing tells" in said.notes


def test_gates_that_can_be_asked_are() -> None:
    fast = reading(2000, raw=latency(200))
    restarted = foreign(dataclasses.replace(JVM, start_time_ms=2_000_000))
    cases = (
        (foreign_record(after=restarted), fast, "the JVM restarted during the trial"),
        (foreign_record(jit_share=0.5), fast, "cold JVM"),
        (foreign_record(warmth=Warmth(False, (), "never")), fast, "cold JVM: never"),
        (foreign_record(), reading(100, raw=latency(200)), "Little's law does not hold"),
        (foreign_record(after=None, after_problem="gone"), fast, ""),
    )
    for of, said, reason in cases[:4]:
        assert any(reason in one for one in judge(measurement(of, said), observation()).reasons)


def test_the_lab_s_own_downstream_is_no_evidence_against_it() -> None:
    late = [counter("lab_downstream_lag_seconds_bucket", 100.0, le=le) for le in ("1", "+Inf")]
    said = judge(
        measurement(foreign_record(None), reading(2000, raw=latency(200))),
        Observation((OPENS, CLOSES), (gauge("up", 1, job="cadvisor"), *late)),
    )
    assert said.valid
    assert not any("downstream was late" in note for note in said.notes)
    assert not any("did not see" in note for note in said.notes)


CONTAINER = (
    gauge("up", 1, job="cadvisor"),
    counter("container_cpu_usage_seconds_total", 0.5, service="my-service"),
)
TOMCAT = (
    *CONTAINER,
    gauge("up", 1, job="jvm"),
    gauge("jvm_threads_current", 230, job="jvm", server="my-service"),
    gauge("process_open_fds", 500, job="jvm", server="my-service"),
    gauge("process_max_fds", 20_000, job="jvm", server="my-service"),
    gauge("lab_worker_pool_size", 200, server="my-service", connector="http-nio-8080"),
    gauge("lab_worker_pool_active", 200, server="my-service", connector="http-nio-8080"),
    counter("jvm_gc_collection_seconds_sum", 0.01, server="my-service", gc="G1 Young Generation"),
)


def judged(of: TrialRecord, *series: Series, rps: float = 1000.0, raw_ms: float = 400.0) -> Verdict:
    said = reading(rps, raw=latency(raw_ms))
    return verdict_of(
        measurement(of, said), Judgement((), ()), Observation((OPENS, CLOSES), series)
    )


def test_a_tomcat_whose_threads_are_all_busy_is_named_for_its_pool() -> None:
    found = judged(foreign_record(), *TOMCAT)
    assert found.bottleneck == "worker pool"
    assert found.confidence >= HIGH
    # 400 connections in flight, 200 of them with a thread.
    assert (
        "200 of 200 busy, 200 waiting; 200 / 0.2 s = 1,000 req/s, measured 1,000" in found.sentence
    )
    assert found.missing == ()


def test_a_busy_pool_with_nobody_waiting_is_not_named() -> None:
    assert judged(foreign_record(), *TOMCAT, rps=500).bottleneck == "unknown"


def test_without_an_exporter_nothing_is_named_with_confidence_and_it_is_said_why() -> None:
    found = judged(foreign_record(None), *CONTAINER)
    assert (found.bottleneck, found.confidence) == ("unknown", 0.0)
    assert found.missing == (
        "no JMX exporter at my-service:9404 that prometheus/own.json lists: heap, GC, descriptors "
        "and pool unknown; see docs/your-own-service.md",
    )
    full = judged(foreign_record(None, usage=Usage(1, 1, 0.99, 0, 0.1, 10)), *CONTAINER)
    assert full.bottleneck == "host CPU"
    assert full.confidence < HIGH


def test_an_exporter_that_nobody_reads_and_a_service_that_is_no_container_are_said() -> None:
    unread = dataclasses.replace(JVM, scraped=False)
    found = judged(foreign_record(unread), gauge("up", 1, job="cadvisor"))
    assert 'list "my-service" in prometheus/own.json' in found.missing[0]
    assert "my-service is no container of the lab" in found.missing[1]


def test_a_load_that_got_all_it_can_have_has_no_bottleneck_as_far_as_r0_is_known() -> None:
    found = judged(foreign_record(None), *CONTAINER, rps=1990, raw_ms=201)
    assert (found.bottleneck, found.confidence) == ("none", 0.9)
    assert "400 connections / 0.2 s = 2,000 req/s, measured 1,990" in found.sentence
    unknown = judged(foreign_record(None, r0_ms=None), *CONTAINER, rps=1990, raw_ms=201)
    assert unknown.bottleneck == "unknown"
    assert any("R0 unknown" in line for line in unknown.missing)


def test_a_load_faster_than_its_r0_shows_that_r0_was_not_known() -> None:
    found = judged(foreign_record(None), *CONTAINER, rps=2500, raw_ms=160)
    assert (found.bottleneck, found.confidence) == ("unknown", 0.0)
    assert "2,500 req/s are 125% of connections / R0" in found.missing[-1]


def test_an_r0_on_a_full_machine_is_not_relied_on() -> None:
    full = foreign_record(usage=Usage(1, 1, 0.99, 0, 0.1, 10))
    found = judged(full, *TOMCAT[:-4], *TOMCAT[-1:], rps=1990, raw_ms=201)
    assert found.bottleneck == "none"
    assert found.confidence < HIGH


def lone(raw_ms: float, samples: int) -> Reading:
    """What a single connection met."""
    return reading(samples / 3, 3, raw=latency(raw_ms), samples=samples)


def test_r0_is_unknown_where_many_connections_met_less(
    outside: Stack, system: FakeSystem, engine: FakeEngine, tmp_path: Path
) -> None:
    def slow_alone(of: TrialPlan, raw: Path) -> Reading:
        return reading(500.0, of.duration_s, raw=latency(300 if of.concurrency == 1 else 200))

    engine.read = slow_alone  # type: ignore[method-assign]
    of = plan("closed", server="my-service", url=f"{URL}/x", route="/x", concurrency=100)
    demand = demand_of_foreign(of, 100, engine, outside, system, tmp_path / "light", 2)
    assert demand is not None
    assert demand.r0_ms is None
    assert "in 200 ms on average, sooner than a single one in 300 ms" in (demand.r0_problem or "")
    # What the light load did is known all the same.
    assert demand.light_rps == 500
    of_trial = foreign_record(None, demand=demand)
    said = judge(measurement(of_trial, reading(2000, raw=latency(200))), observation())
    assert any(note.startswith("R0 unknown: 100 connections") for note in said.notes)
    found = judged(of_trial, *CONTAINER, rps=2000, raw_ms=200)
    assert found.bottleneck == "unknown"
    assert any(line.startswith("R0 unknown: 100 connections") for line in found.missing)
    assert predict("/x", 400, None, foreign(None), demand, 2).bounds == ()


def test_r0_of_a_few_answers_is_unknown(
    outside: Stack, system: FakeSystem, engine: FakeEngine, tmp_path: Path
) -> None:
    def slow(of: TrialPlan, raw: Path) -> Reading:
        return lone(2000, 2) if of.concurrency == 1 else reading(25, of.duration_s)

    engine.read = slow  # type: ignore[method-assign]
    of = plan("closed", server="my-service", url=f"{URL}/x", route="/x", concurrency=50)
    demand = demand_of_foreign(of, 100, engine, outside, system, tmp_path / "light", 2)
    assert demand is not None
    assert demand.r0_ms is None
    assert demand.r0_problem == (
        "a single connection got 2 answers before the load, and a mean needs 20"
    )


def test_a_service_of_two_speeds_is_not_said_to_have_given_all(
    outside: Stack, system: FakeSystem, engine: FakeEngine, tmp_path: Path
) -> None:
    # 60 % take 100 ms, 40 % take 1 ms: 60.4 ms on average, so 50 connections may have 828 req/s.
    mixed = Latency(60.4, 100, 100, 100, 100)

    def two_speeds(of: TrialPlan, raw: Path) -> Reading:
        return reading(of.concurrency / 0.0604, of.duration_s, raw=mixed)

    engine.read = two_speeds  # type: ignore[method-assign]
    of = plan("closed", server="my-service", url=f"{URL}/x", route="/x", concurrency=50)
    demand = demand_of_foreign(of, 100, engine, outside, system, tmp_path / "light", 2)
    assert demand is not None
    assert demand.r0_ms == 60.4
    of_trial = foreign_record(None, concurrency=50, demand=demand)
    found = judged(of_trial, *CONTAINER, rps=500, raw_ms=100)
    assert found.bottleneck == "unknown"
    assert "60% of N / R0" in found.sentence
    assert judged(of_trial, *CONTAINER, rps=820, raw_ms=61).bottleneck == "none"


def test_a_pool_that_gave_more_than_its_size_over_r0_is_doubted() -> None:
    found = judged(foreign_record(r0_ms=300.0), *TOMCAT, rps=1000, raw_ms=400)
    assert found.bottleneck == "worker pool"
    assert found.confidence <= 0.6
    assert "1,000 req/s are 150% of workers / R0" in found.missing[-1]


def without(*names: str) -> tuple[Series, ...]:
    """What Prometheus has of TOMCAT, but for these."""
    return tuple(one for one in TOMCAT if one.labels["__name__"] not in names)


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ((200.0, 10.0), "my-service:9404 tells of 2 connectors: which of their pools serves"),
        ((-1.0, 200.0), "my-service:9404 tells of 2 connectors: which of their pools serves"),
        ((-1.0,), "my-service:9404 tells of a pool of -1 worker threads, as a shared executor"),
        ((), "my-service:9404 tells of no pool of worker threads"),
    ],
)
def test_pools_that_cannot_be_told_apart_are_missing(sizes: tuple[float, ...], says: str) -> None:
    pools = [
        gauge("lab_worker_pool_size", size, server="my-service", connector=str(number))
        for number, size in enumerate(sizes)
    ]
    found = judged(foreign_record(), *without("lab_worker_pool_size"), *pools)
    assert found.bottleneck == "unknown"
    assert any(line.startswith(says) for line in found.missing)
    assert not any(one.resource == "worker pool" for one in found.ranked)


def test_a_jvm_that_never_told_its_descriptors_is_not_said_to_have_none_left() -> None:
    found = judged(foreign_record(), *without("process_open_fds", "process_max_fds"), rps=500)
    assert found.bottleneck == "unknown"
    assert any("tells of no file descriptors" in line for line in found.missing)


def test_the_quotas_of_several_containers_are_no_quota() -> None:
    def quota(container: str) -> Series:
        return gauge("container_spec_cpu_quota", 30_000, service="my-service", id=container)

    period = gauge("container_spec_cpu_period", 100_000, service="my-service", id="1")
    one = judged(foreign_record(), *TOMCAT, quota("1"), period)
    assert any(standing.resource == "server CPU" for standing in one.ranked)
    two = judged(foreign_record(), *TOMCAT, quota("1"), quota("2"), period)
    assert not any(standing.resource == "server CPU" for standing in two.ranked)
    assert any("my-service is 2 containers with a CPU quota each" in line for line in two.missing)


def test_an_exporter_that_may_be_another_s_is_said_to_be_taken_for_the_service_s() -> None:
    def notes(server: str, *series: Series) -> tuple[str, ...]:
        of = dataclasses.replace(plan("closed", server=server, predicted_rps=None), concurrency=400)
        whole = measurement(foreign_record(plan=of), reading(2000, raw=latency(200)))
        return judge(whole, Observation((OPENS, CLOSES), (gauge("up", 1), *series))).notes

    taken = "the JMX exporter on {}:9404 is taken for that of port 8080"
    assert taken.format("my-service") in notes("my-service")
    assert not any("is taken for" in one for one in notes("my-service", *CONTAINER))
    assert taken.format("a.b") in notes("a.b", *CONTAINER)


def test_its_limits_are_those_that_it_tells() -> None:
    assert compare({"x": foreign()}).equal == {
        "url": URL, "jdk": "21.0.1", "max_heap_bytes": 2**30,
    }  # fmt: skip
    assert compare({"x": foreign(None)}).equal == {"url": URL}


# --- a whole bench -------------------------------------------------------------------------


@pytest.fixture
def ready(
    tmp_path: Path, stack: Stack, system: FakeSystem, engine: FakeEngine, fake_lab: FakeLab
) -> Bench:
    (tmp_path / "results").mkdir()
    (tmp_path / "host.json").write_text(json.dumps(HOST_FILE))
    place = Place(tmp_path / "results", tmp_path / "host.json", 20_000, 2)
    fake_lab.foreign, fake_lab.scraped_jvms = {"my-service"}, {"my-service"}
    return Bench(place, stack, system, engine)


TARGETED: dict[str, object] = {
    "servers": ("my-service",),
    "routes": ("/x?a=1",),
    "modes": ("closed", "open"),
    "rate_rps": 500,
    "target": URL,
}


def test_a_bench_of_a_target_leaves_the_same_files(ready: Bench, fake_lab: FakeLab) -> None:
    assert ready.run(**TARGETED) == 0
    assert [(row["server"], row["route"], row["mode"], row["valid"]) for row in ready.rows] == [
        ("my-service", "/x?a=1", "closed", "true"),
        ("my-service", "/x?a=1", "open", "true"),
    ]
    assert ready.rows[0]["predicted_rps"] == ""
    raw = ready.run_dir / "raw" / ready.rows[0]["trial"] / "trial.json"
    assert json.loads(raw.read_text())["plan"]["url"] == f"{URL}/x?a=1"
    line = json.loads((ready.run_dir / "trials.jsonl").read_text().splitlines()[0])
    assert line["jvm_started_ms"] == 1_000_000
    assert f"equal for all: url {URL}" in ready.text.getvalue()
    assert ("my-service", 8081) not in fake_lab.asked
    for name in ("report.html", "REPORT.md"):
        assert "my-service" in (ready.run_dir / name).read_text()


def test_the_probe_takes_one_percent_of_what_the_light_load_did(
    ready: Bench, fake_lab: FakeLab
) -> None:
    assert ready.run(**{**TARGETED, "modes": ("closed",)}) == 0
    # 200 connections did 1,000 req/s.
    assert fake_lab.probe_rates == {10.0}
    fake_lab.probe_rates.clear()
    assert ready.run(**TARGETED) == 0
    # No more than one percent of what is offered, either.
    assert fake_lab.probe_rates == {10.0, 5.0}


def test_nothing_is_probed_where_the_light_load_told_nothing(
    outside: Stack, fake_lab: FakeLab
) -> None:
    outside.agent.mark("run", plan("closed", server="my-service", predicted_rps=None), "warmup", 60)
    assert fake_lab.probe_rates == {0.0}


def test_a_redirect_is_a_note_of_every_trial(ready: Bench, fake_lab: FakeLab) -> None:
    fake_lab.route_status = 302
    ready.run(**TARGETED)
    for line in (ready.run_dir / "trials.jsonl").read_text().splitlines():
        notes = json.loads(line)["notes"]
        assert any(note.startswith("my-service: /x?a=1 answers 302: redirects") for note in notes)


def test_resumed_it_may_be_another_build_and_a_restart_is_said(
    ready: Bench, fake_lab: FakeLab
) -> None:
    ready.system.interrupt_at = 110.0
    with pytest.raises(LabError):
        ready.run(**TARGETED)
    ready.system.interrupt_at = None
    fake_lab.foreign_started_s = 2000.0
    assert ready.resume() == 0
    notes = ready.manifest["notes"]
    assert isinstance(notes, list)
    assert "resumed: whether my-service is the same build is not known" in notes
    assert any("my-service was restarted since the run began" in note for note in notes)


def test_only_a_hard_bound_is_called_a_prediction(ready: Bench) -> None:
    # Two runs, as verdicts that say the same of several loads are one line.
    assert ready.run(**{**TARGETED, "modes": ("closed",)}) == 0
    assert ready.run(**{**TARGETED, "modes": ("open",)}) == 0
    text = ready.text.getvalue()
    assert "estimated 1,000 req/s (connections)" in text
    assert "predicted 500 req/s (offered load)" in text
    assert "no such bound is known" in re.sub(r"\s+", " ", text)


def test_one_that_was_interrupted_goes_on_and_notices_another_jvm(
    ready: Bench, fake_lab: FakeLab
) -> None:
    ready.system.interrupt_at = 110.0
    with pytest.raises(LabError):
        ready.run(**TARGETED)
    ready.system.interrupt_at = None
    assert len(ready.rows) == 1
    path = ready.run_dir / "manifest.json"
    began = path.read_text()
    path.write_text(began.replace('"jdk": "21.0.1"', '"jdk": "17"'))
    with pytest.raises(LabError, match="my-service: jdk changed"):
        ready.resume()
    path.write_text(began)
    assert ready.resume() == 0
    assert len(ready.rows) == 2


def test_an_own_service_that_is_down_is_no_failure_of_the_lab(
    stack: Stack, fake_lab: FakeLab, tmp_path: Path
) -> None:
    fake_lab.scraped_jvms, fake_lab.targets_down = {"my-service"}, True
    found = [str(one) for one in examine(stack, ("a",), tmp_path, 20_000, 2, [])]
    assert any(one.startswith("warn  target jvm my-service:9404 is down") for one in found)
    assert any(one.startswith("FAIL  target server a is down") for one in found)


def test_a_target_is_of_plain_loads_only() -> None:
    with pytest.raises(ValueError, match="a target is of kind loads"):
        dataclasses.replace(bench(), launches=1)
