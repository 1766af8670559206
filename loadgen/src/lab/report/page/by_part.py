"""Where the mean time goes: a bar for each server and load, stacked from its parts and from what is
unexplained. The time of the downstream itself is left out: it is most of every bar, and no server
changes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from lab.judge.grouping import Load
from lab.model import TimeSplit
from lab.report.loads import windows
from lab.report.page import spec, units
from lab.report.page.figure import Figure
from lab.report.page.lanes import WIDTH, named
from lab.report.page.palette import NEUTRAL
from lab.report.page.quantity import layer, title
from lab.report.page.spec import Series, Spec
from lab.report.spent import TIME_PARTS, milliseconds, times

ROW_PX = 18
# Of each part but the downstream's. What is unexplained is nobody's.
HUES = {
    "generator": 6,
    "connect": 1,
    "queue": 0,
    "own": 2,
    "connection": 3,
    "path": 4,
    "unexplained": NEUTRAL,
}
TITLE = "Mean time above the downstream's"


def by_part(loads: Sequence[Load], name: str) -> Iterator[Figure]:
    for mode in ("closed", "open"):
        known = [(load, time) for load, its, time in times(loads) if its == mode]
        if known:
            yield _bars(known, mode, f"time-{mode}-{name}")


def _place(one: tuple[Load, TimeSplit]) -> tuple[str, int, int]:
    """Lane by lane, with rising load."""
    load, _ = one
    return load.lane, load.offered_rps or 0, load.concurrency


def _label(load: Load, mode: str) -> str:
    rated = mode == "open" and load.offered_rps is not None
    return f"{load.lane}, {load.concurrency:,}{f', {load.offered_rps:,}/s' if rated else ''}"


def _bars(known: Sequence[tuple[Load, TimeSplit]], mode: str, name: str) -> Figure:
    names: list[str] = []
    points: list[Spec] = []
    told: list[str] = []
    labels = Counter(_label(load, mode) for load, _ in known)
    for load, time in sorted(known, key=_place):
        label = _label(load, mode)
        if labels[label] > 1:
            label += f", {windows(load.closed_s if mode == 'closed' else load.open_s)}"
        parts = zip(TIME_PARTS, time.parts, strict=True)
        own = {part: value for part, value in parts if value and part in HUES}
        end = f"{milliseconds(sum(own.values()))} ms"
        names.append(f"{len(names)}\n{label}\n\n{end}")
        told.append(f"{label}: {', '.join(f'{part} {milliseconds(own[part])}' for part in own)}")
        points += [
            {
                "row": names[-1], "series": part, "y": value, "at": TIME_PARTS.index(part),
                "tip": f"{label}\n{part} {milliseconds(value)} ms",
            }
            for part, value in own.items()
        ]  # fmt: skip
    used = {point["series"] for point in points}
    series = [Series(part, hue, "", "square") for part, hue in HUES.items() if part in used]
    bars: Spec = {
        **spec.picked(spec.of_series(series, WIDTH), "color", "opacity"),
        "order": {"field": "at", "type": "quantitative"},
        "tooltip": {"field": "tip"},
    }
    drawn = layer("parts", points, {"type": "bar", "height": {"band": 0.7}}, bars)
    drawn["params"] = [spec.zoom("x"), spec.toggle()]
    legend_px = spec.LEGEND_PX * spec.legend_rows([one.name for one in series], WIDTH)
    view: Spec = {
        "title": title(f"{TITLE}, {mode} load"),
        "width": WIDTH,
        "height": 90 + ROW_PX * len(names) + legend_px,
        "encoding": {
            "x": {
                "field": "y", "type": "quantitative", "stack": "zero",
                "axis": {**units.axis(units.MILLISECONDS), "grid": True, "tickCount": 4},
            },
        },
        "resolve": {"axis": {"y": "independent"}},
        "layer": list(named([drawn], names, high=False)),
    }  # fmt: skip
    alt = f"Means of valid trials in ms, the downstream's own left out. {'. '.join(told)}."
    return Figure(name, f"{TITLE}, {mode} load", alt, view)
