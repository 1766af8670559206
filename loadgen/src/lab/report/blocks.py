"""Blocks: what the sections of a report are made of. A section builds its blocks once; `markdown`,
`page.markup` and `console` write them, and leave out those that say nothing. In every text `code`
stands between backticks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# A longer cell is broken into lines.
WIDE = 40
_NUMBER = re.compile(r"[\d–.\[-]|$|no interval")


class Strong(str):
    """A piece of a text that stands out."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Link:
    """A piece of a text that leads to a file beside the report, or to a place of the page (#id)."""

    text: str
    to: str


type Text = str | tuple[str | Link, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """`style` is a class of the page's style sheet."""

    text: Text
    style: str = ""


@dataclass(frozen=True, slots=True)
class Loud:
    """What a reader must know first."""

    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list."""

    lines: Sequence[Text]


@dataclass(frozen=True, slots=True)
class Named:
    """A name and a line or more about it, each. A console has the lines below each other."""

    lines: Sequence[Sequence[str]]

    @property
    def bullets(self) -> Bullets:
        return Bullets([(Strong(name), f": {'; '.join(cells)}") for name, *cells in self.lines])


@dataclass(frozen=True, slots=True)
class Code:
    """Lines as they are, below each other."""

    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a header, and the `legend`. The first column says what a row is about. `marks` are
    whole cells that stand out, with their classes of the page's style sheet. On a page it needs a
    `label`. A console that is too narrow leaves out the `optional` columns, the first of these
    first."""

    header: Sequence[str]
    rows: Sequence[Sequence[Text]]
    label: str = ""
    legend: str = ""
    marks: Mapping[Any, str] = field(default_factory=dict)
    optional: Sequence[str] = ()

    def kind(self, at: int) -> str:
        """The class of a column: w if it has a long cell, and may break its lines; n if every cell
        begins like a number, and one is not empty."""
        cells = [plain(row[at]) for row in self.rows]
        if any(len(cell) > WIDE for cell in cells):
            return "w"
        return "n" if any(cells) and all(map(_NUMBER.match, cells)) else ""


@dataclass(frozen=True, slots=True)
class Folded:
    """Blocks that a page has behind their summary. `key` is its id."""

    summary: Text
    blocks: Sequence[Block]
    key: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Markup that only a page has."""

    markup: str


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks under a title, or `none` if they say nothing. `key` is its id on a page. Another
    section in it is a part of it."""

    title: str
    blocks: Sequence[Block]
    key: str = ""
    none: str = ""


type Block = Paragraph | Loud | Bullets | Named | Code | Table | Folded | Drawing | Section


def prose(text: str, style: str = "") -> list[Paragraph]:
    """Text as written in an experiment's file: paragraphs apart by empty lines."""
    paragraphs = re.split(r"\n\s*\n", text.strip())
    return [Paragraph(" ".join(part.split()), style) for part in paragraphs if part]


def pieces(text: Text) -> Iterable[str | Link]:
    return filter(None, (text,) if isinstance(text, str) else text)


def plain(text: Text) -> str:
    return "".join(piece.text if isinstance(piece, Link) else piece for piece in pieces(text))
