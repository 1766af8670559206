"""What pairs of trials without and with a change say of what was changed. Pure."""

import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from lab.experiments.proving.levers import HOST_CPU
from lab.judge.compare import MARGIN
from lab.judge.intervals import LEAST_VALUES, RatioOf, ratio_of_pairs
from lab.judge.quantities import HOST_CROWDED
from lab.model import Row, around_server_us, goodput

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


def answer_of_time(
    before: Sequence[Row], after: Sequence[Row], saved_ms: int
) -> tuple[Answer, str]:
    """The answer of taking `saved_ms` off each request, where goodput rose. While all N connections
    are busy a request takes R = N / X (Little's law), waits included. With d less of it goodput
    rises to R / (R - d) of what it was, whoever waits for whom. Only where requests wait for each
    other it rises by more, as these waits get shorter too."""
    gone = [saved_ms / 1000 * (row.achieved_rps or 0.0) / row.concurrency for row in before]
    if max(gone) >= 1:
        return "inconclusive", f"a request took no longer than the {saved_ms} ms taken away from it"
    sooner = [
        replace(row, achieved_rps=(row.achieved_rps or 0.0) / (1 - share))
        for row, share in zip(before, gone, strict=True)
    ]
    ratio, _ = goodput_ratio(sooner, after)
    answer, why = answer_of(ratio) if ratio else ("inconclusive", "")
    if answer == "confirmed":
        return answer, why
    return "inconclusive", (
        f"{'no' if answer == 'withdrawn' else 'not surely'} more than the time that was taken away:"
        f" {saved_ms} ms less on the path of each request give "
        f"×{statistics.median(1 / (1 - share) for share in gone):.2f} by themselves"
    )


def crowded(rows: Sequence[Row], cpus: int | None) -> str:
    """Why more CPU time alone may raise the goodput of these rows; empty where there was enough of
    it.

    Of the machine's `cpus` what the lab's parts used counts, and work outside the lab as far as the
    rows tell of it. The kernel's own work is not in it: so the CPUs need not be full, but crowded.
    `cpus` None: the parts of the lab have CPUs of their own."""
    if 2 * sum(row.bottleneck == HOST_CPU for row in rows) > len(rows):
        return f"{HOST_CPU} was named without the change"
    if cpus is None:
        return ""
    used = []
    for row in rows:
        around = around_server_us(row)
        if row.achieved_rps is None or row.cpu_server_us is None or around is None:
            return "nobody knows how busy the CPUs were"
        each_us = row.cpu_server_us + around
        used.append(row.achieved_rps * each_us / 1e6 / cpus + (row.others_cpu or 0.0))
    busy = statistics.median(used)
    return f"the CPUs were at least {min(1, busy):.0%} busy" if busy >= HOST_CROWDED else ""


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
        values = [row.p95_ms if row.mode == "open" else row.raw_p95_ms for row in rows]
        return [value for value in values if value]

    without, changed = known(before), known(after)
    if not without or (len(without), len(changed)) != (len(before), len(after)):
        return None
    return ratio_of_pairs(without, changed)
