"""`capacity`: searched rates of one JVM: which trial comes next, and when the search ends."""

import dataclasses
import math
import random
from itertools import accumulate
from typing import Any

import pytest

from experiments.conftest import refusal
from lab.experiments import capacity
from lab.experiments.objective import Objective
from lab.model import Experiment, Row, Spread, TrialPlan
from support.altered import When, altered, invalid
from support.fakes import snapshot
from support.planned import planner, resumed, row
from support.queueing import open_load
from support.searched import (
    CAPACITY,
    FILLED,
    LATE_GENERATOR,
    Server,
    alone,
    found,
    order_of,
    ran,
    run,
    searched,
    server,
    untold,
)


@pytest.mark.parametrize("most", [1, 7, 97, 499, 500, 501, 1000, 4310, 6223, 99_999])
def test_the_planted_capacity_is_found_to_three_percent(most: int) -> None:
    rows, answer, _ = alone(server(most))
    assert answer.value is not None
    assert answer.low == answer.value
    assert answer.low <= most < answer.high
    assert answer.high - answer.low <= max(1, 0.03 * answer.low)
    # Low end and high end were tried three times each, and all agreed.
    for end in (answer.low, answer.high):
        assert sum(one.offered_rps == end for one in rows) == 3


def test_ramp_then_bisection() -> None:
    rows, answer, detail = alone(server(1650))
    # Geometric middles of 1000 and 2000; what breaks is tried twice, then the ends three times.
    assert [one.offered_rps for one in rows] == [
        500, 1000, 2000, 2000, 1414, 1682, 1682, 1542, 1610, 1646, 1646, 1646, 1682,
    ]  # fmt: skip
    assert answer.text == (
        "holds 1,646 req/s at p99 ≤ 500 ms [1,646, 1,682]; then: host CPU (strong, at 1,682 by 3 "
        "trials)"
    )
    assert detail.text == (
        "held 1,646 req/s (p99 210 ms; 3 of 3 trials), broke 1,682 (3 of 3 trials): p99 900 ms"
    )


def test_connections_follow_from_the_rate_and_the_objective() -> None:
    rows, *_ = alone(server(1650))
    # 1.2 × rate × 0.5 s.
    assert {(one.offered_rps, one.concurrency) for one in rows} >= {(500, 300), (1646, 988)}
    assert rows[0].trial == "001-a-open-c300"


@pytest.mark.parametrize("rate", [20, 100, 400, 800, 5000])
def test_connections_suffice_for_arrivals_at_random(rate: int) -> None:
    objective = CAPACITY.objective
    # So many are busy at the objective's latency: a Poisson distribution.
    busy = 0.5 * rate
    assert objective.connections(rate) >= max(1.2 * busy, busy + 3 * math.sqrt(busy))
    assert 0 <= objective.rate(objective.connections(rate)) - rate <= 2


def test_the_connections_of_the_load_are_no_limit_of_the_server() -> None:
    few = dataclasses.replace(CAPACITY, connections=700)
    # 700 connections / 0.21 s.
    rows, answer, detail = alone(server(3300, name="connections of the load"), own=few)
    assert max(one.concurrency for one in rows) == 700
    assert answer.text == (
        "holds at least 3,291 req/s at p99 ≤ 500 ms; then: cannot be told: connections of the "
        "load, 700 of the 2,018 that it takes"
    )
    assert answer.high is None
    assert "cannot be told: connections of the load, 700 of" in detail.text
    _, answer, _ = alone(server(3300), own=few)
    assert answer.text.endswith("then: host CPU (strong, at 3,363 by 3 trials)")


def test_a_bound_of_the_settings_lowers_the_first_rate() -> None:
    slow = snapshot(settings={"pool_size": 20})
    order = capacity.design(planner(searched(), snapshots={"a": slow}))
    # 20 / 0.2 s = 100 req/s.
    assert order.next([]).offered_rps == 50


def test_a_server_that_holds_all_has_no_upper_end() -> None:
    rows, answer, detail = alone(server(1e9))
    assert [one.offered_rps for one in rows][-4:] == [64_000, 100_000, 100_000, 100_000]
    assert answer.text == "holds at least 100,000 req/s at p99 ≤ 500 ms"
    assert (answer.value, answer.high) == (100_000, None)
    assert detail.text.endswith("the most that was tried")


