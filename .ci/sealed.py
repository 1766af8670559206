"""Draws experiments/truth.toml: planted cases whose right verdict is known.

    python3 .ci/sealed.py COMMIT COMPUTE_MS > experiments/truth.toml

The draw is seeded by the hash of the commit that holds the rule, so that the rule is not fitted to
its cases. This file imports nothing of lab.judge. COMPUTE_MS is the CPU time of
a request for COMPUTE on this host, as a trial at light load has it (`cpu_server_us`): what a CPU
quota or a carrier can give follows from it. All else follows from the delay of 200 ms.

A severity is what the load asks of a resource, as a multiple of all that it can give. Below 1 the
right verdict is `none`, above it the resource.
"""

import random
import sys
from collections.abc import Iterator
from typing import Any

DELAY_S = 0.2
COMPUTE = "/compute?limit=200000"
SEVERITIES = (0.8, 0.9, 1.1, 1.2, 1.3, 2.0)
# How many severities are drawn for a resource.
EACH = 4
LANES = ("virtual-threads", "thread-per-connection", "event-loop", "netty")
# File descriptors that a server without requests has open.
OPEN_FILES = 70
# Waits of a planted lock or pin are counted from so many ms on.
WATCH = {"lock_watch_ms": 2}
# A pool of 40 whose requests wait 0.1 s: what a simulated queue foretells of it is compared
# (loadgen/tests/truth/test_queueing.py).
QUEUE = {
    "server": "fixed-pool",
    "route": "/block?wait_ms=100",
    "knobs": {"pool_size": 40},
    "resource": "worker pool",
}
QUEUES = (
    ("queue-05-closed", 0.5, {"concurrency": 20}),
    ("queue-2-closed", 2.0, {"concurrency": 80}),
    ("queue-09-open", 0.9, {"concurrency": 200, "rate": 360}),
    ("queue-12-open", 1.2, {"concurrency": 100, "rate": 500}),
)
HEAD = '''\
# {count} cases, of which {drawn} were drawn by .ci/sealed.py {words}.
question = """
How often does the verdict name what was planted, and how often does it name something else?
"""
hypothesis = """
No wrong name comes with strong evidence. From a severity of 1.1 on at least 90 % are named right.
Below 1 the resource is not the limit, and the verdict is none.
"""
kind = "planted"

case = [
{cases}
]

[load]
modes = ["closed"]
duration = "8s"
'''
Case = dict[str, Any]


