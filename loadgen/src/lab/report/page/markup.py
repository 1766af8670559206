"""Blocks as HTML. Every text is escaped; markup is what these functions return."""

import re
from collections.abc import Iterable
from html import escape

from lab.report import blocks


def markup(parts: Iterable[blocks.Block]) -> str:
    return "".join(map(_written, parts))


def _written(block: blocks.Block) -> str:
    match block:
        case blocks.Paragraph(text, style):
            return f"<p{_class(style)}>{inline(text)}</p>" if text else ""
        case blocks.Loud(lines):
            inside = "".join(f"<p>{inline(line)}</p>" for line in lines)
            box = '<div class="loud" role="note" aria-label="Read this first">'
            return f"{box}{inside}</div>" if inside else ""
        case blocks.Bullets(lines):
            items = "".join(f"<li>{inline(line)}</li>" for line in lines)
            return f"<ul>{items}</ul>" if items else ""
        case blocks.Named():
            return _written(block.bullets)
        case blocks.Code(plain):
            return f"<pre>{escape('\n'.join(plain))}</pre>"
        case blocks.Table():
            return _table(block) if block.rows else ""
        case blocks.Folded(summary, inside, key):
            name = f' id="{escape(key)}"' if key else ""
            content = f"<summary>{inline(summary)}</summary><div>{markup(inside)}</div>"
            return f"<details{name}>{content}</details>\n"
        case blocks.Drawing(drawn):
            return drawn
        case blocks.Section(title):
            body = body_of(block)
            return f"<h3>{inline(title)}</h3>{body}" if body else ""


def body_of(section: blocks.Section) -> str:
    return markup(section.blocks) or markup([blocks.Paragraph(section.none)])


def inline(text: blocks.Text) -> str:
    """A text within a line, in which `code` is marked so."""
    return "".join(map(_piece, blocks.pieces(text)))


def _piece(piece: str | blocks.Link) -> str:
    if isinstance(piece, blocks.Link):
        return f'<a href="{escape(piece.to)}">{inline(piece.text)}</a>'
    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(piece))
    return f"<strong>{marked}</strong>" if isinstance(piece, blocks.Strong) else marked


def _class(names: str) -> str:
    return f' class="{names}"' if names else ""


def _table(table: blocks.Table) -> str:
    """In a box that scrolls. Columns whose cells begin like numbers are set right."""

    kinds = [table.kind(at) if at else "" for at in range(len(table.header))]

    def cell(at: int, text: blocks.Text, scope: str = "") -> str:
        classes = _class(" ".join(filter(None, (kinds[at], table.marks.get(text)))))
        if scope:
            return f'<th scope="{scope}"{classes}>{inline(text)}</th>'
        return f"<td{classes}>{inline(text)}</td>"

    head = "".join(cell(at, text, "col") for at, text in enumerate(table.header))
    lines = (
        "".join(cell(at, text, "" if at else "row") for at, text in enumerate(row))
        for row in table.rows
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    # The box must be reached by the keyboard too.
    whole = (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(table.label)}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>\n"
    )
    return whole + markup([blocks.Paragraph(table.legend, "legend")])
