"""Do the figures of a trial agree with each other, and with the load that was planned?"""

from __future__ import annotations

from collections.abc import Iterator

from lab.judge.gates.generator import KEPT_UP, overloaded
from lab.model import Reading, TrialRecord, answered, goodput, lost_rps, needed_samples

# Little's law must hold within this share, plus half a latency at each edge of the window.
LITTLE_TOLERANCE = 0.05
# Rounding, and the edges of the window, may put the rate this far above a bound.
BOUND_SLACK = 0.02
# Enough for p95.
MIN_SAMPLES = needed_samples(0.95)
NO_SUCCESS = "no answer was a success: the latencies are those of errors"
NO_ANSWER = "nothing was answered in the measured window"


def wrong(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """Why the figures of a window with answers cannot be right."""
    if answered(reading)[0] == 0:
        yield NO_SUCCESS
    yield from _littles_law(record, reading)
    yield from _bound(record, reading)


def samples(reading: Reading, asked: bool) -> Iterator[str]:
    """Why there are too few samples. `asked`: the generator did its part, so the server was silent
    where nothing was answered."""
    if reading.samples == 0 and asked:
        yield NO_ANSWER
    elif reading.samples < MIN_SAMPLES:
        yield f"too few samples: {reading.samples}, and p95 needs {MIN_SAMPLES}"


def _littles_law(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """N = X·R in a closed load (Little 1961), where every connection is always busy."""
    if record.plan.mode != "closed" or reading.raw is None:
        return
    latency_s = reading.raw.mean_ms / 1000
    busy = reading.achieved_rps * latency_s
    tolerance = LITTLE_TOLERANCE + latency_s / reading.window_s
    if abs(busy / record.plan.concurrency - 1) > tolerance:
        yield (
            f"Little's law does not hold: {reading.achieved_rps:.0f} req/s × {latency_s:.3f} s "
            f"= {busy:.0f} connections busy of {record.plan.concurrency} "
            f"(tolerance {tolerance:.0%})"
        )


def _bound(record: TrialRecord, reading: Reading) -> Iterator[str]:
    bound = record.plan.predicted_rps
    if bound is None:
        return
    # An open load that catches up after a stall may exceed its average rate for a while.
    if record.plan.offered_rps is not None and bound >= record.plan.offered_rps:
        return
    # An error can come faster than the bound's response time.
    good_rps = goodput(reading)
    if good_rps > bound * (1 + BOUND_SLACK) + 1 / reading.window_s:
        yield (
            f"faster than possible: {good_rps:.0f} req/s against a bound of "
            f"{bound:.0f}: something else answered"
        )


def backlog(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """Why the window has more answers than were offered: their requests were due before it."""
    offered = record.plan.offered_rps
    if offered is None or reading.corrected is None:
        return
    if reading.achieved_rps > (2 - KEPT_UP + reading.pause_s / reading.window_s) * offered:
        yield (
            f"a backlog of the warm-up was worked off: {reading.achieved_rps:.0f} answered of "
            f"{offered} req/s offered, so the corrected latencies are not those of this load"
        )


def findings(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """Notes on an overload, on errors, and on requests without an answer."""
    if overloaded(record, reading):
        yield (
            f"overloaded: {reading.achieved_rps:.0f} of {record.plan.offered_rps} req/s "
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
