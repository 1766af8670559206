"""All that a trial needs before its load: the lab in its condition, a warm JVM, a prediction."""

import copy
from collections.abc import Sequence
from pathlib import Path

from lab.app.measured_once import Jvm, MeasuredOnce
from lab.app.tools import Tools
from lab.judge.checks import data, state
from lab.judge.predict import Prediction, predict
from lab.judge.ruler import demand_of
from lab.judge.same_lab import fairness
from lab.kinds.registry import kind_of
from lab.load.runner import Known, Runner
from lab.model import AS_IT_IS, Condition, Demand, Fairness, Remark, Row, Snapshot, TrialPlan
from lab.model.host_facts import cores_of
from lab.report.progress import Trials
from lab.store.manifest import Manifest
from lab.subject.conditions import at_start
from lab.subject.proxy_reset import clear_proxy
from lab.system.host import Clock

# The length of a look at how crowded the CPUs are, and the pause between two.
LOOK_S, PAUSE_S = 0.5, 5.0
# From these shares on the machine is not quiet: of its time that a thread waits for a CPU, and of
# the CPUs that are busy beside it. The idle lab itself kept 0.08 of two CPUs busy, in one look of
# 5 s. While other machines took 0.09 to 0.32 of two CPUs, five of seven trials of a pool near its
# capacity were invalid: requests that wait drain slowly there.
WAITED, BESIDE = 0.1, 0.3


