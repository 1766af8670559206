"""How much longer than R0, the time at light load, a trial's requests took on average, and where.

A closed load loses throughput by the same excess: X = N / (R0 + Z + excess), so there Z, the
generator's turn-round, is one of its places.
"""

import math
import statistics

from lab.judge.predict import SPIN
from lab.judge.trial import BUSY_CONNECTIONS, Trial
from lab.model import TO_CALLED, TO_SERVER, Excess, Latency

# Trials of one load on one machine scatter by 3 % (FACTS: five models at 2,000 connections), so a
# single one resolves no less than this share of R0.
RESOLVED = 0.05
# An open load's answers take up to three time slices of the kernel's scheduler longer on any
# machine that does other work too (EEVDF: about 3 ms each on a few CPUs).
SLICES_MS = 10.0
# The p95 and p99 of an exponential wait are so many times its mean.
P95, P99 = math.log(20), math.log(100)
# This share of an open load must be answered: the checks ask for 99 %, with errors.
ANSWERED = 0.98
# Toxics that add this share of R0 or more are what is waited for, and no longer part of R0.
TOXICS = 0.5


def excess_of(trial: Trial) -> Excess | None:
    """None if nothing was answered. An unknown R0 counts as 0: shares of the excess are then lower
    bounds."""
    latency = _latency(trial)
    if latency is None or not trial.reading.samples:
        return None
    r0_ms = _r0_ms(trial)
    whole_ms = max(latency.mean_ms + trial.think_ms, _cycle_ms(trial))
    ms = whole_ms - (r0_ms or 0.0)
    if trial.call is None and not trial.is_open and ms < -RESOLVED * whole_ms:
        r0_ms, ms = None, whole_ms  # It was measured on a machine as full as this one.
    return Excess(r0_ms, ms, _resolved_ms(trial, r0_ms or 0.0), _places(trial, r0_ms, ms))


def answered(trial: Trial) -> bool:
    """A closed load's rate is its excess."""
    offered = trial.offered_rps
    return offered is None or (trial.rps >= ANSWERED * offered and not trial.overloaded)


def tail_as_expected(trial: Trial, excess: Excess) -> bool:
    """True if p99 (p95 if there are too few answers) is no later than an exponential wait makes it
    whose mean is the smallest that the trial resolves. True also where none is predicted."""
    latency, before = _latency(trial), trial.before
    if latency is None or excess.r0_ms is None or trial.call is None or before.toxics.jittered:
        return True
    spread = trial.spread
    for name, times in (("p99_ms", P99), ("p95_ms", P95)):
        tail_ms: float | None = getattr(latency, name)
        if tail_ms is not None:
            drawn_ms = getattr(spread, name) - before.downstream_delay_ms if spread else 0.0
            return tail_ms <= excess.r0_ms + drawn_ms + times * excess.resolved_ms
    return True


def slowing_ms(trial: Trial) -> float:
    """The latency of toxics that is not part of R0: where it at least doubles the delay, and the
    load has no connections to spare for it."""
    if not trial.calls_downstream:
        return 0.0
    added_ms = trial.before.toxics.added_latency_ms
    felt = not trial.is_open or trial.overloaded
    return added_ms if felt and added_ms >= TOXICS * trial.hold_s * 1000 > 0 else 0.0


def _latency(trial: Trial) -> Latency | None:
    corrected = trial.reading.corrected if trial.is_open else None
    return corrected or trial.reading.raw


def _cycle_ms(trial: Trial) -> float:
    """N / X of a closed load: longer than the answers took if connections were lost or wait for
    good. A window's edges may cut off an answer of each connection. 0 in an open load."""
    answer_s, rps = (trial.reading.answer_ms or 0.0) / 1000, trial.reading.achieved_rps
    if trial.is_open or rps <= 0:
        return 0.0
    cut_off = min(1.0, answer_s / trial.reading.window_s)
    return trial.plan.concurrency * 1000 / rps * (1 - cut_off)


