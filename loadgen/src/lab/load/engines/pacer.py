"""pacer, the lab's own engine: exact, on any machine, open and closed load (go/pacer).

It is told the load on standard input (`load.json` has it without secrets), and writes a line of
JSON a second (`pacer.jsonl`), which is condensed with gzip. For HdrHistogram's own tools it leaves
`raw.hlog`, `corrected.hlog`, `failed.hlog` and `late.hlog`, which the lab does not read. The lines
cover the whole run, warm-up included:

* Every request is accounted for: due (open) or sent (closed) = ok + HTTP errors + socket errors +
  timeouts + unfinished. Here `sent` are those that were sent, and `unfinished` those in flight at
  the end. Requests that were due and still waited for a connection then are a note.
* An answer, an error and a timeout belong to the second in which they happened, so the window is
  exact.
* `raw` and `corrected` are the latencies of answers without an error, `failed` those of the
  others, from when they were sent: a quick refusal is no quick answer.
* `late` is how long the generator took to send a request that was due on a connection that was
  free: its own lateness, a histogram of all requests. In a closed load that is the think time Z of
  the interactive response time law, X = N / (R + Z).
* An answer that is not as its request expects is an HTTP error, and counted once more by request
  and status (`unexpected`).
* A connection that could not be opened is no request. It is a note, and where the generator itself
  had no port or descriptor left for it, the generator was the limit.
* The peaks of a spike are loads of their own, in folders beside it (`peak_told`).
* On several machines each has a share of the load (`pacer spread`). The lines are then those of all
  added up, without loss, and `pacer-<machine>.jsonl` has those of each, by which it is judged.

What does not add up is damaged: a line, a histogram and the totals at the end are compared.
"""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from lab import model
from lab.errors import RawDataError
from lab.judge.capacity import NEAR
from lab.judge.checks import data, generator
from lab.judge.checks import load as checks
from lab.judge.slo import SHARES
from lab.judge.trial import allowed_ms
from lab.judge.window import PLANNED_LATENCIES
from lab.load.engines.base import (
    DEFAULT_WARMUP_S,
    REQUEST_TIMEOUT_S,
    Schedule,
    first_line,
    last_line,
)
from lab.load.engines.histogram import Histogram, Second, log_errors
from lab.model import (
    Counts,
    Latency,
    Mode,
    Peak,
    Reading,
    Remark,
    Share,
    TrialPlan,
    needed_samples,
)
from lab.store.records import (
    UNREADABLE,
    json_text,
    raw_lines,
    sync,
    to_json,
    write_packed_lines,
    writing,
)

LOAD = "load.json"
OUTPUT = "pacer.jsonl"
PACKED = "pacer.jsonl.gz"
# Of each machine of several: its name is between these.
SHARE, PLAIN = "pacer-", ".jsonl"
FORMAT = 2
# Connections open evenly in half of the warm-up, or at this pace where that is sooner done: a proxy
# that sets 4,000 up at once makes some of them wait for seconds.
CONNECT_PER_S = 2000
LEAST_OPENING_S = 1.0
# What Prometheus tells of a moment looks back so far (prometheus/rules): after a warm-up that is
# shorter than this and the opening, it would show an even load as one that rises.
LOOK_BACK_S = 6
# The trials of a search are many, and judged by their windows: so long is enough for those to begin
# with a load that is even.
EVEN_S = 2
# From this share of a second's requests on it is told how many were never sent: 10 ms of the load.
WAITING_SHARE = 0.01
# One event loop sends more than the rest of so many CPUs can answer; a request costs least in one.
CPUS_PER_LOOP = 4
# An open load has no more loops than its rate needs, as pacer itself chooses (run.go). One loop
# cannot send on another one's connections, so of several some requests wait while connections are
# free.
OPEN_PER_LOOP_RPS = 20_000
# Where fewer than this share of the connections are open, a reader should know. Some are on their
# way where a server closes each after an answer. Of a spike the same holds for its requests.
CONNECTED = 0.95
# From this share of the answers on, a reader should know that connections were opened again.
REOPENED = 0.01
# So much longer than the longest answer, and so long, nobody waits by chance.
HANGS, LONG_US = 2, 1_000_000
# So much longer than the run a connection that is held waits for its answer.
HELD_S = 60
# A window that may end early is looked at whenever so many seconds have passed. It ends where all
# latencies are far from their limits, and from the second look on where their standard errors are
# at most this share of them.
LEAST_WINDOW_S, SETTLED = 5, 0.03
# No run has so many launches, so no two trials of a load have one seed.
DRAWS = 1000
# Why it could not connect, where that is its own limit (go/pacer/host.go), in words.
_OWN_CAUSES = {"no_port_left": "port", "no_descriptor_left": "file descriptor"}
# So much of a text that an answer lacks is quoted.
SHOWN = 40
# Of each request at most three buckets of about so many characters, before they are condensed:
# `late`, and `raw` and `corrected`, or `failed`.
BUCKET_BYTES = 14


