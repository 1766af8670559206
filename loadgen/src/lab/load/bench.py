"""One run of a load engine: started, watched while it runs, and ended in any case. And loads beside
the trials, that warm a subject up and show what a request of it costs."""

import copy
import math
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from lab.errors import NoFigures, RawDataError, WordError
from lab.load.engines.base import Engine, Schedule, last_line
from lab.model import Reading, TrialPlan
from lab.store.records import write_text, writing
from lab.system.host import System

STEP_S = 0.2
# Of a short load. The engine opens its connections meanwhile.
LEAD_S = 1
# After its time an engine may still wait for answers and write its files.
SHORT_OVERTIME_S = 45.0


class EngineRun:
    """An engine's run from its start on, with its files in `folder`. Use it as a context manager:
    however the block is left, the process is ended. Raises EngineError if the engine cannot be
    started, and CannotWrite."""

    def __init__(self, system: System, schedule: Schedule, folder: Path) -> None:
        for name, text in schedule.files.items():
            write_text(folder / name, text)
        self._output = folder / schedule.output
        self._read_bytes = 0
        self._system = system
        self.started_at = system.now()
        self._started_s = system.monotonic()
        self.process = system.start(schedule.argv, self._output, schedule.stdin)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def elapsed_s(self) -> float:
        return self._system.monotonic() - self._started_s

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    @property
    def words(self) -> str:
        return last_line(self._output, "without a word")

    def steps(self, most_s: float = math.inf) -> Iterator[float]:
        """The seconds since its start, every STEP_S: until it ends, or `most_s` have passed. Raises
        Interrupted."""
        while not self.ended and (elapsed_s := self.elapsed_s) <= most_s:
            yield elapsed_s
            self._system.sleep(STEP_S)

    def lines(self) -> list[str]:
        """The whole lines that it wrote since the last call, without their ends."""
        try:
            with self._output.open("rb") as file:
                file.seek(self._read_bytes)
                whole, end, _ = file.read().rpartition(b"\n")
        except OSError:
            return []
        self._read_bytes += len(whole) + len(end)
        return whole.decode(errors="replace").split("\n") if end else []

    def stop(self) -> None:
        self.process.stop()


@dataclass(frozen=True, slots=True)
class Short[T]:
    """The engine's reading of a short load, and what was read at both edges of its window."""

    reading: Reading
    opened: T
    closed: T


@dataclass(frozen=True, slots=True)
class Bench:
    """Puts closed loads on the URL of a plan, beside its trial. `folder` is for the engine's files;
    it is gone after each load. `progress` is called at each step."""

    plan: TrialPlan
    engine: Engine
    system: System
    folder: Path
    progress: Callable[[], None] = lambda: None

    @contextmanager
    def watched(self, connections: int, seconds: float) -> Iterator[EngineRun]:
        """One that is watched from outside while it runs."""
        load = closed_load(self.plan, connections, round(seconds))
        with self._scratch(), EngineRun(self.system, self._schedule(load), self.folder) as run:
            yield run

    def short[T](self, connections: int, seconds: float, edge: Callable[[], T]) -> Short[T]:
        """One that the engine itself measures, after LEAD_S, or after its own warm-up if it cannot
        leave that out. Raises NoFigures, EngineError, Interrupted, and whatever `edge` raises."""
        load = closed_load(self.plan, connections, round(seconds), LEAD_S)
        with self._scratch():
            try:
                schedule = self._schedule(load)
            except WordError:
                load = copy.replace(load, warmup_s=None)
                schedule = self._schedule(load)
            opens_s, edges = schedule.window_offset_s, list[T]()
            with EngineRun(self.system, schedule, self.folder) as run:
                for elapsed_s in run.steps(schedule.run_s + SHORT_OVERTIME_S):
                    self.progress()
                    if len(edges) < 2 and elapsed_s >= opens_s + len(edges) * load.duration_s:
                        edges.append(edge())
                if not run.ended:
                    raise NoFigures(f"{self.engine.name} did not end its short load in time")
            if len(edges) == 1:
                edges.append(edge())
            try:
                self.engine.condense(load, self.folder)
                reading = self.engine.read(load, self.folder)
            except RawDataError as failure:
                raise NoFigures(f"its load gave no figures: {failure.problem}") from None
        if not edges or not reading.samples:
            raise NoFigures("nothing was answered")
        return Short(reading, *edges)

    def _schedule(self, load: TrialPlan) -> Schedule:
        return self.engine.schedule(load, self.folder)

    @contextmanager
    def _scratch(self) -> Iterator[None]:
        shutil.rmtree(self.folder, ignore_errors=True)
        with writing(self.folder):
            self.folder.mkdir(parents=True)
        try:
            yield
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def closed_load(
    plan: TrialPlan, connections: int, duration_s: int, warmup_s: int | None = None
) -> TrialPlan:
    """A closed load on the plan's URL that is no trial: no spike, no script, nothing held."""
    return copy.replace(
        plan,
        mode="closed",
        concurrency=connections,
        offered_rps=None,
        predicted_rps=None,
        duration_s=duration_s,
        warmup_s=warmup_s,
        spike=None,
        script=(),
        arrivals="constant",
        hold=None,
    )
