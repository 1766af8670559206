"""What requests cost in CPU time at the rates that a search held. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from lab.experiments.searching.state import Search
from lab.model import EXTRAPOLATED, CpuSplit, Finding, Row

COST = "a million requests"


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
