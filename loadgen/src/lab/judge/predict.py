"""Bounds before anything runs: rates that no run of this load can exceed.

Operational analysis (P. J. Denning, J. P. Buzen, "The Operational Analysis of Queueing
Network Models", ACM Computing Surveys 10(3), 1978) bounds the throughput X of a closed
system by N/R0, N customers and R0 the response time without any waiting, and by m/S for
each resource of m servers that a request holds for S: a pool's threads, connections to the
downstream, event loops that wait by blocking. N = X·R itself is Little's law (J. D. C. Little,
"A Proof for the Queuing Formula L = λW", Operations Research 9(3), 1961). An open load
adds that no more is answered than is offered. These bounds are hard: nothing real is faster.

A light load (`demand`) measures how much a request computes. By the utilization law, U = X·D, a
resource of m CPUs of which a request needs D seconds bounds X by m/D. D may change under load, so
these bounds are estimates: they tell what to expect, and make no trial invalid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lab.model import AS_IT_IS, OFFERED, Arrivals, Bound, Condition, Demand, Snapshot
from lab.model.routes import RouteCall, parse

# At 100 % of the bound even a perfect server queues without limit.
AUTO_SHARE = 0.9
# A light load that reaches this share of connections / R0 waits for hardly anything else.
HELD = 0.5
NO_LATENCY = "; latency not predicted: Poisson arrivals queue"


@dataclass(frozen=True, slots=True)
class Prediction:
    """All bounds, the tightest first, and the `demand` that the estimates come from.

    `at_random`: arrivals come at random (Poisson). They queue below every bound, the more the
    closer they come to one, so no response time is predicted.
    `expected_p95_ms` is the response time at the tightest bound X (`_response_time_ms`). `caveats`
    name conditions that no bound covers. With a caveat nothing is predicted: refused or cut answers
    can come faster than any real answer.
    """

    bounds: tuple[Bound, ...]
    caveats: tuple[str, ...] = ()
    expected_p95_ms: float | None = None
    demand: Demand | None = None
    at_random: bool = False

    @property
    def rps(self) -> float | None:
        """The tightest hard bound; None where there is none."""
        return next((bound.rps for bound in self.holding if not bound.estimate), None)

    @property
    def holding(self) -> tuple[Bound, ...]:
        """The bounds that hold: all of them, or none where there is a caveat."""
        return () if self.caveats else self.bounds

    @property
    def text(self) -> str:
        """The prediction in a line: the tightest hard bound, then the estimates."""
        if self.caveats:
            return f"none: no bound covers {', '.join(self.caveats)}"
        hard = [bound for bound in self.bounds if not bound.estimate]
        parts = [
            f"≤ {bound.rps:,.0f} req/s ({bound.resource}: {bound.formula})" for bound in hard[:1]
        ]
        parts += [
            # Two digits: a light load is no more precise.
            f"{bound.resource} ≈ {float(f'{bound.rps:.2g}'):,.0f} req/s (estimate: {bound.formula})"
            for bound in self.bounds
            if bound.estimate
        ]
        known = "; ".join(parts) or "none: nothing that is known bounds this load"
        return f"{known}{NO_LATENCY if self.at_random else ''}"


def response_time_ms(call: RouteCall, snapshot: Snapshot) -> float:
    """R0: how long one request takes when nothing waits in a queue, without its computing. 0 where
    it only computes."""
    wait_ms = call.wait_ms
    if wait_ms is not None:
        return wait_ms
    return snapshot.downstream_delay_ms + snapshot.toxics.added_latency_ms


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
    if snapshot.foreign:
        bounds += _of_foreign(concurrency, snapshot, demand, host_cores)
        bounds.sort(key=lambda bound: bound.rps)
        expected_ms = None
        if offered_rps is None and bounds:  # One connection's mean tells nothing of an open load.
            r0_ms = demand.r0_ms or 0.0 if demand else 0.0
            expected_ms = _response_time_ms(bounds, concurrency, None, r0_ms, None)
        return Prediction(tuple(bounds), (), expected_ms, demand)
    call = parse(path)
    r0_ms = response_time_ms(call, snapshot)
    for name, count, busy_ms in _resources(call, concurrency, snapshot, r0_ms):
        if count and busy_ms:
            rps = count * 1000 / busy_ms
            bounds.append(Bound(name, rps, f"{count} / {busy_ms / 1000:g} s"))
    if demand is not None:
        cpus = _cpus(snapshot, condition)
        # What a spinner takes away is not there.
        free = host_cores and host_cores * (1 - (condition.spin or 0.0))
        bounds += _estimates(demand, cpus, free, concurrency if not r0_ms else None)
    caveats = snapshot.toxics.unpredicted if call.route.calls_downstream else ()
    bounds.sort(key=lambda bound: bound.rps)
    expected_ms = None
    at_random = arrivals != "constant"
    if not caveats and not at_random:
        expected_ms = _response_time_ms(bounds, concurrency, offered_rps, r0_ms, demand)
    return Prediction(tuple(bounds), caveats, expected_ms, demand, at_random)


def _of_foreign(
    concurrency: int, snapshot: Snapshot, demand: Demand | None, host_cores: int | None
) -> Iterator[Bound]:
    """The bounds for a service that is not the lab's. All are estimates: R0, which includes
    computing, and CPU time are measured, and the service's limits are not known."""
    if demand is None:
        return
    pool = snapshot.exported.pool_size if snapshot.exported else None
    for resource, count in (("connections", concurrency), ("worker pool", pool)):
        if count and demand.r0_ms and _holds_r0(demand):
            formula = f"{count} / {demand.r0_ms / 1000:.3g} s"
            yield Bound(resource, count * 1000 / demand.r0_ms, formula, estimate=True)
    # It does not tell how many CPUs it may use.
    yield from _estimates(demand, None, host_cores, None)


