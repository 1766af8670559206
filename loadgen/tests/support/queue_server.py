"""A simulated server near its capacity: a fluid queue on a machine whose speed varies.

An open load offers work at a constant rate. The server does as much of it as its capacity allows,
step by step. The rest is a backlog, which later capacity drains, first come, first served. A
request waits until the backlog that it found is drained; a delay follows, ~200 ms when alone.

Nothing here is normal or autoregressive but the logarithm of a drawn delay: a fit that assumes
such distributions is judged by a world that does not have them.
"""

import copy
import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

type Values = NDArray[np.float64]
type Seed = int | tuple[int, ...]

STEPS_PER_S = 20
STEP_S = 1 / STEPS_PER_S
# Where in a step the waits are computed, as shares of the step.
MOMENTS = (np.arange(5) + 0.5) / 5
TIMEOUT_S = 10.0
PAUSE_S = 3.0
LAUNCH_S = 30.0
STALL_S = (0.2, 1.5)
SAW_PERIOD_S = 420.0
# How much of the variance of the machine's speed is its switching; the rest is the sawtooth.
SWITCHING = 0.64
SLOWEST = 0.05
DELAY_S = 0.2
# Of the logarithm of a drawn delay, so that the mean is 200 ms and the p99 400 ms.
SIGMA = 2.3263479 - math.sqrt(2.3263479**2 - 2 * math.log(2))
MU = math.log(DELAY_S) - SIGMA**2 / 2
# Network and client add this to every request of a trial.
OVERHEAD_S = (0.0005, 0.0025)
LATE_MS = (0.3, 1.2)
LOOK_S = 5
TRUTH_TRIALS = 3000


@dataclasses.dataclass(frozen=True)
class World:
    """How a server's capacity is, and what it varies with. Spreads are standard deviations, as
    shares of the mean."""

    # The rate at which the server is fully busy: an average JVM on a machine of average speed.
    capacity_rps: float = 1000.0
    # Each JVM has its own capacity.
    jvm_spread: float = 0.03
    jvm_shape: Literal["uniform", "two-point"] = "uniform"
    # The machine is fast or slow for minutes; a sawtooth is added.
    trial_noise: float = 0.05
    dwell_s: float = 150.0
    slow_share: float = 1 / 3
    # Share of the speed that a sitting gains per hour.
    drift: float = 0.0
    # How many times per minute the server does nothing for 0.2 to 1.5 s, by chance.
    stalls: float = 0.0
    # So many threads, each held for the mean delay, are the limit instead of the CPU.
    pool: int | None = None
    # The capacity of a step is gamma distributed around the speed.
    burst: float = 0.35
    delay: Literal["constant", "drawn"] = "constant"


class Measured(NamedTuple):
    """What a client saw of a trial. Latencies count from when a request was due, and a request
    that timed out counts with 10 s."""

    p50_ms: float
    p99_ms: float
    error_share: float
    goodput_rps: float
    # Of the generator itself.
    late_p99_ms: float
    # The p99 of the answers of each second of the window.
    seconds: tuple[float, ...]


class Machine:
    """The speed of the machine over a sitting: 1 on average, without the drift."""

    def __init__(self, world: World, random: np.random.Generator) -> None:
        self.world, self._random = world, random
        self._phase = random.random()
        self._slow_first = bool(random.random() < world.slow_share)
        self._switches_s: list[float] = []

    def speed(self, times_s: Values) -> Values:
        """The speeds at these times of the sitting, which are in ascending order."""
        world = self.world
        self._extend(float(times_s[-1]))
        switches = np.searchsorted(self._switches_s, times_s, side="right")
        slow = (switches % 2 == 1) != self._slow_first
        swing = world.trial_noise * math.sqrt(SWITCHING)
        odds = math.sqrt(world.slow_share / (1 - world.slow_share))
        saw = 2 * ((times_s / SAW_PERIOD_S + self._phase) % 1) - 1
        height = world.trial_noise * math.sqrt(3 * (1 - SWITCHING))
        steady = 1 + np.where(slow, -swing / odds, swing * odds) + height * saw
        drifted: Values = np.maximum(SLOWEST, steady * (1 + world.drift * times_s / 3600))
        return drifted

    def _extend(self, until_s: float) -> None:
        share = self.world.slow_share
        while not self._switches_s or self._switches_s[-1] <= until_s:
            slow = (len(self._switches_s) % 2 == 1) != self._slow_first
            mean_s = 2 * self.world.dwell_s * (share if slow else 1 - share)
            last_s = self._switches_s[-1] if self._switches_s else 0.0
            self._switches_s.append(last_s + self._random.exponential(mean_s))


