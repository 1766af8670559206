"""Prediction, gates and verdict of a service that is not the lab's."""

import copy
from typing import Any

import pytest

from lab.judge.checks import judge
from lab.judge.checks.data import warmth_unproven
from lab.judge.checks.state import cold_silent
from lab.judge.fairness import compare
from lab.judge.predict import predict
from lab.model import (
    STRONG,
    WEAK,
    Demand,
    Line,
    Observation,
    Series,
    TrialRecord,
    Usage,
    Verdict,
    Warmth,
)
from support.fakes import cells, latency, measurement, observation, plan, reading
from support.foreign import CONTAINER, JVM, TOMCAT, URL, foreign, foreign_record, judged
from support.series import CLOSES, OPENS, counter, gauge

FULL = Usage(1, 1, 0.99, 0, 0.1, 10)
POOLED = {"rps": 98, "raw_ms": 4080}
IN_TIME = {"rps": 1990, "raw_ms": 201}
FAST = reading(2000, raw=latency(200))
UNPROVEN = Warmth(False, (), warmth_unproven.remark(server="x", port=9404), provable=False)


def named(of: TrialRecord, **load: Any) -> tuple[str, str]:
    """The bottleneck of a service without an exporter, and its strength."""
    found = judged(of, *CONTAINER, **load)
    return found.bottleneck, found.strength


def codes(found: Verdict) -> set[str]:
    return {gap.code for gap in found.missing}


def test_all_but_what_is_offered_is_an_estimate() -> None:
    demand = Demand(200, 4000, None, Line(0.001), 200.0)
    closed = predict("/x", 400, None, foreign(), demand, 2)
    assert closed.rps is None
    assert [(one.resource, one.rps, one.estimate) for one in closed.bounds] == [
        ("worker pool", 1000.0, True),
        ("connections", 2000.0, True),
        ("host CPU", 2000.0, True),
    ]
    assert closed.expected_p95_ms == 400
    opened = predict("/x", 400, 500, foreign(None), demand, 2)
    assert (opened.rps, opened.expected_p95_ms) == (500, None)
    assert predict("/x", 400, None, foreign(None)).bounds == ()


def test_the_think_time_of_the_generator_is_part_of_what_connections_allow() -> None:
    """R0 = 0.15 ms and Z = 0.05 ms: at most 10 / 0.2 ms = 50,000 req/s, and R = N / X - Z."""
    quick = Demand(10, 4000, None, None, 0.15, light_rps=50_000, think_ms=0.05)
    found = predict("/x", 10, None, foreign(None), quick, 2)
    assert [(one.resource, round(one.rps), one.formula) for one in found.bounds] == [
        ("connections", 50_000, "10 / 0.0002 s")
    ]
    assert found.expected_ms == pytest.approx(0.15)
    # A CPU that allows 20,000: 10 / 20,000 = 0.5 ms a cycle, 0.05 ms of it with the generator.
    costly = copy.replace(quick, host=Line(0.0001))
    found = predict("/x", 10, None, foreign(None), costly, 2)
    assert found.bounds[0].resource == "host CPU"
    assert found.expected_ms == pytest.approx(0.45)
    # A worker is not held while the generator thinks: 8 / 0.15 ms.
    pool = predict("/x", 10, None, foreign(copy.replace(JVM, pool_size=8)), quick, 2)
    assert {one.resource: round(one.rps) for one in pool.bounds}["worker pool"] == 53_333
    # The light load had as much as Z leaves it: half of it, and not a quarter.
    slow = Demand(10, 4000, None, None, 0.1, light_rps=24_000, think_ms=0.1)
    assert predict("/x", 10, None, foreign(None), slow, 2).bounds == ()
    held = copy.replace(slow, light_rps=26_000)
    assert predict("/x", 10, None, foreign(None), held, 2).bounds[0].rps == pytest.approx(50_000)


