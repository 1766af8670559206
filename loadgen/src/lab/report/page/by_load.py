"""Throughput and latency against concurrency, closed and open beside each other.

Each launch is a shape of its own where they are too few for an interval, else their median is,
with its interval. Where no lane has more than one concurrency, it is a row instead of a line.
Invalid trials are crosses and in no median.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lab.judge.grouping import Metric, bound_of, lane_of, measured, median_per_launch, per_launch
from lab.judge.intervals import MedianOf
from lab.model import Row
from lab.report.page import scale
from lab.report.page.chart import Chart, Drawn, Trace, Whisker, draw
from lab.report.page.lanes import Lane, draw_lanes
from lab.report.page.looks import Looks
from lab.report.page.marks import Key
from lab.report.page.palette import NEUTRAL

SHIFT_PX = 5.0


@dataclass(frozen=True, slots=True)
class Place:
    """The figures of one route and one engine."""

    route: str
    engine: str
    figures: tuple[Drawn, ...]


@dataclass(frozen=True, slots=True)
class _What:
    """One figure: which trials, which of their numbers, and the words for it."""

    slug: str
    title: str
    mode: str
    metrics: tuple[tuple[Metric, str], ...]
    words: scale.Words
    unit: str


_RATES = (
    _What("throughput-closed", "Throughput (goodput), closed load", "closed",
          (("goodput_rps", ""),), scale.number, "requests/s"),
    _What("throughput-open", "Throughput (goodput), open load", "open",
          (("goodput_rps", ""),), scale.number, "requests/s"),
)  # fmt: skip
_TIMES = (
    _What("latency-closed", "p95, closed load: raw", "closed", (("raw_p95_ms", ""),),
          scale.milliseconds, ""),
    _What("latency-open", "p95, open load: corrected, and raw", "open",
          (("p95_ms", ""), ("raw_p95_ms", "raw")), scale.milliseconds, ""),
)  # fmt: skip


def slug(text: str) -> str:
    """A part of a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "root"


def by_load(rows: Sequence[Row], looks: Looks) -> tuple[Place, ...]:
    """The figures of every route and engine, as they first appear."""
    places = dict.fromkeys((row.route, row.engine) for row in rows)
    found = []
    for route, engine in places:
        here = [row for row in rows if (row.route, row.engine) == (route, engine)]
        name = f"{slug(route)}-{engine}"
        figures = (*_figures(_RATES, here, looks, name), *_figures(_TIMES, here, looks, name))
        if figures:
            found.append(Place(route, engine, figures))
    return tuple(found)


def _figures(
    whats: Sequence[_What], rows: Sequence[Row], looks: Looks, name: str
) -> Iterator[Drawn]:
    """Figures of one unit, all on one scale, so that they can be compared at a glance."""
    wanted = [what for what in whats if any(_value(row, what) is not None for row in rows)]
    values = [
        value
        for what in wanted
        for row in rows
        if row.mode == what.mode
        for value in (*_all(row, what), _bound(row, what), _offered(row, what))
        if value is not None
    ]
    many = len({(lane_of(row), row.concurrency) for row in rows}) > len(set(map(lane_of, rows)))
    for what in wanted:
        mine = [row for row in rows if row.mode == what.mode]
        axis = scale.fitting(values, what.unit, what.words, narrow=not many)
        make = _lines if many else _rows
        yield make(what, mine, looks, name, axis)


def _value(row: Row, what: _What) -> float | None:
    return next(iter(_all(row, what)), None) if row.mode == what.mode else None


def _all(row: Row, what: _What) -> list[float]:
    values = [measured(row, metric) for metric, _ in what.metrics]
    return [value for value in values if value is not None]


def _bound(row: Row, what: _What) -> float | None:
    """The bound on throughput; of latency what Little's law makes of it, N / X, in a closed
    load, where N is known."""
    if row.predicted_rps is None:
        return None
    if what.unit:
        return row.predicted_rps
    return row.concurrency / row.predicted_rps * 1000 if row.mode == "closed" else None


