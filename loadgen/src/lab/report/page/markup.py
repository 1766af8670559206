"""Blocks as HTML. Every text is escaped; markup is what these functions return."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape

from lab.report import blocks


def markup(of: Iterable[blocks.Block]) -> str:
    return "".join(map(_written, of))


def _written(of: blocks.Block) -> str:
    match of:
        case blocks.Paragraph(text, style):
            return f"<p{_class(style)}>{inline(text)}</p>" if text else ""
        case blocks.Loud(lines):
            said = "".join(f"<p>{inline(line)}</p>" for line in lines)
            box = '<div class="loud" role="note" aria-label="Read this first">'
            return f"{box}{said}</div>" if said else ""
        case blocks.Bullets(lines):
            return first_of(lines, "lines", _list)
        case blocks.Facts(pairs):
            known = ((inline(name), inline(value)) for name, value in pairs if value)
            items = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in known)
            return f'<dl class="facts">{items}</dl>' if items else ""
        case blocks.Code(plain, style):
            whole = escape("\n".join(plain))
            return f"<pre{_class(style)}>{whole}</pre>"
        case blocks.Table():
            return _table(of) if of.rows else ""
        case blocks.Folded(summary, inside, is_open):
            return folded(inline(summary), markup(inside), is_open=is_open)
        case blocks.Section(title):
            body = content(of)
            return f"<h3>{inline(title)}</h3>{body}" if body else ""


def content(of: blocks.Section) -> str:
    return markup(of.blocks) or markup([blocks.Paragraph(of.none)])


def inline(text: blocks.Text) -> str:
    """A text within a line, in which `code` is marked so."""
    return "".join(map(_piece, blocks.pieces(text)))


def _piece(of: str | blocks.Link) -> str:
    if isinstance(of, blocks.Link):
        return f'<a href="{escape(of.to)}">{inline(of.text)}</a>'
    said = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(of))
    match of:
        case blocks.Strong():
            return f"<strong>{said}</strong>"
        case blocks.Beside():
            return f'<span class="soft">{said}</span>'
    return said


def _class(names: str) -> str:
    return f' class="{names}"' if names else ""


def _list(lines: Sequence[blocks.Text]) -> str:
    items = "".join(f"<li>{inline(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def _table(of: blocks.Table) -> str:
    """In a box that scrolls. Columns whose cells begin like numbers are set right."""

    def kind(at: int) -> str:
        if at < of.names or at in of.wide:
            return "w" if at in of.wide else ""
        cells = [row[at] for row in of.rows]
        figures = all(re.match(r"[\d–.\[-]|$|no interval|no valid trial", cell) for cell in cells)
        return "n" if any(cells) and figures else ""

    kinds = [kind(at) for at in range(len(of.header))]

    def cell(at: int, text: str, scope: str = "") -> str:
        classes = _class(" ".join(filter(None, (kinds[at], of.marks.get(text)))))
        if scope:
            return f'<th scope="{scope}"{classes}>{inline(text)}</th>'
        return f"<td{classes}>{inline(text)}</td>"

    head = "".join(cell(at, text, "col") for at, text in enumerate(of.header))
    lines = (
        "".join(cell(at, text, "row" if at < of.names else "") for at, text in enumerate(row))
        for row in of.rows
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    # The box must be reached by the keyboard too.
    whole = (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(of.label)}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>\n"
    )
    if of.folds and len(of.rows) > blocks.MOST:
        whole = folded(f"{inline(of.label)}: {len(of.rows)} rows", whole)
    return whole + markup([blocks.Paragraph(of.legend, "legend")])


def first_of[T](items: Sequence[T], what: str, write: Callable[[Sequence[T]], str]) -> str:
    """The markup of the first MOST of many items, and of the others behind their number."""
    rest = items[blocks.MOST :]
    more = folded(f"{len(rest)} more {what}", write(rest)) if rest else ""
    return write(items[: blocks.MOST]) + more


def folded(summary: str, content: str, *, is_open: bool = False) -> str:
    """Content behind its summary, both markup; on paper it is always open."""
    return (
        f'<details class="open-in-print"{" open" if is_open else ""}>'
        f"<summary>{summary}</summary><div>{content}</div></details>\n"
    )
