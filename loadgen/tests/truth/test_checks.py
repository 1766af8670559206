"""The checks for one state in the window, from single answers on.

How often they are wrong: latencies are drawn answer by answer, independent of each other, at real
rates and lengths of windows. Such a window shows one state, whatever the shape of its latencies.

Whether they select: a burst of late answers, as when others take the CPUs for some seconds, must
not have a trial measured again more often where it falls early in the window.
"""

import copy
from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from lab.judge.checks import by_accident, judge
from lab.judge.checks.steady import DRIFTS, FALSE_ALARM
from lab.judge.trial import Trial
from lab.model import Latency, Second
from support.fakes import latency, measurement, observation, plan, reading, record

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
        said = copy.replace(
            reading(float(rps), float(window_s)),
            seconds=tuple(Second(rps, rps, float(mean)) for mean in means),
        )
        reasons = judge(Trial(measurement(of, said), observation())).reasons
        alarms += bool(DRIFTS & {one.code for one in reasons})
    assert alarms / WINDOWS <= MOST


def again(rng: Generator, burst_s: float, length_s: float, late_ms: float) -> bool:
    """Whether a trial is measured again whose answers are this late for those seconds of its
    window, from `burst_s` on. 450 req/s are due evenly, from 10 s before the window of 15 s on."""
    due_s = np.arange(-10, 20, 1 / 450)
    in_burst = (due_s >= burst_s) & (due_s < burst_s + length_s)
    times_ms = even(rng, due_s.shape) + late_ms * in_burst
    ends_s = due_s + times_ms / 1000
    seconds = []
    for at in range(15):
        of = times_ms[(ends_s >= at) & (ends_s < at + 1)]
        seconds.append(Second(len(of), len(of), float(of.mean())))
    seen_ms = times_ms[(ends_s >= 0) & (ends_s < 15)]
    p50_ms, p95_ms, p99_ms = map(float, np.percentile(seen_ms, (50, 95, 99)))
    latencies = Latency(float(seen_ms.mean()), p50_ms, p95_ms, p99_ms, float(seen_ms.max()))
    said = copy.replace(
        reading(len(seen_ms) / 15, corrected=latencies, raw=latencies, late=latency(0.0)),
        due=450 * 15,
        seconds=tuple(seconds),
    )
    of_load = record(plan("open", concurrency=1000, predicted_rps=None))
    return by_accident(judge(Trial(measurement(of_load, said), observation())).reasons)


def test_a_burst_has_a_trial_measured_again_as_often_late_as_early() -> None:
    rng, early, late = np.random.default_rng(14), 0, 0
    for length_s in (0.5, 2.0, 4.0):
        for late_s in (0.05, 0.2, 0.8):
            # From the first request that is late to the answer of the last.
            felt_s = length_s + 0.2 + late_s
            for off_s in np.arange(-felt_s, 7.5 - felt_s / 2, 0.25):
                # As far from the end of the window as the other from its start.
                early += again(rng, off_s, length_s, 1000 * late_s)
                late += again(rng, 15 - off_s - felt_s, length_s, 1000 * late_s)
    # Two standard errors of the difference of two such counts.
    assert min(early, late) > 50
    assert abs(early - late) <= 2 * (early + late) ** 0.5


def test_an_even_overload_is_seldom_taken_for_an_accident() -> None:
    """A server that lacks 1.5 % of what is offered, in seconds that scatter by 2 %."""
    rng, unsteady, windows = np.random.default_rng(15), 0, 300
    of_load = record(plan("open", concurrency=1000, predicted_rps=None))
    for _ in range(windows):
        answers = np.round(rng.normal(0.985 * 450, 0.02 * 450, 15)).astype(int)
        late = latency(900.0)
        said = copy.replace(
            reading(float(answers.mean()), corrected=late, raw=late, late=latency(0.0)),
            due=450 * 15,
            seconds=tuple(Second(int(one), int(one), 900.0) for one in answers),
        )
        reasons = judge(Trial(measurement(of_load, said), observation())).reasons
        unsteady += bool(DRIFTS & {one.code for one in reasons})
    # The 1 % that the check promises, and two standard errors of such a count.
    assert unsteady <= 0.01 * windows + 2 * (0.01 * windows) ** 0.5
