"""REPORT.md, and blocks as Markdown, in which no text begins a tag of HTML.

The same run gives the same text: no time but the run's own, nothing of where it lies.
"""

import re
from collections.abc import Iterable, Iterator

from lab.errors import harmless
from lab.report import blocks
from lab.report.result import Result
from lab.report.sections import first, sections

NAME = "REPORT.md"
# Code between single backticks, or what may begin a tag or a comment.
_CODE_OR_TAG = re.compile(r"(?<![`\\])(`[^`\n]+`)(?!`)|<(?=[a-zA-Z/!?])")


def text(result: Result) -> str:
    title = f"{result.experiment.name}: {result.manifest.run}"
    return document(title, first(result), sections(result))


def document(title: str, above: Iterable[blocks.Block], sections: Iterable[blocks.Section]) -> str:
    """A report: what stands above all, and the sections that say anything."""
    parts = (f"# {_plain(title)}", markdown(above), *map(section, sections))
    return "\n\n".join(filter(None, parts)) + "\n"


def section(part: blocks.Section, level: int = 2) -> str:
    body = markdown(part.blocks) or _plain(part.none)
    return body and f"{'#' * level} {_plain(part.title)}\n\n{body}"


def markdown(parts: Iterable[blocks.Block]) -> str:
    return "\n\n".join(filter(None, map(_written, parts)))


def _written(block: blocks.Block) -> str:
    match block:
        case blocks.Paragraph(text):
            return _inline(text)
        case blocks.Loud(lines):
            return "\n\n".join(f"> {_inline(line)}" for line in lines)
        case blocks.Bullets(lines):
            return "\n".join(f"- {_inline(line)}" for line in lines)
        case blocks.Named():
            return _written(block.bullets)
        case blocks.Code(plain):
            return "\n".join(("```", *(harmless(line, "\n") for line in plain), "```"))
        case blocks.Table():
            whole = ("\n".join(_table(block)), _plain(block.legend))
            return "\n\n".join(filter(None, whole)) if block.rows else ""
        case blocks.Folded(summary, inside):
            return markdown((blocks.Paragraph(summary), *inside))
        case blocks.Section():
            return section(block, 3)
    return ""


def _inline(text: blocks.Text) -> str:
    return "".join(map(_piece, blocks.pieces(text)))


def _piece(piece: str | blocks.Link) -> str:
    match piece:
        case blocks.Link(text, to):
            return _plain(text) if to.startswith("#") else f"[{_plain(text)}]({to})"
        case blocks.Strong():
            return f"**{_plain(piece)}**"
    return _plain(piece)


def _plain(text: str) -> str:
    """A text without the beginning of a tag, but as it is between backticks."""
    return _CODE_OR_TAG.sub(lambda found: found[1] or "&lt;", harmless(text, "\n"))


def _table(table: blocks.Table) -> Iterator[str]:
    def line(cells: Iterable[blocks.Text]) -> str:
        marked = (f"**{cell}**" if cell in table.marks else _inline(cell) for cell in cells)
        return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in marked)} |"

    yield line(table.header)
    yield f"|{'---|' * len(table.header)}"
    yield from map(line, table.rows)
