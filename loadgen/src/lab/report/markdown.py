"""REPORT.md, and blocks as Markdown, in which no text begins a tag of HTML.

The same run gives the same text: no time but the run's own, nothing of where it lies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from lab.errors import harmless
from lab.report import blocks
from lab.report.sections import first, sections
from lab.report.words import Content

NAME = "REPORT.md"
# Code between single backticks, or what may begin a tag or a comment.
_CODE_OR_TAG = re.compile(r"(?<![`\\])(`[^`\n]+`)(?!`)|<(?=[a-zA-Z/!?])")


def text(of: Content) -> str:
    return document(f"{of.experiment.name}: {of.manifest.run}", first(of), sections(of))


def document(title: str, above: Iterable[blocks.Block], sections: Iterable[blocks.Section]) -> str:
    """A report: what stands above all, and the sections that say anything."""
    parts = (f"# {_plain(title)}", markdown(above), *map(section, sections))
    return "\n\n".join(filter(None, parts)) + "\n"


def section(of: blocks.Section, level: int = 2) -> str:
    body = markdown(of.blocks) or _plain(of.none)
    return body and f"{'#' * level} {_plain(of.title)}\n\n{body}"


def markdown(of: Iterable[blocks.Block]) -> str:
    return "\n\n".join(filter(None, map(_written, of)))


def _written(of: blocks.Block) -> str:
    match of:
        case blocks.Paragraph(text):
            return _inline(text)
        case blocks.Loud(lines):
            return "\n\n".join(f"> {_inline(line)}" for line in lines)
        case blocks.Bullets(lines):
            return "\n".join(f"- {_inline(line)}" for line in lines)
        case blocks.Facts(pairs):
            known = (f"{name}: {value}" for name, value in pairs if value)
            return "\n".join(f"- {_plain(line)}" for line in known)
        case blocks.Code(plain):
            return "\n".join(("```", *(harmless(line, "\n") for line in plain), "```"))
        case blocks.Table():
            whole = ("\n".join(_table(of)), _plain(of.legend))
            return "\n\n".join(filter(None, whole)) if of.rows else ""
        case blocks.Folded(summary, inside):
            return markdown((blocks.Paragraph(summary), *inside))
        case blocks.Section():
            return section(of, 3)


def _inline(text: blocks.Text) -> str:
    return "".join(map(_piece, blocks.pieces(text)))


def _piece(of: str | blocks.Link) -> str:
    match of:
        case blocks.Link(text, to):
            return _plain(text) if to.startswith("#") else f"[{_plain(text)}]({to})"
        case blocks.Strong():
            return f"**{_plain(of)}**"
        case blocks.Beside():
            return f"; {_plain(of)}"
    return _plain(of)


def _plain(text: str) -> str:
    """A text without the beginning of a tag, but as it is between backticks."""
    return _CODE_OR_TAG.sub(lambda found: found[1] or "&lt;", harmless(text, "\n"))


def _table(of: blocks.Table) -> Iterator[str]:
    def line(cells: Iterable[str]) -> str:
        marked = (f"**{cell}**" if cell in of.marks else _plain(cell) for cell in cells)
        return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in marked)} |"

    yield line(of.header)
    yield f"|{'---|' * len(of.header)}"
    yield from map(line, of.rows)
