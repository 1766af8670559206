"""What requests waited for, in windows made by hand: what is named, how surely, and its share."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from lab.judge.resources import excess, host_cpu, resource, rule, server_cpu, stages
from lab.judge.resources import lock as lock_resource
from lab.model import NONE, STRONG, UNEXPLAINED, UNKNOWN, WEAK, Series, Verdict
from support.series import counter, gauge
from support.waits import IDLE, threads, waited
from support.windows import MINE, SERVER, gauges

WATCHED = {"settings": {"lock_watch_ms": 10}}
# Threads that waited for a CPU nine times as long as they ran.
SHORT = threads(**dict.fromkeys(IDLE, (0.3, 2.7)))


def lock(ms: float, rps: float = 5000.0) -> Series:
    """A site at which a request waited so long: X · W threads wait there at a time."""
    labels = {"kind": "monitor", "site": "shop.Orders.next:12", **MINE}
    return counter("lab_wait_seconds_total", rps * ms / 1000, **labels)


def pool(size: int) -> list[Series]:
    return gauges("lab_worker_pool_", size=size, active=size)


def connections(cap: int) -> list[Series]:
    return gauges("lab_downstream_connections_", cap=cap, leased=cap)


HOT_PROXY = [counter("process_cpu_seconds_total", 0.95, job="toxiproxy"),
             gauge("go_sched_gomaxprocs_threads", 1, job="toxiproxy")]  # fmt: skip
SET_UP = counter("lab_path_accept_queue_connection_seconds_total", 150,
                 job="downstream", listener="toxiproxy")  # fmt: skip
PAUSES = counter("jvm_gc_collection_seconds_sum", 0.6, server=SERVER, gc="G1")


def when(*series: Series, **figures: Any) -> Callable[..., Verdict]:
    """A trial, judged when it is asked for."""
    return partial(waited, *series, **figures)


# (name, the trial, what is named, how surely, its least share)
CASES: list[tuple[str, Callable[..., Verdict], str, str, float]] = [
    ("light load", when(queue=1, path=2, downstream=1), NONE, STRONG, 0),
    ("pool", when(*pool(1000), queue=800, rps=4990), "worker pool", STRONG, 0.95),
    ("a queue beside free workers", when(queue=40), UNKNOWN, "", 0),
    ("connections downstream", when(*connections(1000), pending=80),
     "downstream connections", STRONG, 0.95),
    # More of the pool would be no help: 1,000 connections serve whatever its size.
    ("full connections behind a larger pool",
     when(*pool(1200), *connections(1000), queue=600, pending=40, rps=4990),
     "downstream connections", STRONG, 0.95),
    ("as many connections as threads",
     when(*pool(1000), *connections(1000), queue=600, pending=1, rps=4990),
     "worker pool", STRONG, 0.9),
    # Its threads are each held for as long as the others wait inside.
    ("a lock inside a full pool", when(*pool(2000), lock(200), queue=400, own=200, **WATCHED),
     "lock", STRONG, 0.6),
    ("host CPU by its run queues", when(queue=20, path=20, unexplained=5, at=SHORT),
     "host CPU", STRONG, 0.8),
    # A crowd is served in turn on CPUs that are idle in between …
    ("waves", when(queue=20, path=20, busy=0.7, at=SHORT, dispersion=41),
     "waves of the load", WEAK, 0.8),
    # … and where none are idle it waits for them, as it does at random.
    ("waves on full CPUs", when(queue=200, path=200, busy=0.99, at=SHORT, dispersion=41),
     "host CPU", STRONG, 0.8),
    ("at random", when(queue=20, path=20, at=SHORT, dispersion=1), "host CPU", STRONG, 0.8),
    ("host CPU, nothing known of run queues", when(queue=20, path=20, busy=0.97, at=None),
     "host CPU", WEAK, 0.8),
    ("busy host, nothing known of run queues", when(queue=20, path=20, busy=0.85, at=None),
     UNKNOWN, "", 0),
    ("path, nothing waits", when(path=40, at=threads(proxy=(0.2, 0.02))), UNKNOWN, "", 0),
    ("own work", when(own=40), UNKNOWN, "", 0),
    ("late downstream", when(downstream=40), "downstream", STRONG, 0.9),
    ("late generator", when(generator=60), "generator", STRONG, 0.9),
    ("connections of an open load", when(connect=900, offered_rps=6000),
     "connections of the load", STRONG, 0.95),
    ("connections kept by a late downstream",
     when(connect=900, downstream=300, offered_rps=6000), "downstream", STRONG, 0.5),
    ("one hot proxy", when(*HOT_PROXY, path=40, at=threads(proxy=(0.95, 0.03))),
     "Toxiproxy", STRONG, 0.9),
    ("set-up", when(SET_UP, path=40), "connection set-up", STRONG, 0.7),
    ("pauses", when(PAUSES, queue=40, at=threads(worker=(0.3, 0.02))),
     "garbage collection", STRONG, 0.7),
]  # fmt: skip


@pytest.mark.parametrize(
    ("trial", "name", "strength", "least"), [pytest.param(*case, id=name) for name, *case in CASES]
)
def test_the_largest_part_is_named(
    trial: Callable[..., Verdict], name: str, strength: str, least: float
) -> None:
    found = trial()
    assert (found.bottleneck, found.strength) == (name, strength), found.shares
    assert found.shares.get(name, 0.0) >= least
    # An invalid trial has the same shares and no sure name, unless the generator is named.
    invalid = trial(reasons=("compiling",))
    assert (invalid.bottleneck, invalid.shares) == (found.bottleneck, found.shares)
    assert invalid.strength != STRONG or name == "generator"
    # Shares add up, and what nothing covers is unexplained.
    assert sum(found.shares.values()) == pytest.approx(1, abs=1e-6)
    assert all(0 <= each.measured <= each.share + 1e-9 for each in found.ranked)


def test_what_nothing_covers_is_unexplained() -> None:
    shares = waited(queue=10, path=30, at=threads(worker=(0.5, 0.5), proxy=(0.5, 0.5))).shares
    assert shares["host CPU"] == pytest.approx(0.5)
    assert shares[UNEXPLAINED] == pytest.approx(0.5, abs=0.01)
    # A stage at work for a tenth of the time is not what the rest waits for.
    idle = waited(queue=10, path=30, at=threads(worker=(0.05, 0.05), proxy=(0.05, 0.05))).shares
    assert idle["host CPU"] == pytest.approx(0.05)


def test_no_name_is_surer_for_what_a_trial_lacks() -> None:
    assert waited(*pool(1000), queue=800, rps=4990).missing == ()
    unseen = waited(*pool(1000), gauge("up", 0, job="jvm"), queue=800, rps=4990)
    assert (unseen.strength, unseen.missing[0].code) == (WEAK, "job")
    old = waited(*pool(1000), queue=800, rps=4990, at=None)
    assert (old.bottleneck, old.strength) == ("worker pool", STRONG)
    assert {(gap.code, gap.detail) for gap in old.missing} == {
        ("run queue", SERVER), ("run queue", "path"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("count", "run", "expected"),
    [(2, 1.95, ("host CPU", STRONG)), (1, 0.97, ("carrier threads", STRONG))],
)
def test_full_threads_on_all_cpus_wait_for_cpus_and_fewer_are_the_limit(
    count: int, run: float, expected: tuple[str, str]
) -> None:
    series = gauges("lab_virtual_thread_scheduler_", parallelism=count, mounted=count)
    settings = {"virtual_thread_parallelism": count, "pool_size": None}
    at = {**threads(carrier=(run, 0.0)), "worker": (0.0, 0.0)}
    carriers = gauge("lab_threads", count, threads="carrier", **MINE)
    found = waited(*series, carriers, queue=40, settings=settings, at=at)
    assert (found.bottleneck, found.strength) == expected


# The scenarios of the audit of the method, by their numbers there: what is named.
SOME = threads(worker=(0.6, 0.3), proxy=(0.5, 0.2))
CPUS: dict[str, Any] = {"queue": 20, "path": 30, "at": SHORT}
SCENARIOS = [
    ("s2: a lock and a hot thread at 92 %",
     when(lock(45), own=50, queue=5, path=5, busy=0.92, at=SOME, **WATCHED), "lock", STRONG),
    ("s2: unwatched", when(own=50, queue=5, path=5, busy=0.92, at=SOME), UNKNOWN, ""),
    ("s2: a hot front", when(unexplained=40, queue=5, busy=0.92,
                             at=threads(front=(0.93, 0.05), worker=(0.6, 0.3))), "front", STRONG),
    *((f"s5: downstream late, {busy}", when(downstream=40, path=8, busy=busy), "downstream", STRONG)
      for busy in (0.7, 0.8, 0.9, 0.95, 0.99)),
    # 0.8 s in every 20 s: 4 % of the requests wait for 0.4 s on average.
    ("s9: calm", when(unexplained=6, offered_rps=5000), NONE, STRONG),
    ("s9: stalls", when(unexplained=6, offered_rps=5000, p99_ms=955), UNKNOWN, ""),
    ("s9: stalls for a CPU", when(queue=6, offered_rps=5000, p99_ms=955, at=SHORT),
     "host CPU", WEAK),
    ("s10: no other machines", when(busy=0.955, **CPUS), "host CPU", STRONG),
    ("s10: they took most", when(busy=0.6, steal=0.3, **CPUS), "work outside the lab", WEAK),
    ("s10: they took little", when(busy=0.97, steal=0.01, **CPUS), "host CPU", STRONG),
    ("s11: one hot front", when(unexplained=40, busy=0.6, at=threads(front=(0.95, 0.02))),
     "front", STRONG),
    # The JDK server's one reader is one of several acceptors, which are not counted alone.
    ("s11: one of several acceptors",
     when(unexplained=40, busy=0.6, at=threads(acceptor=(0.95, 0.02))), UNKNOWN, ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("trial", "name", "strength"), [pytest.param(*case, id=name) for name, *case in SCENARIOS]
)
def test_a_scenario(trial: Callable[..., Verdict], name: str, strength: str) -> None:
    found = trial()
    assert (found.bottleneck, found.strength) == (name, strength), found.shares


def test_what_other_machines_took_is_not_the_lab_s() -> None:
    beside = waited(busy=0.86, steal=0.095, **CPUS)
    assert beside.strength != STRONG
    assert beside.shares["work outside the lab"] > 0.3


def test_shares_follow_their_causes_steadily() -> None:
    # That of a late downstream falls where it waits for a CPU itself, and nowhere jumps.
    falling = [
        waited(downstream=40, at=threads(downstream=(0.5, runq))).shares["downstream"]
        for runq in (0.0, 0.1, 0.2, 0.4, 0.8)
    ]
    assert falling == sorted(falling, reverse=True)
    # Doses of a spinner show as waiting for a CPU in order.
    rising = [
        waited(queue=20, path=20, at=threads(worker=(0.3, runq), proxy=(0.3, runq))).shares.get(
            "host CPU", 0.0
        )
        for runq in (0.0, 0.1, 0.3, 0.9, 2.7)
    ]
    assert rising == sorted(rising)
    assert (rising[0], rising[-1]) == (0, pytest.approx(0.9, abs=0.02))


THRESHOLDS = {
    name: value
    for module in (excess, stages, resource, rule, server_cpu, host_cpu, lock_resource)
    for name, value in vars(module).items()
    if name.isupper() and isinstance(value, float)
}


@pytest.mark.parametrize("times", [0.8, 1.25])
@pytest.mark.parametrize("name", THRESHOLDS)
def test_no_threshold_makes_a_sure_name_wrong(
    name: str, times: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [module for at, module in sys.modules.items() if at.startswith("lab.judge.")]:
        if getattr(module, name, None) == THRESHOLDS[name]:
            monkeypatch.setattr(module, name, times * THRESHOLDS[name])
    for _, trial, named, *_ in CASES:
        found = trial()
        assert found.strength != STRONG or found.bottleneck == named, found.shares


def test_a_trial_tells_how_far_its_figures_agree() -> None:
    parts = {"a": 0.5, "toxiproxy": 0.4, "downstream": 0.2, "prometheus": 0.1, "cadvisor": 0.1,
             "loadgen": 0.1, "driver": 0.3}  # fmt: skip
    used = [counter("container_cpu_usage_seconds_total", cpus, service=service)
            for service, cpus in parts.items()]  # fmt: skip

    def balance(every: float) -> tuple[float | None, ...]:
        host = counter("host_cpu_usage_seconds_total", every, cpu="total")
        found = waited(*used, host, queue=20, path=20, busy=0.9, at=SHORT).balance
        return found.cpu, found.others, found.in_flight

    # Of 1.8 CPUs; the engine is a part of the driver.
    in_flight = pytest.approx(1, abs=1e-3)
    assert balance(1.79) == (pytest.approx(1.79 / 1.8), pytest.approx(0.09 / 1.8), in_flight)
    assert balance(1.4) == (None, None, in_flight)
    opened = waited(queue=20, path=20, offered_rps=5000).balance
    assert (opened.cpu, opened.others, opened.in_flight) == (None,) * 3
