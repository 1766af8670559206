"""The measured window of a trial: its counters at both edges, and what was used between them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from lab.errors import LabUnreachable
from lab.load.counters import JitReading, jit_between, per_second, read_jit
from lab.model import JitCpu, Usage
from lab.system.host import HostCpu, Process, System, Turns
from lab.system.spinner import Spinner
from lab.system.stack import Stack


@dataclass(frozen=True, slots=True)
class Edge:
    """Every counter at one edge of the window. `compiled` is the moment of reading and the server's
    JIT compile time, None where the server did not answer. `spun_s` is the CPU time per CPU of the
    machine that a spinner took, None without one. `resent`: segments that TCP sent again. `jit` is
    what the threads of its compiler used (read_jit). `pressure_s`: for how long threads of the
    machine waited for a CPU."""

    at_s: float
    host: HostCpu | None
    cpu_s: float
    turns: Turns | None
    throttled_s: float | None
    compiled: tuple[float, float] | None
    spun_s: float | None = None
    resent: int | None = None
    jit: JitReading | None = None
    pressure_s: float | None = None

    @classmethod
    def read(
        cls, server: str, process: Process, spinner: Spinner, stack: Stack, system: System
    ) -> Edge:
        """The counters now. The quick ones come first: the server may take its time to answer."""
        at_s = system.monotonic()
        host, cpu_s, turns = system.host_cpu(), process.cpu_s(), process.turns()
        throttled_s, spun_s = system.throttled_s(), spinner.taken_s()
        resent, pressure_s = system.resent(), system.pressure_s()
        compiled = None
        with suppress(LabUnreachable):
            compiled = system.monotonic(), stack.exporter.compilation_s(server)
        jit = read_jit(server, stack, system)
        return cls(at_s, host, cpu_s, turns, throttled_s, compiled, spun_s, resent, jit, pressure_s)


@dataclass(slots=True)
class Window:
    """The edges of the window, as far as the run has come."""

    opened: Edge | None = None
    closed: Edge | None = None

    def usage(self, process: Process, window_s: float) -> Usage:
        opened, closed = self.opened, self.closed
        if opened is None or closed is None or closed.at_s <= opened.at_s:
            return Usage(process.cpu_s(), None, None, None)
        # The counters were read slightly beside the edges. The rate per second is kept.
        scale = window_s / (closed.at_s - opened.at_s)
        shares = wait_s = slices = throttled_s = spun = resent = pressure = None
        if opened.host is not None and closed.host is not None:
            shares = closed.host.shares_since(opened.host)
        if opened.turns is not None and closed.turns is not None:
            wait_s = (closed.turns.wait_s - opened.turns.wait_s) * scale
            slices = round((closed.turns.slices - opened.turns.slices) * scale)
        if opened.throttled_s is not None and closed.throttled_s is not None:
            throttled_s = (closed.throttled_s - opened.throttled_s) * scale
        if opened.spun_s is not None and closed.spun_s is not None:
            spun = (closed.spun_s - opened.spun_s) / (closed.at_s - opened.at_s)
        if opened.resent is not None and closed.resent is not None:
            # Two files of the kernel, read one after the other.
            resent = max(0, closed.resent - opened.resent) * scale
        if opened.pressure_s is not None and closed.pressure_s is not None:
            waited_s = closed.pressure_s - opened.pressure_s
            pressure = min(1.0, waited_s / (closed.at_s - opened.at_s))
        return Usage(
            run_cpu_s=process.cpu_s(),
            window_cpu_s=(closed.cpu_s - opened.cpu_s) * scale,
            host_busy=shares[0] if shares else None,
            host_steal=shares[1] if shares else None,
            window_wait_s=wait_s,
            window_slices=slices,
            window_throttled_s=throttled_s,
            spun=spun,
            window_resent=resent,
            host_pressure=pressure,
        )

    @property
    def jit_share(self) -> float | None:
        """JIT compile time per second between the edges. None where it is not known, and where
        another JVM started the counter again."""
        if self.opened is None or self.closed is None:
            return None
        rates = per_second(self.opened.compiled, self.closed.compiled)
        return rates[0] if rates else None

    @property
    def jit_cpu(self) -> JitCpu | None:
        """What the JIT compiler's threads did per second between the edges. None as above."""
        if self.opened is None or self.closed is None:
            return None
        return jit_between(self.opened.jit, self.closed.jit)
