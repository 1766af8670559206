"""The loop behind `run` and `bench`: each trial in turn, from a JVM proven warm to its row.

Wiring, like `cli`: it hands the files of one stage to the next and decides nothing itself.
What is on disk after every trial is enough to go on after a crash (see `resume`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from lab.campaign.as_measured import as_measured
from lab.campaign.derive import Trial, derive, read_trial
from lab.campaign.resume import (
    check_unfinished,
    put_away,
    still_running,
    unlike,
    unsure,
    without_series,
)
from lab.errors import EngineError, Interrupted
from lab.experiments import endurance, explain, faults, order, planted, spike, stress
from lab.judge.compare import IN_CONDITIONS
from lab.judge.fairness import compare, reasons
from lab.judge.predict import Prediction, predict
from lab.load.demand import demand_of_foreign, measure_demand
from lab.load.engines import ENGINES, Engine
from lab.load.measure import measure
from lab.load.trial import Runner
from lab.load.warm import prove_warm, warm_foreign
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
from lab.report import comparison, fairness, markdown, page, table, verdicts
from lab.report.progress import Trials
from lab.store import csv, manifest
from lab.store.records import read_object
from lab.store.run_dir import check_space, new_run_dir, point_latest
from lab.system.conditions import Conditions, at_start
from lab.system.host import System
from lab.system.host_changes import HostChanges
from lab.system.jvm import fresh_jvm
from lab.system.observe import observe
from lab.system.panels import panels
from lab.system.proxy_reset import clear_proxy
from lab.system.stack import Stack
from lab.system.undo_log import UndoLog

# A JVM is warmed up with the load it will have, as far as a warm-up needs that many.
WARM_CONNECTIONS = 1000
# One that a planted bottleneck gives too little for its load: with what it surely holds.
WARM_CONNECTIONS_LIMITED = 50
ANOTHER_JVM = "its JVM was replaced after it was warmed up"
# What is measured once: a server, the start time of its JVM, and a route.
Jvm = tuple[str, int | None, str]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run finds what it needs on this machine.

    `results` is the folder of all runs; `host_file` what make wrote about the host; `file_limit`
    and `cores` are this process' own limits. `dashboards` holds the panels kept with each trial
    (None: keep none), `host_changes` is the folder by which the host is asked for changes (None:
    nobody answers), `undo_log` the file of what is changed now (None: keep none). `settings` are
    words of make for settings of .env that no server tells of."""

    results: Path
    host_file: Path
    file_limit: int
    cores: int
    dashboards: Path | None = None
    host_changes: Path | None = None
    undo_log: Path | None = None
    settings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stages:
    """What happens around a trial; the seam for tests, which have no time to warm up a JVM."""

    fresh: Callable[..., object] = fresh_jvm
    warm: Callable[..., Warmth] = prove_warm
    warm_foreign: Callable[..., Warmth] = warm_foreign
    demand: Callable[..., Demand | None] = measure_demand
    demand_of_foreign: Callable[..., Demand | None] = demand_of_foreign
    observe: Callable[..., str | None] = observe
    panels: Callable[..., str | None] = panels


@dataclass(frozen=True, slots=True)
class Chosen:
    """The engines of a run by name with their versions, and lines for the user about them."""

    engines: Mapping[str, Engine]
    versions: Mapping[str, str]
    notes: tuple[str, ...] = ()


def choose_engines(names: Sequence[str], engines: Sequence[Engine] = ENGINES) -> Chosen:
    """The engines named, as far as they run here; the first that does both loads if none is.

    Raises EngineError when none of the named, or none at all, runs here.
    """
    versions = {engine.name: engine.version() for engine in engines}
    here = {engine.name: engine for engine in engines if versions[engine.name] is not None}
    known = ", ".join(here) or "none"
    if names:
        missing = [name for name in names if name not in here]
        if len(missing) == len(names):
            raise EngineError(
                f"ENGINE={','.join(missing)} does not run on this machine; here run: {known}"
            )
        chosen = {name: here[name] for name in names if name in here}
        notes = tuple(f"{name} does not run on this machine: left out" for name in missing)
    else:
        both = [engine for engine in here.values() if len(engine.modes) > 1]
        if not both:
            raise EngineError(f"no load engine for MODE=open runs on this machine; here: {known}")
        chosen = {both[0].name: both[0]}
        first, usual = both[0].name, engines[0].name
        notes = ()
        if first != usual:
            notes = (f"{usual} does not run on this machine: {first} is the load engine",)
    return Chosen(chosen, {name: versions[name] or "" for name in chosen}, notes)


