"""A trial's latencies by rank, for figures."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

# A percentile stands on the samples beyond it; with fewer than this many it is chance. The spread
# of a sample quantile falls with the square root of that number (order statistics: H. A. David,
# H. N. Nagaraja, "Order Statistics", 2003, section 7.1).
LEAST_BEYOND = 10
# A page cannot show more points than this.
MOST_POINTS = 90


def needed_samples(percentile: float) -> int:
    """How many samples leave LEAST_BEYOND above the percentile (0..1)."""
    return round(LEAST_BEYOND / (1 - percentile))


@dataclass(frozen=True, slots=True)
class Curve:
    """Latency by rank, of `count` answers: (share, ms) pairs, ascending. A `share` (0 to below 1)
    of the answers took at most so many milliseconds. Shares with fewer than LEAST_BEYOND answers
    beyond them are left out."""

    count: int
    points: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, points: Iterable[tuple[float, float]], count: int) -> Curve | None:
        """The curve through (share, ms) points, thinned evenly on the scale it is drawn on,
        log(1 / (1 - share)). None where it would have fewer than two points."""
        known = sorted((p, ms) for p, ms in points if (1 - p) * count >= LEAST_BEYOND - 1e-6)
        if len(known) < 2:
            return None
        step = -math.log(1 - known[-1][0]) / MOST_POINTS
        kept, next_at = [], -1.0
        for point in known:
            at = -math.log(1 - point[0])
            if at >= next_at:
                kept.append(point)
                next_at = at + step
        if kept[-1] != known[-1]:
            kept.append(known[-1])
        return cls(count, tuple(kept))


@dataclass(frozen=True, slots=True)
class Curves:
    """A trial's latencies by rank: from when a request was due (`corrected`), and from when it was
    sent (`raw`). One is None where the engine or the load does not tell it."""

    corrected: Curve | None
    raw: Curve | None
