"""Checks and verdict of a service that is not the lab's."""

import copy
from typing import Any

import pytest

from lab.judge.checks import judge
from lab.judge.checks.data import warmth_unproven
from lab.judge.checks.state import cold_silent
from lab.judge.same_lab import fairness
from lab.judge.trial import Trial
from lab.model import STRONG, WEAK, Observation, Series, TrialRecord, Usage, Warmth
from support.fakes import cells, latency, measurement, observation, plan, reading
from support.foreign import CONTAINER, JVM, TOMCAT, URL, foreign, foreign_record, judged
from support.series import CLOSES, OPENS, counter, gauge

SERVER = "my-service"
FULL = Usage(1, 1, 0.99, 0, 0.1, 10)
POOLED = {"rps": 98, "raw_ms": 4080}
IN_TIME = {"rps": 1990, "raw_ms": 201}
FAST = reading(2000, raw=latency(200))
UNPROVEN = Warmth(False, (), warmth_unproven.remark(server="x", port=9404), provable=False)
WATCHES = copy.replace(JVM, lock_watch_ms=10)
PINS = copy.replace(WATCHES, pool_size=None, carriers=2)


def opened(r0_ms: float | None = 200.0, **changes: Any) -> TrialRecord:
    """An open trial of 500 req/s."""
    load = plan("open", server=SERVER, route="/x", predicted_rps=500.0, offered_rps=500)
    return foreign_record(None, r0_ms=r0_ms, plan=load, **changes)


def quick(busy: float) -> TrialRecord:
    usage = Usage(1.0, 1.0, busy, 0.0, 0.1, 1000)
    return foreign_record(None, concurrency=10, r0_ms=0.2, usage=usage)


def cycle(raw_ms: float, think_ms: float | None) -> dict[str, Any]:
    rps = 10_000 / (raw_ms + (think_ms or 0.0))
    return {"rps": rps, "raw_ms": raw_ms, "think_ms": think_ms}


def without(*names: str) -> list[Series]:
    """What Prometheus has of TOMCAT, but for these."""
    return [series for series in TOMCAT if series.labels["__name__"] not in names]


def pools(*sizes: float) -> list[Series]:
    return [
        gauge("lab_worker_pool_size", size, server=SERVER, connector=str(number))
        for number, size in enumerate(sizes)
    ]


def waits(threads: float, kind: str = "monitor") -> Series:
    labels = {"kind": kind, "threads": "platform", "site": "shop.Orders.next:12"}
    return counter("lab_wait_seconds_total", threads, job="jvm", server=SERVER, **labels)


def busy(share: float | None) -> TrialRecord:
    return foreign_record(None, usage=Usage(1.0, 1.0, share, 0.0, 0.1, 1000))


PINNED = [*without("lab_worker_pool_size", "lab_worker_pool_active"), waits(2.0, "pinned"),
          gauge("lab_virtual_thread_scheduler_queued", 300, server=SERVER)]  # fmt: skip
# 400 connections to 200 threads, R0 0.2 s, and one lock that is held for 10 ms: 100 req/s hold 20
# threads where nothing waits, and 179 of the 200 wait for the lock.
AT_LOCK = {"rps": 100, "raw_ms": 4000}
NO_POOL = without("lab_worker_pool_size")
IDLE_POOL = [*without("lab_worker_pool_active"),
             gauge("lab_worker_pool_active", 20, server=SERVER)]  # fmt: skip
NO_PROXY = [*TOMCAT[:-4], *TOMCAT[-1:]]

