"""The ruler: the CPU time of requests as a line over the rate, the cost of a server in units of the
lab's own parts, the rate to expect on another host, and drift of the host's speed. Pure.

The control parts (generator, Toxiproxy, downstream) do the same work for each request on every
host, so their CPU time follows the host's speed. They do not cost the same under every server:
between servers the unit is their cost under one lane of the run at the same rate.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from copy import replace
from functools import partial
from itertools import chain
from operator import attrgetter

from lab.judge.capacity import Estimate
from lab.judge.grouping import lane_of, median_per_launch
from lab.judge.metrics import without_none
from lab.model import FIGURES, NONE, UNKNOWN, Demand, Drift, InUnits, Line, Row, TrialPlan

# Rates that are closer than this, highest to lowest, give no slope.
LEAST_APART = 1.5
# Rates that are closer count as one; so far beyond the rates of some trials a cost is known.
NEAR = 1.1
# The cost at a rate is by a line of trials whose rates are at most so many times as high or low.
ABOUT = 2.0
# Fewer trials give no interval of a line.
LEAST_OF_LINE = 4
# The control parts are the unit as they cost under the first of these that a run has, else under
# its first lane.
FIXED_LANES = ("event-loop", "virtual-threads")
# The CPUs may be what a server broke by where at least this share of them was busy, and most of the
# trials that broke name them, or nothing.
CPU_BOUND = 0.8
CPUS_OR_NOTHING = ("host CPU", NONE, UNKNOWN, None)
# Medians of quarters that differ by more than DRIFT have drifted, unless scatter explains it: in a
# steady run any figure does so with at most the probability FALSE_ALARM (R. A. Fisher's analysis of
# variance, with Bonferroni's correction).
DRIFT, FALSE_ALARM = 0.1, 0.01
QUARTERS, LEAST_EACH = 4, 3
CONTROL = "control parts"
# Of a machine: the CPU time of all but the server under test, whoever uses it.
BESIDES = "all but the server"


def fit(points: Sequence[tuple[float, float]]) -> Line | None:
    """The line through points (rate, CPU seconds per second), by least squares; through 0 where
    their rates give no slope, or the line no CPU time at the lowest one. None without points, and
    where no CPU time was used."""
    if not points:
        return None
    rates, cpus = zip(*points, strict=True)
    low = min(rates)
    if max(rates) >= LEAST_APART * low:
        b, a = statistics.linear_regression(rates, cpus)
        if b > 0 and a + b * low > 0:
            return Line(b, a, len({*rates}), low)
    b = math.sumprod(rates, cpus) / math.sumprod(rates, rates)
    return Line(b, low=low) if b > 0 else None


def line_of(rows: Sequence[Row], us: Callable[[Row], float | None]) -> Line | None:
    """The line of the valid trials that kept their load; `us` is what a request costs in one, in
    µs. Overloaded trials differ from it by up to 38 %: half of those of fixed-pool in
    docs/results/stress.csv, whose line they made 17 % too low."""
    costs = [(row.achieved_rps, us(row)) for row in rows if row.valid and not row.overloaded]
    return fit([(rate, cost * rate / 1e6) for rate, cost in costs if rate and cost is not None])


def demand_of(
    light: Demand | None, plan: TrialPlan, rows: Sequence[Row], cpus: int | None
) -> Demand | None:
    """The demand of the next trial: the lines of earlier trials of the same load if they have
    several rates, else those of the light load."""
    if light is None:
        return None
    alike = [row for row in rows if row.spun is None and _load(row) == _load(plan)]
    server, host = line_of(alike, attrgetter("cpu_server_us")), line_of(alike, used_us(cpus))
    return replace(
        light,
        server=server if server and server.rates > 1 else light.server,
        host=host if host and host.rates > 1 else light.host,
    )


def _load(trial: Row | TrialPlan) -> tuple[str, str, str]:
    return lane_of(trial), trial.route, trial.engine


def control_us(row: Row) -> float | None:
    """CPU time of the control parts in µs per request; None where one of them is unknown."""
    parts = without_none(row.cpu_generator_us, row.cpu_proxy_us, row.cpu_downstream_us)
    return sum(parts) if len(parts) == 3 else None


def control_at(rows: Sequence[Row], rate: float) -> Estimate | None:
    """What a request costs the control parts at a rate, in µs, with its interval of 95 %: a line of
    the logarithms over the trials about it, by least squares. None where these are too few."""
    # Slow to import, and seldom needed.
    from scipy.special import stdtrit

    costs = [(row.achieved_rps, control_us(row)) for row in rows]
    points = [
        (math.log(at / rate), math.log(cost))
        for at, cost in costs
        if at and cost and rate / ABOUT <= at <= rate * ABOUT
    ]
    free = len(points) - 2
    if len(points) < LEAST_OF_LINE:
        return None
    loads, logs = zip(*points, strict=True)
    middle, spread = statistics.fmean(loads), statistics.variance(loads) * (len(points) - 1)
    slope, at_rate = statistics.linear_regression(loads, logs) if spread else (0.0, 0.0)
    at_rate = at_rate if spread else statistics.fmean(logs)
    rest = sum((log - at_rate - slope * load) ** 2 for load, log in points) / free
    away = middle**2 / spread if spread else 0.0
    half = float(stdtrit(free, 0.975)) * math.sqrt(rest * (1 / len(points) + away))
    return Estimate(math.exp(at_rate), math.exp(at_rate - half), math.exp(at_rate + half))


def used_us(cpus: int | None) -> Callable[[Row], float | None]:
    """CPU time in µs per request of a host of so many CPUs, by whatever work; None if unknown."""

    def us(row: Row) -> float | None:
        if row.host_busy is None or not row.achieved_rps or not cpus:
            return None
        return row.host_busy * cpus * 1e6 / row.achieved_rps

    return us


def in_units(
    name: str, rows: Sequence[Row], held: Sequence[Row], broke: Sequence[Row], cpus: int | None
) -> tuple[InUnits, ...]:
    """A headline in units, under this name: of the trials that `held` it, the trials that `broke`
    above it, and all `rows` of the run. `cpus` are the host's. Empty where the CPU time of a part
    is unknown."""
    held = [row for row in held if row.valid and row.achieved_rps and row.cpu_server_us]
    if not held:
        return ()
    like = [row for row in rows if row.spun is None and _load(row)[1:] == _load(held[0])[1:]]
    lane, unit_us = _unit(like, held)

    def units(row: Row) -> float | None:
        us = unit_us(row)
        return (row.cpu_server_us or 0.0) / us if us else None

    cost = median_per_launch(held, units)
    if cost is None:
        return ()
    # Under the fixed lane all launches share one unit, whose error no interval over them has. Its
    # launches cannot be resampled: about many rates one or two have trials (in capacity-models.csv
    # up to 4,000 req/s), and where all have, their unit scatters by 1 to 6 %.
    interval = cost.interval if lane is None else None
    low, high = (interval.low, interval.high) if interval else (None, None)
    busy = [row.host_busy for row in broke or held if row.host_busy is not None]
    share = statistics.median(busy) if busy else None
    named = sum(row.bottleneck in CPUS_OR_NOTHING for row in broke)
    full = share is not None and share >= CPU_BOUND and 2 * named > len(broke)
    same_lane = [row for row in like if _load(row) == _load(held[0])]
    line = line_of(same_lane, used_us(cpus)) if full else None
    us = statistics.median(row.cpu_server_us or 0.0 for row in held)
    control = statistics.median(unit for row in held if (unit := unit_us(row)))
    rest = lane, us, control, share, bool(broke), cpus, line
    return (InUnits("units", name, 0, cost.median, CONTROL, low, high, *rest),)


def _unit(
    like: Sequence[Row], held: Sequence[Row]
) -> tuple[str | None, Callable[[Row], float | None]]:
    """The fixed lane, and what the control parts cost under it at a row's rate; None, and what they
    cost in the row itself, where the run has one lane, or the fixed one no trials about there."""
    lanes = list(dict.fromkeys(map(lane_of, like)))
    fixed = next((lane for lane in FIXED_LANES if lane in lanes), lanes[0])
    kept = [
        row
        for row in like
        if lane_of(row) == fixed and row.valid and control_us(row) and not row.overloaded
    ]

    def under_fixed(row: Row) -> float | None:
        """By the line of the trials about its rate, where it is among theirs. Over all rates the
        cost is no line: at a tenth of the highest one it is less than that."""
        near, rate = _about(row, kept, ABOUT), row.achieved_rps or 0.0
        line, rates = line_of(near, control_us), [trial.achieved_rps or 0.0 for trial in near]
        if line is None or not min(rates) / NEAR <= rate <= max(rates) * NEAR:
            return None
        return line.each_s(rate) * 1e6

    if len(lanes) < 2 or None in map(under_fixed, held):
        return None, control_us
    return fixed, under_fixed


def _about(row: Row, rows: Sequence[Row], times: float) -> list[Row]:
    """Those whose rate is at most so many times as high or low as the row's."""
    rate = row.achieved_rps or 0.0
    return [near for near in rows if rate / times <= (near.achieved_rps or 0.0) <= rate * times]


