"""The verdict on windows made by hand: each resource full in turn, and none."""

import copy

import pytest

from lab.judge.resources import verdict_of
from lab.model import (
    STRONG,
    WEAK,
    Judgement,
    Remark,
    Series,
    Spike,
    ToxicState,
    ToxicStep,
    Usage,
    Verdict,
)
from lab.model.knobs import DIRECT
from support.fakes import flat, measurement, plan, reading, record
from support.series import CLOSES, OPENS, counter, gauge, mean_time
from support.windows import SERVER, Case, case, judged, pool, seen, standing

CORES = "machine:machine_cpu_cores:max"
USED = "container_cpu_usage_seconds_total"
CAP = (
    gauge("lab_downstream_connections_cap", 20, server=SERVER),
    gauge("lab_downstream_connections_leased", 20, server=SERVER),
    gauge("lab_downstream_connections_pending", 180, server=SERVER),
)
QUOTA = (
    counter(USED, 0.39, service=SERVER),
    gauge("container_spec_cpu_quota", 40_000, service=SERVER),
    gauge("container_spec_cpu_period", 100_000, service=SERVER),
    counter("container_cpu_cfs_periods_total", 10, service=SERVER),
    counter("container_cpu_cfs_throttled_periods_total", 9.9, service=SERVER),
)
OVERFLOWS = counter("lab_kernel_listen_overflows_total", 9, server=SERVER)
BUSY_LOOP = counter("lab_event_loop_busy_seconds_total", 0.99, server=SERVER, loop="0")
BUSY_FRONT = counter("lab_front_busy_seconds_total", 0.99, server=SERVER, front="front-1")
# Without run queues a loop and a front may have waited for a CPU themselves.
FULL = (
    ("downstream connections", STRONG, CAP),
    ("server CPU", WEAK, QUOTA),
    ("file descriptors", WEAK, (gauge("process_open_fds", 19_900, job="jvm", server=SERVER),)),
    ("event loop", WEAK, (BUSY_LOOP,)),
    ("front", WEAK, (BUSY_FRONT,)),
)
SLOW = ToxicState(("downstream/b bandwidth rate=1",), 0.0, ("downstream/b bandwidth",))
LONG_CALLS = mean_time("lab_downstream_call_seconds", 0.6, server=SERVER, phase="call")
TIMEOUTS = counter("lab_downstream_calls_total", 900, server=SERVER, outcome="timeout")
# As in a window of 1 s whose only scrape came after the load had ended.
IDLE_AT_SCRAPE = (
    gauge("lab_worker_pool_active", 3, server=SERVER),
    gauge("lab_worker_pool_queue_depth", 0, server=SERVER),
)
CARRIERS = tuple(
    gauge(f"lab_virtual_thread_scheduler_{name}", value, server=SERVER)
    for name, value in (("parallelism", 1), ("mounted", 1), ("queued", 19))
)
STARVED = (Remark("generator-throttled"),)
THROTTLED = Usage(1, 0.2, 0.3, 0.0, 3.0, 100, 7.0)
OPEN = {"offered_rps": 900}
FULL_HOST = Usage(1, 1, 0.99, 0, 5, 9)
POOL = pool(20, 180, 0.2)


def host(busy: float | None, waited_s: float = 0.1, slices: int = 9) -> Usage:
    return Usage(1, 1, busy, 0, waited_s, slices)


