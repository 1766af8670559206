"""Where the mean time of a request went at the rates of a search, and what requests cost in CPU
time. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence

from lab.experiments.objective import Objective, judged
from lab.experiments.searching.state import Search, capacity_of
from lab.judge.time_split import (
    SPENT,
    UNEXPLAINED_SHARE,
    allowed_ms,
    growth,
    is_explained,
    mean_split,
)
from lab.model import EXTRAPOLATED, STRAIGHT, THROUGH, CpuSplit, Finding, Row

GREW = "what grew"
WENT = "where the time goes"
COST = "a million requests"
# The mean time must grow by this share before the lab says where.
LEAST_GREW = 0.05
# Windows whose lengths differ by no more than this factor are about as long.
ALIKE = 1.5
# A smaller part of the mean time rounds to nothing.
LEAST_TOLD_MS = 0.05


def grew(server: str, of: Sequence[Search]) -> Iterator[Finding]:
    """Where the mean time went by which a request took longer at the lowest rate that broke than at
    the highest that was held, of the launches that agree on these two; of several such pairs the
    one nearest to what is held. Of valid trials with windows about as long, as above the capacity a
    queue grows with the window. Where none is valid at the rate that broke, the next rate above it
    that has one tells. Means add up; percentiles do not."""
    ends = [(one.low.rate, one.broken.rate) for one in of if one.low and one.broken]
    if not ends:
        return
    held, counts = capacity_of([one for one in of if one.has_told])[0], Counter(ends)
    low, top = max(counts, key=lambda pair: (counts[pair], -abs(pair[0] - held)))
    agree = counts[low, top]
    before, above = list[Row](), dict[int, list[Row]]()
    for one in of:
        if one.low and one.broken and (one.low.rate, one.broken.rate) == (low, top):
            before += one.low.held
            for rung in one.rungs:
                valid = [row for row, _ in rung.broke if row.valid]
                if valid and rung.rate >= top:
                    above.setdefault(rung.rate, []).extend(valid)
    top = min(above, default=top)
    after = above.get(top, [])
    was = mean_split(row for row in before if row.valid and is_about_as_long(row, after))
    grown = growth(was, mean_split(after), LEAST_GREW * was.whole_ms)
    if grown is not None:
        text = (
            f"of the {grown.grown_ms:,.0f} ms that the mean grew from {low:,} to {top:,} req/s, "
            f"{grown.share:.0%} is {grown.most}"
        )
        if grown.most != SPENT[-1] and abs(grown.unexplained) > UNEXPLAINED_SHARE:
            text += f", {grown.unexplained:.0%} {SPENT[-1]}"
        if agree < len(of):
            text += f" (in {agree} of {len(of)} launches)"
        yield Finding(GREW, server, 0, grown.grown_ms, "ms", None, None, text)


def is_about_as_long(row: Row, others: Sequence[Row]) -> bool:
    lengths = [one.duration_s or 0 for one in others]
    return any(1 / ALIKE <= (row.duration_s or 0) / length <= ALIKE for length in lengths if length)


def went(
    server: str, of: Sequence[Search], own: Sequence[Row], objective: Objective
) -> Iterator[Finding]:
    """Where the mean time of a request goes at a rate that was held: of the pair with and without
    Toxiproxy, else of the trials that held the highest rate, where the proxy's time is in a wider
    part. A side of the pair that broke tells of no rate that was held. And whether more of it is
    unexplained than is allowed."""
    held = [row for one in of if one.low for row in one.low.held]
    known = [row for row in own if row.valid and row.time_own_ms is not None]
    kept = [row for row in known if row.arm == THROUGH and judged(objective, row)[0] == "held"]
    rows = kept or [row for row in known if row in held]
    if not rows:
        return
    rate = max(row.offered_rps or 0 for row in rows)
    rows = [row for row in rows if row.offered_rps == rate]
    # Past the proxy, too, a side that broke tells nothing.
    beside = [
        row
        for row in known
        if row.offered_rps == rate and (row.arm != STRAIGHT or judged(objective, row)[0] == "held")
    ]
    split = mean_split(rows, beside)
    parts = zip(split.parts, SPENT, strict=True)
    *told, left = [f"{part or 0.0:,.1f} ms {name}" for part, name in parts if _is_told(part, name)]
    p95s = [row.p95_ms for row in rows if row.p95_ms is not None]
    p95 = f" (its p95 {statistics.median(p95s):,.1f} ms)" if p95s else ""
    within = "within" if is_explained(split) else "beyond"
    text = (
        f"at {rate:,} req/s the mean is {split.whole_ms:,.1f} ms{p95}: {', '.join(told)}, and "
        f"{left}, {within} the {allowed_ms(split):,.1f} ms that are allowed"
    )
    if split.time_path_ms is not None:
        text += "; no pair with and without the proxy tells its time, which is on the path"
    elif split.proxy_ms is not None:
        text += "; the proxy's time is of one pair of trials, so without an interval"
    yield Finding(WENT, server, 0, split.whole_ms, "ms", None, None, text)


def _is_told(part_ms: float | None, name: str) -> bool:
    """Whether a part is more than what rounds to nothing; what is unexplained is always told."""
    return name == SPENT[-1] or abs(part_ms or 0.0) >= LEAST_TOLD_MS


def cost(server: str, of: Sequence[Search]) -> Iterator[Finding]:
    """What a million requests cost in CPU time at the rates that were held: medians of the valid
    trials, as in one with a cold JVM compiling would count as answering. A million times µs are
    seconds."""
    held = [row for one in of if one.low for row in one.low.held if row.valid]
    known = [
        (row.offered_rps or 0, row.cpu_server_us, all_us)
        for row in held
        if row.cpu_server_us and (all_us := whole_us(row)) is not None
    ]
    if known:
        own_s = statistics.median(own_us for _, own_us, _ in known)
        whole_s = statistics.median(all_us for _, _, all_us in known)
        rates = sorted({rate for rate, _, _ in known})
        at = " to ".join(f"{rate:,}" for rate in dict.fromkeys((rates[0], rates[-1])))
        text = (
            f"a million requests at {at} req/s take "
            f"{own_s:,.0f} s of the server's CPU time, and {whole_s:,.0f} s with the lab around it "
            f"({EXTRAPOLATED} at any other rate: a request costs more at a lower one)"
        )
        yield Finding(COST, server, 0, own_s, "s", None, None, text)


def whole_us(row: Row) -> float | None:
    """The CPU time of all parts of the lab; None where that of one is not known."""
    parts = [getattr(row, name) for name in CpuSplit.columns()]
    return None if None in parts else sum(parts)
