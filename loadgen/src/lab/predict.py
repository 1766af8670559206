"""Bounds before anything runs: what no run of this load can exceed.

Operational analysis (P. J. Denning, J. P. Buzen, "The Operational Analysis of Queueing
Network Models", ACM Computing Surveys 10(3), 1978) bounds the throughput X of a closed
system by N/R0, N customers and R0 the response time without any waiting, and by m/S for
each resource of m servers with service time S per visit. N = X·R itself is Little's law
(J. D. C. Little, "A Proof for the Queuing Formula L = λW", Operations Research 9(3), 1961).
An open load adds: no more than is offered is answered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lab.config import wait_ms_of
from lab.errors import WordError
from lab.types import Snapshot

# At 100 % of the bound even a perfect server queues without limit.
AUTO_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Bound:
    """X ≤ `rps` because of `resource`, by `formula`."""

    resource: str
    rps: float
    formula: str


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


def response_time_ms(path: str, snapshot: Snapshot) -> float:
    """R0: what one request takes when nothing waits in a queue, its computing left out."""
    wait = wait_ms_of(path)
    if wait is not None:
        return wait
    return snapshot.downstream_delay_ms + snapshot.toxics.added_latency_ms


def predict(path: str, concurrency: int, offered_rps: int | None, snapshot: Snapshot) -> Prediction:
    """The bounds of one trial."""
    r0_ms = response_time_ms(path, snapshot)
    bounds = []
    if offered_rps is not None:
        bounds.append(Bound("offered load", offered_rps, f"{offered_rps} req/s offered"))
    if r0_ms > 0:
        resources = [("connections", concurrency)]
        pool = snapshot.setting("pool_size")
        if pool:
            resources.append(("worker pool", pool))
        cap = snapshot.setting("downstream_connections")
        if cap and wait_ms_of(path) is None:
            resources.append(("downstream connections", cap))
        bounds += [
            Bound(name, count * 1000 / r0_ms, f"{count} / {r0_ms / 1000:g} s")
            for name, count in resources
        ]
    caveats = snapshot.toxics.unpredicted if wait_ms_of(path) is None else ()
    return Prediction(tuple(sorted(bounds, key=lambda bound: bound.rps)), caveats)


def auto_rate_rps(path: str, concurrency: int, snapshot: Snapshot) -> int:
    """RATE=auto: 90 % of N/R0, which is the same for every server. Raises WordError."""
    r0_ms = response_time_ms(path, snapshot)
    if r0_ms <= 0:
        raise WordError(
            f"bench: RATE=auto needs a route that waits, and {path} does not wait now; "
            "allowed: RATE=n requests per second"
        )
    return max(1, math.floor(AUTO_SHARE * concurrency * 1000 / r0_ms))
