"""A figure: one Vega-Lite specification, drawn as an SVG for page and file.

vl-convert compiles and draws without a browser or network, with fonts of its own, so the same
figure gives the same bytes everywhere. The page draws the same specification again, so that a
reader can point, and switch series off.

Specifications are written as plain dictionaries. Building them with Altair took 45 ms each, and a
run of 100 trials has 1,000; the tests check every one against Altair's copy of Vega-Lite's schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape

from lab.report.page.palette import LIGHT
from lab.report.page.script import packed
from lab.report.page.spec import CONFIG, HOVER, Spec

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
# What Vega writes for scripts and readers of its own, and what changes nothing. A dash without a
# gap would triple the time that the picture of a line takes.
_NOISE = re.compile(
    r'<path class="(?:back|fore)ground"[^>]*/>| (?:class|role|aria-[a-z]+|pointer-events)="[^"]*"'
    r'| (?:opacity="1"|stroke-dasharray="1,0"|transform="translate\(0,0\)")'
)


@dataclass(frozen=True)
class Figure:
    """`name` is unique on its page and that of its files, `alt` says in words what it shows.

    `spec` is a view of layers with a width and a height, without what all figures share.
    """

    name: str
    title: str
    alt: str
    spec: Spec

    @property
    def live(self) -> Spec:
        """The specification the page draws: its width and height are those of all of it."""
        return {
            "$schema": SCHEMA,
            "config": CONFIG,
            "description": f"{self.title}. {self.alt}",
            "autosize": {"type": "fit", "contains": "padding"},
            **self.spec,
        }

    @cached_property
    def drawing(self) -> str:
        """The drawing alone, as an SVG element with the page's colours."""
        import vl_convert  # Here: slow to import, and most verbs draw nothing.

        return _NOISE.sub("", vl_convert.vegalite_to_svg(still(self.live)))

    @cached_property
    def svg(self) -> str:
        """The same with its name and a text alternative."""
        return named(self.drawing, self.name, self.title, self.alt)


def specs(figures: Sequence[Figure]) -> str:
    """The specifications of figures for the page's script, as an element of data."""
    return packed(json.dumps([one.live for one in figures], separators=(",", ":")))


def still(spec: Spec) -> Spec:
    """A specification without what only a pointer needs. Nothing lies outside of the axes before
    a reader moves them, so nothing is clipped: the ids of clips would meet others on the page."""
    layers = []
    for layer in spec["layer"]:
        if layer.get("name") != HOVER:
            mark = {key: value for key, value in layer["mark"].items() if key != "clip"}
            encoding = {
                key: value
                for key, value in layer.get("encoding", {}).items()
                if key not in ("opacity", "tooltip")
            }
            rest = {key: value for key, value in layer.items() if key != "params"}
            layers.append({**rest, "mark": mark, "encoding": encoding})
    return {**spec, "layer": layers}


def alone(svg: str) -> str:
    """An SVG as a file: in the colours of the light page."""
    return re.sub(r"var\(--([a-z0-9-]+)\)", lambda found: LIGHT[found[1]], svg) + "\n"


def named(drawn: str, name: str, title: str, alt: str) -> str:
    head, body = drawn.split(">", 1)
    size = " ".join(re.findall(r' ((?:width|height|viewBox)="[^"]*")', head))
    key = escape(name, quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="fig" role="img" {size} '
        f'aria-labelledby="{key}-t {key}-d"><title id="{key}-t">{escape(title)}</title>'
        f'<desc id="{key}-d">{escape(alt)}</desc>{body}'
    )