def test_a_server_that_holds_nothing() -> None:
    rows, answer, _ = alone(server(0))
    assert [one.offered_rps for one in rows[::2]] == [500, 250, 125, 62, 31, 15, 7, 3, 1]
    assert answer.value is None
    said = "does not hold 1 req/s at p99 ≤ 500 ms; then: host CPU (strong, at 1 by 2 trials)"
    assert answer.text == said


def nth_of(rate: int, number: int) -> When:
    """The trial of this number at that rate."""
    return lambda plan, nth: (plan.offered_rps, nth) == (rate, number)


@pytest.mark.parametrize("at", [500, 1000, 2000, 1646])
def test_one_noisy_break_is_outvoted(at: int) -> None:
    _, answer, _ = alone(altered(server(1650), nth_of(at, 1), p99_ms=900.0, max_ms=900.0))
    assert answer.value == 1646
    # What disagreed is inside the interval, and so is the truth.
    assert answer.low <= min(at if at <= 1650 else 1646, 1646)


def test_one_lucky_trial_does_not_raise_the_capacity() -> None:
    _, answer, _ = alone(altered(server(1650), nth_of(2000, 2), p99_ms=210.0, max_ms=210.0))
    assert answer.value == 1646
    # 2,000 was held once: the high end is above it.
    assert answer.high == 2060


# Measured by these very simulations: the share of intervals that hold the truth, and of capacities
# that are within the resolution, of 200 servers with fixed seeds (100 without scatter), and their
# mean width.
@pytest.mark.parametrize(
    ("scatter", "luck", "least", "right", "widest"),
    [
        (0.0, 0.0, 1.0, 1.0, 0.03),
        (0.005, 0.0, 0.97, 1.0, 0.05),
        (0.01, 0.0, 0.95, 1.0, 0.08),
        (0.02, 0.0, 0.91, 0.0, 0.12),
        (0.0, 0.05, 0.99, 0.97, 0.3),
        (0.0, 0.2, 0.9, 0.5, 1.5),
    ],
)
def test_the_interval_holds_the_truth_in_nearly_all_simulations(
    scatter: float, luck: float, least: float, right: float, widest: float
) -> None:
    hits, near, widths, trials = 0, 0, list[float](), list[int]()
    count = 200 if scatter else 100
    for seed in range(count):
        truth = random.Random(1000 + seed).uniform(100, 9000)
        rows, answer, _ = alone(server(truth, scatter, seed, luck=luck))
        assert answer.value is not None
        high = answer.high or math.inf
        hits += answer.low <= truth <= high
        near += abs(answer.value / truth - 1) < 0.035
        widths.append((min(high, 9 * truth) - answer.low) / truth)
        trials.append(len(rows))
    assert hits >= count * least
    assert near >= count * right
    assert sum(widths) / count <= widest
    assert max(trials) <= 60


# A pool of 40 threads and 0.2 s, with arrivals at random: its queue grows and shrinks for many
# seconds. Of 8 windows of 400 s each, 7 keep the objective at 191 req/s, 5 at 193 and none at 195.
def test_a_window_is_long_enough_for_a_queue_that_grows_slowly() -> None:
    rows, values = list[Row](), list[float]()
    for seed in range(6):
        own, answer, _ = alone(a_pool(seed), longer=True, arrivals="poisson")
        rows += own
        values.append(answer.value or 0)
    assert sorted(values)[3] <= 195
    # What was held is confirmed in a window of four times the length, what broke is not.
    assert {one.duration_s for one in rows if one.offered_rps == 500} == {15}
    assert {one.duration_s for one in rows if one.offered_rps == 193} == {15, 60}


