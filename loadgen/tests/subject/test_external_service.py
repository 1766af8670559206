"""A service that is not the lab's: reached, replaced, warmed up, and asked what a request costs."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest

from lab.errors import LabUnreachable
from lab.judge.predict import predict
from lab.load.bench import Bench
from lab.model import Demand, Exported, Warmth
from lab.subject.external_service import FIXED_WARM_S, ExternalService
from lab.subject.subject import RESTART_S
from lab.system.host import Clock
from lab.system.host_changes import FRESH, HostChanges
from lab.system.stack import Stack
from support.fakes import FakeLab, plan
from support.foreign import CONTAINER, URL, foreign, foreign_record, judged


def bench(lab: FakeLab, raw: Path, concurrency: int = 100) -> Bench:
    of = {"server": "my-service", "url": f"{URL}/x", "route": "/x", "concurrency": concurrency}
    return Bench(plan("closed", **of), lab.engine, lab.system, raw / "beside")


def service(lab: FakeLab, name: str = "my-service") -> ExternalService:
    return ExternalService(name, f"http://{name}:8080", "/x", lab.stack, HostChanges(None))


def warm_up(lab: FakeLab, raw: Path) -> Warmth:
    warmth, edges = service(lab).warm(bench(lab, raw), 100)
    assert edges is None
    return warmth


def demand(lab: FakeLab, raw: Path, concurrency: int = 100) -> Demand | None:
    """What a light load shows of it, for a trial of so many connections."""
    used = bench(lab, raw, concurrency)
    subject = service(lab)
    return subject.demand(used, subject.light(used.plan, 100), 2, None)


def test_a_snapshot_has_what_an_exporter_tells(outside: FakeLab) -> None:
    now = service(outside).snapshot()
    assert now.foreign
    assert now.exported == Exported(1_000_000, "21.0.1", 1_048_576_000, 200, scraped=True)
    assert (now.jvm_started_ms, now.settings) == (1_000_000, {"url": URL})
    # It has no management port, and none is asked.
    assert ("my-service", 8081) not in outside.asked
    # With the recorder in its JVM.
    outside.foreign_tells = "lab_lock_watch_ms 10.0\nlab_virtual_thread_scheduler_parallelism 2.0\n"
    now = service(outside).snapshot()
    assert (now.lock_watch_ms, now.carriers, now.pool_size) == (10, 2, 200)


@pytest.mark.parametrize(("listed", "slow"), [(False, False), (True, True)])
def test_an_exporter_counts_if_it_is_listed_and_answers(
    lab: FakeLab, listed: bool, slow: bool
) -> None:
    lab.foreign, lab.no_exporter = {"my-service"}, slow
    lab.scraped_jvms = {"my-service"} if listed else set()
    subject = service(lab)
    lab.asked.clear()
    assert subject.snapshot().exported is None
    assert subject.compiled(lab.system) is None
    assert subject.jit(lab.system) is None
    # None is asked again.
    assert not {("my-service", 9404), ("my-service", 8081)} & set(lab.asked)


def test_an_error_is_a_warning_and_a_missing_path_a_refusal(outside: FakeLab) -> None:
    subject = service(outside)
    for status, code in ((200, None), (500, "answers"), (302, "answers-redirect")):
        outside.route_status = status
        warning = subject.check_route("/x")
        assert (warning and warning.code) == code
    outside.route_status = 404
    with pytest.raises(LabUnreachable, match="answers 404: not served"):
        subject.check_route("/x")
    host = "host.docker.internal"
    outside.down.add(host)
    with pytest.raises(LabUnreachable, match="listen on an address that containers can reach"):
        service(outside, host).check_route("/x")


@pytest.mark.parametrize("location", ["localhost:8080/login", "http://[::1", "http://a\x1b]52;c;x"])
def test_where_an_answer_sends_its_client_is_not_read(location: str) -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(302, headers=[(b"Location", location.encode())])

    stack = Stack("", httpx.MockTransport(answer))
    subject = ExternalService("my-service", URL, "/x", stack, HostChanges(None))
    assert subject.check_route("/x").cell == "answers-redirect route=/x status=302"


class Endless(httpx.SyncByteStream):
    read = 0

    def __iter__(self) -> Iterator[bytes]:
        while True:
            self.read += 1 << 16
            yield bytes(1 << 16)


def test_of_a_long_answer_only_the_beginning_is_read(lab: FakeLab) -> None:
    body = Endless()

    def answer(request: httpx.Request) -> httpx.Response:
        mine = request.url.host == "my-service"
        return httpx.Response(200, stream=body) if mine else httpx.Response(404)

    stack = Stack("", httpx.MockTransport(answer))
    subject = ExternalService("my-service", URL, "/x", stack, HostChanges(None))
    assert subject.check_route("/x") is None
    assert subject.settled(lab.system)
    subject.await_another(None, lab.system)
    assert 0 < body.read < 4 << 20


class Host(HostChanges):
    """Takes the service away with its old container, and brings it back at `back_s`."""

    def __init__(self, lab: FakeLab, back_s: float) -> None:
        super().__init__(None)
        self.lab, self.back_s = lab, back_s

    def change(self, server: str, settings: Mapping[str, str], clock: Clock) -> None:
        assert (server, settings) == ("my-service", {FRESH: "yes"})
        self.lab.down.add(server)
        self.lab.system.at(self.back_s, lambda: self.lab.down.remove(server))


@pytest.mark.parametrize("scraped", [True, False])
def test_a_fresh_container_is_one_that_answers(lab: FakeLab, scraped: bool) -> None:
    lab.foreign, lab.scraped_jvms = {"my-service"}, {"my-service"} if scraped else set()

    def renew(back_s: float) -> None:
        subject = ExternalService("my-service", URL, "/x", lab.stack, Host(lab, back_s))
        subject.renew(lab.system)

    renew(9.0)
    assert lab.system.elapsed_s == pytest.approx(9, abs=0.5)
    # One that answers errors is still starting.
    lab.route_status = 503
    lab.system.at(21.0, lambda: setattr(lab, "route_status", 200))
    renew(12.0)
    assert lab.system.elapsed_s == pytest.approx(21, abs=0.5)
    # The message begins with the server, so that its row says that it did not come back.
    with pytest.raises(LabUnreachable, match=r"^my-service: .* does not answer"):
        renew(1e6)
    assert lab.system.elapsed_s == pytest.approx(21 + RESTART_S, abs=1.5)


def test_compiler_and_load_prove_that_it_is_warm(outside: FakeLab, tmp_path: Path) -> None:
    # It compiles for the first two cycles, of 2 s each.
    outside.compiled_s = lambda at: 0.3 * min(at, 5) + 0.01 * at
    warmth, edges = service(outside).warm(bench(outside, tmp_path), 100)
    assert (warmth.steady, warmth.provable) == (True, True)
    found = [(cycle.rps, cycle.p50_ms) for cycle in warmth.cycles]
    assert found == [(500.0, pytest.approx(200, rel=0.001))] * 5
    assert [cycle.jit_share > 0.1 for cycle in warmth.cycles] == [True, True, False, False, False]
    assert outside.system.started == [("pacer", "-")]
    assert outside.system.processes[0].stopped_early
    # Its end is a light load as well.
    found = service(outside).demand(bench(outside, tmp_path), 100, 2, edges)
    assert (found.r0_ms, found.light_rps, found.requests) == (200, 500, 2000)
    assert len(outside.system.started) == 2


@pytest.mark.parametrize(
    "changes",
    [{"errors": 1.0}, {"answers": lambda connections: (0, [1], 0)}],
    ids=["errors", "no answers"],
)
def test_what_answers_nothing_is_cold(
    outside: FakeLab, tmp_path: Path, changes: dict[str, object]
) -> None:
    vars(outside).update(changes)
    warmth, edges = service(outside).warm(bench(outside, tmp_path), 100)
    assert (warmth.problem.cell, edges) == ("cold-silent elapsed_s=13", None)
    assert outside.system.processes[0].stopped_early


def test_without_an_exporter_a_fixed_time_proves_nothing(lab: FakeLab, tmp_path: Path) -> None:
    lab.foreign = {"my-service"}
    warmth = warm_up(lab, tmp_path)
    assert (warmth.steady, warmth.provable, warmth.cold) == (False, False, False)
    assert warmth.problem.cell == "warmth-unproven server=my-service port=9404"
    assert len(lab.system.started) == 1
    assert lab.system.elapsed_s == pytest.approx(FIXED_WARM_S, abs=1)
    # A load that ends says why.
    lab.system.at(13.0, lambda: setattr(lab.system.processes[1], "_length_s", 0.0))
    lab.system.pacer = lambda *_: "pacer: no descriptor left\n"
    assert warm_up(lab, tmp_path).problem.values["problem"] == "pacer: no descriptor left"


def test_an_exporter_may_lack_a_figure(
    outside: FakeLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = outside._exported
    lacks = "jvm_compilation"
    monkeypatch.setattr(outside, "_exported", lambda host: whole(host).replace(lacks, "other"))
    assert warm_up(outside, tmp_path).problem.code == "warmth-unproven"
    assert outside.system.elapsed_s == pytest.approx(FIXED_WARM_S, abs=1)
    lacks = "process_cpu"
    assert service(outside).warm(bench(outside, tmp_path), 100)[0].steady
    found = demand(outside, tmp_path)
    assert (found.r0_ms, found.light_rps, found.server) == (200, 500, None)


def test_one_connection_gives_r0_and_a_load_the_cost(outside: FakeLab, tmp_path: Path) -> None:
    # One connection needs 4 s for 20 answers of 200 ms; then the lab idles for 2 s.
    outside.cpu_s = lambda at: 0.1 * at + (0.5 * max(0.0, at - 7.2))
    found = demand(outside, tmp_path)
    assert (found.r0_ms, found.light_rps, found.connections) == (200, 500, 100)
    # 100 connections do 500 req/s, with half a CPU more than the idle outside uses.
    assert found.server.b == pytest.approx(0.001, rel=0.01)
    assert found.requests == pytest.approx(2000)
    # A probe may use a part of what is offered, at most of what the light load did.
    subject = service(outside)
    assert subject.most_rps(plan("open", offered_rps=450), found) == 450
    assert subject.most_rps(plan("closed"), found) == 500
    assert subject.most_rps(plan("closed"), None) == 0


def test_one_connection_gives_the_generator_s_think_time(outside: FakeLab, tmp_path: Path) -> None:
    outside.answers = lambda connections: (500.0, [0.15], 0.05 if connections == 1 else 0.5)
    found = demand(outside, tmp_path)
    assert (found.r0_ms, found.think_ms, found.cycle_ms) == (0.15, 0.05, pytest.approx(0.2))
    # Before the load it took no longer than it must.
    assert outside.system.elapsed_s < 15


@pytest.mark.parametrize("errors", [0.9, 1.0])
def test_if_most_requests_fail_neither_is_known(
    outside: FakeLab, tmp_path: Path, errors: float
) -> None:
    outside.errors = errors
    assert demand(outside, tmp_path) is None
    assert len(outside.system.started) == 1


def test_r0_is_unknown_if_many_connections_met_less(outside: FakeLab, tmp_path: Path) -> None:
    outside.answers = lambda connections: (500.0, [300 if connections == 1 else 200], 0)
    found = demand(outside, tmp_path)
    # What the light load did is known anyway.
    assert (found.r0_ms, found.light_rps) == (None, 500)
    assert "in 200 ms on average, sooner than a single one in 300 ms" in found.r0_problem
    verdict = judged(foreign_record(None, demand=found), *CONTAINER, rps=2000, raw_ms=200)
    assert verdict.bottleneck == "unknown"
    why = next(gap.detail for gap in verdict.missing if gap.code == "R0")
    assert why.startswith("100 connections")
    assert predict("/x", 400, None, foreign(None), found, 2).bounds == ()


def test_r0_of_a_few_answers_is_unknown(outside: FakeLab, tmp_path: Path) -> None:
    outside.answers = lambda connections: (25, [2000], 0) if connections > 1 else (0.4, [2000], 0)
    found = demand(outside, tmp_path, 50)
    assert found.r0_ms is None
    assert found.r0_problem.startswith("a single connection got 6 answers before the load")


def test_without_a_light_load_only_one_connection_is_known(
    outside: FakeLab, tmp_path: Path
) -> None:
    outside.answers = lambda connections: (5, [200], 0)
    found = demand(outside, tmp_path)
    assert (found.connections, found.r0_ms, found.light_rps, found.server) == (1, 200, None, None)


def test_a_service_of_two_speeds_may_have_more_to_give(outside: FakeLab, tmp_path: Path) -> None:
    # 60 % take 100 ms, 40 % take 1 ms: 60.4 ms on average, so 50 connections may have 828 req/s.
    outside.answers = lambda connections: (connections * 15, [100, 1, 100, 1, 100], 0)
    found = demand(outside, tmp_path, 50)
    assert found.r0_ms == 60.4
    of_trial = foreign_record(None, concurrency=50, demand=found)
    verdict = judged(of_trial, *CONTAINER, rps=500, raw_ms=100)
    assert verdict.bottleneck == "unknown"
    assert (verdict.excess.r0_ms, verdict.excess.ms) == (60.4, pytest.approx(39.6, abs=1))
    assert judged(of_trial, *CONTAINER, rps=820, raw_ms=61).bottleneck == "none"
