"""The verdict on windows made by hand: each resource of the server full in turn, and none."""

import copy
from typing import Any

import pytest

from lab.judge.resources import verdict_of
from lab.judge.trial import UNOBSERVED, Trial
from lab.model import (
    STRONG,
    WEAK,
    Demand,
    Judgement,
    Line,
    Remark,
    Series,
    Spike,
    ToxicState,
    ToxicStep,
    Usage,
    Verdict,
)
from lab.model.knobs import DIRECT
from support.fakes import flat, latency, measurement, plan, reading, record
from support.series import CLOSES, OPENS, TIMES, counter, gauge, mean_time
from support.windows import (
    MINE,
    REQUEST,
    SERVER,
    calls,
    check,
    cpu,
    gauges,
    judged,
    named,
    pool,
    seen,
    standing,
    table,
    times,
)

CORES = "machine:machine_cpu_cores:max"
USED = "container_cpu_usage_seconds_total"
OPEN = {"offered_rps": 900}
FULL_HOST = cpu(0.99, 5, 9)
POOL = pool(20, 180, 0.2)
CAP = gauges("lab_downstream_connections_", cap=20, leased=20, pending=180)
QUOTA = [
    counter(USED, 0.39, service=SERVER),
    gauge("container_spec_cpu_quota", 40_000, service=SERVER),
    gauge("container_spec_cpu_period", 100_000, service=SERVER),
    counter("container_cpu_cfs_periods_total", 10, service=SERVER),
    counter("container_cpu_cfs_throttled_periods_total", 9.9, service=SERVER),
]
OVERFLOWS = counter("lab_kernel_listen_overflows_total", 9, **MINE)
DESCRIPTORS = gauge("process_open_fds", 19_900, job="jvm", **MINE)
LOOP = counter("lab_event_loop_busy_seconds_total", 0.99, loop="0", **MINE)
FRONT = counter("lab_front_busy_seconds_total", 0.99, front="front-1", **MINE)
SLOW = ToxicState(("downstream/b bandwidth rate=1",), 0.0, ("downstream/b bandwidth",))
LATE_BY_800 = ToxicState(("downstream/l latency latency=800",), 800.0)
LONG_CALLS = mean_time("lab_downstream_call_seconds", 0.6, phase="call", **MINE)
TIMEOUTS = calls("timeout", 900)
# As in a window of 1 s whose only scrape came after the load had ended.
IDLE_AT_SCRAPE = gauges("lab_worker_pool_", active=3, queue_depth=0)
CARRIERS = gauges("lab_virtual_thread_scheduler_", parallelism=1, mounted=1, queued=19)
ONE_CARRIER = {"virtual_thread_parallelism": 1}
STARVED = {"late": flat(300), "reasons": (Remark("generator-throttled"),),
           "usage": Usage(1, 0.2, 0.3, 0.0, 3.0, 100, 7.0)}  # fmt: skip
SPIKE = Spike(500, None, 5, 2, 1, 0.1, 1)


def halves(name: str, first: float, second: float, **labels: str) -> Series:
    """A gauge with one value in the first half of the window and one in the second."""
    values = tuple(first if at < (OPENS + CLOSES) / 2 else second for at in TIMES)
    return Series({"__name__": name, **labels}, TIMES, values)


# fixed-pool, 1,000 connections, /downstream (200 ms), MODE=open RATE=985: 982 of them were answered
# by 200 threads that were all busy. p95 was 615 ms where 200 ms were expected.
KNEE = {"rps": 982, "offered_rps": 985, "concurrency": 1000}
FULL_AT_KNEE = [
    *gauges("lab_worker_pool_", size=200, active=200),
    halves("lab_worker_pool_queue_depth", 270, 160, **MINE),
    *mean_time("lab_http_request_seconds", 0.22, 982, phase="queue", **REQUEST),
    *mean_time("lab_http_request_seconds", 0.2, 982, phase="service", **REQUEST),
]
JITTER = ToxicState(("downstream/l latency latency=40 jitter=40",), 40.0, jittered=True)


def late(mean_ms: float, p95_ms: float, **more: Any) -> dict[str, Any]:
    return {**KNEE, "corrected": times(mean_ms, p95_ms), "raw": times(mean_ms, p95_ms), **more}


COMPUTES = {"route": "/compute", "demand": Demand(10, 1000, Line(0.0005), Line(0.0006))}

