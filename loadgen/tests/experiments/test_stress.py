"""The search for a breaking point, on servers whose breaking point was planted."""

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lab.experiments.breaking.findings import MEDIAN, findings
from lab.experiments.breaking.findings import answers as said_first
from lab.experiments.breaking.order import design
from lab.experiments.breaking.search import Stress, outcome_of
from lab.experiments.kind import Outcome
from lab.experiments.objective import Objective
from lab.experiments.order import Design
from lab.judge import fairness
from lab.judge.checks import judge
from lab.judge.checks.data import wrk2_uncalibrated
from lab.model import (
    Counts,
    Experiment,
    Finding,
    Reading,
    Row,
    Standing,
    ToxicState,
    TrialPlan,
    TrialRecord,
    Unwatched,
    Verdict,
    cell_of,
    p95_of,
)
from support.altered import Server, When, altered, check_texts, in_launches, invalid
from support.fakes import IDENTITY, START, USAGE, measurement, reading, record, snapshot
from support.planned import experiment, planner, resumed, row

STRESS = Stress(Objective(p95_ms=500.0), first=100, step=1000, most=5000, resolution=50, fall=0.1)
LATE_GENERATOR = "generator-full"
FELL = "goodput-drift first_rps=900 second_rps=200"
TOO_SHORT = "window-short needed_s=999"
# 1600 is the middle of 1100 and 2100; 1850 and 1725 round down to 1848, 1720 (multiples of 8);
# then 1660 -> 1656 and between 1600 and 1656 56 > 50: 1628 -> 1624; 32 is enough. What breaks is
# tried twice.
TRIED = [100, 1100, 2100, 2100, 1600, 1848, 1848, 1720, 1720, 1656, 1656, 1624]
CRASH = "jvm-restarted"
CRASHED = "the JVM restarted during the trial"
HELD = (
    "held 1624 connections at p95 ≤ 500 ms (2706 req/s, p95 210 ms), not 1656 (2760 req/s offered)"
)
HELD_NOTHING = "no load was held at p95 ≤ 500 ms, not even 100 (148 req/s offered)"
TWICE = ": p95 700 ms; p95 800 ms, in 2 trials;…"
FEWER = "850 req/s, more than 10% below the 1000 of a smaller load"
GAP = "not 2100 (3500 req/s offered): p95 900 ms, in 2 trials; whether it holds "
SLOW = snapshot(toxics=ToxicState(("downstream/latency latency=300",), 300.0))
LATE = snapshot(downstream_delay_ms=300.0)
WRONG = snapshot(identity=dataclasses.replace(IDENTITY, model="b"))
OTHER_JVM = snapshot(identity=dataclasses.replace(IDENTITY, jvm_flags=("-Xmx1g",)))
MORE_THREADS = snapshot(settings={"pool_size": 300})
UNSEEN = Unwatched(START, START + timedelta(seconds=8))
UNLIKE = fairness.reasons(fairness.compare({"a": snapshot(), "b": MORE_THREADS}))
ERRORS = reading(counts=Counts(None, 0, 6750, 0, None, None, 15.0))
SILENCE = reading(0.0, corrected=None, raw=None)
UNCALIBRATED = dataclasses.replace(
    SILENCE, remarks=(wrk2_uncalibrated.remark(calibrated=3, threads=4),)
)
BUSY = dataclasses.replace(USAGE, window_cpu_s=28.8)
STOPPED = dataclasses.replace(USAGE, window_throttled_s=3.0)
GONE = dataclasses.replace(USAGE, window_cpu_s=None)
ROSE = "latency-drift first_ms=250 second_ms=500"


def search_of(**changes: Any) -> Experiment:
    return experiment(**{"kind": "stress", "modes": ("open",), "own": STRESS, **changes})


ALONE = search_of(servers=("a",))


def order_of(of: Experiment = ALONE) -> Design:
    return design(planner(of))


def holds(most: int) -> Server:
    """Answers what is offered up to `most` connections, and too late above."""

    def answers(plan: TrialPlan) -> dict[str, Any]:
        rps = float(plan.offered_rps or plan.concurrency * 5)
        late = 210.0 if plan.concurrency <= most else 900.0
        return {"achieved_rps": rps, "p95_ms": late, "raw_p95_ms": late, "ok": 1000}

    return answers


