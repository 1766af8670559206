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
from lab.report.page import spec, units
from lab.report.page.figure import Figure
from lab.report.page.looks import Looks
from lab.report.page.palette import NEUTRAL
from lab.report.page.spec import GREY, Series, Spec

SHIFT_PX = 5.0
# Of a figure; its height grows with its legend or its rows.
WIDTH, HEIGHT = 400, 255
ROW_PX, HIGH_ROW_PX = 24, 32
# Of a row's name; what is longer is cut, and whole in the words of the figure.
NAME_PX = 190
DOT_PX2 = 48


@dataclass(frozen=True, slots=True)
class Place:
    """The figures of one route and one engine."""

    route: str
    engine: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class _What:
    """One figure: which trials, which of their numbers, and the words for it."""

    slug: str
    title: str
    mode: str
    metrics: tuple[tuple[Metric, str], ...]
    unit: units.Unit

    @property
    def is_rate(self) -> bool:
        return self.unit is units.RATE

    @property
    def bound(self) -> str:
        return "bound" if self.is_rate else "N / bound"


_RATES = (
    _What("throughput-closed", "Throughput (goodput), closed load", "closed",
          (("goodput_rps", ""),), units.RATE),
    _What("throughput-open", "Throughput (goodput), open load", "open",
          (("goodput_rps", ""),), units.RATE),
)  # fmt: skip
_TIMES = (
    _What("latency-closed", "p95, closed load: raw", "closed", (("raw_p95_ms", ""),),
          units.MILLISECONDS),
    _What("latency-open", "p95, open load: corrected, and raw", "open",
          (("p95_ms", ""), ("raw_p95_ms", "raw")), units.MILLISECONDS),
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
) -> Iterator[Figure]:
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
        make = _lines if many else _rows
        yield make(what, mine, looks, name, units.scale(values))


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
    if what.is_rate:
        return row.predicted_rps
    return row.concurrency / row.predicted_rps * 1000 if row.mode == "closed" else None


def _offered(row: Row, what: _What) -> float | None:
    return float(row.offered_rps) if what.is_rate and row.offered_rps is not None else None


def _lines(what: _What, rows: Sequence[Row], looks: Looks, name: str, scale: Spec) -> Figure:
    lanes = list(dict.fromkeys(map(lane_of, rows)))
    set_series, set_points, own_bounds = _set_lines(what, rows, lanes)
    medians: list[Spec] = []
    dots: list[Spec] = []
    for index, lane in enumerate(lanes):
        mine = [row for row in rows if lane_of(row) == lane]
        shift = (index - (len(lanes) - 1) / 2) * SHIFT_PX
        for metric, kind in what.metrics:
            for load, of in _loads(mine):
                at = {"series": lane, "kind": kind, "x": load, "shift": shift}
                medians += _median_points(what, at, of, metric)
                dots += _dots(what, at, of, metric)
    series = [*looks.series(lanes), *set_series]
    encodings = spec.of_series(series, WIDTH, what.unit.label)
    line = spec.picked(encodings, "color", "opacity")
    dashed = {**line, **spec.picked(encodings, "strokeDash")}
    shaped = {**line, **spec.picked(encodings, "shape"), "tooltip": {"field": "tip"}}
    parts = (
        ("set", set_points, {"type": "line"}, dashed),
        ("own-bounds", own_bounds, _DOTTED, line),
        ("medians", _of(medians, ""), {"type": "line"}, dashed),
        ("raw-medians", _of(medians, "raw"), _DOTTED, line),
        ("intervals", [one for one in medians if "low" in one], {"type": "rule"},
         {**line, "y": {"field": "low"}, "y2": {"field": "high"}, "tooltip": {"field": "tip"}}),
        ("launches", _of(dots, ""), _POINT, shaped),
        ("raw-launches", _of(dots, "raw"), _HOLLOW, shaped),
        ("invalid", [one for one in dots if not one["valid"]], _CROSS,
         {**line, "tooltip": {"field": "tip"}}),
    )  # fmt: skip
    layers = [_layer(*part, shifts="shift" in part[1][0]) for part in parts if part[1]]
    layers[0]["params"] = [spec.zoom("x", "y"), spec.toggle()]
    loads = [float(row.concurrency) for row in rows]
    margin = (max(loads) / min(loads)) ** 0.08 if max(loads) > min(loads) else 2.0
    x_axis = {**units.axis(units.CONNECTIONS), "values": sorted(set(loads))}
    x_axis["labelExpr"] = units.CONNECTIONS.written("datum.value")
    domain = [min(loads) / margin, max(loads) * margin]
    own: Spec = {
        "title": _title(what.title, "", list(_told(what, rows, bool(own_bounds)))),
        "width": WIDTH,
        "height": HEIGHT + spec.LEGEND_PX * spec.legend_rows([one.name for one in series], WIDTH),
        "encoding": {
            "x": {
                "field": "x", "type": "quantitative", "axis": x_axis,
                "scale": {"type": "log", "domain": domain, "nice": False},
            },
            "y": {"field": "y", "type": "quantitative", "axis": units.axis(what.unit),
                  "scale": scale},
        },
        "layer": layers,
    }  # fmt: skip
    return Figure(f"{what.slug}-{name}", what.title, _alt(what, rows, lanes), own)


