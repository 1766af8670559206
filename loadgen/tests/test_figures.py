"""The figures of the pages are drawn from their tables (`python3 .ci/figures.py`)."""

import re
from typing import Any

import pytest

from lab.report.page.palette import LIGHT
from support.repo import REPO, script

drawer = script("figures")
PAGES = {
    path.name: list(drawer.figures(path.read_text())) for path in sorted(drawer.DOCS.glob("*.md"))
}
DRAWN = [(page, figure) for page, figures in PAGES.items() for figure in figures]
TABLE = """<!-- drawn as some: 1 2 by 3 5 -->
<!-- results
above the table
-->
| model | run | holds | then | heap |
|---|---|---|---|---|
| `a` | 1 | 1,000 [900, 2,000] ([run](x)) | pool | soon |
| b | | 500 (400 to 500) | pool | 20.5 s |
"""


@pytest.mark.parametrize(("page", "figure"), DRAWN, ids=[figure.name for _, figure in DRAWN])
def test_a_figure_is_drawn_from_its_table_and_shown_beside_it(page: str, figure: Any) -> None:
    name = f"{figure.name}.svg"
    assert drawer.drawn(figure) == (drawer.IMAGES / name).read_text(), "python3 .ci/figures.py"
    assert f"](images/{name})" in (REPO / "docs" / page).read_text()


def test_each_figure_has_a_name_of_its_own_and_the_colours_of_a_report() -> None:
    names = [figure.name for _, figure in DRAWN]
    assert len(set(names)) == len(names) > 5
    assert (LIGHT["ink"], LIGHT["soft"], LIGHT["page"]) == (drawer.INK, drawer.SOFT, drawer.PAPER)


def widths(svg: str) -> list[float]:
    """How long its bars are."""
    return [float(width) for width in re.findall(r'width="([\d.]+)" height="14"', svg)]


def test_a_bar_is_as_long_as_its_value() -> None:
    scaled = TABLE.replace("3 5 -->", "3 5, one scale -->")
    negative = TABLE.replace("500 (400 to 500)", "-3 [-5, 200]")
    figures = (drawer.drawn(*drawer.figures(text)) for text in (TABLE, scaled, negative))
    (svg, one_scale, below), bar = figures, drawer.BAR
    assert widths(svg) == [bar / 2, bar / 4, bar]
    words = re.findall(r">([^<]+)</text>", svg)
    assert words[:5] == ["a, 1", "b", "holds", "1,000 [900, 2,000]", "500 (400 to 500)"]
    # What does not begin with a number has no bar, and no interval is drawn of what has none.
    assert words[5:] == ["heap", "soon", "20.5 s"]
    assert svg.count("<line ") == 2 * 3
    # One scale for all where the mark says so.
    assert widths(one_scale)[-1] == pytest.approx(bar * 20.5 / 2000, abs=0.1)
    # A value below 0 has no bar.
    assert widths(below) == [bar / 2, 0, bar]


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("1 2 by 3 5", "1 2 by", "marks of figures cannot be read"),
        ("| model", "text\n\n| model", "marks of figures cannot be read"),
        ("3 5 -->", "3 6 -->", "fewer columns"),
        ("| pool | soon |", "| soon |", "differ in length"),
    ],
)
def test_a_mark_that_cannot_be_drawn_is_said(old: str, new: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        list(drawer.figures(TABLE.replace(old, new)))
