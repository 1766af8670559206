"""What a report draws of a trial, without a lab: series of its window, and curves."""

from pathlib import Path

from lab.model import Curve, Curves, Reading, Series, TrialPlan
from lab.store import series
from support.fakes import latency, observation, reading
from support.runs import Jittery


def answered(raw: Path) -> None:
    """Puts series of two of the twelve figures into a trial's raw folder."""
    seen = observation()
    times = tuple(seen.window[0] + at for at in range(16))
    waiting = (
        Series({"__name__": name, "server": "a"}, times, tuple(float(at % 3) for at in range(16)))
        for name in ("lab_kernel_accept_queue_length", "lab_worker_pool_queue_depth")
    )
    series.write(raw, seen.window, "2.53", [], [*seen.all, *waiting])


class Drawing(Jittery):
    """An engine whose every trial has curves too."""

    def read(self, plan: TrialPlan, raw: Path) -> Reading:
        said = super().read(plan, raw)
        corrected = latency() if plan.mode == "open" else None
        return reading(achieved_rps=said.achieved_rps, corrected=corrected)

    def curves(self, plan: TrialPlan, raw: Path) -> Curves:
        curve = Curve(6750, ((0.0, 200.0), (0.5, 201.0), (0.99, 220.0), (0.998, 230.0)))
        return Curves(curve if plan.mode == "open" else None, curve)
