"""A service that is not the lab's is warmed up, and what a request of it costs is measured."""

import dataclasses
from pathlib import Path

import pytest

from lab.errors import WordError
from lab.judge.gates import judge
from lab.judge.predict import predict
from lab.load.demand import demand_of_foreign
from lab.load.engines import Schedule
from lab.load.short_load import LEAD_S, short_load
from lab.load.warm import FIXED_WARM_S, warm_foreign
from lab.model import Demand, Latency, Reading, TrialPlan, Warmth
from support.fakes import FakeEngine, FakeLab, latency, measurement, observation, plan, reading
from support.foreign import CONTAINER, URL, foreign, foreign_record, judged
from support.system import FakeSystem


def warm_up(lab: FakeLab, raw: Path) -> Warmth:
    of = plan("closed", server="my-service", url=f"{URL}/x", route="/x")
    return warm_foreign(of, 100, lab.engine, lab.stack, lab.system, raw, lambda _: None)


def told(lab: FakeLab, tmp_path: Path, concurrency: int = 100) -> Demand | None:
    """What a light load tells of it, for a trial of so many connections."""
    of = plan("closed", server="my-service", url=f"{URL}/x", route="/x", concurrency=concurrency)
    raw = tmp_path / "light"
    return demand_of_foreign(of, 100, lab.engine, lab.stack, lab.system, raw, 2)


def test_warm_is_proven_by_the_compiler_and_what_the_engine_saw(
    outside: FakeLab, tmp_path: Path
) -> None:
    # The fake engine takes 12 s a cycle. It compiles for the first two of them.
    outside.compiled_s = lambda at: 0.3 * min(at, 24) + 0.01 * at
    warmth = warm_up(outside, tmp_path / "warm-up")
    assert warmth.steady
    assert warmth.provable
    assert [cycle.rps for cycle in warmth.cycles] == [500.0] * 5
    assert [cycle.p50_ms for cycle in warmth.cycles] == [200.0] * 5
    assert [cycle.jit_share > 0.1 for cycle in warmth.cycles] == [True, True, False, False, False]
    assert not (tmp_path / "warm-up").exists()


def test_a_jvm_that_restarts_while_it_is_warmed_up_is_cold(
    outside: FakeLab, tmp_path: Path
) -> None:
    outside.compiled_s = lambda at: 5.0 if at < 11 else 0.1
    warmth = warm_up(outside, tmp_path / "warm-up")
    assert warmth.problem == "the JVM restarted during the warm-up"
    assert warmth.cold


def test_an_engine_that_never_ends_its_short_load_is_ended(
    outside: FakeLab, tmp_path: Path
) -> None:
    outside.system.hangs = lambda argv: True
    warmth = warm_up(outside, tmp_path / "warm-up")
    assert warmth.problem == "wrk2 did not end its short load in time, and was stopped"
    assert warmth.cold
    assert outside.system.processes[0].stopped_early


def test_one_that_compiles_on_is_cold(outside: FakeLab, tmp_path: Path) -> None:
    outside.compiled_s = lambda at: 0.3 * at
    warmth = warm_up(outside, tmp_path / "warm-up")
    assert warmth.cold
    assert "not steady within 60 s" in (warmth.problem or "")


def test_without_an_exporter_it_is_loaded_for_a_fixed_time_which_proves_nothing(
    lab: FakeLab, tmp_path: Path
) -> None:
    lab.foreign, lab.no_exporter = {"my-service"}, True
    lab.stack.adopt("my-service", URL)
    warmth = warm_up(lab, tmp_path / "warm-up")
    assert (warmth.steady, warmth.provable, warmth.cold) == (False, False, False)
    assert "no JMX exporter at my-service:9404" in (warmth.problem or "")
    assert len(lab.system.started) == 1
    assert lab.system.elapsed_s == pytest.approx(10 + FIXED_WARM_S, abs=1)