class Sitting:
    """Trials of a world, one after the other, on one machine.

    Randomness does not depend on the offered rates: two sittings with the same seed and the same
    sequence of windows and launches meet the same speeds, stalls and bursts.
    """

    def __init__(self, world: World, seed: Seed) -> None:
        self.world, self.clock_s = world, 0.0
        self._seed = seed if isinstance(seed, tuple) else (seed,)
        self._machine = Machine(world, self._random(0))
        self._launches = self._random(1)
        self._capacities: list[float] = []
        self._trials = 0

    def new_jvm(self) -> int:
        """Launch a JVM and return its number, from 0. Trials may use every JVM launched so far."""
        spread = self.world.jvm_spread
        if self.world.jvm_shape == "uniform":
            deviation = self._launches.uniform(-math.sqrt(3), math.sqrt(3))
        else:
            deviation = self._launches.choice((-1.0, 1.0))
        self._capacities.append(self.world.capacity_rps * (1 + spread * float(deviation)))
        self.clock_s += LAUNCH_S
        return len(self._capacities) - 1

    def trial(
        self,
        rate: float,
        jvm: int,
        window_s: int,
        warmup_s: float = 5.0,
        settled: Callable[[Measured], bool] = lambda _: False,
    ) -> Measured:
        """Offer the rate to an idle JVM, and measure the requests that end in the window. It is
        over as soon as it is `settled`, which is asked whenever LOOK_S have passed."""
        warmup = round(warmup_s * STEPS_PER_S)
        steps = warmup + window_s * STEPS_PER_S
        latency_s = self._latency_s(rate, jvm, steps)
        late_ms = self._random(3, self._trials).uniform(*LATE_MS)
        looks = [*range(LOOK_S, window_s, LOOK_S), window_s]
        for length_s in looks:
            ends = warmup + length_s * STEPS_PER_S
            speed = self._machine.speed(self.clock_s + np.arange(warmup, ends) * STEP_S).mean()
            found = _measured(latency_s[:, :ends], warmup, rate, float(late_ms / speed))
            if length_s == window_s or settled(found):
                break
        self._trials += 1
        self.clock_s += warmup_s + length_s + PAUSE_S
        return found

    def next_p99_ms(self, rate: float, jvm: int, window_s: float, warmup_s: float = 5.0) -> float:
        """The p99 that the next trial would have, without the trial."""
        warmup = round(warmup_s * STEPS_PER_S)
        latency_s = self._latency_s(rate, jvm, warmup + round(window_s * STEPS_PER_S))
        return float(np.percentile(_ended(latency_s, warmup)[0], 99)) * 1000

    def _latency_s(self, rate: float, jvm: int, steps: int) -> Values:
        """The latencies of the requests of the next trial: several requests at each moment of
        each step. A client that would wait for longer gives up."""
        random = self._random(2, self._trials)
        edges_s = np.arange(steps + round(TIMEOUT_S * STEPS_PER_S) + 1) * STEP_S
        capacity = self._capacity(edges_s, self._capacities[jvm], random)
        overhead_s = random.uniform(*OVERHEAD_S)
        wait_s = waits(rate * STEP_S, capacity, edges_s, steps)
        delay_s = self._delays(rate, wait_s.shape, random)
        return np.minimum(wait_s + overhead_s + delay_s, TIMEOUT_S)

    def _random(self, stream: int, number: int = 0) -> np.random.Generator:
        return np.random.default_rng((stream, number, *self._seed))

    def _capacity(self, edges_s: Values, jvm_rps: float, random: np.random.Generator) -> Values:
        """How many requests the server can do in each step."""
        world, steps = self.world, len(edges_s) - 1
        open_share = running(edges_s, world.stalls, random)
        if world.pool is not None:
            return world.pool / DELAY_S * STEP_S * open_share
        speed = self._machine.speed(self.clock_s + edges_s[:-1])
        if world.burst:
            speed = speed * random.gamma(world.burst**-2, world.burst**2, steps)
        return jvm_rps * STEP_S * speed * open_share

    def _delays(self, rate: float, shape: tuple[int, ...], random: np.random.Generator) -> Values:
        """The delays of the requests: a draw for each, but at most 12 for each moment. The first
        ones do not depend on the rate."""
        if self.world.delay == "constant":
            return np.full((1, 1, 1), DELAY_S)
        draws = min(12, max(1, round(rate * STEP_S / len(MOMENTS))))
        return random.lognormal(MU, SIGMA, (draws, *shape))


def _ended(latency_s: Values, warmup: int) -> tuple[Values, Values]:
    """The latencies of the requests that end in the window, and when each does, in s from the begin
    of the window."""
    steps = latency_s.shape[1]
    due_s = (np.arange(-warmup, steps - warmup)[:, None] + MOMENTS) * STEP_S
    end_s = due_s + latency_s
    inside = (end_s >= 0) & (end_s < (steps - warmup) * STEP_S)
    return latency_s[inside], end_s[inside]


