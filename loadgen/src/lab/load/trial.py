"""Run one trial: put load on a server with an engine, and keep everything in a raw folder.

The plan goes to `plan.json` before the load, and everything that happened to `trial.json` beside
the engine's own output. Nothing is computed.
"""

import dataclasses
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lab.errors import LabError, LabUnreachable
from lab.judge.checks import data, state
from lab.judge.predict import Prediction
from lab.load.agent_marks import AgentMarks
from lab.load.engine_run import STEP_S, EngineRun
from lab.load.engines.base import Engine, Schedule, StartCheck
from lab.load.held import HeldMemory
from lab.load.measure import PLAN, RECORD
from lab.load.peaks import Peaks
from lab.load.window import Edge, Window
from lab.model import Remark, Snapshot, TrialPlan, TrialRecord, Warmth
from lab.store.records import sync_folder, write_json, writing
from lab.system.host import System
from lab.system.jvm import live_heap, settled
from lab.system.ref import read_ref
from lab.system.spinner import Spinner, spinning
from lab.system.stack import Stack
from lab.system.toxic_timeline import Timeline
from lab.system.toxics_seen import changes, unwatched
from lab.system.undo_log import UndoLog

# Two of three starts of wrk2 went wrong at 400 connections on 2 cores; 12 in a row are 1 in 130.
MOST_STARTS = 12
# After its time an engine may still wait for answers and write its files.
OVERTIME_S = 120.0
# A JVM that died comes back in seconds; then its new start time tells what happened.
RESTART_S = 30.0
# So many looks at the live heap, so far apart.
LIVE_LOOKS, LIVE_LOOK_S = 3, 2.0


class Watcher(Protocol):
    """Hears how a trial goes."""

    def progress(self, plan: TrialPlan, phase: str, elapsed_s: float, total_s: float) -> None:
        """Called every STEP_S: `phase` is warm-up, measuring or finishing."""

    def warn(self, text: str) -> None:
        """Called with news the user should hear at once; the trial goes on."""


@dataclass(frozen=True, slots=True)
class _Start:
    """The engine's start that counts, the last of `tries`. `problem`: why it was no good one."""

    run: EngineRun
    tries: int
    problem: Remark | None = None


@dataclass(frozen=True, slots=True)
class _Ran:
    """A measured run that is over. It took `run_s` until its script was taken back, and `wall_s` by
    the wall clock, and its window `window_s`. `problem`: why its output is not that of a whole run;
    `late`: the engine did not end in time."""

    start: _Start
    window: Window
    run_s: float
    wall_s: float
    window_s: float
    problem: Remark | None
    late: bool
    notes: tuple[Remark, ...]


