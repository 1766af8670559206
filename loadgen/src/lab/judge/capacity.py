"""A server's capacity: the load at which a trial meets its objective half of the time.

The *margin* of a trial is the logarithm of what was measured over its limit, of the limit that is
exceeded most: above 0 the objective is missed. Near the capacity it grows with the logarithm of the
load,

    margin = b (log load - c_j + e),   c_j = c + t_j.

c_j is the capacity of JVM j. JVMs scatter about c, and trials by e, both normal. A margin is known
as an interval: a censored regression (J. Tobin, Econometrica 26 (1958) 24) with a random effect.
Only near the limit is a margin a line. What lies farther away is known to lie beyond, and no more.
A share of all trials may have any margin, at any load: a stall far below the capacity moves it
little, and many stalls show that no load is met nearly always.

The posterior is computed on a grid (`lab.judge.posterior`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from lab.judge.posterior import Array, Grid

# Margins beyond this (a factor of 1.2) are known to lie beyond, and no more: else what lies far
# away would move the capacity, where the line is steeper or flatter than the prior.
NEAR = math.log(1.2)
# Without a trial that missed, the next load is at most so many times the highest.
GROWTH = 3.0


class Margin(NamedTuple):
    """What a trial of a launch at a load says: its margin lies between `low` and `high`."""

    load: float
    launch: int
    low: float
    high: float

    @property
    def met(self) -> bool:
        """True if the objective was met: by the middle of the margin, or by its only end."""
        return self.high <= 0 or (self._has_middle and self.low + self.high <= 0)

    @property
    def missed(self) -> bool:
        """As `met`. Where only an end is known, on the other side of the limit, both are false."""
        return self.low >= 0 or (self._has_middle and self.low + self.high > 0)

    @property
    def _has_middle(self) -> bool:
        return math.isfinite(self.low) and math.isfinite(self.high)


class Estimate(NamedTuple):
    """A load with its interval of 95 %."""

    value: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """Half of the interval, as a share of the load."""
        return math.sqrt(self.high / self.low) - 1 if self.low > 0 else math.inf


def ratio(a: Estimate, b: Estimate) -> Estimate:
    """b over a, which are independent, with its interval of 95 %: the method of variance estimates
    recovery (G. Zou and A. Donner, Statistics in Medicine 27 (2008) 1693), in logarithms."""
    value = b.value / a.value
    below = math.hypot(math.log(b.value / b.low), math.log(a.high / a.value))
    above = math.hypot(math.log(b.high / b.value), math.log(a.value / a.low))
    return Estimate(value, value * math.exp(-below), value * math.exp(above))


def product(a: Estimate, b: Estimate) -> Estimate:
    """a times b, as `ratio`."""
    return ratio(Estimate(1 / a.value, 1 / a.high, 1 / a.low), b)


@dataclass(frozen=True)
class Capacity:
    """What trials say of a server's capacity."""

    margins: tuple[Margin, ...]

    def at(self, probability: float) -> Estimate:
        """The load at which a trial of another JVM meets the objective with this probability; of
        the JVM that was measured where there is only one. 0: none is known to be met so often."""
        return _estimate(self._grid, self._grid.loads(probability), self._grid.weight)

    def of_launch(self, launch: int) -> Estimate:
        """The load that this JVM's trials meet half of the time."""
        return _estimate(self._grid, self._grid.c, self._grid.of_launch(launch))

    def next(self, launch: int) -> float:
        """The load that says most of the capacity of this JVM: where its trial is a toss-up."""
        middle = self.of_launch(launch).value
        met = [margin.load for margin in self.margins if margin.met]
        missed = [margin.load for margin in self.margins if margin.missed]
        if met and not missed:
            return min(middle, GROWTH * max(met))
        if missed and not met:
            return max(middle, min(missed) / GROWTH)
        return middle

    @cached_property
    def _grid(self) -> Grid:
        # Slow to import, and seldom needed.
        from lab.judge import posterior

        return posterior.fitted(near(self.margins))


def _estimate(grid: Grid, logs: Array, weight: Array) -> Estimate:
    # Machines add up in another order: their last digits differ.
    low, value, high = (float(f"{load:.9g}") for load in grid.quantiles(logs, weight))
    return Estimate(value, low, high)


def near(margins: Sequence[Margin]) -> list[Margin]:
    """Margins without what is said of them far from the limit. Below it far is also half of what
    the lowest one is away: a light load's latency is a floor, where a margin is no line."""
    lowest = min(margin.high for margin in margins)
    floor = max(-NEAR, lowest / 2) if lowest < 0 else -NEAR
    cut = []
    for margin in margins:
        low, high = margin.low, margin.high
        if high <= floor:
            low, high = -math.inf, floor
        elif low >= NEAR:
            low, high = NEAR, math.inf
        cut.append(margin._replace(low=low, high=high))
    return cut
