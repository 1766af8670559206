"""The search for the highest rate that is held, from how often each was held and broke. Pure."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

# Two trials of a rate that agree decide it, before a third that does not. Two that say nothing of
# the server leave it unknown.
TRIES = 2
# So many trials held each rate that is the low end of a search's interval, and so many broke each
# that is its high end, without one that says otherwise there or beyond. What that is worth is
# simulated in test_capacity.py. Launches after the first repeat the search, so they need fewer, and
# one where it says what the first launch said.
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
    def is_unknown(self) -> bool:
        """Whether nobody can tell."""
        return self.untold >= TRIES and abs(self.held - self.broke) < TRIES


# The highest rate that was held, and the lowest that was not, if there is one.
Bracket = tuple[int, int | None]


@dataclass(frozen=True, slots=True)
class Way:
    """How a search goes: from the rate `start`, up to `most` and down to `least`, until the highest
    rate that was held and the lowest that was not differ by at most the share `resolution`.
    `agree`: how many trials must agree at each end of its interval. `around`: what another search
    found, which this one is to confirm; `breaks`: whether it is sure of the upper end."""

    start: int
    most: int
    resolution: float
    agree: int = AGREE
    around: Bracket | None = None
    least: int = 1
    breaks: bool = True

    def next(self, tried: Sequence[Tried]) -> int | None:
        """The next rate after these, in ascending order; None: the search is over."""
        if not tried:
            return self.start
        if sum(one.held + one.broke + one.untold for one in tried) >= MOST_TRIALS:
            return None
        low, top = bracket(tried)
        if top is not None and not top.is_unknown and _sure(tried, top) < self._tries(top, "broke"):
            return top.rate
        if low is None:
            # Nobody can tell of a server that is away what it holds at a lower rate either.
            lower = top is not None and not top.is_unknown and top.rate > self.least
            return self._below(top.rate) if top is not None and lower else None
        if top is None and low.rate < self.most:
            return min(self._above(low.rate), self.most)
        if top is not None and top.rate - low.rate > max(1, self.resolution * low.rate):
            return _middle(low.rate, top.rate)
        if low.held < self._tries(low, "held"):
            return low.rate
        return self._end(tried, top)

    def confirms(self, rate: int) -> bool:
        """Whether another search found that this is the highest rate that is held."""
        return self.around is not None and rate == self.around[0]

    def _agree(self, one: Tried, outcome: Literal["held", "broke"]) -> int:
        """How many trials must agree on a rate: one is enough where it says of it what the other
        search said."""
        if self.around is None:
            return self.agree
        held, top = self.around
        same = one.rate == held if outcome == "held" else self.breaks and one.rate == top
        return 1 if same else self.agree

    def _tries(self, one: Tried, outcome: Literal["held", "broke"]) -> int:
        return min(TRIES, self._agree(one, outcome))

    def _above(self, low: int) -> int:
        if self.around is None:
            return 2 * low
        held, top = self.around
        if low <= held:
            return top or 2 * low
        return low + 2 * (low - held)

    def _below(self, top: int) -> int:
        if self.around is None:
            return max(top // 2, self.least)
        held, over = self.around
        gap = max((over or held) - held, 2 * (held - top), 1)
        return max(top - gap, top // 2, self.least)

    def _end(self, tried: Sequence[Tried], top: Tried | None) -> int | None:
        """The next trial that the ends of the interval need: each must be agreed on, unless trials
        of it say nothing any more."""
        step = 1 + self.resolution
        low, high = ends(tried)
        if low is None:
            least = tried[0].rate
            lower = max(min(math.floor(least / step), least - 1), self.least)
            return lower if lower < least else None
        if low.held < self._agree(low, "held") and low.untold < TRIES:
            return low.rate
        if top is None or top.is_unknown:
            return None
        if high is None:
            most = tried[-1].rate
            over = max(math.ceil(most * step), most + 1)
            return over if over <= self.most and not tried[-1].untold else None
        more = high.broke < self._agree(high, "broke") and high.untold < TRIES
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
        return max(sum(1 for _ in self.course(guess, tried)) for guess in guesses)

    def course(self, capacity: float, tried: Sequence[Tried] = ()) -> Iterator[Tried]:
        """The trials that are left if just the rates up to `capacity` are held: each as its rate
        stands after it."""
        known = {one.rate: one for one in tried}
        while (rate := self.next([known[at] for at in sorted(known)])) is not None:
            one = known.get(rate, Tried(rate))
            held = rate <= capacity
            known[rate] = dataclasses.replace(
                one, held=one.held + held, broke=one.broke + (not held)
            )
            yield known[rate]


def _middle(low: int, high: int) -> int:
    """The geometric middle: as far from both, as a share."""
    return min(max(round(math.sqrt(low * high)), low + 1), high - 1)


def bracket(tried: Sequence[Tried]) -> tuple[Tried | None, Tried | None]:
    """The highest rate that is held and the lowest that is not, of rates in ascending order: those
    between which the fewest trials are against, as they broke below or held above. Where it is a
    draw the server is believed to hold less. What nobody can tell limits from above."""
    end = next((at for at, one in enumerate(tried) if one.is_unknown), len(tried))

    def against(cut: int) -> int:
        return sum(one.broke for one in tried[:cut]) + sum(one.held for one in tried[cut:end])

    cut = min(range(end + 1), key=against)
    return (tried[cut - 1] if cut else None), (tried[cut] if cut < len(tried) else None)


def _sure(tried: Sequence[Tried], top: Tried) -> int:
    """By how many trials more it broke at `top` than were held there and at any rates above."""
    above = [one.broke - one.held for one in tried if one.rate >= top.rate]
    return min(accumulate(above))


def ends(tried: Sequence[Tried]) -> tuple[Tried | None, Tried | None]:
    """The highest rate up to which no trial broke, and the lowest from which on none held. What
    disagrees lies between them."""
    broke = next((one.rate for one in tried if one.broke or one.is_unknown), math.inf)
    held = next((one.rate for one in reversed(tried) if one.held), 0)
    low = [one for one in tried if one.held and one.rate < broke]
    high = [one for one in tried if one.broke and one.rate > held]
    return (low[-1] if low else None), (high[0] if high else None)
