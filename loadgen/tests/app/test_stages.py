"""The JVMs of a run: fresh, proven warm, asked what a request costs; and the load engine."""

import copy
from collections.abc import Callable

import pytest

from lab.app.engine_choice import choose_engines
from lab.app.measured_once import DEMAND_AGE_S
from lab.errors import EngineError
from lab.judge.checks.state import cold_unsteady
from lab.model import Demand, Experiment, Line, Request, TrialPlan, Warmth
from lab.subject.jvm import CYCLE_S, LIGHT_CYCLES
from support.bench import EXPERIMENT, WARM, Bench
from support.fakes import FakeEngine, toxic

CLOSED: dict[str, object] = {"servers": ("a",), "modes": ("closed",)}
CLOSED_100 = {**CLOSED, "concurrencies": (100,)}
COLD = Warmth(False, WARM.cycles, cold_unsteady.remark(limit_s=60.0))
BOTH = ("wrk2", "pacer")


def given(**changes: object) -> Experiment:
    """A closed load, which wrk2 fits."""
    return copy.replace(EXPERIMENT, modes=("closed",), **changes)


def opened(**changes: object) -> Experiment:
    """An open load of so few connections at such a rate that wrk2 fits it."""
    return copy.replace(EXPERIMENT, **{"rate_rps": 900, **changes})


@pytest.fixture
def engines() -> list[FakeEngine]:
    return [FakeEngine(), FakeEngine("pacer")]


@pytest.mark.parametrize(
    ("experiment", "away", "name"),
    [
        (given(), "", "wrk2"),
        (opened(), "", "wrk2"),
        (given(concurrencies=(5000,)), "", "wrk2"),
        (opened(modes=("open",)), "", "wrk2"),
        (opened(concurrencies=(5000,), engines=("wrk2",)), "", "wrk2"),
        (given(), "wrk2", "pacer"),
        (given(engines=BOTH), "wrk2", "pacer"),
        # Bursts of wrk2 never decide.
        (opened(concurrencies=(200, 1000)), "", "pacer"),
        (opened(rate_rps=None), "", "pacer"),
        (opened(arrivals="poisson"), "", "pacer"),
        (given(target="https://x:443", servers=("x",)), "", "pacer"),
        (given(warmup_s=5), "", "pacer"),
        (opened(rate_rps=None), "pacer", "wrk2"),
        (given(engines=("wrk2",)), "wrk2", None),
        (given(), "wrk2 pacer", None),
        # Only pacer sends a mix.
        (given(target="http://x", requests=(Request("/"),)), "pacer", None),
    ],
)
def test_the_engine_is_the_one_asked_for_or_the_one_that_fits_the_load(
    engines: list[FakeEngine], experiment: Experiment, away: str, name: str | None
) -> None:
    for engine in engines:
        engine.here = engine.name not in away.split()
    if name is None:
        with pytest.raises(EngineError):
            choose_engines(experiment, engines)
        return
    chosen = choose_engines(experiment, engines)
    assert chosen.engines == {name: engines[BOTH.index(name)]}
    # What was chosen, or left out, is said.
    is_said = experiment.engines != (name,)
    assert [note.partition(" ")[0] in BOTH for note in chosen.notes] == [True] * is_said


def test_a_cold_jvm_is_warmed_up_again_and_its_load_measured_again(ready: Bench) -> None:
    def cold_at_first(plan: TrialPlan, *_: object) -> Warmth:
        ready.warmed.append(plan.server)
        return WARM if len(ready.warmed) > 1 else COLD

    ready.warm = cold_at_first
    ready.run(**CLOSED, concurrencies=(100, 200))
    cells = "01-a-closed-c100 false, 01-a-closed-c100-again true, 02-a-closed-c200 true"
    assert ready.cells("trial", "valid") == cells
    assert ready.warmed == ["a", "a"]
    trials = (ready.run_dir / "trials.jsonl").read_text()
    assert '"code": "measured-again", "values": {"trial": "01-a-closed-c100"}' in trials
    assert "3 trials, 2 of them valid, 1 of them to measure one again" in ready.report


def test_a_jvm_that_never_gets_warm_is_not_warmed_up_for_ever(ready: Bench) -> None:
    ready.warmth = COLD
    ready.run(**CLOSED, concurrencies=(100, 200, 300, 400))
    assert len(ready.rows) == 6
    assert len(ready.warmed) == 3
    assert ready.measured == []
    # Nor is it remembered.
    ready.run(**CLOSED, concurrencies=(100,))
    assert len(ready.warmed) > 3


@pytest.mark.parametrize(
    ("times", "warmed", "reasons", "binding"),
    [
        (1, 2, ["", ""], ["host CPU", "host CPU"]),
        # One that is replaced again is cold, and nothing is known of what a request costs there.
        # The next trial finds a JVM that stays, and warms it up.
        (2, 3, ["cold-replaced", ""], ["connections", "host CPU"]),
    ],
)
def test_a_jvm_that_was_replaced_after_its_proof_is_warmed_up_again(
    ready: Bench, times: int, warmed: int, reasons: list[str], binding: list[str]
) -> None:
    def light_load(plan: TrialPlan, *_: object) -> Demand:
        if len(ready.measured) < times:
            ready.lab.new_jvm("a")
        ready.measured.append((plan.server, plan.route))
        return Demand(100, 2000, Line(0.004), Line(0.01))

    ready.light_load = light_load
    ready.run(**CLOSED, concurrencies=(100, 200))
    assert ready.warmed == ["a"] * warmed
    assert ready.column("invalid_reasons") == reasons
    assert ready.column("binding") == binding
    assert "a: its JVM was replaced after it was warmed up: warming" in ready.text.getvalue()


