"""What a load can have at most, and how long an answer takes."""

from copy import replace
from typing import Any

import pytest

from lab.judge.predict import (
    Prediction,
    auto_rate_rps,
    hold_spread,
    hold_time_ms,
    is_covered,
    predict,
    response_spread,
    response_time_ms,
)
from lab.model import (
    TO_CALLED,
    TO_SERVER,
    Condition,
    Demand,
    Exported,
    Json,
    Line,
    Snapshot,
    ToxicState,
    Way,
)
from lab.model.routes import parse
from support.drawn_delay import LATENCY_300, SPREAD, drawn
from support.fakes import IDENTITY, SETTINGS, snapshot
from support.foreign import JVM, foreign

CALL = parse("/downstream")
SLOW = ToxicState(("x",), added_latency_ms=300.0)
RESETS = ToxicState(("x",), added_latency_ms=300.0, unpredicted=("downstream",))
FAR = snapshot(ways=(Way(TO_SERVER, 4.0, 1450), Way(TO_CALLED, 1.0)))
NO_POOL = {"pool_size": None}


def of(**settings: Json) -> Snapshot:
    return snapshot(settings=settings)


def loops(count: int, blocked: bool | str) -> Snapshot:
    return of(pool_size=None, loops=count, block_the_loop=blocked)


def jdk(version: str, pool: int | None, **settings: Json) -> Snapshot:
    known = {"pool_size": pool, "virtual_thread_parallelism": 2, **settings}
    return snapshot(identity=replace(IDENTITY, jdk=version), settings=known)


# (path, connections, the rate offered, the server, bound, the resource that binds)
BOUNDS: list[tuple[str, int, int | None, Snapshot, float | None, str]] = [
    # 2000 connections / 0.2 s, no pool.
    ("/downstream", 2000, None, of(pool_size=None), 10_000, "connections"),
    ("/downstream", 2000, None, snapshot(), 1000, "worker pool"),
    ("/downstream", 2000, None, of(downstream_connections=50), 250, "downstream connections"),
    ("/downstream", 2000, 900, of(), 900, "offered load"),
    ("/downstream", 200, None, snapshot(toxics=SLOW), 400, "connections"),
    # Toxics do not touch a route without downstream.
    ("/", 100, None, snapshot(toxics=RESETS, settings={}), 10_000, "connections"),
    # On several machines a round trip of each way; nobody holds a worker on the way to the
    # generator.
    ("/downstream", 2000, None, FAR, 200 / 0.201, "worker pool"),
    ("/downstream", 41, None, FAR, 200, "connections"),
    # 40 connections / the wait; the pool of 200 is larger.
    ("/block", 40, None, snapshot(), 40 / 0.3, "connections"),
    ("/aggregate", 40, None, snapshot(), 40 / 0.3, "connections"),
    ("/first-success", 40, None, snapshot(), 40 / 0.1, "connections"),
    ("/aggregate-with-fallback", 40, None, snapshot(), 40 / 0.2, "connections"),
    ("/multi-aggregate", 40, None, snapshot(), 40 / 0.3, "connections"),
    ("/", 40, None, snapshot(), 40 / 0.01, "connections"),
    # 200 threads / the wait.
    ("/block", 1000, None, snapshot(), 200 / 0.3, "worker pool"),
    ("/block?wait_ms=100", 1000, None, snapshot(), 200 / 0.1, "worker pool"),
    # A route that only computes has no bound but what is offered.
    *((path, 40, None, snapshot(), None, "")
      for path in ("/compute", "/file", "/metrics", "/health", "/block?wait_ms=0")),
    ("/compute", 40, 100, snapshot(), 100, "offered load"),
    # Loops that wait by blocking are bounded by their number.
    ("/", 1000, None, loops(1, True), 100, "event loop"),
    ("/", 1000, None, loops(2, True), 200, "event loop"),
    ("/block", 1000, None, loops(1, True), 1 / 0.3, "event loop"),
    ("/first-success", 1000, None, loops(1, True), 10, "event loop"),
    ("/aggregate-with-fallback", 1000, None, loops(1, True), 1 / 0.3, "event loop"),
    # Three waits of 300 ms, one after the other.
    ("/multi-aggregate", 1000, None, loops(1, True), 1 / 0.9, "event loop"),
    # A call of the downstream blocks no loop, and a timer does not.
    ("/downstream", 1000, None, loops(1, True), 5000, "connections"),
    ("/", 1000, None, loops(1, False), 100_000, "connections"),
    # Loops that compute instead of waiting are bounded by the CPUs too: a third one has none.
    ("/", 1000, None, loops(1, "spin"), 100, "event loop"),
    ("/", 1000, None, loops(3, "spin"), 200, "server CPU"),
    # `synchronized` keeps a carrier before JDK 24: two carriers, each kept for 200 ms.
    ("/synchronized", 1000, None, jdk("21.0.8+9", None), 10, "carrier threads"),
    ("/synchronized", 1000, None, jdk("23", None), 10, "carrier threads"),
    ("/synchronized", 1000, None, jdk("24", None), 5000, "connections"),
    ("/synchronized", 1000, None, jdk("25.0.1-ea", None), 5000, "connections"),
    ("/downstream", 1000, None, jdk("21.0.8+9", None), 5000, "connections"),
    # Threads of a pool, and a platform thread per connection, have no carrier.
    ("/synchronized", 1000, None, jdk("21.0.8+9", 200), 1000, "worker pool"),
    ("/synchronized", 1000, None, jdk("21", None, connection_threads="platform"), 5000,
     "connections"),
    # What is drawn is held for its mean.
    ("/downstream", 400, None, drawn(), 1000, "worker pool"),
    ("/downstream", 100, None, drawn(), 500, "connections"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "connections", "offered", "server", "rps", "resource"), BOUNDS)
