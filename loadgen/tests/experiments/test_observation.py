"""The cost of being observed: the order of its trials, and what is found of them."""

import dataclasses
from pathlib import Path

import pytest

from lab.experiments import observation
from lab.experiments.kind import Outcome
from lab.experiments.observation import OBSERVED, UNOBSERVED, Observation
from lab.model import AGAIN, Experiment, Finding, Row, TrialPlan
from lab.store.records import write_json
from support.fakes import record
from support.planned import all_of, experiment, planner, row


def asked(pairs: int = 6, servers: tuple[str, ...] = ("a",)) -> Experiment:
    return experiment(
        kind="observation",
        own=Observation(pairs),
        modes=("closed",),
        servers=servers,
        rate_rps=None,
    )


def plans(of: Experiment) -> list[TrialPlan]:
    return all_of(observation.design(planner(of)))


def measured(plan: TrialPlan, raw: Path, rps: float, busy: float, **changes: object) -> Row:
    """The row of a trial with so much goodput, on a machine that was so busy."""
    (raw / plan.trial).mkdir(parents=True)
    # Other machines took 10 % beside it.
    usage = dataclasses.replace(record(plan).usage, host_busy=busy + 0.1, host_steal=0.1)
    write_json(raw / plan.trial / "trial.json", record(plan, usage=usage))
    known = {"achieved_rps": rps, "window_s": 10.0, "ok": 100, "http_errors": 0}
    if not plan.condition.unobserved:
        known["cpu_server_us"] = 50.0
    return row(plan, **{**known, "raw_p95_ms": 1000 / rps, **changes})


def found(of: Experiment, rows: list[Row], folder: Path) -> list[Finding]:
    return list(observation.findings(Outcome(of, rows, folder)))


def test_sides_take_turns_and_only_one_of_them_is_not_observed() -> None:
    trials = plans(asked(pairs=3, servers=("a", "b")))
    assert [(one.server, one.arm) for one in trials[:6]] == [
        ("a", OBSERVED), ("a", UNOBSERVED), ("a", UNOBSERVED), ("a", OBSERVED), ("a", OBSERVED),
        ("a", UNOBSERVED),
    ]  # fmt: skip
    assert len(trials) == 12
    assert {one.arm for one in trials if one.condition.unobserved} == {UNOBSERVED}


def test_what_observing_costs_is_a_ratio_with_an_interval(tmp_path: Path) -> None:
    of, raw = asked(), tmp_path / "raw"
    rows = [
        measured(plan, raw, *((980.0, 0.98) if plan.arm == OBSERVED else (1000.0, 0.96)))
        for plan in plans(of)
    ]
    goodput, p95, cpu = found(of, rows, tmp_path)
    assert goodput.value == pytest.approx(0.98)
    assert goodput.low == goodput.high == pytest.approx(0.98)
    assert p95.value == pytest.approx(1 / 0.98)
    assert cpu.value == pytest.approx(0.98 / 980 / (0.96 / 1000))
    assert "6 pairs" in cpu.text


def test_a_pair_counts_only_whole_and_a_repeat_stands_for_its_trial(tmp_path: Path) -> None:
    of, raw = asked(), tmp_path / "raw"
    rows = [measured(plan, raw, 1000.0, 0.9) for plan in plans(of)]
    # The second trial was invalid and its repeat valid; the last one stayed invalid.
    bad = {"valid": False, "invalid_reasons": "x"}
    second = dataclasses.replace(rows[1], **bad)
    again = dataclasses.replace(rows[1], trial=rows[1].trial + AGAIN)
    (raw / rows[1].trial).rename(raw / again.trial)
    last = dataclasses.replace(rows[-1], **bad)
    told = found(of, [rows[0], second, again, *rows[2:-1], last], tmp_path)
    assert {one.text.rpartition(", ")[2] for one in told} == {"5 pairs"}
    assert [one.low for one in told] == [None] * 3


def test_a_trial_counts_only_as_what_it_was(tmp_path: Path) -> None:
    of, raw = asked(), tmp_path / "raw"
    unseen = [measured(plan, raw, 1000.0, 0.9, cpu_server_us=None) for plan in plans(of)]
    assert {one.value for one in found(of, unseen, tmp_path)} == {None}
    seen = [dataclasses.replace(one, cpu_server_us=50.0) for one in unseen]
    assert {one.value for one in found(of, seen, tmp_path)} == {None}


def test_without_valid_trials_nothing_is_said_of_the_cost(tmp_path: Path) -> None:
    told = found(asked(), [], tmp_path)
    assert [(one.value, "cannot be compared" in one.text) for one in told] == [(None, True)] * 3
