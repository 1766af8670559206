"""A service that is not the lab's is warmed up, and what a request of it costs is measured."""

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.errors import WordError
from lab.judge.predict import predict
from lab.load.demand import demand_of_foreign
from lab.load.engines import Schedule
from lab.load.short_load import LEAD_S, short_load
from lab.load.warm import FIXED_WARM_S, warm_foreign
from lab.model import Demand, Latency, Reading, TrialPlan, Warmth
from support.fakes import (
    FakeEngine,
    FakeLab,
    cells,
    latency,
    plan,
    reading,
)
from support.foreign import CONTAINER, URL, foreign, foreign_record, judged
from support.system import FakeSystem


def warm_up(lab: FakeLab, tmp_path: Path) -> Warmth:
    of, raw = plan("closed", server="my-service", url=f"{URL}/x", route="/x"), tmp_path / "warm-up"
    warmth = warm_foreign(of, 100, lab.engine, lab.stack, lab.system, raw, lambda _: None)
    assert not raw.exists()
    return warmth


def told(lab: FakeLab, tmp_path: Path, concurrency: int = 100) -> Demand | None:
    """What a light load tells of it, for a trial of so many connections."""
    of = plan("closed", server="my-service", url=f"{URL}/x", route="/x", concurrency=concurrency)
    raw = tmp_path / "light"
    return demand_of_foreign(of, 100, lab.engine, lab.stack, lab.system, raw, 2)


def test_compiler_and_engine_prove_that_it_is_warm(outside: FakeLab, tmp_path: Path) -> None:
    # The fake engine takes 12 s a cycle. It compiles for the first two of them.
    outside.compiled_s = lambda at: 0.3 * min(at, 24) + 0.01 * at
    warmth = warm_up(outside, tmp_path)
    assert warmth.steady
    assert warmth.provable
    assert [cycle.rps for cycle in warmth.cycles] == [500.0] * 5
    assert [cycle.p50_ms for cycle in warmth.cycles] == [200.0] * 5
    assert [cycle.jit_share > 0.1 for cycle in warmth.cycles] == [True, True, False, False, False]


COLD: dict[str, tuple[Callable[[float], float], bool, str]] = {
    "restarted": (
        lambda at: 5.0 if at < 11 else 0.1,
        False,
        "cold-restarted",
    ),
    "compiles on": (lambda at: 0.3 * at, False, "cold-unsteady limit_s=60.*"),
    "engine hangs": (
        lambda at: 5.0,
        True,
        "cold-load problem=wrk2 did not end its short load in time, and was stopped",
    ),
}


@pytest.mark.parametrize("case", COLD)
def test_a_jvm_that_is_not_proven_warm_is_cold(outside: FakeLab, tmp_path: Path, case: str) -> None:
    outside.compiled_s, hangs, problem = COLD[case]
    outside.system.hangs = lambda argv: hangs
    warmth = warm_up(outside, tmp_path)
    assert warmth.cold
    assert re.fullmatch(problem, *cells([warmth.problem]))
    assert outside.system.processes[0].stopped_early == hangs


def test_without_an_exporter_a_fixed_time_proves_nothing(lab: FakeLab, tmp_path: Path) -> None:
    lab.foreign, lab.no_exporter = {"my-service"}, True
    lab.stack.adopt("my-service", URL)
    warmth = warm_up(lab, tmp_path)
    assert (warmth.steady, warmth.provable, warmth.cold) == (False, False, False)
    assert warmth.problem.cell == "warmth-unproven server=my-service port=9404"
    assert len(lab.system.started) == 1
    assert lab.system.elapsed_s == pytest.approx(10 + FIXED_WARM_S, abs=1)


