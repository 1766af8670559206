"""What a trial means: its reading, the judgement of it, its row, and findings of several."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from itertools import pairwise
from typing import overload

from lab.model.trial import TrialRecord


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles in milliseconds; None where there were too few samples for one."""

    mean_ms: float
    p50_ms: float
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float

    def __post_init__(self) -> None:
        known = [v for v in (self.p50_ms, self.p95_ms, self.p99_ms, self.max_ms) if v is not None]
        # Engines round a percentile up to the end of its bucket, the maximum not: 0.1 % slack.
        if any(a > b * 1.002 + 0.002 for a, b in pairwise(known)):
            raise ValueError(f"percentiles must not fall: {known}")
        if min(self.mean_ms, *known) < 0:
            raise ValueError("a latency is never negative")


@dataclass(frozen=True, slots=True)
class Counts:
    """Accounting of requests: sent = ok + http_errors + socket_errors + timeouts + unfinished.

    `accounted_s` is how many seconds of load the counts cover (engines count their whole
    run, warm-up included).
    """

    sent: int | None
    ok: int | None
    http_errors: int | None
    socket_errors: int | None
    timeouts: int | None
    unfinished: int | None
    accounted_s: float | None

    def __post_init__(self) -> None:
        parts = (self.ok, self.http_errors, self.socket_errors, self.timeouts, self.unfinished)
        known = [part for part in parts if part is not None]
        if any(part < 0 for part in known):
            raise ValueError(f"a count is never negative: {self}")
        if self.sent is not None and (len(known) < len(parts) or self.sent != sum(known)):
            raise ValueError(f"sent must be the sum of its five parts: {self}")


@dataclass(frozen=True, slots=True)
class Reading:
    """What an engine's raw output says about its measured window.

    Latencies cover every answer in the window, HTTP errors included, since engines do.
    `corrected` counts from when a request should have been sent (open only); `raw` from when
    it was sent. `lag_ms` is how late the generator itself was on average, where it can be told.
    `pause_s` is the longest time in which the generator sends nothing by its own schedule: a
    window's count may be off by that much of its rate.
    `window_ok` and `window_http_errors` are the answers in the window without and with a status
    above 399; None where the engine counts its whole run only (wrk2).
    `problems` make the trial invalid, `notes` only explain.
    """

    window_s: float
    samples: int
    achieved_rps: float
    corrected: Latency | None
    raw: Latency | None
    counts: Counts
    window_ok: int | None = None
    window_http_errors: int | None = None
    lag_ms: float | None = None
    pause_s: float = 0.0
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.window_s <= 0 or self.samples < 0:
            raise ValueError("a window is longer than zero, a count never negative")


@dataclass(frozen=True, slots=True)
class Measurement:
    """A trial with its reading; `reading` None means its raw data could not be read."""

    record: TrialRecord
    reading: Reading | None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a measurement may be believed; notes say what a reader must know of it."""

    reasons: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Nothing speaks against the measurement."""
        return not self.reasons


@dataclass(frozen=True, slots=True)
class Row:
    """One row of trials.csv; the fields are its columns, in this order.

    * offered_rps: what was offered (open); predicted_rps: the tightest hard bound before the run
    * achieved_rps: answers per second in the measured window, HTTP errors included
    * p50_ms … max_ms: from when a request was due (open); raw_…: from when it was sent
    * sent = ok + http_errors + socket_errors + timeouts + unfinished, of accounted_s seconds:
      engines count their whole run, warm-up included
    * http_errors: answers above 399; socket_errors: requests whose connection was refused, reset
      or closed (wrk2, wrk: once they were sent; what failed before is an attempt, in a note)
    * valid, invalid_reasons (separated by "; "); bottleneck, confidence: empty until judged
    * started_at, ended_at, window_s: the measured window
    * launch: which fresh JVM of its server, from 1; 0 is a JVM that ran already
    * arm: the name under which a server is compared with itself, or what tells its conditions
      apart (the case of a planted bottleneck, the part of a step of explain); empty without arms
    * expected_rps: the tightest of all bounds, estimates included; binding: what binds there (a
      resource, connections, or offered load); expected_p95_ms: the response time that follows
    * window_ok, window_http_errors: ok and http_errors of the window_s seconds measured; empty
      where the engine counts its whole run only
    """

    run: str
    trial: str
    server: str
    route: str
    engine: str
    mode: str
    concurrency: int
    offered_rps: int | None
    predicted_rps: float | None
    achieved_rps: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float | None
    raw_p50_ms: float | None
    raw_p95_ms: float | None
    raw_p99_ms: float | None
    raw_max_ms: float | None
    sent: int | None
    ok: int | None
    http_errors: int | None
    socket_errors: int | None
    timeouts: int | None
    unfinished: int | None
    valid: bool
    invalid_reasons: str
    bottleneck: str | None
    confidence: float | None
    started_at: datetime | None
    ended_at: datetime | None
    window_s: float | None
    accounted_s: float | None
    launch: int = 0
    arm: str | None = None
    expected_rps: float | None = None
    expected_p95_ms: float | None = None
    binding: str | None = None
    window_ok: int | None = None
    window_http_errors: int | None = None

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """The column names."""
        return tuple(field.name for field in fields(cls))


