"""trials.csv read back, strictly: the lab itself reads no more of it than the trials' names."""

import csv
from pathlib import Path
from typing import get_args, get_type_hints

import msgspec

from lab.model import Row

_OPTIONAL = {name for name, hint in get_type_hints(Row).items() if type(None) in get_args(hint)}


def read_rows(path: Path) -> tuple[Row, ...]:
    with path.open(newline="") as file:
        rows = [*csv.DictReader(file, strict=True)]
    for row in rows:
        assert tuple(row) == Row.columns()
    return tuple(msgspec.convert(_values(row), Row, strict=False) for row in rows)


def _values(cells: dict[str, str]) -> dict[str, str | None]:
    return {name: None if name in _OPTIONAL and not text else text for name, text in cells.items()}
