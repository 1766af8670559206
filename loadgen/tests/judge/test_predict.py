"""What a load can have at most, and how long an answer takes."""

from copy import replace

import pytest

from lab.judge.predict import (
    AT_RANDOM,
    auto_rate_rps,
    hold_spread,
    hold_time_ms,
    predict,
    response_spread,
    response_time_ms,
)
from lab.model import TO_CALLED, TO_SERVER, Condition, Demand, Json, Line, Snapshot, ToxicState, Way
from lab.model.routes import parse
from support.drawn_delay import SPREAD
from support.fakes import IDENTITY, SETTINGS, snapshot


@pytest.mark.parametrize(
    ("settings", "offered", "rps", "resource"),
    [
        # 2000 connections / 0.2 s, no pool.
        ({"pool_size": None}, None, 10_000, "connections"),
        (SETTINGS, None, 1000, "worker pool"),
        ({"downstream_connections": 50}, None, 250, "downstream connections"),
        ({}, 900, 900, "offered load"),
    ],
)
def test_the_smallest_of_what_a_request_holds_bounds_the_load(
    settings: dict[str, Json], offered: int | None, rps: float, resource: str
) -> None:
    prediction = predict("/downstream", 2000, offered, snapshot(settings=settings))
    assert (prediction.rps, prediction.bounds[0].resource) == (rps, resource)


def test_arrivals_at_random_queue_below_every_bound_so_no_latency_is_predicted() -> None:
    even = predict("/downstream", 2000, 900, snapshot())
    at_random = predict("/downstream", 2000, 900, snapshot(), arrivals="poisson")
    assert even.expected_p95_ms == 200
    assert at_random.expected_p95_ms is None
    assert at_random.bounds == even.bounds
    assert at_random.text == f"{even.text}; p95 not predicted: {AT_RANDOM}"


def test_latency_toxics_are_part_of_the_response_time() -> None:
    slow = snapshot(toxics=ToxicState(("x",), added_latency_ms=300.0))
    assert response_time_ms(parse("/downstream"), slow) == 500
    assert predict("/downstream", 200, None, slow).rps == 400
    # They do not touch a route without downstream.
    state = ToxicState(("x",), added_latency_ms=300.0, unpredicted=("downstream",))
    slow = snapshot(toxics=state, settings={})
    assert (response_time_ms(parse("/"), slow), predict("/", 100, None, slow).rps) == (10, 10_000)


def test_on_several_machines_a_round_trip_of_each_way_is_part_of_the_response_time() -> None:
    far = snapshot(ways=(Way(TO_SERVER, 4.0, 1450), Way(TO_CALLED, 1.0)))
    assert response_time_ms(parse("/downstream"), far) == 205
    # Nobody holds a worker on the way to the generator.
    assert hold_time_ms(parse("/downstream"), far) == 201
    pool = predict("/downstream", 2000, None, far)
    assert (pool.bounds[0].resource, pool.rps) == ("worker pool", pytest.approx(200 / 0.201))
    few = predict("/downstream", 41, None, far)
    assert (few.bounds[0].resource, few.rps) == ("connections", pytest.approx(200))
    assert response_time_ms(parse("/?wait_ms=50"), far) == 54
    assert response_time_ms(parse("/compute"), far) == 0
    computes = predict("/compute", 1, 10, far, Demand(1, 10, Line(0.002), Line(0.003)))
    assert computes.expected_ms == pytest.approx(6)
    # What is measured anew each time is in no rate that two runs are to share.
    assert auto_rate_rps("/downstream", 2000, far) == auto_rate_rps("/downstream", 2000, snapshot())
    # The server's deadline knows nothing of the way to the generator.
    late = replace(far, spread=SPREAD, settings={"downstream_timeout_ms": 0})
    held = hold_spread(parse("/downstream"), late)
    assert held.p99_ms == SPREAD.p99_ms + 1
    drawn = response_spread(parse("/downstream"), replace(far, spread=SPREAD))
    assert drawn.p95_ms == SPREAD.p95_ms + 5


def test_auto_leaves_connections_to_spare_whatever_the_pool() -> None:
    # 2,000 / 1.2 / (2.5 × 0.2 s).
    assert auto_rate_rps("/downstream", 2000, snapshot()) == 3333
    assert auto_rate_rps("/downstream", 1, snapshot()) == 1
    # Fewer connections need more to spare: 100 are 74 and 3 √74.
    assert auto_rate_rps("/?wait_ms=50", 100, snapshot()) == 593
    for connections in (10, 100, 1000, 10_000):
        rate = auto_rate_rps("/downstream", connections, snapshot())
        # A server that is steady at 2.4 times R0 gets all of it over these connections.
        assert rate * 2.4 * 0.2 * 1.2 <= connections
    # It needs something that waits.
    assert auto_rate_rps("/downstream", 100, snapshot(downstream_delay_ms=0.0)) is None
    assert auto_rate_rps("/compute", 100, snapshot()) is None


