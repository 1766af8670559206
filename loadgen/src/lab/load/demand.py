"""What one request costs: a light load on a warm JVM, and the CPU that was used meanwhile.

By the utilization law (P. J. Denning, J. P. Buzen, ACM Computing Surveys 10(3), 1978) a
resource that is busy for B seconds while C requests complete has the service demand D = B/C per
request. B here is the CPU time under the load less what the idle lab would have used in as long:
scrapes, the live view, timers. It includes what a request causes beside its handling, as garbage
collection does.
"""

from __future__ import annotations

import dataclasses
import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabUnreachable
from lab.load.engines.base import Engine
from lab.load.short_load import short_load
from lab.model import Demand, Reading, TrialPlan, error_share
from lab.model.routes import parse
from lab.system.host import HostCpu, Process, System
from lab.system.jvm import settled
from lab.system.management import RouteWork
from lab.system.stack import Stack

# 1,000 req/s where a request waits 200 ms: fewer cost no more than the machine's own noise.
LIGHT_CONNECTIONS = 200
# Under more load a request costs less, as work is done in larger batches (docs/method.md).
MOST_CONNECTIONS = 1000
IDLE_S = 2.0
# For how long a single connection tells the R0 of a foreign service. A mean of fewer answers than
# LEAST_ALONE says little: then once more, for as long as they take by the first try.
ALONE_S = 3.0
LEAST_ALONE = 20
MOST_ALONE_S = 15.0
# Nothing is quicker among others than alone: where it was, the mean alone is not R0.
QUICKER = 0.95
# The engine opens its connections meanwhile: wrk2 those of a thread 5 ms apart, with two threads.
LEAD_S = 1.0
LEAD_EACH_S = 0.0025
LIGHT_S = 4.0
# CPU clocks tick every 10 ms: of fewer requests they say little.
LEAST_REQUESTS = 50
# The load must use so many CPUs more than the idle lab to stand out from what else goes on: the
# whole machine does other things, a server's process does not.
LEAST_HOST_CPUS = 0.1
LEAST_SERVER_CPUS = 0.02
# A request that fails costs something else than one that is answered.
MOST_FAILED = 0.05
OUTPUT = "light-load.txt"


@dataclass(frozen=True, slots=True)
class _Edge:
    """The counters of CPU time at one moment; `cpu_s` of the server's process, where it tells."""

    at_s: float
    host: HostCpu | None
    cpu_s: float | None


@dataclass(frozen=True, slots=True)
class _Reading(_Edge):
    """All counters of a server of the lab at one moment."""

    work: RouteWork


def light_connections(plan: TrialPlan, most: int) -> int:
    """How many connections tell what a request of a server of the lab costs under loads up to
    `most` connections."""
    if parse(plan.route).wait_ms == 0:
        # A request that only computes keeps a CPU busy by itself: no more than were asked for.
        return min(plan.concurrency, LIGHT_CONNECTIONS)
    return max(LIGHT_CONNECTIONS, min(most, MOST_CONNECTIONS))


def measure_demand(
    plan: TrialPlan,
    most: int,
    engine: Engine,
    stack: Stack,
    system: System,
    raw: Path,
    host_cores: int | None,
) -> Demand | None:
    """Wait IDLE_S, then load the plan's route for LIGHT_S, closed, with light_connections.

    `most` are the connections of the run's largest load on this server. `raw` is a folder for
    what the engine writes meanwhile; it is gone afterwards. `host_cores` are the machine's CPUs,
    None where nobody knows. Returns when the server has worked off what
    was sent; None where the server does not tell, its JVM restarted, the load ended by itself,
    too little was answered, or too much failed. Raises EngineError where the engine cannot be
    started, and Interrupted; the engine is ended in any case.
    """
    connections = light_connections(plan, most)
    try:
        first = _read(plan, stack, system)
        system.sleep(IDLE_S)
        idle = _read(plan, stack, system)
        with _load(plan, connections, engine, system, raw) as running:
            system.sleep(LEAD_S + LEAD_EACH_S * connections)
            opened = _read(plan, stack, system)
            system.sleep(LIGHT_S)
            closed = _read(plan, stack, system)
            whole = running.poll() is None
    except LabUnreachable:
        settled(plan.server, stack, system)
        return None
    settled(plan.server, stack, system)
    return demand_of(connections, (first, idle), (opened, closed), host_cores) if whole else None