@pytest.mark.parametrize(
    "line",
    [
        case("all it can have", rps=985).gives("none", STRONG),
        case("nothing full", rps=500).gives("unknown", ""),
        case("open: kept up", rps=895, **OPEN).gives("none", STRONG),
        # So says the validity gate.
        case("open: overloaded", rps=888, **OPEN).gives("unknown"),
        case("open: a pause explains it", rps=888, pause_s=1.0, **OPEN).gives("none", STRONG),
        case("open: a pause is no answer", rps=600, pause_s=5.0, **OPEN).gives("unknown"),
        case("open: 0.7 % errors", rps=900, errors=100, **OPEN).gives("none", STRONG),
        case("open: 2.2 % errors", rps=900, errors=300, **OPEN).gives("unknown"),
        # What waits for its threads is measured, however full the CPUs are.
        case("pool, full CPUs", *POOL, rps=99, usage=FULL_HOST).gives("worker pool", STRONG),
        case("pool", *POOL, rps=99).gives("worker pool", STRONG),
        # Its requests tell that it was full.
        case("pool, empty at the scrape", *POOL, *IDLE_AT_SCRAPE, rps=99).gives(
            "worker pool", STRONG
        ),
        case("pool, nothing waiting", *pool(200, 0, 0.2), rps=985).gives("none", STRONG),
        case("pool, long calls", *pool(20, 180, 0.6), *LONG_CALLS, rps=33, toxics=SLOW).gives(
            "Toxiproxy", WEAK
        ),
        # Two thirds of the hold are not explained, and so are two thirds of the wait.
        case("pool, long held", *pool(20, 180, 0.6), rps=33).gives("unknown"),
        case("pool, whole window unseen", *POOL, without="up", rps=99).gives("worker pool", WEAK),
        case("pool, invalid trial", *POOL, rps=99, reasons=(Remark("compiling"),)).gives(
            "worker pool", WEAK
        ),
        *(case(name, *full, rps=99).gives(name, sure) for name, sure, full in FULL),
        case(
            "carriers, fewer than CPUs",
            *CARRIERS,
            route="/compute",
            settings={"virtual_thread_parallelism": 1},
        ).gives("carrier threads", WEAK),
        case(
            "deadline below the delay",
            TIMEOUTS,
            errors=7000,
            settings={"downstream_timeout_ms": 100},
        ).gives("downstream timeout", STRONG),
        # It is a symptom of what takes so long.
        case("deadline above the delay", TIMEOUTS, *CAP, rps=99, errors=700).gives(
            "downstream connections", WEAK
        ),
        case(
            "toxic latency",
            rps=198,
            toxics=ToxicState(("downstream/l latency latency=800",), 800.0),
        ).gives("downstream", STRONG),
        # Its own lateness tells.
        case("starved generator", late=flat(300), reasons=STARVED, usage=THROTTLED).gives(
            "generator", STRONG
        ),
        # A JVM that cannot count them has none left.
        case("uncounted descriptors", without="process_open_fds", rps=15).gives(
            "file descriptors", WEAK
        ),
        case("quota, busy host", *QUOTA, rps=99, usage=host(0.91)).gives("server CPU", WEAK),
        # Those of a spike are part of the load.
        case("overflows, all it can have", OVERFLOWS, rps=985).gives("none", STRONG),
        case(
            "overflows beside a spike",
            OVERFLOWS,
            rps=985,
            spike=Spike(500, None, 5, 2, 1, 0.1, 1),
        ).gives("accept queue", WEAK),
        case("unreadable buckets", counter("lab_downstream_lag_seconds_bucket", 5.0)).gives(
            "unknown"
        ),
        case("no such route", route="/gone").gives("unknown", ""),
        # Without run queues full CPUs are an estimate, and nothing is made up of others.
        case("host 96 %", rps=600, usage=host(0.96, 0.1, 9000)).gives("host CPU", WEAK),
        case("host 85 %", rps=600, usage=host(0.85, 0.1, 9000)).gives("unknown"),
    ],
)
def test_what_is_named(line: Case) -> None:
    line.check()


GC = ("garbage collection", WEAK)
HEAP = {"job": "jvm", "server": SERVER, "area": "heap"}


