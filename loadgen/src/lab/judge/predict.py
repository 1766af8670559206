"""Bounds before anything runs: rates that no run of this load can exceed.

Operational analysis (P. J. Denning, J. P. Buzen, "The Operational Analysis of Queueing Network
Models", ACM Computing Surveys 10(3), 1978) bounds the rate X of a closed system of N customers by
N / (R0 + Z), R0 the response time without any waiting and Z the time a customer thinks between an
answer and the next request, and by m / S for each resource of m servers that a request holds for S.
An open load adds that no more is answered than is offered. These bounds are hard.

Here the generator thinks, for some ten µs: nothing for the lab's routes, and much for a service
that answers as quickly, whose Z is measured over one connection before the load.

CPU time per request is measured (`demand`): at a rate X it is a/X + b, as work is done in larger
batches under more load. By the utilization law m CPUs bound X by (m - a)/b. The line may differ at
loads that were not measured, so these bounds are estimates: they show what to expect, and make no
trial invalid. All bounds of an external service are estimates: its R0, with its computing, is
measured, and its limits are unknown.

A delay drawn for each call counts with its mean. Percentiles are predicted only where a request
waits for nothing but its own delay.
"""

import math
import re
from collections.abc import Iterator, Sequence
from copy import replace
from dataclasses import dataclass

from lab.model import (
    AS_IT_IS,
    OFFERED,
    TO_CALLED,
    TO_SERVER,
    Arrivals,
    Bound,
    Condition,
    Demand,
    Snapshot,
    Spread,
)
from lab.model.routes import RouteCall, parse

# RATE=auto leaves connections to spare until an answer takes so many times R0: what the default
# objective of a search leaves at the default delay, 500 of 200 ms.
AUTO_LATENCIES = 2.5
# So many times as many connections as a latency keeps busy at a rate (Little's law) leave some to
# spare: then requests wait in the server, and not for a connection.
MORE = 1.2
# A light load that reaches this share of connections / R0 waits for hardly anything else.
HELD = 0.5
# With drawn delays the number of requests at a time varies. Where nothing is full it is that of
# M/G/∞, a Poisson distribution whatever the delays (L. Takács, Introduction to the Theory of
# Queues, 1962, chapter 3). It is so many standard deviations above its mean 0.1 % of the time.
SPARE = 3.0
# A deadline may cut at most this share off the mean of the drawn delays for the mean to count.
MOST_CUT = 0.05
# A window has at least so many mean latencies. In a shorter one the edges hold more of the answers
# than the middle, and Little's law can hardly fail. A latency may prove longer than expected, so
# windows are planned to have more.
LEAST_LATENCIES = 4.5
PLANNED_LATENCIES = 5.5
# The JDK from which on `synchronized` pins no carrier.
UNPINNED = 24
# BLOCK_THE_LOOP: a wait is computing on the loop's thread.
SPIN = "spin"


@dataclass(frozen=True, slots=True)
class Prediction:
    """All bounds, the tightest first, and the `demand` that the estimates come from.

    `expected_ms` is the mean response time at the tightest bound X (`_response_time_ms`), and
    `expected_p95_ms` is the same where all requests wait alike. Where they do not, it is that of
    the delay and what is added to it. Both are None if unknown. Where the bounds are not `covered`,
    nothing is predicted: refused or cut answers can come faster than any real answer.
    """

    bounds: tuple[Bound, ...]
    covered: bool = True
    expected_ms: float | None = None
    expected_p95_ms: float | None = None
    demand: Demand | None = None

    @property
    def rps(self) -> float | None:
        """The tightest hard bound; None where there is none."""
        return next((bound.rps for bound in self.holding if not bound.estimate), None)

    @property
    def holding(self) -> tuple[Bound, ...]:
        """The bounds that hold: all of them, or none."""
        return self.bounds if self.covered else ()


def response_time_ms(call: RouteCall, snapshot: Snapshot) -> float:
    """R0: how long one request takes when nothing queues, without its computing: the mean time that
    the server holds it, and a round trip to the server's machine. 0 where it only computes."""
    held_ms = hold_time_ms(call, snapshot)
    return held_ms + snapshot.way_ms(TO_SERVER) if held_ms else 0.0


def hold_time_ms(call: RouteCall, snapshot: Snapshot) -> float:
    """How long the server holds a request when nothing queues, without its computing: its wait, and
    a round trip to the downstream's machine. 0 where it only computes."""
    if call.wait_ms is not None:
        return call.wait_ms
    own_ms = snapshot.downstream_delay_ms + snapshot.toxics.added_latency_ms
    return own_ms + snapshot.way_ms(TO_CALLED)