def test_the_smallest_of_what_a_request_holds_bounds_the_load(
    path: str, connections: int, offered: int | None, server: Snapshot, rps: float, resource: str
) -> None:
    found = predict(path, connections, offered, server)
    assert found.rps == (rps and pytest.approx(rps))
    assert [bound.resource for bound in found.bounds[:1]] == ([resource] if resource else [])
    assert not any(bound.estimate for bound in found.bounds)


def test_waits_are_part_of_the_response_time() -> None:
    assert response_time_ms(CALL, snapshot(toxics=SLOW)) == 500
    assert response_time_ms(parse("/"), snapshot(toxics=SLOW)) == 10
    assert (response_time_ms(CALL, FAR), hold_time_ms(CALL, FAR)) == (205, 201)
    assert response_time_ms(parse("/?wait_ms=50"), FAR) == 54
    assert response_time_ms(parse("/compute"), FAR) == 0
    # The server's deadline knows nothing of the way to the generator.
    late = replace(FAR, spread=SPREAD, settings={"downstream_timeout_ms": 0})
    assert hold_spread(CALL, late).p99_ms == SPREAD.p99_ms + 1
    assert response_spread(CALL, replace(FAR, spread=SPREAD)).p95_ms == SPREAD.p95_ms + 5


def test_auto_leaves_connections_to_spare_whatever_the_pool() -> None:
    # 2,000 / 1.2 / (2.5 × 0.2 s).
    assert auto_rate_rps("/downstream", 2000, snapshot()) == 3333
    assert auto_rate_rps("/downstream", 1, snapshot()) == 1
    # What is measured anew each time is in no rate that two runs are to share.
    assert auto_rate_rps("/downstream", 2000, FAR) == 3333
    # Fewer connections need more to spare: 100 are 74 and 3 √74.
    assert auto_rate_rps("/?wait_ms=50", 100, snapshot()) == 593
    for connections in (10, 100, 1000, 10_000):
        rate = auto_rate_rps("/downstream", connections, snapshot())
        # A server that is steady at 2.4 times R0 gets all of it over these connections.
        assert rate * 2.4 * 0.2 * 1.2 <= connections
    # It needs something that waits.
    assert auto_rate_rps("/downstream", 100, snapshot(downstream_delay_ms=0.0)) is None
    assert auto_rate_rps("/compute", 100, snapshot()) is None


# 0.5 ms of the server's CPU, and 0.8 of the host's.
LIGHT = Demand(100, 2000, Line(0.0005), Line(0.0008))
BENT = replace(LIGHT, server=Line(b=0.0002, a=0.4, rates=5, low=500), host=None)
HEAVY = replace(LIGHT, server=Line(0.01), host=None)
LIMITED = Condition(host={"SERVER_CPUS": "0.4"})
# What a request computes is its wait, and counts once.
SPENT = Demand(1, 100, Line(0.011), Line(0.011))


