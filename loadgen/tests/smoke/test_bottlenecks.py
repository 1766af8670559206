"""What was planted on a real lab is named by the verdict; no wrong name has strong evidence."""

from lab.experiments.cases import Case
from lab.experiments.kind import settings_of
from lab.experiments.planted import Planted, right, wrong_and_sure
from lab.model import Experiment, Row
from lab.store import manifest
from lab.store.records import read_rows
from support.stored import run_of

# Of 18: a small machine that is busy may hide two of them, no more.
LEAST_RIGHT = 16


def judged() -> list[tuple[Case, Row]]:
    run = run_of("bottlenecks")
    experiment = manifest.read(run).experiment
    assert isinstance(experiment, Experiment)
    rows = read_rows(run / "trials.csv", Row)
    cases = settings_of(Planted, experiment).cases
    assert [row.trial.partition("-")[2] for row in rows] == [case.name for case in cases]
    return list(zip(cases, rows, strict=True))


def test_no_wrong_name_is_given_with_strong_evidence() -> None:
    wrong = [
        (case.name, row.bottleneck, row.strength)
        for case, row in judged()
        if wrong_and_sure(case, row)
    ]
    assert wrong == []


def test_nearly_all_are_named_right() -> None:
    wrong = [(case.name, row.bottleneck) for case, row in judged() if not right(case, row)]
    assert len(wrong) <= len(judged()) - LEAST_RIGHT, wrong
