"""Time, engine processes, and the counters of the operating system. Tests replace `System`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile

from lab.errors import EngineError, Interrupted, LabError
from lab.model.host_facts import cpus_of
from lab.store.records import writing
from lab.system.ref import REF, REF_TIMEOUT_S

GRACE_S = 3.0
PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
NET_SNMP, NET_STAT = Path("/proc/net/snmp"), Path("/proc/net/netstat")
STAT, CPU_PRESSURE = Path("/proc/stat"), Path("/proc/pressure/cpu")
CPU_STAT = tuple(Path("/sys/fs/cgroup", part, "cpu.stat") for part in ("", "cpu", "cpu,cpuacct"))


@dataclass(frozen=True, slots=True)
class HostCpu:
    """The host's CPU counters since boot, in any one unit."""

    total: float
    idle: float
    steal: float

    def shares_since(self, earlier: HostCpu) -> tuple[float, float] | None:
        """(busy, stolen) shares 0..1 of the time between; None when no time passed."""
        total = self.total - earlier.total
        if total <= 0:
            return None
        stolen = (self.steal - earlier.steal) / total
        return 1 - (self.idle - earlier.idle) / total - stolen, stolen


@dataclass(frozen=True, slots=True)
class Turns:
    """The time that the threads of a process waited for a CPU, and how many turns they got on
    one, summed over the threads."""

    wait_s: float
    slices: int


class Process:
    """A running engine, in a separate process group."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        self._status: int | None = None
        self._cpu_s = 0.0
        self._turns: dict[str, Turns] = {}

    def poll(self) -> int | None:
        """The exit status once it ended (negative: killed by that signal), else None."""
        if self._status is None:
            pid, status, usage = os.wait4(self._child.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
                self._child.returncode = self._status
                self._cpu_s = usage.ru_utime + usage.ru_stime
        return self._status

    def cpu_s(self) -> float:
        """CPU seconds used so far."""
        stat = "" if self._status is not None else _text(Path(f"/proc/{self._child.pid}/stat"))
        # Fields 14 and 15 of proc(5) stat, after the name in parentheses.
        if fields := stat.rpartition(")")[2].split():
            self._cpu_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return self._cpu_s

    def turns(self) -> Turns | None:
        """None if the system has no such figures. A thread that has ended counts with its figures
        of the last call."""
        for path in Path(f"/proc/{self._child.pid}/task").glob("*/schedstat"):
            # CPU time, waiting time (both ns), turns: Documentation/scheduler/sched-stats. Nothing
            # of a thread that has ended just now.
            if len(figures := _text(path).split()) == 3:
                self._turns[path.parent.name] = Turns(int(figures[1]) / 1e9, int(figures[2]))
        if not self._turns:
            return None
        turns = self._turns.values()
        return Turns(sum(each.wait_s for each in turns), sum(each.slices for each in turns))

    def sockets(self) -> int | None:
        count = 0
        try:
            # Links like socket:[inode] (proc(5)).
            for path in Path(f"/proc/{self._child.pid}/fd").iterdir():
                with suppress(OSError):  # It may have been closed just now.
                    count += str(path.readlink()).startswith("socket:")
        except OSError:
            return None
        return count

    def stop(self) -> None:
        """End its process group, and wait for the end."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.poll() is not None:
                return
            os.killpg(self._child.pid, number)
            until = time.monotonic() + GRACE_S
            while self.poll() is None and time.monotonic() < until:
                time.sleep(0.02)


class Clock:
    """Its waits are not interrupted by signals: for undoing changes."""

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """A subclass may raise Interrupted."""
        time.sleep(seconds)


