"""How long a load takes to recover from a disturbance, by its answers in each second.

A disturbance is a spike of load (`spike`) or a fault of the downstream (`faults`).
"""

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.errors import RawDataError
from lab.judge.checks.data import damaged
from lab.judge.intervals import interval_of
from lab.kinds.kind import Outcome, ends
from lab.kinds.objective import gave_way
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
    TrialRecord,
    needed_samples,
)
from lab.store.records import read_json

NAME = "recovery time"
MEDIAN = "recovery time, median"
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


@dataclass(frozen=True, slots=True)
class Steady:
    """What counts as recovered: `steady_s` seconds on end with a p95 of at most (1 + `tolerance`)
    times the p95 of the calm, and with as many answers as in the calm."""

    tolerance: float
    steady_s: int


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

    def is_calm(at: int) -> bool:
        return p95_ms.get(at, math.inf) <= limit_ms and kept_up(range(at, at + 1))

    def above(span: range) -> int:
        return sum(not is_calm(at) for at in span)

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


def findings_of(
    name: str,
    steady: Steady,
    events: Callable[[TrialRecord], Sequence[Event]],
    outcome: Outcome,
) -> Iterator[Finding]:
    """The recovery time after each disturbance (spike, fault) of each server and launch, and their
    median: over the disturbances of a launch, then over launches. A trial that is invalid, or whose
    raw files cannot be read, has none. A launch in which the server itself failed counts as not
    recovered. Raises RawDataError without its trial.json."""
    for server in outcome.experiment.servers:
        rows, after_s = outcome.of(server), dict[int, list[float]]()
        for row in rows:
            for finding in _of_trial(name, steady, events, row, outcome):
                yield finding
                if isinstance(finding, Recovered):
                    seconds = math.inf if finding.value is None else finding.value
                    after_s.setdefault(row.launch, []).append(seconds)
        failed = {row.launch for row in rows if not row.valid and gave_way(row)}
        each = [seconds for launch, seconds in after_s.items() if launch not in failed]
        yield from _median(name, server, each, len({row.launch for row in rows}), len(failed))


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
    slowest_ms = slowest_us / 1000 or None
    return Felt(slowest_ms, errors, answers, row.timeouts or 0, row.socket_errors or 0)


def _median(
    name: str, server: str, each: Sequence[Sequence[float]], launches: int, failed: int
) -> Iterator[Finding]:
    """The median recovery of a server: over the disturbances of each launch, then over launches,
    with the interval over launches. Nothing without disturbances. In `failed` of the `launches` the
    server itself failed: these did not recover."""
    if not each and not failed:
        return
    medians = [*map(statistics.median, each), *[math.inf] * failed]
    middle = statistics.median(medians)
    # What happened in launches that say nothing may be why they do not.
    interval = None if math.inf in medians else interval_of(medians, launches - len(medians))
    low, high = ends(interval)
    value = middle if math.isfinite(middle) else None
    counts = sum(map(len, each)), len(each), launches, failed
    yield Recoveries(MEDIAN, server, 0, value, UNIT, low, high, name, *counts)
