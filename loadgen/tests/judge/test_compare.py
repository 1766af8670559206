"""Rows with known values, and the answer that follows by hand from where the interval lies."""

import dataclasses
from collections.abc import Sequence

import pytest

from lab.judge.compare import Comparison, by_chance, compare, lanes
from lab.judge.grouping import Cell, lane_of, loads, most_errors, per_launch
from lab.model import Mode, Row
from support import planned
from support.fakes import judged_row, measurement, plan

STEADY = (100.0, 101, 99, 100, 102, 98)


def row(mode: Mode = "closed", **changes: object) -> Row:
    whole = measurement()
    whole = dataclasses.replace(whole, record=dataclasses.replace(whole.record, plan=plan(mode)))
    return dataclasses.replace(judged_row("run", whole), **{"valid": True, **changes})  # type: ignore[arg-type]


def side(values: Sequence[float], metric: str = "goodput_rps", mode: Mode = "closed") -> list[Row]:
    # Without an error every answer is a good one.
    column = "achieved_rps" if metric == "goodput_rps" else metric
    return [row(mode, launch=n, **{column: value}) for n, value in enumerate(values, start=1)]


def answers(of: Comparison) -> dict[str, str]:
    return {cell.metric: cell.answer for cell in of.cells}


def on(metric: str, a: Sequence[float], b: Sequence[float], mode: Mode = "closed") -> str:
    return answers(compare(side(a, metric, mode), side(b, metric, mode), "a", "b"))[metric]


def test_a_model_against_itself_does_not_differ() -> None:
    other = (99.0, 100, 101, 97, 103, 100)
    assert on("goodput_rps", STEADY, other) == "no difference"
    assert on("raw_p95_ms", STEADY, other) == "no difference"
    assert on("p95_ms", STEADY, other, "open") == "no difference"


def test_more_throughput_is_faster_and_less_is_slower() -> None:
    more = [value * 1.5 for value in STEADY]
    assert on("goodput_rps", STEADY, more) == "faster"
    assert on("goodput_rps", more, STEADY) == "slower"


@pytest.mark.parametrize(("metric", "mode"), [("raw_p95_ms", "closed"), ("p95_ms", "open")])
def test_more_latency_is_slower_and_less_is_faster(metric: str, mode: Mode) -> None:
    more = [value * 1.5 for value in STEADY]
    assert on(metric, STEADY, more, mode) == "slower"
    assert on(metric, more, STEADY, mode) == "faster"


def test_an_open_load_is_compared_on_the_corrected_latency_a_closed_one_on_the_raw() -> None:
    for mode, metric in (("open", "p95_ms"), ("closed", "raw_p95_ms")):
        found = compare(side(STEADY, mode=mode), side(STEADY, mode=mode), "a", "b")
        assert [cell.metric for cell in found.cells] == ["goodput_rps", metric]


def test_noise_is_inconclusive_and_says_how_wide() -> None:
    noisy = (50.0, 150, 80, 130, 60, 170)
    [rps, _] = compare(side(STEADY), side(noisy), "a", "b").cells
    assert rps.answer == "inconclusive"
    assert "too wide, with 6 and 6 launches" in rps.why


def test_a_sure_difference_within_the_margin_is_none() -> None:
    assert on("goodput_rps", [100.0] * 6, [104.0] * 6) == "no difference"
    assert on("goodput_rps", [100.0] * 6, [100 / 1.05] * 6) == "no difference"


def test_samples_without_any_spread_beyond_the_margin_differ() -> None:
    assert on("goodput_rps", [100.0] * 6, [106.0] * 6) == "faster"
    assert on("raw_p95_ms", [100.0] * 6, [106.0] * 6) == "slower"


def test_a_ratio_that_may_be_one_and_may_be_large_is_inconclusive() -> None:
    # The 6th of the 36 ratios is 1, the 31st 1.2.
    assert on("goodput_rps", [100.0] * 6, [100.0, 102, 104, 106, 110, 120]) == "inconclusive"


def test_fewer_than_six_launches_never_differ() -> None:
    found = compare(side([100.0] * 5), side([900.0] * 6), "a", "b")
    assert {cell.answer for cell in found.cells} == {"inconclusive"}
    assert found.cells[0].why == "no interval: 5 and 6 launches, each side needs 6"
    assert found.cells[0].ratio.ratio == 9.0


def test_invalid_trials_are_no_launches_and_are_counted() -> None:
    a = side(STEADY)
    a[2] = dataclasses.replace(a[2], valid=False)
    found = compare(a, side(STEADY), "a", "b")
    assert found.invalid_a == 1
    assert "5 and 6 launches" in found.cells[0].why


def test_a_cell_without_a_valid_trial_has_no_answer() -> None:
    a = [dataclasses.replace(one, valid=False) for one in side(STEADY)]
    [rps, p95] = compare(a, side(STEADY), "a", "b").cells
    assert (rps.a, rps.ratio, rps.answer) == (None, None, "inconclusive")
    assert rps.why == "no valid trial of A tells goodput_rps"
    assert p95.answer == "inconclusive"


def test_a_percentile_that_no_engine_told_has_no_answer() -> None:
    b = [dataclasses.replace(one, raw_p95_ms=None) for one in side(STEADY)]
    assert answers(compare(side(STEADY), b, "a", "b")) == {
        "goodput_rps": "no difference",
        "raw_p95_ms": "inconclusive",
    }


