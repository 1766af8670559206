"""Runs one trial: puts load on a subject with an engine, and keeps everything in a raw folder.

The plan goes to `plan.json` before the load, and everything that happened to `trial.json` beside
the engine's own output. Nothing is computed.
"""

import copy
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lab.errors import LabError, LabUnreachable
from lab.judge.checks import data, state
from lab.judge.predict import Prediction
from lab.load.agent_marks import AgentMarks
from lab.load.bench import EngineRun
from lab.load.engines.base import Engine
from lab.load.held import HeldMemory
from lab.load.measure import PLAN, RECORD
from lab.load.peaks import Peaks
from lab.load.window import Edge, Window
from lab.model import Remark, Snapshot, TrialPlan, TrialRecord, Warmth
from lab.store.records import sync_folder, write_json, writing
from lab.subject.changes import Journal
from lab.subject.subject import Subject, Subjects, await_answer
from lab.subject.timeline import Timeline
from lab.system.agent import Phase
from lab.system.host import System
from lab.system.ref import read_ref
from lab.system.spinner import Spinner, spinning
from lab.system.stack import Stack

# After its time an engine may still wait for answers and write its files.
OVERTIME_S = 120.0
# A JVM that died comes back in seconds; then its new start time shows what happened.
RESTART_S = 30.0
# So many looks at the live heap, so far apart.
LIVE_LOOKS, LIVE_LOOK_S = 3, 2.0


class Watcher(Protocol):
    """Hears how a trial goes."""

    def progress(self, plan: TrialPlan, phase: str, elapsed_s: float, total_s: float) -> None:
        """Called every STEP_S: `phase` is warm-up, measuring or finishing."""

    def remark(self, remark: Remark) -> None:
        """Called with news the user should hear at once; the trial goes on."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a trial before its load: its server as it was read back just now (`before`),
    the proof that its JVM is warm, what is expected, why its comparison is unfair (`unequal`), and
    notes."""

    before: Snapshot
    warmth: Warmth
    prediction: Prediction
    engine_version: str = ""
    unequal: tuple[Remark, ...] = ()
    notes: tuple[Remark, ...] = ()


