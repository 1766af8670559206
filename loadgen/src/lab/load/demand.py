"""The CPU time of a request before any trial has measured it: a light load on a warm JVM.

By the utilization law (P. J. Denning, J. P. Buzen, ACM Computing Surveys 10(3), 1978) a
resource that is busy for B seconds while C requests complete has the service demand D = B/C per
request. Here B is the CPU time under the load, less the CPU time that the idle lab takes in the
same time for scrapes, the live view and timers. B includes the indirect costs of a request, such as
garbage collection. It is one rate, so D is the b of a line without a. Trials of several rates
replace it (lab.judge.ruler).
"""

import dataclasses
import math
from pathlib import Path

from lab.errors import LabUnreachable
from lab.judge.trial import think_ms
from lab.load.counters import Counters, CpuTimes, read_counters
from lab.load.engine_run import EngineRun, closed_load, scratch
from lab.load.engines.base import Engine
from lab.load.short_load import short_load
from lab.model import Demand, Line, Reading, TrialPlan, error_share
from lab.model.routes import parse
from lab.system.host import System
from lab.system.jvm import settled
from lab.system.stack import Stack

# 1,000 req/s where a request waits 200 ms: the cost of fewer is lost in the machine's noise.
LIGHT_CONNECTIONS = 200
# A request costs less under more load, because work is done in larger batches (docs/method.md).
MOST_CONNECTIONS = 1000
IDLE_S = 2.0
# How long a single connection measures the R0 of a foreign service. A mean of fewer answers than
# LEAST_ALONE says little. Then it measures once more, for as long as so many answers should take.
ALONE_S = 3.0
LEAST_ALONE = 20
MOST_ALONE_S = 15.0
# No request is quicker among others than alone. Where it was, the mean alone is not R0.
QUICKER = 0.95
# The engine opens its connections meanwhile: wrk2 opens those of each of two threads 5 ms apart.
LEAD_S = 1.0
LEAD_EACH_S = 0.0025
LIGHT_S = 4.0
# CPU clocks tick every 10 ms: they say little about fewer requests.
LEAST_REQUESTS = 50
# The load must use so many CPUs more than the idle lab to stand out. The whole machine does other
# things too; a server's process does not.
LEAST_HOST_CPUS = 0.1
LEAST_SERVER_CPUS = 0.02
# A failed request has another cost than an answered one.
MOST_FAILED = 0.05


def light_connections(plan: TrialPlan, most: int) -> int:
    """How many connections measure the cost of a request to one of the lab's servers, for loads of
    up to `most` connections."""
    if parse(plan.route).wait_ms == 0:
        # A request that only computes keeps a CPU busy: use no more connections than the trial.
        return min(plan.concurrency, LIGHT_CONNECTIONS)
    return max(LIGHT_CONNECTIONS, min(most, MOST_CONNECTIONS))


def measure_demand(
    plan: TrialPlan,
    connections: int,
    engine: Engine,
    stack: Stack,
    system: System,
    raw: Path,
    host_cores: int | None,
    seen: tuple[Counters, Counters] | None = None,
) -> Demand | None:
    """The cost of a request under a closed load of so many connections on the plan's route.

    `seen` are the counters at both edges of just that load, on a warm JVM: as a rule the end of the
    warm-up. None: the load is made here, for LIGHT_S. Either way the lab also idles for IDLE_S.
    `raw` is a folder for the engine's files; it is gone afterwards. `host_cores` is how many CPUs
    the machine has, None where nobody knows. Returns when the server has answered every request.
    None where the server does not tell, its JVM restarted, the load ended by itself, too little was
    answered, or too much failed. Raises EngineError where the engine cannot be started, and
    Interrupted. The engine is ended in any case.
    """
    try:
        first = read_counters(plan, stack, system)
        system.sleep(IDLE_S)
        idle = read_counters(plan, stack, system)
        edges = seen or _light_load(plan, connections, engine, stack, system, raw)
    except LabUnreachable:
        edges = None
    settled(plan.server, stack, system)
    if edges is None:
        return None
    opened, closed = edges
    answered = closed.work.requests - opened.work.requests
    failed = closed.work.failed - opened.work.failed
    if answered < LEAST_REQUESTS or not 0 <= failed <= MOST_FAILED * answered:
        return None
    return _cost(connections, answered, (first, idle), edges, host_cores)


def _light_load(
    plan: TrialPlan, connections: int, engine: Engine, stack: Stack, system: System, raw: Path
) -> tuple[Counters, Counters] | None:
    """The counters at both edges of LIGHT_S under the load; None where it ended by itself. Raises
    LabUnreachable, and as measure_demand."""
    light = closed_load(plan, "light-load", connections, round(10 * LIGHT_S))
    with scratch(raw), EngineRun(system, engine.schedule(light, raw), raw) as running:
        system.sleep(LEAD_S + LEAD_EACH_S * connections)
        opened = read_counters(plan, stack, system)
        system.sleep(LIGHT_S)
        closed = read_counters(plan, stack, system)
        return None if running.ended else (opened, closed)