def new_design(
    experiment: Experiment,
    snapshots: Mapping[str, Snapshot],
    engines: Mapping[str, Engine],
    stack: Stack,
    cores: int,
) -> order.Design:
    """The order of the trials, by the experiment's kind. Raises WordError."""
    make: Callable[..., order.Design] = {
        "loads": order.loads,
        "stress": stress.design,
        "spike": spike.design,
        "endurance": endurance.design,
        "faults": faults.design,
        "explain": explain.design,
        "planted": planted.design,
    }[experiment.kind]
    return make(experiment, snapshots, engines, stack.traffic_url, cores)


def run(
    experiment: Experiment,
    place: Place,
    stack: Stack,
    system: System,
    console: Console,
    notes: Sequence[str] = (),
    engines: Sequence[Engine] = ENGINES,
    stages: Stages | None = None,
) -> int:
    """Run the experiment. Returns the exit code: 0, or 1 where a trial gave no figures.

    Raises LabError; Interrupted after what was measured is on disk and printed.
    """
    chosen = choose_engines(experiment.engines, engines)
    check_space(place.results)
    if experiment.target is not None:
        stack.adopt(experiment.servers[0], experiment.target, experiment.routes[0])
    snapshots = {server: stack.snapshot(server) for server in experiment.servers}
    order = new_design(experiment, snapshots, chosen.engines, stack, place.cores)
    notes = (*chosen.notes, *notes, *order.notes)
    in_force = snapshots[experiment.servers[0]].toxics.in_force
    if in_force:
        notes = (*notes, f"toxics in force: {'; '.join(in_force)}")
    for server in experiment.servers:
        for route in experiment.routes:
            wrong = stack.traffic.check_route(server, route)
            if wrong is not None:
                notes = (*notes, f"warning: {server}: {wrong}")
    common = _common(experiment, snapshots)
    for line in (*notes, *(f"warning: no row will be valid: {r}" for r in reasons(common))):
        console.print(line, highlight=False)
    started_at = system.now()
    run_dir = new_run_dir(place.results, started_at, experiment.name)
    host = read_object(place.host_file)
    record = manifest.Manifest(
        run=run_dir.name,
        status="running",
        started_at=started_at,
        ended_at=None,
        experiment=experiment,
        versions={
            **manifest.code_versions(host),
            "engine": "; ".join(chosen.versions.values()),
            "engines": {one.name: one.version() for one in engines},
        },
        host=host,
        limits={"open_files": place.file_limit, "generator_cores": place.cores},
        servers=snapshots,
        fairness=common,
        notes=notes,
        settings=place.settings,
    )
    manifest.write(run_dir, record)
    tools = _tools(chosen, engines, stages, stack, system, console, place)
    return Campaign(run_dir, record, experiment, order, tools).go([])


def _common(experiment: Experiment, snapshots: Mapping[str, Snapshot]) -> Fairness:
    """What the servers have in common; where each is for itself nothing is unequal."""
    common = compare(snapshots)
    if experiment.kind in IN_CONDITIONS:
        common = dataclasses.replace(common, unequal={})
    return common


def _tools(
    chosen: Chosen,
    engines: Sequence[Engine],
    stages: Stages | None,
    stack: Stack,
    system: System,
    console: Console,
    place: Place,
) -> Tools:
    undo_log = UndoLog(place.undo_log)
    conditions = Conditions(stack, HostChanges(place.host_changes), system, undo_log=undo_log)
    return Tools(
        chosen,
        tuple(engines),
        stages or Stages(),
        stack,
        system,
        console,
        place.dashboards,
        conditions,
        undo_log,
    )


