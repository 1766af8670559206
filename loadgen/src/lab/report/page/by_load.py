"""Throughput and latency against concurrency, closed and open beside each other; or against rate.

Each launch is a shape of its own where they are too few for an interval, else their median is,
with its interval. Invalid trials are crosses and in no median. What was measured again in a longer
window is drawn in that one only. Against the rate every trial is a point, and a band is the
interval of what a server sustains.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.judge.grouping import Cell, bound_of, lane_of, without_shorter
from lab.model import Row, Sustained
from lab.report.page import spec, units
from lab.report.page.figure import Figure
from lab.report.page.lane_styles import LaneStyles
from lab.report.page.palette import NEUTRAL
from lab.report.page.quantity import (
    CROSS,
    DOTTED,
    HOLLOW,
    POINT,
    RATES,
    TIMES,
    Quantity,
    by_rate,
    invalid,
    layer,
    of_kind,
    title,
    with_interval,
)
from lab.report.page.spec import Series, Spec

# Between lanes at one load, of several loads and where there is one only.
SHIFT_PX, ALONE_PX = 5.0, 25.0
# The size of a figure. Its height grows with its legend.
WIDTH, HEIGHT = 400, 255


@dataclass(frozen=True, slots=True)
class FigureGroup:
    """The figures of one route and one engine."""

    route: str
    engine: str
    figures: tuple[Figure, ...]


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "root"


def by_load(
    rows: Sequence[Row],
    styles: LaneStyles,
    limits: Mapping[str, float] | None = None,
    sustained: Sequence[Sustained] = (),
) -> tuple[FigureGroup, ...]:
    """The figures of every route and engine, as they first appear. With `limits`, which an
    objective allows, they are drawn against the rate, with what was found of it."""
    rates, times = (RATES, TIMES) if limits is None else by_rate(limits)
    rows = without_shorter(rows) if limits is None else rows
    bands = list(_bands(rows, sustained))
    places = dict.fromkeys((row.route, row.engine) for row in rows)
    found = []
    for route, engine in places:
        here = [row for row in rows if (row.route, row.engine) == (route, engine)]
        name = f"{slug(route)}-{engine}"
        figures = (
            *_figures(rates, here, styles, name, bands),
            *_figures(times, here, styles, name, bands),
        )
        if figures:
            found.append(FigureGroup(route, engine, figures))
    return tuple(found)


def _figures(
    whats: Sequence[Quantity],
    rows: Sequence[Row],
    styles: LaneStyles,
    name: str,
    bands: Sequence[Spec],
) -> Iterator[Figure]:
    """Figures of one unit, all on one scale, so that they can be compared at a glance."""
    wanted = [what for what in whats if any(map(what.values, _drawn(what, rows)))]
    values = [
        value
        for what in wanted
        for row in _drawn(what, rows)
        for value in (*what.values(row), what.bound(row), what.offered(row), what.limit)
        if value is not None
    ]
    for what in wanted:
        mine = _drawn(what, rows)
        by_rate = what.x is units.RATE and what.is_rate
        scale = units.linear(max(values)) if by_rate else units.scale(values)
        yield _lines(what, mine, styles, name, scale, bands if what.limit is not None else ())


def _drawn(what: Quantity, rows: Sequence[Row]) -> list[Row]:
    """The trials of a figure. Along rates that is each that tells something: another, such as of a
    load that was lost at once, would only stretch the axis. Along connections only a lane's longest
    windows of a load are drawn: no median mixes shorter ones with these."""
    mine = [row for row in rows if row.mode == what.mode]
    if what.x is units.RATE:
        return list(filter(what.values, mine))
    longest: dict[tuple[str, Cell], int] = {}
    for row in mine:
        longest[_load(row)] = max(longest.get(_load(row), 0), row.duration_s or 0)
    return [row for row in mine if (row.duration_s or 0) == longest[_load(row)]]


def _load(row: Row) -> tuple[str, Cell]:
    """What a lane has in windows of whatever length, after whatever warm-up."""
    return lane_of(row), Cell.of(row).any_window.any_warmup


def _lines(
    what: Quantity,
    rows: Sequence[Row],
    styles: LaneStyles,
    name: str,
    scale: Spec,
    bands: Sequence[Spec] = (),
) -> Figure:
    lanes = list(dict.fromkeys(map(lane_of, rows)))
    set_series, set_points, own_bounds = _set_lines(what, rows, lanes)
    apart_px = SHIFT_PX if len(set(map(what.load, rows))) > 1 else ALONE_PX
    medians: list[Spec] = []
    dots: list[Spec] = []
    for index, lane in enumerate(lanes):
        mine = [row for row in rows if lane_of(row) == lane]
        # Rates are as many as trials, so that points hardly hide each other.
        shift = 0.0 if what.x is units.RATE else (index - (len(lanes) - 1) / 2) * apart_px
        for metric, kind in what.metrics:
            for load, of in what.by_load(mine):
                at = {"series": lane, "kind": kind, "x": load, "shift": shift}
                if what.x is units.RATE:
                    dots += what.trials(at, of, metric)
                    continue
                medians += what.medians(at, of, metric)
                dots += what.dots(at, of, metric)
    series = [*styles.series(lanes), *set_series]
    points = Points(medians, dots, set_points, own_bounds, bands)
    x = along(what, [what.load(row) for row in rows])
    below = _below(what, rows, bool(own_bounds))
    own = lines(what, series, points, x, scale, title(what.title, *below))
    return Figure(f"{what.slug}-{name}", what.title, what.alt(rows, lanes), own)


@dataclass(frozen=True, slots=True)
class Points:
    """The data of a figure of lines, as `Quantity` makes it. `set_lines` and `own_bounds` are no
    lane's measurements: what was offered, predicted or allowed, and each lane's own bound."""

    medians: Sequence[Spec]
    dots: Sequence[Spec]
    set_lines: Sequence[Spec] = ()
    own_bounds: Sequence[Spec] = ()
    bands: Sequence[Spec] = ()


def along(what: Quantity, places: Sequence[float]) -> Spec:
    """The axis of the loads at these places. Connections grow by factors. Rates are searched by
    steps, which are close to each other where it matters: their axis is linear."""
    if what.x is units.RATE:
        scale: Spec = {"domain": [0, max(places)], "nice": True}
        axis = {**units.axis(what.x), "tickCount": 6}
        return {"field": "x", "type": "quantitative", "axis": axis, "scale": scale}
    margin = (max(places) / min(places)) ** 0.08 if max(places) > min(places) else 2.0
    axis = {**units.axis(what.x), "values": sorted(set(places))}
    axis["labelExpr"] = what.x.written("datum.value")
    domain = [min(places) / margin, max(places) * margin]
    scale = {"type": "log", "domain": domain, "nice": False}
    return {"field": "x", "type": "quantitative", "axis": axis, "scale": scale}


def lines(
    what: Quantity, series: Sequence[Series], of: Points, x: Spec, scale: Spec, named: Spec
) -> Spec:
    """The view of these series along the axis `x`: a line through the medians of each, intervals,
    launches, and invalid trials. `scale` is that of the other axis, `named` the title."""
    encodings = spec.of_series(series, WIDTH, what.unit.label)
    line = spec.picked(encodings, "color", "opacity")
    dashed = {**line, **spec.picked(encodings, "strokeDash")}
    told: Spec = {**line, "tooltip": {"field": "tip"}}
    shaped = {**told, **spec.picked(encodings, "shape")}
    ends: Spec = {**told, "y": {"field": "low"}, "y2": {"field": "high"}}
    shade = {"condition": {"param": "shown", "value": 0.2}, "value": 0.03}
    span: Spec = {**told, "opacity": shade, "x": {**x, "field": "from"}, "x2": {"field": "to"}}
    span |= {"y": {"value": 0}, "y2": {"value": "height"}}
    parts = (
        ("bands", of.bands, {"type": "rect"}, span),
        ("set", of.set_lines, {"type": "line"}, dashed),
        ("own-bounds", of.own_bounds, DOTTED, line),
        ("medians", of_kind(of.medians, ""), {"type": "line"}, dashed),
        ("raw-medians", of_kind(of.medians, "raw"), DOTTED, line),
        ("intervals", with_interval(of.medians), {"type": "rule"}, ends),
        ("launches", of_kind(of.dots, ""), POINT, shaped),
        ("raw-launches", of_kind(of.dots, "raw"), HOLLOW, shaped),
        ("invalid", invalid(of.dots), CROSS, told),
    )
    layers = [layer(*part) for part in parts if part[1]]
    layers[0]["params"] = [spec.toggle()]
    return {
        "title": named,
        "width": WIDTH,
        "height": HEIGHT + spec.LEGEND_PX * spec.legend_rows([one.name for one in series], WIDTH),
        "encoding": {
            "x": x,
            "y": {"field": "y", "type": "quantitative", "axis": units.axis(what.unit),
                  "scale": scale},
        },
        "layer": layers,
    }  # fmt: skip


def _set_lines(
    what: Quantity, rows: Sequence[Row], lanes: Sequence[str]
) -> tuple[list[Series], list[Spec], list[Spec]]:
    """The predicted bound and the offered rate: entries of the legend with the points of their
    lines, and the points of bounds that each lane has for itself."""

    def points(name: str, values: Sequence[tuple[float, float]]) -> list[Spec]:
        if len({load for load, _ in values}) == 1:
            (load, value), *_ = values
            values = [(load / 2, value), (2 * load, value)]
        return [{"series": name, "x": load, "y": value} for load, value in values]

    series, lines = [], []
    if what.limit is not None:
        places = [what.load(row) for row in rows]
        ends = [(min(places), what.limit), (max(places), what.limit)]
        series.append(Series("objective", NEUTRAL, "dash", spec.GLYPHS["dash"]))
        lines += points("objective", ends)
    offered = _by_load(what, rows, what.offered)
    if offered:
        series.append(Series("offered", NEUTRAL, "dash", spec.GLYPHS["dash"]))
        lines += points("offered", offered)
    bounds = {
        lane: _by_load(what, [row for row in rows if lane_of(row) == lane], what.bound)
        for lane in lanes
    }
    told = {lane: values for lane, values in bounds.items() if values and values != offered}
    if len(set(told.values())) == 1 and len(told) == len(lanes):
        series.append(Series(what.bound_name, NEUTRAL, "dot", spec.GLYPHS["dot"]))
        return series, lines + points(what.bound_name, next(iter(told.values()))), []
    own = [point for lane, values in told.items() for point in points(lane, values)]
    return series, lines, own


def _bands(rows: Sequence[Row], sustained: Sequence[Sustained]) -> Iterator[Spec]:
    """What each server sustains, along the rate: connections send a rate of their own."""
    for band in sustained:
        if band.value is None or band.low is None or band.high is None:
            continue
        sent = [(row.offered_rps or 0) / row.concurrency for row in rows]
        each = max(sent, default=0.0) if band.unit == "connections" else 1.0
        interval = f"{band.value:,.0f} [{band.low:,.0f}, {band.high:,.0f}] {band.unit}"
        tip = f"{band.server}\n{band.objective}: {interval}"
        yield {
            "series": band.server,
            "from": band.low * each,
            "to": band.high * each,
            "tip": tip,
        }


def _by_load(
    what: Quantity, rows: Sequence[Row], value: Callable[[Row], float | None]
) -> tuple[tuple[float, float], ...]:
    found: dict[float, list[float | None]] = {}
    for row in rows:
        found.setdefault(what.load(row), []).append(value(row))
    bounds = ((load, bound_of(values)) for load, values in sorted(found.items()))
    return tuple((load, bound) for load, bound in bounds if bound is not None)


def _below(what: Quantity, rows: Sequence[Row], bounds: bool) -> Iterator[str]:
    """The subtitle: the lines and shapes that are in no legend."""
    if bounds:
        yield f"dotted: its {what.bound_name}"
    if len(what.metrics) > 1 and any(row.raw_p95_ms is not None for row in rows):
        yield "hollow: raw"
    if any(not row.valid and what.values(row) for row in rows):
        yield "×: invalid trial"