def demand_of_foreign(
    plan: TrialPlan,
    most: int,
    engine: Engine,
    stack: Stack,
    system: System,
    raw: Path,
    host_cores: int | None,
) -> Demand | None:
    """As measure_demand, for a service that is not the lab's.

    The engine counts the answers. Nobody knows whether the service waits, so the load has no more
    connections than the trial, even where there are more (`most`). Before that, a single
    connection, which waits for no other, measures R0, and the generator's think time Z: means, as
    N = X·(R + Z) holds for means.
    """
    connections = min(plan.concurrency, LIGHT_CONNECTIONS, most)

    def read() -> CpuTimes:
        return CpuTimes(system.monotonic(), system.host_cpu(), _cpu_s(plan.server, stack))

    alone = _alone(plan, engine, system, raw)
    if alone is None or alone.raw is None or _failed(alone):
        settled(plan.server, stack, system)
        return None
    r0_ms: float | None = alone.raw.mean_ms
    problem = None
    if alone.samples < LEAST_ALONE:
        r0_ms, problem = None, f"a single connection got {alone.samples} answers"
        problem += f" before the load, and a mean needs {LEAST_ALONE}"
    first = read()
    system.sleep(IDLE_S)
    idle = first, read()
    light = short_load(plan, engine, system, raw, connections, round(LIGHT_S), read)
    settled(plan.server, stack, system)
    if isinstance(light, str) or light.reading.samples < LEAST_REQUESTS or _failed(light.reading):
        return Demand(
            1, alone.samples, None, None, r0_ms, r0_problem=problem, think_ms=think_ms(alone)
        )
    edges = light.opened, light.closed
    # The load may have ended before the second edge.
    passed_s = light.closed.at_s - light.opened.at_s
    answered = min(light.reading.achieved_rps * passed_s, light.reading.samples)
    cost = _cost(connections, answered, idle, edges, host_cores)
    if r0_ms is not None and light.reading.raw is not None:
        among_ms = light.reading.raw.mean_ms
        if among_ms < QUICKER * r0_ms:
            problem = (
                f"{connections} connections were answered in {among_ms:.3g} ms on average, sooner "
                f"than a single one in {r0_ms:.3g} ms"
            )
            r0_ms = None
    return dataclasses.replace(
        cost,
        r0_ms=r0_ms,
        light_rps=light.reading.achieved_rps,
        r0_problem=problem,
        think_ms=think_ms(alone),
    )


def _alone(plan: TrialPlan, engine: Engine, system: System, raw: Path) -> Reading | None:
    """The figures of a single connection; None where there are none."""
    first = short_load(plan, engine, system, raw, 1, round(ALONE_S), system.monotonic)
    if isinstance(first, str):
        return None
    said = first.reading
    if said.raw is None or _failed(said) or said.samples >= LEAST_ALONE:
        return said
    # A quarter more than LEAST_ALONE answers should take.
    needed_s = math.ceil(1.25 * LEAST_ALONE * said.raw.mean_ms / 1000)
    if not ALONE_S < needed_s <= MOST_ALONE_S:
        return said
    more = short_load(plan, engine, system, raw, 1, needed_s, system.monotonic)
    return said if isinstance(more, str) else more.reading


def _failed(reading: Reading) -> bool:
    return error_share(reading, None) > MOST_FAILED  # The light loads are closed.


def _cpu_s(server: str, stack: Stack) -> float | None:
    try:
        return stack.exporter.cpu_s(server)
    except LabUnreachable:
        return None


def _cost(
    connections: int,
    answered: float,
    idle: tuple[CpuTimes, CpuTimes],
    light: tuple[CpuTimes, CpuTimes],
    host_cores: int | None,
) -> Demand:
    """The cost of each request answered between the edges of `light`; `idle` are the edges of the
    idle time."""
    length_s = light[1].at_s - light[0].at_s
    server_s = _less(_server_cpus(*light), _server_cpus(*idle))
    host_share = _less(_host_share(*light), _host_share(*idle))
    host_s = None if host_share is None or host_cores is None else host_share * host_cores
    if host_s is not None and server_s is not None and host_s < server_s:
        host_s = None  # Noise: the machine cannot have used less than one process on it.
    return Demand(
        connections=connections,
        requests=round(answered),
        server=_line(server_s, LEAST_SERVER_CPUS, length_s, answered),
        host=_line(host_s, LEAST_HOST_CPUS, length_s, answered),
    )


def _line(cpus: float | None, least: float, length_s: float, requests: float) -> Line | None:
    """None where the load used hardly more than the idle lab."""
    return None if cpus is None or cpus < least else Line(cpus * length_s / requests)


def _server_cpus(before: CpuTimes, after: CpuTimes) -> float | None:
    """CPU seconds per second, of the server's process."""
    if before.cpu_s is None or after.cpu_s is None or after.cpu_s < before.cpu_s:
        return None
    return (after.cpu_s - before.cpu_s) / (after.at_s - before.at_s)


def _host_share(before: CpuTimes, after: CpuTimes) -> float | None:
    """The share of all its CPUs that the host itself used."""
    if before.host is None or after.host is None:
        return None
    shares = after.host.shares_since(before.host)
    return None if shares is None else shares[0]


def _less(of: float | None, idle: float | None) -> float | None:
    return None if of is None or idle is None else of - idle
