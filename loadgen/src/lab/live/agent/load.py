"""What the engine of a load writes while it runs: its lines of JSON, one a second.

The lines are those of pacer (go/pacer). The driver hands them on as they are, up to 0.2 s
after they were written. A scrape a second would find none, one or two of them new, and a rate over
a few scrapes would flicker. So a second counts from HOLD_S after its end, on one even clock.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from lab.errors import WordError
from lab.live.agent.metrics import KEPT_S, LEVELS, SINCE, AgentMetrics, Figures, Latencies
from lab.live.clock import Clock
from lab.load.engines.pacer_output import Head, Line, meant
from lab.system.agent import Phase, Trial

# More than a line may be late by, and less than anybody waits for.
HOLD_S = 0.5


@dataclass(slots=True)
class _Load:
    """The load of one trial. ``began`` is when it began (monotonic), as the promptest line shows;
    ``ends_s`` is the end of its last second."""

    trial: str
    warmup_s: float
    figures: Figures
    began: float = math.inf
    ends_s: float = 0.0

    def phase(self, second: int) -> Phase:
        return "warmup" if second < self.warmup_s else "measure"


class LoadLines:
    """Takes the lines of one load after the other. Lives in one event loop."""

    def __init__(self, clock: Clock, metrics: AgentMetrics) -> None:
        self._clock = clock
        self._metrics = metrics
        self._load: _Load | None = None
        # When each second counts; the end of a load has no line.
        self._held: deque[tuple[float, _Load, Line | None]] = deque()

    def take(self, trial: Trial, body: bytes) -> None:
        """Whole lines of the trial's engine, in their order; the first ever is its header. What is
        no JSON is for the driver. Raises WordError."""
        for line in body.splitlines():
            if line.startswith(b"{"):
                try:
                    self._take(trial, line)
                except (ValueError, RecursionError) as failure:
                    raise WordError(f"no line of an engine: {failure}") from None

    def count(self) -> None:
        """Count every second that is due by now. Comes before each scrape."""
        while self._held and self._held[0][0] <= self._clock.monotonic():
            _, load, line = self._held.popleft()
            if line is None:  # Nothing is in flight any more.
                load.figures.counts.update(dict.fromkeys(LEVELS, 0))
            else:
                _count(line, load.figures, self._latencies(load, line.second))

    def _take(self, trial: Trial, text: bytes) -> None:
        line, now = meant(text), self._clock.monotonic()
        if isinstance(line, Head):
            is_open = trial.mode == "open"
            counts = (*LEVELS, "connect_failures", *(["requests_offered"] if is_open else []))
            since = SINCE if is_open else ("sent",)
            figures = self._metrics.begin(trial, "load", counts, since)
            self._load = _Load(trial.trial, line.load.warmup_s if line.load else 0.0, figures)
            self._latencies(self._load, 0)
            return
        load = self._load
        if load is None or load.trial != trial.trial:
            raise WordError("the first line of this load is missing")
        if isinstance(line, Line):
            load.ends_s = line.second + line.length_s
            load.began = min(load.began, now - load.ends_s)
        counts_at = min(now, load.began + load.ends_s) + HOLD_S
        self._held.append((counts_at, load, line if isinstance(line, Line) else None))

    def _latencies(self, load: _Load, second: int) -> dict[str, Latencies]:
        return load.figures.keep(load.phase(second), self._clock.monotonic() + KEPT_S)


def _count(line: Line, figures: Figures, latencies: Mapping[str, Latencies]) -> None:
    counts, outcomes = figures.counts, figures.outcomes
    counts["requests_in_flight"] = line.unfinished - line.waiting
    counts["requests_waiting"] = line.waiting
    counts["connections_open"] = line.connections
    counts["connect_failures"] += sum(line.connect_failed.values())
    if "requests_offered" in counts:
        counts["requests_offered"] += line.due
    outcomes["ok"] += line.ok
    outcomes["http_error"] += line.http_errors
    outcomes["timeout"] += line.timeouts
    outcomes["error"] += sum(line.socket_errors.values())
    for since, times in (("due", line.corrected), ("sent", line.raw)):
        if times is not None and since in latencies:
            latencies[since].sum_s += times.sum_us / 1e6
            for upper_us, count in times.buckets:
                latencies[since].add(upper_us / 1e6, count)
