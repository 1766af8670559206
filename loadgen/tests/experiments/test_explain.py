"""Inquiries into servers whose limits were planted."""

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lab.errors import WordError
from lab.experiments import explain
from lab.experiments.kind import Outcome
from lab.experiments.order import Design
from lab.experiments.proving.answers import answer_of, answer_of_fall
from lab.experiments.proving.inquiry import Explain
from lab.judge.intervals import Interval, MedianOf, RatioOf, ratio_of_pairs
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
from support.altered import Server, When, altered, check_texts, invalid
from support.fakes import snapshot
from support.planned import experiment, planner, resumed, row
from support.runs import write_manifest

SIX = (0.99, 1.0, 1.01, 1.0, 0.995, 1.005)
SETTINGS = {"pool_size": 200, "downstream_connections": 500, "virtual_thread_parallelism": 2}
SEEN = snapshot(settings=SETTINGS)
SNAPSHOTS = {"a": SEEN, "b": SEEN}
SERVICE = snapshot(identity=None, settings={"url": "http://a:8080"})
SLOW = "downstream/planted latency jitter=0 latency=180 stream=downstream toxicity=1"
WITH_A_LOCK = snapshot(settings={"lock_ms": 50})
SLOWED = snapshot(settings={}, toxics=ToxicState((SLOW,), 180.0))
PROXIED_CALLS = snapshot(settings={"downstream_url": PROXIED})
WITH_CPUS = dataclasses.replace(PROXIED_CALLS, settings={**PROXIED_CALLS.settings, "cpuset": "4-7"})
FEW_CONNECTIONS = snapshot(settings={**SETTINGS, "downstream_connections": 205})
CONNECTIONS = "downstream connections"
NEARLY = snapshot(settings={**SETTINGS, "pool_size": 19_500})
LATE_GENERATOR = "generator-full"


def inquiry(**changes: Any) -> Experiment:
    given = {
        "kind": "explain", "servers": ("a",), "modes": ("closed",), "concurrencies": (5000,),
        "own": Explain(6, 4),
    }  # fmt: skip
    return experiment(**{**given, **changes})


def order_of(of: Experiment, seen: Snapshot = SEEN) -> Design:
    return explain.design(planner(of, snapshots=dict.fromkeys(of.servers, seen)))


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


def lost(arm: str, times: int, reason: str = "generator-late", **cells: Any) -> Server:
    """The first trials of a part are invalid."""
    return altered(
        honest, lambda plan, nth: plan.arm == arm and nth <= times, **invalid(reason, **cells)
    )


def run(of: Experiment, server: Server = honest, seen: Snapshot = SEEN) -> list[Row]:
    order = order_of(of, seen)
    done: list[Row] = []
    while (plan := order.next(done)) is not None:
        assert len(done) < 200
        assert order.next(done) == plan
        done.append(row(plan, **server(plan, len(done))))
    return done


def ran(server: Server = honest, **changes: Any) -> tuple[Experiment, list[Row]]:
    """An inquiry into the server, and its rows."""
    of = inquiry(**changes)
    return of, run(of, server)


def plans(of: Experiment, rows: list[Row], seen: Snapshot = SEEN) -> list[TrialPlan]:
    order = order_of(of, seen)
    found = [order.next(rows[:count]) for count in range(len(rows))]
    return [plan for plan in found if plan is not None]


def told(of: Experiment, rows: list[Row], seen: Snapshot = SEEN) -> list[Finding]:
    conditions = {plan.trial: plan.condition for plan in plans(of, rows, seen)}
    return list(explain.told(of, rows, dict.fromkeys(of.servers, seen), 2, conditions))


def said(of: Experiment, server: Server = honest, seen: Snapshot = SEEN) -> list[str]:
    return [one.text for one in told(of, run(of, server, seen), seen)]


