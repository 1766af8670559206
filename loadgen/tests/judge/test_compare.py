"""Rows with known values, and the answer that follows by hand from where the interval lies."""

import dataclasses
import math
from collections.abc import Sequence
from itertools import product

import pytest

from lab.judge.compare import (
    ALONE,
    Comparison,
    Family,
    answer_of,
    compare,
    compare_all,
    lanes,
    overloaded,
    too_few_launches,
)
from lab.judge.grouping import Cell, Load, lane_of, loads, most_errors, per_launch, per_round
from lab.judge.intervals import Interval, RatioOf
from lab.model import Mode, Row
from lab.report.blocks import Table
from lab.report.comparison import beside
from lab.report.loads import measured as measured_loads
from support import planned
from support.fakes import judged_row, measurement, plan, record

STEADY = (100.0, 101, 99, 100, 102, 98)


def row(mode: Mode = "closed", **changes: object) -> Row:
    one = judged_row("run", measurement(record(plan(mode))))
    return dataclasses.replace(one, **{"valid": True, **changes})


def side(values: Sequence[float], metric: str = "goodput_rps", mode: Mode = "closed") -> list[Row]:
    # Without an error every answer is a good one.
    column = "achieved_rps" if metric == "goodput_rps" else metric
    return [row(mode, launch=n, **{column: value}) for n, value in enumerate(values, start=1)]


def told(a: Sequence[Row], b: Sequence[Row]) -> tuple[str, str]:
    """What is compared of the only load, and the answer."""
    [cell] = compare(a, b, "a", "b").cells
    return cell.metric, cell.answer


def changed(rows: Sequence[Row], **changes: object) -> list[Row]:
    return [dataclasses.replace(each, **changes) for each in rows]


def invalid(rows: Sequence[Row], *at: int) -> list[Row]:
    """The rows, of which these are invalid."""
    return [dataclasses.replace(each, valid=n not in at) for n, each in enumerate(rows)]


def placed(low: float, high: float, *, higher: bool = True) -> str:
    ratio = RatioOf(6, 6, math.sqrt(low * high), Interval(low, high, 0.96875))
    return answer_of(ratio, higher_is_better=higher, paired=True)[0]


@pytest.mark.parametrize(
    ("b_run", "others_b", "answer"),
    # In turns it is part of the interval.
    [("other", None, "inconclusive"), ("other", 0.3, "faster"), ("run", None, "faster")],
)
def test_other_work_beside_one_run(b_run: str, others_b: float | None, answer: str) -> None:
    a = changed(side(STEADY), run="run", others_cpu=0.2)
    b = changed(side([1.3 * value for value in STEADY]), run=b_run, others_cpu=others_b)
    [cell] = compare(a, b, "a", "b").cells
    assert cell.answer == answer
    assert (
        "work outside the lab took CPUs that were short from 6 of 6 launches of A and 0 of 6 "
        "launches of B, which may decide the answer" in cell.why
    ) == (answer == "inconclusive")


@pytest.mark.parametrize(
    ("low", "high", "answer"),
    [
        (1.0500001, 1.2, "faster"),
        (1.05, 1.2, "differs"),
        (1.001, 1.06, "differs"),
        (1.001, 1.05, "differs, by less than 5 %"),
        (1.0, 1.05, "no difference"),
        (1.0, 1.0, "no difference"),
        (0.99, 1.01, "no difference"),
        (1 / 1.05, 1.0, "no difference"),
        (1 / 1.05, 0.999, "differs, by less than 5 %"),
        (0.9, 0.999, "differs"),
        (0.9, 1 / 1.05, "differs"),
        (0.9, 0.9523, "slower"),
        (1.0, 1.0500001, "inconclusive"),
        (0.9, 1.0, "inconclusive"),
        (0.9, 1.2, "inconclusive"),
        (0.96, 1.2, "inconclusive"),
    ],
)
def test_every_place_of_an_interval_has_its_answer(low: float, high: float, answer: str) -> None:
    assert placed(low, high) == answer
    # Turned over, and of a metric of which less is better.
    assert placed(1 / high, 1 / low, higher=False) == answer


OTHER = (99.0, 100, 101, 97, 103, 100)
MORE = [value * 1.5 for value in STEADY]


