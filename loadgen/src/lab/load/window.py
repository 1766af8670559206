"""The measured window of a trial: its counters at both edges, and what was used between them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from lab.model import JitCpu, Usage
from lab.subject.jvm import JitReading, jit_between, per_second
from lab.subject.subject import Subject
from lab.system.host import HostCpu, Process, System
from lab.system.spinner import Spinner


@dataclass(frozen=True, slots=True)
class Edge:
    """Every counter at one edge of the window; None if unknown. `counts` are those of the engine
    and of the machine. `compiled` is the moment of reading and the server's JIT compile time."""

    at_s: float
    host: HostCpu | None
    counts: Mapping[str, float | None]
    compiled: tuple[float, float] | None
    jit: JitReading | None

    @classmethod
    def read(cls, subject: Subject, process: Process, spinner: Spinner, system: System) -> Self:
        """The counters now. The quick ones come first: the server may take its time to answer."""
        at_s, host, turns = system.monotonic(), system.host_cpu(), process.turns()
        counts = {
            "cpu_s": process.cpu_s(),
            "wait_s": turns.wait_s if turns else None,
            "slices": turns.slices if turns else None,
            "throttled_s": system.throttled_s(),
            # CPU time per CPU of the machine.
            "spun_s": spinner.taken_s(),
            # Segments that TCP sent again.
            "resent": system.resent(),
            # For how long threads of the machine waited for a CPU.
            "pressure_s": system.pressure_s(),
        }
        return cls(at_s, host, counts, subject.compiled(system), subject.jit(system))


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
        rates: dict[str, float] = {}
        for name, before in opened.counts.items():
            after = closed.counts[name]
            if before is not None and after is not None:
                rates[name] = (after - before) / (closed.at_s - opened.at_s)
        used = {name: rate * window_s for name, rate in rates.items()}
        shares = closed.host.shares_since(opened.host) if closed.host and opened.host else None
        return Usage(
            run_cpu_s=process.cpu_s(),
            window_cpu_s=used["cpu_s"],
            host_busy=shares[0] if shares else None,
            host_steal=shares[1] if shares else None,
            window_wait_s=used.get("wait_s"),
            window_slices=round(used["slices"]) if "slices" in used else None,
            window_throttled_s=used.get("throttled_s"),
            spun=rates.get("spun_s"),
            # Two files of the kernel, read one after the other.
            window_resent=max(0.0, used["resent"]) if "resent" in used else None,
            host_pressure=min(1.0, rates["pressure_s"]) if "pressure_s" in rates else None,
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
