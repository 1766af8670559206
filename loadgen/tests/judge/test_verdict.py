"""The verdict on windows made by hand: each resource full in turn, and none."""

import dataclasses

import pytest

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
from support.windows import SERVER, judged, pool, seen


def test_a_load_that_got_all_it_can_have_has_no_bottleneck() -> None:
    found = judged(seen(), rps=985)
    assert found.bottleneck == "none"
    assert "200 connections / 0.2 s = 1,000 req/s, measured 985" in found.sentence


@pytest.mark.parametrize(
    ("rps", "errors", "pause_s", "named"),
    [
        (895, 0, 0.0, "none"),
        (888, 0, 0.0, "unknown"),  # Overloaded, says the validity gate.
        (888, 0, 1.0, "none"),  # A pause of the generator explains it,
        (600, 0, 5.0, "unknown"),  # but is no answer, however long.
        (900, 100, 0.0, "none"),  # 1.5 % errors.
        (900, 300, 0.0, "unknown"),
    ],
)
def test_an_open_load_has_all_there_is_where_it_kept_up(
    rps: float, errors: int, pause_s: float, named: str
) -> None:
    found = judged(seen(), rps=rps, errors=errors, pause_s=pause_s, offered_rps=900)
    assert found.bottleneck == named


def test_a_full_machine_does_not_limit_a_load_that_got_all_it_can_have() -> None:
    assert judged(seen(), rps=985, usage=Usage(1, 1, 0.99, 0, 5, 9)).bottleneck == "none"


@pytest.mark.parametrize(
    ("rps", "busy", "strength"),
    [(940, 0.99, WEAK), (940, 0.93, WEAK), (985, 0.99, STRONG), (940, 0.5, STRONG)],
)
def test_at_the_knee_of_a_full_machine_none_is_weak(rps: float, busy: float, strength: str) -> None:
    found = judged(seen(), rps=rps, usage=Usage(1, 1, busy, 0, 5, 9))
    assert (found.bottleneck, found.strength) == ("none", strength)
    assert ("with host CPU full" in found.sentence) == (strength == WEAK)


def test_what_nothing_full_explains_is_unknown() -> None:
    found = judged(seen(), rps=500)
    assert (found.bottleneck, found.strength) == ("unknown", "")
    assert "500 req/s are 50% of N / R0" in found.sentence


def test_a_pool_that_gives_what_its_size_allows_is_named_though_the_cpus_are_full() -> None:
    found = judged(seen(*pool(20, 180, 0.2)), rps=99, usage=Usage(1, 1, 0.99, 0, 5, 9))
    assert found.bottleneck == "worker pool"
    assert found.strength == WEAK
    assert "full as well: host CPU" in found.sentence
    sure = judged(seen(*pool(20, 180, 0.2)), rps=99)
    assert sure.strength == STRONG
    assert "20 of 20 busy, 180 waiting 1.80 s each; 20 / 0.2 s = 100 req/s" in sure.sentence
    queries = {one.source for one in sure.ranked[0].evidence}
    assert 'sum(avg_over_time(lab_worker_pool_active{server="a"}[10s]))' in queries


def test_a_pool_is_full_as_its_requests_tell_though_a_scrape_found_it_empty() -> None:
    # As in a window of 1 s whose only scrape came after the load had ended.
    between = (
        gauge("lab_worker_pool_active", 3, server=SERVER),
        gauge("lab_worker_pool_queue_depth", 0, server=SERVER),
    )
    found = judged(seen(*pool(20, 180, 0.2), *between), rps=99)
    assert (found.bottleneck, found.strength) == ("worker pool", STRONG)
    assert "20 of 20 busy, 178 waiting 1.80 s each" in found.sentence


def test_a_pool_with_nothing_waiting_is_not_named() -> None:
    assert judged(seen(*pool(200, 0, 0.2)), rps=985).bottleneck == "none"


def test_a_pool_held_longer_than_predicted_gives_way_to_what_holds_it() -> None:
    slow = ToxicState(("downstream/b bandwidth rate=1",), 0.0, ("downstream/b bandwidth",))
    call = mean_time("lab_downstream_call_seconds", 0.6, server=SERVER, phase="call")
    found = judged(seen(*pool(20, 180, 0.6), *call), rps=33, toxics=slow)
    assert found.bottleneck == "Toxiproxy"
    alone = judged(seen(*pool(20, 180, 0.6)), rps=33)
    assert (alone.bottleneck, alone.strength == WEAK) == ("worker pool", True)


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
        counter("container_cpu_usage_seconds_total", 0.39, service=SERVER),
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
}


