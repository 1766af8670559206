"""Capacity: the highest rate that a server holds under an objective, and what gave way above it.

The rate is searched: doubled until it is not held, then bisected. Connections follow from the rate,
so they are never the limit by accident. Every decision is made from rows alone, so the same rows
lead to the same next rate. `searching` has the parts: `state` says where the searches stand,
`order` which trial is next, `findings` what was found, `answers` what a reader wants first.
"""

from __future__ import annotations

import dataclasses

from lab.experiments.kind import ToMeasure, TrialKind, Verb, settings_of
from lab.experiments.objective import RULE, parse
from lab.experiments.reading import Asked, Key, Word, read_load, rules, target
from lab.experiments.reading.load import EXACT
from lab.experiments.searching.answers import answers
from lab.experiments.searching.findings import findings
from lab.experiments.searching.order import design
from lab.experiments.searching.state import Capacity
from lab.experiments.searching.summary import NAME

DEFAULT_OBJECTIVE = "p99<500ms,errors<1%"


def _yes(text: str) -> bool:
    if text not in ("yes", "no"):
        raise ValueError(f"{text} is not allowed; allowed: yes, no")
    return text == "yes"


KEYS = {
    "objective": Key(RULE, parse(DEFAULT_OBJECTIVE)),
    "first": Key(rules.number(1, rules.MAX_RATE_RPS), 500),
    "most": Key(rules.number(1, rules.MAX_RATE_RPS), 100_000),
    "resolution": Key(rules.decimal(0.001, 0.5), 0.03),
    "curve": Key(rules.Rule(rules.TEXT, _yes), default=False),
    "prove": Key(rules.Rule(rules.TEXT, _yes), default=False),
}


def read(asked: Asked) -> ToMeasure:
    """The search that the words or a file describe. Raises WordError."""
    load = read_load(asked, ("open",), ("routes",), with_connections=False, searched=True)
    given = asked.settings.table(NAME, KEYS)
    most = asked.settings.get(f"{NAME}.most")
    if most is not None and given["first"] > given["most"]:
        raise most.refuse(f"{most.text} is less than {NAME}.first={given['first']}")
    prove = asked.settings.get(f"{NAME}.prove")
    if load.target and not load.levers and prove is not None and given["prove"]:
        raise prove.refuse(
            f"{prove.text} with {target.WORD} is not allowed: the lab lifts its own, and of a "
            "container of the lab what the [levers] of its subject name"
        )
    held = min(load.most, asked.here.ports or load.most)
    capacity = Capacity(**given, connections=held)
    experiment = load.experiment(
        NAME,
        capacity,
        concurrencies=(capacity.given(capacity.first),),
        engines=(EXACT,),
    )
    if not experiment.question:
        does = "does" if len(experiment.servers) == 1 else "does each of"
        names = ", ".join(experiment.servers)
        text = f"How many requests per second {does} {names} hold at {capacity.objective.text}?"
        experiment = dataclasses.replace(experiment, question=text)
    return experiment, load.notes


KIND = TrialKind(
    name=NAME,
    title="the search for the highest rate that is held",
    uses=(
        *("load.servers", "load.routes", "load.arrivals", "load.duration", "load.warmup"),
        *("repeat.launches", "repeat.patience"),
    ),
    keys=KEYS,
    words={
        **{word: Word(f"{NAME}.{word.lower()}") for word in ("OBJECTIVE", "CURVE", "PROVE")},
        **target.WORDS,
    },
    recorded_load="the highest rate that each server's last JVM held",
    verb=Verb(NAME),
    load_said="open load, at a rate that is searched",
    answers=answers,
    limits=lambda experiment: dict(settings_of(Capacity, experiment).objective.limits),
    read=read,
    design=design,
    findings=findings,
)
