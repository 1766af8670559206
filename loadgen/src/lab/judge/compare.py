"""Two sides compared, load by load: which is faster, or why nobody can tell. Pure.

Each load has one answer, on one metric: goodput of a closed load, p95 of an open load. Where an
open load overloads a side, its p95 grows with the length of the run. Then goodput is compared.

Each side has one value per launch (a fresh JVM). Where both sides were measured in the same run,
launch k of one was measured beside launch k of the other. Then they are paired, and what drifts
from round to round does not count (`intervals.ratio_of_pairs`). Separate runs are not paired
(`intervals.ratio_of`). The answer follows from the place of the interval of B / A alone:

      1/(1+m)        1         1+m          m: MARGIN, within which sides are the same in practice
    -----|-----------|----------|-----
         |     [-----|----]     |           inside, and 1 in it:    no difference
         |           |  [----]  |           inside, and 1 outside:  differs, by less than 5 %
         |           |          |  [--]     beyond:                 faster or slower
         |           |    [-----|----]      neither, 1 outside:     differs
         |       [---|----------|----]      neither, and 1 in it:   inconclusive
      [--|-----------|----------|----]      neither, and 1 in it:   inconclusive

An end that is on a line is inside, so that 1 is in [1, 1.02]. The mirror images are the same for a
ratio below 1; which of them is faster depends on the metric. *differs* says that B differs from A,
and leaves open whether by more than 5 %. With more launches the interval becomes narrower, and each
answer but the first three becomes one of those three.

All answers of a report, or of one `make compare`, are one family. Each interval has so much
confidence (Bonferroni: C. E. Bonferroni, 1936; O. J. Dunn, JASA 56 (1961) 52) that in 95 % of
families all intervals hold their true ratios. Then every answer of the family is true. A step-down
procedure (S. Holm, Scand. J. Statist. 6 (1979) 65) would need as many launches for its first
answer, and its answers would not be those of the intervals beside them. With too few launches for
that confidence there is no answer, and `why` says how many it takes.

In a closed load the generator's own time between an answer and the next request (its think time Z,
X = N / (R + Z)) is in the rate of both sides, and in an open load the time by which it sent late is
in the p95. Where it takes a larger share of one side, so that the ratio without it is another by
more than GENERATOR_SHARE, that ratio must have the same answer. Otherwise there is none.

A launch whose trial is invalid is lost, or measured again. Where that befell the one side clearly
more often than the other (UNEVEN), what was selected may decide the answer: there is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lab.judge.grouping import (
    Cell,
    Measure,
    Metric,
    Tries,
    lane_of,
    median_per_launch,
    most_errors,
    per_launch,
    per_round,
    usual_errors,
    without_shorter,
)
from lab.judge.intervals import (
    CONFIDENCE,
    Interval,
    MedianOf,
    RatioOf,
    most_coverage,
    needed,
    ratio_of,
    ratio_of_pairs,
)
from lab.judge.slo import judged_ms
from lab.model import Row, TrialPlan, error_share, lost_rps, offered

MARGIN = 0.05
# Where more of its requests fail in a trial of one side, the others are not the same work: what
# would have been slow may be what failed.
MOST_ERRORS = 0.01
# The shares of launches that the sides lost or measured again may differ by this much. Two of seven
# launches on one side and none on the other are more; one is less, as it may befall anybody.
UNEVEN = 0.2
# A backlog that grew by more than this share of the p95 makes the p95 one of the window's length.
GROWN = 0.25
# By so much the generator's part of a closed load's cycle, or of an open load's p95, may move the
# ratio of the sides before it is asked whether that decides the answer: a fifth of MARGIN.
GENERATOR_SHARE = 0.01
Answer = Literal[
    "faster", "slower", "differs, by less than 5 %", "differs", "no difference", "inconclusive"
]
ALIKE: tuple[Answer, ...] = ("no difference", "differs, by less than 5 %")
# What the sides are called in a sentence.
NAMES = ("A", "B")
# A side: its name, and its rows. They are one lane, of one run or of runs that may be pooled.
Side = tuple[str, Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Family:
    """How many answers are given together. Whoever adds runs to a side until it has an answer looks
    several times, so each pooled run counts as a look."""

    answers: int
    looks: int = 1

    @property
    def confidence(self) -> float:
        """The least confidence of each interval, so that CONFIDENCE holds for all together."""
        return 1 - (1 - CONFIDENCE) / max(1, self.answers * self.looks)

    @property
    def launches(self) -> int:
        """The fewest launches of each side that can have an answer."""
        return needed(self.confidence)


ALONE = Family(1)


@dataclass(frozen=True, slots=True)
class Values:
    """What both sides measured of one thing, a value per launch. `paired`: the sides have rounds in
    common, and a[i] was measured beside b[i]."""

    a: Sequence[float]
    b: Sequence[float]
    paired: bool

    @classmethod
    def of(cls, rows_a: Sequence[Row], rows_b: Sequence[Row], metric: Measure) -> Values:
        if not _side_by_side(rows_a, rows_b):
            return cls(per_launch(rows_a, metric), per_launch(rows_b, metric), paired=False)
        a, b = per_round(rows_a, metric), per_round(rows_b, metric)
        both = [one for one in a if one in b]
        return cls([a[one] for one in both], [b[one] for one in both], paired=True)

    def without_ratio(self, what: str, sides: str = "A and of B") -> str:
        """Why there is no ratio of `what`; empty where there is one."""
        if not self.a or not self.b:
            return f"no round has a valid trial of {sides} that tells {what}"
        return f"{what} of 0 has no ratio" if min(*self.a, *self.b) <= 0 else ""

    def ratio(self, confidence: float) -> RatioOf:
        """B / A. With too few launches for that confidence, with the interval that they can have.
        Raises ValueError where there is no ratio."""
        most = max(most_coverage(min(len(self.a), len(self.b))), CONFIDENCE)
        return (ratio_of_pairs if self.paired else ratio_of)(self.a, self.b, min(confidence, most))


@dataclass(frozen=True, slots=True)
class CellComparison:
    """Side B against side A at one load: `ratio` is B / A, `answer` is about B, `why` is for
    people. `paired`: launches of the same round were compared with each other. `no_p95`: why an
    open load is compared on goodput; empty where it is not. `tries_a` and `tries_b` say how many
    launches were lost or measured again.

    A side is None where it has no valid trial that tells this metric; then the ratio is None too.
    """

    cell: Cell
    metric: Metric
    a: MedianOf | None
    b: MedianOf | None
    paired: bool
    ratio: RatioOf | None
    answer: Answer
    why: str
    no_p95: str
    tries_a: Tries
    tries_b: Tries

    @property
    def interval(self) -> Interval | None:
        return self.ratio.interval if self.ratio else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All cells that both sides have, and the cells that only one side has. `family` is of all
    comparisons that are made together.

    `invalid_a` and `invalid_b` count the invalid trials, which were left out.
    """

    a: str
    b: str
    family: Family
    cells: tuple[CellComparison, ...]
    only_a: tuple[Cell, ...]
    only_b: tuple[Cell, ...]
    invalid_a: int
    invalid_b: int