RESOURCES = [
    ("all it can have", [], {"rps": 985}, "none", STRONG),
    ("nothing full", [], {"rps": 500}, "unknown", ""),
    ("open: kept up", [], {"rps": 895, **OPEN}, "none", STRONG),
    # So says the validity check.
    ("open: overloaded", [], {"rps": 888, **OPEN}, "unknown", ""),
    ("open: a pause explains it", [], {"rps": 888, "pause_s": 1.0, **OPEN}, "none", STRONG),
    ("open: a pause is no answer", [], {"rps": 600, "pause_s": 5.0, **OPEN}, "unknown", ""),
    ("open: 0.7 % errors", [], {"rps": 900, "errors": 100, **OPEN}, "none", STRONG),
    ("open: 2.2 % errors", [], {"rps": 900, "errors": 300, **OPEN}, "unknown", ""),
    # What waits for its threads is measured, however full the CPUs are.
    ("pool, full CPUs", POOL, {"rps": 99, "usage": FULL_HOST}, "worker pool", STRONG),
    ("pool", POOL, {"rps": 99}, "worker pool", STRONG),
    # Its requests show that it was full.
    ("pool, empty at the scrape", [*POOL, *IDLE_AT_SCRAPE], {"rps": 99}, "worker pool", STRONG),
    ("pool, nothing waiting", pool(200, 0, 0.2), {"rps": 985}, "none", STRONG),
    ("pool, long calls", [*pool(20, 180, 0.6), *LONG_CALLS], {"rps": 33, "toxics": SLOW},
     "Toxiproxy", WEAK),
    # Two thirds of the hold are not explained, and so are two thirds of the wait.
    ("pool, long held", pool(20, 180, 0.6), {"rps": 33}, "unknown", ""),
    ("pool, window unseen", POOL, {"rps": 99, "without": "up"}, "worker pool", WEAK),
    ("pool, invalid trial", POOL, {"rps": 99, "reasons": (Remark("compiling"),)},
     "worker pool", WEAK),
    ("downstream connections", CAP, {"rps": 99}, "downstream connections", STRONG),
    # Without run queues a quota, a loop and a front may have waited for a CPU themselves.
    ("server CPU", QUOTA, {"rps": 99}, "server CPU", WEAK),
    ("file descriptors", [DESCRIPTORS], {"rps": 99}, "file descriptors", WEAK),
    ("event loop", [LOOP], {"rps": 99}, "event loop", WEAK),
    ("front", [FRONT], {"rps": 99}, "front", WEAK),
    ("carriers, fewer than CPUs", CARRIERS, {"route": "/compute", "settings": ONE_CARRIER},
     "carrier threads", WEAK),
    ("deadline below the delay", [TIMEOUTS],
     {"errors": 7000, "settings": {"downstream_timeout_ms": 100}}, "downstream timeout", STRONG),
    # It is a symptom of what takes so long.
    ("deadline above the delay", [TIMEOUTS, *CAP], {"rps": 99, "errors": 700},
     "downstream connections", WEAK),
    ("toxic latency", [], {"rps": 198, "toxics": LATE_BY_800}, "downstream", STRONG),
    ("starved generator", [], STARVED, "generator", STRONG),
    # A JVM that cannot count them has none left.
    ("uncounted descriptors", [], {"rps": 15, "without": "process_open_fds"},
     "file descriptors", WEAK),
    ("quota, busy host", QUOTA, {"rps": 99, "usage": cpu(0.91)}, "server CPU", WEAK),
    # Those of a spike are part of the load.
    ("overflows, all it can have", [OVERFLOWS], {"rps": 985}, "none", STRONG),
    ("overflows beside a spike", [OVERFLOWS], {"rps": 985, "spike": SPIKE}, "accept queue", WEAK),
    ("unreadable buckets", [counter("lab_downstream_lag_seconds_bucket", 5.0)], {},
     "unknown", ""),
    ("no such route", [], {"route": "/gone"}, "unknown", ""),
    # Without run queues full CPUs are an estimate, and nothing is made up of others.
    ("host 96 %", [], {"rps": 600, "usage": cpu(0.96)}, "host CPU", WEAK),
    ("host 85 %", [], {"rps": 600, "usage": cpu(0.85)}, "unknown", ""),
]  # fmt: skip