def run(of: Experiment, servers: dict[str, Server]) -> list[Row]:
    order = order_of(of)
    done: list[Row] = []
    while (plan := order.next(done)) is not None:
        assert len(done) < 300
        done.append(row(plan, **servers[plan.server](plan)))
    return done


def ran(servers: dict[str, Server], **changes: Any) -> tuple[Experiment, list[Row]]:
    """The search on these servers, and its rows."""
    of = search_of(servers=tuple(servers), **changes)
    return of, run(of, servers)


def findings_of(of: Experiment, rows: list[Row]) -> list[Finding]:
    return list(findings(Outcome(of, rows, Path())))


def tried(rows: list[Row], server: str = "a") -> list[int]:
    return [one.concurrency for one in rows if one.server == server]


def found(of: Experiment, rows: list[Row]) -> dict[tuple[str, int], tuple[float | None, str]]:
    return {(one.server, one.launch): (one.value, one.text) for one in findings_of(of, rows)}


def alone(server: Server, of: Experiment = ALONE) -> tuple[list[Row], float | None, str]:
    """The search on one server: its rows, its breaking point, and what is said of it."""
    rows = run(of, {"a": server})
    return rows, *found(of, rows)["a", 0]


def above(connections: int, server: Server, **cells: Any) -> Server:
    """The same server, with these cells above so many connections."""
    return altered(server, lambda plan, _: plan.concurrency > connections, **cells)


def gives_way(connections: int, reason: str) -> Server:
    """Measures nothing above so many connections, for this reason."""
    nothing = dict.fromkeys(("achieved_rps", "p95_ms", "raw_p95_ms", "ok"))
    return above(connections, holds(9999), **invalid(reason, **nothing))


def untold(when: Callable[[int], bool], server: Server) -> Server:
    """The same server, with invalid trials at some numbers of connections."""
    return altered(server, lambda plan, _: when(plan.concurrency), **invalid(LATE_GENERATOR))


def once(at: int, server: Server, **cells: Any) -> Server:
    """The same server, with these cells in its first trial of so many connections."""
    return altered(server, lambda plan, nth: (plan.concurrency, nth) == (at, 1), **cells)


COUNTED = altered(holds(9999), ok=1970, http_errors=0, timeouts=0)
THOUSAND = altered(holds(9999), achieved_rps=1000.0, p95_ms=300.0)


@pytest.mark.parametrize(
    ("p95_ms", "reasons", "says"),
    [
        (900.0, (TOO_SHORT,), "p95 900 ms"),
        (900.0, (FELL, TOO_SHORT), "not steady: goodput went from 900 to 200 req/s"),
        # Fast enough as far as it was seen, so nobody knows.
        (400.0, (TOO_SHORT,), None),
        (900.0, (TOO_SHORT, LATE_GENERATOR), None),
    ],
)
def test_latencies_beyond_the_window_break_a_load(
    p95_ms: float, reasons: tuple[str, ...], says: str | None
) -> None:
    short = invalid("; ".join(reasons), p95_ms=p95_ms, raw_p95_ms=p95_ms)
    wide = search_of(servers=("a",), own=dataclasses.replace(STRESS, resolution=1000))
    _, value, text = alone(above(1099, holds(5000), **short), wide)
    assert value == (1100 if says else None)
    assert says is None or f"(1833 req/s offered): {says}" in text


@pytest.mark.parametrize("most", [222, 1100, 1101, 2345, 3000, 4321])
def test_the_planted_breaking_point_is_found_to_the_resolution(most: int) -> None:
    _, value, text = alone(holds(most))
    assert most < value <= most + STRESS.resolution
    assert "held" in text


@pytest.mark.parametrize(
    ("server", "connections", "value", "says"),
    [
        (holds(1650), TRIED, 1656.0, f"{HELD}: p95 900 ms"),
        (holds(1), [100, 100], 100.0, f"{HELD_NOTHING}: p95 900 ms"),
        (gives_way(1650, f"{CRASH}; cold-silent"), TRIED, 1656.0, f"{HELD}: {CRASHED}"),
    ],
    ids=["a breaking point", "a server that does not even hold the first", "a JVM that restarts"],
)
def test_ramp_then_bisection(
    server: Server, connections: list[int], value: float, says: str
) -> None:
    rows, *told = alone(server)
    assert tried(rows) == connections
    assert told == [value, f"{says}, in 2 trials; then: unknown"]


