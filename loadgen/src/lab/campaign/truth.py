"""The verb `truth`: the page that counts how often the verdicts of a run are right."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.campaign.derive import judged_again
from lab.errors import LabError
from lab.experiments import planted
from lab.experiments.cases import Case
from lab.experiments.reading import refuse_unknown
from lab.load.engines import ENGINES, Engine
from lab.model import AS_IT_IS, STRONG, Experiment, Row
from lab.report import doses, truth
from lab.store import manifest
from lab.store.run_dir import find_run_dir


def parse(words: Mapping[str, str], results: Path) -> tuple[Path, ...]:
    """The folders of the runs that `truth` is about: of planted cases, and of doses where one is
    given. Raises WordError."""
    refuse_unknown(words, ("RUN", "DOSES"), "truth")
    given = {"RUN": "latest", **words}
    return tuple(
        find_run_dir(results, word, given[word]) for word in ("RUN", "DOSES") if word in given
    )


def page(
    run_dir: Path, doses_dir: Path | None = None, *, engines: Sequence[Engine] = ENGINES
) -> str:
    """docs/truth.md, from the raw data of the runs, which need not be complete: the rules are those
    of this version, as in `compare`. Raises LabError."""
    record, judged = _read(run_dir, engines)
    trials = [
        truth.Planted(
            resource=case.resource or " or ".join(case.expected),
            severity=case.severity,
            mode=case.mode,
            setting=planted.setting(case),
            expected=case.expected,
            row=row,
            strong=row.strength == STRONG,
        )
        for case, row in judged
    ]
    text = truth.text(record, trials)
    if doses_dir is None:
        return text
    record, judged = _read(doses_dir, engines)
    rounds = planted.rounds_of(record.experiment)
    arms = [
        doses.Arm(
            _load(case),
            case.severity or 0.0,
            {rounds[row.trial]: row for of, row in judged if of == case},
        )
        for case in {case.name: case for case, _ in judged}.values()
    ]
    return f"{text}\n{doses.section(record, arms)}"


def _read(
    run_dir: Path, engines: Sequence[Engine]
) -> tuple[manifest.Manifest[Experiment], list[tuple[Case, Row]]]:
    record = manifest.read(run_dir)
    if record.experiment.kind != planted.KIND.name:
        raise LabError(f"{run_dir.name} is not a run of planted cases: `make run EXP=truth`")
    of_trial = planted.of_trials(record.experiment)
    measured, rows = judged_again(run_dir, engines)
    return measured, [(of_trial[row.trial], row) for row in rows if row.trial in of_trial]


def _load(case: Case) -> str:
    """What cases that are compared have in common."""
    plain = dataclasses.replace(case, condition=AS_IT_IS)
    return f"{case.server}, {planted.setting(plain)}"