@pytest.mark.parametrize(
    ("think_ms", "raw_ms", "busy", "bottleneck", "strength"),
    [
        # Z is 20 % of a cycle, and an answer takes R0: 10 / (0.2 ms + 0.05 ms) = 40,000.
        (0.05, 0.2, 0.4, "generator", STRONG),
        (0.05, 0.2, 0.99, "generator", STRONG),
        # 4.8 %: the load is what it was to be.
        (0.01, 0.2, 0.4, "none", STRONG),
        # A fifth of what is above R0 is the generator's; the rest is as of 4 threads.
        (0.05, 0.4, 0.4, "worker pool", WEAK),
        (0.05, 0.4, 0.99, "host CPU", WEAK),
        # Nobody tells Z: 80 % of connections / R0, and nothing explains the rest.
        (None, 0.25, 0.4, "unknown", ""),
    ],
)
def test_a_load_that_its_generator_keeps_from_more_says_so(
    think_ms: float | None, raw_ms: float, busy: float, bottleneck: str, strength: str
) -> None:
    usage = Usage(1.0, 1.0, busy, 0.0, 0.1, 1000)
    of = foreign_record(None, concurrency=10, r0_ms=0.2, usage=usage)
    rps = 10_000 / (raw_ms + (think_ms or 0.0))
    found = judged(of, *CONTAINER, rps=rps, raw_ms=raw_ms, think_ms=think_ms)
    assert (found.bottleneck, found.strength) == (bottleneck, strength)


def test_an_r0_that_the_light_load_did_not_have_is_no_expectation() -> None:
    slower = Demand(20, 4000, None, None, 0.13, light_rps=9000)
    assert predict("/x", 20, None, foreign(None), slower, 2).bounds == ()
    held = Demand(200, 4000, None, None, 200.0, light_rps=990)
    assert predict("/x", 400, None, foreign(None), held, 2).bounds[0].rps == 2000


def test_a_trial_without_an_exporter_is_valid_and_says_what_was_not_asked() -> None:
    said = judge(measurement(foreign_record(None, warmth=UNPROVEN), FAST), observation())
    assert said.valid
    notes = cells(said.notes)
    assert "warmth-unproven server=x port=9404" in notes


def test_gates_that_can_be_asked_are() -> None:
    restarted = foreign(copy.replace(JVM, start_time_ms=2_000_000))
    for of, said, reason in (
        (foreign_record(after=restarted), FAST, "jvm-restarted"),
        (foreign_record(jit_share=0.5), FAST, "compiling"),
        (foreign_record(warmth=Warmth(False, (), cold_silent.remark())), FAST, "cold-silent"),
        (foreign_record(), reading(100, raw=latency(200)), "littles-law"),
    ):
        reasons = judge(measurement(of, said), observation()).reasons
        assert reason in [one.code for one in reasons]


def test_the_lab_s_own_downstream_is_no_evidence_against_it() -> None:
    late = [counter("lab_downstream_lag_seconds_bucket", 100.0, le=le) for le in ("1", "+Inf")]
    said = judge(
        measurement(foreign_record(None), FAST),
        Observation((OPENS, CLOSES), (gauge("up", 1, job="cadvisor"), *late)),
    )
    assert said.valid
    assert "downstream-late" not in [note.code for note in said.notes]


def test_a_tomcat_whose_threads_are_all_busy_is_named_for_its_pool() -> None:
    found = judged(foreign_record(), *TOMCAT)
    assert (found.bottleneck, found.strength, found.missing) == ("worker pool", STRONG, ())
    # 400 connections in flight, 200 of them with a thread: each waits for 200 ms.
    assert found.shares["worker pool"] == pytest.approx(1, abs=0.01)
    # Nothing waits.
    assert judged(foreign_record(), *TOMCAT, rps=500).bottleneck == "unknown"


def test_without_an_exporter_nothing_is_named_with_strong_evidence_and_it_is_said_why() -> None:
    busy = Usage(1.0, 1.0, 0.75, 0.0, 0.1, 1000)
    found = judged(foreign_record(None, usage=busy), *CONTAINER)
    assert (found.bottleneck, found.strength) == ("unknown", "")
    assert codes(found) == {"exporter"}
    assert named(foreign_record(None, usage=FULL)) == ("host CPU", WEAK)


def test_a_pool_that_nobody_shows_is_inferred_where_the_cpus_are_idle() -> None:
    found = judged(foreign_record(None), *CONTAINER, **POOLED)
    assert (found.bottleneck, found.strength) == ("worker pool", WEAK)
    assert found.named is not None
    assert (found.named.use, found.named.capacity) == (pytest.approx(19.6), None)
    # Of an open load that lacks answers, too, but not of one that only takes longer.
    assert named(opened(), **POOLED)[0] == "worker pool"
    assert named(opened(r0_ms=100.0), rps=499)[0] == "unknown"
    # Something else may be, or most of those in flight are worked on.
    assert named(foreign_record(None, r0_ms=None), **POOLED)[0] == "unknown"
    untold = Usage(1.0, 1.0, None, 0.0, 0.1, 1000)
    assert named(foreign_record(None, usage=untold), **POOLED)[0] == "unknown"
    assert named(foreign_record(None), rps=1600, raw_ms=250)[0] == "unknown"


