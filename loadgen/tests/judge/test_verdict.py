"""The verdict on windows made by hand: each resource full in turn, and none."""

import dataclasses

import pytest

from lab.judge.thread_times import RUN
from lab.judge.verdict import ranking, verdict_of
from lab.model import (
    STRONG,
    WEAK,
    Judgement,
    Observation,
    Series,
    Spike,
    Standing,
    ToxicState,
    ToxicStep,
    Usage,
    Verdict,
)
from lab.model.knobs import DIRECT
from support.fakes import measurement, plan, reading, record
from support.series import CLOSES, OPENS, counter, gauge, mean_time
from support.windows import SERVER, Case, case, judged, named, pool, seen, standing

CORES = "machine:machine_cpu_cores:max"
USED = "container_cpu_usage_seconds_total"
FULL = {
    "downstream connections": (
        gauge("lab_downstream_connections_cap", 20, server=SERVER),
        gauge("lab_downstream_connections_leased", 20, server=SERVER),
        gauge("lab_downstream_connections_pending", 180, server=SERVER),
    ),
    "garbage collection": (
        counter("jvm_gc_collection_seconds_sum", 0.35, server=SERVER, gc="G1 Young Generation"),
    ),
    "server CPU": (
        counter(USED, 0.39, service=SERVER),
        gauge("container_spec_cpu_quota", 40_000, service=SERVER),
        gauge("container_spec_cpu_period", 100_000, service=SERVER),
        counter("container_cpu_cfs_periods_total", 10, service=SERVER),
        counter("container_cpu_cfs_throttled_periods_total", 9.9, service=SERVER),
        counter("container_cpu_cfs_throttled_seconds_total", 0.5, service=SERVER),
    ),
    "accept queue": (counter("lab_kernel_listen_overflows_total", 9, server=SERVER),),
    "file descriptors": (gauge("process_open_fds", 19_900, job="jvm", server=SERVER),),
    "ports": (gauge("lab_downstream_connections_leased", 52_000, server=SERVER),),
    "event loop": (counter("lab_event_loop_busy_seconds_total", 0.99, server=SERVER, loop="0"),),
    "front": (
        counter("lab_front_busy_seconds_total", 0.99, server=SERVER, front="front-1"),
        counter(RUN, 0.94, server=SERVER, threads="front", front="front-1"),
        counter(RUN, 0.3, server=SERVER, threads="worker"),
    ),
}
SLOW = ToxicState(("downstream/b bandwidth rate=1",), 0.0, ("downstream/b bandwidth",))
LONG_CALLS = mean_time("lab_downstream_call_seconds", 0.6, server=SERVER, phase="call")
TIMEOUTS = counter("lab_downstream_calls_total", 900, server=SERVER, outcome="timeout")
FULL_PROXY = (
    counter("process_cpu_seconds_total", 1.0, job="toxiproxy"),
    gauge("go_sched_gomaxprocs_threads", 1, job="toxiproxy"),
)
FULL_DOWNSTREAM = counter("process_cpu_seconds_total", 1.0, job="downstream")
# As in a window of 1 s whose only scrape came after the load had ended.
IDLE_AT_SCRAPE = (
    gauge("lab_worker_pool_active", 3, server=SERVER),
    gauge("lab_worker_pool_queue_depth", 0, server=SERVER),
)
CARRIERS = tuple(
    gauge(f"lab_virtual_thread_scheduler_{name}", value, server=SERVER)
    for name, value in (("parallelism", 1), ("mounted", 1), ("queued", 19))
)
STARVED = ("the generator was starved: its CPU quota stopped it for 7 s",)
THROTTLED = Usage(1, 0.2, 0.3, 0.0, 3.0, 100, 7.0)
OPEN = {"offered_rps": 900}
FULL_HOST = Usage(1, 1, 0.99, 0, 5, 9)
POOL = pool(20, 180, 0.2)


def fronts(*cpu: float) -> list[Series]:
    return [
        counter(RUN, used, server=SERVER, threads="front", front=f"front-{number}")
        for number, used in enumerate(cpu, 1)
    ]


def host(busy: float | None, waited_s: float = 0.1, slices: int = 9) -> Usage:
    return Usage(1, 1, busy, 0, waited_s, slices)