@dataclass(frozen=True, slots=True)
class Finding:
    """An answer of an experiment that is not one trial's: a breaking point, a recovery time, a
    growth. `value` None: not found, and `text` says why. `low`, `high`: its 95 % interval, where
    it has one. `text` is the sentence for people, complete with units."""

    name: str
    server: str
    launch: int
    value: float | None
    unit: str
    low: float | None
    high: float | None
    text: str


def answered(of: Reading | Row) -> tuple[int, int]:
    """Answers without and with an HTTP error: of the window where the engine tells them, else of
    all that it accounted, its warm-up included (wrk2)."""
    if of.window_ok is not None and of.window_http_errors is not None:
        return of.window_ok, of.window_http_errors
    counts = _counts(of)
    return counts.ok or 0, counts.http_errors or 0


def lost_rps(of: Reading | Row, offered_rps: int | None) -> float:
    """Requests per second that got no answer (socket errors and timeouts). No engine tells when
    they were: it is the mean of all the seconds accounted, and in an open load (`offered_rps`) no
    more than was offered and not answered, as an engine may send a request again. 0 where none
    can be told."""
    accounted_s = _counts(of).accounted_s
    lost = _lost(of) / accounted_s if accounted_s else 0.0
    return _at_most(lost, offered_rps, of.achieved_rps or 0.0)


def error_share(of: Reading | Row, offered_rps: int | None) -> float:
    """HTTP errors, socket errors and timeouts among all requests that ended, 0..1. Both of one
    span: as many as the window saw where the engine tells its answers there, else of the whole
    run; in an open load (`offered_rps`) no more were lost than `lost_rps` says. What the engine
    cannot tell is not counted."""
    ok, errors = answered(of)
    if of.window_ok is not None:
        lost = lost_rps(of, offered_rps) * (of.window_s or 0.0)
    else:
        offered = (offered_rps or 0) * (_counts(of).accounted_s or 0.0)
        lost = _at_most(_lost(of), offered or None, ok + errors)
    bad = errors + lost
    return bad / (bad + ok) if bad else 0.0


def good_share(of: Reading | Row) -> float:
    """The share of the answers that were no errors, 0..1: times `achieved_rps`, that is goodput.
    Requests that timed out or lost their socket are no answers. Of the window where the engine
    tells, else of the whole run."""
    ok, errors = answered(of)
    return ok / (ok + errors) if errors else 1.0


@overload
def goodput(of: Reading) -> float: ...
@overload
def goodput(of: Row) -> float | None: ...
def goodput(of: Reading | Row) -> float | None:
    """Answers per second that were no errors; requests that timed out or lost their socket are no
    answers. None where it cannot be told."""
    return None if of.achieved_rps is None else of.achieved_rps * good_share(of)


def _counts(of: Reading | Row) -> Counts | Row:
    return of.counts if isinstance(of, Reading) else of


def _at_most(lost: float, offered: float | None, answers: float) -> float:
    return lost if offered is None else min(lost, max(0.0, offered - answers))


def _lost(of: Reading | Row) -> int:
    counts = _counts(of)
    return (counts.socket_errors or 0) + (counts.timeouts or 0)
