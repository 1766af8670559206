"""What the engine of a load tells while it runs: its lines of JSON, one a second.

The lines are those of pacer (loadgen/pacer). The driver hands them on as they are, up to 0.2 s
after they were written. A scrape a second would find none, one or two of them new, and a rate over
a few scrapes would flicker. So a second counts from HOLD_S after its end, on one even clock.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from lab.errors import WordError
from lab.live.agent.trial import Trial
from lab.live.clock import Clock

# More than a line may be late by, and less than anybody waits for.
HOLD_S = 0.5
# Series of a phase exist at zero so many seconds before its first: a scrape and the hold.
AHEAD_S = 2


@dataclass(frozen=True, slots=True)
class Times:
    """A histogram: (upper end of a bucket in microseconds, count), and the sum of all."""

    sum_us: int
    buckets: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Second:
    """What happened in a second of the run. ``unfinished`` (sent or waiting), ``waiting`` and
    ``connections`` are levels at its end; ``corrected`` is None in a closed load."""

    due: int = 0
    ok: int = 0
    http_errors: int = 0
    timeouts: int = 0
    socket_errors: Mapping[str, int] = field(default_factory=dict)
    connect_failed: Mapping[str, int] = field(default_factory=dict)
    unfinished: int = 0
    waiting: int = 0
    connections: int = 0
    raw: Times | None = None
    corrected: Times | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """A second of a trial's load. ``begins``: it is the first of all, and nothing is in it."""

    trial: Trial
    phase: str
    second: Second
    begins: bool = False


@dataclass(frozen=True, slots=True)
class _Load:
    warmup_s: float


@dataclass(frozen=True, slots=True)
class _Line:
    """What tells which line it is: the first has the load, the last says how it ended."""

    load: _Load | None = None
    second: int | None = None
    length_s: float = 1.0
    ended: str | None = None


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


_LINE, _SECOND = msgspec.json.Decoder(_Line), msgspec.json.Decoder(Second)
NOTHING = Second()


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
                except msgspec.DecodeError as failure:
                    raise WordError(f"no line of an engine: {failure}") from None

    def due(self) -> Iterator[Told]:
        """Every second that counts by now and was not given yet."""
        while self._held and self._held[0][0] <= self._clock.monotonic():
            yield self._held.popleft()[1]

    def _take(self, trial: Trial, text: bytes) -> None:
        line, now = _LINE.decode(text), self._clock.monotonic()
        if line.load is not None:
            self._stream = _Stream(trial.trial, line.load.warmup_s)
            for second in range(AHEAD_S):
                begins = second == 0
                self._hold(now, Told(trial, self._stream.phase(second), NOTHING, begins))
            return
        stream = self._stream
        if stream is None or stream.trial != trial.trial:
            raise WordError("the first line of this load is missing")
        if line.second is not None:
            stream.ends_s = line.second + line.length_s
            stream.began = min(stream.began, now - stream.ends_s)
            counts_at = stream.began + stream.ends_s + HOLD_S
            phase, ahead = stream.phase(line.second), stream.phase(line.second + AHEAD_S)
            if ahead != phase:
                self._hold(counts_at, Told(trial, ahead, NOTHING))
            self._hold(counts_at, Told(trial, phase, _SECOND.decode(text)))
        elif line.ended is not None:
            # Nothing is in flight any more.
            counts_at = min(now, stream.began + stream.ends_s) + HOLD_S
            last = stream.phase(math.ceil(stream.ends_s) - 1)
            self._hold(counts_at, Told(trial, last, NOTHING))

    def _hold(self, counts_at: float, told: Told) -> None:
        self._held.append((counts_at, told))