def test_an_exporter_that_nobody_reads_and_a_service_that_is_no_container_are_said() -> None:
    unread = copy.replace(JVM, scraped=False)
    found = judged(foreign_record(unread), gauge("up", 1, job="cadvisor"))
    assert codes(found) == {"exporter unread", "container"}


def test_a_load_that_got_all_it_can_have_has_no_bottleneck_as_far_as_r0_is_known() -> None:
    found = judged(foreign_record(None), *CONTAINER, **IN_TIME)
    assert (found.bottleneck, found.strength) == ("none", STRONG)
    unknown = judged(foreign_record(None, r0_ms=None), *CONTAINER, **IN_TIME)
    assert unknown.bottleneck == "unknown"
    assert "R0" in codes(unknown)


def opened(r0_ms: float | None = 200.0, **changes: object) -> TrialRecord:
    """An open trial of 500 req/s."""
    rates = {"predicted_rps": 500.0, "offered_rps": 500}
    of = plan("open", server="my-service", route="/x", **rates)
    return foreign_record(None, r0_ms=r0_ms, plan=of, **changes)


def test_an_open_load_is_answered_in_time_as_far_as_r0_is_known() -> None:
    found = judged(opened(), *CONTAINER, rps=499, raw_ms=200)
    assert (found.bottleneck, found.strength) == ("none", STRONG)
    late = judged(opened(r0_ms=100.0), *CONTAINER, rps=499, raw_ms=200)
    assert (late.bottleneck, late.shares) == ("unknown", {"unexplained": 1.0})
    # An R0 that was measured on a full machine may be too long.
    for of in (opened(r0_ms=None), opened(usage=FULL)):
        assert named(of, rps=499, raw_ms=200) == ("none", WEAK)


def test_an_r0_that_does_not_fit_is_not_relied_on() -> None:
    # It was measured on a full machine.
    found = judged(foreign_record(usage=FULL), *TOMCAT[:-4], *TOMCAT[-1:], **IN_TIME)
    assert (found.bottleneck, found.strength) == ("none", WEAK)
    # The pool gave more than its size over R0.
    found = judged(foreign_record(r0_ms=300.0), *TOMCAT, rps=1000, raw_ms=400)
    assert (found.bottleneck, found.strength) == ("worker pool", STRONG)
    # The load is faster than it.
    found = judged(foreign_record(None), *CONTAINER, rps=2500, raw_ms=160)
    assert (found.bottleneck, found.strength) == ("unknown", "")


def without(*names: str) -> tuple[Series, ...]:
    """What Prometheus has of TOMCAT, but for these."""
    return tuple(one for one in TOMCAT if one.labels["__name__"] not in names)


@pytest.mark.parametrize(
    # A shared executor has no pool of its own: -1.
    "sizes",
    [(200.0, 10.0), (-1.0, 200.0), (-1.0,), ()],
)
def test_pools_that_cannot_be_told_apart_are_missing(sizes: tuple[float, ...]) -> None:
    pools = [
        gauge("lab_worker_pool_size", size, server="my-service", connector=str(number))
        for number, size in enumerate(sizes)
    ]
    found = judged(foreign_record(), *without("lab_worker_pool_size"), *pools)
    # What is inferred instead has no size.
    assert (found.bottleneck, found.strength) == ("worker pool", WEAK)
    assert "pool" in codes(found)


def test_a_jvm_that_never_told_its_descriptors_is_not_said_to_have_none_left() -> None:
    found = judged(foreign_record(), *without("process_open_fds", "process_max_fds"), rps=500)
    assert found.bottleneck == "unknown"
    assert "descriptors" in codes(found)


def waits(threads: float, kind: str = "monitor") -> Series:
    labels = {"kind": kind, "threads": "platform", "site": "shop.Orders.next:12"}
    return counter("lab_wait_seconds_total", threads, job="jvm", server="my-service", **labels)


