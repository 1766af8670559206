"""Rows with known values, and the answer that follows by hand from where the interval lies."""

import copy
from collections.abc import Sequence
from itertools import product

import pytest

from lab.judge.compare import (
    ALIKE,
    Answer,
    Comparison,
    Family,
    compare,
    lanes,
    overloaded,
)
from lab.judge.grouping import Cell, lane_of, loads, most_errors, per_launch, per_round
from lab.judge.intervals import Interval
from lab.kinds.loads import too_few_launches
from lab.model import Mode, Row
from lab.report.comparison import reasons
from support import planned
from support.fakes import judged_row, measurement, plan, record

STEADY = (100.0, 101, 99, 100, 102, 98)


def row(mode: Mode = "closed", **changes: object) -> Row:
    trial = judged_row("run", measurement(record(plan(mode))))
    return copy.replace(trial, **{"valid": True, **changes})


def side(values: Sequence[float], metric: str = "goodput_rps", mode: Mode = "closed") -> list[Row]:
    # Without an error every answer is a good one.
    column = "achieved_rps" if metric == "goodput_rps" else metric
    return [row(mode, launch=n, **{column: value}) for n, value in enumerate(values, start=1)]


def compared(a: Sequence[Row], b: Sequence[Row]) -> Answer:
    """The answer at the only load."""
    [answer] = compare(a, b, "a", "b").answers
    return answer


def figure_and_place(a: Sequence[Row], b: Sequence[Row]) -> tuple[str, str]:
    """What is compared of the only load, and the place."""
    answer = compared(a, b)
    return answer.question.figure, answer.place


def changed(rows: Sequence[Row], **changes: object) -> list[Row]:
    return [copy.replace(each, **changes) for each in rows]


def invalid(rows: Sequence[Row], *at: int) -> list[Row]:
    """The rows, of which these are invalid."""
    return [copy.replace(each, valid=n not in at) for n, each in enumerate(rows)]


@pytest.mark.parametrize(
    ("b_run", "others_b", "place"),
    # In turns it is part of the interval.
    [("other", None, "cannot tell"), ("other", 0.3, "cannot tell"), ("run", None, "better")],
)
def test_other_work_beside_one_run(b_run: str, others_b: float | None, place: str) -> None:
    a = changed(side(STEADY), run="run", others_cpu=0.2)
    b = changed(side([1.3 * value for value in STEADY]), run=b_run, others_cpu=others_b)
    assert compared(a, b).place == place


@pytest.mark.parametrize(
    ("low", "high", "place"),
    [
        (1.0500001, 1.2, "better"),
        (1.05, 1.2, "cannot tell"),
        (1.001, 1.06, "cannot tell"),
        (1.001, 1.05, "within"),
        (0.99, 1.01, "within"),
        (1 / 1.05, 1.0, "within"),
        (0.9, 1 / 1.05, "cannot tell"),
        (0.9, 0.9523, "worse"),
        (0.9, 1.2, "cannot tell"),
    ],
)
def test_every_place_of_an_interval_has_its_answer(low: float, high: float, place: str) -> None:
    assert ALIKE.place(low, high, "goodput") == place
    # Turned over, and of a figure of which less is better.
    assert ALIKE.place(1 / high, 1 / low, "p95") == place


OTHER = (99.0, 100, 101, 97, 103, 100)
MORE = [value * 1.5 for value in STEADY]


@pytest.mark.parametrize(
    ("mode", "figure", "a", "b", "place"),
    [
        ("closed", "goodput", STEADY, OTHER, "within"),
        ("closed", "goodput", STEADY, MORE, "better"),
        ("closed", "goodput", MORE, STEADY, "worse"),
        ("open", "p95", STEADY, OTHER, "within"),
        ("open", "p95", STEADY, MORE, "worse"),
        ("open", "p95", MORE, STEADY, "better"),
    ],
)
def test_more_throughput_is_better_and_more_latency_worse(
    mode: Mode, figure: str, a: Sequence[float], b: Sequence[float], place: str
) -> None:
    column = {"goodput": "goodput_rps", "p95": "p95_ms"}[figure]
    assert figure_and_place(side(a, column, mode), side(b, column, mode)) == (figure, place)


