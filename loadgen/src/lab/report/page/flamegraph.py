"""A flame graph as a page of its own, which opens from the disk and fetches nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from lab.model import UNITS
from lab.report.page.html import head
from lab.report.page.markup import inline
from lab.report.page.palette import DARK, LIGHT, variables
from lab.report.recorded import FOLDER, Recorded

__all__ = ["FOLDER", "page"]

# Of the whole. What is narrower cannot be seen, and has no box.
LEAST = 1 / 2000


def page(of: Recorded) -> str:
    """The page of a recording. Raises ValueError where there is none."""
    if of.recording is None:
        raise ValueError(f"{of.row.trial} has no recording")
    unit = UNITS[of.recording.kind]
    script = _file("flamegraph.js")
    dark = f"@media (prefers-color-scheme:dark){{:root{{{variables(DARK)}}}}}"
    style = f":root{{{variables(LIGHT)}}}{dark}{_file('flamegraph.css')}"
    data = json.dumps({"unit": unit, "root": _tree(of.recording.stacks)}, separators=(",", ":"))
    # In JSON only a text can hold a <, and may write it so: no text ends the element.
    data = data.replace("<", "\\u003c")
    title = f"{inline(of.row.trial)}: flame graph"
    return (
        f"{head(title, style, script)}<body>\n<h1>{inline(of.load)}</h1>\n"
        f"<p>{of.recording.samples:,} {', '.join(map(inline, of.recording.events))}; width: "
        f"{unit}. Callers are above what they call. Choose a frame to see it alone, and one above "
        'it to go back. <label>Mark frames with <input id="mark" type="search"></label> '
        '<output id="said"></output></p>\n<div id="graph"></div>\n'
        f"<noscript><p>It needs this page's script. {inline(of.row.trial)}.collapsed.txt has the "
        "same.</p></noscript>\n"
        f'<script type="application/json" id="stacks">{data}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _tree(stacks: Mapping[str, int]) -> list[Any]:
    """[name, weight, children] of the outermost frame that all stacks share."""
    root: dict[str, Any] = {}
    total = 0
    for stack, weight in stacks.items():
        total += weight
        below = root
        for frame in stack.split(";"):
            node = below.setdefault(frame, [0, {}])
            node[0] += weight
            below = node[1]
    return ["all", total, _children(root, total * LEAST)]


def _children(of: Mapping[str, Any], least: float) -> list[Any]:
    return [
        [name, weight, _children(below, least)]
        for name, (weight, below) in sorted(of.items())
        if weight >= least
    ]


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
