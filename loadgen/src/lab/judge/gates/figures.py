"""Do the figures of a trial agree with each other, and with the load that was planned?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from lab.judge.gates.generator import (
    KEPT_UP,
    drawn_call,
    edges,
    offered_rps,
    overloaded,
    think_ms,
    unanswered,
)
from lab.judge.predict import most_beyond, rate_error, response_spread
from lab.model import (
    Reading,
    Snapshot,
    TrialRecord,
    answered,
    good_share,
    goodput,
    lost_rps,
    needed_samples,
    three,
)
from lab.model.routes import RouteCall

# Little's law must hold within this share, plus half a latency at each edge of the window: of the
# requests that are there at the edges (`crossing_s`).
LITTLE_TOLERANCE = 0.05
# A window has at least so many mean latencies. In a shorter one the edges hold more of the answers
# than the middle, and Little's law can hardly fail. A latency may prove longer than expected, so
# windows are planned to have more.
LEAST_LATENCIES = 4.5
PLANNED_LATENCIES = 5.5
TOO_SHORT = "the window is too short"
# Rounding, and the edges of the window, may put the rate this far above a bound.
BOUND_SLACK = 0.02
# A rate is no better known than to twice this share where the delays of so few requests were drawn.
# The lab calls sides the same within 5 %, and looks for 7 % less than a bound.
RATE_ERROR = 0.025
# Enough for p95.
MIN_SAMPLES = needed_samples(0.95)
NO_SUCCESS = "no answer was a success: there is no latency of answers"
MOST_FAILED = "most answers were errors, and too few were a success"
NO_ANSWER = "nothing was answered in the measured window"
BACKLOG = "the window began with a backlog"


def crossing_s(latency_s: float, call: RouteCall | None, snapshot: Snapshot) -> float:
    """The mean latency of the requests that are under way at an edge of the window, where that of
    all is `latency_s`. Long ones are met more often: it is E[R²] / E[R] = E[R] + Var(R) / E[R]
    (W. Feller, An Introduction to Probability Theory and Its Applications 2, 1971, I.4). Only the
    variance of a drawn delay counts. `call` None: a route of a service that is not the lab's."""
    spread = response_spread(call, snapshot) if call is not None else None
    if spread is None or latency_s <= 0:
        return latency_s
    return latency_s + (spread.sd_ms / 1000) ** 2 / latency_s


def needed_window_s(latency_s: float, call: RouteCall | None, snapshot: Snapshot) -> int:
    """How long a window this mean latency needs, in whole seconds. `call` as of `crossing_s`."""
    return math.ceil(PLANNED_LATENCIES * crossing_s(latency_s, call, snapshot) - 1e-9)


def wanted_window_s(reason: str) -> int | None:
    """The length of window that a reason says would do, in seconds; None where it says none."""
    said = re.search(r"\(DURATION=(\d+)s would do\)$", reason)
    return int(said[1]) if said and reason.startswith(TOO_SHORT) else None


