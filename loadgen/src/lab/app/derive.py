"""Everything of a run that follows from its raw data, computed again: rows, findings, report.

Wiring: it hands each trial to measuring and judging, and the result to the reports. It reads and
writes only inside the run's folder, and writes the same bytes every time.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import replace
from dataclasses import dataclass
from pathlib import Path

from lab.app.as_measured import as_measured, start_of
from lab.errors import LabError, RawDataError
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
from lab.load.measure import RECORD, folders, lost, measure
from lab.model import (
    RECORDED,
    Finding,
    Measurement,
    NotFound,
    Observation,
    PerConnection,
    Row,
    Sustained,
)
from lab.model.host_facts import cores_of, host_id
from lab.report import answers, comparison, index, markdown, page, remarks, words
from lab.report.page.over_time import over_time
from lab.report.result import Recorded, Result, Trial
from lab.store import csv, jsonl, manifest, recording
from lab.store.records import json_text, read_bytes, write_text, writing
from lab.store.series import load_or_none

FINDINGS = "findings.json"


@dataclass(frozen=True, slots=True)
class Judged:
    """The result of a run, and its trials with their raw folders."""

    result: Result
    trials: tuple[tuple[Path, Trial], ...]


@dataclass(frozen=True, slots=True)
class Derived:
    """`files` are the derived files by name (and the folder of figures), `changed` those that were
    not there with these very bytes."""

    result: Result
    files: tuple[str, ...]
    changed: tuple[str, ...]

    @property
    def rows(self) -> Sequence[Row]:
        return self.result.rows

    @property
    def unfinished(self) -> Sequence[str]:
        return self.result.unfinished


def read_trial(measured: manifest.Manifest, raw: Path, engines: Sequence[Engine]) -> Trial:
    """The trial whose raw folder this is, of a run as it was measured (`as_measured`). A file that
    cannot be read costs the trial: it is invalid, and says why. Raises RawDataError only where not
    even its plan can be read, and CannotWrite."""
    try:
        measurement = _own(measure(raw, engines), raw)
    except RawDataError as failure:
        problem = damaged.remark(problem=failure.said)
        measurement = lost(raw, problem, measured.started_at, measured.servers)
    observation = None
    try:
        observation = load_or_none(raw)
    except RawDataError as failure:
        if measurement.reading is not None:
            said = damaged.remark(problem=failure.said)
            reading = replace(measurement.reading, remarks=(*measurement.reading.remarks, said))
            measurement = replace(measurement, reading=reading)
    start = start_of(measured, measurement.record.plan)
    judged = judging.Trial(measurement, observation or judging.UNOBSERVED, start)
    judged = replace(judged, judgement=judge(judged))
    verdict = verdict_of(judged)
    row = row_of(measured.run, judged, verdict, host_id(measured.host))
    return Trial(measurement, judged.judgement, verdict, row)


def _own(measurement: Measurement, raw: Path) -> Measurement:
    """The measurement, if it is of the trial its folder is named after. Raises RawDataError."""
    trial = measurement.record.plan.trial
    if trial != raw.name:
        raise RawDataError(raw / RECORD, None, f"is of trial {trial}, but lies in {raw.name}")
    return measurement


def read_trials(
    measured: manifest.Manifest, raws: Sequence[Path], engines: Sequence[Engine]
) -> tuple[list[tuple[Path, Trial]], list[str]]:
    """The trials with their raw folders, and the names of those of which not even the plan can be
    read. Raises CannotWrite."""
    trials, unreadable = [], []
    for raw in raws:
        try:
            trials.append((raw, read_trial(measured, raw, engines)))
        except RawDataError:
            unreadable.append(raw.name)
    return trials, unreadable


def judged_again(
    run_dir: Path, engines: Sequence[Engine]
) -> tuple[manifest.Manifest, tuple[Row, ...]]:
    """A run as it was measured, and its rows by the rules of this version, whatever version
    measured them. Raises LabError where a trial of it has no raw data that can be read."""
    record = manifest.read(run_dir)
    trials, _ = folders(run_dir / "raw")
    gone = sorted({*csv.trials(run_dir / csv.NAME)} - {raw.name for raw in trials})
    if gone or not trials:
        missing = f"no raw data of {', '.join(gone)}" if gone else "no raw data"
        raise LabError(f"{run_dir.name} has {missing}: it cannot be judged again")
    measured = as_measured(record, run_dir)
    return measured, tuple(read_trial(measured, raw, engines).row for raw in trials)


def derive(run_dir: Path, engines: Sequence[Engine], *, pages: bool = True) -> Derived:
    """Measure and judge every trial that ended, and write what follows of them all. Raises
    LabError; nothing is written then."""
    return write(run_dir, judged(run_dir, engines), pages=pages)


def judged(run_dir: Path, engines: Sequence[Engine]) -> Judged:
    """Every trial of a run that ended, measured and judged, and what follows of them all. Raises
    LabError."""
    record = manifest.read(run_dir)
    experiment = record.experiment
    measured = as_measured(record, run_dir)
    finished, unfinished = folders(run_dir / "raw")
    found, unreadable = read_trials(measured, finished, engines)
    trials = [trial for _, trial in found]
    rows = tuple(trial.row for trial in trials)
    verdicts = {trial.row.trial: trial.verdict for trial in trials}
    kind = kind_of(experiment)
    outcome = Outcome(experiment, rows, run_dir, verdicts, cores_of(record.host))
    findings = (*_findings(kind, outcome), *drift(rows, outcome.cpus))
    searched = any(isinstance(finding, Sustained | PerConnection) for finding in findings)
    result = Result(
        manifest=measured,
        kind=kind,
        rows=rows,
        verdicts=verdicts,
        findings=findings,
        # Servers that are searched have few loads in common: the answers compare them.
        comparisons=() if kind.changes_lab or searched else lanes(rows),
        notes=[(trial.row.trial, note) for trial in trials for note in trial.judgement.notes],
        unfinished=(*unfinished, *unreadable),
        recorded=recorded_of(measured, run_dir, engines, trials),
        verb="gate" if arms_of(experiment).images else kind.verb.name if kind.verb else "run",
    )
    return Judged(result, tuple(found))


def write(run_dir: Path, judged: Judged, *, pages: bool = True) -> Derived:
    """Write the derived files; one that differs is replaced. The page and its figures take seconds
    to draw: without `pages` they are not drawn. Raises CannotWrite."""
    result, trials = judged.result, [trial for _, trial in judged.trials]
    lines = answers.plain(answers.of(result))
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
    }
    figures: Mapping[str, str] = {}
    if pages:
        shown = [(trial, over_time(trial, _observed(raw))) for raw, trial in judged.trials]
        texts[page.NAME], figures = page.build(result, shown)
    changed = [name for name, text in texts.items() if write_derived(run_dir / name, text)]
    if pages and _draw(run_dir / page.FIGURES, figures):
        changed.append(page.FIGURES)
    return Derived(result, (*texts, page.FIGURES), tuple(changed))


def recorded_of(
    measured: manifest.Manifest,
    run_dir: Path,
    engines: Sequence[Engine],
    trials: Sequence[Trial] = (),
) -> tuple[Recorded, ...]:
    """The recorded trials of a run as it was measured, beside those of its `trials` that they
    repeat. Raises CannotWrite."""
    taken, _ = read_trials(measured, folders(run_dir / recording.FOLDER)[0], engines)
    return tuple(_recorded(taken, trials))


def _recorded(taken: Sequence[tuple[Path, Trial]], trials: Sequence[Trial]) -> Iterator[Recorded]:
    """The recorded trials, each with the trial that it repeats on the same JVM."""
    known = {trial.row.trial: trial for trial in trials}
    for raw, trial in taken:
        found, problem = None, "its recording was not read"
        try:
            found = recording.load_or_none(raw)
        except RawDataError as failure:
            problem = remarks.text(damaged.remark(problem=failure.said))
        beside = known.get(trial.row.trial.removesuffix(RECORDED))
        jvms = {one.measurement.record.before.jvm_started_ms for one in (trial, beside) if one}
        # A JVM has no start time where nobody reads its exporter: it may be another one.
        same = beside if len(jvms) == 1 and None not in jvms else None
        yield Recorded(trial.row, same.row if same else None, found, problem)


def _findings(kind: Kind, outcome: Outcome) -> tuple[Finding, ...]:
    """What the kind finds. A raw file that cannot be read costs the findings, not the report."""
    try:
        return tuple(kind.findings(outcome))
    except RawDataError as failure:
        problem = damaged.remark(problem=failure.said)
        return (NotFound(kind.name, "", 0, None, "", None, None, (problem,)),)


def _observed(raw: Path) -> Observation | None:
    """Series that cannot be read cost the figures over time: the row says why."""
    try:
        return load_or_none(raw)
    except RawDataError:
        return None


def _draw(folder: Path, figures: Mapping[str, str]) -> bool:
    """True if any figure was not there with these very bytes. Older figures that are no longer made
    are removed: they follow from the raw data as these do."""
    changed = False
    for path in sorted(folder.glob("*.svg")):
        if path.stem not in figures:
            with writing(path):
                path.unlink()
            changed = True
    if figures:
        with writing(folder):
            folder.mkdir(exist_ok=True)
    for name, svg in figures.items():
        drawing = folder / f"{name}.svg"
        if not drawing.is_file() or read_bytes(drawing) != svg.encode():
            write_text(drawing, svg)
            changed = True
    return changed


def write_derived(path: Path, text: str) -> bool:
    """Write a derived file. True if its text is new."""
    try:
        if read_bytes(path) == text.encode():
            return False
    except FileNotFoundError:
        pass
    write_text(path, text)
    return True
