"""The counters of the server under test and of the host, read together under a load."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from lab.errors import LabUnreachable
from lab.model import JitCpu, TrialPlan
from lab.system.host import HostCpu, System
from lab.system.management import RouteWork
from lab.system.stack import Stack

# When it was read, the CPU seconds of a JIT compiler's threads, and the seconds in which they
# waited for a CPU.
type JitReading = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """The counters of CPU time at one moment. `cpu_s` belongs to the server's process, and is None
    where the server does not tell it."""

    at_s: float
    host: HostCpu | None
    cpu_s: float | None


@dataclass(frozen=True, slots=True)
class Counters(CpuTimes):
    """All counters of a server of the lab at one moment, `work` for one route."""

    compilation_s: float
    work: RouteWork
    jit: JitReading | None = None


def read_counters(plan: TrialPlan, stack: Stack, system: System) -> Counters:
    """The counters of the plan's server and route now. Raises LabUnreachable."""
    at_s, host = system.monotonic(), system.host_cpu()
    times = stack.exporter.times(plan.server)
    work = stack.management.work(plan.server, plan.route)
    jit = read_jit(plan.server, stack, system)
    return Counters(at_s, host, times.cpu_s, times.compilation_s, work, jit)


def read_jit(server: str, stack: Stack, system: System) -> JitReading | None:
    """What the threads of the server's JIT compiler used so far; None where the server does not
    tell, or did not answer in time."""
    at_s = system.monotonic()
    with suppress(LabUnreachable):
        return (at_s, *stack.management.jit(server))
    return None


def jit_between(before: JitReading | None, after: JitReading | None) -> JitCpu | None:
    """What these threads did between two readings; None where that is not known."""
    rates = per_second(before, after)
    return JitCpu(*rates) if rates else None


def per_second(
    before: tuple[float, ...] | None, after: tuple[float, ...] | None
) -> tuple[float, ...]:
    """How fast counters rose, from two readings that begin with their moments. Empty where one is
    missing, and where a counter fell, as it does where another JVM started it again."""
    if before is None or after is None or after[0] <= before[0]:
        return ()
    rises = [new - old for old, new in zip(before, after, strict=True)]
    return tuple(rise / rises[0] for rise in rises[1:]) if min(rises) >= 0 else ()
