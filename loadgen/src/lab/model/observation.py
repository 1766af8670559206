"""A trial's window as Prometheus saw it: raw samples, and the figures they give."""

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import field
from msgspec.structs import force_setattr

from lab.model.record import Record, sum_or_none

# Three scrapes of the exporters, which are asked every 2 s (prometheus/prometheus.yml).
_GAP_S = 6.0


class SeriesError(ValueError):
    """Stored series that cannot be judged: they are not what the lab's exporters write."""


class Series(Record):
    """One series as Prometheus scraped it: its labels (`__name__` is its name), and its samples by
    time, in seconds since 1970. Samples that are not finite are left out."""

    labels: Mapping[str, str]
    times: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.times) != len(self.values) or not self.times:
            raise ValueError(f"as many times as values, at least one: {self.labels}")
        if any(b <= a for a, b in pairwise(self.times)):
            raise ValueError(f"times must rise: {self.labels}")

    @property
    def points(self) -> tuple[tuple[float, float], ...]:
        """(time, value) pairs."""
        return tuple(zip(self.times, self.values, strict=True))

    def times_of(self, value: float) -> tuple[float, ...]:
        """The times of this value: `up` is 1 only where a scrape was answered."""
        return tuple(at for at, seen in self.points if seen == value)


class Observation(Record):
    """Every stored series of a trial, from a little before its window to a little after it.
    `window` is the measured window, in seconds since 1970. Labels choose among the series of a
    name, and what they choose is summed."""

    window: tuple[float, float]
    all: tuple[Series, ...]
    # There are some 1,000, and a report asks for some of a name 5,000 times.
    by_name: Mapping[str, Sequence[Series]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.window[0] < self.window[1]:
            raise ValueError(f"a window ends after it starts: {self.window}")
        by_name: dict[str, list[Series]] = defaultdict(list)
        for series in self.all:
            by_name[series.labels.get("__name__", "")].append(series)
        force_setattr(self, "by_name", dict(by_name))

    @property
    def window_s(self) -> float:
        return self.window[1] - self.window[0]

    def inside(self, points: Iterable[tuple[float, float]]) -> list[float]:
        """The values of the points (time, value) that are in the window."""
        opens, closes = self.window
        return [value for at, value in points if opens <= at <= closes]

    def series(self, name: str, /, **labels: str) -> tuple[Series, ...]:
        wanted = labels.items()
        named = self.by_name.get(name, ())
        return tuple(series for series in named if wanted <= series.labels.items())

    def points(self, name: str, **labels: str) -> tuple[tuple[float, float], ...]:
        """The samples of the only series with these labels; none where there is no such series.
        Raises SeriesError where there are several series, which must not be mixed."""
        several = self.series(name, **labels)
        if len(several) > 1:
            raise SeriesError(f"{len(several)} series are called {name} with {labels}")
        return several[0].points if several else ()

    def increase(self, name: str, **labels: str) -> float | None:
        """By how much the counters rose in exactly the window.

        A counter is assumed to rise evenly between two samples (linear interpolation at the
        window's edges). A counter that fell began again at 0, and its value is the rise since then.
        A counter that appears, although its job was scraped just before, began at 0: it is an
        outcome that had not happened before. None where no such counter covers the window.
        """
        return sum_or_none(map(self._rise, self.series(name, **labels)))

    def rate(self, name: str, **labels: str) -> float | None:
        """By how much the counters rose per second of the window, under a load that ends with it.

        The first sample after the window already has other work in it. So the rate up to the last
        sample in the window is taken to hold until its end, but for no more than that next sample
        has. None where there is no such counter in the window, where one of them began, ended or
        began again in it, and where the samples of one cover less than half of it.

        At the window's start a counter is assumed to rise evenly from the sample before it to the
        one after it. The share of that time which lies before the start is the share of the first
        rise that another load before the window hides: so much of it does not count as covered.
        """
        return sum_or_none(map(self._rate, self._within(name, labels)))

    def rise_seen(self, name: str, **labels: str) -> float | None:
        """By how much the counters rose in the window, as far as they were seen there: of one that
        began or ended in it, between its own samples. A lower bound. None where there is no such
        counter in the window."""
        opens, closes = self.window
        rises = []
        for series in self._within(name, labels):
            times, risen = series.times, _without_resets(series.values)
            first = _at(times, risen, max(opens, times[0]))
            rises.append(max(0.0, _at(times, risen, min(closes, times[-1])) - first))
        return sum_or_none(rises)

    def steps(self, name: str, /, **labels: str) -> tuple[tuple[float, float, float], ...]:
        """(from, to, rise) between every two samples in the window. The counters are of one target,
        so they were scraped at the same times."""
        rises: dict[tuple[float, float], float] = {}
        for series in self.series(name, **labels):
            risen = _without_resets(series.values)
            for (start, before), (end, after) in pairwise(zip(series.times, risen, strict=True)):
                if self.window[0] <= start and end <= self.window[1]:
                    rises[start, end] = rises.get((start, end), 0.0) + after - before
        return tuple((start, end, rise) for (start, end), rise in sorted(rises.items()))

    def quantile(self, q: float, name: str, **labels: str) -> float | None:
        """The q-quantile (0..1) of a histogram's observations in the window. None without
        observations. `name` has no `_bucket`; see `bucket_quantile`. Raises SeriesError where a
        bucket has no bound."""
        counts: dict[float, float] = {}
        for series in self.series(f"{name}_bucket", **labels):
            rise = self._rise(series)
            if rise is None:
                return None
            try:
                le = float(series.labels["le"])
            except (KeyError, ValueError):
                raise SeriesError(f"{name}: a bucket without a bound: {series.labels}") from None
            counts[le] = counts.get(le, 0.0) + rise
        return bucket_quantile(sorted(counts.items()), q)

    def covers(self, job: str, **labels: str) -> bool:
        """True if a job's target answered a scrape before and after the window, and in it with no
        gap that is as long as three scrapes and half of the window."""
        opens, closes = self.window
        longest = max(_GAP_S, (closes - opens) / 2)
        return any(
            (times := series.times_of(1.0))
            and times[0] <= opens
            and times[-1] >= closes
            and not any(
                end > opens and start < closes and end - start > longest
                for start, end in pairwise(times)
            )
            for series in self.series("up", job=job, **labels)
        )

    def _within(self, name: str, labels: Mapping[str, str]) -> Iterator[Series]:
        """Those with samples before the end of the window and after its start."""
        for series in self.series(name, **labels):
            if series.times[0] < self.window[1] and series.times[-1] > self.window[0]:
                yield series

    def _rise(self, series: Series) -> float | None:
        opens, closes = self.window
        times, risen = series.times, _without_resets(series.values)
        if times[-1] < closes:
            return None
        if times[0] > opens:
            # It must be missing from a scrape of its job that was answered. After a scrape that
            # failed, how far it had risen meanwhile is unknown.
            ups = self.series("up", job=series.labels.get("job", ""))
            if not any(_last_before(up, times[0]) == 1 for up in ups):
                return None
            times, risen = (times[0] - 1e-3, *times), (0.0, *risen)
            opens = max(opens, times[0])
        return max(0.0, _at(times, risen, closes) - _at(times, risen, opens))

    def _rate(self, series: Series) -> float | None:
        opens, closes = self.window
        times, values = series.times, series.values
        last = bisect_right(times, closes) - 1
        if times[0] > opens or times[-1] < closes or times[last] <= opens:
            return None
        around = values[bisect_right(times, opens) - 1 : last + 2]
        if any(now < before for before, now in pairwise(around)):
            return None
        seen_s, left_s = times[last] - opens, closes - times[last]
        first = bisect_right(times, opens)
        before_s, after_s = opens - times[first - 1], times[first] - opens
        if seen_s - after_s * before_s / (before_s + after_s) < (closes - opens) / 2:
            return None
        risen = values[last] - _at(times, values, opens)
        if left_s > 0:
            risen += min(risen * left_s / seen_s, values[last + 1] - values[last])
        return risen / (closes - opens)


def bucket_quantile(buckets: Sequence[tuple[float, float]], q: float) -> float | None:
    """The q-quantile (0..1) of (upper bound, observations up to it) pairs, ascending.

    It is computed as by Prometheus' histogram_quantile: observations lie evenly within their
    bucket, and a quantile beyond the last finite bound is that bound. None without observations.
    """
    if not buckets or buckets[-1][1] <= 0:
        return None
    wanted = q * buckets[-1][1]
    below_le, below = 0.0, 0.0
    for le, count in buckets:
        if count >= wanted:
            if math.isinf(le):
                return below_le
            share = (wanted - below) / (count - below) if count > below else 1.0
            return below_le + (le - below_le) * share
        below_le, below = le, count
    return below_le


def _last_before(series: Series, moment: float) -> float | None:
    """The last value before a moment; None where there is none."""
    at = bisect_left(series.times, moment)
    return series.values[at - 1] if at else None


def _without_resets(values: Sequence[float]) -> tuple[float, ...]:
    """The values of a counter made to never fall: its last value before each new start is added."""
    lost, risen = 0.0, [values[0]]
    for before, now in pairwise(values):
        if now < before:
            lost += before
        risen.append(now + lost)
    return tuple(risen)


def _at(times: Sequence[float], values: Sequence[float], moment: float) -> float:
    """The value at a moment between the first and the last time, by linear interpolation."""
    after = bisect_left(times, moment)
    if times[after] == moment or after == 0:
        return values[after]
    share = (moment - times[after - 1]) / (times[after] - times[after - 1])
    return values[after - 1] + share * (values[after] - values[after - 1])
