"""Whether a load had all it can have, and loads whose own connections are the limit."""

import pytest

from lab.model import STRONG, WEAK, Demand, Latency, Series, ToxicState, Usage, Verdict
from support.fakes import latency
from support.series import CLOSES, OPENS, TIMES, gauge, mean_time
from support.windows import SERVER, judged, pool, seen


def times(mean_ms: float, p95_ms: float) -> Latency:
    """Latencies with this mean and p95."""
    return Latency(mean_ms, mean_ms, p95_ms, p95_ms, p95_ms)


def gauge_of(name: str, first: float, second: float, **labels: str) -> Series:
    """A gauge with one value in the first half of the window and one in the second."""
    middle = (OPENS + CLOSES) / 2
    return Series(
        {"__name__": name, **labels}, TIMES, tuple(first if at < middle else second for at in TIMES)
    )


def in_flight(first: float, second: float) -> Series:
    return gauge_of(
        "lab_http_requests_in_flight", first, second, server=SERVER, route="/downstream"
    )


REQUEST = {"server": SERVER, "route": "/downstream"}
# fixed-pool, 1,000 connections, /downstream (200 ms), MODE=open RATE=985: 982 of them were answered
# by 200 threads that were all busy. p95 was 615 ms where 200 ms were expected.
AT_THE_KNEE = (
    gauge("lab_worker_pool_size", 200, server=SERVER),
    gauge("lab_worker_pool_active", 200, server=SERVER),
    gauge_of("lab_worker_pool_queue_depth", 270, 160, server=SERVER),
    in_flight(200, 200),
    *mean_time("lab_http_request_seconds", 0.22, 982, phase="queue", **REQUEST),
    *mean_time("lab_http_request_seconds", 0.2, 982, phase="service", **REQUEST),
)
KNEE = {"rps": 982, "offered_rps": 985, "concurrency": 1000}


def test_a_rate_that_a_full_pool_answers_late_is_limited_by_the_pool() -> None:
    slow = times(420, 615)
    found = judged(seen(*AT_THE_KNEE), **KNEE, corrected=slow, raw=slow)
    assert (found.bottleneck, found.strength) == ("worker pool", STRONG)
    assert found.sentence.startswith("the worker pool: 200 of 200 busy, 216 waiting 0.22 s each")
    assert found.sentence.endswith("; an answer took 420 ms on average instead of 200 ms")


def test_a_late_tail_is_enough_where_a_pool_is_full() -> None:
    tail = times(240, 615)
    found = judged(seen(*AT_THE_KNEE), **KNEE, corrected=tail, raw=tail)
    assert (found.bottleneck, found.strength) == ("worker pool", STRONG)
    assert found.sentence.endswith("; p95 was 615 ms instead of 200 ms")
    # Toxics with jitter make tails by themselves.
    jitter = ToxicState(("downstream/l latency latency=40 jitter=40",), 40.0)
    assert judged(seen(), **KNEE, corrected=tail, raw=tail, toxics=jitter).bottleneck == "none"


def test_a_rate_that_is_answered_nearly_in_time_is_none_but_weak_where_a_pool_is_full() -> None:
    # The engine sends in bursts: wrk2's p95 of an answer of 200 ms is up to 257 ms.
    bursts = times(215, 257)
    found = judged(seen(*AT_THE_KNEE), **KNEE, corrected=bursts, raw=bursts)
    assert (found.bottleneck, found.strength) == ("none", WEAK)
    assert "in 215 ms on average, 200 ms expected, with worker pool full" in found.sentence
    early = times(203, 257)
    found = judged(seen(*AT_THE_KNEE), **KNEE, corrected=early, raw=early)
    assert (found.bottleneck, found.strength) == ("none", STRONG)


def test_the_load_s_connections_are_a_rival_of_full_cpus_where_answers_are_in_time() -> None:
    # 900 connections / 0.205 s = 4,390 of 4,950 req/s: no server could have had more of them.
    found = judged(
        seen(), rps=4390, concurrency=900, offered_rps=4950, usage=Usage(1, 1, 0.96, 0, 0.1, 9000),
        corrected=times(2000, 3900), raw=times(205, 215),
    )  # fmt: skip
    assert (found.strength, "full as well" in found.sentence) == (WEAK, True)


def test_what_waits_in_the_generator_counts() -> None:
    found = judged(seen(), **KNEE, corrected=times(420, 615), raw=times(200, 210))
    assert found.bottleneck != "none"


def test_late_answers_that_nothing_full_explains_are_unknown() -> None:
    slow = times(420, 615)
    found = judged(seen(), **KNEE, corrected=slow, raw=slow)
    assert (found.bottleneck, found.strength) == ("unknown", "")
    assert "982 req/s are 100% of the rate offered; an answer took 420 ms" in found.sentence


