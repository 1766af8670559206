"""Planted bottlenecks: which trials, what a file may say, what is found of the verdicts."""

import copy
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest

from kinds.conftest import SHIPPED, Files, refusal
from lab.kinds.cases import Case
from lab.kinds.kind import Outcome, settings_of
from lab.kinds.plans import of_file
from lab.kinds.planted import Arm, Planted, answers, design, dosed, findings
from lab.kinds.reading import Here
from lab.model import (
    NONE,
    STRONG,
    WEAK,
    Condition,
    Dosed,
    Experiment,
    Named,
    Spike,
    TrialPlan,
    Verdict,
    goodput,
)
from lab.report.result import loads as shown_loads
from support.planned import all_of, experiment, planner, row
from support.repo import REPO, script

SERVERS = (
    *("fixed-pool", "virtual-threads", "thread-per-connection", "event-loop"),
    *("netty", "netty-virtual"),
)
HEAD = 'question = "why?"\nhypothesis = "so."\nkind = "planted"\n[load]\nduration = "8s"\n'
CASE = (
    '[[case]]\nname = "pool"\nserver = "fixed-pool"\nconcurrency = 200\n'
    'expected = ["worker pool"]\n'
)
SMALL = Condition(knobs={"pool_size": 20})
POOL = Case("pool", "a", "/downstream", 200, ("worker pool",), condition=SMALL)
NONE_OF_IT = Verdict(NONE, STRONG, "none", None)
CALM = Case("calm", "b", "/downstream", 50, ("none",), peak_extra=400)


def of(*cases: Case, **changes: Any) -> Experiment:
    return experiment(kind="planted", modes=("closed",), own=Planted(cases), **changes)


def plans(of: Experiment) -> list[TrialPlan]:
    return all_of(design(planner(of)))


def shipped(limit: int = 20_000, **words: str) -> tuple[Case, ...]:
    """The cases of a shipped file, all of which a machine of so many open files holds."""
    found, notes = of_file(words, Here(SERVERS, limit), SHIPPED)
    assert notes == ()
    return settings_of(Planted, found).cases


def test_every_case_is_a_trial_under_its_condition() -> None:
    first, second = plans(of(POOL, CALM, duration_s=8))
    assert (first.trial, first.server, first.concurrency) == ("01-pool", "a", 200)
    assert (first.mode, first.condition, first.spike) == ("closed", POOL.condition, None)
    assert (second.trial, second.launch) == ("02-calm", 0)
    # What is measured under one condition is told from what is under another.
    assert (first.arm, second.arm) == ("pool", "calm")
    # The peak is in the middle of the window.
    assert (second.spike, second.duration_s) == (Spike(400, None, 3, 2, 1, 0.25, 1), 8)
    # Launches are rounds without fresh JVMs.
    made = plans(of(POOL, CALM, launches=2))
    assert [plan.trial for plan in made] == ["01-pool-r1", "02-calm-r1", "03-pool-r2", "04-calm-r2"]
    assert [(plan.arm, plan.launch) for plan in made] == [("pool", 0), ("calm", 0)] * 2


def test_a_case_with_a_rate_is_an_open_load() -> None:
    full = Case("full", "a", "/downstream", 200, ("unknown",), rate=550, duration_s=30)
    closed, opened = plans(of(POOL, full))
    assert (closed.mode, closed.offered_rps) == ("closed", None)
    assert (opened.mode, opened.offered_rps, opened.concurrency) == ("open", 550, 200)
    assert (closed.duration_s, opened.duration_s) == (15, 30)


def test_rounds_of_a_case_are_one_load_and_other_cases_are_not() -> None:
    narrow = Case("narrow-r2", "a", "/downstream", 100, ("Toxiproxy",))
    slow = Case("slow", "a", "/downstream", 100, ("downstream",))
    rps = {"narrow-r2": 320.0, "slow": 100.0}
    rows = [
        row(plan, achieved_rps=rps[plan.arm or ""], predicted_rps=rps[plan.arm or ""] + 1)
        for plan in plans(of(narrow, slow, servers=("a",), launches=3))
    ]
    found = shown_loads(rows, {one.trial: NONE_OF_IT for one in rows})
    assert [(one.lane, len(one.verdicts), one.expected(goodput)) for one in found] == [
        ("a@narrow-r2", 3, 320.0),
        ("a@slow", 3, 100.0),
    ]


