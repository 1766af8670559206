"""How long a load takes to recover from a disturbance, by its answers in each second.

A disturbance is a spike of load (`spike`) or a fault of the downstream (`faults`).
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.errors import RawDataError
from lab.experiments.kind import Outcome
from lab.experiments.objective import gave_way
from lab.judge.intervals import interval_of
from lab.load.engines import Pacer, Second
from lab.load.engines.histogram import Histogram
from lab.load.measure import RECORD
from lab.model import Finding, Peak, Row, TrialRecord, needed_samples
from lab.report.remarks import text_of
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


@dataclass(frozen=True, slots=True)
class Calm:
    """The time before the first disturbance: its p95, and the p95 up to which a second counts as
    calm. So many of its own `seconds` do not (`above`)."""

    p95_ms: float
    limit_ms: float
    seconds: int
    above: int


@dataclass(frozen=True, slots=True)
class Recovery:
    """The recovery from one disturbance. `after_s` seconds after its end the load was as in the
    calm for some seconds on end; None: not before the next disturbance or the end. Of the `left`
    seconds after these so many were not (`above`). `worst_ms` is the p95 of the worst second from
    its start on, infinite where a second had no answer."""

    after_s: float | None
    worst_ms: float
    watched_s: float
    left: int = 0
    above: int = 0


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
    seconds after a disturbance's end count. Raises ValueError where there is no calm, or where its
    seconds have too few answers for a p95.
    """
    limits = [one.started_s for one in disturbances[1:]] + [window[1]]
    calm = whole_seconds(window[0], disturbances[0].started_s)
    before = Histogram.sum_of(seconds[at] for at in calm if at in seconds)
    per_second = before.count / len(calm) if calm else 0.0
    if per_second < needed_samples(P95):
        raise ValueError(
            f"{per_second:.0f} answers a second in the calm before the first disturbance, and the "
            f"p95 of a second needs {needed_samples(P95)}"
        )
    calm_ms = before.at_ms(P95)
    limit_ms = calm_ms * (1 + steady.tolerance)

    late_s = max(PAUSE_S, (limit_ms - calm_ms) / 1000)
    p95_ms = {at: one.at_ms(P95) for at, one in seconds.items()}
    if drawn:
        limit_ms = max(limit_ms, *(p95_ms[at] for at in calm if at in p95_ms))

    def held(on_end: range) -> bool:
        answered = sum(seconds[at].count for at in on_end if at in seconds)
        fewer = by_chance(len(on_end) * per_second) if random else 0.0
        return answered >= (CALM_KEPT_UP * len(on_end) - late_s) * per_second - fewer

    def is_calm(at: int) -> bool:
        return p95_ms.get(at, math.inf) <= limit_ms and held(range(at, at + 1))

    def above(of: range) -> int:
        return sum(not is_calm(at) for at in of)

    def as_before(first: int) -> bool:
        on_end = range(first, first + steady.steady_s)
        return above(on_end) == 0 and held(on_end)

    found = []
    for one, until in zip(disturbances, limits, strict=True):
        whole = whole_seconds(one.ended_s, until)
        starts = range(whole.start, whole.stop - steady.steady_s + 1)
        first = next((at for at in starts if as_before(at)), None)
        recovered = None if first is None else max(0.0, first - one.ended_s)
        rest = range(whole.stop if first is None else first + steady.steady_s, whole.stop)
        felt = max(
            (p95_ms.get(at, math.inf) for at in seconds_of(one.started_s, until)), default=math.inf
        )
        found.append(Recovery(recovered, felt, until - one.ended_s, len(rest), above(rest)))
    return Calm(calm_ms, limit_ms, len(calm), above(calm)), tuple(found)


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