@pytest.mark.parametrize(
    ("starts", "heap", "expected"),
    [
        # As measured: no scrape met a full heap, no collection, and the JVMs' starts filled the
        # CPUs.
        ((1, 2, 3), None, GC),
        ((1, 2, 3), 930, GC),
        # Several JVMs behind one name take turns, and none of them ends.
        ((2, 1, 2), None, ("unknown", "")),
        # One end may be anything.
        ((1, 1, 2), None, ("unknown", "")),
    ],
)
def test_a_jvm_that_ends_again_and_again_has_too_little_memory_for_its_load(
    starts: tuple[float, ...], heap: float | None, expected: tuple[str, str]
) -> None:
    labels = {"__name__": "process_start_time_seconds", "job": "jvm", "server": SERVER}
    series = [Series(labels, (OPENS, OPENS + 4, OPENS + 8), starts)]
    if heap is not None:
        series.append(gauge("jvm_memory_used_bytes", heap, **HEAP))
        series.append(gauge("jvm_memory_max_bytes", 1000, **HEAP))
    gone = (Remark("jvm-restarted"),)
    found = judged(seen(*series), rps=0, usage=FULL_HOST, reasons=gone)
    assert (found.bottleneck, found.strength) == expected


def test_parts_of_the_path_are_full() -> None:
    names = {"process_open_fds": 19_900, "process_max_fds": 20_000}
    found = judged(seen(*(gauge(name, names[name], job="toxiproxy") for name in names)), rps=15)
    assert (found.bottleneck, found.strength) == ("file descriptors", WEAK)
    full = found.named
    assert full is not None
    assert (full.detail, full.use, full.capacity) == ("toxiproxy", 19_900, 20_000)
    # Toxiproxy is no suspect where calls go past it.
    past = judged(seen(), rps=500, settings={"downstream_url": DIRECT})
    assert (past.bottleneck, standing(past, "Toxiproxy")) == ("unknown", None)


@pytest.mark.parametrize(("others", "share"), [(None, 0.0), (0.2, 0.25)])
def test_what_others_took_of_the_cpus_is_theirs(others: float | None, share: float) -> None:
    whole = measurement(record(plan("closed"), usage=host(0.99)), reading(99))
    found = verdict_of(whole, Judgement((), (), others_cpu=others), seen())
    assert (found.bottleneck, found.strength) == ("host CPU", WEAK)
    assert found.shares.get("work outside the lab", 0.0) == pytest.approx(share, abs=0.02)


def test_a_quota_of_all_the_machine_has_is_none() -> None:
    # Where that is not known it is taken to have what the server says, which is more.
    found = judged(seen(*QUOTA, gauge(CORES, 0.4)))
    assert standing(found, "server CPU").share == 0


def test_what_was_not_seen_or_changed_is_missing() -> None:
    found = judged(seen(*POOL, without="up"), rps=99)
    assert ("job", "jvm") in [(gap.code, gap.detail) for gap in found.missing]
    assert judged(None).bottleneck == "unknown"
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
    up = gauge("up", 1, job="jvm")
    changed = (size, copy.replace(active, values=at_rest), up)
    observed = seen(*map(unanswered, changed), *rest)
    assert not observed.covers("jvm")
    found = judged(observed, rps=40)
    pool_seen = standing(found, "worker pool")
    assert (pool_seen.use, pool_seen.capacity) == (20, 20)
    assert ("job", "jvm") in [(gap.code, gap.detail) for gap in found.missing]


