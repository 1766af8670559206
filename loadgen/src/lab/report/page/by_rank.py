"""Latencies by rank, of every trial of one load: as HdrHistogram draws them, against
1 / (1 - share) on a logarithmic scale, so that every nine is as wide as the one before. Invalid
trials are thin and grey."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lab.judge.grouping import Cell, lane_of
from lab.model import Curve, Curves, Row
from lab.report.comparison import cell_names
from lab.report.page import spec, units
from lab.report.page.by_load import HEIGHT, WIDTH, slug
from lab.report.page.figure import Figure
from lab.report.page.lane_styles import LaneStyles
from lab.report.page.spec import FAINT, GREY, Spec

# The share of answers that took at most the value of y: x = 10 is 90 %, x = 100 is 99 %.
_SHARE = "@==1?'0':@==2?'50 %':format(100-100/@,'.8~r')+' %'"
# Named in the text of a figure.
_NAMED = ((0.5, "50 %"), (0.99, "99 %"), (0.999, "99.9 %"))


def by_rank(trials: Sequence[tuple[Row, Curves]], styles: LaneStyles) -> Iterator[Figure]:
    """A figure for each load, as they first appear, and more than one where its lanes could not
    be told apart in it; trials without curves have none."""
    known = [(row, curves) for row, curves in trials if curves.corrected or curves.raw]
    cells = dict.fromkeys(Cell.of(row) for row, _ in known)
    names = cell_names(list(cells))
    for cell in cells:
        mine = [one for one in known if Cell.of(one[0]) == cell]
        groups = styles.apart(list(dict.fromkeys(lane_of(row) for row, _ in mine)))
        for number, lanes in enumerate(groups, start=1):
            part = (number, len(groups)) if len(groups) > 1 else None
            of = [one for one in mine if lane_of(one[0]) in lanes]
            yield _figure(cell, names, of, styles, part)


def _figure(
    cell: Cell,
    names: Mapping[Cell, str],
    trials: Sequence[tuple[Row, Curves]],
    styles: LaneStyles,
    part: tuple[int, int] | None,
) -> Figure:
    """`part`: which figure of how many of this load."""
    lanes = list(dict.fromkeys(lane_of(row) for row, _ in trials if row.valid))
    several = sum(row.valid for row, _ in trials) > len(lanes)
    both = any(curves.corrected for _, curves in trials)
    drawn: dict[str, list[Spec]] = {"raw-invalid": [], "invalid": [], "raw": [], "curves": []}
    told: list[str] = []
    ms: list[float] = []
    for row, curves in sorted(trials, key=lambda one: one[0].valid):
        lane, valid = lane_of(row), row.valid
        for curve, is_raw in ((curves.raw, True), (curves.corrected, False)):
            if curve is None:
                continue
            kind = " raw" if is_raw else ""
            name = f"{lane}{'' if valid else ' (invalid)'}{kind}"
            drawn[f"raw{'' if valid else '-invalid'}" if both and is_raw else
                  "curves" if valid else "invalid"].append({
                "series": lane, "said": f"{name}, trial {row.trial.partition('-')[0]}",
                "id": len(told),
                "x": [float(f"{1 / (1 - share):.5g}") for share, _ in curve.points],
                "y": [value for _, value in curve.points],
            })  # fmt: skip
            told.append(f"{name}: {_told(curve)}")
            ms += [value for _, value in curve.points]
    series = styles.series(lanes, shapes=False)
    encodings = spec.of_series(series, WIDTH)
    line = spec.picked(encodings, "color", "opacity")
    grey: Spec = {"color": {"value": GREY}}
    dots: Spec = {**FAINT, "strokeDash": spec.DASHES["dot"]}
    looked: dict[str, tuple[Spec, Spec]] = {
        "raw-invalid": (dots, grey),
        "invalid": (FAINT, grey),
        "raw": (dots, line),
        "curves": ({"strokeOpacity": 0.55} if several else {},
                   {**line, **spec.picked(encodings, "strokeDash")}),
    }  # fmt: skip
    layers = [_layer(kind, records, *looked[kind]) for kind, records in drawn.items() if records]
    layers[-1]["params"] = [spec.zoom("x", "y"), *([spec.toggle()] if lanes else [])]
    beyond = max(max(one["x"]) for records in drawn.values() for one in records)
    marks = [1.0, 2.0, *(10.0**nines for nines in range(1, 12) if 10.0**nines <= beyond * 1.01)]
    kind = "corrected, and raw (dotted)" if both else "raw"
    grey_too = "; grey: invalid trial" if drawn["invalid"] or drawn["raw-invalid"] else ""
    of_parts = f" ({part[0]} of {part[1]})" if part else ""
    name = f"percentiles-{slug(cell.route)}-{cell.engine}-{slug(names[cell])}"
    title = _load(cell, names)
    own: Spec = {
        "title": {"text": title, "subtitle": f"{kind}{of_parts}{grey_too}"},
        "width": WIDTH,
        "height": HEIGHT + spec.LEGEND_PX * spec.legend_rows(lanes, WIDTH),
        "encoding": {
            "x": {
                "field": "x", "type": "quantitative",
                "scale": {"type": "log", "domain": [1, max(beyond, 10.0)], "nice": False},
                "axis": {"title": "of answers without an error took at most", "values": marks,
                         "labelExpr": _SHARE.replace("@", "datum.value")},
            },
            "y": {"field": "y", "type": "quantitative", "scale": units.scale(ms),
                  "axis": units.axis(units.MILLISECONDS)},
        },
        "layer": layers,
    }  # fmt: skip
    alt = f"Latency by rank. {'. '.join(told)}."
    return Figure(f"{name}-part-{part[0]}" if part else name, title, alt, own)


def _layer(name: str, records: list[Spec], mark: Spec, encoding: Spec) -> Spec:
    """The curves of one kind; a pointer is told the point it is at."""
    share = _SHARE.replace("@", "datum.x")
    return {
        "name": name,
        "data": {"values": records},
        "transform": [
            {"flatten": ["x", "y"]},
            {"calculate": f"datum.said+'\\n'+({share})+' within '"
                          f"+{units.MILLISECONDS.written('datum.y')}", "as": "tip"},
        ],
        "mark": {"type": "line", "clip": True, **mark},
        "encoding": {**encoding, "detail": {"field": "id"}, "tooltip": {"field": "tip"}},
    }  # fmt: skip


def _load(cell: Cell, names: Mapping[Cell, str]) -> str:
    """A load in a few words; route and engine only where they differ in this run."""
    routes, engines = ({one.route for one in names}, {one.engine for one in names})
    before = f"{cell.route} " if len(routes) > 1 else ""
    after = f" ({cell.engine})" if len(engines) > 1 else ""
    rate = "" if cell.offered_rps is None else f" at {cell.offered_rps:,}/s"
    return f"{before}{cell.mode.capitalize()}, {cell.concurrency:,} connections{rate}{after}"


def _told(curve: Curve) -> str:
    told = []
    for wanted, text in _NAMED:
        ms = next((ms for share, ms in curve.points if share >= wanted - 1e-9), None)
        if ms is not None:
            told.append(f"{text} within {units.milliseconds(ms)}")
    return ", ".join(told) or f"{curve.count} answers"