LOADS = [
    ("late, full pool", FULL_AT_KNEE, late(420, 615), "worker pool", STRONG),
    # Toxics with jitter make tails.
    ("late tail, full pool", FULL_AT_KNEE, late(240, 615), "worker pool", STRONG),
    ("late tail by jitter", [], late(240, 615, toxics=JITTER), "none", STRONG),
    # The engine sends in bursts: wrk2's p95 of an answer of 200 ms is up to 257 ms.
    ("nearly in time, full pool", FULL_AT_KNEE, late(215, 257), "worker pool", STRONG),
    ("in time, full pool", FULL_AT_KNEE, late(203, 240), "none", STRONG),
    ("late, nothing full", [], late(420, 615), "unknown", ""),
    # Connections are free, and what is due waits.
    ("late in the generator", [], late(420, 615, raw=times(200, 210)), "generator", STRONG),
    ("known cost", [], late(0.9, 2, **COMPUTES), "none", STRONG),
    ("known cost, late", [], late(30, 90, **COMPUTES), "unknown", ""),
    # 13 ms above R0 are 6.5 % of the rate.
    ("closed load", [], {"rps": 940, "raw": times(213, 700)}, "unknown", ""),
]  # fmt: skip


@table([*RESOURCES, *LOADS])
def test_what_is_named(line: Any) -> None:
    check(line)


HEAP = {"job": "jvm", "area": "heap", **MINE}


@pytest.mark.parametrize("heap", [None, 930])
@pytest.mark.parametrize(
    ("starts", "expected"),
    [
        # As measured: no scrape met a full heap, no collection, and the JVMs' starts filled the
        # CPUs.
        ((1, 2, 3), ("garbage collection", WEAK)),
        # Several JVMs behind one name take turns, and none of them ends.
        ((2, 1, 2), ("unknown", "")),
        # One end may be anything.
        ((1, 1, 2), ("unknown", "")),
    ],
)
def test_a_jvm_that_ends_again_and_again_has_too_little_memory_for_its_load(
    starts: tuple[float, ...], heap: float | None, expected: tuple[str, str]
) -> None:
    labels = {"__name__": "process_start_time_seconds", "job": "jvm", **MINE}
    series = [Series(labels, (OPENS, OPENS + 4, OPENS + 8), starts)]
    if heap is not None:
        series.append(gauge("jvm_memory_used_bytes", heap, **HEAP))
        series.append(gauge("jvm_memory_max_bytes", 1000, **HEAP))
    gone = (Remark("jvm-restarted"),)
    assert named(seen(*series), rps=0, usage=FULL_HOST, reasons=gone) == expected


def test_parts_of_the_path_are_full() -> None:
    names = {"process_open_fds": 19_900, "process_max_fds": 20_000}
    found = judged(seen(*(gauge(name, names[name], job="toxiproxy") for name in names)), rps=15)
    assert (found.bottleneck, found.strength) == ("file descriptors", WEAK)
    full = standing(found, "file descriptors")
    assert (full.detail, full.use, full.capacity) == ("toxiproxy", 19_900, 20_000)
    # Toxiproxy is no suspect where calls go past it.
    past = judged(seen(), rps=500, settings={"downstream_url": DIRECT})
    assert (past.bottleneck, standing(past, "Toxiproxy")) == ("unknown", None)


@pytest.mark.parametrize(("others", "share"), [(None, 0.0), (0.2, 0.25)])
def test_what_others_took_of_the_cpus_is_theirs(others: float | None, share: float) -> None:
    whole = measurement(record(plan("closed"), usage=cpu(0.99)), reading(99))
    found = verdict_of(Trial(whole, seen(), judgement=Judgement((), (), others_cpu=others)))
    assert (found.bottleneck, found.strength) == ("host CPU", WEAK)
    assert found.shares.get("work outside the lab", 0.0) == pytest.approx(share, abs=0.02)


def test_what_was_not_seen_or_changed_is_missing() -> None:
    found = judged(seen(*POOL, without="up"), rps=99)
    assert ("job", "jvm") in [(gap.code, gap.detail) for gap in found.missing]
    assert judged(UNOBSERVED).bottleneck == "unknown"
    # Toxics came and went.
    found = judged(seen(*POOL), rps=99, script=(ToxicStep(2, {"TYPE": "down"}),))
    assert (found.bottleneck, found.strength) == ("worker pool", WEAK)
    assert "script" in {gap.code for gap in found.missing}


