"""Capacity: the rates at which half of the trials, and 95 of 100, meet an objective.

Connections follow from the rate, so they are never the limit by accident. How it is searched:
`search`; what a rate is worth: `lab.judge.capacity`.
"""

from __future__ import annotations

import dataclasses

from lab.experiments.kind import ToMeasure, TrialKind, Verb, settings_of
from lab.experiments.objective import RULE, Objective, parse
from lab.experiments.reading import Asked, Key, Word, read_load, rules, target
from lab.experiments.reading.load import EXACT
from lab.experiments.search import NAME, Search, design, findings
from lab.report.capacity import answers

DEFAULT_OBJECTIVE = "p99<500ms,errors<1%"


def _several(text: str) -> tuple[Objective, ...]:
    """Objectives with a semicolon between them."""
    found = tuple(map(RULE, text.split(";")))
    if len(set(found)) < len(found):
        raise ValueError(f"{text} has the same objective twice; allowed: each once")
    return found


KEYS = {
    "objective": Key(rules.Rule(rules.TEXT, _several), (parse(DEFAULT_OBJECTIVE),)),
    "first": Key(rules.number(1, rules.MAX_RATE_RPS), 2000),
    "most": Key(rules.number(1, rules.MAX_RATE_RPS), 100_000),
    "width": Key(rules.decimal(0.005, 0.5), 0.08),
}


def read(asked: Asked) -> ToMeasure:
    """The search that the words or a file describe. Raises WordError."""
    load = read_load(asked, ("open",), ("routes",), with_connections=False, searched=True)
    given = asked.settings.table(NAME, KEYS)
    most = asked.settings.get(f"{NAME}.most")
    first = min(given["first"], given["most"])
    if most is not None and asked.settings.get(f"{NAME}.first") and first < given["first"]:
        raise most.refuse(f"{most.text} is less than {NAME}.first={given['first']}")
    held = min(load.most, asked.here.ports or load.most)
    search = Search(
        given["objective"], "rate", first, given["most"], given["width"], connections=held
    )
    experiment = load.experiment(
        NAME,
        search,
        concurrencies=(search.offer(first)[0],),
        engines=(EXACT,),
    )
    if not experiment.question:
        does = "does" if len(experiment.servers) == 1 else "does each of"
        names = ", ".join(experiment.servers)
        at = "; ".join(objective.text for objective in search.objectives)
        text = f"How many requests per second {does} {names} sustain at {at}?"
        experiment = dataclasses.replace(experiment, question=text)
    return experiment, load.notes


KIND = TrialKind(
    name=NAME,
    title="the search for the capacity",
    uses=(
        *("load.servers", "load.routes", "load.arrivals", "load.duration", "load.warmup"),
        *("repeat.launches", "repeat.patience"),
    ),
    keys=KEYS,
    words={
        **{word: Word(f"{NAME}.{word.lower()}") for word in ("OBJECTIVE", "WIDTH")},
        **target.WORDS,
    },
    recorded_load="the last rate at which each server met its objective",
    verb=Verb(NAME),
    load_said="open load, at a rate that is searched",
    answers=answers,
    limits=lambda experiment: settings_of(Search, experiment).least_limits(),
    read=read,
    design=design,
    findings=findings,
)
