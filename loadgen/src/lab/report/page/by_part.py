"""Where the mean time goes: a bar for each server and load, stacked from its parts. The time of the
downstream itself is left out: it is most of every bar, and no server changes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lab.judge.grouping import Load
from lab.model import TimeSplit
from lab.report.page import spec, units
from lab.report.page.figure import Figure
from lab.report.page.lanes import NAME_PX, WIDTH
from lab.report.page.palette import NEUTRAL
from lab.report.page.quantity import layer, title
from lab.report.page.spec import Series, Spec
from lab.report.spent import TIME_PARTS, milliseconds, times

ROW_PX = 18
# Of each part but the downstream's; the load engine's is no server's.
HUES = (NEUTRAL, 0, 1, 2, 3, 4)
TITLE = "Mean time above the downstream's"


def by_part(loads: Sequence[Load], name: str) -> Iterator[Figure]:
    """A figure of each mode of which the parts are known."""
    for mode in ("closed", "open"):
        known = [(load, time) for load, its, time in times(loads) if its == mode]
        if known:
            yield _bars(known, mode, f"time-{mode}-{name}")


def _bars(known: Sequence[tuple[Load, TimeSplit]], mode: str, name: str) -> Figure:
    rates = mode == "open"
    names, points, told = [], [], []
    for at, (load, time) in enumerate(known):
        rate = f", {load.offered_rps:,}/s" if rates and load.offered_rps is not None else ""
        label = f"{load.lane}, {load.concurrency:,}{rate}"
        parts = dict(zip(TIME_PARTS, time.parts, strict=True))
        own = {part: value for part, value in parts.items() if value and part != "downstream"}
        whole = ", ".join(f"{part} {milliseconds(value)}" for part, value in own.items())
        told.append(f"{label}: {whole}")
        # Two rows may say the same; their numbers keep them apart.
        names.append(f"{at}\n{label}")
        points += [
            {
                "row": names[-1], "series": part, "y": value, "at": TIME_PARTS.index(part),
                "tip": f"{label}\n{part} {milliseconds(value)} ms",
            }
            for part, value in own.items()
        ]  # fmt: skip
    used = {point["series"] for point in points}
    parts_used = zip(TIME_PARTS[:-1], HUES, strict=True)
    series = [Series(part, hue, "", "square") for part, hue in parts_used if part in used]
    encodings = spec.of_series(series, WIDTH, "")
    bars: Spec = {
        **spec.picked(encodings, "color", "opacity"),
        "order": {"field": "at", "type": "quantitative"},
        "tooltip": {"field": "tip"},
    }
    drawn = layer("parts", points, {"type": "bar", "height": {"band": 0.7}}, bars)
    drawn["params"] = [spec.toggle()]
    axis: Spec = {
        "title": None,
        "labelColor": "var(--ink)",
        "labelLimit": NAME_PX,
        "labelExpr": r"split(datum.value,'\n')[1]",
    }
    view: Spec = {
        "title": title(f"{TITLE}, {mode} load"),
        "width": WIDTH,
        "height": 90
        + ROW_PX * len(names)
        + spec.LEGEND_PX * spec.legend_rows([one.name for one in series], WIDTH),
        "encoding": {
            "x": {
                "field": "y", "type": "quantitative", "stack": "zero",
                "axis": {**units.axis(units.MILLISECONDS), "grid": True, "tickCount": 5},
            },
            "y": {"field": "row", "type": "nominal", "scale": {"domain": names}, "axis": axis},
        },
        "layer": [drawn],
    }  # fmt: skip
    alt = f"Means of valid trials in ms, the downstream's own left out. {'. '.join(told)}."
    return Figure(name, f"{TITLE}, {mode} load", alt, view)
