"""The load at which a server still meets an objective: `capacity` along the rate, `stress` along
the connections.

Connections follow from a rate, so they are never the limit by accident; so many connections are
offered what they carry at the objective's latency. How it is searched: `search`; what a load is
worth: `lab.judge.capacity`.
"""

from __future__ import annotations

import copy
from typing import Annotated

from msgspec import Meta, Struct

from lab.kinds.kind import COMMON, Kind, ToMeasure, Verb
from lab.kinds.objective import parse
from lab.kinds.reading import Asked, read_load
from lab.kinds.reading.load import EXACT
from lab.kinds.reading.settings import Connections, Rps
from lab.kinds.search import NAME, Search, design, findings

Width = Annotated[float, Meta(ge=0.005, le=0.5)]


class CapacityTable(Struct, frozen=True):
    """The keys of [capacity]."""

    objective: str = "p99<500ms,errors<1%"
    first: Rps = 2000
    most: Rps = 100_000
    width: Width = 0.08


class StressTable(Struct, frozen=True):
    """The keys of [stress]."""

    objective: str
    first: Connections
    most: Connections
    width: Width = 0.08


def read(asked: Asked) -> ToMeasure:
    """The search for a rate that the words or a file describe. Raises WordError."""
    settings = asked.settings
    load = read_load(asked, ("open",), ("routes",), searched=True, exact=True)
    table = settings.table(NAME, CapacityTable)
    with settings.checked("capacity.objective"):
        objectives = parse(table.objective)
    first = min(table.first, table.most)
    if first < table.first and settings.get("capacity.most") and settings.get("capacity.first"):
        raise settings.refuse("capacity.most", f"is less than capacity.first={table.first}")
    held = min(load.most, asked.here.ports or load.most)
    search = Search(objectives, "rate", first, table.most, table.width, held)
    experiment = load.experiment(NAME, search, concurrencies=(search.offer(first)[0],))
    if not experiment.question:
        does = "does" if len(experiment.servers) == 1 else "does each of"
        names, at = ", ".join(experiment.servers), "; ".join(each.text for each in objectives)
        text = f"How many requests per second {does} {names} sustain at {at}?"
        experiment = copy.replace(experiment, question=text)
    return experiment, load.notes


def read_stress(asked: Asked) -> ToMeasure:
    """The search for connections that a file describes, up to what this machine holds. Raises
    WordError."""
    load = read_load(asked, ("open",), ("routes", "modes", "engines"), searched=True)
    settings, table, notes = asked.settings, asked.settings.table("stress", StressTable), load.notes
    with settings.checked("stress.objective"):
        objectives = parse(table.objective)
    most = min(table.most, load.most)
    if table.first > most:
        what = f"is less than stress.first={table.first}"
        if most < table.most:
            what = f"is more than this machine holds, as stress.first is; allowed: {load.held}"
        raise settings.refuse("stress.most", what)
    if most < table.most:
        held = f"up to {most} of {table.most} connections: this machine holds {load.held}"
        notes = (*notes, held)
    search = Search(objectives, "connections", table.first, most, table.width, most)
    # A search must not be decided by bursts of wrk2.
    engines = load.draft.engines or (EXACT,)
    whole = load.experiment("stress", search, concurrencies=(table.first,), engines=engines)
    return whole, notes


KIND = Kind(
    name=NAME,
    title="the search for the capacity",
    uses=(
        *("load.servers", "load.routes", "load.arrivals", "load.duration", "load.warmup"),
        *("repeat.launches", "repeat.patience"),
    ),
    table=CapacityTable,
    words={"OBJECTIVE": "capacity.objective", "WIDTH": "capacity.width"},
    records=True,
    verb=Verb(NAME),
    read=read,
    design=design,
    findings=findings,
)
STRESS = Kind(
    name="stress",
    title="the search for the capacity in connections",
    uses=(*COMMON, "load.modes", "load.arrivals", "load.duration"),
    table=StressTable,
    records=True,
    read=read_stress,
    design=design,
    findings=findings,
)
