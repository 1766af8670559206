"""A figure: one Vega-Lite specification, drawn as an SVG for page and file.

vl-convert compiles and draws without a browser or network, with fonts of its own, so the same
figure gives the same bytes everywhere. The page draws the same specification again, so that a
reader can point, and switch series off.

Specifications are plain JSON in the words of https://vega.github.io/vega-lite/docs/. Building them
with Altair took 45 ms each, and a run of 100 trials has 1,000; the tests check every one against
Altair's copy of Vega-Lite's schema. Colours are custom properties of CSS (`var(--ink)`), so one
drawing is right in the light and in the dark.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

from lab.report.page.frame import packed
from lab.report.page.palette import HUES, LIGHT, SHAPES

type Spec = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
# Of a legend: its columns, what an entry takes beside its text, and its height.
COLUMNS, SYMBOL_PX, ROW_PX = 2, 28, 15
CONFIG: Spec = {
    "aria": False,
    "background": "var(--page)",
    # Arial has the widths of vl-convert's own font, so no reader's text overflows.
    "font": "Liberation Sans, Arial, Helvetica, sans-serif",
    "padding": {"left": 3, "top": 3, "right": 8, "bottom": 3},
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
        "rowPadding": 2, "columnPadding": 12, "offset": 22,
        "symbolStrokeWidth": 1.8, "unselectedOpacity": 0.3,
    },
    "line": {"strokeWidth": 1.8, "strokeCap": "round", "strokeJoin": "round"},
}  # fmt: skip
# A click on the legend shows a series alone, then others beside it; the last shows all.
TOGGLE: Spec = {
    "name": "shown",
    "select": {"type": "point", "fields": ["series"], "toggle": "true"},
    "bind": "legend",
}


@dataclass(frozen=True)
class Figure:
    """`name` is unique on its page and that of its files, `alt` says in words what it shows.
    `spec` is a view of layers with a width and a height, without what all figures share."""

    name: str
    title: str
    alt: str
    spec: Spec

    @property
    def live(self) -> Spec:
        """The specification that the page draws: its width and height are those of all of it."""
        return {
            "$schema": SCHEMA,
            "config": CONFIG,
            "description": f"{self.title}. {self.alt}",
            "autosize": {"type": "fit", "contains": "padding"},
            **self.spec,
        }

    @cached_property
    def svg(self) -> str:
        """The drawing with the page's colours and a text alternative."""
        import vl_convert  # Here: slow to import, and most verbs draw nothing.

        label = escape(f"{self.title}. {self.alt}")
        whole = f'class="fig" role="img" aria-label="{label}"'
        return str(vl_convert.vegalite_to_svg(self.live)).replace('class="marks"', whole, 1)

    @property
    def file(self) -> str:
        """The drawing in the colours of the light page."""
        return re.sub(r"var\(--([a-z0-9-]+)\)", lambda name: LIGHT[name[1]], self.svg) + "\n"


def figures_of(figures: Sequence[Figure], *, small: bool = False) -> str:
    """Figures as markup, with their specifications for the page's script. There are too many small
    ones to print them: the script draws those that are shown."""
    inside = "".join(
        f'<figure aria-label="{escape(figure.title)}">{"" if small else figure.svg}</figure>\n'
        for figure in figures
    )
    specs = packed(json.dumps([figure.live for figure in figures], separators=(",", ":")))
    kind = "figures small" if small else "figures"
    return f'<div class="specs"><div class="{kind}">{inside}</div>{specs}</div>\n'


def view(
    title: str,
    below: Mapping[str, object],
    size: tuple[int, int],
    axes: Spec,
    series: Sequence[str],
    layers: Sequence[Spec],
) -> Spec:
    """The layers that have data, of a size that grows with the legend of these series. `below` the
    title are the texts of what is there."""
    width, height = size
    drawn = [dict(layer) for layer in layers if layer["data"]["values"]]
    drawn[0]["params"] = [TOGGLE]
    subtitle = "; ".join(text for text, there in below.items() if there)
    return {
        "title": {"text": title, **({"subtitle": subtitle} if subtitle else {})},
        "width": width,
        "height": height + ROW_PX * -(-len(series) // COLUMNS),
        "encoding": axes,
        "layer": drawn,
    }


def by_series(series: Sequence[str], numbers: Sequence[int], width: int) -> Spec:
    """The encodings that give each series its hue and shape, with their legend."""
    text_px = width // COLUMNS - SYMBOL_PX
    legend = {"columns": COLUMNS, "labelLimit": text_px, "symbolSize": 60}
    hues = [f"var(--k{number % HUES})" for number in numbers]
    shapes = [SHAPES[number % len(SHAPES)] for number in numbers]

    def encoding(values: Sequence[str]) -> Spec:
        scale = {"domain": list(series), "range": values}
        return {"field": "series", "type": "nominal", "scale": scale, "legend": legend}

    shown = {"condition": {"param": "shown", "value": 1}, "value": 0.06}
    return {"color": encoding(hues), "shape": encoding(shapes), "opacity": shown}


def layer(name: str, values: Sequence[Spec], mark: str, encoding: Spec, **marked: Any) -> Spec:
    """Data of its own, and how it is drawn."""
    drawn = {"type": mark, **marked}
    return {"name": name, "data": {"values": values}, "mark": drawn, "encoding": encoding}


def axis(title: str, scale: Spec, field: str, **more: Any) -> Spec:
    written = {"title": title, "format": ",~r", **more}
    return {"field": field, "type": "quantitative", "axis": written, "scale": scale}