def test_what_came_after_the_window_is_not_what_was_in_it() -> None:
    """The exporter did not answer in the window. After it the pool was at rest."""

    def unanswered(series: Series) -> Series:
        kept = [point for point in series.points if not OPENS - 1 <= point[0] <= CLOSES]
        times, values = zip(*kept, strict=True)
        return Series(series.labels, times, values)

    size, active, *rest = POOL
    at_rest = tuple(20.0 if at < OPENS else 0.0 for at in active.times)
    changed = (size, copy.replace(active, values=at_rest), gauge("up", 1, job="jvm"))
    observed = seen(*map(unanswered, changed), *rest)
    assert not observed.covers("jvm")
    found = judged(observed, rps=40)
    pool_seen = standing(found, "worker pool")
    assert (pool_seen.use, pool_seen.capacity) == (20, 20)
    assert ("job", "jvm") in [(gap.code, gap.detail) for gap in found.missing]


ELSEWHERE = Usage(1, 1, None, None, 0.1, 9)


@pytest.mark.parametrize(
    ("cores", "cpu_set", "used", "labels", "bottleneck", "capacity"),
    [
        (8, "4-7", 3.9, {}, "server CPU", 4),
        (8, "4-7", 3.7, {}, "server CPU", 4),
        (8, "4-7", 3.0, {}, "unknown", 4),
        # Of many CPUs one is free more often.
        (64, "32-63", 31.0, {}, "unknown", 32),
        # No set: what is full then is the machine.
        (4, "0-3", 3.9, {}, "unknown", 4),
        # On its own machine it has all its CPUs. Every window here has a use of 0.5 CPUs.
        (4, "0-3", 3.9, {"machine": "tested"}, "server CPU", 4),
        (4, "0-3", 3.0, {"machine": "tested"}, "unknown", 4),
    ],
)
def test_a_server_that_is_kept_to_a_set_is_limited_by_its_cpus(
    cores: int, cpu_set: str, used: float, labels: dict[str, str], bottleneck: str, capacity: int
) -> None:
    more = used - 0.5 if labels else used
    observed = seen(gauge(CORES, cores), counter(USED, more, service=SERVER, **labels))
    usage = ELSEWHERE if labels else cpu(0.6)
    found = judged(observed, rps=600, usage=usage, settings={"cpuset": cpu_set})
    assert (found.bottleneck, found.strength) == (
        bottleneck,
        "" if bottleneck == "unknown" else WEAK,
    )
    cpus = standing(found, "server CPU")
    assert (cpus.use, cpus.capacity) == (pytest.approx(used), capacity)


@pytest.mark.parametrize(("quota", "limit"), [(8, 4), (4, 4), (2, 2)])
def test_a_quota_below_the_cpus_of_the_set_binds(quota: float, limit: float) -> None:
    observed = seen(
        gauge(CORES, 8),
        gauge("container_spec_cpu_quota", quota * 100_000, service=SERVER),
        gauge("container_spec_cpu_period", 100_000, service=SERVER),
        counter(USED, 1.9, service=SERVER),
    )
    found = judged(observed, rps=600, settings={"cpuset": "4-7"})
    assert standing(found, "server CPU").capacity == limit
    # A quota of all that the machine has is none.
    assert standing(judged(seen(*QUOTA, gauge(CORES, 0.4))), "server CPU").share == 0


def machines(**used: float) -> list[Series]:
    """Two CPUs each, of which so many are in use; the proxy and the downstream are on `called`."""
    each = [
        series
        for name, cpus in used.items()
        for series in (
            gauge("machine:machine_cpu_cores:each", 2, machine=name),
            counter("host_cpu_usage_seconds_total", cpus, machine=name),
        )
    ]
    parts = (
        counter(USED, 0.1, service=part, machine="called") for part in ("toxiproxy", "downstream")
    )
    return [*each, *parts]


@pytest.mark.parametrize(("called", "strength"), [(1.95, WEAK), (1.7, "")])
def test_a_full_machine_of_several_is_named(called: float, strength: str) -> None:
    found = judged(seen(*machines(load=0.3, called=called)), rps=600, usage=ELSEWHERE)
    assert (found.bottleneck, found.strength) == ("host CPU" if strength else "unknown", strength)
    cpus = standing(found, "host CPU")
    assert (cpus.detail, cpus.use) == ("called", pytest.approx(called))
    # Each must be seen.
    unseen = gauge("machine:machine_cpu_cores:each", 2, machine="load")
    found = judged(seen(*machines(called=1.95), unseen), rps=600, usage=ELSEWHERE)
    assert (found.bottleneck, standing(found, "host CPU")) == ("unknown", None)


