"""A system whose time is a number, and processes that run in it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lab.errors import Interrupted
from lab.system.host import HostCpu, Turns

# One second of CPU time in each probe.
REF_OUTPUT = json.dumps(
    {"source": "a", "compiler": "go1", "arch": "amd64", "cpus": 2}
    | {
        name: {"count": count, "cpu_seconds": 1.0, "seconds": 1.0}
        for name, count in {"compute_one": 4e8, "compute_all": 8e8, "wake": 1e5, "net": 5e4}.items()
    }
)
START = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)


class FakeProcess:
    """Runs for `length_s` of the system's time, using one core."""

    def __init__(self, system: FakeSystem, length_s: float, cores: float | None = None) -> None:
        self._system = system
        self._cores = cores
        self._from = system.monotonic()
        self._length_s = length_s
        self.stopped_early = False
        # What it writes at the end of each second, and where.
        self.output: Path | None = None
        self.line: Callable[[int], str] = lambda second: ""
        self._told = 0

    def write(self) -> None:
        """The lines of the seconds that are over."""
        while self.output and self._system.monotonic() - self._from >= self._told + 1:
            if self._told < self._length_s:
                with self.output.open("a") as file:
                    file.write(self.line(self._told))
            self._told += 1

    def poll(self) -> int | None:
        return 0 if self._system.monotonic() - self._from >= self._length_s else None

    def cpu_s(self) -> float:
        cores = 0.5 if self._cores is None else self._cores
        return (self._system.monotonic() - self._from) * cores

    def turns(self) -> Turns:
        for_s = self._system.monotonic() - self._from
        return Turns(for_s * self._system.wait_ms, round(for_s * 1000))

    def sockets(self) -> int | None:
        return self._system.sockets.pop(0) if self._system.sockets else 1000

    def stop(self) -> None:
        if self.poll() is None:
            self.stopped_early = True
            self._length_s = 0.0


class FakeSystem:
    """Time that moves only by sleeping; `at` calls something when a time is reached."""

    def __init__(self) -> None:
        self.elapsed_s = 0.0
        self.busy = 0.5
        self.wait_ms = 0.05
        self.throttled = 0.0
        # The share of time in which a thread waits for a CPU; None: the kernel does not tell.
        self.pressure: float | None = None
        # Segments that TCP sends again a second.
        self.resent_rps = 0.0
        # What others keep from who wants a CPU, look after look; then nothing.
        self.crowds: list[tuple[float, float] | None] = []
        # How far the wall clock was set.
        self.stepped_s = 0.0
        self.interrupt_at: float | None = None
        self.processes: list[FakeProcess] = []
        # Of a condition that takes CPU away; `free_cpus` are those that the driver may use.
        self.spinners: list[FakeProcess] = []
        self.free_cpus = 2
        self.sockets: list[int | None] = []
        self.started: list[tuple[str, ...]] = []
        self.given: list[str] = []
        # A second of pacer's, by its connections and the second.
        self.pacer: Callable[[int, int], str] = lambda connections, second: ""
        # Which engines never end by themselves.
        self.hangs: Callable[[Sequence[str]], bool] = lambda argv: False
        self._idle_before_s = self._since_s = 0.0
        self._due: list[tuple[float, Callable[[], None]]] = []

    def at(self, seconds: float, do: Callable[[], None]) -> None:
        self._due.append((seconds, do))

    def now(self) -> datetime:
        return START + timedelta(seconds=self.elapsed_s + self.stepped_s)

    def monotonic(self) -> float:
        return self.elapsed_s

    def sleep(self, seconds: float) -> None:
        if self.interrupt_at is not None and self.elapsed_s >= self.interrupt_at:
            raise Interrupted("stopped by SIGINT")
        self.elapsed_s = round(self.elapsed_s + seconds, 6)
        for process in self.processes:
            process.write()
        for due in [due for due in self._due if due[0] <= self.elapsed_s]:
            self._due.remove(due)
            due[1]()

    def start(self, argv: Sequence[str], output: Path, stdin: str = "") -> FakeProcess:
        output.write_text("fake\n")
        if argv[0] == sys.executable:
            spinner = FakeProcess(self, float(argv[-1]), float(argv[-2]))
            self.spinners.append(spinner)
            return spinner
        if argv == ("pacer", "-"):
            load = json.loads(stdin)
            process = FakeProcess(self, load["warmup_s"] + load["window_s"])
            process.output = output
            process.line = lambda second: self.pacer(load["connections"], second)
        else:
            process = FakeProcess(self, 100_000 if self.hangs(argv) else float(argv[1]))
        self.processes.append(process)
        self.started.append(tuple(argv))
        self.given.append(stdin)
        return process

    def cpus(self) -> int:
        return 2

    def own_cpus(self) -> int:
        return self.free_cpus

    def use(self, busy: float) -> None:
        """From now on this share of the host is busy."""
        self._idle_before_s += (self.elapsed_s - self._since_s) * (1 - self.busy)
        self._since_s, self.busy = self.elapsed_s, busy

    def host_cpu(self) -> HostCpu:
        idle = self._idle_before_s + (self.elapsed_s - self._since_s) * (1 - self.busy)
        return HostCpu(total=self.elapsed_s, idle=idle, steal=0.0)

    def crowd(self, seconds: float) -> tuple[float, float] | None:
        return self.crowds.pop(0) if self.crowds else (0.0, 0.0)

    def resent(self) -> int:
        return round(self.elapsed_s * self.resent_rps)

    def pressure_s(self) -> float | None:
        return None if self.pressure is None else self.elapsed_s * self.pressure

    def ref(self) -> str | None:
        return REF_OUTPUT

    def throttled_s(self) -> float:
        return self.elapsed_s * self.throttled
