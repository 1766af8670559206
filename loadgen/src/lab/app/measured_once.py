"""What is measured once of each JVM and route: that it is warm, and what a request costs."""

import copy
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from lab.app.tools import Tools
from lab.judge.same_lab import between_snapshots
from lab.kinds.registry import kind_of
from lab.load.bench import Bench
from lab.load.engines import Engine
from lab.model import AS_IT_IS, Demand, TrialPlan, Warmth
from lab.model.host_facts import cores_of
from lab.report.progress import Trials
from lab.store import warm_jvms
from lab.store.manifest import Manifest
from lab.store.records import read_object
from lab.subject.conditions import at_start
from lab.subject.jvm import Edges

# How often a JVM is warmed up at most. A JVM that is still cold is warmed up again before its next
# trial: on a busy machine the compiler takes longer.
MOST_WARM_UPS = 3
# The machine's speed drifts: what a request cost this long ago is measured again.
DEMAND_AGE_S = 900.0
# A server, the start time of its JVM, and a route.
type Jvm = tuple[str, int | None, str]


@dataclass(slots=True)
class _Measured:
    """What is known of a JVM on a route. `edges` are those of a light load that ended its warm-up;
    `failed` the conditions under which the cost of a request could not be measured."""

    warmth: Warmth | None = None
    warm_ups: int = 0
    edges: Edges | None = None
    demand: Demand | None = None
    failed: set[str] = field(default_factory=set)


class MeasuredOnce:
    """Measures where nothing is known yet, and remembers: in a file for later runs, if these will
    find the same JVM."""

    def __init__(self, run_dir: Path, record: Manifest, tools: Tools, progress: Trials) -> None:
        self._run_dir, self._experiment = run_dir, record.experiment
        self._cores = cores_of(record.host)
        self._tools, self._progress = tools, progress
        self._jvms: defaultdict[Jvm, _Measured] = defaultdict(_Measured)

    def forget(self, server: str) -> None:
        """Another process took the server's place, which need not show by its start time."""
        for jvm in [jvm for jvm in self._jvms if jvm[0] == server]:
            del self._jvms[jvm]

    def is_warmed(self, jvm: Jvm) -> bool:
        """True if it is warm, or its warm-up was tried often enough."""
        known = self._jvms[jvm]
        return known.warmth is not None and (
            not known.warmth.cold or known.warm_ups >= MOST_WARM_UPS
        )

    def warmth(self, plan: TrialPlan, jvm: Jvm, engine: Engine) -> Warmth:
        """The proof that the JVM is warm on the route, of this run or of one before it."""
        known, subject = self._jvms[jvm], self._tools.subjects[plan.server]
        connections = self._connections(plan, subject.to_warm)
        if not known.warm_ups:
            self._recall(plan, jvm, connections)
        if known.warmth is None or not self.is_warmed(jvm):
            known.warm_ups += 1
            system = self._tools.system
            began_s = system.monotonic()

            def progress() -> None:
                elapsed_s = system.monotonic() - began_s
                self._progress.phase(plan, f"warming up, {elapsed_s:.0f} s")

            bench = Bench(plan, engine, system, self._run_dir / "warm-up", progress)
            known.warmth, edges = subject.warm(bench, connections)
            # Its end is a light load as well, if it had as many connections.
            is_light = connections == self._connections(plan, subject.light)
            known.edges = edges if is_light else None
        return known.warmth

    def demand(self, plan: TrialPlan, jvm: Jvm, engine: Engine, warmth: Warmth) -> Demand | None:
        """The cost of a request; None if the JVM is cold. A failed measurement is repeated under
        another condition."""
        known, condition = self._jvms[jvm], plan.condition.text
        if warmth.cold:
            return None
        if known.demand is None and condition not in known.failed:
            self._progress.phase(plan, "light load")
            subject = self._tools.subjects[plan.server]
            bench = Bench(plan, engine, self._tools.system, self._run_dir / "light-load")
            connections = self._connections(plan, subject.light)
            known.demand = subject.demand(bench, connections, self._cores, known.edges)
            known.edges = None
            if known.demand is None:
                known.failed.add(condition)
            self._remember(plan, jvm, warmth, known.demand)
        return known.demand

    def _connections(self, plan: TrialPlan, usual: Callable[[TrialPlan, int], int]) -> int:
        """How many connections a load beside the trials has, for the largest load to come. A JVM
        that starts with too little has no more than it surely holds."""
        kind = kind_of(self._experiment)
        if kind.most_to_warm is not None and at_start(plan.condition) != AS_IT_IS:
            return min(plan.concurrency, kind.most_to_warm)
        return usual(
            plan, plan.concurrency if kind.changes_lab else max(self._experiment.concurrencies)
        )

    def _recall(self, plan: TrialPlan, jvm: Jvm, connections: int) -> None:
        """What a run before this one has proven with as many connections, and measured just now,
        under the same load, if nothing has changed since that is recorded of server, way to the
        downstream and machine."""
        stored = self._stored(jvm)
        if self._jvms[jvm].warmth or stored is None or stored.connections < connections:
            return
        known, cost, subject = self._jvms[jvm], stored.cost, self._tools.subjects[plan.server]
        known.warmth = stored.warmth
        if (
            0 <= (self._tools.system.now() - cost.at).total_seconds() <= DEMAND_AGE_S
            and cost.engine == plan.engine
            and cost.connections == self._connections(plan, subject.light)
            and cost.host == read_object(self._tools.place.host_file)
            and not any(between_snapshots(cost.server, subject.snapshot()))
        ):
            known.demand = cost.demand
        self._progress.say(f"{plan.server} {plan.route}: proven warm in {stored.warmth.run}")

    def _remember(self, plan: TrialPlan, jvm: Jvm, warmth: Warmth, demand: Demand | None) -> None:
        """A proof of an earlier run stays as it is."""
        path, (server, started_ms, route) = self._file(jvm), jvm
        if path is None or started_ms is None or at_start(plan.condition) != AS_IT_IS:
            return
        subject, stored = self._tools.subjects[server], self._stored(jvm)
        connections = self._connections(plan, subject.to_warm)
        if warmth.run is None:
            warmth = copy.replace(warmth, run=self._run_dir.name)
        elif stored is not None:
            connections = stored.connections
        cost = warm_jvms.Cost(
            at=self._tools.system.now(),
            engine=plan.engine,
            connections=self._connections(plan, subject.light),
            server=subject.snapshot(),
            host=read_object(self._tools.place.host_file),
            demand=demand,
        )
        measured = warm_jvms.WarmJvm(server, started_ms, route, connections, warmth, cost)
        warm_jvms.remember(path, measured)

    def _stored(self, jvm: Jvm) -> warm_jvms.WarmJvm | None:
        path, (server, started_ms, route) = self._file(jvm), jvm
        if path is None or started_ms is None:
            return None
        return warm_jvms.find(path, server, started_ms, route)

    def _file(self, jvm: Jvm) -> Path | None:
        """Where proofs outlive their run: those of a JVM that can be told from another do."""
        return self._tools.place.warm_jvms if self._tools.subjects[jvm[0]].has_identity else None
