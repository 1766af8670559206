"""The verdict on windows made by hand: locks, the network, the proxy and ports."""

import copy
from typing import Any

import pytest

from lab.model import STRONG, WEAK, Series, Spike, ToxicState
from support.fakes import flat, latency
from support.series import counter, gauge, mean_time
from support.windows import (
    MINE,
    calls,
    check,
    cpu,
    gauges,
    judged,
    pool,
    seen,
    standing,
    table,
)

FULL_HOST = cpu(0.99, 5, 9)
POOL = pool(20, 180, 0.2)
SOME_CAP = gauges("lab_downstream_connections_", cap=20, leased=20, pending=79)
SITE = "lab.work.faults.OneLock.hold:26"
PINNED = "lab.work.faults.PinnedWait.<clinit>:11"
WATCHED = {"lock_watch_ms": 10}


def waiting(threads: float, site: str = SITE, kind: str = "lock") -> Series:
    labels = {"kind": kind, "threads": "platform", "site": site, **MINE}
    return counter("lab_wait_seconds_total", threads, **labels)


def pinned(kept: float, queued: float) -> list[Series]:
    """Two carriers, and requests that keep one for 50 ms: 40 req/s."""
    scheduler = gauges("lab_virtual_thread_scheduler_", parallelism=2, mounted=2, queued=queued)
    other = waiting(kept * 0.05, "lab.Other.run:1", "pinned")
    return [waiting(kept * 0.95, PINNED, "pinned"), other, *scheduler]


def begun_in_the_window() -> list[Series]:
    """A site that hides no other."""
    site = waiting(0.01, "lab.Late.run:1", "pinned")
    half = len(site.times) // 2
    begun = Series({**site.labels, "job": "server"}, site.times[half:], site.values[half:])
    return [begun, gauge("up", 1, job="server", **MINE)]


# 100 connections and a lock that is held for 10 ms: 100 req/s, of which 20 wait for the downstream
# (Little's law), one holds the lock, and 79 wait for it.
LOCKED: dict[str, Any] = {"rps": 100, "concurrency": 100, "settings": WATCHED}
# 250 connections, 4 ms: 250 req/s hold 200 workers for 0.8 s each, 150 of them at the lock.
HELD = {"rps": 250, "concurrency": 250}
KEPT: dict[str, Any] = {"rps": 40, "concurrency": 100,
                        "settings": {**WATCHED, "virtual_thread_parallelism": 2}}  # fmt: skip
# Of 100 connections 40 are with the generator: 100 req/s × 0.4 s.
THINKING = {**LOCKED, "raw": latency(600), "late": flat(400.0)}


def of_pool(connections: int) -> dict[str, Any]:
    return {**LOCKED, "concurrency": connections, "settings": {**WATCHED, "pool_size": 200}}


# Of answers that take 200 ms, those of which a segment is sent again take twice as long.
AGAIN = copy.replace(latency(200.0), mean_ms=212.0, p95_ms=400.0, p99_ms=410.0, max_ms=420.0)


def resent(by_server: float, attempts: float = 0.0, overflows: float = 0.0) -> list[Series]:
    """So many segments a second, in a window of 10 s."""
    rates = {"tcp_retransmits": by_server + attempts, "tcp_syn_retransmits": attempts,
             "listen_overflows": overflows}  # fmt: skip
    return [counter(f"lab_kernel_{name}_total", rate, **MINE) for name, rate in rates.items()]


def lossy(by_generator: float | None, rps: float = 940, **more: Any) -> dict[str, Any]:
    return {"rps": rps, "usage": cpu(0.2, 0.01, 9, window_resent=by_generator), **more}


SET_UP, QUEUE = "connection set-up", "lab_path_accept_queue_"


def queues(waiting: float, rate: float, *, longest: float = 0.0) -> list[Series]:
    """Toxiproxy's accept queue as the downstream reports it; its own is always empty. Each call is
    on a new connection."""
    series = [calls("ok", rate)]
    for listener, level, most in (("toxiproxy", waiting, longest), ("downstream", 0, 0)):
        labels = {"job": "downstream", "listener": listener}
        series.append(counter(f"{QUEUE}connection_seconds_total", level, **labels))
        series.append(gauge(f"{QUEUE}length", most, **labels))
    accepted = counter("lab_downstream_accepted_connections_total", rate, job="downstream")
    return [*series, accepted]


