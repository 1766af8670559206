"""Figures with one row for each lane: for runs in which no lane has more than one load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lab.judge.grouping import bound_of, lane_of, median_per_launch
from lab.model import Row
from lab.report.page import spec, units
from lab.report.page.figure import Figure
from lab.report.page.lane_styles import LaneStyles
from lab.report.page.quantity import (
    CROSS,
    HOLLOW,
    POINT,
    Quantity,
    invalid,
    layer,
    of_kind,
    title,
    with_interval,
)
from lab.report.page.spec import GREY, Spec

WIDTH = 400
ROW_PX, HIGH_ROW_PX = 24, 32
# The width of a row's name. A longer name is cut; the figure's text has it in full.
NAME_PX = 190
TICKS: Spec = {"type": "tick", "color": GREY, "thickness": 1.8, "size": 20}


def in_rows(
    what: Quantity, rows: Sequence[Row], styles: LaneStyles, name: str, scale: Spec
) -> Figure:
    """The figure of one quantity: its lanes below each other, with their medians at the end."""
    lanes = list(dict.fromkeys(map(lane_of, rows)))
    told: Spec = {"tooltip": {"field": "tip"}}
    coloured: Spec = {"color": {"field": "hue", "type": "nominal", "scale": None}, **told}
    shaped: Spec = {"shape": {"field": "shape", "type": "nominal", "scale": None}, **coloured}
    ends: Spec = {"x": {"field": "low"}, "x2": {"field": "high"}, **coloured}
    medians: list[Spec] = []
    dots: list[Spec] = []
    bounds: list[Spec] = []
    names: list[str] = []
    for lane in lanes:
        mine = [row for row in rows if lane_of(row) == lane]
        style = styles.lanes[lane]
        for metric, kind in what.metrics:
            at: Spec = {
                "series": lane, "kind": kind, "x": what.load(mine[0]), "row": "",
                "hue": spec.hue(style.hue), "shape": spec.SHAPES[style.shape],
            }  # fmt: skip
            if not list(what.dots(at, mine, metric)):
                continue
            median = median_per_launch(mine, metric)
            end = what.unit.words(median.median) if median else "invalid"
            # Two rows may say the same; their numbers keep them apart.
            at["row"] = "\n".join((str(len(names)), *_name(rows, mine[0], kind), end))
            names.append(at["row"])
            dots += what.dots(at, mine, metric)
            medians += what.medians(at, mine, metric)
            bound = bound_of(map(what.bound, mine))
            if bound is not None:
                tip = f"{lane}\n{what.bound_name} {what.text(bound)}"
                bounds.append({"row": at["row"], "y": bound, "tip": tip})
    parts = (
        ("bound", bounds, TICKS, told),
        ("intervals", with_interval(medians), {"type": "rule"}, ends),
        ("launches", of_kind(dots, ""), POINT, shaped),
        ("raw-launches", of_kind(dots, "raw"), HOLLOW, shaped),
        ("invalid", invalid(dots), CROSS, coloured),
    )
    layers = [layer(*part) for part in parts if part[1]]
    layers[0]["params"] = [spec.zoom("x")]
    axis = {**units.axis(what.unit), "grid": True, "tickCount": 5}
    high = any(row.split("\n")[2] for row in names)
    stroke = f"stroke: {what.bound_name}" if bounds else ""
    crosses = "×: invalid trial" if invalid(dots) else ""
    # Room for readers whose font is wider than the one that was measured.
    longest = max(len(part) for row in names for part in row.split("\n")[1:3])
    left = spec.PADDING["left"] + 0.12 * min(NAME_PX, spec.CHAR_PX * longest)
    view: Spec = {
        "padding": {**spec.PADDING, "left": round(left)},
        "title": title(what.title, _load(rows), stroke, crosses),
        "width": WIDTH,
        "height": 80 + (HIGH_ROW_PX if high else ROW_PX) * len(names),
        "encoding": {"x": {"field": "y", "type": "quantitative", "scale": scale, "axis": axis}},
        "resolve": {"axis": {"y": "independent"}},
        "layer": list(named(layers, names, high)),
    }
    return Figure(f"{what.slug}-{name}", what.title, what.alt(rows, lanes), view)


def _one_server(rows: Sequence[Row]) -> bool:
    return any(row.arm for row in rows) and len({row.server for row in rows}) == 1


def _one_load(rows: Sequence[Row]) -> bool:
    return len({(row.concurrency, row.offered_rps) for row in rows}) == 1


def _load(rows: Sequence[Row]) -> str:
    first, one_load = rows[0], _one_load(rows)
    heads = (
        first.server if _one_server(rows) else "",
        f"{first.concurrency:,} connections" if one_load else "",
        f"{first.offered_rps:,}/s offered" if one_load and first.offered_rps is not None else "",
    )
    return ", ".join(head for head in heads if head)


def _name(rows: Sequence[Row], first: Row, kind: str) -> tuple[str, str]:
    """A row's name, and below it what the rows have not in common."""
    below = (
        first.server if first.arm and not _one_server(rows) else "",
        "" if _one_load(rows) else f"{first.concurrency:,} connections",
        "" if _one_load(rows) or first.offered_rps is None else f"{first.offered_rps:,}/s",
    )
    name = first.arm or first.server
    return f"{name}, {kind}" if kind else name, ", ".join(part for part in below if part)


def named(layers: Sequence[Spec], names: Sequence[str], high: bool) -> Iterator[Spec]:
    """The layers with the rows' names on the left, and what each comes to on the right. A name is
    four lines: a number that tells it from others, the name, a line below it, and its end."""
    line = r"split(datum.value,'\n')"
    rows: Spec = {"field": "row", "type": "nominal", "scale": {"domain": list(names)}}
    left: Spec = {
        "title": None,
        "labelColor": "var(--ink)",
        "labelLimit": NAME_PX,
        "labelOffset": -6.5 if high else 0,
        "labelExpr": f"{line}[2]==''?{line}[1]:[{line}[1],{line}[2]]",
    }
    right: Spec = {
        "title": None,
        "orient": "right",
        "labelColor": "var(--ink)",
        "labelExpr": f"{line}[3]",
    }
    for at, one in enumerate(layers):
        axis = None if at else left
        yield {**one, "encoding": {"y": {**rows, "axis": axis}, **one["encoding"]}}
    yield {
        "name": "ends",
        "data": {"values": [{"row": name} for name in names]},
        "mark": {"type": "point", "opacity": 0},
        "encoding": {"x": {"value": 0}, "y": {**rows, "axis": right}},
    }
