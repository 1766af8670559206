"""Load with disturbances in it, and how long a server takes to recover: `spike` and `faults`.

A spike is load that suddenly multiplies. A fault begins with the step of a script that adds the
first toxic (or takes the downstream down), and ends with the step that removes the last one. The
trial's own load keeps its rate; recovery is measured from its latency in each second, so this needs
the engine that reports every second, and begins and ends a peak at once: pacer.
"""

from __future__ import annotations

import copy
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Annotated

from msgspec import Meta, Struct

from lab.errors import RawDataError
from lab.judge.checks.data import damaged
from lab.judge.intervals import interval_of
from lab.judge.predict import auto_rate_rps
from lab.kinds import script
from lab.kinds.kind import COMMON, Kind, Outcome, ToMeasure, ends, settings_of
from lab.kinds.objective import gave_way
from lab.kinds.order import Design, Planner
from lab.kinds.reading import Asked, read_load
from lab.kinds.reading.load import ExtraRate
from lab.kinds.reading.settings import Connections, Duration
from lab.load.engines import Pacer
from lab.load.engines.histogram import Histogram
from lab.load.engines.pacer_output import Line
from lab.load.measure import RECORD
from lab.model import (
    Calm,
    Disturbance,
    Felt,
    Finding,
    NotFound,
    Peak,
    Recovered,
    Recoveries,
    Recovery,
    Remark,
    Row,
    ScriptedToxic,
    Spike,
    ToxicStep,
    TrialRecord,
    needed_samples,
)
from lab.store.records import read_json

NAME = "recovery time"
UNIT = "s"
P95 = 0.95
# A server that does not keep up in the calm has no state to recover to.
CALM_KEPT_UP = 0.97
# A pause this short, as of a garbage collection, only moves answers into the next second.
PAUSE_S = 0.05
# By so many standard deviations a count may fall short by chance.
DEVIATIONS = 3
# A server that refuses at once is quick. A second with a larger share of errors is not calm.
ERROR_SHARE = 0.01
# A disturbance's actual time, and the changes of the toxics that it was.
Event = tuple[Peak, tuple[str, ...]]


class Steady(Struct, frozen=True, forbid_unknown_fields=True):
    """What counts as recovered: `steady_s` seconds on end with a p95 of at most (1 + `tolerance`)
    times the p95 of the calm, and with as many answers as in the calm."""

    tolerance: Annotated[float, Meta(ge=0.001, le=100)]
    steady_s: Duration


class SpikeTable(Steady, frozen=True, kw_only=True):
    """The keys of [spike]."""

    extra: Connections
    extra_rate: ExtraRate = "auto"
    calm_s: Duration
    peak_s: Duration
    repeats: Annotated[int, Meta(ge=1, le=100)]


class Faults(Steady, frozen=True, kw_only=True):
    """The script of toxics, and what counts as recovered."""

    steps: tuple[ToxicStep, ...]

    def __post_init__(self) -> None:
        if not self.steps or any(b.at_s < a.at_s for a, b in pairwise(self.steps)):
            raise ValueError("there are steps, in the order of time")


