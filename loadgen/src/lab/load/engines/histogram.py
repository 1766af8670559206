"""Latency histograms, in microseconds, of an engine that reports single values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from lab.model import Latency

# Neighbouring seconds depend on each other, so blocks of so many are drawn, of few seconds half.
BLOCK_S = 3
RESAMPLES = 200


@dataclass(slots=True)
class Histogram:
    """Latencies in microseconds, by the upper end of their bucket, with their exact sum and
    maximum. The buckets are HdrHistogram's with three significant digits (2048 sub-buckets)."""

    buckets: Counter[int] = field(default_factory=Counter)
    sum_us: int = 0
    max_us: int = 0

    @classmethod
    def sum_of(cls, histograms: Iterable[Histogram]) -> Histogram:
        whole = cls()
        for histogram in histograms:
            whole.buckets.update(histogram.buckets)
            whole.sum_us += histogram.sum_us
            whole.max_us = max(whole.max_us, histogram.max_us)
        return whole

    @property
    def count(self) -> int:
        return self.buckets.total()

    @property
    def mean_ms(self) -> float | None:
        return self.sum_us / self.count / 1000 if self.count else None

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
        values = sorted(self.buckets)
        seen = accumulate(self.buckets[value] for value in values)
        return tuple(
            (min(us, self.max_us) / 1000, rank) for us, rank in zip(values, seen, strict=True)
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

    values = np.array(sorted({value for second in seconds for value in second.buckets}))
    if len(seconds) < 2 or not len(values):
        return (math.inf,) * len(shares)
    counts = np.array([[second.buckets[value] for value in values] for second in seconds])
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


@dataclass(frozen=True, slots=True)
class Second:
    """The answers that ended in one second of a run; `second` counts from its start.

    `http_errors` are those of the `answers` that were errors. `corrected` counts from when a
    request was due (empty in a closed load). `lost` counts the requests that ended without an
    answer.
    """

    second: int
    answers: int
    http_errors: int
    corrected: Histogram
    lost: int
