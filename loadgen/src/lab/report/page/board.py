"""A whole dashboard as one picture: its panels where Grafana has them, drawn as in a report.

The file is small, as it lies in the repository: what every element says is said once, and a line is
as exact as a pixel's tenth.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from lab.model import PanelAnswers, Panels
from lab.report.page.figure import GAP_PX, HEADING_PX, LINE_PX, alone, heading, named, text
from lab.report.page.over_time import HEIGHT, Moment, figure
from lab.report.page.spec import FONT

WIDE_PX = 1280
# Of Grafana's grid.
COLUMNS = 24
COLUMN_PX = (WIDE_PX - GAP_PX) / COLUMNS
# Around what is drawn of a panel, and above a row.
INSET_PX = 6
ROW_PX = 24
NO_DATA = "no data in this time"
# What stands once at the head of the file, for what has nothing of its own.
_SHARED = f'font-family="{FONT}" font-size="11px" stroke-linecap="round" stroke-linejoin="round"'
_SAID = re.compile(
    r' (?:font-family="[^"]*"|font-size="11px"|font-weight="normal"|stroke-linecap="round"'
    r'|stroke-linejoin="round"|stroke-width="1"|[xy]2="0"|text-anchor="start")'
)
_TAG = re.compile(r"<(/?)g((?: [^>]*[^/>])?)>")
_NUMBER = re.compile(r"-?\d+\.\d{2,}(?:e-\d+)?")
_PLACED = re.compile(r' transform="translate\([^"]*\)"')
_TEXT = re.compile(r'(<text[^>]*) transform="translate\((-?[\d.]+),(-?[\d.]+)\)"')
# Lines of a grid, or of an axis, one after another: each begins at a point and has a length.
_RULE = r'<line(?: transform="translate\((-?[\d.]+,-?[\d.]+)\)")? ([xy])2="([\d.]+)" stroke="{}"/>'
_EACH = re.compile(_RULE.format('[^"]*'))
_RULES = re.compile(_RULE.format('([^"]*)') + f"(?:{_RULE.format(r'\4')})*")
_LINE = re.compile(r' d="M(-?[\d.]+,-?[\d.]+(?:L-?[\d.]+,-?[\d.]+)+)"')


@dataclass(frozen=True, slots=True)
class Tile:
    """A panel of a dashboard: its left column and its width of Grafana's 24, and its top line."""

    column: int
    line: int
    width: int
    panel: PanelAnswers


def board(
    name: str,
    of: Panels,
    tiles: Sequence[Tile],
    below: Sequence[str],
    hues: Mapping[str, int],
    marked: Sequence[Moment] = (),
) -> str:
    """The picture of a dashboard as an SVG file, WIDE_PX wide. `of` is its title and its time,
    `below` stands under the title; the rest is as for the panels of a trial."""
    parts = [*heading(of.dashboard, [*below, *(moment.text for moment in marked)])]
    top = HEADING_PX + LINE_PX * (len(below) + len(marked))
    row = ""
    ordered = sorted(tiles, key=lambda tile: (tile.line, tile.column))
    for line, beside in groupby(ordered, key=lambda tile: tile.line):
        in_line = list(beside)
        if in_line[0].panel.section != row:
            row = in_line[0].panel.section
            parts.append(text(GAP_PX, top + 14, row, "ink", ' font-weight="bold"'))
            top += ROW_PX
        drawn = [_drawn(f"{name}-{line}", tile, of, hues, marked) for tile in in_line]
        high = max(height for _, height in drawn) + 2 * INSET_PX
        for tile, (content, _) in zip(in_line, drawn, strict=True):
            parts.append(_placed(content, tile, top, high))
        top += high + GAP_PX
    ground = f'<rect width="{WIDE_PX}" height="{top}" fill="var(--page)"/>'
    size = f'width="{WIDE_PX}" height="{top}" viewBox="0 0 {WIDE_PX} {top}"'
    told = ", ".join(tile.panel.title for tile in ordered)
    content = small(f"{ground}{''.join(parts)}")
    whole = f"<svg {size}><g {_SHARED}>{content}</g></svg>"
    return alone(named(whole, name, of.dashboard, f"{len(tiles)} panels over time: {told}."))