def check_calm(
    seconds: Mapping[int, Histogram],
    calm_s: tuple[float, float],
    offered_rps: int | None,
    random: bool = False,
) -> None:
    """Raises ValueError if the server does not keep up with the load in the calm (from, to).
    `random` as of `recoveries`."""
    calm = whole_seconds(*calm_s)
    answered = sum(seconds[at].count for at in calm if at in seconds)
    offered = (offered_rps or 0) * len(calm)
    fewer = by_chance(offered) if random else 0.0
    if answered < CALM_KEPT_UP * offered - fewer:
        raise ValueError(
            f"{answered / max(1, len(calm)):.0f} of {offered_rps} req/s were answered before the "
            "first disturbance: there is no calm to come back to"
        )


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Its time, and its description for people (empty if its name says enough)."""

    at: Peak
    about: str = ""


@dataclass(frozen=True, slots=True)
class Watch:
    """How a kind watches its disturbances.

    * `name`: what one of them is called; `nothing`: what is said of a trial without any
    * `of`: the disturbances of a trial, at their actual times
    * `felt`: what the load felt of one, from the seconds from its start to the next one's
    """

    name: str
    nothing: str
    steady: Steady
    of: Callable[[TrialRecord], Sequence[Disturbance]]
    felt: Callable[[Recovery, Sequence[Second]], str]


def errors_text(seconds: Sequence[Second]) -> str:
    """For people: how many of the answers of these seconds were errors."""
    failed = sum(one.http_errors for one in seconds)
    return f"{failed} of {sum(one.answers for one in seconds)} answers were errors"


def is_good(second: Second) -> bool:
    """Error answers do not count, however fast, nor does a second that lost as many requests."""
    failed = second.http_errors + second.lost
    return failed / max(1, second.answers + second.lost) <= ERROR_SHARE


def findings_of(watch: Watch, outcome: Outcome) -> tuple[Finding, ...]:
    """The recovery time after each disturbance of each server and launch, and their median: over
    the disturbances of a launch, then over launches. A trial that is invalid, or whose raw files
    cannot be read, has none, and the text says why. A launch in which the server itself failed
    counts as not recovered. Raises RawDataError without its trial.json."""
    found: list[Finding] = []
    for server in outcome.experiment.servers:
        each: dict[int, tuple[Recovery, ...]] = {}
        failed: set[int] = set()
        rows = [row for row in outcome.rows if row.server == server]
        for row in rows:
            told = _of_trial(watch, row, outcome.raw(row))
            if isinstance(told, str):
                found.append(_finding(NAME, row, None, told))
                if not row.valid and gave_way(row):
                    failed.add(row.launch)
                continue
            each[row.launch] = tuple(one for one, _ in told)
            for number, (one, text) in enumerate(told, 1):
                found.append(_finding(f"{NAME}, {watch.name} {number}", row, one.after_s, text))
        its = [one for launch, one in each.items() if launch not in failed]
        count = len({row.launch for row in rows})
        found += median_over_launches(server, its, f"{watch.name}s", count, len(failed))
    return tuple(found)


def _of_trial(watch: Watch, row: Row, raw: Path) -> list[tuple[Recovery, str]] | str:
    """The recovery from each disturbance of a trial with its text, or why there is none."""
    if not row.valid:
        return f"invalid: {text_of(row)}"
    record = read_json(raw / RECORD, TrialRecord)
    made = watch.of(record)
    if not made:
        return watch.nothing
    peaks, first = [one.at for one in made], record.window_offset_s
    random = record.plan.arrivals != "constant"
    window = (first, first + record.plan.duration_s)
    try:
        every = {second.second: second for second in Pacer().seconds(record.plan, raw)}
        good = {at: one.corrected for at, one in every.items() if one.answers and is_good(one)}
        check_calm(good, (first, peaks[0].started_s), record.plan.offered_rps, random)
        calm, recovered = recoveries(
            good, window, peaks, watch.steady, record.before.spread is not None, random
        )
    except (RawDataError, ValueError) as failure:
        return str(failure)
    found = []
    for number, (one, of) in enumerate(zip(recovered, made, strict=True), 1):
        felt = seconds_of(of.at.started_s, of.at.ended_s + one.watched_s)
        seconds = [every[at] for at in felt if at in every]
        text = (
            f"{watch.name} {number} of {len(made)}{of.about}: {watch.felt(one, seconds)}, "
            f"{_after_text(one, calm, watch.steady)}{_lost_text(row)}"
        )
        found.append((one, text))
    return found


def _after_text(one: Recovery, calm: Calm, steady: Steady) -> str:
    """For people: how long the recovery took, and how surely that was one."""
    limit = f"{calm.p95_ms:.0f} ms × {1 + steady.tolerance:g}"
    if calm.limit_ms > calm.p95_ms * (1 + steady.tolerance):
        limit = f"{calm.limit_ms:.0f} ms, the calm's worst second,"
    noise = ""
    if calm.above:
        noise = f"; {calm.above} of {calm.seconds} s of the calm were above that, too"
    if one.after_s is None:
        return f"not back to {limit} in {one.watched_s:.0f} s{noise}"
    again = f", and {one.above} of the {one.left} s after these above it again" if one.above else ""
    return f"back to {limit} for {steady.steady_s} s on end after {one.after_s:.1f} s{again}{noise}"


def _lost_text(row: Row) -> str:
    """For people: the requests of the whole run without an answer; empty where there are none."""
    timeouts, sockets = row.timeouts or 0, row.socket_errors or 0
    if not timeouts and not sockets:
        return ""
    return f"; in the whole run {timeouts} requests timed out, {sockets} lost their connection"


def _finding(name: str, row: Row, value: float | None, text: str) -> Finding:
    return Finding(name, row.server, row.launch, value, UNIT, None, None, text)


def median_over_launches(
    server: str, each: Sequence[Sequence[Recovery]], what: str, launches: int, failed: int = 0
) -> tuple[Finding, ...]:
    """The median of a server: over the disturbances of each launch, then over launches, with the
    interval over launches. Empty without disturbances; `what` is their name in the plural. In
    `failed` of the `launches` the server itself failed: these did not recover."""
    if not each and not failed:
        return ()
    medians = [
        statistics.median(math.inf if one.after_s is None else one.after_s for one in launch)
        for launch in each
    ] + failed * [math.inf]
    count = sum(len(launch) for launch in each)
    told = f"{len(each)} of {launches}" if len(each) < launches else str(launches)
    of = f"over {count} {what} in {told} launch{'es' if launches > 1 else ''}"
    if failed:
        of += f", and {failed} in which the server failed"
    middle = statistics.median(medians)
    if math.isinf(middle):
        text = f"not recovered, median {of}"
        return (Finding(MEDIAN, server, 0, None, UNIT, None, None, text),)
    # What happened in launches that tell nothing may be why they do not.
    untold = launches - len(medians)
    interval = None if math.inf in medians else interval_of(medians, untold)
    low, high = (interval.low, interval.high) if interval else (None, None)
    spread = "no interval" if low is None else f"95 % interval {low:.1f} to {high:.1f} s"
    text = f"recovered after {middle:.1f} s, median {of}, {spread}"
    return (Finding(MEDIAN, server, 0, middle, UNIT, low, high, text),)