@pytest.mark.parametrize("name", FULL)
def test_what_is_full_is_named(name: str) -> None:
    found = judged(seen(*FULL[name]), rps=99)
    assert found.bottleneck == name
    assert found.strength == STRONG
    assert found.ranked[0].evidence


@pytest.mark.parametrize(
    ("gc_cpus", "named", "strength"),
    [
        (0.6, "garbage collection", STRONG),  # 30 % of two CPUs: they explain that these are full.
        (0.1, "host CPU", STRONG),  # The pauses are long because the CPUs are full.
        (None, "garbage collection", WEAK),  # Nobody knows which of the two it is.
    ],
)
def test_on_full_cpus_collections_count_by_their_cpu_time(
    gc_cpus: float | None, named: str, strength: str
) -> None:
    pauses = FULL["garbage collection"]
    cpu = () if gc_cpus is None else (counter("lab_gc_cpu_seconds_total", gc_cpus, server=SERVER),)
    found = judged(seen(*pauses, *cpu), usage=Usage(1, 1, 0.99, 0, 0.1, 9))
    assert (found.bottleneck, found.strength) == (named, strength)
    assert ("full as well: host CPU" in found.sentence) == (gc_cpus is None)


def test_where_cpus_are_not_short_collections_count_by_their_pauses() -> None:
    cpu = counter("lab_gc_cpu_seconds_total", 0.1, server=SERVER)
    found = judged(seen(*FULL["garbage collection"], cpu))
    assert (found.bottleneck, found.strength) == ("garbage collection", STRONG)
    assert "35% of the time" in found.sentence


def test_a_quota_stretches_pauses_too() -> None:
    # 0.35 of the time in pauses, but 0.02 of 0.4 CPUs.
    cpu = counter("lab_gc_cpu_seconds_total", 0.02, server=SERVER)
    found = judged(seen(*FULL["garbage collection"], *FULL["server CPU"], cpu), rps=99)
    assert (found.bottleneck, found.strength) == ("server CPU", STRONG)
    (gc,) = (one for one in found.ranked if one.resource == "garbage collection")
    assert gc.utilisation == pytest.approx(0.05)
    assert "5% of 0.4 CPUs (pauses: 35% of the time)" in gc.sentence


@pytest.mark.parametrize(
    ("busy", "waited_s", "named", "strength"),
    [
        (0.96, 0.1, "host CPU", STRONG),
        (0.92, 0.1, "host CPU", WEAK),
        (0.85, 9.0, "host CPU", WEAK),  # 30 % of two cores for 15 s.
        (0.85, 0.1, "unknown", ""),
    ],
)
def test_only_full_cpus_are_strong_evidence(
    busy: float, waited_s: float, named: str, strength: str
) -> None:
    found = judged(seen(), rps=600, usage=Usage(1, 1, busy, 0, waited_s, 9000))
    assert (found.bottleneck, found.strength) == (named, strength)


def test_a_jvm_that_ends_again_and_again_has_too_little_memory_for_its_load() -> None:
    def started(*at: float) -> Series:
        labels = {"__name__": "process_start_time_seconds", "job": "jvm", "server": SERVER}
        return Series(labels, (OPENS, OPENS + 4, OPENS + 8), at)

    full, gone = Usage(1, 1, 0.99, 0, 5, 9), ("the JVM restarted during the trial",)
    # As measured: no scrape met a full heap, no collection, and the JVMs' starts filled the CPUs.
    found = judged(seen(started(1, 2, 3)), rps=0, usage=full, reasons=gone)
    assert (found.bottleneck, found.strength) == ("garbage collection", WEAK)
    assert found.sentence.endswith("0% of it seen in use, and nothing tells why: see its log")
    # Where a scrape did, that is the reason. Even then the trial is invalid.
    mine = {"job": "jvm", "server": SERVER, "area": "heap"}
    heap = gauge("jvm_memory_used_bytes", 930, **mine), gauge("jvm_memory_max_bytes", 1000, **mine)
    found = judged(seen(started(1, 2, 3), *heap), rps=0, usage=full, reasons=gone)
    assert found.sentence.endswith("at most 93% of it seen in use, which tells why")
    # Several JVMs behind one name take turns, and none of them ends.
    found = judged(seen(started(2, 1, 2)), rps=0, usage=full, reasons=gone)
    assert found.bottleneck == "host CPU"
    # One end may be anything.
    assert judged(seen(started(1, 1, 2)), rps=0, usage=full, reasons=gone).bottleneck == "host CPU"


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
    assert (tight.bottleneck, tight.strength == STRONG) == ("garbage collection", True)
    assert "20% of the time, 82% of a heap of 0 MB in use afterwards" in tight.sentence
    (left,) = (one for one in tight.ranked[0].evidence if one.what == "heap after collection")
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