@pytest.mark.parametrize("at", [100, 1100, 2100, 3100, 5000])
def test_one_noisy_break_does_not_end_the_ramp(at: int) -> None:
    rows, value, text = alone(once(at, holds(99_999), p95_ms=900.0))
    assert tried(rows) == sorted([100, 1100, 2100, 3100, 4100, 5000, at])
    assert value is None
    assert text.endswith("the most that was tried (5000)")


@pytest.mark.parametrize("at", [1100, 1600, 1624])
def test_one_noisy_break_does_not_lower_the_breaking_point(at: int) -> None:
    rows, value, text = alone(once(at, holds(1650), p95_ms=900.0))
    assert tried(rows).count(at) == 2
    assert value == 1656
    # Near the limit it is said that the search errs upwards.
    other = "p95 210 ms) in one of 2 trials (the other: p95 900 ms), not 1656"
    assert (other in text) == (at == 1624)


def test_servers_take_turns_until_each_is_done() -> None:
    rows = run(search_of(), {"a": holds(222), "b": holds(99_999)})
    assert [one.server for one in rows[:6]] == ["a", "b", "a", "b", "a", "b"]
    assert tried(rows, "b") == [100, 1100, 2100, 3100, 4100, 5000]
    assert (rows[0].trial, rows[3].trial) == ("001-a-open-c100", "004-b-open-c1100")


def test_the_rate_leaves_connections_to_spare_up_to_the_objective() -> None:
    rows, *_ = alone(holds(222))
    # 1.2 × rate × 0.5 s, or 3 standard deviations of a Poisson distribution more. RATE=auto would
    # offer 4,950 req/s, and keep all 1,100 busy from a latency of 222 ms on.
    assert [one.offered_rps for one in rows[:2]] == [148, 1833]
    assert STRESS.objective.connections(1833) == 1100
    closed = search_of(servers=("a",), modes=("closed",))
    assert {one.offered_rps for one in run(closed, {"a": holds(222)})} == {None}


def test_a_smaller_load_may_do_less_without_being_broken() -> None:
    """2100 did more than 1600 can: only smaller loads are compared with."""
    rows, *_ = alone(holds(1650))
    at = {one.concurrency: one for one in rows}
    assert outcome_of(STRESS, at[1600], [at[2100]], after_miss=False)[0] == "held"


def test_an_invalid_trial_is_run_once_more() -> None:
    rows, *_ = alone(once(1100, holds(1650), **invalid(LATE_GENERATOR)))
    assert tried(rows)[:5] == [100, 1100, 1100, 2100, 2100]
    assert len({one.trial for one in rows}) == len(rows)


def test_four_times_invalid_ends_the_search_and_says_why() -> None:
    of, rows = ran({"a": untold(lambda at: at == 2100, holds(9999)), "b": holds(222)})
    # Below what cannot be told it goes on, to the largest load that can.
    assert tried(rows) == [100, 1100, 2100, 2100, 2100, 2100, 1600, 1848, 1968, 2032, 2064]
    value, text = found(of, rows)["a", 0]
    assert value is None
    assert text == (
        "held at least 2064 connections at p95 ≤ 500 ms (3440 req/s, p95 210 ms); whether it holds "
        "2100 this machine cannot tell, for 4 trials do not say, the last one: "
        "generator-full"
    )
    assert found(of, rows)["b", 0][0] is not None


@pytest.mark.parametrize(
    ("first", "later", "trials", "value", "says"),
    [
        # Once, then invalid for another reason: not to be told.
        (CRASH, LATE_GENERATOR, 5, None, f"4 trials do not say, the last one: {LATE_GENERATOR}"),
        # The other way round it gives way twice.
        (LATE_GENERATOR, CRASH, 3, 1120.0, f"not 1120 (1866 req/s offered): {CRASHED}"),
    ],
)
def test_giving_way_once_is_no_finding(
    first: str, later: str, trials: int, value: float | None, says: str
) -> None:
    other: When = lambda plan, nth: plan.concurrency > 1100 and nth == 1  # noqa: E731
    rows, found_at, text = alone(altered(gives_way(1100, later), other, **invalid(first)))
    assert tried(rows)[: trials + 3] == [100, 1100, *[2100] * trials, 1600]
    assert found_at == value
    assert says in text
    assert value is None or ", in 2 trials;" in text


def judged(of: TrialRecord, said: Reading) -> str:
    """The reasons of such a trial as its row has them."""
    return cell_of(judge(measurement(of, said), start=snapshot()).reasons)