def test_a_longer_window_shows_half_of_the_resolution() -> None:
    def lengths(of: Experiment, most: float, **of_snapshot: Any) -> set[int]:
        order = capacity.design(planner(of, snapshots={"a": snapshot(settings={}, **of_snapshot)}))
        done = list[Row]()
        while (plan := order.next(done)) is not None:
            done.append(row(plan, **server(most)(plan)))
        return {one.duration_s or 0 for one in done}

    # (0.5 s - 0.2 s) / 1.5 %.
    even = searched(longer=True)
    assert lengths(even, 400) == {15, 20}
    # By chance a queue grows by more than that at a low rate: (2 / 1.5 %)² = 17,778 requests show
    # it, and the window is at most four times as long.
    drawn = Spread("lognormal:mean=200,p99=400", 60.0, 190.0, 310.0, 400.0, 10_000.0)
    for of, spread in ((searched(longer=True, arrivals="poisson"), None), (even, drawn)):
        assert max(lengths(of, 200, spread=spread)) == 60
        assert max(lengths(of, 400, spread=spread)) == 46
        assert lengths(of, 1650, spread=spread) == {15, 20}
    # Of a foreign service nobody knows.
    assert lengths(even, 1650, identity=None) == {15, 60}


def test_an_objective_that_no_request_keeps_is_refused_before_anything_is_measured() -> None:
    fast = dataclasses.replace(CAPACITY, objective=Objective(p50_ms=150.0, p99_ms=500.0))
    assert refusal(order_of, searched(own=fast)) == (
        "OBJECTIVE=p50<150ms is not allowed: a request of /downstream takes 200 ms alone; "
        "allowed: more than that"
    )


def a_pool(seed: int) -> Server:
    random_ = random.Random(seed)

    def answer(plan: TrialPlan) -> dict[str, Any]:
        rate, ends_s = plan.offered_rps or 0, 10.0 + plan.duration_s
        gaps = (random_.expovariate(rate) for _ in range(round(rate * ends_s)))
        done = open_load(accumulate(gaps), plan.concurrency, 40, lambda: 0.2)
        waits = sorted(1000 * (one.end_s - one.due_s) for one in done if 10 <= one.end_s < ends_s)
        p99_ms, good_rps = waits[int(0.99 * len(waits))], len(waits) / plan.duration_s
        return {
            "achieved_rps": good_rps,
            "p99_ms": p99_ms,
            "max_ms": waits[-1],
            "overloaded": good_rps < 0.95 * rate,
        }

    return answer


def test_a_server_that_never_agrees_with_itself_ends() -> None:
    rows, *_ = alone(server(2000, scatter=1.0, seed=3))
    assert len(rows) <= 60


def test_servers_take_turns_until_each_is_done() -> None:
    _, rows = ran({"a": server(100), "b": server(50_000)})
    assert [one.server for one in rows[:6]] == ["a", "b", "a", "b", "a", "b"]


def test_a_rate_that_nobody_can_tell_limits_the_search_and_is_said() -> None:
    _, answer, detail = alone(untold(lambda rate: rate >= 2000, server(9999)))
    assert 1900 < answer.value < 2000
    assert answer.high is None
    assert answer.text.startswith("holds at least 1,9")
    assert answer.text.endswith(f"; then: cannot be told: {LATE_GENERATOR}")
    assert detail.text.endswith(f"whether it holds 2,000 cannot be told: {LATE_GENERATOR}")


def test_where_one_rate_cannot_be_told_the_one_that_broke_above_it_is_the_upper_end() -> None:
    rows, answer, detail = alone(untold(lambda rate: 1500 <= rate < 2000, server(1650)))
    # 2,000 broke in the ramp; the middles below it say nothing.
    assert answer.value < 1500
    assert answer.high == 2000
    assert "broke 2,000 (2 of 2 trials)" in detail.text
    assert "cannot be told" in detail.text
    assert answer.text.endswith("; then: host CPU (strong, at 2,000 by 2 trials)")
    # Above the highest rate that was tried two more are, for one that breaks.
    rows, answer, _ = alone(untold(lambda rate: 2000 <= rate < 2100, server(2050)))
    assert max(one.offered_rps or 0 for one in rows) == answer.high == 2120