@pytest.mark.parametrize(
    ("load", "demand", "bounds", "expected_ms"),
    [
        # Without a pool: 10,000 by connections; 2 / 0.5 ms = 4,000; 3 / 0.8 ms = 3,750.
        (("/downstream", 2000, None, of()), LIGHT,
         {"host CPU": 3750, "server CPU": 4000, "connections": 10_000}, 2000 / 3.75),
        # The cost falls with the rate along a line: (2 - 0.4) / 0.2 ms.
        (("/downstream", 2000, None, of()), BENT, {"server CPU": 8000, "connections": 10_000}, 250),
        *((("/downstream", 2000, rate, of()), BENT, None, 200 + cost_ms)
          for rate, cost_ms in ((2000, 0.4), (500, 1.0), (100, 1.0))),
        # More than all CPUs at no load at all bounds nothing.
        (("/downstream", 2000, None, of()), replace(BENT, server=Line(0.0002, 2.5)),
         {"connections": 10_000}, None),
        # A quota is less than the whole CPU that the JVM counts: of the trial, or as read back.
        (("/", 2000, None, snapshot(), LIMITED), LIGHT, {"server CPU": 800}, None),
        (("/", 2000, None, of(**SETTINGS, cpu_quota=0.5)), LIGHT, {"server CPU": 1000}, None),
        # CPUs that a spinner takes are not there.
        (("/downstream", 200, None, snapshot(), Condition(spin=0.2)), LIGHT,
         {"host CPU": 3000}, None),
        # A route that only computes: one connection keeps one CPU busy.
        (("/compute", 1, None, snapshot()), HEAVY, {"connections": 100}, 10),
        (("/compute", 40, None, snapshot()), HEAVY, {"server CPU": 200}, 200),
        (("/compute", 1, 10, FAR), Demand(1, 10, Line(0.002), Line(0.003)), None, 6),
        (("/", 5, 20, loops(1, "spin")), SPENT, None, 11),
        # Below its bound, and at it.
        (("/downstream", 2000, 900, snapshot()), LIGHT, None, 200.5),
        (("/downstream", 2000, 1000, snapshot()), LIGHT, None, None),
    ],
)  # fmt: skip
def test_demand_bounds_by_the_cpus_as_an_estimate(
    load: tuple[Any, ...],
    demand: Demand,
    bounds: dict[str, float] | None,
    expected_ms: float | None,
) -> None:
    path, connections, offered, server, *condition = load
    found = predict(path, connections, offered, server, demand, 3, *condition)
    by_name = {bound.resource: bound.rps for bound in found.bounds}
    for name, rps in (bounds or {}).items():
        assert by_name[name] == pytest.approx(rps)
    # Only what is hard makes a trial invalid.
    hard = predict(path, connections, offered, server).rps
    assert found.rps == hard
    if expected_ms is not None or offered:
        assert found.expected_ms == (expected_ms and pytest.approx(expected_ms))
        assert found.expected_p95_ms == found.expected_ms


def tail(found: Prediction) -> tuple[Any, ...]:
    return found.expected_ms, found.expected_p95_ms


CHEAP = Demand(200, 4000, Line(0.0005), Line(0.0001))
JITTER = replace(LATENCY_300, jittered=True)