def _offered(row: Row, what: _What) -> float | None:
    return float(row.offered_rps) if what.unit and row.offered_rps is not None else None


def _lines(what: _What, rows: Sequence[Row], looks: Looks, name: str, axis: scale.Axis) -> Drawn:
    lanes = list(dict.fromkeys(map(lane_of, rows)))
    traces: list[Trace] = []
    whiskers: list[Whisker] = []
    keys = list(looks.keys(lanes))
    traces += _set_lines(what, rows, looks, lanes, keys)
    for index, lane in enumerate(lanes):
        look, shift = looks.lanes[lane], (index - (len(lanes) - 1) / 2) * SHIFT_PX
        mine = [row for row in rows if lane_of(row) == lane]
        for metric, kind in what.metrics:
            style = "thin dot" if kind else look.style
            points, dots = [], []
            for load, of in _loads(mine):
                median = median_per_launch(of, metric)
                if median is None:
                    continue
                points.append((load, median.median))
                if median.interval is None:
                    dots += [(load, value) for value in per_launch(of, metric)]
                else:
                    dots.append((load, median.median))
                    ends = median.interval.low, median.interval.high
                    whiskers.append(Whisker(look.hue, load, *ends, shift))
            hollow = bool(kind)
            traces.append(Trace(look.hue, tuple(points), style, shift_px=shift))
            traces.append(
                Trace(look.hue, tuple(dots), "", False, look.shape, hollow, shift_px=shift)
            )
            struck = [(float(row.concurrency), v) for row in mine if not row.valid
                      if (v := measured(row, metric)) is not None]  # fmt: skip
            traces.append(Trace(look.hue, tuple(struck), struck=True, shift_px=shift))
    keys += _more_keys(what, rows)
    chart = Chart(
        name=f"{what.slug}-{name}",
        title=what.title,
        alt=_alt(what, rows, lanes),
        x=scale.named([float(row.concurrency) for row in rows], "connections", scale.number),
        y=axis,
        traces=tuple(trace for trace in traces if trace.points),
        keys=tuple(keys),
        whiskers=tuple(whiskers),
    )
    return draw(chart)


def _set_lines(
    what: _What, rows: Sequence[Row], looks: Looks, lanes: Sequence[str], keys: list[Key]
) -> list[Trace]:
    """What was predicted and what was offered, as lines; their keys are added."""
    traces = []
    offered = _by_load(rows, lambda row: _offered(row, what))
    if offered:
        traces.append(Trace(NEUTRAL, offered, "thin dash"))
        keys.append(Key("offered", NEUTRAL, "thin dash"))
    bounds = {
        lane: _by_load([row for row in rows if lane_of(row) == lane], lambda r: _bound(r, what))
        for lane in lanes
    }
    told = {lane: points for lane, points in bounds.items() if points and points != offered}
    text = "bound" if what.unit else "N / bound"
    if len(set(told.values())) == 1 and len(told) == len(lanes):
        traces.append(Trace(NEUTRAL, next(iter(told.values())), "dot"))
        keys.append(Key(text, NEUTRAL, "dot"))
    elif told:
        traces += [Trace(looks.lanes[lane].hue, points, "dot") for lane, points in told.items()]
        keys.append(Key(f"{text}, in its server's colour", NEUTRAL, "dot"))
    return traces


def _by_load(
    rows: Sequence[Row], value: Callable[[Row], float | None]
) -> tuple[tuple[float, float], ...]:
    found: dict[float, list[float | None]] = {}
    for row in rows:
        found.setdefault(float(row.concurrency), []).append(value(row))
    bounds = ((load, bound_of(values)) for load, values in sorted(found.items()))
    return tuple((load, bound) for load, bound in bounds if bound is not None)