def compare_all(pairs: Sequence[tuple[Side, Side]], looks: int = 1) -> tuple[Comparison, ...]:
    """Comparisons of one family: every pair of A and B. `looks`: of how many runs a side is."""
    family = family_of(pairs, looks)
    return tuple(compare(rows_a, rows_b, a, b, family) for (a, rows_a), (b, rows_b) in pairs)


def family_of(pairs: Sequence[tuple[Side, Side]], looks: int = 1) -> Family:
    shared = (shared_cells(without_shorter(a), without_shorter(b)) for (_, a), (_, b) in pairs)
    return Family(sum(map(len, shared)), looks)


def compare(
    rows_a: Sequence[Row], rows_b: Sequence[Row], a: str, b: str, family: Family | None = None
) -> Comparison:
    """Every cell that both sides have, in A's order. `a` and `b` are the names of the sides; see
    `Side`. Without a family this comparison is one."""
    invalid_a, invalid_b = (sum(not row.valid for row in rows) for rows in (rows_a, rows_b))
    rows_a, rows_b = without_shorter(rows_a), without_shorter(rows_b)
    shared = shared_cells(rows_a, rows_b)
    family = family or Family(len(shared))
    compared = (compare_cell(rows_a, rows_b, cell, family) for cell in shared)
    return Comparison(
        a=a,
        b=b,
        family=family,
        cells=tuple(compared),
        only_a=tuple(cell for cell in _cells(rows_a) if cell not in shared),
        only_b=tuple(cell for cell in _cells(rows_b) if cell not in shared),
        invalid_a=invalid_a,
        invalid_b=invalid_b,
    )