def response_spread(call: RouteCall | None, snapshot: Snapshot) -> Spread | None:
    """How R0 spreads: the downstream's delay, and on top of it what toxics and the network add.
    None where all requests wait alike, toxics with jitter aside, and for an unknown route."""
    spread = hold_spread(call, snapshot)
    return _later(spread, snapshot.way_ms(TO_SERVER)) if spread else None


def hold_spread(call: RouteCall | None, snapshot: Snapshot) -> Spread | None:
    """As `response_spread`, of `hold_time_ms`."""
    if snapshot.spread is None or call is None or not call.route.calls_downstream:
        return None
    added_ms = snapshot.toxics.added_latency_ms + snapshot.way_ms(TO_CALLED)
    return _later(snapshot.spread, added_ms)


def _later(spread: Spread, added_ms: float) -> Spread:
    moved = ("median_ms", "p95_ms", "p99_ms", "longest_ms")
    return replace(spread, **{name: getattr(spread, name) + added_ms for name in moved})


def is_covered(call: RouteCall, snapshot: Snapshot) -> bool:
    """False under conditions that no bound covers: some toxics, and a deadline that cuts more than
    1 % of the drawn delays, or much of their mean. Then the quick ones are answered more often than
    they are drawn."""
    if not call.route.calls_downstream:
        return True
    spread, deadline_ms = hold_spread(call, snapshot), snapshot.setting("downstream_timeout_ms")
    if snapshot.toxics.unpredicted or spread is None or not deadline_ms:
        return not snapshot.toxics.unpredicted
    return spread.p99_ms <= deadline_ms and _cut(call, snapshot, spread) <= MOST_CUT


def most_beyond(call: RouteCall, snapshot: Snapshot, answers: float) -> float:
    """By what share a window of so many answers may exceed a bound on X because its delays were
    drawn: their mean varies (four standard errors), and calls that the deadline ends do not take
    their whole delay. 0 where all requests wait alike."""
    spread = hold_spread(call, snapshot)
    if spread is None:
        return 0.0
    cut = _cut(call, snapshot, spread)
    return 4 * rate_error(call, snapshot, answers) + cut / (1 - cut)


def _cut(call: RouteCall, snapshot: Snapshot, spread: Spread) -> float:
    """What the server's deadline T takes off the mean of the delays S at most, as a share of it:
    E[(S - T)+] / E[S], bounded for any distribution by its mean and variance (H. Scarf, "A Min-Max
    Solution of an Inventory Problem", 1958)."""
    deadline_ms, hold_ms = snapshot.setting("downstream_timeout_ms"), hold_time_ms(call, snapshot)
    if not deadline_ms or spread.longest_ms <= deadline_ms:
        return 0.0
    over_ms = deadline_ms - hold_ms
    return (math.hypot(spread.sd_ms, over_ms) - over_ms) / 2 / hold_ms


def rate_error(call: RouteCall, snapshot: Snapshot, answers: float) -> float:
    """The standard error of the rate, as a share of it, that comes from so many drawn delays: that
    of their mean. 0 where all requests wait alike."""
    spread, r0_ms = response_spread(call, snapshot), response_time_ms(call, snapshot)
    if spread is None or r0_ms <= 0:
        return 0.0
    return spread.sd_ms / r0_ms / math.sqrt(max(1.0, answers))


def crossing_s(latency_s: float, call: RouteCall | None, snapshot: Snapshot) -> float:
    """The mean latency of the requests that are under way at an edge of the window, where that of
    all is `latency_s`. Long ones are met more often: it is E[R²] / E[R] = E[R] + Var(R) / E[R]
    (W. Feller, An Introduction to Probability Theory and Its Applications 2, 1971, I.4). Only the
    variance of a drawn delay counts. `call` None: an unknown route."""
    spread = response_spread(call, snapshot)
    if spread is None or latency_s <= 0:
        return latency_s
    return latency_s + (spread.sd_ms / 1000) ** 2 / latency_s


def needed_window_s(latency_s: float, call: RouteCall | None, snapshot: Snapshot) -> int:
    return math.ceil(PLANNED_LATENCIES * crossing_s(latency_s, call, snapshot) - 1e-9)


