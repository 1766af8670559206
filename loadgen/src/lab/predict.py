"""Bounds before anything runs: what no run of this load can exceed.

Operational analysis (P. J. Denning, J. P. Buzen, "The Operational Analysis of Queueing
Network Models", ACM Computing Surveys 10(3), 1978) bounds the throughput X of a closed
system by N/R0, N customers and R0 the response time without any waiting, and by m/S for
each resource of m servers that a request holds for S: a pool's threads, connections to the
downstream, event loops that wait by blocking. N = X·R itself is Little's law (J. D. C. Little,
"A Proof for the Queuing Formula L = λW", Operations Research 9(3), 1961). An open load adds:
no more than is offered is answered. What a request computes is not known before a run, so
a route that only computes has no bound but that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from lab.routes import RouteCall, parse
from lab.types import Bound, Snapshot

# At 100 % of the bound even a perfect server queues without limit.
AUTO_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Prediction:
    """All bounds, the tightest first. `caveats` name what no bound covers."""

    bounds: tuple[Bound, ...]
    caveats: tuple[str, ...] = ()

    @property
    def rps(self) -> float | None:
        """The tightest bound; None where nothing bounds, or something in force breaks bounds
        (refused or cut answers can come faster than any real one)."""
        return None if self.caveats or not self.bounds else self.bounds[0].rps


def response_time_ms(call: RouteCall, snapshot: Snapshot) -> float:
    """R0: what one request takes when nothing waits in a queue, its computing left out; 0
    where it is only computing."""
    wait_ms = call.wait_ms
    if wait_ms is not None:
        return wait_ms
    return snapshot.downstream_delay_ms + snapshot.toxics.added_latency_ms


def predict(path: str, concurrency: int, offered_rps: int | None, snapshot: Snapshot) -> Prediction:
    """The bounds of one trial. `path` is a valid route, with its query."""
    call = parse(path)
    r0_ms = response_time_ms(call, snapshot)
    bounds = []
    if offered_rps is not None:
        bounds.append(Bound("offered load", offered_rps, f"{offered_rps} req/s offered"))
    for name, count, busy_ms in _resources(call, concurrency, snapshot, r0_ms):
        if count and busy_ms:
            rps = count * 1000 / busy_ms
            bounds.append(Bound(name, rps, f"{count} / {busy_ms / 1000:g} s"))
    caveats = snapshot.toxics.unpredicted if call.route.calls_downstream else ()
    return Prediction(tuple(sorted(bounds, key=lambda bound: bound.rps)), caveats)


def _resources(
    call: RouteCall, concurrency: int, snapshot: Snapshot, r0_ms: float
) -> Iterator[tuple[str, int | None, float]]:
    """(name, how many there are, for how long one request has one of them)."""
    yield "connections", concurrency, r0_ms
    yield "worker pool", snapshot.setting("pool_size"), r0_ms
    if call.route.calls_downstream:
        yield "downstream connections", snapshot.setting("downstream_connections"), r0_ms
    if snapshot.settings.get("block_the_loop") is True:
        yield "event loops", snapshot.setting("loops"), call.asleep_ms


def auto_rate_rps(path: str, concurrency: int, snapshot: Snapshot) -> int | None:
    """RATE=auto: 90 % of N/R0, which is the same for every server; None where nothing waits."""
    r0_ms = response_time_ms(parse(path), snapshot)
    if r0_ms <= 0:
        return None
    return max(1, math.floor(AUTO_SHARE * concurrency * 1000 / r0_ms))
