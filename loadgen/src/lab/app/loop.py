"""The loop of a run: each trial in turn, from its preparation to its row.

What is on disk after every trial is enough to go on after a crash (see lab.app.resume).
"""

import copy
from collections.abc import Sequence
from pathlib import Path

from lab.app.derive import as_measured, judged, read_trial, write
from lab.app.engine_choice import Chosen
from lab.app.prepare import Preparation
from lab.app.recording import Recorder
from lab.app.tools import Tools
from lab.errors import Interrupted, LabUnreachable, RawDataError
from lab.judge.checks import data, state
from lab.kinds.kind import recorded
from lab.kinds.loads import arms_of
from lab.kinds.order import Design
from lab.load.measure import measure
from lab.load.runner import Known, Runner
from lab.model import Experiment, Row, TrialPlan
from lab.model.host_facts import host_id
from lab.report import console, index, markdown, page
from lab.report.progress import Trials, duration
from lab.report.remarks import text
from lab.store import csv, manifest, series
from lab.store.run_dir import check_space, point_latest

# A part that all servers need (Toxiproxy, the downstream) may be away for so many trials in a row,
# each of which waits for it. Then the run ends, and RESUME goes on.
MOST_LOST = 3
# Between the window of a trial and the load of the next one on the same JVM, and for a JVM that is
# new or not yet proven warm, as measured on 2 cores. A busy machine takes twice as long.
BETWEEN_S, WARM_UP_S = 4.0, 22.0


