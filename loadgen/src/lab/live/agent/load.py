"""What the engine of a load tells while it runs: its lines of JSON, one a second.

The lines are those of pacer (go/pacer). The driver hands them on as they are, up to 0.2 s
after they were written. A scrape a second would find none, one or two of them new, and a rate over
a few scrapes would flicker. So a second counts from HOLD_S after its end, on one even clock.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from lab.errors import WordError
from lab.live.agent.trial import Trial
from lab.live.clock import Clock
from lab.load.engines.pacer_output import Head, Line, Times, meant

# More than a line may be late by, and less than anybody waits for.
HOLD_S = 0.5
# Latencies of a phase exist at zero so many seconds before its first: a scrape and the hold.
AHEAD_S = 2


@dataclass(frozen=True, slots=True)
class Told:
    """A second of a trial's load. ``begins``: it is the first of all, and nothing is in it."""

    trial: Trial
    phase: str
    second: Line
    begins: bool = False


@dataclass(slots=True)
class _Stream:
    """The load of one trial. ``began`` is when it began (monotonic), as the promptest line tells;
    ``ends_s`` is the end of its last second."""

    trial: str
    warmup_s: float
    began: float = math.inf
    ends_s: float = 0.0

    def phase(self, second: int) -> str:
        return "warmup" if second < self.warmup_s else "measure"


NOTHING = Line(0, 1.0, 0, 0, 0, 0, {}, {}, 0, {}, 0, 0, 0, Times(), Times(), Times(), Times())


class LoadLines:
    """Takes the lines of one load after the other, and gives each second when it counts. Lives in
    one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stream: _Stream | None = None
        self._held: deque[tuple[float, Told]] = deque()

    def take(self, trial: Trial, body: bytes) -> None:
        """Whole lines of the trial's engine, in their order; the first ever is its header. What is
        no JSON is for the driver. Raises WordError."""
        for line in body.splitlines():
            if line.startswith(b"{"):
                try:
                    self._take(trial, line)
                except (ValueError, RecursionError) as failure:
                    raise WordError(f"no line of an engine: {failure}") from None

    def due(self) -> Iterator[Told]:
        """Every second that counts by now and was not given yet."""
        while self._held and self._held[0][0] <= self._clock.monotonic():
            yield self._held.popleft()[1]

    def _take(self, trial: Trial, text: bytes) -> None:
        line, now = meant(text), self._clock.monotonic()
        if isinstance(line, Head):
            self._stream = _Stream(trial.trial, line.load.warmup_s if line.load else 0.0)
            for second in range(AHEAD_S):
                begins = second == 0
                self._hold(now, Told(trial, self._stream.phase(second), NOTHING, begins))
            return
        stream = self._stream
        if stream is None or stream.trial != trial.trial:
            raise WordError("the first line of this load is missing")
        if isinstance(line, Line):
            stream.ends_s = line.second + line.length_s
            stream.began = min(stream.began, now - stream.ends_s)
            counts_at = stream.began + stream.ends_s + HOLD_S
            phase, ahead = stream.phase(line.second), stream.phase(line.second + AHEAD_S)
            if ahead != phase:
                self._hold(counts_at, Told(trial, ahead, NOTHING))
            self._hold(counts_at, Told(trial, phase, line))
        else:
            # Nothing is in flight any more.
            counts_at = min(now, stream.began + stream.ends_s) + HOLD_S
            last = stream.phase(math.ceil(stream.ends_s) - 1)
            self._hold(counts_at, Told(trial, last, NOTHING))

    def _hold(self, counts_at: float, told: Told) -> None:
        self._held.append((counts_at, told))