def test_each_limit_is_confirmed_and_lifted_until_the_machine_is_the_limit() -> None:
    of, rows = ran()
    assert [one.arm for one in rows[:5]] == [
        "1-named", "1-before", "1-after", "1-after", "1-before",
    ]  # fmt: skip
    assert len(rows) == 13 + 13 + 1 + 36
    found = told(of, rows)
    first, _, third, end = found
    assert (first.name, first.server, first.launch, first.unit) == ("step 1", "a", 0, "×")
    assert first.value == pytest.approx(2.0, abs=0.03)
    assert 1.9 < first.low < first.high < 2.1
    assert third.value == pytest.approx(0.9, abs=0.015)
    assert (end.name, end.value) == ("next bottleneck", None)
    check_texts(
        (one.text for one in found),
        "step 1, worker pool (named, strong evidence): confirmed: pool_size 200 → 400 makes "
        "goodput ×2.00 [… of at most ×2.00, raw p95 ×0.50 […(1000 → 2000 req/s); lifted to "
        "pool_size=5000\n"
        "step 2, downstream connections (named, strong evidence): conf…\n"
        "step 3, host CPU (named, strong evidence): confirmed: 6% and 10% of the CPUs taken away "
        "(6.0% and 10.0% measured) makes goodput ×…; goodput falls by 1.0… of the share of the "
        "CPUs that is taken: it follows them\n"
        "next bottleneck: host CPU, with pool_size=5000, downstream_connections=5000: the machine "
        "itself is the limit: goodput follows its CPUs",
    )


def test_conditions_go_with_the_trials_and_names_say_their_part() -> None:
    of, rows = ran()
    found = plans(of, rows)
    by_arm = {plan.arm: plan.condition for plan in found}
    assert by_arm["1-named"] == by_arm["1-before"] == AS_IT_IS
    assert by_arm["1-after"] == Condition(knobs={"pool_size": 400})
    lifted = Condition(knobs={"pool_size": 5000})
    assert by_arm["2-named"] == by_arm["2-before"] == lifted
    assert found[0].trial == "001-a-1-named-closed-c5000"
    assert len({plan.trial for plan in found}) == len(found)
    # Pairs are interleaved both ways.
    sides = [one.arm for one in run(inquiry(own=Explain(6, 1))) if one.arm != "1-named"]
    a, b = "1-before", "1-after"
    assert sides == [a, b, b, a, a, b, b, a, a, b, b, a, "2-named"]


def of_a_service(**levers: OwnLever) -> Experiment:
    """An inquiry into a service of the user's own, whose subject has these levers."""
    named = {name.replace("_", " "): one for name, one in levers.items()}
    return inquiry(target="http://a:8080", concurrencies=(500,), levers=named)


def shop(plan: TrialPlan, number: int) -> dict[str, Any]:
    """It calls something over a pool of connections, and behaves like a pool of that size."""
    size = int(plan.condition.host.get("ENV_SOCKETS", 20))
    said = answered(min(size, plan.concurrency) / 0.2 * SIX[number % 6], plan)
    full = size >= plan.concurrency
    return {**said, "bottleneck": "none"} if full else {
        **said, "bottleneck": "worker pool", "strength": "weak", "predicted_rps": None,
    }  # fmt: skip


def test_a_suspect_that_is_withdrawn_makes_way_for_the_verdict_of_the_same_trial() -> None:
    of, rows = ran(own=Explain(6, 4, "downstream connections"))
    assert "2-named" not in {one.arm for one in rows}
    check_texts(
        (one.text for one in told(of, rows)),
        "step 1, downstream connections (suspected): withdrawn: …\n"
        "step 2, worker pool (named, strong evidence): confirmed: …\n"
        "…\n"
        "step 4, host CPU (named, strong evidence): confirmed: …\n"
        "next bottleneck: host CPU…",
    )


@pytest.mark.parametrize(
    ("resource", "says"),
    [
        (
            "none",
            "none, with the lab as it is: the load itself is the limit (990 of at most 25000 "
            "req/s), no resource binds below it",
        ),
        (
            "generator",
            "generator (strong evidence), with the lab as it is: the machine itself is the limit",
        ),
        ("unknown", "unknown, with the lab as it is: the evidence names no resource"),
        (None, "unknown, with the lab as it is: the evidence names no resource"),
        (
            "ports",
            "ports (strong evidence), with the lab as it is; not proven: this server does "
            "not tell its range of local ports",
        ),
    ],
)
def test_where_nothing_can_be_changed_one_trial_is_all(resource: str | None, says: str) -> None:
    of, rows = ran(altered(honest, bottleneck=resource))
    assert len(rows) == 1
    assert [one.text for one in told(of, rows)] == [f"bottleneck: {says}"]


@pytest.mark.parametrize(
    ("arm", "side", "at"),
    [("1-named", "to name it", -1), ("1-before", "without", 0), ("1-after", "with the change", 0)],
)
def test_an_invalid_trial_is_run_once_more_and_that_is_said(arm: str, side: str, at: int) -> None:
    of, rows = ran(lost(arm, 1), own=Explain(6, 1))
    assert len(rows) == 15
    texts = [one.text for one in told(of, rows)]
    assert "confirmed" in texts[0]
    # How often that was, and on which side: a choice among trials must not be silent.
    (said,) = [text for text in texts if text.endswith(f" (run again because invalid: 1 {side})")]
    assert said is texts[at]


