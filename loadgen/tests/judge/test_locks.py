"""The verdict where a server watches its locks: on windows made by hand, with what was planted."""

import pytest

from lab.model import STRONG, WEAK, Latency, Series, Usage
from support.fakes import latency
from support.series import counter, gauge
from support.windows import SERVER, judged, pool, seen

SITE = "lab.contract.blocking.OneLock.hold:26"
WATCHED = {"lock_watch_ms": 10}
CARRIERS = {**WATCHED, "virtual_thread_parallelism": 2}


def waiting(threads: float, site: str = SITE, kind: str = "lock") -> Series:
    return counter(
        "lab_wait_seconds_total", threads, server=SERVER, kind=kind, threads="platform", site=site
    )


# 100 connections and a lock that is held for 10 ms: 100 req/s, of which 20 wait for the downstream
# (Little's law), one holds the lock, and 79 wait for it.
def test_a_lock_is_named_with_its_site_where_most_that_wait_wait_for_it() -> None:
    elsewhere = (waiting(2, "lab.Other.run:1"), waiting(1, "lab.Third.run:1", "monitor"))
    found = judged(seen(waiting(79), *elsewhere), rps=100, concurrency=100, settings=WATCHED)
    assert (found.bottleneck, found.strength) == ("lock", STRONG)
    assert found.sentence.startswith(f"the lock at {SITE}: 79.0 threads waited for it on average")
    assert "of 80.0 requests with a thread that waited for anything" in found.sentence
    assert found.figures == "79.0 threads waited for it on average"
    standing = found.ranked[0]
    assert (standing.utilisation, standing.saturation) == (None, pytest.approx(79))
    assert standing.evidence[0].source == (
        f'sum(rate(lab_wait_seconds_total{{kind="lock", site="{SITE}", server="a"}}[10s]))'
    )


def test_who_is_with_the_generator_does_not_wait_for_the_lock() -> None:
    # Of 100 connections 40 are with the generator: 100 req/s × 0.4 s. 20 wait for the downstream.
    think = Latency(400.0, 400.0, 400.0, 400.0, 400.0)
    full = {"rps": 100.0, "concurrency": 100, "settings": WATCHED, "raw": latency(600)}
    found = judged(seen(waiting(39)), **full, late=think)
    assert (found.bottleneck, found.strength) == ("lock", STRONG)
    assert "of 40.0 requests with a thread that waited for anything" in found.sentence


def test_a_lock_at_which_nothing_waited_is_no_suspect() -> None:
    found = judged(seen(waiting(0)), rps=400, concurrency=100, settings=WATCHED)
    assert [one.score for one in found.ranked if one.resource == "lock"] == [0.0]
    assert found.ranked[0].resource != "lock"


def test_a_monitor_counts_like_a_lock() -> None:
    found = judged(seen(waiting(79, kind="monitor")), rps=100, concurrency=100, settings=WATCHED)
    assert (found.bottleneck, found.strength) == ("lock", STRONG)


def test_a_lock_explains_the_pool_whose_workers_wait_for_it() -> None:
    # 250 connections, 4 ms: 250 req/s hold 200 workers for 0.8 s each, 150 of them at the lock.
    full = pool(200, 50, 0.8)
    found = judged(seen(*full, waiting(149)), rps=250, concurrency=250, settings=WATCHED)
    assert (found.bottleneck, found.strength) == ("lock", STRONG)
    unwatched = judged(seen(*full), rps=250, concurrency=250)
    assert (unwatched.bottleneck, unwatched.strength) == ("worker pool", WEAK)


@pytest.mark.parametrize("connections", [400, 1000])
def test_who_waits_for_a_worker_cannot_wait_for_the_lock(connections: int) -> None:
    # 100 req/s, as the lock is held for 10 ms: 20 wait for the downstream, 179 of the 200 workers
    # for the lock, and all others for a worker.
    full = pool(200, connections - 200, 2.0)
    found = judged(
        seen(*full, waiting(179)),
        rps=100,
        concurrency=connections,
        settings={**WATCHED, "pool_size": 200},
    )
    assert (found.bottleneck, found.strength) == ("lock", STRONG)
    assert "of 180.0 requests with a thread that waited for anything" in found.sentence


@pytest.mark.parametrize(
    ("threads", "named", "strength"),
    [
        (45.0, "lock", STRONG),  # 45 of the 80 that wait.
        (25.0, "lock", WEAK),
        (10.0, "unknown", ""),  # The other 70 wait for something else.
    ],
)
def test_a_lock_is_named_by_its_share_of_what_waits(
    threads: float, named: str, strength: str
) -> None:
    found = judged(seen(waiting(threads)), rps=100, concurrency=100, settings=WATCHED)
    assert (found.bottleneck, found.strength) == (named, strength)


def test_on_busy_cpus_a_lock_is_only_a_suspect() -> None:
    busy = Usage(1.0, 1.0, 0.85, 0.0, 0.1, 1000)
    found = judged(seen(waiting(79)), rps=100, concurrency=100, settings=WATCHED, usage=busy)
    assert (found.bottleneck, found.strength) == ("lock", WEAK)
    assert "on CPUs that were 85% busy" in found.sentence
    full = Usage(1.0, 1.0, 0.99, 0.0, 0.1, 1000)
    found = judged(seen(waiting(79)), rps=100, concurrency=100, settings=WATCHED, usage=full)
    assert found.bottleneck == "host CPU"


