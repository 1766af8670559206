"""Inquiries into servers whose limits were planted."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.errors import WordError
from lab.experiments import explain
from lab.experiments.kind import Outcome
from lab.experiments.order import Design
from lab.experiments.proving.answers import answer_of, answer_of_fall
from lab.experiments.proving.inquiry import Explain
from lab.judge.gates import MOST_FAILED, NO_SUCCESS, TOO_SHORT
from lab.judge.intervals import Interval, RatioOf, ratio_of_pairs
from lab.model import (
    AS_IT_IS,
    Condition,
    CpuSplit,
    Experiment,
    Finding,
    OwnLever,
    Row,
    Snapshot,
    ToxicState,
    TrialPlan,
    goodput,
)
from lab.model.knobs import PROXIED
from lab.store.records import write_json
from support.fakes import snapshot
from support.planned import experiment, planner, resumed, row
from support.runs import write_manifest

SIX = (0.99, 1.0, 1.01, 1.0, 0.995, 1.005)
SETTINGS = {"pool_size": 200, "downstream_connections": 500, "virtual_thread_parallelism": 2}
SNAPSHOTS = {name: snapshot(settings=SETTINGS) for name in ("a", "b")}
Server = Callable[[TrialPlan, int], dict[str, Any]]


def inquiry(**changes: Any) -> Experiment:
    given = {
        "kind": "explain", "servers": ("a",), "modes": ("closed",), "concurrencies": (5000,),
        "own": Explain(6, 4),
    }  # fmt: skip
    return experiment(**{**given, **changes})


def order_of(of: Experiment) -> Design:
    return explain.design(planner(of, snapshots=SNAPSHOTS))


def limits(plan: TrialPlan) -> dict[str, float]:
    """What each resource of the planted server allows under the plan's condition, in req/s."""
    knobs = {**SETTINGS, **plan.condition.knobs}
    return {
        "worker pool": knobs["pool_size"] / 0.2,
        "downstream connections": knobs["downstream_connections"] / 0.2,
        "host CPU": 8000.0 * (1 - (plan.condition.spin or 0.0)),
        "none": plan.concurrency / 0.2,
    }


def honest(plan: TrialPlan, number: int) -> dict[str, Any]:
    allowed = limits(plan)
    resource = min(allowed, key=lambda name: allowed[name])
    return answered(allowed[resource] * SIX[number % 6], plan) | {"bottleneck": resource}


def answered(rps: float, plan: TrialPlan) -> dict[str, Any]:
    return {
        "achieved_rps": rps, "raw_p95_ms": 1000 * plan.concurrency / rps, "ok": 1000,
        "http_errors": 0, "window_s": 5.0, "strength": "strong", "predicted_rps": 25_000.0,
        "spun": plan.condition.spin,
    }  # fmt: skip


def named(resource: str, server: Server = honest) -> Server:
    """The same server, under a verdict that always says this."""
    return lambda plan, number: {**server(plan, number), "bottleneck": resource}


def run(of: Experiment, server: Server = honest) -> list[Row]:
    order = order_of(of)
    done: list[Row] = []
    while (plan := order.next(done)) is not None:
        assert len(done) < 200
        assert order.next(done) == plan
        done.append(row(plan, **server(plan, len(done))))
    return done


def plans(of: Experiment, rows: list[Row]) -> list[TrialPlan]:
    order = order_of(of)
    found = [order.next(rows[:count]) for count in range(len(rows))]
    return [plan for plan in found if plan is not None]


def told(of: Experiment, rows: list[Row]) -> list[Finding]:
    conditions = {plan.trial: plan.condition for plan in plans(of, rows)}
    return list(explain.told(of, rows, SNAPSHOTS, 2, conditions))


def said(of: Experiment, server: Server = honest) -> list[str]:
    return [one.text for one in told(of, run(of, server))]


def of_a(of: Experiment, server: Server, seen: Snapshot) -> tuple[list[TrialPlan], list[str]]:
    """The trials of a server that was read back so, and what is told of them."""
    order = explain.design(planner(of, snapshots={"a": seen}))
    done: list[Row] = []
    made = []
    while (plan := order.next(done)) is not None:
        assert len(done) < 200
        made.append(plan)
        done.append(row(plan, **server(plan, len(done))))
    conditions = {plan.trial: plan.condition for plan in made}
    return made, [one.text for one in explain.told(of, done, {"a": seen}, 2, conditions)]


def test_each_limit_is_confirmed_and_lifted_until_the_machine_is_the_limit() -> None:
    of = inquiry()
    rows = run(of)
    assert [one.arm for one in rows[:5]] == [
        "1-named", "1-before", "1-after", "1-after", "1-before",
    ]  # fmt: skip
    assert len(rows) == 13 + 13 + 1 + 18
    first, second, third, end = told(of, rows)
    assert (first.name, first.server, first.launch, first.unit) == ("step 1", "a", 0, "×")
    assert first.value == pytest.approx(2.0, abs=0.03)
    assert first.low > 1.9
    assert first.high < 2.1
    assert first.text.startswith(
        "step 1, worker pool (named, strong evidence): confirmed: pool_size 200 → 400 makes "
        "goodput ×2.00 ["
    )
    assert " of at most ×2.00, raw p95 ×0.50 [" in first.text
    assert first.text.endswith("(1000 → 2000 req/s); lifted to pool_size=5000")
    assert second.text.startswith("step 2, downstream connections (named, strong evidence): conf")
    assert third.text.startswith(
        "step 3, host CPU (named, strong evidence): confirmed: 20% of the CPUs taken away (20.0% "
        "measured) makes goodput ×"
    )
    assert third.value == pytest.approx(0.8, abs=0.015)
    assert "; with more connections goodput ×" in third.text
    assert third.text.endswith("the whole interval is at most 0.89, with ×0.80 of the CPUs")
    assert (end.name, end.value) == ("next bottleneck", None)
    assert end.text == (
        "next bottleneck: host CPU, with pool_size=5000, downstream_connections=5000: the machine "
        "itself is the limit: goodput follows its CPUs"
    )