# Of 200 clients 150 wait: 50 / 0.2 s = 250 req/s, each on a new connection.
CROWDED = queues(150, 250, longest=161)
BREAKS = ToxicState(("downstream/l limit_data bytes=110",), 0.0, ("downstream/l limit_data",))
# As measured with 1,000 connections, here with 200: 435 req/s of 1,000, a call takes 0.36 s, of
# which it waits 54 / 435 = 0.12 s. With 20 the queue is less than half of what the load lost.
BROKEN = {"rps": 435, "toxics": BREAKS}
MEASURED = [*mean_time("lab_downstream_call_seconds", 0.36, phase="call", **MINE), calls("ok", 435)]
# The health check's own connection, every 5 s.
KEEPS = queues(0, 0.2)
PEAK = {"spike": Spike(1800, None, 5, 2, 1, 0.1, 1)}


def ports(used: str | None) -> dict[str, Any]:
    load = {"rps": 20_000, "errors": 280_000, "concurrency": 400, "usage": FULL_HOST}
    return {**load, "settings": {"local_ports": used} if used else {}}


IN_USE = [*gauges("lab_kernel_", tcp_time_wait=0), calls("error", 14_000),
          *gauges("lab_downstream_connections_", leased=300)]  # fmt: skip

LOCKS = [
    # Half of the cycle above R0 is the generator's.
    ("generator's think time", [waiting(36)], THINKING, "generator", WEAK),
    ("monitor", [waiting(79, kind="monitor")], LOCKED, "lock", STRONG),
    ("pool at a lock", [*pool(200, 50, 0.8), waiting(149)], {**HELD, "settings": WATCHED},
     "lock", STRONG),
    ("pool, locks unwatched", pool(200, 50, 0.8), HELD, "unknown", ""),
    # 100 req/s, as the lock is held for 10 ms: 20 wait for the downstream, 179 of the 200 workers
    # for the lock, and all others for a worker.
    ("400 connections", [*pool(200, 200, 2.0), waiting(179)], of_pool(400), "lock", STRONG),
    ("1000 connections", [*pool(200, 800, 2.0), waiting(179)], of_pool(1000), "lock", STRONG),
    # Of the 80 that wait; the others wait for something else.
    ("45 of 80", [waiting(45)], LOCKED, "lock", STRONG),
    ("25 of 80", [waiting(25)], LOCKED, "unknown", ""),
    ("10 of 80", [waiting(10)], LOCKED, "unknown", ""),
    # Its holder may wait for a CPU.
    ("busy CPUs", [waiting(79)], {**LOCKED, "usage": cpu(0.85)}, "lock", WEAK),
    ("full CPUs", [waiting(79)], {**LOCKED, "usage": cpu(0.99)}, "lock", WEAK),
    ("all it can have", [waiting(5)], {**LOCKED, "rps": 490}, "none", STRONG),
    # 20 connections give 100 req/s; the lock takes 2 ms of each, and few wait for it.
    ("connections", [*SOME_CAP, waiting(1.2)], {**LOCKED, "rps": 98},
     "downstream connections", STRONG),
    ("late site", [*pinned(1.98, 60), *begun_in_the_window()], KEPT, "pinned carriers", STRONG),
    ("free carriers", pinned(1.2, 60.0), KEPT, "unknown", ""),
    ("nothing waits for a carrier", pinned(1.98, 0.2), KEPT, "unknown", ""),
]  # fmt: skip
NETWORK = [
    # 940 answers a second take 12 ms longer: 47 × 200 ms / 940 = 10 ms.
    ("sent again by the server", resent(47), lossy(0, raw=AGAIN), "network", WEAK),
    ("sent again by the generator", resent(0), lossy(470, raw=AGAIN), "network", WEAK),
    ("a fifth of it", resent(10), lossy(0, raw=AGAIN), "unknown", ""),
    ("nothing sent again", resent(0), lossy(0, raw=AGAIN), "unknown", ""),
    # A load has all it can have; a few segments are a moment's.
    ("all it can have", resent(100), lossy(0, 985), "none", STRONG),
    ("a few segments", resent(0.9), lossy(0, 1), "unknown", ""),
    ("a pool at its own bound", [*resent(100), *pool(200, 1800, 0.2)],
     lossy(0, 980, raw=AGAIN, concurrency=2000), "worker pool", STRONG),
]  # fmt: skip
PROXY = [
    ("calls wait", [*queues(54, 435), *MEASURED], BROKEN, SET_UP, WEAK),
    ("few calls wait", [*queues(20, 435), *MEASURED], BROKEN, "Toxiproxy", WEAK),
    ("kept connections", KEEPS, {"rps": 985}, "none", STRONG),
    ("kept connections, nothing full", KEEPS, {"rps": 500}, "unknown", ""),
    ("kept connections, full pool", [*KEEPS, *POOL], {"rps": 99}, "worker pool", STRONG),
    # 15 of 200 waited for 38 ms each, of 300 that are missing: the CPUs are full.
    ("short queue, full CPUs", queues(15, 400, longest=120), {"rps": 400, "usage": FULL_HOST},
     "host CPU", WEAK),
    ("long queue, full CPUs", CROWDED, {"rps": 250, "usage": FULL_HOST}, SET_UP, STRONG),
    # Every call that ends at a deadline that no answer can meet takes its connection with it.
    ("deadline", [*CROWDED, calls("timeout", 300)],
     {"rps": 50, "errors": 4500, "settings": {"downstream_timeout_ms": 100}},
     "downstream timeout", STRONG),
    # Those of a peak are not measured, and never give confidence.
    ("peak", queues(900, 300, longest=1700), {"rps": 500, **PEAK}, SET_UP, WEAK),
    ("small peak", queues(12, 50, longest=400), {"rps": 985, **PEAK}, "unknown", ""),
    ("a proxy that accepts nothing more", queues(200, 1, longest=200), {"rps": 1}, SET_UP, STRONG),
]  # fmt: skip
PORTS = [
    ("the range is full", IN_USE, ports("10000 10299"), "ports", STRONG),
    # As many are a small part of the range by default.
    ("a larger range", IN_USE, ports("10000 65535"), "downstream", STRONG),
    ("an unknown range", IN_USE, ports(None), "downstream", STRONG),
    # It is free for the next call.
    ("TIME_WAIT", gauges("lab_kernel_", tcp_time_wait=55_000), {"rps": 500}, "unknown", ""),
]  # fmt: skip