@pytest.mark.parametrize(
    ("server", "value", "says"),
    [
        (once(100, altered(holds(1), p95_ms=800.0), p95_ms=700.0), 100, f"{HELD_NOTHING}{TWICE}"),
        (above(1000, COUNTED, timeouts=30), 1032, "…: 1.50% errors, above 1.00%, in 2 trials; …"),
        (above(1100, THOUSAND, achieved_rps=850.0), 1120, f"…: {FEWER}, in 2 trials;…"),
        # Others may be why.
        (
            above(1100, THOUSAND, achieved_rps=850.0, others_cpu=0.4),
            None,
            f"…cannot tell…({FEWER})",
        ),
        (above(1650, altered(holds(9999), overloaded=False), overloaded=True), 1656, "…"),
        # The gates tell that a server failed.
        (
            gives_way(1650, judged(record(), ERRORS)),
            1656,
            "…: no answer was a success, in 2 trials;…",
        ),
        (
            gives_way(1650, judged(record(), SILENCE)),
            1656,
            "…: nothing was answered in the measured window, in 2 trials;…",
        ),
        # Below a load that cannot be told, and a gap that cannot be told below one that broke.
        (
            untold(lambda at: at == 2100, holds(1650)),
            1656,
            f"{HELD}: p95 900 ms, in 2 trials; then: unknown",
        ),
        (untold(lambda at: 1500 < at < 2100, holds(1999)), None, f"held at least …{GAP}…"),
    ],
)
def test_what_breaks_a_load_is_said(server: Server, value: int | None, says: str) -> None:
    _, found_at, text = alone(server)
    assert found_at == value
    check_texts([text], says)


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (record(before=SLOW, after=SLOW), ERRORS),  # Not those that the run began with.
        (record(before=LATE, after=LATE), ERRORS),
        (record(before=MORE_THREADS, after=MORE_THREADS), ERRORS),
        (record(before=WRONG, after=WRONG), ERRORS),
        (record(after=SLOW), ERRORS),
        (record(after=LATE), SILENCE),
        (record(after=OTHER_JVM), ERRORS),
        (record(after=MORE_THREADS), ERRORS),
        (record(toxic_changes=("downstream/latency at 12:00:14",)), SILENCE),
        (record(unwatched=(UNSEEN,)), ERRORS),
        (record(unequal=UNLIKE), ERRORS),
        (record(), UNCALIBRATED),
        (record(usage=BUSY), SILENCE),
        (record(usage=STOPPED), SILENCE),
        (record(usage=GONE), SILENCE),
    ],
)
def test_a_lab_that_is_not_as_planned_breaks_no_server(of: TrialRecord, said: Reading) -> None:
    _, value, text = alone(gives_way(1100, judged(of, said)))
    assert value is None
    assert "cannot tell" in text


@pytest.mark.parametrize("change", [{}, {"step": 777}, {"first": 5000}, {"resolution": 1}])
@pytest.mark.parametrize("most", [1, 222, 1101, 1650, 3000, 4321, 4999, 99_999])
def test_never_more_trials_than_were_said(most: int, change: dict[str, int]) -> None:
    own = dataclasses.replace(STRESS, **change)
    of, rows = ran({"a": holds(most), "b": holds(2000)}, own=own, launches=2)
    assert len(rows) <= order_of(of).most
    # 100, 1100, …, 4100, 5000 and five halvings of 1000 to 50, each twice.
    assert order_of().most == 2 * (6 + 5)


def test_launches_are_searched_one_after_the_other_and_have_a_median() -> None:
    server = in_launches((1,), holds(222), holds(622))
    of, rows = ran({"a": server, "b": server}, launches=2)
    assert [one.launch for one in rows] == sorted(one.launch for one in rows)
    first_of_second = next(one for one in rows if one.launch == 2)
    assert first_of_second.server == "b"
    assert first_of_second.trial.endswith("-l2")
    finds = [one for one in findings_of(of, rows) if one.server == "a"]
    assert ([one.launch for one in finds], finds[2].name) == ([1, 2, 0], MEDIAN)
    assert finds[2].value == (finds[0].value + finds[1].value) / 2
    assert "no interval" in finds[2].text


def test_a_search_goes_on_where_it_was() -> None:
    of = search_of()
    servers = {"a": holds(1650), "b": holds(2222)}
    rows = run(of, servers)
    for count in range(len(rows)):
        plan = order_of(of).next(rows[:count])
        assert plan.trial == rows[count].trial
    assert order_of(of).next(rows) is None
    assert "not finished" in found(of, rows[:3])["a", 0][1]


