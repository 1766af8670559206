"""What the counters of a JVM under load show: whether it is warm, and what a request costs.

While a JVM compiles hot code, the compiler takes CPU from the load, and requests get quicker. How
long that lasts depends on the model, the route, the load and the machine. A closed load is looked
at in cycles of CYCLE_S, and is steady when, over the last STEADY_CYCLES,

* the JIT compiler takes at most JIT_STEADY of a CPU in each cycle, and no methods wait for it;
* the medians of the cycles are within SPREAD, or LEAST_MS, of each other; where the downstream
  draws each delay, or within what the draw alone explains;
* some requests succeed;
* requests per second do not rise by more than SPREAD, but for one burst of all connections: a route
  that waits answers them all at once, and a burst falls into one cycle or the next.

By the utilization law (P. J. Denning, J. P. Buzen, ACM Computing Surveys 10(3), 1978) a resource
that is busy for B seconds while C requests complete has the service demand D = B/C per request.
Here B is the CPU time under the load, less that of the idle lab. It includes the indirect costs of
a request, such as garbage collection. Trials of several rates replace it (lab.judge.ruler).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lab.judge.checks import state
from lab.model import (
    JIT_BUSY,
    Demand,
    JitCpu,
    Line,
    Remark,
    Value,
    WarmCycle,
    all_of,
)
from lab.system.host import HostCpu

CYCLE_S = 2.0
MAX_WARM_S = 60.0
STEADY_CYCLES = 3
# The last cycles, which measure what a request costs: those before were steady, too, but JIT
# compile time falls from cycle to cycle.
LIGHT_CYCLES = 2
# Of one CPU; of elapsed time, if no CPU time is known. Fresh JVMs of five models showed 0.2 to 1.4
# for their first 8 to 12 s, and 0.00 to 0.09 after that, elapsed; on full CPUs 0.2 to 0.5 and 0.00
# to 0.06 of CPU time (docs/method.md): the compiler's tail goes on for minutes.
JIT_STEADY = 0.10
SPREAD = 0.10
# A median below the first bucket of the servers' histograms is a guess.
LEAST_MS = 1.0

# 1,000 req/s where a request waits 200 ms: the cost of fewer is lost in the machine's noise.
LIGHT_CONNECTIONS = 200
IDLE_S = 2.0
LIGHT_S = 4.0
# CPU clocks tick every 10 ms: they say little about fewer requests.
LEAST_REQUESTS = 50
# A failed request has another cost than an answered one.
MOST_FAILED = 0.05
# The load must use this many CPUs more than the idle lab to stand out. The whole machine does other
# things too; a server's process does not.
LEAST_HOST_CPUS = 0.1
LEAST_SERVER_CPUS = 0.02

# When it was read, the CPU seconds of a JIT compiler's threads, and the seconds in which they
# waited for a CPU.
type JitReading = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Counters:
    """What was counted so far, at one moment: CPU time of the machine and of the server's process,
    JIT compile time, and `work`, by which its subject knows what was answered. None if unknown."""

    at_s: float
    host: HostCpu | None
    cpu_s: float | None
    compilation_s: float | None
    work: Any = None
    jit: JitReading | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """What was answered in some seconds, with `failed` of the `count` requests; from when a request
    was sent, and `think_ms` from an answer to the next request of its connection."""

    count: float
    failed: float
    length_s: float
    p50_ms: float | None
    mean_ms: float | None = None
    think_ms: float | None = None

    @property
    def rps(self) -> float:
        return self.count / self.length_s

    @property
    def good(self) -> bool:
        """True if nearly all of it was answered without an error."""
        return self.count > 0 and 0 <= self.failed <= MOST_FAILED * self.count


# The counters at both edges of a closed load on a warm JVM.
Edges = tuple[Counters, Counters]


def per_second(
    before: tuple[float, ...] | None, after: tuple[float, ...] | None
) -> tuple[float, ...]:
    """How fast counters rose, from two readings that begin with their moments. Empty if one is
    missing, or a counter fell, as it does when another JVM starts it again."""
    if before is None or after is None or after[0] <= before[0]:
        return ()
    rises = [new - old for old, new in zip(before, after, strict=True)]
    return tuple(rise / rises[0] for rise in rises[1:]) if min(rises) >= 0 else ()


def jit_between(before: JitReading | None, after: JitReading | None) -> JitCpu | None:
    rates = per_second(before, after)
    return JitCpu(*rates) if rates else None


def steady(cycles: Sequence[WarmCycle], concurrency: int, drawn_sd_ms: float = 0.0) -> bool:
    """True if the last cycles show a warm JVM. At least one cycle must have a median. `drawn_sd_ms`
    is the standard deviation of the delays that the downstream draws; 0 if all are alike."""
    last = cycles[-STEADY_CYCLES:]
    if len(last) < STEADY_CYCLES or any(
        cycle.jit_share > JIT_STEADY or (cycle.jit_busy or 0.0) > JIT_BUSY for cycle in last
    ):
        return False
    medians = [cycle.p50_ms for cycle in last if cycle.p50_ms is not None]
    if not medians:
        return False
    allowed_ms = max(LEAST_MS, SPREAD * min(medians), by_draw_ms(last, drawn_sd_ms))
    if max(medians) - min(medians) > allowed_ms:
        return False
    burst_rps = concurrency / min(cycle.length_s for cycle in last)
    return last[-1].rps <= (1 + SPREAD) * last[0].rps + burst_rps


def by_draw_ms(cycles: Sequence[WarmCycle], drawn_sd_ms: float) -> float:
    """How far apart the medians of these cycles may be by the draw of their delays alone: 4
    standard errors, which three normal values exceed in 1 % of cases. A median's is 1.25 sd / √n
    of normal times (H. Cramér, Mathematical Methods of Statistics, 1946, 28.5), and less of
    lognormal ones."""
    fewest = min(cycle.rps * cycle.length_s for cycle in cycles)
    return 4 * 1.25 * drawn_sd_ms / math.sqrt(max(1.0, fewest))


def cycle_between(
    before: Counters, after: Counters, answered: Answered | None, began_s: float
) -> WarmCycle | None:
    """The cycle between two readings; None if a counter is unknown, or started again from 0."""
    rates = per_second(_compiled(before), _compiled(after))
    if not rates or answered is None:
        return None
    length_s = after.at_s - before.at_s
    threads = all_of(jit_between(before.jit, after.jit), rates[0])
    # Errors alone show no work, however steady they are.
    works = answered.failed < answered.count
    p50_ms = answered.p50_ms if works else None
    return WarmCycle(
        at_s=round(after.at_s - began_s, 3),
        length_s=round(length_s, 3),
        rps=round(answered.rps, 3) if works else 0.0,
        p50_ms=None if p50_ms is None else round(p50_ms, 3),
        jit_share=round(rates[0] if threads is None else threads.used, 4),
        jit_busy=None if threads is None else round(threads.busy, 4),
    )


def _compiled(counters: Counters) -> tuple[float, float] | None:
    return None if counters.compilation_s is None else (counters.at_s, counters.compilation_s)


def not_steady(cycles: Sequence[WarmCycle]) -> Remark:
    """Why the cycles are not steady: the last of them."""
    values: dict[str, Value] = {"limit_s": MAX_WARM_S}
    for number, cycle in enumerate(cycles[-STEADY_CYCLES:], 1):
        p50_ms = {} if cycle.p50_ms is None else {f"p50_ms_{number}": cycle.p50_ms}
        values |= {f"rps_{number}": cycle.rps, **p50_ms, f"jit_{number}": cycle.jit_share}
    return state.cold_unsteady.remark(**values)


def cost(
    connections: int, answered: Answered, idle: Edges, light: Edges, host_cores: int | None
) -> Demand:
    """The cost of each request answered between the edges of `light`; `idle` are the edges of the
    idle time."""
    (server, share), (idle_server, idle_share) = _cpus(*light), _cpus(*idle)
    server = None if server is None or idle_server is None else server - idle_server
    host = None
    if share is not None and idle_share is not None and host_cores is not None:
        host = (share - idle_share) * host_cores
        if server is not None and host < server:
            host = None  # Noise: the machine cannot have used less than one process on it.

    def line(cpus: float | None, least: float) -> Line | None:
        return None if cpus is None or cpus < least else Line(cpus / answered.rps)

    server_line, host_line = line(server, LEAST_SERVER_CPUS), line(host, LEAST_HOST_CPUS)
    return Demand(connections, round(answered.count), server_line, host_line)


def _cpus(before: Counters, after: Counters) -> tuple[float | None, float | None]:
    """CPU seconds per second of the server's process, and the share of all CPUs that the host
    itself used."""
    server = shares = None
    if before.cpu_s is not None and after.cpu_s is not None and after.cpu_s >= before.cpu_s:
        server = (after.cpu_s - before.cpu_s) / (after.at_s - before.at_s)
    if before.host is not None and after.host is not None:
        shares = after.host.shares_since(before.host)
    return server, shares[0] if shares else None