@pytest.mark.parametrize(
    ("load", "server", "more", "expected"),
    [
        # Arrivals at random queue below every bound.
        ((2000, 900), snapshot(), {"arrivals": "poisson"}, (None, None)),
        ((2000, 900), snapshot(), {}, (200, 200)),
        # The tail is that of the delay where nothing queues …
        ((200, None), drawn(), {}, (200, SPREAD.p95_ms)),
        ((200, None), drawn(pool=None), {}, (200, SPREAD.p95_ms)),
        # … with the CPU time of a request on top, and what toxics add to all alike.
        ((200, None), drawn(toxics=LATENCY_300), {"demand": CHEAP, "host_cores": 2},
         (500.5, SPREAD.p95_ms + 300.5)),
        ((400, None), drawn(), {}, (400, None)),
        # Delays that are all alike make all wait alike.
        ((400, None), snapshot(), {}, (400, 400)),
        ((200, None), drawn(toxics=JITTER), {}, (500, None)),
        ((200, None), snapshot(toxics=JITTER), {}, (500, None)),
        # 140 busy: 3 × √140 = 35.5 more there now and then.
        ((176, 700), drawn(pool=None), {}, (200, SPREAD.p95_ms)),
        ((175, 700), drawn(pool=None), {}, (200, None)),
        # The pool counts as well.
        ((1000, 700), drawn(pool=150), {}, (200, None)),
        ((175, 700), snapshot(), {}, (200, 200)),
        # Above the bound the queue grows without limit.
        ((1000, 1100), drawn(), {}, (None, None)),
    ],
)  # fmt: skip
def test_no_tail_is_predicted_where_requests_queue(
    load: tuple[int, int | None], server: Snapshot, more: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    found = tail(predict("/downstream", *load, server, **more))
    assert found == tuple(value and pytest.approx(value) for value in expected)
    # Jitter does not touch other routes.
    assert tail(predict("/block", 100, None, drawn(toxics=JITTER))) == (300, 300)


def until(ms: int, **changes: Any) -> Snapshot:
    return snapshot(settings={"downstream_timeout_ms": ms}, spread=replace(SPREAD, **changes))


# 0.9 % of a file's calls take 60 s, and most of its mean: without them it is far faster.
RARE = {"sd_ms": 5647.0, "longest_ms": 60_000.0}


@pytest.mark.parametrize(
    ("server", "covered"),
    [
        (until(700), False),
        # At most 4.8 % off the mean; at 801 ms it may be 5.2 %.
        (until(850), True),
        (until(801), False),
        (until(9000, **RARE), False),
        (until(60_000, **RARE), True),
        (snapshot(toxics=RESETS), False),
    ],
)
def test_what_no_bound_covers_leaves_no_prediction(server: Snapshot, covered: bool) -> None:
    found = predict("/downstream", 200, None, server)
    assert is_covered(parse("/block"), server)
    known = (found.rps, found.holding != (), found.expected_ms is not None)
    assert known == ((1000, True, True) if covered else (None, False, False))


# --- A service of the user's own: R0 and Z are measured. ------------------------------------------

MEASURED = Demand(200, 4000, None, Line(0.001), 200.0)
# R0 = 0.15 ms and Z = 0.05 ms: at most 10 / 0.2 ms = 50,000 req/s, and R = N / X - Z.
QUICK = Demand(10, 4000, None, None, 0.15, light_rps=50_000, think_ms=0.05)
SLOWER = Demand(10, 4000, None, None, 0.1, light_rps=24_000, think_ms=0.1)
OF_8 = replace(JVM, pool_size=8)


@pytest.mark.parametrize(
    ("connections", "offered", "exported", "demand", "bounds", "expected_ms"),
    [
        (400, None, JVM, MEASURED,
         {"worker pool": 1000, "connections": 2000, "host CPU": 2000}, 400),
        (400, 500, None, MEASURED,
         {"offered load": 500, "connections": 2000, "host CPU": 2000}, None),
        (400, None, None, None, {}, None),
        (10, None, None, QUICK, {"connections": 50_000}, 0.15),
        # A CPU that allows 20,000: 10 / 20,000 = 0.5 ms a cycle, 0.05 ms of it with the generator.
        (10, None, None, replace(QUICK, host=Line(0.0001)),
         {"host CPU": 20_000, "connections": 50_000}, 0.45),
        # A worker is not held while the generator thinks: 8 / 0.15 ms.
        (10, None, OF_8, QUICK, {"connections": 50_000, "worker pool": 53_333}, 0.15),
        # The light load had as much as Z leaves it: half of it, and not a quarter.
        (10, None, None, SLOWER, {}, None),
        (10, None, None, replace(SLOWER, light_rps=26_000), {"connections": 50_000}, 0.1),
        (20, None, None, Demand(20, 4000, None, None, 0.13, light_rps=9000), {}, None),
        (400, None, None, Demand(200, 4000, None, None, 200.0, light_rps=990),
         {"connections": 2000}, 200),
    ],
)  # fmt: skip
def test_all_but_what_is_offered_is_an_estimate(
    connections: int,
    offered: int | None,
    exported: Exported | None,
    demand: Demand | None,
    bounds: dict[str, float],
    expected_ms: float | None,
) -> None:
    found = predict("/x", connections, offered, foreign(exported), demand, 2)
    assert {bound.resource: round(bound.rps) for bound in found.bounds} == bounds
    assert [bound.resource for bound in found.bounds] == sorted(bounds, key=bounds.__getitem__)
    assert found.rps == offered
    assert found.expected_p95_ms == (expected_ms and pytest.approx(expected_ms))
