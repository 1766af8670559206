"""Toxics that come and go under a constant load, and how long a server takes to be as before.

A fault lasts from the step of the script that brings the first toxic (or the downstream down)
to the one after which nothing of the script is left. What the load feels, second by second, is
the measure, so it takes the engine that keeps every second.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
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
    whole_seconds,
)
from lab.load.engines import Engine
from lab.load.engines.oha import Second, answers
from lab.load.measure import RECORD
from lab.model import Experiment, Faults, Finding, Peak, Row, ScriptedToxic, Snapshot, TrialRecord
from lab.store.records import read_json

# A server that refuses at once is quick: with more errors than this, a second is not calm.
ERROR_SHARE = 0.01


def design(
    experiment: Experiment,
    snapshots: Mapping[str, Snapshot],
    engines: Mapping[str, Engine],
    url_of: UrlOf,
    cores: int,
) -> Design:
    """One trial per server and launch; arguments as of design.loads. Raises WordError."""
    assert experiment.faults is not None  # noqa: S101 - of this kind, says its type
    planner = Planner(experiment, engines, url_of, cores)
    engine = planner.engine_for("open")
    route, concurrency = experiment.routes[0], experiment.concurrencies[0]
    rate = offered_rps(experiment, route, concurrency, snapshots)
    if rate is None:
        raise no_auto_rate(route)
    plans = [
        planner.plan(
            server,
            engine,
            "open",
            concurrency,
            rate,
            launch=launch,
            script=experiment.faults.steps,
        )
        for launch in launches(experiment)
        for server in turned(experiment.servers, launch)
    ]
    return Listed(planner.numbered(plans))


def disturbances(script: Iterable[ScriptedToxic]) -> tuple[tuple[Peak, str], ...]:
    """Each fault as it really was, with what it was: from the step that begins it to the one
    that leaves nothing of it."""
    found: list[tuple[Peak, str]] = []
    began: ScriptedToxic | None = None
    what: list[str] = []
    for step in script:
        if began is None:
            began = step
        if step.clear:
            found.append((Peak(began.started_s, step.ended_s), ", then ".join(what) or step.change))
            began, what = None, []
        else:
            what.append(step.change)
    return tuple(found)


def findings(experiment: Experiment, rows: Sequence[Row], run_dir: Path) -> tuple[Finding, ...]:
    """The recovery time after each fault of each server and launch, and their median: over the
    faults of a launch, then over launches. A trial that is invalid, or whose raw files cannot
    be read, has none, and the text says why. Raises RawDataError without its trial.json."""
    faults = experiment.faults
    assert faults is not None  # noqa: S101 - of this kind, says its type

    def of_trial(row: Row) -> OfTrial:
        return _of_trial(row, faults, run_dir / "raw" / row.trial)

    return findings_of(experiment.servers, rows, of_trial, "faults")


def _of_trial(row: Row, faults: Faults, raw: Path) -> OfTrial:
    """What each fault of a trial did, or why that cannot be told."""
    if not row.valid:
        return f"invalid: {row.invalid_reasons}"
    record = read_json(raw / RECORD, TrialRecord)
    made = disturbances(record.script)
    if not made:
        return "no toxic of the script came and went"
    peaks = [peak for peak, _ in made]
    first, steady = record.window_offset_s, Steady(faults.tolerance, faults.steady_s)
    window = (first, first + record.plan.duration_s)
    try:
        every = {second.second: second for second in answers(raw)}
        # What was answered with errors is not what a client came for, however quick.
        good = {at: one.corrected for at, one in every.items() if _errors(one) <= ERROR_SHARE}
        check_calm(good, (first, peaks[0].started_s), record.plan.offered_rps)
        calm_ms, watched = recoveries(good, window, peaks, steady)
    except (RawDataError, ValueError) as failure:
        return str(failure)
    found = []
    limits = [peak.started_s for peak in peaks[1:]] + [window[1]]
    for number, (one, (peak, what), until) in enumerate(zip(watched, made, limits, strict=True), 1):
        felt = _felt([every[at] for at in whole_seconds(peak.started_s, until) if at in every])
        lasted = peak.ended_s - peak.started_s
        text = (
            f"fault {number} of {len(watched)} ({what}, {lasted:.0f} s): {felt}, "
            f"{after_text(one, calm_ms, steady)}{lost_text(row)}"
        )
        found.append(finding(f"{NAME}, fault {number}", row, one.after_s, text))
    return found, watched


def _felt(seconds: Sequence[Second]) -> str:
    """What the load met from the fault's start on."""
    answered = sum(sum(one.statuses.values()) for one in seconds)
    failed = sum(_failed(one) for one in seconds)
    worst_ms = max((one.corrected.max_us for one in seconds), default=math.inf) / 1000
    slowest = "no answer at all" if math.isinf(worst_ms) else f"slowest answer {worst_ms:.0f} ms"
    return f"{failed} of {answered} answers were errors, {slowest}"


def _errors(second: Second) -> float:
    return _failed(second) / max(1, sum(second.statuses.values()))


def _failed(second: Second) -> int:
    return sum(count for status, count in second.statuses.items() if status > 399)
