"""Latency histograms as pacer writes them, and the errors of their percentiles."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from lab.model import Latency

# Neighbouring seconds depend on each other, so blocks of so many are drawn, of few seconds half.
BLOCK_S = 3
RESAMPLES = 200


@dataclass(frozen=True, slots=True)
class Histogram:
    """Latencies in microseconds with their exact sum and maximum. A bucket is (upper end, count),
    ascending: those of an HdrHistogram with three significant digits (2048 sub-buckets)."""

    sum_us: int = 0
    max_us: int = 0
    buckets: tuple[tuple[int, int], ...] = ()

    @classmethod
    def sum_of(cls, histograms: Iterable[Histogram]) -> Histogram:
        sum_us = max_us = 0
        buckets: Counter[int] = Counter()
        for histogram in histograms:
            sum_us += histogram.sum_us
            max_us = max(max_us, histogram.max_us)
            for upper_us, count in histogram.buckets:
                buckets[upper_us] += count
        return cls(sum_us, max_us, tuple(sorted(buckets.items())))

    @property
    def count(self) -> int:
        return sum(count for _, count in self.buckets)

    @property
    def mean_ms(self) -> float | None:
        return self.sum_us / self.count / 1000 if self.buckets else None

    def at_ms(self, percentile: float) -> float:
        """The smallest value, in ms, that this share (0..1) of all values does not exceed. Raises
        ValueError without any value."""
        rank = max(1, math.ceil(percentile * self.count - 1e-9))
        for ms, seen in self.ranks():
            if seen >= rank:
                return ms
        raise ValueError("an empty histogram has no percentiles")

    def ranks(self) -> tuple[tuple[float, int], ...]:
        """(ms, how many values are at most that), ascending."""
        seen = accumulate(count for _, count in self.buckets)
        return tuple(
            (min(upper_us, self.max_us) / 1000, rank)
            for (upper_us, _), rank in zip(self.buckets, seen, strict=True)
        )

    def latency(self) -> Latency | None:
        if self.mean_ms is None:
            return None
        p50_ms, p95_ms, p99_ms = (self.at_ms(share) for share in (0.50, 0.95, 0.99))
        return Latency(self.mean_ms, p50_ms, p95_ms, p99_ms, self.max_us / 1000)


def log_errors(seconds: Sequence[Histogram], shares: Sequence[float]) -> tuple[float, ...]:
    """The standard errors of the logarithms of these percentiles of a window, from its seconds: of
    RESAMPLES windows, each put together from blocks of BLOCK_S seconds in a row (H. R. Künsch, Ann.
    Statist. 17 (1989) 1217; a block that reaches the end goes on at the begin). Infinite without a
    value, and of a window of one second."""
    # Imported here: it takes a quarter of a second.
    import numpy as np

    values = np.array([upper_us for upper_us, _ in Histogram.sum_of(seconds).buckets])
    if len(seconds) < 2 or not len(values):
        return (math.inf,) * len(shares)
    known = [dict(second.buckets) for second in seconds]
    counts = np.array([[buckets.get(value, 0) for value in values] for buckets in known])
    block_s = min(BLOCK_S, len(seconds) // 2)
    blocks = math.ceil(len(seconds) / block_s)
    first = np.random.default_rng(1).integers(len(seconds), size=(RESAMPLES, blocks, 1))
    drawn = ((first + np.arange(block_s)) % len(seconds)).reshape(RESAMPLES, -1)[:, : len(seconds)]
    times = (drawn[:, :, None] == np.arange(len(seconds))).sum(axis=1)
    windows = (times @ counts).cumsum(axis=1)
    windows = windows[windows[:, -1] > 0]
    return tuple(
        float(np.log(values[(windows >= share * windows[:, -1:]).argmax(axis=1)]).std())
        for share in shares
    )