def test_carriers_are_named_where_there_are_fewer_than_cpus() -> None:
    name = "lab_virtual_thread_scheduler_"
    busy = (
        gauge(f"{name}parallelism", 1, server=SERVER),
        gauge(f"{name}mounted", 1, server=SERVER),
        gauge(f"{name}queued", 19, server=SERVER),
    )
    found = judged(seen(*busy), route="/compute", settings={"virtual_thread_parallelism": 1})
    assert found.bottleneck == "carrier threads"
    assert found.strength == STRONG


def test_a_deadline_below_the_delay_is_named_and_one_above_is_a_symptom() -> None:
    late = counter("lab_downstream_calls_total", 900, server=SERVER, outcome="timeout")
    found = judged(seen(late), settings={"downstream_timeout_ms": 100})
    assert (found.bottleneck, found.strength == STRONG) == ("downstream timeout", True)
    symptom = judged(seen(late, *FULL["downstream connections"]), rps=99)
    assert symptom.bottleneck == "downstream connections"


def test_a_toxic_that_makes_the_downstream_slow_is_the_downstreams() -> None:
    slow = ToxicState(("downstream/l latency latency=800",), 800.0)
    found = judged(seen(), rps=198, toxics=slow)
    assert (found.bottleneck, found.strength == STRONG) == ("downstream", True)
    assert "toxics add 0.8 s" in found.sentence


def test_a_downstream_is_full_when_its_loops_are() -> None:
    busy = counter("process_cpu_seconds_total", 1.0, job="downstream")
    for loops, full in ((4, False), (1, True)):
        of = seen(busy, gauge("lab_downstream_loops", loops, job="downstream"))
        assert (judged(of, rps=500).bottleneck == "downstream") == full


def test_toxiproxy_is_no_suspect_where_calls_go_past_it() -> None:
    busy = (
        counter("process_cpu_seconds_total", 1.0, job="toxiproxy"),
        gauge("go_sched_gomaxprocs_threads", 1, job="toxiproxy"),
    )
    assert judged(seen(*busy), rps=500).bottleneck == "Toxiproxy"
    past = judged(seen(*busy), rps=500, settings={"downstream_url": DIRECT})
    assert past.bottleneck == "unknown"
    assert not [one for one in past.ranked if one.resource == "Toxiproxy"]


def test_a_starved_generator_is_named_though_its_trial_is_invalid() -> None:
    reasons = ("the generator was starved: its CPU quota stopped it for 7 s",)
    usage = Usage(1, 0.2, 0.3, 0.0, 3.0, 100, 7.0)
    found = judged(seen(), reasons=reasons, usage=usage)
    assert (found.bottleneck, found.strength == STRONG) == ("generator", True)
    crowded = dataclasses.replace(usage, host_busy=0.97, window_throttled_s=0.0)
    assert judged(seen(), reasons=reasons, usage=crowded).bottleneck == "host CPU"


def test_a_generator_of_one_thread_is_as_full_as_its_one_core() -> None:
    of = record(plan("closed"), usage=Usage(14, 13.5, 0.5, 0.0))
    for threads, used in ((1, 0.9), (None, 0.45)):
        found = verdict_of(measurement(of, reading(threads=threads)), Judgement((), ()), seen())
        [one] = [one for one in found.ranked if one.resource == "generator"]
        assert one.utilisation == pytest.approx(used)


CORES = "machine:machine_cpu_cores:max"


@pytest.mark.parametrize(
    ("observation", "others"),
    [
        (seen(), True),
        # cAdvisor's own gauge does not count: it may tell of another moment.
        (seen(gauge("machine_cpu_cores", 0.5)), True),
        (seen(without="machine:machine_cpu_cores:max"), False),
    ],
)
def test_how_much_others_use_is_told_by_what_the_machine_has(
    observation: Observation, others: bool
) -> None:
    found = judged(observation, rps=99, usage=Usage(1, 1, 0.99, 0, 0.1, 9))
    (host,) = (one for one in found.ranked if one.resource == "host CPU")
    # 99 % less 0.5 of 2 CPUs.
    assert (", 74% by work outside the lab" in host.sentence) == others
    assert ("whether work outside the lab took the CPUs" in found.missing) != others
    assert (found.bottleneck, found.strength) == ("host CPU", STRONG if others else WEAK)