def test_rows_of_something_else_are_no_search() -> None:
    rows, *_ = alone(holds(222))
    others = [dataclasses.replace(one, concurrency=7) for one in rows]
    assert order_of().next(others).concurrency == 100


@pytest.mark.parametrize("gone", [False, True])
def test_a_search_goes_on_after_a_damaged_trial(gone: bool) -> None:
    rows, value, _ = alone(holds(1650))
    for at in range(len(rows)):
        done = resumed(order_of(), rows, at, holds(1650), gone=gone)
        assert found(ALONE, done)["a", 0][0] == value
        assert len(done) <= len(rows) + 1


def test_a_window_that_was_too_short_is_longer_at_the_second_try() -> None:
    rows, *_ = alone(holds(222))
    short = "window-short needed_s=28"
    plan = order_of().next([dataclasses.replace(rows[0], **invalid(short), p95_ms=400.0)])
    assert (plan.concurrency, plan.duration_s) == (100, 28)


def test_a_trial_that_is_not_asked_for_any_more_is_left_out() -> None:
    of, rows = ran({"a": once(1100, holds(1650), **invalid(LATE_GENERATOR)), "b": holds(222)})
    turned = [dataclasses.replace(one, valid=True) for one in rows]
    assert found(of, turned) == found(of, rows)
    assert order_of(of).next(turned) is None
    assert found(of, [*rows, rows[-1]]) == found(of, rows)


def test_p95_is_the_corrected_one_in_an_open_load() -> None:
    rows, *_ = alone(holds(1))
    both = dataclasses.replace(rows[0], p95_ms=1.0, raw_p95_ms=2.0)
    assert (p95_of(both), p95_of(dataclasses.replace(both, mode="closed"))) == (1.0, 2.0)


def test_a_load_that_others_may_have_broken_is_no_breaking_point() -> None:
    rows, value, text = alone(above(1650, altered(holds(1650), others_cpu=None), others_cpu=0.4))
    assert value is None
    why = "cannot tell, for 4 trials do not say, the last one: work outside the lab used 40%"
    assert why in text
    # What was held, was.
    assert max(one.concurrency for one in rows if one.others_cpu is None) <= 1650


def test_what_each_server_held_is_recorded_once_the_last_launch_is_searched() -> None:
    of = search_of(launches=2)
    rows, order = run(of, {"a": holds(1_150), "b": holds(2_200)}), order_of(of)
    held = {
        server: max(
            (one for one in rows if (one.server, one.launch) == (server, 2) and one.p95_ms == 210),
            key=lambda one: one.concurrency,
        ).trial
        for server in ("a", "b")
    }
    assert [*order.to_record(rows)] == [*held.values()]
    first = next(at for at, _ in enumerate(rows) if [*order.to_record(rows[:at])])
    assert [*order.to_record(rows[:first])] == [held[rows[first - 1].server]]
    assert first < len(rows)


def test_a_pool_at_its_bound_breaks_though_its_latency_is_still_below_the_objective() -> None:
    """600 connections are offered the 1,000 req/s of 200 threads that wait 0.2 s. They do 993, so
    a backlog grows, and the trial is invalid: its latency rises."""
    rose = invalid(ROSE, bottleneck="worker pool", achieved_rps=993.0, p95_ms=450.0)
    _, value, text = alone(above(599, holds(9999), **rose))
    assert value == 600
    assert text == (
        "held 568 connections at p95 ≤ 500 ms (946 req/s, p95 210 ms), not 600 (1000 req/s "
        "offered): not steady: the mean latency went from 250 to 500 ms between the halves of the "
        "window, in 2 trials; then: worker pool (weak, at 600 by 2 trials)"
    )


def test_in_a_closed_load_a_latency_that_rises_within_the_objective_says_nothing() -> None:
    of = search_of(servers=("a",), modes=("closed",))
    plain = altered(holds(9999), p95_ms=None, raw_p95_ms=300.0)
    _, value, text = alone(above(100, plain, **invalid(ROSE)), of)
    assert value is None
    assert "cannot tell" in text
    late = above(100, altered(plain, raw_p95_ms=1.0), **invalid(ROSE, raw_p95_ms=600.0))
    assert alone(late, of)[1] is not None