def wrong(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """Why the figures of a window with answers cannot be right."""
    if answered(reading)[0] == 0:
        yield NO_SUCCESS
    yield from _bound(record, reading)
    if _is_too_short(record, reading) and reading.answer_ms is not None:
        latency_s = reading.answer_ms / 1000
        yield (
            f"{TOO_SHORT}: {reading.window_s:.0f} s for a mean latency of {latency_s:.2f} s, "
            f"and it must be {_least_window_s(record, latency_s) / latency_s:.3g} times as long "
            f"(DURATION={needed_window_s(latency_s, drawn_call(record), record.before)}s would do)"
        )


def _crossing_s(record: TrialRecord, latency_s: float) -> float:
    return crossing_s(latency_s, drawn_call(record), record.before)


def _least_window_s(record: TrialRecord, latency_s: float) -> float:
    return LEAST_LATENCIES * _crossing_s(record, latency_s)


def _is_too_short(record: TrialRecord, reading: Reading) -> bool:
    if reading.answer_ms is None:
        return False
    return reading.window_s < _least_window_s(record, reading.answer_ms / 1000)


def silent_by_draw_s(record: TrialRecord, reading: Reading) -> float:
    """How long no answer may come for no other reason than the draw of the delays; 0 where all
    requests wait alike. Each of those in flight has (E[R²] / E[R]) / 2 left on average
    (`crossing_s`). So at most one moment in 1,000 finds all of them with more than this left
    (Markov's inequality), and none has more than the longest delay."""
    call = drawn_call(record)
    spread = response_spread(call, record.before) if call else None
    if spread is None or reading.answer_ms is None:
        return 0.0
    latency_s = reading.answer_ms / 1000
    in_flight = max(1.0, reading.achieved_rps * latency_s)
    left_s = _crossing_s(record, latency_s) / 2 * math.pow(1000, 1 / in_flight)
    return min(spread.longest_ms / 1000, left_s)


def rate_error_of(record: TrialRecord, reading: Reading) -> float:
    """The standard error of the rate of this window, as a share of it, by the draw of its delays; 0
    where all requests wait alike. An open load that keeps up has the rate that is offered."""
    call = drawn_call(record)
    if call is None or (record.plan.mode == "open" and not overloaded(record, reading)):
        return 0.0
    return rate_error(call, record.before, reading.samples)


def few(reading: Reading) -> Iterator[str]:
    """Why there are too few answers without an error. Where most were errors, that is a finding."""
    good, failed = in_window(reading)
    if good >= MIN_SAMPLES:
        return
    if failed <= good or good + failed < MIN_SAMPLES:
        errors = f" without an error, beside {failed} with one" if failed else ""
        yield f"too few answers: {good}{errors}, and p95 needs {MIN_SAMPLES}"
    elif good:
        yield f"{MOST_FAILED}: {good} of {good + failed:,}, and p95 needs {MIN_SAMPLES}"


def in_window(reading: Reading) -> tuple[int, int]:
    """Answers of the window, without and with an error. Where the engine counts errors in its whole
    run only, its answers have the run's share of them."""
    good = round(good_share(reading) * reading.samples)
    return good, reading.samples - good


def littles_law(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """N = X·(R + Z) in a closed load (Little 1961), where every connection is always busy: with a
    request, or until the generator has sent the next (its think time Z, 0 where it does not tell
    that). Not asked of a window that is too short to tell."""
    closed = record.plan.mode == "closed"
    if not closed or reading.answer_ms is None or _is_too_short(record, reading):
        return
    latency_s, think = reading.answer_ms / 1000, think_ms(reading)
    each_s = latency_s + (think or 0.0) / 1000
    busy = reading.achieved_rps * each_s
    tolerance = LITTLE_TOLERANCE + _crossing_s(record, latency_s) / reading.window_s
    off = busy / record.plan.concurrency - 1
    if abs(off) > tolerance:
        untold = ""
        if think is None and off < 0:
            missing_ms = record.plan.concurrency * 1000 / reading.achieved_rps - reading.answer_ms
            untold = (
                f": connections were lost, or the generator took {three(missing_ms)} ms between an "
                "answer and the next request, which only pacer tells"
            )
        yield (
            f"Little's law does not hold: {reading.achieved_rps:.0f} req/s × {three(each_s)} s "
            f"= {three(busy)} busy connections, and {record.plan.concurrency} were planned "
            f"(tolerance {tolerance:.0%}){untold}"
        )


def _bound(record: TrialRecord, reading: Reading) -> Iterator[str]:
    bound = record.plan.predicted_rps
    if bound is None:
        return
    # An open load that catches up after a stall may exceed its average rate for a while.
    if record.plan.offered_rps is not None and bound >= record.plan.offered_rps:
        return
    # Connections that began at once answer in bursts, of which the window may have one too many.
    # An error can come faster than the bound's response time.
    good_rps, call = goodput(reading), drawn_call(record)
    drawn = most_beyond(call, record.before, reading.samples) if call else 0.0
    if good_rps > bound * (1 + BOUND_SLACK + drawn) + record.plan.concurrency / reading.window_s:
        yield (
            f"faster than the bound: {good_rps:.0f} req/s, and at most {bound:.0f} are possible "
            "(another server or a cache may have answered)"
        )


def backlog(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """Why the window has more answers than were offered: their requests were due before it."""
    offered = offered_rps(record, reading)
    if offered is None or reading.corrected is None:
        return
    if reading.achieved_rps > (2 - KEPT_UP + edges(record, reading)) * offered:
        yield (
            f"{BACKLOG}: {reading.achieved_rps:.0f} req/s were answered and {offered:.0f} offered, "
            "so the corrected latencies include waits from the warm-up"
        )


def findings(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """Notes on an overload, on errors, on requests without an answer, and on too few drawn
    delays."""
    if left := unanswered(record, reading):
        yield (
            f"{left:,} requests more were due in the window than ended in it. They may never be "
            "answered, count as lost, and are in no latency"
        )
    error = rate_error_of(record, reading)
    if error > RATE_ERROR:
        yield (
            f"{reading.samples:,} delays were drawn: by that alone the rate and the mean latency "
            f"of such a window vary by ±{2 * error:.0%}"
        )
    offered = offered_rps(record, reading)
    if offered is not None and overloaded(record, reading):
        yield (
            f"overloaded: {reading.achieved_rps:.0f} of {offered:.0f} req/s "
            "offered were answered, so corrected latencies grow with the run's length"
        )
    ok, errors = answered(reading)
    if errors and ok:
        share = errors / (errors + ok)
        what = "HTTP errors"
        if reading.unexpected:
            what = f"errors, {reading.unexpected:,} of them not as the subject expects"
        latencies = "the latencies are of the others"
        if reading.failed is None and reading.raw is not None:
            latencies = "their latencies count too"
        yield f"{share:.1%} of the answers were {what}; {latencies}"
    lost = lost_rps(reading, record.plan.offered_rps)
    if lost:
        share = lost / (reading.achieved_rps + lost)
        yield (
            f"{share:.1%} of the requests got no answer (socket errors, timeouts), and are in no "
            "latency"
        )
