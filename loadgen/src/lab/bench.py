"""The verb `bench`: plan the trials, run each, measure, judge, write its row, show the table.

Wiring, like `cli`: it hands the files of one stage to the next and decides nothing itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from lab.config import no_auto_rate
from lab.engines import ENGINES, Engine
from lab.errors import EngineError, Interrupted
from lab.fairness import compare, reasons
from lab.load import Runner
from lab.measure import measure
from lab.predict import auto_rate_rps, predict, response_time_ms
from lab.process import System
from lab.records import read_object
from lab.report import csv, fairness, manifest, table
from lab.report.progress import Bench
from lab.routes import parse
from lab.run_dir import check_space, new_run_dir, point_latest
from lab.stack import Stack
from lab.types import Experiment, Row, Snapshot, TrialPlan
from lab.validate import judge


@dataclass(frozen=True, slots=True)
class Place:
    """Where results go and what make wrote about the host; and this process' own limits."""

    results: Path
    host_file: Path
    file_limit: int
    cores: int


def choose_engine(
    name: str | None, engines: Sequence[Engine] = ENGINES
) -> tuple[Engine, str, str | None]:
    """The engine, its version, and a line for the user where it is not the usual one.

    Raises EngineError when the named one, or none at all, runs here.
    """
    versions = {engine.name: engine.version() for engine in engines}
    here = [engine for engine in engines if versions[engine.name] is not None]
    names = ", ".join(engine.name for engine in here) or "none"
    if name is not None:
        for engine in here:
            if engine.name == name:
                return engine, versions[name] or "", None
        raise EngineError(f"ENGINE={name} does not run on this machine; here run: {names}")
    for engine in here:
        if len(engine.modes) > 1:
            first = engines[0].name
            line = None
            if engine.name != first:
                line = f"{first} does not run on this machine: {engine.name} is the load engine"
            return engine, versions[engine.name] or "", line
    raise EngineError(f"no load engine for MODE=open runs on this machine; here run: {names}")


def bench(
    experiment: Experiment,
    place: Place,
    stack: Stack,
    system: System,
    console: Console,
    engines: Sequence[Engine] = ENGINES,
) -> int:
    """Run the experiment. Returns the exit code: 0, or 1 where a trial gave no figures.

    Raises LabError; Interrupted after what was measured is on disk and printed.
    """
    engine, version, line = choose_engine(experiment.engine, engines)
    if line is not None:
        console.print(line, highlight=False)
    check_space(place.results)
    snapshots = {server: stack.snapshot(server) for server in experiment.servers}
    experiment, left_out = possible(experiment, snapshots)
    if left_out is not None:
        console.print(left_out, highlight=False)
    plans = plan_trials(experiment, snapshots, engine, stack, place.cores)
    for server in experiment.servers:
        wrong = stack.check_route(server, experiment.route)
        if wrong is not None:
            console.print(f"warning: {server}: {wrong}", highlight=False)
    common = compare(snapshots)
    for reason in reasons(common):
        console.print(f"warning: no row will be valid: {reason}", highlight=False)
    seconds = [engine.schedule(plan, Path()).total_s for plan in plans]
    started_at = system.now()
    run_dir = new_run_dir(place.results, started_at, experiment.name)
    console.print(
        f"{len(plans)} trials of {seconds[0]:.0f} s with {engine.name}, "
        f"{_load_text(experiment, plans, snapshots)}, to results/{run_dir.name}",
        highlight=False,
    )
    host = read_object(place.host_file)
    record = manifest.Manifest(
        run=run_dir.name,
        status="running",
        started_at=started_at,
        ended_at=None,
        experiment=experiment,
        versions={
            **manifest.code_versions(host),
            "engine": version,
            "engines": {one.name: one.version() for one in engines},
        },
        host=host,
        limits={"open_files": place.file_limit, "generator_cores": place.cores},
        servers=snapshots,
        fairness=common,
        notes=() if left_out is None else (left_out,),
    )
    manifest.write(run_dir, record)
    rows: list[Row] = []
    notes: list[tuple[str, str]] = []
    status: manifest.Status = "failed"
    try:
        with Bench(console, len(plans), seconds[0], system.monotonic) as progress:
            runner = Runner(run_dir.name, stack, system, progress)
            for plan in plans:
                # All of them, every time: a knob may have been turned meanwhile.
                now = {server: runner.snapshot(server) for server in experiment.servers}
                before, common = now[plan.server], compare(now)
                planned = dataclasses.replace(plan, predicted_rps=_bound(plan, before))
                raw = run_dir / "raw" / plan.trial
                runner.trial(planned, before, reasons(common), engine, version, raw)
                measurement = measure(raw, engines)
                judgement = judge(measurement)
                row = csv.row_of(run_dir.name, measurement, judgement)
                csv.append(run_dir / csv.NAME, row)
                if not rows:
                    point_latest(run_dir)
                rows.append(row)
                notes += [(plan.trial, note) for note in judgement.notes]
                progress.finished()
        status = "complete"
    except Interrupted:
        status = "interrupted"
        raise
    finally:
        manifest.write(
            run_dir,
            dataclasses.replace(
                record,
                status=status,
                ended_at=system.now(),
                fairness=common,
                notes=(*record.notes, *(f"{trial}: {note}" for trial, note in notes)),
            ),
        )
        table.render(console, rows, grouped(notes))
        if rows:
            fairness.render(console, common)
            console.print(f"results/{run_dir.name}/{csv.NAME}", highlight=False)
    return 1 if any(row.achieved_rps is None for row in rows) else 0


