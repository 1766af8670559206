"""A delay that the downstream draws for each call, by theory, and snapshots with it."""

import math
from random import Random

from lab.model import Snapshot, Spread, ToxicState
from support.fakes import SETTINGS, snapshot

MEAN_MS = 200.0
# Of the logarithm, so that the mean is 200 ms and the p99 800 ms.
SIGMA = 0.70170
MU = math.log(MEAN_MS) - SIGMA**2 / 2
SPREAD = Spread(
    words="lognormal:mean=200,p99=800",
    sd_ms=MEAN_MS * math.sqrt(math.expm1(SIGMA**2)),
    median_ms=math.exp(MU),
    p95_ms=math.exp(MU + 1.6448536 * SIGMA),
    p99_ms=math.exp(MU + 2.3263479 * SIGMA),
    longest_ms=math.exp(MU + 4.3 * SIGMA),
)
LATENCY_300 = ToxicState(("downstream/l latency latency=300 jitter=0",), 300.0)


def drawn(pool: int | None = 200, **changes: object) -> Snapshot:
    """A server with a pool of that size, if any, in front of that delay."""
    return snapshot(settings={**SETTINGS, "pool_size": pool}, spread=SPREAD, **changes)


def draw_s(rng: Random) -> float:
    """One delay, in seconds."""
    return rng.lognormvariate(MU, SIGMA) / 1000