def test_conditions_go_with_the_trials_and_names_say_their_part() -> None:
    of = inquiry()
    rows = run(of)
    found = plans(of, rows)
    by_arm = {plan.arm: plan.condition for plan in found}
    assert by_arm["1-named"] == by_arm["1-before"] == AS_IT_IS
    assert by_arm["1-after"] == Condition(knobs={"pool_size": 400})
    lifted = Condition(knobs={"pool_size": 5000})
    assert by_arm["2-named"] == by_arm["2-before"] == lifted
    assert found[0].trial == "001-a-1-named-closed-c5000"
    assert len({plan.trial for plan in found}) == len(found)


def test_pairs_are_interleaved_both_ways() -> None:
    sides = [one.arm for one in run(inquiry(own=Explain(6, 1))) if one.arm != "1-named"]
    a, b = "1-before", "1-after"
    assert sides == [a, b, b, a, a, b, b, a, a, b, b, a, "2-named"]


def test_steps_end_it_with_the_next_one_named_but_not_tried() -> None:
    texts = said(inquiry(own=Explain(6, 1)))
    assert texts[1] == (
        "next bottleneck: downstream connections (strong evidence), with pool_size=5000; not "
        "tried, 1 steps were asked for"
    )


def test_a_wrong_verdict_is_withdrawn_and_the_limit_is_unknown() -> None:
    texts = said(inquiry(), named("downstream connections"))
    assert texts[0].startswith(
        "step 1, downstream connections (named, strong evidence): withdrawn: "
        "downstream_connections 500 → 1000 makes goodput ×1.00 ["
    )
    assert texts[0].endswith("the whole interval is at most 1.05: more of it is no help")
    assert texts[1].startswith(
        "bottleneck: unknown: downstream connections was named, and is withdrawn: "
    )
    assert len(texts) == 2


SERVICE = snapshot(identity=None, settings={"url": "http://a:8080"})


def of_a_service(server: Server, **levers: OwnLever) -> list[str]:
    """What is found of a service of the user's own that behaves like `server`."""
    named = {name.replace("_", " "): one for name, one in levers.items()}
    of = inquiry(target="http://a:8080", concurrencies=(500,), levers=named)
    return of_a(of, server, SERVICE)[1]


def shop(plan: TrialPlan, number: int) -> dict[str, Any]:
    """It calls something over a pool of connections, and behaves like a pool of that size."""
    size = int(plan.condition.host.get("ENV_SOCKETS", 20))
    said = answered(min(size, plan.concurrency) / 0.2 * SIX[number % 6], plan)
    full = size >= plan.concurrency
    return {**said, "bottleneck": "none"} if full else {
        **said, "bottleneck": "worker pool", "strength": "weak", "predicted_rps": None,
    }  # fmt: skip


def test_what_behaves_like_a_pool_is_proven_by_the_lever_of_its_subject() -> None:
    first, end = of_a_service(shop, downstream_connections=OwnLever("SOCKETS", 20))
    assert first.startswith("step 1, downstream connections (named): confirmed: SOCKETS 20 → 40 ma")
    assert "goodput ×2.00 [" in first
    assert first.endswith("(100 → 200 req/s); lifted to SOCKETS=500")
    assert end.startswith("next bottleneck: none, with SOCKETS=500: the load itself is the limit")


def test_a_variable_that_the_service_does_not_take_refutes_nothing() -> None:
    first, end = of_a_service(shop, worker_pool=OwnLever("THREADS", 20))
    assert first.startswith(
        "step 1, worker pool (named, weak evidence): inconclusive: THREADS 20 →"
    )
    assert first.endswith("or the service does not take THREADS, which the lab cannot see")
    assert end.startswith("bottleneck: unknown: worker pool was named, and is inconclusive: ")


def test_without_a_lever_it_is_said_that_nothing_was_proven() -> None:
    assert of_a_service(shop) == [
        "bottleneck: worker pool (weak evidence), with the lab as it is; not proven: the service's "
        "subject has no [levers] for the worker pool"
    ]


def test_a_suspect_that_is_withdrawn_makes_way_for_the_verdict_of_the_same_trial() -> None:
    of = inquiry(own=Explain(6, 4, "downstream connections"))
    rows = run(of)
    assert "2-named" not in {one.arm for one in rows}
    texts = [one.text for one in told(of, rows)]
    assert texts[0].startswith("step 1, downstream connections (suspected): withdrawn: ")
    assert texts[1].startswith("step 2, worker pool (named, strong evidence): confirmed: ")
    assert texts[-1].startswith("next bottleneck: host CPU")
    assert texts[-2].startswith("step 4, host CPU (named, strong evidence): confirmed: ")


def test_a_suspect_that_is_right() -> None:
    texts = said(inquiry(own=Explain(6, 4, "worker pool")))
    assert texts[0].startswith("step 1, worker pool (suspected, and named, strong evidence): conf")


def test_a_suspect_that_is_named_and_withdrawn_ends_it() -> None:
    of = inquiry(own=Explain(6, 4, "downstream connections"))
    texts = said(of, named("downstream connections"))
    assert len(texts) == 2
    assert texts[1].startswith("bottleneck: unknown")