def test_separate_runs_are_not_paired_and_one_run_is() -> None:
    drift = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5]
    a, b = side(drift), side([value * 1.01 for value in drift])
    together = compared(a, b)
    assert (together.paired, together.place) == (True, "within")
    apart = compared(a, changed(b, run="other"))
    assert (apart.paired, apart.place, apart.why) == (False, "cannot tell", "across")
    # Noise cannot be told.
    noisy = compared(side(STEADY), side((50.0, 150, 80, 130, 60, 170)))
    assert (noisy.place, noisy.why) == ("cannot tell", "across")


def test_a_round_counts_only_if_both_sides_have_it() -> None:
    a, b = side([100.0] * 7), side([110.0] * 7)
    answer = compared(a, invalid(b, 2))
    assert (answer.ratio.count_a, answer.ratio.count_b, answer.place) == (6, 6, "better")
    assert compared(invalid(a, 3, 4, 5, 6), invalid(b, 0, 1, 2)).why == "no value"
    # A side of several JVMs in a round counts with their median.
    rows = [row(arm=arm, achieved_rps=rps) for arm, rps in (("x", 90.0), ("y", 110.0))]
    several = [copy.replace(one, launch=n) for n in range(1, 7) for one in rows]
    assert set(per_round(several, "achieved_rps").values()) == {100.0}
    answer = compared(several, side([100.0] * 6))
    assert (answer.ratio.count_a, answer.ratio.ratio, answer.paired) == (6, 1.0, True)


def test_six_launches_answer_one_load_and_two_loads_take_seven() -> None:
    def both(launches: int) -> Comparison:
        a, b = [100.0] * launches, [200.0] * launches
        rows = [(side(values), side(values, "p95_ms", "open")) for values in (a, b)]
        return compare(*[[*closed, *opened] for closed, opened in rows], "a", "b")

    assert {answer.place for answer in both(7).answers} == {"better", "worse"}
    few = both(6)
    assert {(answer.place, answer.why) for answer in few.answers} == {("cannot tell", "few")}
    assert few.answers[0].facts == (0.975, 7)
    # What they do tell is shown.
    assert few.answers[0].ratio.interval == Interval(2.0, 2.0, 0.96875)


@pytest.mark.parametrize(
    ("family", "launches"),
    [(Family(0), 6), (Family(1), 6), (Family(2), 7), (Family(3), 7), (Family(4), 8),
     (Family(12), 9), (Family(20), 10), (Family(90), 12),
     (Family(1, 1), 6), (Family(3, 1), 6), (Family(4, 1), 7), (Family(10, 1), 8)],
)  # fmt: skip
def test_how_many_launches_a_family_needs(family: Family, launches: int) -> None:
    # 1 - 2 / 2**n of at least 1 - 0.05 / m: 2**(n-1) of at least 20 m, with one limit each 10 m.
    assert family.launches == launches


def test_fewer_than_six_launches_never_differ() -> None:
    answer = compared(side([100.0] * 5), side([900.0] * 6))
    assert (answer.place, answer.why, answer.ratio.interval) == ("cannot tell", "few", None)
    assert (answer.ratio.ratio, answer.ratio.count_a, answer.launches) == (9.0, 5, 6)
    # Invalid trials are no launches, and are counted.
    found = compare(invalid(side(STEADY), 2), side(STEADY), "a", "b")
    assert (found.invalid_a, found.answers[0].why) == (1, "few")


def tried(values: Sequence[float], again: Sequence[int], lost: Sequence[int] = ()) -> list[Row]:
    """A side of which the first tries of these launches were invalid. Those that are not lost were
    measured again, and have these values then."""
    rows = []
    for one in side(values):
        first_was_valid = one.launch not in (*again, *lost)
        name = f"{one.launch:02d}-a"
        rows.append(copy.replace(one, trial=name, valid=first_was_valid))
        if one.launch in again:
            rows.append(copy.replace(one, trial=f"{name}-again"))
    return rows


@pytest.mark.parametrize(
    ("a", "b", "place"),
    [
        (([], []), ([], []), "better"),
        (([3], []), ([], []), "better"),  # one of seven may befall anybody
        (([], []), ([3, 5], []), "cannot tell"),
        (([2, 4], []), ([3, 5], []), "better"),  # on both sides alike
        (([3], []), ([1, 3, 5], []), "cannot tell"),
        (([2], [4]), ([], []), "cannot tell"),  # six rounds are left: enough for an answer
    ],
)
def test_what_befell_one_side_more_often_may_have_decided(
    a: tuple[list[int], list[int]], b: tuple[list[int], list[int]], place: str
) -> None:
    steady = (*STEADY, 101.0)
    comparison = compare(tried(steady, *a), tried([2 * v for v in steady], *b), "a", "b")
    [answer] = comparison.answers
    assert answer.place == place
    assert answer.ratio is not None
    said = [line for line in reasons(answer) if "measured again or lost" in line]
    assert len(said) == bool([*a[0], *a[1], *b[0], *b[1]])
    assert (answer.why == "left out") == (place == "cannot tell")


