"""All that a trial needs before its load: the lab in its condition, a warm JVM, a prediction."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.app.measured_once import Jvm, MeasuredOnce
from lab.app.quiet import Quiet
from lab.app.tools import Tools
from lab.errors import LabUnreachable
from lab.judge.checks import state
from lab.judge.predict import Prediction, predict
from lab.judge.ruler import demand_of
from lab.judge.same_lab import fairness
from lab.kinds.registry import kind_of
from lab.load.runner import RESTART_S, Runner
from lab.model import (
    AS_IT_IS,
    Condition,
    Demand,
    Experiment,
    Fairness,
    Row,
    Snapshot,
    TrialPlan,
    Warmth,
)
from lab.report.progress import Trials
from lab.subject.conditions import at_start
from lab.subject.proxy_reset import clear_proxy
from lab.system.host import Clock


@dataclass(frozen=True, slots=True)
class Prepared:
    """The trial's server as it is now, what it has in common with the servers it is compared with,
    and what is known of its JVM."""

    before: Snapshot
    common: Fairness
    warmth: Warmth
    prediction: Prediction


@dataclass(slots=True)
class Preparation:
    """Prepares one trial after the other. `launched` has launch and arm of the fresh JVMs that run,
    by server; `rows` are those of the run so far; `common` is what all servers of the run had in
    common when that was last asked and all of them answered."""

    experiment: Experiment
    tools: Tools
    progress: Trials
    runner: Runner
    once: MeasuredOnce
    launched: dict[str, tuple[int, str | None]]
    rows: Sequence[Row]
    common: Fairness | None = None
    _away: set[str] = field(default_factory=set)
    _last: str | None = None
    _quiet: Quiet = field(init=False)

    def __post_init__(self) -> None:
        self._quiet = Quiet(self.tools.system, self.progress, self.experiment.patience_s)

    def prepare(self, plan: TrialPlan) -> Prepared:
        """Have the lab ready for this trial. Raises LabUnreachable where its server or what it
        depends on does not answer, and LabError."""
        engine = self.tools.chosen.engines[plan.engine]
        self._attend(plan)
        self._take_back_script()
        self._clear(plan)
        for tries_left in (1, 0):
            self._start_condition(plan)
            self._fresh(plan)
            jvm = self._jvm(plan)
            warmth = self.once.warmth(plan, jvm, engine)
            demand = None if plan.hold else self.once.demand(plan, jvm, engine, warmth)
            self._bring(plan, plan.condition)
            self._quiet.wait(plan)
            # Who is told nothing for as long as that may wait forgets.
            self._attend(plan)
            before, common = self._before(plan)
            if before.jvm_started_ms == jvm[1]:
                break
            # Nothing is known of the JVM that is there now, neither warmth nor demand.
            demand, warmth = None, _unknown(warmth)
            if tries_left:
                said = "its JVM was replaced after it was warmed up: warming up again"
                self.progress.warn(f"{plan.server}: {said}")
        if self.tools.subjects[plan.server].rests:
            opens_s = engine.schedule(plan, Path()).window_offset_s
            self.tools.attention.await_close_look(plan.server, opens_s)
        return Prepared(before, common, warmth, self._predict(plan, before, demand))

    def _attend(self, plan: TrialPlan) -> None:
        self.tools.attention.turn(plan.server)

    def _take_back_script(self) -> None:
        """What the script of a trial before could not take back, as while Toxiproxy was away."""
        if self.tools.conditions.as_it_is:
            left = self.tools.journal.put_back(self.tools.stack)
            if left is not None:
                self.progress.remark(left)

    def _clear(self, plan: TrialPlan) -> None:
        """No server finds what another one left with Toxiproxy. A toxic of a condition would have
        that wait for answers, and goes first."""
        tools = self.tools
        if plan.server != self._last and tools.subjects[plan.server].uses_toxiproxy:
            if not tools.conditions.as_it_is:
                self._bring(plan, AS_IT_IS)
            deaf = clear_proxy(tools.stack, tools.system, tools.journal)
            if deaf is not None:
                self.progress.remark(deaf)
        self._last = plan.server

    def _start_condition(self, plan: TrialPlan) -> None:
        """Where a JVM is to be warmed up: only what that JVM must be started with is in force.
        One that is warm goes on as it is, so that conditions take turns quickly."""
        conditions = self.tools.conditions
        if conditions.as_it_is and plan.condition == AS_IT_IS:
            return
        recreates = conditions.recreates(plan.server, plan.condition)
        if recreates or self._fresh_due(plan) or not self.once.is_warmed(self._jvm(plan)):
            self._bring(plan, at_start(plan.condition))
        if recreates and kind_of(self.experiment).changes_lab:
            # What has just begun need not be replaced.
            self.launched[plan.server] = (plan.launch, plan.arm)

    def _bring(self, plan: TrialPlan, condition: Condition) -> None:
        conditions = self.tools.conditions
        if conditions.as_it_is and condition == AS_IT_IS:
            if kind_of(self.experiment).changes_lab:
                conditions.keep_toxics()
            return
        self.progress.phase(plan, f"the lab: {condition.text}")
        if conditions.recreates(plan.server, condition):
            self.once.forget(plan.server)
        conditions.bring(plan.server, condition)

    def _before(self, plan: TrialPlan) -> tuple[Snapshot, Fairness]:
        """The trial's server as it is now, and what it has in common with those it is compared
        with. All of them, every time: a knob may have been turned meanwhile. Another server that
        does not answer costs its own trials, not this one. A server that was changed on purpose is
        compared with none."""
        if kind_of(self.experiment).changes_lab or plan.condition != AS_IT_IS:
            before = self.runner.snapshot(plan.server)
            return before, fairness({plan.server: before})
        servers = self.experiment.servers
        others = {server: self._other(server) for server in servers if server != plan.server}
        now = {**others, plan.server: self.runner.snapshot(plan.server)}
        known = {server: one for server in servers if (one := now[server]) is not None}
        common = fairness(known)
        if len(known) == len(servers):
            self.common = common
        return known[plan.server], common

    def _other(self, server: str) -> Snapshot | None:
        """Another server of the run as it is now; None where it is away. It is waited for once each
        time it goes."""
        try:
            now = self.runner.snapshot(server, 0.0 if server in self._away else RESTART_S)
        except LabUnreachable as failure:
            if server not in self._away:
                self.progress.warn(f"{server} is away: {failure}")
            self._away.add(server)
            return None
        self._away.discard(server)
        return now

    def _fresh(self, plan: TrialPlan) -> None:
        """The JVM or container of this launch; for launch 0 the one that runs. Where the lab is
        changed from trial to trial, all of them have the user's knobs, which no JVM starts with."""
        if not self._fresh_due(plan):
            return
        keeps_knobs = kind_of(self.experiment).changes_lab
        if keeps_knobs:
            self.tools.conditions.keep_knobs(plan.server)
        self.progress.phase(plan, f"fresh {self.tools.subjects[plan.server].process}")
        self.replace_jvm(plan.server)
        if keeps_knobs:
            self._bring(plan, at_start(plan.condition))
        self.launched[plan.server] = (plan.launch, plan.arm)

    def replace_jvm(self, server: str, clock: Clock | None = None) -> None:
        """Put another JVM or container in the place of the one that runs, waited for by `clock`.
        Raises LabError."""
        self.tools.subjects[server].renew(clock or self.tools.system)
        self.once.forget(server)

    def _fresh_due(self, plan: TrialPlan) -> bool:
        return bool(plan.launch) and self.launched.get(plan.server) != (plan.launch, plan.arm)

    def _jvm(self, plan: TrialPlan) -> Jvm:
        return plan.server, self.runner.snapshot(plan.server).jvm_started_ms, plan.route

    def _predict(self, plan: TrialPlan, before: Snapshot, demand: Demand | None) -> Prediction:
        """The bounds of the trial; none of a load that is held."""
        if plan.hold:
            return Prediction(())
        return predict(
            plan.route,
            plan.concurrency,
            plan.offered_rps,
            before,
            demand_of(demand, plan, self.rows, self.once.cores),
            self.once.cores,
            plan.condition,
            plan.arrivals,
        )


def _unknown(warmth: Warmth) -> Warmth:
    """The warmth of a JVM that took the place of the one that was warmed up."""
    return copy.replace(warmth, steady=False, problem=state.cold_replaced.remark(), provable=True)
