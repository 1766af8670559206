"""The verb `truth`: the page that counts how often the verdicts of a run are right."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lab.errors import LabError
from lab.experiments import planted
from lab.experiments.reading import refuse_unknown
from lab.model import HIGH
from lab.report import truth
from lab.store import csv, manifest
from lab.store.run_dir import find_run_dir


def parse(words: Mapping[str, str], results: Path) -> Path:
    """The folder of the run that `truth` is about. Raises WordError."""
    refuse_unknown(words, ("RUN",), "truth")
    return find_run_dir(results, "RUN", words.get("RUN", "latest"))


def page(run_dir: Path) -> str:
    """docs/truth.md, from the rows of the run, which need not be complete. Raises LabError."""
    record = manifest.read(run_dir)
    if record.experiment.kind != planted.KIND.name:
        raise LabError(f"{run_dir.name} is not a run of planted cases: `make run EXP=truth`")
    of_trial = planted.of_trials(record.experiment)
    trials = [
        truth.Planted(
            resource=case.resource or " or ".join(case.expected),
            severity=case.severity,
            mode=case.mode,
            setting=planted.setting(case),
            expected=case.expected,
            row=row,
            strong=(row.confidence or 0.0) >= HIGH,
        )
        for row in csv.read(run_dir / csv.NAME)
        if (case := of_trial.get(row.trial)) is not None
    ]
    return truth.text(record, trials)