# (trial, series, figures, what is named, how surely, codes of what is missing)
VERDICTS: list[tuple[TrialRecord, Any, dict[str, Any], str, str, set[str] | None]] = [
    # 400 connections in flight, 200 of them with a thread: each waits for 200 ms.
    (foreign_record(), TOMCAT, {}, "worker pool", STRONG, set()),
    # Nothing waits.
    (foreign_record(), TOMCAT, {"rps": 500}, "unknown", "", None),
    # Without an exporter nothing is named with strong evidence.
    (busy(0.75), CONTAINER, {}, "unknown", "", {"exporter"}),
    (foreign_record(None, usage=FULL), CONTAINER, {}, "host CPU", WEAK, None),
    # A pool that nobody shows is inferred where the CPUs are idle: of an open load that lacks
    # answers, too, but not of one that only takes longer.
    (foreign_record(None), CONTAINER, POOLED, "worker pool", WEAK, None),
    (opened(), CONTAINER, POOLED, "worker pool", WEAK, None),
    (opened(r0_ms=100.0), CONTAINER, {"rps": 499}, "unknown", "", None),
    # Something else may be, or most of those in flight are worked on.
    (foreign_record(None, r0_ms=None), CONTAINER, POOLED, "unknown", "", None),
    (busy(None), CONTAINER, POOLED, "unknown", "", None),
    (foreign_record(None), CONTAINER, {"rps": 1600, "raw_ms": 250}, "unknown", "", None),
    (foreign_record(copy.replace(JVM, scraped=False)), [gauge("up", 1, job="cadvisor")], {},
     "worker pool", WEAK, {"exporter unread", "container"}),
    # A load that got all it can have has no bottleneck, as far as R0 is known.
    (foreign_record(None), CONTAINER, IN_TIME, "none", STRONG, None),
    (foreign_record(None, r0_ms=None), CONTAINER, IN_TIME, "unknown", "", {"R0", "exporter"}),
    (opened(), CONTAINER, {"rps": 499, "raw_ms": 200}, "none", STRONG, None),
    (opened(r0_ms=100.0), CONTAINER, {"rps": 499, "raw_ms": 200}, "unknown", "", None),
    # An R0 that was measured on a full machine may be too long.
    (opened(r0_ms=None), CONTAINER, {"rps": 499, "raw_ms": 200}, "none", WEAK, None),
    (opened(usage=FULL), CONTAINER, {"rps": 499, "raw_ms": 200}, "none", WEAK, None),
    (foreign_record(usage=FULL), NO_PROXY, IN_TIME, "none", WEAK, None),
    # The pool gave more than its size over R0; the load is faster than it.
    (foreign_record(r0_ms=300.0), TOMCAT, {"rps": 1000, "raw_ms": 400},
     "worker pool", STRONG, None),
    (foreign_record(None), CONTAINER, {"rps": 2500, "raw_ms": 160}, "unknown", "", None),
    # Pools that cannot be told apart are missing; a shared executor has none of its own: -1. What
    # is inferred instead has no size.
    *((foreign_record(), [*NO_POOL, *pools(*sizes)], {}, "worker pool", WEAK, {"pool"})
      for sizes in ((200.0, 10.0), (-1.0, 200.0), (-1.0,), ())),
    # A JVM that never reported its descriptors has some left.
    (foreign_record(), without("process_open_fds", "process_max_fds"), {"rps": 500},
     "unknown", "", {"descriptors", "locks"}),
    # Z is 20 % of a cycle, and an answer takes R0: 10 / (0.2 ms + 0.05 ms) = 40,000.
    (quick(0.4), CONTAINER, cycle(0.2, 0.05), "generator", STRONG, None),
    (quick(0.99), CONTAINER, cycle(0.2, 0.05), "generator", STRONG, None),
    # 4.8 %: the load is what it was to be.
    (quick(0.4), CONTAINER, cycle(0.2, 0.01), "none", STRONG, None),
    # A fifth of what is above R0 is the generator's; the rest is as of 4 threads.
    (quick(0.4), CONTAINER, cycle(0.4, 0.05), "worker pool", WEAK, None),
    (quick(0.99), CONTAINER, cycle(0.4, 0.05), "host CPU", WEAK, None),
    # Z is unknown: 80 % of connections / R0, and nothing explains the rest.
    (quick(0.4), CONTAINER, cycle(0.25, None), "unknown", "", None),
    # A lock and pinned carriers are named where the recorder watches. What holds the threads of
    # others for so long is not known.
    (foreign_record(WATCHES), [*TOMCAT, waits(179)], AT_LOCK, "lock", STRONG, set()),
    (foreign_record(), TOMCAT, AT_LOCK, "unknown", "", {"locks"}),
    (foreign_record(PINS), PINNED, {"rps": 40, "raw_ms": 10_000}, "pinned carriers", STRONG, None),
]  # fmt: skip


@pytest.mark.parametrize(("of", "series", "figures", "name", "strength", "missing"), VERDICTS)
def test_what_is_named(
    of: TrialRecord,
    series: Any,
    figures: dict[str, Any],
    name: str,
    strength: str,
    missing: set[str] | None,
) -> None:
    found = judged(of, *series, **figures)
    assert (found.bottleneck, found.strength) == (name, strength), found.shares
    assert missing is None or {gap.code for gap in found.missing} == missing