def test_findings_count_right_names_and_wrong_ones_that_are_sure() -> None:
    whole = of(POOL, CALM, launches=3)
    said = [
        ("worker pool", STRONG), ("none", STRONG),
        ("server CPU", STRONG), ("unknown", None),
        ("server CPU", WEAK), (None, None),
    ]  # fmt: skip
    rows = [
        row(plan, bottleneck=name, strength=strength)
        for plan, (name, strength) in zip(plans(whole), said, strict=True)
    ]
    every, by_pool, by_none, *by_dose = findings(Outcome(whole, rows, Path()))
    assert (every.name, every.planted, every.right, every.trials) == ("planted", None, 2, 6)
    assert (every.value, every.sure) == (2 / 6, ("03-pool-r2",))
    # Clopper and Pearson.
    assert [round(end or 0, 3) for end in (every.low, every.high)] == [0.043, 0.777]
    assert (by_pool.planted, by_pool.right, by_pool.strong) == ("worker pool", 1, 1)
    assert by_pool.missed == {"03-pool-r2": "server CPU", "05-pool-r3": "server CPU"}
    assert by_none.missed == {"04-calm-r2": "unknown", "06-calm-r3": ""}
    assert [one.name for one in by_dose] == ["planted dose", "planted dose"]


def test_severities_are_told_apart_and_the_clear_ones_together() -> None:
    at_knee = copy.replace(POOL, name="knee", resource="worker pool", severity=1.05)
    twice = copy.replace(POOL, name="twice", resource="worker pool", severity=2.0)
    novel = Case("lock", "a", "/downstream", 9, ("unknown",), resource="a lock", severity=2.0)
    whole = of(at_knee, twice, novel)
    rows = [row(plan, bottleneck="worker pool", strength=STRONG) for plan in plans(whole)]
    found = [one for one in findings(Outcome(whole, rows, Path())) if isinstance(one, Named)]
    # What no rule knows is not clearly a limit of a resource.
    assert [(one.name, one.trials) for one in found[:2]] == [("planted", 3), ("planted clearly", 1)]
    assert [(one.planted, one.severity, one.right) for one in found if one.mode] == [
        ("a lock", 2.0, 0), ("worker pool", 1.05, 1), ("worker pool", 2.0, 1),
    ]  # fmt: skip


def test_findings_of_a_run_that_has_only_begun() -> None:
    whole = of(POOL, CALM)
    rows = [row(plans(whole)[0], bottleneck="worker pool", strength=STRONG)]
    found = [*findings(Outcome(whole, rows, Path()))]
    assert [one.name for one in found] == ["planted", "planted resource", "planted dose"]
    assert [*findings(Outcome(whole, [], Path()))] == []


NOISE = (0, 1, -1, 2, -2, 0.5)


def arm(mean_rps: float, dose: float = 0.0, rounds: int = 12, turn: int = 1) -> Arm:
    case = Case("a", "a", "/downstream", 200, ("none",), resource="dose", severity=dose or None)
    (plan,) = plans(of(case))
    rows = {
        at: row(plan, achieved_rps=mean_rps + noise)
        for at, noise in enumerate(islice(cycle(NOISE[::turn]), rounds), 1)
    }
    return Arm(case, rows)


def test_the_arms_of_doses_are_compared() -> None:
    a, b = arm(1000), arm(850, 0.1)
    whole = of(a.case, copy.replace(b.case, name="tenth"), launches=6)
    rows = [
        row(plan, achieved_rps=(850.0 if at % 2 else 1000.0) + at % 5)
        for at, plan in enumerate(plans(whole))
    ]
    (found,) = [one for one in findings(Outcome(whole, rows, Path())) if isinstance(one, Dosed)]
    assert (found.name, found.dose, found.answers, found.value) == ("dose", 0.1, {"worse": 1}, 1)
    assert found.load == "as it is, /downstream with 200 connections"