def _r0_ms(trial: Trial) -> float | None:
    if trial.call is None:
        return trial.hold_s * 1000 or None
    waits_ms = trial.hold_s * 1000 - slowing_ms(trial)
    cpu_ms = _cpu_ms(trial)
    if trial.before.settings.get("block_the_loop") == SPIN:
        waits_ms, cpu_ms = max(waits_ms, cpu_ms), 0.0
    return waits_ms + cpu_ms + trial.before.way_ms(TO_SERVER) or None


def _cpu_ms(trial: Trial) -> float:
    """The server's: as fitted, or that of this trial where a request does nothing else."""
    demand = trial.record.demand
    if demand is not None and demand.server is not None and trial.rps:
        return demand.server.each_s(trial.rps) * 1000
    used_us = trial.cpu.cpu_server_us
    return 0.0 if trial.hold_s or used_us is None else used_us / 1000


def _resolved_ms(trial: Trial, r0_ms: float) -> float:
    """What the trial resolves: two standard errors of the mean over its seconds, those of the mean
    of drawn delays, and what trials of one load scatter by."""
    share = RESOLVED + 2 * trial.rate_error(trial.requests)
    means = [second.mean_ms for second in trial.reading.seconds if second.mean_ms is not None]
    error_ms = statistics.stdev(means) / math.sqrt(len(means)) if len(means) > 1 else 0.0
    slices_ms = SLICES_MS if trial.is_open else 0.0
    return max(share * (r0_ms + trial.think_ms), slices_ms, 2 * error_ms)


def _places(trial: Trial, r0_ms: float | None, ms: float) -> dict[str, float]:
    """The excess of each part of the mean time over its part of R0; all is unexplained if the parts
    are unknown."""
    split, before, until_sent = trial.split, trial.before, _until_sent_ms(trial)
    if split is None or r0_ms is None:
        places = {**until_sent, **_path_ms(trial)}
        places["unexplained"] = ms - sum(places.values())
        return {name: max(0.0, part) for name, part in places.items()}
    calls = trial.calls_downstream
    usual = {
        "own": _cpu_ms(trial) + (0.0 if calls else trial.hold_s * 1000),
        "downstream": before.downstream_delay_ms if calls else 0.0,
        "path": before.toxics.added_latency_ms - slowing_ms(trial) + before.way_ms(TO_CALLED),
        "unexplained": before.way_ms(TO_SERVER),
    }
    parts = {name[len("time_") : -len("_ms")]: getattr(split, name) for name in split.columns()}
    if trial.is_open and trial.reading.late is None:
        # The split has all of it as the generator's.
        parts["generator"] = until_sent["generator"]
        parts["connect"] += until_sent["connect"]
    places = {
        name: max(0.0, part - usual.get(name, 0.0))
        for name, part in parts.items()
        if part is not None
    }
    places["unexplained"] += max(0.0, ms - sum(places.values()))
    return places


def _path_ms(trial: Trial) -> dict[str, float]:
    call_s = trial.mean_call_s()
    if call_s is None:
        return {}
    return {"path": max(0.0, call_s * 1000 - trial.hold_s * 1000 + slowing_ms(trial))}


def _until_sent_ms(trial: Trial) -> dict[str, float]:
    """As in the split; but where an engine does not report its lateness, and all connections were
    busy, requests waited for these."""
    reading, late = trial.reading, trial.reading.late
    if not trial.is_open or reading.corrected is None or reading.raw is None:
        return {"generator": late.mean_ms if late else 0.0, "connect": 0.0}
    until_ms = reading.corrected.mean_ms - reading.raw.mean_ms
    busy = (trial.connections_busy or 0.0) >= BUSY_CONNECTIONS
    late_ms = late.mean_ms if late else 0.0 if busy else until_ms
    generator_ms = min(until_ms, late_ms)
    return {"generator": generator_ms, "connect": until_ms - generator_ms}
