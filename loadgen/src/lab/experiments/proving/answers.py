"""What pairs of trials without and with a change say of what was changed. Pure."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from lab.experiments.proving.levers import HOST_CPU
from lab.judge.compare import MARGIN
from lab.judge.intervals import (
    LEAST_VALUES,
    MedianOf,
    RatioOf,
    pseudo_median_of,
    ratio_of_pairs,
)
from lab.judge.trial import HOST_CROWDED
from lab.model import Row, around_server_us, goodput

# A spinner that got less than this share of the CPUs has taken too little to be felt.
LEAST_SPUN = 0.03
# Goodput that surely falls by more than this share of a proportional fall follows the CPUs; one
# that surely falls by more than the other was disturbed otherwise.
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


def fall_of(before: Sequence[Row], *dosed: Sequence[Row]) -> MedianOf | None:
    """How steeply goodput falls with the CPUs that are taken away: b of (1 - dose)^b, by least
    squares through the round's trial without a dose, round by round. None without trials whose
    goodput and doses are known.

    Where all CPUs are busy for the load, goodput is CPUs / CPU time per request, so b is 1 from the
    smallest dose on. Where something else limits at U busy CPUs, goodput falls to (1 - dose) / U,
    and not before the dose is 1 - U. With the DOSES b is then 0.16 at 92 % busy, 0.43 at 95 %, and
    0.66 at 97 %: a limit that leaves so few CPUs cannot be told from them."""
    sides = [goodputs(rows) for rows in (before, *dosed)]
    if not all(sides) or not all(row.spun for rows in dosed for row in rows):
        return None
    slopes = []
    for spun, values in zip(zip(*dosed, strict=True), zip(*sides, strict=True), strict=True):
        whole, *less = map(max, values)
        x = [math.log(1 - (row.spun or 0.0)) for row in spun]
        y = [math.log(each / whole) for each in less]
        slopes.append(math.sumprod(x, y) / math.sumprod(x, x))
    return pseudo_median_of(slopes)


def answer_of_fall(fall: MedianOf, least_dose: float) -> tuple[Answer, str]:
    """The answer of taking some of the CPUs away: `fall` is b of `fall_of`, `least_dose` the
    smallest share that was really taken.

    b is somewhat above 1 where the lab's own steady work does not shrink, and below 1 where
    requests get cheaper. So the middle between no fall and a proportional one decides."""
    interval = fall.interval
    if interval is None:
        return "inconclusive", f"no interval: it takes {LEAST_VALUES} rounds, not {fall.count}"
    if least_dose < LEAST_SPUN:
        return "inconclusive", f"the spinner got {least_dose:.0%} of the CPUs only"
    taken = (
        f"goodput falls by {fall.median:.2f} [{interval.low:.2f}, {interval.high:.2f}] of the "
        "share of the CPUs that is taken"
    )
    if interval.low > DISTURBED:
        return "inconclusive", f"{taken}: the spinner does more than take CPUs"
    if interval.low > FOLLOWS:
        return "confirmed", f"{taken}: it follows them"
    if interval.high <= FOLLOWS:
        return "withdrawn", f"{taken}: it does not follow them"
    return "inconclusive", taken


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
