"""One bench at a time, as a process of its own: `lab bench CONC=…`, in this container.

The process is the driver as `make bench` starts it. The driver's own rules have checked its words,
which are arguments and never reach a shell. SIGINT ends it as Ctrl-C does: the load stops, and the
finished trials are kept.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from lab.live.clock import Clock

KEPT_LINES = 200
LONGEST_LINE = 500
# After a SIGINT a bench ends its engines (3 s of grace) and writes its report.
STOP_S = 20.0
# `make` passes words in these variables. Here words are arguments.
NOT_HANDED_ON = ("LAB_WORDS", "LAB_SETTING_NAMES")


@dataclass(frozen=True, slots=True)
class BenchState:
    """The bench started last. ``status`` is None where it has not ended, or none was ever started.
    Times are in seconds since 1970."""

    running: bool = False
    stopping: bool = False
    words: tuple[str, ...] = ()
    started_at: float | None = None
    ended_at: float | None = None
    status: int | None = None
    output: tuple[str, ...] = ()


class Bench:
    """Starts and stops one bench. Lives in one event loop. ``command`` is the command `lab`: the
    seam for tests."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], clock: Clock) -> None:
        self._command = tuple(command)
        self._environ = {
            name: value for name, value in environ.items() if name not in NOT_HANDED_ON
        }
        self._clock = clock
        self._child: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        # Without what `state` reads off the process.
        self._state = BenchState()

    @property
    def running(self) -> bool:
        """Whether a bench is running."""
        return self._reader is not None and not self._reader.done()

    @property
    def state(self) -> BenchState:
        """The state, for the page."""
        running = self.running
        return replace(
            self._state,
            running=running,
            stopping=running and self._state.stopping,
            status=None if running or self._child is None else self._child.returncode,
            output=tuple(self._lines),
        )

    async def start(self, words: Mapping[str, str]) -> None:
        """Start a bench with words that the caller has checked. Raises RuntimeError while one runs,
        and OSError where it cannot be started."""
        if self.running:
            raise RuntimeError("a bench is running")
        given = tuple(f"{word}={value}" for word, value in words.items())
        # In a session of its own, only `stop` reaches it.
        child = await asyncio.create_subprocess_exec(
            *self._command,
            "bench",
            *given,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=self._environ,
            start_new_session=True,
        )
        self._child = child
        self._lines.clear()
        self._state = BenchState(words=given, started_at=self._clock.wall())
        self._reader = asyncio.create_task(self._read(child), name="bench")

    def stop(self) -> bool:
        """Ask the bench to end; False where none runs. Asking twice changes nothing."""
        if not self.running or self._child is None:
            return False
        self._state = replace(self._state, stopping=True)
        with suppress(ProcessLookupError):
            self._child.send_signal(signal.SIGINT)
        return True

    async def close(self) -> None:
        """End the bench that runs, by force if need be, and wait for its end."""
        if not self.stop() or self._reader is None or self._child is None:
            return
        _, late = await asyncio.wait([self._reader], timeout=STOP_S)
        if late:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            await self._reader

    async def _read(self, child: asyncio.subprocess.Process) -> None:
        assert child.stdout is not None  # noqa: S101 - it was asked for
        rest = ""
        while chunk := await child.stdout.read(4096):
            *lines, rest = (rest + chunk.decode(errors="replace")).split("\n")
            self._lines.extend(line.rstrip()[:LONGEST_LINE] for line in lines if line.strip())
            rest = rest[:LONGEST_LINE]
        if rest.strip():
            self._lines.append(rest.rstrip())
        await child.wait()
        self._state = replace(self._state, ended_at=self._clock.wall())