def test_a_suspect_without_a_lever_makes_way_too() -> None:
    texts = said(inquiry(own=Explain(6, 4, "generator")))
    assert texts[0].startswith("step 1, generator (suspected): not tried: ")
    assert texts[1].startswith("step 2, worker pool (named")


@pytest.mark.parametrize(
    ("resource", "says"),
    [
        (
            "none",
            "bottleneck: none, with the lab as it is: the load itself is the limit (990 of at "
            "most 25000 req/s), no resource binds below it",
        ),
        (
            "generator",
            "bottleneck: generator (strong evidence), with the lab as it is: the machine itself "
            "is the limit",
        ),
        (
            "unknown",
            "bottleneck: unknown, with the lab as it is: the evidence names no resource",
        ),
        (
            "ports",
            "bottleneck: ports (strong evidence), with the lab as it is; not proven: this server "
            "does not tell its range of local ports",
        ),
    ],
)
def test_where_nothing_can_be_changed_one_trial_is_all(resource: str, says: str) -> None:
    of = inquiry()
    rows = run(of, named(resource))
    assert len(rows) == 1
    assert [one.text for one in told(of, rows)] == [says]


def test_without_a_verdict_it_is_unknown() -> None:
    blank: Server = lambda plan, number: {**honest(plan, number), "bottleneck": None}  # noqa: E731
    assert "unknown" in said(inquiry(), blank)[0]


def test_too_few_pairs_never_confirm() -> None:
    texts = said(inquiry(own=Explain(5, 4)))
    assert "inconclusive: pool_size 200 → 400 makes goodput ×1.99, " in texts[0]
    assert texts[0].endswith("no interval: it takes 6 pairs, not 5")
    assert "[" not in texts[0]


def invalid(arm: str, times: int, reason: str = "late", **changes: Any) -> Server:
    """The first trials of a part are invalid."""
    counts: dict[str | None, int] = {}

    def answers(plan: TrialPlan, number: int) -> dict[str, Any]:
        counts[plan.arm] = counts.get(plan.arm, 0) + 1
        whole = honest(plan, number)
        if plan.arm == arm and counts[plan.arm] <= times:
            return {**whole, "valid": False, "invalid_reasons": reason, **changes}
        return whole

    # A design is asked twice for the same trial, a server is not.
    return answers


@pytest.mark.parametrize("arm", ["1-named", "1-before", "1-after"])
def test_an_invalid_trial_is_run_once_more(arm: str) -> None:
    of = inquiry(own=Explain(6, 1))
    rows = run(of, invalid(arm, 1))
    assert len(rows) == 15
    texts = [one.text for one in told(of, rows)]
    assert "confirmed" in texts[0]
    # How often that was, and on which side: a choice among trials must not be silent.
    side = {"1-named": "to name it", "1-before": "without", "1-after": "with the change"}[arm]
    (said,) = [text for text in texts if text.endswith(f" (run again because invalid: 1 {side})")]
    assert said is texts[-1 if arm == "1-named" else 0]


def test_twice_invalid_ends_the_step_and_says_why() -> None:
    of = inquiry()
    rows = run(of, invalid("1-after", 2))
    assert len(rows) == 4
    texts = [one.text for one in told(of, rows)]
    assert texts[0].endswith(
        "inconclusive: pool_size 200 → 400: 2 measurements with the change were invalid: late (run "
        "again because invalid: 1 with the change)"
    )
    assert texts[1].startswith("bottleneck: unknown: worker pool was named, and is inconclusive")


@pytest.mark.parametrize("pairs", [5, 6, 8])
def test_the_pairs_before_a_side_that_cannot_be_measured_count_if_they_are_six(pairs: int) -> None:
    def ends(plan: TrialPlan, number: int) -> dict[str, Any]:
        # One trial that names, then three for each pair.
        over = number > 3 * pairs and plan.arm == "1-before"
        late = {"valid": False, "invalid_reasons": "late"} if over else {}
        return cpu_bound(plan, number) | late

    of = inquiry(own=Explain(12, 1))
    rows = run(of, ends)
    assert rows[-1].arm == "1-before"
    step, end = told(of, rows)
    if pairs < 6:
        assert "inconclusive: 20% of the CPUs taken away (20.0% measured): 2 meas" in step.text
        return
    assert "confirmed: 20% of the CPUs taken away (20.0% measured) makes goodput ×0.80" in step.text
    assert (
        f"; {pairs} of 12 pairs count: then 2 measurements without the change were invalid: late"
        in (step.text)
    )
    assert end.text.startswith("bottleneck: host CPU, with the lab as it is")


def test_a_load_that_cannot_be_measured_at_all() -> None:
    assert said(inquiry(), invalid("1-named", 2)) == [
        "bottleneck: unknown: 2 measurements were invalid: late (run again because invalid: 1 to "
        "name it)"
    ]
    generator = invalid("1-named", 2, "the generator was the limit", bottleneck="generator")
    assert said(inquiry(), generator) == [
        "bottleneck: generator: the machine itself is the limit (the generator was the limit) (run "
        "again because invalid: 1 to name it)"
    ]


def test_goodput_leaves_errors_out() -> None:
    one = run(inquiry())[0]
    half = dataclasses.replace(one, achieved_rps=1000.0, ok=50, http_errors=50)
    assert goodput(half) == 500
    assert goodput(dataclasses.replace(half, http_errors=None)) == 1000
    assert goodput(dataclasses.replace(half, achieved_rps=None)) is None


