"""Load that suddenly multiplies, and how long a server takes to be as before afterwards.

The trial's own load runs on at its rate; what it feels, second by second, is the measure. So
it takes an engine that keeps every second: oha, in `answers.jsonl.gz`.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.config import no_auto_rate
from lab.design import Design, Listed, Planner, UrlOf, launches, offered_rps, turned
from lab.engines import Engine
from lab.engines.histogram import Histogram, Spectrum
from lab.engines.oha import answers
from lab.errors import RawDataError
from lab.intervals import median_of
from lab.measure import RECORD, needed_samples
from lab.predict import auto_rate_rps
from lab.records import read_json
from lab.types import Experiment, Finding, Peak, Row, Snapshot, Spike, TrialRecord

NAME = "recovery time"
MEDIAN = "recovery time, median"
UNIT = "s"
P95 = 0.95
# A load that is not held when calm has no state to come back to.
CALM_KEPT_UP = 0.97


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


@dataclass(frozen=True, slots=True)
class Recovery:
    """One spike: `after_s` seconds after its end the load was as when calm, and stayed so;
    None: not before the next spike or the end. `worst_ms` is the p95 of the worst second from
    its start on, infinite where nothing was answered in one."""

    after_s: float | None
    worst_ms: float
    watched_s: float


def recoveries(
    seconds: Mapping[int, Histogram],
    window: tuple[float, float],
    peaks: Sequence[Peak],
    spike: Spike,
) -> tuple[float, tuple[Recovery, ...]]:
    """The p95 of the calm before the first spike, in ms, and what followed each spike.

    `seconds` are answers by whole second of the run, `window` the measured seconds. A second
    counts as calm when its p95 is at most (1 + tolerance) times that of the calm; one without
    answers does not. Only whole seconds after a spike's end are looked at. Raises ValueError
    where there is no calm, or too few answers in its seconds for a p95.
    """
    limits = [peak.started_s for peak in peaks[1:]] + [window[1]]
    calm = _whole(window[0], peaks[0].started_s)
    before = Spectrum.of(seconds[at] for at in calm if at in seconds)
    per_second = before.count / len(calm) if calm else 0.0
    if per_second < needed_samples(P95):
        raise ValueError(
            f"{per_second:.0f} answers a second in the calm before the first spike, and the p95 "
            f"of a second needs {needed_samples(P95)}"
        )
    calm_ms = before.at_ms(P95)
    limit_ms = calm_ms * (1 + spike.tolerance)

    def p95_ms(at: int) -> float:
        return Spectrum.of([seconds[at]]).at_ms(P95) if at in seconds else math.inf

    found = []
    for peak, until in zip(peaks, limits, strict=True):
        after = _whole(peak.ended_s, until)
        steady = 0
        recovered: float | None = None
        for at in after:
            steady = steady + 1 if p95_ms(at) <= limit_ms else 0
            if steady == spike.steady_s:
                recovered = max(0.0, at + 1 - spike.steady_s - peak.ended_s)
                break
        worst = max((p95_ms(at) for at in _whole(peak.started_s, until)), default=math.inf)
        found.append(Recovery(recovered, worst, until - peak.ended_s))
    return calm_ms, tuple(found)


def _whole(start_s: float, end_s: float) -> range:
    """The whole seconds between two moments."""
    return range(math.ceil(start_s - 1e-9), math.floor(end_s + 1e-9))


def findings(experiment: Experiment, rows: Sequence[Row], run_dir: Path) -> tuple[Finding, ...]:
    """The recovery time after each spike of each server and launch, and their median: over the
    spikes of a launch, then over launches. A trial that is invalid, or whose raw files cannot
    be read, has none, and the text says why. Raises RawDataError without its trial.json."""
    assert experiment.spike is not None  # noqa: S101 - of this kind, says its type
    found: list[Finding] = []
    for server in experiment.servers:
        medians: list[float] = []
        spikes = 0
        for row in rows:
            if row.server != server:
                continue
            own = _of_trial(row, experiment.spike, run_dir / "raw" / row.trial)
            if isinstance(own, str):
                found.append(_finding(NAME, row, None, own))
                continue
            found += own[0]
            after = [math.inf if one.after_s is None else one.after_s for one in own[1]]
            medians.append(statistics.median(after))
            spikes += len(after)
        if medians:
            found.append(_median(server, medians, spikes))
    return tuple(found)


def _of_trial(
    row: Row, spike: Spike, raw: Path
) -> tuple[list[Finding], tuple[Recovery, ...]] | str:
    """What each spike of a trial did, or why that cannot be told."""
    if not row.valid:
        return f"invalid: {row.invalid_reasons}"
    record = read_json(raw / RECORD, TrialRecord)
    if not record.peaks:
        return "no spike was run"
    first = record.window_offset_s
    try:
        seconds = {second.second: second.corrected for second in answers(raw)}
        window = (first, first + record.plan.duration_s)
        _check_calm(seconds, window[0], record)
        calm_ms, watched = recoveries(seconds, window, record.peaks, spike)
    except (RawDataError, ValueError) as failure:
        return str(failure)
    found = []
    for number, one in enumerate(watched, 1):
        worst = (
            "no answer at all in a second"
            if math.isinf(one.worst_ms)
            else (f"p95 {one.worst_ms:.0f} ms in the worst second")
        )
        limit = f"{calm_ms:.0f} ms × {1 + spike.tolerance:g}"
        after = (
            f"not back to {limit} in {one.watched_s:.0f} s"
            if one.after_s is None
            else f"back to {limit} for {spike.steady_s} s on end after {one.after_s:.1f} s"
        )
        text = f"spike {number} of {len(watched)}: {worst}, {after}"
        found.append(_finding(f"{NAME}, spike {number}", row, one.after_s, text))
    return found, watched


def _check_calm(seconds: Mapping[int, Histogram], opens_s: float, record: TrialRecord) -> None:
    """Raises ValueError where the load is not even held before the first spike."""
    calm = _whole(opens_s, record.peaks[0].started_s)
    answered = sum(seconds[at].buckets.total() for at in calm if at in seconds)
    offered = (record.plan.offered_rps or 0) * len(calm)
    if answered < CALM_KEPT_UP * offered:
        raise ValueError(
            f"{answered / max(1, len(calm)):.0f} of {record.plan.offered_rps} req/s were answered "
            "before the first spike: there is no calm to come back to"
        )


def _finding(name: str, row: Row, value: float | None, text: str) -> Finding:
    return Finding(name, row.server, row.launch, value, UNIT, None, None, text)


def _median(server: str, medians: Sequence[float], spikes: int) -> Finding:
    """Of one launch the median over its spikes; an interval is one over launches."""
    middle = statistics.median(medians)
    of = f"over {spikes} spikes in {len(medians)} launch{'es' if len(medians) > 1 else ''}"
    if math.isinf(middle):
        return Finding(MEDIAN, server, 0, None, UNIT, None, None, f"not recovered, median {of}")
    interval = None if math.inf in medians else median_of(medians).interval
    low, high = (interval.low, interval.high) if interval else (None, None)
    spread = "no interval" if low is None else f"95 % interval {low:.1f} to {high:.1f} s"
    text = f"recovered after {middle:.1f} s, median {of}, {spread}"
    return Finding(MEDIAN, server, 0, middle, UNIT, low, high, text)
