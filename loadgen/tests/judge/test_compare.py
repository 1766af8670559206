"""Rows with known values, and the answer that follows by hand from where the interval lies."""

import copy
from collections.abc import Sequence
from itertools import product

import pytest

from lab.judge.compare import ALIKE, Comparison, Family, Limits, compare, lanes
from lab.judge.grouping import Cell, lane_of
from lab.judge.intervals import Interval
from lab.judge.values import overloaded
from lab.kinds.loads import too_few_launches
from lab.model import Row
from lab.report.comparison import reasons
from support.fakes import plan
from support.sides import STEADY, answers, goodput, late, row, rows, times

OTHER = (99.0, 100, 101, 97, 103, 100)
NOISY = (50.0, 150, 80, 130, 60, 170)
DRIFTS = (1.0, 1.1, 1.2, 1.3, 1.4, 1.5)


@pytest.mark.parametrize(
    ("limits", "low", "high", "place"),
    [
        (ALIKE, 1.0500001, 1.2, "better"),
        (ALIKE, 1.05, 1.2, "cannot tell"),
        (ALIKE, 1.001, 1.06, "cannot tell"),
        (ALIKE, 1.001, 1.05, "within"),
        (ALIKE, 0.99, 1.01, "within"),
        (ALIKE, 1 / 1.05, 1.0, "within"),
        (ALIKE, 0.9, 1 / 1.05, "cannot tell"),
        (ALIKE, 0.9, 0.9523, "worse"),
        (ALIKE, 0.9, 1.2, "cannot tell"),
        (Limits(low=1 / 1.05), 1 / 1.05, 2.0, "within"),
        (Limits(low=1 / 1.05), 0.9523, 1.0, "cannot tell"),
        (Limits(low=1 / 1.05), 0.8, 1 / 1.05, "cannot tell"),
        (Limits(low=1 / 1.05), 0.8, 0.9523, "worse"),
    ],
)
def test_every_place_of_an_interval_has_its_answer(
    limits: Limits, low: float, high: float, place: str
) -> None:
    assert limits.place(low, high, "goodput") == place
    # Turned over, and of a figure of which less is better.
    turned = Limits(limits.high and 1 / limits.high, limits.low and 1 / limits.low)
    assert turned.place(1 / high, 1 / low, "p95") == place


def thinks(a_ms: float | None, b_ms: float, ratio: float) -> tuple[list[Row], list[Row]]:
    return goodput(STEADY, think_ms=a_ms), goodput(times(ratio), think_ms=b_ms)


def sent_late(raw_b_ms: float, late_b_ms: float | None) -> tuple[list[Row], list[Row]]:
    def of(p95_ms: float, raw_ms: float, late_ms: float | None) -> list[Row]:
        return late(times(p95_ms / 100), raw_p95_ms=times(raw_ms / 100), late_p99_ms=late_ms,
                    offered_rps=100.0, achieved_rps=100.0)  # fmt: skip

    return of(207, 206, 1), of(225, raw_b_ms, late_b_ms)


# 0.5 % of the requests got no answer, beside answers that are as quick as A's.
HUNG = {"offered_rps": 100, "achieved_rps": 99.5, "window_s": 100.0, "window_ok": 9950,
        "window_http_errors": 0, "window_lost": 50}  # fmt: skip
SLO = times(2)
QUICK_ERRORS = {"achieved_rps": 8570.0, "ok": 90_000, "http_errors": 38_550}
WORKING = rows(achieved_rps=6000.0, ok=90_000)
FAILING = rows(**QUICK_ERRORS)
SOME_FAIL = [*WORKING[:4], *FAILING[4:]]
STAINED = [copy.replace(WORKING[0], http_errors=1400), *WORKING[1:]]
OVERLOADED = rows("open", achieved_rps=442.8, p95_ms=440.0, overloaded=True)
KEPT = rows("open", p95_ms=200.0)
LATE_ERRORS = {"ok": 9900, "http_errors": 101}
TWELVE = late([8.0] * 12)