def test_no_goodput_before_gives_a_lower_bound() -> None:
    def deadline(plan: TrialPlan, number: int) -> dict[str, Any]:
        whole = honest(plan, number)
        late = plan.condition == AS_IT_IS
        errors = {"ok": 0, "http_errors": 900} if late else {}
        return {**whole, **errors}

    texts = said(inquiry(), deadline)
    # One answer in 5 s is 0.2 req/s; 2,000 is 10,000 times as much.
    assert "confirmed: pool_size 200 → 400 makes goodput at least ×10000.00 [" in texts[0]
    assert "(0 → 2000 req/s)" in texts[0]


@pytest.mark.parametrize(
    ("factors", "answer"),
    [
        ((1.06, 1.5), "confirmed"),
        ((1.051, 1.052), "confirmed"),
        ((0.97, 1.04), "withdrawn"),
        ((0.5, 0.7), "withdrawn"),
        ((1.0, 1.5), "inconclusive"),
        ((1.04, 1.06), "inconclusive"),
    ],
)
def test_the_answer_follows_from_where_the_interval_lies(
    factors: tuple[float, float], answer: str
) -> None:
    low, high = factors
    after = [low + (high - low) * share / 5 for share in range(6)]
    assert answer_of(ratio_of_pairs([1.0] * 6, after))[0] == answer


def test_no_interval_is_no_answer() -> None:
    assert answer_of(RatioOf(3, 3, 9.0, None))[0] == "inconclusive"


def test_servers_one_after_the_other_each_with_its_own_end() -> None:
    of = inquiry(servers=("a", "b"), own=Explain(6, 1))
    rows = run(of)
    assert [one.server for one in rows] == ["a"] * 14 + ["b"] * 14
    assert [one.server for one in told(of, rows)] == ["a", "a", "b", "b"]


def test_an_inquiry_goes_on_where_it_was() -> None:
    of = inquiry()
    rows = run(of)
    found = plans(of, rows)
    assert [plan.trial for plan in found] == [one.trial for one in rows]
    assert order_of(of).next(rows) is None
    part = told(of, rows[:15])
    assert part[-1].text == "not finished after 15 trials, 2-after is next"
    conditions = {plan.trial: plan.condition for plan in found}
    whole = explain.told(of, rows[:15], SNAPSHOTS, 2, conditions, complete=True)
    assert whole[-1].text == "next bottleneck: not to be told by this version's rules"
    assert told(of, []) == []


def test_rows_of_something_else_are_no_inquiry() -> None:
    of = inquiry()
    rows = run(of)
    others = [dataclasses.replace(one, arm="7-after") for one in rows]
    plan = order_of(of).next(others)
    assert plan.arm == "1-named"
    assert order_of(of).next([*rows, rows[-1]]) is None


@pytest.mark.parametrize("gone", [False, True])
def test_an_inquiry_goes_on_after_a_damaged_trial_with_what_else_is_there(gone: bool) -> None:
    of = inquiry()
    rows = run(of)
    for at in range(len(rows)):
        done = resumed(order_of(of), rows, at, lambda plan: honest(plan, 0), gone=gone)
        end = explain.told(of, done, SNAPSHOTS, 2, {})[-1].text
        assert "bottleneck: host CPU" in end
        assert len(done) <= len(rows) + 1


def test_windows_of_an_inquiry_grow_once_one_was_too_short() -> None:
    of = inquiry(duration_s=5)
    rows = run(of)
    short = f"{TOO_SHORT}: 5 s for a mean latency of 1.3 s, and … (DURATION=8s would do)"
    first = dataclasses.replace(rows[0], valid=False, invalid_reasons=short)
    plan = order_of(of).next([first])
    assert (plan.arm, plan.duration_s) == ("1-named", 8)


def test_a_plan_that_cannot_be_read_costs_no_finding(tmp_path: Path) -> None:
    of = inquiry()
    rows = run(of)
    run_dir = folder_of(tmp_path, of, rows)
    (run_dir / "raw" / rows[3].trial / "plan.json").write_text("{")
    assert list(explain.findings(Outcome(of, rows, run_dir))) == told(of, rows)


def test_an_open_load_has_its_rate_and_the_corrected_p95() -> None:
    def answers(plan: TrialPlan, number: int) -> dict[str, Any]:
        return {**honest(plan, number), "p95_ms": 300.0}

    of = inquiry(modes=("open",))
    rows = run(of, answers)
    assert {one.offered_rps for one in rows} == {8333}
    assert ", p95 ×1.00 [" in told(of, rows)[0].text
    with pytest.raises(WordError, match="RATE=auto"):
        order_of(inquiry(modes=("open",), routes=("/compute",)))


def folder_of(results: Path, of: Experiment, rows: list[Row]) -> Path:
    run_dir = write_manifest(results, experiment=of, servers=SNAPSHOTS)
    for plan in plans(of, rows):
        (run_dir / "raw" / plan.trial).mkdir(parents=True)
        write_json(run_dir / "raw" / plan.trial / "plan.json", plan)
    return run_dir


def test_another_verdict_of_the_same_trials_is_not_said_to_be_proven_by_them(
    tmp_path: Path,
) -> None:
    """The pool was changed; now the first trial is judged to show another limit."""
    of = inquiry()
    rows = run(of)
    run_dir = folder_of(tmp_path, of, rows)
    rows[0] = dataclasses.replace(rows[0], bottleneck="downstream connections")
    (only,) = explain.findings(Outcome(of, rows, run_dir))
    assert only.text == f"not finished after {len(rows)} trials, 1-after is next"
    rows[0] = dataclasses.replace(rows[0], bottleneck="none")
    (only,) = explain.findings(Outcome(of, rows, run_dir))
    assert only.text.startswith("bottleneck: none")


