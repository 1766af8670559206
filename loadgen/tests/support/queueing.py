"""A pool of workers as a queue: a simulation of it, and what theory says exactly.

The simulation follows each request: it needs a free connection, then a free worker, first come,
first served. Theory covers exponential times (Erlang's C formula for an open load; mean value
analysis of M. Reiser and S. S. Lavenberg, J. ACM 27 (1980) 313, for a closed one), and is what the
simulation is tested with. The lab's `/block` takes a constant time, for which only the simulation
tells percentiles.
"""

import heapq
import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

Times = Callable[[], float]


class Request(NamedTuple):
    """When it was due, when a connection sent it, when it was answered: s from the start."""

    due_s: float
    sent_s: float
    end_s: float


def open_load(
    due_s: Iterable[float], connections: int, workers: int, service: Times
) -> list[Request]:
    """Requests that are due at these times, in their order."""
    free_connections, free_workers = [0.0] * connections, [0.0] * workers
    done = []
    for due in due_s:
        sent = max(due, heapq.heappop(free_connections))
        end = max(sent, heapq.heappop(free_workers)) + service()
        heapq.heappush(free_connections, end)
        heapq.heappush(free_workers, end)
        done.append(Request(due, sent, end))
    return done


def closed_load(
    connections: int, workers: int, service: Times, until_s: float, think: Times = lambda: 0.0
) -> list[Request]:
    """Connections that send again, after a time to think, when they are answered."""
    sends, free_workers = [think() for _ in range(connections)], [0.0] * workers
    heapq.heapify(sends)
    done = []
    while (sent := heapq.heappop(sends)) < until_s:
        end = max(sent, heapq.heappop(free_workers)) + service()
        heapq.heappush(free_workers, end)
        heapq.heappush(sends, end + think())
        done.append(Request(sent, sent, end))
    return done


def erlang_c_mean_s(rate: float, workers: int, service_s: float) -> float:
    """The mean response time of M/M/m."""
    load = rate * service_s
    terms = [load**k / math.factorial(k) for k in range(workers)]
    last = load**workers / math.factorial(workers) * workers / (workers - load)
    return service_s + last / (sum(terms) + last) * service_s / (workers - load)


def mva_rps(connections: int, workers: int, service_s: float, think_s: float) -> float:
    """The throughput of N customers who think, then use one station of m workers, all times
    exponential: exact mean value analysis with the station's marginal probabilities."""
    idle = [1.0] + [0.0] * (workers - 1)  # P(j at the station), j < workers
    rps, queue = 0.0, 0.0
    for n in range(1, connections + 1):
        waiting = sum((workers - 1 - j) * idle[j] for j in range(workers - 1))
        response = service_s / workers * (1 + queue + waiting)
        rps = n / (think_s + response)
        queue = rps * response
        busy = [0.0] * workers
        for j in range(1, workers):
            busy[j] = service_s / j * rps * idle[j - 1]
        used = rps * service_s + sum((workers - j) * busy[j] for j in range(1, workers))
        busy[0] = max(0.0, 1 - used / workers)
        idle = busy
    return rps