@pytest.mark.parametrize(
    ("path", "connections", "bound"),
    [
        # 40 connections / the wait; the pool of 200 is larger.
        ("/block", 40, 40 / 0.3),
        ("/aggregate", 40, 40 / 0.3),
        ("/aggregate-old", 40, 40 / 0.3),
        ("/first-success", 40, 40 / 0.1),
        ("/aggregate-with-fallback", 40, 40 / 0.2),
        ("/multi-aggregate", 40, 40 / 0.3),
        ("/", 40, 40 / 0.01),
        # 200 threads / the wait.
        ("/block", 1000, 200 / 0.3),
        ("/block?wait_ms=100", 1000, 200 / 0.1),
        # A route that only computes has no bound.
        *((path, 40, None) for path in ("/compute", "/file", "/metrics", "/health")),
        ("/block?wait_ms=0", 40, None),
    ],
)
def test_waits_bound_a_route(path: str, connections: int, bound: float | None) -> None:
    found = predict(path, connections, None, snapshot()).rps
    assert found == (bound and pytest.approx(bound))
    if bound is None:
        # An open load still has what is offered.
        assert predict(path, connections, 100, snapshot()).rps == 100


def loops(count: int, blocked: bool | str) -> Snapshot:
    return snapshot(settings={"pool_size": None, "loops": count, "block_the_loop": blocked})


@pytest.mark.parametrize(
    ("path", "count", "blocked", "bound", "resource"),
    [
        ("/", 1, True, 100, "event loop"),
        ("/", 2, True, 200, "event loop"),
        ("/block", 1, True, 1 / 0.3, "event loop"),
        ("/first-success", 1, True, 10, "event loop"),
        ("/aggregate-with-fallback", 1, True, 1 / 0.3, "event loop"),
        # Three waits of 300 ms, one after the other.
        ("/multi-aggregate", 1, True, 1 / 0.9, "event loop"),
        # A call of the downstream blocks no loop, and a timer does not.
        ("/downstream", 1, True, 5000, "connections"),
        ("/", 1, False, 100_000, "connections"),
    ],
)
def test_blocking_loops_are_bounded_by_their_number(
    path: str, count: int, blocked: bool, bound: float, resource: str
) -> None:
    prediction = predict(path, 1000, None, loops(count, blocked=blocked))
    assert prediction.rps == pytest.approx(bound)
    assert prediction.bounds[0].resource == resource
    assert blocked or len(prediction.bounds) == 1


def test_loops_that_compute_instead_of_waiting_are_bounded_by_the_cpus_too() -> None:
    # 2 CPUs / 10 ms; a third loop has none of its own.
    for count, rps, resource in ((1, 100, "event loop"), (3, 200, "server CPU")):
        prediction = predict("/", 1000, None, loops(count, blocked="spin"))
        assert (prediction.rps, prediction.bounds[0].resource) == (rps, resource)
        assert not prediction.bounds[0].estimate
    # What a request computes is its wait, and counts once.
    spent = Demand(1, 100, Line(0.011), Line(0.011))
    assert predict("/", 5, 20, loops(1, blocked="spin"), spent).expected_ms == pytest.approx(11)


@pytest.mark.parametrize(
    ("jdk", "pool", "rps"),
    [
        # Two carriers, each kept for 200 ms.
        ("21.0.8+9", None, 10),
        ("23", None, 10),
        ("24", None, 5000),
        ("25.0.1-ea", None, 5000),
        # Threads of a pool have no carrier.
        ("21.0.8+9", 200, 1000),
    ],
)
def test_synchronized_keeps_a_carrier_before_jdk_24(jdk: str, pool: int | None, rps: float) -> None:
    settings = {"pool_size": pool, "virtual_thread_parallelism": 2}
    before = snapshot(identity=replace(IDENTITY, jdk=jdk), settings=settings)
    prediction = predict("/synchronized", 1000, None, before)
    assert prediction.rps == rps
    assert (prediction.bounds[0].resource == "carrier threads") == (rps == 10)
    assert predict("/downstream", 1000, None, before).rps == (1000 if pool else 5000)
    # Nor has a platform thread per connection.
    settings = {**before.settings, "connection_threads": "platform"}
    platform = replace(before, settings=settings)
    assert predict("/synchronized", 1000, None, platform).rps == (1000 if pool else 5000)


LIGHT = Demand(100, 2000, Line(0.0005), Line(0.0008))