def test_twice_invalid_ends_the_step_and_says_why() -> None:
    of, rows = ran(lost("1-after", 2))
    assert len(rows) == 4
    check_texts(
        (one.text for one in told(of, rows)),
        "…inconclusive: pool_size 200 → 400: 2 measurements with the change were invalid: "
        "generator-late "
        "(run again because invalid: 1 with the change)\n"
        "bottleneck: unknown: worker pool was named, and is inconclusive…",
    )


@pytest.mark.parametrize("pairs", [5, 6, 8])
def test_the_pairs_before_a_side_that_cannot_be_measured_count_if_they_are_six(pairs: int) -> None:
    over: When = lambda plan, nth: plan.arm == "1-before" and nth > pairs  # noqa: E731
    of, rows = ran(altered(cpu_bound, over, **invalid()), own=Explain(6, 1))
    assert rows[-1].arm == "1-before"
    taken = "6% and 10% of the CPUs taken away"
    check_texts(
        (one.text for one in told(of, rows)),
        f"…inconclusive: {taken}: 2 meas…\n…"
        if pairs < 6
        else f"…confirmed: {taken} (6.0% and 10.0% measured) makes goodput ×0.90…; "
        f"{pairs} of 12 pairs count: then 2 measurements "
        "without the change were invalid: generator-late…\n"
        "bottleneck: host CPU, with the lab as it is…",
    )


def test_goodput_leaves_errors_out() -> None:
    one = run(inquiry())[0]
    half = dataclasses.replace(one, achieved_rps=1000.0, ok=50, http_errors=50)
    assert goodput(half) == 500
    assert goodput(dataclasses.replace(half, http_errors=None)) == 1000
    assert goodput(dataclasses.replace(half, achieved_rps=None)) is None


@pytest.mark.parametrize(
    ("factors", "answer"),
    [
        ((1.06, 1.5), "confirmed"),
        ((1.051, 1.052), "confirmed"),
        ((0.97, 1.04), "withdrawn"),
        ((0.5, 0.7), "withdrawn"),
        ((1.0, 1.5), "inconclusive"),
        ((1.04, 1.06), "inconclusive"),
        (None, "inconclusive"),
    ],
)
def test_the_answer_follows_from_the_interval(
    factors: tuple[float, float] | None, answer: str
) -> None:
    ratio = RatioOf(3, 3, 9.0, None)
    if factors:
        low, high = factors
        ratio = ratio_of_pairs([1.0] * 6, [low + (high - low) * at / 5 for at in range(6)])
    assert answer_of(ratio)[0] == answer


def test_servers_one_after_the_other_each_with_its_own_end() -> None:
    of, rows = ran(servers=("a", "b"), own=Explain(6, 1))
    assert [one.server for one in rows] == ["a"] * 14 + ["b"] * 14
    assert [one.server for one in told(of, rows)] == ["a", "a", "b", "b"]


def test_an_inquiry_goes_on_where_it_was() -> None:
    of, rows = ran()
    found = plans(of, rows)
    assert [plan.trial for plan in found] == [one.trial for one in rows]
    assert order_of(of).next(rows) is None
    part = told(of, rows[:15])
    assert part[-1].text == "not finished after 15 trials, 2-after is next"
    conditions = {plan.trial: plan.condition for plan in found}
    whole = explain.told(of, rows[:15], SNAPSHOTS, 2, conditions, complete=True)
    assert whole[-1].text == "next bottleneck: not to be told by this version's rules"
    assert told(of, []) == []
    # Rows of something else are no inquiry.
    others = [dataclasses.replace(one, arm="7-after") for one in rows]
    assert order_of(of).next(others).arm == "1-named"
    assert order_of(of).next([*rows, rows[-1]]) is None


@pytest.mark.parametrize("gone", [False, True])
def test_an_inquiry_goes_on_after_a_damaged_trial(gone: bool) -> None:
    of, rows = ran()
    for at in range(len(rows)):
        done = resumed(order_of(of), rows, at, lambda plan: honest(plan, 0), gone=gone)
        end = explain.told(of, done, SNAPSHOTS, 2, {})[-1].text
        assert "bottleneck: host CPU" in end
        assert len(done) <= len(rows) + 1


def test_windows_of_an_inquiry_grow_once_one_was_too_short() -> None:
    of = inquiry(duration_s=5)
    short = "window-short needed_s=8"
    plan = order_of(of).next([dataclasses.replace(run(of)[0], **invalid(short))])
    assert (plan.arm, plan.duration_s) == ("1-named", 8)