@pytest.mark.parametrize(
    "line",
    [
        case("all it can have", rps=985).gives(
            "none", STRONG, "200 connections / 0.2 s = 1,000 req/s, measured 985"
        ),
        case("nothing full", rps=500).gives("unknown", "", "500 req/s are 50% of N / R0"),
        case("open: kept up", rps=895, **OPEN).gives("none", STRONG),
        # So says the validity gate.
        case("open: overloaded", rps=888, **OPEN).gives("unknown"),
        case("open: a pause explains it", rps=888, pause_s=1.0, **OPEN).gives("none", STRONG),
        case("open: a pause is no answer", rps=600, pause_s=5.0, **OPEN).gives("unknown"),
        case("open: 1.5 % errors", rps=900, errors=100, **OPEN).gives("none", STRONG),
        case("open: 2.2 % errors", rps=900, errors=300, **OPEN).gives("unknown"),
        case("pool, full CPUs", *POOL, rps=99, usage=FULL_HOST).gives(
            "worker pool", WEAK, "full as well: host CPU"
        ),
        case("pool", *POOL, rps=99).gives(
            "worker pool", STRONG, "20 of 20 busy, 180 waiting 1.80 s each; 20 / 0.2 s = 100 req/s"
        ),
        # Its requests tell that it was full.
        case("pool, empty at the scrape", *POOL, *IDLE_AT_SCRAPE, rps=99).gives(
            "worker pool", STRONG, "20 of 20 busy, 178 waiting 1.80 s each"
        ),
        case("pool, nothing waiting", *pool(200, 0, 0.2), rps=985).gives("none", STRONG),
        case("pool, long calls", *pool(20, 180, 0.6), *LONG_CALLS, rps=33, toxics=SLOW).gives(
            "Toxiproxy", STRONG
        ),
        case("pool, long held", *pool(20, 180, 0.6), rps=33).gives("worker pool", WEAK),
        case("pool, whole window unseen", *POOL, without="up", rps=99).gives("worker pool", WEAK),
        case("pool, invalid trial", *POOL, rps=99, reasons=("cold JVM: it compiled",)).gives(
            "worker pool", WEAK
        ),
        *(case(name, *full, rps=99).gives(name, STRONG) for name, full in FULL.items()),
        case(
            "carriers, fewer than CPUs",
            *CARRIERS,
            route="/compute",
            settings={"virtual_thread_parallelism": 1},
        ).gives("carrier threads", STRONG),
        case("deadline below the delay", TIMEOUTS, settings={"downstream_timeout_ms": 100}).gives(
            "downstream timeout", STRONG
        ),
        case("deadline above the delay", TIMEOUTS, *FULL["downstream connections"], rps=99).gives(
            "downstream connections", STRONG
        ),
        case(
            "toxic latency",
            rps=198,
            toxics=ToxicState(("downstream/l latency latency=800",), 800.0),
        ).gives("downstream", STRONG, "toxics add 0.8 s"),
        case("downstream, 1 of 4 loops busy", FULL_DOWNSTREAM, rps=500).gives("unknown"),
        case("starved generator", reasons=STARVED, usage=THROTTLED).gives("generator", STRONG),
        case(
            "starved generator, full host",
            reasons=STARVED,
            usage=dataclasses.replace(THROTTLED, host_busy=0.97, window_throttled_s=0.0),
        ).gives("host CPU", WEAK),
        # A JVM that cannot count them has none left.
        case("uncounted descriptors", without="process_open_fds", rps=15).gives(
            "file descriptors", STRONG
        ),
        case("quota, busy host", *FULL["server CPU"], rps=99, usage=host(0.91)).gives(
            "server CPU", STRONG
        ),
        case("event loop, full host", *FULL["event loop"], rps=99, usage=host(0.97)).gives(
            "event loop", WEAK, "full as well"
        ),
        # Those of a spike are part of the load.
        case("overflows, all it can have", *FULL["accept queue"], rps=985).gives("none", STRONG),
        case(
            "overflows beside a spike",
            *FULL["accept queue"],
            rps=985,
            spike=Spike(500, None, 5, 2, 1, 0.1, 1),
        ).gives("accept queue", STRONG),
        case("unreadable buckets", counter("lab_downstream_lag_seconds_bucket", 5.0)).gives(
            "unknown", "", "cannot be judged: lab_downstream_lag_seconds: a bucket with"
        ),
        case("no such route", route="/gone").gives("unknown", "", "/gone is not a route"),
        # Full CPUs are strong evidence, nearly full ones and waits for a CPU are weak.
        case("host 96 %", rps=600, usage=host(0.96, 0.1, 9000)).gives("host CPU", STRONG),
        case("host 92 %", rps=600, usage=host(0.92, 0.1, 9000)).gives("host CPU", WEAK),
        # 30 % of two cores for 15 s.
        case("host 85 %, waits", rps=600, usage=host(0.85, 9.0, 9000)).gives("host CPU", WEAK),
        case("host 85 %", rps=600, usage=host(0.85, 0.1, 9000)).gives("unknown"),
    ],
)
def test_what_is_named(line: Case) -> None:
    found = line.check()
    assert found.strength != STRONG or found.ranked[0].evidence