@pytest.mark.parametrize(
    ("mode", "metric", "a", "b", "answer"),
    [
        ("closed", "goodput_rps", STEADY, OTHER, "no difference"),
        ("closed", "goodput_rps", STEADY, MORE, "faster"),
        ("closed", "goodput_rps", MORE, STEADY, "slower"),
        ("open", "p95_ms", STEADY, OTHER, "no difference"),
        ("open", "p95_ms", STEADY, MORE, "slower"),
        ("open", "p95_ms", MORE, STEADY, "faster"),
    ],
)
def test_more_throughput_is_faster_and_more_latency_slower(
    mode: Mode, metric: str, a: Sequence[float], b: Sequence[float], answer: str
) -> None:
    assert told(side(a, metric, mode), side(b, metric, mode)) == (metric, answer)


def test_separate_runs_are_not_paired_and_one_run_is() -> None:
    drift = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5]
    a, b = side(drift), side([value * 1.01 for value in drift])
    [together] = compare(a, b, "a", "b").cells
    assert (together.paired, together.answer) == (True, "differs, by less than 5 %")
    [apart] = compare(a, changed(b, run="other"), "a", "b").cells
    assert (apart.paired, apart.answer) == (False, "inconclusive")
    assert "(launches: 6 and 6)" in apart.why
    # Noise is inconclusive.
    [noisy] = compare(side(STEADY), side((50.0, 150, 80, 130, 60, 170)), "a", "b").cells
    assert noisy.answer == "inconclusive"
    assert "too wide (launches: 6, paired)" in noisy.why


def test_a_round_counts_only_if_both_sides_have_it() -> None:
    a, b = side([100.0] * 7), side([110.0] * 7)
    [cell] = compare(a, invalid(b, 2), "a", "b").cells
    assert (cell.ratio.count_a, cell.ratio.count_b, cell.answer) == (6, 6, "faster")
    [cell] = compare(invalid(a, 3, 4, 5, 6), invalid(b, 0, 1, 2), "a", "b").cells
    assert cell.why == "no round has a valid trial of A and of B that tells goodput_rps"
    # A side of several JVMs in a round counts with their median.
    rows = [row(arm=arm, achieved_rps=rps) for arm, rps in (("x", 90.0), ("y", 110.0))]
    several = [dataclasses.replace(one, launch=n) for n in range(1, 7) for one in rows]
    assert set(per_round(several, "achieved_rps").values()) == {100.0}
    [cell] = compare(several, side([100.0] * 6), "a", "b").cells
    assert (cell.ratio.count_a, cell.ratio.ratio, cell.paired) == (6, 1.0, True)


def test_six_launches_answer_one_load_and_two_loads_take_seven() -> None:
    def both(launches: int) -> Comparison:
        a, b = [100.0] * launches, [200.0] * launches
        rows = [(side(values), side(values, "p95_ms", "open")) for values in (a, b)]
        return compare(*[[*closed, *opened] for closed, opened in rows], "a", "b")

    assert {cell.answer for cell in both(7).cells} == {"faster", "slower"}
    few = both(6)
    assert {cell.answer for cell in few.cells} == {"inconclusive"}
    assert few.cells[0].why == (
        "too few launches (6, paired): each of 2 answers needs an interval of 97.5 %, so LAUNCHES=7"
    )
    # What they do tell is shown.
    assert few.cells[0].interval == Interval(2.0, 2.0, 0.96875)


@pytest.mark.parametrize(
    ("family", "launches"),
    [(Family(0), 6), (Family(1), 6), (Family(2), 7), (Family(3), 7), (Family(4), 8),
     (Family(12), 9), (Family(20), 10), (Family(1, 2), 7), (Family(5, 4), 10), (Family(90), 12)],
)  # fmt: skip
def test_how_many_launches_a_family_needs(family: Family, launches: int) -> None:
    # 1 - 2 / 2**n of at least 1 - 0.05 / m: 2**(n-1) of at least 20 m.
    assert family.launches == launches


def test_fewer_than_six_launches_never_differ() -> None:
    [cell] = compare(side([100.0] * 5), side([900.0] * 6), "a", "b").cells
    assert (cell.answer, cell.interval) == ("inconclusive", None)
    few = "too few launches (5, paired)"
    assert cell.why == f"{few}: the answer needs an interval of 95 %, so LAUNCHES=6"
    assert cell.ratio.ratio == 9.0
    # Invalid trials are no launches, and are counted.
    found = compare(invalid(side(STEADY), 2), side(STEADY), "a", "b")
    assert found.invalid_a == 1
    assert "(5, paired)" in found.cells[0].why