@pytest.mark.parametrize(
    ("think_a_ms", "think_b_ms", "ratio", "place"),
    [
        (1.0, 70.0, 0.93, "cannot tell"),  # without the generator's 6.5 % of a cycle B is as fast
        (1.0, 70.0, 0.80, "worse"),  # still slower
        (70.0, 70.0, 0.93, "worse"),  # the same for both: of no account
        (1.0, 8.0, 0.95, "worse"),  # less than a hundredth of a cycle
        (None, 70.0, 0.93, "worse"),  # nobody tells
        # 90.0 and 90.4 % of a cycle, of 10 and 9.6 ms in the server: without it 1.03 is 1.07.
        (900.0, 876.0, 1.03, "cannot tell"),
    ],
)
def test_the_generators_own_time_does_not_decide_who_is_better(
    think_a_ms: float | None, think_b_ms: float, ratio: float, place: str
) -> None:
    a = changed(side(STEADY), think_ms=think_a_ms)
    b = changed(side([ratio * v for v in STEADY]), think_ms=think_b_ms)
    answer = compared(a, b)
    assert answer.place == place
    assert (answer.why == "generator") == (place == "cannot tell")


def test_a_ratio_without_the_generators_think_time() -> None:
    """100 connections, 100 a second: Z = 0.8 s and R = 0.2 s. With R = 0.24 s it is 4 % less in
    goodput, which is within, and 17 % less without Z."""
    a = changed(side([100.0] * 6), think_ms=800.0)
    answer = compared(a, changed(side([100 / 1.04] * 6), think_ms=800.0))
    assert (answer.place, answer.why, answer.launches) == ("cannot tell", "generator", None)
    assert answer.facts == pytest.approx((0.8, 0.769, 0.833, 0.833), abs=0.001)


@pytest.mark.parametrize(
    ("raw_b_ms", "late_b_ms", "place"),
    [
        (206.0, 30.0, "cannot tell"),  # it was sent late, and nothing else
        (221.0, 30.0, "worse"),  # the server itself took so long
        (206.0, 2.0, "worse"),  # it waited for a connection: no lateness explains that
        (206.0, None, "worse"),  # nobody tells
    ],
)
def test_lateness_decides_no_p95(raw_b_ms: float, late_b_ms: float | None, place: str) -> None:
    def late(p95_ms: float, raw_ms: float, late_ms: float | None) -> list[Row]:
        load = {"mode": "open", "offered_rps": 100.0, "late_p99_ms": late_ms}
        return [
            copy.replace(
                each,
                achieved_rps=100.0,
                p95_ms=p95_ms * value / 100,
                raw_p95_ms=raw_ms * value / 100,
                **load,
            )
            for each, value in zip(side(STEADY), STEADY, strict=True)
        ]

    answer = compared(late(207, 206, 1), late(225, raw_b_ms, late_b_ms))
    assert (answer.question.figure, answer.place) == ("p95", place)
    assert (answer.why == "generator") == (place == "cannot tell")


def test_a_p95_counts_requests_that_got_no_answer() -> None:
    """0.5 % of B's requests got none. Its answers alone are as quick as A's."""
    hung = {"offered_rps": 100, "achieved_rps": 99.5, "window_s": 100.0, "window_ok": 9950,
            "window_http_errors": 0, "window_lost": 50}  # fmt: skip
    a, b = side(STEADY, "p95_ms", "open"), side(STEADY, "p95_ms", "open")
    slow = [copy.replace(one, **hung, slo_p95_ms=2 * (one.p95_ms or 0)) for one in b]
    assert figure_and_place(changed(a, offered_rps=100), slow) == ("p95", "worse")


def test_it_is_said_what_each_side_lost_and_measured_again() -> None:
    steady = (*STEADY, 101.0)
    comparison = compare(tried(steady, [2], [4]), tried(steady, [3], []), "a", "b")
    both = "2 of 7 launches of A (1 lost) and 1 of 7 launches of B"
    assert f"measured again or lost: {both}" in [*reasons(comparison.answers[0])]


