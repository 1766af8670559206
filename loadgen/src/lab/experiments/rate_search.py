"""The search for the highest rate that is held, from how often each was held and broke. Pure."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

# Two trials of a rate that agree decide it, before a third that does not. Two that say nothing of
# the server leave it unknown.
TRIES = 2
# So many trials held each rate that is the low end of a search's interval, and so many broke each
# that is its high end, without one that says otherwise there or beyond. What that is worth is
# simulated in test_capacity.py. Launches after the first repeat the search, so they need fewer.
AGREE = 3
AGREE_LATER = 2
# A search that disagrees with itself for so long is of no steady server.
MOST_TRIALS = 60


@dataclass(frozen=True, slots=True)
class Tried:
    """How many trials of a rate held it, did not, or say nothing."""

    rate: int
    held: int = 0
    broke: int = 0
    untold: int = 0

    @property
    def is_held(self) -> bool:
        """Held so far. One trial is enough on the way: a higher rate that is held confirms it, and
        the highest is tried again."""
        return self.held >= TRIES or (self.held > 0 and not self.broke and self.untold < TRIES)

    @property
    def is_over(self) -> bool:
        """Whether it limits the search from above: it broke, or nobody can tell."""
        return not self.is_held and (self.broke >= TRIES or self.untold >= TRIES)

    @property
    def is_open(self) -> bool:
        """Whether it must be tried once more at once."""
        return not self.is_held and not self.is_over


# The highest rate that was held, and the lowest that was not, if there is one.
Bracket = tuple[int, int | None]


@dataclass(frozen=True, slots=True)
class Way:
    """How a search goes: from the rate `start`, up to `most`, until the highest rate that was held
    and the lowest that was not differ by at most the share `resolution`. `agree`: how many trials
    must agree at each end of its interval. `around`: what another search found, which this one is
    to confirm."""

    start: int
    most: int
    resolution: float
    agree: int = AGREE
    around: Bracket | None = None

    def next(self, tried: Sequence[Tried]) -> int | None:
        """The next rate after these, in ascending order; None: the search is over."""
        if not tried:
            return self.start
        if sum(one.held + one.broke + one.untold for one in tried) >= MOST_TRIALS:
            return None
        for one in tried:
            if one.is_open:
                return one.rate
        low, top = bracket(tried)
        if low is None:
            # Nobody can tell of a server that is away what it holds at a lower rate either.
            lower = top is not None and top.broke >= TRIES and top.rate > 1
            return self._below(top.rate) if top is not None and lower else None
        if top is None and low.rate < self.most:
            return min(self._above(low.rate), self.most)
        if top is not None and top.rate - low.rate > max(1, self.resolution * low.rate):
            return _middle(low.rate, top.rate)
        if low.held < TRIES:
            return low.rate
        return self._end(tried, top)

    def _above(self, low: int) -> int:
        if self.around is None:
            return 2 * low
        held, top = self.around
        if low <= held:
            return top or 2 * low
        return low + 2 * (low - held)

    def _below(self, top: int) -> int:
        if self.around is None:
            return top // 2
        held, over = self.around
        gap = max((over or held) - held, 2 * (held - top), 1)
        return max(top - gap, top // 2, 1)

    def _end(self, tried: Sequence[Tried], top: Tried | None) -> int | None:
        """The next trial that the ends of the interval need: each must be agreed on, unless trials
        of it say nothing any more."""
        step = 1 + self.resolution
        low, high = ends(tried)
        if low is None:
            least = tried[0].rate
            return min(math.floor(least / step), least - 1) if least > 1 else None
        if low.held < self.agree and low.untold < TRIES:
            return low.rate
        if top is None or top.broke < TRIES:
            return None
        if high is None:
            most = tried[-1].rate
            over = max(math.ceil(most * step), most + 1)
            return over if over <= self.most and not tried[-1].untold else None
        more = high.broke < self.agree and high.untold < TRIES
        return high.rate if more else None

    def left(self, tried: Sequence[Tried]) -> int:
        """The most trials that are left, give or take one, while none disagrees with another."""
        low, top = bracket(tried)
        if top is None:
            # The rungs of the ramp from here on, each the last that is held.
            reached = low.rate if low else self.start
            rungs = range(math.ceil(math.log2(self.most / reached)) + 1)
            guesses = [0, *(reached << rung for rung in rungs)]
        elif low is None:
            guesses = [0, *(top.rate >> rung for rung in range(1, top.rate.bit_length()))]
        else:
            # A bisection takes about as many steps whichever way it goes.
            width = top.rate - 1 - low.rate
            guesses = [low.rate + width * part // 8 for part in range(9)]
        return max(self._left(tried, guess) for guess in guesses)

    def _left(self, tried: Sequence[Tried], capacity: int) -> int:
        """How many trials are left if just the rates up to `capacity` are held."""
        known, count = {one.rate: one for one in tried}, 0
        while (rate := self.next([known[at] for at in sorted(known)])) is not None:
            one = known.get(rate, Tried(rate))
            held = rate <= capacity
            known[rate] = dataclasses.replace(
                one, held=one.held + held, broke=one.broke + (not held)
            )
            count += 1
        return count


def _middle(low: int, high: int) -> int:
    """The geometric middle: as far from both, as a share."""
    return min(max(round(math.sqrt(low * high)), low + 1), high - 1)


def bracket(tried: Sequence[Tried]) -> tuple[Tried | None, Tried | None]:
    """The highest rate that is held below the lowest that is not, and that lowest one; of rates in
    ascending order."""
    top = next((one for one in tried if one.is_over), None)
    below = [one for one in tried if one.is_held and (top is None or one.rate < top.rate)]
    return (below[-1] if below else None), top


def ends(tried: Sequence[Tried]) -> tuple[Tried | None, Tried | None]:
    """The highest rate up to which no trial broke, and the lowest from which on none held. What
    disagrees lies between them."""
    broke = next((one.rate for one in tried if one.broke or one.is_over), math.inf)
    held = next((one.rate for one in reversed(tried) if one.held), 0)
    low = [one for one in tried if one.held and one.rate < broke]
    high = [one for one in tried if one.broke and one.rate > held]
    return (low[-1] if low else None), (high[0] if high else None)
