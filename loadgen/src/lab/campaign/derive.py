"""Everything of a run that follows from its raw data, computed again: rows, findings, report.

Wiring: it hands each trial to measuring and judging, and what came of it to the reports. Reads
manifest.json and raw/ only, reaches nothing outside the run's folder, and writes the same
bytes every time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lab.campaign.as_measured import as_measured, start_of
from lab.errors import LabError, RawDataError
from lab.experiments import loads
from lab.experiments.kind import Kind, Outcome
from lab.experiments.loads import arms_of
from lab.experiments.registry import kind_of
from lab.judge.checks import judge
from lab.judge.checks.data import damaged
from lab.judge.compare import Comparison, lanes
from lab.judge.grouping import lane_of
from lab.judge.grouping import loads as loads_of
from lab.judge.resources import verdict_of
from lab.judge.row import row_of
from lab.judge.ruler import drift
from lab.judge.trial import UNOBSERVED, Trial
from lab.load.engines import Engine
from lab.load.measure import RECORD, folders, lost, measure
from lab.model import (
    RECORDED,
    Experiment,
    Finding,
    Judgement,
    Measurement,
    NotFound,
    Remark,
    Row,
    SeriesError,
    Sustained,
    Verdict,
)
from lab.model.host_facts import cores_of, host_id
from lab.report import answers, comparison, index, markdown, page, remarks, ruler, words
from lab.report.findings import answers as answers_of
from lab.report.findings import lines as lines_of
from lab.report.recorded import Recorded
from lab.report.verdicts import Said
from lab.report.words import Content
from lab.store import csv, jsonl, manifest, recording
from lab.store.records import json_text, read_bytes, write_text, writing
from lab.store.series import load_or_none

FINDINGS = "findings.json"


@dataclass(frozen=True, slots=True)
class Judged:
    """One trial, measured and judged, and what limited it."""

    measurement: Measurement
    judgement: Judgement
    verdict: Verdict
    row: Row


@dataclass(frozen=True, slots=True)
class Derived:
    """What came of a run's raw data. `notes` are (trial, note), `said` what limited each load.

    `recorded` are the trials beside these, with recordings.

    `files` are the derived files by name (and the folder of figures), `changed` those that were
    not there with these very bytes. `answers` come first on the console. `unfinished` are raw
    folders of trials that never ended.
    """

    rows: tuple[Row, ...]
    notes: tuple[tuple[str, Remark], ...]
    findings: tuple[Finding, ...]
    comparisons: tuple[Comparison, ...]
    unfinished: tuple[str, ...]
    files: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    said: tuple[Said, ...] = ()
    answers: tuple[tuple[str, ...], ...] = ()
    recorded: tuple[Recorded, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        return lines_of(self.findings)


def read_trial(measured: manifest.Manifest, raw: Path, engines: Sequence[Engine]) -> Judged:
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
    trial = Trial(measurement, observation or UNOBSERVED, start)
    trial = replace(trial, judgement=judge(trial))
    verdict = verdict_of(trial)
    row = row_of(measured.run, trial, verdict, host_id(measured.host))
    return Judged(measurement, trial.judgement, verdict, row)


def _own(measurement: Measurement, raw: Path) -> Measurement:
    """The measurement, if it is of the trial its folder is named after. Raises RawDataError."""
    trial = measurement.record.plan.trial
    if trial != raw.name:
        raise RawDataError(raw / RECORD, None, f"is of trial {trial}, but lies in {raw.name}")
    return measurement


def read_trials(
    measured: manifest.Manifest, raws: Sequence[Path], engines: Sequence[Engine]
) -> tuple[list[tuple[Path, Judged]], list[str]]:
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


def derive(
    run_dir: Path,
    engines: Sequence[Engine],
    *,
    pages: bool = True,
    told: Callable[[Derived], None] = lambda _: None,
) -> Derived:
    """Measure and judge every trial that ended, and write what follows of them all.

    `told` hears what came of them before the page and its figures are drawn, which takes seconds,
    and before any file is written. Without `pages` these are not drawn.

    A derived file that differs is replaced. Raises LabError; nothing is written then.
    """
    record = manifest.read(run_dir)
    experiment = record.experiment
    measured = as_measured(record, run_dir)
    finished, unfinished = folders(run_dir / "raw")
    ended, unreadable = read_trials(measured, finished, engines)
    trials = [trial for _, trial in ended]
    unfinished = (*unfinished, *unreadable)
    recorded = recorded_of(measured, run_dir, engines, trials)
    rows = tuple(trial.row for trial in trials)
    notes = tuple((trial.row.trial, note) for trial in trials for note in trial.judgement.notes)
    kind = kind_of(experiment)
    verdicts = {trial.row.trial: trial.verdict for trial in trials}
    outcome = Outcome(experiment, rows, run_dir, verdicts, cores_of(record.host))
    findings = (*_findings(kind, outcome), *drift(rows, outcome.cpus))
    first = answers_of(experiment, findings)
    # Servers that are searched have few loads in common: the answers compare them.
    comparisons = () if kind.changes_lab or first else lanes(rows)
    if first is None:
        first = answers.of_loads(rows, verdicts) if kind is loads.KIND else ()
    content = Content(
        manifest=measured,
        experiment=experiment,
        rows=rows,
        loads=loads_of([one.row for one in trials if not one.measurement.record.plan.hold]),
        comparisons=comparisons,
        findings=findings,
        notes=notes,
        unfinished=unfinished,
        verdicts=tuple(verdicts.items()),
        title=kind.title,
        changes_lab=kind.changes_lab,
        verb="gate" if arms_of(experiment).images else kind.verb.name if kind.verb else "run",
        load_name=lane_of if kind.changes_lab else None,
        answers=ruler.with_units(first, findings),
        limits=_limits(experiment, findings),
        recorded=recorded,
    )
    texts = {
        csv.NAME: csv.text(rows),
        jsonl.NAME: "".join(
            jsonl.line(trial.row, trial.measurement, trial.judgement, trial.verdict)
            for trial in trials
        ),
        FINDINGS: json_text(findings),
        comparison.NAME: json_text(comparison.to_file(comparisons)),
        markdown.NAME: markdown.text(content),
        index.ANSWER: index.answer_text(words.question(content), answers.plain(content.answers)),
    }
    derived = Derived(
        rows=rows,
        notes=notes,
        findings=findings,
        comparisons=comparisons,
        unfinished=unfinished,
        said=content.said,
        answers=content.answers,
        recorded=recorded,
    )
    told(derived)
    figures: Mapping[str, str] = {}
    if pages:
        shown = [_shown(trial, raw) for raw, trial in ended]
        texts[page.NAME], figures = page.build(content, shown)
    changed = []
    for name, text in texts.items():
        if write_derived(run_dir / name, text):
            changed.append(name)
    if pages and _draw(run_dir / page.FIGURES, figures):
        changed.append(page.FIGURES)
    return replace(derived, files=(*texts, page.FIGURES), changed=tuple(changed))


def recorded_of(
    measured: manifest.Manifest,
    run_dir: Path,
    engines: Sequence[Engine],
    trials: Sequence[Judged] = (),
) -> tuple[Recorded, ...]:
    """The recorded trials of a run as it was measured, beside those of its `trials` that they
    repeat. Raises CannotWrite."""
    taken, _ = read_trials(measured, folders(run_dir / recording.FOLDER)[0], engines)
    return tuple(_recorded(taken, trials))


def _recorded(taken: Sequence[tuple[Path, Judged]], trials: Sequence[Judged]) -> Iterator[Recorded]:
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


def _limits(experiment: Experiment, findings: Sequence[Finding]) -> dict[str, float] | None:
    """The latencies in ms that decided the trials of a search at open loads, by name."""
    limits: dict[str, float] = {}
    for finding in findings:
        if isinstance(finding, Sustained) and experiment.modes[0] == "open":
            for name, limit in finding.limits.items():
                limits[name] = min(limit, limits.get(name, limit))
    return limits or None


def _shown(trial: Judged, raw: Path) -> page.Shown:
    return page.Shown(
        row=trial.row,
        measurement=trial.measurement,
        judgement=trial.judgement,
        observed=_observed(trial.row, raw),
        verdict=trial.verdict,
    )


def _observed(row: Row, raw: Path) -> page.Observed | None:
    """What is drawn of a trial over time. Series that cannot be read cost these figures: the row
    says why, or the verdict."""
    try:
        seen = load_or_none(raw)
        return page.observed(seen, row.server, row.route) if seen else None
    except (RawDataError, SeriesError):
        return None


def _draw(folder: Path, figures: Mapping[str, str]) -> bool:
    """Whether any figure was not there with these very bytes. Older figures that are no longer
    made are removed: they follow from the raw data as these do."""
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