def tried(values: Sequence[float], again: Sequence[int], lost: Sequence[int] = ()) -> list[Row]:
    """A side of which the first tries of these launches were invalid. Those that are not lost were
    measured again, and have these values then."""
    rows = []
    for one in side(values):
        first_was_valid = one.launch not in (*again, *lost)
        name = f"{one.launch:02d}-a"
        rows.append(dataclasses.replace(one, trial=name, valid=first_was_valid))
        if one.launch in again:
            rows.append(dataclasses.replace(one, trial=f"{name}-again"))
    return rows


@pytest.mark.parametrize(
    ("a", "b", "answer"),
    [
        (([], []), ([], []), "faster"),
        (([3], []), ([], []), "faster"),  # one of seven may befall anybody
        (([], []), ([3, 5], []), "inconclusive"),
        (([2, 4], []), ([3, 5], []), "faster"),  # on both sides alike
        (([3], []), ([1, 3, 5], []), "inconclusive"),
        (([2], [4]), ([], []), "inconclusive"),  # six rounds are left: enough for an answer
    ],
)
def test_what_befell_one_side_more_often_may_have_decided(
    a: tuple[list[int], list[int]], b: tuple[list[int], list[int]], answer: str
) -> None:
    steady = (*STEADY, 101.0)
    comparison = compare(tried(steady, *a), tried([2 * v for v in steady], *b), "a", "b")
    [cell] = comparison.cells
    assert cell.answer == answer
    assert cell.ratio is not None
    said = [line for line in beside(comparison) if "measured again or lost" in line]
    assert len(said) == bool([*a[0], *a[1], *b[0], *b[1]])
    if answer == "inconclusive":
        assert cell.why.endswith(": which launches were left out may decide the answer")
        assert said == [f"inconclusive: closed 100: {cell.why}"]


@pytest.mark.parametrize(
    ("think_a_ms", "think_b_ms", "ratio", "answer"),
    [
        (1.0, 70.0, 0.93, "inconclusive"),  # without the generator's 6.5 % of a cycle B is as fast
        (1.0, 70.0, 0.80, "slower"),  # still slower
        (70.0, 70.0, 0.93, "slower"),  # the same for both: of no account
        (1.0, 8.0, 0.95, "slower"),  # less than a hundredth of a cycle
        (None, 70.0, 0.93, "slower"),  # nobody tells
        # 90.0 and 90.4 % of a cycle, of 10 and 9.6 ms in the server: without it 1.03 is 1.07.
        (900.0, 876.0, 1.03, "inconclusive"),
    ],
)
def test_the_generators_own_time_does_not_decide_who_is_faster(
    think_a_ms: float | None, think_b_ms: float, ratio: float, answer: str
) -> None:
    a = changed(side(STEADY), think_ms=think_a_ms)
    b = changed(side([ratio * v for v in STEADY]), think_ms=think_b_ms)
    [cell] = compare(a, b, "a", "b").cells
    assert cell.answer == answer
    assert ("may decide the answer" in cell.why) == (answer == "inconclusive")


def test_a_ratio_that_the_generators_think_time_dilutes_is_told_without_it() -> None:
    """100 connections, Z = 0.5 s: R is 0.5 s of A and 0.25 s of B. Their rates are 100 and 133 a
    second, and N / R 200 and 400."""
    a = changed(side(STEADY), think_ms=500.0)
    b = changed(side([4 / 3 * v for v in STEADY]), think_ms=500.0)
    [cell] = compare(a, b, "a", "b").cells
    assert (cell.answer, cell.ratio and round(cell.ratio.ratio, 3)) == ("faster", 1.333)
    assert cell.why == (
        "the whole interval is beyond a factor of 1.05; the generator took 50.0% of each cycle of "
        "A and 66.7% of B's: without it the interval is [2.000, 2.000]"
    )


