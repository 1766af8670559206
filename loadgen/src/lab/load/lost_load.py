"""Whether a trial's load is lost beyond doubt, from what its engine tells while it runs.

It is lost once what the objective allows of the whole window is spent several times over, whatever
still comes, and nothing recovers (docs/experiments.md, capacity). Every answer of the window was
waited for when the window opened, or was due in it: so nobody needs to wait for its end to know how
many there can be at most.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from lab.load.engines.base import Schedule
from lab.load.engines.pacer import Line, meant
from lab.model import GivenUp, GivesUp, TrialPlan, needed_samples

# So many seconds of the window are measured in any case: the verdict on what gave way is of them.
LEAST_S = 5
# In so many seconds on end the load must be lost.
ON_END_S = 3
# So many times what would break the objective by itself.
DOUBT = 2.0
# What shows only after this share of the window ends nothing: then the whole window tells more.
IN_TIME = 0.5
# Arrivals at random are above their mean by more than this many deviations in no window.
DEVIATIONS = 6.0


@dataclass(slots=True)
class LostLoad:
    """Hears the lines of one trial's load. `rps` are offered; its window has the lines of
    `window_s` seconds from the one numbered `opens` on."""

    rule: GivesUp
    rps: int
    opens: int
    window_s: int
    random: bool
    _waiting: int = 0
    _seconds: int = 0
    _ok: int = 0
    _bad: int = 0
    _answers: int = 0
    _late: Counter[float] = field(default_factory=Counter)
    _last: deque[Line] = field(default_factory=lambda: deque(maxlen=ON_END_S))

    @classmethod
    def of(cls, plan: TrialPlan, schedule: Schedule) -> LostLoad | None:
        """None where the trial always goes on to its end, and where its engine tells nothing."""
        if plan.gives_up is None or plan.offered_rps is None or not schedule.streams:
            return None
        opens = round(schedule.window_offset_s)
        random = plan.arrivals != "constant"
        return cls(plan.gives_up, plan.offered_rps, opens, plan.duration_s, random)

    def hear(self, lines: Iterable[str]) -> GivenUp | None:
        """Why the load is lost by these next lines, and after how many seconds of the window; None
        where it is not, may recover, or where it is too early or too late to say. A line that is
        none of the engine's is for whoever reads its output."""
        for text in lines:
            with suppress(msgspec.DecodeError):
                line = meant(text.encode())
                if isinstance(line, Line) and self._count(line):
                    whys = [*self._too_late(), *self._failed()]
                    if whys:
                        return GivenUp(self._seconds, " and ".join(whys))
        return None

    def _count(self, line: Line) -> bool:
        """Add a second. Whether the load may be called lost after it."""
        if line.second < self.opens:
            self._waiting = line.unfinished
            return False
        self._seconds += 1
        if self._seconds > IN_TIME * self.window_s:
            return False
        self._ok += line.ok
        self._bad += _bad(line)
        self._answers += line.ok + line.http_errors
        for limit_ms, _ in self.rule.late:
            # Who gets no answer waits longer than any that gets one (lab.judge.slo).
            self._late[limit_ms] += _above(line, limit_ms) + line.lost
        self._last.append(line)
        # Of fewer answers a gate would say that they are too few.
        return self._seconds >= LEAST_S and self._answers >= needed_samples(0.95)

    @property
    def _most(self) -> float:
        """How many requests can end in the whole window at most."""
        due = float(self.rps * self.window_s)
        if self.random:
            due += DEVIATIONS * math.sqrt(due)
        return self._waiting + due

    def _too_late(self) -> Iterator[str]:
        """Too many requests were late, and more wait than are answered in the time that is
        allowed: so these will be late too (Little's law)."""
        waiting = [line.unfinished for line in self._last]
        for limit_ms, share in self.rule.late:
            late = self._late[limit_ms]
            stuck = min(waiting) > self.rps * limit_ms / 1000 and waiting[-1] >= waiting[0]
            if stuck and late > DOUBT * share * self._most:
                yield (
                    f"{late / (self._ok + self._bad):.0%} of the requests took more than "
                    f"{limit_ms:g} ms, and {waiting[-1]:,} requests waited"
                )

    def _failed(self) -> Iterator[str]:
        """Too many requests failed, and as many still do."""
        allowed = DOUBT * self.rule.error_share
        still = all(_bad(line) > allowed * (line.ok + _bad(line)) for line in self._last)
        if still and self._bad > allowed * self._most:
            yield f"{self._bad / (self._ok + self._bad):.0%} of the requests failed"


def _bad(line: Line) -> int:
    return line.http_errors + line.lost


def _above(line: Line, limit_ms: float) -> int:
    buckets = line.corrected.buckets if line.corrected else ()
    return sum(count for upper_us, count in buckets if upper_us > 1000 * limit_ms)
