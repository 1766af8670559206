"""Draws docs/images/report.svg from a table of docs/report.md: `python3 .ci/report_figure.py`."""

import re
import sys
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/report.md"
FIGURE = ROOT / "docs/images/report.svg"
HEADING = "### The figure's numbers\n"
# A value and the ends of its interval, or of what was held and what broke.
VALUE = re.compile(r"(\d[\d,]*) \[(\d[\d,]*), (\d[\d,]*)\]")
LINK = re.compile(r" \(\[[^\]]*\]\([^)]*\)\)")
# Of the table's columns that are drawn: where each begins.
PANELS = {1: 118, 3: 490}
ROW, TOP, BAR, WIDTH = 24, 34, 130, 780
# Of lab.report.page.palette, on a light page.
INK, SOFT, PAPER = "#16181d", "#565c66", "#ffffff"


def table(page: str) -> list[list[str]]:
    """The cells of the table, its header first, without links. Raises ValueError."""
    below = page.partition(HEADING)[2].lstrip("\n").partition("\n\n")[0]
    rows = [LINK.sub("", line)[1:-1].split("|") for line in below.splitlines()]
    cells = [[cell.strip() for cell in row] for row in rows[:1] + rows[2:]]
    if len(cells) < 2 or len({len(row) for row in cells}) > 1:
        raise ValueError("the table of models is not there, or its rows differ in length")
    return cells


def drawn(page: str) -> str:
    """The figure: a bar for each value that a row has, a line for its interval, and the words of
    what has none."""
    header, *models = table(page)
    height = TOP + ROW * len(models) + 8
    words = (text(8, TOP + ROW * at + 16, row[0]) for at, row in enumerate(models))
    panels = (one for column in PANELS for one in panel(header, models, column))
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
            f' viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
            f'<rect width="{WIDTH}" height="{height}" fill="{PAPER}"/>',
            *words,
            *panels,
            "</svg>\n",
        )
    )


def panel(header: Sequence[str], models: Sequence[list[str]], column: int) -> Iterator[str]:
    """The title, bars and words of a column."""
    left = PANELS[column]
    found = [VALUE.search(row[column]) for row in models]
    ends = [[float(one.replace(",", "")) for one in value.groups()] for value in found if value]
    scale = BAR / max((max(one) for one in ends), default=1.0)
    yield text(left, 18, header[column], "bold")
    for at, (row, value) in enumerate(zip(models, found, strict=True)):
        y = TOP + ROW * at
        if value is None:
            yield text(left, y + 16, row[column].partition(":")[0], fill=SOFT)
            continue
        mid, low, high = (scale * float(one.replace(",", "")) for one in value.groups())
        yield f'<rect x="{left}" y="{y + 5}" width="{mid:.1f}" height="14" fill="{SOFT}"/>'
        for x1, x2, y1, y2 in ((low, high, 12, 12), (low, low, 8, 16), (high, high, 8, 16)):
            yield (
                f'<line x1="{left + x1:.1f}" y1="{y + y1}" x2="{left + x2:.1f}" y2="{y + y2}"'
                f' stroke="{INK}" stroke-width="2"/>'
            )
        yield text(left + max(mid, high) + 6, y + 16, row[column])


def text(x: float, y: float, words: str, weight: str = "normal", fill: str = INK) -> str:
    """Words that begin at a place."""
    return f'<text x="{x:.1f}" y="{y}" font-weight="{weight}" fill="{fill}">{escape(words)}</text>'


if __name__ == "__main__":
    try:
        FIGURE.write_text(drawn(PAGE.read_text()))
    except ValueError as failure:
        sys.exit(f"docs/report.md: {failure}")
