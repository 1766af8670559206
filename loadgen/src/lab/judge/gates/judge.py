"""Measurement to judgement: valid, or the reasons why not. Fails closed.

A reason makes the trial invalid: its figures do not mean what their columns say. A note is
something a reader must know of a valid trial; overload by the server is a finding, not a
fault.
"""

from __future__ import annotations

from collections.abc import Iterator

from lab.judge.gates import around
from lab.judge.gates.generator import (
    KEPT_UP,
    generator,
    load_kept,
    overloaded,
    short_of_cpu,
    unread,
    waited,
)
from lab.judge.gates.server import (
    RESTARTED,
    as_begun,
    compiler_told,
    not_asked,
    same_server,
    unwatched,
    warm,
)
from lab.model import (
    Judgement,
    Measurement,
    Observation,
    Reading,
    Snapshot,
    TrialRecord,
    answered,
    goodput,
    lost_rps,
)

# Little's law must hold within this share, plus half a latency at each edge of the window.
LITTLE_TOLERANCE = 0.05
HOST_BUSY = 0.95
# What rounding and the edges of a window may put above a bound.
BOUND_SLACK = 0.02
MIN_SAMPLES = 200
NO_SUCCESS = "no answer was a success: the latencies are those of errors"
NO_ANSWER = "nothing was answered in the measured window"
# Of an invalid trial: the server itself gave way. Its figures mean nothing, that it did does.
GAVE_WAY = (RESTARTED, NO_ANSWER, NO_SUCCESS)


def judge(
    measurement: Measurement,
    observation: Observation | None = None,
    start: Snapshot | None = None,
) -> Judgement:
    """All reasons and notes of one measurement; `observation` is its window as Prometheus saw
    it, where that was stored; `start` what the trials of its server began with, None where each
    trial has conditions of its own."""
    record, reading = measurement.record, measurement.reading
    begun = list(as_begun(record, start))
    reasons = [*same_server(record)]
    notes = [*record.notes, *unwatched(record, long=False), *not_asked(record)]
    (notes if record.before.foreign else reasons).extend(begun)
    reasons += [*record.unequal, *warm(record)]
    if reading is None:
        reasons.append(measurement.problem or "its raw data could not be read")
        return Judgement(tuple(reasons), tuple(notes))
    starved = list(short_of_cpu(record, reading))
    # Without an edge of the window the engine ended before it.
    asked = record.usage.window_cpu_s is not None and not (reading.problems or starved)
    reasons += [*reading.problems, *_samples(reading, asked), *load_kept(record)]
    reasons += _unwatched(record)
    notes += [*reading.notes, *around.missing(record, observation), *_unknown(record)]
    busy = record.usage.host_busy
    full = busy is not None and busy >= HOST_BUSY
    if reading.samples:
        reasons += [*_answers(reading), *_littles_law(record, reading), *_bound(record, reading)]
        reasons += [*starved, *generator(record, reading), *_backlog(record, reading)]
        # Where the CPUs are fought over every part is late: then the host is the limit, and a
        # note says so. On average they need not be full for that, as load comes in bursts.
        queued = list(waited(record, reading))
        late = around.saturated(record, around.calm(record, observation))
        (notes if full or queued else reasons).extend(late)
        if record.peaks:
            # A spike is an overload on purpose: what is late in it is part of the finding.
            notes += [f"with its spikes, {one}" for one in around.saturated(record, observation)]
        notes += [*_findings(record, reading), *queued]
    else:
        reasons += starved
    if full:
        notes.append(f"the host's CPU was {busy:.0%} busy: these numbers are this machine's limit")
    steal = record.usage.host_steal
    if steal is not None and steal >= 0.05:
        notes.append(f"the host lost {steal:.0%} of its CPU to other machines (steal)")
    return Judgement(tuple(reasons), tuple(dict.fromkeys(notes)))


def _unwatched(record: TrialRecord) -> Iterator[str]:
    """Nobody was there at the edges of the window: as when the engine ended before it began."""
    if record.usage.window_cpu_s is None and compiler_told(record) and record.jit_share is None:
        yield (
            "the window was not watched: neither the generator's CPU nor the JVM's compiler was "
            "read at its edges"
        )


def _unknown(record: TrialRecord) -> Iterator[str]:
    """One note that names the gates that had nothing to go by."""
    names = [*unread(record)]
    if compiler_told(record) and record.jit_share is None:
        names.insert(0, "JIT compile time")
    if names:
        yield f"not checked, as it could not be read in the window: {', '.join(names)}"


def _samples(reading: Reading, asked: bool) -> Iterator[str]:
    """`asked`: the generator did its part, so that no answer is the server's silence."""
    if reading.samples == 0 and asked:
        yield NO_ANSWER
    elif reading.samples < MIN_SAMPLES:
        yield f"too few samples: {reading.samples}, and p95 needs {MIN_SAMPLES}"


def _answers(reading: Reading) -> Iterator[str]:
    ok, _ = answered(reading)
    if ok == 0:
        yield NO_SUCCESS


def _littles_law(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """N = X·R for a closed load (Little 1961): all connections are always busy."""
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
    # An open load that catches up after a stall may exceed its own average for a while.
    if record.plan.offered_rps is not None and bound >= record.plan.offered_rps:
        return
    # An error can be answered faster than the bound's response time.
    good_rps = goodput(reading)
    if good_rps > bound * (1 + BOUND_SLACK) + 1 / reading.window_s:
        yield (
            f"faster than possible: {good_rps:.0f} req/s against a bound of "
            f"{bound:.0f}: something else answered"
        )


def _backlog(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """More answers than offered: those of requests that were due before the window."""
    offered = record.plan.offered_rps
    if offered is None or reading.corrected is None:
        return
    if reading.achieved_rps > (2 - KEPT_UP + reading.pause_s / reading.window_s) * offered:
        yield (
            f"a backlog of the warm-up was worked off: {reading.achieved_rps:.0f} answered of "
            f"{offered} req/s offered, so the corrected latencies are not those of this load"
        )


def _findings(record: TrialRecord, reading: Reading) -> Iterator[str]:
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
