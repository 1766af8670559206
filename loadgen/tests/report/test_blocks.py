"""Blocks say the same in Markdown, in HTML and on a console, and no text becomes markup."""

import io
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from lab.app.derive import derive
from lab.report import blocks
from lab.report.console import write
from lab.report.markdown import document, markdown
from lab.report.page.markup import markup
from support.drawn import Drawing

EVIL = "<img src=x onerror=alert(1)> & \"quoted\" 'too' `a<b`"
ACTIVE = "\x1b]52;c;YQ==\x07\x9b2J\r\u202e"


def every(text: str) -> tuple[blocks.Block, ...]:
    """A block of each kind, of this text."""
    linked = (blocks.Link(text, "a.html"),)
    return (
        blocks.Paragraph((text, blocks.Strong(text), blocks.Link(text, f"#{text}"))),
        blocks.Loud([text]),
        blocks.Bullets([text]),
        blocks.Named([(text, text)]),
        blocks.Code([text, text]),
        blocks.Table([text, "b"], [(text, linked), (text, "2")], text, text),
        blocks.Folded(text, [blocks.Paragraph(text)], key=text),
        blocks.Section(text, [], none=text),
    )


class Page(HTMLParser):
    """Elements in order, with their attributes; refuses what is not closed in order."""

    VOID = ("meta", "link", "br", "img")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag in tags]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


@pytest.mark.parametrize("block", every(EVIL), ids=lambda block: type(block).__name__)
def test_a_text_stays_a_text_in_html_and_is_in_markdown_too(block: blocks.Block) -> None:
    page, text = Page(markup([block])), markdown([block])
    assert page.text.count("onerror") == text.count("onerror") > 0
    assert "<img" not in text or isinstance(block, blocks.Code)
    names = {name for tag, attributes in page.elements for name in (tag, *attributes)}
    assert not names & {"img", "src", "onerror"}


@pytest.mark.parametrize("block", every(ACTIVE), ids=lambda block: type(block).__name__)
def test_a_terminal_that_shows_markdown_acts_on_no_text_of_it(block: blocks.Block) -> None:
    text = document(ACTIVE, [block], [])
    assert "\\x1b]52;c;YQ==\\x07\\x9b2J\\r\\u202e" in text
    assert text.replace("\n", "").isprintable()


def test_the_pieces_of_a_text() -> None:
    pieces = (blocks.Strong("a"), ": `b` ", blocks.Link("c", "c.html"))
    assert markdown([blocks.Paragraph(pieces)]) == "**a**: `b` [c](c.html)"
    html = '<p><strong>a</strong>: <code>b</code> <a href="c.html">c</a></p>'
    assert markup([blocks.Paragraph(pieces)]) == html
    # A place of the page is none of a text.
    place = [blocks.Paragraph((blocks.Link("see there", "#there"),))]
    assert markdown(place) == "see there"
    assert markup(place) == '<p><a href="#there">see there</a></p>'


def test_cells_that_stand_out_do_so_in_both() -> None:
    marks: dict[blocks.Text, str] = {"slower": "bad"}
    table = blocks.Table(("load", "p95", "answer"), [("a|b", "12", "slower")], "L", marks=marks)
    assert markdown([table]).splitlines()[2] == "| a\\|b | 12 | **slower** |"
    cells = '<th scope="row">a|b</th><td class="n">12</td><td class="bad">slower</td>'
    assert cells in markup([table])


def test_a_section_that_says_nothing_is_left_out() -> None:
    nothing = [blocks.Bullets([]), blocks.Table(("a",), [], legend="b"), blocks.Paragraph("")]
    empty = blocks.Section("Empty", [*nothing, blocks.Loud([]), blocks.Section("Part", nothing)])
    full = blocks.Section("Full", [blocks.Section("Part", [], none="none")])
    assert markup([empty]) == ""
    assert document("t", [], [empty, full]) == "# t\n\n## Full\n\n### Part\n\nnone\n"
    assert blocks.prose("\none\n line\n\n  \ntwo\n", "asked") == [
        blocks.Paragraph("one line", "asked"), blocks.Paragraph("two", "asked"),
    ]  # fmt: skip


def test_both_reports_of_a_run_have_one_outline(run_dir: Path) -> None:
    derive(run_dir, [Drawing()])
    text, page = ((run_dir / name).read_text() for name in ("REPORT.md", "report.html"))
    on_page = re.findall(r"<h([23])[^>]*>([^<]*)</h", page.partition("<main>")[2])
    headings = re.findall(r"^#(#+) (.*)$", text, re.MULTILINE)
    drawn = [("2", "Figures"), ("2", "Every trial over time")]
    assert [each for each in on_page if each not in drawn] == [
        (str(len(deeper) + 1), title) for deeper, title in headings
    ]
    assert len(on_page) == len(headings) + len(drawn)


def printed(block: blocks.Block, width: int) -> list[str]:
    out = io.StringIO()
    write(Console(file=out, width=width), [block])
    return out.getvalue().splitlines()


@pytest.mark.parametrize(
    ("width", "header"),
    [(60, "load A B ratio why"), (50, "load B ratio why"), (40, "load ratio why")],
)
def test_a_narrow_console_leaves_out_what_is_optional(width: int, header: str) -> None:
    row = ("closed 100", "1,234", "1,300", "1.053", "it reaches across a limit")
    table = blocks.Table(("load", "A", "B", "ratio", "why"), [row], optional=("A", "B"))
    lines = printed(table, width)
    assert lines[0].split() == header.split()
    assert max(map(len, lines)) <= width
    assert "limit" in " ".join(lines)


@pytest.mark.parametrize(
    ("block", "lines"),
    [
        (blocks.Loud(["Cold: `x`"]), ["warning: Cold: x"]),
        (blocks.Paragraph((blocks.Link("graph", "a/b.html"),)), ["graph: a/b.html"]),
        (blocks.Named([("a", "one", "two"), ("long", "x")]), ["a     one", "      two", "long  x"]),
    ],
)
def test_a_console_has_no_marks(block: blocks.Block, lines: list[str]) -> None:
    assert [line.rstrip() for line in printed(block, 80)] == lines
