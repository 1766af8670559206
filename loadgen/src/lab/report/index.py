"""results/index.html and results/runs.csv: every run with its question and answer.

A run's folder may come from somebody else: a part of it that cannot be read costs the run's own row
alone, and no text of it is markup or a formula.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from html import escape
from pathlib import Path
from typing import Any

from lab.errors import RawDataError
from lab.report import markdown, page, words
from lab.report.page.html import head, style
from lab.store import manifest
from lab.store.records import MIB, UNREADABLE, csv_text, read_bytes, read_object, write_text

HTML, CSV = "index.html", "runs.csv"
# In a run's folder: its question in the first line, then the lines of its answer.
ANSWER = "answer.txt"
HEADER = ("run", "question", "answer", "report", "host")
REPORTS = (page.NAME, markdown.NAME)
# The largest manifests and answers have some 20 kB; a longer text is cut.
MOST_BYTES, MOST_TEXT = 4 * MIB, 2000
NO_SCRIPT = ""
_RUN = re.compile(r"\d{8}T\d{6}Z-[A-Za-z0-9-]{1,200}")


@dataclass(frozen=True, slots=True)
class Listed:
    """A row, in the order of HEADER. `answer` has a line for each server, `report` is a path from
    results/, empty for a run without one."""

    run: str
    question: str
    answer: str
    report: str
    host: str


def answer_text(question: str, lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in (" ".join(question.split()), *lines))


def write(results: Path) -> None:
    """List all runs, the newest first. Raises CannotWrite."""
    rows = [_row(folder) for folder in sorted(_folders(results), reverse=True)]
    cells = ([cell.replace("\n", "; ") for cell in astuple(row)] for row in rows)
    write_text(results / CSV, csv_text([HEADER, *cells]))
    write_text(results / HTML, _page(rows))


def _folders(results: Path) -> Iterator[Path]:
    for path in results.iterdir():
        if _RUN.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            yield path


def _row(folder: Path) -> Listed:
    question = answer = report = host = ""
    try:
        report = next((name for name in REPORTS if _is_own(folder / name)), "")
        record = _object(read_object(_own(folder / manifest.NAME), MOST_BYTES))
        host = words.host(_object(record.get("host")))
        question = str(_object(record.get("experiment")).get("question", ""))
        status = record.get("status", "unknown")
        if _is_own(folder / ANSWER):
            text = read_bytes(folder / ANSWER, MOST_BYTES).decode(errors="replace")
            question, _, answer = text.partition("\n")
        if status != "complete":
            answer = f"the run is {status}, not complete\n{answer}"
    except RawDataError as failure:
        answer = f"cannot be read: {failure.said}"
    except UNREADABLE as failure:
        answer = f"cannot be read: {getattr(failure, 'strerror', None) or failure}"
    return Listed(
        run=folder.name,
        question=_clean(question),
        answer="\n".join(filter(None, map(_clean, answer[:MOST_TEXT].splitlines()))),
        report=f"{folder.name}/{report}" if report else "",
        host=_clean(host),
    )


def _object(value: object) -> dict[str, Any]:
    """The JSON object, or an empty one if it is none."""
    return value if isinstance(value, dict) else {}


def _is_own(path: Path) -> bool:
    """True if the run's folder itself has this file: a link leads elsewhere."""
    return path.is_file() and not path.is_symlink()


def _own(path: Path) -> Path:
    if not _is_own(path):
        raise RawDataError(path, None, "is no file of the run's folder")
    return path


def _clean(text: str) -> str:
    shown = "".join(char if char.isprintable() else " " for char in text[:MOST_TEXT])
    return " ".join(shown.split())


def _page(rows: Sequence[Listed]) -> str:
    title = "Concurrency Lab: runs"
    heads = "".join(f'<th scope="col">{name}</th>' for name in HEADER if name != "report")
    lines = "".join(f"<tr>{''.join(_cells(row))}</tr>\n" for row in rows)
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>\n{lines}</tbody></table>"
    box = f'<div class="scroll" role="region" tabindex="0" aria-label="Runs">{table}</div>'
    return (
        f"{head(title, style(), NO_SCRIPT)}<body>\n<header><h1>{title}</h1></header>\n"
        f"<main>{box if rows else '<p>There is no run yet.</p>'}</main>\n</body>\n</html>\n"
    )


def _cells(row: Listed) -> Iterator[str]:
    name = escape(row.run)
    link = f'<a href="{escape(row.report)}">{name}</a>' if row.report else name
    yield f'<th scope="row">{link}</th>'
    for text in (row.question, row.answer, row.host):
        yield f'<td class="w">{escape(text).replace(chr(10), "<br>")}</td>'
