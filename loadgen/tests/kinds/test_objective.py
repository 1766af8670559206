"""Objectives as people write them, and how far a trial is from one."""

import math
from typing import Any

import pytest

from lab.judge.capacity import Margin
from lab.kinds.objective import Objective, margin, parse
from lab.model import Row
from support.altered import invalid
from support.planned import experiment, planner, row

OBJECTIVE = Objective(p99_ms=500)
# Requests without an answer: 50 or 200 beside 15,000 answers in 15 s.
LOST = {"window_s": 15.0, "window_ok": 15_000, "window_http_errors": 0, "window_lost": 50}
FELL = "latency-drift first_ms=223 second_ms=203"
ROSE = "latency-drift first_ms=210 second_ms=300"
# The ends of a margin whose latency is known to 2 %: √3 times that.
NEAR = math.sqrt(3) * 0.02


def trial(**changes: Any) -> Row:
    of = experiment(modes=("open",), servers=("a",))
    planning = planner(of)
    plan = planning.plan("a", planning.engine, "open", 600, 1000)
    known = {"achieved_rps": 1000.0, "p99_ms": 250.0, "p99_error": 0.0, "max_ms": 260.0}
    return row(plan, **{**known, **changes})


def failed(errors: int) -> dict[str, Any]:
    """So many answers of 15,000 were errors."""
    return {"window_s": 15.0, "window_ok": 15_000 - errors, "window_http_errors": errors}


def log(ratio: float) -> float:
    return math.log(ratio)


@pytest.mark.parametrize(
    ("text", "objective", "said"),
    [
        ("p99<500ms,errors<1%", Objective(p99_ms=500), "p99 ≤ 500 ms"),
        ("p95 < 0.2 s", Objective(p95_ms=200), "p95 ≤ 200 ms"),
        (
            "p50<100ms,max<2s,errors<0.1%",
            Objective(p50_ms=100, max_ms=2000, error_share=0.001),
            "p50 ≤ 100 ms, max ≤ 2000 ms, errors ≤ 0.1 %",
        ),
    ],
)
def test_an_objective_as_people_write_it(text: str, objective: Objective, said: str) -> None:
    assert (parse(text), objective.text) == ((objective,), said)


@pytest.mark.parametrize(
    ("changes", "low", "high"),
    [
        # The margin of p99, give or take what is known of it.
        ({}, log(0.5) - NEAR, log(0.5) + NEAR),
        ({"p99_error": 0.2}, log(0.5) - math.sqrt(3) / 5, log(0.5) + math.sqrt(3) / 5),
        ({"p99_ms": 1000.0}, log(2) - NEAR, log(2) + NEAR),
        # The generator itself was late by up to 300 ms: it may be met or not.
        ({"p99_ms": 550.0, "late_p99_ms": 300.0}, log(0.5) - NEAR, log(1.1) + NEAR),
        # Errors count by their share, where that is farther from its limit.
        (failed(150), -0.14, 0.14),
        (failed(15), log(0.5) - NEAR, log(0.5) + NEAR),
        # Too few answers for p99: it lies between the p95 and the longest.
        ({"p99_ms": None, "p95_ms": 400.0, "max_ms": 600.0}, log(0.8), log(1.2)),
        # Among the requests without an answer.
        (LOST | {"window_lost": 200}, 0.151, math.inf),
        # A backlog that grows has no upper end, one that drains no lower one.
        # So does a load that was not answered in full. What waits longer than allowed was missed.
        ({"overloaded": True}, log(0.5) - NEAR, math.inf),
        ({"overloaded": True, "achieved_rps": 980.0, "window_s": 15.0}, log(0.5) - NEAR, math.inf),
        ({"overloaded": True, "achieved_rps": 960.0, "window_s": 15.0}, 0.0, math.inf),
        (invalid(ROSE), log(0.5) - NEAR, math.inf),
        (invalid(FELL), -math.inf, log(0.5) + NEAR),
        (invalid("backlog"), -math.inf, log(0.5) + NEAR),
        (invalid("compiling", p99_ms=1000.0), -math.inf, log(2) + NEAR),
        (invalid("window-short", p99_ms=4000.0), log(8) - NEAR, math.inf),
        # Others on its CPUs made it slower.
        ({"others_cpu": 0.4, "p99_ms": 1000.0}, -math.inf, log(2) + NEAR),
        (invalid("jvm-restarted"), 0.0, math.inf),
        (invalid("nothing-answered"), 0.0, math.inf),
    ],
)
def test_how_far_a_trial_is_from_its_objective(
    changes: dict[str, Any], low: float, high: float
) -> None:
    assert margin(OBJECTIVE, trial(**changes)) == pytest.approx((low, high), abs=0.01)


@pytest.mark.parametrize(
    "changes",
    [
        invalid("generator-full"),
        invalid("server-not-back"),
        invalid("machine-away"),
        invalid("toxics-touched"),
        # It grew and was slowed at once.
        invalid(ROSE, others_cpu=0.4),
        # This machine did not hold the connections that the rate takes.
        {"bottleneck": "connections of the load", "offered_rps": 10_000},
    ],
)
def test_some_trials_say_nothing_of_the_server(changes: dict[str, Any]) -> None:
    assert margin(OBJECTIVE, trial(**changes)) is None


def test_when_a_burst_falls_decides_nothing() -> None:
    """Half a second of slow answers, early or late in the window, has one p99. Where it makes the
    halves differ, the margin only loses an end: late no trial is called missed for it."""
    early, late = (margin(OBJECTIVE, trial(**invalid(text, p99_ms=480.0))) for text in (FELL, ROSE))
    assert early is not None
    assert late is not None
    assert early == pytest.approx((-math.inf, log(0.96) + NEAR))
    assert late == pytest.approx((log(0.96) - NEAR, math.inf))
    assert not Margin(1000, 1, *late).missed