def possible(
    experiment: Experiment, snapshots: Mapping[str, Snapshot]
) -> tuple[Experiment, str | None]:
    """The experiment without an open load whose rate cannot be told, and a line that says so.

    Raises WordError where nothing would be left.
    """
    first = snapshots[experiment.servers[0]]
    if "open" not in experiment.modes or experiment.rate_rps is not None:
        return experiment, None
    if auto_rate_rps(experiment.route, 1, first) is not None:
        return experiment, None
    if experiment.modes == ("open",):
        raise no_auto_rate(experiment.route)
    return dataclasses.replace(experiment, modes=("closed",)), (
        "closed load only: RATE=auto is a share of connections / wait, and "
        f"{experiment.route} does not wait now; RATE=n adds the open load"
    )


def grouped(notes: Sequence[tuple[str, str]]) -> list[str]:
    """(trial, note) pairs as lines, one per note: the trials it is about, then the note."""
    trials: dict[str, list[str]] = {}
    for trial, note in notes:
        trials.setdefault(note, []).append(trial)
    return [
        f"{whose[0] if len(whose) == 1 else ', '.join(t.partition('-')[0] for t in whose)}: {note}"
        for note, whose in trials.items()
    ]


def plan_trials(
    experiment: Experiment,
    snapshots: Mapping[str, Snapshot],
    engine: Engine,
    stack: Stack,
    cores: int,
) -> list[TrialPlan]:
    """Every trial, servers innermost, so that compared trials are neighbours in time.

    RATE=auto is computed from one server's snapshot: the delay and the toxics are the same
    for all. Raises WordError where the engine cannot do it.
    """
    first = snapshots[experiment.servers[0]]
    plans: list[TrialPlan] = []
    for concurrency in experiment.concurrencies:
        for mode in experiment.modes:
            offered = None
            if mode == "open":
                offered = experiment.rate_rps
                if offered is None:
                    offered = auto_rate_rps(experiment.route, concurrency, first)
            for server in experiment.servers:
                plan = TrialPlan(
                    trial=f"{len(plans) + 1:02d}-{server}-{mode}-c{concurrency}",
                    server=server,
                    url=stack.traffic_url(server, experiment.route),
                    route=experiment.route,
                    engine=engine.name,
                    mode=mode,
                    concurrency=concurrency,
                    offered_rps=offered,
                    predicted_rps=None,
                    duration_s=experiment.duration_s,
                    warmup_s=experiment.warmup_s,
                    cores=cores,
                )
                engine.schedule(plan, Path())
                plans.append(plan)
    return plans


def _bound(plan: TrialPlan, before: Snapshot) -> float | None:
    return predict(plan.route, plan.concurrency, plan.offered_rps, before).rps


def _load_text(
    experiment: Experiment, plans: Sequence[TrialPlan], snapshots: Mapping[str, Snapshot]
) -> str:
    offered = sorted({plan.offered_rps for plan in plans if plan.offered_rps is not None})
    if not offered:
        return "closed load"
    rates = ", ".join(str(rate) for rate in offered)
    if experiment.rate_rps is not None:
        return f"offering {rates} req/s"
    r0_ms = response_time_ms(parse(experiment.route), snapshots[experiment.servers[0]])
    return f"offering {rates} req/s (90 % of the connections / {r0_ms / 1000:g} s)"
