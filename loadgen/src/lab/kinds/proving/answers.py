"""What pairs of trials without and with a change say of what was changed. Pure."""

import math
import statistics
from collections.abc import Mapping, Sequence
from copy import replace

from lab.judge.compare import MARGIN, UNEVEN
from lab.judge.intervals import LEAST_VALUES, MedianOf, RatioOf, pseudo_median_of, ratio_of_pairs
from lab.judge.trial import HOST_CROWDED
from lab.kinds.kind import ends
from lab.kinds.proving.levers import HOST_CPU, Change
from lab.kinds.proving.present import Present
from lab.model import Answer, Remark, Row, around_server_us, goodput, p95_of

# A spinner that got less than this share of the CPUs has taken too little to be felt.
LEAST_SPUN = 0.03
# Goodput that surely falls by more than this share of a proportional fall follows the CPUs; one
# that surely falls by more than the other was disturbed otherwise.
FOLLOWS, DISTURBED = 0.5, 1.5
# An answer, and why.
Answered = tuple[Answer, Remark]


def answer_of(ratio: RatioOf) -> Answered:
    """The answer that the ratio after / before of the goodput gives of a resource."""
    interval = ratio.interval
    if interval is None:
        return "inconclusive", _too_few(ratio.count_a)
    if interval.low > 1 + MARGIN:
        return "confirmed", Remark("rises", {"margin": 1 + MARGIN})
    if interval.high <= 1 + MARGIN:
        return "withdrawn", Remark("no-rise", {"margin": 1 + MARGIN})
    return "inconclusive", Remark("may-rise", {"low": interval.low, "margin": 1 + MARGIN})


def answer_of_rise(
    resources: tuple[str, ...],
    change: Change,
    now: Present,
    before: Sequence[Row],
    after: Sequence[Row],
    ratio: RatioOf,
) -> Answered:
    """The answer of more of the resources. Goodput that does not rise withdraws them only where
    nothing else explains that."""
    answered = answer_of(ratio)
    if answered[0] == "withdrawn":
        if change.unseen:
            return "inconclusive", Remark("unseen", {"variable": ", ".join(change.unseen)})
        if change.keeps:
            return "inconclusive", Remark("few-threads", change.keeps)
        measured = statistics.median(rps for rps, _ in goodputs(before))
        bound = now.near(change.step, measured) if measured else None
        # A resource with a bound of its own above the goodput was no limit anyway.
        if bound and not all(now.slack(resource, measured) for resource in resources):
            times = {"times": bound.rps / measured}
            bounds = {"bound": bound.resource, "formula": bound.formula}
            return "inconclusive", Remark("no-room", {**times, **bounds})
        if change.at_most and change.at_most <= 1 + 2 * MARGIN:
            return "inconclusive", Remark("small-step", {"times": change.at_most})
    if answered[0] == "confirmed" and change.saves_ms:
        answered = answer_of_time(before, after, change.saves_ms)
    if answered[0] == "confirmed" and change.frees:
        full = crowded(before, now.shared_cpus)
        return ("inconclusive", full) if full else answered
    return answered


def uneven(again: Mapping[str, int], tries: Mapping[str, int]) -> Answered | None:
    """The answer where one side was measured `again` for a larger share of its `tries`: the second
    try of a JVM that the change takes anew is warmer than a first one."""
    counts = {side: min(again[side], tries[side]) for side in ("before", "after")}
    shares = [count / tries[side] if tries[side] else 0.0 for side, count in counts.items()]
    if abs(shares[0] - shares[1]) <= UNEVEN:
        return None
    return "inconclusive", Remark("uneven-tries", {**counts, "pairs": tries["before"]})


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
        y = [math.log(value / whole) for value in less]
        slopes.append(math.sumprod(x, y) / math.sumprod(x, x))
    return pseudo_median_of(slopes)


def answer_of_fall(fall: MedianOf, least_dose: float) -> Answered:
    """The answer of taking some of the CPUs away: `fall` is b of `fall_of`, `least_dose` the
    smallest share that was really taken.

    b is somewhat above 1 where the lab's own steady work does not shrink, and below 1 where
    requests get cheaper. So the middle between no fall and a proportional one decides."""
    interval = fall.interval
    if interval is None:
        return "inconclusive", _too_few(fall.count)
    if least_dose < LEAST_SPUN:
        return "inconclusive", Remark("small-dose", {"share": least_dose})
    values = {"fall": fall.median, "low": interval.low, "high": interval.high}
    if interval.low > DISTURBED:
        return "inconclusive", Remark("falls-more", values)
    if interval.low > FOLLOWS:
        return "confirmed", Remark("falls", values)
    if interval.high <= FOLLOWS:
        return "withdrawn", Remark("no-fall", values)
    return "inconclusive", Remark("may-fall", values)