def predict(
    path: str,
    concurrency: int,
    offered_rps: int | None,
    snapshot: Snapshot,
    demand: Demand | None = None,
    host_cores: int | None = None,
    condition: Condition = AS_IT_IS,
    arrivals: Arrivals = "constant",
) -> Prediction:
    """The bounds of one trial. `path` is a valid route, with its query. `host_cores` is how many
    CPUs the machine has that server, generator, proxy and downstream share."""
    bounds = []
    if offered_rps is not None:
        bounds.append(Bound(OFFERED, offered_rps, f"{offered_rps} req/s offered"))
    if snapshot.identity is None:
        return _by_light_load(bounds, concurrency, snapshot.pool_size, demand, host_cores)
    call = parse(path)
    r0_ms = response_time_ms(call, snapshot)
    cpus = _cpus(snapshot, condition)
    for name, count, busy_ms in _resources(call, concurrency, snapshot, cpus):
        if count and busy_ms:
            rps = count * 1000 / busy_ms
            bounds.append(Bound(name, rps, f"{count:g} / {busy_ms / 1000:g} s"))
    if demand is not None:
        # What a spinner takes away is not there.
        free = host_cores and host_cores * (1 - (condition.spin or 0.0))
        bounds += _estimates(demand, cpus, free, concurrency if not r0_ms else None)
    bounds.sort(key=lambda bound: bound.rps)
    prediction = Prediction(tuple(bounds), is_covered(call, snapshot), demand=demand)
    # Arrivals at random queue below every bound.
    if not prediction.covered or arrivals != "constant":
        return prediction
    spins = snapshot.settings.get("block_the_loop") == SPIN
    # R0 leaves out the way of a request that only computes.
    least_ms = r0_ms or snapshot.way_ms(TO_SERVER)
    mean_ms = _response_time_ms(bounds, concurrency, offered_rps, least_ms, demand, spins=spins)
    spread, p95_ms = response_spread(call, snapshot), mean_ms
    if mean_ms is not None and spread is not None:
        # What is not waiting for the downstream is the same for all.
        p95_ms = spread.p95_ms + (mean_ms - r0_ms)
        p95_ms = None if _queues(bounds, offered_rps, r0_ms) else p95_ms
    if call.route.calls_downstream and snapshot.toxics.jittered:
        p95_ms = None
    return replace(prediction, expected_ms=mean_ms, expected_p95_ms=p95_ms)


def _queues(bounds: Sequence[Bound], offered_rps: int | None, r0_ms: float) -> bool:
    """True if requests with drawn delays also wait for each other, so that their percentiles are
    not those of the delays."""
    held = [bound for bound in bounds if bound.resource != OFFERED]
    if not held:
        return False
    if offered_rps is None:
        return held[0].resource != "connections"
    hard = next((bound for bound in held if not bound.estimate), held[0])
    r0_s = r0_ms / 1000
    busy, there = offered_rps * r0_s, hard.rps * r0_s
    return there - busy < SPARE * math.sqrt(busy)


def _by_light_load(
    offered: Sequence[Bound],
    concurrency: int,
    pool_size: float | None,
    demand: Demand | None,
    host_cores: int | None,
) -> Prediction:
    """The prediction for a service of which only a light load was measured. count / R0 is no bound
    where even the light load fell far below connections / (R0 + Z) and no cost of a request
    explains that: then it is unknown what limits. It does not report how many CPUs it may use."""
    if demand is None:
        return Prediction(tuple(offered))
    bounds, cycle_ms, light_rps = [*offered], demand.cycle_ms, demand.light_rps
    explained = not cycle_ms or light_rps is None or demand.host
    if explained or (light_rps or 0.0) >= HELD * demand.connections * 1000 / (cycle_ms or 1.0):
        for resource, count, held_ms in (
            ("connections", concurrency, cycle_ms),
            ("worker pool", pool_size, demand.r0_ms),
        ):
            if count and held_ms:
                formula = f"{count} / {held_ms / 1000:.3g} s"
                bounds.append(Bound(resource, count * 1000 / held_ms, formula, estimate=True))
    bounds += _estimates(demand, None, host_cores, None)
    bounds.sort(key=lambda bound: bound.rps)
    # One connection's mean says nothing of an open load.
    if offered or not bounds:
        return Prediction(tuple(bounds), demand=demand)
    queued_ms = concurrency * 1000 / bounds[0].rps - (demand.think_ms or 0.0)
    expected_ms = max(demand.r0_ms or 0.0, queued_ms) or None
    return Prediction(tuple(bounds), True, expected_ms, expected_ms, demand)


def _cpus(snapshot: Snapshot, condition: Condition) -> float:
    """The CPUs that the server may use. A JVM counts whole CPUs; the quota of its container is read
    back, unless the trial's condition sets it."""
    given = condition.host.get("SERVER_CPUS")
    quota = float(given) if given else snapshot.cpu_quota
    cpus = snapshot.own_identity.cpus
    return min(cpus, quota) if quota else cpus


