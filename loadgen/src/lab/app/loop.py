"""The loop of a run: each trial in turn, from its preparation to its row.

What is on disk after every trial is enough to go on after a crash (see lab.app.resume).
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lab.app.announcement import announcement
from lab.app.as_measured import as_measured
from lab.app.derive import derive, judged, read_trial, write
from lab.app.measured_once import MeasuredOnce
from lab.app.preparation import Preparation, Prepared
from lab.app.recording import Recorder
from lab.app.run_record import ending, go_on, warn
from lab.app.tools import Tools
from lab.errors import LabUnreachable, RawDataError
from lab.judge.checks import data, state
from lab.kinds import order
from lab.kinds.kind import recorded
from lab.kinds.loads import arms_of
from lab.load.measure import RECORD, measure
from lab.load.runner import Known, Runner
from lab.model import Remark, Row, TrialPlan
from lab.model.host_facts import cores_of, host_id
from lab.report import console, markdown, page
from lab.report.progress import Trials
from lab.report.remarks import text
from lab.store import csv, manifest, series
from lab.store.run_dir import check_space, point_latest

# A part that all servers need (Toxiproxy, the downstream) may be away for so many trials in a row,
# each of which waits for it. Then the run ends, and RESUME goes on.
MOST_LOST = 3


@dataclass(slots=True)
class Loop:
    """One run under way. `go` once, from the main thread."""

    run_dir: Path
    record: manifest.Manifest
    order: order.Design
    tools: Tools
    preparation: Preparation | None = None
    _others_away: int = 0

    def go(self, rows: list[Row]) -> int:
        """Every trial that is left after `rows`; then the derived files, and the table."""
        with ending(self.run_dir, lambda status: self._end(status, rows), self.tools.console):
            self._measure(rows)
        if rows and not any(row.valid for row in rows):
            warn(self.tools.console, f"none of the {len(rows)} trials is valid")
            return 1
        return 1 if any(row.achieved_rps is None for row in rows) else 0

    def _measure(self, rows: list[Row]) -> None:
        tools, order = self.tools, self.order
        with Trials(tools.console, len(rows), order.left(rows)) as progress:
            runner = Runner(
                self.run_dir.name,
                tools.stack,
                tools.system,
                tools.subjects,
                tools.chosen.engines,
                progress,
                tools.journal,
            )
            cores = cores_of(self.record.host)
            once = MeasuredOnce(self.run_dir, self.record.experiment, cores, tools, progress)
            self.preparation = Preparation(
                self.record.experiment, tools, progress, runner, once, {}, rows
            )
            missing = _without_series(self.run_dir)
            for raw in missing:
                self._observe(raw, progress)
            if _without_series(self.run_dir) != missing:
                # What is next follows from verdicts, and these from the series.
                again = derive(self.run_dir, tools.all_engines, pages=False)
                rows[:] = again.rows
            recorder = self._recorder(self.preparation, runner, progress)
            while (plan := order.next(rows)) is not None:
                if recorder:
                    recorder.before(rows)
                if not rows:
                    self._announce(plan, progress)
                row = self._trial(plan, self.preparation, runner, progress)
                csv.write(self.run_dir / csv.NAME, [*rows, row])
                if not rows:
                    point_latest(self.run_dir)
                rows.append(row)
                progress.finished(row, order.left(rows))
            if recorder:
                recorder.end(rows)

    def _recorder(self, of: Preparation, runner: Runner, progress: Trials) -> Recorder | None:
        """What makes the recorded trials; None where none are asked for."""
        kind = recorded(self.record.experiment)
        if kind is None:
            return None
        return Recorder(
            kind,
            self.run_dir,
            self.order,
            self.tools,
            of,
            progress,
            load=lambda plan, prepared, raw: self._load(plan, prepared, runner, raw),
            observe=lambda raw: self._observe(raw, progress),
        )

    def _end(self, status: manifest.Status, rows: Sequence[Row]) -> None:
        tools = self.tools
        tools.attention.turn()
        for problem in tools.conditions.restore():
            warn(tools.console, text(problem))
        common = self.preparation.common if self.preparation else None
        record = copy.replace(
            self.record,
            status=status,
            ended_at=tools.system.now(),
            fairness=common or self.record.fairness,
        )
        failures: list[Exception] = []
        for part in (
            partial(manifest.write, self.run_dir, record),
            partial(self._show, rows, record),
        ):
            try:
                part()
            except Exception as failure:
                failures.append(failure)
        for later in failures[1:]:
            warn(tools.console, str(later))
        if failures:
            raise failures[0]

    def _announce(self, first: TrialPlan, progress: Trials) -> None:
        said = announcement(self.record.experiment, self.order, self.tools.chosen, first)
        host = host_id(self.record.host) or "unknown"
        progress.say(f"{said}, to results/{self.run_dir.name}, host {host}")

    def _trial(
        self, plan: TrialPlan, preparation: Preparation, runner: Runner, progress: Trials
    ) -> Row:
        """Run the trial. One that cannot begin, as its server or another part of the lab does not
        answer, costs a row. Raises LabError where no trial can begin any more."""
        tools = self.tools
        raw = self.run_dir / "raw" / plan.trial
        try:
            prepared = preparation.prepare(plan)
        except LabUnreachable as failure:
            self._lost(plan, failure, runner, raw)
        else:
            self._others_away = 0
            self._load(plan, prepared, runner, raw)
            try:
                tools.conditions.free_generator()
            except LabUnreachable as failure:
                # What was measured is whole; the next trial asks for it again.
                progress.warn(str(failure))
            # Prometheus takes some seconds to turn to another server.
            tools.attention.turn(plan.server, self.order.then(plan))
            self._observe(raw, progress)
        return read_trial(as_measured(self.record, self.run_dir), raw, tools.all_engines).row

    def _load(self, plan: TrialPlan, prepared: Prepared, runner: Runner, raw: Path) -> None:
        tools, prediction = self.tools, prepared.prediction
        check_space(tools.place.results, plan.trial)
        known = Known(
            before=prepared.before,
            warmth=prepared.warmth,
            prediction=prediction,
            engine_version=tools.chosen.versions[plan.engine],
            unequal=state.unequal(prepared.common),
            notes=self._answers(plan),
        )
        runner.trial(copy.replace(plan, predicted_rps=prediction.rps), known, raw)

    def _lost(self, plan: TrialPlan, failure: LabUnreachable, runner: Runner, raw: Path) -> None:
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
        runner.lost(plan, problem, self.record.servers[plan.server], raw)

    def _answers(self, plan: TrialPlan) -> tuple[Remark, ...]:
        """What a target said before the run that is no success, for the notes of its trials."""
        answer = self.record.target_answers.get(plan.route)
        return () if answer is None else (data.target_answered.remark(answer=answer),)

    def _observe(self, raw: Path, progress: Trials) -> None:
        try:
            measured = measure(raw, self.tools.all_engines)
        except RawDataError:  # Its row says so.
            return
        if measured.reading is None:
            return
        tools, window_s = self.tools, measured.reading.window_s
        problem = tools.observe(measured.record, window_s, raw, tools.stack, tools.system)
        if problem is not None:
            progress.warn(f"{raw.name}: {text(problem)}")

    def _show(self, rows: Sequence[Row], record: manifest.Manifest) -> None:
        """What a reader wants first, also if nothing can be written; then the derived files, whose
        figures take seconds to draw."""
        if not rows:
            return
        tools, name = self.tools, self.run_dir.name
        found = judged(self.run_dir, tools.all_engines)
        console.ended(tools.console, found.result)
        write(self.run_dir, found)
        files = f"{csv.NAME}, {page.NAME}, {markdown.NAME}"
        tools.console.print(f"results/{name}/{{{files}}}", highlight=False)
        if record.status != "complete" and not arms_of(record.experiment).images:
            tools.console.print(f"{record.status}: {go_on(record)} goes on", highlight=False)


def _without_series(run_dir: Path) -> list[Path]:
    """The raw folders of trials that ended, but whose Prometheus series were not stored yet."""
    return [
        folder.parent
        for folder in sorted((run_dir / "raw").glob(f"*/{RECORD}"))
        if not (folder.parent / series.NAME).exists()
    ]
