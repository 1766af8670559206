"""`make site`: many runs as a folder that others can open, from the disk or from any static host.

    RUNS=<run>[,<run>…]   names, or patterns of names with * and ?; all runs where it is not given
    TO=<folder>           in results/; `site` where it is not given

Every trial is judged again from its raw data, so all runs are judged by the rules of this version.
The runs themselves are only read. The folder is written beside its place, and takes it when it is
whole.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

from lab.campaign import executors
from lab.campaign.derive import Trial, found_in, trials_again
from lab.campaign.run_record import say
from lab.campaign.sides import Run, unlike
from lab.errors import Interrupted, LabError, WordError
from lab.experiments.kind import Outcome
from lab.experiments.reading import refuse_unknown
from lab.experiments.registry import kind_of
from lab.load.engines import ENGINES, Engine
from lab.model import Experiment
from lab.model.density import Plan
from lab.model.executors import ExecutorsPlan, Launch
from lab.report import answers, markdown, page, site
from lab.report import density as density_report
from lab.report import executors as executors_report
from lab.report.blocks import Block, Bullets, Code, Facts, Link, Paragraph, Strong
from lab.report.page import flamegraph
from lab.report.site import Machine, SiteRun, commit
from lab.report.words import finding
from lab.store import csv, density, manifest
from lab.store.records import json_text, time_text, write_text, writing
from lab.store.run_dir import MIB, SITE, check_space, find_run_dir

WORDS = ("RUNS", "TO")
DEFAULT = "site"
# The reports of the runs, in the folder.
REPORTS = "runs"
FORMAT_VERSION = 1
# What runs in one figure may differ in: it is what a reader looks at.
ACROSS = ("commit", "images")
# And what their experiments must have in common.
PLANNED = ("kind", "own", "scale", "target", "requests", "duration_s", "warmup_s", "longer")
_PATTERN = re.compile(r"[A-Za-z0-9*?-]*[*?][A-Za-z0-9*?-]*")
_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}")


@dataclass(frozen=True, slots=True)
class Asked:
    """The folder to write, and those of the runs to show, in the order of their names."""

    to: Path
    runs: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read of a run. `run` is for runs whose trials may stand beside those of others."""

    shown: SiteRun
    run: Run | None = None


def parse_site(words: Mapping[str, str], results: Path) -> Asked:
    """What is asked for. Raises WordError."""
    refuse_unknown(words, WORDS, "site")
    name = words.get("TO", DEFAULT)
    to = results / name
    if not _FOLDER.fullmatch(name):
        raise WordError(
            f"TO={name} is not allowed; allowed: the name of a folder in results/, of letters, "
            "digits and -"
        )
    if (to.exists() or to.is_symlink()) and not (to / SITE).is_file():
        raise WordError(
            f"TO={name}: results/{name} is there, and is not a site of the lab; allowed: another "
            "name, or that of a site, which is then made anew"
        )
    return Asked(to, _runs(results, words.get("RUNS", "*")))


def _runs(results: Path, given: str) -> tuple[Path, ...]:
    known = sorted(
        path for path in results.glob("*Z-*")
        if path.is_dir() and not path.is_symlink() and _FOLDER.fullmatch(path.name)
    )  # fmt: skip
    found: dict[Path, None] = {}
    for one in given.split(","):
        if not _PATTERN.fullmatch(one):
            found[find_run_dir(results, "RUNS", one)] = None
            continue
        fitting = [path.resolve() for path in known if fnmatchcase(path.name, one)]
        if not fitting:
            there = ", ".join(path.name for path in known[-3:])
            newest = f"the newest are {there}" if there else "there is none yet"
            raise WordError(
                f"RUNS={one} fits no run here; allowed: names of runs with * and ? in them, and "
                f"commas between ({newest})"
            )
        found |= dict.fromkeys(fitting)
    return tuple(sorted(found, key=lambda path: path.name))


def site_verb(
    words: Mapping[str, str],
    results: Path,
    console: Console,
    engines: Sequence[Engine] = ENGINES,
) -> int:
    """`site`: the folder TO that shows the runs RUNS. Returns 0.

    Raises WordError, and LabError where it cannot be written; what was there before stays then. A
    run that cannot be read is listed, and says why.
    """
    asked = parse_site(words, results)
    copied = [path for run_dir in asked.runs for path in _copied(run_dir)]
    check_space(results, sum(path.stat().st_size for path in copied), "a site of these runs")
    part = asked.to.with_name(f".{asked.to.name}.part")
    with writing(part):
        try:
            part.mkdir()
        except FileExistsError:
            raise LabError(
                f"results/{part.name} is there: another make site writes it, or one was killed; "
                "if none is at work, remove it"
            ) from None
    try:
        runs = _write(asked.runs, part, console, engines)
        _swap(part, asked.to)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    machines = len({run.machine.key for run in runs})
    page_bytes = (asked.to / site.NAME).stat().st_size
    rest = sum(path.stat().st_size for path in asked.to.rglob("*") if path.is_file()) - page_bytes
    say(
        console,
        f"results/{asked.to.name}: {_counted(len(runs), 'run')}, "
        f"{_counted(machines, 'machine')}; {site.NAME} "
        f"{page_bytes / MIB:.1f} MiB, the runs' own reports {rest / MIB:.1f} MiB",
    )
    say(console, f"open results/{asked.to.name}/{site.NAME}, or put the folder on any static host")
    return 0


