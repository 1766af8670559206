"""`capacity` with PROVE=yes: what gave way is lifted, or CPUs are taken away; then it searches."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from lab.experiments import capacity
from lab.experiments.kind import Outcome
from lab.experiments.searching.answers import answers
from lab.experiments.searching.deprived import Deprived
from lab.experiments.searching.findings import findings
from lab.load.measure import PLAN
from lab.model import AS_IT_IS, UNKNOWN, Condition, Finding, Row, Snapshot, TrialPlan
from lab.model.knobs import PROXIED
from lab.store.records import write_json
from support.altered import When, altered, check_texts, invalid
from support.planned import planner, row
from support.runs import write_manifest
from support.searched import (
    CAPACITY,
    LATE_GENERATOR,
    POOL,
    PROVE,
    Server,
    a_pool_of_threads,
    found,
    on_the_machine,
    searched,
    server,
    untold,
)

# 1.2 × 4 × 1,000 req/s × 0.5 s.
LIFT = Condition(knobs={"pool_size": 2400})
LATE = invalid(LATE_GENERATOR)
THROUGH = dataclasses.replace(POOL, settings={**POOL.settings, "downstream_url": PROXIED})


def proven(
    tmp_path: Path, answer: Server, seen: Snapshot = POOL, **changes: Any
) -> tuple[tuple[str, ...], list[Row], list[Finding]]:
    """The search with PROVE=yes of a server with a pool of 200 threads: its answer, its rows, and
    what was found of the lift. It is on disk."""
    of = searched(own=PROVE, **changes)
    order = capacity.design(planner(of, snapshots={"a": seen}))
    run_dir, rows = write_manifest(tmp_path, servers={"a": seen}), list[Row]()
    while (plan := order.next(rows)) is not None:
        rows.append(row(plan, **answer(plan)))
        (run_dir / "raw" / plan.trial).mkdir(parents=True)
        write_json(run_dir / "raw" / plan.trial / PLAN, plan)
    assert len(rows) <= order.most
    told = findings(Outcome(of, rows, run_dir))
    return answers(of, told)[0], rows, [one for one in told if one.name.startswith("lifted")]


def test_what_gave_way_is_lifted_and_the_capacity_searched_again(tmp_path: Path) -> None:
    line, rows, (proof, detail, *_) = proven(tmp_path, a_pool_of_threads(), launches=6)
    with_it = [one for one in rows if one.arm == "lifted"]
    assert rows[-len(with_it) :] == with_it
    # From the rate that broke first.
    assert with_it[0].offered_rps == min(one.offered_rps or 0 for one in rows if one.p99_ms == 900)
    assert (proof.value, proof.low, proof.high) == (2594, 2594, 2651)
    assert proof.text == (
        "lifted to pool_size=2400: holds 2,594 req/s [2,594, 2,651], ×2.59 (confirmed); "
        "then: host CPU (strong, at 2,651 by 6 trials)"
    )
    assert detail.text.startswith("lifted: held 2,594 req/s (p99 210 ms; 2 of 2 trials), broke")
    assert line[2:] == ("then: worker pool (strong, at 1,022 by 6 trials)", proof.text)
    # A lift that has not ended answers nothing.
    ended = max(at for at, row in enumerate(rows) if row.arm and row.launch == 1)
    assert ended < len(rows) - 1
    of = searched(own=PROVE, launches=6)
    (run_dir,) = tmp_path.iterdir()
    other_rules = "not to be told by this version's rules"
    for complete, why in ((False, "not finished"), (True, other_rules)):
        told = findings(Outcome(of, rows[: ended + 1], run_dir, complete=complete))
        (proof,) = [one for one in told if one.name == "lifted"]
        assert f"], {why}; then: host CPU" in proof.text


def test_lifted_trials_have_the_lever_of_explain_and_resume(tmp_path: Path) -> None:
    _, rows, _ = proven(tmp_path, a_pool_of_threads(), launches=2)
    order = capacity.design(planner(searched(own=PROVE, launches=2), snapshots={"a": POOL}))
    for at, one in enumerate(rows):
        plan = order.next(rows[:at])
        assert (plan.trial, plan.condition) == (one.trial, LIFT if one.arm else AS_IT_IS)
    # The launches of the one, then those of the other: each has JVMs of its own.
    assert [(one.launch, one.arm) for one in rows] == sorted(
        ((one.launch, one.arm) for one in rows), key=lambda jvm: (jvm[1] or "", jvm[0])
    )
    assert {one.launch for one in rows if one.arm} == {1, 2}
    assert "-lifted-" in rows[-1].trial


def test_a_lever_that_changes_nothing_proves_nothing(tmp_path: Path) -> None:
    _, rows, (proof, *_) = proven(tmp_path, server(1000, name="worker pool"), launches=6)
    assert {row.offered_rps for row in rows if row.arm} == {1000, 1022}
    assert proof.text == (
        "lifted to pool_size=2400: holds 1,000 req/s [1,000, 1,022], ×1.00 (not confirmed: "
        "more of it is no help); then: worker pool (strong, at 1,022 by 6 trials)"
    )


def behind_the_proxy(plan: TrialPlan) -> dict[str, Any]:
    return server(1500 if plan.condition.host else 1000, name="Toxiproxy")(plan)


def open_above(plan: TrialPlan, nth: int) -> bool:
    return (plan.launch, plan.arm) == (1, None) and (plan.offered_rps or 0) > 1000


LIFTS: dict[str, tuple[tuple[Server, Snapshot, int], str]] = {
    "one that frees the CPUs of the proxy": (
        (behind_the_proxy, THROUGH, 6),
        "…SERVER_DOWNSTREAM_URL=…(inconclusive: the CPU time of Toxiproxy went with it)…",
    ),
    "one of few launches": (
        (a_pool_of_threads(), POOL, 0),
        "…, ×2.59 (no proof without an interval: LAUNCHES=6); then: host CPU…",
    ),
    "one with which nothing can be told": (
        (altered(a_pool_of_threads(), lambda plan, nth: plan.arm == "lifted", **LATE), POOL, 0),
        f"lifted to pool_size=2400: cannot be told: {LATE_GENERATOR}",
    ),
    "one where a launch has no upper end": (
        (altered(a_pool_of_threads(), open_above, **LATE), POOL, 2),
        "…×2.59 (inconclusive: how much it holds without is open above); then: host…",
    ),
}


@pytest.mark.parametrize(("asked", "text"), LIFTS.values(), ids=LIFTS)
def test_a_lift_that_proves_nothing_says_why(
    tmp_path: Path, asked: tuple[Server, Snapshot, int], text: str
) -> None:
    answer, seen, launches = asked
    _, _, (proof, *_) = proven(tmp_path, answer, seen, launches=launches)
    check_texts([proof.text], text)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("generator", "only another machine has more of it"),
        ("event loop", "this server has no setting loops"),
        ("connections of the load", "connections follow from the rate"),
        (UNKNOWN, "no resource was named"),
    ],
)
def test_a_resource_without_a_lift_says_why(tmp_path: Path, name: str, why: str) -> None:
    line, rows, [proof] = proven(tmp_path, server(1000, name=name))
    assert {one.arm for one in rows} == {None}
    assert line[3:] == (proof.text,) == (f"not lifted: {why}",)


def test_a_server_that_holds_nothing_is_not_lifted(tmp_path: Path) -> None:
    line, _, [proof] = proven(tmp_path, server(0))
    assert line[1].startswith("does not hold 1 req/s")
    assert proof.text == "not lifted: what launch 0 holds is nothing that was tried"


def test_the_cpus_of_the_machine_are_proved_by_taking_some_away(tmp_path: Path) -> None:
    line, rows, [proof] = proven(tmp_path, on_the_machine(), launches=2)
    tried = [one for one in rows if one.arm]
    assert rows[-6:] == tried
    # In turns on the JVM that runs: all of them, fewer; then a rate that fewer are enough for.
    assert [(one.offered_rps, one.arm, one.launch) for one in tried] == [
        *2 * ((1000, "all-cpu", 0), (1000, "less-cpu", 0)),
        *2 * ((700, "less-cpu", 0),),
    ]
    assert proof.text == (
        "with 20% of the CPUs taken away it breaks at 1,000 req/s and holds 700 req/s, and with "
        "all of them it held 1,000 req/s in between (confirmed: this rate takes the CPUs; that "
        "more of them would raise it is not tried)"
    )
    assert line[2:] == ("then: host CPU (strong, at 1,022 by 4 trials)", proof.text)
    # They change no answer, and go on after an interrupt.
    of = searched(own=PROVE, launches=2)
    plain = searched(launches=2)
    assert found(plain, rows) == found(plain, rows[:-6])
    order = capacity.design(planner(of, snapshots={"a": POOL}))
    for at, one in enumerate(rows):
        plan = order.next(rows[:at])
        assert (plan.trial, plan.condition.spin) == (
            one.trial,
            0.2 if one.arm == "less-cpu" else None,
        )


def test_trials_with_fewer_cpus_at_another_rate_are_left_out(tmp_path: Path) -> None:
    _, rows, _ = proven(tmp_path, on_the_machine())
    tried = [one for one in rows if one.arm]
    other = [dataclasses.replace(one, offered_rps=777) for one in tried[:3]]
    whole = Deprived.of(CAPACITY.objective, 1000, tried)
    assert Deprived.of(CAPACITY.objective, 1000, [*other, *tried]) == whole
    assert whole.next is None


def drifting(plan: TrialPlan) -> dict[str, Any]:
    return server(900 if plan.arm else 1000)(plan) | {"spun": plan.condition.spin}


@pytest.mark.parametrize(
    ("answer", "trials", "text"),
    [
        (
            on_the_machine(falls=False),
            4,
            "with 20% of the CPUs taken away it still holds 1,000 req/s (not confirmed: this rate "
            "does not take all CPUs)",
        ),
        (
            on_the_machine(spun=0.5),
            6,
            "with 50% of the CPUs taken away it breaks at 1,000 req/s, and at 700 req/s too "
            "(inconclusive: the spinner does more than take CPUs)",
        ),
        (
            on_the_machine(spun=0.02),
            4,
            "with 2% of the CPUs taken away it cannot be told: the spinner got 2% of the CPUs only",
        ),
        (
            altered(on_the_machine(), lambda plan, nth: plan.condition.spin is not None, **LATE),
            4,
            f"with 20% of the CPUs taken away it cannot be told: {LATE_GENERATOR}",
        ),
        (
            drifting,
            3,
            "inconclusive: 1,000 req/s broke again with all CPUs, in the JVM that was to be tried "
            "with fewer",
        ),
    ],
    ids=["it holds on", "too much", "too little", "a starved generator", "a machine that drifts"],
)
def test_fewer_cpus_without_a_proof(tmp_path: Path, answer: Server, trials: int, text: str) -> None:
    _, rows, [proof] = proven(tmp_path, answer)
    assert sum(one.arm is not None for one in rows) == trials
    assert proof.text == text


@pytest.mark.parametrize(
    ("arm", "with_fewer", "with_all"),
    [("all-cpu", "0 of 2", "2 of 3"), ("less-cpu", "1 of 3", "2 of 2")],
)
def test_a_rate_near_the_capacity_proves_nothing(
    tmp_path: Path, arm: str, with_fewer: str, with_all: str
) -> None:
    """At its capacity a server holds a rate every other time, with or without the spinner."""
    first: When = lambda plan, nth: (plan.arm, plan.offered_rps, nth) == (arm, 1000, 1)  # noqa: E731
    p99_ms = 900.0 if arm == "all-cpu" else 210.0
    other = altered(on_the_machine(), first, p99_ms=p99_ms, max_ms=p99_ms, spun=0.2)
    _, _, [proof] = proven(tmp_path, other)
    assert proof.text.endswith("(inconclusive: at a rate near what it holds trials go either way)")
    fewer = f"CPUs taken away it holds 1,000 req/s in {with_fewer} trials and 700 req/s in"
    assert fewer in proof.text
    assert f"with all of them it holds 1,000 req/s in {with_all} trials (" in proof.text


def test_a_lift_beyond_what_the_generator_sends_is_confirmed_from_below(tmp_path: Path) -> None:
    answer = untold(lambda rate: rate >= 2000, a_pool_of_threads(9999))
    _, _, (proof, *_) = proven(tmp_path, answer, launches=6)
    assert proof.value is not None
    assert proof.text.startswith(f"lifted to pool_size=2400: holds at least {proof.value:,.0f} req")
    assert "(confirmed); then: cannot be told: generator-full" in proof.text
