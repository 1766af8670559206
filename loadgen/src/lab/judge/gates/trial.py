"""Measurement to judgement: valid, or the reasons why not. Fails closed.

A reason makes the trial invalid: its figures do not mean what their columns say. A note tells a
reader something about a valid trial. A server that is overloaded is a finding, not a fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lab.judge.gates import figures, generator, held, others, parts, server, steady
from lab.judge.gates.figures import BACKLOG, MOST_FAILED, NO_ANSWER, NO_SUCCESS
from lab.judge.gates.generator import BEGAN_LATE, LATE, NOT_OFFERED, SPIKE, STARVED
from lab.judge.gates.parts import LATE_DOWNSTREAM, PART_RESTARTED
from lab.judge.gates.server import (
    COLD,
    COMPILING,
    GONE,
    RESTARTED,
    STEP,
    UNWATCHED,
    compiler_unread,
)
from lab.judge.gates.steady import STOPPED, UNSTEADY
from lab.model import (
    AWAY,
    CLOCK_SET,
    NOT_BACK,
    NOT_BEGUN,
    Judgement,
    Measurement,
    Observation,
    Reading,
    Snapshot,
    TrialRecord,
)

# The host's CPUs are full from this share on.
HOST_FULL = 0.95
# A reader should know of this share of CPU time that other machines took (steal).
STEAL_FELT = 0.05
NOT_OBSERVED = "the window was not observed"
UNSTEADY_UNTOLD = "not checked: whether the window was steady, as its seconds are not told"
# Reasons that say that the server itself failed. The trial's figures mean nothing, but that it
# failed does.
FAILED_ITSELF = (RESTARTED, GONE, NOT_BACK, STOPPED, NO_ANSWER, NO_SUCCESS, MOST_FAILED)
# How reasons begin that may not come again when the same load is measured once more.
ACCIDENTS = (
    COMPILING,
    f"{COLD}: not steady",
    STARVED,
    LATE,
    BEGAN_LATE,
    NOT_OFFERED,
    f"{SPIKE} ",
    f"{STEP} ",
    UNWATCHED,
    NOT_OBSERVED,
    UNSTEADY,
    BACKLOG,
    LATE_DOWNSTREAM,
    PART_RESTARTED,
    CLOCK_SET,
    NOT_BEGUN,
    "wrk2 calibrated ",
)


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
    reasons = [*parts.away(observation), *server.same_server(record)]
    reasons += server.not_in_force(record)
    notes = [*_repeats(record), *record.notes]
    notes += [*server.without_proxy(record), *server.unwatched(record, long=False)]
    notes += server.not_asked(record)
    (notes if record.before.foreign else reasons).extend(changed)
    reasons += [*record.unequal, *server.warm(record)]
    reasons += [*parts.restarted(record, observation), *parts.clocks_apart(record)]
    if reading is None:
        reasons.append(measurement.problem or "its raw data could not be read")
        return Judgement(tuple(reasons), tuple(notes))
    if record.plan.hold:
        reasons += [*reading.problems, *held.kept(record, reading)]
        return Judgement(tuple(reasons), tuple(dict.fromkeys((*notes, *reading.notes))))
    starved = list(generator.short_of_cpu(record, reading))
    reasons += [*reading.problems, *generator.load_kept(record), *_not_observed(record), *starved]
    notes += [*reading.notes, *parts.missing(record, observation)]
    notes += _not_checked(record, observation)
    if reading.samples:
        reasons += [*figures.wrong(record, reading), *generator.late(record, reading)]
        reasons += [*figures.backlog(record, reading), *generator.began_late(record, reading)]
        waited = list(generator.waited(record, reading))
        # Where the CPUs are fought over, every part is late: then the host is the limit, and a
        # note says so. Load comes in bursts, so the CPUs need not be full on average for that.
        late = parts.saturated(record, parts.calm(record, observation))
        (notes if _host_is_full(record) or waited else reasons).extend(late)
        if record.peaks:
            # A spike is an overload on purpose: a part that is late in it belongs to the finding.
            notes += [f"with its spikes, {one}" for one in parts.saturated(record, observation)]
        notes += [
            *figures.findings(record, reading),
            *waited,
            *generator.late_in_part(record, reading),
        ]
    # Without an edge of the window the engine ended before it.
    asked = record.usage.window_cpu_s is not None and not (reading.problems or starved)
    _compared_with_the_load(measurement, reading, observation, asked, reasons, notes)
    used = others.crowded_out(record, reading, observation)
    notes += _host(record, used)
    return Judgement(tuple(reasons), tuple(dict.fromkeys(notes)), used)


def _compared_with_the_load(
    measurement: Measurement,
    reading: Reading,
    observation: Observation | None,
    asked: bool,
    reasons: list[str],
    notes: list[str],
) -> None:
    """Add what the answers say against the planned load. `asked`: the generator did its part, so
    where nothing was answered the server was silent. The same symptoms follow where a server
    crashed or hung: then that is the one reason."""
    record = measurement.record
    if reading.samples == 0 and asked:
        reasons.append(NO_ANSWER)
        return
    steps = steady.steps_of(record, reading, observation)
    found = [*figures.few(reading)]
    if reading.samples:
        found += [*figures.littles_law(record, reading), *generator.not_offered(record, reading)]
    if not steps and record.before.foreign:
        notes.append(UNSTEADY_UNTOLD)
    drift = steady.drift(record, reading, steps)
    silence_s = steady.silent_s(reading, steps, figures.silent_by_draw_s(record, reading))
    silence = f"{STOPPED} for {silence_s:.1f} s of the window" if silence_s is not None else None
    if silence is None and drift is None:
        drift = steady.overload_drift(record, reading, steps)
    if drift is not None and not reasons and not found:
        found.append(drift)
    if silence is not None and not (found and asked):
        notes.append(silence)
    if RESTARTED in reasons or any(one.startswith((GONE, AWAY)) for one in reasons):
        return
    reasons += [silence] if silence is not None and found and asked else found


def by_accident(reasons: Sequence[str]) -> bool:
    """Whether a trial with these reasons should be measured once more: none of them is a finding,
    and none would come again for certain. All others may follow from a machine that was away."""
    if any(AWAY in one for one in reasons):
        return True
    return bool(reasons) and all(one.startswith(ACCIDENTS) for one in reasons)


def _repeats(record: TrialRecord) -> Iterator[str]:
    if record.plan.repeats is not None:
        yield f"measured again: {record.plan.repeats} was invalid"


def _host_is_full(record: TrialRecord) -> bool:
    busy = record.usage.host_taken
    return busy is not None and busy >= HOST_FULL


def _host(record: TrialRecord, used: float | None) -> Iterator[str]:
    """Notes on the machine that all parts share. `used`: see `others.crowded_out`."""
    if used is not None:
        yield f"work outside the lab used {used:.0%} of CPUs that were short"
    busy, steal = record.usage.host_taken, record.usage.host_steal
    if busy is not None and busy >= HOST_FULL:
        yield f"the host's CPU was {busy:.0%} busy: these numbers are this machine's limit"
    if steal is not None and steal >= STEAL_FELT:
        yield f"the host lost {steal:.0%} of its CPU to other machines (steal)"


def _not_observed(record: TrialRecord) -> Iterator[str]:
    """Nothing was read at the edges of the window: the engine ended before it began."""
    if record.usage.window_cpu_s is None and compiler_unread(record):
        yield (
            f"{NOT_OBSERVED}: neither the generator's CPU time nor the JIT compile time could be "
            "read at its edges"
        )


def _not_checked(record: TrialRecord, observation: Observation | None) -> Iterator[str]:
    """One note that names the gates without the figures they need."""
    names = [*generator.unread(record)]
    if others.untold(record, observation):
        names.append("what work outside the lab took of the CPUs")
    if compiler_unread(record):
        names.insert(0, "JIT compile time")
    if names:
        yield f"not checked, as it could not be read in the window: {', '.join(names)}"