def test_one_connection_tells_r0_and_a_light_load_the_cost(
    outside: FakeLab, tmp_path: Path
) -> None:
    # One connection for 3 s is too little at 200 ms each, so there is a second try.
    outside.cpu_s = lambda at: 0.1 * at + (0.5 * max(0.0, at - 33))
    demand = told(outside, tmp_path)
    assert (demand.r0_ms, demand.light_rps) == (200, 500)
    assert demand.connections == 100
    # 100 connections do 500 req/s, with half a CPU more than the idle outside uses.
    assert demand.server_cpu_s == pytest.approx(0.001, rel=0.01)
    assert demand.requests == pytest.approx(2000, rel=0.1)


def test_one_connection_tells_the_think_time_of_the_generator(
    outside: FakeLab, tmp_path: Path
) -> None:
    def quick(of: TrialPlan, raw: Path) -> Reading:
        think_ms = 0.05 if of.concurrency == 1 else 0.5
        return reading(500.0, of.duration_s, raw=latency(0.15), late=latency(think_ms))

    outside.engine.read = quick
    demand = told(outside, tmp_path)
    assert (demand.r0_ms, demand.think_ms, demand.cycle_ms) == (0.15, 0.05, pytest.approx(0.2))


def test_where_most_fails_neither_is_told(outside: FakeLab, tmp_path: Path) -> None:
    def failing(of: TrialPlan, raw: Path) -> Reading:
        said = reading(500.0, of.duration_s)
        return dataclasses.replace(said, counts=dataclasses.replace(said.counts, http_errors=900))

    outside.engine.read = failing
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


def test_an_engine_that_says_nothing_readable_gives_no_figures(
    lab: FakeLab, tmp_path: Path
) -> None:
    lab.engine.broken = "is empty"
    done = short_load(plan(), lab.engine, lab.system, tmp_path / "x", 7, 2, lab.system.monotonic)
    assert done == "its load gave no figures: is empty"


def lone(raw_ms: float, samples: int) -> Reading:
    """What a single connection met."""
    return reading(samples / 3, 3, raw=latency(raw_ms), samples=samples)


def test_r0_is_unknown_where_many_connections_met_less(outside: FakeLab, tmp_path: Path) -> None:
    def slow_alone(of: TrialPlan, raw: Path) -> Reading:
        return reading(500.0, of.duration_s, raw=latency(300 if of.concurrency == 1 else 200))

    outside.engine.read = slow_alone
    demand = told(outside, tmp_path)
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


def test_r0_of_a_few_answers_is_unknown(outside: FakeLab, tmp_path: Path) -> None:
    def slow(of: TrialPlan, raw: Path) -> Reading:
        return lone(2000, 2) if of.concurrency == 1 else reading(25, of.duration_s)

    outside.engine.read = slow
    demand = told(outside, tmp_path, 50)
    assert demand.r0_ms is None
    assert demand.r0_problem == (
        "a single connection got 2 answers before the load, and a mean needs 20"
    )


def test_a_service_of_two_speeds_is_not_said_to_have_given_all(
    outside: FakeLab, tmp_path: Path
) -> None:
    # 60 % take 100 ms, 40 % take 1 ms: 60.4 ms on average, so 50 connections may have 828 req/s.
    mixed = Latency(60.4, 100, 100, 100, 100)

    def two_speeds(of: TrialPlan, raw: Path) -> Reading:
        return reading(of.concurrency / 0.0604, of.duration_s, raw=mixed)

    outside.engine.read = two_speeds
    demand = told(outside, tmp_path, 50)
    assert demand.r0_ms == 60.4
    of_trial = foreign_record(None, concurrency=50, demand=demand)
    found = judged(of_trial, *CONTAINER, rps=500, raw_ms=100)
    assert found.bottleneck == "unknown"
    assert "60% of N / R0" in found.sentence
    assert judged(of_trial, *CONTAINER, rps=820, raw_ms=61).bottleneck == "none"
