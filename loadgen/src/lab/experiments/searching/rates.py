"""The search for the highest rate that is held, from how often each was held and broke. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

# Two trials of a rate that agree decide it, before a third that does not. Two that say nothing of
# the server leave it unknown.
TRIES = 2
# So many trials held each rate that is the low end of a search's interval, and so many broke each
# that is its high end, without one that says otherwise there or beyond. Launches after the first
# repeat the search. From six on the interval is that of their median, so one trial at each end of
# each is enough, the one that holds in a longer window. What both are worth is simulated in
# test_capacity_search.py and _launches.py.
AGREE, AGREE_LATER = 3, 1
# A search that has not ended after so many trials disagrees with itself, and what it disagrees on
# lies in its interval: more of the same tells little more. A search that only confirms another one
# has the smaller number.
MOST_TRIALS, MOST_LATER = 36, 12
# A server is away of which nobody can tell so many rates, one below the other, or the only one.
AWAY = 3
# So many rates above one that nobody can tell are tried for one that breaks.
BEYOND = 2


@dataclass(frozen=True, slots=True)
class Tried:
    """How many trials of a rate held it, did not, or say nothing. Of those that held it so many are
    `confirmed`: their windows were long enough for a queue that grows slowly."""

    rate: int
    held: int = 0
    broke: int = 0
    untold: int = 0
    confirmed: int = 0

    @property
    def is_unknown(self) -> bool:
        return self.untold >= TRIES and abs(self.held - self.broke) < TRIES


# The highest rate that was held, and the lowest that was not, if there is one.
Bracket = tuple[int, int | None]


@dataclass(frozen=True, slots=True)
class Way:
    """How a search goes: from the rate `start`, up to `most` and down to `least`, until the highest
    rate that was held and the lowest that was not differ by at most the share `resolution`.
    `agree`: how many trials must agree at each end of its interval. `around`: what another search
    found, which this one is to confirm."""

    start: int
    most: int
    resolution: float
    agree: int = AGREE
    around: Bracket | None = None
    least: int = 1

    def next(self, tried: Sequence[Tried]) -> int | None:
        """The next rate after these, in ascending order; None: the search is over."""
        if not tried:
            return self.start
        most = MOST_TRIALS if self.around is None else MOST_LATER
        if sum(one.held + one.broke + one.untold for one in tried) >= most:
            return None
        low, top = bracket(tried)
        if top is not None and not top.is_unknown and _sure(tried, top) < self._tries:
            return top.rate
        if low is None:
            return self._below(top.rate) if top and self._may_tell_below(tried) else None
        if top is None and low.rate < self.most:
            return min(self._above(low.rate), self.most)
        if top is not None and top.rate - low.rate > max(1, self.resolution * low.rate):
            return _middle(low.rate, top.rate)
        if low.held < self._tries or not low.confirmed:
            return low.rate
        return self._end(tried, top)

    @property
    def confirms(self) -> bool:
        """Whether this search is to confirm another one: it is near the capacity from the start."""
        return self.around is not None

    def _may_tell_below(self, tried: Sequence[Tried]) -> bool:
        """Whether a lower rate than these may tell something. Of a server that is away nobody can
        tell what it holds at a lower rate either. One that broke close above is not away."""
        told = any(not one.is_unknown for one in tried[:AWAY])
        return told and tried[0].rate > self.least

    @property
    def _tries(self) -> int:
        return min(TRIES, self.agree)

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
        if (low.held < self.agree or not low.confirmed) and low.untold < TRIES:
            return low.rate
        if top is None:
            return None
        if top.is_unknown:
            return self._beyond(tried, top)
        if high is None:
            most = tried[-1].rate
            over = max(math.ceil(most * step), most + 1)
            return over if over <= self.most and not tried[-1].untold else None
        more = high.broke < self.agree and high.untold < TRIES
        return high.rate if more else None

    def _beyond(self, tried: Sequence[Tried], top: Tried) -> int | None:
        """The next rate above one that nobody can tell, of at most BEYOND: where it breaks is an
        upper end as well."""
        above = [one for one in tried if one.rate > top.rate]
        if any(one.broke and not one.is_unknown for one in above):
            return None
        for one in above:
            if one.untold and not one.held and not one.is_unknown:
                return one.rate
        rate = math.ceil(tried[-1].rate * (1 + 2 * self.resolution))
        return rate if len(above) < BEYOND and rate <= self.most else None


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
