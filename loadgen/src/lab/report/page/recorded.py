"""What was recorded of each server, as a part of the page."""

from __future__ import annotations

from collections.abc import Sequence

from lab.report import recorded as texts
from lab.report.page.markup import bullets, folded, inline, table
from lab.report.recorded import Recorded


def recorded(of: Sequence[Recorded]) -> str:
    """Every recorded trial with its hottest methods and its flame graph; nothing without any."""
    if not of:
        return ""
    said = f'<p class="legend">{inline(texts.LEGEND)}</p>'
    return f"<h3>Recorded</h3>{''.join(map(_recorded, of))}{said}"


def _recorded(of: Recorded) -> str:
    parts = [f"<p><strong>{inline(of.load)}</strong></p>", bullets(texts.lines(of))]
    if of.recording is not None:
        parts.append(f'<p><a href="{inline(of.link)}">Flame graph</a></p>')
        rows = texts.table(of.recording)
        if rows:
            whole = table(f"Methods of {of.row.trial}", texts.HEADER, rows, wide=(0,))
            parts.append(folded(f"{len(rows)} methods", whole, is_open=True))
    return "".join(parts)
