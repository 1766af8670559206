"""Measurement to judgement: valid, or the reasons why not. Fails closed.

A reason makes the trial invalid: its figures do not mean what their columns say. A note tells a
reader something about a valid trial. A server that is overloaded is a finding, not a fault.
"""

from __future__ import annotations

from collections.abc import Iterator

from lab.judge.gates import figures, generator, parts, server
from lab.judge.gates.figures import NO_ANSWER, NO_SUCCESS
from lab.judge.gates.server import RESTARTED, compiler_told
from lab.model import NOT_BACK, Judgement, Measurement, Observation, Snapshot, TrialRecord

# The host's CPUs are full from this share on.
HOST_FULL = 0.95
# A reader should know of this share of CPU time that other machines took (steal).
STEAL_FELT = 0.05
# Reasons for which the server itself gave way. The trial's figures mean nothing, but that the
# server gave way does.
GAVE_WAY = (RESTARTED, NO_ANSWER, NO_SUCCESS, NOT_BACK)


def judge(
    measurement: Measurement,
    observation: Observation | None = None,
    start: Snapshot | None = None,
) -> Judgement:
    """All reasons and notes of one measurement. `observation` is its window as Prometheus saw it,
    where that was stored. `start` is what the trials of its server began with, None where each
    trial has conditions of its own."""
    record, reading = measurement.record, measurement.reading
    if record.lost:
        return Judgement((str(measurement.problem),), record.notes)
    changed = list(server.as_begun(record, start))
    reasons = [*server.same_server(record)]
    notes = [*record.notes, *server.unwatched(record, long=False), *server.not_asked(record)]
    (notes if record.before.foreign else reasons).extend(changed)
    reasons += [*record.unequal, *server.warm(record)]
    if reading is None:
        reasons.append(measurement.problem or "its raw data could not be read")
        return Judgement(tuple(reasons), tuple(notes))
    starved = list(generator.short_of_cpu(record, reading))
    # Without an edge of the window the engine ended before it.
    asked = record.usage.window_cpu_s is not None and not (reading.problems or starved)
    reasons += [*reading.problems, *figures.samples(reading, asked), *generator.load_kept(record)]
    reasons += _unwatched_window(record)
    notes += [*reading.notes, *parts.missing(record, observation), *_not_checked(record)]
    busy = record.usage.host_busy
    full = busy is not None and busy >= HOST_FULL
    if reading.samples:
        reasons += figures.wrong(record, reading)
        reasons += [*starved, *generator.too_slow(record, reading)]
        reasons += figures.backlog(record, reading)
        waited = list(generator.waited(record, reading))
        # Where the CPUs are fought over, every part is late: then the host is the limit, and a
        # note says so. Load comes in bursts, so the CPUs need not be full on average for that.
        late = parts.saturated(record, parts.calm(record, observation))
        (notes if full or waited else reasons).extend(late)
        if record.peaks:
            # A spike is an overload on purpose: a part that is late in it belongs to the finding.
            notes += [f"with its spikes, {one}" for one in parts.saturated(record, observation)]
        notes += [*figures.findings(record, reading), *waited]
    else:
        reasons += starved
    notes += _host(record)
    return Judgement(tuple(reasons), tuple(dict.fromkeys(notes)))


def _host(record: TrialRecord) -> Iterator[str]:
    """Notes on the machine that all parts share."""
    busy, steal = record.usage.host_busy, record.usage.host_steal
    if busy is not None and busy >= HOST_FULL:
        yield f"the host's CPU was {busy:.0%} busy: these numbers are this machine's limit"
    if steal is not None and steal >= STEAL_FELT:
        yield f"the host lost {steal:.0%} of its CPU to other machines (steal)"


def _unwatched_window(record: TrialRecord) -> Iterator[str]:
    """Nothing was read at the edges of the window: the engine ended before it began."""
    if record.usage.window_cpu_s is None and compiler_told(record) and record.jit_share is None:
        yield (
            "the window was not watched: neither the generator's CPU nor the JVM's compiler was "
            "read at its edges"
        )


def _not_checked(record: TrialRecord) -> Iterator[str]:
    """One note that names the gates without the figures they need."""
    names = [*generator.unread(record)]
    if compiler_told(record) and record.jit_share is None:
        names.insert(0, "JIT compile time")
    if names:
        yield f"not checked, as it could not be read in the window: {', '.join(names)}"
