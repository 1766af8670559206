"""Inquiries into servers whose limits were planted."""

import copy
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lab.errors import WordError
from lab.judge.intervals import Interval, MedianOf, RatioOf, ratio_of_pairs
from lab.kinds import explain
from lab.kinds.kind import Outcome
from lab.kinds.order import Design
from lab.kinds.proving.answers import answer_of, answer_of_fall
from lab.kinds.proving.inquiry import Explain
from lab.model import (
    AS_IT_IS,
    Condition,
    CpuSplit,
    Experiment,
    Finding,
    Limit,
    OwnLever,
    Row,
    SettingChange,
    Snapshot,
    TrialPlan,
    Tried,
)
from lab.model.knobs import PROXIED
from lab.store.records import write_json
from support.altered import Server, When, altered, invalid
from support.fakes import snapshot
from support.planned import experiment, planner, resumed, row
from support.runs import write_manifest

SIX = (0.99, 1.0, 1.01, 1.0, 0.995, 1.005)
SETTINGS = {"pool_size": 200, "downstream_connections": 500, "virtual_thread_parallelism": 2}
SEEN = snapshot(settings=SETTINGS)
SERVICE = snapshot(identity=None, settings={"url": "http://a:8080"})
WITH_A_LOCK = snapshot(settings={"lock_ms": 50})
PROXIED_CALLS = snapshot(settings={"downstream_url": PROXIED})
WITH_CPUS = copy.replace(PROXIED_CALLS, settings={**PROXIED_CALLS.settings, "cpuset": "4-7"})
FEW_CONNECTIONS = snapshot(settings={**SETTINGS, "downstream_connections": 205})
NEARLY = snapshot(settings={**SETTINGS, "pool_size": 19_500})
POOL, CONNECTIONS, HOST_CPU = "worker pool", "downstream connections", "host CPU"


def inquiry(**changes: Any) -> Experiment:
    given = {
        "kind": "explain", "servers": ("a",), "modes": ("closed",), "concurrencies": (5000,),
        "own": Explain(6, 4),
    }  # fmt: skip
    return experiment(**{**given, **changes})


def suspected(resource: str, connections: int, **changes: Any) -> Experiment:
    own = Explain(6, 1, resource)
    return inquiry(concurrencies=(connections,), own=own, **changes)


def of_a_service(**levers: OwnLever) -> Experiment:
    """An inquiry into a service of the user's own, whose subject has these levers."""
    named = {name.replace("_", " "): lever for name, lever in levers.items()}
    return inquiry(target="http://a:8080", concurrencies=(500,), levers=named)


def order_of(of: Experiment, seen: Snapshot = SEEN) -> Design:
    return explain.design(planner(of, snapshots=dict.fromkeys(of.servers, seen)))


def answered(rps: float, plan: TrialPlan, bottleneck: str = "none") -> dict[str, Any]:
    return {
        "achieved_rps": rps, "raw_p95_ms": 1000 * plan.concurrency / rps, "ok": 1000,
        "http_errors": 0, "window_s": 5.0, "strength": "strong", "predicted_rps": 25_000.0,
        "spun": plan.condition.spin, "bottleneck": bottleneck,
    }  # fmt: skip


def honest(plan: TrialPlan, number: int) -> dict[str, Any]:
    """What is least of what each resource allows under the plan's condition names it."""
    knobs = {**SETTINGS, **plan.condition.knobs}
    allowed = {
        POOL: knobs["pool_size"] / 0.2,
        CONNECTIONS: knobs["downstream_connections"] / 0.2,
        HOST_CPU: 8000.0 * (1 - (plan.condition.spin or 0.0)),
        "none": plan.concurrency / 0.2,
    }
    resource = min(allowed, key=lambda name: allowed[name])
    return answered(allowed[resource] * SIX[number % 6], plan, resource)


def lost(arm: str, times: int, reason: str = "generator-late", **cells: Any) -> Server:
    """The first trials of a part are invalid."""
    first: When = lambda plan, nth: plan.arm == arm and nth <= times  # noqa: E731
    return altered(honest, first, **invalid(reason, **cells))