def test_each_group_of_six_rounds_has_an_answer() -> None:
    assert answers(arm(1000), arm(1000, turn=-1)) == ["within"] * 2
    assert answers(arm(1000), arm(800, 0.25, rounds=17)) == ["worse"] * 2
    assert answers(arm(1000), arm(1000, rounds=5)) == []


def test_trials_of_one_round_are_a_pair_though_one_is_missing() -> None:
    """A machine that gets faster from round to round, and half as fast for the arm with the dose.
    By their order the arms would be paired with each other's neighbours after the gap."""

    def drifting(of: Arm, without: int = 0) -> Arm:
        rows = {
            at: copy.replace(one, achieved_rps=(one.achieved_rps or 0) * 2**at)
            for at, one in of.rows.items()
            if at != without
        }
        return copy.replace(of, rows=rows)

    a = drifting(arm(1000))
    assert answers(a, drifting(arm(500, 1.0))) == ["worse"] * 2
    b = drifting(arm(500, 1.0), without=2)
    # Five pairs are too few.
    assert answers(a, b) == ["cannot tell", "worse"]
    (found,) = dosed([a, b])
    assert (found.goodput_ratio, found.p95_ratio) == (0.5, None)


def test_doses_are_counted_with_their_interval() -> None:
    same, tenth = dosed([arm(1000), arm(1000, turn=-1), arm(870, 0.1)])
    assert (same.dose, same.answers) == (0, {"within": 2})
    assert round(same.goodput_ratio or 0, 3) == 1
    # No difference where there is none.
    assert (same.value, same.low, round(same.high or 0, 2)) == (0, 0, 0.84)
    assert (tenth.dose, tenth.answers) == (0.1, {"worse": 2})
    assert round(tenth.goodput_ratio or 0, 3) == 0.87
    assert (tenth.value, round(tenth.low or 0, 2), tenth.high) == (1, 0.16, 1)


def test_the_shipped_file_plants_each_resource() -> None:
    cases = shipped(1_048_576, EXP="bottlenecks")
    assert len(cases) == 21
    assert len({name for case in cases for name in case.expected}) == 18


def test_a_case_with_everything(files: Files) -> None:
    found = files.experiment(
        HEAD + CASE + 'route = "/compute"\nknobs = { pool_size = 20 }\n'
        'toxics = [{ type = "bandwidth", rate = 1 }]\nhost = { SERVER_CPUS = "0.4" }\n'
        "generator_cpus = 0.05\nspin = 0.5\npeak_extra = 400\n"
    )
    condition = Condition(
        {"pool_size": 20}, ({"TYPE": "bandwidth", "RATE": "1"},), {"SERVER_CPUS": "0.4"}, 0.05, 0.5
    )
    assert settings_of(Planted, found).cases == (
        Case("pool", "fixed-pool", "/compute", 200, ("worker pool",), 400, condition=condition),
    )
    assert (found.servers, found.routes) == (("fixed-pool",), ("/compute",))
    assert found.concurrencies == (200,)


def test_an_open_case_says_what_was_planted_and_how_hard(files: Files) -> None:
    found = files.experiment(
        HEAD + CASE + 'rate = 550\nduration = "11s"\nresource = "a lock"\nseverity = 1.1\n'
    )
    (case,) = settings_of(Planted, found).cases
    assert (case.mode, case.rate, case.resource, case.severity) == ("open", 550, "a lock", 1.1)
    assert ((case.duration_s, found.duration_s), found.modes) == ((11, 8), ("open",))


def test_the_truth_is_what_its_seed_draws() -> None:
    """Nobody has chosen a case by hand: the first line has the commit that holds the rule."""
    text = (REPO / "experiments/truth.toml").read_text()
    commit, compute_ms = text.splitlines()[0].removesuffix(".").split()[-2:]
    assert script("sealed").experiment(commit, compute_ms) == text
    every = shipped(EXP="truth")
    assert len(every) >= 60
    for resource in {case.resource for case in every if case.severity} - {None}:
        severities = [case.severity for case in every if case.resource == resource]
        assert len(severities) >= 4, resource
    for case in every:
        # Less than it can give is no limit.
        assert ("none" in case.expected) >= ((case.severity or 1) < 1), case.name
    assert script("sealed").experiment("another", compute_ms) != text


