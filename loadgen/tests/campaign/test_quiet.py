"""How long trials wait for a quiet machine."""

from collections.abc import Sequence
from io import StringIO

from rich.console import Console

from lab.campaign.quiet import Quiet
from lab.model import TrialPlan
from lab.report.progress import Trials
from support.fakes import plan
from support.system import FakeSystem

# What others do: the share that a thread waits, and that of the CPUs that are busy beside it.
Crowd = tuple[float, float] | None
QUIET: Crowd = (0.09, 0.29)
STOLEN: Crowd = (0.1, 0.0)
BUSY: Crowd = (0.0, 0.3)


class Heard(Trials):
    """The live line, too, is what a user is told."""

    def phase(self, plan: TrialPlan, phase: str) -> None:
        self.say(phase)


def waited(
    crowds: Sequence[Crowd], patience_s: float, trials: int = 1
) -> tuple[float, list[Crowd], str]:
    """How long trials waited in all, the looks that were not taken, and what the user was told."""
    system, text = FakeSystem(), StringIO()
    system.crowds = list(crowds)
    with Heard(Console(file=text, width=200), 0, trials) as progress:
        quiet = Quiet(system, progress, patience_s)
        for _ in range(trials):
            quiet.wait(plan())
    return system.elapsed_s, system.crowds, text.getvalue()


def test_a_trial_waits_until_others_leave_the_cpus() -> None:
    elapsed_s, left, said = waited([BUSY, STOLEN, QUIET, BUSY], 300)
    assert (elapsed_s, left) == (10.0, [BUSY])
    assert "waiting, as others use 30% of the CPUs, at most 300 s" in said
    assert "warning" not in said
    # Without patience nothing is looked at, and what is unknown is not waited for.
    assert waited([BUSY], 0) == (0.0, [BUSY], "")
    assert waited([None], 300) == (0.0, [], "")


def test_the_patience_is_that_of_all_trials_and_its_end_is_said_once() -> None:
    elapsed_s, left, said = waited([STOLEN, QUIET, *[BUSY] * 9], 12, trials=3)
    # A trial waits 5 s, the next one the 7 that are left, which are two pauses.
    assert (elapsed_s, len(left)) == (15.0, 7)
    assert said.count("others use 30% of the CPUs: the run waits no more (PATIENCE)") == 1
