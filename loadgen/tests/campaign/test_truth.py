"""The verb `truth`: from the rows of a run on disk to the page."""

from pathlib import Path

import pytest

from lab.campaign.truth import page, parse
from lab.errors import LabError
from lab.experiments.cases import Case
from lab.experiments.planted import Planted, design
from lab.model import Condition, Experiment, Fairness
from lab.store import csv, manifest
from support.planned import all_of, experiment, planner, row
from support.system import START

POOL = Case(
    "pool", "a", "/downstream", 200, ("worker pool",), Condition(knobs={"pool_size": 20}),
    resource="worker pool", severity=2,
)  # fmt: skip
LOCK = Case("lock", "b", "/downstream", 200, ("unknown",), rate=110, resource="a lock (novel)")


def run_of(of: Experiment, folder: Path, *named: str, name: str = "truth") -> Path:
    """A run that was interrupted after so many trials, with these verdicts."""
    run_dir = folder / f"20260131T120000Z-{name}"
    run_dir.mkdir()
    record = manifest.Manifest(
        run_dir.name, "interrupted", START, START, of, {"commit": "abc"}, {}, {}, {},
        Fairness({}, {}, {}),
    )  # fmt: skip
    manifest.write(run_dir, record)
    plans = all_of(design(planner(of))) if named else []
    for plan, name in zip(plans, named, strict=False):
        csv.append(run_dir / csv.NAME, row(plan, bottleneck=name))
    return run_dir


def test_every_measured_trial_is_held_against_its_case(tmp_path: Path) -> None:
    of = experiment(kind="planted", own=Planted((POOL, LOCK)), launches=2)
    said = page(run_of(of, tmp_path, "worker pool", "unknown", "host CPU"))
    assert "Run `20260131T120000Z-truth` (interrupted)" in said
    assert "3 planted trials" in said
    assert "| worker pool | 2 | closed | 1 of 2 | 0 | host CPU 1× |" in said
    assert "| a lock (novel) |  | open | 1 of 1 | 0 |  |" in said
    assert "03-pool-r2 | pool_size=20, /downstream with 200 connections | worker pool" in said


def test_doses_are_a_part_of_it(tmp_path: Path) -> None:
    plain = Case("plain", "a", "/downstream", 200, ("none",))
    some = Case(
        "some", "a", "/downstream", 200, ("none",), Condition(knobs={"pool_size": 9}), severity=0.1
    )
    of = experiment(kind="planted", own=Planted((plain, some)), launches=6)
    run, doses = (run_of(of, tmp_path, *["none"] * 12, name=name) for name in ("x", "y"))
    said = page(*parse({"RUN": run.name, "DOSES": doses.name}, tmp_path))
    # These rows have no rates.
    load = "a, as it is, /downstream with 200 connections"
    assert f"| {load} | 10% | –, – | inconclusive 1× |" in said


def test_another_kind_of_run_has_no_such_page(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="is not a run of planted cases"):
        page(run_of(experiment(), tmp_path))


def test_the_run_is_named_by_its_word(tmp_path: Path) -> None:
    run_dir = run_of(experiment(), tmp_path)
    assert parse({"RUN": run_dir.name}, tmp_path) == (run_dir,)
    with pytest.raises(LabError, match="EXP"):
        parse({"EXP": "truth"}, tmp_path)