def test_a_plan_that_cannot_be_read_costs_no_finding(tmp_path: Path) -> None:
    of, rows = ran()
    run_dir = folder_of(tmp_path, of, rows)
    (run_dir / "raw" / rows[3].trial / "plan.json").write_text("{")
    assert list(explain.findings(Outcome(of, rows, run_dir))) == told(of, rows)


def test_an_open_load_has_its_rate_and_the_corrected_p95() -> None:
    of, rows = ran(altered(honest, p95_ms=300.0), modes=("open",))
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


def test_another_verdict_of_the_same_trials_is_not_proven_by_them(tmp_path: Path) -> None:
    """The pool was changed; now the first trial is judged to show another limit."""
    of, rows = ran()
    run_dir = folder_of(tmp_path, of, rows)
    conditions = {plan.trial: plan.condition for plan in plans(of, rows)}
    rows[0] = dataclasses.replace(rows[0], bottleneck="downstream connections")
    (only,) = explain.findings(Outcome(of, rows, run_dir))
    assert only.text == f"not finished after {len(rows)} trials, 1-after is next"
    # A run that is resumed takes no trial of another condition for its own.
    order = order_of(of)
    assert isinstance(order, explain.Inquiries)
    planner = dataclasses.replace(order.planner, conditions=conditions)
    plan = explain.Inquiries(planner).next(rows)
    assert plan is not None
    assert (plan.arm, plan.condition.knobs) == ("1-after", {"downstream_connections": 1000})
    rows[0] = dataclasses.replace(rows[0], bottleneck="none")
    (only,) = explain.findings(Outcome(of, rows, run_dir))
    assert only.text.startswith("bottleneck: none")


@pytest.mark.parametrize("reason", ["no-success", "mostly-errors"])
def test_trials_of_errors_alone_have_a_goodput_of_0_and_count(reason: str) -> None:
    def late(plan: TrialPlan, number: int) -> dict[str, Any]:
        if plan.condition.knobs:
            return answered(1000 * SIX[number % 6], plan) | {"bottleneck": "none"}
        errors = invalid(reason, ok=0, http_errors=1000, bottleneck="downstream timeout")
        return answered(2000, plan) | errors

    rows = run(inquiry(), late, snapshot(settings={**SETTINGS, "downstream_timeout_ms": 100}))
    assert [one.arm for one in rows if one.arm and one.arm.startswith("2")] == ["2-named"]
    assert len(rows) == 14


@pytest.mark.parametrize("steps", [1, 2, 4])
@pytest.mark.parametrize("suspect", [None, "downstream connections", "worker pool"])
def test_never_more_trials_than_were_said(steps: int, suspect: str | None) -> None:
    of, rows = ran(servers=("a", "b"), own=Explain(6, steps, suspect))
    # Host CPU has 36 trials.
    assert len(rows) <= order_of(of).most == 2 * (13 * steps + 1 + 24)