# (A, B, figure, place, why) of `compare`.
COMPARED: list[tuple[list[Row], list[Row], str, str, str]] = [
    (goodput(STEADY), goodput(OTHER), "goodput", "within", ""),
    (goodput(STEADY), goodput(times(1.5)), "goodput", "better", ""),
    (goodput(times(1.5)), goodput(STEADY), "goodput", "worse", ""),
    (late(STEADY), late(OTHER), "p95", "within", ""),
    (late(STEADY), late(times(1.5)), "p95", "worse", ""),
    (late(times(1.5)), late(STEADY), "p95", "better", ""),
    # In turns it is part of the interval that other work took CPUs, and drift does not count.
    (goodput(STEADY, others_cpu=0.2), goodput(times(1.3)), "goodput", "better", ""),
    (goodput(STEADY, others_cpu=0.2), goodput(times(1.3), run="other"), "goodput",
     "cannot tell", "no value"),
    (goodput(DRIFTS), goodput(times(1.01, DRIFTS)), "goodput", "within", ""),
    (goodput(DRIFTS), goodput(times(1.01, DRIFTS), run="other"), "goodput",
     "cannot tell", "across"),
    (goodput(STEADY), goodput(NOISY), "goodput", "cannot tell", "across"),
    # A round counts only if both sides have it.
    (goodput([100.0] * 7), goodput([110.0] * 7, valid=[n != 2 for n in range(7)]), "goodput",
     "better", ""),
    (goodput([100.0] * 7, valid=[n < 3 for n in range(7)]),
     goodput([110.0] * 7, valid=[n > 2 for n in range(7)]), "goodput", "cannot tell", "no value"),
    (goodput([100.0] * 5), goodput([900.0] * 6), "goodput", "cannot tell", "few"),
    # Without the generator's 6.5 % of a cycle B is as fast; it is still slower; the same for both.
    (*thinks(1.0, 70.0, 0.93), "goodput", "cannot tell", "generator"),
    (*thinks(1.0, 70.0, 0.80), "goodput", "worse", ""),
    (*thinks(70.0, 70.0, 0.93), "goodput", "worse", ""),
    # Less than a hundredth of a cycle; unknown.
    (*thinks(1.0, 8.0, 0.95), "goodput", "worse", ""),
    (*thinks(None, 70.0, 0.93), "goodput", "worse", ""),
    # 90.0 and 90.4 % of a cycle, of 10 and 9.6 ms in the server: without it 1.03 is 1.07.
    (*thinks(900.0, 876.0, 1.03), "goodput", "cannot tell", "generator"),
    # It was sent late, and nothing else; the server itself took so long; it waited for a
    # connection, and no lateness explains that; unknown.
    (*sent_late(206.0, 30.0), "p95", "cannot tell", "generator"),
    (*sent_late(221.0, 30.0), "p95", "worse", ""),
    (*sent_late(206.0, 2.0), "p95", "worse", ""),
    (*sent_late(206.0, None), "p95", "worse", ""),
    # A p95 counts requests that got no answer.
    (late(STEADY, offered_rps=100), late(STEADY, **HUNG, slo_p95_ms=SLO), "p95", "worse", ""),
    # A cell without a valid trial, a percentile that no engine reported, and zero have no ratio.
    (goodput(STEADY, valid=False), goodput(STEADY), "goodput", "cannot tell", "no value"),
    (KEPT, rows("open", p95_ms=None), "p95", "cannot tell", "no value"),
    (goodput([0.0] * 6), goodput(STEADY), "goodput", "cannot tell", "no value"),
    # Which of them have it may follow from the latency itself.
    (rows("open", 12, p95_ms=[None] * 3 + [8.0] * 9), TWELVE, "p95", "cannot tell", "left out"),
    # An open load that overloads both sides is compared on capacity.
    (OVERLOADED, OVERLOADED, "goodput", "within", ""),
    # One launch that kept up is of a server that may do more.
    (OVERLOADED, [*OVERLOADED[:5], KEPT[5]], "goodput", "cannot tell", "kept up"),
    # A side that keeps up has a p95 that does not grow with the run.
    (KEPT, OVERLOADED, "p95", "worse", ""),
    (OVERLOADED, KEPT, "p95", "better", ""),
    (OVERLOADED, rows("open", achieved_rps=405.0, p95_ms=4400.0, overloaded=True), "goodput",
     "worse", ""),
    # 9,000 answers a second, of which one in nine is good.
    (WORKING, rows(achieved_rps=9000.0, ok=15_000, http_errors=120_000), "goodput", "worse",
     "failures"),
    # Quick errors that cost no goodput decide where enough launches have them.
    (WORKING, FAILING, "goodput", "worse", "failures"),
    (FAILING, WORKING, "goodput", "better", "failures"),
    # Fewer forbid an answer, except the one that they are in the way of least.
    (WORKING, SOME_FAIL, "goodput", "cannot tell", "failures"),
    (SOME_FAIL, WORKING, "goodput", "cannot tell", "failures"),
    (WORKING, [copy.replace(each, achieved_rps=3000.0) for each in SOME_FAIL], "goodput",
     "worse", ""),
    # A few errors on both sides change nothing.
    (STAINED, STAINED, "goodput", "within", ""),
    # Latencies of errors are not compared: how late both were is unknown.
    (rows("open", p95_ms=200.0, **LATE_ERRORS), rows("open", p95_ms=200.0, **LATE_ERRORS),
     "goodput", "cannot tell", "kept up"),
    (rows("open", p95_ms=200.0, ok=9900), rows("open", p95_ms=20.0, ok=9900, http_errors=100),
     "p95", "better", ""),
    # A percentile that falls among failed requests is that of one that failed.
    (rows("open", p95_ms=200.0, ok=9900), rows("open", p95_ms=20.0, ok=900, http_errors=100),
     "p95", "worse", "failures"),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "figure", "place", "why"), COMPARED)
