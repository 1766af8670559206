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
from lab.load.engines.histogram import log_errors
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
    seconds, end, whole = output.seconds, output.end, Line.sum_of(window)
    is_open, answers = plan.mode == "open", whole.answers
    all_us = whole.raw.sum_us + whole.failed.sum_us
    expects = any(request.expect for request in plan.requests)
    # Of the unfinished requests those count that were sent.
    waiting = seconds[-1].waiting if seconds else 0
    # The extra load of a spike is another process'.
    run_us, runq_us = (None, None) if plan.spike else (whole.run_us, whole.runq_us)
    return Reading(
        window_s=plan.duration_s,
        samples=answers,
        achieved_rps=answers / plan.duration_s,
        corrected=whole.corrected.latency() if is_open and whole.corrected else None,
        raw=whole.raw.latency(),
        counts=Counts(
            sent=end.sent,
            ok=end.ok,
            http_errors=end.http_errors,
            socket_errors=sum(end.socket_errors.values()),
            timeouts=end.timeouts,
            unfinished=end.unfinished - waiting,
            accounted_s=end.run_s,
        ),
        failed=whole.failed.latency(),
        all_ms=all_us / answers / 1000 if answers else None,
        ranks=whole.counted.ranks(),
        **_percentile_errors(window),
        window_ok=whole.ok,
        window_http_errors=whole.http_errors,
        window_lost=whole.lost,
        unexpected=sum(count for *_, count in whole.unexpected) if expects else None,
        lag_ms=whole.late.mean_ms,
        late=whole.late.latency(),
        due=whole.due if is_open else None,
        hangs=_hangs(whole),
        seconds=tuple(Second(line.answers, line.ok, line.counted.mean_ms) for line in window),
        dispersion=_dispersion(whole.sent_in_10ms),
        generator_run_s=None if run_us is None else run_us / 1e6,
        generator_runq_s=None if runq_us is None else runq_us / 1e6,
        remarks=(
            *own_limits(whole),
            *_failures(seconds, whole),
            *_unseen(plan, window, whole),
            *_read_late(plan, whole),
            *_misses(plan, whole),
        ),
    )


def _percentile_errors(window: Sequence[Line]) -> dict[str, Any]:
    errors = log_errors([line.counted for line in window], tuple(SHARES.values()))
    known = (error if math.isfinite(error) else None for error in errors)
    return {f"{name}_error": error for name, error in zip(SHARES, known, strict=True)}


def _dispersion(sent: Sequence[int]) -> float | None:
    """The index of dispersion of the requests sent in each 10 ms: variance over mean, 1 of arrivals
    at random (D. R. Cox and P. A. W. Lewis, The Statistical Analysis of Series of Events, 1966,
    section 4.5). None if none were sent, and if it is not known."""
    return statistics.pvariance(sent) / statistics.fmean(sent) if any(sent) else None


def own_limits(whole: Line) -> Iterator[Remark]:
    """Why the generator itself had too few connections. What was due waited for these."""
    for cause, what in _OWN_CAUSES.items():
        if count := whole.connect_failed.get(cause, 0):
            yield generator.generator_exhausted.remark(what=what, count=count)


def _failures(seconds: Sequence[Line], window: Line) -> Iterator[Remark]:
    """Errors by cause, and requests that were never sent."""
    kinds = (checks.socket_errors, "socket_errors"), (checks.connect_failed, "connect_failed")
    for check, name in kinds:
        inside = getattr(window, name)
        for cause, count in sorted(summed(getattr(line, name) for line in seconds).items()):
            yield check.remark(cause=cause, count=count, in_window=inside.get(cause, 0))
    last = seconds[-1] if seconds else None
    if last and last.waiting > WAITING_SHARE * last.due:
        yield checks.unsent.remark(requests=last.waiting)


def _unseen(plan: TrialPlan, window: Sequence[Line], whole: Line) -> Iterator[Remark]:
    """What no latency shows: clients that were never connected, and those that wait for an answer
    for much longer than any took; and how often an answer costs a new connection."""
    connected = sum(line.connections for line in window) / len(window) if window else 0
    if connected < CONNECTED * plan.concurrency:
        yield checks.connections_closed.remark(opened=connected, planned=plan.concurrency)
    if not plan.hold and _hangs(whole):
        waited_s, longest_s = whole.oldest_us / 1e6, _longest_us(whole) / 1e6
        yield checks.request_waits.remark(waited_s=waited_s, longest_s=longest_s)
    if whole.reopened and whole.reopened >= REOPENED * whole.answers:
        yield checks.reopened.remark(times=whole.reopened, answers=whole.answers)


def _hangs(whole: Line) -> bool:
    return whole.oldest_us > max(LONG_US, HANGS * _longest_us(whole))


def _longest_us(whole: Line) -> int:
    return max(whole.raw.max_us, whole.failed.max_us)


def _read_late(plan: TrialPlan, whole: Line) -> Iterator[Remark]:
    """If the p95 is in part its own: by https the kernel dates no answers, so what delays sending
    may delay reading as well. An open load's corrected latencies have its lateness."""
    if plan.mode == "closed" and plan.url.startswith("https:") and whole.ok and whole.sent:
        late_ms = whole.late.at_ms(0.95)
        if late_ms > allowed_ms(whole.raw.at_ms(0.95)):
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


def _misses(plan: TrialPlan, whole: Line) -> Iterator[Remark]:
    """The answers that were not as expected, by request and status."""
    counts: Counter[tuple[int, int]] = Counter()
    for number, status, count in whole.unexpected:
        counts[number, status] += count
    for (number, status), count in sorted(counts.items()):
        request = plan.requests[number]
        if request.expect is None:
            continue
        expected = {"statuses": " or ".join(map(str, request.expect.statuses)) or "below 400"}
        if request.expect.takes(status):
            expected = {"without": (request.expect.body_contains or "")[:SHOWN]}
        yield checks.not_as_expected.remark(
            request=number + 1, name=request.name, count=count, status=status, **expected
        )