def _write(
    folders: Sequence[Path], to: Path, console: Console, engines: Sequence[Engine]
) -> tuple[SiteRun, ...]:
    found: list[_Read] = []
    names: dict[str, str] = {}
    for number, run_dir in enumerate(folders, start=1):
        one = _read(run_dir, engines)
        recorded = one.run.name if one.run else run_dir.name
        if recorded in names:
            twin = f"its manifest says that it is {recorded}, and so does that of {names[recorded]}"
            one = _Read(_unreadable(run_dir, twin))
        names.setdefault(recorded, run_dir.name)
        found.append(one)
        _copy(run_dir, to / REPORTS / run_dir.name)
        say(console, f"[{number}/{len(folders)}] {run_dir.name}: {', '.join(one.shown.said)}")
    runs = tuple(_alike(found))
    write_text(to / site.NAME, site.page(runs))
    listed = [{**run.facets, "machine_name": run.machine.name} for run in runs]
    write_text(to / SITE, json_text({"format_version": FORMAT_VERSION, "runs": listed}))
    return runs


def _swap(part: Path, to: Path) -> None:
    """The new folder takes the place of the old one, which comes back where that fails."""
    old = to.with_name(f".{to.name}.old")
    with writing(to):
        try:
            if to.exists():
                shutil.rmtree(old, ignore_errors=True)
                to.rename(old)
            part.rename(to)
        except BaseException:
            if old.exists() and not to.exists():
                old.rename(to)
            raise
    shutil.rmtree(old, ignore_errors=True)


def _copied(run_dir: Path) -> tuple[Path, ...]:
    """What a site has of a run's own files: its reports, and the flame graphs they link to."""
    names = (page.NAME, markdown.NAME, csv.NAME, density.NAME, executors_report.NAME)
    files = (*(run_dir / name for name in names), *run_dir.glob(f"{flamegraph.FOLDER}/*.html"))
    return tuple(path for path in files if path.is_file() and not path.is_symlink())


def _copy(run_dir: Path, to: Path) -> None:
    for path in _copied(run_dir):
        target = to / path.relative_to(run_dir)
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def _read(run_dir: Path, engines: Sequence[Engine]) -> _Read:
    """A run, or why it cannot be read. Raises Interrupted, which says nothing of the run."""
    try:
        if (run_dir / "raw" / executors.RAW).is_file():
            return _Read(_of_executors(run_dir))
        if (run_dir / density.NAME).is_file():
            return _Read(_of_density(run_dir))
        return _of_trials(run_dir, *trials_again(run_dir, engines))
    except Interrupted:
        raise
    except LabError as failure:
        return _Read(_unreadable(run_dir, str(failure).replace(f"{run_dir}/", "")))


def _unreadable(run_dir: Path, why: str) -> SiteRun:
    text = Paragraph((Strong("It is in no figure and no table: "), f"{why}."))
    return SiteRun(
        name=run_dir.name,
        kind="not known",
        machine=Machine.of({}, run_dir.name),
        commit=site.UNTOLD,
        started=site.UNTOLD,
        said=("cannot be judged",),
        shown=(text, *_links(run_dir)),
    )


def _of_trials(
    run_dir: Path, measured: manifest.Manifest[Experiment], trials: Sequence[Trial]
) -> _Read:
    experiment = measured.experiment
    rows = tuple(trial.row for trial in trials)
    kind = kind_of(experiment)
    verdicts = {trial.row.trial: trial.verdict for trial in trials}
    findings, first = found_in(Outcome(experiment, rows, run_dir, verdicts))
    changed = "Its trials changed the lab on purpose, so they stand in no figure beside others."
    shown: tuple[Block, ...] = (
        *answers.blocks(first),
        Bullets([finding(one) for one in findings]),
        Paragraph(changed if kind.changes_lab else ""),
        Paragraph(_other_rules(run_dir, trials), "soft"),
    )
    valid = sum(row.valid for row in rows)
    run = _site_run(
        run_dir,
        measured,
        experiment.kind,
        (*shown, *_links(run_dir)),
        f"{_counted(len(rows), 'trial')}, {valid} of them valid",
    )
    limits = kind.limits(experiment) if kind.limits else None
    whole = replace(run, rows=rows, limits=limits, servers=experiment.servers)
    return _Read(whole, None if kind.changes_lab else Run(measured, rows, run_dir))