def _cells(rows: Sequence[Row]) -> dict[Cell, None]:
    return dict.fromkeys(map(Cell.of, rows))


def shared_cells(rows_a: Sequence[Row], rows_b: Sequence[Row]) -> list[Cell]:
    """The loads that both sides have, in A's order."""
    cells_b = _cells(rows_b)
    return [cell for cell in _cells(rows_a) if cell in cells_b]


def metrics(cell: Cell) -> tuple[Metric, Metric]:
    """Goodput, and the p95 that users would feel (open) or the engine saw."""
    return ("goodput_rps", "p95_ms" if cell.mode == "open" else "raw_p95_ms")


def compare_cell(
    rows_a: Sequence[Row], rows_b: Sequence[Row], cell: Cell, family: Family
) -> CellComparison:
    """The one answer of a cell, from all rows of both sides."""
    every_a, every_b = rows_a, rows_b
    rows_a, rows_b = ([row for row in rows if Cell.of(row) == cell] for rows in (rows_a, rows_b))
    metric, p95 = metrics(cell)
    no_p95 = ""
    if cell.mode == "open":
        no_p95 = _no_p95(rows_a, rows_b)
        metric = metric if no_p95 else p95
    # Which launches tell a latency may follow from the latency.
    tries_a, tries_b = Tries.of(every_a, cell, metric), Tries.of(every_b, cell, metric)
    measure: Measure = metric if metric == "goodput_rps" else slo_p95_ms
    a, b = median_per_launch(rows_a, measure), median_per_launch(rows_b, measure)
    values = Values.of(rows_a, rows_b, measure)
    ratio = None
    answer: Answer = "inconclusive"
    if a is None or b is None:
        sides = [name for name, side in (("A", a), ("B", b)) if side is None]
        why = f"no valid trial of {' and '.join(sides)} tells {metric}"
    elif not (why := values.without_ratio(metric)):
        ratio = values.ratio(family.confidence)
        answer, why = answer_of(
            ratio,
            higher_is_better=metric == "goodput_rps",
            paired=values.paired,
            family=family,
        )
        answer, why = _without_generator(
            metric, rows_a, rows_b, ratio, (answer, why), paired=values.paired, family=family
        )
        if answer in ALIKE and no_p95 and (kept := _keep_up(rows_a, rows_b)):
            answer, why = "inconclusive", kept
    if answer != "inconclusive" and (failing := _by_errors(answer, rows_a, rows_b)):
        answer, why = "inconclusive", failing
    uneven = uneven_tries(tries_a, tries_b) or uneven_others(rows_a, rows_b)
    if answer != "inconclusive" and uneven:
        answer, why = "inconclusive", uneven
    return CellComparison(
        cell, metric, a, b, values.paired, ratio, answer, why, no_p95, tries_a, tries_b
    )


def slo_p95_ms(row: Row) -> float | None:
    """The p95 of an open load, with requests without an answer as the slowest."""
    p95_ms = judged_ms(row, "p95")
    return None if p95_ms == math.inf else p95_ms


def generator_share(row: Row) -> float | None:
    """The share of a closed load's cycle (answer, next request, next answer) that the generator
    took: X · Z / N (Little), with Z its think time. None in an open load, and where nobody tells
    it."""
    if row.mode != "closed" or row.think_ms is None or row.achieved_rps is None:
        return None
    return row.achieved_rps * row.think_ms / 1000 / row.concurrency


