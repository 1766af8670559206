"""The trials of a capacity run: their rates, connections and windows. Pure."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.experiments.kind import settings_of
from lab.experiments.order import LONGEST_S, Planner, launches, lengthened
from lab.experiments.searching.state import Capacity, Search
from lab.judge.predict import predict
from lab.model import Experiment, TrialPlan

# A rate that was held is confirmed in a window that is longer: so many times as long at most.
LONGER = 4
# Of requests at random, n give or take √n come. A window is so long that half of the resolution is
# so many times that.
BY_CHANCE = 2
# Windows are made longer up to so many seconds.
MOST_WINDOW_S = 2 * LONGEST_S
# Near the capacity what waited while connections opened takes long to drain: of 20 long windows at
# 7,300 to 11,300 req/s on 2 CPUs, 7 were invalid as their latency still fell.
LONGER_WARMUP_S = 20


@dataclass(frozen=True, slots=True)
class Trials:
    """How the trials of a run are planned. They have no name yet."""

    planner: Planner

    @property
    def experiment(self) -> Experiment:
        return self.planner.experiment

    @property
    def capacity(self) -> Capacity:
        return settings_of(Capacity, self.experiment)

    @property
    def launches(self) -> Sequence[int]:
        return launches(self.experiment)

    def of_searches(
        self, server: str, found: Mapping[int, Search], **changes: Any
    ) -> TrialPlan | None:
        """The next trial of a server's searches, launch after launch; None: all are over."""
        for launch, of in found.items():
            if of.rate is not None:
                changes["draw"] = of.next.trials
                plan = self.plan(server, of.rate, launch, longer=of.is_long, **changes)
                return lengthened(plan, [row for row, _ in of.next.untold])
        return None

    def plan(
        self, server: str, rate: int, launch: int, *, longer: bool = False, **changes: Any
    ) -> TrialPlan:
        """A trial of this rate. `longer`: in a window that confirms what another one said."""
        experiment, capacity = self.experiment, self.capacity
        duration_s = experiment.duration_s
        if experiment.longer:
            objective = capacity.objective
            needed_s = self.planner.needed_s([server], experiment.routes[0], objective.longest_s)
            wanted_s = max(needed_s, 1.1 * objective.samples / rate)
            duration_s = max(duration_s, math.ceil(wanted_s))
            if longer:
                duration_s = self._longer_s(server, rate, duration_s)
            duration_s = max(experiment.duration_s, min(duration_s, MOST_WINDOW_S))
        plan = self.planner.plan(
            server,
            self.planner.engine,
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

    def _longer_s(self, server: str, rate: int, window_s: int) -> int:
        """The window that confirms what one of `window_s` said. A rate that is too high by the
        share d makes requests wait d longer in each second: after room / d what is left of the
        objective's latency, and it breaks. So this window shows half of the resolution. Where
        requests come at random, or take as long as they happen to, queues grow and shrink by
        chance, too: in a window of t by √(rate · t), and by d · rate · t as the rate is too high.
        Nobody knows by how much the latencies of a foreign service vary."""
        experiment, capacity = self.experiment, self.capacity
        most_s, snapshot = LONGER * window_s, self.planner.snapshots[server]
        if snapshot.foreign:
            return most_s
        room_s = capacity.objective.longest_s - self.alone_s(server)
        share = capacity.resolution / 2
        shows_s = room_s / share
        if experiment.arrivals != "constant" or snapshot.spread is not None:
            shows_s = max(shows_s, (BY_CHANCE / share) ** 2 / rate)
        return min(most_s, max(window_s, math.ceil(shows_s)))

    def alone_s(self, server: str) -> float:
        """What a request takes that is alone in the server; 0 where nobody knows."""
        return self.planner.expected_s([server], self.experiment.routes[0], 1, 1)

    def start(self, server: str) -> int:
        """The first rate: half of what the settings allow, where that is less."""
        first, bound = self.capacity.first, self.bound(server)
        return first if bound is None else max(1, min(first, int(bound / 2)))

    def bound(self, server: str) -> float | None:
        """The rate that the settings allow at most; None where they allow any."""
        most, snapshot = self.capacity.connections, self.planner.snapshots[server]
        return predict(self.experiment.routes[0], most, None, snapshot).rps
