"""Blocks say the same in Markdown and in HTML, and no text of a run becomes markup."""

import re
from pathlib import Path
from typing import Any

import pytest

from lab.campaign.derive import derive
from lab.report import blocks
from lab.report.markdown import document, markdown
from lab.report.page.markup import markup
from report.test_html import Page
from support.drawn import Drawing

EVIL = "<img src=x onerror=alert(1)> & \"quoted\" 'too' `a<b`"
EVERY = (
    blocks.Paragraph(
        (EVIL, blocks.Strong(EVIL), blocks.Link(EVIL, f"#{EVIL}"), blocks.Beside(EVIL))
    ),
    blocks.Loud([EVIL]),
    blocks.Bullets([EVIL]),
    blocks.Facts([(EVIL, EVIL), ("unknown", None)]),
    blocks.Code([EVIL, EVIL]),
    blocks.Table([EVIL, "b"], [(EVIL, EVIL), (EVIL, "2")], EVIL, EVIL, wide=(0,)),
    blocks.Folded(EVIL, [blocks.Paragraph(EVIL)]),
    blocks.Section(EVIL, [], none=EVIL),
)


@pytest.mark.parametrize("block", EVERY, ids=lambda of: type(of).__name__)
def test_a_text_stays_a_text_in_html_and_is_in_markdown_too(block: blocks.Block) -> None:
    page = Page(markup([block]))
    text = markdown([block])
    assert page.text.count("onerror") == text.count("onerror") > 0
    assert "<img" not in text or isinstance(block, blocks.Code)
    assert text.count("`a<b`") == text.count("onerror")
    names = {name for tag, attributes in page.elements for name in (tag, *attributes)}
    assert not names & {"img", "src", "onerror"}
    assert "unknown" not in page.text


def test_the_pieces_of_a_text() -> None:
    pieces = (blocks.Strong("a"), ": `b` ", blocks.Link("c", "c.html"), blocks.Beside("d"))
    assert markdown([blocks.Paragraph(pieces)]) == "**a**: `b` [c](c.html); d"
    link, beside = '<a href="c.html">c</a>', '<span class="soft">d</span>'
    html = f"<p><strong>a</strong>: <code>b</code> {link}{beside}</p>"
    assert markup([blocks.Paragraph(pieces)]) == html
    # A place of the page is none of a text, and what is empty is not there.
    place = [blocks.Paragraph((blocks.Link("see there", "#there"), blocks.Beside("")))]
    assert markdown(place) == "see there"
    assert markup(place) == '<p><a href="#there">see there</a></p>'


def test_cells_that_stand_out_do_so_in_both() -> None:
    marks = {"slower": "bad"}
    of = blocks.Table(("load", "p95", "answer"), [("a|b", "12", "slower")], "Loads", marks=marks)
    assert markdown([of]).splitlines()[2] == "| a\\|b | 12 | **slower** |"
    cells = '<th scope="row">a|b</th><td class="n">12</td><td class="bad">slower</td>'
    assert cells in markup([of])


def test_what_is_long_is_folded_on_a_page_only() -> None:
    # A text among numbers leaves them on the right.
    rows = [(f"load {number}", "no valid trial" if number else "1") for number in range(13)]
    short = markup([blocks.Table(("load", "req/s"), rows[:12], "Loads", folds=True)])
    assert short.startswith('<div class="scroll"')
    assert short.count('<td class="n">') == 12
    long = blocks.Table(("load", "req/s"), rows, "Loads", folds=True)
    folded = '<details class="open-in-print"><summary>Loads: 13 rows</summary>'
    assert markup([long]).startswith(folded)
    lines = blocks.Bullets([f"line {number}" for number in range(14)])
    first, _, rest = markup([lines]).partition("<summary>2 more lines</summary>")
    assert (first.count("<li>"), rest.count("<li>")) == (12, 2)
    assert markdown([long, lines]).count("\n") == 2 + 13 + 14


def test_prose_is_paragraphs() -> None:
    assert blocks.prose("\none\n line\n\n  \ntwo\n", "asked") == [
        blocks.Paragraph("one line", "asked"), blocks.Paragraph("two", "asked"),
    ]  # fmt: skip


def test_a_section_that_says_nothing_is_left_out() -> None:
    nothing = [blocks.Bullets([]), blocks.Table(("a",), [], legend="b"), blocks.Paragraph("")]
    empty = blocks.Section("Empty", [*nothing, blocks.Loud([]), blocks.Section("Part", nothing)])
    full = blocks.Section("Full", [blocks.Section("Part", [], none="none")])
    assert markup([empty]) == ""
    assert document("t", [], [empty, full]) == "# t\n\n## Full\n\n### Part\n\nnone\n"


def test_both_reports_of_a_run_have_one_outline(run_dir: Path) -> None:
    derive(run_dir, [Drawing()])
    text, page = ((run_dir / name).read_text() for name in ("REPORT.md", "report.html"))
    drawn = {"Figures", "Every trial over time"}
    on_page = re.findall(r"<h([23])[^>]*>([^<]*)</h", page.partition("<main>")[2])
    assert drawn < {title for _, title in on_page}
    headings = re.findall(r"^##(#*) (.*)$", text, re.MULTILINE)
    assert [(len(deeper) + 2, title) for deeper, title in headings] == [
        (int(level), title) for level, title in on_page if title not in drawn and " · " not in title
    ]


ACTIVE = "\x1b]52;c;YQ==\x07\x9b2J\r\u202e"


@pytest.mark.parametrize("block", EVERY, ids=lambda of: type(of).__name__)
def test_a_terminal_that_shows_markdown_acts_on_no_text_of_it(block: blocks.Block) -> None:
    values = {name: _active(getattr(block, name)) for name in block.__slots__}
    text = document(ACTIVE, [type(block)(**values)], [])
    assert "\\x1b]52;c;YQ==\\x07\\x9b2J\\r\\u202e" in text
    assert text.replace("\n", "").isprintable()


def _active(value: Any) -> Any:
    """The value with what a terminal acts on in the place of each EVIL."""
    match value:
        case str() if value == EVIL:
            return type(value)(ACTIVE)
        case blocks.Paragraph() | blocks.Link():
            return type(value)(**{n: _active(getattr(value, n)) for n in value.__slots__})
        case list() | tuple():
            return type(value)(map(_active, value))
    return value