def expected_rps(line: Line, cpus: float, busy: float, slower: float = 1.0) -> float:
    """λ* = (CPUs · U* - a) / b: the rate at which that share of the CPUs is busy, on a host where
    all CPU time is so many times as long."""
    return (cpus * busy / slower - line.a) / line.b


def drift(rows: Sequence[Row], cpus: int | None) -> tuple[Drift, ...]:
    """What differs between quarters of a run's trials, in the order of time, by more than DRIFT and
    than chance: figures of ref, and the cost of the control parts, and of all but the server, over
    that in trials of the same rate. What a server costs changes while its JVM compiles."""
    ordered = sorted((row for row in rows if row.started_at), key=attrgetter("started_at"))

    def besides_us(row: Row) -> float | None:
        used = used_us(cpus)(row)
        return used - row.cpu_server_us if used and row.cpu_server_us else None

    def relative(cost_us: Callable[[Row], float | None], row: Row) -> float | None:
        us = cost_us(row)
        if not us or not row.valid:
            return None
        alike = [trial for trial in rows if _load(trial) == _load(row) and trial.valid]
        costs = [cost for trial in _about(row, alike, NEAR) if (cost := cost_us(trial))]
        return us / statistics.median(costs)

    values: dict[str, Callable[[Row], float | None]]
    values = {CONTROL: partial(relative, control_us), BESIDES: partial(relative, besides_us)}
    values |= {name: attrgetter(name) for name in FIGURES}
    drifts = []
    for what, value in values.items():
        quarters: list[list[float]] = [[] for _ in range(QUARTERS)]
        for at, row in enumerate(ordered):
            if (figure := value(row)) is not None:
                quarters[at * QUARTERS // len(ordered)].append(figure)
        if min(map(len, quarters)) < LEAST_EACH:
            continue
        medians = tuple(map(statistics.median, quarters))
        change = max(medians) / min(medians) - 1
        if change > DRIFT and _by_chance(quarters) * len(values) < FALSE_ALARM:
            drifts.append(Drift("drift", "", 0, change, "share", None, None, what, medians))
    return tuple(drifts)


def _by_chance(quarters: Sequence[Sequence[float]]) -> float:
    """The probability that quarters of one distribution differ so much, by analysis of variance of
    their logarithms. A test of ranks would not find one slow quarter of six trials."""
    # Slow to import, and seldom needed.
    from scipy.special import fdtrc

    logs = [[math.log(value) for value in quarter] for quarter in quarters]
    mean, free = statistics.fmean(chain.from_iterable(logs)), len(quarters) - 1
    between = sum(len(quarter) * (statistics.fmean(quarter) - mean) ** 2 for quarter in logs) / free
    within = sum((len(quarter) - 1) * statistics.variance(quarter) for quarter in logs)
    rest = sum(map(len, logs)) - len(logs)
    return float(fdtrc(free, rest, between * rest / within)) if within else 0.0
