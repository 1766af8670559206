"""Parts of Vega-Lite specifications that figures share: how they look, legend, tooltip.

A specification is plain JSON in the words of https://vega.github.io/vega-lite/docs/. Colours are
custom properties of CSS (`var(--ink)`): one drawing is right in the light and in the dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.report.page.palette import NEUTRAL

type Spec = dict[str, Any]

# Measured as vl-convert's own font; Arial has the same widths, so no reader's text overflows.
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
# The average width of a character at 11 px.
CHAR_PX = 5.8
LEGEND_PX = 15
# Lines by name, and the grey ones behind them.
DASHES: Mapping[str, list[float]] = {"": [1, 0], "dash": [5, 4], "long": [11, 3], "dot": [0.1, 4]}
FAINT: Spec = {"strokeWidth": 1.1, "strokeOpacity": 0.55}
# A shape for each server besides its hue, drawn in a square from -1 to 1.
SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "triangle-down",
    "cross",
    "M-1,-1H1L-1,1H1Z",
    "M-1,-.4H1V.4H-1Z",
)
CROSS = "M-.8,-.8L.8,.8M-.8,.8L.8,-.8"
# In a legend, of lines without shapes among shapes.
GLYPHS = {"dash": "M-1.3,0H-.3M.3,0H1.3", "dot": "M-1.3,0H-1M-.4,0H-.1M.5,0H.8M1.3,0H1.6"}
HIDDEN = 0.06
# The layer that follows a pointer.
HOVER = "hover"
PADDING: Spec = {"left": 3, "top": 3, "right": 8, "bottom": 3}
CONFIG: Spec = {
    "aria": False,
    "background": "var(--page)",
    "font": FONT,
    "padding": PADDING,
    "view": {"stroke": None},
    "title": {
        "anchor": "start", "frame": "bounds", "color": "var(--ink)", "subtitleColor": "var(--soft)",
        "fontSize": 12.5, "subtitleFontSize": 11, "offset": 6, "subtitlePadding": 3,
    },
    "axis": {
        "labelColor": "var(--soft)", "titleColor": "var(--soft)", "titleFontWeight": "normal",
        "labelFontSize": 11, "titleFontSize": 11, "gridColor": "var(--rule)",
        "domainColor": "var(--soft)", "tickColor": "var(--soft)", "labelOverlap": "greedy",
    },
    "axisX": {"grid": False, "titleAnchor": "end", "titlePadding": 2},
    "axisY": {
        "domain": False, "ticks": False, "tickCount": 5, "titleAngle": 0, "titleAnchor": "end",
        "titleAlign": "left", "titleX": 0, "titleY": -9,
    },
    "legend": {
        "orient": "top", "title": None, "labelColor": "var(--ink)", "labelFontSize": 11,
        "labelLimit": 300, "rowPadding": 2, "columnPadding": 12,
        "symbolStrokeWidth": 1.8, "unselectedOpacity": 0.3,
    },
    "line": {"strokeWidth": 1.8, "strokeCap": "round", "strokeJoin": "round"},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Series:
    """One entry of a legend and how it is drawn. `dash` is of DASHES; without a `shape` it is a
    line alone."""

    name: str
    hue: int
    dash: str = ""
    shape: str | None = None


def hue(number: int) -> str:
    return f"var(--k{number})"


GREY = hue(NEUTRAL)


def of_series(series: Sequence[Series], width: float, unit: str = "") -> Spec:
    """The encodings that give each series its hue, dash and shape, with a legend that fits in
    `width` above the axis and its `unit`. Layers take from it what they need."""
    names = [one.name for one in series]
    shaped = any(one.shape for one in series)
    legend: Spec = {"columns": columns(names, width), "symbolSize": 60 if shaped else 350}
    legend["offset"] = 22 if unit else 8
    if not shaped:
        legend["symbolType"] = "stroke"

    def encoding(values: Sequence[object]) -> Spec:
        scale = {"domain": names, "range": list(values)}
        return {"field": "series", "type": "nominal", "scale": scale, "legend": legend}

    dashes: Spec = {}
    if any(one.dash for one in series):
        dashes = {"strokeDash": encoding([DASHES[one.dash] for one in series])}
        if shaped:
            # In another order, as Vega-Lite makes one legend of equal domains, and then warns.
            turned = {name: values[::-1] for name, values in dashes["strokeDash"]["scale"].items()}
            dashes["strokeDash"] |= {"legend": None, "scale": turned}
    return {
        "color": encoding([hue(one.hue) for one in series]),
        **dashes,
        "shape": encoding([one.shape or GLYPHS.get(one.dash, "stroke") for one in series]),
        "opacity": {"condition": {"param": "shown", "value": 1}, "value": HIDDEN},
    }


def columns(names: Sequence[str], width: float) -> int:
    longest = max((len(name) for name in names), default=1)
    return max(1, int(width // (CHAR_PX * longest + 36)))


def legend_rows(names: Sequence[str], width: float) -> int:
    return -(-len(names) // columns(names, width))


def picked(encodings: Spec, *names: str) -> Spec:
    """Some of the encodings of `of_series`; no line is broken where none has a dash."""
    return {name: encodings[name] for name in names if name in encodings}


def toggle() -> Spec:
    """A click on the legend shows a series alone, then others beside it; the last shows all."""
    return {
        "name": "shown",
        "select": {"type": "point", "fields": ["series"], "toggle": "true"},
        "bind": "legend",
    }


def nearest(line: str, head: str) -> Spec:
    """A layer that tells of all series at the x next to the pointer. `line` and `head` are Vega
    expressions of one value and of all. Nothing of it is seen without a pointer."""
    return {
        "name": HOVER,
        "transform": [
            {"flatten": ["x", "y"]},
            {"calculate": line, "as": "line"},
            {"aggregate": [{"op": "values", "as": "all"}], "groupby": ["x"]},
            {"calculate": f"{head}+'\\n'+join(pluck(datum.all,'line'),'\\n')", "as": "tip"},
        ],
        "params": [
            {
                "name": HOVER,
                "select": {
                    "type": "point", "fields": ["x"], "nearest": True,
                    "on": "pointerover", "clear": "pointerout",
                },
            }
        ],
        "mark": {"type": "rule", "color": GREY, "clip": True},
        "encoding": {
            # Vega-Lite's cells around the samples hold a row one level deeper.
            "tooltip": {"value": {"expr": "datum.datum?datum.datum.tip:datum.tip"}},
            "opacity": {"condition": {"param": HOVER, "empty": False, "value": 0.6}, "value": 0},
        },
    }  # fmt: skip
