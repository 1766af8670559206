"""trials.csv: one row per trial, written anew as soon as a trial is measured.

An empty cell means that the engine cannot tell. Times are UTC with milliseconds.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import get_args, get_type_hints

from lab.model import Row
from lab.store.records import UNREADABLE, damaged, read_bytes, time_text, write_text

NAME = "trials.csv"
_FLOATS = frozenset(n for n, hint in get_type_hints(Row).items() if float in get_args(hint))
# How a spreadsheet's formula begins; a number is none.
_FORMULA = re.compile(r"(?![-+]?\d+(\.\d+)?\Z)[-=+@\t\r]")


def write(path: Path, rows: Sequence[Row]) -> None:
    """Raises CannotWrite."""
    write_text(path, text(rows))


def text(rows: Sequence[Row]) -> str:
    return csv_text([Row.columns(), *map(_cells, rows)])


def csv_text(rows: Iterable[Sequence[str]]) -> str:
    """Rows of cells as CSV lines. A text that a spreadsheet would take for a formula begins with a
    quote."""
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows(
        [f"'{cell}" if _FORMULA.match(cell) else cell for cell in row] for row in rows
    )
    return lines.getvalue()


def trials(path: Path) -> tuple[str, ...]:
    """The names of the trials in a file; none without a file. Raises RawDataError."""
    if not path.is_file():
        return ()
    try:
        content = read_bytes(path).decode(errors="replace")
        rows = csv.DictReader(io.StringIO(content, newline=""))
        return tuple(row["trial"] for row in rows if row.get("trial"))
    except (*UNREADABLE, csv.Error) as failure:
        raise damaged(path, failure) from None


def _cells(row: Row) -> list[str]:
    return [_cell(name, getattr(row, name)) for name in Row.columns()]


def _cell(column: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return time_text(value)
    # A whole number in a column of floats has decimals too.
    if isinstance(value, float) or (column in _FLOATS and isinstance(value, int)):
        return f"{value:.3f}"
    return str(value)
