"""RECORD=: a load of each server once more, with a recording of its JVM, beside the trials.

Such a trial is in a folder of its own and has no row, so no median, no comparison and no verdict of
the run knows of it. What it says of speed is only what recording costs: it is set beside the trial
that it repeats, on the same JVM. That JVM is then replaced, so that whatever a recording leaves in
it is in no later figure.
"""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import TYPE_CHECKING

from lab.errors import LabError, LabUnreachable, RawDataError
from lab.judge.grouping import lane_of
from lab.load.measure import PLAN, RECORD
from lab.load.runner import OVERTIME_S
from lab.model import RECORDED, Snapshot, TrialPlan, TrialRecord
from lab.model.knobs import knobs_of
from lab.report.page import flamegraph
from lab.store import recording
from lab.store.records import read_json
from lab.system.host import Clock

if TYPE_CHECKING:
    from lab.app.loop import Loop


class Recorder:
    """Makes the recorded trials of a run that are due."""

    def __init__(self, kind: str, loop: Loop) -> None:
        self._kind, self._loop = kind, loop
        self._tried: set[str] = set()

    def before_next(self) -> None:
        """Record what may be recorded after the rows so far, and is not yet. What cannot be
        recorded costs a warning. Raises LabError as a trial does."""
        rows = self._loop.rows
        lanes = {row.trial: lane_of(row) for row in rows}
        for trial in self._loop.design.to_record(rows):
            raw = self._raw(trial)
            if lanes[trial] in self._tried or (raw / recording.NAME).exists():
                continue
            self._tried.add(lanes[trial])
            try:
                self._record(trial, raw)
            except (LabUnreachable, RawDataError) as failure:
                self._loop.progress.warn(f"{raw.name}: {failure}")

    def end(self) -> None:
        """As `before_next`, after the last trial; and a warning for each server without a
        recording, as its last JVM held no load."""
        self.before_next()
        rows = self._loop.rows
        due = set(self._loop.design.to_record(rows))
        recorded = {row.server for row in rows if row.trial in due or self._raw(row.trial).exists()}
        for server in sorted({row.server for row in rows} - recorded):
            self._loop.progress.warn(f"{server}: nothing was recorded: its last JVM held no load")

    def _raw(self, trial: str) -> Path:
        return self._loop.run_dir / recording.FOLDER / f"{trial}{RECORDED}"

    def _record(self, trial: str, raw: Path) -> None:
        loop = self._loop
        repeated = read_json(loop.run_dir / "raw" / trial / PLAN, TrialPlan)
        plan = copy.replace(repeated, trial=raw.name, repeats=None)
        schedule = loop.tools.chosen.engines[plan.engine].schedule(plan, raw)
        recorder = loop.tools.subjects[plan.server].recorder
        known = loop.preparation.prepare(plan)
        loop.progress.phase(plan, "recorded")
        try:
            recorder.start_recording(self._kind, math.ceil(schedule.run_s + OVERTIME_S))
            loop.load(plan, known, raw)
            opens, closes = read_json(raw / RECORD, TrialRecord).window(schedule.window_s)
            window = opens.timestamp(), closes.timestamp()
            result, graph = recorder.end_recording(self._kind, window)
            recording.write(raw, result, flamegraph.page(plan.trial, result, graph))
            loop.observe(raw)
        finally:
            self._replace(plan.server, known.before)

    def _replace(self, server: str, before: Snapshot) -> None:
        """A fresh JVM has what it starts with, not what the user has set since: a Ctrl-C does not
        cut this short. What was measured before is whole, also if this fails. Raises LabError for a
        server of the lab: no later trial may run on a JVM that was recorded."""
        subject = self._loop.tools.subjects[server]
        try:
            self._loop.preparation.replace_jvm(server, Clock())
            if subject.knobs:
                now = subject.knobs.read()
                had = {(server, name): n for name, n in knobs_of(before.settings).items()}
                subject.knobs.write({item: n for item, n in had.items() if now.get(item) != n})
        except LabError as failure:
            if subject.knobs:
                raise
            problem = f"its {subject.process} was not replaced: {failure}"
            self._loop.progress.warn(f"{server}: {problem}")
