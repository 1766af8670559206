"""How much longer than R0 a trial's requests took on average, and where.

R0 is the time at light load: the waits that a request is made of, and the server's CPU time for
it. A closed load loses throughput by the same excess: X = N / (R0 + Z + excess), so there Z, the
generator's turn-round, is one of its places.
"""

import math
import statistics

from lab.judge.cpu_split import cpu_split
from lab.judge.predict import SPIN, rate_error, response_spread
from lab.judge.quantities import BUSY_CONNECTIONS, connections_busy, overloaded
from lab.judge.seen import SeenTrial
from lab.model import TO_CALLED, TO_SERVER, Excess, Latency

# Trials of one load on one machine scatter by 3 % (FACTS: five models at 2,000 connections), so a
# single one resolves no less than this share of R0.
RESOLVED = 0.05
# An open load's answers take up to three time slices of the kernel's scheduler longer on any
# machine that does other work too (EEVDF: about 3 ms each on a few CPUs).
SLICES_MS = 10.0
# The p95 and p99 of an exponential wait are so many times its mean.
P95, P99 = math.log(20), math.log(100)
# This share of an open load must be answered: the gates ask for 99 %, with errors.
ANSWERED = 0.98
# Toxics that add this share of R0 or more are what is waited for, and no longer part of R0.
TOXICS = 0.5


def excess_of(seen: SeenTrial) -> Excess | None:
    """None where nothing was answered. Where R0 is not known it counts as 0: then a share of the
    excess is at least what is given."""
    latency = _latency(seen)
    if latency is None or not seen.reading.samples:
        return None
    r0_ms, toxics_ms = _r0_ms(seen), slowing_ms(seen)
    whole_ms = max(latency.mean_ms + seen.think_ms, _cycle_ms(seen))
    ms = whole_ms - (r0_ms or 0.0)
    if ms < 0 and seen.before.foreign and not seen.is_open and ms < -RESOLVED * whole_ms:
        r0_ms, ms = None, whole_ms  # It was measured on a machine as full as this one.
    return Excess(
        r0_ms=r0_ms,
        ms=ms,
        resolved_ms=_resolved_ms(seen, r0_ms or 0.0),
        places=_places(seen, r0_ms, toxics_ms, ms),
    )


def answered(seen: SeenTrial) -> bool:
    """The load got the rate that it offered. A closed load's rate is its excess."""
    offered = seen.offered_rps
    if offered is None:
        return True
    return seen.rps >= ANSWERED * offered and not overloaded(seen.record, seen.reading)


def tail_as_expected(seen: SeenTrial, excess: Excess) -> bool:
    """p99, or p95 where there are too few answers for it, is no later than an exponential wait of
    the smallest mean that the trial resolves makes it. True where no percentile is predicted."""
    latency, before = _latency(seen), seen.before
    if latency is None or excess.r0_ms is None or before.foreign or before.toxics.jittered:
        return True
    spread = response_spread(seen.call, before)
    for name, times in (("p99_ms", P99), ("p95_ms", P95)):
        found_ms: float | None = getattr(latency, name)
        if found_ms is not None:
            drawn_ms = getattr(spread, name) - before.downstream_delay_ms if spread else 0.0
            return found_ms <= excess.r0_ms + drawn_ms + times * excess.resolved_ms
    return True


def slowing_ms(seen: SeenTrial) -> float:
    """The latency of toxics that is not part of R0: where it at least doubles the delay, and the
    load has no connections to spare for it."""
    if not seen.call.route.calls_downstream or seen.before.foreign:
        return 0.0
    added_ms = seen.before.toxics.added_latency_ms
    felt = not seen.is_open or overloaded(seen.record, seen.reading)
    return added_ms if felt and added_ms >= TOXICS * seen.hold_s * 1000 > 0 else 0.0


def _latency(seen: SeenTrial) -> Latency | None:
    """From when a request was due; of a closed load from when it was sent."""
    corrected = seen.reading.corrected if seen.is_open else None
    return corrected or seen.reading.raw


def _cycle_ms(seen: SeenTrial) -> float:
    """N / X of a closed load: longer than what was answered took, where connections were lost or
    wait for good. A window's edges may cut off an answer of each. 0 in an open load."""
    answer_s, rps = (seen.reading.answer_ms or 0.0) / 1000, seen.reading.achieved_rps
    if seen.is_open or rps <= 0:
        return 0.0
    return seen.plan.concurrency * 1000 / rps * (1 - min(1.0, answer_s / seen.reading.window_s))