def _loads(rows: Sequence[Row]) -> list[tuple[float, list[Row]]]:
    """The rows of each load, by concurrency and rate."""
    found: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        found.setdefault((row.concurrency, row.offered_rps or 0), []).append(row)
    return [(float(load[0]), of) for load, of in sorted(found.items(), key=lambda one: one[0])]


def _more_keys(what: _What, rows: Sequence[Row]) -> Iterator[Key]:
    if len(what.metrics) > 1 and any(row.raw_p95_ms is not None for row in rows):
        yield Key("hollow: raw", NEUTRAL, "thin dot", 0, hollow=True)
    if any(not row.valid and _all(row, what) for row in rows):
        yield Key("invalid trial", NEUTRAL, struck=True)


def _rows(what: _What, rows: Sequence[Row], looks: Looks, name: str, axis: scale.Axis) -> Drawn:
    names = list(dict.fromkeys(map(lane_of, rows)))
    load, one_load = rows[0], len({row.concurrency for row in rows}) == 1
    armed = any(row.arm for row in rows)
    one_server = armed and len({row.server for row in rows}) == 1
    lanes = []
    for lane in names:
        mine = [row for row in rows if lane_of(row) == lane]
        below = (
            mine[0].server if mine[0].arm and not one_server else "",
            "" if one_load else f"{mine[0].concurrency:,} connections",
        )
        name_of = mine[0].arm or mine[0].server
        for metric, kind in what.metrics:
            struck = [v for row in mine if not row.valid
                      if (v := measured(row, metric)) is not None]  # fmt: skip
            values = per_launch(mine, metric)
            if not values and not struck:
                continue
            median = median_per_launch(mine, metric)
            interval = median.interval if median else None
            lanes.append(
                Lane(
                    name=f"{name_of}, {kind}" if kind else name_of,
                    below=", ".join(part for part in below if part),
                    hue=looks.lanes[lane].hue,
                    shape=looks.lanes[lane].shape,
                    values=values,
                    hollow=bool(kind),
                    struck=tuple(struck),
                    median=median.median if median and interval else None,
                    interval=(interval.low, interval.high) if interval else None,
                    bound=bound_of(_bound(row, what) for row in mine),
                    text=what.words(median.median) if median else "invalid",
                )
            )
    keys = []
    if any(lane.bound is not None for lane in lanes):
        keys.append(Key("bound" if what.unit else "N / bound", NEUTRAL, "dash"))
    if any(lane.struck for lane in lanes):
        keys.append(Key("invalid trial", NEUTRAL, struck=True))
    heads = (
        load.server if one_server else "",
        f"{load.concurrency:,} connections" if one_load else "",
        f"{load.offered_rps:,}/s offered" if one_load and load.offered_rps is not None else "",
    )
    chart = Chart(
        name=f"{what.slug}-{name}",
        title=what.title,
        alt=_alt(what, rows, names),
        x=axis,
        y=axis,
        traces=(),
        keys=tuple(keys),
        load=", ".join(head for head in heads if head),
    )
    return draw_lanes(chart, lanes)


def _alt(what: _What, rows: Sequence[Row], lanes: Sequence[str]) -> str:
    """The medians in words."""
    parts = []
    for lane in lanes:
        mine = [row for row in rows if lane_of(row) == lane]
        for metric, kind in what.metrics:
            told = [
                f"{load:,.0f} connections {_median(median_per_launch(of, metric), what.words)}"
                for load, of in _loads(mine)
            ]
            parts.append(f"{lane}{f' {kind}' if kind else ''}: {', '.join(told)}")
    return f"Medians over launches of valid trials. {'. '.join(parts)}."


def _median(of: MedianOf | None, words: scale.Words) -> str:
    if of is None:
        return "no valid trial"
    if of.interval is None:
        return words(of.median)
    return f"{words(of.median)} [{words(of.interval.low)}, {words(of.interval.high)}]"