def test_an_inquiry_that_is_resumed_takes_no_trial_of_another_condition_for_its_own() -> None:
    """As its findings: the pool was changed; now the first trial shows another limit."""
    of = inquiry()
    rows = run(of)
    conditions = {plan.trial: plan.condition for plan in plans(of, rows)}
    rows[0] = dataclasses.replace(rows[0], bottleneck="downstream connections")
    order = order_of(of)
    assert isinstance(order, explain.Inquiries)
    planner = dataclasses.replace(order.planner, conditions=conditions)
    plan = explain.Inquiries(planner).next(rows)
    assert plan is not None
    assert (plan.arm, plan.condition.knobs) == ("1-after", {"downstream_connections": 1000})


def test_strength_is_told_but_decides_nothing() -> None:
    doubtful: Server = lambda plan, number: {**honest(plan, number), "strength": "weak"}  # noqa: E731
    assert "(named, weak evidence): confirmed" in said(inquiry(), doubtful)[0]


def test_a_load_without_room_withdraws_nothing() -> None:
    # 205 connections ask for 1,025 req/s, the pool gives 1,000: twice the threads give 2.5 % more.
    text = said(inquiry(concurrencies=(205,)))[0]
    assert "step 1, worker pool (named, strong evidence): inconclusive" in text
    assert "room for ×1.02 only" in text or "room for ×1.03 only" in text


@pytest.mark.parametrize("reason", [NO_SUCCESS, f"{MOST_FAILED}: 60 of 30,000"])
def test_trials_of_errors_alone_have_a_goodput_of_0_and_count(reason: str) -> None:
    def late(plan: TrialPlan, number: int) -> dict[str, Any]:
        if plan.condition.knobs:
            return answered(1000 * SIX[number % 6], plan) | {"bottleneck": "none"}
        errors = {"ok": 0, "http_errors": 1000, "valid": False, "invalid_reasons": reason}
        return answered(2000, plan) | errors | {"bottleneck": "downstream timeout"}

    settings = {**SETTINGS, "downstream_timeout_ms": 100}
    made, _ = of_a(inquiry(), late, snapshot(settings=settings))
    assert [one.arm for one in made if one.arm and one.arm.startswith("2")] == ["2-named"]
    assert len(made) == 14


@pytest.mark.parametrize("steps", [1, 2, 4])
@pytest.mark.parametrize("suspect", [None, "downstream connections", "worker pool"])
def test_never_more_trials_than_were_said(steps: int, suspect: str | None) -> None:
    of = inquiry(servers=("a", "b"), own=Explain(6, steps, suspect))
    rows = run(of)
    # Host CPU has a third side, of six trials.
    assert len(rows) <= order_of(of).most == 2 * (13 * steps + 1 + 6)


