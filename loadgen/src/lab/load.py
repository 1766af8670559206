"""Run one trial: put load on a server with an engine, keep everything in a raw folder.

What happened goes to `trial.json` beside the engine's own output; nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from lab.engines.base import Engine, Schedule
from lab.errors import EngineError, LabUnreachable
from lab.process import HostCpu, Process, System
from lab.records import write_json
from lab.stack import Stack
from lab.types import Snapshot, TrialPlan, TrialRecord, Usage

RECORD = "trial.json"
STEP_S = 0.2
# After its time an engine may still wait for answers and write its files.
OVERTIME_S = 120.0
# A queue left behind by an overloaded trial must not be the next trial's start.
SETTLE_S = 30.0
# A JVM that died comes back in seconds; then its new start time tells what happened.
RESTART_S = 30.0
# The agent sees a change up to this late: one made just before the load is no change of it.
AGENT_LOOKS = timedelta(seconds=2)


class Watcher(Protocol):
    """Is told how a trial goes."""

    def progress(self, plan: TrialPlan, phase: str, elapsed_s: float, total_s: float) -> None:
        """Called every STEP_S: `phase` is warm-up, measuring or finishing."""

    def warn(self, text: str) -> None:
        """Something the user should know at once; the trial goes on."""


@dataclass(slots=True)
class _Window:
    """CPU counters at the edges of the measured window."""

    host_from: HostCpu | None = None
    host_to: HostCpu | None = None
    engine_from: float | None = None
    engine_to: float | None = None
    seconds: float = 0.0


class Runner:
    """Runs trials one after the other. `run` is the name of the run they belong to."""

    def __init__(self, run: str, stack: Stack, system: System, watcher: Watcher) -> None:
        self._run = run
        self._stack = stack
        self._system = system
        self._watcher = watcher
        self._agent_lost = False

    def trial(
        self,
        plan: TrialPlan,
        before: Snapshot,
        unequal: tuple[str, ...],
        engine: Engine,
        version: str,
        raw: Path,
    ) -> None:
        """Run one trial; its raw folder is complete when this returns.

        `before` is the server as it was read back just now, `unequal` what makes the
        comparison it belongs to unfair. Raises EngineError, WordError,
        RawDataError, or Interrupted after the engine was ended.
        """
        raw.mkdir(parents=True)
        schedule = engine.schedule(plan, raw)
        notes: list[str] = []
        with self._marks(plan, schedule):
            if schedule.warm_up is not None:
                self._warm_up(plan, schedule, raw)
            started_at = self._system.now()
            started = self._system.monotonic()
            process = self._system.start(schedule.argv, raw / schedule.output)
            window = _Window()
            try:
                status = self._attend(plan, schedule, process, window)
            finally:
                process.stop()
            run_s = self._system.monotonic() - started
        engine.condense(plan, raw)
        changes = self._toxic_changes(started_at)
        after, problem = self._after(plan.server)
        if not self._settled(plan.server):
            notes.append(f"the server still had requests in flight {SETTLE_S:.0f} s after the load")
        write_json(
            raw / RECORD,
            TrialRecord(
                plan=plan,
                engine_version=version,
                argv=schedule.argv,
                status=status,
                run_started_at=started_at,
                run_s=run_s,
                window_offset_s=schedule.window_offset_s,
                before=before,
                after=after,
                after_problem=problem,
                usage=_usage(process, window, schedule.window_s),
                toxic_changes=changes,
                unequal=unequal,
                notes=tuple(notes),
            ),
        )

    def _warm_up(self, plan: TrialPlan, schedule: Schedule, raw: Path) -> None:
        assert schedule.warm_up is not None  # noqa: S101
        started = self._system.monotonic()
        process = self._system.start(schedule.warm_up, raw / "warm-up.txt")
        try:
            while process.poll() is None:
                elapsed_s = self._system.monotonic() - started
                if elapsed_s > schedule.warm_up_s + OVERTIME_S:
                    raise EngineError(f"{plan.engine} did not end its warm-up in time")
                self._watcher.progress(plan, "warm-up", elapsed_s, schedule.total_s)
                self._system.sleep(STEP_S)
        finally:
            process.stop()

    def _attend(
        self, plan: TrialPlan, schedule: Schedule, process: Process, window: _Window
    ) -> int:
        started = self._system.monotonic()
        opens_s = schedule.window_offset_s
        closes_s = opens_s + schedule.window_s
        while True:
            elapsed_s = self._system.monotonic() - started
            if window.host_from is None and elapsed_s >= opens_s:
                window.host_from, window.engine_from = self._system.host_cpu(), process.cpu_s()
                window.seconds = -self._system.monotonic()
                self._mark(plan, schedule, "measure")
            if window.host_to is None and elapsed_s >= closes_s:
                window.host_to, window.engine_to = self._system.host_cpu(), process.cpu_s()
                window.seconds += self._system.monotonic()
            status = process.poll()
            if status is not None:
                return status
            if elapsed_s > schedule.run_s + OVERTIME_S:
                raise EngineError(
                    f"{plan.engine} did not end within {OVERTIME_S:.0f} s after its time"
                )
            over = elapsed_s >= closes_s
            phase = "finishing" if over else "measuring" if elapsed_s >= opens_s else "warm-up"
            self._watcher.progress(plan, phase, schedule.warm_up_s + elapsed_s, schedule.total_s)
            self._system.sleep(STEP_S)

    def snapshot(self, server: str) -> Snapshot:
        """The server as it reads back now. Waits for one that is just being restarted.

        Raises LabUnreachable when it stays away for RESTART_S.
        """
        until = self._system.monotonic() + RESTART_S
        while True:
            try:
                return self._stack.snapshot(server)
            except LabUnreachable:
                if self._system.monotonic() >= until:
                    raise
            self._system.sleep(STEP_S)

    def _after(self, server: str) -> tuple[Snapshot | None, str | None]:
        try:
            return self.snapshot(server), None
        except LabUnreachable as failure:
            return None, str(failure)

    def _toxic_changes(self, started_at: datetime) -> tuple[str, ...]:
        if self._agent_lost:
            return ()
        try:
            return self._stack.toxic_changes(started_at + AGENT_LOOKS)
        except LabUnreachable as failure:
            self._lose_agent(failure)
            return ()

    def _settled(self, server: str) -> bool:
        until = self._system.monotonic() + SETTLE_S
        while self._system.monotonic() < until:
            try:
                # The live probe may have one request under way; a queue has many.
                if self._stack.in_flight(server) <= 1:
                    return True
            except LabUnreachable:
                return True  # Said already by the read-back.
            self._system.sleep(STEP_S)
        return False

    @contextmanager
    def _marks(self, plan: TrialPlan, schedule: Schedule) -> Iterator[None]:
        """Tell the agent of the trial. Without the agent a trial goes on, unseen live."""
        self._mark(plan, schedule, "warmup")
        try:
            yield
        finally:
            if not self._agent_lost:
                try:
                    self._stack.unmark()
                except LabUnreachable as failure:
                    self._lose_agent(failure)

    def _mark(self, plan: TrialPlan, schedule: Schedule, phase: str) -> None:
        if self._agent_lost:
            return
        try:
            self._stack.mark(self._run, plan, phase, schedule.total_s + OVERTIME_S)
        except LabUnreachable as failure:
            self._lose_agent(failure)

    def _lose_agent(self, failure: LabUnreachable) -> None:
        self._agent_lost = True
        self._watcher.warn(f"no live view of this run: {failure}")


def _usage(process: Process, window: _Window, window_s: float) -> Usage:
    shares = None
    if window.host_from is not None and window.host_to is not None:
        shares = window.host_to.shares_since(window.host_from)
    window_cpu_s = None
    if window.engine_from is not None and window.engine_to is not None and window.seconds > 0:
        # The counters were read a little beside the edges: as much per second.
        window_cpu_s = (window.engine_to - window.engine_from) * window_s / window.seconds
    return Usage(
        run_cpu_s=process.cpu_s(),
        window_cpu_s=window_cpu_s,
        host_busy=shares[0] if shares else None,
        host_steal=shares[1] if shares else None,
    )