@pytest.mark.parametrize(
    ("rps", "busy", "strength"),
    [(940, 0.99, WEAK), (940, 0.93, WEAK), (985, 0.99, STRONG), (940, 0.5, STRONG)],
)
def test_at_the_knee_of_a_full_machine_none_is_weak(rps: float, busy: float, strength: str) -> None:
    found = judged(seen(), rps=rps, usage=host(busy, 5))
    assert (found.bottleneck, found.strength) == ("none", strength)
    assert ("with host CPU full" in found.sentence) == (strength == WEAK)


def test_a_full_pool_has_the_queries_of_its_figures() -> None:
    found = judged(seen(*POOL), rps=99)
    queries = {each.source for each in found.ranked[0].evidence}
    assert 'sum(avg_over_time(lab_worker_pool_active{server="a"}[10s]))' in queries


@pytest.mark.parametrize(
    ("gc_cpus", "usage", "expected"),
    [
        # 30 % of two CPUs: they explain that these are full.
        (0.6, host(0.99), ("garbage collection", STRONG)),
        # The pauses are long because the CPUs are full.
        (0.1, host(0.99), ("host CPU", STRONG)),
        # It is unknown which of the two it is.
        (None, host(0.99), ("garbage collection", WEAK)),
        (0.1, None, ("garbage collection", STRONG)),
    ],
)
def test_on_full_cpus_collections_count_by_their_cpu_time(
    gc_cpus: float | None, usage: Usage | None, expected: tuple[str, str]
) -> None:
    pauses = FULL["garbage collection"]
    compiler = counter(RUN, 0.5, server=SERVER, threads="compiler")
    collector = counter(RUN, gc_cpus or 0, server=SERVER, threads="collector")
    cpu = () if gc_cpus is None else (compiler, collector)
    found = judged(seen(*pauses, *cpu), usage=usage)
    assert (found.bottleneck, found.strength) == expected
    assert ("full as well: host CPU" in found.sentence) == (gc_cpus is None)
    assert usage or "35% of the time" in found.sentence


def test_a_quota_stretches_pauses_too() -> None:
    # 0.35 of the time in pauses, but 0.02 of 0.4 CPUs.
    cpu = counter(RUN, 0.02, server=SERVER, threads="collector")
    found = judged(seen(*FULL["garbage collection"], *FULL["server CPU"], cpu), rps=99)
    assert (found.bottleneck, found.strength) == ("server CPU", STRONG)
    gc = standing(found, "garbage collection")
    assert gc.utilisation == pytest.approx(0.05)
    assert "5% of 0.4 CPUs (pauses: 35% of the time)" in gc.sentence


GC = ("garbage collection", WEAK)
HEAP = {"job": "jvm", "server": SERVER, "area": "heap"}