@dataclass(frozen=True, slots=True)
class Pacer:
    """The engine of go/pacer, as the command `pacer`. `others` are further machines that put a
    share of the load on, HOST:PORT (`pacer serve`)."""

    others: tuple[str, ...] = ()
    name: str = "pacer"

    def version(self) -> str | None:
        return first_line(("pacer", "--version"), "pacer ")

    def schedule(self, plan: TrialPlan, raw: Path) -> Schedule:
        """One run, warm-up and window. It tells its figures while it runs."""
        warm_up_s = _usual_warm_up_s(plan) if plan.warmup_s is None else plan.warmup_s
        stored = replace(plan, requests=tuple(request.stored for request in plan.requests))
        return Schedule(
            warm_up=None,
            warm_up_s=0,
            argv=("pacer", "spread", str(raw / LOAD), *self.others)
            if self.others
            else ("pacer", "-"),
            output=OUTPUT,
            run_s=warm_up_s + plan.duration_s,
            window_offset_s=warm_up_s,
            window_s=plan.duration_s,
            files={LOAD: json_text(load_of(stored, warm_up_s, raw))},
            stdin=json_text(load_of(plan, warm_up_s, raw)),
            streams=True,
        )

    def answer_bytes(self, plan: TrialPlan) -> int:  # noqa: ARG002
        """A bucket of its own in each histogram, at worst."""
        return 3 * BUCKET_BYTES

    def settled_s(self, plan: TrialPlan, opens_s: float, lines: Sequence[str]) -> int | None:
        """As soon as the latencies are known well enough. Of a damaged line it tells nothing: that
        is found when the output is read. Several machines end together only at their time."""
        if self.others:
            return None
        try:
            told = [meant(line.encode()) for line in lines]
        except msgspec.DecodeError:
            return None
        return _settled_s(plan, opens_s, [line for line in told if isinstance(line, Line)])

    def condense(self, plan: TrialPlan, raw: Path) -> None:  # noqa: ARG002
        """The lines as they are, gzipped; each plain file is deleted when that was read back. What
        a machine told that did not come to its end stays as it is."""
        shares = [one for one in sorted(raw.glob(f"{SHARE}*{PLAIN}")) if _is_whole(one)]
        for plain in (raw / OUTPUT, *shares):
            if plain.exists():
                _pack(plain)

    def read(self, plan: TrialPlan, raw: Path) -> Reading:
        """The figures of the window, and the counts of the run."""
        told = _whole(plan, raw)
        window = _window(plan, told)
        uncorrected = Histogram.sum_of(line.raw.histogram for line in window)
        corrected = Histogram.sum_of(line.corrected.histogram for line in window if line.corrected)
        failed = Histogram.sum_of(line.failed.histogram for line in window)
        late = Histogram.sum_of(line.late.histogram for line in window)
        is_open, sent_late, latency = plan.mode == "open", late.latency(), uncorrected.latency()
        answers = uncorrected.count + failed.count
        all_us = uncorrected.sum_us + failed.sum_us
        return Reading(
            window_s=plan.duration_s,
            samples=answers,
            achieved_rps=answers / plan.duration_s,
            corrected=corrected.latency() if is_open else None,
            raw=latency,
            counts=_counts(told),
            failed=failed.latency(),
            all_ms=all_us / answers / 1000 if answers else None,
            ranks=(corrected if is_open else uncorrected).ranks(),
            **_percentile_errors(window),
            window_ok=sum(line.ok for line in window),
            window_http_errors=sum(line.http_errors for line in window),
            window_lost=sum(line.lost for line in window),
            unexpected=_unexpected(window).total()
            if any(r.expect for r in plan.requests)
            else None,
            lag_ms=late.sum_us / late.count / 1000 if late.count else None,
            late=sent_late,
            due=sum(line.due for line in window) if is_open else None,
            threads=loops_for(plan) + plan.url.startswith("https:"),
            hangs=_hangs(window),
            seconds=tuple(_each_second(window, plan.mode)),
            dispersion=_dispersion(window),
            shares=tuple(_shares(plan, raw, told)),
            began_s=told.began_s,
            generator_run_s=_seconds_of(plan, [line.run_us for line in window]),
            generator_runq_s=_seconds_of(plan, [line.runq_us for line in window]),
            remarks=(
                *_own_limits(window),
                *_failures(told, window),
                *_unseen(plan, window),
                *_reopened(window),
                *_read_late(plan, sent_late, latency),
                *_misses(plan, window),
                *_kept_out(plan, raw),
            ),
        )

    def seconds(self, plan: TrialPlan, raw: Path) -> tuple[Second, ...]:
        """Every second of the run, warm-up included. Raises RawDataError."""
        return tuple(
            Second(
                second=line.second,
                answers=line.ok + line.http_errors,
                http_errors=line.http_errors,
                corrected=line.corrected.histogram if line.corrected else Histogram(),
                lost=line.lost,
            )
            for line in _whole(plan, raw).seconds
        )


