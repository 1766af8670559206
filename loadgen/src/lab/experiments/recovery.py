"""How long a load takes to be as before after a disturbance, from what it felt in each second.

A disturbance is a spike of load (`spike`) or a fault of the downstream (`faults`).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lab.judge.intervals import median_of
from lab.load.engines.histogram import Histogram, Spectrum
from lab.model import Finding, Peak, Row, needed_samples

NAME = "recovery time"
MEDIAN = "recovery time, median"
UNIT = "s"
P95 = 0.95
# A load that is not held when calm has no state to come back to.
CALM_KEPT_UP = 0.97
# A pause so short, as of a garbage collection, moves answers into the next second and is no fault.
PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Recovery:
    """One disturbance: `after_s` seconds after its end the load was as when calm, and stayed so;
    None: not before the next one or the end. `worst_ms` is the p95 of the worst second from
    its start on, infinite where nothing was answered in one."""

    after_s: float | None
    worst_ms: float
    watched_s: float


@dataclass(frozen=True, slots=True)
class Steady:
    """What counts as recovered: the p95 of a second at most (1 + `tolerance`) times that of the
    calm, `steady_s` seconds on end, and as many answers in them as then."""

    tolerance: float
    steady_s: int


def recoveries(
    seconds: Mapping[int, Histogram],
    window: tuple[float, float],
    disturbances: Sequence[Peak],
    steady: Steady,
) -> tuple[float, tuple[Recovery, ...]]:
    """The p95 of the calm before the first disturbance, in ms, and what followed each.

    `seconds` are answers by whole second of the run, `window` the measured seconds. A second
    counts as calm when its p95 is at most (1 + tolerance) times that of the calm; one without
    answers does not. Requests that were reset or timed out are in no second: what tells of them
    is the number of answers, of each second and of all on end, against that of the calm
    (CALM_KEPT_UP, less what a pause, or latency that rises as far as tolerated, moves over their
    edge). Only whole seconds after a disturbance's end are looked at. Raises ValueError where
    there is no calm, or too few answers in its seconds for a p95.
    """
    limits = [one.started_s for one in disturbances[1:]] + [window[1]]
    calm = whole_seconds(window[0], disturbances[0].started_s)
    before = Spectrum.of(seconds[at] for at in calm if at in seconds)
    per_second = before.count / len(calm) if calm else 0.0
    if per_second < needed_samples(P95):
        raise ValueError(
            f"{per_second:.0f} answers a second in the calm before the first disturbance, and the "
            f"p95 of a second needs {needed_samples(P95)}"
        )
    calm_ms = before.at_ms(P95)
    limit_ms = calm_ms * (1 + steady.tolerance)

    late_s = max(PAUSE_S, (limit_ms - calm_ms) / 1000)
    p95_ms = {at: Spectrum.of([one]).at_ms(P95) for at, one in seconds.items()}

    def held(on_end: range) -> bool:
        answered = sum(seconds[at].buckets.total() for at in on_end if at in seconds)
        return answered >= (CALM_KEPT_UP * len(on_end) - late_s) * per_second

    def as_before(first: int) -> bool:
        on_end = range(first, first + steady.steady_s)
        each = (p95_ms.get(at, math.inf) <= limit_ms and held(range(at, at + 1)) for at in on_end)
        return all(each) and held(on_end)

    found = []
    for one, until in zip(disturbances, limits, strict=True):
        whole = whole_seconds(one.ended_s, until)
        starts = range(whole.start, whole.stop - steady.steady_s + 1)
        recovered = next((max(0.0, at - one.ended_s) for at in starts if as_before(at)), None)
        felt = (p95_ms.get(at, math.inf) for at in whole_seconds(one.started_s, until))
        found.append(Recovery(recovered, max(felt, default=math.inf), until - one.ended_s))
    return calm_ms, tuple(found)


def whole_seconds(start_s: float, end_s: float) -> range:
    """The whole seconds between two moments."""
    return range(math.ceil(start_s - 1e-9), math.floor(end_s + 1e-9))


def check_calm(
    seconds: Mapping[int, Histogram], calm_s: tuple[float, float], offered_rps: int | None
) -> None:
    """Raises ValueError where the load is not even held in the calm, from and to."""
    calm = whole_seconds(*calm_s)
    answered = sum(seconds[at].buckets.total() for at in calm if at in seconds)
    if answered < CALM_KEPT_UP * (offered_rps or 0) * len(calm):
        raise ValueError(
            f"{answered / max(1, len(calm)):.0f} of {offered_rps} req/s were answered before the "
            "first disturbance: there is no calm to come back to"
        )


def after_text(one: Recovery, calm_ms: float, steady: Steady) -> str:
    """How long it took, for people."""
    limit = f"{calm_ms:.0f} ms × {1 + steady.tolerance:g}"
    if one.after_s is None:
        return f"not back to {limit} in {one.watched_s:.0f} s"
    return f"back to {limit} for {steady.steady_s} s on end after {one.after_s:.1f} s"


def lost_text(row: Row) -> str:
    """The requests of the whole run without an answer, which are in no second; empty without."""
    timeouts, sockets = row.timeouts or 0, row.socket_errors or 0
    if not timeouts and not sockets:
        return ""
    return f"; in the whole run {timeouts} requests timed out, {sockets} lost their connection"


def finding(name: str, row: Row, value: float | None, text: str) -> Finding:
    """A finding of one trial."""
    return Finding(name, row.server, row.launch, value, UNIT, None, None, text)


# The findings of one trial and its recoveries, or why there are none.
OfTrial = tuple[list[Finding], tuple[Recovery, ...]] | str


def findings_of(
    servers: Sequence[str],
    rows: Sequence[Row],
    of_trial: Callable[[Row], OfTrial],
    what: str,
) -> tuple[Finding, ...]:
    """The findings of every trial of each server, and after them their median: over the
    disturbances of a launch, then over launches. `what` these are, in the plural."""
    found: list[Finding] = []
    for server in servers:
        each: list[tuple[Recovery, ...]] = []
        for row in rows:
            if row.server != server:
                continue
            own = of_trial(row)
            if isinstance(own, str):
                found.append(finding(NAME, row, None, own))
                continue
            found += own[0]
            each.append(own[1])
        found += median_over_launches(server, each, what)
    return tuple(found)


def median_over_launches(
    server: str, each: Sequence[Sequence[Recovery]], what: str
) -> tuple[Finding, ...]:
    """The median of a server: over the disturbances of each launch, then over launches; an
    interval is one over launches. None without any; `what` they are, in the plural."""
    if not each:
        return ()
    medians = [
        statistics.median(math.inf if one.after_s is None else one.after_s for one in launch)
        for launch in each
    ]
    count = sum(len(launch) for launch in each)
    of = f"over {count} {what} in {len(each)} launch{'es' if len(each) > 1 else ''}"
    middle = statistics.median(medians)
    if math.isinf(middle):
        text = f"not recovered, median {of}"
        return (Finding(MEDIAN, server, 0, None, UNIT, None, None, text),)
    interval = None if math.inf in medians else median_of(medians).interval
    low, high = (interval.low, interval.high) if interval else (None, None)
    spread = "no interval" if low is None else f"95 % interval {low:.1f} to {high:.1f} s"
    text = f"recovered after {middle:.1f} s, median {of}, {spread}"
    return (Finding(MEDIAN, server, 0, middle, UNIT, low, high, text),)
