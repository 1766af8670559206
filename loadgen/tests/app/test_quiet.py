"""How long trials wait for a quiet machine."""

from collections.abc import Sequence
from io import StringIO

import pytest
from rich.console import Console

from lab.app.quiet import Quiet
from lab.report.progress import Trials
from support.fakes import plan
from support.system import FakeSystem

# What others do: the share that a thread waits, and that of the CPUs that are busy beside it.
Crowd = tuple[float, float] | None
QUIET, STOLEN, BUSY = (0.09, 0.29), (0.1, 0.0), (0.0, 0.3)


@pytest.mark.parametrize(
    ("crowds", "patience_s", "trials", "waited_s", "looks_left", "warnings"),
    [
        ([BUSY, STOLEN, QUIET, BUSY], 300, 1, 10.0, 1, 0),
        # Without patience nothing is looked at, and what is unknown is not waited for.
        ([BUSY], 0, 1, 0.0, 1, 0),
        ([None], 300, 1, 0.0, 0, 0),
        # A trial waits 5 s, the next one the 7 that are left, which are two pauses; then none.
        ([STOLEN, QUIET, *[BUSY] * 9], 12, 3, 15.0, 7, 1),
    ],
)
def test_trials_wait_until_others_leave_the_cpus_or_the_patience_of_all_has_ended(
    crowds: Sequence[Crowd],
    patience_s: float,
    trials: int,
    waited_s: float,
    looks_left: int,
    warnings: int,
) -> None:
    system, text = FakeSystem(), StringIO()
    system.crowds = list(crowds)
    with Trials(Console(file=text, width=200), 0, trials) as progress:
        quiet = Quiet(system, progress, patience_s)
        for _ in range(trials):
            quiet.wait(plan())
    assert (system.elapsed_s, len(system.crowds)) == (waited_s, looks_left)
    assert text.getvalue().count("warning: ") == warnings
