"""Small pieces of HTML. Every text is escaped; markup is what these functions return."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

# More rows, items or figures than these are too many to read before anything else.
MOST = 12


def prose(text: str) -> str:
    """Text as written in an experiment's file: paragraphs apart by empty lines, `code`."""
    paragraphs = re.split(r"\n\s*\n", text.strip())
    return "".join(f"<p>{inline(' '.join(one.split()))}</p>" for one in paragraphs if one)


def inline(text: str) -> str:
    """Text in which `code` is marked so."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def bullets(lines: Iterable[str]) -> str:
    """A list of texts; nothing without any."""
    items = "".join(f"<li>{inline(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def facts(pairs: Iterable[tuple[str, str | None]]) -> str:
    """Names and their values; those without a value are left out."""
    items = [f"<dt>{inline(name)}</dt><dd>{inline(value)}</dd>" for name, value in pairs if value]
    return f'<dl class="facts">{"".join(items)}</dl>' if items else ""


def table(
    label: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    names: int = 1,
    wide: Sequence[int] = (),
    marks: Mapping[str, str] | None = None,
) -> str:
    """A table in a box of its own, which scrolls where it is wider than the page.

    The first `names` columns are headers of their rows; columns whose cells begin like numbers
    are set right; those in `wide` may break their lines. `marks` are classes of whole texts.
    """
    body = [list(row) for row in rows]

    def kind(at: int) -> str:
        if at < names or at in wide:
            return "w" if at in wide else ""
        cells = [row[at] for row in body]
        figures = all(re.match(r"[\d–.\[-]|$|no interval|no valid trial", cell) for cell in cells)
        return "n" if any(cells) and figures else ""

    kinds = [kind(at) for at in range(len(header))]

    def cell(at: int, text: str, scope: str) -> str:
        classes = " ".join(filter(None, (kinds[at], (marks or {}).get(text))))
        tag, scoped = ("th", f' scope="{scope}"') if scope else ("td", "")
        named = f' class="{classes}"' if classes else ""
        return f"<{tag}{scoped}{named}>{inline(text)}</{tag}>"

    head = "".join(cell(at, text, "col") for at, text in enumerate(header))
    lines = [
        "".join(cell(at, text, "row" if at < names else "") for at, text in enumerate(row))
        for row in body
    ]
    # A box that scrolls must be reached by the keyboard too.
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(label)}"><table>'
        f"<thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(f'<tr>{line}</tr>' for line in lines)}</tbody></table></div>\n"
    )


def long_table(
    label: str, header: Sequence[str], rows: Sequence[Sequence[str]], *, names: int = 1
) -> str:
    """A table, behind its label where it has more than MOST rows."""
    whole = table(label, header, rows, names=names)
    return whole if len(rows) <= MOST else folded(f"{inline(label)}: {len(rows)} rows", whole)


def first_of[T](items: Sequence[T], what: str, markup: Callable[[Sequence[T]], str]) -> str:
    """The markup of the first MOST of many items, and of the others behind their number."""
    rest = items[MOST:]
    more = folded(f"{len(rest)} more {what}", markup(rest)) if rest else ""
    return markup(items[:MOST]) + more


def folded(summary: str, content: str, *, is_open: bool = False) -> str:
    """Content behind its summary, both markup; on paper it is always open."""
    return (
        f'<details class="open-in-print"{" open" if is_open else ""}>'
        f"<summary>{summary}</summary><div>{content}</div></details>\n"
    )
