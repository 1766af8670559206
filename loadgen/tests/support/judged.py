"""Lines of a table of judgements: a trial, and its only reason or its notes."""

from typing import Any

import pytest
from _pytest.mark import ParameterSet

from lab.judge.checks import judge
from lab.model import Observation, Reading, TrialRecord
from support.fakes import cells, measurement, observation

# A trial, and how its reason begins, or its notes begin.
Line = tuple[TrialRecord | None, Reading | None, Observation | None, bool, tuple[str, ...]]


def bad(
    reason: str,
    of: TrialRecord | None = None,
    said: Reading | None = None,
    seen: Observation | None = None,
) -> ParameterSet:
    """Invalid, and for nothing else."""
    return pytest.param((of, said, seen, False, (reason,)), id=reason)


def ok(
    *notes: str,
    of: TrialRecord | None = None,
    said: Reading | None = None,
    seen: Observation | None = None,
) -> ParameterSet:
    """Valid, with these notes and no others."""
    return pytest.param((of, said, seen, True, notes), id="; ".join(notes) or "no notes")


def table(*lines: ParameterSet) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("line", lines)


def check(line: Any) -> None:
    of, said, seen, is_valid, expected = line
    judgement = judge(measurement(of, said), seen or observation())
    found = cells(judgement.notes if is_valid else judgement.reasons)
    assert judgement.valid == is_valid, judgement
    assert len(found) == len(expected), judgement
    assert all(map(str.startswith, found, expected)), judgement
