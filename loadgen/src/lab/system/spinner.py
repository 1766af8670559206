"""Uses a share of the machine's CPUs during a trial: one process for each CPU, in the driver's
container.

Processes need no help of the host, end with the driver, and their CPU time is known exactly. The
engine shares the container's weight with them, which is greater than that of any other part
(compose.yaml). If the engine starves anyway, its checks make the trial invalid.

    python -m lab.system.spinner PARENT SHARE SECONDS     one process: a duty cycle on one CPU
"""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.system.host import Process, System

PERIOD_S = 0.05
# CPU time that it could not get is made up for this long.
CATCH_UP_S = 1.0


@dataclass(frozen=True, slots=True)
class Spinner:
    """The running processes."""

    processes: Sequence[Process] = ()

    def taken_s(self) -> float | None:
        """CPU seconds used so far per CPU of the machine; None without processes."""
        if not self.processes:
            return None
        return sum(process.cpu_s() for process in self.processes) / len(self.processes)


@contextmanager
def spinning(system: System, share: float | None, most_s: float) -> Iterator[Spinner]:
    """Use this share of every CPU (None: of none) while the context lasts, at most `most_s`
    seconds. Raises LabError if this container may not use every CPU: then only some parts of the
    lab would lose CPU time."""
    cpus = system.cpus() if share is not None else 0
    if cpus and system.own_cpus() < cpus:
        raise LabError(
            f"no spinner on {system.own_cpus()} of {cpus} CPUs: the driver may not use the others"
        )
    argv = (sys.executable, "-m", __name__, f"{os.getpid()}", f"{share}", f"{most_s:.0f}")
    processes: list[Process] = []
    with ExitStack() as started:
        for _ in range(cpus):
            processes.append(system.start(argv, Path(os.devnull)))
            started.callback(processes[-1].stop)
        yield Spinner(processes)


def spin(parent: int, share: float, seconds: float) -> None:
    """Use this share of a CPU for so many seconds, as long as the `parent` process runs."""
    until, owed_s = time.monotonic() + seconds, 0.0
    while (begun := time.monotonic()) < until and os.getppid() == parent:
        owed_s = min(owed_s + share * PERIOD_S, share * CATCH_UP_S)
        used_s = time.process_time()
        while time.process_time() - used_s < owed_s and time.monotonic() - begun < PERIOD_S:
            for _ in range(1000):
                pass
        owed_s -= time.process_time() - used_s
        time.sleep(max(0.0, begun + PERIOD_S - time.monotonic()))


if __name__ == "__main__":
    # The driver may be pinned.
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    spin(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
