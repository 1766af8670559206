"""The figures of a site: curves by load, and the same load over commits.

A figure is of one machine, and of runs that are alike in all but commit and images. Every run is a
line of its own: nothing is pooled. Each point says of which run, server and load it is, so that the
page's script shows those that its address asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from lab.model import NOT_AS_IT_IS
from lab.report.page import units
from lab.report.page.by_load import Points, along, lines
from lab.report.page.figure import Figure
from lab.report.page.lane_styles import NEXT_ROUND
from lab.report.page.palette import HUES, colours
from lab.report.page.quantity import Quantity, title
from lab.report.page.spec import DASHES, SHAPES, Series, Spec
from lab.report.site.cells import Group, groups, quantities
from lab.report.site.told import SiteRun

# Lines stand beside each other where they have one x.
SHIFTS_PX = (0.0, 4.0, -4.0, 8.0, -8.0)
OVERLOADED = "overloaded loads: latency grows with the window's length"
# What a trend tells.
TREND = ("goodput", "p95")


@dataclass(frozen=True, slots=True)
class Place:
    """Figures of one kind of load on one machine: a `trend` over commits, or curves."""

    trend: bool
    machine: str
    route: str
    mode: str
    heading: str
    figures: tuple[Figure, ...]


def places(runs: Sequence[SiteRun]) -> tuple[Place, ...]:
    """All figures: the curves, then the trends, machine by machine and the newest runs first."""
    newest = sorted(runs, key=lambda run: (run.started, run.name), reverse=True)
    hues = colours(tuple(dict.fromkeys(row.server for run in runs for row in run.rows)))
    apart: dict[tuple[str, int], list[Group]] = {}
    for run in newest:
        if run.alike is not None:
            # What was changed on purpose is alike with nothing.
            own = [one for one in groups(run) if one.rows[0].arm not in NOT_AS_IT_IS]
            apart.setdefault((run.machine.key, run.alike), []).extend(own)
    machines = list(dict.fromkeys(run.machine.key for run in newest))
    alike = [apart[key] for key in sorted(apart, key=lambda key: machines.index(key[0]))]
    return (
        *(place for of in alike for place in _curves(of, hues)),
        *(place for of in alike for place in _trends(of, hues)),
    )


def _curves(of: Sequence[Group], hues: Mapping[str, int]) -> Iterator[Place]:
    """Every kind of load that these runs have. Alike runs choose their windows by one rule."""
    for here in _apart(of, lambda one: (one.cell.route, one.cell.engine, one.cell.mode)):
        for x, mine in _by_axis(here):
            yield _place(mine, hues, x)


def _by_axis(of: Sequence[Group]) -> Iterator[tuple[units.Unit, list[Group]]]:
    """What the loads are drawn against, so that no two loads are at one place: connections, or the
    rate where an objective or the loads themselves ask for it; else each rate alone."""
    loads = {(one.cell.concurrency, one.cell.offered_rps) for one in of}
    by_rate = any(one.run.limits is not None for one in of)
    if len({connections for connections, _ in loads}) == len(loads) and not by_rate:
        yield units.CONNECTIONS, list(of)
    elif None not in (rates := {rate for _, rate in loads}) and len(rates) == len(loads):
        yield units.RATE, list(of)
    else:
        for rate in _apart(of, lambda one: one.cell.offered_rps):
            yield units.CONNECTIONS, rate


def _place(of: Sequence[Group], hues: Mapping[str, int], x: units.Unit) -> Place:
    first = of[0]
    names = {(one.run.name, one.lane): f"{one.lane} · {one.run.name}" for one in of}
    series = _series({name: run_lane[1] for run_lane, name in names.items()}, hues)
    figures = []
    for what in quantities(first.cell.mode, x, first.run.limits):
        medians: list[Spec] = []
        dots: list[Spec] = []
        for at, (key, name) in enumerate(names.items()):
            shift = SHIFTS_PX[at % len(SHIFTS_PX)]
            mine = [one for one in of if (one.run.name, one.lane) == key]
            for one in sorted(mine, key=lambda one: what.load(one.rows[0])):
                where = {"x": what.load(one.rows[0]), "shift": shift}
                _add(one, what, {"series": name, **where}, medians, dots)
        if shown := [*medians, *dots]:
            axis = along(what, [point["x"] for point in shown])
            figures.append(_figure(what, series, Points(medians, dots), axis, of))
    return _placed(of, f"{first.cell.engine}, kind {first.run.kind}", figures)


def _trends(of: Sequence[Group], hues: Mapping[str, int]) -> Iterator[Place]:
    """Every load that two of these runs have, over the runs in the order of their beginnings."""
    for here in _apart(of, lambda one: one.cell):
        runs = sorted({one.run.name: one.run for one in here}.values(), key=_begun)
        if len(runs) < 2:
            continue
        labels = {run.name: f"{run.started} {run.commit}" for run in runs}
        if len(set(labels.values())) < len(labels):
            labels = {run.name: f"{labels[run.name]} {run.name}" for run in runs}
        x: Spec = {
            "field": "x",
            "type": "nominal",
            # Day, time and code below each other.
            "axis": {"title": None, "labelAngle": 0, "labelExpr": "split(datum.label,' ')"},
            "scale": {"domain": list(labels.values())},
        }
        series = _series({one.lane: one.lane for one in here}, hues)
        figures = []
        for what in quantities(here[0].cell.mode):
            if what.slug not in TREND:
                continue
            medians: list[Spec] = []
            dots: list[Spec] = []
            for one in sorted(here, key=lambda one: _begun(one.run)):
                _add(one, what, {"series": one.lane, "x": labels[one.run.name]}, medians, dots)
            if medians or dots:
                figures.append(_figure(what, series, Points(medians, dots), x, here))
        heading = f"{here[0].where}, {here[0].window}"
        yield _placed(here, heading, figures, trend=True)


def _begun(run: SiteRun) -> tuple[str, str]:
    return run.started, run.name


def _apart(of: Sequence[Group], key: Callable[[Group], object]) -> list[list[Group]]:
    found: dict[object, list[Group]] = {}
    for one in of:
        found.setdefault(key(one), []).append(one)
    return list(found.values())


def _placed(
    of: Sequence[Group], heading: str, figures: Sequence[Figure], *, trend: bool = False
) -> Place:
    first = of[0]
    return Place(
        trend=trend,
        machine=first.run.machine.key,
        route=first.cell.route,
        mode=first.cell.mode,
        heading=f"{first.cell.route}, {first.cell.mode} load, {heading}",
        figures=tuple(figures),
    )


def _add(of: Group, what: Quantity, at: Spec, medians: list[Spec], dots: list[Spec]) -> None:
    """The points of a load: what it is, where, and what must be known of it."""
    metric, _ = what.metrics[0]
    told = [f"{of.where}, {of.window}", f"run {of.run.name}, code {of.run.commit}", *of.notes()]
    whole = {**at, **of.own, "kind": "", "where": "\n".join(told)}
    medians += what.medians(whole, of.rows, metric)
    dots += what.dots(whole, of.rows, metric)


def _figure(
    what: Quantity, series: Sequence[Series], of: Points, x: Spec, loads: Sequence[Group]
) -> Figure:
    values = [
        point[name] for point in (*of.medians, *of.dots) for name in ("y", "low", "high")
        if name in point
    ]  # fmt: skip
    crosses = "×: invalid trial" if any(not one["valid"] for one in of.dots) else ""
    limit = "" if what.limit is None else f"objective: at most {what.text(what.limit)}"
    over = "" if what.is_rate or not any(one.overloaded for one in loads) else OVERLOADED
    below = title(what.title, limit, crosses, over)
    view = lines(what, series, of, x, units.scale(values), below)
    return Figure(what.slug, what.title, "The table of cells has its numbers.", view)


def _series(lanes: Mapping[str, str], hues: Mapping[str, int]) -> list[Series]:
    """Lines by name, each of a lane. A server has its hue in every figure; its lines differ in
    dash and shape."""
    seen: dict[str, Iterator[int]] = {}
    found = []
    for name, lane in lanes.items():
        server = lane.partition("@")[0]
        again, hue = divmod(hues[server], HUES)
        nth = next(seen.setdefault(server, count())) + again
        shape = SHAPES[(hue + nth + NEXT_ROUND * again) % len(SHAPES)]
        found.append(Series(name, hue, list(DASHES)[nth % len(DASHES)], shape))
    return found
