"""Capacity: the rates at which half of the trials, and 95 of 100, meet an objective.

Connections follow from the rate, so they are never the limit by accident. How it is searched:
`search`; what a rate is worth: `lab.judge.capacity`.
"""

from __future__ import annotations

import copy

from lab.kinds.kind import Kind, ToMeasure, Verb
from lab.kinds.objective import Objectives
from lab.kinds.reading import Asked, read_load
from lab.kinds.reading.recording import Recorded
from lab.kinds.reading.settings import Rps
from lab.kinds.search import NAME, Search, Width, design, findings


class CapacityTable(Recorded, frozen=True):
    """The keys of [capacity]."""

    objective: Objectives = Objectives.read("p99<500ms,errors<1%")
    first: Rps = 2000
    most: Rps = 100_000
    width: Width = 0.08


def read(asked: Asked) -> ToMeasure:
    """The search that the words or a file describe. Raises WordError."""
    settings = asked.settings
    load = read_load(asked, ("open",), ("routes",), searched=True, exact=True)
    table = settings.table(NAME, CapacityTable)
    first = min(table.first, table.most)
    if first < table.first and settings.get("capacity.most") and settings.get("capacity.first"):
        raise settings.refuse("capacity.most", f"is less than capacity.first={table.first}")
    held = min(load.most, asked.here.ports or load.most)
    search = Search(tuple(table.objective), "rate", first, table.most, table.width, held)
    experiment = load.experiment(NAME, search, concurrencies=(search.offer(first)[0],))
    if not experiment.question:
        does = "does" if len(experiment.servers) == 1 else "does each of"
        at = "; ".join(objective.text for objective in search.objectives)
        names = ", ".join(experiment.servers)
        text = f"How many requests per second {does} {names} sustain at {at}?"
        experiment = copy.replace(experiment, question=text)
    return experiment, load.notes


KIND = Kind(
    name=NAME,
    title="the search for the capacity",
    uses=(
        *("load.servers", "load.routes", "load.arrivals", "load.duration", "load.warmup"),
        *("repeat.launches", "repeat.patience"),
    ),
    table=CapacityTable,
    words={"OBJECTIVE": "capacity.objective", "WIDTH": "capacity.width"},
    verb=Verb(NAME),
    read=read,
    design=design,
    findings=findings,
)
