"""The peaks of a spike: the engine runs once more, at planned instants beside the trial's load.

A process of its own, and no profile of the trial's load: the connections of a peak are others. They
come all at once, and leave with what they wait for, while recovery is read from those of the calm.
"""

import copy
from pathlib import Path

from lab.load.bench import EngineRun, closed_load
from lab.load.engines.base import Engine, peak_folder
from lab.model import Peak, Spike, TrialPlan
from lab.system.host import System


class Peaks:
    """Starts and ends the peaks of `plan.spike`. Does nothing without one.

    `opens_s` is the start of the window, in seconds since the measured run began. From there on
    follow calm, peak, calm, peak, …, calm. Each peak is ended from outside, so no engine counts or
    writes anything while the server recovers. For one thread; call `stop` at the end in any case.
    """

    def __init__(
        self, plan: TrialPlan, opens_s: float, engine: Engine, system: System, raw: Path
    ) -> None:
        self._plan = plan
        self._engine = engine
        self._system = system
        self._raw = raw
        self._due: list[tuple[float, Spike]] = []
        if plan.spike is not None:
            calm_s, peak_s = plan.spike.calm_s, plan.spike.peak_s
            starts_s = range(calm_s, plan.spike.total_s - calm_s, calm_s + peak_s)
            self._due = [(opens_s + at_s, plan.spike) for at_s in starts_s]
        self._run: EngineRun | None = None
        self._started_s = 0.0
        self._done: list[Peak] = []

    @property
    def done(self) -> tuple[Peak, ...]:
        """The peaks that are over, with what their engine shows. Call it when the load is over."""
        numbered = enumerate(self._done, 1)
        return tuple(self._engine.peak(self._raw, number, peak) for number, peak in numbered)

    def tick(self, elapsed_s: float) -> None:
        """Start or end the peak that is due `elapsed_s` after the measured run began. Raises
        EngineError if the engine cannot be started."""
        if not self._due:
            return
        starts_s, spike = self._due[0]
        if self._run is None:
            if elapsed_s >= starts_s:
                self._run = self._start(spike, len(self._done) + 1)
                self._started_s = elapsed_s
        elif elapsed_s >= starts_s + spike.peak_s or self._run.ended:
            self._run.stop()
            self._run = None
            self._done.append(Peak(round(self._started_s, 3), round(elapsed_s, 3)))
            self._due.pop(0)

    def stop(self) -> None:
        """End the peak that is on, if any, and start no other."""
        self._due = []
        if self._run is not None:
            self._run.stop()
            self._run = None

    def _start(self, spike: Spike, number: int) -> EngineRun:
        folder = peak_folder(self._raw, number)
        folder.mkdir()
        # Longer than it may run.
        plan = closed_load(self._plan, spike.extra, 2 * spike.peak_s + 10)
        if spike.extra_rps is not None:
            arrivals = self._plan.arrivals
            plan = copy.replace(plan, mode="open", offered_rps=spike.extra_rps, arrivals=arrivals)
        # Random arrivals of its own: the same in each peak would be one draw, told three times.
        plan = copy.replace(plan, warmup_s=0, draw=plan.draw + number)
        return EngineRun(self._system, self._engine.schedule(plan, folder), folder)