@table([*LOCKS, *NETWORK, *PROXY, *PORTS])
def test_what_is_named(line: Any) -> None:
    check(line)


@pytest.mark.parametrize(("rps", "is_named"), [(9.7, True), (5.0, False)])
def test_kept_carriers_that_explain_the_rate_are_named(rps: float, is_named: bool) -> None:
    load: dict[str, Any] = {"rps": rps, "route": "/synchronized", "jdk": "21.0.8"}
    settings = {"pool_size": None, "virtual_thread_parallelism": 2}
    found = judged(seen(), settings=settings, **load)
    carriers = standing(found, "carrier threads")
    assert (found.bottleneck == "carrier threads") == is_named
    assert (carriers.use, carriers.capacity) == (pytest.approx(0.2 * rps), 2)
    # What is measured says the same as what was inferred.
    watching = seen(*pinned(1.98, 60), without="lab_virtual_thread_scheduler_queued")
    found = judged(watching, concurrency=100, settings={**settings, **WATCHED}, **load)
    assert standing(found, "pinned carriers").use == pytest.approx(1.98)


def test_a_lock_is_named_with_its_site_where_most_that_wait_wait_for_it() -> None:
    elsewhere = (waiting(2, "lab.Other.run:1"), waiting(1, "lab.Third.run:1", "monitor"))
    found = judged(seen(waiting(79), *elsewhere), **LOCKED)
    assert (found.bottleneck, found.strength) == ("lock", STRONG)
    lock = found.ranked[0]
    assert (lock.detail, lock.use) == (SITE, None)
    assert lock.share == pytest.approx(79 / 80, abs=0.02)
    assert lock.evidence[0].source == (
        f'sum(rate(lab_wait_seconds_total{{kind="lock", site="{SITE}", server="a"}}[10s]))'
    )
    # One at which nothing waited is no suspect.
    found = judged(seen(waiting(0)), **{**LOCKED, "rps": 400})
    assert (standing(found, "lock").share, found.ranked[0].resource == "lock") == (0.0, False)
    kept = judged(seen(*pinned(1.98, 60)), **KEPT)
    assert (kept.named.detail, kept.named.capacity) == (PINNED, 2)


