"""One run of a load engine: started, watched while it runs, and ended in any case. And loads beside
the trials, that warm a subject up and show what a request of it costs."""

from __future__ import annotations

import copy
import math
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import msgspec

from lab.load.engines import Engine, Pacer, Schedule
from lab.load.engines.base import last_line
from lab.load.engines.pacer_output import Line, meant
from lab.model import TrialPlan
from lab.store.records import write_text, writing
from lab.subject.jvm import Answered
from lab.system.host import System

STEP_S = 0.2


class EngineRun:
    """An engine's run from its start on, with its files in `folder`. Use it as a context manager:
    however the block is left, the process is ended. Raises EngineError if the engine cannot be
    started, and CannotWrite."""

    def __init__(self, system: System, schedule: Schedule, folder: Path) -> None:
        for name, text in schedule.files.items():
            write_text(folder / name, text)
        self._output = folder / schedule.output
        self._read_bytes = 0
        self.seconds: list[Line] = []
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

    def hear(self, keep: bool = False) -> list[str]:
        """The whole lines that it wrote since the last call, without their ends. `keep`: pacer's
        are seconds to be asked for later; a damaged line is found when the output is read."""
        try:
            with self._output.open("rb") as file:
                file.seek(self._read_bytes)
                whole, end, _ = file.read().rpartition(b"\n")
        except OSError:
            return []
        self._read_bytes += len(whole) + len(end)
        for line in whole.splitlines() if keep else ():
            with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                second = meant(line)
                if isinstance(second, Line):
                    self.seconds.append(second)
        return whole.decode(errors="replace").split("\n") if end else []

    def answered(self, first: int = 0, until: int | None = None) -> Answered:
        """In these seconds of it."""
        whole = Line.sum_of(self.seconds[first:until])
        return Answered(
            count=whole.answers,
            failed=whole.http_errors + whole.lost,
            length_s=whole.length_s or math.inf,
            p50_ms=whole.raw.at_ms(0.5) if whole.ok else None,
            mean_ms=whole.raw.mean_ms,
            think_ms=whole.late.mean_ms,
        )

    def stop(self) -> None:
        self.process.stop()


@dataclass(frozen=True, slots=True)
class Bench:
    """Puts closed loads on the URL of a plan, beside its trial. `folder` is for the engine's files;
    it is gone after each load. `progress` is called at each step."""

    plan: TrialPlan
    engine: Engine
    system: System
    folder: Path
    progress: Callable[[], None] = lambda: None

    @property
    def counted(self) -> Bench:
        """With the engine that counts the answers while it runs."""
        return copy.replace(self, engine=Pacer())

    @contextmanager
    def watched(self, connections: int, seconds: float) -> Iterator[EngineRun]:
        """A load that is watched while it runs."""
        load = closed_load(self.plan, connections, round(seconds))
        shutil.rmtree(self.folder, ignore_errors=True)
        with writing(self.folder):
            self.folder.mkdir(parents=True)
        try:
            with EngineRun(
                self.system, self.engine.schedule(load, self.folder), self.folder
            ) as run:
                yield run
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def closed_load(plan: TrialPlan, connections: int, duration_s: int) -> TrialPlan:
    """A closed load on the plan's URL that is no trial: no spike, no script, nothing held."""
    return copy.replace(
        plan,
        mode="closed",
        concurrency=connections,
        offered_rps=None,
        predicted_rps=None,
        duration_s=duration_s,
        warmup_s=None,
        spike=None,
        script=(),
        arrivals="constant",
        hold=None,
    )