def _r0_ms(seen: SeenTrial) -> float | None:
    if seen.before.foreign:
        return seen.hold_s * 1000 or None
    waits_ms = seen.hold_s * 1000 - slowing_ms(seen)
    cpu_ms = _cpu_ms(seen)
    if seen.before.settings.get("block_the_loop") == SPIN:
        waits_ms, cpu_ms = max(waits_ms, cpu_ms), 0.0
    return waits_ms + cpu_ms + seen.before.way_ms(TO_SERVER) or None


def _cpu_ms(seen: SeenTrial) -> float:
    """The server's CPU time of a request: as fitted, or that of this trial where a request does
    nothing else."""
    demand = seen.record.demand
    if demand is not None and demand.server is not None and seen.rps:
        return demand.server.each_s(seen.rps) * 1000
    used_us = cpu_split(seen.measurement, seen.observation).cpu_server_us
    return 0.0 if seen.hold_s or used_us is None else used_us / 1000


def _resolved_ms(seen: SeenTrial, r0_ms: float) -> float:
    """What the trial resolves: two standard errors of the mean over its seconds, those of the mean
    of drawn delays, and what trials of one load scatter by."""
    share = RESOLVED
    if not seen.before.foreign:
        share += 2 * rate_error(seen.call, seen.before, seen.requests)
    means = [second.mean_ms for second in seen.reading.seconds if second.mean_ms is not None]
    error_ms = statistics.stdev(means) / math.sqrt(len(means)) if len(means) > 1 else 0.0
    return max(share * (r0_ms + seen.think_ms), SLICES_MS if seen.is_open else 0.0, 2 * error_ms)


def _places(seen: SeenTrial, r0_ms: float | None, toxics_ms: float, ms: float) -> dict[str, float]:
    """What each part of the mean time has above its part of R0; all of it is unexplained where the
    parts are not known."""
    split, before = seen.split, seen.before
    if split is None or r0_ms is None:
        places = {**_until_sent_ms(seen), **_path_ms(seen, toxics_ms)}
        places["unexplained"] = ms - sum(places.values())
        return {name: max(0.0, part) for name, part in places.items()}
    calls = seen.call.route.calls_downstream
    usual = {
        "own": _cpu_ms(seen) + (0.0 if calls else seen.hold_s * 1000),
        "downstream": before.downstream_delay_ms if calls else 0.0,
        "path": before.toxics.added_latency_ms - toxics_ms + before.way_ms(TO_CALLED),
        "unexplained": before.way_ms(TO_SERVER),
    }
    parts = {name[len("time_") : -len("_ms")]: getattr(split, name) for name in split.columns()}
    if seen.is_open and seen.reading.late is None:
        early = _until_sent_ms(seen)
        parts |= {"generator": early["generator"], "connect": early["connect"] + parts["connect"]}
    places = {
        name: max(0.0, part - usual.get(name, 0.0))
        for name, part in parts.items()
        if part is not None
    }
    places["unexplained"] += max(0.0, ms - sum(places.values()))
    return places


def _path_ms(seen: SeenTrial, toxics_ms: float) -> dict[str, float]:
    """By how much a downstream call took longer than its part of R0, if that is known."""
    name = "lab_downstream_call_seconds"
    call = seen.mean_time("mean call", name, phase="call", server=seen.server)
    if call is None or seen.before.foreign:
        return {}
    return {"path": max(0.0, call * 1000 - seen.hold_s * 1000 + toxics_ms)}


def _until_sent_ms(seen: SeenTrial) -> dict[str, float]:
    """What passed until a request was sent: by how much the generator was late, and before that
    the wait for a connection."""
    late, reading = seen.reading.late, seen.reading
    if not seen.is_open or reading.corrected is None or reading.raw is None:
        return {"generator": late.mean_ms if late else 0.0, "connect": 0.0}
    until_ms = reading.corrected.mean_ms - reading.raw.mean_ms
    # An engine that does not tell its own lateness waits where connections are free.
    busy = (connections_busy(seen.record, reading) or 0.0) >= BUSY_CONNECTIONS
    late_ms = late.mean_ms if late else 0.0 if busy else until_ms
    own_ms = min(until_ms, late_ms)
    return {"generator": own_ms, "connect": until_ms - own_ms}