def late_share(row: Row) -> float | None:
    """The share of an open load's p95 that may be the time by which the generator sent late: at
    most what the p95 is above that of the latencies from sending. It is taken as no more than the
    p99 of the lateness; percentiles do not add up, so that is no bound. None where nobody tells
    the lateness."""
    if not row.p95_ms or row.raw_p95_ms is None or row.late_p99_ms is None:
        return None
    return min(max(0.0, row.p95_ms - row.raw_p95_ms), row.late_p99_ms) / row.p95_ms


def generator_factor(rows_a: Sequence[Row], rows_b: Sequence[Row], metric: Metric) -> float | None:
    """By what factor the ratio B / A is another without the generator's share s: of the cycle of a
    closed load, without which a side had X / (1 - s), or of the p95 of an open one, without which
    it had p95 · (1 - s). None where that is no more than GENERATOR_SHARE, or not known."""
    is_p95 = metric == "p95_ms"
    share = late_share if is_p95 else generator_share
    a, b = (median_per_launch(rows, share) for rows in (rows_a, rows_b))
    if a is None or b is None or max(a.median, b.median) >= 1:
        return None
    by = (1 - a.median) / (1 - b.median)
    if abs(math.log(by)) <= GENERATOR_SHARE:
        return None
    return 1 / by if is_p95 else by


def _without_generator(
    metric: Metric,
    rows_a: Sequence[Row],
    rows_b: Sequence[Row],
    ratio: RatioOf,
    told: tuple[Answer, str],
    *,
    paired: bool,
    family: Family,
) -> tuple[Answer, str]:
    """The answer about goodput of a closed load or the p95 of an open one, and why: none where it
    is another one without the generator."""
    answer, why = told
    by = generator_factor(rows_a, rows_b, metric)
    if by is None or ratio.interval is None or answer == "inconclusive":
        return told
    low, high = ratio.interval.low * by, ratio.interval.high * by
    without = replace(
        ratio, ratio=ratio.ratio * by, interval=replace(ratio.interval, low=low, high=high)
    )
    is_p95 = metric == "p95_ms"
    other, _ = answer_of(without, higher_is_better=not is_p95, paired=paired, family=family)
    share = late_share if is_p95 else generator_share
    a, b = (median_per_launch(rows, share) for rows in (rows_a, rows_b))
    shares = [f"{one.median:.1%}" for one in (a, b) if one]
    took = "took {} of each cycle of A and {}".format(*shares)
    if is_p95:
        took = "sent late, for up to {} of A's p95 and {}".format(*shares)
    decides = ", which may decide the answer" if other != answer else ""
    said = (
        f"the generator {took} of B's{decides}: without it the interval is [{low:.3f}, {high:.3f}]"
    )
    return ("inconclusive", said) if decides else (answer, f"{why}; {said}")


def _by_errors(answer: Answer, rows_a: Sequence[Row], rows_b: Sequence[Row]) -> str:
    """Why a side may be better than the other, or alike, by its errors; empty where it is not. The
    side that the answer calls worse is not asked."""
    if answer != "slower" and (failing := _fails(rows_b, rows_a, NAMES[::-1])):
        return failing
    return "" if answer == "faster" else _fails(rows_a, rows_b, NAMES)


def _fails(rows: Sequence[Row], others: Sequence[Row], names: tuple[str, str]) -> str:
    """Why the first side is not as good as its goodput: it fails more requests than is usual of the
    other, which may cost a closed load no goodput at all where errors are quick; empty where it
    does not."""
    usual = usual_errors(others)
    count, count_others = (sum(row.valid for row in side) for side in (rows, others))
    bad, bad_others = (
        sum(row.valid and fails_beyond(row, usual) for row in side) for side in (rows, others)
    )
    if bad * count_others <= bad_others * count:
        return ""
    side, other = names
    return (
        f"{most_errors(rows):.1%} of the requests of {side} fail in a trial, and {usual:.1%} is "
        f"usual of {other}: more do in {bad} of {count} trials of {side}, and in {bad_others} of "
        f"{count_others} of {other}"
    )


def fails_beyond(row: Row, usual: float) -> bool:
    """Whether more of its requests failed than this share, by more than MOST_ERRORS."""
    return error_share(row, row.offered_rps) > usual + MOST_ERRORS


