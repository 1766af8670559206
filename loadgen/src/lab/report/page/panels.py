"""A trial's window over time: reads the lines of the figures that panels.toml lists."""

import math
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Literal

import msgspec

from lab.judge.metrics import heap_after_collections
from lab.model import Observation, SeriesError, bucket_quantile

# More samples than these of a line a page does not show.
MOST_SAMPLES = 240
# A p95 is of so many seconds, as far as the window has them: five scrapes.
P95_S = 4.5
# A line is not drawn across so long a time without samples: longer than two reads of cAdvisor, and
# than a p95 is of.
GAP_S = 7.0

type Points = Iterable[tuple[float, float]]


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
    names = {"server": server, "route": route.partition("?")[0]}
    drawn = ((panel, [*_lines(panel, seen, names)]) for panel in PANELS)
    return tuple((panel, lines) for panel, lines in drawn if lines)


def _lines(panel: Panel, seen: Observation, names: Mapping[str, str]) -> Iterator[Line]:
    for source in panel.lines:
        for labels, points in _series(source, seen, names):
            kept = [*_kept(seen, [(at, value * panel.factor) for at, value in points])]
            if kept:
                label = source.label.format_map(defaultdict(str, labels)).strip()
                yield Line(label, kept, source.kind == "set")


def _series(
    source: Source, seen: Observation, names: Mapping[str, str]
) -> Iterator[tuple[Mapping[str, str], Points]]:
    where = {label: text.format_map(names) for label, text in source.where.items()}
    only = [text.format_map(names) for text in source.only]
    if source.kind == "after collections":
        yield {}, heap_after_collections(seen, server=names["server"])
        return
    metric = f"{source.metric}_bucket" if source.kind == "p95" else source.metric
    every = seen.series(metric, **where)
    if source.kind in ("value", "set"):
        # A negative one means: no such pool (Tomcat).
        yield from ((series.labels, series.points) for series in every if min(series.values) >= 0)
        return
    groups = {
        tuple(series.labels.get(label, "") for label in source.by)
        for series in every
        if not source.needs or source.needs in series.labels
    }
    for group in sorted(groups):
        if group[:1] and (group[0] in source.but or (only and group[0] not in only)):
            continue
        apart = {label: text for label, text in zip(source.by, group, strict=True) if text}
        labels = {**where, **apart}
        yield labels, (_rates if source.kind == "rate" else _p95)(seen, metric, labels)


def _rates(seen: Observation, metric: str, labels: Mapping[str, str]) -> Points:
    steps = [(start, end, {0.0: rise}) for start, end, rise in seen.steps(metric, **labels)]
    for start, end, rises in _joined(steps, _step_s(seen)):
        yield end, rises[0.0] / (end - start)


def _p95(seen: Observation, metric: str, labels: Mapping[str, str]) -> Points:
    opens, closes = seen.window
    counts: dict[tuple[float, float], dict[float, float]] = defaultdict(dict)
    # Of the hundreds of series of a trial only these few are looked at.
    few = Observation(seen.window, seen.series(metric, **labels))
    for le in {series.labels.get("le", "") for series in few.all}:
        for start, end, rise in few.steps(metric, le=le):
            counts[start, end][_bound(le)] = rise
    steps = [(*ends, rises) for ends, rises in sorted(counts.items())]
    for _, end, rises in _joined(steps, max(min(P95_S, (closes - opens) / 2), _step_s(seen))):
        if (quantile := bucket_quantile(sorted(rises.items()), 0.95)) is not None:
            yield end, quantile


def _joined(
    steps: Iterable[tuple[float, float, Mapping[float, float]]], least_s: float
) -> Iterator[tuple[float, float, Mapping[float, float]]]:
    """From and to when, and by how much counters rose, by the bound of each: steps that follow each
    other, joined until each is that long; a shorter rest is left out."""
    began, sums = None, defaultdict[float, float](float)
    for start, end, rises in steps:
        began = start if began is None else began
        for bound, rise in rises.items():
            sums[bound] += rise
        if end - began >= least_s:
            yield began, end, sums
            began, sums = None, defaultdict(float)


def _step_s(seen: Observation) -> float:
    return (seen.window[1] - seen.window[0]) / MOST_SAMPLES


def _kept(seen: Observation, points: Points) -> Iterator[tuple[float, float | None]]:
    """The points in the window, a step apart at least, and a gap after a long time without."""
    (opens, closes), step_s = seen.window, _step_s(seen)
    # Nothing is less or more than this.
    last = math.nan
    for time, value in points:
        at = time - opens
        if opens <= time <= closes and not at - last < step_s:
            if at - last > max(GAP_S, 3.5 * step_s):
                yield at, None
            yield at, value
            last = at


def _bound(le: str) -> float:
    try:
        return float(le)
    except ValueError:
        raise SeriesError(f"a bucket without a bound: {le!r}") from None