def _is_whole(plain: Path) -> bool:
    lines = _lines(plain)
    return bool(lines) and lines[-1].startswith(_ENDED)


def _pack(plain: Path) -> None:
    packed = plain.with_name(f"{plain.name}.gz")
    lines = _lines(plain)
    told = _told(plain, lines)
    write_packed_lines(packed, [msgspec.json.decode(line) for line in lines])
    if _told(packed, _lines(packed)) != told:
        raise RawDataError(packed, None, "does not read back as it was written")
    with writing(plain):
        plain.unlink()
        sync(plain.parent)


def loops_for(plan: TrialPlan) -> int:
    """In how many event loops it runs, each a thread. What speaks TLS runs beside them."""
    most = min(plan.concurrency, max(1, plan.cores // CPUS_PER_LOOP))
    if plan.offered_rps is None:
        return most
    return min(most, max(1, math.ceil(plan.offered_rps / OPEN_PER_LOOP_RPS)))


def _opening_s(plan: TrialPlan) -> float:
    """How long its connections take to open, given the time."""
    return max(LEAST_OPENING_S, plan.concurrency / CONNECT_PER_S)


def _usual_warm_up_s(plan: TrialPlan) -> int:
    """Its warm-up where nobody asks for one: its connections open, and what looks back from the
    window sees them open. Its JVM was proven warm before."""
    after_s = EVEN_S if plan.limits else LOOK_BACK_S
    return min(DEFAULT_WARMUP_S, math.ceil(_opening_s(plan)) + after_s)


def load_of(plan: TrialPlan, warm_up_s: float, raw: Path) -> dict[str, Any]:
    """What pacer is told, by its keys (go/pacer/load.go)."""
    opening_s = min(warm_up_s / 2, _opening_s(plan))
    load: dict[str, Any] = {
        "connections": plan.concurrency,
        "loops": loops_for(plan),
        "warmup_s": warm_up_s,
        "window_s": plan.duration_s,
        "arrivals": plan.arrivals if plan.mode == "open" else "closed",
        # Without a warm-up, all at once: a crowd.
        "connect_per_s": math.ceil(plan.concurrency / opening_s) if opening_s else 0,
        "timeout_s": REQUEST_TIMEOUT_S,
        # The same arrivals for all servers of a launch, and others in its next trial of this load.
        "seed": 1 + plan.launch + DRAWS * plan.draw,
        "requests": list(_requests(plan)),
        # Whoever answers may have a load that holds no secret.
        "insecure": not any(request.secrets for request in plan.requests),
        "hlog": str(raw),
    }
    if plan.hold:
        # What is in flight waits until the end.
        return {**load, "once": True, "timeout_s": warm_up_s + plan.duration_s + HELD_S}
    return load if plan.offered_rps is None else {**load, "rate": plan.offered_rps}


def _requests(plan: TrialPlan) -> Iterator[dict[str, Any]]:
    host = urlsplit(plan.url)
    for one in plan.requests:
        told = {**to_json(one), "headers": dict(one.headers)}
        expect = told.pop("expect")
        if one.expect:
            told["expect"] = {**expect, "status": one.expect.statuses or None}
        yield {"url": f"{host.scheme}://{host.netloc}{told.pop('path')}", **told}
    if not plan.requests:
        yield {"method": "GET", "url": plan.url, "headers": {}, "body": "", "weight": 1}


@dataclass(frozen=True, slots=True)
class Times:
    """A histogram as pacer writes it: (upper end of a bucket in microseconds, count), and the sum
    and the longest of all."""

    sum_us: int = 0
    max_us: int = 0
    buckets: tuple[tuple[int, int], ...] = ()

    @property
    def histogram(self) -> Histogram:
        return Histogram(Counter(dict(self.buckets)), self.sum_us, self.max_us)

    @property
    def count(self) -> int:
        return sum(count for _, count in self.buckets)


@dataclass(frozen=True, slots=True)
class Words:
    """Of the load that it was told."""

    warmup_s: float


@dataclass(frozen=True, slots=True)
class Head:
    """The first line. What several processes told and `pacer merge` added up has no words."""

    pacer: str
    format: int
    load: Words | None = None
    unix_s: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A second of the run. ``unfinished`` (sent or waiting), ``waiting`` and ``connections`` are
    levels at its end, as are ``untried``, the connections that it had not tried to open yet, and
    ``oldest_us``, for how long a request had been in flight at most; ``raw`` and ``corrected`` are
    of answers without an error, ``failed`` of the others; ``corrected`` is None in a closed load.
    ``run_us`` and ``runq_us`` are how long its threads ran, and waited for a CPU; None if unknown.
    ``unexpected`` are (request, status, count) of the answers that were not as expected, the
    requests counted from 0. ``sent_in_10ms`` are those sent in each 10 ms."""

    second: int
    length_s: float
    due: int
    sent: int
    ok: int
    http_errors: int
    statuses: Mapping[str, int]
    socket_errors: Mapping[str, int]
    timeouts: int
    connect_failed: Mapping[str, int]
    unfinished: int
    waiting: int
    connections: int
    raw: Times
    failed: Times
    late: Times
    corrected: Times | None
    unexpected: tuple[tuple[int, int, int], ...] = ()
    oldest_us: int = 0
    run_us: int | None = None
    runq_us: int | None = None
    untried: int = 0
    reopened: int = 0
    sent_in_10ms: tuple[int, ...] = ()

    @property
    def lost(self) -> int:
        """Requests that ended in it without an answer."""
        return sum(self.socket_errors.values()) + self.timeouts

    @property
    def wrong(self) -> str | None:
        """What does not add up in it."""
        answers, statuses = self.ok + self.http_errors, sum(self.statuses.values())
        held = (self.raw, self.corrected) if self.corrected else (self.raw,)
        if statuses != answers or self.failed.count != self.http_errors:
            return f"its statuses and latencies are not those of {answers} answers"
        if any(one.count != self.ok for one in held):
            return f"its latencies are not those of {self.ok} answers without an error"
        if sum(count for *_, count in self.unexpected) > self.http_errors:
            return f"more of its answers were not as expected than the {self.http_errors} errors"
        if self.late.count != self.sent:
            return f"it tells the lateness of {self.late.count} of {self.sent} requests"
        if self.sent_in_10ms and sum(self.sent_in_10ms) != self.sent:
            return f"{sum(self.sent_in_10ms)} of {self.sent} requests were sent in its parts"
        return None


@dataclass(frozen=True, slots=True)
class End:
    """The last line."""

    ended: str
    run_s: float
    sent: int
    due: int
    ok: int
    http_errors: int
    socket_errors: Mapping[str, int]
    timeouts: int
    unfinished: int
    cpu_s: float


@dataclass(frozen=True, slots=True)
class _Told:
    """All that a run told. `words` are those of its first line, `began_s` is its Unix time."""

    words: Words | None
    began_s: float | None
    seconds: tuple[Line, ...]
    end: End


_ENDED = b'{"ended"'
_HEAD, _LINE, _END = (
    msgspec.json.Decoder(Head),
    msgspec.json.Decoder(Line),
    msgspec.json.Decoder(End),
)


def meant(line: bytes) -> Head | Line | End:
    """A line of pacer as it is meant. Raises msgspec.DecodeError. Any thread may call it."""
    if line.startswith(b'{"pacer"'):
        return _HEAD.decode(line)
    return _END.decode(line) if line.startswith(_ENDED) else _LINE.decode(line)


def _lines(path: Path) -> list[bytes]:
    """The lines of the plain or of the condensed file. Raises RawDataError."""
    try:
        return [line.removesuffix(b"\n") for line in raw_lines(path)]
    except UNREADABLE as failure:
        said = getattr(failure, "strerror", None) or failure
        raise RawDataError(path, None, f"cannot be read: {said}") from None


def _told(path: Path, lines: Sequence[bytes]) -> _Told:
    """The lines as they are meant. Raises RawDataError unless they are complete and add up."""
    seconds: list[Line] = []
    words: Words | None = None
    began_s: float | None = None
    end: End | None = None
    for number, line in enumerate(lines, 1):
        try:
            one = meant(line)
            if isinstance(one, Head) != (number == 1):
                raise RawDataError(path, number, "begins without its first line, or has it twice")
            if end is not None:
                raise RawDataError(path, number, "goes on after its last line")
            if isinstance(one, Head):
                if one.format != FORMAT:
                    raise RawDataError(path, 1, f"format {one.format} is not one of this lab's")
                words, began_s = one.load, one.unix_s
            elif isinstance(one, End):
                end = one
            else:
                seconds.append(one)
                wrong = one.wrong
                if seconds[-1].second != len(seconds) - 1:
                    wrong = f"tells of second {seconds[-1].second} after {len(seconds) - 1} seconds"
                if wrong is not None:
                    raise RawDataError(path, number, wrong)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as failure:
            said = line.decode(errors="replace")[:200]
            raise RawDataError(path, number, f"is no line of pacer: {failure}: {said}") from None
    if end is None:
        problem = "ends before its last line (was pacer killed, or the disk full?)"
        raise RawDataError(path, len(lines) or None, problem)
    _check_totals(path, seconds, end)
    return _Told(words, began_s, tuple(seconds), end)


def _check_totals(path: Path, seconds: Sequence[Line], end: End) -> None:
    """Raises RawDataError unless the last line sums up the seconds, and all requests."""
    for name in ("sent", "due", "ok", "http_errors", "timeouts"):
        total, said = sum(getattr(line, name) for line in seconds), getattr(end, name)
        if total != said:
            raise RawDataError(path, None, f"{total} {name} in its seconds, {said} at its end")
    lost = _summed(line.socket_errors for line in seconds)
    if lost != Counter(end.socket_errors):
        problem = f"{lost.total()} socket errors in its seconds, others at its end"
        raise RawDataError(path, None, problem)
    closed = not seconds or seconds[0].corrected is None
    begun = end.sent if closed else end.due
    over = end.ok + end.http_errors + lost.total() + end.timeouts + end.unfinished
    if begun != over:
        raise RawDataError(path, None, f"{begun} requests began, and {over} are accounted for")


def _whole(plan: TrialPlan, raw: Path) -> _Told:
    """What a run told that came to its planned end. Raises RawDataError."""
    path = raw / PACKED
    if not path.exists():
        words = last_line(raw / OUTPUT, "and said nothing")
        raise RawDataError(path, None, f"pacer wrote no result: {words}")
    told = _told(path, _lines(path))
    planned_s = _opens_s(plan, told) + plan.duration_s
    # The second in which it was ended is none: what is planned must come before it. Of several
    # machines only whole seconds are added up.
    cut = told.end.ended != "complete" and told.seconds and told.seconds[-1].length_s < 1
    whole = len(told.seconds) - bool(cut)
    if whole < planned_s:
        problem = f"{told.end.ended} after {told.end.run_s:.1f} of {planned_s:.0f} s"
        raise RawDataError(path, None, f"the load did not run to its end: {problem}")
    if plan.mode == "open" and any(line.corrected is None for line in told.seconds):
        raise RawDataError(path, None, "has no corrected latencies, and the load was open")
    return told


def _opens_s(plan: TrialPlan, told: _Told) -> float:
    """When the window began, as the run was told."""
    if plan.warmup_s is not None:
        return plan.warmup_s
    return told.words.warmup_s if told.words else DEFAULT_WARMUP_S


def _window(plan: TrialPlan, told: _Told) -> Sequence[Line]:
    first = round(_opens_s(plan, told))
    return told.seconds[first : first + plan.duration_s]


def _shares(plan: TrialPlan, raw: Path, whole: _Told) -> Iterator[Share]:
    """How late each machine of several was; none of a load that was ended before its time. Raises
    RawDataError unless they add up."""
    found = sorted(raw.glob(f"{SHARE}*{PLAIN}.gz")) if whole.end.ended == "complete" else []
    sent = 0
    for path in found:
        told = _told(path, _lines(path))
        sent += told.end.sent
        late = Histogram.sum_of(line.late.histogram for line in _window(plan, told))
        name = path.name.removeprefix(SHARE).removesuffix(f"{PLAIN}.gz")
        yield Share(name, late.sum_us / late.count / 1000 if late.count else None, late.latency())
    if found and sent != whole.end.sent:
        problem = f"{sent} requests were sent by its machines, {whole.end.sent} in all"
        raise RawDataError(raw / PACKED, None, problem)


def _counts(told: _Told) -> Counts:
    """Of the whole run. Of the unfinished requests those count that were sent."""
    end = told.end
    waiting = told.seconds[-1].waiting if told.seconds else 0
    return Counts(
        sent=end.sent,
        ok=end.ok,
        http_errors=end.http_errors,
        socket_errors=sum(end.socket_errors.values()),
        timeouts=end.timeouts,
        unfinished=end.unfinished - waiting,
        accounted_s=end.run_s,
    )


def _each_second(window: Sequence[Line], mode: Mode) -> Iterator[model.Second]:
    for line in window:
        times = line.corrected if mode == "open" and line.corrected else line.raw
        mean_ms = times.sum_us / times.count / 1000 if times.count else None
        yield model.Second(line.ok + line.http_errors, line.ok, mean_ms)


def _latencies(window: Sequence[Line]) -> list[Histogram]:
    """Of each second, those that count: from when a request was due in an open load."""
    return [(line.corrected or line.raw).histogram for line in window]


def _percentile_errors(window: Sequence[Line]) -> dict[str, Any]:
    errors = log_errors(_latencies(window), tuple(SHARES.values()))
    known = (error if math.isfinite(error) else None for error in errors)
    return {f"{name}_error": error for name, error in zip(SHARES, known, strict=True)}


def _settled_s(plan: TrialPlan, opens_s: float, lines: Sequence[Line]) -> int | None:
    """How many seconds of the window show on which side of its limits each latency of the plan is,
    or what it is to SETTLED; None where these are not enough. `lines` are all of the run so far."""
    window = lines[round(opens_s) :]
    # It costs CPU time that the server may need, so it is asked now and then.
    if not window or len(window) % LEAST_WINDOW_S:
        return None
    seconds = _latencies(window)
    whole = Histogram.sum_of(seconds)
    shares = [SHARES.get(name, 1.0) for name in plan.limits]
    if whole.count < max(needed_samples(min(share, SHARES["p99"])) for share in shares):
        return None
    if len(window) < PLANNED_LATENCIES * whole.sum_us / whole.count / 1e6:
        return None
    errors = log_errors(seconds, shares)
    for limits_ms, share, error in zip(plan.limits.values(), shares, errors, strict=True):
        took_ms = whole.at_ms(share)
        away = min(abs(math.log(took_ms / limit_ms)) for limit_ms in limits_ms)
        known = error <= SETTLED and len(window) >= 2 * LEAST_WINDOW_S
        if not known and not away - 2 * error > NEAR:
            return None
    return len(window)


def _dispersion(window: Sequence[Line]) -> float | None:
    """The index of dispersion of the requests sent in each 10 ms: variance over mean, 1 of arrivals
    at random (D. R. Cox and P. A. W. Lewis, The Statistical Analysis of Series of Events, 1966,
    section 4.5). None where none were sent, and where it is not known."""
    sent = [count for line in window for count in line.sent_in_10ms]
    return statistics.pvariance(sent) / statistics.fmean(sent) if any(sent) else None


def _seconds_of(plan: TrialPlan, window_us: Sequence[int | None]) -> float | None:
    """The sum; None where a second is not known, and with spikes."""
    known = [each_us for each_us in window_us if each_us is not None]
    return sum(known) / 1e6 if known and len(known) == len(window_us) and not plan.spike else None


def _own_limits(seconds: Sequence[Line]) -> Iterator[Remark]:
    """Why the generator itself had too few connections. What was due waited for these."""
    failed = _summed(line.connect_failed for line in seconds)
    for cause, what in _OWN_CAUSES.items():
        if failed[cause]:
            yield generator.generator_exhausted.remark(what=what, count=failed[cause])


def _failures(told: _Told, window: Sequence[Line]) -> Iterator[Remark]:
    """Errors by cause, and requests that were never sent."""
    kinds = (checks.socket_errors, "socket_errors"), (checks.connect_failed, "connect_failed")
    for check, name in kinds:
        whole, inside = (
            _summed(getattr(line, name) for line in lines) for lines in (told.seconds, window)
        )
        for cause, count in sorted(whole.items()):
            yield check.remark(cause=cause, count=count, in_window=inside[cause])
    last = told.seconds[-1] if told.seconds else None
    if last and last.waiting > WAITING_SHARE * last.due:
        yield checks.unsent.remark(requests=last.waiting)


def _unseen(plan: TrialPlan, window: Sequence[Line]) -> Iterator[Remark]:
    """Clients that no latency shows: those that were never connected, and those that wait for an
    answer for much longer than any took."""
    connected = sum(line.connections for line in window) / len(window) if window else 0
    if connected < CONNECTED * plan.concurrency:
        yield checks.connections_closed.remark(opened=connected, planned=plan.concurrency)
    if not plan.hold and _hangs(window):
        waited_s, longest_s = window[-1].oldest_us / 1e6, _longest_us(window) / 1e6
        yield checks.request_waits.remark(waited_s=waited_s, longest_s=longest_s)


def _hangs(window: Sequence[Line]) -> bool:
    oldest_us = window[-1].oldest_us if window else 0
    return oldest_us > max(LONG_US, HANGS * _longest_us(window))


def _longest_us(window: Sequence[Line]) -> int:
    return max((max(line.raw.max_us, line.failed.max_us) for line in window), default=0)


def _reopened(window: Sequence[Line]) -> Iterator[Remark]:
    """Where an answer often costs a new connection, which is in no latency."""
    reopened = sum(line.reopened for line in window)
    answers = sum(line.ok + line.http_errors for line in window)
    if reopened and reopened >= REOPENED * answers:
        yield checks.reopened.remark(times=reopened, answers=answers)


def _read_late(plan: TrialPlan, late: Latency | None, raw: Latency | None) -> Iterator[Remark]:
    """Where the p95 is in part its own: by https the kernel dates no answers, so what delays
    sending may delay reading as well. An open load has its lateness in what is told of it."""
    secure = plan.mode == "closed" and plan.url.startswith("https:")
    if not secure or late is None or raw is None or late.p95_ms is None or raw.p95_ms is None:
        return
    if late.p95_ms > allowed_ms(raw.p95_ms):
        yield generator.partly_late.remark(figure="p95", late_ms=late.p95_ms)


def peak_folder(raw: Path, number: int) -> Path:
    """Where the load of a trial's peak is, counted from 1."""
    return raw / f"peak-{number}"


def peak_told(raw: Path, number: int, peak: Peak) -> Peak:
    """A peak with what its own pacer told; as it is where none did. It began when that began to
    put load on, and not when the process was started."""
    path = _output(peak_folder(raw, number))
    if path is None:
        return peak
    try:
        told = _told(path, _lines(path))
    except RawDataError as failure:
        return replace(peak, problems=(data.damaged.remark(problem=failure.said),))
    seconds, run_s = told.seconds, told.end.run_s
    late = Histogram.sum_of(line.late.histogram for line in seconds).latency()
    began_s, trial_began_s = told.began_s, _began_s(raw)
    if began_s is not None and trial_began_s is not None:
        started_s = round(began_s - trial_began_s, 3)
        ended_s = max(peak.ended_s, round(started_s + run_s, 3))
        peak = replace(peak, started_s=started_s, ended_s=ended_s)
    return replace(
        peak,
        connections=max((line.connections for line in seconds), default=None),
        untried=sum(line.untried * line.length_s for line in seconds) / run_s if run_s else None,
        due=told.end.due if any(line.corrected for line in seconds) else None,
        sent=told.end.sent,
        late_p95_ms=late.p95_ms if late else None,
        problems=tuple(_own_limits(seconds)),
    )


def _output(folder: Path) -> Path | None:
    """What pacer told there, plain or condensed."""
    return next((one for one in (folder / OUTPUT, folder / PACKED) if one.exists()), None)


def _began_s(raw: Path) -> float | None:
    """When the load of a trial began, by its first line."""
    path = _output(raw)
    if path is None:
        return None
    try:
        with closing(raw_lines(path)) as lines:
            head = meant(next(lines, b""))
    except (*UNREADABLE, msgspec.DecodeError, RawDataError):
        return None
    return head.unix_s if isinstance(head, Head) else None


def _kept_out(plan: TrialPlan, raw: Path) -> Iterator[Remark]:
    """Peaks of which the server took less than was put on. What the generator itself left out is a
    reason (lab.judge.checks.load)."""
    if plan.spike is None:
        return
    for number in range(1, plan.spike.repeats + 1):
        peak, extra = peak_told(raw, number, Peak(0, 0)), plan.spike.extra
        if peak.connections is not None and peak.connections < CONNECTED * extra:
            yield checks.spike_refused.remark(spike=number, opened=peak.connections, extra=extra)
        if peak.due and peak.sent is not None and peak.sent < CONNECTED * peak.due:
            yield checks.spike_unsent.remark(spike=number, sent=peak.sent, due=peak.due)


def _unexpected(window: Sequence[Line]) -> Counter[tuple[int, int]]:
    """The answers that were not as expected, by request (from 0) and status."""
    whole: Counter[tuple[int, int]] = Counter()
    for line in window:
        for request, status, count in line.unexpected:
            whole[request, status] += count
    return whole


def _misses(plan: TrialPlan, window: Sequence[Line]) -> Iterator[Remark]:
    for (number, status), count in sorted(_unexpected(window).items()):
        request = plan.requests[number]
        if request.expect is None:
            continue
        expected = {"statuses": " or ".join(map(str, request.expect.statuses)) or "below 400"}
        if request.expect.takes(status):
            expected = {"without": (request.expect.body_contains or "")[:SHOWN]}
        yield checks.not_as_expected.remark(
            request=number + 1, name=request.name, count=count, status=status, **expected
        )


def _summed(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    whole: Counter[str] = Counter()
    for one in counts:
        whole.update(one)
    return whole
