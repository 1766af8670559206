"""A short closed load that the engine itself measures: for services that publish no figures.

The lab's servers count their requests, so one long load can be watched from outside. Only its
clients see a foreign service, and an engine gives its figures when it has ended.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.errors import RawDataError, WordError
from lab.load.engine_run import EngineRun, closed_load, scratch
from lab.load.engines.base import Engine, told_apart
from lab.model import Reading, TrialPlan
from lab.system.host import System

# The engine opens its connections meanwhile.
LEAD_S = 1
# After its time an engine may still wait for answers and write its files.
OVERTIME_S = 45.0


@dataclass(frozen=True, slots=True)
class Short[T]:
    """The engine's reading, and the values of `edge` at both edges of the measured window."""

    reading: Reading
    opened: T
    closed: T


def short_load[T](
    plan: TrialPlan,
    engine: Engine,
    system: System,
    raw: Path,
    connections: int,
    seconds: int,
    edge: Callable[[], T],
    progress: Callable[[], None] = lambda: None,
) -> Short[T] | str:
    """Put a closed load of so many connections on the plan's URL for so many seconds. They begin
    after LEAD_S, or after the engine's own warm-up where it cannot leave that out.

    `raw` is a folder for the engine's files; it is gone afterwards. `progress` is called every
    STEP_S. Where there are no figures, returns why. Raises EngineError where the engine cannot be
    started, whatever `edge` raises, and Interrupted. The engine is ended in any case.
    """
    load = closed_load(plan, "short-load", connections, seconds, LEAD_S)
    opened: T | None = None
    closed: T | None = None
    with scratch(raw):
        try:
            schedule = engine.schedule(load, raw)
        except WordError:  # The engine cannot leave its own warm-up out.
            load = dataclasses.replace(load, warmup_s=None)
            schedule = engine.schedule(load, raw)
        with EngineRun(system, schedule, raw) as run:
            for elapsed_s in run.steps(schedule.run_s + OVERTIME_S):
                progress()
                if opened is None and elapsed_s >= schedule.window_offset_s:
                    opened = edge()
                elif closed is None and elapsed_s >= schedule.window_offset_s + seconds:
                    closed = edge()
            if not run.ended:
                return f"{engine.name} did not end its short load in time, and was stopped"
        if closed is None:
            closed = edge()
        try:
            engine.condense(load, raw)
            reading = told_apart(engine.read(load, raw))
        except RawDataError as failure:
            return f"its load gave no figures: {failure.problem}"
    if opened is None or not reading.samples:
        return "nothing was answered"
    return Short(reading, opened, closed)
