"""Real runs of every kind, judged again: the rows, findings and comparisons stored with them.

LAB_STORED_ANEW=yes writes what differs over what is stored: `git diff` then shows what a changed
rule does.
"""

import os
import shutil
from pathlib import Path

import pytest

from lab.app.derive import derive
from lab.kinds.registry import kinds
from lab.load.engines import ENGINES
from lab.store import csv, manifest
from support.table import read_rows

STORED = Path(__file__).parent / "stored"
DERIVED = ("trials.csv", "findings.json", "comparison.json")


@pytest.mark.parametrize("name", sorted({path.parent.name for path in STORED.glob("*/raw")}))
def test_a_stored_run_is_judged_to_the_same_rows(name: str, tmp_path: Path) -> None:
    run_dir = shutil.copytree(STORED / name, tmp_path / name)
    stored = [path for path in (STORED / name).iterdir() if path.name in DERIVED]
    assert len(stored) >= 2
    for path in stored:
        (run_dir / path.name).unlink()
    derive(run_dir, ENGINES)
    for path in stored:
        judged = (run_dir / path.name).read_text()
        if os.environ.get("LAB_STORED_ANEW") == "yes" and judged != path.read_text():
            path.write_text(judged)
        assert judged == path.read_text()


def test_every_kind_is_among_them_and_invalid_and_interrupted_runs() -> None:
    runs = [path.parent for path in STORED.glob("*/raw")]
    records = [manifest.read(run_dir) for run_dir in runs]
    assert {record.experiment.kind for record in records} == {*kinds()}
    rows = [row for run_dir in runs for row in read_rows(run_dir / csv.NAME)]
    assert {row.valid for row in rows} == {True, False}
    assert {row.arm for row in rows} >= {"a", "b", None}
    assert max(row.launch for row in rows) > 1
    assert "interrupted" in {record.status for record in records}
