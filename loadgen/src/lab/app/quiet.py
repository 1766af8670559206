"""Waits before a trial until others leave the machine's CPUs to the lab, as long as the run may."""

from __future__ import annotations

from dataclasses import dataclass

from lab.model import TrialPlan
from lab.report.progress import Trials
from lab.system.host import System

# The length of a look at how crowded the CPUs are, and the pause between two.
LOOK_S, PAUSE_S = 0.5, 5.0
# From these shares on the machine is not quiet: of its time that a thread waits for a CPU, and of
# the CPUs that are busy beside it. The idle lab itself kept 0.08 of two CPUs busy, in one look of
# 5 s. While other machines took 0.09 to 0.32 of two CPUs, five of seven trials of a pool near its
# capacity were invalid: requests that wait drain slowly there.
WAITED, BESIDE = 0.1, 0.3


@dataclass(slots=True)
class Quiet:
    """Waits, in all the trials of a run, at most `patience_s` seconds."""

    system: System
    progress: Trials
    patience_s: float

    def wait(self, plan: TrialPlan) -> None:
        """Wait before this trial. When the patience of the run has ended it says so once, and no
        trial waits any more: the checks judge it. Raises Interrupted."""
        while self.patience_s > 0:
            began_s = self.system.monotonic()
            crowd = self.system.crowd(LOOK_S)
            if crowd is None or (crowd[0] < WAITED and crowd[1] < BESIDE):
                return
            others = f"others use {max(crowd):.0%} of the CPUs"
            self.progress.phase(plan, f"waiting, as {others}, at most {self.patience_s:.0f} s")
            self.system.sleep(PAUSE_S)
            self.patience_s -= self.system.monotonic() - began_s
            if self.patience_s <= 0:
                self.progress.warn(f"{others}: the run waits no more (PATIENCE)")