@pytest.mark.parametrize(
    ("starts", "heap", "expected", "says"),
    [
        # As measured: no scrape met a full heap, no collection, and the JVMs' starts filled the
        # CPUs.
        ((1, 2, 3), None, GC, "0% of it seen in use, and nothing tells why: see its log"),
        ((1, 2, 3), 930, GC, "at most 93% of it seen in use, which tells why"),
        # Several JVMs behind one name take turns, and none of them ends.
        ((2, 1, 2), None, ("host CPU", WEAK), ""),
        # One end may be anything.
        ((1, 1, 2), None, ("host CPU", WEAK), ""),
    ],
)
def test_a_jvm_that_ends_again_and_again_has_too_little_memory_for_its_load(
    starts: tuple[float, ...], heap: float | None, expected: tuple[str, str], says: str
) -> None:
    labels = {"__name__": "process_start_time_seconds", "job": "jvm", "server": SERVER}
    series = [Series(labels, (OPENS, OPENS + 4, OPENS + 8), starts)]
    if heap is not None:
        series.append(gauge("jvm_memory_used_bytes", heap, **HEAP))
        series.append(gauge("jvm_memory_max_bytes", 1000, **HEAP))
    gone = ("the JVM restarted during the trial",)
    found = judged(seen(*series), rps=0, usage=FULL_HOST, reasons=gone)
    assert (found.bottleneck, found.strength) == expected
    assert found.sentence.endswith(says)


def heap_of(*, young: float, old: float, old_after: float) -> list[Series]:
    """A heap of 1,000 bytes: survivors, the old pool now and after its last own collection."""
    after, used = "jvm_memory_pool_collection_used_bytes", "jvm_memory_pool_used_bytes"
    mine = {"job": "jvm", "server": SERVER}
    return [
        gauge("jvm_memory_max_bytes", 1000, area="heap", **mine),
        gauge(after, young, pool="G1 Survivor Space", **mine),
        gauge(after, old_after, pool="G1 Old Gen", **mine),
        gauge(used, 70, pool="G1 Eden Space", **mine),
        gauge(used, old, pool="G1 Old Gen", **mine),
    ]


def test_a_heap_is_full_of_what_collections_leave_now_and_not_of_what_an_old_one_left() -> None:
    busy = counter("jvm_gc_collection_seconds_sum", 0.2, server=SERVER, gc="G1 Young Generation")
    # The old pool was never collected, and is full.
    tight = judged(seen(busy, *heap_of(young=20, old=800, old_after=0)), rps=99)
    assert (tight.bottleneck, tight.strength) == ("garbage collection", STRONG)
    assert "20% of the time, 82% of a heap of 0 MB in use afterwards" in tight.sentence
    (left,) = (each for each in tight.ranked[0].evidence if each.what == "heap after collection")
    assert left.value == 820
    assert left.source == (
        'sum(avg_over_time(jvm_memory_pool_collection_used_bytes{server="a", '
        'pool!~".*(Old|Tenured).*"}[10s]) or avg_over_time(jvm_memory_pool_used_bytes'
        '{server="a", pool=~".*(Old|Tenured).*"}[10s]))'
    )
    # It was full when it was last collected, and is not.
    roomy = judged(seen(busy, *heap_of(young=20, old=100, old_after=900)), rps=99)
    assert roomy.strength == WEAK
    assert "12% of a heap" in roomy.sentence


def test_parts_of_the_path_are_full() -> None:
    names = {"process_open_fds": 19_900, "process_max_fds": 20_000}
    found = judged(seen(*(gauge(name, names[name], job="toxiproxy") for name in names)), rps=15)
    assert (found.bottleneck, found.strength) == ("file descriptors", STRONG)
    assert found.sentence == "file descriptors: Toxiproxy has 19900 of 20000 open"
    # A downstream is full when its loops are.
    loops = gauge("lab_downstream_loops", 1, job="downstream")
    assert named(seen(FULL_DOWNSTREAM, loops), rps=500)[0] == "downstream"
    # Toxiproxy is no suspect where calls go past it.
    assert named(seen(*FULL_PROXY), rps=500)[0] == "Toxiproxy"
    past = judged(seen(*FULL_PROXY), rps=500, settings={"downstream_url": DIRECT})
    assert (past.bottleneck, standing(past, "Toxiproxy")) == ("unknown", None)


def verdict_beside(usage: Usage, rps: float, threads: int | None, others: float | None) -> Verdict:
    of = record(plan("closed"), usage=usage)
    judgement = Judgement((), (), others_cpu=others)
    return verdict_of(measurement(of, reading(rps, threads=threads)), judgement, seen())


