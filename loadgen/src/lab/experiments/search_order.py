"""The order of the trials of capacity searches: which server, rate and launch is next."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.errors import LabError, WordError
from lab.experiments.deprived import ALL, ARMS, FEWER, PART, Deprived, arm_of
from lab.experiments.interventions import Lever
from lab.experiments.kind import settings_of
from lab.experiments.lifting import lever_of
from lab.experiments.order import (
    LONGEST_S,
    Design,
    Planner,
    after_damaged,
    counted,
    launches,
    lengthened,
    next_number,
    turned,
)
from lab.experiments.proxy_pair import sides, sides_left
from lab.experiments.rate_search import AGREE_LATER
from lab.experiments.searches import (
    LIFTED,
    SHARES,
    Capacity,
    Search,
    are_over,
    capacity_of,
    curve,
    lifted,
    searches,
)
from lab.judge.predict import predict
from lab.model import AS_IT_IS, Condition, Row, TrialPlan

# A rate that was held is confirmed in a window that is longer: so many times as long at most.
LONGER = 4
# Windows are made longer up to so many seconds.
MOST_WINDOW_S = 2 * LONGEST_S
# Trials of rates above this many resolutions of what was held may end as soon as they are lost.
# Those nearer go on to their end: they are the answer's figures.
NEAR = 2
# Near the capacity what waited while connections opened takes long to drain: of 20 long windows at
# 7,300 to 11,300 req/s on 2 CPUs, 7 were invalid as their latency still fell.
LONGER_WARMUP_S = 20


@dataclass(frozen=True, slots=True)
class Searches(Design):
    """One search per launch and server. Within a launch the server with the fewest rows is next, so
    that a drift of the machine falls on all servers alike. Then the curves; then the pairs with and
    without Toxiproxy and the searches with what gave way lifted, one server after the other, as
    these may take another container; then the trials with fewer CPUs."""

    planner: Planner

    def left(self, done: Sequence[Row]) -> int:
        """See Design; not counting trials that run once more because others disagree."""
        experiment, capacity = self.planner.experiment, self._capacity
        done, count = counted(done), 0
        for server in experiment.servers:
            found = self._searches(server, done)
            count += self._most_left(found)
            is_under_way = any(one.rate is not None for one in found.values())
            if capacity.curve:
                count += len(SHARES) if is_under_way else len(curve(experiment, found))
            left = self._sides_left(server, done, found)
            count += len(self._sides(server) if is_under_way else left)
            if capacity.prove and is_under_way:
                later = len(launches(experiment)) - 1
                count += (
                    capacity.way(capacity.first, experiment.launches).left([])
                    + later * 2 * AGREE_LATER
                )
            else:
                count += self._most_left(self._lifted(server, done, found)[1])
                _, deprived = self._deprived(server, done, found)
                count += deprived.left if deprived else 0
        return count

    def _most_left(self, found: Mapping[int, Search]) -> int:
        count = sum(one.left for one in found.values())
        if any(one.rate is not None for one in found.values()):
            count += (len(launches(self.planner.experiment)) - len(found)) * 2 * AGREE_LATER
        return count

    def next(self, done: Sequence[Row]) -> TrialPlan | None:
        """The next rate of the server that had the fewest trials; first what was damaged. Raises
        LabError for rows that are not of its search."""
        return after_damaged(done, self._next)

    def check(self) -> None:
        """Raises WordError for an objective that even a request alone in the server would miss."""
        for server in self.planner.experiment.servers:
            if self.planner.snapshots[server].spread is not None:
                continue
            alone_ms = 1000 * self._alone_s(server)
            name, limit = min(self._capacity.objective.limits, key=lambda one: one[1])
            if limit <= alone_ms:
                raise WordError(
                    f"OBJECTIVE={name}<{limit:g}ms is not allowed: a request of "
                    f"{self.planner.experiment.routes[0]} takes {alone_ms:,.0f} ms alone; "
                    "allowed: more than that"
                )

    @property
    def typical(self) -> tuple[TrialPlan, ...]:
        """See Design: of servers that hold what their settings allow, but no more than the
        geometric middle of the rates that may be tried, in every launch. With its settings lifted
        a server holds that middle; what else gives way is the machine, of which some is taken
        away."""
        capacity, plans = self._capacity, list[TrialPlan]()
        middle = math.sqrt(capacity.first * capacity.most)
        for server in self.planner.experiment.servers:
            holds = min(middle, self._bound(server) or math.inf)
            low, top = self._course(plans, server, self._start(server), holds)
            if capacity.curve:
                last = launches(self.planner.experiment)[-1]
                plans += [self._plan(server, max(1, round(at * low)), last) for at in SHARES]
            plans += [self._of_side(server, low, arm) for arm in self._sides(server)]
            if capacity.prove and holds < middle and top is not None:
                self._course(plans, server, top, middle, low, arm=LIFTED)
            elif capacity.prove and holds == middle:
                tried = (*2 * ((low, ALL), (low, FEWER)), *2 * ((round(PART * low), FEWER),))
                plans += [self._plan(server, rate, 0, arm=arm) for rate, arm in tried]
        return tuple(plans)

    def _course(
        self,
        plans: list[TrialPlan],
        server: str,
        start: int,
        holds: float,
        least: int = 1,
        **changes: Any,
    ) -> tuple[int, int | None]:
        """Adds the trials of all launches of a server that holds so much. What the last found."""
        low, top = 1, None
        way = self._capacity.way(start, self.planner.experiment.launches, least)
        for launch in launches(self.planner.experiment):
            course = list(way.course(holds))
            for one in course:
                again = one.held > 1 or way.may_hold(one.rate)
                plans.append(self._plan(server, one.rate, launch, longer=again, **changes))
            low = max((one.rate for one in course if one.held), default=1)
            top = min((one.rate for one in course if one.broke), default=None)
            way = self._capacity.confirming(low, top)
        return low, top

    def _next(self, done: Sequence[Row]) -> TrialPlan | None:
        experiment = self.planner.experiment
        found = {server: self._searches(server, done) for server in experiment.servers}
        proofs = {server: self._lifted(server, done, found[server]) for server in found}
        every = [*found.values(), *(of for _, of in proofs.values())]
        strayed = [one.strayed for of in every for one in of.values() if one.strayed]
        if strayed:
            raise LabError(strayed[0])
        for launch in launches(experiment):
            waiting = [
                (sum(row.server == server and row.launch == launch for row in done), server)
                for server in turned(experiment.servers, launch)
                if launch in found[server] and found[server][launch].rate is not None
            ]
            if waiting:
                _, server = min(waiting, key=lambda one: one[0])
                return self._of_search(server, launch, found[server][launch], done)
        for server in experiment.servers:
            for rate in curve(experiment, found[server]):
                plan = self._plan(server, rate, launches(experiment)[-1])
                return self.planner.named(plan, next_number(done), digits=3)
        for server in experiment.servers:
            for arm, rate in self._sides_left(server, done, found[server]):
                plan = self._of_side(server, rate, arm)
                return self.planner.named(plan, next_number(done), digits=3)
        for server, (condition, of) in proofs.items():
            for launch, one in of.items():
                if one.rate is not None:
                    changes = {"arm": LIFTED, "condition": condition}
                    return self._of_search(server, launch, one, done, **changes)
        for server in experiment.servers:
            taken, deprived = self._deprived(server, done, found[server])
            if deprived is not None and (name := deprived.next) is not None:
                arm = arm_of(name)
                condition = AS_IT_IS if arm == ALL else taken
                plan = self._plan(server, deprived.rate(name), 0, arm=arm, condition=condition)
                return self.planner.named(plan, next_number(done), digits=3)
        return None

    def _of_search(
        self, server: str, launch: int, of: Search, done: Sequence[Row], **changes: Any
    ) -> TrialPlan:
        if self._is_far(of):
            changes["gives_up"] = self._capacity.objective.gives_up
        plan = self._plan(server, of.next.rate, launch, longer=of.is_long, **changes)
        plan = lengthened(plan, [row for row, _ in of.next.untold])
        return self.planner.named(plan, next_number(done), digits=3)

    def _is_far(self, of: Search) -> bool:
        """Whether the next rate is so far above what is held that its trial need not be whole."""
        held = max(of.low.rate if of.low else 0, of.way.around[0] if of.way.around else 0)
        return of.next.rate > (1 + NEAR * self._capacity.resolution) * held

    def _plan(
        self, server: str, rate: int, launch: int, *, longer: bool = False, **changes: Any
    ) -> TrialPlan:
        experiment, capacity = self.planner.experiment, self._capacity
        duration_s = experiment.duration_s
        if experiment.longer:
            objective = capacity.objective
            needed_s = self.planner.needed_s([server], experiment.routes[0], objective.longest_s)
            wanted_s = max(needed_s, 1.1 * objective.samples / rate)
            duration_s = max(duration_s, math.ceil(wanted_s))
            if longer:
                duration_s = self._longer_s(server, duration_s)
            duration_s = max(experiment.duration_s, min(duration_s, MOST_WINDOW_S))
        plan = self.planner.plan(
            server,
            self.planner.engine_for("open"),
            "open",
            capacity.given(rate),
            rate,
            duration_s=duration_s,
            launch=launch,
            **changes,
        )
        if longer and experiment.longer and plan.warmup_s is None:
            plan = dataclasses.replace(plan, warmup_s=LONGER_WARMUP_S)
        return plan

    def _longer_s(self, server: str, window_s: int) -> int:
        """The window that confirms what one of `window_s` said. Where requests come evenly and
        each takes as long as the next, a rate that is too high by the share d makes them wait d
        longer in each second: after room / d what is left of the objective's latency, and it
        breaks. So this window shows half of the resolution. Elsewhere queues grow and shrink by
        chance, for many seconds."""
        experiment, capacity = self.planner.experiment, self._capacity
        most_s, snapshot = LONGER * window_s, self.planner.snapshots[server]
        if experiment.arrivals != "constant" or snapshot.spread is not None or snapshot.foreign:
            return most_s
        longest_s = capacity.objective.longest_s
        room_s = longest_s - self._alone_s(server)
        return min(most_s, max(window_s, math.ceil(room_s / (capacity.resolution / 2))))

    def _alone_s(self, server: str) -> float:
        """What a request takes that is alone in the server; 0 where nobody knows."""
        return self.planner.expected_s([server], self.planner.experiment.routes[0], 1, 1)

    @property
    def _capacity(self) -> Capacity:
        return settings_of(Capacity, self.planner.experiment)

    def _searches(self, server: str, done: Sequence[Row]) -> dict[int, Search]:
        return searches(self.planner.experiment, _of(server, done), self._start(server))

    def _sides(self, server: str) -> Mapping[str, Condition]:
        planner = self.planner
        return sides(planner.experiment, planner.snapshots[server], planner.cores)

    def _sides_left(
        self, server: str, done: Sequence[Row], found: Mapping[int, Search]
    ) -> list[tuple[str, int]]:
        own = _of(server, done)
        return sides_left(self.planner.experiment, found, [*self._sides(server)], own)

    def _of_side(self, server: str, rate: int, arm: str) -> TrialPlan:
        """A trial of the pair, of the first launch."""
        launch, condition = launches(self.planner.experiment)[0], self._sides(server)[arm]
        return self._plan(server, rate, launch, arm=arm, condition=condition)

    def _lifted(
        self, server: str, done: Sequence[Row], found: Mapping[int, Search]
    ) -> tuple[Condition, dict[int, Search]]:
        """With what a server's searches are made once more, and where these stand; none where they
        are not to be made, or not yet."""
        change = self._lever(server, found)
        if change is None or change.takes:
            return AS_IT_IS, {}
        return change.lift, lifted(self.planner.experiment, _of(server, done), found)

    def _deprived(
        self, server: str, done: Sequence[Row], found: Mapping[int, Search]
    ) -> tuple[Condition, Deprived | None]:
        """Without what the machine's CPUs are to be, and how far these trials are; None where it is
        not the machine's CPUs that gave way, or not yet."""
        change = self._lever(server, found)
        if change is None or not change.takes:
            return AS_IT_IS, None
        own = [row for row in done if row.server == server and row.arm in ARMS]
        rate, *_ = capacity_of(list(found.values()))
        return change.step, Deprived.of(self._capacity.objective, round(rate), own)

    def _lever(self, server: str, found: Mapping[int, Search]) -> Lever | None:
        """The lever of what gave way, where it is to be pulled."""
        planner = self.planner
        if not self._capacity.prove or not are_over(planner.experiment, found):
            return None
        change = lever_of(planner.experiment, found, planner.snapshots[server], planner.cores)
        return change if isinstance(change, Lever) else None

    def _start(self, server: str) -> int:
        """The first rate: half of what the settings allow, where that is less."""
        first, bound = self._capacity.first, self._bound(server)
        return first if bound is None else max(1, min(first, int(bound / 2)))

    def _bound(self, server: str) -> float | None:
        """The rate that the settings allow at most; None where they allow any."""
        most, snapshot = self._capacity.connections, self.planner.snapshots[server]
        return predict(self.planner.experiment.routes[0], most, None, snapshot).rps


def _of(server: str, done: Sequence[Row]) -> list[Row]:
    return [row for row in done if row.server == server]


def design(planner: Planner) -> Design:
    """The searches of the experiment. Raises WordError where an engine cannot do the first
    trial, or no rate can keep the objective."""
    found = Searches(planner)
    found.check()
    found.next([])
    return found