def resume(
    run_dir: Path,
    place: Place,
    stack: Stack,
    system: System,
    console: Console,
    engines: Sequence[Engine] = ENGINES,
    stages: Stages | None = None,
) -> int:
    """Go on with a run that was interrupted, with the trials it had planned; finished trials
    are neither lost nor run again. Returns and raises as `run`, and LabError when the lab is
    not the one the run began on.
    """
    record = manifest.read(run_dir)
    experiment = record.experiment
    assert isinstance(experiment, Experiment)  # noqa: S101 - manifest.read says so
    check_unfinished(record)
    chosen = choose_engines(experiment.engines, engines)
    check_space(place.results)
    if experiment.target is not None:
        stack.adopt(experiment.servers[0], experiment.target, experiment.routes[0])
    snapshots = {server: stack.snapshot(server) for server in experiment.servers}
    engine_now, cores_then = "; ".join(chosen.versions.values()), record.limits["generator_cores"]
    others = (
        ("the load engine", record.versions.get("engine"), engine_now),
        ("the number of the generator's CPUs", cores_then, place.cores),
    )
    unlike(as_measured(record, run_dir), read_object(place.host_file), snapshots, others)
    for folder in put_away(run_dir):
        console.print(f"an unfinished trial was put away as {folder}", highlight=False)
    for line in (unknown := tuple(unsure(record, snapshots))):
        console.print(line, highlight=False)
    notes = tuple(dict.fromkeys((*record.notes, *unknown)))
    rows = list(derive(run_dir, engines, live=True).rows)
    order = new_design(experiment, record.servers, chosen.engines, stack, place.cores)
    console.print(
        f"results/{run_dir.name}: {len(rows)} trials are there, going on", highlight=False
    )
    record = dataclasses.replace(record, status="running", ended_at=None, notes=notes)
    manifest.write(run_dir, record)
    tools = _tools(chosen, engines, stages, stack, system, console, place)
    launched = still_running(run_dir, rows, snapshots)
    return Campaign(run_dir, record, experiment, order, tools, launched).go(rows)


def _another(warmth: Warmth) -> Warmth:
    """The warmth of a JVM that is no longer there: of the one that is, nothing was proven."""
    return dataclasses.replace(warmth, steady=False, problem=ANOTHER_JVM, provable=True)


@dataclass(frozen=True, slots=True)
class Tools:
    """What a campaign works with. `all_engines` are those that raw data may be of."""

    chosen: Chosen
    all_engines: tuple[Engine, ...]
    stages: Stages
    stack: Stack
    system: System
    console: Console
    dashboards: Path | None
    conditions: Conditions
    undo_log: UndoLog


