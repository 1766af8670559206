"""A server's capacity: the load at which a trial meets its objective half of the time. Pure.

The *margin* of a trial is the logarithm of what was measured over its limit, of the limit that is
exceeded most: above 0 the objective is missed. Near the capacity it grows with the logarithm of the
load,

    margin = b (log load - c_j + e),   c_j = c + t_j.

c_j is the capacity of JVM j. JVMs scatter about c, and trials by e, both normal. A margin is known
as an interval: a censored regression (J. Tobin, Econometrica 26 (1958) 24) with a random effect.
Only near the limit is a margin a line. What lies farther away is known to lie beyond, and no more.
A share of all trials may have any margin, at any load: a stall far below the capacity moves it
little, and many stalls show that no load is met nearly always.

The posterior is computed on a grid. c is flat. Steepness b and both scatters are lognormal about
what stored searches have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# Margins beyond this (a factor of 1.2) are known to lie beyond, and no more: else what lies far
# away would move the capacity, where the line is steeper or flatter than the prior.
NEAR = math.log(1.2)
# The lognormal priors: the median, and the standard deviation of the logarithm. Scatters are those
# of the logarithm of the load.
PRIORS: Mapping[str, tuple[float, float]] = {
    "steepness": (15.0, 0.8),
    "scatter": (0.04, 0.8),
    "jvms": (0.05, 1.2),
}
# The shares of trials that may have any margin, and how likely each is before any trial.
STALLS = ((0.01, 0.85), (0.05, 0.13), (0.15, 0.015), (0.4, 0.005))
# How many points of the grid each of them has, and how many deviations it reaches to both sides.
EACH, REACH = 7, 3.0
# Points of the grid over c, and how far beyond the loads that were tried it reaches at first.
POINTS, BEYOND = 120, 2.0
# What is less likely than this share of the most likely lies outside the grid.
NEGLIGIBLE = 1e-3
# The grid is narrowed until what is left takes this share of it, or so many times.
FILLED, TIMES = 0.6, 5
# The logarithm of a load that is no load, and of a scatter that is none.
NO_LOAD = NO_SCATTER = -30.0
CONFIDENCE = 0.95
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
        """Whether it says that the objective was met: by its middle, or by the only end it has."""
        return self.high <= 0 or (self._has_middle and self.low + self.high <= 0)

    @property
    def missed(self) -> bool:
        """As `met`. Where only an end is known, on the other side of the limit, it says neither."""
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
        return _estimate(self._grid.loads(probability), self._grid.weight)

    def of_launch(self, launch: int) -> Estimate:
        """The load that this JVM's trials meet half of the time."""
        return _estimate(self._grid.c, self._grid.of_launch(launch))

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
    def _grid(self) -> _Grid:
        logs = [math.log(margin.load) for margin in self.margins]
        ranges = {"c": (min(logs) - BEYOND, max(logs) + BEYOND)}
        for name, (median, deviation) in PRIORS.items():
            middle = math.log(median)
            ranges[name] = (middle - REACH * deviation, middle + REACH * deviation)
        for _ in range(TIMES):
            grid = _Grid.of(self.margins, ranges)
            narrowed = grid.support()
            if all(_width(narrowed[name]) > FILLED * _width(ranges[name]) for name in ranges):
                break
            ranges = narrowed
        return grid


def _width(ends: tuple[float, float]) -> float:
    return ends[1] - ends[0]


@dataclass(frozen=True, slots=True)
class _Grid:
    """The posterior on a grid over the scatter of JVMs (t), over stalls, steepness and scatter of
    trials together (k), and over c (x).

    `by_launch` (launch, k, x) has the likelihood of c_j of each launch, and `averaged` (launch, t,
    k, x) that of c by each launch."""

    c: Array
    axes: Mapping[str, Array]
    prior: Array
    launches: tuple[int, ...]
    by_launch: Array
    averaged: Array

    @classmethod
    def of(cls, margins: Sequence[Margin], ranges: Mapping[str, tuple[float, float]]) -> _Grid:
        import numpy as np

        c = np.linspace(*ranges["c"], POINTS)
        launches = tuple(dict.fromkeys(margin.launch for margin in margins))
        logs = {name: np.linspace(*ranges[name], EACH) for name in PRIORS}
        if len(launches) < 2:
            logs["jvms"] = np.full(1, NO_SCATTER)
        axes = {name: np.exp(log) for name, log in logs.items()}
        share, likely = np.array(STALLS).T
        b, e = (axis.reshape(-1, 1) for axis in np.meshgrid(axes["steepness"], axes["scatter"]))
        prior = (
            _prior("jvms", logs["jvms"])[:, None, None, None]
            * likely[:, None, None]
            * _prior("scatter", logs["scatter"])[:, None]
            * _prior("steepness", logs["steepness"])
        )
        known = near(margins)
        by_launch = np.stack(
            [
                _likelihood([each for each in known if each.launch == launch], c, share, b, e)
                for launch in launches
            ]
        )
        averaged = np.stack([_scattered(likely[None], c, axes["jvms"]) for likely in by_launch])
        return cls(c, axes, prior.reshape(len(axes["jvms"]), -1, 1), launches, by_launch, averaged)

    @property
    def weight(self) -> Array:
        found: Array = self.prior * self.averaged.prod(axis=0)
        return found

    def of_launch(self, launch: int) -> Array:
        """How likely each c is for this JVM; of one without a trial, by the others."""
        others = [at for at, known in enumerate(self.launches) if known != launch]
        about = self.prior * self.averaged[others].prod(axis=0)
        likely = _scattered(about, self.c, self.axes["jvms"])
        if launch in self.launches:
            likely = likely * self.by_launch[self.launches.index(launch)]
        found: Array = likely.sum(axis=(0, 1))
        return found

    def loads(self, probability: float) -> Array:
        """The logarithm of the load that a trial meets so often, at each point of the grid. A trial
        that may have any margin meets every other time."""
        import numpy as np
        from scipy.special import ndtri

        share = np.array(STALLS)[:, 0, None, None]
        needed = (probability - share / 2) / (1 - share)
        scatter = np.hypot(self.axes["jvms"][:, None, None, None], self.axes["scatter"][:, None])
        away = ndtri(np.minimum(needed, 1 - 1e-12)) * scatter
        away = np.where(needed < 1, away, math.inf)
        away = np.broadcast_to(away, (*away.shape[:3], EACH)).reshape(len(away), -1, 1)
        found: Array = np.maximum(self.c - away, NO_LOAD)
        return found

    def support(self) -> dict[str, tuple[float, float]]:
        """The ends of what is not negligible along each axis; of c for all JVMs and for each."""
        import numpy as np

        weight = self.weight
        whole = weight.reshape(len(weight), len(STALLS), EACH, EACH, POINTS)
        found = {}
        for at, name in ((0, "jvms"), (2, "scatter"), (3, "steepness")):
            others = tuple(other for other in range(5) if other != at)
            found[name] = _ends(np.log(self.axes[name]), whole.sum(axis=others))
        each = [weight.sum(axis=(0, 1)), *map(self.of_launch, self.launches)]
        shares = np.stack([likely / likely.max() for likely in each])
        return {**found, "c": _ends(self.c, shares.max(axis=0))}


