"""What was asked, what was run on which machine, what was found, notes, and how to repeat it."""

import shlex
from collections.abc import Iterator, Mapping, Sequence

from lab.model import AGAIN, Json, Remark
from lab.model.host_facts import host_id
from lab.report.remarks import say, text
from lab.report.result import Result
from lab.report.text import NOTHING, counted
from lab.store.records import time_text


def question(result: Result) -> str:
    experiment = result.experiment
    if experiment.question.strip():
        return experiment.question.strip()
    connections = ", ".join(f"{count:,}" for count in experiment.concurrencies)
    load = f"{connections} connection{'' if experiment.concurrencies == (1,) else 's'}"
    servers = ", ".join(experiment.servers)
    return f"What {'does' if len(experiment.servers) == 1 else 'do'} {servers} do at {load}?"


def summary(result: Result) -> str:
    host, day = host_id(result.manifest.host) or "unknown", result.manifest.started_at.date()
    trials, invalid = counted(len(result.rows), "trial"), len(result.invalid)
    return say("run", "summary", trials=trials, invalid=invalid, day=day, host=host)


def run(result: Result) -> Iterator[tuple[str, str]]:
    """The trials, servers, launches and engines of a run, its code, host and limits, by name."""
    experiment, manifest, rows = result.experiment, result.manifest, result.rows
    yield (
        result.title,
        say(
            "run",
            "trials",
            trials=len(rows),
            valid=len(rows) - len(result.invalid),
            again=sum(row.trial.endswith(AGAIN) for row in rows),
            began=time_text(manifest.started_at),
            ended=time_text(manifest.ended_at) if manifest.ended_at else "unknown",
        ),
    )
    servers, arms = ", ".join(experiment.servers), ", ".join(experiment.arms)
    yield "servers", say("run", "servers", servers=servers, arms=arms)
    yield "launches", launches(result)
    versions = manifest.versions
    known = versions.get("engines")
    engines = known if isinstance(known, Mapping) else {}
    names = dict.fromkeys(row.engine for row in rows)
    yield "load engines", ", ".join(str(engines.get(name, name)) for name in names)
    commit = versions.get("commit") or "not recorded"
    dirty = versions.get("commit_dirty")
    yield "code", say("run", "code", lab=f"{versions.get('lab')}", commit=commit, dirty=dirty)
    yield "host", host(manifest.host)
    limits = [
        f"{name} {NOTHING if limit is None else limit}" for name, limit in manifest.limits.items()
    ]
    yield "limits", ", ".join(limits) or "not recorded"


def launches(result: Result) -> str:
    experiment, count = result.experiment, result.experiment.launches
    code = ("lab" if experiment.target is None else "service") + ("" if count else "-running")
    if result.changes_lab and any(row.launch for row in result.rows):
        code = "some"
    jvms, containers = counted(count, "fresh JVM"), counted(count, "fresh container")
    return say("launches", code, jvms=jvms, containers=containers, arms=bool(experiment.arms))


def host(facts: Mapping[str, Json]) -> str:
    memory = facts.get("memory_bytes")
    gib = memory / 2**30 if isinstance(memory, int) else None
    known = say("run", "host", **{**facts, "host": host_id(facts), "gib": gib})
    return known.removeprefix(", ") or "not recorded"


def notes(result: Result) -> Iterator[str]:
    yield from (*result.manifest.notes, *grouped(result.notes))
    for name in result.unfinished:
        yield f"raw/{name} is not in any table: its trial never ended, or cannot be read"


def grouped(notes: Sequence[tuple[str, Remark]]) -> Iterator[str]:
    """A line for each note, after the trials that it is about."""
    trials: dict[Remark, list[str]] = {}
    for trial, note in notes:
        trials.setdefault(note, []).append(trial)
    for note, names in trials.items():
        numbers = [name.partition("-")[0] for name in names]
        yield f"{names[0] if len(names) == 1 else ', '.join(numbers)}: {text(note)}"


def command(result: Result, settings: Sequence[str]) -> str | None:
    """The command that repeats the run, with these settings of .env; None if unknown."""
    given = result.experiment.words
    has_file = any(word.startswith("EXP=") for word in given)
    verb = "run" if has_file else result.verb
    return shlex.join(("make", verb, *given, *settings)) if given else None
