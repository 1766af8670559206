"""Throughput and latencies against connections, or against the rate in a search by rate.

Every valid trial is a point, an invalid one a cross, a dash what was predicted. Against connections
a line goes through the medians of valid trials, with their intervals. Against the rate a band is
the interval of what a server sustains.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from operator import attrgetter
from typing import NamedTuple

from lab.judge.grouping import lane_of, median_per_launch, without_shorter
from lab.model import Row, Sustained, goodput, p95_of
from lab.report.loads import p99_of
from lab.report.page.figure import Figure, Spec, axis, by_series, layer, view
from lab.report.page.palette import numbers
from lab.report.text import estimate, median, number, place

# Between lanes at one load.
SHIFT_PX = 5.0
SIZE = 400, 255
DASH: Spec = {"orient": "horizontal", "size": 18, "thickness": 1.5}
LIMIT: Spec = {"color": "var(--soft)", "strokeDash": [5, 4]}
DOT: Spec = {"filled": True, "size": 40}
CROSS = "M-.8,-.8L.8,.8M-.8,.8L.8,-.8"
# From here on a linear axis would press the small values into its foot.
LOG_FROM = 12.0


class Quantity(NamedTuple):
    """What a figure shows of each trial, and what was predicted of it."""

    slug: str
    title: str
    unit: str
    value: Callable[[Row], float | None]
    expected: Callable[[Row], float | None] = lambda _: None


QUANTITIES = (
    Quantity("throughput", "Goodput", "req/s", goodput, attrgetter("expected_rps")),
    Quantity("p50", "p50", "ms", lambda row: row.p50_ms if row.mode == "open" else row.raw_p50_ms),
    Quantity("p95", "p95", "ms", p95_of, attrgetter("expected_p95_ms")),
    Quantity("p99", "p99", "ms", p99_of),
)


def by_load(
    rows: Sequence[Row],
    limits: Mapping[str, float] | None = None,
    sustained: Sequence[Sustained] = (),
) -> Iterator[Figure]:
    """Figures of every route, engine and mode. With `limits`, which an objective allows, they are
    drawn against the rate, with what was found of it. Of the p50 only if it has a limit."""
    rows = without_shorter(rows) if limits is None else rows
    facets = list(dict.fromkeys((row.route, row.engine, row.mode) for row in rows))
    several = len({facet[:2] for facet in facets}) > 1
    asked = [each for each in QUANTITIES if each.slug != "p50" or "p50" in (limits or {})]
    for quantity, facet in product(asked, facets):
        trials = [row for row in rows if (row.route, row.engine, row.mode) == facet]
        known = [row for row in trials if quantity.value(row) is not None]
        if known:
            title = f"{quantity.title}, {', '.join(facet if several else facet[2:])}"
            yield _figure(title, quantity, known, limits, sustained)


def _figure(
    title: str,
    quantity: Quantity,
    rows: Sequence[Row],
    limits: Mapping[str, float] | None,
    sustained: Sequence[Sustained],
) -> Figure:
    by_rate, first = limits is not None, rows[0]
    limit = limits.get(quantity.slug) if limits else None
    unit = "req/s" if by_rate else "connections"
    lanes = list(dict.fromkeys(map(lane_of, rows)))
    middle = (len(lanes) - 1) / 2
    points = [
        {
            "series": lane_of(row),
            "x": row.offered_rps or 0 if by_rate else row.concurrency,
            "y": quantity.value(row),
            "expected": quantity.expected(row),
            "valid": row.valid,
            "shift": 0 if by_rate else (lanes.index(lane_of(row)) - middle) * SHIFT_PX,
            "tip": f"{place(row)}\n{number(quantity.value(row))} {quantity.unit}, "
            f"trial {row.trial}",
        }
        for row in rows
    ]
    invalid = [point for point in points if not point["valid"]]
    expected = [point for point in points if point["expected"]]
    medians = _medians(quantity, rows, points)
    lined = [] if by_rate else medians
    bands = _bands(rows, sustained) if limit else []
    series = by_series(lanes, [*numbers(lanes).values()], SIZE[0])
    hue: Spec = {"color": series["color"], "opacity": series["opacity"]}
    tip: Spec = {**hue, "tooltip": {"field": "tip"}}
    across: Spec = {"x": {"value": 0}, "x2": {"value": "width"}}
    upright: Spec = {"y": {"value": 0}, "y2": {"value": "height"}}
    span: Spec = {**tip, **upright, "x": {"field": "from"}, "x2": {"field": "to"}}
    dash: Spec = {**hue, "y": {"field": "expected"}}
    ends: Spec = {**tip, "y": {"field": "low"}, "y2": {"field": "high"}}
    shaped: Spec = {**tip, "shape": series["shape"]}
    shift: Spec = {"xOffset": {"expr": "datum.shift"}}
    layers = (
        layer("bands", bands, "rect", span, fillOpacity=0.2),
        layer("limit", [{"y": limit}] if limit else [], "rule", across, **LIMIT),
        layer("expected", expected, "tick", dash, **DASH, **shift),
        layer("medians", lined, "line", hue, **shift),
        layer("intervals", [line for line in lined if "low" in line], "rule", ends, **shift),
        layer(
            "trials", [point for point in points if point["valid"]], "point", shaped, **DOT, **shift
        ),
        layer("invalid", invalid, "point", tip, shape=CROSS, strokeWidth=1.3, **shift),
    )
    limited = f"broken line: at most {limit or 0:g} ms"
    below = {"dash: predicted": expected, "×: invalid": invalid, limited: limit}
    y_axis = _y_axis([*points, *lined], quantity.unit, limit)
    axes = {"x": _x_axis(points, bands, unit), "y": y_axis}
    by_lane = sorted(medians, key=lambda middle: lanes.index(middle["series"]))
    texts = [f"{each['series']}: {each['x']:,} {unit} {each['tip']}" for each in by_lane]
    route = re.sub(r"[^a-z0-9]+", "-", first.route.lower()).strip("-") or "root"
    name = "-".join((quantity.slug, first.mode, route, first.engine))
    alt = f"Medians over launches of valid trials, in {quantity.unit}. {'; '.join(texts)}."
    return Figure(name, title, alt, view(title, below, SIZE, axes, lanes, layers))


def _medians(quantity: Quantity, rows: Sequence[Row], points: Sequence[Spec]) -> list[Spec]:
    """The median over the launches of each lane at each load, with its interval if it has one."""
    groups: dict[tuple[str, int], list[tuple[Row, Spec]]] = {}
    for row, point in zip(rows, points, strict=True):
        groups.setdefault((point["series"], point["x"]), []).append((row, point))
    medians = []
    for _, group in sorted(groups.items(), key=lambda each: each[0][1]):
        middle = median_per_launch([row for row, _ in group], quantity.value)
        if middle is not None:
            ends = middle.interval
            limits = {"low": ends.low, "high": ends.high} if ends else {}
            medians.append({**group[0][1], "y": middle.median, **limits, "tip": median(middle)})
    return medians


def _bands(rows: Sequence[Row], sustained: Sequence[Sustained]) -> list[Spec]:
    """What each server sustains, along the rate: connections send a rate of their own."""
    sent = max((row.offered_rps or 0) / row.concurrency for row in rows)
    bands = []
    servers = {row.server for row in rows}
    for band in sustained:
        known = band.value is not None and band.server in servers
        if known and band.low is not None and band.high is not None:
            each = sent if band.unit == "connections" else 1.0
            value = f"{estimate(band.value, band.low, band.high)} {band.unit}"
            ends = {"from": band.low * each, "to": band.high * each}
            tip = f"{band.server}\n{band.objective}: {value}"
            bands.append({"series": band.server, **ends, "tip": tip})
    return bands


def _x_axis(points: Sequence[Spec], bands: Sequence[Spec], unit: str) -> Spec:
    """Connections grow by factors. Rates are searched by steps, close to each other where it
    matters."""
    places = sorted({point["x"] for point in points})
    if unit != "connections":
        most = max(places[-1], *(band["to"] for band in bands), 0)
        return axis(unit, {"domain": [0, most], "nice": True}, "x", tickCount=6)
    margin = max(1.1, (places[-1] / places[0]) ** 0.08)
    ends = [places[0] / margin, places[-1] * margin]
    return axis(unit, {"type": "log", "domain": ends, "nice": False}, "x", values=places)


def _y_axis(points: Sequence[Spec], unit: str, limit: float | None) -> Spec:
    names = ("y", "expected", "low", "high")
    values = [point.get(name) or 0.0 for point in points for name in names] + [limit or 0.0]
    high, low = max(values), min((value for value in values if value > 0), default=0.0)
    if min(point["y"] for point in points) <= 0:
        low = 0.0
    scale: Spec = {"domain": [0, high or 1], "nice": True}
    if low > 0 and high / low >= LOG_FROM:
        scale = {"type": "log", "domain": [low, high], "nice": False, "padding": 8, "clamp": True}
    return axis(unit, scale, "y")