@pytest.mark.parametrize(
    ("raw_b_ms", "late_b_ms", "answer"),
    [
        (206.0, 30.0, "inconclusive"),  # it was sent late, and nothing else
        (221.0, 30.0, "slower"),  # the server itself took so long
        (206.0, 2.0, "slower"),  # it waited for a connection: no lateness explains that
        (206.0, None, "slower"),  # nobody tells
    ],
)
def test_lateness_decides_no_p95(raw_b_ms: float, late_b_ms: float | None, answer: str) -> None:
    def late(p95_ms: float, raw_ms: float, late_ms: float | None) -> list[Row]:
        load = {"mode": "open", "offered_rps": 100.0, "late_p99_ms": late_ms}
        return [
            dataclasses.replace(
                each,
                achieved_rps=100.0,
                p95_ms=p95_ms * value / 100,
                raw_p95_ms=raw_ms * value / 100,
                **load,
            )
            for each, value in zip(side(STEADY), STEADY, strict=True)
        ]

    [cell] = compare(late(207, 206, 1), late(225, raw_b_ms, late_b_ms), "a", "b").cells
    assert (cell.metric, cell.answer) == ("p95_ms", answer)
    assert ("may decide the answer" in cell.why) == (answer == "inconclusive")


def test_a_p95_counts_requests_that_got_no_answer() -> None:
    """0.5 % of B's requests got none. Its answers alone are as quick as A's."""
    hung = {"offered_rps": 100, "achieved_rps": 99.5, "window_s": 100.0, "window_ok": 9950,
            "window_http_errors": 0, "window_lost": 50}  # fmt: skip
    a, b = side(STEADY, "p95_ms", "open"), side(STEADY, "p95_ms", "open")
    slow = [dataclasses.replace(one, **hung, slo_p95_ms=2 * (one.p95_ms or 0)) for one in b]
    assert told(changed(a, offered_rps=100), slow) == ("p95_ms", "slower")


def test_it_is_said_what_each_side_lost_and_measured_again() -> None:
    steady = (*STEADY, 101.0)
    comparison = compare(tried(steady, [2], [4]), tried(steady, [3], []), "a", "b")
    assert (
        "closed 100: measured again or lost: 2 of 7 launches of A (1 lost) and 1 of 7 launches of B"
        in beside(comparison)
    )


def test_a_window_that_was_made_longer_is_one_load() -> None:
    """The window was too short for A in the first launch: both sides were measured again."""
    sides = []
    for values, first_is_valid in (((*STEADY, 101.0), False), ((101.0, *STEADY), True)):
        long = changed(side(values), duration_s=34)
        rows = [dataclasses.replace(each, trial=f"{each.launch:02d}") for each in long]
        short = dataclasses.replace(rows[0], duration_s=15, valid=first_is_valid)
        sides.append([short, dataclasses.replace(rows[0], trial="01-again"), *rows[1:]])
    comparison = compare(*sides, "a", "b")
    [cell] = comparison.cells
    assert (cell.cell.duration_s, cell.answer) == (34, "no difference")
    assert comparison.family == compare_all([(("a", sides[0]), ("b", sides[1]))])[0].family == ALONE
    assert (comparison.only_a, comparison.only_b, comparison.invalid_a) == ((), (), 1)
    assert (cell.tries_a.again, cell.tries_b.again) == (1, 1)


def test_a_launch_that_was_measured_again_before_its_load_got_a_longer_window_counts() -> None:
    """A's launch 1 was lost and A's launch 2 was measured again, both by accident, before launch 3
    showed that the window is too short. They have no trial in the longer one."""
    values = (*STEADY, *STEADY)
    longer = changed(tried(values, [], []), duration_s=34)
    short = changed(tried(values, [2], [1]), duration_s=15)
    third = dataclasses.replace(short[3], valid=False)
    again = dataclasses.replace(longer[2], trial=f"{third.trial}-again")
    a = [*short[:3], third, again, *longer[3:]]
    [cell] = compare(a, longer, "a", "b").cells
    assert cell.cell.duration_s == 34
    assert (cell.tries_a.launches, cell.tries_a.again, cell.tries_a.lost) == (12, 2, 1)
    assert (cell.tries_b.launches, cell.tries_b.again, cell.tries_b.lost) == (12, 0, 0)


def test_a_cell_without_a_valid_trial_has_no_answer() -> None:
    [rps] = compare(changed(side(STEADY), valid=False), side(STEADY), "a", "b").cells
    assert (rps.a, rps.ratio, rps.answer) == (None, None, "inconclusive")
    assert rps.why == "no valid trial of A tells goodput_rps"
    # No engine told the percentile.
    [cell] = compare(offered(200.0), offered(None), "a", "b").cells
    assert (cell.answer, cell.why) == ("inconclusive", "no valid trial of B tells p95_ms")
    # Zero has no ratio.
    assert told(side([0.0] * 6), side(STEADY))[1] == "inconclusive"


