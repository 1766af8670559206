"""Everything of a run that follows from its raw data, computed again: rows, findings, report.

Wiring: it hands each trial to measuring and judging, and the result to the reports. It reads and
writes only inside the run's folder, and writes the same bytes every time.
"""

from collections.abc import Sequence
from copy import replace
from dataclasses import dataclass
from pathlib import Path

from lab.errors import RawDataError
from lab.judge import trial as judging
from lab.judge.checks import judge
from lab.judge.checks.data import damaged
from lab.judge.compare import lanes
from lab.judge.resources import verdict_of
from lab.judge.row import row_of
from lab.judge.ruler import drift
from lab.kinds.kind import Kind, Outcome
from lab.kinds.loads import arms_of
from lab.kinds.registry import kind_of
from lab.load.engines import Engine
from lab.load.measure import RECORD, first_record, folders, lost, measure
from lab.model import (
    RECORDED,
    Condition,
    Finding,
    NotFound,
    Observation,
    Remark,
    Snapshot,
    TrialPlan,
)
from lab.model.host_facts import cores_of, host_id
from lab.model.knobs import IMAGE
from lab.report import answers, comparison, index, markdown, page, remarks, words
from lab.report.page.over_time import over_time
from lab.report.result import Recorded, Result, Trial, is_answered
from lab.store import csv, jsonl, manifest, recording
from lab.store.manifest import Manifest
from lab.store.records import json_text, write_text, writing
from lab.store.series import load_or_none

FINDINGS = "findings.json"


@dataclass(frozen=True, slots=True)
class Judged:
    """The result of a run, its trials with their raw folders, and those that cannot be read."""

    result: Result
    trials: tuple[tuple[Path, Trial], ...]
    unreadable: tuple[str, ...]


def as_measured(record: Manifest, run_dir: Path) -> Manifest:
    """The run with the settings that its servers' first trials had: a knob that was turned before
    the run is gone with the first fresh JVM. One that was turned for that trial is as the run
    began. Not if trials change the lab on purpose. Raises RawDataError."""
    if kind_of(record.experiment).changes_lab:
        return record
    servers = dict(record.servers)
    for server, was in record.servers.items():
        first = first_record(run_dir / "raw", server)
        if first is not None:
            knobs = first.plan.condition.knobs
            turned = {knob: was.settings[knob] for knob in knobs if knob in was.settings}
            servers[server] = replace(was, settings={**first.before.settings, **turned})
    return replace(record, servers=servers)


def start_of(measured: Manifest, plan: TrialPlan) -> Snapshot | None:
    """What the trials of the plan's server began with, of a run as it was measured: the way to the
    downstream of its first server, by whose snapshot its loads were planned, and the server's own
    settings with the knobs of this trial. None if the lab is changed on purpose otherwise: from
    trial to trial, or for this one by more than knobs and the server's image."""
    experiment = measured.experiment
    way, server = (measured.servers.get(name) for name in (experiment.servers[0], plan.server))
    knobs, host = plan.condition.knobs, plan.condition.host
    allowed = Condition(knobs=knobs, host=host if {*host} <= {IMAGE} else {})
    changed = kind_of(experiment).changes_lab or plan.condition != allowed
    if changed or way is None or server is None:
        return None
    return replace(way, settings={**server.settings, **knobs})


def read_trial(measured: Manifest, raw: Path, engines: Sequence[Engine]) -> Trial:
    """The trial whose raw folder this is, of a run as it was measured (`as_measured`). A file that
    cannot be read costs the trial: it is invalid, and says why. Raises RawDataError only where not
    even its plan can be read, or it is that of another trial, and CannotWrite."""
    try:
        measurement = measure(raw, engines)
    except RawDataError as failure:
        measurement = lost(raw, _damage(failure), measured.started_at, measured.servers)
    plan = measurement.record.plan
    if plan.trial != raw.name:
        raise RawDataError(raw / RECORD, None, f"is of trial {plan.trial}, but lies in {raw.name}")
    observation = None
    try:
        observation = load_or_none(raw)
    except RawDataError as failure:
        if reading := measurement.reading:
            reading = replace(reading, remarks=(*reading.remarks, _damage(failure)))
            measurement = replace(measurement, reading=reading)
    judged = judging.Trial(measurement, observation or judging.UNOBSERVED, start_of(measured, plan))
    judged = replace(judged, judgement=judge(judged))
    verdict = verdict_of(judged)
    row = row_of(measured.run, judged, verdict, host_id(measured.host))
    return Trial(measurement, judged.judgement, verdict, row)


def derive(run_dir: Path, engines: Sequence[Engine]) -> Result:
    """Measure and judge every trial that ended, and write what follows of them all. Raises
    LabError; where it is not of the disk nothing is written then."""
    run = judged(run_dir, engines)
    write(run_dir, run)
    return run.result


