"""The order of the searches: one for each launch and server, in turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lab.experiments.breaking.search import Stress, most_trials, rows_of, search
from lab.experiments.kind import settings_of
from lab.experiments.order import Design, Planner, launches, lengthened, next_number, turned
from lab.model import Row, TrialPlan


@dataclass(frozen=True, slots=True)
class Ramps(Design):
    """One search per launch and server. Within a launch the server with the fewest rows is next, so
    that a drift of the machine falls on all servers alike."""

    planner: Planner

    @property
    def most(self) -> int:
        experiment = self.planner.experiment
        searches = len(launches(experiment)) * len(experiment.servers)
        return searches * most_trials(settings_of(Stress, experiment))

    def to_record(self, done: Sequence[Row]) -> Iterator[str]:
        """See Design: what each server held in the last launch."""
        experiment = self.planner.experiment
        for server in experiment.servers:
            rows = rows_of(done, server, launches(experiment)[-1])
            state = search(settings_of(Stress, experiment), rows)
            if state.load is None and state.held is not None:
                yield state.held.trial

    def next(self, done: Sequence[Row]) -> TrialPlan | None:
        experiment = self.planner.experiment
        stress = settings_of(Stress, experiment)
        for launch in launches(experiment):
            open_searches = []
            for server in turned(experiment.servers, launch):
                rows = rows_of(done, server, launch)
                state = search(stress, rows)
                if state.load is not None:
                    open_searches.append((len(rows), server, state.load))
            if open_searches:
                _, server, load = min(open_searches, key=lambda one: one[0])
                mode, rate = experiment.modes[0], None
                if mode == "open":
                    # Not RATE=auto, whose connections are all busy long before the objective fails.
                    rate = stress.objective.rate(load)
                engine = self.planner.engine
                plan = self.planner.plan(server, engine, mode, load, rate, launch=launch)
                own = [row for row in done if (row.server, row.concurrency) == (server, load)]
                return self.planner.named(lengthened(plan, own), next_number(done), digits=3)
        return None


def design(planner: Planner) -> Design:
    """The searches. Raises WordError where an engine cannot do the first trial."""
    ramps = Ramps(planner)
    ramps.next([])
    return ramps