def run(of: Experiment, server: Server = honest, seen: Snapshot = SEEN) -> list[Row]:
    order = order_of(of, seen)
    rows: list[Row] = []
    while (plan := order.next(rows)) is not None:
        assert len(rows) < 200
        assert order.next(rows) == plan
        rows.append(row(plan, **server(plan, len(rows))))
    return rows


def plans(of: Experiment, rows: list[Row], seen: Snapshot = SEEN) -> list[TrialPlan]:
    order = order_of(of, seen)
    every = [order.next(rows[:count]) for count in range(len(rows))]
    return [plan for plan in every if plan is not None]


def findings(of: Experiment, rows: list[Row], seen: Snapshot = SEEN) -> list[Finding]:
    conditions = {plan.trial: plan.condition for plan in plans(of, rows, seen)}
    outcome, snapshots = Outcome(of, rows, Path()), dict.fromkeys(of.servers, seen)
    return list(explain.findings_of(outcome, snapshots, 2, conditions))


def steps(of: Experiment, server: Server = honest, seen: Snapshot = SEEN) -> list[Tried]:
    return [each for each in findings(of, run(of, server, seen), seen) if isinstance(each, Tried)]


def outline(found: list[Finding]) -> list[str]:
    """Each step with its answer, and the codes of why; then the end."""
    lines = []
    for finding in found:
        assert isinstance(finding, Tried | Limit)
        codes = " ".join(remark.code for remark in finding.why)
        if isinstance(finding, Tried):
            what = f"{' + '.join(finding.resources)} {finding.answer}"
            lines.append(what if finding.lifted else f"{what}: {codes}")
        else:
            lines.append(f"{finding.resource}: {codes}")
    return lines


def test_each_limit_is_confirmed_and_lifted_until_the_machine_is_the_limit() -> None:
    of = inquiry()
    rows = run(of)
    assert [each.arm for each in rows[:5]] == [
        "1-named", "1-before", "1-after", "1-after", "1-before",
    ]  # fmt: skip
    assert len(rows) == 13 + 13 + 1 + 36
    found = findings(of, rows)
    assert outline(found) == [
        "worker pool confirmed",
        "downstream connections confirmed",
        "host CPU confirmed: falls",
        "host CPU: follows-cpus",
    ]
    first, _, third, end = found
    assert (first.name, first.server, first.launch, first.unit) == ("step 1", "a", 0, "×")
    assert first.value == pytest.approx(2.0, abs=0.03)
    assert 1.9 < first.low < first.high < 2.1
    assert (first.named, first.suspected, first.at_most) == ("strong", False, 2)
    assert first.changes == (SettingChange("pool_size", 200, 400, 5000),)
    assert first.goodput == pytest.approx((1000, 2000), rel=0.01)
    assert first.p95[0] == pytest.approx(0.5, abs=0.02)
    assert third.value == pytest.approx(0.9, abs=0.015)
    assert (third.doses, third.lifted, third.planned, third.pairs) == ((0.06, 0.1), False, 12, 12)
    assert (end.name, end.value) == ("next bottleneck", None)
    assert end.condition.knobs == {"pool_size": 5000, "downstream_connections": 5000}


def test_conditions_go_with_the_trials_and_names_say_their_part() -> None:
    of = inquiry()
    rows = run(of)
    made = plans(of, rows)
    by_arm = {plan.arm: plan.condition for plan in made}
    assert by_arm["1-named"] == by_arm["1-before"] == AS_IT_IS
    assert by_arm["1-after"] == Condition(knobs={"pool_size": 400})
    lifted = Condition(knobs={"pool_size": 5000})
    assert by_arm["2-named"] == by_arm["2-before"] == lifted
    assert made[0].trial == "001-a-1-named-closed-c5000"
    assert [plan.trial for plan in made] == [each.trial for each in rows]
    assert len({plan.trial for plan in made}) == len(made)
    # Pairs are interleaved both ways.
    sides = [each.arm for each in run(inquiry(own=Explain(6, 1))) if each.arm != "1-named"]
    a, b = "1-before", "1-after"
    assert sides == [a, b, b, a, a, b, b, a, a, b, b, a, "2-named"]


