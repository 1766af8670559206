"""The verdict where a server watches its locks: on windows made by hand, with what was planted."""

from typing import Any

import pytest

from lab.model import STRONG, WEAK, Series, Usage
from support.fakes import flat, latency
from support.series import counter, gauge
from support.windows import SERVER, Case, case, judged, pool, seen, standing

SITE = "lab.work.faults.OneLock.hold:26"
WATCHED = {"lock_watch_ms": 10}
CARRIERS = {**WATCHED, "virtual_thread_parallelism": 2}
PINNED = "lab.work.faults.PinnedWait.<clinit>:11"


def waiting(threads: float, site: str = SITE, kind: str = "lock") -> Series:
    labels = {"server": SERVER, "kind": kind, "threads": "platform", "site": site}
    return counter("lab_wait_seconds_total", threads, **labels)


# Two carriers, and requests that keep one for 50 ms: 40 req/s.
def pinned(kept: float, queued: float) -> tuple[Series, ...]:
    name = "lab_virtual_thread_scheduler_"
    return (
        waiting(kept * 0.95, PINNED, "pinned"),
        waiting(kept * 0.05, "lab.Other.run:1", "pinned"),
        gauge(f"{name}parallelism", 2, server=SERVER),
        gauge(f"{name}mounted", 2, server=SERVER),
        gauge(f"{name}queued", queued, server=SERVER),
    )


def usage(busy: float) -> Usage:
    return Usage(1.0, 1.0, busy, 0.0, 0.1, 1000)


def begun_in_the_window() -> list[Series]:
    """A site that hides no other."""
    late = waiting(0.01, "lab.Late.run:1", "pinned")
    half = len(late.times) // 2
    late = Series({**late.labels, "job": "server"}, late.times[half:], late.values[half:])
    return [late, gauge("up", 1, job="server", server=SERVER)]


# 100 connections and a lock that is held for 10 ms: 100 req/s, of which 20 wait for the downstream
# (Little's law), one holds the lock, and 79 wait for it.
LOAD: dict[str, Any] = {"rps": 100, "concurrency": 100, "settings": WATCHED}
# Of 100 connections 40 are with the generator: 100 req/s × 0.4 s.
THINKING = {"raw": latency(600), "late": flat(400.0)}
# 250 connections, 4 ms: 250 req/s hold 200 workers for 0.8 s each, 150 of them at the lock.
HELD = {"rps": 250, "concurrency": 250}
# 20 connections give 100 req/s; the lock takes 2 ms of each, and few wait for it.
CAP = tuple(
    gauge(f"lab_downstream_connections_{name}", value, server=SERVER)
    for name, value in (("cap", 20), ("leased", 20), ("pending", 79))
)
KEPT: dict[str, Any] = {"rps": 40, "concurrency": 100, "settings": CARRIERS}


def held_by(connections: int) -> dict[str, Any]:
    return {**LOAD, "concurrency": connections, "settings": {**WATCHED, "pool_size": 200}}


@pytest.mark.parametrize(
    "line",
    [
        # Half of the cycle above R0 is the generator's.
        case("generator's think time", waiting(36), **LOAD, **THINKING).gives("generator", WEAK),
        case("monitor", waiting(79, kind="monitor"), **LOAD).gives("lock", STRONG),
        case("pool at a lock", *pool(200, 50, 0.8), waiting(149), settings=WATCHED, **HELD).gives(
            "lock", STRONG
        ),
        case("pool, locks unwatched", *pool(200, 50, 0.8), **HELD).gives("unknown"),
        # 100 req/s, as the lock is held for 10 ms: 20 wait for the downstream, 179 of the 200
        # workers for the lock, and all others for a worker.
        *(
            case(f"{n} connections", *pool(200, n - 200, 2.0), waiting(179), **held_by(n)).gives(
                "lock", STRONG
            )
            for n in (400, 1000)
        ),
        # Of the 80 that wait; the others wait for something else.
        case("45 of 80", waiting(45), **LOAD).gives("lock", STRONG),
        case("25 of 80", waiting(25), **LOAD).gives("unknown"),
        case("10 of 80", waiting(10), **LOAD).gives("unknown"),
        # Its holder may wait for a CPU.
        case("busy CPUs", waiting(79), usage=usage(0.85), **LOAD).gives("lock", WEAK),
        case("full CPUs", waiting(79), usage=usage(0.99), **LOAD).gives("lock", WEAK),
        case("all it can have", waiting(5), **{**LOAD, "rps": 490}).gives("none", STRONG),
        case("connections", *CAP, waiting(1.2), **{**LOAD, "rps": 98}).gives(
            "downstream connections", STRONG
        ),
        case("late site", *pinned(1.98, 60), *begun_in_the_window(), **KEPT).gives(
            "pinned carriers", STRONG
        ),
        case("free carriers", *pinned(1.2, 60.0), **KEPT).gives("unknown"),
        case("nothing waits for a carrier", *pinned(1.98, 0.2), **KEPT).gives("unknown"),
    ],
)
def test_what_most_threads_wait_for_is_named(line: Case) -> None:
    line.check()