class System(Clock):
    """Clock, signals and processes of this machine, for a trial.

    `cpu_stat` are the files where the container's cgroup may be. Engines inherit the `held`
    descriptors, so that an engine that outlives this process still holds the lab (`lock`).
    `shared`: all parts of the lab run on this machine; otherwise its CPU counters are unknown."""

    def __init__(
        self,
        cpu_stat: Sequence[Path] = CPU_STAT,
        held: Sequence[int] = (),
        *,
        shared: bool = True,
    ) -> None:
        self._cpu_stat = cpu_stat
        self._held = tuple(held)
        self._shared = shared
        self._stop: int | None = None

    def catch_signals(self) -> None:
        """SIGINT and SIGTERM make the next `sleep` raise Interrupted. From the main thread."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask_to_stop)

    def _ask_to_stop(self, number: int, _frame: object) -> None:
        self._stop = number

    def now(self) -> datetime:
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Wait in short steps. Raises Interrupted after a signal."""
        until = time.monotonic() + seconds
        while True:
            if self._stop is not None:
                raise Interrupted(f"stopped by {signal.Signals(self._stop).name}")
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, 0.1))

    def start(self, argv: Sequence[str], output: Path, stdin: str = "") -> Process:
        """Start an engine, standard output and error to the file. Ctrl-C at the terminal does not
        reach it, as it has another session. Raises EngineError, CannotWrite."""
        with writing(output):
            file = output.open("wb")
        with file, TemporaryFile() as words:
            words.write(stdin.encode())
            words.seek(0)
            try:
                child = subprocess.Popen(
                    argv,
                    stdin=words,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=self._held,
                )
            except OSError as failure:
                raise EngineError(f"cannot start {argv[0]}: {failure.strerror}") from None
        return Process(child)

    def cpus(self) -> int:
        return os.cpu_count() or 1

    def own_cpus(self) -> int:
        """How many CPUs this container may use, whatever `pin` has set."""
        pinned = os.sched_getaffinity(0)
        try:
            # The kernel leaves out what the container may not use (sched_setaffinity(2)).
            os.sched_setaffinity(0, range(self.cpus()))
            return len(os.sched_getaffinity(0))
        finally:
            os.sched_setaffinity(0, pinned)

    def host_cpu(self) -> HostCpu | None:
        """The first line of /proc/stat (proc(5)). None if it is missing or not `shared`."""
        line = _text(STAT).partition("\n")[0] if self._shared else ""
        if not line:
            return None
        user, nice, system, idle, iowait, irq, softirq, steal = map(float, line.split()[1:9])
        total = user + nice + system + idle + iowait + irq + softirq + steal
        return HostCpu(total=total, idle=idle + iowait, steal=steal)

    def pressure_s(self) -> float | None:
        """The time in which at least one thread of the machine waited for a CPU
        (Documentation/accounting/psi.rst: `some`). None without PSI or if not `shared`."""
        found = re.match("some .*total=([0-9]+)", _text(CPU_PRESSURE)) if self._shared else None
        return int(found[1]) / 1e6 if found else None

    def resent(self) -> int | None:
        """TCP segments retransmitted in this network namespace, without SYNs (proc(5)). None if
        unknown."""
        counts: dict[str, int] = {}
        for path in (NET_SNMP, NET_STAT):
            lines = _text(path).splitlines()
            for names, values in zip(lines[::2], lines[1::2], strict=False):
                numbers = map(int, values.split()[1:])
                counts.update(zip(names.split()[1:], numbers, strict=False))
        again, connecting = counts.get("RetransSegs"), counts.get("TCPSynRetrans")
        return None if again is None or connecting is None else again - connecting

    def crowd(self, seconds: float) -> tuple[float, float] | None:
        """How much others use the CPUs now: the share of time in which a busy thread waits for a
        CPU, and the share of all CPUs that is busy or stolen apart from that thread. None if not
        `shared`, or if a CPU quota stopped the thread."""
        if not self._shared:
            return None
        quota, before = self.throttled_s(), self.host_cpu()
        begun, used = time.monotonic(), time.thread_time()
        while (length := time.monotonic() - begun) < seconds:
            pass
        ran = min(1.0, (time.thread_time() - used) / length)
        after = self.host_cpu()
        if self.throttled_s() != quota:
            return None
        shares = after.shares_since(before) if before and after else None
        return 1 - ran, max(0.0, sum(shares) - ran / self.cpus()) if shares else 0.0

    def ref(self) -> str | None:
        """The output of `ref`, which takes a second; None if it does not run."""
        try:
            done = subprocess.run(
                (REF,), capture_output=True, check=True, text=True, timeout=REF_TIMEOUT_S
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout

    def throttled_s(self) -> float | None:
        """The time in which a CPU quota stopped this container: `throttled_usec` of cgroups v2,
        `throttled_time` (ns) of v1. None if unknown."""
        for path in self._cpu_stat:
            words = _text(path).split()
            values = dict(zip(words[::2], words[1::2], strict=False))
            for name, unit_s in (("throttled_usec", 1e-6), ("throttled_time", 1e-9)):
                if name in values:
                    return int(values[name]) * unit_s
        return None


def _text(path: Path) -> str:
    """A file of the kernel; empty if it cannot be read."""
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""


def source_ports(path: Path = PORT_RANGE) -> int | None:
    """The number of local ports for connections to one address (ip(7)); None if unknown."""
    ports = [int(port) for port in _text(path).split()]
    return ports[1] - ports[0] + 1 if ports else None


def pin(cpu_set: str) -> None:
    """Keep this process and its later children to a set of CPUs; empty: all. The container may
    still use the others, as a spinner does. Raises LabError."""
    if not cpu_set:
        return
    try:
        os.sched_setaffinity(0, cpus_of(cpu_set))
    except (ValueError, OSError):
        raise LabError(f"LOADGEN_CPUSET={cpu_set} is not a set of this machine's CPUs") from None