def test_demand_bounds_by_the_cpus_as_an_estimate() -> None:
    # Without a pool: 10,000 by connections; 2 / 0.5 ms = 4,000; 3 / 0.8 ms = 3,750.
    prediction = predict("/downstream", 2000, None, snapshot(settings={}), LIGHT, 3)
    assert [(bound.resource, bound.rps, bound.estimate) for bound in prediction.bounds] == [
        ("host CPU", pytest.approx(3750), True),
        ("server CPU", pytest.approx(4000), True),
        ("connections", 10_000, False),
    ]
    # Only what is hard makes a trial invalid.
    assert prediction.rps == 10_000
    # 2000 / 3750.
    assert prediction.expected_p95_ms == pytest.approx(533.3, abs=0.1)
    assert prediction.text == (
        "≤ 10,000 req/s (connections: 2000 / 0.2 s); "
        "host CPU ≈ 3,800 req/s (extrapolated: 3 / 0.8 ms); "
        "server CPU ≈ 4,000 req/s (extrapolated: 2 / 0.5 ms)"
    )


def test_the_cost_falls_with_the_rate_along_a_line() -> None:
    line = Line(b=0.0002, a=0.4, rates=5, low=500)
    demand = replace(LIGHT, server=line, host=None)
    found = predict("/downstream", 2000, None, snapshot(settings={}), demand, 3)
    # (2 - 0.4) / 0.2 ms.
    assert found.bounds[0].rps == pytest.approx(8000)
    assert found.bounds[0].formula == "(2 - 0.4) / 0.2 ms"
    for offered, cost_ms in ((2000, 0.4), (500, 1.0), (100, 1.0)):
        open_load = predict("/downstream", 2000, offered, snapshot(settings={}), demand, 3)
        assert open_load.expected_ms == pytest.approx(200 + cost_ms), offered
    # More than all CPUs at no load at all bounds nothing.
    none = replace(demand, server=Line(b=0.0002, a=2.5))
    bounds = predict("/downstream", 2000, None, snapshot(settings={}), none, 3).bounds
    assert [bound.resource for bound in bounds] == ["connections"]


def test_a_quota_of_the_trial_is_less_than_the_whole_cpu_that_the_jvm_counts() -> None:
    limited = Condition(host={"SERVER_CPUS": "0.4"})
    prediction = predict("/", 2000, None, snapshot(), LIGHT, 2, limited)
    assert prediction.bounds[0].formula == "0.4 / 0.5 ms"
    assert prediction.bounds[0].rps == pytest.approx(800)
    # That of .env is read back from the server's container.
    seen = snapshot(settings={**SETTINGS, "cpu_quota": 0.5})
    assert predict("/", 2000, None, seen, LIGHT, 2).bounds[0].formula == "0.5 / 0.5 ms"
    # CPUs that a spinner takes are not there.
    for condition, rps in ((Condition(), 2500), (Condition(spin=0.2), 2000)):
        found = predict("/downstream", 200, None, snapshot(), LIGHT, 2, condition)
        bounds = {bound.resource: bound.rps for bound in found.bounds}
        assert bounds["host CPU"] == pytest.approx(rps)


def test_a_route_that_only_computes_is_bound_by_what_is_measured() -> None:
    slow = replace(LIGHT, server=Line(0.01), host=None)
    prediction = predict("/compute", 1, None, snapshot(), slow, 2)
    assert prediction.rps is None
    # One connection keeps one CPU busy.
    assert (prediction.bounds[0].resource, prediction.bounds[0].rps) == ("connections", 100)
    assert prediction.expected_p95_ms == pytest.approx(10)
    assert predict("/compute", 40, None, snapshot(), slow, 2).expected_p95_ms == pytest.approx(200)


@pytest.mark.parametrize(
    ("offered", "demand", "expected_ms"),
    [
        (900, None, 200.0),
        (900, LIGHT, 200.5),
        (1000, LIGHT, None),  # the pool's bound
        (1000, None, None),
    ],
)
def test_below_its_bound(offered: int, demand: Demand | None, expected_ms: float | None) -> None:
    found = predict("/downstream", 2000, offered, snapshot(), demand, 2).expected_p95_ms
    assert found == (None if expected_ms is None else pytest.approx(expected_ms))


def test_nothing_is_expected_with_a_caveat() -> None:
    cut = snapshot(toxics=ToxicState(("x",), unpredicted=("downstream/reset_peer",)))
    prediction = predict("/downstream", 200, None, cut, LIGHT, 2)
    assert (prediction.rps, prediction.holding, prediction.expected_p95_ms) == (None, (), None)
    assert prediction.text == "none: no bound covers downstream/reset_peer"
    nothing = predict("/compute", 1, None, cut)
    assert nothing.text == "none: nothing that is known bounds this load"
