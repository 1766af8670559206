"""The interface of a load engine: a command line out, raw files in."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from lab.judge.checks import data
from lab.model import Reading, Remark, TrialPlan, answered

# Above any latency expected of the lab, so that a slow answer is measured, not cut off.
REQUEST_TIMEOUT_S = 30
# No server here answers more: an empty handler of the JDK's HttpServer did 55,000 on two cores.
MOST_RPS = 60_000
PROBE_DEADLINE_S = 10.0
MAX_THREADS = 8
# Of an engine that counts the latencies of errors among those of answers, at most this share of the
# answers may be errors: a tenth of what p99 leaves above it. Quick or slow, they then move no
# percentile by more.
MOST_MIXED = 0.001
# For engines without a warm-up of their own.
DEFAULT_WARMUP_S = 10


@dataclass(frozen=True, slots=True)
class StartCheck:
    """How a bad start shows: `after_s` seconds after it, the engine has fewer than `least_sockets`
    sockets open. The engine is then ended and started again. `why` is kept if that did not help.
    """

    after_s: float
    least_sockets: int
    why: Remark


@dataclass(frozen=True, slots=True)
class Schedule:
    """How an engine will run a trial. All files are in the trial's raw folder.

    `warm_up` is a run of its own before the measured run, for engines that cannot leave their first
    seconds out. The measured window starts `window_offset_s` after the start of the measured run
    and lasts `window_s`. The measured run takes `run_s`, its standard output goes to the file
    `output`, and `start_check` tells whether its start was good. `files` are written before the
    start, text by name, and `stdin` is what it reads; that alone is not stored. `streams`: each
    line of `output` is whole when it is written, and tells of the load while it runs.
    """

    warm_up: tuple[str, ...] | None
    warm_up_s: float
    argv: tuple[str, ...]
    output: str
    run_s: float
    window_offset_s: float
    window_s: float
    start_check: StartCheck | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""
    streams: bool = False

    @property
    def total_s(self) -> float:
        """Both runs together, in seconds."""
        return self.warm_up_s + self.run_s


class Engine(Protocol):
    """One load engine. Stateless."""

    @property
    def name(self) -> str:
        """The engine's word in ENGINE=."""

    def answer_bytes(self, plan: TrialPlan) -> int:
        """Bytes of disk for each answer of a run, at most; 0 where these do not grow with them."""

    def version(self) -> str | None:
        """The engine's own version text; None where it does not run on this machine."""

    def schedule(self, plan: TrialPlan, raw: Path) -> Schedule:
        """How to run the plan. Raises WordError when the plan's warm-up is impossible."""

    def settled_s(self, plan: TrialPlan, opens_s: float, lines: Sequence[str]) -> int | None:
        """The length of the window in whole seconds if it may end here, by the plan's `limits`:
        `lines` are all of its output so far, and the window began `opens_s` after the start. None
        where it goes on, and always of an engine that does not stream."""

    def condense(self, plan: TrialPlan, raw: Path) -> None:
        """After the run: replace large raw files by small ones with the same information. Does
        nothing where that is done. Raises RawDataError and CannotWrite; the large files stay."""

    def read(self, plan: TrialPlan, raw: Path) -> Reading:
        """The raw files as a complete reading. Raises RawDataError naming file and line.

        Depends on nothing but the plan and the files, so old raw data can be read again.
        """


def told_apart(reading: Reading) -> Reading:
    """The reading without latencies where these may be the errors': the engine counts both in one,
    and more than MOST_MIXED of the answers are errors. Where it counts errors in its whole run
    only, all of them may be in the window."""
    errors = min(answered(reading)[1], reading.samples)
    if reading.all_ms is not None or errors <= MOST_MIXED * reading.samples:
        return reading
    mixed = data.latencies_mixed.remark(errors=errors, answers=reading.samples, allowed=MOST_MIXED)
    return replace(
        reading,
        raw=None,
        corrected=None,
        all_ms=reading.answer_ms,
        remarks=(*reading.remarks, mixed),
    )


def first_line(argv: tuple[str, ...], marker: str) -> str | None:
    """The first line with `marker` in it that a command prints about its version.

    Searches standard output and standard error, and ignores the exit status: wrk2 exits with 1
    after printing its version.
    """
    if shutil.which(argv[0]) is None:
        return None
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_DEADLINE_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    for line in (done.stdout + done.stderr).splitlines():
        if marker in line:
            return line.strip()
    return None


def output_bytes(
    engine: Engine, schedule: Schedule, plan: TrialPlan, expected_rps: float | None
) -> float:
    """How much disk the engine's output of a trial takes at most. `expected_rps` is the rate that
    is predicted of it, None where nobody can tell: then it is MOST_RPS."""
    rps = plan.offered_rps or min(MOST_RPS, 2 * expected_rps if expected_rps else MOST_RPS)
    return engine.answer_bytes(plan) * rps * schedule.total_s


def last_line(output: Path, otherwise: str) -> str:
    """The last line of text in an engine's output; `otherwise` where there is none."""
    lines = output.read_text(errors="replace").split("\n") if output.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), otherwise)


def cores() -> int:
    """The CPUs that this process may use: its CPU set, without regard to a quota."""
    return len(os.sched_getaffinity(0))


def threads_for(concurrency: int, cores: int) -> int:
    """The most threads that divide the connections evenly, up to one per core and MAX_THREADS.

    wrk2 opens connections / threads in each thread, rounded down.
    """
    most = min(cores, MAX_THREADS, concurrency)
    return next(threads for threads in range(most, 0, -1) if concurrency % threads == 0)
