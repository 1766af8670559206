"""Lines of a table of judgements: a trial, and its only reason or its notes."""

from typing import Any

import pytest
from _pytest.mark import ParameterSet

from lab.judge.checks import judge
from lab.judge.trial import Trial
from lab.model import Observation, Reading, TrialRecord
from support.fakes import cells, measurement, observation

# A trial, and how its reason begins, or its notes begin.
Line = tuple[TrialRecord | None, Reading | None, Observation | None, bool, tuple[str, ...]]


def bad(
    reason: str,
    record: TrialRecord | None = None,
    reading: Reading | None = None,
    seen: Observation | None = None,
) -> ParameterSet:
    """Invalid, and for nothing else."""
    return pytest.param((record, reading, seen, False, (reason,)), id=reason)


def ok(
    *notes: str,
    record: TrialRecord | None = None,
    reading: Reading | None = None,
    seen: Observation | None = None,
) -> ParameterSet:
    """Valid, with these notes and no others."""
    return pytest.param((record, reading, seen, True, notes), id="; ".join(notes) or "no notes")


def table(*lines: ParameterSet) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("line", lines)


def check(line: Any) -> None:
    record, reading, seen, is_valid, expected = line
    judgement = judge(Trial(measurement(record, reading), seen or observation()))
    remarks = cells(judgement.notes if is_valid else judgement.reasons)
    assert judgement.valid == is_valid, judgement
    assert len(remarks) == len(expected), judgement
    assert all(map(str.startswith, remarks, expected)), judgement
