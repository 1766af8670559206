"""The verb `truth`: from the raw data of a run on disk to the page."""

import dataclasses
import re
import shutil
from pathlib import Path

import pytest

from lab.campaign.truth import page, parse
from lab.errors import LabError
from lab.experiments.cases import Case
from lab.experiments.planted import Planted, design
from lab.model import AS_IT_IS, Condition, Experiment, Reading, TrialPlan
from lab.store import csv
from support.fakes import FakeEngine, latency, reading
from support.planned import all_of, experiment, planner
from support.runs import write_manifest, write_raw

STORED = Path(__file__).parent / "stored"
PLAIN = Case("plain", "a", "/downstream", 100, ("none",))
DOSE = dataclasses.replace(
    PLAIN, name="some", condition=Condition(knobs={"pool_size": 9}), severity=0.1
)


class Dosed(FakeEngine):
    """What a dose makes slower is a fifth slower."""

    def read(self, plan: TrialPlan, raw: Path) -> Reading:
        rps, ms = (400.0, 250.0) if plan.condition != AS_IT_IS else (500.0, 200.0)
        return reading(rps, corrected=None, raw=latency(ms))


def run_of(of: Experiment, folder: Path, count: int = 0, name: str = "truth") -> Path:
    """A run that was interrupted after so many trials."""
    run_dir = write_manifest(
        folder, f"20260131T120000Z-{name}", experiment=of, status="interrupted"
    )
    write_raw(run_dir, all_of(design(planner(of)))[:count] if count else [])
    return run_dir


def test_every_measured_trial_is_held_against_its_case(tmp_path: Path) -> None:
    (stored,) = (raw.parent.parent for raw in STORED.glob("*-bottlenecks/raw/12-small-pool"))
    run_dir = shutil.copytree(stored, tmp_path / stored.name)
    # The rows of whatever version count for nothing: what was measured is judged again.
    rows = (run_dir / csv.NAME).read_text()
    (run_dir / csv.NAME).write_text(rows.replace("worker pool", "none"))
    said = page(run_dir)
    assert f"Run `{stored.name}` (complete)" in said
    assert "3 planted trials" in said
    for named in ("generator", "worker pool", "event loop"):
        assert re.search(rf"\| {named} +\| +\| closed \| 1 of 1 \|", said), named
    (run_dir / "raw" / "12-small-pool").rename(tmp_path / "elsewhere")
    with pytest.raises(LabError, match="has no raw data of 12-small-pool: it cannot be judged"):
        page(run_dir)


def test_doses_are_judged_from_raw_data_and_paired_by_their_rounds(tmp_path: Path) -> None:
    of = experiment(kind="planted", own=Planted((PLAIN, DOSE)), launches=6, servers=("a",))
    run, doses = (run_of(of, tmp_path, 12, name=name) for name in ("x", "y"))
    folders = parse({"RUN": run.name, "DOSES": doses.name}, tmp_path)
    load = "a, as it is, /downstream with 100 connections"
    said = page(*folders, engines=[Dosed()])
    assert f"| {load} | 10% | 0.800, 1.238 | slower 1× |" in said
    # A round that one arm lost is no pair, and moves no other.
    shutil.rmtree(doses / "raw" / "04-some-r2")
    said = page(*folders, engines=[Dosed()])
    assert f"| {load} | 10% | 0.800, 1.238 | inconclusive 1× |" in said


def test_another_kind_of_run_has_no_such_page(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="is not a run of planted cases"):
        page(run_of(experiment(), tmp_path))


def test_the_run_is_named_by_its_word(tmp_path: Path) -> None:
    run_dir = run_of(experiment(), tmp_path)
    assert parse({"RUN": run_dir.name}, tmp_path) == (run_dir,)
    with pytest.raises(LabError, match="EXP"):
        parse({"EXP": "truth"}, tmp_path)
