"""A flame graph as a page of its own, which opens from the disk and fetches nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from lab.judge.hot_difference import COSTS, Side, costs
from lab.model import UNITS
from lab.report.page.html import head
from lab.report.page.markup import inline
from lab.report.page.palette import DARK, LIGHT, variables
from lab.report.recorded import FOLDER, Recorded

__all__ = ["FOLDER", "difference", "page"]

# Of the whole. What is narrower cannot be seen, and has no box.
LEAST = 1 / 2000


def page(of: Recorded) -> str:
    """The page of a recording. Raises ValueError where there is none."""
    if of.recording is None:
        raise ValueError(f"{of.row.trial} has no recording")
    unit = UNITS[of.recording.kind]
    return _page(
        f"{of.row.trial}: flame graph",
        of.load,
        f"{of.recording.samples:,} {', '.join(of.recording.events)}; width: {unit}.",
        f"{of.row.trial}.collapsed.txt has the same.",
        {"unit": unit, "root": _tree(of.recording.stacks)},
    )


def difference(a: Side, b: Side, load: str) -> str:
    """The page of two recordings of this load: what each frame costs for an answer in A and B."""
    unit = f"{COSTS[a.recording.kind]} for each answer"
    root: dict[str, Any] = {}
    for at, side in enumerate((a, b)):
        for stack, cost in costs(side):
            _add(root, stack, at, cost)
    whole = [a.each, b.each]
    return _page(
        f"{b.row.trial}: against {a.row.run}",
        load,
        f"A: {a.row.run}, {a.row.trial}, {a.each:,.4g} {unit}, {a.recording.samples:,} samples. B: "
        f"{b.row.run}, {b.row.trial}, {b.each:,.4g}, {b.recording.samples:,} samples. Width: the "
        "sum of both. Red and ▲: B takes more; blue and ▼: less; the stronger, the greater the "
        "share of the frame's own sum. Lines of code are left out. One recorded trial of each "
        "side: what differs between two JVMs of one version is in it.",
        "The folded text of each recording has its stacks.",
        {"unit": unit, "root": ["all", sum(whole), _sides(root, sum(whole) * LEAST), *whole]},
    )


def _page(title: str, name: str, about: str, without: str, data: Mapping[str, Any]) -> str:
    """`without` says what there is where the script does not run."""
    script = _file("flamegraph.js")
    dark = f"@media (prefers-color-scheme:dark){{:root{{{variables(DARK)}}}}}"
    style = f":root{{{variables(LIGHT)}}}{dark}{_file('flamegraph.css')}"
    # In JSON only a text can hold a <, and may write it so: no text ends the element.
    told = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f"{head(inline(title), style, script)}<body>\n<h1>{inline(name)}</h1>\n"
        f"<p>{inline(about)} Callers are above what they call. Choose a frame to see it alone, and "
        'one above it to go back. <label>Mark frames with <input id="mark" type="search"></label> '
        '<output id="said"></output></p>\n<div id="graph"></div>\n'
        f"<noscript><p>It needs this page's script. {inline(without)}</p></noscript>\n"
        f'<script type="application/json" id="stacks">{told}</script>\n'
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


def _add(root: dict[str, Any], stack: Sequence[str], at: int, cost: float) -> None:
    """Add the cost of a stack to its frames, on the side `at`."""
    below = root
    for frame in stack:
        node = below.setdefault(frame, [[0.0, 0.0], {}])
        node[0][at] += cost
        below = node[1]


def _sides(of: Mapping[str, Any], least: float) -> list[Any]:
    """[name, width, children, a, b] of frames."""
    return [
        [name, sum(both), _sides(below, least), *both]
        for name, (both, below) in sorted(of.items())
        if sum(both) >= least
    ]


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
