"""The measured window of a trial: its counters at both edges, and what was used between them."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from lab.errors import LabUnreachable
from lab.model import JitCpu, Usage
from lab.subject.jvm import JitReading, jit_between, per_second
from lab.subject.subject import Subject
from lab.system.host import HostCpu, Process, System, Turns
from lab.system.spinner import Spinner


@dataclass(frozen=True, slots=True)
class Edge:
    """Every counter at one edge of the window; None if unknown. `compiled` is the moment of reading
    and the server's JIT compile time. `spun_s` is the CPU time per CPU of the machine that a
    spinner took. `resent`: segments that TCP sent again. `pressure_s`: for how long threads of the
    machine waited for a CPU."""

    at_s: float
    host: HostCpu | None
    cpu_s: float
    turns: Turns | None
    throttled_s: float | None
    spun_s: float | None
    resent: int | None
    pressure_s: float | None
    compiled: tuple[float, float] | None
    jit: JitReading | None

    @classmethod
    def read(cls, subject: Subject, process: Process, spinner: Spinner, system: System) -> Self:
        """The counters now. The quick ones come first: the server may take its time to answer."""
        at_s = system.monotonic()
        host, cpu_s, turns = system.host_cpu(), process.cpu_s(), process.turns()
        throttled_s, spun_s = system.throttled_s(), spinner.taken_s()
        resent, pressure_s = system.resent(), system.pressure_s()
        compiled = None
        with suppress(LabUnreachable):
            compiled = system.monotonic(), subject.compilation_s()
        jit = subject.jit(system)
        return cls(at_s, host, cpu_s, turns, throttled_s, spun_s, resent, pressure_s, compiled, jit)


@dataclass(slots=True)
class Window:
    """The edges of the window, as far as the run has come."""

    opened: Edge | None = None
    closed: Edge | None = None

    def usage(self, process: Process, window_s: float) -> Usage:
        opened, closed = self.opened, self.closed
        if opened is None or closed is None or closed.at_s <= opened.at_s:
            return Usage(process.cpu_s(), None, None, None)
        length_s = closed.at_s - opened.at_s
        # The counters were read slightly beside the edges. The rate per second is kept.
        scale = window_s / length_s

        def rise(name: str) -> float | None:
            before, after = getattr(opened, name), getattr(closed, name)
            return None if before is None or after is None else after - before

        shares = closed.host.shares_since(opened.host) if closed.host and opened.host else None
        turns = (opened.turns, closed.turns) if opened.turns and closed.turns else None
        throttled_s, spun_s, resent = rise("throttled_s"), rise("spun_s"), rise("resent")
        pressure_s = rise("pressure_s")
        return Usage(
            run_cpu_s=process.cpu_s(),
            window_cpu_s=(closed.cpu_s - opened.cpu_s) * scale,
            host_busy=shares[0] if shares else None,
            host_steal=shares[1] if shares else None,
            window_wait_s=(turns[1].wait_s - turns[0].wait_s) * scale if turns else None,
            window_slices=round((turns[1].slices - turns[0].slices) * scale) if turns else None,
            window_throttled_s=None if throttled_s is None else throttled_s * scale,
            spun=None if spun_s is None else spun_s / length_s,
            # Two files of the kernel, read one after the other.
            window_resent=None if resent is None else max(0, resent) * scale,
            host_pressure=None if pressure_s is None else min(1.0, pressure_s / length_s),
        )

    @property
    def jit_share(self) -> float | None:
        """JIT compile time per second between the edges. None if unknown, and if another JVM
        started the counter again."""
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
