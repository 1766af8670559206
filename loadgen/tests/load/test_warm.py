"""Warm-up on a fake lab: what the server shows of itself is a function of time."""

from pathlib import Path
from typing import Any

import pytest

from lab.load.counters import Counters
from lab.load.warm import (
    CYCLE_S,
    JIT_STEADY,
    MAX_WARM_S,
    OPENING_S,
    last_cycles,
    prove_warm,
    steady,
)
from lab.model import WarmCycle, Warmth
from support.drawn_delay import SPREAD
from support.fakes import FakeLab, plan


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "warm-up"


def warm_up(lab: FakeLab, raw: Path) -> Warmth:
    return prove_warm(plan(), 100, lab.engine, lab.stack, lab.system, raw, lambda _: None)


def test_a_jvm_that_stands_still_takes_three_cycles(lab: FakeLab, raw: Path) -> None:
    seen: list[float] = []
    edges: list[Counters] = []
    # Its load rises while connections open, and that is no cycle.
    lab.answered = lambda at: 500 * max(0.0, at - OPENING_S)
    warmth = prove_warm(
        plan(), 100, lab.engine, lab.stack, lab.system, raw, seen.append, edges.append
    )
    assert warmth.steady
    assert warmth.problem is None
    assert [cycle.rps for cycle in warmth.cycles] == [500.0] * 3
    # All requests took from 200 to 210 ms; the other phase and the other routes do not count.
    assert [cycle.p50_ms for cycle in warmth.cycles] == [205.0] * 3
    assert lab.system.elapsed_s == pytest.approx(OPENING_S + 3 * CYCLE_S, abs=0.7)
    assert lab.system.processes[0].stopped_early
    assert not raw.exists()
    assert seen[0] == 0
    assert len(seen) > 20
    # The counters of every edge are passed on.
    assert len(edges) == 4
    opened, closed = last_cycles(edges)
    assert (opened, closed) == (edges[1], edges[3])
    requests = closed.work.requests - opened.work.requests
    assert requests == pytest.approx(500 * (closed.at_s - opened.at_s))
    assert last_cycles(edges[:2]) is None


def test_errors_alone_prove_nothing_however_steady_they_are(lab: FakeLab, raw: Path) -> None:
    lab.answered = lambda at: 500 * max(0.0, at - OPENING_S)
    lab.failed = lab.answered
    warmth = warm_up(lab, raw)
    assert not warmth.steady
    assert warmth.problem is not None
    assert warmth.problem.code == "cold-silent"
    lab.failed = lambda at: 0.9 * lab.answered(at)
    assert warm_up(lab, raw).steady


def test_medians_of_few_drawn_delays_may_differ_by_their_draws(lab: FakeLab, raw: Path) -> None:
    few = ((10, 150, 0.0), (10, 190, 0.0), (10, 150, 0.0))
    assert not steady(cycles(*few), 40)
    assert steady(cycles(*few), 40, SPREAD.sd_ms)
    # Of so many, the draws do not explain it: 5 × 159.5 / √2000 = 18 ms, and 10 % are 15.
    many = ((1000, 150, 0.0), (1000, 190, 0.0), (1000, 150, 0.0))
    assert not steady(cycles(*many), 40, SPREAD.sd_ms)
    asked = len(lab.asked)
    assert warm_up(lab, raw).steady
    assert ("downstream", 8081) in lab.asked[asked:]


def test_the_compiler_must_have_calmed_down(lab: FakeLab, raw: Path) -> None:
    # 0.5 s of compilation a second for 10 s, then just below what is allowed.
    lab.compiled_s = lambda at: 0.5 * min(at, 10) + (JIT_STEADY - 0.01) * max(0.0, at - 10)
    warmth = warm_up(lab, raw)
    assert warmth.steady
    assert [cycle.jit_share for cycle in warmth.cycles[:4]] == [pytest.approx(0.5)] * 4
    assert [cycle.jit_share for cycle in warmth.cycles[-3:]] == [pytest.approx(0.09)] * 3
    assert lab.system.elapsed_s == pytest.approx(16, abs=2.5)


def test_a_compiler_that_waits_for_cpus_has_calmed_down(lab: FakeLab, raw: Path) -> None:
    lab.compiled_s = lambda at: 0.45 * at
    lab.jit_s = lambda at: (0.08 * at, 0.37 * at)
    warmth = warm_up(lab, raw)
    assert [(cycle.jit_share, cycle.jit_busy) for cycle in warmth.cycles] == (
        [(pytest.approx(0.08), pytest.approx(0.45))] * 3
    )
    # Here methods wait for it.
    lab.jit_s = lambda at: (0.08 * at, 0.43 * at)
    assert not warm_up(lab, raw).steady
    # And of this one most is not told.
    lab.jit_s = lambda at: (0.08 * at, 0.1 * at)
    assert "jit_3=0.45" in str(warm_up(lab, raw).problem.cell)


def test_one_that_never_calms_down_is_cold_and_says_how_it_was(lab: FakeLab, raw: Path) -> None:
    lab.compiled_s = lambda at: 0.3 * at
    warmth = warm_up(lab, raw)
    assert not warmth.steady
    assert warmth.problem.cell.startswith(
        "cold-unsteady limit_s=60 rps_1=500 p50_ms_1=205 jit_1=0.3"
    )
    assert lab.system.elapsed_s == pytest.approx(MAX_WARM_S, abs=3)
    assert len(warmth.cycles) >= 27


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("restart", "cold-restarted"),
        ("end", "cold-engine words=fake"),
        ("no exporter", "cold-unsteady limit_s=60"),
    ],
)
def test_what_is_not_proven_is_cold(lab: FakeLab, raw: Path, fault: str, problem: str) -> None:
    if fault == "restart":
        lab.compiled_s = lambda at: 5.0 if at < 3 else 0.2
    elif fault == "end":
        lab.system.at(3.0, lambda: setattr(lab.system.processes[0], "_length_s", 0.0))
    lab.no_exporter = fault == "no exporter"
    assert warm_up(lab, raw).problem.cell == problem
    assert lab.system.processes[0].stopped_early == (fault != "end")


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