def _estimates(
    demand: Demand, cpus: float | None, host_cores: float | None, busy_only: int | None
) -> Iterator[Bound]:
    """(m - a)/b for the CPUs, and for the `busy_only` connections of a route that does not wait."""
    for resource, count, line in (
        ("connections", busy_only, demand.server),
        ("server CPU", cpus, demand.server),
        ("host CPU", host_cores, demand.host),
    ):
        if count and line and (rps := line.rps(count)) > 0:
            free = f"({count:g} - {line.a:.2g})" if line.a else f"{count:g}"
            yield Bound(resource, rps, f"{free} / {line.b * 1000:.3g} ms", estimate=True)


def _response_time_ms(
    bounds: Sequence[Bound],
    concurrency: int,
    offered_rps: int | None,
    r0_ms: float,
    demand: Demand | None,
    *,
    spins: bool,
) -> float | None:
    """The mean response time R that follows from the bounds: R0 plus the server's CPU time D where
    nothing queues; where waits are computing (`spins`), D is all of it. A closed load at its
    tightest bound X has N/X, where that is more (Little's law). None for an open load at or beyond
    its tightest bound: it queues without limit."""
    least_ms, rps = r0_ms, offered_rps or (bounds[0].rps if bounds else None)
    if demand is not None and demand.server is not None and rps:
        cpu_ms = demand.server.each_s(rps) * 1000
        least_ms = max(r0_ms, cpu_ms) if spins else r0_ms + cpu_ms
    if offered_rps is None:
        queued_ms = concurrency * 1000 / bounds[0].rps if bounds else 0.0
        return max(least_ms, queued_ms) or None
    others = [bound.rps for bound in bounds if bound.resource != OFFERED]
    return None if others and min(others) <= offered_rps else least_ms or None


def _resources(
    call: RouteCall, concurrency: int, snapshot: Snapshot, cpus: float
) -> Iterator[tuple[str, float | None, float]]:
    """(name, how many there are, how many ms a request holds one of them)."""
    held_ms = hold_time_ms(call, snapshot)
    yield "connections", concurrency, response_time_ms(call, snapshot)
    yield "worker pool", snapshot.pool_size, held_ms
    if call.route.calls_downstream:
        yield "downstream connections", snapshot.setting("downstream_connections"), held_ms
    yield "carrier threads", pinned_carriers(call, snapshot), held_ms
    if block := snapshot.settings.get("block_the_loop"):
        yield "event loop", snapshot.setting("loops"), call.asleep_ms
        if block == SPIN:
            yield "server CPU", cpus, call.asleep_ms


def pinned_carriers(call: RouteCall | None, snapshot: Snapshot) -> int | None:
    """How many carriers there are where each request keeps one while it waits: before JDK 24 (JEP
    491) a virtual thread that waits inside `synchronized` does. None where requests keep none.
    Models with neither a pool nor a platform thread per connection have virtual threads."""
    platform = snapshot.settings.get("connection_threads") == "platform"
    if call is None or not call.route.in_synchronized:
        return None
    if snapshot.identity is None or snapshot.pool_size is not None or platform:
        return None
    release = release_of(snapshot.jdk)
    return None if release is None or release >= UNPINNED else snapshot.carriers


def release_of(jdk: str | None) -> int | None:
    """The feature release of a JDK's version, 25 of 25.0.3; None where that is not one."""
    release = re.match(r"\d+", jdk or "")
    return int(release[0]) if release else None


def auto_rate_rps(path: str, concurrency: int, snapshot: Snapshot) -> int | None:
    """RATE=auto: the rate at which the connections are no limit while an answer takes up to
    AUTO_LATENCIES × R0. The network is left out: it is measured again each time, and the rate must
    be the same for every server. None where nothing waits."""
    r0_ms = response_time_ms(parse(path), replace(snapshot, ways=()))
    if r0_ms <= 0:
        return None
    return rate_with_spare(concurrency, AUTO_LATENCIES * r0_ms / 1000)


def rate_with_spare(connections: int, latency_s: float) -> int:
    """The highest rate, but at least 1, that leaves some of these connections to spare where each
    answer takes so long: a share of them (MORE), or so many deviations of the number that is busy
    (SPARE), where that is more."""
    busy = ((math.sqrt(SPARE**2 + 4 * connections) - SPARE) / 2) ** 2
    return max(1, math.floor(min(connections / MORE, busy) / latency_s))