def test_what_was_only_slowed_by_its_warm_up_was_held() -> None:
    late = "latency-drift first_ms=400 second_ms=210"
    rows, value, _ = alone(above(100, holds(1650), **invalid(late)))
    assert tried(rows)[:3] == [100, 1100, 2100]
    assert value is None  # Above 1650 they are late, and may be so for the warm-up.


def test_what_gave_way_is_told_by_the_valid_trial() -> None:
    plain = altered(holds(1650), bottleneck="Toxiproxy", strength="weak")
    second: When = lambda plan, nth: plan.concurrency > 1650 and nth == 2  # noqa: E731
    rows, *_ = alone(altered(plain, second, **invalid(ROSE)))
    verdicts = {}
    for one in rows:
        busy = Standing((70, 90)[one.valid], 100, "CPUs", resource="Toxiproxy")
        verdicts[one.trial] = Verdict("Toxiproxy", "weak", "excess", None, (busy,))
    first = findings(Outcome(ALONE, rows, Path(), verdicts))[0]
    assert first.text.endswith("; then: Toxiproxy, 90 of 100 CPUs (weak, at 1,656 by 2 trials)")


def of_launches(told: int, rest: Server, launches: int = 6) -> list[Finding]:
    """The findings of launches of which so many break at 1656, and the rest are that server."""
    of = search_of(servers=("a",), launches=launches)
    return findings_of(of, run(of, {"a": in_launches(range(1, told + 1), holds(1650), rest)}))


def test_equal_launches_have_an_interval_that_holds_the_truth() -> None:
    *each, middle = of_launches(6, holds(1650))
    assert {(one.low, one.value, one.high) for one in each} == {(1624.0, 1656.0, 1656.0)}
    assert (middle.low, middle.value, middle.high) == (1624.0, 1656.0, 1656.0)
    assert middle.text == (
        "1656 connections over 6 launches, 95 % interval 1624 to 1656; then: unknown"
    )


# It held 3,100, and nobody knows more.
FURTHER = untold(lambda at: at > 3100, holds(9999))


def test_a_launch_of_which_nobody_can_tell_pulls_no_median_down() -> None:
    *_, stuck, middle = of_launches(5, FURTHER)
    assert (stuck.value, stuck.low, stuck.high) == (None, 4072 - 972, None)
    assert (middle.value, middle.low, middle.high) == (1656, 1624, None)
    assert "95 % interval from 1624 on; 1 of them lie between what was held and what" in middle.text
    assert of_launches(3, FURTHER)[-1].value is None


@pytest.mark.parametrize(
    ("told", "rest", "launches", "without"),
    [
        (2, FURTHER, 6, 4),
        (0, untold(lambda _: True, holds(1)), 2, 2),
        (1, holds(99_999), 2, 1),
    ],
)
def test_no_median_without_breaking_points(
    told: int, rest: Server, launches: int, without: int
) -> None:
    last = of_launches(told, rest, launches)[-1]
    assert last.value is None
    assert last.text == f"no median: {without} of {launches} launches without a breaking point"


def test_launches_that_have_not_ended_are_said() -> None:
    of = search_of(servers=("a",), launches=2)
    middle = findings_of(of, run(of, {"a": holds(1650)})[:-3])[-1]
    assert middle.value == 1656
    assert "1656 connections over 1 launch, no interval; 1 more have not ended" in middle.text


def test_the_answer_names_each_server_and_what_gave_way() -> None:
    of = search_of()
    lines = said_first(of, findings_of(of, run(of, {"a": holds(1650), "b": holds(99_999)})))
    assert [line[0] for line in lines[:2]] == ["a", "b"]
    assert lines[0][2] == "then: unknown"
    assert len(lines[1]) == 2
    assert lines[2][0].startswith("One trial that holds a load decides")
    assert "This orders no servers; LAUNCHES=6" in lines[2][0]
    assert said_first(of, ()) == ()
    # The answer of several launches is their median, or the first one.
    of, rows = ran({"a": holds(1650), "b": holds(222)}, launches=6)
    lines = said_first(of, findings_of(of, rows))
    median = "1656 connections over 6 launches, 95 % interval 1624 to 1656"
    assert lines[0] == ("a", median, "then: unknown")
    assert "orders no servers" not in lines[2][0]
    # It was ended in the second launch.
    first, _, note = said_first(of, findings_of(of, [one for one in rows if one.launch == 1]))
    assert first[1].startswith("held 1624 connections")
    assert "This orders no servers" in note[0]
