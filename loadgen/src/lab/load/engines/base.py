"""The interface of a load engine: a command line out, raw files in."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from lab.load.engines.pacer_output import Line
from lab.model import Peak, Reading, Remark, TrialPlan

# Above any latency expected of the lab, so that a slow answer is measured, not cut off.
REQUEST_TIMEOUT_S = 30
PROBE_DEADLINE_S = 10.0


@dataclass(frozen=True, slots=True)
class StartCheck:
    """A bad start has fewer than `least_sockets` sockets open after `after_s`. The engine is then
    started again, `most` times in all; `why` is kept if that did not help."""

    after_s: float
    least_sockets: int
    most: int
    why: Remark


@dataclass(frozen=True, slots=True)
class Schedule:
    """How an engine will run a trial, in its raw folder. Standard output goes to the file `output`.
    `files` are written before the start, text by name, and `stdin` is what it reads; that alone is
    not stored. `streams`: each line of `output` is whole when it is written, and describes the load
    while it runs."""

    argv: tuple[str, ...]
    output: str
    run_s: float
    window_offset_s: float
    window_s: float
    start_check: StartCheck | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""
    streams: bool = False


class Engine(Protocol):
    """One load engine, in one file. Stateless."""

    @property
    def name(self) -> str: ...

    def version(self) -> str | None:
        """The engine's own version text; None if it does not run on this machine."""

    def schedule(self, plan: TrialPlan, raw: Path) -> Schedule:
        """How to run the plan. Raises WordError when the plan's warm-up is impossible."""

    def read(self, plan: TrialPlan, raw: Path) -> Reading:
        """The reading of the plan and the raw files alone. Large files are replaced by small ones
        with the same information, if that is not done yet. Raises RawDataError and CannotWrite; the
        large files stay."""

    def settled_s(self, plan: TrialPlan, opens_s: float, seconds: Sequence[Line]) -> int | None:
        """The length of the window in whole seconds if it may end here, by the plan's `limits`.
        `seconds` are all of the run so far, and the window began `opens_s` after the start."""
        return None

    def peak(self, raw: Path, number: int, peak: Peak) -> Peak:
        """A peak of a spike with what the engine's run of it (`peak_folder`) shows."""
        return peak


def peak_folder(raw: Path, number: int) -> Path:
    """Where the load of a trial's peak is, counted from 1."""
    return raw / f"peak-{number}"


def printed(argv: tuple[str, ...]) -> str:
    """What a command prints, whatever its exit status: wrk2 exits with 1 after its version. Empty
    if it does not run on this machine."""
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
        return ""
    return done.stdout + done.stderr


def last_line(output: Path, otherwise: str) -> str:
    """The last line of text in an engine's output; `otherwise` if there is none."""
    lines = output.read_text(errors="replace").split("\n") if output.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), otherwise)


def cores() -> int:
    """The CPUs that this process may use: its CPU set, without regard to a quota."""
    return len(os.sched_getaffinity(0))