def test_a_window_that_was_made_longer_is_one_load() -> None:
    """The window was too short for A in the first launch: both sides were measured again."""
    sides = []
    for values, first_is_valid in (((*STEADY, 101.0), False), ((101.0, *STEADY), True)):
        long = changed(side(values), duration_s=34)
        rows = [copy.replace(each, trial=f"{each.launch:02d}") for each in long]
        short = copy.replace(rows[0], duration_s=15, valid=first_is_valid)
        sides.append([short, copy.replace(rows[0], trial="01-again"), *rows[1:]])
    comparison = compare(*sides, "a", "b")
    [answer] = comparison.answers
    assert (answer.question.cell.duration_s, answer.place) == (34, "within")
    assert comparison.family == Family(1)
    assert (comparison.only_a, comparison.only_b, comparison.invalid_a) == ((), (), 1)
    assert (answer.tries_a.again, answer.tries_b.again) == (1, 1)


def test_a_launch_that_was_measured_again_before_its_load_got_a_longer_window_counts() -> None:
    """A's launch 1 was lost and A's launch 2 was measured again, both by accident, before launch 3
    showed that the window is too short. They have no trial in the longer one."""
    values = (*STEADY, *STEADY)
    longer = changed(tried(values, [], []), duration_s=34)
    short = changed(tried(values, [2], [1]), duration_s=15)
    third = copy.replace(short[3], valid=False)
    again = copy.replace(longer[2], trial=f"{third.trial}-again")
    a = [*short[:3], third, again, *longer[3:]]
    answer = compared(a, longer)
    assert answer.question.cell.duration_s == 34
    tries = answer.tries_a, answer.tries_b
    assert [(of.launches, of.again, of.lost) for of in tries] == [(12, 2, 1), (12, 0, 0)]


def test_a_cell_without_a_valid_trial_has_no_answer() -> None:
    answer = compared(changed(side(STEADY), valid=False), side(STEADY))
    assert (answer.a, answer.ratio, answer.place, answer.why) == (
        None,
        None,
        "cannot tell",
        "no value",
    )
    # No engine told the percentile.
    assert compared(offered(200.0), offered(None)).why == "no value"
    # Zero has no ratio.
    assert compared(side([0.0] * 6), side(STEADY)).why == "no value"


def test_a_percentile_that_fewer_launches_of_one_side_tell_has_no_answer() -> None:
    """Which of them tell it may follow from the latency itself."""
    twelve = [copy.replace(offered(8.0)[0], launch=launch) for launch in range(1, 13)]
    untold = changed(twelve[:3], p95_ms=None)
    answer = compared([*untold, *twelve[3:]], twelve)
    assert (answer.question.figure, answer.place, answer.why) == ("p95", "cannot tell", "left out")
    assert (answer.tries_a.lost, answer.tries_b.lost) == (3, 0)


def offered(p95_ms: float | None, behind: float = 0.0, **changes: object) -> list[Row]:
    """Six launches of an open load of 450/s that were behind by such a share of it."""
    rate = 450 * (1 - behind)
    return [row("open", launch=n, achieved_rps=rate, p95_ms=p95_ms, **changes) for n in range(1, 7)]


def test_an_open_load_that_overloads_both_sides_is_compared_on_capacity() -> None:
    kept, behind = offered(200.0), offered(440.0, 0.016, overloaded=True)
    answer = compared(behind, behind)
    assert (answer.question.figure, answer.question.instead) == ("goodput", "overloaded")
    assert answer.place == "within"
    # One launch that kept up is of a server that may do more.
    mixed = compared(behind, [*behind[:5], kept[5]])
    assert (mixed.place, mixed.why) == ("cannot tell", "kept up")
    # A side that keeps up has a p95 that does not grow with the run.
    assert figure_and_place(kept, behind) == ("p95", "worse")
    assert figure_and_place(behind, kept) == ("p95", "better")
    far = offered(4400.0, 0.1, overloaded=True)
    assert figure_and_place(behind, far) == ("goodput", "worse")