_DOTTED: Spec = {"type": "line", "strokeDash": spec.DASHES["dot"], "strokeWidth": 2}
_POINT: Spec = {"type": "point", "filled": True, "size": DOT_PX2, "opacity": 1}
_HOLLOW: Spec = {"type": "point", "fill": "var(--page)", "strokeWidth": 1.5, "size": DOT_PX2,
                 "opacity": 1}  # fmt: skip
_CROSS: Spec = {"type": "point", "shape": spec.CROSS, "strokeWidth": 1.3, "size": DOT_PX2,
                "opacity": 1}  # fmt: skip


def _layer(
    name: str, values: list[Spec], mark: Spec, encoding: Spec, *, shifts: bool = False
) -> Spec:
    """Marks are clipped where a reader moves the axes. Where they shift, lanes of one x stand
    beside each other."""
    whole = {**mark, "clip": True, **({"xOffset": {"expr": "datum.shift"}} if shifts else {})}
    return {"name": name, "data": {"values": values}, "mark": whole, "encoding": encoding}


def _of(points: Sequence[Spec], kind: str) -> list[Spec]:
    return [one for one in points if one["kind"] == kind and one.get("valid", True)]


def _median_points(what: _What, at: Spec, of: Sequence[Row], metric: Metric) -> Iterator[Spec]:
    median = median_per_launch(of, metric)
    if median is not None:
        ends = median.interval
        more = {} if ends is None else {"low": ends.low, "high": ends.high, "tip": ""}
        point = {**at, "y": median.median, **more}
        if more:
            point["tip"] = _tip(at, f"median {_median(median, what)}")
        yield point


def _dots(what: _What, at: Spec, of: Sequence[Row], metric: Metric) -> Iterator[Spec]:
    """Each launch, or their median where it has an interval; and the trials that are invalid."""
    median = median_per_launch(of, metric)
    if median is not None and median.interval is not None:
        said = _tip(at, f"median {_median(median, what)}")
        yield {**at, "y": median.median, "valid": True, "tip": said}
    else:
        for value in per_launch(of, metric):
            yield {**at, "y": value, "valid": True, "tip": _tip(at, _value_text(what, value))}
    for row in of:
        seen = measured(row, metric)
        if not row.valid and seen is not None:
            said = _tip(at, f"{_value_text(what, seen)}, invalid trial {row.trial}")
            yield {**at, "y": seen, "valid": False, "tip": said}


