"""What gave way first at a server's capacity: the lever that `explain` has for it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from lab.experiments.kind import settings_of
from lab.experiments.objective import CONNECTIONS
from lab.experiments.proving.levers import Lever, Present, together
from lab.experiments.proving.ties import tied_with
from lab.experiments.searching.state import Capacity, Search, gave_way, held_by
from lab.model import AS_IT_IS, Experiment, Snapshot

# It is lifted for so many times the rate that was held, so that something else gives way next.
ROOM = 4


def lever_of(
    experiment: Experiment, found: Mapping[int, Search], snapshot: Snapshot, cores: int
) -> Lever | str:
    """The lever of what gave way first, and of what by the prediction binds right behind it; or why
    there is none. One that `takes` lifts nothing (`deprived`). `found` are a server's searches,
    which are over; `snapshot` is the server as the run began, `cores` are the driver's CPUs."""
    capacity = settings_of(Capacity, experiment)
    first = gave_way(list(found.values()))
    if first is None:
        return "no rate broke"
    if first.resource is None:
        return "no resource was named"
    if first.resource == CONNECTIONS:
        return "connections follow from the rate"
    rate, *_ = held_by(found)
    now = Present(
        snapshot,
        AS_IT_IS,
        experiment.routes[0],
        capacity.given(round(ROOM * rate)),
        cores,
        most_connections=capacity.connections,
        levers=experiment.levers,
    )
    return together(tied_with(now.lifted_by(first.resource), now, rate)[0], now)