def _measured(latency_s: Values, warmup: int, rate: float, late_p99_ms: float) -> Measured:
    steps = latency_s.shape[1] - warmup
    took_s, end_s = _ended(latency_s, warmup)
    error = took_s >= TIMEOUT_S
    p50, p99 = np.percentile(took_s, (50, 99)) * 1000 if len(took_s) else (0.0, 0.0)
    second = end_s.astype(int)
    seconds = [np.percentile(took_s[second == at], 99) for at in np.unique(second)]
    # Each latency stands for as many requests.
    each = rate * STEP_S / (latency_s[:, :1].size)
    return Measured(
        p50_ms=float(p50),
        p99_ms=float(p99),
        error_share=float(error.mean()) if len(took_s) else 0.0,
        goodput_rps=float((~error).sum() * each / (steps * STEP_S)),
        late_p99_ms=late_p99_ms,
        seconds=tuple(float(value) * 1000 for value in seconds),
    )


def running(edges_s: Values, per_minute: float, random: np.random.Generator) -> Values:
    """The share of each step in which the server is not stalled."""
    first_s, last_s = edges_s[0] - STALL_S[1], edges_s[-1]
    stalls = random.poisson(per_minute * (last_s - first_s) / 60)
    starts_s = random.uniform(first_s, last_s, stalls)[:, None]
    ends_s = starts_s + random.uniform(*STALL_S, stalls)[:, None]
    overlap_s = np.minimum(ends_s, edges_s[1:]) - np.maximum(starts_s, edges_s[:-1])
    share: Values = 1 - np.minimum(1, np.maximum(0, overlap_s).sum(axis=0) / STEP_S)
    return share


def waits(offered: float, capacity: Values, edges_s: Values, steps: int) -> Values:
    """How long a request waits that comes at each moment of each of the first steps, in s.

    The backlog before the first step is empty. A request leaves it when the server has done, from
    the moment the request came, as much work as the backlog was.
    """
    # A trace of capacity in a stall makes the work done strictly increasing.
    capacity = capacity + 1e-9
    surplus = (offered - capacity)[:steps]
    net = np.concatenate(([0.0], np.cumsum(surplus)))
    backlog = (net - np.minimum.accumulate(net))[:-1, None]
    done = np.concatenate(([0.0], np.cumsum(capacity)))
    found = np.maximum(0, backlog + surplus[:, None] * MOMENTS)
    before = done[:steps, None] + capacity[:steps, None] * MOMENTS
    came_s = edges_s[:steps, None] + STEP_S * MOMENTS
    # Work that is not done by the last edge ends there: whoever waits for it has timed out.
    waited: Values = np.interp(before + found, done, edges_s) - came_s
    return np.maximum(0, waited)


@functools.cache
def meets(
    world: World, limit_ms: float, window_s: float, seed: int, trial: int, rate: float
) -> bool:
    """Is the p99 within the limit in this trial, of a JVM of its own, in a sitting of its own?
    The beginning of a sitting is like any other moment, because its state is drawn."""
    sitting = Sitting(world, (seed, trial))
    return sitting.next_p99_ms(rate, sitting.new_jvm(), window_s) <= limit_ms


@functools.cache
def truth(
    world: World, limit_ms: float, probability: float, window_s: float, seed: int = 0
) -> float:
    """The highest rate at which a trial has a p99 within the limit with this probability, by
    simulation. Each trial is of a JVM of its own, at a moment of its own of a driftless sitting.

    0 means that no rate reaches the probability. A bisection follows the share of trials within
    the limit. The trials meet the same chance at every rate, and a higher rate is never faster:
    a trial within the limit at a rate is so at each lower rate, and is not simulated there.
    """
    steady = copy.replace(world, drift=0.0)
    needed = probability * TRUTH_TRIALS
    highest = world.capacity_rps if world.pool is None else world.pool / DELAY_S
    low, high = 0.02 * highest, 2 * highest
    undecided = set(range(1, TRUTH_TRIALS + 1))
    within, rate = 0, low
    while high - low > 2e-4 * highest:
        met = {n for n in undecided if meets(steady, limit_ms, window_s, seed, n, rate)}
        if within + len(met) >= needed:
            low, undecided = rate, met
        elif rate == low:
            return 0.0
        else:
            high, undecided = rate, undecided - met
            within += len(met)
        rate = (low + high) / 2
    return low


WORLDS: Mapping[str, World] = {
    "quiet": World(trial_noise=0.02, jvm_spread=0.01),
    "ordinary": World(),
    "noisy": World(trial_noise=0.10, jvm_spread=0.05, jvm_shape="two-point"),
    "wild": World(trial_noise=0.20, jvm_spread=0.05),
    "jvms": World(trial_noise=0.03, jvm_spread=0.10),
    "drifting": World(trial_noise=0.03, jvm_spread=0.02, drift=-0.10),
    "stalls": World(trial_noise=0.03, jvm_spread=0.02, stalls=1.5),
    "pool": World(pool=200),
    "drawn": World(delay="drawn"),
}