class Preparation:
    """Prepares one trial after the other. `rows` are those of the run so far; `common` is what all
    servers of the run have in common, as each was before its last trial."""

    def __init__(
        self,
        run_dir: Path,
        record: Manifest,
        tools: Tools,
        runner: Runner,
        progress: Trials,
        rows: Sequence[Row],
    ) -> None:
        self.common: Fairness = record.fairness
        self._servers = dict(record.servers)
        self._record, self._experiment = record, record.experiment
        self._changes_lab = kind_of(record.experiment).changes_lab
        self._cores = cores_of(record.host)
        self._tools, self._conditions = tools, tools.conditions
        self._runner, self._progress, self._rows = runner, progress, rows
        self._once = MeasuredOnce(run_dir, record, tools, progress)
        self._patience_s: float = record.experiment.patience_s
        # Launch and arm of the fresh JVMs that run, by server.
        self._launched: dict[str, tuple[int, str | None]] = {}
        self._last: str | None = None

    def prepare(self, plan: TrialPlan) -> Known:
        """Have the lab ready for this trial. Raises LabUnreachable where its server or what it
        depends on does not answer, and LabError."""
        tools = self._tools
        engine = tools.chosen.engines[plan.engine]
        tools.attention.turn(plan.server)
        self._clean(plan)
        for tries_left in (1, 0):
            self._start_condition(plan)
            self._fresh(plan)
            jvm = self._jvm(plan)
            warmth = self._once.warmth(plan, jvm, engine)
            demand = None if plan.hold else self._once.demand(plan, jvm, engine, warmth)
            self._bring(plan, plan.condition)
            self._await_quiet(plan)
            # Who is told nothing for as long as that may wait forgets.
            tools.attention.turn(plan.server)
            before = self._runner.snapshot(plan.server)
            if before.jvm_started_ms == jvm[1]:
                break
            # Nothing is known of the JVM that is there now, neither warmth nor demand.
            replaced = state.cold_replaced.remark()
            demand = None
            warmth = copy.replace(warmth, steady=False, problem=replaced, provable=True)
            if tries_left:
                again = "its JVM was replaced after it was warmed up: warming up again"
                self._progress.warn(f"{plan.server}: {again}")
        if tools.subjects[plan.server].rests:
            opens_s = engine.schedule(plan, Path()).window_offset_s
            tools.attention.await_close_look(plan.server, opens_s)
        answer = self._record.target_answers.get(plan.route)
        return Known(
            before=before,
            warmth=warmth,
            prediction=self._predict(plan, before, demand),
            engine_version=tools.chosen.versions[plan.engine],
            unequal=self._unequal(plan, before),
            notes=(data.target_answered.remark(answer=answer),) if answer else (),
        )

    def replace_jvm(self, server: str, clock: Clock | None = None) -> None:
        """Put another JVM or container in the place of the one that runs, waited for by `clock`.
        Raises LabError."""
        self._tools.subjects[server].renew(clock or self._tools.system)
        self._once.forget(server)

    def _clean(self, plan: TrialPlan) -> None:
        """No trial finds what the script of one before could not take back, as while Toxiproxy was
        away, and no server what another one left with Toxiproxy. A toxic of a condition would have
        that wait for answers, and goes first."""
        tools, another = self._tools, plan.server != self._last
        remarks: list[Remark | None] = []
        if self._conditions.as_it_is:
            remarks.append(tools.journal.put_back(tools.stack))
        if another and tools.subjects[plan.server].uses_toxiproxy:
            if not self._conditions.as_it_is:
                self._bring(plan, AS_IT_IS)
            remarks.append(clear_proxy(tools.stack, tools.system, tools.journal))
        for remark in filter(None, remarks):
            self._progress.remark(remark)
        self._last = plan.server

    def _start_condition(self, plan: TrialPlan) -> None:
        """Where a JVM is to be warmed up: only what that JVM must be started with is in force.
        One that is warm goes on as it is, so that conditions take turns quickly."""
        if self._conditions.as_it_is and plan.condition == AS_IT_IS:
            return
        recreates = self._conditions.recreates(plan.server, plan.condition)
        if recreates or self._fresh_due(plan) or not self._once.is_warmed(self._jvm(plan)):
            self._bring(plan, at_start(plan.condition))
        if recreates and self._changes_lab:
            # What has just begun need not be replaced.
            self._launched[plan.server] = (plan.launch, plan.arm)

    def _bring(self, plan: TrialPlan, condition: Condition) -> None:
        if self._conditions.as_it_is and condition == AS_IT_IS:
            if self._changes_lab:
                self._conditions.keep_toxics()
            return
        self._progress.phase(plan, f"the lab: {condition.text}")
        if self._conditions.recreates(plan.server, condition):
            self._once.forget(plan.server)
        self._conditions.bring(plan.server, condition)

    def _fresh(self, plan: TrialPlan) -> None:
        """The JVM or container of this launch; for launch 0 the one that runs. Where the lab is
        changed from trial to trial, all of them have the user's knobs, which no JVM starts with."""
        if not self._fresh_due(plan):
            return
        if self._changes_lab:
            self._conditions.keep_knobs(plan.server)
        self._progress.phase(plan, f"fresh {self._tools.subjects[plan.server].process}")
        self.replace_jvm(plan.server)
        if self._changes_lab:
            self._bring(plan, at_start(plan.condition))
        self._launched[plan.server] = (plan.launch, plan.arm)

    def _fresh_due(self, plan: TrialPlan) -> bool:
        return bool(plan.launch) and self._launched.get(plan.server) != (plan.launch, plan.arm)

    def _jvm(self, plan: TrialPlan) -> Jvm:
        return plan.server, self._runner.snapshot(plan.server).jvm_started_ms, plan.route

    def _await_quiet(self, plan: TrialPlan) -> None:
        """Wait until others leave the machine's CPUs to the lab, in all trials of the run as long
        as it may. After that no trial waits any more: the checks judge it. Raises Interrupted."""
        system = self._tools.system
        while self._patience_s > 0:
            began_s = system.monotonic()
            crowd = system.crowd(LOOK_S)
            if crowd is None or (crowd[0] < WAITED and crowd[1] < BESIDE):
                return
            others = f"others use {max(crowd):.0%} of the CPUs"
            self._progress.phase(plan, f"waiting, as {others}, at most {self._patience_s:.0f} s")
            system.sleep(PAUSE_S)
            self._patience_s -= system.monotonic() - began_s
            if self._patience_s <= 0:
                self._progress.warn(f"{others}: the run waits no more (PATIENCE)")

    def _unequal(self, plan: TrialPlan, before: Snapshot) -> tuple[Remark, ...]:
        """What the server has in common with those that it is compared with, as each was before its
        last trial. A server that was changed on purpose is compared with none."""
        if self._changes_lab or plan.condition != AS_IT_IS:
            return ()
        self._servers[plan.server] = before
        self.common = fairness(self._servers)
        return state.unequal(self.common)

    def _predict(self, plan: TrialPlan, before: Snapshot, demand: Demand | None) -> Prediction:
        """The bounds of the trial; none of a load that is held."""
        if plan.hold:
            return Prediction(())
        return predict(
            plan.route,
            plan.concurrency,
            plan.offered_rps,
            before,
            demand_of(demand, plan, self._rows, self._cores),
            self._cores,
            plan.condition,
            plan.arrivals,
        )