def test_pairs_are_compared_pair_by_pair() -> None:
    """Each pair is a fifth quicker than the one before; the change is worth 10 %."""

    def drifting(plan: TrialPlan, number: int) -> dict[str, Any]:
        rps = 1000.0 * 1.2 ** ((number - 1) // 2) * (1.1 if plan.condition.knobs else 1.0)
        return answered(rps, plan) | {"bottleneck": "worker pool"}

    text = said(inquiry(own=Explain(6, 1)), drifting)[0]
    assert "confirmed: pool_size 200 → 400 makes goodput ×1.10 [1.10, 1.10]" in text


def cpu_bound(
    plan: TrialPlan, number: int, falls: float = 1.0, each: float = 0.0
) -> dict[str, Any]:
    """All CPUs are busy: goodput is what they give, and `each` req/s more for each connection."""
    rps = 8000.0 * (1 - falls * (plan.condition.spin or 0.0)) + each * plan.concurrency
    return answered(rps, plan) | {"bottleneck": "host CPU"}


def test_host_cpu_is_confirmed_where_goodput_falls_with_the_cpus() -> None:
    of = inquiry(own=Explain(6, 1))
    rows = run(of, cpu_bound)
    a, b, more = "1-before", "1-after", "1-more"
    assert [one.arm for one in rows] == ["1-named", *[a, b, more, more, b, a] * 3]
    conditions = {plan.arm: plan.condition for plan in plans(of, rows)}
    assert conditions[b] == Condition(spin=0.2)
    assert conditions[more] == Condition(connections=10_000)
    assert {one.concurrency for one in rows if one.arm == more} == {10_000}
    step, end = told(of, rows)
    assert "confirmed: 20% of the CPUs taken away (20.0% measured) makes goodput ×0.80" in step.text
    assert end.text == (
        "bottleneck: host CPU, with the lab as it is: the machine itself is the limit: goodput "
        "follows its CPUs"
    )


def test_a_suspected_host_cpu_that_is_confirmed_is_the_end_whatever_was_named() -> None:
    wrong: Server = lambda plan, number: {**cpu_bound(plan, number), "bottleneck": "none"}  # noqa: E731
    assert said(inquiry(own=Explain(6, 4, "host CPU")), wrong)[-1].startswith(
        "bottleneck: host CPU, with the lab as it is: the machine itself is the limit"
    )


def test_without_more_connections_that_were_to_be_measured_nothing_is_confirmed() -> None:
    def too_many(plan: TrialPlan, number: int) -> dict[str, Any]:
        found = cpu_bound(plan, number)
        late = {"valid": False, "invalid_reasons": "late"} if plan.condition.connections else {}
        return {**found, **late}

    rows = run(inquiry(own=Explain(6, 1)), too_many)
    assert sum(one.arm == "1-more" for one in rows) == 2
    text = told(inquiry(own=Explain(6, 1)), rows)[0].text
    assert "inconclusive: 20% of the CPUs taken away" in text
    assert "2 measurements with more connections were invalid: late" in text


def test_an_invalid_trial_that_names_host_cpu_proves_nothing() -> None:
    crowded = invalid("1-named", 2, bottleneck="host CPU")
    assert said(inquiry(), crowded)[0].startswith(
        "bottleneck: host CPU, not proven: 2 measurements were invalid: late"
    )


def test_host_cpu_is_withdrawn_where_goodput_stays() -> None:
    idle: Server = lambda plan, number: cpu_bound(plan, number, falls=0.0)  # noqa: E731
    texts = said(inquiry(), idle)
    assert texts[0].startswith("step 1, host CPU (named, strong evidence): withdrawn: ")
    assert texts[0].endswith("goodput does not follow the CPUs, of which ×0.80 are left")
    assert texts[1].startswith("bottleneck: unknown: host CPU was named, and is withdrawn: ")


def test_host_cpu_is_withdrawn_where_more_connections_raise_goodput() -> None:
    room: Server = lambda plan, number: cpu_bound(plan, number, each=1.0)  # noqa: E731
    text = said(inquiry(), room)[0]
    assert "withdrawn" in text
    assert "; with more connections goodput ×1.38 [1.38, 1.38]; " in text
    assert text.endswith("more connections raise goodput: there were CPUs left")


def test_a_machine_that_holds_no_more_connections_has_no_third_side() -> None:
    rows = run(inquiry(own=Explain(6, 1, None, 5000)), cpu_bound)
    assert len(rows) == 13


@pytest.mark.parametrize(
    ("low", "high", "dose", "answer"),
    [
        (0.78, 0.82, 0.2, "confirmed"),
        # The lab's own work does not shrink, and requests may get cheaper.
        (0.74, 0.77, 0.2, "confirmed"),
        (0.84, 0.89, 0.2, "confirmed"),
        # Half of a proportional fall is √0.8 = 0.894.
        (0.84, 0.90, 0.2, "inconclusive"),
        (0.90, 0.94, 0.2, "inconclusive"),
        (0.75, 1.02, 0.2, "inconclusive"),
        (0.96, 0.99, 0.2, "withdrawn"),
        (0.97, 1.03, 0.2, "withdrawn"),
        (1.02, 1.2, 0.2, "withdrawn"),
        # 0.8 to the power of 1.5 is 0.716.
        (0.5, 0.7, 0.2, "inconclusive"),
        (0.88, 0.92, 0.1, "confirmed"),
        (0.88, 0.92, 0.04, "inconclusive"),
        (0.8, 0.8, None, "inconclusive"),
    ],
)
def test_the_answer_of_a_fall_follows_from_what_was_really_taken(
    low: float, high: float, dose: float | None, answer: str
) -> None:
    ratio = RatioOf(6, 6, (low + high) / 2, Interval(low, high, 0.969))
    assert answer_of_fall(ratio, dose, None)[0] == answer


def test_a_fall_without_an_interval_or_against_more_connections() -> None:
    fall = RatioOf(6, 6, 0.8, Interval(0.78, 0.82, 0.969))
    assert answer_of_fall(RatioOf(5, 5, 0.8, None), 0.2, None)[0] == "inconclusive"
    more = RatioOf(6, 6, 1.08, Interval(1.06, 1.1, 0.969))
    assert answer_of_fall(fall, 0.2, more)[0] == "withdrawn"
    same = RatioOf(6, 6, 1.03, Interval(0.99, 1.06, 0.969))
    assert answer_of_fall(fall, 0.2, same)[0] == "confirmed"


def test_a_bound_right_behind_the_resource_is_changed_with_it() -> None:
    """A pool of 200 beside 205 downstream connections: the pool alone could give 2.5 %."""

    def both(plan: TrialPlan, number: int) -> dict[str, Any]:
        knobs = {"pool_size": 200, "downstream_connections": 205, **plan.condition.knobs}
        rps = min(knobs.values()) / 0.2
        return answered(rps * SIX[number % 6], plan) | {"bottleneck": "worker pool"}

    seen = snapshot(settings={**SETTINGS, "downstream_connections": 205})
    _, texts = of_a(inquiry(own=Explain(6, 1)), both, seen)
    assert texts[0].startswith(
        "step 1, worker pool and downstream connections (named, strong evidence): confirmed: "
        "pool_size 200 → 400 and downstream_connections 205 → 410 (together, for worker pool alone "
        "leaves room for ×1.0"
    )
    assert "makes goodput ×2.00 [" in texts[0]
    assert texts[0].endswith("lifted to pool_size=5000 and downstream_connections=5000")


def test_a_resource_that_the_changed_trials_name_is_changed_together_next() -> None:
    """Carriers have no bound: nothing says before that they are as full as the pool."""

    def both(plan: TrialPlan, number: int) -> dict[str, Any]:
        knobs = {**SETTINGS, **plan.condition.knobs}
        pool, carriers = knobs["pool_size"] / 0.2, knobs["virtual_thread_parallelism"] * 500.0
        named = "worker pool" if pool <= carriers else "carrier threads"
        return answered(min(pool, carriers) * SIX[number % 6], plan) | {"bottleneck": named}

    texts = said(inquiry(own=Explain(6, 2)), both)
    assert texts[0].startswith("step 1, worker pool (named, strong evidence): withdrawn: ")
    assert texts[1].startswith(
        "step 2, worker pool and carrier threads (named, strong evidence): confirmed: pool_size "
        "200 → 400 and virtual_thread_parallelism 2 → 4 (together, for carrier threads was named "
        "with worker pool changed) makes goodput ×2.00 ["
    )
    assert (
        "unknown: worker pool was named, and is withdrawn"
        in said(inquiry(own=Explain(6, 1)), both)[-1]
    )


def test_the_load_s_own_connections_are_doubled_at_the_same_rate() -> None:
    """An open load whose connections are all busy: 100 of them answer 500 of 900 req/s."""

    def busy(plan: TrialPlan, number: int) -> dict[str, Any]:
        rps = min(plan.offered_rps or 0, plan.concurrency / 0.2)
        full = rps < 900
        named = "connections of the load" if full else "none"
        return answered(rps, plan) | {"bottleneck": named, "p95_ms": 200.0}

    of = inquiry(modes=("open",), concurrencies=(100,), rate_rps=900)
    rows = run(of, busy)
    assert {(one.concurrency, one.offered_rps) for one in rows} == {
        (100, 900), (200, 900), (400, 900),
    }  # fmt: skip
    texts = [one.text for one in told(of, rows)]
    assert (
        "connections of the load (named, strong evidence): confirmed: connections 100 → 200"
        in (texts[0])
    )
    assert "makes goodput ×1.80 [" in texts[0]
    assert "lifted to 400 connections" in texts[0]


SLOW = "downstream/planted latency jitter=0 latency=180 stream=downstream toxicity=1"


def suspected(resource: str, connections: int, **changes: Any) -> Experiment:
    own = Explain(6, 1, resource)
    return inquiry(concurrencies=(connections,), own=own, **changes)


def held(lock_ms: int, connections: int) -> float:
    """The req/s of connections that wait 200 ms each and then hold one lock."""
    return connections * 1000 / max(200 + lock_ms, connections * lock_ms)


def locked(plan: TrialPlan, number: int) -> dict[str, Any]:
    rps = held(plan.condition.knobs.get("lock_ms", 50), plan.concurrency)
    return answered(rps * SIX[number % 6], plan) | {"bottleneck": "none"}


WITH_A_LOCK = snapshot(settings={"lock_ms": 50})


def test_a_lock_that_nobody_waited_for_is_not_confirmed_by_its_own_time() -> None:
    """One connection: 250 ms become 225, so a closed load sends more."""
    _, texts = of_a(suspected("lock", 1), locked, WITH_A_LOCK)
    assert "lock (suspected): inconclusive: lock_ms 50 → 25 makes goodput ×1.11 [" in texts[0]
    assert texts[0].endswith(
        "; no more than the time that was taken away: 25 ms less on the path of each request give "
        "×1.11 by themselves"
    )
    assert texts[1].startswith("bottleneck: none")


def test_a_lock_that_all_wait_for_is_confirmed() -> None:
    _, texts = of_a(suspected("lock", 60), locked, WITH_A_LOCK)
    assert "lock (suspected): confirmed: lock_ms 50 → 25 makes goodput ×2.00 [" in texts[0]


def test_a_lock_whose_half_gives_hardly_more_than_its_time_leaves_it_open() -> None:
    def hardly(plan: TrialPlan, number: int) -> dict[str, Any]:
        # Between ×1.15 and ×1.19: ×1.11 and 5 % are within.
        rise = (1.15, 1.16, 1.17, 1.18, 1.19, 1.17)[number // 2 % 6] if plan.condition.knobs else 1
        return answered(4.0 * rise, plan) | {"bottleneck": "none"}

    _, texts = of_a(suspected("lock", 1), hardly, WITH_A_LOCK)
    assert "inconclusive" in texts[0]
    assert "; not surely more than the time that was taken away: 25 ms less" in texts[0]


def test_requests_that_took_less_than_what_was_taken_away_confirm_nothing() -> None:
    def quick(plan: TrialPlan, number: int) -> dict[str, Any]:
        return answered(200.0 if plan.condition.knobs else 100.0, plan) | {"bottleneck": "none"}

    _, texts = of_a(suspected("lock", 1), quick, WITH_A_LOCK)
    assert "inconclusive: lock_ms 50 → 25 makes goodput ×2.00" in texts[0]
    assert texts[0].endswith("a request took no longer than the 25 ms taken away from it")


def slowed(plan: TrialPlan, number: int) -> dict[str, Any]:
    """A call takes 200 ms and what a toxic adds; 10 threads make calls, where there is a pool."""
    added = int(plan.condition.toxics[0]["LATENCY"]) if plan.condition.toxics else 180
    most = plan.concurrency if plan.offered_rps is None else plan.offered_rps * (200 + added) / 1000
    return answered(min(most, plan.concurrency) * 1000 / (200 + added), plan) | {
        "bottleneck": "none", "p95_ms": 300.0,
    }  # fmt: skip


SLOWED = snapshot(settings={}, toxics=ToxicState((SLOW,), 180.0))


def test_a_latency_toxic_on_the_path_of_each_request_is_not_confirmed_by_its_own_time() -> None:
    """The load of slow-09-closed (experiments/truth.toml), whose right answer is none."""
    _, texts = of_a(suspected("downstream", 100), slowed, SLOWED)
    assert "inconclusive: planted LATENCY 180 → 90 ms makes goodput ×1.31 [" in texts[0]
    assert texts[0].endswith("90 ms less on the path of each request give ×1.31 by themselves")


def test_nor_is_it_where_an_overloaded_open_load_keeps_all_connections_busy() -> None:
    of = suspected("downstream", 100, modes=("open",), rate_rps=1000)
    _, texts = of_a(of, slowed, SLOWED)
    assert "inconclusive: planted LATENCY 180 → 90 ms makes goodput ×1.31 [" in texts[0]
    assert "no more than the time that was taken away" in texts[0]


def test_an_open_load_that_gets_all_it_offers_withdraws_no_toxic() -> None:
    of = suspected("downstream", 100, modes=("open",), rate_rps=200)
    _, texts = of_a(of, slowed, SLOWED)
    assert "inconclusive: planted LATENCY 180 → 90 ms makes goodput ×1.00 [" in texts[0]
    assert texts[0].endswith("there is room for ×1.00 only (offered load: 200 req/s offered)")


def test_a_latency_toxic_that_threads_wait_for_is_confirmed() -> None:
    """10 threads: 90 of 100 connections wait for one, and each call takes less."""

    def pooled(plan: TrialPlan, number: int) -> dict[str, Any]:
        found = slowed(dataclasses.replace(plan, concurrency=10), number)
        return found | {"bottleneck": "none"}

    _, texts = of_a(suspected("downstream", 100), pooled, SLOWED)
    assert "confirmed: planted LATENCY 180 → 90 ms makes goodput ×1.31 [" in texts[0]


PROXIED_CALLS = snapshot(settings={"downstream_url": PROXIED})


def proxied(busy: float | None = None, **said: Any) -> Server:
    """Past Toxiproxy it does a third more. Through it the lab's parts keep so much of 2 CPUs busy,
    each a fifth."""

    def answers(plan: TrialPlan, number: int) -> dict[str, Any]:
        found = answered(4000.0 if plan.condition.host else 3000.0, plan)
        each = None if busy is None else busy * 2e6 / 3000 / 5
        parts = dict.fromkeys(CpuSplit.columns(), each)
        return {**found, **parts, "bottleneck": "none", **said}

    return answers


@pytest.mark.parametrize(
    ("server", "why"),
    [
        (proxied(0.97), "the CPUs were at least 97% busy"),
        (proxied(0.75, others_cpu=0.2), "the CPUs were at least 95% busy"),
        (proxied(0.5, bottleneck="host CPU"), "host CPU was named without the change"),
        (proxied(), "nobody knows how busy the CPUs were"),
    ],
)
def test_without_cpus_to_spare_toxiproxy_is_not_confirmed_by_what_it_leaves_to_others(
    server: Server, why: str
) -> None:
    _, texts = of_a(suspected("Toxiproxy", 2000), server, PROXIED_CALLS)
    assert "inconclusive: direct, without Toxiproxy, its time and its CPU time makes " in texts[0]
    assert texts[0].endswith(f"; the CPU time of Toxiproxy went with it, and {why}")


def test_with_cpus_to_spare_it_is() -> None:
    _, texts = of_a(suspected("Toxiproxy", 2000), proxied(0.7), PROXIED_CALLS)
    assert "confirmed: direct, without Toxiproxy" in texts[0]
    own = dataclasses.replace(PROXIED_CALLS, settings={**PROXIED_CALLS.settings, "cpuset": "4-7"})
    _, texts = of_a(suspected("Toxiproxy", 2000), proxied(), own)
    assert "confirmed: direct, without Toxiproxy" in texts[0]


@pytest.mark.parametrize(("often", "answer"), [(4, "inconclusive"), (1, "confirmed")])
def test_a_side_that_was_measured_again_more_often_on_warmer_jvms_decides_nothing(
    often: int, answer: str
) -> None:
    tried: dict[str, int] = {}

    def server(plan: TrialPlan, number: int) -> dict[str, Any]:
        arm = plan.arm or ""
        tried[arm] = tried.get(arm, 0) + 1
        cold = arm == "1-after" and tried[arm] % 2 == 1 and tried[arm] < 2 * often
        late = {"valid": False, "invalid_reasons": "cold JVM: it compiled"} if cold else {}
        return proxied(0.5)(plan, number) | late

    _, texts = of_a(suspected("Toxiproxy", 2000), server, PROXIED_CALLS)
    assert f": {answer}: direct, without Toxiproxy" in texts[0]
    assert (
        "measured again or lost: 0 of 6 launches of the server as it was and 4 of 6 launches of "
        "the changed one" in texts[0]
    ) == (answer == "inconclusive")


def test_a_step_that_allows_no_more_than_a_little_withdraws_nothing() -> None:
    nearly = snapshot(settings={**SETTINGS, "pool_size": 19_500})

    def flat(plan: TrialPlan, number: int) -> dict[str, Any]:
        return answered(3000 * SIX[number % 6], plan) | {"bottleneck": "none"}

    _, texts = of_a(suspected("worker pool", 9000), flat, nearly)
    assert ": inconclusive: pool_size 19500 → 20000 makes goodput ×1.00" in texts[0]
    assert texts[0].endswith("the step allows ×1.03 at most")


def test_each_trial_of_a_step_of_settings_is_on_a_jvm_of_its_own_and_others_share_one() -> None:
    made, _ = of_a(suspected("Toxiproxy", 2000), proxied(0.5), PROXIED_CALLS)
    assert [plan.launch for plan in made] == [0, *range(1, 13), 0]
    assert {one.launch for one in run(inquiry())} == {0}


def test_an_invalid_trial_is_repeated_on_its_own_jvm_which_is_warmer_by_then() -> None:
    plain = proxied(0.5)

    def once(plan: TrialPlan, number: int) -> dict[str, Any]:
        cold = {"valid": False, "invalid_reasons": "cold JVM"} if number == 3 else {}
        return {**plain(plan, number), **cold}

    made, _ = of_a(suspected("Toxiproxy", 2000), once, PROXIED_CALLS)
    assert [plan.launch for plan in made] == [0, 1, 2, 3, 3, *range(4, 13), 0]