@dataclass(slots=True)
class Campaign:
    """One run under way. `go` once, from the main thread."""

    run_dir: Path
    record: manifest.Manifest
    experiment: Experiment
    order: order.Design
    tools: Tools
    _launched: dict[str, tuple[int, str | None]] = field(default_factory=dict)
    _warm: dict[Jvm, Warmth] = field(default_factory=dict)
    _demands: dict[Jvm, Demand] = field(default_factory=dict)
    _without_demand: set[tuple[str, int | None, str, str]] = field(default_factory=set)
    _predicted: set[str] = field(default_factory=set)
    _common: Fairness | None = None
    _last: str | None = None

    def go(self, rows: list[Row]) -> int:
        """Every trial that is left after `rows`; then the derived files, and the table."""
        status: manifest.Status = "failed"
        tools, total = self.tools, self.order.total
        try:
            left, monotonic = self.order.left(rows), tools.system.monotonic
            with Trials(tools.console, total, len(rows), left, monotonic) as progress:
                runner = Runner(
                    self.run_dir.name, tools.stack, tools.system, progress, tools.undo_log
                )
                missing = without_series(self.run_dir)
                for raw in missing:
                    self._observe(raw, progress)
                if without_series(self.run_dir) != missing:
                    # What is next follows from verdicts, and these from the series.
                    rows[:] = derive(self.run_dir, tools.all_engines, live=True).rows
                while (plan := self.order.next(rows)) is not None:
                    if not rows:
                        self._announce(plan, progress)
                    row = self._trial(plan, runner, progress).row
                    csv.append(self.run_dir / csv.NAME, row)
                    if not rows:
                        point_latest(self.run_dir)
                    rows.append(row)
                    progress.finished(self.order.left(rows))
                    if not row.valid:
                        progress.warn(f"{row.trial} is invalid: {row.invalid_reasons}")
            status = "complete"
        except Interrupted:
            status = "interrupted"
            raise
        finally:
            for problem in tools.conditions.restore():
                tools.console.print(f"warning: {problem}", highlight=False)
            record = dataclasses.replace(
                self.record,
                status=status,
                ended_at=tools.system.now(),
                fairness=self._common or self.record.fairness,
            )
            manifest.write(self.run_dir, record)
            if rows:
                self._show(rows, record)
        return 1 if any(row.achieved_rps is None for row in rows) else 0

    def _announce(self, first: TrialPlan, progress: Trials) -> None:
        """What is about to happen, and for how long."""
        engine, total = self.tools.chosen.engines[first.engine], self.order.total
        seconds = engine.schedule(first, Path()).total_s
        count = f"{total} trials"
        if total is None:
            count = f"at most {self.order.left([])} trials (invalid ones once more), each"
        rate = "closed load"
        if any(mode == "open" for mode in self.experiment.modes):
            offered = self.experiment.rate_rps
            rate = f"open load of {offered} req/s" if offered else "open load of 90 % of the bound"
        scale = ""
        if self.experiment.scale != 1:
            scale = f", durations × {self.experiment.scale:g} (a quick look, not a result)"
        progress.say(
            f"{count} of {seconds:.0f} s and warm-up, with {', '.join(self.tools.chosen.engines)}, "
            f"{rate}{scale}, to results/{self.run_dir.name}"
        )

    def _trial(self, plan: TrialPlan, runner: Runner, progress: Trials) -> Trial:
        tools = self.tools
        engine = tools.chosen.engines[plan.engine]
        self._clear(plan, progress)
        for tries_left in (1, 0):
            self._prepare(plan, runner, progress)
            self._fresh(plan, progress)
            jvm = self._jvm(plan, runner)
            warmth = self._warmth(plan, jvm, engine, progress)
            demand = self._demand(plan, jvm, engine, warmth, progress)
            self._bring(plan, plan.condition, progress)
            before, common = self._before(plan, runner)
            if before.jvm_started_ms == jvm[1]:
                break
            # Nothing is known of the JVM that is there now, neither warmth nor demand.
            demand, warmth = None, _another(warmth)
            if tries_left:
                progress.warn(f"{plan.server}: {ANOTHER_JVM}: warming up again")
        prediction = self._predict(plan, before, demand, progress)
        raw = self.run_dir / "raw" / plan.trial
        runner.trial(
            dataclasses.replace(plan, predicted_rps=prediction.rps),
            before,
            reasons(common),
            engine,
            tools.chosen.versions[plan.engine],
            raw,
            warmth,
            prediction=prediction,
            known=self._answers(plan),
        )
        tools.conditions.free_generator()
        self._observe(raw, progress)
        return read_trial(as_measured(self.record, self.run_dir), raw, tools.all_engines)

    def _answers(self, plan: TrialPlan) -> tuple[str, ...]:
        """What a target said before the run that is no success, for the notes of its trials."""
        said = f"warning: {plan.server}: {plan.route} answers "
        return tuple(
            note.removeprefix("warning: ")
            for note in self.record.notes
            if self.experiment.target and note.startswith(said)
        )

    def _clear(self, plan: TrialPlan, progress: Trials) -> None:
        """No server finds what another one left with Toxiproxy."""
        if plan.server != self._last and not self.experiment.target:
            said = clear_proxy(self.tools.stack, self.tools.system, self.tools.undo_log)
            if said is not None:
                progress.warn(said)
        self._last = plan.server

    def _prepare(self, plan: TrialPlan, runner: Runner, progress: Trials) -> None:
        """Where a JVM is to be warmed up: only what that JVM must be started with is in force.
        One that is warm goes on as it is, so that conditions take turns quickly."""
        conditions = self.tools.conditions
        if conditions.as_it_is and plan.condition == AS_IT_IS:
            return
        if (
            conditions.recreates(plan.server, plan.condition)
            or self._fresh_due(plan)
            or self._jvm(plan, runner) not in self._warm
        ):
            self._bring(plan, at_start(plan.condition), progress)

    def _bring(self, plan: TrialPlan, condition: Condition, progress: Trials) -> None:
        conditions = self.tools.conditions
        if conditions.as_it_is and condition == AS_IT_IS:
            return
        progress.phase(plan, f"the lab: {condition.text}")
        conditions.bring(plan.server, condition)

    def _before(self, plan: TrialPlan, runner: Runner) -> tuple[Snapshot, Fairness]:
        """The trial's server as it is now, and what it has in common with those it is compared
        with. All of them, every time: a knob may have been turned meanwhile."""
        if self.experiment.kind in IN_CONDITIONS:
            before = runner.snapshot(plan.server)
            return before, compare({plan.server: before})
        now = {server: runner.snapshot(server) for server in self.experiment.servers}
        self._common = compare(now)
        return now[plan.server], self._common

    def _observe(self, raw: Path, progress: Trials) -> None:
        measured = measure(raw, self.tools.all_engines)
        if measured.reading is None:
            return
        tools, window_s = self.tools, measured.reading.window_s
        problems = [tools.stages.observe(measured.record, window_s, raw, tools.stack, tools.system)]
        if tools.dashboards is not None:
            problems.append(
                tools.stages.panels(
                    measured.record, window_s, raw, tools.dashboards, tools.stack.prometheus
                )
            )
        for problem in problems:
            if problem is not None:
                progress.warn(f"{raw.name}: {problem}")

    def _fresh(self, plan: TrialPlan, progress: Trials) -> None:
        """The JVM of this launch; for launch 0 the one that runs."""
        if self._fresh_due(plan):
            progress.phase(plan, "fresh JVM")
            self.tools.stages.fresh(plan.server, self.tools.stack, self.tools.system)
            self._launched[plan.server] = (plan.launch, plan.arm)

    def _fresh_due(self, plan: TrialPlan) -> bool:
        return bool(plan.launch) and self._launched.get(plan.server) != (plan.launch, plan.arm)

    def _jvm(self, plan: TrialPlan, runner: Runner) -> Jvm:
        return plan.server, runner.snapshot(plan.server).jvm_started_ms, plan.route

    def _warmth(self, plan: TrialPlan, key: Jvm, engine: Engine, progress: Trials) -> Warmth:
        """Proven once for each JVM and route."""
        if key not in self._warm:
            most = self._most(plan)
            if self.experiment.kind == "planted" and at_start(plan.condition) != AS_IT_IS:
                most = min(plan.concurrency, WARM_CONNECTIONS_LIMITED)
            stages = self.tools.stages
            warm, what = stages.warm, "warming up its JVM"
            if self.experiment.target:
                warm, what = stages.warm_foreign, "warming up"
            self._warm[key] = warm(
                plan.server,
                plan.url,
                plan.route,
                min(most, WARM_CONNECTIONS),
                engine,
                self.tools.stack,
                self.tools.system,
                self.run_dir / "warm-up",
                plan.cores,
                lambda elapsed_s: progress.phase(plan, f"{what}, {elapsed_s:.0f} s"),
            )
        return self._warm[key]

    def _most(self, plan: TrialPlan) -> int:
        """The connections of the largest load to come on the plan's server."""
        if self.experiment.kind in IN_CONDITIONS:
            return plan.concurrency
        return max(self.experiment.concurrencies)

    def _demand(
        self, plan: TrialPlan, key: Jvm, engine: Engine, warmth: Warmth, progress: Trials
    ) -> Demand | None:
        """What a request costs: measured once for each warm JVM and route, and again under
        another condition where it could not be told."""
        if warmth.cold:
            return None
        tried = (*key, plan.condition.text)
        if key not in self._demands and tried not in self._without_demand:
            progress.phase(plan, "light load")
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
                self._cores,
            )
            if demand is None:
                self._without_demand.add(tried)
                return None
            self._demands[key] = demand
        return self._demands.get(key)

    def _predict(
        self, plan: TrialPlan, before: Snapshot, demand: Demand | None, progress: Trials
    ) -> Prediction:
        """The bounds of the trial, said once for every load."""
        prediction = predict(
            plan.route,
            plan.concurrency,
            plan.offered_rps,
            before,
            demand,
            self._cores,
            plan.condition,
        )
        rate = "" if plan.offered_rps is None else f" at {plan.offered_rps:,}/s"
        changed = "" if plan.condition == AS_IT_IS else f", {plan.condition.text}"
        load = f"{plan.server} {plan.route} {plan.concurrency} {plan.mode}{rate}{changed}"
        if load not in self._predicted:
            self._predicted.add(load)
            progress.say(f"prediction: {load}: {prediction.text}")
        return prediction

    @property
    def _cores(self) -> int | None:
        """The CPUs of the host, as make found them."""
        cores = self.record.host.get("cores")
        return cores if isinstance(cores, int) else None

    def _show(self, rows: Sequence[Row], record: manifest.Manifest) -> None:
        """The derived files of what there is, and what a reader wants first."""
        console = self.tools.console
        derived = derive(self.run_dir, self.tools.all_engines, live=True)
        foreign = self.experiment.target is not None
        table.render(console, rows, table.grouped(derived.notes), foreign=foreign)
        verdicts.render(console, derived.said)
        fairness.render(console, record.fairness)
        for line in derived.lines:
            console.print(line, highlight=False)
        if any(row.launch for row in rows):
            comparison.render(console, derived.comparisons)
        files = f"{csv.NAME}, {page.NAME}, {markdown.NAME}"
        console.print(f"results/{self.run_dir.name}/{{{files}}}", highlight=False)
        if record.status != "complete":
            console.print(
                f"{record.status}: make run RESUME={self.run_dir.name} goes on", highlight=False
            )