def _other_rules(run_dir: Path, trials: Sequence[Trial]) -> str:
    """That the run's own report was made by other rules; empty where it says the same."""
    other = csv.told_otherwise(run_dir / csv.NAME, [trial.row for trial in trials])
    if not other:
        return ""
    return (
        f"The run's own report says something else of {len(other)} of {len(trials)} trials: it was "
        f"made by other rules. make report RUN={run_dir.name} makes it anew."
    )


def _of_density(run_dir: Path) -> SiteRun:
    record = manifest.read_of(run_dir, Plan)
    rows = density.read(run_dir / density.NAME)
    shown = (density_report.table(rows), density_report.invalid(rows))
    valid = sum(row.valid for row in rows)
    said = f"{_counted(len(rows), 'launch', 'es')}, {valid} of them valid"
    servers = tuple(dict.fromkeys(row.server for row in rows))
    whole = _site_run(run_dir, record, "density", (*shown, *_links(run_dir)), said)
    return replace(whole, servers=servers)


def _of_executors(run_dir: Path) -> SiteRun:
    record = manifest.read_of(run_dir, ExecutorsPlan)
    launches: list[Launch] = []
    for line in (run_dir / "raw" / executors.RAW).read_text("utf-8", "replace").splitlines():
        launches.append(executors.read_line(line, launches))
    text = StringIO()
    if launches:
        executors_report.render(Console(file=text, width=160), launches)
    table = Code([line.rstrip() for line in text.getvalue().splitlines()])
    said = _counted(len(launches), "JVM")
    return _site_run(run_dir, record, executors.NAME, (table, *_links(run_dir)), said)


def _site_run(
    run_dir: Path,
    record: manifest.Manifest[Any],
    kind: str,
    shown: Sequence[Block],
    *said: str,
) -> SiteRun:
    experiment = record.experiment
    asked = " ".join(getattr(experiment, "question", "").split())
    scale = getattr(experiment, "scale", 1)
    quick = "" if scale == 1 else f"SCALE={scale:g}: a quick look, not a result"
    facts = Facts((("question", asked), ("words", " ".join(getattr(experiment, "words", ())))))
    return SiteRun(
        name=run_dir.name,
        kind=kind,
        machine=Machine.of(record.host, run_dir.name),
        commit=commit(record.versions),
        started=_when(record.started_at),
        said=tuple(filter(None, (record.status, *said, quick))),
        shown=(facts, *shown),
    )


def _when(moment: datetime) -> str:
    return time_text(moment)[:19].replace("T", " ")


def _links(run_dir: Path) -> Iterator[Block]:
    """To what the site has of the run's own files."""
    here = [path.relative_to(run_dir).as_posix() for path in _copied(run_dir)]
    if not here:
        yield Paragraph(f"It has no report. `make report RUN={run_dir.name}` makes one.")
        return
    pieces: list[str | Link] = ["Its own files: "]
    for name in here:
        pieces += [Link(name, f"{REPORTS}/{run_dir.name}/{name}"), ", "]
    yield Paragraph(tuple(pieces[:-1]))


def _alike(found: Sequence[_Read]) -> Iterator[SiteRun]:
    """The runs, with a number for those that may stand in one figure; the others of their machine
    say what sets them apart."""
    groups: list[tuple[Machine, list[Run]]] = []
    for one in found:
        if one.run is None:
            yield one.shown
            continue
        number, apart = _group(groups, one.shown.machine, one.run)
        note = Paragraph(
            apart and f"Earlier runs of its machine are in no figure with it: {apart}."
        )
        yield replace(one.shown, alike=number, shown=(*one.shown.shown, note))


def _group(groups: list[tuple[Machine, list[Run]]], mine: Machine, run: Run) -> tuple[int, str]:
    """The number of the group that a run of this machine joins, and what sets it apart from the
    first one that it does not."""
    apart = ""
    for number, (machine, members) in enumerate(groups):
        if machine == mine:
            other = _differs(members, run)
            if not other:
                members.append(run)
                return number, apart
            apart = apart or other
    groups.append((mine, [run]))
    return len(groups) - 1, apart


def _differs(members: Sequence[Run], run: Run) -> str:
    """What sets a run apart from these; empty where nothing does."""
    for other in members:
        a, b = other.record.experiment, run.record.experiment
        for name in PLANNED:
            if getattr(a, name) != getattr(b, name):
                return f"{name} is not that of {other.name}"
        if bool(a.launches) != bool(b.launches):
            return f"only one of it and {other.name} is of fresh JVMs"
        for kind, text, _ in unlike(other, run, a.servers, b.servers):
            if kind not in ACROSS:
                return text
    return ""


def _counted(count: int, what: str, more: str = "s") -> str:
    return f"{count} {what}{'' if count == 1 else more}"
