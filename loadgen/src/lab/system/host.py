"""The operating system as the driver needs it: time, engine processes, CPU counters.

Everything that `load` needs goes through `System`: tests have one of their own, without processes
and without waiting.
"""

from __future__ import annotations

import os
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
CPU_PRESSURE = Path("/proc/pressure/cpu")
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
    """How long a process' threads waited for a CPU while they could have run, summed over the
    threads, and in how many turns on one."""

    wait_s: float
    slices: int


class Process:
    """A running engine, in a process group of its own; collects its resource usage with wait4."""

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
        """CPU seconds it used so far; after its end, all it used."""
        if self._status is None:
            # Fields 14 and 15 of proc(5) stat, after the name in parentheses.
            with suppress(OSError):
                text = Path(f"/proc/{self._child.pid}/stat").read_text(encoding="ascii")
                fields = text.rpartition(")")[2].split()
                self._cpu_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return self._cpu_s

    def turns(self) -> Turns | None:
        """Its turns so far; None if the system has no such figures. A thread that has ended counts
        as it was at the last call."""
        for path in Path(f"/proc/{self._child.pid}/task").glob("*/schedstat"):
            # A thread may have ended just now.
            with suppress(OSError, ValueError):
                # CPU time, waiting time (both ns), turns: Documentation/scheduler/sched-stats.
                _, wait_ns, slices = path.read_text(encoding="ascii").split()
                self._turns[path.parent.name] = Turns(int(wait_ns) / 1e9, int(slices))
        if not self._turns:
            return None
        turns = self._turns.values()
        return Turns(sum(each.wait_s for each in turns), sum(each.slices for each in turns))

    def sockets(self) -> int | None:
        count = 0
        try:
            # One link per open file, a socket's is called socket:[inode] (proc(5)).
            for path in Path(f"/proc/{self._child.pid}/fd").iterdir():
                with suppress(OSError):  # It may have been closed just now.
                    count += str(path.readlink()).startswith("socket:")
        except OSError:
            return None
        return count

    def stop(self) -> None:
        """End its process group, by force if need be, and wait for the end."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.poll() is not None:
                return
            os.killpg(self._child.pid, number)
            until = time.monotonic() + GRACE_S
            while self.poll() is None and time.monotonic() < until:
                time.sleep(0.02)


class Clock:
    """Time to wait by. No signal cuts its waits short: for putting things back."""

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait. Raises Interrupted when the user asked to stop, if this clock hears that."""
        time.sleep(seconds)


class System(Clock):
    """Clock, signals and processes of this machine, for a trial.

    `cpu_stat` are the places to look for the container's own cgroup; `held` are descriptors that
    engines inherit, so that one that outlives this process holds the lab (`lock`). `shared`: the
    lab's parts share this machine, else its CPUs say nothing of theirs."""

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
        """Wait in short steps, so that a signal is heard soon."""
        until = time.monotonic() + seconds
        while True:
            if self._stop is not None:
                raise Interrupted(f"stopped by {signal.Signals(self._stop).name}")
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, 0.1))

    def start(self, argv: Sequence[str], output: Path, stdin: str = "") -> Process:
        """Start an engine, standard output and error to the file. It has a session of its own, so
        that a Ctrl-C at the terminal reaches the driver only. Raises EngineError, CannotWrite."""
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
        """How many of them this container may use. `pin` does not count."""
        pinned = os.sched_getaffinity(0)
        try:
            # The kernel leaves out what the container may not use (sched_setaffinity(2)).
            os.sched_setaffinity(0, range(self.cpus()))
            return len(os.sched_getaffinity(0))
        finally:
            os.sched_setaffinity(0, pinned)

    def host_cpu(self) -> HostCpu | None:
        """The first line of /proc/stat (proc(5)), which a container sees too; None without it, and
        for a lab on several machines."""
        with suppress(OSError):
            if self._shared:
                values = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
                user, nice, system, idle, iowait, irq, softirq, steal = map(float, values[1:9])
                total = user + nice + system + idle + iowait + irq + softirq + steal
                return HostCpu(total=total, idle=idle + iowait, steal=steal)
        return None

    def pressure_s(self) -> float | None:
        """For how long at least one thread of the machine waited for a CPU so far
        (Documentation/accounting/psi.rst: `some`). None without PSI, and as `host_cpu`."""
        with suppress(OSError, ValueError):
            if self._shared:
                some = CPU_PRESSURE.read_text(encoding="ascii").split("\n", 1)[0]
                return int(some.rpartition("total=")[2]) / 1e6
        return None

    def resent(self) -> int | None:
        """How many segments TCP has sent again in this network namespace so far, attempts to
        connect left out (proc(5)). None if unknown."""
        counts: dict[str, int] = {}
        for path in (NET_SNMP, NET_STAT):
            with suppress(OSError, ValueError):
                lines = path.read_text(encoding="ascii").splitlines()
                for names, values in zip(lines[::2], lines[1::2], strict=False):
                    numbers = map(int, values.split()[1:])
                    counts.update(zip(names.split()[1:], numbers, strict=False))
        again, connecting = counts.get("RetransSegs"), counts.get("TCPSynRetrans")
        return None if again is None or connecting is None else again - connecting

    def crowd(self, seconds: float) -> tuple[float, float] | None:
        """How much others use the CPUs now: the share of its time that a thread which never rests
        waits for one, and the share of all CPUs that is busy or stolen beside that thread. None for
        a lab on several machines, and if a CPU quota kept the thread waiting."""
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
        """How long a CPU quota kept this container from running so far: `throttled_usec` of
        cgroups' version 2, `throttled_time` (ns) of version 1. None if unknown."""
        for path in self._cpu_stat:
            with suppress(OSError):
                words = path.read_text(encoding="ascii").split()
                values = dict(zip(words[::2], words[1::2], strict=False))
                for name, unit_s in (("throttled_usec", 1e-6), ("throttled_time", 1e-9)):
                    if name in values:
                        return int(values[name]) * unit_s
        return None


def source_ports(path: Path = PORT_RANGE) -> int | None:
    """How many ports one address leaves this network namespace (ip(7)); None if unknown."""
    try:
        low, high = map(int, path.read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return None
    return high - low + 1


def pin(cpu_set: str) -> None:
    """Keep this process, and all that it starts from now on, to a set of CPUs; an empty one is all
    of them. Not the container: a spinner takes its share of the others too. Raises LabError."""
    if not cpu_set:
        return
    try:
        os.sched_setaffinity(0, cpus_of(cpu_set))
    except (ValueError, OSError):
        raise LabError(f"LOADGEN_CPUSET={cpu_set} is not a set of this machine's CPUs") from None