def test_a_throughput_of_zero_has_no_ratio() -> None:
    found = compare(side([0.0] * 6), side(STEADY), "a", "b")
    assert found.cells[0].answer == "inconclusive"


def test_cells_of_one_side_only_are_listed() -> None:
    other = row(concurrency=2000)
    found = compare([*side(STEADY), other], side(STEADY), "a", "b")
    assert found.only_a == (Cell.of(other),)
    assert found.only_b == ()
    assert len(found.cells) == 2


def test_trials_of_one_jvm_count_once_with_their_median() -> None:
    rows = [row(launch=1, achieved_rps=value) for value in (1.0, 2, 9)]
    assert per_launch([*rows, row(launch=2, achieved_rps=5.0)], "achieved_rps") == (2.0, 5.0)


def test_launches_of_pooled_runs_are_told_apart_but_not_jvms_that_ran_already() -> None:
    rows = [row(run=run, launch=1, achieved_rps=1.0) for run in ("x", "y")]
    assert len(per_launch(rows, "achieved_rps")) == 2
    rows = [row(run=run, launch=0, achieved_rps=1.0) for run in ("x", "y")]
    assert len(per_launch(rows, "achieved_rps")) == 1


def test_later_servers_are_compared_with_the_first() -> None:
    rows = [row(server=server) for server in ("x", "y", "z", "x")]
    assert [(of.a, of.b) for of in lanes(rows)] == [("x", "y"), ("x", "z")]


def test_arms_are_compared_within_their_server_only() -> None:
    rows = [row(server=server, arm=arm) for server in ("x", "y") for arm in ("left", "right")]
    assert [lane_of(one) for one in rows[:2]] == ["x@left", "x@right"]
    assert [(of.a, of.b) for of in lanes(rows)] == [("x@left", "x@right"), ("y@left", "y@right")]


def test_one_lane_alone_is_compared_with_nothing() -> None:
    assert lanes([row()]) == ()


def test_chance_is_counted_over_all_that_have_an_interval() -> None:
    found = compare(side(STEADY), side(STEADY), "a", "b")
    none = compare(side(STEADY[:5]), side(STEADY), "a", "b")
    count, missing = by_chance([found, none])
    assert count == 2
    assert missing == pytest.approx(2 * 38 / 924)


def test_open_and_closed_stand_side_by_side_per_lane() -> None:
    rows = [
        row("closed", server=server, achieved_rps=value, predicted_rps=500.0, launch=n)
        for server in ("x", "y")
        for n, value in enumerate((100.0, 200.0, 300.0), start=1)
    ]
    rows += [row("open", server="x", p95_ms=9.0, http_errors=2, timeouts=None)]
    rows += [row("open", server="x", valid=False, offered_rps=900, predicted_rps=900.0)]
    x, y, faster = loads(rows)
    assert (x.lane, x.offered_rps, x.bound_rps) == ("x", 450, 500.0)
    assert (x.closed_rps.median, x.closed_rps.interval) == (200.0, None)
    assert x.open_p95_ms.median == 9.0
    assert (x.errors, x.valid, x.trials) == (2, 4, 4)
    assert (y.lane, y.open_rps) == ("y", None)
    # A second rate at the same concurrency: its closed load stands beside the first.
    assert (faster.offered_rps, faster.closed_rps, faster.bound_rps) == (900, None, 900.0)
    assert (faster.open_rps, faster.valid, faster.trials) == (None, 0, 1)


def counted(rps: float, ok: int, **changes: object) -> list[Row]:
    """Six launches that answered so many a second, of which so many were good."""
    values = {"achieved_rps": rps, "raw_p95_ms": 1e6 / rps, "ok": ok, **changes}
    return [planned.row(plan("closed"), launch=n, **values) for n in range(1, 7)]


def test_who_fails_faster_is_not_faster() -> None:
    working, failing = counted(6000, 90_000), counted(9000, 15_000, http_errors=120_000)
    [rps, p95] = compare(working, failing, "a", "b").cells
    # 9,000 answers a second, of which one in nine is good.
    assert rps.b.median == 1000
    assert rps.answer == "slower"
    assert (p95.answer, p95.ratio) == ("inconclusive", None)
    assert p95.why == "88.9% of B's requests were errors"
    [rps, p95] = compare(failing, working, "a", "b").cells
    assert rps.answer == "faster"
    assert p95.why == "88.9% of A's requests were errors"
    [_, p95] = compare(failing, failing, "a", "b").cells
    assert p95.why == "88.9% of A's requests and 88.9% of B's requests were errors"


def test_a_few_errors_leave_latencies_comparable() -> None:
    [_, p95] = compare(counted(900, 9900), counted(500, 9900, timeouts=100), "a", "b").cells
    assert p95.answer == "slower"
    [_, p95] = compare(counted(900, 9900), counted(500, 9900, socket_errors=101), "a", "b").cells
    assert p95.answer == "inconclusive"


def test_one_launch_of_errors_is_enough_and_an_invalid_one_does_not_count() -> None:
    rows = counted(500, 1000)
    rows[3] = dataclasses.replace(rows[3], http_errors=1000)
    assert most_errors(rows) == 0.5
    rows[3] = dataclasses.replace(rows[3], valid=False)
    assert most_errors(rows) == 0
    assert most_errors([]) == 0


def test_loads_tell_goodput_and_the_errors_beside_it() -> None:
    [load] = loads(counted(9000, 15_000, http_errors=120_000))
    assert load.closed_rps.median == 1000
    assert load.error_share == pytest.approx(8 / 9)
    assert load.errors == 6 * 120_000
