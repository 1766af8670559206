"""The texts that both reports of a run share: what was run, on which machine, and the notes."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.judge.compare import MOST_ERRORS, Comparison
from lab.judge.grouping import Load
from lab.model import AGAIN, Experiment, Finding, Json, Row, Verdict
from lab.report import comparison as texts
from lab.report.recorded import Recorded
from lab.report.table import NOTHING, grouped
from lab.report.verdicts import Said, said
from lab.store.manifest import Manifest
from lab.store.records import time_text

LOADS_LEGEND = (
    "bound: the most the load and the settings allow, predicted before the run. closed: each "
    "connection sends again as soon as it is answered. open: a constant rate is offered, and "
    "p95 counts from when a request was due; raw p95 from when it was sent. req/s: answers that "
    "were no errors; latencies are of all answers. Latencies in ms "
    "(12.3s: seconds), medians over launches of valid trials, with the interval of order "
    "statistics (at least 95 %) from 6 launches on. errors: HTTP errors, socket errors and "
    "timeouts of whole runs, warm-up included, with their largest share in a valid trial where "
    f"that is above {MOST_ERRORS:.0%}. {NOTHING}: cannot be told."
)


@dataclass(frozen=True, slots=True)
class Content:
    """The content of both reports. `notes` are (trial, note), `verdicts` (trial, its verdict);
    `unfinished` are raw folders of trials that never ended or cannot be read; `recorded` are trials
    beside the `rows`. `title`, `asks`, `jvms`, `changes_lab`, `load_name`, `answers` and `limits`
    are those of `lab.experiments.kind.TrialKind`; `verb` measures the kind without a file."""

    manifest: Manifest
    experiment: Experiment
    rows: Sequence[Row]
    loads: Sequence[Load]
    comparisons: Sequence[Comparison]
    findings: Sequence[Finding]
    notes: Sequence[tuple[str, str]]
    unfinished: Sequence[str]
    verdicts: Sequence[tuple[str, Verdict]] = ()
    title: str = "trials"
    asks: str | None = None
    jvms: str | None = None
    changes_lab: bool = False
    verb: str = "bench"
    load_name: Callable[[Row], str] | None = None
    answers: tuple[tuple[str, ...], ...] = ()
    limits: Mapping[str, float] | None = None
    recorded: Sequence[Recorded] = ()

    @property
    def said(self) -> tuple[Said, ...]:
        """What limited each load, with its prediction."""
        foreign = self.experiment.target is not None
        return said(self.rows, self.verdicts, self.load_name, foreign=foreign)


def launches(of: Content) -> str:
    """The JVMs that were measured."""
    experiment = of.experiment
    if of.jvms is not None:
        return of.jvms
    if experiment.target is not None:
        return "the service as it ran already"
    if not experiment.launches:
        return "the JVMs that ran already; no interval without LAUNCHES=6 or more"
    count = experiment.launches
    each = "JVM" if count == 1 else "JVMs, interleaved,"
    return f"{count} fresh {each} of every server{' and arm' if experiment.arms else ''}"


def engine(name: str, versions: Mapping[str, Json]) -> str:
    """A load engine with its version."""
    known = versions.get("engines")
    version = known.get(name) if isinstance(known, Mapping) else None
    if not version:
        return name
    return str(version) if str(version).startswith(name) else f"{name}: {version}"


def host(facts: Mapping[str, Json]) -> str:
    """The machine, in a line."""
    memory = facts.get("memory_bytes")
    known = (
        facts.get("cpu_model"),
        f"{facts['cores']} cores" if "cores" in facts else None,
        f"{memory / 2**30:.1f} GiB" if isinstance(memory, int) else None,
        f"Linux {facts['kernel']}" if "kernel" in facts else None,
        f"Docker {facts['docker_version']}" if "docker_version" in facts else None,
    )
    return ", ".join(str(fact) for fact in known if fact is not None) or "not recorded"


def made_with(of: Manifest[Any]) -> Iterator[tuple[str, str]]:
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
    repeated = f", {again} of them to measure an invalid one again" if again else ""
    yield of.title, f"{len(of.rows)} trials, {valid} of them valid{repeated}, {times(manifest)}"
    arms = f", each in the arms {', '.join(experiment.arms)}" if experiment.arms else ""
    yield "servers", f"{', '.join(experiment.servers)}{arms}"
    yield "launches", launches(of)
    engines = dict.fromkeys(row.engine for row in of.rows)
    yield "load engines", ", ".join(engine(name, manifest.versions) for name in engines)
    yield from made_with(manifest)


def times(of: Manifest[Any]) -> str:
    """When a run began and ended."""
    ended = time_text(of.ended_at) if of.ended_at else "not told"
    return f"from {time_text(of.started_at)} to {ended}"


def finding(of: Finding) -> str:
    """A finding after whose it is."""
    return f"{of.server}{f' #{of.launch}' if of.launch else ''}: {of.text}"


def same(loads: Sequence[Load]) -> str:
    """The route and the engine, as far as all loads have the same."""
    routes, engines = ({load.route for load in loads}, {load.engine for load in loads})
    return ", ".join(names.pop() for names in (routes, engines) if len(names) == 1)


def loads_table(loads: Sequence[Load]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The header and the rows of the table of loads; route and engine only where they differ."""
    routes = len({load.route for load in loads}) > 1
    engines = len({load.engine for load in loads}) > 1
    header = (
        *(("route",) if routes else ()),
        *(("engine",) if engines else ()),
        *("connections", "server", "bound", "closed req/s", "closed raw p95", "offered/s"),
        *("open req/s", "open p95", "open raw p95", "errors", "valid", "launches"),
    )
    rows = [
        (
            *((load.route,) if routes else ()),
            *((load.engine,) if engines else ()),
            str(load.concurrency),
            load.lane,
            texts.rate(load.bound_rps),
            texts.median_text(load.closed_rps, "goodput_rps"),
            texts.median_text(load.closed_p95_ms, "raw_p95_ms"),
            NOTHING if load.offered_rps is None else str(load.offered_rps),
            texts.median_text(load.open_rps, "goodput_rps"),
            texts.median_text(load.open_p95_ms, "p95_ms"),
            texts.median_text(load.open_raw_p95_ms, "raw_p95_ms"),
            _errors(load),
            f"{load.valid} of {load.trials}",
            _count(load),
        )
        for load in loads
    ]
    return header, rows