class Draw:
    """The cases of a seed."""

    def __init__(self, seed: str, compute_s: float) -> None:
        self.random = random.Random(seed)  # noqa: S311
        self.compute_s = compute_s

    def cases(self) -> Iterator[Case]:
        for resource, plant in (
            ("worker pool", self.worker_pool),
            ("downstream connections", self.downstream_connections),
            ("downstream timeout", self.downstream_timeout),
            ("downstream", self.downstream),
            ("connections of the load", self.load_connections),
            ("lock", self.lock),
            ("pinned carriers", self.pinned_carriers),
            ("carrier threads", self.carrier_threads),
            ("server CPU", self.server_cpu),
            ("event loop", self.event_loop),
            ("file descriptors", self.file_descriptors),
            ("ports", self.ports),
        ):
            for severity in sorted(self.random.sample(SEVERITIES, EACH)):
                expected = [resource] if severity > 1 else ["none"]
                case = {"expected": expected, **plant(severity)}
                yield {**case, "resource": resource, "severity": severity}
        yield from (self.nothing() for _ in range(8))
        yield from (self.pool_and_connections() for _ in range(4))
        yield from (self.connections_and_lock() for _ in range(2))
        yield from (self.some_slow() for _ in range(4))

    def lane(self) -> str:
        return self.random.choice(LANES)

    def load(self, capacity_rps: float, severity: float, alone_s: float = DELAY_S) -> Case:
        """What asks for so much of a resource: closed, or open with connections to spare."""
        rate = severity * capacity_rps
        if self.random.random() < 0.5:
            return {"concurrency": round(rate * alone_s)}
        return {"concurrency": max(20, round(4 * rate * alone_s)), "rate": round(rate)}

    def worker_pool(self, severity: float) -> Case:
        size = self.random.randrange(40, 160, 10)
        load = self.load(size / DELAY_S, severity)
        return {"server": "fixed-pool", "knobs": {"pool_size": size}, **load}

    def downstream_connections(self, severity: float) -> Case:
        size = self.random.randrange(40, 160, 10)
        load = self.load(size / DELAY_S, severity)
        return {"server": self.lane(), "knobs": {"downstream_connections": size}, **load}

    def downstream_timeout(self, severity: float) -> Case:
        knobs = {"downstream_timeout_ms": round(1000 * DELAY_S / severity)}
        load = self.load(self.random.randrange(100, 800), 1)
        return {"server": self.lane(), "knobs": knobs, **load}

    def downstream(self, severity: float) -> Case:
        """It is slow from where it takes twice its own time. Closed: an open load has connections
        to spare."""
        toxic = latency_toxic(1000 * DELAY_S * severity)
        count = self.random.randrange(50, 300)
        return {"server": self.lane(), "toxics": [toxic], "concurrency": count}

    def load_connections(self, severity: float) -> Case:
        count = self.random.randrange(40, 200, 10)
        rate = round(count / DELAY_S * severity)
        return {"server": self.lane(), "concurrency": count, "rate": rate}

    def lock(self, severity: float) -> Case:
        """Few requests at a time: a look at all virtual threads takes long."""
        held_ms = self.random.choice((4, 8, 12))
        rate = round(severity * 1000 / held_ms)
        server = self.random.choice(("fixed-pool", "virtual-threads"))
        count = min(180, max(40, round(3 * rate * DELAY_S)))
        knobs = {"lock_ms": held_ms, **WATCH}
        load = {"server": server, "concurrency": count, "rate": rate}
        return {**load, **near(severity, "lock"), "knobs": knobs}

    def pinned_carriers(self, severity: float) -> Case:
        """Each request keeps its carrier for a while. Below the limit no resource explains that
        time."""
        carriers, kept_ms = 2, self.random.choice((20, 40))
        rate = round(severity * carriers * 1000 / kept_ms)
        knobs = {"pin_ms": kept_ms, "virtual_thread_parallelism": carriers, **WATCH}
        load = {"server": "virtual-threads", "concurrency": 100, "rate": rate}
        return {**load, **near(severity, "pinned carriers", "unknown"), "knobs": knobs}

    def carrier_threads(self, severity: float) -> Case:
        knobs = {"virtual_thread_parallelism": 1}
        return {**self.compute(severity, 1.0), **near(severity, "carrier threads"), "knobs": knobs}

    def server_cpu(self, severity: float) -> Case:
        cpus = self.random.choice((0.3, 0.5, 0.7))
        host = {"SERVER_CPUS": str(cpus)}
        return {**self.compute(severity, cpus), **near(severity, "server CPU"), "host": host}

    def compute(self, severity: float, cpus: float) -> Case:
        rate = round(severity * cpus / self.compute_s)
        return {"server": "virtual-threads", "route": COMPUTE, "concurrency": 100, "rate": rate}

    def event_loop(self, severity: float) -> Case:
        """Loops that sleep, on purpose. One loop has an open load: closed, 1.2 would be one
        request."""
        wait_ms, loops = self.random.choice((10, 20)), self.random.choice((1, 10))
        rate = loops * 1000 / wait_ms
        load = self.load(rate, severity, wait_ms / 1000)
        if loops == 1:
            load = {"concurrency": 40, "rate": round(severity * rate)}
        host = {"BLOCK_THE_LOOP": "true", "LOOPS": str(loops)}
        route = {"server": "event-loop", "route": f"/?wait_ms={wait_ms}"}
        return {**route, **load, **near(severity, "event loop"), "host": host}

    def file_descriptors(self, severity: float) -> Case:
        """Two for each request."""
        count = self.random.randrange(100, 200, 20)
        host = {"NOFILE": str(OPEN_FILES + round(2 * count / severity))}
        return {"server": "virtual-threads", "host": host, "concurrency": count}

    def ports(self, severity: float) -> Case:
        count = self.random.randrange(200, 400, 50)
        host = {"SERVER_PORTS": f"10000 {10_000 + round(count / severity) - 1}"}
        return {"server": "virtual-threads", "host": host, "concurrency": count}

    def nothing(self) -> Case:
        """A load that has all it needs, some with other work on the CPUs."""
        server = self.random.choice((*LANES, "fixed-pool"))
        load = self.load(self.random.randrange(50, 900), 1)
        spin = {"spin": 0.3} if self.random.random() < 0.25 else {}
        return {"server": server, **load, **spin, "expected": ["none"], "resource": "nothing"}

    def pool_and_connections(self) -> Case:
        """Two limits: the right one is that which gives less."""
        size, more = 40, self.random.choice((48, 56, 80))
        pool, called = self.random.choice(((size, more), (more, size)))
        knobs = {"pool_size": pool, "downstream_connections": called}
        expected = ["worker pool" if pool < called else "downstream connections"]
        load = {"server": "fixed-pool", "concurrency": 160, "knobs": knobs}
        return {**load, "expected": expected, "resource": "a pair"}

    def connections_and_lock(self) -> Case:
        knobs = {"downstream_connections": 40, "lock_ms": 2, **WATCH}
        count = self.random.randrange(80, 160)
        load = {"server": "virtual-threads", "concurrency": count, "knobs": knobs}
        return {**load, "expected": ["downstream connections"], "resource": "a pair"}

    def some_slow(self) -> Case:
        """What no rule knows: some connections are slow."""
        toxic = latency_toxic(self.random.choice((600, 1800)))
        toxic["TOXICITY"] = self.random.choice(("0.1", "0.3"))
        count = self.random.randrange(60, 200)
        load = {"server": self.lane(), "concurrency": count, "toxics": [toxic]}
        expected = ["unknown", "downstream", "Toxiproxy"]
        return {**load, "expected": expected, "resource": "some slow connections (novel)"}


