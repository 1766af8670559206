"""Do the figures of a trial agree with each other, and with the load that was planned?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from lab.judge.gates.generator import KEPT_UP, offered_rps, overloaded
from lab.model import Reading, TrialRecord, answered, goodput, lost_rps, needed_samples

# Little's law must hold within this share, plus half a latency at each edge of the window.
LITTLE_TOLERANCE = 0.05
# A window has at least so many mean latencies. In a shorter one the edges hold more of the answers
# than the middle, and Little's law can hardly fail. A latency may prove longer than expected, so
# windows are planned to have more.
LEAST_LATENCIES = 4.5
PLANNED_LATENCIES = 5.5
TOO_SHORT = "the window is too short"
# Rounding, and the edges of the window, may put the rate this far above a bound.
BOUND_SLACK = 0.02
# Enough for p95.
MIN_SAMPLES = needed_samples(0.95)
NO_SUCCESS = "no answer was a success: the latencies are those of errors"
NO_ANSWER = "nothing was answered in the measured window"
BACKLOG = "the window began with a backlog"


def needed_window_s(latency_s: float) -> int:
    """How long a window this mean latency needs, in whole seconds."""
    return math.ceil(PLANNED_LATENCIES * latency_s - 1e-9)


def wanted_window_s(reason: str) -> int | None:
    """The length of window that a reason says would do, in seconds; None where it says none."""
    said = re.search(r"\(DURATION=(\d+)s would do\)$", reason)
    return int(said[1]) if said and reason.startswith(TOO_SHORT) else None


def wrong(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """Why the figures of a window with answers cannot be right."""
    if answered(reading)[0] == 0:
        yield NO_SUCCESS
    yield from _bound(record, reading)
    if _is_too_short(reading) and reading.raw is not None:
        latency_s = reading.raw.mean_ms / 1000
        yield (
            f"{TOO_SHORT}: {reading.window_s:.0f} s for a mean latency of {latency_s:.2f} s, "
            f"and it must be {LEAST_LATENCIES:g} times as long "
            f"(DURATION={needed_window_s(latency_s)}s would do)"
        )


def _is_too_short(reading: Reading) -> bool:
    if reading.raw is None:
        return False
    return reading.window_s < LEAST_LATENCIES * reading.raw.mean_ms / 1000


def few(reading: Reading) -> Iterator[str]:
    """Why there are too few answers."""
    if reading.samples < MIN_SAMPLES:
        yield f"too few answers: {reading.samples}, and p95 needs {MIN_SAMPLES}"


def littles_law(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """N = X·R in a closed load (Little 1961), where every connection is always busy. Not asked of
    a window that is too short to tell."""
    if record.plan.mode != "closed" or reading.raw is None or _is_too_short(reading):
        return
    latency_s = reading.raw.mean_ms / 1000
    busy = reading.achieved_rps * latency_s
    tolerance = LITTLE_TOLERANCE + latency_s / reading.window_s
    if abs(busy / record.plan.concurrency - 1) > tolerance:
        yield (
            f"Little's law does not hold: {reading.achieved_rps:.0f} req/s × {latency_s:.3f} s "
            f"= {busy:.0f} busy connections, and {record.plan.concurrency} were planned "
            f"(tolerance {tolerance:.0%})"
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
    good_rps = goodput(reading)
    if good_rps > bound * (1 + BOUND_SLACK) + record.plan.concurrency / reading.window_s:
        yield (
            f"faster than the bound: {good_rps:.0f} req/s, and at most {bound:.0f} are possible "
            "(another server or a cache may have answered)"
        )


def backlog(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """Why the window has more answers than were offered: their requests were due before it."""
    offered = offered_rps(record, reading)
    if offered is None or reading.corrected is None:
        return
    if reading.achieved_rps > (2 - KEPT_UP + reading.pause_s / reading.window_s) * offered:
        yield (
            f"{BACKLOG}: {reading.achieved_rps:.0f} req/s were answered and {offered:.0f} offered, "
            "so the corrected latencies include waits from the warm-up"
        )


def findings(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """Notes on an overload, on errors, and on requests without an answer."""
    offered = offered_rps(record, reading)
    if offered is not None and overloaded(record, reading):
        yield (
            f"overloaded: {reading.achieved_rps:.0f} of {offered:.0f} req/s "
            "offered were answered, so corrected latencies grow with the run's length"
        )
    ok, errors = answered(reading)
    if errors and ok:
        share = errors / (errors + ok)
        yield f"{share:.1%} of the answers were HTTP errors, and their latencies count too"
    lost = lost_rps(reading, record.plan.offered_rps)
    if lost:
        share = lost / (reading.achieved_rps + lost)
        yield (
            f"{share:.1%} of the requests got no answer (socket errors, timeouts), and are in no "
            "latency"
        )
