"""RECORD=: what is recorded of a server's JVM, in the kinds that take it. A file says it in the
kind's own table, as `loads.record`. lab.app.recording does it."""

from __future__ import annotations

import copy
from typing import Literal

from msgspec import Struct

from lab.errors import LabError
from lab.kinds.reading.settings import Asked
from lab.model import UNITS, Experiment

KEY, WORD = "record", "RECORD"


class Recorded(Struct, frozen=True):
    """The key of the tables of kinds whose trials may be recorded."""

    record: Literal["cpu", "alloc", "lock"] | None = None


def with_record(asked: Asked, experiment: Experiment) -> tuple[Experiment, tuple[str, ...]]:
    """The experiment with its recording, if the user asks for one, and a note of it. Raises
    WordError for a service whose JVM nobody can replace."""
    settings, key = asked.settings, f"{experiment.kind}.{KEY}"
    unit = settings.table(experiment.kind, Recorded).record
    if unit is None:
        return experiment, ()
    server, foreign = experiment.servers[0], experiment.target is not None
    if foreign and server not in asked.here.own:
        raise settings.refuse(
            key,
            f"with TARGET is not allowed: {server} is no container of this lab, so its JVM stays; "
            "allowed: a service of compose.override.yaml",
        )
    note = (
        f"{WORD}={unit}: a load of each server once more with a recording, beside the trials; then "
        f"it gets a fresh {'container' if foreign else 'JVM'}"
    )
    return copy.replace(experiment, own={**experiment.own, KEY: unit}), (note,)


def wanted(experiment: Experiment) -> str | None:
    """What is recorded in a run of this experiment; None: nothing. Raises LabError."""
    unit = experiment.own.get(KEY)
    if unit is None or (isinstance(unit, str) and unit in UNITS):
        return unit
    raise LabError(f"{experiment.name}: {KEY} is one of {', '.join(UNITS)}, not {unit}")
