"""REPORT.md: a whole run for people, from its manifest and what was computed of its trials.

The same run gives the same text: no time but the run's own, nothing of where it lies.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.cells import Load
from lab.compare import Comparison
from lab.records import time_text
from lab.report import comparison as texts
from lab.report import fairness
from lab.report.manifest import Manifest
from lab.report.table import NOTHING, grouped
from lab.types import Experiment, Finding, Json, Row

NAME = "REPORT.md"
_KINDS = {
    "loads": "fixed loads",
    "stress": "the search for a breaking point",
    "spike": "spikes beside a constant load",
    "faults": "toxics that come and go under a constant load",
    "endurance": "a long constant load",
}


@dataclass(frozen=True, slots=True)
class Content:
    """What the report is made of. `notes` are (trial, note); `unfinished` are raw folders of
    trials that never ended."""

    manifest: Manifest
    experiment: Experiment
    rows: Sequence[Row]
    loads: Sequence[Load]
    comparisons: Sequence[Comparison]
    findings: Sequence[Finding]
    notes: Sequence[tuple[str, str]]
    unfinished: Sequence[str]


def text(of: Content) -> str:
    """The whole report."""
    lines = [f"# {of.experiment.name}: {of.manifest.run}", "", *_loudly(of), *_asked(of)]
    sections = (
        ("What was run", _what(of)),
        ("Loads", _loads(of.loads)),
        ("Comparisons", _comparisons(of.comparisons)),
        ("Findings", _findings(of.findings)),
        ("Invalid trials", _invalid(of)),
        ("Notes", _notes(of)),
        ("Again", _again(of)),
    )
    for title, section in sections:
        body = list(section)
        if body:
            lines += [f"## {title}", "", *body, ""]
    return "\n".join(lines).rstrip() + "\n"


def _loudly(of: Content) -> Iterator[str]:
    if of.experiment.scale != 1:
        yield (
            f"> **SCALE={of.experiment.scale:g}: every duration was multiplied by "
            f"{of.experiment.scale:g}. This is a quick look, not a result.**"
        )
        yield ""
    if of.manifest.status != "complete":
        yield f"> **The run is {of.manifest.status}, not complete: {len(of.rows)} trials.**"
        yield ""


def _asked(of: Content) -> Iterator[str]:
    for name, said in (
        ("Question", of.experiment.question),
        ("Hypothesis", of.experiment.hypothesis),
    ):
        if said:
            yield f"**{name}.** {said.strip()}"
            yield ""


def _what(of: Content) -> Iterator[str]:
    experiment, manifest = of.experiment, of.manifest
    valid = sum(row.valid for row in of.rows)
    ended = time_text(manifest.ended_at) if manifest.ended_at else "not told"
    yield (
        f"- {_KINDS[experiment.kind]}: {len(of.rows)} trials, {valid} of them valid, from "
        f"{time_text(manifest.started_at)} to {ended}"
    )
    arms = f", each in the arms {', '.join(experiment.arms)}" if experiment.arms else ""
    yield f"- servers: {', '.join(experiment.servers)}{arms}"
    yield f"- launches: {_launches(experiment)}"
    engines = dict.fromkeys(row.engine for row in of.rows)
    yield f"- load engines: {', '.join(_engine(name, manifest.versions) for name in engines)}"
    yield f"- code: {_code(manifest.versions)}"
    yield f"- host: {_host(manifest.host)}"
    limits = [f"{name} {_value(value)}" for name, value in manifest.limits.items()]
    yield f"- limits: {', '.join(limits) or 'not recorded'}"
    for line in fairness.lines(manifest.fairness):
        yield f"- {line.text}"


def _launches(experiment: Experiment) -> str:
    if not experiment.launches:
        return "the JVMs that ran already; no interval without LAUNCHES=6 or more"
    count = experiment.launches
    each = "JVM" if count == 1 else "JVMs, interleaved,"
    return f"{count} fresh {each} of every server{' and arm' if experiment.arms else ''}"


def _engine(name: str, versions: Mapping[str, Json]) -> str:
    known = versions.get("engines")
    version = known.get(name) if isinstance(known, Mapping) else None
    if not version:
        return name
    return str(version) if str(version).startswith(name) else f"{name}: {version}"


def _code(versions: Mapping[str, Json]) -> str:
    dirty = " with changes that were not committed" if versions.get("commit_dirty") else ""
    return f"lab {versions.get('lab')}, commit {versions.get('commit') or 'not recorded'}{dirty}"


def _host(host: Mapping[str, Json]) -> str:
    memory = host.get("memory_bytes")
    facts = (
        host.get("cpu_model"),
        f"{host['cores']} cores" if "cores" in host else None,
        f"{memory / 2**30:.1f} GiB" if isinstance(memory, int) else None,
        f"Linux {host['kernel']}" if "kernel" in host else None,
        f"Docker {host['docker_version']}" if "docker_version" in host else None,
    )
    return ", ".join(str(fact) for fact in facts if fact is not None) or "not recorded"


def _value(value: Json) -> str:
    return NOTHING if value is None else str(value)


def _loads(loads: Sequence[Load]) -> Iterator[str]:
    if not loads:
        return
    routes = len({load.route for load in loads}) > 1
    engines = len({load.engine for load in loads}) > 1
    if not routes or not engines:
        same = (() if routes else (loads[0].route,), () if engines else (loads[0].engine,))
        yield f"All: {', '.join(name for names in same for name in names)}."
        yield ""
    yield from table(
        (
            *(("route",) if routes else ()),
            *(("engine",) if engines else ()),
            *("connections", "server", "bound", "closed req/s", "closed raw p95", "offered/s"),
            *("open req/s", "open p95", "open raw p95", "errors", "valid", "launches"),
        ),
        [
            (
                *((load.route,) if routes else ()),
                *((load.engine,) if engines else ()),
                str(load.concurrency),
                load.lane,
                texts.rate(load.bound_rps),
                texts.median_text(load.closed_rps, "achieved_rps"),
                texts.median_text(load.closed_p95_ms, "raw_p95_ms"),
                NOTHING if load.offered_rps is None else str(load.offered_rps),
                texts.median_text(load.open_rps, "achieved_rps"),
                texts.median_text(load.open_p95_ms, "p95_ms"),
                texts.median_text(load.open_raw_p95_ms, "raw_p95_ms"),
                NOTHING if load.errors is None else str(load.errors),
                f"{load.valid} of {load.trials}",
                _count(load),
            )
            for load in loads
        ],
    )
    yield ""
    yield (
        "bound: the most the load and the settings allow, predicted before the run. closed: each "
        "connection sends again as soon as it is answered. open: a constant rate is offered, and "
        "p95 counts from when a request was due; raw p95 from when it was sent. Latencies in ms "
        "(12.3s: seconds), medians over launches of valid trials, with the interval of order "
        "statistics (at least 95 %) from 6 launches on. errors: HTTP errors, socket errors and "
        f"timeouts of whole runs, warm-up included. {NOTHING}: cannot be told."
    )


def _count(load: Load) -> str:
    medians = [of for of in (load.closed_rps, load.open_rps) if of is not None]
    if not medians:
        return "0"
    least = min(medians, key=lambda of: of.count)
    if least.interval is not None:
        return str(least.count)
    return f"no interval ({least.count} launch{'es' if least.count > 1 else ''})"


def _comparisons(comparisons: Sequence[Comparison]) -> Iterator[str]:
    for of in comparisons:
        yield f"**B = {of.b} against A = {of.a}**"
        yield ""
        if of.cells:
            name = texts.cell_names([cell.cell for cell in of.cells])
            yield from table(
                ("load", "of", "A", "B", "B/A", "interval", "B is"),
                [
                    (
                        name[cell.cell],
                        texts.metric_text(cell.metric),
                        texts.median_text(cell.a, cell.metric),
                        texts.median_text(cell.b, cell.metric),
                        *texts.ratio_texts(cell),
                        f"**{cell.answer}**",
                    )
                    for cell in of.cells
                ],
            )
            yield ""
        for line in texts.beside(of):
            yield f"- {line}"
        yield ""
    yield from texts.legend(comparisons)


def _findings(findings: Sequence[Finding]) -> Iterator[str]:
    for finding in findings:
        launch = f", launch {finding.launch}" if finding.launch else ""
        yield f"- {finding.server}{launch}: {finding.text}"


def _invalid(of: Content) -> Iterator[str]:
    for row in of.rows:
        if not row.valid:
            yield f"- {row.trial}: {row.invalid_reasons}"


def _notes(of: Content) -> Iterator[str]:
    # Manifests of format 1 hold the trials' notes too, as `trial: note`.
    trials = {row.trial for row in of.rows}
    own = [note for note in of.manifest.notes if note.partition(": ")[0] not in trials]
    for note in (*own, *grouped(of.notes)):
        yield f"- {note}"
    for name in of.unfinished:
        yield f"- raw/{name} has no trial.json: that trial never ended, and is not in any table"


def _again(of: Content) -> Iterator[str]:
    words = of.experiment.words
    verb = "run" if any(word.startswith("EXP=") for word in words) else "bench"
    if words:
        yield "```"
        yield f"make {verb} {' '.join(map(shlex.quote, words))}"
        yield "```"
        yield ""
    yield (
        f"`make report RUN={of.manifest.run}` computes everything here again from the run's raw "
        "data, without the lab."
    )


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a Markdown table."""
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
