"""The pair of trials that ends a capacity search: a rate that the server held, once more through
Toxiproxy and past it, so that the proxy's time is measured and no remainder. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lab.experiments.proving.levers import Lever, Present, direct
from lab.experiments.searching.state import Search, are_over, held_by
from lab.model import AS_IT_IS, STRAIGHT, THROUGH, Condition, Experiment, Row, Snapshot
from lab.model.routes import parse

# A side whose trial is invalid is measured once more.
TRIES = 2
# Of the highest rate up to which all trials held. At that rate itself a trial may break, and then
# what the CPUs lacked would count as the proxy's time.
SHARE = 0.9


def sides(experiment: Experiment, snapshot: Snapshot, cores: int) -> Mapping[str, Condition]:
    """The conditions of both sides, by arm. None of a server whose calls do not go through
    Toxiproxy, or through a toxic that would be gone without it, and on a route without a call.
    `snapshot` is the server as the run began."""
    route = experiment.routes[0]
    if snapshot.foreign or not parse(route).route.calls_downstream:
        return {}
    past = direct(Present(snapshot, AS_IT_IS, route, experiment.concurrencies[0], cores))
    return {THROUGH: AS_IT_IS, STRAIGHT: past.step} if isinstance(past, Lever) else {}


def rate_of(held: float) -> int:
    return max(1, round(SHARE * held))


def sides_left(
    experiment: Experiment, found: Mapping[int, Search], arms: Sequence[str], rows: Sequence[Row]
) -> list[tuple[str, int]]:
    """The sides of a server that are still to be measured, in turns, with their rate: SHARE of the
    highest up to which all trials of its searches held. None before these are over, and where
    nothing is held. `rows` are those of the server."""
    if not are_over(experiment, found):
        return []
    value, low, _ = held_by(found)
    rate = rate_of(low or value)
    tried = {
        arm: [row.valid for row in rows if (row.arm, row.offered_rps) == (arm, rate)]
        for arm in arms
    }
    waiting = [arm for arm, of in tried.items() if not any(of) and len(of) < TRIES]
    return [(arm, rate) for arm in sorted(waiting, key=lambda arm: len(tried[arm]))]
