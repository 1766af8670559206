"""results/index.html and results/runs.csv: every run with its question and answer.

A run's folder may come from somebody else: a part of it that cannot be read costs the run's own row
alone, and no text of it is markup or a formula.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lab.errors import RawDataError
from lab.report import markdown, page, words
from lab.report.blocks import Link, Paragraph, Table
from lab.report.page import html
from lab.report.page.markup import markup
from lab.store import manifest
from lab.store.csv import csv_text
from lab.store.records import MIB, UNREADABLE, read_bytes, read_object, write_text

HTML, CSV = "index.html", "runs.csv"
# In a run's folder: its question in the first line, then the lines of its answer.
ANSWER = "answer.txt"
REPORTS = (page.NAME, markdown.NAME)
# The largest manifests and answers have some 20 kB; a longer text is cut.
MOST_BYTES, MOST_TEXT = 4 * MIB, 2000
_RUN = re.compile(r"\d{8}T\d{6}Z-[A-Za-z0-9-]{1,200}")


class Listed(NamedTuple):
    """A row. `report` is a path from results/, empty for a run without."""

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
    write_text(results / CSV, csv_text([Listed._fields, *rows]))
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
    lines = map(_clean, answer[:MOST_TEXT].splitlines())
    return Listed(
        run=folder.name,
        question=_clean(question),
        answer="; ".join(filter(None, lines)),
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
    title, header = "Concurrency Lab: runs", ("run", "question", "answer", "host")
    cells = []
    for row in rows:
        run = (Link(row.run, row.report),) if row.report else row.run
        cells.append((run, row.question, row.answer, row.host))
    table = Table(header, cells, "Runs", wide=(1, 2, 3))
    none = Paragraph("" if rows else "There is no run yet.")
    return html.page(title, title, "", markup([table, none]))
