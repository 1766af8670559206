"""The search over an axis, load by load, for the highest one that meets an objective. Pure.

The axis is a rate (`capacity`) or a number of connections that send a rate of their own (`stress`).
A trial's margin (`objective`) is one point of a curve (`lab.judge.capacity`), and the next load is
where the curve so far expects a toss-up. All follows from the rows, so the same rows lead to the
same next load.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lab.errors import WordError
from lab.judge.capacity import Capacity, Estimate, Margin
from lab.judge.predict import predict
from lab.judge.ruler import in_units
from lab.kinds.kind import Outcome, settings_of
from lab.kinds.objective import Objective, margin
from lab.kinds.order import Design, Planner, launches, next_number, turned
from lab.model import (
    NONE,
    STRONG,
    UNKNOWN,
    Finding,
    GaveWay,
    Record,
    Row,
    Sustained,
    TrialPlan,
    Verdict,
)

Axis = Literal["rate", "connections"]
# A launch ends after so many trials. The first one has to find the place.
MOST_TRIALS, MOST_LATER = 16, 6
# So many trials show how a launch scatters.
LEAST_TRIALS = 3
# A launch ends whose last trials say nothing of the server, so many of them.
IN_VAIN = 3
# It is also over where so many trials of the highest load that is allowed met all objectives.
AT_MOST = 2
# The first rate is this share of what settings and CPUs allow by the prediction.
BEGIN = 0.5
# The probabilities that a trial meets the objective, of which the load is told.
HALF, OFTEN = 0.5, 0.95
# What gave way first is what the trials name that missed, by a load that is at most so many times
# the capacity, or a part of it.
NEAR = 1.3
# So near below it a trial stands for the load that nearly all meet.
BELOW = 0.85
NAME = "capacity"
RATE = "req/s"


class Search(Record):
    """What is searched: the highest load of `axis` that meets each objective, from `first` on, at
    most `most`. A launch ends where every answer is known to ± the share `width`. `connections`:
    how many this machine holds."""

    objectives: tuple[Objective, ...]
    axis: Axis
    first: int
    most: int
    width: float
    connections: int

    def __post_init__(self) -> None:
        if not self.objectives or not 1 <= self.first <= self.most or self.connections < 1:
            raise ValueError("an objective, 1 <= first <= most, and at least a connection")
        if not 0 < self.width < 1:
            raise ValueError("width is a share between 0 and 1")

    def load(self, row: Row) -> int:
        """Where a trial stands on the axis."""
        return (row.offered_rps or 0) if self.axis == "rate" else row.concurrency

    def offer(self, load: int) -> tuple[int, int]:
        """The connections and the rate of a load. The objective that leaves a request the longest
        time decides: its connections do for all."""
        longest = max(self.objectives, key=lambda objective: objective.longest_s)
        if self.axis == "connections":
            return load, longest.rate(load)
        return min(longest.connections(load), self.connections), load

    def limits(self) -> dict[str, tuple[float, ...]]:
        """The latencies that decide, by name: those of all objectives."""
        limits: dict[str, tuple[float, ...]] = {}
        for objective in self.objectives:
            for name, limit in objective.limits:
                limits[name] = (*limits.get(name, ()), limit)
        return limits

    def least_limits(self) -> dict[str, float]:
        return {name: min(limits) for name, limits in self.limits().items()}


Known = Sequence[tuple[Row, Margin]]


def margins(search: Search, objective: Objective, rows: Iterable[Row]) -> Known:
    """The trials of a server that say something of an objective, and what."""
    return [
        (row, Margin(search.load(row), row.launch, *ends))
        for row in rows
        if (ends := margin(objective, row)) is not None
    ]


def capacities(search: Search, rows: Sequence[Row]) -> dict[Objective, Capacity]:
    """What is known of each objective on a server; none of one of which no trial says anything."""
    each = {objective: margins(search, objective, rows) for objective in search.objectives}
    return {
        objective: Capacity(tuple(found for _, found in known))
        for objective, known in each.items()
        if known
    }


def next_load(search: Search, first: int, rows: Sequence[Row], launch: int) -> int | None:
    """The next load of a launch of a server, after these rows of the server; None: it is over.
    `first` is the load to begin with."""
    mine = [row for row in rows if row.launch == launch]
    most = MOST_TRIALS if not rows or launch == rows[0].launch else MOST_LATER
    last = mine[-IN_VAIN:]
    in_vain = len(last) == IN_VAIN and not capacities(search, last)
    if len(mine) >= most or in_vain:
        return None
    known = capacities(search, rows)
    if not known:
        return first
    unsure = [capacity for capacity in known.values() if not _is_sure(search, capacity, launch)]
    if not unsure:
        return next((load for each in known.values() if (load := _often(each, launch))), None)
    widest = max(unsure, key=lambda capacity: capacity.of_launch(launch).width)
    load = min(max(round(widest.next(launch)), 1), search.most)
    return None if load == search.most and _met_most(search, mine) else load


def _is_sure(search: Search, capacity: Capacity, launch: int) -> bool:
    tried = sum(margin.launch == launch for margin in capacity.margins)
    return tried >= LEAST_TRIALS and capacity.of_launch(launch).width <= search.width


def _often(capacity: Capacity, launch: int) -> int | None:
    """The load that nearly all trials meet, where none of this launch stands for it: a launch ends
    with a trial there, so that this answer rests on trials, too. None where it is not known."""
    most = capacity.at(OFTEN).value
    near = (margin.load for margin in capacity.margins if margin.launch == launch)
    done = any(BELOW * most <= load <= most / BELOW for load in near)
    return round(most) if most >= 1 and not done else None


def _met_most(search: Search, rows: Sequence[Row]) -> bool:
    at_most = [row for row in rows if search.load(row) == search.most]
    each = [margins(search, objective, at_most) for objective in search.objectives]
    return all(len(known) >= AT_MOST and all(found.met for _, found in known) for known in each)


@dataclass(frozen=True, slots=True)
class Searches(Design):
    """The searches of a run, launch by launch. Within one the server with the fewest rows is next,
    so that a drift of the machine falls on all servers alike."""

    planner: Planner

    @property
    def search(self) -> Search:
        return settings_of(Search, self.planner.experiment)

    @property
    def most(self) -> int:
        experiment = self.planner.experiment
        later = len(launches(experiment)) - 1
        return len(experiment.servers) * (MOST_TRIALS + later * MOST_LATER)

    def next(self, done: Sequence[Row]) -> TrialPlan | None:
        begun = max((row.launch for row in done), default=0)
        for launch in launches(self.planner.experiment):
            if launch < begun:
                continue
            waiting = []
            for server, rows in turned([*self._by_server(done).items()], launch):
                load = next_load(self.search, self.begin(server), rows, launch)
                if load is not None:
                    count = sum(row.launch == launch for row in rows)
                    waiting.append((count, server, load))
            if waiting:
                _, server, load = min(waiting, key=lambda each: each[0])
                return self._plan(server, load, launch, done)
        return None

    def to_record(self, done: Sequence[Row]) -> Iterator[str]:
        """See Design: of each server whose searches are over, the last trial that met the first
        objective."""
        last, objective = launches(self.planner.experiment)[-1], self.search.objectives[0]
        for server, rows in self._by_server(done).items():
            if next_load(self.search, self.begin(server), rows, last) is None:
                known = margins(self.search, objective, rows)
                yield from [row.trial for row, found in known if found.met][-1:]

    def begin(self, server: str) -> int:
        """The load to begin with: less than what the settings allow by the prediction."""
        search, planner = self.search, self.planner
        route, snapshot = planner.experiment.routes[0], planner.snapshots[server]
        _, rate = search.offer(search.first)
        bound = predict(route, search.connections, None, snapshot).rps
        if bound is None or rate <= BEGIN * bound:
            return search.first
        return max(1, round(search.first * BEGIN * bound / rate))

    def _by_server(self, done: Sequence[Row]) -> Mapping[str, list[Row]]:
        servers = self.planner.experiment.servers
        return {server: [row for row in done if row.server == server] for server in servers}

    def _plan(self, server: str, load: int, launch: int, done: Sequence[Row]) -> TrialPlan:
        mode, (connections, rate) = self.planner.experiment.modes[0], self.search.offer(load)
        key = server, launch, load
        plan = self.planner.plan(
            server,
            self.planner.engine,
            mode,
            connections,
            rate if mode == "open" else None,
            launch=launch,
            draw=sum((row.server, row.launch, self.search.load(row)) == key for row in done),
            limits=self.search.limits(),
        )
        return self.planner.named(plan, next_number(done), digits=3)


def design(planner: Planner) -> Design:
    """The searches of the experiment. Raises WordError where an engine cannot do the first trial,
    or even a request alone in the server would miss an objective."""
    searches = Searches(planner)
    route = planner.experiment.routes[0]
    for server in planner.experiment.servers:
        if planner.snapshots[server].spread is not None:
            continue
        alone_ms = 1000 * planner.expected_s([server], route, 1, 1)
        name, limit = min(searches.search.least_limits().items(), key=lambda each: each[1])
        if limit <= alone_ms:
            raise WordError(
                f"OBJECTIVE={name}<{limit:g}ms is not allowed: a request of {route} takes "
                f"{alone_ms:,.0f} ms alone; allowed: more than that"
            )
    searches.next([])
    return searches


def findings(outcome: Outcome) -> Iterator[Finding]:
    """The capacity of each server by objective, and what it costs there in units of the control
    parts."""
    search = settings_of(Search, outcome.experiment)
    for server in outcome.experiment.servers:
        rows = outcome.of(server)
        for objective in search.objectives if rows else ():
            yield from _of_objective(search, objective, server, rows, outcome)


def _of_objective(
    search: Search, objective: Objective, server: str, rows: Sequence[Row], outcome: Outcome
) -> Iterator[Finding]:
    known = margins(search, objective, rows)
    met = [row for row, found in known if found.met]
    missed = [row for row, found in known if found.missed]
    capacity = capacities(search, rows).get(objective)
    value = capacity.at(HALF) if capacity and met and missed else None
    loads = [search.load(row) for row, _ in known]
    # Beyond what was tried the curve has no trial.
    above = not missed or (value is not None and value.value > max(loads) * (1 + search.width))
    below = not met or (value is not None and value.value < min(loads) / (1 + search.width))
    value = None if above or below else value
    often = capacity.at(OFTEN) if capacity and value else None
    edge = max(map(search.load, met), default=None) if above else None
    yield Sustained(
        NAME,
        server,
        0,
        value.value if value else edge,
        RATE if search.axis == "rate" else "connections",
        value.low if value else edge,
        value.high if value else None,
        objective=objective.text,
        limits=dict(objective.limits),
        often=(often.value, often.low, often.high) if often else None,
        launches=len({row.launch for row, _ in known}),
        trials=len(rows),
        used=len(known),
        open_above=above,
        open_below=below,
        gave_way=_gave_way(search, missed, value, outcome.verdicts),
    )
    if objective is search.objectives[0] and value:
        beside, beyond = (
            [row for row in each if _is_near(search.load(row), value.value)]
            for each in (met, missed)
        )
        yield from in_units(server, outcome.rows, beside, beyond, outcome.cpus)


def _is_near(load: float, capacity: float) -> bool:
    return capacity / NEAR <= load <= capacity * NEAR


def _gave_way(
    search: Search,
    missed: Sequence[Row],
    capacity: Estimate | None,
    verdicts: Mapping[str, Verdict],
) -> GaveWay | None:
    if not missed:
        return None
    # Without a capacity the lowest load that was missed is next to it.
    value = capacity.value if capacity else min(map(search.load, missed))
    missed = sorted(missed, key=lambda row: abs(math.log(search.load(row) / value)))
    near = [row for row in missed if _is_near(search.load(row), value)] or missed[:1]
    (resource, count), *_ = Counter(row.bottleneck for row in near).most_common(1)
    if resource in (None, UNKNOWN, NONE) or 2 * count <= len(near):
        return GaveWay(None, 0, len(near), strong=False, verdict=None)
    mine = [row for row in near if row.bottleneck == resource]
    strong = count > 1 and 2 * sum(row.strength == STRONG for row in mine) > len(near)
    return GaveWay(resource, count, len(near), strong, verdicts.get(mine[0].trial))
