"""Real runs of every kind, judged again: the rows and findings that were stored with them."""

import shutil
from pathlib import Path

import pytest

from lab.campaign.density import write_report
from lab.campaign.derive import derive
from lab.load.engines import ENGINES
from lab.store import csv

STORED = Path(__file__).parent / "stored"


def copied(name: str, to: Path) -> Path:
    return shutil.copytree(STORED / name, to / name)


@pytest.mark.parametrize("name", sorted({path.parent.name for path in STORED.glob("*/raw")}))
def test_a_stored_run_is_judged_to_the_same_rows(name: str, tmp_path: Path) -> None:
    run_dir = copied(name, tmp_path)
    for file in ("trials.csv", "findings.json"):
        (run_dir / file).unlink()
    derive(run_dir, ENGINES)
    for file in ("trials.csv", "findings.json"):
        assert (run_dir / file).read_text() == (STORED / name / file).read_text()


def test_invalid_and_interrupted_runs_are_among_them() -> None:
    rows = [row for path in STORED.glob("*/trials.csv") for row in csv.read(path)]
    assert {row.valid for row in rows} == {True, False}
    assert any('"interrupted"' in path.read_text() for path in STORED.glob("*/manifest.json"))


def test_a_stored_density_run_is_read_and_reported(tmp_path: Path) -> None:
    run_dir = copied(next(STORED.glob("*/density.csv")).parent.name, tmp_path)
    assert write_report(run_dir, keep=False)[0]