def test_a_backlog_that_grows_is_not_none() -> None:
    found = judged(seen(in_flight(200, 260)), **KNEE)
    assert found.bottleneck == "unknown"
    assert "held 200 requests in the first half of the window and 260 in the second" in (
        found.sentence
    )
    # Those that wait for a worker count, and a pool that is full is named.
    queue = gauge_of("lab_worker_pool_queue_depth", 10, 90, server=SERVER)
    found = judged(seen(*AT_THE_KNEE, queue), **KNEE)
    assert (found.bottleneck, found.strength) == ("worker pool", STRONG)
    assert judged(seen(in_flight(200, 230)), **KNEE).bottleneck == "none"


def test_one_pause_is_no_growth() -> None:
    pause = Series(
        {"__name__": "lab_http_requests_in_flight", **REQUEST},
        TIMES,
        tuple(2000.0 if at == 1008 else 200.0 for at in TIMES),
    )
    assert judged(seen(pause), **KNEE).bottleneck == "none"


def test_without_an_expectation_none_is_weak_and_says_why() -> None:
    at_once = times(0.9, 2)
    found = judged(seen(), **KNEE, route="/compute", corrected=at_once, raw=at_once)
    assert (found.bottleneck, found.strength) == ("none", WEAK)
    assert "how long an answer takes when nothing waits" in found.missing[0]
    cost = Demand(10, 1000, 0.0005, 0.0006)
    known = judged(seen(), **KNEE, route="/compute", corrected=at_once, raw=at_once, demand=cost)
    assert (known.bottleneck, known.strength) == ("none", STRONG)
    late = times(30, 90)
    late_found = judged(seen(), **KNEE, route="/compute", corrected=late, raw=late, demand=cost)
    assert late_found.bottleneck == "unknown"


def test_a_closed_load_needs_no_latency_because_its_rate_tells_it() -> None:
    found = judged(seen(), rps=940, raw=times(213, 700))
    assert (found.bottleneck, found.strength) == ("none", STRONG)


def tied(
    raw_ms: float, *series: Series, busy: float = 0.4, rps: float | None = None, n: int = 1100
) -> Verdict:
    """4,950 req/s over connections that are all busy: by Little's law N / R are answered."""
    return judged(
        seen(*series),
        rps=rps or n * 1000 / raw_ms,
        offered_rps=4950,
        concurrency=n,
        raw=latency(raw_ms),
        corrected=latency(raw_ms + 2000),
        usage=Usage(1.0, 1.0, busy, 0.0, 8.0, 1000),
    )


def test_connections_that_are_all_busy_with_answers_in_time_are_the_limit() -> None:
    found = tied(205, n=900)
    assert (found.bottleneck, found.strength) == ("connections of the load", STRONG)
    assert found.sentence == (
        "the connections of the load: 900 of 900 busy, 8,780 requests waiting for one in the "
        "generator; 900 / 0.205 s = 4,390 req/s of 4,950 offered"
    )
    (own,) = (one for one in found.ranked if one.resource == "connections of the load")
    assert (own.utilisation, own.waiting) == (1.0, "requests")
    assert own.saturation == pytest.approx(8780, abs=1)


def test_busy_connections_come_before_a_machine_that_is_not_full() -> None:
    # virtual-threads: 1,100 connections got 3,856 req/s at 85 % CPU, and 2,000 got 6,223.
    found = tied(285.3, busy=0.85)
    assert (found.bottleneck, found.strength) == ("connections of the load", WEAK)
    assert "took 285 ms instead of 200 ms on CPUs that were 85% busy" in found.sentence
    assert tied(285.3, busy=0.97).bottleneck == "host CPU"


def test_connections_that_something_unseen_keeps_busy_are_not_the_limit() -> None:
    # A lock in the server: answers are late on idle CPUs, and no resource is full.
    found = tied(400)
    assert (found.bottleneck, found.strength) == ("unknown", "")


def test_a_full_resource_explains_busy_connections() -> None:
    found = tied(1100, *pool(200, 900, 0.2))
    assert (found.bottleneck, found.strength) == ("worker pool", STRONG)
    assert "full as well" not in found.sentence


def test_connections_that_were_free_are_not_the_limit() -> None:
    found = tied(200, rps=3000)
    assert found.bottleneck == "unknown"


def test_toxics_that_keep_the_connections_of_an_open_load_busy_are_the_downstreams() -> None:
    slow = ToxicState(("downstream/l latency latency=800",), 800.0)
    late = latency(1000)
    overload = judged(
        seen(), rps=990, offered_rps=4500, concurrency=1000, toxics=slow, raw=late, corrected=late
    )
    assert (overload.bottleneck, overload.strength) == ("downstream", STRONG)
    answered = judged(
        seen(), rps=899, offered_rps=900, concurrency=1000, toxics=slow, raw=late, corrected=late
    )
    assert (answered.bottleneck, answered.strength) == ("none", STRONG)
