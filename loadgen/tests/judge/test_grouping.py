"""Rows in groups: a value per launch."""

import copy
from collections.abc import Sequence
from operator import attrgetter

import pytest

from lab.judge.grouping import most_errors, per_launch, per_round
from support.sides import row, rows


@pytest.mark.parametrize(
    ("trials", "values"),
    [
        # Trials of one JVM count once with their median; launches of pooled runs are told apart,
        # but not JVMs that ran already.
        ([("x", 1, 1.0), ("x", 1, 2), ("x", 1, 9), ("x", 2, 5.0)], (2.0, 5.0)),
        ([("x", 1, 1.0), ("y", 1, 1.0)], (1.0, 1.0)),
        ([("x", 0, 1.0), ("y", 0, 1.0)], (1.0,)),
    ],
)
def test_a_launch_counts_once(
    trials: list[tuple[str, int, float]], values: Sequence[float]
) -> None:
    measured = [row(run=run, launch=launch, achieved_rps=rps) for run, launch, rps in trials]
    assert per_launch(measured, attrgetter("achieved_rps")) == values
    # Several JVMs in a round count with their median.
    jvms = [row(arm=arm, achieved_rps=rps, launch=1) for arm, rps in (("x", 90.0), ("y", 110.0))]
    assert per_round(jvms, attrgetter("achieved_rps")) == {("run", 1): 100.0}


def test_the_largest_share_of_errors_is_of_a_valid_trial() -> None:
    # One launch is enough, and an invalid one does not count.
    some = rows(achieved_rps=500.0, ok=1000)
    some[3] = copy.replace(some[3], http_errors=1000)
    assert most_errors(some) == 0.5
    some[3] = copy.replace(some[3], valid=False)
    assert most_errors(some) == most_errors([]) == 0