@pytest.mark.parametrize(("others", "strength"), [(None, STRONG), (0.2, WEAK)])
def test_cpus_that_others_fill_are_weak_evidence(others: float | None, strength: str) -> None:
    of = record(plan("closed"), usage=Usage(1, 1, 0.99, 0, 0.1, 9))
    judgement = Judgement((), (), others_cpu=others)
    found = verdict_of(measurement(of, reading(99)), judgement, seen())
    assert (found.bottleneck, found.strength) == ("host CPU", strength)


def test_a_quota_of_all_the_machine_has_is_none() -> None:
    # Where that is not known it is taken to have what the server says, which is more.
    found = judged(seen(*FULL["server CPU"], gauge(CORES, 0.4)))
    (cpu,) = (one for one in found.ranked if one.resource == "server CPU")
    assert "without a quota" in cpu.sentence


def test_a_jvm_that_cannot_count_its_descriptors_has_none_left() -> None:
    observation = seen(without="process_open_fds")
    found = judged(observation, rps=15)
    assert found.bottleneck == "file descriptors"


def test_a_proxy_without_descriptors_is_named_once_and_with_strong_evidence() -> None:
    full = (
        gauge("process_open_fds", 19_900, job="toxiproxy"),
        gauge("process_max_fds", 20_000, job="toxiproxy"),
    )
    found = judged(seen(*full), rps=15)
    assert (found.bottleneck, found.strength == STRONG) == ("file descriptors", True)
    assert found.sentence == "file descriptors: Toxiproxy has 19900 of 20000 open"


def test_an_invalid_trial_never_has_strong_evidence() -> None:
    found = judged(seen(*pool(20, 180, 0.2)), rps=99, reasons=("cold JVM: it compiled",))
    assert (found.bottleneck, found.strength == WEAK) == ("worker pool", True)


def test_without_the_whole_window_there_is_no_strong_evidence() -> None:
    observation = seen(*pool(20, 180, 0.2), without="up")
    found = judged(observation, rps=99)
    assert found.strength == WEAK
    assert "Prometheus did not see the whole window of jvm" in found.missing
    assert judged(None).bottleneck == "unknown"


def test_what_came_after_the_window_is_not_what_was_in_it() -> None:
    """The exporter did not answer in the window. After it the pool was at rest."""

    def unanswered(series: Series) -> Series:
        kept = [point for point in series.points if not OPENS - 1 <= point[0] <= CLOSES]
        times, values = zip(*kept, strict=True)
        return Series(series.labels, times, values)

    size, active, *rest = pool(20, 180, 0.2)
    at_rest = Series(
        active.labels,
        active.times,
        tuple(20.0 if at < OPENS else 0.0 for at in active.times),
    )
    up = gauge("up", 1, job="jvm")
    observed = seen(*map(unanswered, (size, at_rest, up)), *rest)
    assert not observed.covers("jvm")
    found = judged(observed, rps=40)
    (of_pool,) = [one for one in found.ranked if one.resource == "worker pool"]
    assert of_pool.utilisation == 1.0
    assert "Prometheus did not see the whole window of jvm" in found.missing


@pytest.mark.parametrize(
    ("machine", "cpu_set", "used", "named", "strength"),
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
    machine: int, cpu_set: str, used: float, named: str, strength: str
) -> None:
    observed = seen(
        gauge("machine:machine_cpu_cores:max", machine),
        counter("container_cpu_usage_seconds_total", used, service=SERVER),
    )
    found = judged(
        observed, rps=600, usage=Usage(1, 1, 0.6, 0, 0.1, 9), settings={"cpuset": cpu_set}
    )
    assert (found.bottleneck, found.strength) == (named, strength)
    if named == "server CPU":
        assert f"{used:.2f} of the {machine // 2} CPUs of its set" in found.sentence


@pytest.mark.parametrize(("used", "named"), [(3.9, "server CPU"), (3.0, "unknown")])
def test_a_server_on_a_machine_of_its_own_is_limited_by_all_of_its_cpus(
    used: float, named: str
) -> None:
    usage = "container_cpu_usage_seconds_total"
    observed = seen(
        # The largest machine's.
        gauge("machine:machine_cpu_cores:max", 4),
        # Beside the 0.5 CPUs that every window here has.
        counter(usage, used - 0.5, service=SERVER, machine="tested"),
    )
    found = judged(
        observed, rps=600, usage=Usage(1, 1, None, None, 0.1, 9), settings={"cpuset": "0-3"}
    )
    assert found.bottleneck == named
    if named == "server CPU":
        assert f"{used:.2f} of the 4 CPUs of its machine" in found.sentence


