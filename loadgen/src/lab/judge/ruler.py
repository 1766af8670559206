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
from dataclasses import replace
from operator import attrgetter, itemgetter

from lab.judge.grouping import lane_of, median_per_launch
from lab.model import (
    NONE,
    UNKNOWN,
    Demand,
    Drift,
    InUnits,
    Line,
    Row,
    TrialPlan,
)
from lab.model.ref import FIGURES

# Rates that are closer than this, highest to lowest, give no slope.
LEAST_APART = 1.5
# Rates that are closer count as one; so far beyond the rates of some trials a cost is known.
NEAR = 1.1
# The cost at a rate is by a line of trials whose rates are at most so many times as high or low.
ABOUT = 2.0
# The control parts are the unit as they cost under the first of these that a run has, else under
# its first lane.
FIXED_LANES = ("event-loop", "virtual-threads")
# A host is slower than another by the product of the ratios of ref's figures, each to the power of
# its weight. An assumption, to be fitted: no runs of several hosts have ref yet.
WEIGHTS = {"ref_wake": 0.5, "ref_net": 0.5}
# The CPUs may be what a server broke by where at least this share of them was busy, and most of the
# trials that broke name them, or nothing.
CPU_BOUND = 0.8
CPUS_OR_NOTHING = ("host CPU", NONE, UNKNOWN, None)
# Medians of quarters that differ by more are a drift. To be replaced: the scatter of ref is not
# measured yet.
DRIFT = 0.1
QUARTERS, LEAST_EACH = 4, 2
CONTROL = "control parts"


def fit(points: Sequence[tuple[float, float]]) -> Line | None:
    """The line through points (rate, CPU seconds per second), by least squares; through 0 where
    their rates give no slope. None without points, and where no CPU time was used."""
    if not points:
        return None
    rates, cpus = zip(*points, strict=True)
    low = min(rates)
    if max(rates) >= LEAST_APART * low:
        b, a = statistics.linear_regression(rates, cpus)
        if b > 0:
            return Line(b, a, len({*rates}), low)
    b = math.sumprod(rates, cpus) / math.sumprod(rates, rates)
    return Line(b, low=low) if b > 0 else None


def line_of(rows: Sequence[Row], cpus: Callable[[Row], float | None]) -> Line | None:
    """The line of what `cpus` says of the valid trials."""
    known = [(row.achieved_rps, cpus(row)) for row in rows if row.valid]
    return fit([(rate, used) for rate, used in known if rate and used is not None])


def demand_of(
    light: Demand | None, plan: TrialPlan, rows: Sequence[Row], cpus: int | None
) -> Demand | None:
    """The demand of a trial that is next: the lines of the trials before it that are like it, where
    they have several rates, else what the light load tells."""
    if light is None:
        return None
    its = [row for row in rows if row.spun is None and _load(row) == _load(plan)]
    server, host = line_of(its, server_cpus), line_of(its, lambda row: used_cpus(row, cpus))
    return replace(
        light,
        server=server if server and server.rates > 1 else light.server,
        host=host if host and host.rates > 1 else light.host,
    )


def _load(of: Row | TrialPlan) -> tuple[str, str, str]:
    return lane_of(of), of.route, of.engine


def _cpus(row: Row, each_us: float | None) -> float | None:
    return None if each_us is None or not row.achieved_rps else each_us * row.achieved_rps / 1e6


def server_cpus(row: Row) -> float | None:
    return _cpus(row, row.cpu_server_us)


def control_us(row: Row) -> float | None:
    """CPU time of the control parts in µs per request; None where one of them is unknown."""
    parts = (row.cpu_generator_us, row.cpu_proxy_us, row.cpu_downstream_us)
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def control_cpus(row: Row) -> float | None:
    return _cpus(row, control_us(row))


def used_cpus(row: Row, cpus: int | None) -> float | None:
    """How many of the host's CPUs were in use, by whatever work; None if unknown."""
    return None if row.host_busy is None or not cpus else row.host_busy * cpus