def refused(rps: float) -> Series:
    return counter("lab_http_requests_total", rps, outcome="rejected", **REQUEST)


def test_refusals_are_no_throughput_and_neither_wait_nor_hold_a_worker() -> None:
    # The counts of 15 s: of 80 answers one is no refusal, 100 a second.
    load = {"rps": 8000, "errors": 79 * 8000 * 15, "concurrency": 5000, "usage": cpu(0.97, 5)}
    found = judged(seen(*pool(20, 10, 0.2), refused(7000)), settings={"queue_bound": 10}, **load)
    assert (found.bottleneck, found.basis) == ("worker pool", "errors")
    # 1,000 of 5,000 a second are worked on, and each of them waits 0.2 s: 200 at a time.
    waits = mean_time("lab_http_request_seconds", 0.2, phase="queue", **REQUEST)
    load = {"rps": 5000, "errors": 4000 * 15, "concurrency": 5000}
    observed = seen(*pool(200, 190, 0.2), *waits, refused(4000))
    found = judged(observed, settings={"queue_bound": 200}, **load)
    assert standing(found, "worker pool").use == 200


def test_only_an_unknown_bottleneck_has_no_strength() -> None:
    for name, strength in (("unknown", STRONG), ("none", "")):
        with pytest.raises(ValueError, match="with the strength"):
            Verdict(name, strength, "excess", None)


def test_without_a_fitted_cost_the_trial_s_own_cpu_time_is_what_computing_takes() -> None:
    found = judged(seen(), **late(0.9, 2, route="/compute"))
    assert (found.bottleneck, found.strength) == ("none", STRONG)
    assert found.excess.r0_ms == pytest.approx(1000 * 0.5 / 982)


@pytest.mark.parametrize(
    ("raw_ms", "connections", "more", "name", "strength"),
    [
        (205, 900, {}, "connections of the load", STRONG),
        # virtual-threads: 1,100 connections got 3,856 req/s at 85 % CPU, and 2,000 got 6,223. 990
        # of them are busy where an answer takes 200 ms.
        (285.3, 1100, {"usage": cpu(0.85, 8.0)}, "unknown", ""),
        (285.3, 1100, {"usage": cpu(0.97, 8.0)}, "host CPU", WEAK),
        # A lock in the server: answers are late on idle CPUs, and no resource is full.
        (400, 1100, {}, "unknown", ""),
        # What is due waits although some are free: the generator waited for a CPU for 8 of its 9 s.
        (200, 1100, {"rps": 3000}, "host CPU", WEAK),
        (1100, 1100, {"series": pool(200, 900, 0.2)}, "worker pool", STRONG),
    ],
)
def test_the_connections_of_a_load_that_are_all_busy(
    raw_ms: float, connections: int, more: dict[str, Any], name: str, strength: str
) -> None:
    """4,950 req/s over connections that are all busy: by Little's law N / R are answered."""
    figures = {"rps": connections * 1000 / raw_ms, "usage": cpu(0.4, 8.0), **more}
    series = figures.pop("series", ())
    waited = {"raw": latency(raw_ms), "corrected": latency(raw_ms + 2000)}
    load = {"offered_rps": 4950, "concurrency": connections}
    found = judged(seen(*series), **figures, **waited, **load)
    assert (found.bottleneck, found.strength) == (name, strength)
    if name == "connections of the load":
        own = standing(found, name)
        assert (own.use, own.capacity) == (pytest.approx(900), 900)
        assert own.share == pytest.approx(200 / 205, abs=0.01)


@pytest.mark.parametrize(("rps", "rate", "name"), [(990, 4500, "downstream"), (899, 900, "none")])
def test_toxics_keep_connections_busy(rps: float, rate: int, name: str) -> None:
    slow = {"raw": latency(1000), "corrected": latency(1000), "toxics": LATE_BY_800}
    load = {"rps": rps, "offered_rps": rate, "concurrency": 1000}
    assert named(seen(), **load, **slow) == (name, STRONG)
