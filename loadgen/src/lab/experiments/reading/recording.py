"""RECORD=: what is recorded of a server's JVM, in the kinds that take it. A file says it in the
kind's own table, as `loads.record`. lab.campaign.recording does it."""

from __future__ import annotations

import dataclasses

from lab.errors import LabError
from lab.experiments.reading import rules, target
from lab.experiments.reading.settings import Asked
from lab.model import UNITS, Experiment

KEY, WORD = "record", "RECORD"


def rule(text: str) -> str:
    """What may be recorded. Raises ValueError."""
    allowed = ", ".join(UNITS)
    if text == "wall":
        raise ValueError(
            "wall is not allowed: JDK Flight Recorder samples no thread that waits; "
            f"allowed: {allowed}"
        )
    return rules.one_of(tuple(UNITS))(text)


def with_record(
    asked: Asked, experiment: Experiment, what: str
) -> tuple[Experiment, tuple[str, ...]]:
    """The experiment with its recording, if the user asks for one, and a note of it. `what` is the
    load that is recorded, for people. Raises WordError for a service whose JVM nobody can
    replace."""
    key = f"{experiment.kind}.{KEY}"
    given, kind = asked.settings.get(key), asked.settings.one(key, rule, None)
    if given is None or kind is None:
        return experiment, ()
    if experiment.target and experiment.servers[0] not in asked.here.own:
        raise given.refuse(
            f"{kind} with {target.WORD} is not allowed: {experiment.servers[0]} is no container of "
            "this lab, so nobody can replace its JVM; allowed: a service of compose.override.yaml"
        )
    note = (
        f"{WORD}={kind}: {what} once more with a recording, beside the trials; then it gets a "
        f"fresh {'container' if experiment.target else 'JVM'}"
    )
    return dataclasses.replace(experiment, own={**experiment.own, KEY: kind}), (note,)


def wanted(experiment: Experiment) -> str | None:
    """What is recorded in a run of this experiment; None: nothing. Raises LabError."""
    kind = experiment.own.get(KEY)
    if kind is None:
        return None
    if isinstance(kind, str) and kind in UNITS:
        return kind
    raise LabError(f"{experiment.name}: {KEY} is one of {', '.join(UNITS)}, not {kind}")