def _tip(at: Spec, text: str) -> str:
    kind = f" {at['kind']}" if at["kind"] else ""
    return f"{at['series']}{kind}\n{at['x']:,.0f} connections\n{text}"


def _value_text(what: _What, value: float) -> str:
    return f"{what.unit.words(value)} {what.unit.label}".strip()


def _set_lines(
    what: _What, rows: Sequence[Row], lanes: Sequence[str]
) -> tuple[list[Series], list[Spec], list[Spec]]:
    """What was predicted and what was offered: entries of the legend with the points of their
    lines, and the points of bounds that each lane has for itself."""

    def points(name: str, values: Sequence[tuple[float, float]]) -> list[Spec]:
        return [{"series": name, "x": load, "y": value} for load, value in values]

    series, lines = [], []
    offered = _by_load(rows, lambda row: _offered(row, what))
    if offered:
        series.append(Series("offered", NEUTRAL, "dash", spec.GLYPHS["dash"]))
        lines += points("offered", offered)
    bounds = {
        lane: _by_load([row for row in rows if lane_of(row) == lane], lambda r: _bound(r, what))
        for lane in lanes
    }
    told = {lane: values for lane, values in bounds.items() if values and values != offered}
    if len(set(told.values())) == 1 and len(told) == len(lanes):
        series.append(Series(what.bound, NEUTRAL, "dot", spec.GLYPHS["dot"]))
        return series, lines + points(what.bound, next(iter(told.values()))), []
    own = [point for lane, values in told.items() for point in points(lane, values)]
    return series, lines, own


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


def _told(what: _What, rows: Sequence[Row], bounds: bool) -> Iterator[str]:
    """What the subtitle says of lines and shapes that are in no legend."""
    if bounds:
        yield f"dotted: {what.bound}, in its server's colour"
    if len(what.metrics) > 1 and any(row.raw_p95_ms is not None for row in rows):
        yield "hollow: raw"
    if any(not row.valid and _all(row, what) for row in rows):
        yield "×: invalid trial"


def _title(title: str, load: str, told: Sequence[str]) -> Spec:
    below = "; ".join(part for part in (load, *told) if part)
    return {"text": title, "subtitle": below} if below else {"text": title}


