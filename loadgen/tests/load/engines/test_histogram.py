"""Percentiles, mean and maximum of a histogram."""

import pytest

from lab.load.engines.histogram import Histogram
from support.pacer import counted


def test_percentiles_are_the_smallest_value_with_that_share_below() -> None:
    histogram = counted(dict.fromkeys(range(1, 101), 1))
    assert [histogram.at_ms(share) for share in (0.50, 0.95, 1.0)] == [0.050, 0.095, 0.1]


def test_mean_and_maximum_are_exact() -> None:
    latency = counted({100_001: 3, 900_003: 1}).latency()
    assert latency.mean_ms == pytest.approx((3 * 100.001 + 900.003) / 4)
    assert latency.max_ms == 900.003
    assert Histogram.sum_of([]).latency() is None
