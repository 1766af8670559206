"""trials.csv: whole rows under one header, in cells that no spreadsheet runs."""

import copy
import csv
import io
import operator
import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.errors import RawDataError
from lab.model import Row
from lab.store import csv as table
from support.fakes import rounded
from support.table import read_rows

FORMULA = re.compile(r"[-=+@\t\r]")
NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?")
SIGNS = st.sampled_from(["", *"=+-@\t\r"])
TEXTS = st.builds(
    operator.add, SIGNS, st.text(st.sampled_from("-\n\r'\",. 12") | st.characters(codec="utf-8"))
)
COUNTS = st.integers(-(2**53), 2**53)
CELLS = {
    str: TEXTS,
    int: COUNTS,
    bool: st.booleans(),
    float: st.floats(-1e12, 1e12) | COUNTS,
    datetime: st.datetimes(timezones=st.just(UTC)).map(
        lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)
    ),
    type(None): st.none(),
}
HINTS = get_type_hints(Row)
ROWS = st.fixed_dictionaries(
    {
        name: st.one_of([CELLS[kind] for kind in get_args(hint) or (hint,)])
        for name, hint in HINTS.items()
    }
).map(lambda cells: Row(**cells))


def kept(text: str) -> str:
    """A text as a cell has it: with a quote before a formula."""
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


@given(st.lists(TEXTS, min_size=1))
def test_no_cell_is_a_formula(texts: list[str]) -> None:
    (cells,) = csv.reader(io.StringIO(table.csv_text([texts]), newline=""), strict=True)
    assert cells == [*map(kept, texts)]


@settings(max_examples=40)
@given(st.lists(ROWS, max_size=3))
def test_rows_are_read_back_as_they_were(rows: list[Row]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trials.csv"
        assert table.trials(path) == ()
        table.write(path, rows)
        assert read_rows(path) == tuple(map(as_kept, rows))
        assert table.trials(path) == tuple(kept(row.trial) for row in rows if row.trial)
        with path.open(newline="") as file:
            cells = [*csv.DictReader(file)]
    # Also a whole number in a column of floats.
    floats = [row[name] for row in cells for name, hint in HINTS.items() if float in get_args(hint)]
    assert all(re.fullmatch(r"|-?[0-9]+\.[0-9]{3}", cell) for cell in floats)


def as_kept(row: Row) -> Row:
    texts = {name: cell for name in HINTS if isinstance(cell := getattr(row, name), str)}
    # An empty cell of a column that may be empty says nothing.
    known = {
        name: kept(text) if text or HINTS[name] is str else None for name, text in texts.items()
    }
    return copy.replace(rounded(row), **known)


def test_a_cell_without_a_bound_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "trials.csv"
    path.write_text(f"run,trial\nr,{'a' * 200_000}\n")
    with pytest.raises(RawDataError, match=r"trials\.csv: cannot be read: field larger"):
        table.trials(path)
