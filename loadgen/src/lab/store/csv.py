"""trials.csv: one row per trial, written as soon as the trial is measured.

An empty cell means that the engine cannot tell. Times are UTC with milliseconds.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import get_args, get_type_hints

from lab.model import Row
from lab.store.records import UNREADABLE, damaged, read_bytes, sync, time_text, writing

NAME = "trials.csv"
_FLOATS = frozenset(n for n, hint in get_type_hints(Row).items() if float in get_args(hint))
# How a spreadsheet's formula begins; a number is none.
_FORMULA = re.compile(r"(?![-+]?\d+(\.\d+)?\Z)[-=+@\t\r]")


def append(path: Path, row: Row) -> None:
    """Add a row (to a new file: the header too), flushed to disk: all of it or nothing. Raises
    CannotWrite."""
    with writing(path):
        number = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            length = os.fstat(number).st_size
            left = (csv_text([_cells(row)]) if length else text([row])).encode()
            try:
                while left:  # A disk that is almost full takes a part.
                    left = left[os.write(number, left) :]
                os.fsync(number)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(number, length)
                raise
        finally:
            os.close(number)
        if not length:
            sync(path.parent)


def text(rows: Sequence[Row]) -> str:
    """The whole file, with the same bytes as rows appended one by one."""
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
        content = read_bytes(path)
        # Of a row that a power cut left torn nobody knows the name.
        whole = content[: content.rstrip(b"\0").rfind(b"\n") + 1]
        rows = csv.DictReader(io.StringIO(whole.decode(errors="replace"), newline=""))
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
