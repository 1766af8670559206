"""The percentiles that an objective is held against: requests that got no answer are in them.

A request that timed out, lost its connection or was never answered has no latency. How long it
would have taken is not known, only that no answer came (its time is censored). So it counts as
slower than any answer: of n answers without an error and k such requests, the percentile p is the
answer of rank ⌈p·(n + k)⌉, and where that is above n, no limit is kept. Answers with an error came,
and are judged by their share.
"""

import math
from collections.abc import Sequence
from typing import Any

from lab.model import Row, good_share, lost_rps, needed_samples

SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def columns(ranks: Sequence[tuple[float, int]], lost: int) -> dict[str, Any]:
    """The columns `slo_…` of a row, from `Reading.ranks` and the requests of the window without an
    answer. None where there are too few requests, or the percentile falls among those."""
    total = lost + (ranks[-1][1] if ranks else 0)
    return {
        f"slo_{name}_ms": next((ms for ms, rank in ranks if rank >= _rank(share, total)), None)
        if total >= needed_samples(share)
        else None
        for name, share in SHARES.items()
    }


def judged_ms(row: Row, name: str) -> float | None:
    """A latency (p50, p95, p99 or max) that an objective is held against: from when a request was
    due in an open load, from when it was sent in a closed load. Infinite where it falls among the
    requests without an answer; None if unknown."""
    of_answers: float | None = getattr(row, f"{'' if row.mode == 'open' else 'raw_'}{name}_ms")
    lost = lost_rps(row, row.offered_rps) * (row.window_s or 0.0)
    if not lost:
        return of_answers
    if name not in SHARES:
        return math.inf
    answers = row.window_ok
    if answers is None:
        answers = round((row.achieved_rps or 0.0) * (row.window_s or 0.0) * good_share(row))
    total = answers + lost
    if total < needed_samples(SHARES[name]):
        return None
    if _rank(SHARES[name], total) > answers:
        return math.inf
    with_lost: float | None = getattr(row, f"slo_{name}_ms")
    return with_lost


def _rank(share: float, total: float) -> int:
    return max(1, math.ceil(share * total - 1e-6))
