"""Run one trial: put load on a server with an engine, keep everything in a raw folder.

What happened goes to `trial.json` beside the engine's own output; nothing is computed here.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from lab.errors import LabUnreachable, RawDataError
from lab.judge.predict import Prediction
from lab.load.engines.base import Engine, Schedule
from lab.load.peaks import Peaks
from lab.model import Snapshot, TrialPlan, TrialRecord, Usage, Warmth
from lab.store.records import write_json
from lab.system.agent import ToxicsSeen
from lab.system.host import HostCpu, Process, System, Turns
from lab.system.jvm import settled
from lab.system.stack import Stack
from lab.system.toxic_timeline import Timeline
from lab.system.toxics_seen import changes, unwatched
from lab.system.undo_log import UndoLog

RECORD = "trial.json"
STEP_S = 0.2
# Two of three starts of wrk2 went wrong at 400 connections on 2 cores; 12 in a row are 1 in 130.
MOST_STARTS = 12
# After its time an engine may still wait for answers and write its files.
OVERTIME_S = 120.0
# A JVM that died comes back in seconds; then its new start time tells what happened.
RESTART_S = 30.0


class Watcher(Protocol):
    """Is told how a trial goes."""

    def progress(self, plan: TrialPlan, phase: str, elapsed_s: float, total_s: float) -> None:
        """Called every STEP_S: `phase` is warm-up, measuring or finishing."""

    def warn(self, text: str) -> None:
        """Something the user should know at once; the trial goes on."""


@dataclass(frozen=True, slots=True)
class _Edge:
    """Every counter at one edge of the measured window; `compiled` is the server's JIT compile
    time with the moment it was read."""

    at_s: float
    host: HostCpu | None
    cpu_s: float
    turns: Turns | None
    throttled_s: float | None
    compiled: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class _Start:
    """A started engine; `tries` is which start of it this is."""

    process: Process
    at: datetime
    monotonic_s: float
    tries: int
    problem: str | None = None


@dataclass(slots=True)
class _Window:
    """The edges of the measured window, as far as the run has come."""

    opened: _Edge | None = None
    closed: _Edge | None = None


class Runner:
    """Runs trials one after the other. `run` is the name of the run they belong to; what their
    scripts change is in the undo log meanwhile."""

    def __init__(
        self,
        run: str,
        stack: Stack,
        system: System,
        watcher: Watcher,
        undo_log: UndoLog | None = None,
    ) -> None:
        self._run = run
        self._undo_log = undo_log or UndoLog(None)
        self._stack = stack
        self._system = system
        self._watcher = watcher
        self._agent_lost = False
        # What the trial's server did under its light load, where that is foreign.
        self._light_rps: float | None = None
        # From this many connections on, no start is a good one.
        self._hopeless: int | None = None

    def trial(
        self,
        plan: TrialPlan,
        before: Snapshot,
        unequal: tuple[str, ...],
        engine: Engine,
        version: str,
        raw: Path,
        warmth: Warmth | None = None,
        peak_engine: Engine | None = None,
        prediction: Prediction | None = None,
        known: Sequence[str] = (),
    ) -> None:
        """Run one trial; its raw folder, which must not be there before, is complete when this
        returns.

        `before` is the server as it was read back just now, `unequal` what makes the
        comparison it belongs to unfair, `warmth` the proof that its JVM is warm, `peak_engine`
        who makes the peaks of a spike (None: the trial's own engine), `prediction` what is
        expected of it, `known` notes from before. An engine that does not end is ended, and
        output that cannot be used is kept: the record says so. Raises EngineError where an engine
        cannot be started, WordError, or Interrupted after every engine was ended.
        """
        raw.mkdir(parents=True)
        schedule = engine.schedule(plan, raw)
        notes = [*known]
        demand = prediction.demand if prediction else None
        self._light_rps = demand.light_rps if demand else None
        with self._marks(plan, schedule):
            wrong = self._warm_up(plan, schedule, raw)
            start = self._start(plan, schedule, raw)
            started_at, started, process = start.at, start.monotonic_s, start.process
            if start.problem is not None:
                notes.append(start.problem)
            window = _Window()
            peaks = Peaks(plan, schedule.window_offset_s, peak_engine or engine, self._system, raw)
            script = Timeline(
                plan, schedule.window_offset_s, self._stack.toxiproxy, self._system, self._undo_log
            )
            try:
                status, late = self._attend(plan, schedule, start, window, peaks, script)
                wrong = wrong or late
            finally:
                try:
                    peaks.stop()
                    process.stop()
                finally:
                    notes += self._undo(script)
            run_s = self._system.monotonic() - started
        ended_at = self._system.now()
        after, problem = self._after(plan.server)
        # The snapshot first: what comes and goes between the two would be seen by neither.
        seen = self._toxics_seen()
        if not settled(plan.server, self._stack, self._system):
            notes.append("the server still had requests in flight long after the load")
        try:
            engine.condense(plan, raw)
        except RawDataError as failure:
            wrong = wrong or failure.said
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
                toxic_changes=tuple(changes(seen, started_at, ended_at, script)) if seen else (),
                unequal=unequal,
                notes=tuple(notes),
                warmth=warmth,
                jit_share=_jit_share(window),
                peaks=peaks.done,
                starts=start.tries,
                script=script.done,
                bounds=prediction.holding if prediction else (),
                demand=demand,
                expected_p95_ms=prediction.expected_p95_ms if prediction else None,
                unwatched=tuple(unwatched(seen, started_at, ended_at, script)),
                problem=wrong,
            ),
        )

    def _start(self, plan: TrialPlan, schedule: Schedule, raw: Path) -> _Start:
        """Start the engine; again, if its start went wrong, at most MOST_STARTS times, and only
        once where as many connections or fewer never had a good one in this run."""
        check = schedule.start_check
        hopeless = self._hopeless is not None and plan.concurrency >= self._hopeless
        most = 1 if hopeless else MOST_STARTS
        for tries in range(1, most + 1):
            at, monotonic_s = self._system.now(), self._system.monotonic()
            process = self._system.start(schedule.argv, raw / schedule.output)
            if check is None:
                break
            try:
                self._system.sleep(check.after_s)
                sockets = process.sockets()
                ended = process.poll() is not None
            except BaseException:
                process.stop()
                raise
            # One that ended already has its own problem, which its output tells.
            if sockets is None or ended or sockets >= check.least_sockets:
                break
            if tries == most:
                self._hopeless = min(plan.concurrency, self._hopeless or plan.concurrency)
                return _Start(process, at, monotonic_s, tries, check.why)
            process.stop()
        return _Start(process, at, monotonic_s, tries)

    def _warm_up(self, plan: TrialPlan, schedule: Schedule, raw: Path) -> str | None:
        """The engine's warm-up run, where it has one; why that went wrong, if it did."""
        if schedule.warm_up is None:
            return None
        started = self._system.monotonic()
        process = self._system.start(schedule.warm_up, raw / "warm-up.txt")
        try:
            while process.poll() is None:
                elapsed_s = self._system.monotonic() - started
                if elapsed_s > schedule.warm_up_s + OVERTIME_S:
                    return f"{plan.engine} did not end its warm-up in time, and was stopped"
                self._watcher.progress(plan, "warm-up", elapsed_s, schedule.total_s)
                self._system.sleep(STEP_S)
            return None
        finally:
            process.stop()

    def _attend(
        self,
        plan: TrialPlan,
        schedule: Schedule,
        start: _Start,
        window: _Window,
        peaks: Peaks,
        script: Timeline,
    ) -> tuple[int, str | None]:
        """See the engine through its run: its exit status, and why it was ended, if it was."""
        process, started = start.process, start.monotonic_s
        opens_s = schedule.window_offset_s
        closes_s = opens_s + schedule.window_s
        while True:
            elapsed_s = self._system.monotonic() - started
            peaks.tick(elapsed_s)
            script.tick(elapsed_s)
            if window.opened is None and elapsed_s >= opens_s:
                window.opened = self._edge(plan.server, process)
                self._mark(plan, schedule, "measure")
            if window.opened is not None and window.closed is None:
                process.turns()  # So that a thread is counted that ends before the window does.
                if elapsed_s >= closes_s or process.poll() is not None:
                    window.closed = self._edge(plan.server, process)
            status = process.poll()
            if status is not None:
                return status, None
            if elapsed_s > schedule.run_s + OVERTIME_S:
                process.stop()
                return process.poll() or -signal.SIGKILL, (
                    f"{plan.engine} did not end within {OVERTIME_S:.0f} s after its time, and was "
                    "stopped"
                )
            over = elapsed_s >= closes_s
            phase = "finishing" if over else "measuring" if elapsed_s >= opens_s else "warm-up"
            self._watcher.progress(plan, phase, schedule.warm_up_s + elapsed_s, schedule.total_s)
            self._system.sleep(STEP_S)

    def _edge(self, server: str, process: Process) -> _Edge:
        """The quick counters first: the server may take its time to answer."""
        at_s = self._system.monotonic()
        host, cpu_s, turns = self._system.host_cpu(), process.cpu_s(), process.turns()
        throttled_s = self._system.throttled_s()
        compiled = None
        with suppress(LabUnreachable):  # Then nobody knows, and the record says so.
            compiled = self._system.monotonic(), self._stack.exporter.compilation_s(server)
        return _Edge(at_s, host, cpu_s, turns, throttled_s, compiled)

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

    def _undo(self, script: Timeline) -> list[str]:
        """What is in the way of the toxics being as before, for the notes."""
        try:
            script.undo()
        except LabUnreachable as failure:
            text = f"the scripted toxics could not be taken back: {failure}"
            self._watcher.warn(text)
            return [text]
        return []

    def _toxics_seen(self) -> ToxicsSeen | None:
        """Asked also of an agent that was lost: it may have come back."""
        try:
            return self._stack.agent.toxics_seen()
        except LabUnreachable as failure:
            self._lose_agent(failure)
            return None

    @contextmanager
    def _marks(self, plan: TrialPlan, schedule: Schedule) -> Iterator[None]:
        """Tell the agent of the trial. Without the agent a trial goes on, unseen live."""
        self._mark(plan, schedule, "warmup")
        try:
            yield
        finally:
            if not self._agent_lost:
                try:
                    self._stack.agent.unmark()
                except LabUnreachable as failure:
                    self._lose_agent(failure)

    def _mark(self, plan: TrialPlan, schedule: Schedule, phase: str) -> None:
        if self._agent_lost:
            return
        try:
            expires_s = schedule.total_s + OVERTIME_S
            self._stack.agent.mark(self._run, plan, phase, expires_s, self._light_rps)
        except LabUnreachable as failure:
            self._lose_agent(failure)

    def _lose_agent(self, failure: LabUnreachable) -> None:
        if not self._agent_lost:
            what = "no live view of this run, and maybe nobody watches the toxics"
            self._watcher.warn(f"{what}: {failure}")
        self._agent_lost = True


def _usage(process: Process, window: _Window, window_s: float) -> Usage:
    opened, closed = window.opened, window.closed
    if opened is None or closed is None or closed.at_s <= opened.at_s:
        return Usage(process.cpu_s(), None, None, None)
    # The counters were read a little beside the edges: as much per second.
    scale = window_s / (closed.at_s - opened.at_s)
    shares = None
    if opened.host is not None and closed.host is not None:
        shares = closed.host.shares_since(opened.host)
    wait_s = slices = throttled_s = None
    if opened.turns is not None and closed.turns is not None:
        wait_s = (closed.turns.wait_s - opened.turns.wait_s) * scale
        slices = round((closed.turns.slices - opened.turns.slices) * scale)
    if opened.throttled_s is not None and closed.throttled_s is not None:
        throttled_s = (closed.throttled_s - opened.throttled_s) * scale
    return Usage(
        run_cpu_s=process.cpu_s(),
        window_cpu_s=(closed.cpu_s - opened.cpu_s) * scale,
        host_busy=shares[0] if shares else None,
        host_steal=shares[1] if shares else None,
        window_wait_s=wait_s,
        window_slices=slices,
        window_throttled_s=throttled_s,
    )


def _jit_share(window: _Window) -> float | None:
    """JIT compile time per second between the edges; None where it is not known, and where the
    counter began again with another JVM."""
    if window.opened is None or window.closed is None:
        return None
    before, after = window.opened.compiled, window.closed.compiled
    if before is None or after is None or after[0] <= before[0] or after[1] < before[1]:
        return None
    return (after[1] - before[1]) / (after[0] - before[0])