def machines(**used: float) -> list[Series]:
    """Two CPUs each, of which so many are in use; the proxy and the downstream are on `called`."""
    each = [
        one
        for name, cpus in used.items()
        for one in (
            gauge("machine:machine_cpu_cores:each", 2, machine=name),
            counter("host_cpu_usage_seconds_total", cpus, machine=name),
        )
    ]
    on = "container_cpu_usage_seconds_total"
    parts = [counter(on, 0.1, service=one, machine="called") for one in ("toxiproxy", "downstream")]
    return [*each, *parts]


@pytest.mark.parametrize(
    ("called", "named", "strength"), [(1.95, "host CPU", WEAK), (1.7, "unknown", "")]
)
def test_of_several_machines_the_one_that_is_full_is_named_with_its_parts(
    called: float, named: str, strength: str
) -> None:
    observed = seen(*machines(load=0.3, called=called))
    found = judged(observed, rps=600, usage=Usage(1, 1, None, None, 0.1, 9))
    assert (found.bottleneck, found.strength) == (named, strength)
    told = [one.sentence for one in found.ranked if one.resource == "host CPU"]
    parts = "the CPUs of machine called, which has Toxiproxy and the downstream: "
    assert told == [f"{parts}{called / 2:.0%} busy"]


def test_of_several_machines_the_servers_own_may_be_crowded() -> None:
    """Then who holds a lock waits for a CPU."""
    site = {"server": SERVER, "kind": "lock", "threads": "platform", "site": "lab.A.run:1"}
    for used, strength in ((0.4, STRONG), (1.7, WEAK)):
        own = counter("container_cpu_usage_seconds_total", used, service=SERVER, machine="tested")
        observed = seen(
            *machines(load=0.3, tested=used, called=0.3),
            own,
            counter("lab_wait_seconds_total", 79, **site),
            without="machine:machine_cpu_cores:max",
        )
        usage = Usage(1, 1, None, None, 0.1, 9)
        found = judged(
            observed, rps=100, concurrency=100, usage=usage, settings={"lock_watch_ms": 10}
        )
        assert (found.bottleneck, found.strength) == ("lock", strength)
        assert ("on CPUs that were 85% busy" in found.sentence) == (strength == WEAK)


def test_of_several_machines_each_must_be_seen() -> None:
    observed = seen(
        *machines(called=1.95), gauge("machine:machine_cpu_cores:each", 2, machine="load")
    )
    found = judged(observed, rps=600, usage=Usage(1, 1, None, None, 0.1, 9))
    assert found.bottleneck == "unknown"
    assert "whether it was the host CPU: nothing was read of it" in found.missing


def test_a_quota_of_all_cpus_of_its_set_is_none_and_a_smaller_one_binds() -> None:
    def with_quota(cpus: float) -> Verdict:
        observed = seen(
            gauge("machine:machine_cpu_cores:max", 8),
            gauge("container_spec_cpu_quota", cpus * 100_000, service=SERVER),
            gauge("container_spec_cpu_period", 100_000, service=SERVER),
            counter("container_cpu_usage_seconds_total", 1.9, service=SERVER),
        )
        return judged(observed, rps=600, settings={"cpuset": "4-7"})

    texts = [
        one.sentence
        for cpus in (8, 4, 2)
        for one in with_quota(cpus).ranked
        if one.resource == "server CPU"
    ]
    assert texts[0] == texts[1] == "the server's CPU: 1.90 of the 4 CPUs of its set"
    assert "1.90 of the 2 CPUs of its quota" in texts[2]


def test_a_quota_that_stops_the_server_is_named_on_a_busy_host() -> None:
    found = judged(seen(*FULL["server CPU"]), rps=99, usage=Usage(1, 1, 0.91, 0, 0.1, 9))
    assert (found.bottleneck, found.strength == STRONG) == ("server CPU", True)