def test_words_pick_cases_rounds_and_duration(files: Files) -> None:
    text = HEAD + CASE + CASE.replace('"pool"', '"other"')
    found = files.experiment(text, CASE="other", LAUNCHES="10", DURATION="5s", ENGINE="wrk2")
    assert [case.name for case in settings_of(Planted, found).cases] == ["other"]
    assert (found.launches, found.duration_s, found.engines) == (10, 5, ("wrk2",))
    assert files.refusal(text, CASE="pol") == "run: CASE=pol is not allowed; allowed: pool, other"
    # Every duration is scaled.
    quick = files.experiment(HEAD + CASE + 'duration = "10s"\n', SCALE="0.5")
    assert settings_of(Planted, quick).cases[0].duration_s == 5
    assert "SERVER does not apply to" in files.refusal(text, SERVER="netty")
    assert "CASE does not apply to" in refusal(shipped, 200_000, EXP="sweep", CASE="pool")


@pytest.mark.parametrize(
    ("text", "problem", "allowed"),
    [
        ("", "x.toml: case is missing", "one or more tables [[case]]"),
        ("[[case]]\nname = 'x'\n", "case 1: server is missing", ""),
        (CASE + "knob = 1\n", "case 1: knob is not a key", "name, server, route, concurrency"),
        (CASE + CASE, "case 2: name=pool is there twice", "each once"),
        (CASE.replace("fixed-pool", "nosuch"), "server=nosuch is not a server of the lab", "fixed"),
        (CASE.replace("worker pool", "luck"), "expected=luck is not allowed", "accept queue"),
        (CASE.replace("200", "0"), "concurrency=0 is not allowed", "1..1000000"),
        (CASE + "rate = 0\n", "rate=0 is not allowed", "1..10000000"),
        (CASE + "rate = 9\npeak_extra = 5\n", "rate=9 is not allowed", "none beside peak_extra"),
        (CASE + "severity = 0\n", "severity=0 is not allowed", "0.01..1000"),
        (CASE + "knobs = { pool_size = 0 }\n", "pool_size=0: allowed 1..20000 (threads)", ""),
        (CASE + "knobs = { loops = 1 }\n", "case 1: loops is not a knob", "pool_size"),
        (CASE + 'host = { PATH = "1" }\n', "case 1: PATH is not a setting of a container", ""),
        (CASE + "host = { NOFILE = 300 }\n", "host={'NOFILE': 300} is not allowed", "a table of"),
        (CASE + 'toxics = [{ TYPE = "lateny" }]\n', "TYPE=lateny is not allowed", ""),
        (CASE + "generator_cpus = 0\n", "generator_cpus=0 is not allowed", "0.01..999"),
        (CASE + "spin = 1\n", "spin=1 is not allowed", "0.01..0.9"),
        (CASE + 'route = "/nosuch"\n', "route=/nosuch is not a route of the servers", ""),
    ],
)
def test_a_wrong_table_is_refused_with_its_place(
    files: Files, text: str, problem: str, allowed: str
) -> None:
    line = files.refusal(HEAD + text)
    assert problem in line
    assert allowed in line.rpartition("; allowed: ")[2]


def test_an_open_load_is_refused(files: Files) -> None:
    text = HEAD.replace("[load]\n", '[load]\nmodes = ["open"]\n') + CASE
    assert "load.modes=open is not allowed; allowed: closed" in files.refusal(text)


def test_what_the_machine_does_not_hold_is_left_out(files: Files) -> None:
    files.limit = 2_000
    text = HEAD + CASE + CASE.replace('"pool"', '"big"').replace("200", "2000")
    found, notes = files.read(text)
    assert [case.name for case in settings_of(Planted, found).cases] == ["pool"]
    assert notes[0].startswith("big left out: this machine holds 1..500")
