"""The counters of the server under test and of the host, read together under a load."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from lab.errors import LabUnreachable
from lab.model import TrialPlan
from lab.system.host import HostCpu, System
from lab.system.management import RouteWork
from lab.system.stack import Stack


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """The counters of CPU time at one moment. `cpu_s` belongs to the server's process, and is None
    where the server does not tell it."""

    at_s: float
    host: HostCpu | None
    cpu_s: float | None


@dataclass(frozen=True, slots=True)
class Counters(CpuTimes):
    """All counters of one of the lab's servers at one moment, `work` for one route. `jit`: the CPU
    seconds of its compiler's threads, and those in which they waited for a CPU; None where it does
    not tell."""

    compilation_s: float
    work: RouteWork
    jit: tuple[float, float] | None = None


def read_counters(plan: TrialPlan, stack: Stack, system: System) -> Counters:
    """The counters of the plan's server and route now. Raises LabUnreachable."""
    at_s, host = system.monotonic(), system.host_cpu()
    times = stack.exporter.times(plan.server)
    work = stack.management.work(plan.server, plan.route)
    jit = None
    with suppress(LabUnreachable):
        jit = stack.management.jit(plan.server)
    return Counters(at_s, host, times.cpu_s, times.compilation_s, work, jit)
