"""manifest.json and trials.csv: what is written comes back, and what is none is refused."""

import csv
from pathlib import Path
from typing import Any

import pytest

from lab.errors import LabError, RawDataError
from lab.judge.checks.state import server_gone
from lab.model import Counts, Row
from lab.store import csv as table
from lab.store import manifest
from lab.store.records import read_object, write_json
from support.fakes import START, judged_row, measurement, plan, reading, record, rounded
from support.runs import EXPERIMENT, NAME, write_manifest


def test_a_manifest_comes_back_as_it_was(tmp_path: Path) -> None:
    run_dir = write_manifest(tmp_path)
    read = manifest.read(run_dir)
    assert read.experiment == EXPERIMENT
    assert (read.run, read.started_at, read.status) == (NAME, START, "complete")
    assert read.servers["a"].identity.model == "a"
    manifest.write(tmp_path, read)
    assert (tmp_path / "manifest.json").read_bytes() == (run_dir / "manifest.json").read_bytes()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        *(({"format": value}, "the lab reads format 1 only") for value in (2, None, ...)),
        ({"experiment": {"connections": 8000}}, "is not a run of trials"),
        ({"experiment": None}, "is not a run of trials"),
        ({"experiment": {"concurrencies": [1]}}, "missing required field"),
        ({"status": "asleep"}, "Invalid enum value 'asleep'"),
        ({"colour": "red"}, "no field colour"),
        (None, "is not a run of the lab"),
    ],
)
def test_a_manifest_that_cannot_be_read_says_why(
    tmp_path: Path, changes: dict[str, object] | None, said: str
) -> None:
    """A value of `...` is no field at all, and None no file."""
    path = write_manifest(tmp_path) / "manifest.json"
    fields = {**read_object(path), **(changes or {})}
    write_json(path, {name: value for name, value in fields.items() if value is not ...})
    if changes is None:
        path.unlink()
    with pytest.raises(LabError, match=said) as failure:
        manifest.read(path.parent)
    assert "\n" not in str(failure.value)


QUOTED = 'gone, with "quotes", and; more'


def row(**load: Any) -> Row:
    counts = Counts(None, 999_999, 123, 123_456, None, None, 9)
    return judged_row("run", measurement(record(plan(**load)), reading(counts=counts)))


def test_rows_are_appended_under_one_header_and_read_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "trials.csv"
    gone = record(after=None, after_problem=server_gone.remark(problem=QUOTED))
    closed = measurement(record(plan("closed", launch=3, arm="left")), reading(corrected=None))
    invalid = [judged_row("run", whole) for whole in (measurement(gone), closed)]
    rows = [row(trial="01-a"), row(trial="02-a"), *invalid]
    for each in rows:
        table.append(path, each)
    assert table.read(path) == tuple(map(rounded, rows))
    assert path.read_text() == table.text(rows)
    first, second, *_ = csv.DictReader(path.read_text().splitlines())
    assert (first["trial"], second["trial"]) == ("01-a", "02-a")
    assert (tuple(first), first["sent"]) == (Row.columns(), "")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("run,trial", "run,colour", "colour, trial"),
        (",true,", ",perhaps,", "trials.csv:2"),
        (",450,", ",many,", "trials.csv:2"),
        (",15,,false,,", ",", "trials.csv:2"),
    ],
)
def test_a_table_that_is_not_one_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    path, text = tmp_path / "trials.csv", table.text([judged_row("run", measurement())])
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(RawDataError, match=said):
        table.read(path)