@pytest.mark.parametrize(
    ("machine", "cpu_set", "used", "bottleneck", "strength"),
    [
        (8, "4-7", 3.9, "server CPU", WEAK),
        (8, "4-7", 3.7, "server CPU", WEAK),
        (8, "4-7", 3.0, "unknown", ""),
        # Of many CPUs one is free more often.
        (64, "32-63", 31.0, "unknown", ""),
        # No set: what is full then is the machine.
        (4, "0-3", 3.9, "unknown", ""),
    ],
)
def test_a_server_that_is_kept_to_a_set_is_limited_by_its_cpus(
    machine: int, cpu_set: str, used: float, bottleneck: str, strength: str
) -> None:
    observed = seen(gauge(CORES, machine), counter(USED, used, service=SERVER))
    found = judged(observed, rps=600, usage=host(0.6), settings={"cpuset": cpu_set})
    assert (found.bottleneck, found.strength) == (bottleneck, strength)
    cpus = standing(found, "server CPU")
    assert (cpus.use, cpus.capacity) == (pytest.approx(used), max(4, machine // 2))


ELSEWHERE = Usage(1, 1, None, None, 0.1, 9)


@pytest.mark.parametrize(("used", "bottleneck"), [(3.9, "server CPU"), (3.0, "unknown")])
def test_a_server_on_its_own_machine_has_all_its_cpus(used: float, bottleneck: str) -> None:
    # The cores are the largest machine's; every window here has a use of 0.5 CPUs.
    observed = seen(gauge(CORES, 4), counter(USED, used - 0.5, service=SERVER, machine="tested"))
    found = judged(observed, rps=600, usage=ELSEWHERE, settings={"cpuset": "0-3"})
    assert found.bottleneck == bottleneck
    cpus = standing(found, "server CPU")
    assert (cpus.use, cpus.capacity) == (pytest.approx(used), 4)


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
    on = {"machine": "called"}
    return [*each, *(counter(USED, 0.1, service=of, **on) for of in ("toxiproxy", "downstream"))]


@pytest.mark.parametrize(("called", "strength"), [(1.95, WEAK), (1.7, "")])
def test_a_full_machine_of_several_is_named(called: float, strength: str) -> None:
    found = judged(seen(*machines(load=0.3, called=called)), rps=600, usage=ELSEWHERE)
    assert (found.bottleneck, found.strength) == ("host CPU" if strength else "unknown", strength)
    cpus = standing(found, "host CPU")
    assert (cpus.detail, cpus.use) == ("called", pytest.approx(called))


def test_of_several_machines_each_must_be_seen() -> None:
    unseen = gauge("machine:machine_cpu_cores:each", 2, machine="load")
    found = judged(seen(*machines(called=1.95), unseen), rps=600, usage=ELSEWHERE)
    assert found.bottleneck == "unknown"
    assert standing(found, "host CPU") is None


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


@pytest.mark.parametrize(("rps", "is_named"), [(9.7, True), (5.0, False)])
def test_kept_carriers_that_explain_the_rate_are_named(rps: float, is_named: bool) -> None:
    settings = {"pool_size": None, "virtual_thread_parallelism": 2}
    found = judged(seen(), rps=rps, route="/synchronized", jdk="21.0.8", settings=settings)
    carriers = standing(found, "carrier threads")
    assert (found.bottleneck == "carrier threads") == is_named
    assert (carriers.use, carriers.capacity) == (pytest.approx(0.2 * rps), 2)


def refused(rps: float) -> Series:
    request = {"server": SERVER, "route": "/downstream", "outcome": "rejected"}
    return counter("lab_http_requests_total", rps, **request)


def test_refusals_are_no_throughput_and_neither_wait_nor_hold_a_worker() -> None:
    # The counts of 15 s: of 80 answers one is no refusal, 100 a second.
    load = {"rps": 8000, "errors": 79 * 8000 * 15, "concurrency": 5000, "usage": host(0.97, 5)}
    found = judged(seen(*pool(20, 10, 0.2), refused(7000)), settings={"queue_bound": 10}, **load)
    assert found.bottleneck == "worker pool"
    assert found.basis == "errors"
    # 1,000 of 5,000 a second are worked on, and each of them waits 0.2 s: 200 at a time.
    request = {"server": SERVER, "route": "/downstream"}
    waits = mean_time("lab_http_request_seconds", 0.2, phase="queue", **request)
    load = {"rps": 5000, "errors": 4000 * 15, "concurrency": 5000}
    observed = seen(*pool(200, 190, 0.2), *waits, refused(4000))
    found = judged(observed, settings={"queue_bound": 200}, **load)
    assert standing(found, "worker pool").use == 200


def test_only_an_unknown_bottleneck_has_no_strength() -> None:
    for name, strength in (("unknown", STRONG), ("none", "")):
        with pytest.raises(ValueError, match="with the strength"):
            Verdict(name, strength, "excess", None)
