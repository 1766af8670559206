"""The proxy: its accept queue and the downstream's, and its toxics, in windows as measured."""

import dataclasses

import pytest

from judge.test_verdict import SERVER, judged, pool, seen
from lab.model import STRONG, WEAK, Series, Spike, Standing, ToxicState, Usage, Verdict
from support.series import counter, gauge, mean_time

QUEUE = "lab_path_accept_queue_"


def queues(waiting: float, rate: float, *, longest: float = 0.0, busy: float = 0.0) -> list[Series]:
    """Toxiproxy's accept queue as the downstream tells it; its own is always empty."""
    of_proxy, own = ({"job": "downstream", "listener": one} for one in ("toxiproxy", "downstream"))
    return [
        counter(f"{QUEUE}connection_seconds_total", waiting, **of_proxy),
        counter(f"{QUEUE}occupied_seconds_total", busy, **of_proxy),
        gauge(f"{QUEUE}length", longest, **of_proxy),
        counter(f"{QUEUE}connection_seconds_total", 0, **own),
        counter(f"{QUEUE}occupied_seconds_total", 0, **own),
        gauge(f"{QUEUE}length", 0, **own),
        counter("lab_downstream_accepted_connections_total", rate, job="downstream"),
    ]


# Of 200 clients 150 wait: 50 / 0.2 s = 250 req/s, each on a new connection.
CROWDED = queues(150, 250, longest=161, busy=1.0)
LATE = counter("lab_downstream_calls_total", 300, server=SERVER, outcome="timeout")


def standing(verdict: Verdict) -> Standing:
    (found,) = (one for one in verdict.ranked if one.resource == "connection set-up")
    return found


def test_the_queue_that_calls_wait_in_is_named_with_its_length_wait_and_rate() -> None:
    found = judged(seen(*CROWDED), rps=250)
    assert (found.bottleneck, found.strength) == ("connection set-up", STRONG)
    assert found.sentence == (
        "connection set-up: 150 of 200 connections stood in Toxiproxy's accept queue, "
        "161 at most, 0.6 s each; 250 a second were set up"
    )
    one = standing(found)
    assert (one.utilisation, one.saturation, one.waiting) == (1.0, 150, "connections")
    assert {each.source for each in one.evidence} >= {
        f'sum(rate({QUEUE}connection_seconds_total{{listener="toxiproxy"}}[10s]))',
        f'max(max_over_time({QUEUE}length{{listener="toxiproxy"}}[10s]))',
        "sum(rate(lab_downstream_accepted_connections_total{}[10s]))",
    }
    assert found.missing == ()


def test_it_explains_late_calls_full_pools_and_the_toxic_that_breaks_connections() -> None:
    call = mean_time("lab_downstream_call_seconds", 0.8, server=SERVER, phase="call")
    breaks = ToxicState(("downstream/l limit_data bytes=110",), 0.0, ("downstream/l limit_data",))
    found = judged(seen(*CROWDED, *pool(50, 150, 0.8), *call, LATE), rps=50, toxics=breaks)
    assert (found.bottleneck, found.strength) == ("connection set-up", STRONG)
    assert standing(found).errors == 3000


@pytest.mark.parametrize(("waiting", "named"), [(54, "connection set-up"), (20, "Toxiproxy")])
def test_what_a_call_waits_in_the_queue_is_no_slowness_of_the_toxic(
    waiting: float, named: str
) -> None:
    # As measured with 1,000 connections, here with 200: 435 req/s of 1,000, a call takes 0.36 s, of
    # which it waits 54 / 435 = 0.12 s. The queue is less than half of what the load lost.
    call = mean_time("lab_downstream_call_seconds", 0.36, server=SERVER, phase="call")
    calls = counter("lab_downstream_calls_total", 435, server=SERVER, outcome="ok")
    breaks = ToxicState(("downstream/l limit_data bytes=110",), 0.0, ("downstream/l limit_data",))
    found = judged(seen(*queues(waiting, 435), *call, calls), rps=435, toxics=breaks)
    assert found.bottleneck == named


def test_a_steady_load_on_kept_connections_has_none_of_it() -> None:
    # The health check's own connection, every 5 s.
    quiet = seen(*queues(0, 0.2))
    assert judged(quiet, rps=985).bottleneck == "none"
    assert standing(judged(quiet, rps=985)).score == 0
    assert judged(quiet, rps=500).bottleneck == "unknown"
    assert "0 of 200 connections" in standing(judged(quiet, rps=500)).sentence
    full = judged(seen(*queues(0, 0.2), *pool(20, 180, 0.2)), rps=99)
    assert (full.bottleneck, full.strength) == ("worker pool", STRONG)


def test_a_short_queue_that_explains_little_of_the_loss_is_not_named_before_what_is_full() -> None:
    # 15 of 200 waited for a while, but 60 % of N / R0 is missing: the CPUs are full.
    found = judged(seen(*queues(15, 100, longest=120, busy=0.3)), rps=400, usage=BUSY)
    assert found.bottleneck == "host CPU"
    assert found.strength == STRONG


BUSY = Usage(1, 1, 0.99, 0, 5, 9)


