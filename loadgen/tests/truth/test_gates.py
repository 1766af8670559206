"""How often the check for one state in the window is wrong, from single answers on.

Latencies are drawn answer by answer, independent of each other, at real rates and lengths of
windows. Such a window shows one state, whatever the shape of its latencies.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from lab.judge.gates import judge
from lab.judge.gates.steady import FALSE_ALARM, UNSTEADY
from lab.model import Second
from support.fakes import measurement, observation, plan, reading, record

WINDOWS = 400
# Two standard errors of the count of a gate that is wrong as often as it may be.
MOST = FALSE_ALARM + 2 * (FALSE_ALARM * (1 - FALSE_ALARM) / WINDOWS) ** 0.5
Latencies = Callable[[Generator, tuple[int, ...]], NDArray[np.float64]]


def even(rng: Generator, size: tuple[int, ...]) -> NDArray[np.float64]:
    """An answer after 200 ms, and a wait of 10 ms on average."""
    return 200 + rng.exponential(10, size)


def long_tailed(rng: Generator, size: tuple[int, ...]) -> NDArray[np.float64]:
    """A median of 5 ms, a p95 of 26 ms, and a mean that hangs on a few answers."""
    return rng.lognormal(np.log(5), 1.0, size)


def now_and_then(rng: Generator, size: tuple[int, ...]) -> NDArray[np.float64]:
    """One answer in a hundred takes a second instead of 20 ms."""
    return np.where(rng.random(size) < 0.01, 1000.0, 20.0)


@pytest.mark.parametrize("latencies", [even, long_tailed, now_and_then])
# 14 req/s are the least that give p95 its samples in 15 s.
@pytest.mark.parametrize(("rps", "window_s"), [(14, 15), (100, 4), (100, 28), (450, 15), (2000, 5)])
def test_independent_latencies_are_one_state(latencies: Latencies, rps: int, window_s: int) -> None:
    rng = np.random.default_rng([rps, window_s])
    of = record(plan("open", offered_rps=rps, predicted_rps=None))
    alarms = 0
    for _ in range(WINDOWS):
        means = latencies(rng, (window_s, rps)).mean(axis=1)
        said = dataclasses.replace(
            reading(float(rps), float(window_s)),
            seconds=tuple(Second(rps, rps, float(mean)) for mean in means),
        )
        reasons = judge(measurement(of, said), observation()).reasons
        alarms += any(one.startswith(UNSTEADY) for one in reasons)
    assert alarms / WINDOWS <= MOST