def test_what_is_named_has_its_figures() -> None:
    assert judged(foreign_record(), *TOMCAT).shares["worker pool"] == pytest.approx(1, abs=0.01)
    inferred = judged(foreign_record(None), *CONTAINER, **POOLED).named
    assert (inferred.use, inferred.capacity) == (pytest.approx(19.6), None)
    locked = judged(foreign_record(WATCHES), *TOMCAT, waits(179), **AT_LOCK)
    assert locked.named.detail == "shop.Orders.next:12"
    assert locked.shares["lock"] > 0.9
    pinned = judged(foreign_record(PINS), *PINNED, rps=40, raw_ms=10_000).named
    assert (pinned.use, pinned.capacity) == (pytest.approx(2), 2)
    unexplained = judged(opened(r0_ms=100.0), *CONTAINER, rps=499, raw_ms=200)
    assert unexplained.shares == {"unexplained": 1.0}


@pytest.mark.parametrize(
    ("watch_ms", "missing"),
    [
        (None, [("locks", "no recorder")]),
        (0, [("locks", "off")]),
        (10, [("locks of virtual threads", "JDK 21")]),
    ],
)
def test_an_unknown_verdict_says_that_nobody_watched_its_locks(
    watch_ms: int | None, missing: list[tuple[str, str]]
) -> None:
    watched = copy.replace(JVM, lock_watch_ms=watch_ms)
    found = judged(foreign_record(watched), *IDLE_POOL, rps=500, raw_ms=800)
    assert found.bottleneck == "unknown"
    assert [(gap.code, gap.detail) for gap in found.missing if "locks" in gap.code] == missing


def test_the_quotas_of_several_containers_are_no_quota() -> None:
    first, second = (
        gauge("container_spec_cpu_quota", 30_000, service=SERVER, id=container)
        for container in ("1", "2")
    )
    period = gauge("container_spec_cpu_period", 100_000, service=SERVER, id="1")
    for quotas, missing, cpus in (([first], False, 0.3), ([first, second], True, None)):
        found = judged(foreign_record(), *TOMCAT, *quotas, period)
        assert ("quota" in {gap.code for gap in found.missing}) == missing
        [server] = [each for each in found.ranked if each.resource == "server CPU"]
        assert server.capacity == cpus


RESTARTED = foreign(copy.replace(JVM, start_time_ms=2_000_000))


@pytest.mark.parametrize(
    ("of", "answers", "reason"),
    [
        (foreign_record(after=RESTARTED), FAST, "jvm-restarted"),
        (foreign_record(jit_share=0.5), FAST, "compiling"),
        (foreign_record(warmth=Warmth(False, (), cold_silent.remark())), FAST, "cold-silent"),
        (foreign_record(), reading(100, raw=latency(200)), "littles-law"),
        (foreign_record(None, warmth=UNPROVEN), FAST, None),
    ],
)
def test_checks_that_can_be_asked_are(of: TrialRecord, answers: Any, reason: str | None) -> None:
    judgement = judge(Trial(measurement(of, answers), observation()))
    assert [found.code for found in judgement.reasons] == ([reason] if reason else [])
    assert reason or "warmth-unproven server=x port=9404" in cells(judgement.notes)


@pytest.mark.parametrize(
    ("server", "series", "is_assumed"),
    [
        (SERVER, (), True),
        (SERVER, CONTAINER, False),
        ("a.b", CONTAINER, True),
    ],
)
def test_an_exporter_that_may_be_another_s_is_taken_for_the_service_s(
    server: str, series: tuple[Series, ...], is_assumed: bool
) -> None:
    load = plan("closed", server=server, predicted_rps=None, concurrency=400)
    late = [counter("lab_downstream_lag_seconds_bucket", 100.0, le=le) for le in ("1", "+Inf")]
    seen = Observation((OPENS, CLOSES), (gauge("up", 1), *series, *late))
    judgement = judge(Trial(measurement(foreign_record(plan=load), FAST), seen))
    assumed = f"exporter-assumed server={server} exporter=9404 port=8080"
    assert (assumed in cells(judgement.notes)) == is_assumed
    # The lab's own downstream is no evidence against it.
    assert judgement.valid
    assert "downstream-late" not in {note.code for note in judgement.notes}


def test_its_limits_are_those_that_it_tells() -> None:
    limits = {"url": URL, "jdk": "21.0.1", "max_heap_bytes": 2**30}
    assert fairness({"x": foreign()}).equal == limits
    assert fairness({"x": foreign(None)}).equal == {"url": URL}
    idle = foreign(copy.replace(JVM, lock_watch_ms=0))
    assert fairness({"x": idle}) == fairness({"x": foreign()})
    assert fairness({"x": foreign(WATCHES)}).own == {"lock_watch_ms": {"x": 10}}
