"""The proxy: its accept queue and the downstream's, and its toxics, in windows as measured."""

import dataclasses

import pytest

from lab.model import STRONG, WEAK, Series, Spike, ToxicState, Usage
from support.series import counter, gauge, mean_time
from support.windows import SERVER, Case, case, judged, pool, seen, standing

SET_UP = "connection set-up"
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


BREAKS = ToxicState(("downstream/l limit_data bytes=110",), 0.0, ("downstream/l limit_data",))
# As measured with 1,000 connections, here with 200: 435 req/s of 1,000, a call takes 0.36 s, of
# which it waits 54 / 435 = 0.12 s. With 20 the queue is less than half of what the load lost.
MEASURED = (
    *mean_time("lab_downstream_call_seconds", 0.36, server=SERVER, phase="call"),
    counter("lab_downstream_calls_total", 435, server=SERVER, outcome="ok"),
)
# The health check's own connection, every 5 s.
KEPT = queues(0, 0.2)
BUSY = Usage(1, 1, 0.99, 0, 5, 9)
PEAK = Spike(1800, None, 5, 2, 1, 0.1, 1)


@pytest.mark.parametrize(
    "line",
    [
        case("calls wait", *queues(54, 435), *MEASURED, rps=435, toxics=BREAKS).gives(SET_UP, WEAK),
        case("few calls wait", *queues(20, 435), *MEASURED, rps=435, toxics=BREAKS).gives(
            "Toxiproxy", STRONG
        ),
        case("kept connections", *KEPT, rps=985).gives("none", STRONG),
        case("kept connections, nothing full", *KEPT, rps=500).gives("unknown"),
        case("kept connections, full pool", *KEPT, *pool(20, 180, 0.2), rps=99).gives(
            "worker pool", STRONG
        ),
        # 15 of 200 waited for a while, but 60 % of N / R0 is missing: the CPUs are full.
        case(
            "short queue, full CPUs", *queues(15, 100, longest=120, busy=0.3), rps=400, usage=BUSY
        ).gives("host CPU", STRONG),
        case("long queue, full CPUs", *CROWDED, rps=250, usage=BUSY).gives(
            SET_UP, WEAK, "full as well: host CPU"
        ),
        # Every call that ends at a deadline that no answer can meet takes its connection with it.
        case("deadline", *CROWDED, LATE, rps=50, settings={"downstream_timeout_ms": 100}).gives(
            "downstream timeout", STRONG
        ),
        # Those of a peak count among all, and never give confidence.
        case("peak", *queues(900, 300, longest=1700, busy=0.9), rps=500, spike=PEAK).gives(
            SET_UP, WEAK, "900 of 2,000 connections"
        ),
        case("small peak", *queues(12, 50, longest=400, busy=0.1), rps=985, spike=PEAK).gives(
            "unknown"
        ),
    ],
)
def test_what_a_queue_of_the_proxy_explains_is_named(line: Case) -> None:
    line.check()


def test_it_explains_late_calls_full_pools_and_the_toxic_that_breaks_connections() -> None:
    call = mean_time("lab_downstream_call_seconds", 0.8, server=SERVER, phase="call")
    found = judged(seen(*CROWDED, *pool(50, 150, 0.8), *call, LATE), rps=50, toxics=BREAKS)
    assert (found.bottleneck, found.strength) == ("connection set-up", STRONG)
    assert standing(found, SET_UP).errors == 3000


def test_a_steady_load_on_kept_connections_has_none_of_it() -> None:
    # It is one resource of the path to the downstream only.
    elsewhere = judged(seen(*CROWDED), rps=250, route="/compute")
    assert standing(elsewhere, SET_UP) is None
    assert standing(judged(seen(*KEPT), rps=985), SET_UP).score == 0
    assert "0 of 200 connections" in standing(judged(seen(*KEPT), rps=500), SET_UP).sentence


def test_a_proxy_that_accepts_nothing_any_more_is_named_and_no_wait_is_made_up() -> None:
    found = judged(seen(*queues(200, 0, longest=200, busy=1.0)), rps=1)
    assert found.bottleneck == "connection set-up"
    assert " each" not in found.sentence


def test_the_queue_that_calls_wait_in_is_named_with_its_length_wait_and_rate() -> None:
    found = judged(seen(*CROWDED), rps=250)
    assert (found.bottleneck, found.strength) == ("connection set-up", STRONG)
    assert found.sentence == (
        "connection set-up: 150 of 200 connections stood in Toxiproxy's accept queue, "
        "161 at most, 0.6 s each; 250 a second were set up"
    )
    one = standing(found, SET_UP)
    assert (one.utilisation, one.saturation, one.waiting) == (1.0, 150, "connections")
    assert {each.source for each in one.evidence} >= {
        f'sum(rate({QUEUE}connection_seconds_total{{listener="toxiproxy"}}[10s]))',
        f'max(max_over_time({QUEUE}length{{listener="toxiproxy"}}[10s]))',
        "sum(rate(lab_downstream_accepted_connections_total{}[10s]))",
    }
    assert found.missing == ()


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
    ("without", "settings", "jdk", "resource"),
    [
        ("lab_kernel_listen_overflows_total", {}, "25.0.3", "accept queue"),
        ("lab_kernel_tcp_time_wait", {}, "25.0.3", "ports"),
        ("jvm_gc_collection_seconds_sum", {}, "25.0.3", "garbage collection"),
        ("container_cpu_usage_seconds_total", {}, "25.0.3", "server CPU"),
        ("lab_worker_pool_size", {}, "25.0.3", "worker pool"),
        ("lab_downstream_connections_cap", {}, "25.0.3", "downstream connections"),
        # Threads that only the server's settings have.
        ("", {"loops": 2}, "25.0.3", "event loop"),
        ("", {"virtual_thread_parallelism": 2}, "25.0.3", "carrier threads"),
        # This JDK has no bean of its carriers.
        ("", {"virtual_thread_parallelism": 2}, "21.0.8", None),
    ],
)
def test_none_is_weak_where_a_resource_was_not_seen(
    without: str, settings: dict[str, object], jdk: str, resource: str | None
) -> None:
    found = judged(seen(without=without), rps=985, settings=settings, jdk=jdk)
    assert (found.bottleneck, found.strength) == ("none", WEAK if resource else STRONG)
    missing = f"whether it was the {resource}: nothing was read of it"
    assert found.missing == ((missing,) if resource else ())