def test_a_percentile_that_fewer_launches_of_one_side_tell_has_no_answer() -> None:
    """Which of them tell it may follow from the latency itself."""
    twelve = [dataclasses.replace(offered(8.0)[0], launch=launch) for launch in range(1, 13)]
    untold = changed(twelve[:3], p95_ms=None)
    [cell] = compare([*untold, *twelve[3:]], twelve, "a", "b").cells
    assert (cell.metric, cell.answer) == ("p95_ms", "inconclusive")
    assert "3 of 12 launches of A (3 lost) and 0 of 12 launches of B" in cell.why


def offered(p95_ms: float | None, behind: float = 0.0, **changes: object) -> list[Row]:
    """Six launches of an open load of 450/s that were behind by such a share of it."""
    rate = 450 * (1 - behind)
    return [row("open", launch=n, achieved_rps=rate, p95_ms=p95_ms, **changes) for n in range(1, 7)]


def test_an_overloaded_open_load_is_compared_on_capacity() -> None:
    """One that is behind by 1.6 % has a p95 2.2 times as long. The other one answered all that was
    offered, so nobody knows by how much its capacity is larger."""
    kept, behind = offered(200.0), offered(440.0, 0.016, overloaded=True)
    [cell] = compare(kept, behind, "a", "b").cells
    assert (cell.metric, cell.answer) == ("goodput_rps", "inconclusive")
    assert cell.no_p95 == "B was overloaded, and p95 then grows with the length of the run"
    assert cell.why.startswith("a launch of A answered all that was offered: how much more it can")
    [cell] = compare(behind, kept, "a", "b").cells
    assert cell.why.startswith("a launch of B answered all that was offered")
    # One launch that kept up is of a server that may do more.
    assert told([*behind[:5], kept[5]], behind) == ("goodput_rps", "inconclusive")
    # Where it answered so much less, it is slower all the same.
    far = offered(4400.0, 0.1, overloaded=True)
    assert told(kept, far)[1] == "slower"
    assert told(far, kept)[1] == "faster"
    [cell] = compare(behind, behind, "a", "b").cells
    assert (cell.metric, cell.answer) == ("goodput_rps", "no difference")
    assert cell.no_p95.startswith("A and B were overloaded")
    [cell] = compare(kept, offered(440.0), "a", "b").cells
    assert (cell.metric, cell.answer, cell.no_p95) == ("p95_ms", "slower", "")


def test_a_backlog_of_less_than_one_percent_grows_too() -> None:
    # 0.8 % of 60 s are 0.48 s, more than a quarter of 1 s and than the 0.22 s between two requests
    # of a connection; of 15 s they are 0.12 s.
    [long] = offered(1000.0, 0.008, window_s=60.0)[:1]
    [short] = offered(1000.0, 0.008, window_s=15.0)[:1]
    assert overloaded(long)
    assert not overloaded(short)
    assert not overloaded(row("closed"))
    # Of arrivals at random so many fewer came: none of them is missing.
    assert not overloaded(dataclasses.replace(long, due=26_784))
    # One such trial is enough, and an invalid one does not count.
    kept, once = offered(200.0), offered(200.0)
    once[4] = dataclasses.replace(once[4], overloaded=True)
    assert told(kept, once)[0] == "goodput_rps"
    assert told(kept, invalid(once, 4))[0] == "p95_ms"


@pytest.mark.parametrize("length", ["duration_s", "warmup_s"])
def test_loads_of_other_lengths_are_other_loads(length: str) -> None:
    found = compare(side(STEADY), changed(side(STEADY), **{length: 77}), "a", "b")
    assert (found.cells, len(found.only_a), len(found.only_b)) == ((), 1, 1)
    said = [line for line in beside(found) if "DURATION" in line]
    assert said == [
        "closed 100: windows of 15 and 77 s. Only those of one length are compared: measure both "
        "sides with DURATION=77s"
    ] * (length == "duration_s")


def test_cells_of_one_side_only_are_listed() -> None:
    other = row(concurrency=2000)
    found = compare([*side(STEADY), other], side(STEADY), "a", "b")
    assert (found.only_a, found.only_b, len(found.cells)) == ((Cell.of(other),), (), 1)