class Runner:
    """Runs trials one after the other. `run` is the name of the run they belong to. While a trial
    lasts, the undo log holds what its script changes."""

    def __init__(
        self,
        run: str,
        stack: Stack,
        system: System,
        watcher: Watcher,
        undo_log: UndoLog | None = None,
    ) -> None:
        self._undo_log = undo_log or UndoLog(None)
        self._stack = stack
        self._system = system
        self._watcher = watcher
        self._agent = AgentMarks(run, stack, watcher.warn)
        # From this many connections on, no start is a good one.
        self._hopeless: int | None = None

    def trial(
        self,
        plan: TrialPlan,
        before: Snapshot,
        unequal: tuple[Remark, ...],
        engine: Engine,
        version: str,
        raw: Path,
        warmth: Warmth,
        prediction: Prediction | None = None,
        known: Sequence[Remark] = (),
    ) -> None:
        """Run one trial. Its raw folder must not exist yet, and is complete when this returns.

        `before` is the server as it was read back just now. `unequal` says what makes its
        comparison unfair. `warmth` is the proof that its JVM is warm. `prediction` is what is
        expected of the trial, and `known` are notes from before it. An engine that does not end is
        ended, and the record says so. The engine's output is kept as it is (`measure` condenses
        it). Raises EngineError where an engine cannot be started, WordError, CannotWrite, or
        Interrupted after every engine was ended.
        """
        self.begin(plan, raw)
        ref = read_ref(self._system.ref())
        clocks = self._stack.clocks(plan.server, self._system.now)
        schedule = engine.schedule(plan, raw)
        demand = prediction.demand if prediction else None
        peaks = Peaks(plan, schedule.window_offset_s, engine, self._system, raw)
        script = Timeline(
            plan, schedule.window_offset_s, self._stack.toxiproxy, self._system, self._undo_log
        )
        held = HeldMemory(plan, schedule.window_offset_s, self._stack)
        light_rps = demand.light_rps if demand else None
        expires_s, streams = schedule.total_s + OVERTIME_S, schedule.streams
        with self._agent.trial(plan, expires_s, light_rps, streams=streams) as mark:
            ran = self._run(plan, engine, schedule, raw, peaks, script, held, mark)
        started_at, ended_at = ran.start.run.started_at, self._system.now()
        process = ran.start.run.process
        clocks += self._stack.clocks(plan.server, self._system.now)
        after, after_problem = self._after(plan.server)
        # The snapshot comes first: neither would see a toxic that comes and goes between the two.
        seen = self._agent.toxics_seen()
        unsettled = self._unsettled(plan.server)
        live_bytes, not_told = self._live_heap(plan)
        memory = held.memory
        sync_folder(raw)
        early = ran.window_s < schedule.window_s
        status = process.poll() or (-signal.SIGKILL if ran.late else 0)
        record = TrialRecord(
            plan=dataclasses.replace(plan, duration_s=round(ran.window_s)) if early else plan,
            engine_version=version,
            argv=schedule.argv,
            status=0 if early else status,
            run_started_at=started_at,
            run_s=ran.run_s,
            wall_s=ran.wall_s,
            window_offset_s=schedule.window_offset_s,
            before=before,
            after=after,
            after_problem=after_problem,
            usage=ran.window.usage(process, ran.window_s),
            toxic_changes=tuple(changes(seen, started_at, ended_at, script)) if seen else (),
            unequal=unequal,
            notes=_known(*known, *ran.notes, unsettled, not_told, held.problem),
            warmth=warmth,
            jit_share=ran.window.jit_share,
            jit_cpu=ran.window.jit_cpu,
            peaks=peaks.done,
            starts=ran.start.tries,
            script=script.done,
            bounds=prediction.holding if prediction else (),
            demand=demand,
            expected_p95_ms=prediction.expected_p95_ms if prediction else None,
            unwatched=tuple(unwatched(seen, started_at, ended_at, script)),
            problem=ran.problem,
            clocks=clocks,
            live_heap_bytes=memory.live_heap_bytes if memory else live_bytes,
            resident_bytes=memory.resident_bytes if memory else None,
            in_flight=memory.in_flight if memory else None,
            ref=ref,
        )
        write_json(raw / RECORD, record)

    def begin(self, plan: TrialPlan, raw: Path) -> None:
        """Make the trial's raw folder, which must not exist yet, with its plan in it. Raises
        CannotWrite."""
        with writing(raw):
            raw.mkdir(parents=True)
        write_json(raw / PLAN, plan)
        sync_folder(raw)

    def lost(self, plan: TrialPlan, problem: Remark, before: Snapshot, raw: Path) -> None:
        """Keep a trial that could not begin, as `trial` keeps one that ended. `before` is the
        server as the run began. Raises CannotWrite."""
        self.begin(plan, raw)
        write_json(raw / RECORD, TrialRecord.of_lost(plan, problem, self._system.now(), before))

    def _run(
        self,
        plan: TrialPlan,
        engine: Engine,
        schedule: Schedule,
        raw: Path,
        peaks: Peaks,
        script: Timeline,
        held: HeldMemory,
        mark: Callable[[str], None],
    ) -> _Ran:
        """Warm-up and measured run. However it ends, engines end and the script is taken back."""
        problem = self._warm_up(plan, schedule, raw)
        window = Window()
        try:
            with (
                spinning(self._system, plan.condition.spin, schedule.run_s + OVERTIME_S) as spinner,
                self._started(plan, schedule, raw) as start,
            ):
                try:
                    window_s = self._attend(
                        plan,
                        engine,
                        schedule,
                        start.run,
                        window,
                        peaks,
                        script,
                        held,
                        mark,
                        spinner,
                    )
                    late = not start.run.ended
                finally:
                    peaks.stop()
        finally:
            undone = self._undo(script)
        if late and problem is None:
            problem = data.engine_overtime.remark(engine=plan.engine, overtime_s=OVERTIME_S)
        notes = _known(start.problem, undone)
        run_s = start.run.elapsed_s
        wall_s = (self._system.now() - start.run.started_at).total_seconds()
        return _Ran(start, window, run_s, wall_s, window_s, problem, late, notes)

    @contextmanager
    def _started(self, plan: TrialPlan, schedule: Schedule, raw: Path) -> Iterator[_Start]:
        """Start the engine; again, if its start went wrong, at most MOST_STARTS times. Start it
        only once where no more connections than these never had a good start in this run."""
        hopeless = self._hopeless is not None and plan.concurrency >= self._hopeless
        most = 1 if hopeless else MOST_STARTS
        for tries in range(1, most + 1):
            with EngineRun(self._system, schedule, raw) as run:
                problem = self._start_problem(run, schedule.start_check)
                if problem is None or tries == most:
                    if problem is not None:
                        self._hopeless = min(plan.concurrency, self._hopeless or plan.concurrency)
                    yield _Start(run, tries, problem)
                    return

    def _start_problem(self, run: EngineRun, check: StartCheck | None) -> Remark | None:
        """Why this start is no good one. None also where the sockets cannot be counted, and where
        the engine has ended already: then its output tells the problem."""
        if check is None:
            return None
        self._system.sleep(check.after_s)
        sockets = run.process.sockets()
        good = sockets is None or run.ended or sockets >= check.least_sockets
        return None if good else check.why

    def _warm_up(self, plan: TrialPlan, schedule: Schedule, raw: Path) -> Remark | None:
        """The engine's warm-up run, where it has one; why that went wrong, if it did."""
        if schedule.warm_up is None:
            return None
        warm_up = dataclasses.replace(schedule, argv=schedule.warm_up, output="warm-up.txt")
        with EngineRun(self._system, warm_up, raw) as run:
            for elapsed_s in run.steps(schedule.warm_up_s + OVERTIME_S):
                self._watcher.progress(plan, "warm-up", elapsed_s, schedule.total_s)
            if not run.ended:
                return data.warm_up_overtime.remark(engine=plan.engine)
        return None

    def _attend(
        self,
        plan: TrialPlan,
        engine: Engine,
        schedule: Schedule,
        run: EngineRun,
        window: Window,
        peaks: Peaks,
        script: Timeline,
        held: HeldMemory,
        mark: Callable[[str], None],
        spinner: Spinner,
    ) -> float:
        """Watch the measured run until it ends, or is long past its time. The length of its window
        in seconds: where the plan has limits, the run is ended as soon as these are settled."""
        opens_s = schedule.window_offset_s
        closes_s = opens_s + schedule.window_s
        written: list[str] = []
        stopped = False

        def tick(elapsed_s: float) -> None:
            nonlocal closes_s, stopped
            if schedule.streams and (lines := run.tail.lines()):
                self._agent.lines(lines)
                written.extend(lines)
                if plan.limits and window.opened and not window.closed and not run.ended:
                    settled_s = engine.settled_s(plan, opens_s, written)
                    if settled_s is not None:
                        closes_s = opens_s + settled_s
            peaks.tick(elapsed_s)
            script.tick(elapsed_s)
            if window.opened is None and elapsed_s >= opens_s:
                window.opened = self._edge(plan, run, spinner)
                mark("measure")
            held.tick(elapsed_s, run)
            if window.opened is not None and window.closed is None:
                run.process.turns()  # Counts the threads that end before the window does.
                if elapsed_s >= closes_s or run.ended:
                    window.closed = self._edge(plan, run, spinner)
                    if closes_s < opens_s + schedule.window_s and not run.ended:
                        stopped = True
                        run.stop()

        for elapsed_s in run.steps(schedule.run_s + OVERTIME_S):
            tick(elapsed_s)
            over = elapsed_s >= closes_s
            phase = "finishing" if over else "measuring" if elapsed_s >= opens_s else "warm-up"
            self._watcher.progress(plan, phase, schedule.warm_up_s + elapsed_s, schedule.total_s)
        tick(run.elapsed_s)
        return closes_s - opens_s if stopped else schedule.window_s

    def _edge(self, plan: TrialPlan, run: EngineRun, spinner: Spinner) -> Edge:
        return Edge.read(plan.server, run.process, spinner, self._stack, self._system)

    def snapshot(self, server: str, wait_s: float = RESTART_S) -> Snapshot:
        """The server as it reads back now. Waits for one that is just being restarted.

        Raises LabUnreachable when it stays away for `wait_s`.
        """
        until = self._system.monotonic() + wait_s
        while True:
            try:
                return self._stack.snapshot(server)
            except LabUnreachable:
                if self._system.monotonic() >= until:
                    raise
            self._system.sleep(STEP_S)

    def _after(self, server: str) -> tuple[Snapshot | None, Remark | None]:
        try:
            return self.snapshot(server), None
        except LabUnreachable as failure:
            # Other parts of the lab are read back too.
            away = state.server_gone if failure.part == server else data.lab_unreadable
            return None, away.remark(problem=str(failure))

    def _undo(self, script: Timeline) -> Remark | None:
        """Take the script's toxics back. A note on what is in the way of that."""
        try:
            script.undo()
        except LabError as failure:
            self._watcher.warn(f"the scripted toxics could not be taken back: {failure}")
            return state.script_left.remark(problem=str(failure))
        return None

    def _unsettled(self, server: str) -> Remark | None:
        """Wait until the server has answered what it was sent. A note where it does not."""
        if settled(server, self._stack, self._system):
            return None
        return state.unsettled.remark()

    def _live_heap(self, plan: TrialPlan) -> tuple[int | None, Remark | None]:
        """What lives in the server's heap, where the plan asks; why that is not told. A server may
        still be closing the connections of the load, so the least of some looks counts: what lives
        for good is in each. A foreign service has nobody to ask, and that is no news."""
        if not plan.asks_live or self._stack.is_foreign(plan.server):
            return None, None
        found = []
        try:
            for look in range(LIVE_LOOKS):
                self._system.sleep(LIVE_LOOK_S if look else 0)
                found.append(live_heap(plan.server, self._stack))
            return min(found), None
        except LabUnreachable as failure:
            return min(found, default=None), data.live_heap_unread.remark(problem=str(failure))


def _known(*notes: Remark | None) -> tuple[Remark, ...]:
    return tuple(note for note in notes if note is not None)
