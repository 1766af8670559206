"""How many samples a percentile needs."""

from __future__ import annotations

# A percentile stands on the samples beyond it; with fewer than this many it is chance. The spread
# of a sample quantile falls with the square root of that number (order statistics: H. A. David,
# H. N. Nagaraja, "Order Statistics", 2003, section 7.1).
LEAST_BEYOND = 10


def needed_samples(percentile: float) -> int:
    """How many samples leave LEAST_BEYOND above the percentile (0..1)."""
    return round(LEAST_BEYOND / (1 - percentile))
