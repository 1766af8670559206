"""The order of the trials of a capacity run: its stages, one after the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lab.errors import WordError
from lab.experiments.order import Design, Planner, next_number
from lab.experiments.searching.stages import Stage, Standing, stages
from lab.experiments.searching.state import are_over, curve
from lab.experiments.searching.trials import Trials
from lab.model import Row, TrialPlan


@dataclass(frozen=True, slots=True)
class Searches(Design):
    """The stages of a run, each for all servers before the next one begins."""

    trials: Trials
    stages: tuple[Stage, ...]

    @property
    def most(self) -> int:
        servers = self.trials.experiment.servers
        return sum(stage.most(server) for stage in self.stages for server in servers)

    @property
    def needs_host(self) -> bool:
        return self.trials.capacity.prove

    def next(self, done: Sequence[Row]) -> TrialPlan | None:
        servers = self._standings(done)
        for stage in self.stages:
            if plan := stage.next(servers):
                named = self.trials.planner.named(plan, next_number(done), digits=3)
                return dataclasses.replace(named, trial=f"{named.trial}{stage.mark}")
        return None

    def to_record(self, done: Sequence[Row]) -> Iterator[str]:
        """See Design: what each server held in the last launch, after searches and curve."""
        experiment = self.trials.experiment
        for of in self._standings(done):
            if not are_over(experiment, of.found):
                continue
            if self.trials.capacity.curve and curve(experiment, of.rows, of.found):
                continue
            held = of.found[self.trials.launches[-1]].low
            if held is not None:
                yield held.held[-1].trial

    def _standings(self, done: Sequence[Row]) -> list[Standing]:
        servers = self.trials.experiment.servers
        return [Standing.of(self.trials, server, done) for server in servers]


def design(planner: Planner) -> Design:
    """The searches of the experiment. Raises WordError where an engine cannot do the first
    trial, or no rate can keep the objective."""
    trials = Trials(planner)
    _check(trials)
    found = Searches(trials, tuple(stages(trials)))
    found.next([])
    return found


def _check(trials: Trials) -> None:
    """Raises WordError for an objective that even a request alone in the server would miss."""
    for server in trials.experiment.servers:
        if trials.planner.snapshots[server].spread is not None:
            continue
        alone_ms = 1000 * trials.alone_s(server)
        name, limit = min(trials.capacity.objective.limits, key=lambda one: one[1])
        if limit <= alone_ms:
            raise WordError(
                f"OBJECTIVE={name}<{limit:g}ms is not allowed: a request of "
                f"{trials.experiment.routes[0]} takes {alone_ms:,.0f} ms alone; "
                "allowed: more than that"
            )