def test_a_lock_is_named_with_its_site_where_most_that_wait_wait_for_it() -> None:
    elsewhere = (waiting(2, "lab.Other.run:1"), waiting(1, "lab.Third.run:1", "monitor"))
    found = judged(seen(waiting(79), *elsewhere), **LOAD)
    assert (found.bottleneck, found.strength) == ("lock", STRONG)
    lock = found.ranked[0]
    assert (lock.detail, lock.use) == (SITE, None)
    assert lock.share == pytest.approx(79 / 80, abs=0.02)
    assert lock.evidence[0].source == (
        f'sum(rate(lab_wait_seconds_total{{kind="lock", site="{SITE}", server="a"}}[10s]))'
    )


def test_a_lock_at_which_nothing_waited_is_no_suspect() -> None:
    found = judged(seen(waiting(0)), **{**LOAD, "rps": 400})
    assert standing(found, "lock").share == 0.0
    assert found.ranked[0].resource != "lock"


ENDED = gauge("lab_lock_watch_ms", 0, server=SERVER)
FAILED = counter("lab_lock_watch_failed_looks_total", 0.4, server=SERVER)


@pytest.mark.parametrize(
    ("series", "changes", "bottleneck", "missing"),
    [
        ([], {}, "unknown", []),
        ([], {"settings": {"lock_watch_ms": 0}}, "unknown", [("locks", "off")]),
        ([], {"jdk": "21.0.8"}, "unknown", [("locks of virtual threads", "JDK 21")]),
        ([FAILED], {}, "unknown", [("locks of virtual threads", "looks failed")]),
        ([waiting(79), ENDED], {}, "unknown", [("locks", "ended")]),
        # Also beside a name: those who wait for the lock may have filled the pool.
        ([*pool(200, 50, 0.8), ENDED], HELD, "unknown", [("locks", "ended")]),
        # As in runs before there was such a setting.
        ([], {"settings": None}, "unknown", []),
    ],
)
def test_a_verdict_says_that_nobody_watched_the_locks(
    series: list[Series], changes: dict[str, Any], bottleneck: str, missing: list[tuple[str, str]]
) -> None:
    found = judged(seen(*series), **{**LOAD, **changes})
    told = [(gap.code, gap.detail) for gap in found.missing if "locks" in gap.code]
    assert (found.bottleneck, told) == (bottleneck, missing)


def test_carriers_that_waiting_threads_keep_are_named_with_the_site() -> None:
    found = judged(seen(*pinned(1.98, 60)), **KEPT)
    assert (found.bottleneck, found.strength) == ("pinned carriers", STRONG)
    assert found.named is not None
    assert (found.named.detail, found.named.capacity) == (PINNED, 2)


def test_on_an_old_jdk_what_is_measured_names_what_was_inferred() -> None:
    found = judged(
        seen(*pinned(1.98, 60), without="lab_virtual_thread_scheduler_queued"),
        rps=9.7,
        concurrency=100,
        route="/synchronized",
        jdk="21.0.8",
        settings={**CARRIERS, "pool_size": None},
    )
    assert standing(found, "carrier threads").use == pytest.approx(1.94)
    assert standing(found, "pinned carriers").use == pytest.approx(1.98)