@pytest.mark.parametrize(("threads", "used"), [(1, 0.9), (None, 0.45)])
def test_a_generator_of_one_thread_has_one_core(threads: int | None, used: float) -> None:
    found = verdict_beside(Usage(14, 13.5, 0.5, 0.0), 450, threads, None)
    assert standing(found, "generator").utilisation == pytest.approx(used)


@pytest.mark.parametrize(("others", "strength"), [(None, STRONG), (0.2, WEAK)])
def test_cpus_that_others_fill_are_weak_evidence(others: float | None, strength: str) -> None:
    found = verdict_beside(host(0.99), 99, None, others)
    assert (found.bottleneck, found.strength) == ("host CPU", strength)


@pytest.mark.parametrize(
    ("observation", "others"),
    [
        (seen(), True),
        # cAdvisor's own gauge does not count: it may tell of another moment.
        (seen(gauge("machine_cpu_cores", 0.5)), True),
        (seen(without=CORES), False),
    ],
)
def test_the_use_by_others_needs_the_cores(observation: Observation, others: bool) -> None:
    found = judged(observation, rps=99, usage=host(0.99))
    # 99 % less 0.5 of 2 CPUs.
    told = ", 74% by work outside the lab" in standing(found, "host CPU").sentence
    assert told == others
    assert ("whether work outside the lab took the CPUs" in found.missing) != others
    assert (found.bottleneck, found.strength) == ("host CPU", STRONG if others else WEAK)


def test_a_quota_of_all_the_machine_has_is_none() -> None:
    # Where that is not known it is taken to have what the server says, which is more.
    found = judged(seen(*FULL["server CPU"], gauge(CORES, 0.4)))
    assert "without a quota" in standing(found, "server CPU").sentence


def test_what_was_not_seen_or_changed_is_missing() -> None:
    found = judged(seen(*POOL, without="up"), rps=99)
    assert "Prometheus did not see the whole window of jvm" in found.missing
    assert judged(None).bottleneck == "unknown"
    # Toxics came and went.
    found = judged(seen(*POOL), rps=99, script=(ToxicStep(2, {"TYPE": "down"}),))
    assert (found.bottleneck, found.strength) == ("worker pool", WEAK)
    assert any("script" in line for line in found.missing)


def test_what_came_after_the_window_is_not_what_was_in_it() -> None:
    """The exporter did not answer in the window. After it the pool was at rest."""

    def unanswered(series: Series) -> Series:
        kept = [point for point in series.points if not OPENS - 1 <= point[0] <= CLOSES]
        times, values = zip(*kept, strict=True)
        return Series(series.labels, times, values)

    size, active, *rest = POOL
    at_rest = tuple(20.0 if at < OPENS else 0.0 for at in active.times)
    up = gauge("up", 1, job="jvm")
    changed = (size, dataclasses.replace(active, values=at_rest), up)
    observed = seen(*map(unanswered, changed), *rest)
    assert not observed.covers("jvm")
    found = judged(observed, rps=40)
    assert standing(found, "worker pool").utilisation == 1.0
    assert "Prometheus did not see the whole window of jvm" in found.missing


