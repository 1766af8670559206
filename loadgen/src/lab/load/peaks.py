"""The peaks of a spike: the engine runs once more, at planned instants beside the trial's load.

A process of its own, and no profile of the trial's load: the connections of a peak are others. They
come all at once, and leave with what they wait for, while recovery is read from those of the calm.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from lab.load.engine_run import EngineRun
from lab.load.engines.base import Engine
from lab.load.engines.pacer import peak_folder, peak_told
from lab.model import Peak, TrialPlan
from lab.system.host import System


class Peaks:
    """Starts and ends the peaks of `plan.spike`. Does nothing where the plan has no spike.

    `opens_s` is the start of the window, in seconds since the measured run began. From there on
    follow calm, peak, calm, peak, …, calm. Each peak is ended from outside, so no engine counts or
    writes anything while the server recovers. For one thread; call `stop` at the end in any case.
    """

    def __init__(
        self, plan: TrialPlan, opens_s: float, engine: Engine, system: System, raw: Path
    ) -> None:
        spike = plan.spike
        self._plan = plan
        self._engine = engine
        self._system = system
        self._raw = raw
        self._due: list[tuple[float, float]] = []
        if spike is not None:
            last_s, every_s = spike.total_s - spike.calm_s, spike.calm_s + spike.peak_s
            starts = (opens_s + at for at in range(spike.calm_s, last_s, every_s))
            self._due = [(start, start + spike.peak_s) for start in starts]
        self._run: EngineRun | None = None
        self._started_s = 0.0
        self._done: list[Peak] = []

    @property
    def done(self) -> tuple[Peak, ...]:
        """The peaks that are over, with what their engine told. Call it when the load is over, as
        it reads that."""
        return tuple(peak_told(self._raw, number, one) for number, one in enumerate(self._done, 1))

    def tick(self, elapsed_s: float) -> None:
        """Start or end the peak that is due `elapsed_s` after the measured run began. Raises
        EngineError where the engine cannot be started."""
        if not self._due:
            return
        starts_s, ends_s = self._due[0]
        if self._run is None:
            if elapsed_s >= starts_s:
                self._run = self._start(len(self._done) + 1)
                self._started_s = elapsed_s
        elif elapsed_s >= ends_s or self._run.ended:
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

    def _start(self, number: int) -> EngineRun:
        spike = self._plan.spike
        assert spike is not None  # noqa: S101 - something was due
        folder = peak_folder(self._raw, number)
        folder.mkdir()
        plan = dataclasses.replace(
            self._plan,
            mode="closed" if spike.extra_rps is None else "open",
            engine=self._engine.name,
            concurrency=spike.extra,
            offered_rps=spike.extra_rps,
            predicted_rps=None,
            # Longer than it may run.
            duration_s=2 * spike.peak_s + 10,
            warmup_s=0,
            spike=None,
            arrivals="constant" if spike.extra_rps is None else self._plan.arrivals,
            # Random arrivals of its own: the same in each peak would be one draw, told three times.
            draw=self._plan.draw + number,
        )
        return EngineRun(self._system, self._engine.schedule(plan, folder), folder)