def shop(plan: TrialPlan, number: int) -> dict[str, Any]:
    """It calls something over a pool of connections, and behaves like a pool of that size."""
    size = int(plan.condition.host.get("ENV_SOCKETS", 20))
    cells = answered(min(size, plan.concurrency) / 0.2 * SIX[number % 6], plan)
    if size >= plan.concurrency:
        return cells
    return {**cells, "bottleneck": POOL, "strength": "weak", "predicted_rps": None}


def flat(plan: TrialPlan, number: int) -> dict[str, Any]:
    return answered(3000 * SIX[number % 6], plan)


def drifting(plan: TrialPlan, number: int) -> dict[str, Any]:
    """Each pair is a fifth quicker than the one before; the change is worth 10 %."""
    rps = 1000.0 * 1.2 ** ((number - 1) // 2) * (1.1 if plan.condition.knobs else 1.0)
    return answered(rps, plan, POOL)


def cpu_bound(plan: TrialPlan, _: int, busy: float = 1.0) -> dict[str, Any]:
    """All CPUs are busy for the load; or something else limits, at so many busy CPUs."""
    left = 1 - (plan.condition.spin or 0.0)
    return answered(8000.0 * min(1.0, left / busy), plan, HOST_CPU)


def pool_and_connections(plan: TrialPlan, number: int) -> dict[str, Any]:
    """A pool of 200 beside 205 downstream connections: the pool alone could give 2.5 %."""
    knobs = {"pool_size": 200, "downstream_connections": 205, **plan.condition.knobs}
    return answered(min(knobs.values()) / 0.2 * SIX[number % 6], plan, POOL)


def pool_and_carriers(plan: TrialPlan, number: int) -> dict[str, Any]:
    """Carriers have no bound: nothing says before that they are as full as the pool."""
    knobs = {**SETTINGS, **plan.condition.knobs}
    pool, carriers = knobs["pool_size"] / 0.2, knobs["virtual_thread_parallelism"] * 500.0
    named = POOL if pool <= carriers else "carrier threads"
    return answered(min(pool, carriers) * SIX[number % 6], plan, named)


def locked(plan: TrialPlan, number: int) -> dict[str, Any]:
    """Connections wait 200 ms each and then hold one lock."""
    lock_ms, connections = plan.condition.knobs.get("lock_ms", 50), plan.concurrency
    rps = connections * 1000 / max(200 + lock_ms, connections * lock_ms)
    return answered(rps * SIX[number % 6], plan)


def hardly(plan: TrialPlan, number: int) -> dict[str, Any]:
    # Between ×1.15 and ×1.19: ×1.11 and 5 % are within.
    rise = (1.15, 1.16, 1.17, 1.18, 1.19, 1.17)[number // 2 % 6] if plan.condition.knobs else 1
    return answered(4.0 * rise, plan)


def quick(plan: TrialPlan, number: int) -> dict[str, Any]:
    return answered(200.0 if plan.condition.knobs else 100.0, plan)


def proxied(busy: float | None = None, **cells: Any) -> Server:
    """Past Toxiproxy it does a third more. Through it the lab's parts keep so much of 2 CPUs busy,
    each a fifth."""

    def answers(plan: TrialPlan, number: int) -> dict[str, Any]:
        each = None if busy is None else busy * 2e6 / 3000 / 5
        parts = dict.fromkeys(CpuSplit.columns(), each)
        rps = 4000.0 if plan.condition.host else 3000.0
        return {**answered(rps, plan), **parts, **cells}

    return answers


AS_IT_WAS: When = lambda plan, _: plan.condition == AS_IT_IS  # noqa: E731
LOCK = partial(suspected, "lock")
PROXY = suspected("Toxiproxy", 2000)
# An experiment, with its server and what was read back of it; then its steps and its end.
OUTLINES: dict[str, tuple[tuple[Any, ...], str]] = {
    "nothing limits": ((inquiry(), altered(honest, bottleneck="none")), "none: load-is-limit"),
    "the generator limits": (
        (inquiry(), altered(honest, bottleneck="generator")), "generator: machine"),
    "nothing is named": ((inquiry(), altered(honest, bottleneck="unknown")), "unknown: unnamed"),
    "no verdict": ((inquiry(), altered(honest, bottleneck=None)), "unknown: unnamed"),
    "what has no lever": (
        (inquiry(), altered(honest, bottleneck="ports")), "ports: not-proven no-setting"),
    "no more steps than were asked for": (
        (inquiry(own=Explain(6, 1)),),
        "worker pool confirmed | downstream connections: steps-over"),
    "a wrong verdict": (
        (inquiry(), altered(honest, bottleneck=CONNECTIONS)),
        "downstream connections withdrawn: no-rise | unknown: not-confirmed no-rise"),
    "a suspect that is withdrawn makes way for the verdict of the same trial": (
        (inquiry(own=Explain(6, 4, CONNECTIONS)),),
        "downstream connections withdrawn: no-rise | worker pool confirmed | "
        "downstream connections confirmed | host CPU confirmed: falls | host CPU: follows-cpus"),
    "a suspect that is right": (
        (inquiry(own=Explain(6, 1, POOL)),),
        "worker pool confirmed | downstream connections: steps-over"),
    "a suspect that is named and withdrawn": (
        (inquiry(own=Explain(6, 4, CONNECTIONS)), altered(honest, bottleneck=CONNECTIONS)),
        "downstream connections withdrawn: no-rise | unknown: not-confirmed no-rise"),
    "a suspect without a lever": (
        (inquiry(own=Explain(6, 2, "generator")),),
        "generator not tried: no-lever | worker pool confirmed | "
        "downstream connections: steps-over"),
    "what behaves like a pool has the lever of its subject": (
        (of_a_service(downstream_connections=OwnLever("SOCKETS", 20)), shop, SERVICE),
        "downstream connections confirmed | none: load-is-limit"),
    "a variable that the service does not take": (
        (of_a_service(worker_pool=OwnLever("THREADS", 20)), shop, SERVICE),
        "worker pool inconclusive: unseen | unknown: not-confirmed unseen"),
    "a service without a lever": (
        (of_a_service(), shop, SERVICE), "worker pool: not-proven no-lever-of-subject"),
    "too few pairs": (
        (inquiry(own=Explain(5, 4)),),
        "worker pool inconclusive: few-pairs | unknown: not-confirmed few-pairs"),
    "a load that cannot be measured": (
        (inquiry(), lost("1-named", 2)), "unknown: invalid-twice generator-late"),
    "a load that the generator cannot send": (
        (inquiry(), lost("1-named", 2, "generator-full", bottleneck="generator")),
        "generator: machine generator-full"),
    "invalid trials that name host CPU": (
        (inquiry(), lost("1-named", 2, bottleneck=HOST_CPU)),
        "host CPU: invalid-twice generator-late"),
    "a side that cannot be measured": (
        (inquiry(), lost("1-after", 2)),
        "worker pool inconclusive: side-invalid generator-late | "
        "unknown: not-confirmed side-invalid generator-late"),
    "strength decides nothing": (
        (inquiry(own=Explain(6, 1)), altered(honest, strength="weak")),
        "worker pool confirmed | downstream connections: steps-over"),
    # 205 connections ask for 1,025 req/s, the pool gives 1,000: 2.5 % more.
    "a load without room": (
        (inquiry(concurrencies=(205,)),),
        "worker pool inconclusive: no-room | unknown: not-confirmed no-room"),
    "a step that allows no more than a little": (
        (suspected(POOL, 9000), flat, NEARLY),
        "worker pool inconclusive: small-step | none: steps-over"),
    "a suspected host CPU that is confirmed, whatever was named": (
        (inquiry(own=Explain(6, 4, HOST_CPU)), altered(cpu_bound, bottleneck="none")),
        "host CPU confirmed: falls | host CPU: follows-cpus"),
    "goodput that stays without CPUs": (
        (inquiry(), partial(cpu_bound, busy=0.5)),
        "host CPU withdrawn: no-fall | unknown: not-confirmed no-fall"),
    # A lock, or a hot thread: from a dose of 1 - busy on goodput falls with the CPUs, too.
    "a limit beside busy CPUs": (
        (inquiry(), partial(cpu_bound, busy=0.95)),
        "host CPU withdrawn: no-fall | unknown: not-confirmed no-fall"),
    "a dose that cannot be measured": (
        (inquiry(), altered(cpu_bound, lambda plan, _: plan.arm == "1-less", **invalid())),
        "host CPU inconclusive: side-invalid generator-late | "
        "unknown: not-confirmed side-invalid generator-late"),
    "a bound right behind the resource": (
        (inquiry(own=Explain(6, 1)), pool_and_connections, FEW_CONNECTIONS),
        "worker pool + downstream connections confirmed | worker pool: steps-over"),
    "a resource that the changed trials name": (
        (inquiry(own=Explain(6, 2)), pool_and_carriers),
        "worker pool withdrawn: no-rise | worker pool + carrier threads confirmed | "
        "carrier threads: steps-over"),
    "a resource that the changed trials name, without a step for it": (
        (inquiry(own=Explain(6, 1)), pool_and_carriers),
        "worker pool withdrawn: no-rise | unknown: not-confirmed no-rise"),
    # One connection: 250 ms become 225, so a closed load sends more.
    "a lock that nothing waited for": (
        (LOCK(1), locked, WITH_A_LOCK), "lock inconclusive: rise-by-time | none: steps-over"),
    "a lock that all wait for": (
        (LOCK(60), locked, WITH_A_LOCK), "lock confirmed | none: steps-over"),
    "a lock whose half gives hardly more than its time": (
        (LOCK(1), hardly, WITH_A_LOCK), "lock inconclusive: rise-by-time | none: steps-over"),
    "requests that took less than what was taken away": (
        (LOCK(1), quick, WITH_A_LOCK),
        "lock inconclusive: shorter-than-saved | none: steps-over"),
    "calls past Toxiproxy beside full CPUs": (
        (PROXY, proxied(0.97), PROXIED_CALLS),
        "Toxiproxy inconclusive: cpus-busy | none: steps-over"),
    "calls past Toxiproxy beside others": (
        (PROXY, proxied(0.75, others_cpu=0.2), PROXIED_CALLS),
        "Toxiproxy inconclusive: cpus-busy | none: steps-over"),
    "calls past Toxiproxy where host CPU is named": (
        (PROXY, proxied(0.5, bottleneck=HOST_CPU), PROXIED_CALLS),
        "Toxiproxy inconclusive: cpus-named | host CPU: steps-over"),
    "calls past Toxiproxy beside CPUs that are not known": (
        (PROXY, proxied(), PROXIED_CALLS),
        "Toxiproxy inconclusive: cpus-unknown | none: steps-over"),
    "calls past Toxiproxy with CPUs to spare": (
        (PROXY, proxied(0.7), PROXIED_CALLS), "Toxiproxy confirmed | none: steps-over"),
    "calls past Toxiproxy with CPUs of their own": (
        (PROXY, proxied(), WITH_CPUS), "Toxiproxy confirmed | none: steps-over"),
}  # fmt: skip


@pytest.mark.parametrize(("asked", "expected"), OUTLINES.values(), ids=OUTLINES)
def test_the_steps_of_an_inquiry_and_its_end(asked: tuple[Any, ...], expected: str) -> None:
    of, server, seen = (*asked, *(honest, SEEN)[len(asked) - 1 :])
    rows = run(of, server, seen)
    assert outline(findings(of, rows, seen)) == expected.split(" | ")
    assert len(rows) <= order_of(of, seen).most + 1


def test_a_goodput_of_0_has_a_least_ratio() -> None:
    # One answer in 5 s is 0.2 req/s; 2,000 is 10,000 times as much.
    nothing = altered(honest, AS_IT_WAS, ok=0, http_errors=900)
    first, *_ = steps(inquiry(own=Explain(6, 1)), nothing)
    assert (first.answer, first.least) == ("confirmed", True)
    assert first.value == pytest.approx(10_000, rel=0.02)


def test_pairs_of_a_machine_that_drifts() -> None:
    first, *_ = steps(inquiry(own=Explain(6, 1)), drifting)
    assert (first.answer, first.value, first.low) == ("confirmed", *[pytest.approx(1.1)] * 2)


@pytest.mark.parametrize("arm", ["1-named", "1-before", "1-after"])
def test_an_invalid_trial_is_run_once_more_and_that_is_counted(arm: str) -> None:
    of = inquiry(own=Explain(6, 1))
    rows = run(of, lost(arm, 1))
    first, end = findings(of, rows)
    assert (len(rows), first.answer) == (15, "confirmed")
    # A choice among trials must not be silent.
    side = arm.removeprefix("1-")
    assert first.again == ({} if side == "named" else {side: 1})
    assert end.again == (side == "named")


@pytest.mark.parametrize("pairs", [5, 6, 8])
def test_the_pairs_before_a_side_that_cannot_be_measured_count_if_they_are_six(pairs: int) -> None:
    over: When = lambda plan, nth: plan.arm == "1-before" and nth > pairs  # noqa: E731
    first, *_ = steps(inquiry(own=Explain(6, 1)), altered(cpu_bound, over, **invalid()))
    if pairs < 6:
        assert (first.answer, first.pairs) == ("inconclusive", 0)
    else:
        assert (first.answer, first.pairs, first.planned) == ("confirmed", pairs, 12)
        assert [remark.code for remark in first.ended] == ["side-invalid", "generator-late"]


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


def test_of_the_host_s_cpus_two_doses_are_taken_away() -> None:
    of = inquiry(own=Explain(6, 1))
    rows = run(of, cpu_bound)
    a, b, less = "1-before", "1-after", "1-less"
    assert [each.arm for each in rows] == ["1-named", *[a, b, less, less, b, a] * 6]
    conditions = {plan.arm: plan.condition for plan in plans(of, rows)}
    assert (conditions[b], conditions[less]) == (Condition(spin=0.1), Condition(spin=0.06))


@pytest.mark.parametrize("gone", [False, True])
def test_an_inquiry_goes_on_where_it_was_also_after_a_damaged_trial(gone: bool) -> None:
    of = inquiry()
    rows = run(of)
    assert order_of(of).next(rows) is None
    assert order_of(of).next([*rows, rows[-1]]) is None
    assert outline(findings(of, rows[:15]))[-1] == "unknown: not-finished"
    assert findings(of, []) == []
    # Rows of something else are no inquiry.
    others = [copy.replace(each, arm="7-after") for each in rows]
    assert order_of(of).next(others).arm == "1-named"
    for at in range(len(rows)):
        done = resumed(order_of(of), rows, at, lambda plan: honest(plan, 0), gone=gone)
        found = explain.findings_of(Outcome(of, done, Path()), {"a": SEEN}, 2, {})
        assert outline(list(found))[-1].startswith("host CPU: ")
        assert len(done) <= len(rows) + 1


def test_windows_of_an_inquiry_grow_once_one_was_too_short() -> None:
    of = inquiry(duration_s=5)
    short = invalid("window-short needed_s=8")
    plan = order_of(of).next([copy.replace(run(of)[0], **short)])
    assert (plan.arm, plan.duration_s) == ("1-named", 8)


def test_an_open_load_has_its_rate_and_the_corrected_p95() -> None:
    of = inquiry(modes=("open",))
    rows = run(of, altered(honest, p95_ms=300.0))
    assert {each.offered_rps for each in rows} == {8333}
    assert findings(of, rows)[0].p95[0] == 1.0
    with pytest.raises(WordError, match="RATE=auto"):
        order_of(inquiry(modes=("open",), routes=("/compute",)))


def test_the_load_s_own_connections_are_doubled_at_the_same_rate() -> None:
    """An open load whose connections are all busy: 100 of them answer 500 of 900 req/s."""

    def busy(plan: TrialPlan, number: int) -> dict[str, Any]:
        rps = min(plan.offered_rps or 0, plan.concurrency / 0.2)
        named = "connections of the load" if rps < 900 else "none"
        return answered(rps, plan, named) | {"p95_ms": 200.0}

    of = inquiry(modes=("open",), concurrencies=(100,), rate_rps=900)
    rows = run(of, busy)
    assert {(each.concurrency, each.offered_rps) for each in rows} == {
        (100, 900), (200, 900), (400, 900),
    }  # fmt: skip
    first, end = findings(of, rows)
    assert (first.answer, first.value) == ("confirmed", pytest.approx(1.8))
    assert (end.resource, end.condition.connections) == ("none", 400)


def test_findings_come_from_the_manifest_and_the_plans_of_the_trials(tmp_path: Path) -> None:
    of = inquiry()
    rows = run(of)
    run_dir = write_manifest(tmp_path, experiment=of, servers={"a": SEEN})
    for plan in plans(of, rows):
        (run_dir / "raw" / plan.trial).mkdir(parents=True)
        write_json(run_dir / "raw" / plan.trial / "plan.json", plan)
    assert list(explain.findings(Outcome(of, rows, run_dir))) == findings(of, rows)
    # A plan that cannot be read costs no finding.
    (run_dir / "raw" / rows[3].trial / "plan.json").write_text("{")
    assert list(explain.findings(Outcome(of, rows, run_dir))) == findings(of, rows)
    # The pool was changed; now the first trial is judged to show another limit.
    rows[0] = copy.replace(rows[0], bottleneck=CONNECTIONS)
    (only,) = explain.findings(Outcome(of, rows, run_dir))
    assert only.why[0].values == {"trials": len(rows), "arm": "1-after"}


def test_a_run_that_is_resumed_takes_no_trial_of_another_condition_for_its_own() -> None:
    of = inquiry()
    rows = run(of)
    conditions = {plan.trial: plan.condition for plan in plans(of, rows)}
    rows[0] = copy.replace(rows[0], bottleneck=CONNECTIONS)
    again = copy.replace(planner(of, snapshots={"a": SEEN}), conditions=conditions)
    plan = explain.design(again).next(rows)
    assert (plan.arm, plan.condition.knobs) == ("1-after", {"downstream_connections": 1000})


@pytest.mark.parametrize("reason", ["no-success", "mostly-errors"])
def test_trials_of_errors_alone_have_a_goodput_of_0_and_count(reason: str) -> None:
    def late(plan: TrialPlan, number: int) -> dict[str, Any]:
        if plan.condition.knobs:
            return answered(1000 * SIX[number % 6], plan)
        errors = invalid(reason, ok=0, http_errors=1000)
        return answered(2000, plan, "downstream timeout") | errors

    rows = run(inquiry(), late, snapshot(settings={**SETTINGS, "downstream_timeout_ms": 100}))
    assert [each.arm for each in rows if each.arm and each.arm.startswith("2")] == ["2-named"]
    assert len(rows) == 14


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("suspect", [None, CONNECTIONS, POOL])
def test_never_more_trials_than_were_said(count: int, suspect: str | None) -> None:
    of = inquiry(servers=("a", "b"), own=Explain(6, count, suspect))
    rows = run(of)
    # Host CPU has 36 trials.
    assert len(rows) <= order_of(of).most == 2 * (13 * count + 1 + 24)
    # One server after the other, each with its own end.
    half = len(rows) // 2
    assert [each.server for each in rows] == ["a"] * half + ["b"] * half
    ends = [each.server for each in findings(of, rows) if isinstance(each, Limit)]
    assert ends == ["a", "b"]


@pytest.mark.parametrize(("often", "answer"), [(4, "inconclusive"), (1, "confirmed")])
def test_a_side_with_more_repeats_on_warmer_jvms_decides_nothing(often: int, answer: str) -> None:
    cold: When = lambda plan, nth: plan.arm == "1-after" and nth in range(1, 2 * often, 2)  # noqa: E731
    server = altered(proxied(0.5), cold, **invalid("compiling"))
    first, *_ = steps(PROXY, server, PROXIED_CALLS)
    assert first.answer == answer
    if answer == "inconclusive":
        assert first.why[0].values == {"before": 0, "after": 4, "pairs": 6}


def test_each_trial_of_a_step_of_settings_is_on_a_jvm_of_its_own_and_others_share_one() -> None:
    def launches(server: Server) -> list[int]:
        return [each.launch or 0 for each in run(PROXY, server, PROXIED_CALLS)]

    assert launches(proxied(0.5)) == [0, *range(1, 13), 0]
    assert {each.launch for each in run(inquiry())} == {0}
    # An invalid trial is repeated on its own JVM, which is warmer by then.
    second: When = lambda plan, nth: (plan.arm, nth) == ("1-after", 2)  # noqa: E731
    once = altered(proxied(0.5), second, **invalid("compiling"))
    assert launches(once) == [0, 1, 2, 3, 3, *range(4, 13), 0]