def uneven_tries(a: Tries, b: Tries, names: tuple[str, str] = NAMES) -> str:
    """Why the launches that count may decide the answer; empty where they do not."""
    if abs(a.share - b.share) <= UNEVEN:
        return ""
    return f"{tries_text(a, b, names)}: which launches were left out may decide the answer"


def uneven_others(
    rows_a: Sequence[Row], rows_b: Sequence[Row], names: tuple[str, str] = NAMES
) -> str:
    """Why work outside the lab may decide the answer: it took CPUs that were short from more
    launches of one side than of the other. Empty where it did not, and where the sides took turns
    in a run: there it is part of the interval."""
    if _side_by_side(rows_a, rows_b):
        return ""
    told, shares = [], []
    for name, rows in zip(names, (rows_a, rows_b), strict=True):
        valid = [row for row in rows if row.valid]
        every = {(row.run, row.arm, row.launch) for row in valid}
        short = {(row.run, row.arm, row.launch) for row in valid if row.others_cpu is not None}
        told.append(f"{len(short)} of {len(every)} launches of {name}")
        shares.append(len(short) / len(every) if every else 0.0)
    if abs(shares[0] - shares[1]) <= UNEVEN:
        return ""
    return (
        f"work outside the lab took CPUs that were short from {' and '.join(told)}, which may "
        "decide the answer"
    )


def tries_text(a: Tries, b: Tries, names: tuple[str, str] = NAMES) -> str:
    """How many launches of each side did not count at their first try, for people."""
    sides = []
    for name, of in zip(names, (a, b), strict=True):
        text = f"{of.again + of.lost} of {of.launches} launches of {name}"
        sides.append(f"{text} ({of.lost} lost)" if of.lost else text)
    return f"measured again or lost: {' and '.join(sides)}"


def _side_by_side(rows_a: Sequence[Row], rows_b: Sequence[Row]) -> bool:
    """Whether the sides have a run of fresh JVMs in common."""
    runs_a, runs_b = ({row.run for row in rows if row.launch} for rows in (rows_a, rows_b))
    return bool(runs_a & runs_b)


def _overloaded_sides(rows_a: Sequence[Row], rows_b: Sequence[Row]) -> list[str]:
    rows = (("A", rows_a), ("B", rows_b))
    return [name for name, of in rows if any(overloaded(row) for row in of if row.valid)]


def _keep_up(rows_a: Sequence[Row], rows_b: Sequence[Row]) -> str:
    """Why an open load's goodput does not tell how alike the sides are: a launch of one of them
    answered all that was offered, and may do more. Empty where that is not so."""
    rows = zip(NAMES, (rows_a, rows_b), strict=True)
    kept = [name for name, of in rows if not all(overloaded(row) for row in of if row.valid)]
    if not kept:
        return ""
    return (
        f"a launch of {' and one of '.join(kept)} answered all that was offered: how much more it "
        "can, or how late it was, goodput does not tell"
    )


def _no_p95(rows_a: Sequence[Row], rows_b: Sequence[Row]) -> str:
    """Why the p95 of an open load is not compared; empty where it is."""
    rows = (("A", rows_a), ("B", rows_b))
    over = _overloaded_sides(rows_a, rows_b)
    if over:
        were = "was" if len(over) == 1 else "were"
        return (
            f"{' and '.join(over)} {were} overloaded, and p95 then grows with the length of the run"
        )
    shares = [(name, most_errors(of)) for name, of in rows]
    of = [f"{share:.1%} of {name}'s requests" for name, share in shares if share > MOST_ERRORS]
    return f"{' and '.join(of)} were errors" if of else ""