@pytest.mark.parametrize(("rps", "named"), [(9.7, True), (5.0, False)])
def test_carriers_that_waiting_requests_keep_are_named_where_they_explain_the_rate(
    rps: float, named: bool
) -> None:
    found = judged(
        seen(),
        rps=rps,
        route="/synchronized",
        jdk="21.0.8",
        settings={"pool_size": None, "virtual_thread_parallelism": 2},
    )
    standing = next(one for one in found.ranked if one.resource == "carrier threads")
    assert (found.bottleneck == "carrier threads", standing.score >= 0.9) == (named, named)
    assert "of 2 kept by requests that wait in synchronized" in standing.sentence


@pytest.mark.parametrize(
    ("how", "loops", "score", "says"),
    [
        ("spin", 1, 0.95, "it waits by computing on the loop"),
        # As many as CPUs: these are short. A loop that sleeps uses none.
        ("spin", 2, 0.55, "it waits by computing on the loop"),
        (True, 2, 0.95, "it waits by sleeping on the loop"),
    ],
)
def test_a_loop_that_computes_its_waits_is_the_limit_while_there_are_cpus(
    how: bool | str, loops: int, score: float, says: str
) -> None:
    name = "lab_event_loop_busy_seconds_total"
    busy = [counter(name, 0.99, server=SERVER, loop=str(loop)) for loop in range(loops)]
    found = judged(seen(*busy), rps=99 * loops, settings={"block_the_loop": how})
    standing = next(one for one in found.ranked if one.resource == "event loop")
    assert standing.score == score
    assert says in standing.sentence


def test_a_full_loop_on_a_full_host_is_no_strong_evidence() -> None:
    found = judged(seen(*FULL["event loop"]), rps=99, usage=Usage(1, 1, 0.97, 0, 0.1, 9))
    assert found.strength == WEAK
    assert "full as well" in found.sentence


def test_refusals_are_no_throughput_and_the_pool_that_refuses_is_named() -> None:
    request = {"server": SERVER, "route": "/downstream"}
    refused = counter("lab_http_requests_total", 7000, outcome="rejected", **request)
    observation = seen(*pool(20, 10, 0.2), refused)
    found = judged(
        observation,
        rps=8000,
        # The counts of 15 s: of 80 answers one is no refusal, 100 a second.
        errors=79 * 8000 * 15,
        concurrency=5000,
        settings={"queue_bound": 10},
        usage=Usage(1, 1, 0.97, 0, 5, 9),
    )
    assert found.bottleneck == "worker pool"
    assert "refused" in found.sentence


def test_requests_that_were_refused_neither_waited_nor_held_a_worker() -> None:
    request = {"server": SERVER, "route": "/downstream"}
    # 1,000 of 5,000 a second are worked on, and each of them waits 0.2 s: 200 at a time.
    waits = mean_time("lab_http_request_seconds", 0.2, phase="queue", **request)
    refused = counter("lab_http_requests_total", 4000, outcome="rejected", **request)
    found = judged(
        seen(*pool(200, 190, 0.2), *waits, refused),
        rps=5000,
        errors=4000 * 15,
        concurrency=5000,
        settings={"queue_bound": 200},
    )
    assert "200 of 200 busy, 200 waiting 0.20 s each" in found.sentence


def test_a_window_in_which_toxics_came_and_went_never_gives_strong_evidence() -> None:
    step = ToxicStep(2, {"TYPE": "down"})
    found = judged(seen(*pool(20, 180, 0.2)), rps=99, script=(step,))
    assert (found.bottleneck, found.strength == WEAK) == ("worker pool", True)
    assert any("script" in one for one in found.missing)


def test_a_load_that_got_all_it_can_have_is_not_limited_by_what_others_suffer() -> None:
    full = seen(*FULL["accept queue"])
    assert judged(full, rps=985).bottleneck == "none"
    # Those of a spike are part of the load.
    beside = Spike(500, None, 5, 2, 1, 0.1, 1)
    assert judged(full, rps=985, spike=beside).bottleneck == "accept queue"


def test_series_that_cannot_be_judged_are_said_so() -> None:
    found = judged(seen(counter("lab_downstream_lag_seconds_bucket", 5.0)))
    assert (found.bottleneck, found.strength) == ("unknown", "")
    assert "cannot be judged: lab_downstream_lag_seconds: a bucket with" in found.sentence


def test_a_route_that_the_lab_no_longer_has_is_said_so() -> None:
    found = judged(seen(), route="/gone")
    assert found.bottleneck == "unknown"
    assert "/gone is not a route" in found.sentence


@pytest.mark.parametrize("failure", [ValueError, ZeroDivisionError])
def test_an_error_of_the_program_is_not_taken_for_bad_series(
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
