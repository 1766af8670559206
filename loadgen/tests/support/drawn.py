"""What a report draws of a trial, without a lab: series of its window."""

from pathlib import Path

from lab.model import Reading, Series, TrialPlan
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
    """An engine whose every open trial has corrected latencies."""

    def read(self, plan: TrialPlan, raw: Path) -> Reading:
        said = super().read(plan, raw)
        corrected = latency() if plan.mode == "open" else None
        return reading(achieved_rps=said.achieved_rps, corrected=corrected)