def test_launches_of_a_run_whose_windows_were_lengthened_on_the_way_are_said_once() -> None:
    short, long = (changed(side(STEADY), duration_s=length) for length in (15, 25))
    rows = [*short[:2], *long[2:]]
    found = compare(rows, rows, "a", "b")
    assert [cell.cell.duration_s for cell in found.cells] == [15, 25]
    assert [line.partition(". ")[0] for line in beside(found) if "DURATION" in line] == [
        "closed 100: windows of 15 and 25 s"
    ]


@pytest.mark.parametrize(
    ("rows", "values"),
    [
        # Trials of one JVM count once with their median; launches of pooled runs are told apart,
        # but not JVMs that ran already.
        ([("x", 1, 1.0), ("x", 1, 2), ("x", 1, 9), ("x", 2, 5.0)], (2.0, 5.0)),
        ([("x", 1, 1.0), ("y", 1, 1.0)], (1.0, 1.0)),
        ([("x", 0, 1.0), ("y", 0, 1.0)], (1.0,)),
    ],
)
def test_a_launch_counts_once(rows: list[tuple[str, int, float]], values: Sequence[float]) -> None:
    measured = [row(run=run, launch=launch, achieved_rps=rps) for run, launch, rps in rows]
    assert per_launch(measured, "achieved_rps") == values


def test_lanes_are_compared_with_the_first_of_their_server_or_arms() -> None:
    rows = [row(server=server) for server in ("x", "y", "z", "x")]
    assert [(of.a, of.b) for of in lanes(rows)] == [("x", "y"), ("x", "z")]
    rows = [row(server=server, arm=arm) for server in ("x", "y") for arm in ("left", "right")]
    assert [lane_of(each) for each in rows[:2]] == ["x@left", "x@right"]
    assert [(of.a, of.b) for of in lanes(rows)] == [("x@left", "x@right"), ("y@left", "y@right")]
    assert lanes([row()]) == ()


def test_all_answers_of_a_run_are_one_family() -> None:
    loads = [(mode, n) for mode in ("closed", "open") for n in (1, 2)]
    rows = [row(mode, server=name, concurrency=n) for name in ("x", "y", "z") for mode, n in loads]
    assert {of.family for of in lanes(rows)} == {Family(8)}
    assert compare_all([(("x", rows), ("y", rows))], looks=3)[0].family == Family(4, 3)


def test_before_a_run_it_is_said_that_its_launches_are_too_few() -> None:
    def said(launches: int, servers: Sequence[str] = ("x", "y", "z")) -> str:
        trials = product(range(1, launches + 1), ("closed", "open"), servers)
        return too_few_launches([plan(mode, launch=n, server=server) for n, mode, server in trials])

    few = "7 launches are too few to call anything faster"
    assert said(7) == f"{few}: the 4 comparisons of this run take LAUNCHES=8"
    # Enough; nobody asked for a repetition; nothing to compare with.
    assert said(8) == said(1) == said(2, servers=("x",)) == ""


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


def test_windows_of_other_lengths_are_loads_of_their_own() -> None:
    def measured(trial: str, launch: int, duration_s: int, p95_ms: float) -> Row:
        of = plan("open", trial=trial, launch=launch, duration_s=duration_s)
        return planned.row(of, p95_ms=p95_ms)

    short, long = measured("1", 1, 15, 900.0), measured("3-again", 2, 34, 2000.0)
    # What was measured again in a longer window counts in that one only.
    first, again = loads([short, measured("3", 2, 15, 880.0), long])
    assert (first.open_s, first.open_p95_ms.median, first.trials) == (15, 900.0, 1)
    assert (again.open_s, again.open_p95_ms.median, again.trials) == (34, 2000.0, 1)
    # Its warm-up makes none: a search takes a longer one near what is held.
    longer = dataclasses.replace(measured("2", 2, 15, 950.0), warmup_s=20)
    [pooled] = loads([short, longer])
    assert (pooled.trials, pooled.open_p95_ms.median) == (2, 925.0)
    # The table says which is which, and only then.
    told = table_of_loads([first, again])
    assert list(told.header[:3]) == ["window", "connections", "server"]
    assert [cells[0] for cells in told.rows] == ["15 s", "34 s"]
    assert list(table_of_loads([first]).header[:2]) == ["connections", "server"]