def in_units(
    name: str, rows: Sequence[Row], own: Sequence[Row], broke: Sequence[Row], cpus: int | None
) -> tuple[InUnits, ...]:
    """A headline in units, under this name: of the trials `own` of a lane, the trials that `broke`
    above it, and all `rows` of the run. `cpus` are the host's. Empty where the CPU time of a part
    is unknown."""
    own = [row for row in own if row.valid and row.achieved_rps and row.cpu_server_us is not None]
    if not own:
        return ()
    like = [row for row in rows if row.spun is None and _load(row)[1:] == _load(own[0])[1:]]
    lane, unit_us = _unit(like, own)

    def units(row: Row) -> float | None:
        us = unit_us(row)
        return row.cpu_server_us / us if us and row.cpu_server_us else None

    found = median_per_launch(own, units)
    if found is None:
        return ()
    busy = [used for row in broke or own if (used := used_cpus(row, cpus)) is not None]
    share = statistics.median(busy) / cpus if busy and cpus else None
    named = sum(row.bottleneck in CPUS_OR_NOTHING for row in broke)
    full = share is not None and share >= CPU_BOUND and 2 * named > len(broke)
    its = [row for row in like if _load(row) == _load(own[0])]
    between = found.interval
    whole = InUnits(
        name="units",
        server=name,
        launch=0,
        value=found.median,
        unit=CONTROL,
        low=between.low if between else None,
        high=between.high if between else None,
        text="",
        lane=lane,
        server_us=statistics.median(row.cpu_server_us or 0.0 for row in own),
        busy=share,
        broke=bool(broke),
        cpus=cpus,
        line=line_of(its, lambda row: used_cpus(row, cpus)) if full else None,
        ref=_ref(its),
    )
    return (whole,)


def _ref(rows: Sequence[Row]) -> dict[str, float]:
    """The medians of what WEIGHTS has; empty where one of them is unknown."""
    values = {name: [getattr(row, name) for row in rows] for name in WEIGHTS}
    known = {name: [one for one in of if one] for name, of in values.items()}
    if not all(known.values()):
        return {}
    return {name: statistics.median(of) for name, of in known.items()}


def _unit(
    like: Sequence[Row], own: Sequence[Row]
) -> tuple[str | None, Callable[[Row], float | None]]:
    """The fixed lane, and what the control parts cost under it at a row's rate; None, and what they
    cost in the row itself, where the run has one lane, or the fixed one no trials about there."""
    lanes = list(dict.fromkeys(map(lane_of, like)))
    fixed = next((lane for lane in FIXED_LANES if lane in lanes), lanes[0])
    its = [row for row in like if lane_of(row) == fixed]

    def under_fixed(row: Row) -> float | None:
        return _control_us_at(row.achieved_rps or 0.0, its)

    if len(lanes) < 2 or None in map(under_fixed, own):
        return None, control_us
    return fixed, under_fixed


def _control_us_at(rate: float, rows: Sequence[Row]) -> float | None:
    """What the control parts cost at a rate, by the line of these trials about it; None where it is
    not among their rates. Over all rates the cost is no line: at a tenth of the highest one it is
    less than that."""
    near = [row for row in rows if row.valid and _about(row, rate, ABOUT) and control_us(row)]
    line, rates = line_of(near, control_cpus), [row.achieved_rps or 0.0 for row in near]
    if line is None or not min(rates) / NEAR <= rate <= max(rates) * NEAR:
        return None
    return line.each_s(rate) * 1e6


def _about(row: Row, rate: float, times: float) -> bool:
    return rate / times <= (row.achieved_rps or 0.0) <= rate * times


def expected_rps(line: Line, cpus: float, busy: float, slower: float = 1.0) -> float:
    """λ* = (CPUs · U* - a) / b: the rate at which that share of the CPUs is busy, on a host where
    all CPU time is so many times as long."""
    return (cpus * busy / slower - line.a) / line.b


def drift(rows: Sequence[Row]) -> tuple[Drift, ...]:
    """What differs between quarters of a run's trials, in the order of time, by more than DRIFT:
    figures of ref, and the cost of the control parts over that in trials of the same rate."""
    known = [(row.started_at, row) for row in rows if row.started_at is not None]
    ordered = [row for _, row in sorted(known, key=itemgetter(0))]

    def relative(row: Row) -> float | None:
        us, rate = control_us(row), row.achieved_rps
        if not us or not rate or not row.valid:
            return None
        its = [one for one in rows if _load(one) == _load(row) and _about(one, rate, NEAR)]
        same = [each for one in its if one.valid and (each := control_us(one))]
        return us / statistics.median(same)

    values: dict[str, Callable[[Row], float | None]]
    values = {CONTROL: relative, **{name: attrgetter(name) for name in FIGURES}}
    found = []
    for what, value in values.items():
        quarters: list[list[float]] = [[] for _ in range(QUARTERS)]
        for at, row in enumerate(ordered):
            if (one := value(row)) is not None:
                quarters[at * QUARTERS // len(ordered)].append(one)
        if min(map(len, quarters)) < LEAST_EACH:
            continue
        medians = tuple(map(statistics.median, quarters))
        change = max(medians) / min(medians) - 1
        if change > DRIFT:
            none = None, None, ""
            found.append(Drift("drift", "", 0, change, "share", *none, what, medians))
    return tuple(found)
