"""A server of the lab: read back, replaced, warmed up, and asked what a request costs. What it
shows of itself is a function of time."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.errors import LabUnreachable
from lab.load.bench import Bench
from lab.model import TO_CALLED, TO_SERVER, Demand, Line, ToxicState, WarmCycle, Warmth, Way
from lab.model.knobs import DIRECT, PROXIED
from lab.subject.jvm import (
    CYCLE_S,
    IDLE_S,
    JIT_STEADY,
    LIGHT_S,
    MAX_WARM_S,
    Counters,
    Edges,
    steady,
)
from lab.subject.lab_server import LabServer
from lab.subject.subject import OPENING_EACH_S, OPENING_S, RESTART_S, SETTLE_S
from lab.system.host import HostCpu
from lab.system.management import Management
from lab.system.network import Reached
from support.drawn_delay import SPREAD
from support.fakes import IDENTITY, SETTINGS, FakeLab, plan, toxic


def server(lab: FakeLab) -> LabServer:
    return LabServer("a", lab.stack)


def bench(lab: FakeLab, raw: Path, progress: Callable[[], object] = lambda: None) -> Bench:
    return Bench(plan(), lab.engine, lab.system, raw / "beside", progress)


def test_a_snapshot_reads_everything_back(lab: FakeLab) -> None:
    lab.toxics = [toxic("slow")]
    snapshot = server(lab).snapshot()
    assert (snapshot.identity, snapshot.settings) == (IDENTITY, SETTINGS)
    assert snapshot.downstream_delay_ms == 200
    assert snapshot.toxics.added_latency_ms == 300
    assert "latency=300" in snapshot.toxics.in_force[0]
    # Toxics are in force for a server that calls through Toxiproxy.
    for url, toxics in ((PROXIED, lab.stack.toxics()), (DIRECT, ToxicState())):
        lab.settings["a"] = {"downstream_url": url}
        assert server(lab).snapshot().toxics == toxics
    lab.down.add("a")
    with pytest.raises(LabUnreachable, match="a: http://a:8081/identity does not answer"):
        server(lab).snapshot()


def test_on_several_machines_there_are_ways_between_them() -> None:
    known = {"reached": Reached(0.3, 1450), "round_trip_us": 420}
    lab = FakeLab(several=True, **known)
    assert server(lab).snapshot().ways == (Way(TO_SERVER, 0.3, 1450), Way(TO_CALLED, 0.42))
    unknown = server(FakeLab(several=True)).snapshot()
    assert unknown.ways == (Way(TO_SERVER), Way(TO_CALLED))
    assert server(FakeLab(**known)).snapshot().ways == ()


def test_a_route_is_checked() -> None:
    ok, late = FakeLab(), FakeLab(route_status=504)
    assert server(ok).check_route("/downstream") is None
    # An error may be the doing of a toxic.
    assert server(late).check_route("/downstream").cell == "answers route=/downstream status=504"
    another, missing = FakeLab(answering_model="b"), FakeLab(route_status=404)
    for lab, refusal in ((another, "answered by b"), (missing, "not served")):
        with pytest.raises(LabUnreachable, match=refusal):
            server(lab).check_route("/downstream")


def test_a_fresh_jvm_is_one_that_started_later_and_answers_as_itself(lab: FakeLab) -> None:
    before = server(lab).started_ms()
    server(lab).renew(lab.system)
    assert server(lab).started_ms() != before
    assert lab.restarts == ["a"]
    # One that comes and goes is waited for.
    lab.down.add("a")
    lab.system.at(lab.system.elapsed_s + 3, lab.down.clear)
    lab.system.at(lab.system.elapsed_s + 4, lambda: lab.down.add("a"))
    lab.system.at(lab.system.elapsed_s + 9, lab.down.clear)
    server(lab).renew(lab.system)
    assert lab.restarts == ["a", "a"]
    lab.answering_model = "b"
    with pytest.raises(LabUnreachable, match="answered by b"):
        server(lab).renew(lab.system)


def test_a_jvm_that_goes_on_is_refused(lab: FakeLab) -> None:
    lab.never_back = {"a"}
    with pytest.raises(LabUnreachable, match="did not end when told to"):
        server(lab).renew(lab.system)
    assert lab.system.elapsed_s == pytest.approx(RESTART_S, abs=1)


def test_settled_waits_for_the_queue_but_not_for_ever(lab: FakeLab) -> None:
    lab.in_flight = 800
    lab.system.at(3.0, lambda: setattr(lab, "in_flight", 1))
    assert server(lab).settled(lab.system)
    assert lab.system.elapsed_s == pytest.approx(3, abs=0.5)
    lab.in_flight = 2
    assert not server(lab).settled(lab.system)
    assert lab.system.elapsed_s == pytest.approx(3 + SETTLE_S, abs=1)
    lab.down.add("a")
    assert server(lab).settled(lab.system)


def warm_up(lab: FakeLab, raw: Path) -> Warmth:
    warmth, _ = server(lab).warm(bench(lab, raw), 100)
    return warmth


def test_a_jvm_that_stands_still_takes_three_cycles(lab: FakeLab, tmp_path: Path) -> None:
    steps: list[None] = []
    # Its load rises while connections open, and that is no cycle.
    lab.answered = lambda at: 500 * max(0.0, at - OPENING_S)
    used = bench(lab, tmp_path, lambda: steps.append(None))
    warmth, edges = server(lab).warm(used, 100)
    assert (warmth.steady, warmth.problem) == (True, None)
    assert [cycle.rps for cycle in warmth.cycles] == [500.0] * 3
    # All requests took from 200 to 210 ms; the other phase and the other routes do not count.
    assert [cycle.p50_ms for cycle in warmth.cycles] == [205.0] * 3
    assert lab.system.elapsed_s == pytest.approx(OPENING_S + 3 * CYCLE_S, abs=0.7)
    assert lab.system.processes[0].stopped_early
    assert not used.folder.exists()
    assert len(steps) > 20
    # The last two of its cycles are a light load.
    opened, closed = edges
    assert closed.at_s - opened.at_s == pytest.approx(2 * CYCLE_S, abs=0.5)
    requests = closed.work.requests - opened.work.requests
    assert requests == pytest.approx(500 * (closed.at_s - opened.at_s))


def test_errors_alone_prove_nothing_however_steady_they_are(lab: FakeLab, tmp_path: Path) -> None:
    lab.failed = lab.answered
    assert warm_up(lab, tmp_path).problem.code == "cold-silent"
    lab.failed = lambda at: 0.9 * lab.answered(at)
    assert warm_up(lab, tmp_path).steady


def test_the_compiler_must_have_calmed_down(lab: FakeLab, tmp_path: Path) -> None:
    # 0.5 s of compilation a second for 10 s, then just below what is allowed.
    lab.compiled_s = lambda at: 0.5 * min(at, 10) + (JIT_STEADY - 0.01) * max(0.0, at - 10)
    warmth = warm_up(lab, tmp_path)
    assert warmth.steady
    shares = [cycle.jit_share for cycle in warmth.cycles]
    assert (shares[:4], shares[-3:]) == ([pytest.approx(0.5)] * 4, [pytest.approx(0.09)] * 3)
    assert lab.system.elapsed_s == pytest.approx(16, abs=2.5)


@pytest.mark.parametrize(
    ("used", "waited", "share", "busy", "is_steady"),
    [
        # It waits for CPUs; then methods wait for it; and most of its time is not told.
        (0.08, 0.37, 0.08, 0.45, True),
        (0.08, 0.43, 0.08, 0.51, False),
        (0.08, 0.10, 0.45, None, False),
    ],
)
def test_a_compiler_that_waits_for_cpus_has_calmed_down(
    lab: FakeLab,
    tmp_path: Path,
    used: float,
    waited: float,
    share: float,
    busy: float | None,
    is_steady: bool,
) -> None:
    lab.compiled_s, lab.jit_s = lambda at: 0.45 * at, lambda at: (used * at, waited * at)
    warmth = warm_up(lab, tmp_path)
    [cycle, *_] = warmth.cycles
    assert (cycle.jit_share, cycle.jit_busy) == (pytest.approx(share), busy and pytest.approx(busy))
    assert warmth.steady == is_steady


def end(lab: FakeLab, at_s: float) -> None:
    """Its engine ends by itself then."""
    lab.system.at(at_s, lambda: setattr(lab.system.processes[0], "_length_s", 0.0))


STILL = "cold-unsteady limit_s=60"


@pytest.mark.parametrize(
    ("changes", "ends_s", "problem", "cycles"),
    [
        ({"compiled_s": lambda at: 0.3 * at}, 99, f"{STILL} rps_1=500 p50_ms_1=205 jit_1=0.3", 27),
        ({"compiled_s": lambda at: 5.0 if at < 3 else 0.2}, 99, "cold-restarted", 0),
        ({"no_exporter": True}, 99, STILL, 0),
        ({}, 3, "cold-engine words=fake", 0),
    ],
    ids=["compiles", "restart", "no exporter", "end"],
)
def test_what_is_not_proven_is_cold(
    lab: FakeLab, tmp_path: Path, changes: dict[str, Any], ends_s: int, problem: str, cycles: int
) -> None:
    vars(lab).update(changes)
    end(lab, ends_s)
    warmth, edges = server(lab).warm(bench(lab, tmp_path), 100)
    assert warmth.problem.cell.startswith(problem)
    assert edges is None
    assert len(warmth.cycles) >= cycles
    assert lab.system.processes[0].stopped_early == (ends_s > 3)
    assert lab.system.elapsed_s <= MAX_WARM_S + 3


def cycles(*shown: tuple[float, float | None, float]) -> tuple[WarmCycle, ...]:
    return tuple(
        WarmCycle(at_s=2.0 * number, length_s=2.0, rps=rps, p50_ms=p50_ms, jit_share=jit)
        for number, (rps, p50_ms, jit) in enumerate(shown, 1)
    )


@pytest.mark.parametrize(
    ("shown", "is_steady"),
    [
        (((500, 200, 0.0), (500, 200, 0.0)), False),  # only two
        (((500, 200, 0.0), (500, 219, 0.1), (500, 200, 0.0)), True),
        (((500, 200, 0.0), (500, 221, 0.0), (500, 200, 0.0)), False),  # p50 by more than 10 %
        (((500, 200, 0.0), (500, 200, 0.0), (500, 200, 0.11)), False),  # the compiler
        (((9000, 0.5, 0.0), (9000, 1.4, 0.0), (9000, 0.5, 0.0)), True),  # below a bucket
        # 40 connections, 300 ms: 6 or 7 bursts of 40 in 2 s.
        (((120, 303, 0.0), (140, 303, 0.0), (140, 303, 0.0)), True),
        # A burst every 5 s: two cycles see none.
        (((0, None, 0.0), (20, 5000, 0.0), (0, None, 0.0)), True),
        (((0, None, 0.0), (0, None, 0.0), (0, None, 0.0)), False),  # nothing was answered
        # An engine that still opens connections, or code that gets quicker: 1000 × 1.1 + 20.
        (((1000, 200, 0.0), (1100, 200, 0.0), (1130, 200, 0.0)), False),
        (((1000, 200, 0.0), (1100, 200, 0.0), (1110, 200, 0.0)), True),
    ],
)
def test_a_steady_load(shown: tuple[Any, ...], is_steady: bool) -> None:
    assert steady(cycles(*shown), 40) is is_steady
    # What was before does not matter.
    assert steady(cycles((9, 900, 2.0), *shown), 40) is (is_steady and len(shown) > 2)


def test_medians_of_few_drawn_delays_may_differ_by_their_draws(
    lab: FakeLab, tmp_path: Path
) -> None:
    few = ((10, 150, 0.0), (10, 190, 0.0), (10, 150, 0.0))
    assert not steady(cycles(*few), 40)
    assert steady(cycles(*few), 40, SPREAD.sd_ms)
    # Of so many, the draws do not explain it: 5 × 159.5 / √2000 = 18 ms, and 10 % are 15.
    many = ((1000, 150, 0.0), (1000, 190, 0.0), (1000, 150, 0.0))
    assert not steady(cycles(*many), 40, SPREAD.sd_ms)
    asked = len(lab.asked)
    assert warm_up(lab, tmp_path).steady
    assert ("downstream", 8081) in lab.asked[asked:]


# One rate, so no a.
LINE = Line(pytest.approx(0.001))


@pytest.fixture
def light(lab: FakeLab) -> FakeLab:
    """Idle: 0.1 CPU seconds a second. From 2 s on 500 requests a second, of 1 ms each."""
    lab.answered = lambda at: 500 * max(0.0, at - IDLE_S)
    lab.cpu_s = lambda at: 0.1 * at + 0.5 * max(0.0, at - IDLE_S)
    return lab


def measured(lab: FakeLab, raw: Path, edges: Edges | None = None) -> Demand | None:
    return server(lab).demand(bench(lab, raw), 200, 4, edges)


def test_what_a_request_costs_leaves_out_what_the_idle_lab_and_others_cost(
    light: FakeLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = light.system
    system.at(IDLE_S, lambda: system.use(0.75))
    unstolen = system.host_cpu

    def host_cpu() -> HostCpu:
        stolen, read = 0.1 * max(0.0, system.elapsed_s - IDLE_S), unstolen()
        return copy.replace(read, idle=read.idle - stolen, steal=stolen)

    monkeypatch.setattr(system, "host_cpu", host_cpu)
    # 4 CPUs, a quarter of them more than the half that was busy anyway: 1 s each second.
    assert measured(light, tmp_path) == Demand(200, 2000, LINE, Line(pytest.approx(0.002)))
    length_s = IDLE_S + OPENING_S + 200 * OPENING_EACH_S + LIGHT_S
    assert system.elapsed_s == pytest.approx(length_s, abs=0.5)
    assert system.processes[0].stopped_early


def test_a_cost_that_is_noise_is_unknown(light: FakeLab, tmp_path: Path) -> None:
    # The machine seems to use less than one process on it does.
    light.system.at(IDLE_S, lambda: light.system.use(0.55))
    demand = measured(light, tmp_path)
    assert (demand.server, demand.host) == (LINE, None)
    # The load costs no more than idling.
    light.cpu_s = lambda at: 0.1 * at
    assert measured(light, tmp_path) == Demand(200, 2000, None, None)


@pytest.mark.parametrize(
    ("changes", "ends_s"),
    [
        ({"answered": lambda at: 12 * at}, 99),
        ({"failed": lambda at: 0.06 * 500 * max(0.0, at - IDLE_S)}, 99),
        ({"no_exporter": True}, 99),
        ({"answered": lambda at: 500 * at if at < 5 else 0.0}, 99),
        ({}, 5),
    ],
    ids=["few", "failed", "no exporter", "restarted", "ended"],
)
def test_what_cannot_be_told_is_none(
    light: FakeLab, tmp_path: Path, changes: dict[str, Any], ends_s: int
) -> None:
    vars(light).update(changes)
    end(light, ends_s)
    assert measured(light, tmp_path) is None


def test_a_load_that_was_there_already_is_not_made_again(light: FakeLab, tmp_path: Path) -> None:
    # 4 s at 500 requests of 1 ms a second, before this; since then the lab idles.
    light.answered, light.cpu_s = lambda _: 3000, lambda at: 3.0 + 0.1 * at
    work = Management(light.stack.http, "a").work("/downstream")
    before = copy.replace(work, requests=1000.0)
    edges = (Counters(-4.0, None, 0.6, 1.0, before), Counters(0.0, None, 3.0, 1.0, work))
    # 2.4 CPU seconds, of which 0.4 are the idle lab's.
    assert measured(light, tmp_path, edges) == Demand(200, 2000, LINE, None)
    assert light.system.processes == []


def test_connections_of_a_light_load_and_of_a_warm_up(lab: FakeLab) -> None:
    for route, most, light, to_warm in (
        ("downstream", 20, 200, 200),
        ("downstream", 500, 500, 500),
        ("downstream", 5000, 1000, 1000),
        ("compute", 5000, 20, 1000),
    ):
        trial = plan("open", concurrency=20, route=f"/{route}")
        assert server(lab).light(trial, most) == light, (route, most)
        assert server(lab).to_warm(trial, most) == to_warm, (route, most)