def _holds_r0(demand: Demand) -> bool:
    """Whether count / R0 tells what to expect. It does not where even the light load fell far below
    it and no cost of a request explains that: then nobody knows what limits."""
    if not demand.r0_ms or demand.light_rps is None or demand.host_cpu_s:
        return True
    return demand.light_rps >= HELD * demand.connections * 1000 / demand.r0_ms


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
    """m/D for the CPUs, and N/D for the `busy_only` connections of a route that does not wait."""
    for resource, count, each_s in (
        ("connections", busy_only, demand.server_cpu_s),
        ("server CPU", cpus, demand.server_cpu_s),
        ("host CPU", host_cores, demand.host_cpu_s),
    ):
        if count and each_s:
            formula = f"{count:g} / {each_s * 1000:.3g} ms"
            yield Bound(resource, count / each_s, formula, estimate=True)


def _response_time_ms(
    bounds: Sequence[Bound],
    concurrency: int,
    offered_rps: int | None,
    r0_ms: float,
    demand: Demand | None,
) -> float | None:
    """The response time R that follows from the bounds. It is R0 plus the server's CPU time D where
    nothing queues. A closed load at its tightest bound X has N/X, where that is more (Little's
    law). An open load queues without limit from its tightest bound on: None. R is a mean; p95 is
    close to it where all requests wait alike."""
    least_ms = r0_ms
    if demand is not None and demand.server_cpu_s is not None:
        least_ms += demand.server_cpu_s * 1000
    if offered_rps is None:
        queued_ms = concurrency * 1000 / bounds[0].rps if bounds else 0.0
        return max(least_ms, queued_ms) or None
    others = [bound.rps for bound in bounds if bound.resource != OFFERED]
    return None if others and min(others) <= offered_rps else least_ms or None


def _resources(
    call: RouteCall, concurrency: int, snapshot: Snapshot, r0_ms: float
) -> Iterator[tuple[str, int | None, float]]:
    """(name, how many there are, how many ms a request holds one of them)."""
    yield "connections", concurrency, r0_ms
    yield "worker pool", snapshot.setting("pool_size"), r0_ms
    if call.route.calls_downstream:
        yield "downstream connections", snapshot.setting("downstream_connections"), r0_ms
    if snapshot.settings.get("block_the_loop") is True:
        yield "event loop", snapshot.setting("loops"), call.asleep_ms


def auto_rate_rps(path: str, concurrency: int, snapshot: Snapshot) -> int | None:
    """RATE=auto: 90 % of N/R0, which is the same for every server. None where nothing waits. Once
    an answer takes R0 / 0.9 all connections are busy, and limit the load (verdict/load.py)."""
    r0_ms = response_time_ms(parse(path), snapshot)
    if r0_ms <= 0:
        return None
    return max(1, math.floor(AUTO_SHARE * concurrency * 1000 / r0_ms))
