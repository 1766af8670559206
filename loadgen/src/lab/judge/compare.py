"""Two sides compared, load by load: faster, slower, no difference, or inconclusive. Pure.

Each side has one value per launch (a fresh JVM). The ratio of the sides has an exact interval that
assumes no distribution (`intervals.ratio_of`). The answer follows from the place of that interval,
never from a difference of two medians alone:

    1/(1+m)      1      1+m         m: MARGIN, within which sides are the same in practice
    ---|---------|-------|---
       | [----------]    |     inside the margin:         no difference
       |         | [-----|--]  beyond it, and 1 outside:  faster or slower
    [--|---------|---]   |     beyond it, and 1 inside:   inconclusive

So a difference smaller than the margin is no difference, however sure it is, and samples without
any spread need no rule of their own. (D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15 (1987) 657,
answers the question of equivalence by an interval. Here it is the interval of the comparison, which
is wider than his, and so errs towards "inconclusive".)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from lab.judge.grouping import Cell, Metric, lane_of, median_per_launch, most_errors, per_launch
from lab.judge.intervals import LEAST_VALUES, Interval, MedianOf, RatioOf, ratio_of
from lab.model import Row

MARGIN = 0.05
# Errors may be quicker than answers, or as slow as a timeout. With a larger share of them in a
# trial of one side, the percentiles of all answers are not those of its work.
MOST_ERRORS = 0.01
Answer = Literal["faster", "slower", "no difference", "inconclusive"]


@dataclass(frozen=True, slots=True)
class CellComparison:
    """Side B against side A at one load: `ratio` is B / A, `answer` is about B, `why` is for
    people.

    A side is None where it has no valid trial that tells this metric; then the ratio is None too.
    """

    cell: Cell
    metric: Metric
    a: MedianOf | None
    b: MedianOf | None
    ratio: RatioOf | None
    answer: Answer
    why: str

    @property
    def interval(self) -> Interval | None:
        """The interval of the ratio."""
        return self.ratio.interval if self.ratio else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All cells that both sides have, and the cells that only one side has.

    `invalid_a` and `invalid_b` count the invalid trials, which were left out.
    """

    a: str
    b: str
    cells: tuple[CellComparison, ...]
    only_a: tuple[Cell, ...]
    only_b: tuple[Cell, ...]
    invalid_a: int
    invalid_b: int


def compare(rows_a: Sequence[Row], rows_b: Sequence[Row], a: str, b: str) -> Comparison:
    """Every cell that both sides have, in A's order, on goodput and on p95. `a` and `b` are the
    names of the sides. The rows of a side are one lane, of one run or of runs that may be
    pooled."""
    cells_a = dict.fromkeys(map(Cell.of, rows_a))
    cells_b = dict.fromkeys(map(Cell.of, rows_b))
    compared = []
    for cell in cells_a:
        if cell in cells_b:
            in_a = [row for row in rows_a if Cell.of(row) == cell]
            in_b = [row for row in rows_b if Cell.of(row) == cell]
            compared += [compare_cell(in_a, in_b, cell, metric) for metric in metrics(cell)]
    return Comparison(
        a=a,
        b=b,
        cells=tuple(compared),
        only_a=tuple(cell for cell in cells_a if cell not in cells_b),
        only_b=tuple(cell for cell in cells_b if cell not in cells_a),
        invalid_a=sum(not row.valid for row in rows_a),
        invalid_b=sum(not row.valid for row in rows_b),
    )


def metrics(cell: Cell) -> tuple[Metric, ...]:
    """The metrics to compare: goodput, and the p95 that users would feel (open) or the engine
    saw."""
    return ("goodput_rps", "p95_ms" if cell.mode == "open" else "raw_p95_ms")


def compare_cell(
    rows_a: Sequence[Row], rows_b: Sequence[Row], cell: Cell, metric: Metric
) -> CellComparison:
    """One metric of one cell, from all rows of the cell."""
    values_a, values_b = per_launch(rows_a, metric), per_launch(rows_b, metric)
    a, b = median_per_launch(rows_a, metric), median_per_launch(rows_b, metric)
    ratio = None
    answer: Answer = "inconclusive"
    failing = "" if metric == "goodput_rps" else _failing(rows_a, rows_b)
    if a is None or b is None:
        sides = [name for name, side in (("A", a), ("B", b)) if side is None]
        why = f"no valid trial of {' and '.join(sides)} tells {metric}"
    elif min(*values_a, *values_b) <= 0:
        why = f"{metric} of 0 has no ratio"
    elif failing:
        why = failing
    else:
        ratio = ratio_of(values_a, values_b)
        answer, why = answer_of(ratio, higher_is_better=metric == "goodput_rps")
    return CellComparison(cell, metric, a, b, ratio, answer, why)


def _failing(rows_a: Sequence[Row], rows_b: Sequence[Row]) -> str:
    """Which sides had too many errors for a comparison of latencies; empty where none had."""
    shares = [("A", most_errors(rows_a)), ("B", most_errors(rows_b))]
    of = [f"{share:.1%} of {name}'s requests" for name, share in shares if share > MOST_ERRORS]
    return f"{' and '.join(of)} were errors" if of else ""


def answer_of(ratio: RatioOf, *, higher_is_better: bool) -> tuple[Answer, str]:
    """The answer about B that the interval of B / A gives, and why."""
    interval = ratio.interval
    if interval is None:
        return "inconclusive", (
            f"no interval: {ratio.count_a} and {ratio.count_b} launches, each side needs "
            f"{LEAST_VALUES}"
        )
    if interval.low >= 1 / (1 + MARGIN) and interval.high <= 1 + MARGIN:
        return "no difference", f"the whole interval is within a factor of {1 + MARGIN:g}"
    if interval.low > 1 or interval.high < 1:
        more = interval.low > 1
        return ("faster" if more == higher_is_better else "slower"), (
            f"the whole interval is {'above' if more else 'below'} 1, and it reaches beyond a "
            f"factor of {1 + MARGIN:g}"
        )
    return "inconclusive", (
        f"the interval holds 1 and reaches beyond a factor of {1 + MARGIN:g}: too wide, with "
        f"{ratio.count_a} and {ratio.count_b} launches"
    )


def lanes(rows: Sequence[Row]) -> tuple[Comparison, ...]:
    """The comparisons inside one run. Where servers are in arms, each later arm of a server is
    compared with its first; else each later server with the first."""
    by_lane: dict[str, list[Row]] = {}
    for row in rows:
        by_lane.setdefault(lane_of(row), []).append(row)
    return tuple(compare(by_lane[a], by_lane[b], a, b) for a, b in _pairs(by_lane))


def _pairs(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    in_arms: dict[str, list[str]] = {}
    for name in names:
        in_arms.setdefault(name.partition("@")[0] if "@" in name else "", []).append(name)
    for together in in_arms.values():
        for later in together[1:]:
            yield together[0], later


def by_chance(comparisons: Sequence[Comparison]) -> tuple[int, float]:
    """How many cells have an interval, and how many of these intervals should miss the true ratio:
    the sum of 1 - coverage. Many comparisons find a difference somewhere."""
    intervals = [
        cell.interval for of in comparisons for cell in of.cells if cell.interval is not None
    ]
    return len(intervals), sum(1 - interval.coverage for interval in intervals)
