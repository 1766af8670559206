"""The stages of a capacity run: each says which of its trials is next. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from lab.experiments.order import turned
from lab.experiments.proving.levers import Lever
from lab.experiments.searching.deprived import ALL, ARMS, SPIN, Deprived, arm_of
from lab.experiments.searching.lifting import lever_of
from lab.experiments.searching.rates import MOST_LATER, MOST_TRIALS
from lab.experiments.searching.state import (
    CURVE,
    SHARES,
    Search,
    are_over,
    curve,
    held_by,
    lifted,
    searches,
)
from lab.experiments.searching.trials import Trials
from lab.model import AS_IT_IS, LIFTED, Condition, Row, TrialPlan


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a server stands: its rows, in the order of time, and its searches by launch."""

    server: str
    rows: Sequence[Row]
    found: Mapping[int, Search]

    @classmethod
    def of(cls, trials: Trials, server: str, done: Sequence[Row]) -> Self:
        own = [row for row in done if row.server == server]
        return cls(server, own, searches(trials.experiment, own, trials.start(server)))


@dataclass(frozen=True, slots=True)
class Stage(ABC):
    """What is measured of every server before the next stage begins. Stateless. With `mark` the
    names of its trials end."""

    mark: ClassVar[str] = ""

    trials: Trials

    @abstractmethod
    def most(self, server: str) -> int: ...

    @abstractmethod
    def next_of(self, of: Standing) -> TrialPlan | None:
        """A server's next trial; None: it has none, or not yet."""

    def next(self, servers: Sequence[Standing]) -> TrialPlan | None:
        """The next trial of all servers: one after the other, as it may take another container."""
        plans = (self.next_of(of) for of in servers)
        return next((plan for plan in plans if plan), None)


@dataclass(frozen=True, slots=True)
class Searching(Stage):
    """One search per launch and server."""

    def most(self, server: str) -> int:  # noqa: ARG002
        return MOST_TRIALS + (len(self.trials.launches) - 1) * MOST_LATER

    def next_of(self, of: Standing) -> TrialPlan | None:
        return self.trials.of_searches(of.server, of.found)

    def next(self, servers: Sequence[Standing]) -> TrialPlan | None:
        """See Stage. Within a launch the server with the fewest rows is next, so that a drift of
        the machine falls on all servers alike."""
        plans = [(plan, of) for of in servers if (plan := self.next_of(of))]
        launch = min((plan.launch for plan, _ in plans), default=0)
        waiting = [
            (sum(row.launch == launch for row in of.rows), plan)
            for plan, of in turned(plans, launch)
            if plan.launch == launch
        ]
        _, first = min(waiting, key=lambda one: one[0], default=(0, None))
        return first


@dataclass(frozen=True, slots=True)
class Curve(Stage):
    """Loads around the capacity, in the JVM of the last launch."""

    mark = CURVE

    def most(self, server: str) -> int:  # noqa: ARG002
        return len(SHARES)

    def next_of(self, of: Standing) -> TrialPlan | None:
        rates = curve(self.trials.experiment, of.rows, of.found)
        if not rates:
            return None
        return self.trials.plan(of.server, rates[0], self.trials.launches[-1])


def _lever(trials: Trials, of: Standing) -> Lever | None:
    """The lever of what gave way, once a server's searches are over; None where there is none."""
    planner = trials.planner
    if not are_over(trials.experiment, of.found):
        return None
    lever = lever_of(trials.experiment, of.found, planner.snapshots[of.server], planner.cores)
    return lever if isinstance(lever, Lever) else None


@dataclass(frozen=True, slots=True)
class Lifting(Stage):
    """The searches once more, with what gave way first lifted."""

    def most(self, server: str) -> int:  # noqa: ARG002
        return MOST_TRIALS + (len(self.trials.launches) - 1) * MOST_LATER

    def next_of(self, of: Standing) -> TrialPlan | None:
        condition, found = self._found(of)
        return self.trials.of_searches(of.server, found, arm=LIFTED, condition=condition)

    def _found(self, of: Standing) -> tuple[Condition, dict[int, Search]]:
        """With what a server's searches are made once more, and where these stand; none where they
        are not to be made, or not yet."""
        lever = _lever(self.trials, of)
        if lever is None or lever.takes:
            return AS_IT_IS, {}
        return lever.lift, lifted(self.trials.experiment, of.rows, of.found)


@dataclass(frozen=True, slots=True)
class Depriving(Stage):
    """Trials with fewer CPUs, where those of the machine gave way. All are of the JVM that runs."""

    def most(self, server: str) -> int:  # noqa: ARG002
        """See Stage: they come in the place of those of Lifting, which are more."""
        return 0

    def next_of(self, of: Standing) -> TrialPlan | None:
        taken, found = self._found(of)
        if found is None or (name := found.next) is None:
            return None
        arm = arm_of(name)
        condition, rung = AS_IT_IS if arm == ALL else taken, found.rung(name)
        return self.trials.plan(
            of.server, rung.rate, 0, arm=arm, condition=condition, draw=rung.trials
        )

    def _found(self, of: Standing) -> tuple[Condition, Deprived | None]:
        """Without what the machine's CPUs are to be, and how far these trials are; None where it is
        not the machine's CPUs that gave way, or not yet."""
        lever = _lever(self.trials, of)
        if lever is None or not lever.takes:
            return AS_IT_IS, None
        rate, *_ = held_by(of.found)
        own = [row for row in of.rows if row.arm in ARMS]
        taken = replace(lever.lift, spin=SPIN)
        return taken, Deprived.of(self.trials.capacity.objective, round(rate), own)


def stages(trials: Trials) -> Iterator[Stage]:
    yield Searching(trials)
    if trials.capacity.curve:
        yield Curve(trials)
    if trials.capacity.prove:
        yield Lifting(trials)
        yield Depriving(trials)