def _scattered(likely: Array, c: Array, jvms: Array) -> Array:
    """How likely each c is where these values along c scatter by each of these deviations."""
    import numpy as np

    away = np.arange(1 - len(c), len(c)) * (c[1] - c[0])
    kernel = np.exp(-0.5 * (away / jvms[:, None]) ** 2)
    kernel /= kernel.sum(axis=1, keepdims=True)
    places = np.arange(len(c))
    found: Array = likely @ kernel[:, len(c) - 1 + places - places[:, None]]
    return found


def _ends(values: Array, likely: Array) -> tuple[float, float]:
    """The ends of what is not negligible, a point more to both sides."""
    import numpy as np

    points = np.flatnonzero(likely > NEGLIGIBLE * likely.max())
    first, last = max(points[0] - 1, 0), min(points[-1] + 1, len(values) - 1)
    return float(values[first]), float(values[last])


def _prior(name: str, logs: Array) -> Array:
    """How likely these logarithms are before any trial."""
    import numpy as np

    median, deviation = PRIORS[name]
    if len(logs) < 2:
        return np.ones(1)
    found: Array = np.exp(-0.5 * ((logs - math.log(median)) / deviation) ** 2)
    return found


def near(margins: Sequence[Margin]) -> list[Margin]:
    """Margins without what is said of them far from the limit. Below it far is also half of what
    the lowest one is away: a light load's latency is a floor, where a margin is no line."""
    lowest = min(margin.high for margin in margins)
    floor = max(-NEAR, lowest / 2) if lowest < 0 else -NEAR
    found = []
    for margin in margins:
        low, high = margin.low, margin.high
        if high <= floor:
            low, high = -math.inf, floor
        elif low >= NEAR:
            low, high = NEAR, math.inf
        found.append(margin._replace(low=low, high=high))
    return found


def _likelihood(margins: Sequence[Margin], c: Array, share: Array, b: Array, e: Array) -> Array:
    """Of each c (columns) by each share of stalls, e and b (rows), up to a factor."""
    import numpy as np
    from scipy.special import ndtr

    logs = np.zeros((len(share), len(b), len(c)))
    for margin in margins:
        middle = math.log(margin.load) - c
        high, low = (ndtr((end / b - middle) / e) for end in (margin.high, margin.low))
        stall = share[:, None, None]
        logs += np.log((1 - stall) * (high - low) + stall * _by_accident(margin))
    found: Array = np.exp(logs - logs.max()).reshape(-1, len(c))
    return found


def _by_accident(margin: Margin) -> float:
    """The probability of such an interval in a trial that may have any margin: a third each below,
    near and above the limit."""
    low, high = max(margin.low, -NEAR), min(margin.high, NEAR)
    ends = (margin.low == -math.inf) + (margin.high == math.inf)
    return float(ends + max(high - low, 0.0) / (2 * NEAR)) / 3


def _estimate(logs: Array, weight: Array) -> Estimate:
    loads = (math.exp(log) if log > NO_LOAD / 2 else 0.0 for log in _quantiles(logs, weight))
    # Machines add up in another order: their last digits differ.
    low, value, high = (float(f"{load:.9g}") for load in loads)
    return Estimate(value, low, high)


def _quantiles(values: Array, weight: Array) -> tuple[float, float, float]:
    """The median of a posterior, between the ends of its interval."""
    import numpy as np

    values = np.broadcast_to(values, weight.shape).ravel()
    order = np.argsort(values)
    values, cumulative = values[order], np.cumsum(weight.ravel()[order])
    middle = cumulative - weight.ravel()[order] / 2
    tail = (1 - CONFIDENCE) / 2
    low, value, high = np.interp((tail, 0.5, 1 - tail), middle / cumulative[-1], values)
    return float(low), float(value), float(high)