# 400 connections to 200 threads, R0 0.2 s, and one lock that is held for 10 ms: 100 req/s hold 20
# threads where nothing waits, and 179 of the 200 wait for the lock.
def test_a_lock_is_named_where_its_recorder_watches() -> None:
    watches = copy.replace(JVM, lock_watch_ms=10)
    found = judged(foreign_record(watches), *TOMCAT, waits(179), rps=100, raw_ms=4000)
    assert (found.bottleneck, found.strength, found.missing) == ("lock", STRONG, ())
    assert found.named is not None
    assert found.named.detail == "shop.Orders.next:12"
    assert found.shares["lock"] > 0.9
    unwatched = judged(foreign_record(), *TOMCAT, rps=100, raw_ms=4000)
    # What holds its threads for so long is not known.
    assert unwatched.bottleneck == "unknown"


def test_pinned_carriers_are_named_where_its_recorder_watches() -> None:
    watches = copy.replace(JVM, pool_size=None, lock_watch_ms=10, carriers=2)
    queued = gauge("lab_virtual_thread_scheduler_queued", 300, server="my-service")
    found = judged(
        foreign_record(watches), *without("lab_worker_pool_size", "lab_worker_pool_active"),
        queued, waits(2.0, "pinned"), rps=40, raw_ms=10_000,
    )  # fmt: skip
    assert found.bottleneck == "pinned carriers"
    assert found.named is not None
    assert (found.named.use, found.named.capacity) == (pytest.approx(2), 2)


def test_an_unknown_verdict_says_that_nobody_watched_its_locks() -> None:
    def missing(lock_watch_ms: int | None) -> list[tuple[str, str]]:
        watched = copy.replace(JVM, lock_watch_ms=lock_watch_ms)
        idle = gauge("lab_worker_pool_active", 20, server="my-service")
        series = (*without("lab_worker_pool_active"), idle)
        found = judged(foreign_record(watched), *series, rps=500, raw_ms=800)
        assert found.bottleneck == "unknown", found
        return [(gap.code, gap.detail) for gap in found.missing if "locks" in gap.code]

    assert missing(None) == [("locks", "no recorder")]
    assert missing(0) == [("locks", "off")]
    assert missing(10) == [("locks of virtual threads", "JDK 21")]


def test_the_quotas_of_several_containers_are_no_quota() -> None:
    def quota(container: str) -> Series:
        return gauge("container_spec_cpu_quota", 30_000, service="my-service", id=container)

    period = gauge("container_spec_cpu_period", 100_000, service="my-service", id="1")
    one = judged(foreign_record(), *TOMCAT, quota("1"), period)
    assert "quota" not in codes(one)
    two = judged(foreign_record(), *TOMCAT, quota("1"), quota("2"), period)
    assert "quota" in codes(two)
    cpus = [[each.capacity for each in found.ranked if each.resource == "server CPU"]
            for found in (one, two)]  # fmt: skip
    assert cpus == [[0.3], [None]]


def test_an_exporter_that_may_be_another_s_is_said_to_be_taken_for_the_service_s() -> None:
    def notes(server: str, *series: Series) -> list[str]:
        of = copy.replace(plan("closed", server=server, predicted_rps=None), concurrency=400)
        whole = measurement(foreign_record(plan=of), FAST)
        seen = Observation((OPENS, CLOSES), (gauge("up", 1), *series))
        return cells(judge(whole, seen).notes)

    taken = "exporter-assumed server={} exporter=9404 port=8080"
    assert taken.format("my-service") in notes("my-service")
    assert not any("exporter-assumed" in one for one in notes("my-service", *CONTAINER))
    assert taken.format("a.b") in notes("a.b", *CONTAINER)


def test_its_limits_are_those_that_it_tells() -> None:
    assert compare({"x": foreign()}).equal == {
        "url": URL, "jdk": "21.0.1", "max_heap_bytes": 2**30,
    }  # fmt: skip
    assert compare({"x": foreign(None)}).equal == {"url": URL}
    idle = foreign(copy.replace(JVM, lock_watch_ms=0))
    assert compare({"x": idle}) == compare({"x": foreign()})
    watches = foreign(copy.replace(JVM, lock_watch_ms=10))
    assert compare({"x": watches}).own == {"lock_watch_ms": {"x": 10}}