def test_two_sides(a: list[Row], b: list[Row], figure: str, place: str, why: str) -> None:
    [answer] = answers(a, b)
    assert (answer.question.figure, answer.place, answer.why) == (figure, place, why)
    assert answer.paired == ({each.run for each in a} == {each.run for each in b})
    # Turned round the answer is turned over.
    turned = {"better": "worse", "worse": "better"}.get(place, place)
    [other] = answers(b, a)
    assert (other.question.figure, other.place) == (figure, turned) or "failures" in (
        why,
        other.why,
    )


def test_an_answer_has_its_numbers() -> None:
    [few] = answers(goodput([100.0] * 5), goodput([900.0] * 6))
    assert (few.ratio.interval, few.ratio.ratio, few.ratio.count_a, few.launches) == (None, 9, 5, 6)
    [failed] = answers(WORKING, FAILING)
    assert failed.ratio.ratio == pytest.approx(1.0, abs=0.01)
    assert failed.facts == (0, 6, 6, 6)
    # 100 connections, 100 a second: Z = 0.8 s and R = 0.2 s. With R = 0.24 s it is 4 % less in
    # goodput, which is within, and 17 % less without Z.
    [thought] = answers(
        goodput([100.0] * 6, think_ms=800.0), goodput([100 / 1.04] * 6, think_ms=800.0)
    )
    assert (thought.place, thought.why, thought.launches) == ("cannot tell", "generator", None)
    assert thought.facts == pytest.approx((0.8, 0.769, 0.833, 0.833), abs=0.001)
    # A side of several JVMs in a round counts with their median.
    jvms = [
        each for arm, rps in (("x", 90.0), ("y", 110.0)) for each in goodput([rps] * 6, arm=arm)
    ]
    [several] = answers(jvms, goodput([100.0] * 6))
    assert (several.ratio.count_a, several.ratio.ratio, several.paired) == (6, 1.0, True)


def test_six_launches_answer_one_load_and_two_loads_take_seven() -> None:
    def both(launches: int) -> Comparison:
        sides = [[*goodput([v] * launches), *late([v] * launches)] for v in (100.0, 200.0)]
        return compare(*sides, "a", "b")

    assert {answer.place for answer in both(7).answers} == {"better", "worse"}
    few = both(6)
    assert {(answer.place, answer.why) for answer in few.answers} == {("cannot tell", "few")}
    assert few.answers[0].facts == (0.975, 7)
    # What they do show is there.
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


def tried(values: Sequence[float], again: Sequence[int], lost: Sequence[int] = ()) -> list[Row]:
    """A side of which the first tries of these launches were invalid. Those that are not lost were
    measured again, and have these values then."""
    found = []
    for trial in goodput(values):
        name, first = f"{trial.launch:02d}-a", trial.launch not in (*again, *lost)
        found.append(copy.replace(trial, trial=name, valid=first))
        if trial.launch in again:
            found.append(copy.replace(trial, trial=f"{name}-again"))
    return found


