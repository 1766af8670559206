"""Stress: the number of connections at which a server still meets its objective, under a load that
grows with them.

N connections are offered what they carry at the objective's latency. It is the search of
`capacity` along another axis (`search`).
"""

from __future__ import annotations

from lab.kinds.kind import COMMON, Kind, ToMeasure
from lab.kinds.objective import Objectives
from lab.kinds.reading import Asked, read_load
from lab.kinds.reading.load import EXACT
from lab.kinds.reading.recording import Recorded
from lab.kinds.reading.settings import Connections
from lab.kinds.search import Search, Width, design, findings


class StressTable(Recorded, frozen=True, kw_only=True):
    """The keys of [stress]."""

    objective: Objectives
    first: Connections
    most: Connections
    width: Width = 0.08


def read(asked: Asked) -> ToMeasure:
    """The search that a file describes, up to what this machine holds. Raises WordError."""
    load = read_load(asked, ("open",), ("routes", "modes", "engines"), searched=True)
    settings, table, notes = asked.settings, asked.settings.table("stress", StressTable), load.notes
    most = min(table.most, load.most)
    if table.first > most:
        what = f"is less than stress.first={table.first}"
        if most < table.most:
            what = f"is more than this machine holds, as stress.first is; allowed: {load.held}"
        raise settings.refuse("stress.most", what)
    if most < table.most:
        held = f"up to {most} of {table.most} connections: this machine holds {load.held}"
        notes = (*notes, held)
    search = Search(tuple(table.objective), "connections", table.first, most, table.width, most)
    # A search must not be decided by bursts of wrk2.
    engines = load.draft.engines or (EXACT,)
    whole = load.experiment("stress", search, concurrencies=(table.first,), engines=engines)
    return whole, notes


KIND = Kind(
    name="stress",
    title="the search for the capacity in connections",
    uses=(*COMMON, "load.modes", "load.arrivals", "load.duration"),
    table=StressTable,
    read=read,
    design=design,
    findings=findings,
)