def _rows(what: _What, rows: Sequence[Row], looks: Looks, name: str, scale: Spec) -> Figure:
    lanes = list(dict.fromkeys(map(lane_of, rows)))
    one_load = len({row.concurrency for row in rows}) == 1
    one_server = any(row.arm for row in rows) and len({row.server for row in rows}) == 1
    medians: list[Spec] = []
    dots: list[Spec] = []
    bounds: list[Spec] = []
    names: list[str] = []
    for lane in lanes:
        mine = [row for row in rows if lane_of(row) == lane]
        first, look = mine[0], looks.lanes[lane]
        below = (
            first.server if first.arm and not one_server else "",
            "" if one_load else f"{first.concurrency:,} connections",
        )
        for metric, kind in what.metrics:
            at = {
                "series": lane, "kind": kind, "x": first.concurrency,
                "hue": spec.hue(look.hue), "shape": spec.SHAPES[look.shape],
            }  # fmt: skip
            mine_dots = list(_dots(what, at, mine, metric))
            if not mine_dots:
                continue
            median = median_per_launch(mine, metric)
            row = "\n".join(
                (
                    f"{first.arm or first.server}{f', {kind}' if kind else ''}",
                    ", ".join(part for part in below if part),
                    what.unit.words(median.median) if median else "invalid",
                )
            )
            # Two rows may say the same; a row's number keeps them apart.
            row = f"{len(names)}\n{row}"
            names.append(row)
            dots += [{**one, "row": row} for one in mine_dots]
            medians += [{**one, "row": row} for one in _median_points(what, at, mine, metric)]
            bound = bound_of(_bound(one, what) for one in mine)
            if bound is not None:
                said = f"{lane}\n{what.bound} {_value_text(what, bound)}"
                bounds.append({"row": row, "y": bound, "tip": said})
    looked = {
        "color": {"field": "hue", "type": "nominal", "scale": None},
        "shape": {"field": "shape", "type": "nominal", "scale": None},
        "tooltip": {"field": "tip"},
    }
    line = spec.picked(looked, "color", "tooltip")
    ticks = {"type": "tick", "color": GREY, "thickness": 1.8, "size": 20}
    parts = (
        ("bound", bounds, ticks, {"tooltip": {"field": "tip"}}),
        ("intervals", [one for one in medians if "low" in one], {"type": "rule"},
         {**line, "x": {"field": "low"}, "x2": {"field": "high"}}),
        ("launches", _of(dots, ""), _POINT, looked),
        ("raw-launches", _of(dots, "raw"), _HOLLOW, looked),
        ("invalid", [one for one in dots if not one["valid"]], _CROSS, line),
    )  # fmt: skip
    layers = [_layer(*part) for part in parts if part[1]]
    layers[0]["params"] = [spec.zoom("x")]
    load = rows[0]
    heads = (
        load.server if one_server else "",
        f"{load.concurrency:,} connections" if one_load else "",
        f"{load.offered_rps:,}/s offered" if one_load and load.offered_rps is not None else "",
    )
    told = [f"stroke: {what.bound}"] if bounds else []
    if any(not one["valid"] for one in dots):
        told.append("×: invalid trial")
    parts_of = r"split(datum.value,'\n')"
    y: Spec = {"field": "row", "type": "nominal", "sort": names, "scale": {"domain": names}}
    left = {
        "title": None, "labelLimit": NAME_PX, "labelColor": "var(--ink)", "domain": False,
        "labelExpr": f"{parts_of}[2]==''?{parts_of}[1]:[{parts_of}[1],{parts_of}[2]]",
    }  # fmt: skip
    right = {**left, "orient": "right", "labelExpr": f"{parts_of}[3]", "labelFontWeight": "bold"}
    height = (HIGH_ROW_PX if any(one.split("\n")[2] for one in names) else ROW_PX) * len(names)
    own: Spec = {
        "title": _title(what.title, ", ".join(head for head in heads if head), told),
        "width": WIDTH,
        "height": height + 80,
        "encoding": {
            "x": {"field": "y", "type": "quantitative", "scale": scale,
                  "axis": {**units.axis(what.unit), "grid": True, "tickCount": 5}},
        },
        "resolve": {"axis": {"y": "independent"}},
        "layer": [
            *({**layer, "encoding": {"y": {**y, "axis": left if not at else None},
                                     **layer["encoding"]}} for at, layer in enumerate(layers)),
            {"name": "medians", "data": {"values": [{"row": one} for one in names]},
             "mark": {"type": "point", "opacity": 0}, "encoding": {"y": {**y, "axis": right},
                                                                   "x": {"value": 0}}},
        ],
    }  # fmt: skip
    return Figure(f"{what.slug}-{name}", what.title, _alt(what, rows, lanes), own)


def _alt(what: _What, rows: Sequence[Row], lanes: Sequence[str]) -> str:
    """The medians in words."""
    parts = []
    for lane in lanes:
        mine = [row for row in rows if lane_of(row) == lane]
        for metric, kind in what.metrics:
            told = [
                f"{load:,.0f} connections {_median(median_per_launch(of, metric), what)}"
                for load, of in _loads(mine)
            ]
            parts.append(f"{lane}{f' {kind}' if kind else ''}: {', '.join(told)}")
    return f"Medians over launches of valid trials. {'. '.join(parts)}."


def _median(of: MedianOf | None, what: _What) -> str:
    words = what.unit.words
    if of is None:
        return "no valid trial"
    if of.interval is None:
        return words(of.median)
    return f"{words(of.median)} [{words(of.interval.low)}, {words(of.interval.high)}]"