@pytest.mark.parametrize(
    ("a", "b", "place"),
    [
        (([], []), ([], []), "better"),
        (([3], []), ([], []), "better"),  # one of seven may befall anybody
        (([], []), ([3, 5], []), "cannot tell"),
        (([2, 4], []), ([3, 5], []), "better"),  # on both sides alike
        (([3], []), ([1, 3, 5], []), "cannot tell"),
        (([2], [4]), ([], []), "cannot tell"),  # six rounds are left: enough for an answer
        (([2], [4]), ([3], []), "better"),
    ],
)
def test_what_befell_one_side_more_often_may_have_decided(
    a: tuple[list[int], list[int]], b: tuple[list[int], list[int]], place: str
) -> None:
    steady = (*STEADY, 101.0)
    comparison = compare(tried(steady, *a), tried(times(2, steady), *b), "a", "b")
    [answer] = comparison.answers
    assert (answer.place, answer.why == "left out") == (place, place == "cannot tell")
    tries = [(side.launches, side.again, side.lost) for side in (answer.tries_a, answer.tries_b)]
    assert tries == [(7, len(again), len(lost)) for again, lost in (a, b)]
    said = [line for line in reasons(answer) if "measured again or lost" in line]
    assert len(said) == bool([*a[0], *a[1], *b[0], *b[1]])


def test_a_window_that_was_made_longer_is_one_load() -> None:
    """The window was too short for A in the first launch: both sides were measured again."""
    sides = []
    for values, first_is_valid in (((*STEADY, 101.0), False), ((101.0, *STEADY), True)):
        long = goodput(values, duration_s=34)
        named = [copy.replace(each, trial=f"{each.launch:02d}") for each in long]
        short = copy.replace(named[0], duration_s=15, valid=first_is_valid)
        sides.append([short, copy.replace(named[0], trial="01-again"), *named[1:]])
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
    longer, short = (
        [copy.replace(each, duration_s=length) for each in tried(values, *which)]
        for length, which in ((34, ([], [])), (15, ([2], [1])))
    )
    third = copy.replace(short[3], valid=False)
    again = copy.replace(longer[2], trial=f"{third.trial}-again")
    [answer] = answers([*short[:3], third, again, *longer[3:]], longer)
    assert answer.question.cell.duration_s == 34
    tries = [(side.launches, side.again, side.lost) for side in (answer.tries_a, answer.tries_b)]
    assert tries == [(12, 2, 1), (12, 0, 0)]


def test_a_backlog_of_less_than_one_percent_grows_too() -> None:
    # 0.8 % of 60 s are 0.48 s, more than a quarter of 1 s and than the 0.22 s between two requests
    # of a connection; of 15 s they are 0.12 s.
    behind = {"achieved_rps": 450 * 0.992, "p95_ms": 1000.0}
    assert overloaded(row("open", window_s=60.0, **behind))
    assert not overloaded(row("open", window_s=15.0, **behind))
    assert not overloaded(row("closed"))
    # Of arrivals at random so many fewer came: none of them is missing.
    assert not overloaded(row("open", window_s=60.0, due=26_784, **behind))


def test_loads_of_one_side_only_are_listed() -> None:
    for length in ("duration_s", "warmup_s"):
        found = compare(goodput(STEADY), goodput(STEADY, **{length: 77}), "a", "b")
        assert (found.answers, len(found.only_a), len(found.only_b)) == ((), 1, 1)
    other = row(concurrency=2000)
    found = compare([*goodput(STEADY), other], goodput(STEADY), "a", "b")
    assert (found.only_a, found.only_b, len(found.answers)) == ((Cell.of(other),), (), 1)


def test_lanes_are_compared_with_the_first_of_their_server_or_arms() -> None:
    found = [row(server=server) for server in ("x", "y", "z", "x")]
    assert [(of.a, of.b) for of in lanes(found)] == [("x", "y"), ("x", "z")]
    found = [row(server=server, arm=arm) for server in ("x", "y") for arm in ("left", "right")]
    assert [lane_of(each) for each in found[:2]] == ["x@left", "x@right"]
    assert [(of.a, of.b) for of in lanes(found)] == [("x@left", "x@right"), ("y@left", "y@right")]
    assert lanes([row()]) == ()
    # All answers of a run are one family.
    loads = product(("closed", "open"), (1, 2), ("x", "y", "z"))
    found = [row(mode, server=name, concurrency=n) for mode, n, name in loads]
    assert {of.family for of in lanes(found)} == {Family(8)}


def test_before_a_run_it_is_said_that_its_launches_are_too_few() -> None:
    def said(launches: int, servers: Sequence[str] = ("x", "y", "z")) -> str:
        trials = product(range(1, launches + 1), ("closed", "open"), servers)
        return too_few_launches([plan(mode, launch=n, server=server) for n, mode, server in trials])

    few = "7 launches are too few to call anything better or worse"
    assert said(7) == f"{few}: the 4 comparisons of this run take LAUNCHES=8"
    # Enough; nobody asked for a repetition; nothing to compare with.
    assert said(8) == said(1) == said(2, servers=("x",)) == ""
