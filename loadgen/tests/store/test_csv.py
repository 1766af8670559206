"""trials.csv: whole rows under one header, in cells that no spreadsheet runs."""

import csv
from pathlib import Path
from typing import Any

import pytest

from lab.errors import RawDataError
from lab.judge.checks.state import server_gone
from lab.model import Counts, Row
from lab.store import csv as table
from support.fakes import judged_row, measurement, plan, reading, record, rounded
from support.table import read_rows

QUOTED = 'gone, with "quotes", and; more'


def row(**load: Any) -> Row:
    counts = Counts(None, 999_999, 123, 123_456, None, None, 9)
    return judged_row("run", measurement(record(plan(**load)), reading(counts=counts)))


def test_rows_are_read_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "trials.csv"
    assert table.trials(path) == ()
    gone = record(after=None, after_problem=server_gone.remark(problem=QUOTED))
    closed = measurement(record(plan("closed", launch=3, arm="left")), reading(corrected=None))
    invalid = [judged_row("run", whole) for whole in (measurement(gone), closed)]
    rows = [row(trial="01-a"), row(trial="02-a"), *invalid]
    table.write(path, rows)
    assert read_rows(path) == tuple(map(rounded, rows))
    assert table.trials(path) == tuple(each.trial for each in rows)
    first, *_ = csv.DictReader(path.read_text().splitlines())
    assert (tuple(first), first["sent"], first["accounted_s"]) == (Row.columns(), "", "9.000")


def test_a_cell_without_a_bound_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "trials.csv"
    path.write_text(f"run,trial\nr,{'a' * 200_000}\n")
    with pytest.raises(RawDataError, match=r"trials\.csv: cannot be read: field larger"):
        table.trials(path)


def test_no_cell_is_a_formula() -> None:
    texts = [f"{first}1+cmd" for first in "=+-@\t\r"]
    lines = table.csv_text([texts]).replace('"', "")
    assert lines.rstrip("\n").split(",") == [f"'{text}" for text in texts]
    # Numbers are none.
    numbers = [["-1", "+2.5", "-0.003", "=-1", "-1-1", "-", "'quoted"]]
    assert table.csv_text(numbers) == "-1,+2.5,-0.003,'=-1,'-1-1,'-,'quoted\n"