def test_a_server_that_is_away_costs_its_own_rows() -> None:
    away = untold(lambda _: True, server(1), "server-not-back problem=a:%20refused")
    of, rows = ran({"a": away, "b": server(1650)})
    assert sum(one.server == "a" for one in rows) == 2
    first, second, *_ = found(of, rows)
    assert first.text.startswith("cannot be told: ")
    assert second.value == 1646


BUSY = {"p99_ms": 900.0, "others_cpu": 0.4}


@pytest.mark.parametrize("cells", [invalid(LATE_GENERATOR), BUSY], ids=["invalid", "others work"])
def test_a_trial_that_says_nothing_is_measured_again(cells: dict[str, Any]) -> None:
    rows, answer, _ = alone(altered(server(1650), nth_of(1000, 1), **cells))
    assert [one.offered_rps for one in rows][:4] == [500, 1000, 1000, 2000]
    assert answer.value == 1646


def test_a_rate_that_others_may_have_broken_is_not_told() -> None:
    """As slow as beyond its capacity, while others fill the machine."""
    _, answer, _ = alone(altered(server(1650), lambda plan, _: plan.offered_rps == 1000, **BUSY))
    assert answer.value < 1000
    assert answer.text.endswith(f"; then: cannot be told: {FILLED} (p99 900 ms)")


@pytest.mark.parametrize("end", [1646, 1682])
def test_an_end_that_nobody_can_tell_any_more_ends_the_search(end: int) -> None:
    third: When = lambda plan, nth: plan.offered_rps == end and nth > 2  # noqa: E731
    rows, answer, _ = alone(altered(server(1650), third, **invalid(LATE_GENERATOR)))
    assert sum(one.offered_rps == end for one in rows) == 4
    assert (answer.low, answer.high) == (1646, 1682)


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("launches", [0, 2])
def test_a_search_goes_on_after_a_damaged_trial(launches: int, gone: bool) -> None:
    of, rows = ran({"a": server(1650)}, launches=launches)
    for at in range(1, len(rows)):
        done = resumed(order_of(of), rows, at, server(1650), gone=gone)
        assert found(of, done)[0].value == 1646
        assert len(done) <= len(rows) + 1


def test_rows_of_another_search_are_left_out() -> None:
    of, rows = ran({"a": server(1650)})
    other = [rows[0], dataclasses.replace(rows[1], offered_rps=777)]
    assert order_of(of).next(other).offered_rps == 1000
    assert "not finished" in found(of, other)[0].text


def test_an_interrupted_search_says_so() -> None:
    of, rows = ran({"a": server(1650)})
    rows = rows[:5]
    answer, detail = found(of, rows)
    assert answer.text == (
        "holds 1,414 req/s at p99 ≤ 500 ms [1,414, 2,000], not finished; "
        "then: host CPU (strong, at 2,000 by 2 trials)"
    )
    assert detail.text.endswith("not finished, 1,682 req/s are next")
    # Of a run that is complete nothing is left to do.
    answer, detail = found(of, rows, complete=True)
    assert "[1,414, 2,000], not to be told by this version's rules; then: " in answer.text
    assert detail.text.endswith(", not to be told by this version's rules")
    assert found(of, rows[:0]) == ()


@pytest.mark.parametrize("most", [60, 640, 1650, 50_000])
def test_there_are_never_more_trials_than_were_said(most: int) -> None:
    of, rows = ran({"a": server(most), "b": server(1650)}, launches=2)
    assert len(rows) <= order_of(of).most == 2 * (36 + 12)


def test_a_window_that_was_too_short_is_longer_at_the_second_try() -> None:
    of, rows = ran({"a": server(1650)})
    short = "window-short needed_s=28"
    plan = order_of(of).next([dataclasses.replace(rows[0], **invalid(short), p99_ms=400.0)])
    assert (plan.offered_rps, plan.duration_s) == (500, 28)


def test_windows_are_long_enough_for_the_percentile() -> None:
    _, rows = ran({"a": server(20)}, longer=True)
    # 1,000 answers and a tenth more tell p99, in at most two minutes.
    lengths = {one.offered_rps: one.duration_s for one in rows}
    assert (lengths[500], lengths[31], lengths[15]) == (15, 36, 74)
    assert {one.duration_s for one in run(searched(), {"a": server(20)})} == {15}
