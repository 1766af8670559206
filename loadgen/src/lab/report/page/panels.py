"""A trial's window over time: reads the lines of the figures that panels.toml lists."""

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Literal

import msgspec

from lab.judge.metrics import heap_after_collections
from lab.model import Observation, Series, SeriesError, bucket_quantile

# More samples than these of a line a page does not show.
MOST_SAMPLES = 240
# A p95 is of so many seconds, as far as the window has them: five scrapes.
P95_S = 4.5
# A line is not drawn across so long a time without samples: longer than two reads of cAdvisor, and
# than a p95 is of.
GAP_S = 7.0

# From and to when, and by how much counters rose: those of a histogram by their bounds.
type Step = tuple[float, float, Mapping[float, float]]


@dataclass(frozen=True, slots=True)
class Source:
    """Lines of a panel: for each series of a gauge (`value`; `set` if it is no measurement), or for
    all counters that the labels `by` tell apart. Those have their rise per second (`rate`), or the
    `p95` of a histogram. `but` and `only` are values of the first of `by` that have no line, or
    alone have one. The series must have the label `needs`."""

    kind: Literal["value", "set", "rate", "p95", "after collections"]
    label: str
    metric: str = ""
    by: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    needs: str = ""
    where: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Panel:
    """A figure. Stored values are multiplied by `factor`."""

    title: str
    unit: str
    text: str
    lines: tuple[Source, ...]
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Line:
    """(seconds from the window's start, value) points under a name; None is a gap."""

    label: str
    points: Sequence[tuple[float, float | None]]
    is_set: bool = False

    @property
    def values(self) -> list[float]:
        return [value for _, value in self.points if value is not None]


_FILE = resources.files("lab.report").joinpath("panels.toml").read_text(encoding="utf-8")
PANELS = msgspec.convert(tomllib.loads(_FILE)["panel"], tuple[Panel, ...])


def observed(seen: Observation, server: str, route: str) -> tuple[tuple[Panel, list[Line]], ...]:
    """The panels that show anything of a trial of this server on this route. Raises SeriesError."""
    reader = _Reader(seen, {"server": server, "route": route.partition("?")[0]})
    found = ((panel, [*reader.lines(panel)]) for panel in PANELS)
    return tuple((panel, lines) for panel, lines in found if lines)


@dataclass(frozen=True, slots=True)
class _Reader:
    seen: Observation
    names: Mapping[str, str]

    @property
    def step_s(self) -> float:
        return (self.seen.window[1] - self.seen.window[0]) / MOST_SAMPLES

    def lines(self, panel: Panel) -> Iterator[Line]:
        for source in panel.lines:
            for labels, points in self._series(source):
                kept = [*self._kept((at, value * panel.factor) for at, value in points)]
                if kept:
                    label = source.label.format_map(defaultdict(str, labels)).strip()
                    yield Line(label, kept, source.kind == "set")

    def _series(
        self, source: Source
    ) -> Iterator[tuple[Mapping[str, str], Iterable[tuple[float, float]]]]:
        where = {label: text.format_map(self.names) for label, text in source.where.items()}
        match source.kind:
            case "value" | "set":
                for series in self.seen.series(source.metric, **where):
                    # A negative one means: no such pool (Tomcat).
                    if min(series.values) >= 0:
                        yield series.labels, series.points
            case "rate":
                for labels in self._groups(source, source.metric, where):
                    yield labels, self._rates(source.metric, labels)
            case "p95":
                metric = f"{source.metric}_bucket"
                for labels in self._groups(source, metric, where):
                    yield labels, self._p95(metric, labels)
            case "after collections":
                yield {}, heap_after_collections(self.seen, server=self.names["server"])

    def _groups(
        self, source: Source, metric: str, where: Mapping[str, str]
    ) -> Iterator[dict[str, str]]:
        """What tells the series of a metric apart: the values of these labels."""
        only = [text.format_map(self.names) for text in source.only]
        groups = {
            tuple(series.labels.get(label, "") for label in source.by)
            for series in self.seen.series(metric, **where)
            if not source.needs or source.needs in series.labels
        }
        for group in sorted(groups):
            if group[:1] and (group[0] in source.but or (only and group[0] not in only)):
                continue
            apart = zip(source.by, group, strict=True)
            yield {**where, **{label: text for label, text in apart if text}}

    def _rates(self, metric: str, labels: Mapping[str, str]) -> Iterator[tuple[float, float]]:
        steps = [
            (start, end, {0.0: rise}) for start, end, rise in self.seen.steps(metric, **labels)
        ]
        for start, end, rises in _joined(steps, self.step_s):
            yield end, rises[0.0] / (end - start)

    def _p95(self, metric: str, labels: Mapping[str, str]) -> Iterator[tuple[float, float]]:
        opens, closes = self.seen.window
        counts: dict[tuple[float, float], dict[float, float]] = defaultdict(dict)
        buckets: dict[str, list[Series]] = defaultdict(list)
        for series in self.seen.series(metric, **labels):
            buckets[series.labels.get("le", "")].append(series)
        for le, found in buckets.items():
            # Of the hundreds of series of a trial only these few are looked at.
            for start, end, rise in Observation(self.seen.window, tuple(found)).steps(metric):
                counts[start, end][_bound(le)] = rise
        steps = [(*ends, rises) for ends, rises in sorted(counts.items())]
        for _, end, rises in _joined(steps, max(min(P95_S, (closes - opens) / 2), self.step_s)):
            quantile = bucket_quantile(sorted(rises.items()), 0.95)
            if quantile is not None:
                yield end, quantile

    def _kept(self, points: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float | None]]:
        """The points in the window, a step apart at least, and a gap after a long time without."""
        opens, closes = self.seen.window
        last: float | None = None
        for time, value in points:
            at = time - opens
            if not opens <= time <= closes or (last is not None and at - last < self.step_s):
                continue
            if last is not None and at - last > max(GAP_S, 3.5 * self.step_s):
                yield at, None
            yield at, value
            last = at


def _joined(steps: Iterable[Step], least_s: float) -> Iterator[Step]:
    """Steps that follow each other, joined until each is that long; a shorter rest is left out."""
    began, sums = None, defaultdict[float, float](float)
    for start, end, rises in steps:
        began = start if began is None else began
        for bound, rise in rises.items():
            sums[bound] += rise
        if end - began >= least_s:
            yield began, end, sums
            began, sums = None, defaultdict(float)


def _bound(le: str) -> float:
    try:
        return float(le)
    except ValueError:
        raise SeriesError(f"a bucket without a bound: {le!r}") from None