def latency_toxic(ms: float) -> dict[str, str]:
    return {"TYPE": "latency", "LATENCY": str(round(ms)), "NAME": "planted"}


def near(severity: float, *allowed: str) -> Case:
    """A single server lets some wait below its limit, too: several answers are right then."""
    return {"expected": ["none", *allowed]} if severity < 1 else {}


def slug(case: Case) -> str:
    resource: str = case["resource"]
    return resource.removesuffix(" (novel)").replace(" ", "-").lower()


def toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def experiment(commit: str, compute_ms: str) -> str:
    """The text of experiments/truth.toml."""
    drawn = list(Draw(commit, float(compute_ms) / 1000).cases())
    # Those of a server that change nothing of its container share its JVM.
    drawn.sort(key=lambda case: (case["server"], str(case.get("host", ""))))
    cases = [{"name": f"{slug(case)}-{at}", **case} for at, case in enumerate(drawn, 1)]
    for name, severity, load in QUEUES:
        expected = {"expected": ["worker pool"] if severity > 1 else ["none"]}
        cases.append({"name": name, **QUEUE, **load, **expected, "severity": severity})
    words = f"{commit} {compute_ms}"
    lines = "\n".join(f"  {toml(case)}," for case in cases)
    return HEAD.format(count=len(cases), drawn=len(drawn), words=words, cases=lines)


if __name__ == "__main__":
    print(experiment(*sys.argv[1:]), end="")
