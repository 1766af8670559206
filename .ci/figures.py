"""The figures of the pages, each drawn from the table below its mark: `python3 .ci/figures.py`.

A mark is a comment above a table, whose columns it counts from 1:

    <!-- drawn as faults: 1 by 2 3 -->
    <!-- drawn as sweep: 1 2 by 5 8, one scale -->

docs/images/faults.svg then has a row for each of the table, named by the cell of column 1, and
beside it a bar for columns 2 and 3. A line over a bar is the interval, or the range, behind the
value. The bars of a column have a scale of their own, or, where the mark says so, all have one. A
cell that begins without a number is shown as its words.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
IMAGES = DOCS / "images"
BEGIN = "<!-- drawn as "
MARK = re.compile(
    rf"^{BEGIN}(?P<name>[a-z0-9-]+): (?P<labels>\d+(?: \d+)*) by (?P<columns>\d+(?: \d+)*)"
    r"(?P<one>, one scale)? -->\n(?:<!--(?:(?!-->)[\s\S])*-->\n)*(?P<table>(?:\|.*\n)+)",
    re.MULTILINE,
)
NUMBER = r"-?\d[\d,]*(?:\.\d+)?"
# A value and the ends of its interval [], or of the range () of few.
VALUE = re.compile(rf"({NUMBER})(?: [\[(]({NUMBER})(?:, | to )({NUMBER})[\])])?")
LINK = re.compile(r" \(\[[^\]]*\]\([^)]*\)\)|`")
ROW, TOP, BAR, GAP = 24, 34, 130, 24
# A character of a font of 12 pixels, a little more than most take.
CHARACTER = 6.7
# Of lab.report.page.palette, on a light page.
INK, SOFT, PAPER = "#16181d", "#565c66", "#ffffff"


class Figure(NamedTuple):
    """The names of its rows, and its panels: a title and the cells below it."""

    name: str
    rows: tuple[str, ...]
    panels: tuple[tuple[str, tuple[str, ...]], ...]
    one_scale: bool


def figures(page: str) -> Iterator[Figure]:
    """The figures that a page marks. Raises ValueError for what cannot be read."""
    found = list(MARK.finditer(page))
    if unread := f"\n{page}".count(f"\n{BEGIN}") - len(found):
        raise ValueError(f"{unread} marks of figures cannot be read")
    for mark in found:
        header, *rows = cells(mark["table"])
        labels, columns = (
            [int(place) - 1 for place in mark[key].split()] for key in ("labels", "columns")
        )
        if not rows or max(labels + columns) >= len(header):
            raise ValueError(f"{mark['name']}: the table has no rows, or fewer columns")
        names = tuple(", ".join(filter(None, (row[at] for at in labels))) for row in rows)
        panels = tuple((header[at], tuple(row[at] for row in rows)) for at in columns)
        yield Figure(mark["name"], names, panels, mark["one"] is not None)


def cells(table: str) -> list[list[str]]:
    """The cells of a table, its header first, without links and marks of code."""
    header, _, *rows = LINK.sub("", table).splitlines()
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in (header, *rows)]
    if len({len(line) for line in found}) > 1:
        raise ValueError("the rows of a table differ in length")
    return found


def drawn(figure: Figure) -> str:
    """The figure as SVG."""
    top = largest(cell for _, column in figure.panels for cell in column)
    left = 16 + CHARACTER * max(map(len, figure.rows))
    parts = [text(8, TOP + ROW * at + 16, row) for at, row in enumerate(figure.rows)]
    for title, column in figure.panels:
        scale = BAR / ((top if figure.one_scale else largest(column)) or 1.0)
        parts += panel(title, column, left, scale)
        width = max(CHARACTER * len(cell) + (BAR if VALUE.match(cell) else 0) for cell in column)
        left += max(width, CHARACTER * len(title)) + GAP
    width, height = round(left), TOP + ROW * len(figure.rows) + 8
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
            f' viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
            f'<rect width="{width}" height="{height}" fill="{PAPER}"/>',
            *parts,
            "</svg>\n",
        )
    )


def largest(column: Iterable[str]) -> float:
    """The greatest number of the cells that begin with one."""
    values = filter(None, map(VALUE.match, column))
    return max((max(numbers(value)) for value in values), default=0.0)


def numbers(value: re.Match[str]) -> list[float]:
    """A value and its ends: the value itself where it has none. None is below 0."""
    return [max(float(number.replace(",", "")), 0.0) for number in value.groups(value[1])]


def panel(title: str, column: Sequence[str], left: float, scale: float) -> Iterator[str]:
    """The title, bars and words of a column."""
    yield text(left, 18, title, "bold")
    for at, cell in enumerate(column):
        y, value = TOP + ROW * at, VALUE.match(cell)
        if value is None:
            yield text(left, y + 16, cell, fill=SOFT)
            continue
        mid, low, high = (scale * number for number in numbers(value))
        yield f'<rect x="{left:.1f}" y="{y + 5}" width="{mid:.1f}" height="14" fill="{SOFT}"/>'
        if value[2]:
            for x1, x2, y1, y2 in ((low, high, 12, 12), (low, low, 8, 16), (high, high, 8, 16)):
                yield (
                    f'<line x1="{left + x1:.1f}" y1="{y + y1}" x2="{left + x2:.1f}" y2="{y + y2}"'
                    f' stroke="{INK}" stroke-width="2"/>'
                )
        yield text(left + max(mid, high) + 6, y + 16, cell)


def text(x: float, y: float, words: str, weight: str = "normal", fill: str = INK) -> str:
    """Words that begin at a place."""
    return f'<text x="{x:.1f}" y="{y}" font-weight="{weight}" fill="{fill}">{escape(words)}</text>'


if __name__ == "__main__":
    for page in sorted(DOCS.glob("*.md")):
        try:
            for figure in figures(page.read_text()):
                (IMAGES / f"{figure.name}.svg").write_text(drawn(figure))
        except ValueError as failure:
            sys.exit(f"docs/{page.name}: {failure}")
