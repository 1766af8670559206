"""Latencies by rank, of every trial of one load: as HdrHistogram draws them, against
1 / (1 - share) on a logarithmic scale, so that every nine is as wide as the one before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.cells import Cell, lane_of
from lab.report.comparison import cell_names
from lab.report.page import scale
from lab.report.page.by_load import slug
from lab.report.page.chart import Chart, Drawn, Trace, draw
from lab.report.page.looks import Looks
from lab.report.page.marks import Key
from lab.report.page.palette import NEUTRAL
from lab.types import Curve, Curves, Row

# Named in the text of a figure.
_NAMED = ((0.5, "50 %"), (0.99, "99 %"), (0.999, "99.9 %"))


@dataclass(frozen=True, slots=True)
class Ranked:
    """One trial's curves."""

    row: Row
    curves: Curves


def by_rank(trials: Sequence[Ranked], looks: Looks) -> Iterator[Drawn]:
    """A figure for each load, as they first appear; trials without curves have none."""
    known = [one for one in trials if one.curves.corrected or one.curves.raw]
    cells = dict.fromkeys(Cell.of(one.row) for one in known)
    names = cell_names(list(cells))
    for cell in cells:
        mine = [one for one in known if Cell.of(one.row) == cell]
        yield _figure(cell, names, mine, looks)


def _figure(cell: Cell, names: Mapping[Cell, str], trials: Sequence[Ranked], looks: Looks) -> Drawn:
    lanes = list(dict.fromkeys(lane_of(one.row) for one in trials))
    several = len(trials) > len(lanes)
    both = any(one.curves.corrected for one in trials)
    drawn: list[tuple[Curve, Trace, str]] = []
    for one in trials:
        lane = lane_of(one.row)
        look = looks.lanes[lane]
        faint = " faint" if several else ""
        for curve, is_raw in ((one.curves.raw, True), (one.curves.corrected, False)):
            if curve is None:
                continue
            style = ("thin dot faint" if both and is_raw else f"{look.style}{faint}").strip()
            points = tuple((1 / (1 - share), ms) for share, ms in curve.points)
            text = f"{lane}{' raw' if is_raw else ''}: {_told(curve)}"
            drawn.append((curve, Trace(look.hue, points, style), text))
    keys = [Key(key.text, key.hue, key.style) for key in looks.keys(lanes)]
    if both:
        keys.append(Key("dotted: raw", NEUTRAL, "thin dot"))
    ms = [value for curve, _, _ in drawn for _, value in curve.points]
    beyond = max(trace.points[-1][0] for _, trace, _ in drawn)
    kind = "corrected, and raw" if both else "raw"
    chart = Chart(
        name=f"percentiles-{slug(cell.route)}-{cell.engine}-{slug(names[cell])}",
        title=f"{_load(cell, names)}: {kind}",
        alt=f"Latency by rank. {'. '.join(text for _, _, text in drawn)}.",
        x=scale.ranks(beyond),
        y=scale.fitting(ms, "", scale.milliseconds),
        traces=tuple(trace for _, trace, _ in drawn),
        keys=tuple(keys),
    )
    return draw(chart)


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
            told.append(f"{text} within {scale.milliseconds(ms)}")
    return ", ".join(told) or f"{curve.count} answers"