def demand_of_foreign(
    plan: TrialPlan,
    most: int,  # noqa: ARG001 - what measure_demand needs
    engine: Engine,
    stack: Stack,
    system: System,
    raw: Path,
    host_cores: int | None,
) -> Demand | None:
    """As measure_demand, for a service that is not the lab's: what was answered is what the engine
    saw, and no more connections than the trial's, however many are to come (`most`), for whether
    it waits is not known. Before that a
    single connection tells R0, as it waits for no other: the mean, as N = X·R is one of means."""
    connections = min(plan.concurrency, LIGHT_CONNECTIONS)

    def read() -> _Edge:
        return _Edge(system.monotonic(), system.host_cpu(), _cpu_s(plan.server, stack))

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
        return Demand(1, alone.samples, None, None, r0_ms, r0_problem=problem)
    edges = light.opened, light.closed
    answered = light.reading.achieved_rps * (light.closed.at_s - light.opened.at_s)
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
        cost, r0_ms=r0_ms, light_rps=light.reading.achieved_rps, r0_problem=problem
    )


def _alone(plan: TrialPlan, engine: Engine, system: System, raw: Path) -> Reading | None:
    """What a single connection met; None where that gave no figures."""
    first = short_load(plan, engine, system, raw, 1, round(ALONE_S), system.monotonic)
    if isinstance(first, str):
        return None
    said = first.reading
    if said.raw is None or _failed(said) or said.samples >= LEAST_ALONE:
        return said
    # A quarter more than they take.
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


def demand_of(
    connections: int,
    idle: tuple[_Reading, _Reading],
    light: tuple[_Reading, _Reading],
    host_cores: int | None,
) -> Demand | None:
    """The demand by the counters before and after the idle time, and within the light load."""
    before, after = light
    answered = after.work.requests - before.work.requests
    failed = after.work.failed - before.work.failed
    if answered < LEAST_REQUESTS or not 0 <= failed <= MOST_FAILED * answered:
        return None
    return _cost(connections, answered, idle, light, host_cores)


def _cost(
    connections: int,
    answered: float,
    idle: tuple[_Edge, _Edge],
    light: tuple[_Edge, _Edge],
    host_cores: int | None,
) -> Demand:
    """What each of the requests answered between the edges of `light` cost."""
    length_s = light[1].at_s - light[0].at_s
    server_s = _less(_server_share(*light), _server_share(*idle))
    host_share = _less(_host_share(*light), _host_share(*idle))
    host_s = None if host_share is None or host_cores is None else host_share * host_cores
    if host_s is not None and server_s is not None and host_s < server_s:
        host_s = None  # The machine cannot have used less than one process on it: noise.
    return Demand(
        connections=connections,
        requests=round(answered),
        server_cpu_s=_each(server_s, LEAST_SERVER_CPUS, length_s, answered),
        host_cpu_s=_each(host_s, LEAST_HOST_CPUS, length_s, answered),
    )


def _each(cpus: float | None, least: float, length_s: float, requests: float) -> float | None:
    """CPU seconds per request; None where the load used hardly more than the idle lab."""
    return None if cpus is None or cpus < least else cpus * length_s / requests


def _server_share(before: _Edge, after: _Edge) -> float | None:
    """CPU seconds per second, of the server's process."""
    if before.cpu_s is None or after.cpu_s is None or after.cpu_s < before.cpu_s:
        return None
    return (after.cpu_s - before.cpu_s) / (after.at_s - before.at_s)


def _host_share(before: _Edge, after: _Edge) -> float | None:
    """The share of all its CPUs that the host itself used; what other machines took from it
    (steal) is no cost of a request."""
    if before.host is None or after.host is None:
        return None
    shares = after.host.shares_since(before.host)
    return None if shares is None else shares[0] - shares[1]


def _less(of: float | None, idle: float | None) -> float | None:
    return None if of is None or idle is None else of - idle


def _read(plan: TrialPlan, stack: Stack, system: System) -> _Reading:
    """Raises LabUnreachable."""
    at_s, host = system.monotonic(), system.host_cpu()
    cpu_s = stack.exporter.cpu_s(plan.server)
    return _Reading(at_s, host, cpu_s, stack.management.work(plan.server, plan.route))


@contextmanager
def _load(
    plan: TrialPlan, connections: int, engine: Engine, system: System, raw: Path
) -> Iterator[Process]:
    """The light load, for as long as the context lasts."""
    light = dataclasses.replace(
        plan,
        trial="light-load",
        mode="closed",
        concurrency=connections,
        offered_rps=None,
        predicted_rps=None,
        duration_s=round(10 * LIGHT_S),
        warmup_s=None,
        spike=None,
        script=(),
    )
    shutil.rmtree(raw, ignore_errors=True)
    raw.mkdir(parents=True)
    try:
        process = system.start(engine.schedule(light, raw).argv, raw / OUTPUT)
        try:
            yield process
        finally:
            process.stop()
    finally:
        shutil.rmtree(raw, ignore_errors=True)