def overloaded(row: Row) -> bool:
    """Whether the backlog of an open trial grew, so that its p95 depends on the window's length:
    its load was not kept (see Row), or the wait grew by more than a quarter of the p95. The edges
    of a window explain as many requests as an engine may send at once, one for each connection."""
    if row.offered_rps is None or row.achieved_rps is None or row.window_s is None:
        return bool(row.overloaded)
    offered_rps = offered(row)
    if not offered_rps:
        return bool(row.overloaded)
    ended_rps = row.achieved_rps + lost_rps(row, row.offered_rps)
    grown_s = (1 - ended_rps / offered_rps) * row.window_s
    edges_s = row.concurrency / offered_rps
    return bool(row.overloaded) or grown_s > max(GROWN * (row.p95_ms or 0.0) / 1000, edges_s)


def answer_of(
    ratio: RatioOf, *, higher_is_better: bool, paired: bool = False, family: Family = ALONE
) -> tuple[Answer, str]:
    """The answer about B that the interval of B / A gives, and why."""
    interval, few = ratio.interval, _too_few(ratio, family, paired=paired)
    if interval is None or few:
        return "inconclusive", few
    above, below = interval.low > 1 + MARGIN, interval.high < 1 / (1 + MARGIN)
    if above or below:
        return ("faster" if above == higher_is_better else "slower"), (
            f"the whole interval is beyond a factor of {1 + MARGIN:g}"
        )
    inside = interval.low >= 1 / (1 + MARGIN) and interval.high <= 1 + MARGIN
    differs = interval.low > 1 or interval.high < 1
    if inside:
        return ("differs, by less than 5 %" if differs else "no difference"), (
            f"the whole interval is within a factor of {1 + MARGIN:g}"
        )
    if differs:
        return "differs", (
            f"the interval excludes 1 and reaches across a factor of {1 + MARGIN:g}: whether the "
            "difference is larger is open"
        )
    return "inconclusive", (
        f"the interval holds 1 and reaches beyond a factor of {1 + MARGIN:g}: it is too wide "
        f"(launches: {_launches(ratio, paired=paired)})"
    )


def _too_few(ratio: RatioOf, family: Family, *, paired: bool) -> str:
    """Why so few launches cannot have an answer of this family; empty where they can."""
    if ratio.interval is not None and ratio.interval.coverage >= family.confidence:
        return ""
    each = f"each of {family.answers} answers" if family.answers > 1 else "the answer"
    return (
        f"too few launches ({_launches(ratio, paired=paired)}): {each} needs an interval of "
        f"{percent(family.confidence)}, so LAUNCHES={family.launches}"
    )


def _launches(ratio: RatioOf, *, paired: bool) -> str:
    return f"{ratio.count_a}, paired" if paired else f"{ratio.count_a} and {ratio.count_b}"


def percent(confidence: float) -> str:
    """A confidence, never rounded up: 99.75 %."""
    return f"{int(confidence * 10_000 + 1e-6) / 100:g} %"


def too_few_launches(plans: Sequence[TrialPlan]) -> str:
    """Before a run: that its launches cannot give an answer; empty where they can, or where nothing
    is compared or repeated."""
    loads = {
        (plan.route, plan.engine, plan.mode, plan.concurrency, plan.offered_rps) for plan in plans
    }
    family = Family(len(loads) * len(list(_pairs(dict.fromkeys(map(lane_of, plans))))))
    launches = max((plan.launch for plan in plans), default=0)
    if not family.answers or not 1 < launches < family.launches:
        return ""
    return (
        f"{launches} launches are too few to call anything faster: the {family.answers} "
        f"comparisons of this run take LAUNCHES={family.launches}"
    )


def lanes(rows: Sequence[Row]) -> tuple[Comparison, ...]:
    return compare_all(pairs_in(rows))


def pairs_in(rows: Sequence[Row]) -> list[tuple[Side, Side]]:
    """What is compared inside one run. Where servers are in arms, each later arm of a server is
    compared with its first; else each later server with the first."""
    by_lane: dict[str, list[Row]] = {}
    for row in rows:
        by_lane.setdefault(lane_of(row), []).append(row)
    return [((a, by_lane[a]), (b, by_lane[b])) for a, b in _pairs(by_lane)]


def _pairs(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    in_arms: dict[str, list[str]] = {}
    for name in names:
        in_arms.setdefault(name.partition("@")[0] if "@" in name else "", []).append(name)
    for together in in_arms.values():
        for later in together[1:]:
            yield together[0], later