def _drawn(
    name: str, tile: Tile, of: Panels, hues: Mapping[str, int], marked: Sequence[Moment]
) -> tuple[str, int]:
    width = round(tile.width * COLUMN_PX) - GAP_PX - 2 * INSET_PX
    one = figure(name, "", tile.panel, of, hues, marked, width)
    if one is None:
        title = text(3, 12, tile.panel.title, "ink", ' font-weight="bold"')
        return title + text(3, 34, NO_DATA, "soft"), HEIGHT
    _, _, content = one.drawing.partition(">")
    # The ground of each is that of all.
    content = re.sub(r"^<rect [^>]*/>", "", content.removesuffix("</svg>"))
    return content, one.spec["height"]


def _placed(content: str, tile: Tile, top: int, high: int) -> str:
    left = round(GAP_PX + tile.column * COLUMN_PX)
    width = round(tile.width * COLUMN_PX) - GAP_PX
    frame = f'<rect width="{width}" height="{high}" rx="3" fill="none" stroke="var(--rule)"/>'
    inner = f'<g transform="translate({INSET_PX},{INSET_PX})">{content}</g>'
    return f'<g transform="translate({left},{top})">{frame}{inner}</g>'


def small(drawn: str) -> str:
    """The drawing without what _SHARED says, groups that say nothing, and digits beyond a pixel's
    tenth. It looks the same."""
    drawn = _SAID.sub("", drawn)
    drawn = _PLACED.sub(lambda found: _NUMBER.sub(_tenth_of, found[0]), drawn)
    drawn = _LINE.sub(lambda found: f' d="{_relative(found[1])}"', drawn)
    drawn = _TEXT.sub(r'\1 x="\2" y="\3"', drawn)
    return _RULES.sub(_ruled, "".join(_without_groups(drawn)))


def _ruled(found: re.Match[str]) -> str:
    """Lines of one colour as one path."""
    steps = (
        f"M{start or '0,0'}{'h' if way == 'x' else 'v'}{length}"
        for start, way, length in _EACH.findall(found[0])
    )
    return f'<path d="{"".join(steps)}" stroke="{found[4]}"/>'


def _without_groups(drawn: str) -> Iterator[str]:
    """A drawing without groups that have no attribute; whatever is in them stays."""
    kept: list[bool] = []
    at = 0
    for tag in _TAG.finditer(drawn):
        yield drawn[at : tag.start()]
        at = tag.end()
        if not tag[1]:
            kept.append(bool(tag[2]))
        if kept[-1]:
            yield tag[0]
        if tag[1]:
            kept.pop()
    yield drawn[at:]


def _relative(points: str) -> str:
    """A line as steps of tenths of a pixel; a level stretch is one step."""
    pairs = [
        tuple(round(float(number) * 10) for number in point.split(","))
        for point in points.split("L")
    ]
    shaped = [
        point
        for before, point, after in zip(pairs, pairs[1:], pairs[2:], strict=False)
        if not before[1] == point[1] == after[1]
    ]
    shaped = [pairs[0], *shaped, pairs[-1]]
    steps = (f"{_tenths(x - x0)},{_tenths(y - y0)}" for (x0, y0), (x, y) in pairwise(shaped))
    (x, y), *_ = shaped
    return f"M{_tenths(x)},{_tenths(y)}l{' '.join(steps)}".replace(",-", "-").replace(" -", "-")


def _tenths(number: int) -> str:
    """Tenths as the shortest text: 12, -.5, 3.1."""
    return re.sub(r"^(-?)0\.", r"\1.", f"{number / 10:g}")


def _tenth_of(found: re.Match[str]) -> str:
    return _tenths(round(float(found[0]) * 10))
