"""Blocks: what the sections of a report are made of. A section builds its blocks once; `markdown`
and `page.markup` write them. In every text `code` stands between backticks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

# More rows, lines or figures than these are too many to read before anything else: a page has the
# rest behind its number.
MOST = 12


class Strong(str):
    """A piece of a text that stands out."""

    __slots__ = ()


class Beside(str):
    """The last piece of a text, and less than the rest: a page has it on a line of its own."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Link:
    """A piece of a text that leads to a file beside the report, or to a place of the page (#id)."""

    text: str
    to: str


type Text = str | tuple[str | Link, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Nothing without a text. `style` is a class of the page's style sheet."""

    text: Text
    style: str = ""


@dataclass(frozen=True, slots=True)
class Loud:
    """What a reader must know first; nothing without lines."""

    lines: Sequence[Text]


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list; nothing without lines. A page folds those after the first MOST."""

    lines: Sequence[Text]


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and their values; those without a value are left out, and nothing without any."""

    pairs: Sequence[tuple[str, str | None]]


@dataclass(frozen=True, slots=True)
class Code:
    """Lines as they are, below each other. `style` is as of Paragraph."""

    lines: Sequence[str]
    style: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a header, and the `legend`; nothing without rows. The first `names` columns say
    what a row is about; those in `wide` may break their lines. `marks` are whole cells that stand
    out, with their classes of the page's style sheet. On a page it needs a `label`, behind which it
    is folded if it `folds` and has more than MOST rows."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    label: str = ""
    legend: str = ""
    names: int = 1
    wide: Sequence[int] = ()
    marks: Mapping[str, str] = field(default_factory=dict)
    folds: bool = False


@dataclass(frozen=True, slots=True)
class Folded:
    """Blocks that a page has behind their summary, and open on paper."""

    summary: Text
    blocks: Sequence[Block]
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks under a title, or `none` where they say nothing; left out where both do. `key` is its
    id on a page. Another section in it is a part of it."""

    title: str
    blocks: Sequence[Block]
    key: str = ""
    none: str = ""


def with_caption[B: Block](block: B, caption: str) -> B:
    """The block with this before the legend of each table in it."""
    if isinstance(block, Table):
        return replace(block, legend=f"{caption} {block.legend}".strip())
    if isinstance(block, Section):
        return replace(block, blocks=[with_caption(one, caption) for one in block.blocks])
    return block


type Block = Paragraph | Loud | Bullets | Facts | Code | Table | Folded | Section


def prose(text: str, style: str = "") -> list[Paragraph]:
    """Text as written in an experiment's file: paragraphs apart by empty lines."""
    paragraphs = re.split(r"\n\s*\n", text.strip())
    return [Paragraph(" ".join(one.split()), style) for one in paragraphs if one]


def pieces(of: Text) -> Iterable[str | Link]:
    return filter(None, (of,) if isinstance(of, str) else of)
