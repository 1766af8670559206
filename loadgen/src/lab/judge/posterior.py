"""The posterior of a capacity on a grid: c is flat, steepness and both scatters are lognormal about
what stored searches have. `capacity` has the model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from lab.judge.capacity import NEAR, Margin
from lab.judge.intervals import CONFIDENCE

Array = NDArray[np.float64]

# The lognormal priors: the median, and the standard deviation of the logarithm. Scatters are those
# of the logarithm of the load.
PRIORS: Mapping[str, tuple[float, float]] = {
    "steepness": (15.0, 0.8),
    "scatter": (0.04, 0.8),
    "jvms": (0.05, 1.2),
}
# The shares of trials that may have any margin, and how likely each is before any trial.
STALLS = np.array(((0.01, 0.85), (0.05, 0.13), (0.15, 0.015), (0.4, 0.005)))
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
Ends = tuple[float, float]


def fitted(margins: Sequence[Margin]) -> Grid:
    """The grid that has all that is not negligible, and little else."""
    logs = [math.log(margin.load) for margin in margins]
    ranges = {"c": (min(logs) - BEYOND, max(logs) + BEYOND)}
    for name, (median, deviation) in PRIORS.items():
        middle = math.log(median)
        ranges[name] = (middle - REACH * deviation, middle + REACH * deviation)
    for _ in range(TIMES):
        grid = grid_of(margins, ranges)
        narrowed = grid.support()
        if all(_width(narrowed[name]) > FILLED * _width(ranges[name]) for name in ranges):
            break
        ranges = narrowed
    return grid


def _width(ends: Ends) -> float:
    return ends[1] - ends[0]


@dataclass(frozen=True, slots=True)
class Grid:
    """The posterior over the scatter of JVMs (t), over stalls, steepness and scatter of trials
    together (k), and over c (x).

    `by_launch` (launch, k, x) has the likelihood of c_j of each launch, and `averaged` (launch, t,
    k, x) that of c by each launch."""

    c: Array
    axes: Mapping[str, Array]
    prior: Array
    launches: tuple[int, ...]
    by_launch: Array
    averaged: Array

    @property
    def weight(self) -> Array:
        return np.asarray(self.prior * self.averaged.prod(axis=0))

    def of_launch(self, launch: int) -> Array:
        """How likely each c is for this JVM; of one without a trial, by the others."""
        others = [at for at, other in enumerate(self.launches) if other != launch]
        about = self.prior * self.averaged[others].prod(axis=0)
        likely = _scattered(about, self.c, self.axes["jvms"])
        if launch in self.launches:
            likely = likely * self.by_launch[self.launches.index(launch)]
        return np.asarray(likely.sum(axis=(0, 1)))

    def loads(self, probability: float) -> Array:
        """The logarithm of the load that a trial meets so often, at each point of the grid. A trial
        that may have any margin meets every other time."""
        share = STALLS[:, 0, None, None]
        needed = (probability - share / 2) / (1 - share)
        scatter = np.hypot(self.axes["jvms"][:, None, None, None], self.axes["scatter"][:, None])
        away = ndtri(np.minimum(needed, 1 - 1e-12)) * scatter
        away = np.where(needed < 1, away, math.inf)
        away = np.broadcast_to(away, (*away.shape[:3], EACH)).reshape(len(away), -1, 1)
        return np.asarray(np.maximum(self.c - away, NO_LOAD))

    def support(self) -> dict[str, Ends]:
        """The ends of what is not negligible along each axis; of c for all JVMs and for each."""
        weight = self.weight
        whole = weight.reshape(len(weight), len(STALLS), EACH, EACH, POINTS)
        ends = {}
        for at, name in ((0, "jvms"), (2, "scatter"), (3, "steepness")):
            others = tuple(other for other in range(5) if other != at)
            ends[name] = _ends(np.log(self.axes[name]), whole.sum(axis=others))
        every = [weight.sum(axis=(0, 1)), *map(self.of_launch, self.launches)]
        shares = np.stack([likely / likely.max() for likely in every])
        return {**ends, "c": _ends(self.c, shares.max(axis=0))}

    def quantiles(self, logs: Array, weight: Array) -> list[float]:
        """The loads at the ends of the interval, with the median between them; 0 for none."""
        logs = np.broadcast_to(logs, weight.shape).ravel()
        order = np.argsort(logs)
        logs, ordered = logs[order], weight.ravel()[order]
        cumulative = np.cumsum(ordered)
        tail = (1 - CONFIDENCE) / 2
        middle = (cumulative - ordered / 2) / cumulative[-1]
        points = np.interp((tail, 0.5, 1 - tail), middle, logs)
        return [math.exp(log) if log > NO_LOAD / 2 else 0.0 for log in map(float, points)]


def grid_of(margins: Sequence[Margin], ranges: Mapping[str, Ends]) -> Grid:
    c = np.linspace(*ranges["c"], POINTS)
    launches = tuple(dict.fromkeys(margin.launch for margin in margins))
    logs = {name: np.linspace(*ranges[name], EACH) for name in PRIORS}
    if len(launches) < 2:
        logs["jvms"] = np.full(1, NO_SCATTER)
    axes = {name: np.exp(log) for name, log in logs.items()}
    share, likely = STALLS.T
    b, e = (axis.reshape(-1, 1) for axis in np.meshgrid(axes["steepness"], axes["scatter"]))
    prior = (
        _prior("jvms", logs["jvms"])[:, None, None, None]
        * likely[:, None, None]
        * _prior("scatter", logs["scatter"])[:, None]
        * _prior("steepness", logs["steepness"])
    )
    by_launch = np.stack(
        [
            _likelihood([margin for margin in margins if margin.launch == launch], c, share, b, e)
            for launch in launches
        ]
    )
    averaged = np.stack([_scattered(likely[None], c, axes["jvms"]) for likely in by_launch])
    return Grid(c, axes, prior.reshape(len(axes["jvms"]), -1, 1), launches, by_launch, averaged)


def _scattered(likely: Array, c: Array, jvms: Array) -> Array:
    """How likely each c is where these values along c scatter by each of these deviations."""
    away = np.arange(1 - len(c), len(c)) * (c[1] - c[0])
    kernel = np.exp(-0.5 * (away / jvms[:, None]) ** 2)
    kernel /= kernel.sum(axis=1, keepdims=True)
    places = np.arange(len(c))
    return np.asarray(likely @ kernel[:, len(c) - 1 + places - places[:, None]])


def _ends(values: Array, likely: Array) -> Ends:
    """The ends of what is not negligible, a point more to both sides."""
    points = np.flatnonzero(likely > NEGLIGIBLE * likely.max())
    first, last = max(points[0] - 1, 0), min(points[-1] + 1, len(values) - 1)
    return float(values[first]), float(values[last])


def _prior(name: str, logs: Array) -> Array:
    """How likely these logarithms are before any trial."""
    median, deviation = PRIORS[name]
    if len(logs) < 2:
        return np.ones(1)
    return np.asarray(np.exp(-0.5 * ((logs - math.log(median)) / deviation) ** 2))


def _likelihood(margins: Sequence[Margin], c: Array, share: Array, b: Array, e: Array) -> Array:
    """Of each c (columns) by each share of stalls, e and b (rows), up to a factor."""
    logs = np.zeros((len(share), len(b), len(c)))
    stall = share[:, None, None]
    for margin in margins:
        middle = math.log(margin.load) - c
        high, low = (ndtr((end / b - middle) / e) for end in (margin.high, margin.low))
        logs += np.log((1 - stall) * (high - low) + stall * _by_accident(margin))
    return np.asarray(np.exp(logs - logs.max())).reshape(-1, len(c))


def _by_accident(margin: Margin) -> float:
    """The probability of such an interval in a trial that may have any margin: a third each below,
    near and above the limit."""
    low, high = max(margin.low, -NEAR), min(margin.high, NEAR)
    ends = (margin.low == -math.inf) + (margin.high == math.inf)
    return float(ends + max(high - low, 0.0) / (2 * NEAR)) / 3