def judged(run_dir: Path, engines: Sequence[Engine]) -> Judged:
    """Every trial of a run that ended, measured and judged, and what follows of them all. Raises
    LabError."""
    record = manifest.read(run_dir)
    experiment = record.experiment
    measured = as_measured(record, run_dir)
    finished, unfinished = folders(run_dir / "raw")
    folders_read, unreadable = _read_trials(measured, finished, engines)
    trials = [trial for _, trial in folders_read]
    rows = tuple(trial.row for trial in trials)
    verdicts = {trial.row.trial: trial.verdict for trial in trials}
    kind = kind_of(experiment)
    outcome = Outcome(experiment, rows, run_dir, verdicts, cores_of(record.host))
    findings = (*_findings(kind, outcome), *drift(rows, outcome.cpus))
    result = Result(
        manifest=measured,
        title=kind.title,
        changes_lab=kind.changes_lab,
        rows=rows,
        verdicts=verdicts,
        findings=findings,
        # Servers that are searched have few loads in common: the answers compare them.
        comparisons=() if kind.changes_lab or is_answered(findings) else lanes(rows),
        notes=[(trial.row.trial, note) for trial in trials for note in trial.judgement.notes],
        unfinished=(*unfinished, *unreadable),
        recorded=_recorded_trials(measured, run_dir, engines, trials),
        verb="gate" if arms_of(experiment).images else kind.verb.name if kind.verb else "run",
    )
    return Judged(result, tuple(folders_read), tuple(unreadable))


def write(run_dir: Path, judged: Judged) -> None:
    """Write the derived files. Older figures that are no longer made are removed. The page and its
    figures take seconds to draw. Raises CannotWrite."""
    result, trials = judged.result, [trial for _, trial in judged.trials]
    lines = answers.plain(answers.of(result))
    shown = [(trial, over_time(trial, _observed(raw))) for raw, trial in judged.trials]
    html, figures = page.build(result, shown)
    texts = {
        csv.NAME: csv.text(result.rows),
        jsonl.NAME: "".join(
            jsonl.line(trial.row, trial.measurement, trial.judgement, trial.verdict)
            for trial in trials
        ),
        FINDINGS: json_text(result.findings),
        comparison.NAME: json_text(comparison.to_file(result.comparisons)),
        markdown.NAME: markdown.text(result),
        index.ANSWER: index.answer_text(words.question(result), lines),
        page.NAME: html,
        **{f"{page.FIGURES}/{name}.svg": svg for name, svg in figures.items()},
    }
    with writing(run_dir / page.FIGURES):
        for old in (run_dir / page.FIGURES).glob("*.svg"):
            if old.stem not in figures:
                old.unlink()
        if figures:
            (run_dir / page.FIGURES).mkdir(exist_ok=True)
    for name, text in texts.items():
        write_text(run_dir / name, text)


def _recorded_trials(
    measured: Manifest, run_dir: Path, engines: Sequence[Engine], trials: Sequence[Trial]
) -> tuple[Recorded, ...]:
    """The recorded trials of a run, each with that of its `trials` which it repeats on the same
    JVM. Raises CannotWrite."""
    taken, _ = _read_trials(measured, folders(run_dir / recording.FOLDER)[0], engines)
    known = {trial.row.trial: trial for trial in trials}
    return tuple(
        _recorded(raw, trial, known.get(trial.row.trial.removesuffix(RECORDED)))
        for raw, trial in taken
    )


def _recorded(raw: Path, trial: Trial, repeated: Trial | None) -> Recorded:
    taken, problem, beside = None, "its recording was not read", None
    try:
        taken = recording.load_or_none(raw)
    except RawDataError as failure:
        problem = remarks.text(_damage(failure))
    # A JVM has no start time where nobody reads its exporter: it may be another one.
    jvm_ms = trial.measurement.record.before.jvm_started_ms
    if repeated and jvm_ms and repeated.measurement.record.before.jvm_started_ms == jvm_ms:
        beside = repeated.row
    return Recorded(trial.row, beside, taken, problem)


def _read_trials(
    measured: Manifest, raws: Sequence[Path], engines: Sequence[Engine]
) -> tuple[list[tuple[Path, Trial]], list[str]]:
    """The trials with their raw folders, and the names of those of which not even the plan can be
    read. Raises CannotWrite."""
    trials, unreadable = [], []
    for raw in raws:
        try:
            trials.append((raw, read_trial(measured, raw, engines)))
        except (RawDataError, ArithmeticError, ValueError):
            unreadable.append(raw.name)
    return trials, unreadable


def _findings(kind: Kind, outcome: Outcome) -> tuple[Finding, ...]:
    """What the kind finds. A raw file that cannot be read costs the findings, not the report."""
    try:
        return tuple(kind.findings(outcome))
    except RawDataError as failure:
        return (NotFound(kind.name, "", 0, None, "", None, None, (_damage(failure),)),)


def _observed(raw: Path) -> Observation | None:
    """Series that cannot be read cost the figures over time: the row says why."""
    try:
        return load_or_none(raw)
    except RawDataError:
        return None


def _damage(failure: RawDataError) -> Remark:
    return damaged.remark(problem=failure.said)
