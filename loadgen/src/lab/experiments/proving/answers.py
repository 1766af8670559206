"""What pairs of trials without and with a change say of what was changed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from lab.judge.compare import MARGIN, metrics
from lab.judge.grouping import Cell
from lab.judge.intervals import LEAST_VALUES, RatioOf, ratio_of_pairs
from lab.model import Row, goodput

# A spinner that got less than this share of the CPUs has taken too little to be felt.
LEAST_SPUN = 0.05
# Shares of a proportional fall, of the logarithms: a goodput that surely falls by more than half of
# it follows the CPUs; one that surely falls by more than one and a half was disturbed otherwise.
FOLLOWS, DISTURBED = 0.5, 1.5
Answer = Literal["confirmed", "withdrawn", "inconclusive"]


def answer_of(ratio: RatioOf) -> tuple[Answer, str]:
    """The answer that the ratio after / before of the goodput gives of a resource, and why."""
    interval = ratio.interval
    if interval is None:
        return "inconclusive", _no_interval(ratio)
    return answer_of_ends(interval.low, interval.high)


def answer_of_ends(low: float, high: float) -> tuple[Answer, str]:
    """As `answer_of`, of the ends of the ratio's interval."""
    if low > 1 + MARGIN:
        return "confirmed", f"the whole interval is above {1 + MARGIN:g}"
    if high <= 1 + MARGIN:
        return "withdrawn", f"the whole interval is at most {1 + MARGIN:g}: more of it is no help"
    return "inconclusive", f"the interval reaches from {low:.2f} to above {1 + MARGIN:g}"


def answer_of_fall(ratio: RatioOf, dose: float | None, more: RatioOf | None) -> tuple[Answer, str]:
    """The answer of taking the share `dose` of the CPUs away: `ratio` is the goodput then, `more`
    the goodput with more connections, both as multiples of the goodput before.

    Where all CPUs are busy for the load, goodput is CPUs / CPU time per request, so it falls to
    1 - dose. It falls somewhat deeper, as the lab's own steady work does not shrink, and less deep
    where requests get cheaper. So the middle between no fall and a proportional one decides, in
    logarithms √(1 - dose). An interval below it is confirmed, unless it is so far below a
    proportional fall that the spinner must have done more than take CPUs. An interval above it is
    withdrawn if it also reaches 1 / (1 + MARGIN): a smaller fall that is surely one is neither.
    Goodput that more connections raise by MARGIN had CPUs left."""
    interval = ratio.interval
    if interval is None:
        return "inconclusive", _no_interval(ratio)
    if dose is None or dose < LEAST_SPUN:
        return "inconclusive", f"the spinner got {dose or 0:.0%} of the CPUs only"
    if more is not None and more.interval is not None and more.interval.low > 1 + MARGIN:
        return "withdrawn", "more connections raise goodput: there were CPUs left"
    left = 1 - dose
    middle, deep = left**FOLLOWS, left**DISTURBED
    if interval.high < deep:
        return "inconclusive", f"goodput falls much deeper than to the ×{left:.2f} of the CPUs left"
    if interval.high <= middle:
        return (
            "confirmed",
            f"the whole interval is at most {middle:.2f}, with ×{left:.2f} of the CPUs",
        )
    if interval.low > middle and interval.high >= 1 / (1 + MARGIN):
        return "withdrawn", f"goodput does not follow the CPUs, of which ×{left:.2f} are left"
    return "inconclusive", (
        f"the interval reaches from {interval.low:.2f} to {interval.high:.2f}, with ×{left:.2f} of "
        "the CPUs"
    )


def _no_interval(ratio: RatioOf) -> str:
    return f"no interval: it takes {LEAST_VALUES} pairs, not {ratio.count_a}"


def goodput_ratio(before: Sequence[Row], after: Sequence[Row]) -> tuple[RatioOf | None, bool]:
    """The ratio after / before, and whether it is only a lower bound. A goodput of 0 has no ratio.
    We then use one answer in the window, the least that could have been seen."""
    without, changed = goodputs(before), goodputs(after)
    if not without or not changed:
        return None, False
    seen = [max(value, least) for value, least in without]
    then = [max(value, least) for value, least in changed]
    return ratio_of_pairs(seen, then), any(value <= 0 for value, _ in without)


def goodputs(rows: Sequence[Row]) -> list[tuple[float, float]]:
    """(goodput, one answer in the window) of each row; empty where one of them is unknown."""
    found = []
    for row in rows:
        value = goodput(row)
        if value is None or not row.window_s:
            return []
        found.append((value, 1 / row.window_s))
    return found


def p95_ratio(before: Sequence[Row], after: Sequence[Row]) -> RatioOf | None:
    """The ratio after / before of p95, in an open load of the corrected one; None where a trial
    does not tell it."""

    def known(rows: Sequence[Row]) -> list[float]:
        values: list[float | None] = [getattr(row, metrics(Cell.of(row))[1]) for row in rows]
        return [value for value in values if value]

    without, changed = known(before), known(after)
    if not without or (len(without), len(changed)) != (len(before), len(after)):
        return None
    return ratio_of_pairs(without, changed)