def test_where_the_cpus_are_full_as_well_it_is_named_without_high_confidence() -> None:
    found = judged(seen(*CROWDED), rps=250, usage=BUSY)
    assert (found.bottleneck, found.strength) == ("connection set-up", WEAK)
    assert "full as well: host CPU" in found.sentence


def test_a_deadline_that_no_answer_can_meet_stays_the_cause() -> None:
    # Every call that ends at it takes its connection with it.
    found = judged(seen(*CROWDED, LATE), rps=50, settings={"downstream_timeout_ms": 100})
    assert (found.bottleneck, found.strength) == ("downstream timeout", STRONG)


def test_connections_of_a_peak_count_among_all_and_never_give_confidence() -> None:
    beside = Spike(1800, None, 5, 2, 1, 0.1, 1)
    found = judged(seen(*queues(900, 300, longest=1700, busy=0.9)), rps=500, spike=beside)
    assert (found.bottleneck, found.strength) == ("connection set-up", WEAK)
    assert "900 of 2,000 connections" in found.sentence
    few = judged(seen(*queues(12, 50, longest=400, busy=0.1)), rps=985, spike=beside)
    assert few.bottleneck == "unknown"


def test_a_proxy_that_accepts_nothing_any_more_is_named_and_no_wait_is_made_up() -> None:
    deaf = seen(*queues(200, 0, longest=200, busy=1.0))
    found = judged(deaf, rps=1)
    assert found.bottleneck == "connection set-up"
    assert " each" not in found.sentence


NOT_SEEN = "whether it was the connection set-up: nothing was read of it"
UNSEEN = f"{QUEUE}connection_seconds_total"


def test_queues_that_nobody_read_weaken_what_they_may_hide() -> None:
    found = judged(seen(without=UNSEEN), rps=985)
    assert (found.bottleneck, found.strength) == ("none", WEAK)
    assert found.missing == (NOT_SEEN,)
    assert judged(seen(), rps=985).strength == STRONG
    # Calls that wait there are late, as through a slow proxy.
    slow = ToxicState(("downstream/b bandwidth rate=1",), 0.0, ("downstream/b bandwidth",))
    call = mean_time("lab_downstream_call_seconds", 0.6, server=SERVER, phase="call")
    for without, strength in (("", STRONG), (UNSEEN, WEAK)):
        found = judged(seen(*call, without=without), rps=300, toxics=slow)
        assert (found.bottleneck, found.strength) == ("Toxiproxy", strength)
    # A pool that gives what its size allows is full by itself; CPUs are no queue's doing.
    for series, usage, named in (
        (pool(20, 180, 0.2), None, "worker pool"),
        ((), Usage(1, 1, 0.99, 0, 5, 9), "host CPU"),
    ):
        found = judged(seen(*series, without=UNSEEN), rps=99, usage=usage)
        assert (found.bottleneck, found.strength) == (named, STRONG)
        assert found.missing == (NOT_SEEN,)


def test_the_proxys_queue_is_the_one_that_must_be_seen() -> None:
    # The downstream is quick to accept, so its own queue alone tells nothing.
    only_own = tuple(one for one in seen().all if one.labels.get("listener") != "toxiproxy")
    found = judged(dataclasses.replace(seen(), all=only_own), rps=985)
    assert found.missing == (NOT_SEEN,)
    assert judged(seen(without=UNSEEN), rps=500, route="/compute").missing == ()


@pytest.mark.parametrize(
    ("without", "resource"),
    [
        ("lab_kernel_listen_overflows_total", "accept queue"),
        ("lab_kernel_tcp_time_wait", "ports"),
        ("jvm_gc_collection_seconds_sum", "garbage collection"),
        ("container_cpu_usage_seconds_total", "server CPU"),
        ("lab_worker_pool_size", "worker pool"),
        ("lab_downstream_connections_cap", "downstream connections"),
    ],
)
def test_none_is_weak_where_a_resource_was_not_seen(without: str, resource: str) -> None:
    found = judged(seen(without=without), rps=985)
    assert (found.bottleneck, found.strength) == ("none", WEAK)
    assert found.missing == (f"whether it was the {resource}: nothing was read of it",)


@pytest.mark.parametrize(
    ("settings", "jdk", "resource"),
    [
        ({"loops": 2}, "25.0.3", "event loop"),
        ({"virtual_thread_parallelism": 2}, "25.0.3", "carrier threads"),
        # This JDK has no bean of its carriers.
        ({"virtual_thread_parallelism": 2}, "21.0.8", None),
    ],
)
def test_so_it_is_with_threads_that_the_servers_settings_have(
    settings: dict[str, object], jdk: str, resource: str | None
) -> None:
    found = judged(seen(), rps=985, settings=settings, jdk=jdk)
    assert (found.bottleneck, found.strength) == ("none", WEAK if resource else STRONG)
    assert found.missing == (
        (f"whether it was the {resource}: nothing was read of it",) if resource else ()
    )


def test_it_is_one_resource_of_the_path_to_the_downstream_only() -> None:
    found = judged(seen(*CROWDED), rps=250, route="/compute")
    assert all(one.resource != "connection set-up" for one in found.ranked)