def test_a_backlog_of_less_than_one_percent_grows_too() -> None:
    # 0.8 % of 60 s are 0.48 s, more than a quarter of 1 s and than the 0.22 s between two requests
    # of a connection; of 15 s they are 0.12 s.
    [long] = offered(1000.0, 0.008, window_s=60.0)[:1]
    [short] = offered(1000.0, 0.008, window_s=15.0)[:1]
    assert overloaded(long)
    assert not overloaded(short)
    assert not overloaded(row("closed"))
    # Of arrivals at random so many fewer came: none of them is missing.
    assert not overloaded(copy.replace(long, due=26_784))


@pytest.mark.parametrize("length", ["duration_s", "warmup_s"])
def test_loads_of_other_lengths_are_other_loads(length: str) -> None:
    found = compare(side(STEADY), changed(side(STEADY), **{length: 77}), "a", "b")
    assert (found.answers, len(found.only_a), len(found.only_b)) == ((), 1, 1)


def test_cells_of_one_side_only_are_listed() -> None:
    other = row(concurrency=2000)
    found = compare([*side(STEADY), other], side(STEADY), "a", "b")
    assert (found.only_a, found.only_b, len(found.answers)) == ((Cell.of(other),), (), 1)


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


def test_before_a_run_it_is_said_that_its_launches_are_too_few() -> None:
    def said(launches: int, servers: Sequence[str] = ("x", "y", "z")) -> str:
        trials = product(range(1, launches + 1), ("closed", "open"), servers)
        return too_few_launches([plan(mode, launch=n, server=server) for n, mode, server in trials])

    few = "7 launches are too few to call anything better or worse"
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
    longer = copy.replace(measured("2", 2, 15, 950.0), warmup_s=20)
    [pooled] = loads([short, longer])
    assert (pooled.trials, pooled.open_p95_ms.median) == (2, 925.0)


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


def test_who_fails_faster_is_worse() -> None:
    working, failing = counted(6000, 90_000), counted(9000, 15_000, http_errors=120_000)
    # 9,000 answers a second, of which one in nine is good.
    assert compared(working, failing).b.median == 1000
    assert figure_and_place(working, failing)[1] == "worse"
    assert figure_and_place(failing, working)[1] == "better"


def test_quick_errors_that_cost_no_goodput_decide_where_enough_launches_have_them() -> None:
    working, failing = counted(6000, 90_000), counted(8570, 90_000, http_errors=38_550)
    answer = compared(working, failing)
    assert answer.ratio.ratio == pytest.approx(1.0, abs=0.01)
    assert (answer.place, answer.why, answer.facts) == ("worse", "failures", (0, 6, 6, 6))
    assert figure_and_place(failing, working)[1] == "better"
    # Fewer forbid an answer, except the one that they are in the way of least.
    some = [*working[:4], *failing[4:]]
    for sides, facts in (((working, some), (0, 6, 2, 6)), ((some, working), (2, 6, 0, 6))):
        answer = compared(*sides)
        assert (answer.place, answer.why, answer.facts) == ("cannot tell", "failures", facts)
    slow = [copy.replace(one, achieved_rps=3000.0) for one in some]
    assert figure_and_place(working, slow)[1] == "worse"
    # A few errors on both sides change nothing.
    stained = [copy.replace(working[0], http_errors=1400), *working[1:]]
    assert figure_and_place(stained, stained)[1] == "within"


def test_latencies_of_errors_are_not_compared() -> None:
    kept, failing = offered(200.0, ok=9900), offered(200.0, ok=9900, http_errors=101)
    answer = compared(failing, failing)
    assert (answer.question.figure, answer.question.instead) == ("goodput", "errors")
    # Both answered what was offered, but for some errors: how late they were is unknown.
    assert (answer.place, answer.why) == ("cannot tell", "kept up")
    assert figure_and_place(kept, offered(20.0, ok=9900, http_errors=100)) == ("p95", "better")
    # A percentile that falls among failed requests is that of one that failed.
    assert figure_and_place(kept, offered(20.0, ok=900, http_errors=100)) == ("p95", "worse")


def test_loads_tell_goodput_and_the_errors_beside_it() -> None:
    [load] = loads(counted(9000, 15_000, http_errors=120_000))
    assert load.closed_rps.median == 1000
    assert load.error_share == pytest.approx(8 / 9)
    assert load.errors == 6 * 120_000
    # One launch is enough, and an invalid one does not count.
    rows = counted(500, 1000)
    rows[3] = copy.replace(rows[3], http_errors=1000)
    assert most_errors(rows) == 0.5
    assert most_errors(invalid(rows, 3)) == most_errors([]) == 0
