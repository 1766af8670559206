"""The figures of pacer's lines: those of the window, the counts of the run, and what else shows."""

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from lab.judge.checks import generator
from lab.judge.checks import load as checks
from lab.judge.slo import SHARES
from lab.judge.trial import allowed_ms
from lab.load.engines.histogram import Histogram, log_errors
from lab.load.engines.pacer_output import Line, Output, summed
from lab.model import Counts, Peak, Reading, Remark, Second, TrialPlan

# From this share of a second's requests on, those that were never sent are a note: 10 ms of the
# load.
WAITING_SHARE = 0.01
# If fewer than this share of the connections are open, a reader should know. Some are on their
# way if a server closes each after an answer. Of a spike the same holds for its requests.
CONNECTED = 0.95
# From this share of the answers on, a reader should know that connections were opened again.
REOPENED = 0.01
# So much longer than the longest answer, and so long, nobody waits by chance.
HANGS, LONG_US = 2, 1_000_000
# Why it could not connect, if that is its own limit (go/pacer/host.go), in words.
_OWN_CAUSES = {"no_port_left": "port", "no_descriptor_left": "file descriptor"}
# So much of a text that an answer lacks is quoted.
SHOWN = 40


def reading_of(plan: TrialPlan, output: Output, window: Sequence[Line]) -> Reading:
    seconds, end = output.seconds, output.end
    raw, failed, late, corrected = (
        Histogram.sum_of(getattr(line, name) or Histogram() for line in window)
        for name in ("raw", "failed", "late", "corrected")
    )
    is_open = plan.mode == "open"
    answers = raw.count + failed.count
    unexpected = _unexpected(window) if any(request.expect for request in plan.requests) else None
    # Of the unfinished requests those count that were sent.
    waiting = seconds[-1].waiting if seconds else 0
    return Reading(
        window_s=plan.duration_s,
        samples=answers,
        achieved_rps=answers / plan.duration_s,
        corrected=corrected.latency() if is_open else None,
        raw=raw.latency(),
        counts=Counts(
            sent=end.sent,
            ok=end.ok,
            http_errors=end.http_errors,
            socket_errors=sum(end.socket_errors.values()),
            timeouts=end.timeouts,
            unfinished=end.unfinished - waiting,
            accounted_s=end.run_s,
        ),
        failed=failed.latency(),
        all_ms=(raw.sum_us + failed.sum_us) / answers / 1000 if answers else None,
        ranks=(corrected if is_open else raw).ranks(),
        **_percentile_errors(window),
        window_ok=raw.count,
        window_http_errors=failed.count,
        window_lost=sum(line.lost for line in window),
        unexpected=None if unexpected is None else unexpected.total(),
        lag_ms=late.mean_ms,
        late=late.latency(),
        due=sum(line.due for line in window) if is_open else None,
        hangs=_hangs(window),
        seconds=tuple(Second(line.answers, line.ok, line.counted.mean_ms) for line in window),
        dispersion=_dispersion(window),
        generator_run_s=_seconds_of(plan, [line.run_us for line in window]),
        generator_runq_s=_seconds_of(plan, [line.runq_us for line in window]),
        remarks=(
            *own_limits(window),
            *_failures(seconds, window),
            *_unseen(plan, window),
            *_read_late(plan, late, raw),
            *_misses(plan, window),
        ),
    )


def _percentile_errors(window: Sequence[Line]) -> dict[str, Any]:
    errors = log_errors([line.counted for line in window], tuple(SHARES.values()))
    known = (error if math.isfinite(error) else None for error in errors)
    return {f"{name}_error": error for name, error in zip(SHARES, known, strict=True)}


def _dispersion(window: Sequence[Line]) -> float | None:
    """The index of dispersion of the requests sent in each 10 ms: variance over mean, 1 of arrivals
    at random (D. R. Cox and P. A. W. Lewis, The Statistical Analysis of Series of Events, 1966,
    section 4.5). None if none were sent, and if it is not known."""
    sent = [count for line in window for count in line.sent_in_10ms]
    return statistics.pvariance(sent) / statistics.fmean(sent) if any(sent) else None


def _seconds_of(plan: TrialPlan, window_us: Sequence[int | None]) -> float | None:
    """The sum; None if a second is not known, and with spikes."""
    known = [each_us for each_us in window_us if each_us is not None]
    return sum(known) / 1e6 if known and len(known) == len(window_us) and not plan.spike else None


def own_limits(seconds: Sequence[Line]) -> Iterator[Remark]:
    """Why the generator itself had too few connections. What was due waited for these."""
    failed = summed(line.connect_failed for line in seconds)
    for cause, what in _OWN_CAUSES.items():
        if failed[cause]:
            yield generator.generator_exhausted.remark(what=what, count=failed[cause])


def _failures(seconds: Sequence[Line], window: Sequence[Line]) -> Iterator[Remark]:
    """Errors by cause, and requests that were never sent."""
    kinds = (checks.socket_errors, "socket_errors"), (checks.connect_failed, "connect_failed")
    for check, name in kinds:
        whole, inside = (
            summed(getattr(line, name) for line in lines) for lines in (seconds, window)
        )
        for cause, count in sorted(whole.items()):
            yield check.remark(cause=cause, count=count, in_window=inside[cause])
    last = seconds[-1] if seconds else None
    if last and last.waiting > WAITING_SHARE * last.due:
        yield checks.unsent.remark(requests=last.waiting)


def _unseen(plan: TrialPlan, window: Sequence[Line]) -> Iterator[Remark]:
    """What no latency shows: clients that were never connected, and those that wait for an answer
    for much longer than any took; and how often an answer costs a new connection."""
    connected = sum(line.connections for line in window) / len(window) if window else 0
    if connected < CONNECTED * plan.concurrency:
        yield checks.connections_closed.remark(opened=connected, planned=plan.concurrency)
    if not plan.hold and _hangs(window):
        waited_s, longest_s = window[-1].oldest_us / 1e6, _longest_us(window) / 1e6
        yield checks.request_waits.remark(waited_s=waited_s, longest_s=longest_s)
    reopened = sum(line.reopened for line in window)
    answers = sum(line.answers for line in window)
    if reopened and reopened >= REOPENED * answers:
        yield checks.reopened.remark(times=reopened, answers=answers)


def _hangs(window: Sequence[Line]) -> bool:
    oldest_us = window[-1].oldest_us if window else 0
    return oldest_us > max(LONG_US, HANGS * _longest_us(window))


def _longest_us(window: Sequence[Line]) -> int:
    return max((max(line.raw.max_us, line.failed.max_us) for line in window), default=0)


def _read_late(plan: TrialPlan, late: Histogram, raw: Histogram) -> Iterator[Remark]:
    """If the p95 is in part its own: by https the kernel dates no answers, so what delays sending
    may delay reading as well. An open load's corrected latencies have its lateness."""
    if plan.mode == "closed" and plan.url.startswith("https:") and late.count and raw.count:
        late_ms = late.at_ms(0.95)
        if late_ms > allowed_ms(raw.at_ms(0.95)):
            yield generator.partly_late.remark(figure="p95", late_ms=late_ms)


def spike_remarks(plan: TrialPlan, peaks: Sequence[tuple[int, Peak]]) -> Iterator[Remark]:
    """Peaks of which the server took less than was put on. What the generator itself left out is a
    reason (lab.judge.checks.load)."""
    extra = plan.spike.extra if plan.spike else 0
    for number, peak in peaks:
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
