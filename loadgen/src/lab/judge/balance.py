"""Whether the figures that a verdict rests on agree: the parts' CPU time with the busy time of the
CPUs, and the connections of a closed load with X · (R + Z)."""

from __future__ import annotations

from lab.judge.cpu_split import cpu_split
from lab.judge.seen import SeenTrial
from lab.model import Balance


def balance_of(seen: SeenTrial) -> Balance:
    split = cpu_split(seen.measurement, seen.observation)
    parts = [getattr(split, name) for name in split.columns()]
    busy, cpus = seen.record.usage.host_busy, seen.cpus
    cpu = in_flight = None
    if busy and cpus and None not in parts:
        cpu = sum(parts) * seen.reading.achieved_rps / 1e6 / (busy * cpus)
    if not seen.is_open and seen.reading.answer_ms is not None:
        cycle_s = (seen.reading.answer_ms + seen.think_ms) / 1000
        in_flight = seen.reading.achieved_rps * cycle_s / seen.plan.concurrency
    return Balance(cpu, in_flight)
