"""What is measured once of each JVM and route: that it is warm, and what a request costs."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.app.tools import Tools
from lab.judge.same_lab import between_snapshots
from lab.kinds.registry import kind_of
from lab.load.bench import Bench
from lab.load.engines import Engine
from lab.model import AS_IT_IS, Demand, Experiment, TrialPlan, Warmth
from lab.report.progress import Trials
from lab.store import warm_jvms
from lab.store.records import read_object
from lab.subject.conditions import at_start
from lab.subject.jvm import Edges
from lab.subject.subject import Subject

# How often a JVM is warmed up at most. A JVM that is still cold is warmed up again before its next
# trial: on a busy machine the compiler takes longer.
MOST_WARM_UPS = 3
# The machine's speed drifts: what a request cost this long ago is measured again.
DEMAND_AGE_S = 900.0
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
    _seen: dict[Jvm, Edges | None] = field(default_factory=dict)
    _without_demand: set[tuple[str, int | None, str, str]] = field(default_factory=set)

    def forget(self, server: str) -> None:
        """Another process took the server's place, which may not tell so itself."""
        all_known: list[dict[Jvm, Any]] = [self._warm, self._tries, self._demands, self._seen]
        for known in all_known:
            for key in [key for key in known if key[0] == server]:
                del known[key]
        self._without_demand = {one for one in self._without_demand if one[0] != server}

    def is_warmed(self, jvm: Jvm) -> bool:
        """Whether it is warm, or its warm-up was tried often enough."""
        warmth = self._warm.get(jvm)
        return warmth is not None and (not warmth.cold or self._tries[jvm] >= MOST_WARM_UPS)

    def warmth(self, plan: TrialPlan, key: Jvm, engine: Engine) -> Warmth:
        """Whether the JVM was proven warm on the route, in this run or in one before it."""
        if not self.is_warmed(key) and not self._knew(plan, key):
            self._tries[key] += 1
            connections, began_s = self._to_warm(plan), self.tools.system.monotonic()

            def progress() -> None:
                elapsed_s = self.tools.system.monotonic() - began_s
                self.progress.phase(plan, f"warming up, {elapsed_s:.0f} s")

            bench = Bench(plan, engine, self.tools.system, self.run_dir / "warm-up", progress)
            self._warm[key], edges = self._subject(plan).warm(bench, connections)
            # Its end is a light load as well, if it had as many connections.
            self._seen[key] = edges if connections == self._light(plan) else None
        return self._warm[key]

    def _subject(self, plan: TrialPlan) -> Subject:
        return self.tools.subjects[plan.server]

    def _to_warm(self, plan: TrialPlan) -> int:
        """With how many connections the plan's JVM is warmed up."""
        return self._limited(plan) or self._subject(plan).to_warm(plan, self._most(plan))

    def _light(self, plan: TrialPlan) -> int:
        """How many connections measure the cost of a request."""
        return self._limited(plan) or self._subject(plan).light(plan, self._most(plan))

    def _limited(self, plan: TrialPlan) -> int | None:
        """The connections that a JVM surely holds which starts with too little; None for others."""
        most = kind_of(self.experiment).most_to_warm
        if most is None or at_start(plan.condition) == AS_IT_IS:
            return None
        return min(plan.concurrency, most)

    def _knew(self, plan: TrialPlan, key: Jvm) -> bool:
        """Whether a run before this one has proven the JVM warm with as many connections."""
        known = self._known(key)
        if known is None or known.connections < self._to_warm(plan) or self._tries[key]:
            return False
        self._warm[key] = known.warmth
        if self._still_costs(known.cost, plan) and known.cost.demand is not None:
            self._demands[key] = known.cost.demand
        self.progress.say(f"{plan.server} {plan.route}: proven warm in {known.warmth.run}")
        return True

    def _known(self, key: Jvm) -> warm_jvms.WarmJvm | None:
        server, started_ms, route = key
        path = self._proofs(server)
        if path is None or started_ms is None:
            return None
        return warm_jvms.find(path, server, started_ms, route)

    def _still_costs(self, cost: warm_jvms.Cost, plan: TrialPlan) -> bool:
        """Whether a request costs as much now: measured not long ago, under the same load, and
        nothing has changed that is recorded of server, way to the downstream and machine."""
        age_s = (self.tools.system.now() - cost.at).total_seconds()
        return (
            0 <= age_s <= DEMAND_AGE_S
            and (cost.engine, cost.connections) == (plan.engine, self._light(plan))
            and cost.host == read_object(self.tools.place.host_file)
            and not any(between_snapshots(cost.server, self._subject(plan).snapshot()))
        )

    def demand(self, plan: TrialPlan, key: Jvm, engine: Engine, warmth: Warmth) -> Demand | None:
        """The cost of a request; None if the JVM is cold. A failed measurement is repeated under
        another condition."""
        if warmth.cold:
            return None
        tried = (*key, plan.condition.text)
        if key not in self._demands and tried not in self._without_demand:
            demand = self._measured(plan, key, engine)
            self._remember(plan, key, warmth, demand)
            if demand is None:
                self._without_demand.add(tried)
                return None
            self._demands[key] = demand
        return self._demands.get(key)

    def _measured(self, plan: TrialPlan, key: Jvm, engine: Engine) -> Demand | None:
        self.progress.phase(plan, "light load")
        bench = Bench(plan, engine, self.tools.system, self.run_dir / "light-load")
        edges = self._seen.pop(key, None)
        return self._subject(plan).demand(bench, self._light(plan), self.cores, edges)

    def _remember(self, plan: TrialPlan, key: Jvm, warmth: Warmth, demand: Demand | None) -> None:
        """For later runs, if they will find this JVM. A proof of an earlier run stays as it is."""
        server, started_ms, route = key
        path = self._proofs(server)
        if path is None or started_ms is None or at_start(plan.condition) != AS_IT_IS:
            return
        connections, known = self._to_warm(plan), self._known(key)
        if warmth.run is None:
            warmth = copy.replace(warmth, run=self.run_dir.name)
        elif known is not None:
            connections = known.connections
        cost = warm_jvms.Cost(
            at=self.tools.system.now(),
            engine=plan.engine,
            connections=self._light(plan),
            server=self._subject(plan).snapshot(),
            host=read_object(self.tools.place.host_file),
            demand=demand,
        )
        warm_jvms.remember(
            path, warm_jvms.WarmJvm(server, started_ms, route, connections, warmth, cost)
        )

    def _proofs(self, server: str) -> Path | None:
        """Where proofs outlive their run: those of a JVM that can be told from another do."""
        has_identity = self.tools.subjects[server].has_identity
        return self.tools.place.warm_jvms if has_identity else None

    def _most(self, plan: TrialPlan) -> int:
        """The connections of the largest load to come on the plan's server."""
        if kind_of(self.experiment).changes_lab:
            return plan.concurrency
        return max(self.experiment.concurrencies)