@pytest.mark.parametrize(
    ("machine", "cpu_set", "used", "bottleneck", "strength"),
    [
        (8, "4-7", 3.9, "server CPU", STRONG),
        (8, "4-7", 3.7, "server CPU", WEAK),
        (8, "4-7", 3.0, "unknown", ""),
        (64, "32-63", 31.0, "server CPU", STRONG),
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
    says = f"{used:.2f} of the {machine // 2} CPUs of its set"
    assert says in found.sentence or bottleneck == "unknown"


ELSEWHERE = Usage(1, 1, None, None, 0.1, 9)


@pytest.mark.parametrize(("used", "bottleneck"), [(3.9, "server CPU"), (3.0, "unknown")])
def test_a_server_on_its_own_machine_has_all_its_cpus(used: float, bottleneck: str) -> None:
    # The cores are the largest machine's; every window here has a use of 0.5 CPUs.
    observed = seen(gauge(CORES, 4), counter(USED, used - 0.5, service=SERVER, machine="tested"))
    found = judged(observed, rps=600, usage=ELSEWHERE, settings={"cpuset": "0-3"})
    assert found.bottleneck == bottleneck
    says = f"{used:.2f} of the 4 CPUs of its machine"
    assert says in found.sentence or bottleneck == "unknown"


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
    parts = "the CPUs of machine called, which has Toxiproxy and the downstream: "
    assert standing(found, "host CPU").sentence == f"{parts}{called / 2:.0%} busy"


@pytest.mark.parametrize(("used", "strength"), [(0.4, STRONG), (1.7, WEAK)])
def test_of_several_machines_the_servers_own_may_be_crowded(used: float, strength: str) -> None:
    """Then who holds a lock waits for a CPU."""
    site = {"server": SERVER, "kind": "lock", "threads": "platform", "site": "lab.A.run:1"}
    observed = seen(
        *machines(load=0.3, tested=used, called=0.3),
        counter(USED, used, service=SERVER, machine="tested"),
        counter("lab_wait_seconds_total", 79, **site),
        without=CORES,
    )
    load = {"rps": 100, "concurrency": 100, "settings": {"lock_watch_ms": 10}}
    found = judged(observed, usage=ELSEWHERE, **load)
    assert (found.bottleneck, found.strength) == ("lock", strength)
    assert ("on CPUs that were 85% busy" in found.sentence) == (strength == WEAK)


def test_of_several_machines_each_must_be_seen() -> None:
    unseen = gauge("machine:machine_cpu_cores:each", 2, machine="load")
    found = judged(seen(*machines(called=1.95), unseen), rps=600, usage=ELSEWHERE)
    assert found.bottleneck == "unknown"
    assert "whether it was the host CPU: nothing was read of it" in found.missing


@pytest.mark.parametrize(("quota", "limit"), [(8, "4 CPUs of its set"), (4, "4 CPUs of its set"),
                                              (2, "2 CPUs of its quota")])  # fmt: skip
def test_a_quota_below_the_cpus_of_the_set_binds(quota: float, limit: str) -> None:
    observed = seen(
        gauge(CORES, 8),
        gauge("container_spec_cpu_quota", quota * 100_000, service=SERVER),
        gauge("container_spec_cpu_period", 100_000, service=SERVER),
        counter(USED, 1.9, service=SERVER),
    )
    found = judged(observed, rps=600, settings={"cpuset": "4-7"})
    sentence = standing(found, "server CPU").sentence
    assert sentence.startswith(f"the server's CPU: 1.90 of the {limit}")
    assert quota < 4 or sentence.endswith(limit)


@pytest.mark.parametrize(("rps", "is_named"), [(9.7, True), (5.0, False)])
def test_kept_carriers_that_explain_the_rate_are_named(rps: float, is_named: bool) -> None:
    settings = {"pool_size": None, "virtual_thread_parallelism": 2}
    found = judged(seen(), rps=rps, route="/synchronized", jdk="21.0.8", settings=settings)
    carriers = standing(found, "carrier threads")
    assert (found.bottleneck == "carrier threads") == (carriers.score >= 0.9) == is_named
    assert "of 2 kept by requests that wait in synchronized" in carriers.sentence


@pytest.mark.parametrize(
    ("how", "loops", "score", "says"),
    [
        ("spin", 1, 0.95, "it waits by computing on the loop"),
        # As many as CPUs: these are short. A loop that sleeps uses none.
        ("spin", 2, 0.55, "it waits by computing on the loop"),
        (True, 2, 0.95, "it waits by sleeping on the loop"),
    ],
)
def test_a_loop_that_computes_waits(how: bool | str, loops: int, score: float, says: str) -> None:
    name = "lab_event_loop_busy_seconds_total"
    busy = [counter(name, 0.99, server=SERVER, loop=str(loop)) for loop in range(loops)]
    found = judged(seen(*busy), rps=99 * loops, settings={"block_the_loop": how})
    assert standing(found, "event loop").score == score
    assert says in standing(found, "event loop").sentence


@pytest.mark.parametrize(("idle", "score"), [(0, 0.95), (1, 0.55)])
def test_a_loop_that_has_room_leaves_the_evidence_weak(idle: int, score: float) -> None:
    name, shares = "lab_event_loop_busy_seconds_total", (*[0.98] * 9, *[0.0] * idle)
    busy = [counter(name, used, server=SERVER, loop=str(n)) for n, used in enumerate(shares)]
    found = judged(seen(*busy), rps=99, settings={"block_the_loop": True})
    assert standing(found, "event loop").score == score
    assert (found.strength == STRONG) == (idle == 0)


@pytest.mark.parametrize(
    ("cpu", "used", "score"),
    [
        ((0.94,), 0.94, 0.95),
        ((0.7,), 0.7, 0.35),  # It waits for a CPU: these are short, and not the front.
        ((0.94, 0.3), 0.94, 0.55),  # As many as CPUs.
        ((), 0.99, 0.55),  # Busy, as it may wait for a CPU: nothing counts its time on one.
    ],
)
def test_the_busiest_front_is_the_limit_where_it_is_on_a_cpu_all_the_time(
    cpu: tuple[float, ...], used: float, score: float
) -> None:
    found = judged(seen(*FULL["front"][:1], *fronts(*cpu)), rps=99, settings={"fronts": 1})
    front = standing(found, "front")
    assert (front.utilisation, front.score) == pytest.approx((used, score))
    assert (found.strength == STRONG) == (score == 0.95)


@pytest.mark.parametrize(
    ("cpus", "other", "score"), [(2, 0.92, 0.55), (4, 0.92, 0.95), (4, 0.3, 0.55)]
)
def test_two_full_fronts_are_the_limit_and_one_perhaps(
    cpus: int, other: float, score: float
) -> None:
    found = judged(seen(*fronts(0.94, other)), rps=99, cpus=cpus)
    front = standing(found, "front")
    assert (front.utilisation, front.score, front.saturation) == (pytest.approx(0.94), score, None)
    assert [evidence.value for evidence in front.evidence[:2]] == pytest.approx([0.94, other])


def test_a_front_of_which_nothing_was_read_may_have_been_the_limit() -> None:
    found = judged(seen(), rps=985, settings={"fronts": 1})
    assert (found.bottleneck, found.strength) == ("none", WEAK)
    assert "whether it was the front: nothing was read of it" in found.missing


def refused(rps: float) -> Series:
    request = {"server": SERVER, "route": "/downstream", "outcome": "rejected"}
    return counter("lab_http_requests_total", rps, **request)


def test_refusals_are_no_throughput_and_neither_wait_nor_hold_a_worker() -> None:
    # The counts of 15 s: of 80 answers one is no refusal, 100 a second.
    load = {"rps": 8000, "errors": 79 * 8000 * 15, "concurrency": 5000, "usage": host(0.97, 5)}
    found = judged(seen(*pool(20, 10, 0.2), refused(7000)), settings={"queue_bound": 10}, **load)
    assert found.bottleneck == "worker pool"
    assert "refused" in found.sentence
    # 1,000 of 5,000 a second are worked on, and each of them waits 0.2 s: 200 at a time.
    request = {"server": SERVER, "route": "/downstream"}
    waits = mean_time("lab_http_request_seconds", 0.2, phase="queue", **request)
    load = {"rps": 5000, "errors": 4000 * 15, "concurrency": 5000}
    observed = seen(*pool(200, 190, 0.2), *waits, refused(4000))
    found = judged(observed, settings={"queue_bound": 200}, **load)
    assert "200 of 200 busy, 200 waiting 0.20 s each" in found.sentence


@pytest.mark.parametrize("failure", [ValueError, ZeroDivisionError])
def test_an_error_is_no_bad_series(
    failure: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> Standing | None:
        raise failure("a mistake")

    monkeypatch.setattr(ranking, "_STANDINGS", (broken,))
    with pytest.raises(failure, match="a mistake"):
        judged(seen())


def test_only_an_unknown_bottleneck_has_no_strength() -> None:
    for name, strength in (("unknown", STRONG), ("none", "")):
        with pytest.raises(ValueError, match="with the strength"):
            Verdict(name, strength, "a mistake")
