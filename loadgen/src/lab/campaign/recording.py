"""RECORD=: each server's last load once more, with a recording of its JVM, beside the trials.

Such a trial is in a folder of its own and has no row, so no median, no comparison and no verdict of
the run knows of it. What it says of speed is only what recording costs: it is set beside the trial
that it repeats, on the same JVM. That JVM is then replaced, so that whatever a recording leaves in
it is in no later figure.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.campaign.preparation import Preparation, Prepared
from lab.campaign.tools import Tools
from lab.errors import LabUnreachable, RawDataError
from lab.experiments.kind import settings_of
from lab.experiments.loads import KIND, Loads
from lab.experiments.order import Design
from lab.judge.grouping import lane_of
from lab.load.measure import PLAN, RECORD
from lab.load.trial import OVERTIME_S
from lab.model import AGAIN, RECORDED, Experiment, Row, Snapshot, TrialPlan, TrialRecord
from lab.model.knobs import KNOBS
from lab.report.progress import Trials
from lab.store import recording
from lab.store.records import read_json


def wanted(experiment: Experiment) -> str | None:
    """What is recorded in a run of this experiment; None: nothing. Raises LabError."""
    return settings_of(Loads, experiment).record if experiment.kind == KIND.name else None


@dataclass(slots=True)
class Recorder:
    """Makes the recorded trials of a run that are due. `load` runs a prepared trial into its
    folder, `observe` stores what Prometheus saw of it."""

    kind: str
    run_dir: Path
    order: Design
    tools: Tools
    preparation: Preparation
    progress: Trials
    load: Callable[[TrialPlan, Prepared, Path], None]
    observe: Callable[[Path], None]
    _tried: set[str] = field(default_factory=set)

    def before(self, following: TrialPlan | None, rows: Sequence[Row]) -> None:
        """Record the servers that have no trial left, if they are not recorded yet; `following` is
        the trial that comes next. One that cannot be recorded costs a warning. Raises LabError as a
        trial does."""
        for lane, trial in self._due(following, rows):
            self._tried.add(lane)
            try:
                self._record(trial)
            except (LabUnreachable, RawDataError) as failure:
                self.progress.warn(f"{trial}{RECORDED}: {failure}")

    def _due(self, following: TrialPlan | None, rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
        """Each such server, or arm of one, and its last trial."""
        names = {row.trial.removesuffix(AGAIN) for row in rows}
        left = {lane_of(plan) for plan in self.order.known if plan.trial not in names}
        if following is not None:
            # It may be one that is measured once more.
            left.add(lane_of(following))
        last = {lane_of(row): row.trial for row in rows}
        for lane, trial in last.items():
            raw = self.run_dir / recording.FOLDER / f"{trial}{RECORDED}"
            if lane not in left | self._tried and not (raw / recording.NAME).exists():
                yield lane, trial

    def _record(self, trial: str) -> None:
        of_raw = read_json(self.run_dir / "raw" / trial / PLAN, TrialPlan)
        plan = dataclasses.replace(of_raw, trial=f"{trial}{RECORDED}", repeats=None)
        tools, raw = self.tools, self.run_dir / recording.FOLDER / plan.trial
        schedule = tools.chosen.engines[plan.engine].schedule(plan, raw)
        management = tools.stack.management
        prepared = self.preparation.prepare(plan)
        self.progress.phase(plan, "recorded")
        try:
            most_s = math.ceil(schedule.total_s + OVERTIME_S)
            management.start_recording(plan.server, self.kind, most_s)
            self.load(plan, prepared, raw)
            opens, closes = read_json(raw / RECORD, TrialRecord).window(schedule.window_s)
            window = opens.timestamp(), closes.timestamp()
            recording.write(raw, management.end_recording(plan.server, self.kind, window))
            self.observe(raw)
        finally:
            tools.stages.fresh(plan.server, tools.stack, tools.system)
            self._turn_knobs_back(plan.server, prepared.before)

    def _turn_knobs_back(self, server: str, before: Snapshot) -> None:
        """A fresh JVM has what it starts with, not what the user has set since."""
        management = self.tools.stack.management
        now = management.settings(server)
        known = {knob.name: before.settings.get(knob.name) for knob in KNOBS}
        changed = {
            name: value
            for name, value in known.items()
            if type(value) is int and now.get(name) != value
        }
        if changed:
            management.change_knobs(server, changed)