class Loop:
    """One run under way, with the rows of its trials so far. `go` once, from the main thread."""

    def __init__(
        self,
        run_dir: Path,
        record: manifest.Manifest,
        design: Design,
        tools: Tools,
        rows: Sequence[Row] = (),
    ) -> None:
        self.run_dir, self.record, self.design, self.tools = run_dir, record, design, tools
        self.rows = [*rows]
        self.progress = Trials(tools.console, len(rows), design.left(rows))
        self.runner = Runner(
            run_dir.name,
            tools.stack,
            tools.system,
            tools.subjects,
            tools.chosen.engines,
            self.progress,
            tools.journal,
        )
        self.preparation = Preparation(
            run_dir, as_measured(record, run_dir), tools, self.runner, self.progress, self.rows
        )
        kind = recorded(record.experiment)
        self.recorder = Recorder(kind, self) if kind else None
        self._others_away = 0

    def go(self) -> int:
        """Every trial that is left; then the derived files, and the table."""
        try:
            with self.progress:
                self._observe_late()
                self._measure()
        except BaseException as first:
            try:
                self._end("interrupted" if isinstance(first, Interrupted) else "failed")
            except Exception as second:
                self.progress.warn(f"{type(second).__name__}: {second}")
            raise
        self._end("complete")
        if self.rows and not any(row.valid for row in self.rows):
            self.progress.warn(f"none of the {len(self.rows)} trials is valid")
            return 1
        return 1 if any(row.achieved_rps is None for row in self.rows) else 0

    def load(self, plan: TrialPlan, known: Known, raw: Path) -> None:
        """Put the load of a prepared trial on, and keep what it gave in its folder."""
        check_space(self.tools.place.results, plan.trial)
        plan = copy.replace(plan, predicted_rps=known.prediction.rps)
        self.runner.trial(plan, known, raw)

    def observe(self, raw: Path) -> None:
        """Store what Prometheus saw of a trial."""
        try:
            measured = measure(raw, self.tools.engines)
        except RawDataError:  # Its row says so.
            return
        if measured.reading is None:
            return
        tools, window_s = self.tools, measured.reading.window_s
        problem = tools.observe(measured.record, window_s, raw, tools.stack, tools.system)
        if problem is not None:
            self.progress.warn(f"{raw.name}: {text(problem)}")

    def _observe_late(self) -> None:
        """Store what Prometheus saw of trials that were cut off after their load: what is next
        follows from verdicts, and these from the series."""
        raws = [self.run_dir / "raw" / row.trial for row in self.rows]
        missing = [raw for raw in raws if not (raw / series.NAME).exists()]
        for raw in missing:
            self.observe(raw)
        if any((raw / series.NAME).exists() for raw in missing):
            kept = {row.trial for row in self.rows}
            every = judged(self.run_dir, self.tools.engines).result.rows
            self.rows[:] = [row for row in every if row.trial in kept]

    def _measure(self) -> None:
        rows, design, progress = self.rows, self.design, self.progress
        while (plan := design.next(rows)) is not None:
            if self.recorder:
                self.recorder.before_next()
            if not rows:
                about = announcement(self.record.experiment, design, self.tools.chosen, plan)
                host = host_id(self.record.host) or "unknown"
                progress.say(f"{about}, to results/{self.run_dir.name}, host {host}")
            row = self._trial(plan)
            csv.write(self.run_dir / csv.NAME, [*rows, row])
            if not rows:
                point_latest(self.run_dir)
            rows.append(row)
            progress.finished(row, design.left(rows))
        if self.recorder:
            self.recorder.end()

    def _trial(self, plan: TrialPlan) -> Row:
        """Run the trial. One that cannot begin, as its server or another part of the lab does not
        answer, costs a row. Raises LabError where no trial can begin any more."""
        tools = self.tools
        raw = self.run_dir / "raw" / plan.trial
        try:
            known = self.preparation.prepare(plan)
        except LabUnreachable as failure:
            self._lost(plan, failure, raw)
        else:
            self._others_away = 0
            self.load(plan, known, raw)
            try:
                tools.conditions.free_generator()
            except LabUnreachable as failure:
                # What was measured is whole; the next trial asks for it again.
                self.progress.warn(str(failure))
            # Prometheus takes some seconds to turn to another server.
            tools.attention.turn(plan.server, self.design.then(plan))
            self.observe(raw)
        return read_trial(as_measured(self.record, self.run_dir), raw, tools.engines).row

    def _lost(self, plan: TrialPlan, failure: LabUnreachable, raw: Path) -> None:
        """Keep a trial that could not begin. Raises what was in the way where it is no server's,
        and was in the way of too many trials in a row."""
        away = self.tools.stack.away()
        if failure.part == plan.server and not away:
            problem = state.server_not_back.remark(problem=str(failure))
        else:
            machines = {"machines": ", ".join(away)} if away else {}
            problem = data.not_begun.remark(problem=str(failure), **machines)
            self._others_away += 1
            if self._others_away >= MOST_LOST:
                raise LabUnreachable(text(problem)) if away else failure
        self.runner.lost(plan, problem, self.record.servers[plan.server], raw)

    def _end(self, status: manifest.Status) -> None:
        """Put the lab back, and keep how the run ended. Where that cannot be written, the rest is
        still done: a reader has the answer."""
        tools = self.tools
        tools.attention.turn()
        for problem in tools.conditions.restore():
            self.progress.warn(text(problem))
        common, now = self.preparation.common, tools.system.now()
        record = copy.replace(self.record, status=status, ended_at=now, fairness=common)
        try:
            manifest.write(self.run_dir, record)
        finally:
            if self.rows:
                self._show(record)
        index.write(self.run_dir.parent)

    def _show(self, record: manifest.Manifest) -> None:
        """What a reader wants first, also if nothing can be written; then the derived files, whose
        figures take seconds to draw."""
        screen = self.tools.console
        try:
            run = judged(self.run_dir, self.tools.engines)
            console.ended(screen, run.result)
            write(self.run_dir, run)
            files = f"{csv.NAME}, {page.NAME}, {markdown.NAME}"
            screen.print(f"results/{self.run_dir.name}/{{{files}}}", highlight=False)
        finally:
            if record.status != "complete" and not arms_of(record.experiment).images:
                resumes = " ".join(("make run", f"RESUME={record.run}", *record.settings))
                screen.print(f"{record.status}: {resumes} goes on", highlight=False)


def announcement(experiment: Experiment, design: Design, chosen: Chosen, first: TrialPlan) -> str:
    """The trials of a run, and how long they take from their number, in a line."""
    each_s = run_s(first, chosen)
    trials = f"{design.most} trials of"
    if not design.known:
        trials = f"at most {design.most} trials (more if some are invalid), each of about"
    launches = experiment.launches * max(1, len(experiment.arms))
    warm_ups = len(experiment.servers) * max(1, launches) * len(experiment.routes)
    whole_s = design.most * (each_s + BETWEEN_S) + warm_ups * WARM_UP_S
    scale = ""
    if experiment.scale != 1:
        scale = f", durations × {experiment.scale:g} (a quick look, not a result)"
    return (
        f"{trials} {each_s:.0f} s and warm-up, about {duration(whole_s)} in all, with "
        f"{', '.join(chosen.engines)}{scale}"
    )


def run_s(plan: TrialPlan, chosen: Chosen) -> float:
    """How long the load of a trial takes."""
    return chosen.engines[plan.engine].schedule(plan, Path()).run_s