def _errors(load: Load) -> str:
    if load.errors is None:
        return NOTHING
    share = f" ({load.error_share:.0%})" if load.error_share > MOST_ERRORS else ""
    return f"{load.errors}{share}"


def _count(load: Load) -> str:
    medians = [of for of in (load.closed_rps, load.open_rps) if of is not None]
    if not medians:
        return "0"
    least = min(medians, key=lambda of: of.count)
    if least.interval is not None:
        return str(least.count)
    return f"no interval ({least.count} launch{'es' if least.count > 1 else ''})"


def notes(of: Content) -> Iterator[str]:
    """Notes on the run, on its trials, and on data that is left out."""
    yield from (*of.manifest.notes, *grouped(of.notes))
    for name in of.unfinished:
        yield f"raw/{name} is not in any table: its trial never ended, or cannot be read"


def invalid(of: Content) -> list[str]:
    """The invalid trials, with their reasons."""
    return [f"{row.trial}: {row.invalid_reasons}" for row in of.rows if not row.valid]


def command(of: Content, settings: Sequence[str]) -> str | None:
    """The command that repeats the run, with these settings of .env; None if its words are not
    stored."""
    given = of.experiment.words
    return make((*given, *settings), of.verb) if given else None


def make(given: Sequence[str], verb: str) -> str:
    """The command of these words; `verb` measures without an experiment's file."""
    file = any(word.startswith("EXP=") for word in given)
    return shlex.join(("make", "run" if file else verb, *given))


def not_brought_back(others: Sequence[str]) -> str:
    """The settings that the command does not restore."""
    return (
        f"These settings also differed, and the command does not restore them: {'; '.join(others)}."
    )


@dataclass(frozen=True, slots=True)
class Notice:
    """What a reader must know first: `strong`, then `text`. `place` is
    the section that tells more, by its id, and `more` what it tells."""

    strong: str
    text: str
    place: str = ""
    more: str = ""


def notices(of: Content) -> Iterator[Notice]:
    """The notices at the top of both reports."""
    scale = of.experiment.scale
    if scale != 1:
        yield Notice(
            f"SCALE={scale:g}: every duration was multiplied by {scale:g}.",
            "This is a quick look, not a result.",
        )
    if of.manifest.status != "complete":
        yield Notice(f"The run is {of.manifest.status}, not complete:", f"{len(of.rows)} trials.")
    invalid = sum(not row.valid for row in of.rows)
    if invalid:
        are = "is" if invalid == 1 else "are"
        strong = f"{invalid} of {len(of.rows)} trials {are} invalid"
        yield Notice(strong, "and in no median:", "validity", "why")
    for name in of.manifest.fairness.unequal:
        yield Notice(
            f"{name} is not equal for all servers:", "", "fairness", "see the fairness manifest"
        )


def question(of: Content) -> str:
    """The experiment's question; without one, a question made from the load."""
    experiment = of.experiment
    if experiment.question.strip():
        return experiment.question.strip()
    loads = ", ".join(f"{one:,}" for one in experiment.concurrencies)
    load = f"{loads} connection{'' if experiment.concurrencies == (1,) else 's'}"
    servers = ", ".join(experiment.servers)
    if of.asks is not None:
        return f"{of.asks} {servers} at {load}?"
    return f"What {'does' if len(experiment.servers) == 1 else 'do'} {servers} do at {load}?"
