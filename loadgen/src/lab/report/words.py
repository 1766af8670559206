"""The content of a report, and its texts: what was run, on which machine, and the notes."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.judge.compare import Comparison
from lab.judge.grouping import Load
from lab.model import AGAIN, Experiment, Finding, Json, Remark, Row, Verdict
from lab.model.host_facts import host_id
from lab.report.recorded import Recorded
from lab.report.table import NOTHING, grouped
from lab.report.verdicts import Said, said
from lab.store.manifest import Manifest
from lab.store.records import time_text


@dataclass(frozen=True, slots=True)
class Content:
    """The content of both reports. `notes` are (trial, note), `verdicts` (trial, its verdict);
    `unfinished` are raw folders of trials that never ended or cannot be read; `recorded` are trials
    beside the `rows`. `title` and `changes_lab` are those of `lab.experiments.kind.Kind`; `verb`
    measures the kind without a file. `load_name` is what a load is called where loads differ in
    conditions, `limits` are the latencies in ms that decided the trials, by name."""

    manifest: Manifest
    experiment: Experiment
    rows: Sequence[Row]
    loads: Sequence[Load]
    comparisons: Sequence[Comparison]
    findings: Sequence[Finding]
    notes: Sequence[tuple[str, Remark]]
    unfinished: Sequence[str]
    verdicts: Sequence[tuple[str, Verdict]] = ()
    title: str = "trials"
    changes_lab: bool = False
    verb: str = "bench"
    load_name: Callable[[Row], str] | None = None
    answers: tuple[tuple[str, ...], ...] = ()
    limits: Mapping[str, float] | None = None
    recorded: Sequence[Recorded] = ()

    @property
    def said(self) -> tuple[Said, ...]:
        """What limited each load, with its prediction."""
        return said(self.rows, self.verdicts, self.load_name)


def launches(of: Content) -> str:
    experiment = of.experiment
    if of.changes_lab and any(row.launch for row in of.rows):
        return "the JVMs that ran already, but for trials with a number (#n)"
    foreign = experiment.target is not None
    if foreign and not experiment.launches:
        return "the service as it ran already"
    if not experiment.launches:
        return "the JVMs that ran already; no interval without LAUNCHES=6 or more"
    count = experiment.launches
    if foreign:
        return f"{count} fresh container{'' if count == 1 else 's'} of the service"
    each = "JVM" if count == 1 else "JVMs, interleaved,"
    return f"{count} fresh {each} of every server{' and arm' if experiment.arms else ''}"


def engine(name: str, versions: Mapping[str, Json]) -> str:
    known = versions.get("engines")
    version = known.get(name) if isinstance(known, Mapping) else None
    if not version:
        return name
    return str(version) if str(version).startswith(name) else f"{name}: {version}"


def host(facts: Mapping[str, Json]) -> str:
    memory = facts.get("memory_bytes")
    known = (
        host_id(facts),
        facts.get("cpu_model"),
        f"{facts['cores']} cores" if "cores" in facts else None,
        f"{memory / 2**30:.1f} GiB" if isinstance(memory, int) else None,
        f"Linux {facts['kernel']}" if "kernel" in facts else None,
        f"Docker {facts['docker_version']}" if "docker_version" in facts else None,
    )
    return ", ".join(str(fact) for fact in known if fact is not None) or "not recorded"


def made_with(of: Manifest) -> Iterator[tuple[str, str]]:
    """The code, the host and the limits of a run, by name."""
    commit = of.versions.get("commit") or "not recorded"
    dirty = " with changes that were not committed" if of.versions.get("commit_dirty") else ""
    yield "code", f"lab {of.versions.get('lab')}, commit {commit}{dirty}"
    yield "host", host(of.host)
    limits = [f"{name} {NOTHING if limit is None else limit}" for name, limit in of.limits.items()]
    yield "limits", ", ".join(limits) or "not recorded"


def what(of: Content) -> Iterator[tuple[str, str]]:
    """The trials, servers, launches and engines of a run, and `made_with`, by name."""
    experiment, manifest = of.experiment, of.manifest
    valid = sum(row.valid for row in of.rows)
    again = sum(row.trial.endswith(AGAIN) for row in of.rows)
    repeated = f", {again} of them to measure one again" if again else ""
    yield of.title, f"{len(of.rows)} trials, {valid} of them valid{repeated}, {times(manifest)}"
    arms = f", each in the arms {', '.join(experiment.arms)}" if experiment.arms else ""
    yield "servers", f"{', '.join(experiment.servers)}{arms}"
    yield "launches", launches(of)
    engines = dict.fromkeys(row.engine for row in of.rows)
    yield "load engines", ", ".join(engine(name, manifest.versions) for name in engines)
    yield from made_with(manifest)


def times(of: Manifest) -> str:
    ended = time_text(of.ended_at) if of.ended_at else "not told"
    return f"from {time_text(of.started_at)} to {ended}"


def notes(of: Content) -> Iterator[str]:
    yield from (*of.manifest.notes, *grouped(of.notes))
    for name in of.unfinished:
        yield f"raw/{name} is not in any table: its trial never ended, or cannot be read"


def command(of: Content, settings: Sequence[str]) -> str | None:
    """The command that repeats the run, with these settings of .env; None if unknown."""
    given = of.experiment.words
    return make((*given, *settings), of.verb) if given else None


def make(given: Sequence[str], verb: str) -> str:
    file = any(word.startswith("EXP=") for word in given)
    return shlex.join(("make", "run" if file else verb, *given))


def question(of: Content) -> str:
    experiment = of.experiment
    if experiment.question.strip():
        return experiment.question.strip()
    loads = ", ".join(f"{one:,}" for one in experiment.concurrencies)
    load = f"{loads} connection{'' if experiment.concurrencies == (1,) else 's'}"
    servers = ", ".join(experiment.servers)
    return f"What {'does' if len(experiment.servers) == 1 else 'do'} {servers} do at {load}?"