def test_one_connection_gives_r0_and_a_load_the_cost(outside: FakeLab, tmp_path: Path) -> None:
    # One connection for 3 s is too little at 200 ms each, so there is a second try.
    outside.cpu_s = lambda at: 0.1 * at + (0.5 * max(0.0, at - 33))
    demand = told(outside, tmp_path)
    assert (demand.r0_ms, demand.light_rps) == (200, 500)
    assert demand.connections == 100
    # 100 connections do 500 req/s, with half a CPU more than the idle outside uses.
    assert demand.server is not None
    assert demand.server.b == pytest.approx(0.001, rel=0.01)
    assert demand.requests == pytest.approx(2000, rel=0.1)


def test_one_connection_gives_the_generator_s_think_time(outside: FakeLab, tmp_path: Path) -> None:
    def quick(of: TrialPlan, raw: Path) -> Reading:
        think_ms = 0.05 if of.concurrency == 1 else 0.5
        return reading(500.0, of.duration_s, raw=latency(0.15), late=latency(think_ms))

    outside.engine.read = quick
    demand = told(outside, tmp_path)
    assert (demand.r0_ms, demand.think_ms, demand.cycle_ms) == (0.15, 0.05, pytest.approx(0.2))


def test_if_most_requests_fail_neither_is_known(outside: FakeLab, tmp_path: Path) -> None:
    counts = dataclasses.replace(reading(500.0, 3).counts, http_errors=900)
    outside.engine.read = lambda of, raw: reading(500.0, of.duration_s, counts=counts)
    assert told(outside, tmp_path) is None


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


def test_an_unreadable_engine_gives_no_figures(lab: FakeLab, tmp_path: Path) -> None:
    lab.engine.broken = "is empty"
    done = short_load(plan(), lab.engine, lab.system, tmp_path / "x", 7, 2, lab.system.monotonic)
    assert done == "its load gave no figures: is empty"


def test_r0_is_unknown_if_many_connections_met_less(outside: FakeLab, tmp_path: Path) -> None:
    def slow_alone(of: TrialPlan, raw: Path) -> Reading:
        return reading(500.0, of.duration_s, raw=latency(300 if of.concurrency == 1 else 200))

    outside.engine.read = slow_alone
    demand = told(outside, tmp_path)
    assert demand.r0_ms is None
    assert "in 200 ms on average, sooner than a single one in 300 ms" in demand.r0_problem
    # What the light load did is known anyway.
    assert demand.light_rps == 500
    of_trial = foreign_record(None, demand=demand)
    found = judged(of_trial, *CONTAINER, rps=2000, raw_ms=200)
    assert found.bottleneck == "unknown"
    why = next(gap.detail for gap in found.missing if gap.code == "R0")
    assert why.startswith("100 connections")
    assert predict("/x", 400, None, foreign(None), demand, 2).bounds == ()


def test_r0_of_a_few_answers_is_unknown(outside: FakeLab, tmp_path: Path) -> None:
    alone = reading(2 / 3, 3, raw=latency(2000), samples=2)
    outside.engine.read = lambda of, raw: (
        alone if of.concurrency == 1 else reading(25, of.duration_s)
    )
    demand = told(outside, tmp_path, 50)
    assert demand.r0_ms is None
    assert demand.r0_problem == (
        "a single connection got 2 answers before the load, and a mean needs 20"
    )


def test_a_service_of_two_speeds_may_have_more_to_give(outside: FakeLab, tmp_path: Path) -> None:
    # 60 % take 100 ms, 40 % take 1 ms: 60.4 ms on average, so 50 connections may have 828 req/s.
    mixed = Latency(60.4, 100, 100, 100, 100)
    outside.engine.read = lambda of, raw: reading(of.concurrency / 0.0604, of.duration_s, raw=mixed)
    demand = told(outside, tmp_path, 50)
    assert demand.r0_ms == 60.4
    of_trial = foreign_record(None, concurrency=50, demand=demand)
    found = judged(of_trial, *CONTAINER, rps=500, raw_ms=100)
    assert found.bottleneck == "unknown"
    assert (found.excess.r0_ms, found.excess.ms) == (60.4, pytest.approx(39.6, abs=1))
    assert judged(of_trial, *CONTAINER, rps=820, raw_ms=61).bottleneck == "none"