def drifting(plan: TrialPlan, number: int) -> dict[str, Any]:
    """Each pair is a fifth quicker than the one before; the change is worth 10 %."""
    rps = 1000.0 * 1.2 ** ((number - 1) // 2) * (1.1 if plan.condition.knobs else 1.0)
    return answered(rps, plan) | {"bottleneck": "worker pool"}


def cpu_bound(plan: TrialPlan, _: int, busy: float = 1.0) -> dict[str, Any]:
    """All CPUs are busy for the load; or something else limits, at so many busy CPUs."""
    left = 1 - (plan.condition.spin or 0.0)
    rps = 8000.0 * min(1.0, left / busy)
    return answered(rps, plan) | {"bottleneck": "host CPU"}


def test_host_cpu_is_confirmed_where_goodput_falls_with_the_cpus() -> None:
    of, rows = ran(cpu_bound, own=Explain(6, 1))
    a, b, less = "1-before", "1-after", "1-less"
    assert [row.arm for row in rows] == ["1-named", *[a, b, less, less, b, a] * 6]
    conditions = {plan.arm: plan.condition for plan in plans(of, rows)}
    assert (conditions[b], conditions[less]) == (Condition(spin=0.1), Condition(spin=0.06))
    check_texts(
        (one.text for one in told(of, rows)),
        "…confirmed: 6% and 10% of the CPUs taken away (6.0% and 10.0% measured) makes goodput "
        "×0.90…\nbottleneck: host CPU, with the lab as it is: the machine itself is the limit: "
        "goodput follows its CPUs",
    )


def test_without_a_dose_that_was_to_be_measured_nothing_is_confirmed() -> None:
    less: When = lambda plan, _: plan.arm == "1-less"  # noqa: E731
    of, rows = ran(altered(cpu_bound, less, **invalid()), own=Explain(6, 1))
    assert sum(row.arm == "1-less" for row in rows) == 2
    text = told(of, rows)[0].text
    assert "inconclusive: 6% and 10% of the CPUs taken away" in text
    assert "2 measurements with less of it were invalid: generator-late" in text


@pytest.mark.parametrize(
    ("busy", "answer"),
    [(1.0, "confirmed"), (0.95, "withdrawn"), (0.92, "withdrawn"), (0.85, "withdrawn")],
)
def test_a_limit_beside_busy_cpus_is_not_that_of_the_cpus(busy: float, answer: str) -> None:
    """A lock, or a hot thread: from a dose of 1 - busy on goodput falls with the CPUs, too."""
    of, rows = ran(partial(cpu_bound, busy=busy), own=Explain(6, 1))
    assert f"host CPU (named, strong evidence): {answer}: " in told(of, rows)[0].text


@pytest.mark.parametrize(
    ("interval", "dose", "answer"),
    [
        ((0.8, 1.2), 0.06, "confirmed"),
        # The lab's own work does not shrink, and requests may get cheaper.
        ((1.3, 1.6), 0.06, "confirmed"),
        ((0.51, 0.8), 0.06, "confirmed"),
        ((0.5, 0.8), 0.06, "inconclusive"),
        ((0.0, 1.3), 0.06, "inconclusive"),
        ((0.2, 0.5), 0.06, "withdrawn"),
        ((-0.3, 0.3), 0.06, "withdrawn"),
        ((1.6, 2.0), 0.06, "inconclusive"),
        ((0.8, 1.2), 0.02, "inconclusive"),
        (None, 0.06, "inconclusive"),
    ],
)
def test_the_answer_of_a_fall_follows_from_what_was_really_taken(
    interval: tuple[float, float] | None, dose: float, answer: str
) -> None:
    fall = MedianOf(12, 1.0, Interval(*interval, 0.95) if interval else None)
    assert answer_of_fall(fall, dose)[0] == answer


def pool_and_connections(plan: TrialPlan, number: int) -> dict[str, Any]:
    """A pool of 200 beside 205 downstream connections: the pool alone could give 2.5 %."""
    knobs = {"pool_size": 200, "downstream_connections": 205, **plan.condition.knobs}
    rps = min(knobs.values()) / 0.2
    return answered(rps * SIX[number % 6], plan) | {"bottleneck": "worker pool"}


def pool_and_carriers(plan: TrialPlan, number: int) -> dict[str, Any]:
    """Carriers have no bound: nothing says before that they are as full as the pool."""
    knobs = {**SETTINGS, **plan.condition.knobs}
    pool, carriers = knobs["pool_size"] / 0.2, knobs["virtual_thread_parallelism"] * 500.0
    named = "worker pool" if pool <= carriers else "carrier threads"
    return answered(min(pool, carriers) * SIX[number % 6], plan) | {"bottleneck": named}


def test_the_load_s_own_connections_are_doubled_at_the_same_rate() -> None:
    """An open load whose connections are all busy: 100 of them answer 500 of 900 req/s."""

    def busy(plan: TrialPlan, number: int) -> dict[str, Any]:
        rps = min(plan.offered_rps or 0, plan.concurrency / 0.2)
        named = "connections of the load" if rps < 900 else "none"
        return answered(rps, plan) | {"bottleneck": named, "p95_ms": 200.0}

    of, rows = ran(busy, modes=("open",), concurrencies=(100,), rate_rps=900)
    assert {(one.concurrency, one.offered_rps) for one in rows} == {
        (100, 900), (200, 900), (400, 900),
    }  # fmt: skip
    check_texts(
        (one.text for one in told(of, rows)),
        "…connections of the load (named, strong evidence): confirmed: connections 100 → 200…"
        "makes goodput ×1.80 […lifted to 400 connections…\n⋮",
    )


def suspected(resource: str, connections: int, **changes: Any) -> Experiment:
    own = Explain(6, 1, resource)
    return inquiry(concurrencies=(connections,), own=own, **changes)


def held(lock_ms: int, connections: int) -> float:
    """The req/s of connections that wait 200 ms each and then hold one lock."""
    return connections * 1000 / max(200 + lock_ms, connections * lock_ms)


def locked(plan: TrialPlan, number: int) -> dict[str, Any]:
    rps = held(plan.condition.knobs.get("lock_ms", 50), plan.concurrency)
    return answered(rps * SIX[number % 6], plan) | {"bottleneck": "none"}


def hardly(plan: TrialPlan, number: int) -> dict[str, Any]:
    # Between ×1.15 and ×1.19: ×1.11 and 5 % are within.
    rise = (1.15, 1.16, 1.17, 1.18, 1.19, 1.17)[number // 2 % 6] if plan.condition.knobs else 1
    return answered(4.0 * rise, plan) | {"bottleneck": "none"}


def quick(plan: TrialPlan, number: int) -> dict[str, Any]:
    return answered(200.0 if plan.condition.knobs else 100.0, plan) | {"bottleneck": "none"}


def slowed(plan: TrialPlan, number: int) -> dict[str, Any]:
    """A call takes 200 ms and what a toxic adds; 10 threads make calls, where there is a pool."""
    added = int(plan.condition.toxics[0]["LATENCY"]) if plan.condition.toxics else 180
    most = plan.concurrency if plan.offered_rps is None else plan.offered_rps * (200 + added) / 1000
    return answered(min(most, plan.concurrency) * 1000 / (200 + added), plan) | {
        "bottleneck": "none", "p95_ms": 300.0,
    }  # fmt: skip


def pooled(plan: TrialPlan, number: int) -> dict[str, Any]:
    """10 threads: 90 of 100 connections wait for one, and each call takes less."""
    return slowed(dataclasses.replace(plan, concurrency=10), number)


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
    ("server", "seen", "why"),
    [
        (proxied(0.97), PROXIED_CALLS, "the CPUs were at least 97% busy"),
        (proxied(0.75, others_cpu=0.2), PROXIED_CALLS, "the CPUs were at least 95% busy"),
        (
            proxied(0.5, bottleneck="host CPU"),
            PROXIED_CALLS,
            "host CPU was named without the change",
        ),
        (proxied(), PROXIED_CALLS, "nobody knows how busy the CPUs were"),
        (proxied(0.7), PROXIED_CALLS, None),
        (proxied(), WITH_CPUS, None),
    ],
)
def test_only_with_cpus_to_spare_is_toxiproxy_confirmed_by_what_it_leaves_to_others(
    server: Server, seen: Snapshot, why: str | None
) -> None:
    check_texts(
        said(suspected("Toxiproxy", 2000), server, seen),
        f"…inconclusive: direct, without Toxiproxy, its time and its CPU time makes …; the CPU "
        f"time of Toxiproxy went with it, and {why}\n⋮"
        if why
        else "…confirmed: direct, without Toxiproxy…\n⋮",
    )


@pytest.mark.parametrize(("often", "answer"), [(4, "inconclusive"), (1, "confirmed")])
def test_a_side_with_more_repeats_on_warmer_jvms_decides_nothing(often: int, answer: str) -> None:
    cold: When = lambda plan, nth: plan.arm == "1-after" and nth in range(1, 2 * often, 2)  # noqa: E731
    server = altered(proxied(0.5), cold, **invalid("compiling"))
    text = said(suspected("Toxiproxy", 2000), server, PROXIED_CALLS)[0]
    assert f": {answer}: direct, without Toxiproxy" in text
    assert (
        "measured again: 0 of 6 launches of the server as it was and 4 of 6 launches of "
        "the changed one" in text
    ) == (answer == "inconclusive")


def test_each_trial_of_a_step_of_settings_is_on_a_jvm_of_its_own_and_others_share_one() -> None:
    def launches(server: Server) -> list[int]:
        rows = run(suspected("Toxiproxy", 2000), server, PROXIED_CALLS)
        return [one.launch or 0 for one in rows]

    assert launches(proxied(0.5)) == [0, *range(1, 13), 0]
    assert {one.launch for one in run(inquiry())} == {0}
    # An invalid trial is repeated on its own JVM, which is warmer by then.
    second: When = lambda plan, nth: (plan.arm, nth) == ("1-after", 2)  # noqa: E731
    once = altered(proxied(0.5), second, **invalid("compiling"))
    assert launches(once) == [0, 1, 2, 3, 3, *range(4, 13), 0]


def flat(plan: TrialPlan, number: int) -> dict[str, Any]:
    return answered(3000 * SIX[number % 6], plan) | {"bottleneck": "none"}


AS_IT_WAS: When = lambda plan, _: plan.condition == AS_IT_IS  # noqa: E731


# An experiment, with its server and what was read back of it; then what is said of it.
SAID: dict[str, tuple[tuple[Any, ...], str]] = {
    "no more steps than were asked for": (
        (inquiry(own=Explain(6, 1)),),
        "…\nnext bottleneck: downstream connections (strong evidence), with pool_size=5000; "
        "not tried, 1 steps were asked for",
    ),
    "a wrong verdict": (
        (inquiry(), altered(honest, bottleneck="downstream connections")),
        "step 1, downstream connections (named, strong evidence): withdrawn: "
        "downstream_connections 500 → 1000 makes goodput ×1.00 […the whole interval is at most "
        "1.05: more of it is no help\n"
        "bottleneck: unknown: downstream connections was named, and is withdrawn: …",
    ),
    "what behaves like a pool has the lever of its subject": (
        (of_a_service(downstream_connections=OwnLever("SOCKETS", 20)), shop, SERVICE),
        "step 1, downstream connections (named): confirmed: SOCKETS 20 → 40 ma…goodput ×2.00 […"
        "(100 → 200 req/s); lifted to SOCKETS=500\n"
        "next bottleneck: none, with SOCKETS=500: the load itself is the limit…",
    ),
    "a variable that the service does not take": (
        (of_a_service(worker_pool=OwnLever("THREADS", 20)), shop, SERVICE),
        "step 1, worker pool (named, weak evidence): inconclusive: THREADS 20 →…or the service "
        "does not take THREADS, which the lab cannot see\n"
        "bottleneck: unknown: worker pool was named, and is inconclusive: …",
    ),
    "a service without a lever": (
        (of_a_service(), shop, SERVICE),
        "bottleneck: worker pool (weak evidence), with the lab as it is; not proven: the "
        "service's subject has no [levers] for the worker pool",
    ),
    "a suspect that is right": (
        (inquiry(own=Explain(6, 4, "worker pool")),),
        "step 1, worker pool (suspected, and named, strong evidence): conf…\n⋮",
    ),
    "a suspect that is named and withdrawn": (
        (inquiry(own=Explain(6, 4, CONNECTIONS)), altered(honest, bottleneck=CONNECTIONS)),
        "…\nbottleneck: unknown…",
    ),
    "a suspect without a lever": (
        (inquiry(own=Explain(6, 4, "generator")),),
        "step 1, generator (suspected): not tried: …\nstep 2, worker pool (named…\n⋮",
    ),
    "too few pairs": (
        (inquiry(own=Explain(5, 4)),),
        "step 1, worker pool (named, strong evidence): inconclusive: pool_size 200 → 400 makes "
        "goodput ×1.99, raw p95 ×0.50 (1000 → 2000 req/s); no interval: it takes 6 pairs, not 5\n⋮",
    ),
    "a load that cannot be measured": (
        (inquiry(), lost("1-named", 2)),
        "bottleneck: unknown: 2 measurements were invalid: generator-late (run again because "
        "invalid: 1 "
        "to name it)",
    ),
    "a load that the generator cannot send": (
        (inquiry(), lost("1-named", 2, LATE_GENERATOR, bottleneck="generator")),
        "bottleneck: generator: the machine itself is the limit (generator-full) "
        "(run again because invalid: 1 to name it)",
    ),
    "invalid trials that name host CPU": (
        (inquiry(), lost("1-named", 2, bottleneck="host CPU")),
        "bottleneck: host CPU, not proven: 2 measurements were invalid: generator-late…",
    ),
    # One answer in 5 s is 0.2 req/s; 2,000 is 10,000 times as much.
    "no goodput before": (
        (inquiry(), altered(honest, AS_IT_WAS, ok=0, http_errors=900)),
        "…confirmed: pool_size 200 → 400 makes goodput at least ×10000.00 […(0 → 2000 req/s)…\n⋮",
    ),
    "strength decides nothing": (
        (inquiry(), altered(honest, strength="weak")),
        "…(named, weak evidence): confirmed…\n⋮",
    ),
    # 205 connections ask for 1,025 req/s, the pool gives 1,000: 2.5 % more.
    "a load without room": (
        (inquiry(concurrencies=(205,)),),
        "step 1, worker pool (named, strong evidence): inconclusive…room for ×1.02 only…\n⋮",
    ),
    "a step that allows no more than a little": (
        (suspected("worker pool", 9000), flat, NEARLY),
        "…: inconclusive: pool_size 19500 → 20000 makes goodput ×1.00…the step allows ×1.03 at "
        "most\n⋮",
    ),
    "pairs of a machine that drifts": (
        (inquiry(own=Explain(6, 1)), drifting),
        "…confirmed: pool_size 200 → 400 makes goodput ×1.10 [1.10, 1.10]…\n⋮",
    ),
    "a suspected host CPU that is confirmed, whatever was named": (
        (inquiry(own=Explain(6, 4, "host CPU")), altered(cpu_bound, bottleneck="none")),
        "⋮\nbottleneck: host CPU, with the lab as it is: the machine itself is the limit…",
    ),
    "goodput that stays without CPUs": (
        (inquiry(), partial(cpu_bound, busy=0.5)),
        "step 1, host CPU (named, strong evidence): withdrawn: …it does not follow them\n"
        "bottleneck: unknown: host CPU was named, and is withdrawn: …",
    ),
    "a bound right behind the resource": (
        (inquiry(own=Explain(6, 1)), pool_and_connections, FEW_CONNECTIONS),
        "step 1, worker pool and downstream connections (named, strong evidence): confirmed: "
        "pool_size 200 → 400 and downstream_connections 205 → 410 (together, for worker pool "
        "alone leaves room for ×1.0…makes goodput ×2.00 […lifted to pool_size=5000 and "
        "downstream_connections=5000\n⋮",
    ),
    "a resource that the changed trials name": (
        (inquiry(own=Explain(6, 2)), pool_and_carriers),
        "step 1, worker pool (named, strong evidence): withdrawn: …\n"
        "step 2, worker pool and carrier threads (named, strong evidence): confirmed: pool_"
        "size 200 → 400 and virtual_thread_parallelism 2 → 4 (together, for carrier threads was "
        "named with worker pool changed) makes goodput ×2.00 […\n⋮",
    ),
    "a resource that the changed trials name, without a step for it": (
        (inquiry(own=Explain(6, 1)), pool_and_carriers),
        "⋮\n…unknown: worker pool was named, and is withdrawn…",
    ),
    # One connection: 250 ms become 225, so a closed load sends more.
    "a lock that nobody waited for": (
        (suspected("lock", 1), locked, WITH_A_LOCK),
        "…lock (suspected): inconclusive: lock_ms 50 → 25 makes goodput ×1.11 […; no more than "
        "the time that was taken away: 25 ms less on the path of each request give ×1.11 by "
        "themselves\n"
        "bottleneck: none…",
    ),
    "a lock that all wait for": (
        (suspected("lock", 60), locked, WITH_A_LOCK),
        "…lock (suspected): confirmed: lock_ms 50 → 25 makes goodput ×2.00 […\n⋮",
    ),
    "a lock whose half gives hardly more than its time": (
        (suspected("lock", 1), hardly, WITH_A_LOCK),
        "…inconclusive…; not surely more than the time that was taken away: 25 ms less…\n⋮",
    ),
    "requests that took less than what was taken away": (
        (suspected("lock", 1), quick, WITH_A_LOCK),
        "…inconclusive: lock_ms 50 → 25 makes goodput ×2.00…a request took no longer than the "
        "25 ms taken away from it\n⋮",
    ),
    # A toxic that does not double R0, so the right answer is none.
    "a latency toxic on the path of each request": (
        (suspected("downstream", 100), slowed, SLOWED),
        "…inconclusive: planted LATENCY 180 → 90 ms makes goodput ×1.31 […90 ms less on the "
        "path of each request give ×1.31 by themselves\n⋮",
    ),
    "a latency toxic on an overloaded open load that keeps all connections busy": (
        (suspected("downstream", 100, modes=("open",), rate_rps=1000), slowed, SLOWED),
        "…inconclusive: planted LATENCY 180 → 90 ms makes goodput ×1.31 […no more than the "
        "time that was taken away…\n⋮",
    ),
    "a latency toxic on an open load that gets all it offers": (
        (suspected("downstream", 100, modes=("open",), rate_rps=200), slowed, SLOWED),
        "…inconclusive: planted LATENCY 180 → 90 ms makes goodput ×1.00 […there is room for "
        "×1.00 only (offered load: 200 req/s offered)\n⋮",
    ),
    "a latency toxic that threads wait for": (
        (suspected("downstream", 100), pooled, SLOWED),
        "…confirmed: planted LATENCY 180 → 90 ms makes goodput ×1.31 […\n⋮",
    ),
}


@pytest.mark.parametrize(("asked", "texts"), SAID.values(), ids=SAID)
def test_what_is_said_of_each_step_and_of_the_end(asked: tuple[Any, ...], texts: str) -> None:
    check_texts(said(*asked), texts)
