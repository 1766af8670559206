"""density.csv: one row per launch, written as soon as the launch is measured."""

from __future__ import annotations

from pathlib import Path

from lab.model.density import Row
from lab.store.records import append_row, cell, read_rows

NAME = "density.csv"


def append(path: Path, row: Row) -> None:
    """Add one row (to a new file: the header too) in one write, flushed to disk."""
    append_row(path, Row.columns(), [cell(getattr(row, name), 1) for name in Row.columns()])


def read(path: Path) -> tuple[Row, ...]:
    """The rows of a file; none where there is no file. Raises RawDataError."""
    return read_rows(path, Row, later=("made_of",)) if path.exists() else ()