ENDED = gauge("lab_lock_watch_ms", 0, **MINE)
FAILED = counter("lab_lock_watch_failed_looks_total", 0.4, **MINE)


@pytest.mark.parametrize(
    ("series", "changes", "missing"),
    [
        ([], {}, []),
        ([], {"settings": {"lock_watch_ms": 0}}, [("locks", "off")]),
        ([], {"jdk": "21.0.8"}, [("locks of virtual threads", "JDK 21")]),
        ([FAILED], {}, [("locks of virtual threads", "looks failed")]),
        ([waiting(79), ENDED], {}, [("locks", "ended")]),
        # Also beside a name: those who wait for the lock may have filled the pool.
        ([*pool(200, 50, 0.8), ENDED], HELD, [("locks", "ended")]),
        ([], {"settings": None}, []),
    ],
)
def test_a_verdict_says_that_nobody_watched_the_locks(
    series: list[Series], changes: dict[str, Any], missing: list[tuple[str, str]]
) -> None:
    found = judged(seen(*series), **{**LOCKED, **changes})
    gaps = [(gap.code, gap.detail) for gap in found.missing if "locks" in gap.code]
    assert (found.bottleneck, gaps) == ("unknown", missing)


@pytest.mark.parametrize(
    ("series", "figures", "use"),
    [
        # Attempts to connect, of the server's own calls; and what the generator sends on
        # connections that the server has not accepted yet.
        (resent(0, attempts=100, overflows=5), lossy(5000, 500), 0),
        # Nothing is known of the queue.
        (resent(0), lossy(5000, 500, raw=AGAIN, without="lab_kernel_listen_overflows_total"), 0),
        # What a full queue of the proxy drops.
        ([*resent(100), counter("lab_path_listen_overflows_total", 50, job="downstream")],
         lossy(0, 500, raw=AGAIN), 0),
        # Nothing where the server does not report it.
        ([], lossy(5000, 500), None),
        ([counter("lab_kernel_tcp_retransmits_total", 100, **MINE)], lossy(0, 500), None),
    ],
)  # fmt: skip
def test_full_queues_drop_too(
    series: list[Series], figures: dict[str, Any], use: float | None
) -> None:
    observed = seen(*series, without=figures.pop("without", ""))
    network = standing(judged(observed, **figures), "network")
    assert (network and (network.use, network.share)) == (None if use is None else (use, 0))


def test_the_queue_that_calls_wait_in_is_named_with_its_length_wait_and_rate() -> None:
    assert standing(judged(seen(*KEEPS), rps=985), SET_UP).share == 0
    # It is one of routes that call the downstream.
    assert standing(judged(seen(*CROWDED), rps=250, route="/compute"), SET_UP) is None
    found = judged(seen(*CROWDED), rps=250)
    assert (found.bottleneck, found.strength) == (SET_UP, STRONG)
    queue = standing(found, SET_UP)
    assert (queue.use, queue.unit) == (150, "connections")
    assert {each.source for each in queue.evidence} >= {
        f'sum(rate({QUEUE}connection_seconds_total{{listener="toxiproxy"}}[10s]))',
        f"max(max_over_time({QUEUE}length{{}}[10s]))",
        "sum(rate(lab_downstream_accepted_connections_total{}[10s]))",
    }


def test_ports_that_are_all_closed_or_taken_fail_calls() -> None:
    # A port in TIME_WAIT is not free for the first second.
    leased = gauges("lab_downstream_connections_", leased=40)
    full = [*gauges("lab_kernel_", tcp_time_wait=250), *leased]
    few = {"local_ports": "10000 10299"}
    failed, fine = (
        judged(seen(*full, *more), rps=500, settings=few) for more in ([calls("error", 300)], [])
    )
    assert standing(failed, "ports").failed > 0
    assert standing(fine, "ports").failed == 0
