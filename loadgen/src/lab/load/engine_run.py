"""One run of a load engine: started, watched while it runs, and ended in any case."""

from __future__ import annotations

import dataclasses
import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.load.engines.base import Schedule
from lab.model import TrialPlan
from lab.store.records import write_text, writing
from lab.system.host import System

STEP_S = 0.2


class EngineRun:
    """An engine's measured run from its start on, with its files in `folder`. Use it as a context
    manager: however the block is left, the process is ended. Raises EngineError where the engine
    cannot be started, and CannotWrite."""

    def __init__(self, system: System, schedule: Schedule, folder: Path) -> None:
        for name, text in schedule.files.items():
            write_text(folder / name, text)
        output = folder / schedule.output
        self.tail = Tail(output)
        self._system = system
        self.started_at = system.now()
        self._started_s = system.monotonic()
        self.process = system.start(schedule.argv, output, schedule.stdin)

    def __enter__(self) -> EngineRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def elapsed_s(self) -> float:
        return self._system.monotonic() - self._started_s

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def steps(self, most_s: float = math.inf) -> Iterator[float]:
        """The seconds since its start, every STEP_S: until it ends, or `most_s` have passed. Raises
        Interrupted."""
        while not self.ended and (elapsed_s := self.elapsed_s) <= most_s:
            yield elapsed_s
            self._system.sleep(STEP_S)

    def stop(self) -> None:
        self.process.stop()


class Tail:
    """The lines of a file that another process writes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def lines(self) -> list[str]:
        """The whole lines since the last call, without their ends; none where there is no file."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read)
                whole, end, _ = file.read().rpartition(b"\n")
        except OSError:
            return []
        self._read += len(whole) + len(end)
        return whole.decode(errors="replace").split("\n") if end else []


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """An empty folder for an engine's files; it is gone afterwards. Raises CannotWrite."""
    shutil.rmtree(folder, ignore_errors=True)
    with writing(folder):
        folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def closed_load(
    plan: TrialPlan, trial: str, connections: int, duration_s: int, warmup_s: int | None = None
) -> TrialPlan:
    """A closed load on the plan's URL that is no trial: no spike, no script, nothing held."""
    return dataclasses.replace(
        plan,
        trial=trial,
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