def test_a_load_that_got_all_it_can_have_is_not_limited_by_its_locks() -> None:
    found = judged(seen(waiting(5)), rps=490, concurrency=100, settings=WATCHED)
    assert (found.bottleneck, found.strength) == ("none", STRONG)


def test_who_waits_for_a_connection_does_not_wait_for_the_lock() -> None:
    # 20 connections give 100 req/s; the lock takes 2 ms of each, and few wait for it.
    cap = (
        gauge("lab_downstream_connections_cap", 20, server=SERVER),
        gauge("lab_downstream_connections_leased", 20, server=SERVER),
        gauge("lab_downstream_connections_pending", 79, server=SERVER),
    )
    found = judged(seen(*cap, waiting(1.2)), rps=98, concurrency=100, settings=WATCHED)
    assert (found.bottleneck, found.strength) == ("downstream connections", STRONG)


def test_a_verdict_that_names_nothing_says_that_nobody_watched_the_locks() -> None:
    unwatched = judged(seen(), rps=100, concurrency=100, settings={"lock_watch_ms": 0})
    assert unwatched.bottleneck == "unknown"
    assert "whether requests waited for a lock: lock_watch_ms is 0" in unwatched.missing
    watched = judged(seen(), rps=100, concurrency=100, settings=WATCHED)
    assert (watched.bottleneck, watched.missing) == ("unknown", ())
    older = judged(seen(), rps=100, concurrency=100, settings=WATCHED, jdk="21.0.8")
    assert older.missing == ("whether virtual threads waited for a lock: JDK 21 does not tell",)
    blind = seen(counter("lab_lock_watch_failed_looks_total", 0.4, server=SERVER))
    failed = judged(blind, rps=100, concurrency=100, settings=WATCHED)
    assert failed.missing == ("whether virtual threads waited for a lock: 4 looks at them failed",)
    ended = seen(waiting(79), gauge("lab_lock_watch_ms", 0, server=SERVER))
    broken = judged(ended, rps=100, concurrency=100, settings=WATCHED)
    assert (broken.bottleneck, broken.missing) == (
        "unknown",
        (f"whether requests waited for a lock: watching failed, see the log of {SERVER}",),
    )
    # Also beside a name: those who wait for the lock may have filled the pool.
    full = [*pool(200, 50, 0.8), gauge("lab_lock_watch_ms", 0, server=SERVER)]
    beside = judged(seen(*full), rps=250, concurrency=250, settings=WATCHED)
    assert (beside.bottleneck, beside.missing) == ("worker pool", broken.missing)
    # As in runs before there was such a setting.
    assert judged(seen(), rps=100, concurrency=100).missing == ()


# Two carriers, and requests that keep one for 50 ms: 40 req/s.
def pinned(kept: float, queued: float) -> tuple[Series, ...]:
    name = "lab_virtual_thread_scheduler_"
    return (
        waiting(kept * 0.95, "lab.contract.blocking.PinnedWait.<clinit>:11", "pinned"),
        waiting(kept * 0.05, "lab.Other.run:1", "pinned"),
        gauge(f"{name}parallelism", 2, server=SERVER),
        gauge(f"{name}mounted", 2, server=SERVER),
        gauge(f"{name}queued", queued, server=SERVER),
    )


def test_carriers_that_waiting_threads_keep_are_named_with_the_site() -> None:
    found = judged(seen(*pinned(1.98, 60)), rps=40, concurrency=100, settings=CARRIERS)
    assert (found.bottleneck, found.strength) == ("pinned carriers", STRONG)
    assert found.sentence == (
        "pinned carriers: 2.0 of 2 kept by virtual threads that waited, 60 waiting for one; "
        "most at lab.contract.blocking.PinnedWait.<clinit>:11"
    )


def test_a_site_that_begins_in_the_window_hides_no_other() -> None:
    late = waiting(0.01, "lab.Late.run:1", "pinned")
    half = len(late.times) // 2
    late = Series({**late.labels, "job": "server"}, late.times[half:], late.values[half:])
    up = gauge("up", 1, job="server", server=SERVER)
    found = judged(seen(*pinned(1.98, 60), late, up), rps=40, concurrency=100, settings=CARRIERS)
    assert (found.bottleneck, found.strength) == ("pinned carriers", STRONG)


@pytest.mark.parametrize(("kept", "queued"), [(1.2, 60.0), (1.98, 0.2)])
def test_carriers_that_are_free_or_that_nobody_waits_for_are_no_limit(
    kept: float, queued: float
) -> None:
    found = judged(seen(*pinned(kept, queued)), rps=40, concurrency=100, settings=CARRIERS)
    assert found.bottleneck != "pinned carriers"


def test_on_an_old_jdk_what_is_measured_names_what_was_inferred() -> None:
    found = judged(
        seen(*pinned(1.98, 60), without="lab_virtual_thread_scheduler_queued"),
        rps=9.7,
        concurrency=100,
        route="/synchronized",
        jdk="21.0.8",
        settings={**CARRIERS, "pool_size": None},
    )
    standings = {one.resource: one for one in found.ranked}
    assert standings["carrier threads"].score >= 0.9
    assert standings["pinned carriers"].utilisation == pytest.approx(0.99)
