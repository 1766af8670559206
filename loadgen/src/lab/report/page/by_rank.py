"""Latencies by rank, of every trial of one load: as HdrHistogram draws them, against
1 / (1 - share) on a logarithmic scale, so that every nine is as wide as the one before. Invalid
trials are thin and grey."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.judge.grouping import Cell, lane_of
from lab.model import Curve, Curves, Row
from lab.report.comparison import cell_names
from lab.report.page import scale
from lab.report.page.by_load import slug
from lab.report.page.chart import Chart, Drawn, Trace, draw
from lab.report.page.looks import Looks
from lab.report.page.marks import Key
from lab.report.page.palette import NEUTRAL

INVALID = "thin faint"
# Named in the text of a figure.
_NAMED = ((0.5, "50 %"), (0.99, "99 %"), (0.999, "99.9 %"))


@dataclass(frozen=True, slots=True)
class Ranked:
    """One trial's curves."""

    row: Row
    curves: Curves


def by_rank(trials: Sequence[Ranked], looks: Looks) -> Iterator[Drawn]:
    """A figure for each load, as they first appear, and more than one where its lanes could not
    be told apart in it; trials without curves have none."""
    known = [one for one in trials if one.curves.corrected or one.curves.raw]
    cells = dict.fromkeys(Cell.of(one.row) for one in known)
    names = cell_names(list(cells))
    for cell in cells:
        mine = [one for one in known if Cell.of(one.row) == cell]
        groups = looks.apart(list(dict.fromkeys(lane_of(one.row) for one in mine)))
        for number, lanes in enumerate(groups, start=1):
            part = (number, len(groups)) if len(groups) > 1 else None
            of = [one for one in mine if lane_of(one.row) in lanes]
            yield _figure(cell, names, of, looks, part)


def _figure(
    cell: Cell,
    names: Mapping[Cell, str],
    trials: Sequence[Ranked],
    looks: Looks,
    part: tuple[int, int] | None,
) -> Drawn:
    """`part`: which figure of how many of this load."""
    valid = [one for one in trials if one.row.valid]
    invalid = [one for one in trials if not one.row.valid]
    lanes = list(dict.fromkeys(lane_of(one.row) for one in valid))
    several = len(valid) > len(lanes)
    both = any(one.curves.corrected for one in trials)
    drawn: list[tuple[Curve, Trace, str]] = []
    # The last is on top.
    for one in (*invalid, *valid):
        lane = lane_of(one.row)
        look = looks.lanes[lane]
        line = f"{look.style}{' faint' if several else ''}" if one.row.valid else INVALID
        hue = look.hue if one.row.valid else NEUTRAL
        for curve, is_raw in ((one.curves.raw, True), (one.curves.corrected, False)):
            if curve is None:
                continue
            style = ("thin dot faint" if both and is_raw else line).strip()
            points = tuple((1 / (1 - share), ms) for share, ms in curve.points)
            name = f"{lane}{'' if one.row.valid else ' (invalid)'}{' raw' if is_raw else ''}"
            drawn.append((curve, Trace(hue, points, style), f"{name}: {_told(curve)}"))
    keys = [Key(key.text, key.hue, key.style) for key in looks.keys(lanes)]
    if both:
        keys.append(Key("dotted: raw", NEUTRAL, "thin dot"))
    if invalid:
        keys.append(Key("invalid trial", NEUTRAL, INVALID))
    ms = [value for curve, _, _ in drawn for _, value in curve.points]
    beyond = max(trace.points[-1][0] for _, trace, _ in drawn)
    kind = "corrected, and raw" if both else "raw"
    name = f"percentiles-{slug(cell.route)}-{cell.engine}-{slug(names[cell])}"
    chart = Chart(
        name=f"{name}-part-{part[0]}" if part else name,
        title=_load(cell, names),
        load=f"{kind} ({part[0]} of {part[1]})" if part else kind,
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
