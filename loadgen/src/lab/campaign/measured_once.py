"""What is measured once of each JVM and route: that it is warm, and what a request costs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from lab.campaign.tools import Tools
from lab.experiments.registry import kind_of
from lab.load.engines import Engine
from lab.model import AS_IT_IS, Demand, Experiment, TrialPlan, Warmth
from lab.report.progress import Trials
from lab.system.conditions import at_start

# A JVM is warmed up with the load it will have, but with at most this many connections.
WARM_CONNECTIONS = 1000
# How often a JVM is warmed up at most. A JVM that is still cold is warmed up again before its next
# trial: on a busy machine the compiler takes longer.
MOST_WARM_UPS = 3
# A server, the start time of its JVM, and a route.
Jvm = tuple[str, int | None, str]


@dataclass(slots=True)
class MeasuredOnce:
    """Measures where nothing is known yet, and remembers. `cores` are the CPUs of the host."""

    run_dir: Path
    experiment: Experiment
    cores: int | None
    tools: Tools
    progress: Trials
    _warm: dict[Jvm, Warmth] = field(default_factory=dict)
    _tries: Counter[Jvm] = field(default_factory=Counter)
    _demands: dict[Jvm, Demand] = field(default_factory=dict)
    _without_demand: set[tuple[str, int | None, str, str]] = field(default_factory=set)

    def is_warmed(self, jvm: Jvm) -> bool:
        """Whether it is warm, or its warm-up was tried often enough."""
        warmth = self._warm.get(jvm)
        return warmth is not None and (not warmth.cold or self._tries[jvm] >= MOST_WARM_UPS)

    def warmth(self, plan: TrialPlan, key: Jvm, engine: Engine) -> Warmth:
        """Whether the JVM was proven warm on the route."""
        if not self.is_warmed(key):
            self._tries[key] += 1
            most = self._most(plan)
            limited = kind_of(self.experiment).most_to_warm
            if limited is not None and at_start(plan.condition) != AS_IT_IS:
                most = min(plan.concurrency, limited)
            stages = self.tools.stages
            warm, what = stages.warm, "warming up its JVM"
            if self.experiment.target:
                warm, what = stages.warm_foreign, "warming up"
            self._warm[key] = warm(
                plan,
                min(most, WARM_CONNECTIONS),
                engine,
                self.tools.stack,
                self.tools.system,
                self.run_dir / "warm-up",
                lambda elapsed_s: self.progress.phase(plan, f"{what}, {elapsed_s:.0f} s"),
            )
        return self._warm[key]

    def demand(self, plan: TrialPlan, key: Jvm, engine: Engine, warmth: Warmth) -> Demand | None:
        """The cost of a request; None if the JVM is cold. A failed measurement is repeated under
        another condition."""
        if warmth.cold:
            return None
        tried = (*key, plan.condition.text)
        if key not in self._demands and tried not in self._without_demand:
            self.progress.phase(plan, "light load")
            tools = self.tools
            stages = tools.stages
            light = stages.demand_of_foreign if self.experiment.target else stages.demand
            demand = light(
                plan,
                self._most(plan),
                engine,
                tools.stack,
                tools.system,
                self.run_dir / "light-load",
                self.cores,
            )
            if demand is None:
                self._without_demand.add(tried)
                return None
            self._demands[key] = demand
        return self._demands.get(key)

    def _most(self, plan: TrialPlan) -> int:
        """The connections of the largest load to come on the plan's server."""
        if kind_of(self.experiment).changes_lab:
            return plan.concurrency
        return max(self.experiment.concurrencies)
