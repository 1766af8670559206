"""Load that suddenly multiplies, and how long a server takes to be as before afterwards.

The trial's own load runs on at its rate; what it feels, second by second, is the measure. So
it takes an engine that keeps every second: oha, in `answers.jsonl.gz`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.errors import RawDataError
from lab.experiments.order import Design, Listed, Planner, UrlOf, launches, offered_rps, turned
from lab.experiments.reading import no_auto_rate
from lab.experiments.recovery import (
    NAME,
    OfTrial,
    Steady,
    after_text,
    check_calm,
    finding,
    findings_of,
    lost_text,
    recoveries,
)
from lab.judge.predict import auto_rate_rps
from lab.load.engines import Engine
from lab.load.engines.oha import answers
from lab.load.measure import RECORD
from lab.model import Experiment, Finding, Row, Snapshot, Spike, TrialRecord
from lab.store.records import read_json


def design(
    experiment: Experiment,
    snapshots: Mapping[str, Snapshot],
    engines: Mapping[str, Engine],
    url_of: UrlOf,
    cores: int,
) -> Design:
    """One trial per server and launch; arguments as of design.loads. Raises WordError."""
    assert experiment.spike is not None  # noqa: S101 - of this kind, says its type
    planner = Planner(experiment, engines, url_of, cores)
    engine = planner.engine_for("open")
    route, concurrency = experiment.routes[0], experiment.concurrencies[0]
    rate = offered_rps(experiment, route, concurrency, snapshots)
    if rate is None:
        raise no_auto_rate(route)
    spike = experiment.spike
    if spike.extra_rps is None:
        extra_rps = None
        if experiment.rate_rps is None:
            extra_rps = auto_rate_rps(route, spike.extra, snapshots[experiment.servers[0]])
        # As much per connection as the load beside it.
        extra_rps = extra_rps or max(1, rate * spike.extra // concurrency)
        spike = dataclasses.replace(spike, extra_rps=extra_rps)
    plans = [
        planner.plan(
            server,
            engine,
            "open",
            concurrency,
            rate,
            duration_s=spike.total_s,
            launch=launch,
            spike=spike,
        )
        for launch in launches(experiment)
        for server in turned(experiment.servers, launch)
    ]
    return Listed(planner.numbered(plans))


def findings(experiment: Experiment, rows: Sequence[Row], run_dir: Path) -> tuple[Finding, ...]:
    """The recovery time after each spike of each server and launch, and their median: over the
    spikes of a launch, then over launches. A trial that is invalid, or whose raw files cannot
    be read, has none, and the text says why. Raises RawDataError without its trial.json."""
    spike = experiment.spike
    assert spike is not None  # noqa: S101 - of this kind, says its type

    def of_trial(row: Row) -> OfTrial:
        return _of_trial(row, spike, run_dir / "raw" / row.trial)

    return findings_of(experiment.servers, rows, of_trial, "spikes")


def _of_trial(row: Row, spike: Spike, raw: Path) -> OfTrial:
    """What each spike of a trial did, or why that cannot be told."""
    if not row.valid:
        return f"invalid: {row.invalid_reasons}"
    record = read_json(raw / RECORD, TrialRecord)
    if not record.peaks:
        return "no spike was run"
    first, steady = record.window_offset_s, Steady(spike.tolerance, spike.steady_s)
    try:
        seconds = {second.second: second.corrected for second in answers(raw)}
        check_calm(seconds, (first, record.peaks[0].started_s), record.plan.offered_rps)
        window = (first, first + record.plan.duration_s)
        calm_ms, watched = recoveries(seconds, window, record.peaks, steady)
    except (RawDataError, ValueError) as failure:
        return str(failure)
    found = []
    for number, one in enumerate(watched, 1):
        worst = (
            "no answer at all in a second"
            if math.isinf(one.worst_ms)
            else f"p95 {one.worst_ms:.0f} ms in the worst second"
        )
        after = after_text(one, calm_ms, steady)
        text = f"spike {number} of {len(watched)}: {worst}, {after}{lost_text(row)}"
        found.append(finding(f"{NAME}, spike {number}", row, one.after_s, text))
    return found, watched
