"""A short closed load whose figures are the engine's own: for services that tell none themselves.

The lab's servers count their requests, so one long load can be watched from outside. A foreign
service is seen by its clients only, and an engine tells what it saw when it has ended.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from lab.errors import RawDataError, WordError
from lab.load.engines.base import Engine
from lab.model import Reading, TrialPlan
from lab.system.host import System

STEP_S = 0.2
# The engine opens its connections meanwhile.
LEAD_S = 1
# After its time an engine may still wait for answers and write its files.
OVERTIME_S = 45.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Short(Generic[T]):
    """What the engine measured, and what `edge` gave at both edges of the measured window."""

    reading: Reading
    opened: T
    closed: T


def short_load(
    plan: TrialPlan,
    engine: Engine,
    system: System,
    raw: Path,
    connections: int,
    seconds: int,
    edge: Callable[[], T],
    progress: Callable[[], None] = lambda: None,
) -> Short[T] | str:
    """Load the plan's URL with so many connections, closed, for so many seconds, after
    LEAD_S or what the engine itself needs to begin.

    `raw` is a folder for what the engine writes; it is gone afterwards. `progress` is called every
    STEP_S. Returns why there are no figures where there are none. Raises EngineError where the
    engine cannot be started, whatever `edge` raises, and Interrupted; the engine is ended in any
    case.
    """
    load = dataclasses.replace(
        plan,
        trial="short-load",
        mode="closed",
        concurrency=connections,
        offered_rps=None,
        predicted_rps=None,
        duration_s=seconds,
        warmup_s=LEAD_S,
        spike=None,
        script=(),
    )
    shutil.rmtree(raw, ignore_errors=True)
    raw.mkdir(parents=True)
    try:
        try:
            schedule = engine.schedule(load, raw)
        except WordError:  # It cannot leave its own warm-up out.
            load = dataclasses.replace(load, warmup_s=None)
            schedule = engine.schedule(load, raw)
        process = system.start(schedule.argv, raw / schedule.output)
        began_s = system.monotonic()
        opened: T | None = None
        closed: T | None = None
        try:
            while process.poll() is None:
                elapsed_s = system.monotonic() - began_s
                progress()
                if opened is None and elapsed_s >= schedule.window_offset_s:
                    opened = edge()
                elif closed is None and elapsed_s >= schedule.window_offset_s + seconds:
                    closed = edge()
                if elapsed_s > schedule.run_s + OVERTIME_S:
                    return f"{engine.name} did not end its short load in time, and was stopped"
                system.sleep(STEP_S)
        finally:
            process.stop()
        if closed is None:
            closed = edge()
        engine.condense(load, raw)
        reading = engine.read(load, raw)
    except RawDataError as failure:
        return f"its load gave no figures: {failure.problem}"
    finally:
        shutil.rmtree(raw, ignore_errors=True)
    if opened is None or not reading.samples:
        return "nothing was answered"
    return Short(reading, opened, closed)