@dataclass
class Runner:
    """Runs trials one after the other. `run` is the name of the run they belong to."""

    run: str
    stack: Stack
    system: System
    subjects: Subjects
    engines: Mapping[str, Engine]
    watcher: Watcher
    journal: Journal

    def __post_init__(self) -> None:
        self.agent = AgentMarks(self.run, self.stack.agent, self.watcher.remark)

    def trial(self, plan: TrialPlan, known: Known, raw: Path) -> None:
        """Run one trial. Its raw folder must not exist yet, and is complete when this returns.
        Raises EngineError if an engine cannot be started, WordError, CannotWrite, or Interrupted
        after every engine was ended."""
        system, subject = self.system, self.subjects[plan.server]
        self.begin(plan, raw)
        ref = read_ref(system.ref())
        clocks = self.stack.clocks(plan.server, system.now)
        trial = _Trial(self, plan, raw)
        schedule, demand = trial.schedule, known.prediction.demand
        most_rps = 0.0 if schedule.streams else subject.most_rps(plan, demand)
        with self.agent.trial(plan, schedule.run_s + OVERTIME_S, most_rps) as mark:
            run = trial.run(mark)
        ended_at = system.now()
        clocks += self.stack.clocks(plan.server, system.now)
        after, after_problem = self._after(plan.server)
        # The snapshot comes first: neither would see a toxic that comes and goes between the two.
        seen = self.agent.toxics_seen()
        unsettled = None if subject.settled(system) else state.unsettled.remark()
        live_bytes, unread = self._live_heap(plan, subject)
        memory, script = trial.held.memory, trial.script
        sync_folder(raw)
        early = trial.window_s < schedule.window_s
        status = run.process.poll() or (-signal.SIGKILL if trial.late else 0)
        notes = (trial.start_problem, trial.undo_problem, unsettled, unread, trial.held.problem)
        record = TrialRecord(
            plan=copy.replace(plan, duration_s=round(trial.window_s)) if early else plan,
            engine_version=known.engine_version,
            argv=schedule.argv,
            status=0 if early else status,
            run_started_at=run.started_at,
            run_s=trial.run_s,
            wall_s=trial.wall_s,
            window_offset_s=schedule.window_offset_s,
            before=known.before,
            after=after,
            after_problem=after_problem,
            usage=trial.window.usage(run.process, trial.window_s),
            toxic_changes=tuple(script.others(seen, run.started_at, ended_at)) if seen else (),
            unequal=known.unequal,
            notes=(*known.notes, *(note for note in notes if note is not None)),
            warmth=known.warmth,
            jit_share=trial.window.jit_share,
            jit_cpu=trial.window.jit_cpu,
            peaks=trial.peaks.done,
            starts=trial.starts,
            script=script.done,
            bounds=known.prediction.holding,
            demand=demand,
            expected_p95_ms=known.prediction.expected_p95_ms,
            unwatched=tuple(script.unwatched(seen, run.started_at, ended_at)),
            problem=trial.late,
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
        write_json(raw / RECORD, TrialRecord.of_lost(plan, problem, self.system.now(), before))

    def snapshot(self, server: str, wait_s: float = RESTART_S) -> Snapshot:
        """The server as it reads back now. Waits for one that is just being restarted. Raises
        LabUnreachable when it stays away for `wait_s`."""
        return await_answer(self.subjects[server].snapshot, self.system, wait_s)

    def _after(self, server: str) -> tuple[Snapshot | None, Remark | None]:
        try:
            return self.snapshot(server), None
        except LabUnreachable as failure:
            # Other parts of the lab are read back too.
            away = state.server_gone if failure.part == server else data.lab_unreadable
            return None, away.remark(problem=str(failure))

    def _live_heap(self, plan: TrialPlan, subject: Subject) -> tuple[int | None, Remark | None]:
        """What lives in the server's heap, if the plan asks; why that is unknown. A server may
        still be closing the connections of the load, so the least of some looks counts."""
        looks: list[int] = []
        problem = None
        try:
            while plan.asks_live and len(looks) < LIVE_LOOKS:
                self.system.sleep(LIVE_LOOK_S if looks else 0)
                live_bytes = subject.live_heap()
                if live_bytes is None:
                    break
                looks.append(live_bytes)
        except LabUnreachable as failure:
            problem = data.live_heap_unread.remark(problem=str(failure))
        return min(looks, default=None), problem


class _Trial:
    """The load of one trial, from the engine's start to its end. Then `run_s` is what it took until
    its script was taken back, and `wall_s` that by the wall clock. A plan with limits ends as soon
    as these are settled, after `window_s`. `late`: the engine did not end in time. `start_problem`:
    why the last of its `starts` was no good one."""

    def __init__(self, runner: Runner, plan: TrialPlan, raw: Path) -> None:
        self._runner = runner
        self._system = system = runner.system
        self._subject = subject = runner.subjects[plan.server]
        self._engine = engine = runner.engines[plan.engine]
        self._plan = plan
        self._raw = raw
        self.schedule = engine.schedule(plan, raw)
        self.window_s = self.schedule.window_s
        self._opens_s = opens_s = self.schedule.window_offset_s
        self._closes_s = opens_s + self.window_s
        self.window = Window()
        self.peaks = Peaks(plan, opens_s, engine, system, raw)
        self.script = Timeline(plan, opens_s, runner.stack, runner.journal, system)
        self.held = HeldMemory(plan, opens_s, subject, runner.stack.toxiproxy)
        self.run_s = self.wall_s = 0.0
        self.late: Remark | None = None
        self.starts = 0
        self.start_problem: Remark | None = None
        self.undo_problem: Remark | None = None

    def run(self, mark: Callable[[Phase], None]) -> EngineRun:
        """However it ends, engines end and the script is taken back."""
        most_s = self.schedule.run_s + OVERTIME_S
        try:
            with (
                spinning(self._system, self._plan.condition.spin, most_s) as spinner,
                self._started() as run,
            ):
                try:
                    for elapsed_s in run.steps(most_s):
                        self._tick(elapsed_s, run, spinner, mark)
                    self._tick(run.elapsed_s, run, spinner, mark)
                    if not run.ended:
                        name = self._plan.engine
                        self.late = data.engine_overtime.remark(engine=name, overtime_s=OVERTIME_S)
                finally:
                    self.peaks.stop()
        finally:
            try:
                self.script.undo()
            except LabError as failure:
                self.undo_problem = state.script_left.remark(problem=str(failure))
                self._runner.watcher.remark(self.undo_problem)
        self.run_s = run.elapsed_s
        self.wall_s = (self._system.now() - run.started_at).total_seconds()
        return run

    @contextmanager
    def _started(self) -> Iterator[EngineRun]:
        """Start the engine; again, if its start went wrong. It went well as far as is known if the
        sockets cannot be counted, or the engine has ended: then its output shows the problem."""
        check = self.schedule.start_check
        while True:
            self.starts += 1
            with EngineRun(self._system, self.schedule, self._raw) as run:
                self.start_problem = None
                if check is not None:
                    self._system.sleep(check.after_s)
                    sockets = run.process.sockets()
                    if sockets is not None and sockets < check.least_sockets and not run.ended:
                        self.start_problem = check.why
                if check is None or self.start_problem is None or self.starts == check.most:
                    yield run
                    return

    def _tick(
        self, elapsed_s: float, run: EngineRun, spinner: Spinner, mark: Callable[[Phase], None]
    ) -> None:
        window = self.window
        if self.schedule.streams:
            self._hear(run)
        self.peaks.tick(elapsed_s)
        self.script.tick(elapsed_s)
        if window.opened is None and elapsed_s >= self._opens_s:
            window.opened = Edge.read(self._subject, run.process, spinner, self._system)
            mark("measure")
        self.held.tick(elapsed_s, run)
        over = elapsed_s >= self._closes_s
        if window.opened and not window.closed:
            run.process.turns()  # Counts the threads that end before the window does.
            if over or run.ended:
                window.closed = Edge.read(self._subject, run.process, spinner, self._system)
                if self._closes_s < self._opens_s + self.window_s and not run.ended:
                    self.window_s = self._closes_s - self._opens_s
                    run.stop()
        phase = "finishing" if over else "measuring" if window.opened else "warm-up"
        self._runner.watcher.progress(self._plan, phase, elapsed_s, self.schedule.run_s)

    def _hear(self, run: EngineRun) -> None:
        """Pass on what the engine wrote, and see if that settles the limits of the plan."""
        lines, window = run.hear(keep=bool(self._plan.limits)), self.window
        if lines:
            self._runner.agent.lines(lines)
        if lines and self._plan.limits and window.opened and not window.closed and not run.ended:
            settled_s = self._engine.settled_s(self._plan, self._opens_s, run.seconds)
            if settled_s is not None:
                self._closes_s = self._opens_s + settled_s
