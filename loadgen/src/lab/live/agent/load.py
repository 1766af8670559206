"""The lines of JSON that the engine of a load (go/pacer) writes, one per second.

The driver passes them on up to 0.2 s after they were written. A scrape per second would find none,
one or two new ones, and a rate over a few scrapes would flicker. Therefore a second counts from
HOLD_S after its end, on one even clock.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping

from lab.errors import WordError
from lab.live.agent.metrics import KEPT_S, LEVELS, SINCE, AgentMetrics, Figures, Latencies
from lab.live.clock import Clock
from lab.load.engines.pacer_output import Head, Line, meant
from lab.system.agent import Phase, Trial

# Longer than a line can be late.
HOLD_S = 0.5


class LoadLines:
    """Takes the lines of one load after the other. Lives in one event loop."""

    def __init__(self, clock: Clock, metrics: AgentMetrics) -> None:
        self._clock = clock
        self._metrics = metrics
        # The load under way: its trial, its begin (monotonic) by the promptest line, and the end of
        # its last second.
        self._figures: Figures | None = None
        self._trial = ""
        self._warmup_s = self._ends_s = 0.0
        self._began = math.inf
        # When each second counts; the end of a load has no line.
        self._held: deque[tuple[float, Line | None]] = deque()

    def take(self, trial: Trial, body: bytes) -> None:
        """Whole lines of the trial's engine in their order, the header first. Other lines than
        JSON are for the driver. Raises WordError."""
        for text in body.splitlines():
            if text.startswith(b"{"):
                try:
                    line = meant(text)
                except (ValueError, RecursionError) as failure:
                    raise WordError(f"no line of an engine: {failure}") from None
                if isinstance(line, Head):
                    self._begin(trial, line)
                elif self._trial == trial.trial:
                    self._hold(line if isinstance(line, Line) else None)
                else:
                    raise WordError("the first line of this load is missing")

    def count(self) -> None:
        """Count every second that is due. Before each scrape."""
        while self._figures and self._held and self._held[0][0] <= self._clock.monotonic():
            _, line = self._held.popleft()
            if line is None:  # Nothing is in flight any more.
                self._figures.counts.update(dict.fromkeys(LEVELS, 0))
            else:
                phase: Phase = "warmup" if line.second < self._warmup_s else "measure"
                _count(line, self._figures, self._figures.keep(phase, self._kept_until()))

    def _begin(self, trial: Trial, head: Head) -> None:
        is_open = trial.mode == "open"
        counts = (*LEVELS, "connect_failures", *(["requests_offered"] if is_open else []))
        since = SINCE if is_open else ("sent",)
        self._figures = self._metrics.begin(trial, "load", counts, since)
        self._trial, self._held = trial.trial, deque()
        self._began, self._ends_s = math.inf, 0.0
        self._warmup_s = head.load.warmup_s if head.load else 0.0
        self._figures.keep("warmup" if self._warmup_s > 0 else "measure", self._kept_until())

    def _hold(self, line: Line | None) -> None:
        now = self._clock.monotonic()
        if line is not None:
            self._ends_s = line.second + line.length_s
            self._began = min(self._began, now - self._ends_s)
        self._held.append((min(now, self._began + self._ends_s) + HOLD_S, line))

    def _kept_until(self) -> float:
        return self._clock.monotonic() + KEPT_S


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