def answer_of_time(before: Sequence[Row], after: Sequence[Row], saved_ms: int) -> Answered:
    """The answer of taking `saved_ms` off each request, where goodput rose. While all N connections
    are busy a request takes R = N / X (Little's law), waits included. With d less of it goodput
    rises to R / (R - d) of what it was, whoever waits for whom. Only where requests wait for each
    other it rises by more, as these waits get shorter too."""
    saved = [saved_ms / 1000 * (row.achieved_rps or 0.0) / row.concurrency for row in before]
    if max(saved) >= 1:
        return "inconclusive", Remark("shorter-than-saved", {"saved_ms": saved_ms})
    sooner = [
        replace(row, achieved_rps=(row.achieved_rps or 0.0) / (1 - share))
        for row, share in zip(before, saved, strict=True)
    ]
    ratio, _ = goodput_ratio(sooner, after)
    if ratio and (answered := answer_of(ratio))[0] == "confirmed":
        return answered
    by_time = statistics.median(1 / (1 - share) for share in saved)
    return "inconclusive", Remark("rise-by-time", {"saved_ms": saved_ms, "times": by_time})


def crowded(rows: Sequence[Row], cpus: int | None) -> Remark | None:
    """Why more CPU time alone may raise the goodput of these rows; None where there was enough of
    it.

    Of the machine's `cpus` what the lab's parts used counts, and work outside the lab as far as the
    rows tell of it. The kernel's own work is not in it: so the CPUs need not be full, but crowded.
    `cpus` None: the parts of the lab have CPUs of their own."""
    if 2 * sum(row.bottleneck == HOST_CPU for row in rows) > len(rows):
        return Remark("cpus-named")
    if cpus is None:
        return None
    used = []
    for row in rows:
        around = around_server_us(row)
        if row.achieved_rps is None or row.cpu_server_us is None or around is None:
            return Remark("cpus-unknown")
        each_us = row.cpu_server_us + around
        used.append(row.achieved_rps * each_us / 1e6 / cpus + (row.others_cpu or 0.0))
    busy = statistics.median(used)
    return Remark("cpus-busy", {"share": min(1.0, busy)}) if busy >= HOST_CROWDED else None


def with_ends(ratio: RatioOf | None) -> tuple[float, float | None, float | None] | None:
    """A ratio with the ends of its interval."""
    return (ratio.ratio, *ends(ratio.interval)) if ratio else None


def _too_few(pairs: int) -> Remark:
    return Remark("few-pairs", {"needed": LEAST_VALUES, "pairs": pairs})


def goodput_ratio(before: Sequence[Row], after: Sequence[Row]) -> tuple[RatioOf | None, bool]:
    """The ratio after / before, and whether it is only a lower bound. A goodput of 0 has no ratio.
    We then use one answer in the window, the least that could have been seen."""
    without, changed = goodputs(before), goodputs(after)
    if not without or not changed:
        return None, False
    ratio = ratio_of_pairs([*map(max, without)], [*map(max, changed)])
    return ratio, any(value <= 0 for value, _ in without)


def goodputs(rows: Sequence[Row]) -> list[tuple[float, float]]:
    """(goodput, one answer in the window) of each row; empty where one of them is unknown."""
    values = [(goodput(row), row.window_s) for row in rows]
    pairs = [(rps, 1 / window_s) for rps, window_s in values if rps is not None and window_s]
    return pairs if len(pairs) == len(values) else []


def p95_ratio(before: Sequence[Row], after: Sequence[Row]) -> RatioOf | None:
    """The ratio after / before of p95, in an open load of the corrected one; None where a trial
    does not have it."""
    without, changed = ([p95_of(row) for row in rows] for rows in (before, after))
    if not without or not all((*without, *changed)):
        return None
    return ratio_of_pairs([p95 or 0.0 for p95 in without], [p95 or 0.0 for p95 in changed])