def read_spike(asked: Asked) -> ToMeasure:
    """The spikes that a file describes, up to what this machine holds. Raises WordError."""
    load = read_load(asked, ("open",), ("routes", "concurrency"), exact=True)
    table, settings = asked.settings.table("spike", SpikeTable), asked.settings
    base, notes = load.draft.concurrencies[0], load.notes
    extra = min(table.extra, load.most - base)
    if extra < 1:
        what = f"beside {base} is more than this machine holds; allowed in all: {load.held}"
        raise settings.refuse("spike.extra", what)
    if extra < table.extra:
        wanted = f"spikes to {base + extra} instead of {base + table.extra} connections"
        notes = (*notes, f"{wanted}: this machine holds {load.held}")
    if table.steady_s > table.calm_s:
        raise settings.refuse(
            "spike.calm", "is shorter than spike.steady, so nothing could recover"
        )
    rate = table.extra_rate
    spike = Spike(
        extra=extra,
        extra_rps=None if rate == "auto" else max(1, int(rate) * extra // table.extra),
        calm_s=table.calm_s,
        peak_s=table.peak_s,
        repeats=table.repeats,
        tolerance=table.tolerance,
        steady_s=table.steady_s,
    )
    return load.experiment("spike", spike, duration_s=spike.total_s), notes


def design_spike(planner: Planner) -> Design:
    """One trial per server and launch. Raises WordError."""
    experiment = planner.experiment
    spike = settings_of(Spike, experiment)
    if spike.extra_rps is None:
        extra_rps = None
        if experiment.rate_rps is None:
            first = planner.snapshots[experiment.servers[0]]
            extra_rps = auto_rate_rps(experiment.routes[0], spike.extra, first)
        if not extra_rps:
            # The same rate per connection as the load beside it.
            rate = planner.single(experiment.servers[0]).offered_rps or 0
            extra_rps = max(1, rate * spike.extra // experiment.concurrencies[0])
        spike = copy.replace(spike, extra_rps=extra_rps)
    return planner.one_per_launch(duration_s=spike.total_s, spike=spike)


def findings_of_spikes(outcome: Outcome) -> Iterator[Finding]:
    spike = settings_of(Spike, outcome.experiment)
    steady = Steady(spike.tolerance, spike.steady_s)
    return _findings("spike", steady, lambda record: [(p, ()) for p in record.peaks], outcome)


def read_faults(asked: Asked) -> ToMeasure:
    """The load and the script that a file describes. Raises WordError."""
    load = read_load(asked, ("open",), ("routes", "concurrency"), exact=True)
    steady = asked.settings.table("faults", Steady)
    steps = script.read(asked, load.draft.duration_s, steady.steady_s)
    return load.experiment(
        "faults", Faults(steady.tolerance, steady.steady_s, steps=steps)
    ), load.notes


def design_faults(planner: Planner) -> Design:
    """One trial per server and launch. Raises WordError."""
    return planner.one_per_launch(script=settings_of(Faults, planner.experiment).steps)


def findings_of_faults(outcome: Outcome) -> Iterator[Finding]:
    faults = settings_of(Faults, outcome.experiment)
    return _findings("fault", faults, lambda record: [*faults_of(record.script)], outcome)


def faults_of(steps: Sequence[ScriptedToxic]) -> Iterator[Event]:
    """Each fault's actual start and end, and its changes of the toxics."""
    began: float | None = None
    changes: list[str] = []
    for step in steps:
        began = step.started_s if began is None else began
        if step.clear:
            yield Peak(began, step.ended_s), tuple(changes) or (step.change,)
            began, changes = None, []
        else:
            changes.append(step.change)


def recoveries(
    seconds: Mapping[int, Histogram],
    window: tuple[float, float],
    disturbances: Sequence[Peak],
    steady: Steady,
    drawn: bool = False,
    random: bool = False,
) -> tuple[Calm, tuple[Recovery, ...]]:
    """The calm before the first disturbance, and the recovery from each.

    `seconds` are the answers by whole second of the run, `window` is the measured time. A second
    counts as calm when its p95 is at most (1 + tolerance) times the p95 of the calm. A second
    without answers does not. Requests that were reset or timed out are in no second. The number of
    answers shows them: each second, and all seconds on end, need the share CALM_KEPT_UP of the
    answers of the calm, less the answers that a pause or a tolerated rise of the latency moves
    over the edge. `drawn`: the downstream draws each delay, so the p95 of a second varies in the
    calm, too; one that is no more than that of the calm's worst second counts as calm. `random`:
    requests come at random, so the number of answers varies as well (`by_chance`). Only whole
    seconds after a disturbance's end count. The calm must be one (`calm_problem`).
    """
    calm = whole_seconds(window[0], disturbances[0].started_s)
    before = Histogram.sum_of(seconds[at] for at in calm if at in seconds)
    per_second, calm_ms = before.count / len(calm), before.at_ms(P95)
    limit_ms = calm_ms * (1 + steady.tolerance)
    late_s = max(PAUSE_S, (limit_ms - calm_ms) / 1000)
    p95_ms = {at: second.at_ms(P95) for at, second in seconds.items()}
    if drawn:
        limit_ms = max(limit_ms, *(p95_ms[at] for at in calm if at in p95_ms))

    def kept_up(span: range) -> bool:
        answered = sum(seconds[at].count for at in span if at in seconds)
        fewer = by_chance(len(span) * per_second) if random else 0.0
        return answered >= (CALM_KEPT_UP * len(span) - late_s) * per_second - fewer

    def above(span: range) -> int:
        return sum(
            p95_ms.get(at, math.inf) > limit_ms or not kept_up(range(at, at + 1)) for at in span
        )

    def as_before(first: int) -> bool:
        span = range(first, first + steady.steady_s)
        return above(span) == 0 and kept_up(span)

    recovered = []
    ends = [disturbance.started_s for disturbance in disturbances[1:]] + [window[1]]
    for disturbance, until in zip(disturbances, ends, strict=True):
        whole = whole_seconds(disturbance.ended_s, until)
        starts = range(whole.start, whole.stop - steady.steady_s + 1)
        first = next((at for at in starts if as_before(at)), None)
        after_s = None if first is None else max(0.0, first - disturbance.ended_s)
        rest = range(whole.stop if first is None else first + steady.steady_s, whole.stop)
        felt = [p95_ms.get(at) for at in seconds_of(disturbance.started_s, until)]
        worst_ms = max((ms or 0.0 for ms in felt), default=None) if None not in felt else None
        watched_s = until - disturbance.ended_s
        recovered.append(Recovery(after_s, worst_ms, watched_s, len(rest), above(rest)))
    return Calm(calm_ms, limit_ms, len(calm), above(calm)), tuple(recovered)


def calm_problem(
    seconds: Mapping[int, Histogram],
    calm_s: tuple[float, float],
    offered_rps: int | None,
    random: bool = False,
) -> Remark | None:
    """Why there is no calm to come back to between these moments: the server does not keep up with
    the load, or a second has too few answers for a p95. `random` as of `recoveries`."""
    calm = whole_seconds(*calm_s)
    answered = sum(seconds[at].count for at in calm if at in seconds)
    offered = (offered_rps or 0) * len(calm)
    rps = answered / max(1, len(calm))
    if answered < CALM_KEPT_UP * offered - (by_chance(offered) if random else 0.0):
        return Remark("no-calm", {"rps": rps, "offered_rps": offered_rps or 0})
    if rps < needed_samples(P95):
        return Remark("calm-few-answers", {"rps": rps, "needed": needed_samples(P95)})
    return None


def whole_seconds(start_s: float, end_s: float) -> range:
    """The whole seconds between two moments."""
    return range(math.ceil(start_s - 1e-9), math.floor(end_s + 1e-9))


def seconds_of(start_s: float, end_s: float) -> range:
    """The seconds that feel what began at `start_s`, also the one in which it did, up to the one
    in which the next begins."""
    return range(math.floor(start_s + 1e-9), math.floor(end_s + 1e-9))


def by_chance(expected: float) -> float:
    """How many fewer requests than expected may come where they come at random: three standard
    deviations of a Poisson distribution."""
    return DEVIATIONS * math.sqrt(expected)


def is_good(second: Line) -> bool:
    """Error answers do not count, however fast, nor does a second that lost as many requests."""
    failed = second.http_errors + second.lost
    return failed / max(1, second.answers + second.lost) <= ERROR_SHARE


def _findings(
    name: str, steady: Steady, events: Callable[[TrialRecord], Sequence[Event]], outcome: Outcome
) -> Iterator[Finding]:
    """The recovery time after each disturbance (spike, fault) of each server and launch, and their
    median: over the disturbances of a launch, then over launches, with the interval over launches.
    A trial that is invalid, or whose raw files cannot be read, has none. A launch in which the
    server itself failed counts as not recovered. Raises RawDataError without its trial.json."""
    for server in outcome.experiment.servers:
        rows, after_s = outcome.of(server), dict[int, list[float]]()
        for row in rows:
            for finding in _of_trial(name, steady, events, row, outcome):
                yield finding
                if isinstance(finding, Recovered):
                    seconds = math.inf if finding.value is None else finding.value
                    after_s.setdefault(row.launch, []).append(seconds)
        launches = {row.launch for row in rows}
        failed = {row.launch for row in rows if not row.valid and gave_way(row)}
        each = [seconds for launch, seconds in after_s.items() if launch not in failed]
        medians = [*map(statistics.median, each), *[math.inf] * len(failed)]
        if not medians:
            continue
        middle = statistics.median(medians)
        # What happened in launches that say nothing may be why they do not.
        untold = len(launches) - len(medians)
        interval = None if math.inf in medians else interval_of(medians, untold)
        value = middle if math.isfinite(middle) else None
        counts = sum(map(len, each)), len(each), len(launches), len(failed)
        yield Recoveries(f"{NAME}, median", server, 0, value, UNIT, *ends(interval), name, *counts)


def _of_trial(
    name: str,
    steady: Steady,
    events: Callable[[TrialRecord], Sequence[Event]],
    row: Row,
    outcome: Outcome,
) -> Iterator[Finding]:
    """The recovery from each disturbance of a trial, or why there is none."""

    def none(*problems: Remark) -> Finding:
        return NotFound(NAME, row.server, row.launch, None, UNIT, None, None, problems)

    if not row.valid:
        yield none(*row.reasons)
        return
    raw = outcome.raw(row)
    record = read_json(raw / RECORD, TrialRecord)
    made, plan, opens = events(record), record.plan, record.window_offset_s
    if not made:
        yield none(Remark("no-disturbance", {"disturbance": name}))
        return
    try:
        every = {second.second: second for second in Pacer().seconds(plan, raw)}
    except (RawDataError, ValueError) as failure:
        yield none(damaged.remark(problem=str(failure)))
        return
    good = {at: each.counted for at, each in every.items() if each.answers and is_good(each)}
    peaks, random = [peak for peak, _ in made], plan.arrivals != "constant"
    problem = calm_problem(good, (opens, peaks[0].started_s), plan.offered_rps, random)
    if problem is not None:
        yield none(problem)
        return
    window, drawn = (opens, opens + plan.duration_s), record.before.spread is not None
    calm, recovered = recoveries(good, window, peaks, steady, drawn, random)
    for number, (recovery, (peak, changes)) in enumerate(zip(recovered, made, strict=True), 1):
        span = seconds_of(peak.started_s, peak.ended_s + recovery.watched_s)
        lasted_s = peak.ended_s - peak.started_s
        yield Recovered(
            f"{NAME}, {name} {number}",
            row.server,
            row.launch,
            recovery.after_s,
            UNIT,
            None,
            None,
            Disturbance(name, number, len(made), lasted_s, changes),
            calm,
            recovery,
            _felt(row, [every[at] for at in span if at in every]),
            steady.steady_s,
        )


def _felt(row: Row, seconds: Sequence[Line]) -> Felt:
    slowest_us = max((second.counted.max_us for second in seconds), default=0)
    errors = sum(second.http_errors for second in seconds)
    answers = sum(second.answers for second in seconds)
    return Felt(
        slowest_us / 1000 or None, errors, answers, row.timeouts or 0, row.socket_errors or 0
    )


USES = (*COMMON, "load.concurrency", "load.rate", "load.capacity", "load.arrivals")
SPIKE = Kind(
    name="spike",
    title="spikes beside a constant load",
    uses=USES,
    table=SpikeTable,
    records=True,
    read=read_spike,
    design=design_spike,
    findings=findings_of_spikes,
)
FAULTS = Kind(
    name="faults",
    title="toxics that come and go under a constant load",
    uses=(*USES, "load.duration"),
    table=Steady,
    tables=script.KEY,
    records=True,
    read=read_faults,
    design=design_faults,
    findings=findings_of_faults,
)