@pytest.mark.parametrize(
    ("changes", "cells", "restarts"),
    [
        (
            {"modes": ("closed",), "concurrencies": (100, 200)},
            "1 a  100, 1 b  100, 1 a  200, 1 b  200, 2 b  200, 2 a  200, 2 b  100, 2 a  100",
            ["a", "b", "b", "a"],
        ),
        (
            {**CLOSED, "arms": ("x", "y")},
            "1 a x 200, 1 a y 200, 2 a y 200, 2 a x 200",
            ["a"] * 4,
        ),
    ],
    ids=["servers", "arms of a server"],
)
def test_every_launch_is_a_fresh_jvm_and_launches_take_turns(
    ready: Bench, changes: dict[str, object], cells: str, restarts: list[str]
) -> None:
    ready.run(launches=2, **changes)
    assert ready.cells("launch", "server", "arm", "concurrency") == cells
    assert ready.lab.restarts == ready.warmed == restarts


def test_what_a_request_costs_is_measured_once_for_a_jvm_and_route(ready: Bench) -> None:
    ready.demand = Demand(100, 2000, Line(0.004), Line(0.01))
    ready.run(concurrencies=(100, 200), modes=("closed",))
    assert ready.measured == [("a", "/downstream"), ("b", "/downstream")]
    # 2 CPUs of the host at 10 ms a request.
    assert {*ready.column("expected_rps", "binding")} == {("200.000", "host CPU")}
    assert ready.column("expected_p95_ms") == ["500.000"] * 2 + ["1000.000"] * 2
    # Faster than an estimate is not faster than possible.
    assert ready.column("valid", "predicted_rps")[:2] == [("true", "500.000")] * 2
    # One that is unknown is not asked for again.
    ready.demand, ready.measured = None, []
    ready.lab.new_jvm("a")
    ready.run(name="unknown", servers=("a",))
    assert ready.measured == [("a", "/downstream")]


def test_a_jvm_that_a_run_before_has_proven_warm_is_not_warmed_up_again(ready: Bench) -> None:
    ready.demand = Demand(200, 2000, Line(0.004), Line(0.01))
    ready.run(servers=("a",))
    ready.run(servers=("a", "b"), modes=("closed",))
    assert ready.warmed == ["a", "b"]
    assert ready.measured == [("a", "/downstream"), ("b", "/downstream")]
    # The proof and the cost of a request are those of the run before.
    assert ready.trials[0]["warmth"]["steady"]
    assert {row["binding"] for row in ready.rows} == {"host CPU"}
    assert "a /downstream: proven warm in " in ready.said
    assert "b /downstream: proven warm in " not in ready.said


@pytest.mark.parametrize(
    ("change", "changes", "warmed"),
    [
        (lambda ready: ready.lab.new_jvm("a"), {}, 2),
        (lambda ready: ready.place.warm_jvms.write_text('[{"server": "a"'), {}, 2),
        (lambda ready: None, {"routes": ("/block",)}, 2),
        (lambda ready: None, {"concurrencies": (300,)}, 2),
        (lambda ready: setattr(ready.lab, "delay_ms", 100), {}, 1),
        (lambda ready: ready.lab.pool_sizes.update(a=20), {}, 1),
        (lambda ready: ready.lab.toxics.append(toxic()), {}, 1),
        (lambda ready: ready.on(cpusets={"TOXIPROXY": "1"}), {}, 1),
        (lambda ready: ready.lab.system.sleep(DEMAND_AGE_S), {}, 1),
    ],
    ids=["JVM", "unreadable", "route", "load", "delay", "pool", "toxics", "proxy", "long ago"],
)
def test_what_a_run_before_proved_or_measured_elsewhere_is_not_taken(
    ready: Bench, change: Callable[[Bench], object], changes: dict[str, object], warmed: int
) -> None:
    ready.demand = Demand(200, 2000, Line(0.004), Line(0.01))
    ready.run(**CLOSED_100)
    change(ready)
    ready.run(**{**CLOSED_100, **changes})
    assert ready.warmed == ["a"] * warmed
    assert len(ready.measured) == 2


def test_a_proof_outlives_runs_that_need_less(ready: Bench) -> None:
    """And stays the proof of the run that gave it."""
    for concurrency in (1000, 100, 100, 1000):
        ready.run(**CLOSED, concurrencies=(concurrency,))
        ready.lab.system.elapsed_s += DEMAND_AGE_S
    assert ready.warmed == ["a"]
    last = (ready.place.results / "latest" / "trials.jsonl").read_text()
    assert f'"run": "{ready.run_dir.name}"' in last.partition('"warmth"')[2]
    assert '"run"' not in (ready.run_dir / "trials.jsonl").read_text().partition('"warmth"')[2]


def test_the_end_of_a_warm_up_is_the_light_load(ready: Bench) -> None:
    seen: list[object] = []
    ready.warms, ready.light_load = True, lambda *given: seen.append(given[-1])
    for route, connections in (("/downstream", 100), ("/compute", 300)):
        ready.run(servers=("a",), routes=(route,), concurrencies=(connections,))
    opened, closed = seen[0]
    assert closed.at_s - opened.at_s == pytest.approx(LIGHT_CYCLES * CYCLE_S, abs=0.5)
    # What only computes is warmed up with more connections than measure its cost.
    assert seen[1] is None