def table_of_loads(of: Sequence[Load]) -> Table:
    (found,) = (one for one in measured_loads(of).blocks if isinstance(one, Table))
    return found


def test_each_mode_has_its_own_cpu_time_per_request() -> None:
    rows = [
        *(row(server="x", cpu_server_us=value) for value in (70.0, 71.0, 75.0)),
        row(server="x", cpu_server_us=9.0, valid=False),
        *(row("open", server="x", cpu_server_us=value) for value in (130.0, 133.0, 134.0)),
    ]
    [load] = loads(rows)
    assert (load.closed_cpu.cpu_server_us, load.open_cpu.cpu_server_us) == (71.0, 133.0)


def counted(rps: float, ok: int, **changes: object) -> list[Row]:
    """Six launches that answered so many a second, of which so many were good."""
    values = {"achieved_rps": rps, "raw_p95_ms": 1e6 / rps, "ok": ok, **changes}
    return [planned.row(plan("closed"), launch=n, **values) for n in range(1, 7)]


def test_who_fails_faster_is_not_faster() -> None:
    working, failing = counted(6000, 90_000), counted(9000, 15_000, http_errors=120_000)
    [rps] = compare(working, failing, "a", "b").cells
    # 9,000 answers a second, of which one in nine is good.
    assert rps.b.median == 1000
    assert rps.answer == "slower"
    assert told(failing, working)[1] == "faster"


def test_quick_errors_that_cost_no_goodput_are_no_equal_answer() -> None:
    working, failing = counted(6000, 90_000), counted(8570, 90_000, http_errors=38_550)
    [rps] = compare(working, failing, "a", "b").cells
    assert rps.ratio.ratio == pytest.approx(1.0, abs=0.01)
    assert rps.answer == "inconclusive"
    why = "30.0% of the requests of B fail in a trial, and 0.0% is usual of A: more do in 6 of 6 "
    assert rps.why == f"{why}trials of B, and in 0 of 6 of A"
    # One trial of A with a few errors changes nothing, nor one of each side.
    stained = [dataclasses.replace(working[0], http_errors=1400), *working[1:]]
    [rps] = compare(stained, failing, "a", "b").cells
    assert rps.why == f"{why}trials of B, and in 1 of 6 of A"
    assert told(stained, stained)[1] == "no difference"
    # Whichever side fails, and where the other one is slower by a little.
    for other in (working, counted(5600, 84_000)):
        [rps] = compare(failing, other, "a", "b").cells
        assert rps.answer == "inconclusive"
        usual = "0.0% is usual of B"
        assert rps.why.startswith(f"30.0% of the requests of A fail in a trial, and {usual}")


def test_latencies_of_errors_are_not_compared() -> None:
    kept, failing = offered(200.0, ok=9900), offered(20.0, ok=9900, http_errors=101)
    [cell] = compare(kept, failing, "a", "b").cells
    assert cell.metric == "goodput_rps"
    assert cell.no_p95 == "1.0% of B's requests were errors"
    # Both answered what was offered, but for some errors: how late they were, goodput cannot tell.
    slow = offered(2000.0, ok=9900)
    slow[2] = dataclasses.replace(slow[2], http_errors=101)
    for one, other in ((kept, slow), (slow, kept)):
        [cell] = compare(one, other, "a", "b").cells
        assert (cell.metric, cell.answer) == ("goodput_rps", "inconclusive")
        assert "a launch of A and one of B answered all that was offered" in cell.why
    [cell] = compare(failing, failing, "a", "b").cells
    assert cell.no_p95 == "1.0% of A's requests and 1.0% of B's requests were errors"
    assert told(kept, offered(20.0, ok=9900, http_errors=100)) == ("p95_ms", "faster")


def test_loads_tell_goodput_and_the_errors_beside_it() -> None:
    [load] = loads(counted(9000, 15_000, http_errors=120_000))
    assert load.closed_rps.median == 1000
    assert load.error_share == pytest.approx(8 / 9)
    assert load.errors == 6 * 120_000
    # One launch is enough, and an invalid one does not count.
    rows = counted(500, 1000)
    rows[3] = dataclasses.replace(rows[3], http_errors=1000)
    assert most_errors(rows) == 0.5
    assert most_errors(invalid(rows, 3)) == most_errors([]) == 0
