"""trials.csv: one row per trial, written as soon as the trial is measured.

An empty cell means that the engine cannot tell. Times are UTC with milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from csv import DictReader, Error
from io import StringIO
from pathlib import Path
from typing import get_args, get_type_hints

from lab.errors import RawDataError
from lab.model import Row
from lab.store.records import append_row, cell, csv_text, read_rows, whole_rows

NAME = "trials.csv"
_FLOATS = frozenset(n for n, hint in get_type_hints(Row).items() if float in get_args(hint))


def append(path: Path, row: Row) -> None:
    """Add one row (to a new file: the header too) in one write, flushed to disk."""
    append_row(path, Row.columns(), _cells(row))


def text(rows: Sequence[Row]) -> str:
    """The whole file, with the same bytes as rows appended one by one."""
    return csv_text([Row.columns(), *map(_cells, rows)])


def read(path: Path) -> tuple[Row, ...]:
    """The rows of a file. Raises RawDataError."""
    return read_rows(path, Row)


def trials(path: Path) -> tuple[str, ...]:
    """The names of the trials in a file; none without a file. Raises RawDataError."""
    if not path.is_file():
        return ()
    # Of a row that a power cut left torn nobody knows the name.
    whole, _ = whole_rows(path)
    rows = DictReader(StringIO(whole.decode(errors="replace"), newline=""))
    try:
        return tuple(row["trial"] for row in rows if row.get("trial"))
    except Error as failure:
        raise RawDataError(path, rows.line_num, f"is not CSV: {failure}") from None


def _cells(row: Row) -> list[str]:
    return [_cell(name, getattr(row, name)) for name in Row.columns()]


def _cell(column: str, value: object) -> str:
    # A whole number in a column of floats has decimals too.
    if column in _FLOATS and isinstance(value, int | float):
        return cell(float(value), 3)
    return cell(value, 3)
