"""What searches for a capacity found. Pure but for what a run says of the servers and trials that
were lifted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from lab.experiments.kind import Outcome, settings_of
from lab.experiments.objective import Objective
from lab.experiments.order import counted
from lab.experiments.searching.answers import in_order, launches_of
from lab.experiments.searching.beside import beside as beside_search
from lab.experiments.searching.knee import knee
from lab.experiments.searching.proof import proof
from lab.experiments.searching.spent import cost, grew, went
from lab.experiments.searching.state import (
    Capacity,
    Search,
    capacity_of,
    searches,
    told_and_untold,
    under_way,
)
from lab.experiments.searching.told import NAME, SEARCH, UNIT, begun, each_search, said
from lab.model import THROUGH, Finding, Row


def findings(outcome: Outcome) -> tuple[Finding, ...]:
    """The capacity of each server first, then how each of its launches was searched, what grew,
    where the time goes, and what came of it with what gave way lifted. Raises LabError without a
    manifest where that is not lifted."""
    experiment, rows = outcome.experiment, counted(outcome.rows)
    capacity, verdicts = settings_of(Capacity, experiment), outcome.verdicts
    answers: list[Finding] = []
    each: list[Finding] = []
    beside: list[Finding] = []
    for server in experiment.servers:
        own = [row for row in rows if row.server == server]
        found = begun(searches(experiment, own))
        if not found:
            continue
        text, value = said(found, f" at {capacity.objective.text}", verdicts)
        answers.append(Finding(NAME, server, 0, value[0], UNIT, *value[1:], text))
        each += each_search(capacity, SEARCH, server, found, verdicts)
        beside += grew(server, list(found.values()))
        beside += went(server, list(found.values()), own, capacity.objective)
        curve = _curve(capacity, own, found)
        beside += _knee(capacity, server, curve, found)
        beside += _after(capacity.objective, server, curve, own, found)
        beside += cost(server, list(found.values()))
        if capacity.prove:
            beside += proof(outcome, server, own, found)
    ranked = in_order(answers, launches_of(each))
    return (*ranked, *each, *beside)


def _curve(capacity: Capacity, own: Sequence[Row], found: Mapping[int, Search]) -> Sequence[Row]:
    """The trials of the curve, which is of the last launch."""
    launch, last = max(found.items())
    its = [row for row in own if (row.launch, row.arm) == (launch, None)]
    return its[-last.curve :] if capacity.curve and last.curve else []


def _after(
    objective: Objective,
    server: str,
    curve: Sequence[Row],
    own: Sequence[Row],
    found: Mapping[int, Search],
) -> Iterator[Finding]:
    """What trials after the searches say against the interval. A JVM may lie outside of it by its
    own search, so a rate inside any launch's interval says nothing against it."""
    told, untold = told_and_untold(found.values())
    if under_way(found) or not told:
        return
    rows = [*curve, *(row for row in own if row.arm == THROUGH)]
    _, low, high = capacity_of(told, untold)
    lows, highs = zip(*(one.interval for one in told), strict=True)
    ends = min(low or 0, *lows), max(math.inf if one is None else one for one in (high, *highs))
    windows = [row.duration_s or 0 for one in told for of in one.rungs for row in of.held]
    yield from beside_search(server, objective, rows, ends, max(windows, default=0))


def _knee(
    capacity: Capacity, server: str, curve: Sequence[Row], found: Mapping[int, Search]
) -> Iterator[Finding]:
    told = knee(server, max(found), capacity.objective, curve) if curve else None
    if told is not None:
        yield told
