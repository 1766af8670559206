"""Whether a load had all it can have, and loads whose own connections are the limit."""

import pytest

from lab.model import STRONG, Demand, Latency, Line, Series, ToxicState, Usage, Verdict
from support.fakes import latency
from support.series import CLOSES, OPENS, TIMES, gauge, mean_time
from support.windows import SERVER, Case, case, judged, named, pool, seen, standing


def times(mean_ms: float, p95_ms: float) -> Latency:
    """Latencies with this mean and p95."""
    return Latency(mean_ms, mean_ms, p95_ms, p95_ms, p95_ms)


def gauge_of(name: str, first: float, second: float, **labels: str) -> Series:
    """A gauge with one value in the first half of the window and one in the second."""
    middle = (OPENS + CLOSES) / 2
    values = tuple(first if at < middle else second for at in TIMES)
    return Series({"__name__": name, **labels}, TIMES, values)


REQUEST = {"server": SERVER, "route": "/downstream"}


def in_flight(first: float, second: float) -> Series:
    return gauge_of("lab_http_requests_in_flight", first, second, **REQUEST)


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
    assert found.shares["worker pool"] > 0.9


JITTER = ToxicState(("downstream/l latency latency=40 jitter=40",), 40.0, jittered=True)
SLOW = {"corrected": times(420, 615), "raw": times(420, 615)}
TAIL = {"corrected": times(240, 615), "raw": times(240, 615)}
# The engine sends in bursts: wrk2's p95 of an answer of 200 ms is up to 257 ms.
BURSTS = {"corrected": times(215, 257), "raw": times(215, 257)}
EARLY = {"corrected": times(203, 240), "raw": times(203, 240)}
AT_ONCE = {"route": "/compute", "corrected": times(0.9, 2), "raw": times(0.9, 2)}
LATE = {"route": "/compute", "corrected": times(30, 90), "raw": times(30, 90)}
COST = Demand(10, 1000, Line(0.0005), Line(0.0006))


@pytest.mark.parametrize(
    "line",
    [
        # Toxics with jitter make tails.
        case("late tail, full pool", *AT_THE_KNEE, **KNEE, **TAIL).gives("worker pool", STRONG),
        case("late tail by jitter", **KNEE, **TAIL, toxics=JITTER).gives("none", STRONG),
        case("nearly in time, full pool", *AT_THE_KNEE, **KNEE, **BURSTS).gives(
            "worker pool", STRONG
        ),
        case("in time, full pool", *AT_THE_KNEE, **KNEE, **EARLY).gives("none", STRONG),
        case("late, nothing full", **KNEE, **SLOW).gives("unknown"),
        # Connections are free, and what is due waits.
        case("late in the generator", **KNEE, corrected=times(420, 615), raw=times(200, 210)).gives(
            "generator", STRONG
        ),
        case("known cost", **KNEE, **AT_ONCE, demand=COST).gives("none", STRONG),
        case("known cost, late", **KNEE, **LATE, demand=COST).gives("unknown"),
        # 13 ms above R0 are 6.5 % of the rate.
        case("closed load", rps=940, raw=times(213, 700)).gives("unknown"),
    ],
)
def test_a_load_had_all_it_can_have_or_not(line: Case) -> None:
    line.check()


def test_without_a_fitted_cost_the_trial_s_own_cpu_time_is_what_computing_takes() -> None:
    found = judged(seen(), **KNEE, **AT_ONCE)
    assert (found.bottleneck, found.strength) == ("none", STRONG)
    assert found.excess.r0_ms == pytest.approx(1000 * 0.5 / 982)


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
    own = standing(found, "connections of the load")
    assert (own.use, own.capacity) == (pytest.approx(900), 900)
    assert own.share == pytest.approx(200 / 205, abs=0.01)


def test_connections_that_would_do_were_answers_in_time_are_not_the_limit() -> None:
    # virtual-threads: 1,100 connections got 3,856 req/s at 85 % CPU, and 2,000 got 6,223. 990 of
    # them are busy where an answer takes 200 ms.
    assert tied(285.3, busy=0.85).bottleneck == "unknown"
    assert tied(285.3, busy=0.97).bottleneck == "host CPU"


def test_connections_that_are_free_or_kept_by_something_else_are_not_the_limit() -> None:
    # A lock in the server: answers are late on idle CPUs, and no resource is full.
    assert tied(400).bottleneck == "unknown"
    # What is due waits although some are free: the generator waited for a CPU for 8 of its 9 s.
    assert tied(200, rps=3000).bottleneck == "host CPU"
    full_pool = tied(1100, *pool(200, 900, 0.2))
    assert (full_pool.bottleneck, full_pool.strength) == ("worker pool", STRONG)


@pytest.mark.parametrize(("rps", "rate", "name"), [(990, 4500, "downstream"), (899, 900, "none")])
def test_toxics_keep_connections_busy(rps: float, rate: int, name: str) -> None:
    slow = ToxicState(("downstream/l latency latency=800",), 800.0)
    late = {"raw": latency(1000), "corrected": latency(1000)}
    load = {"rps": rps, "offered_rps": rate, "concurrency": 1000}
    assert named(seen(), toxics=slow, **load, **late) == (name, STRONG)
