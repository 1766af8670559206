import pytest

from lab.load.engines.histogram import Histogram, Spectrum, bucket_us


def test_small_values_have_their_own_bucket() -> None:
    assert [bucket_us(v) for v in (0, 1, 2047)] == [0, 1, 2047]


@pytest.mark.parametrize(
    ("value", "bucket"),
    [(2048, 2049), (2049, 2049), (4095, 4095), (4096, 4099), (200_000, 200_063)],
)
def test_larger_values_share_buckets_of_eleven_bits(value: int, bucket: int) -> None:
    assert bucket_us(value) == bucket
    assert bucket - value <= value / 1000


def test_percentiles_are_the_smallest_value_with_that_share_below() -> None:
    histogram = Histogram()
    for value in range(1, 101):
        histogram.add(value)
    spectrum = Spectrum.of([histogram])
    assert (spectrum.at_ms(0.50), spectrum.at_ms(0.95), spectrum.at_ms(1.0)) == (0.050, 0.095, 0.1)


def test_mean_and_maximum_are_exact() -> None:
    histogram = Histogram()
    histogram.add(100_001, 3)
    histogram.add(900_003)
    latency = Spectrum.of([histogram]).latency()
    assert latency.mean_ms == pytest.approx((3 * 100.001 + 900.003) / 4)
    assert latency.max_ms == 900.003


def test_nothing_has_no_latency() -> None:
    assert Spectrum.of([]).latency() is None


def test_a_curve_reaches_each_value_at_its_rank() -> None:
    histogram = Histogram()
    for value, count in ((100, 50), (200, 30), (300, 20)):
        histogram.add(value, count)
    curve = Spectrum.of([histogram]).curve()
    assert curve.count == 100
    assert curve.points == ((0.0, 0.1), (0.5, 0.2), (0.8, 0.3), (0.9, 0.3))
    assert Spectrum.of([Histogram()]).curve() is None
