import pytest

from driver.fakes import snapshot
from lab.errors import WordError
from lab.predict import auto_rate_rps, predict, response_time_ms
from lab.types import ToxicState


def test_connections_bound_a_closed_load() -> None:
    # 2000 connections / 0.2 s, no pool.
    prediction = predict("/downstream", 2000, None, snapshot(settings={"pool_size": None}))
    assert prediction.rps == 10_000
    assert prediction.bounds[0].formula == "2000 / 0.2 s"


def test_the_pool_bounds_when_it_is_smaller() -> None:
    prediction = predict("/downstream", 2000, None, snapshot())
    assert prediction.rps == 1000
    assert prediction.bounds[0].resource == "worker pool"


def test_the_downstream_connection_cap_bounds_too() -> None:
    settings = {"pool_size": None, "downstream_connections": 50}
    prediction = predict("/downstream", 2000, None, snapshot(settings=settings))
    assert (prediction.rps, prediction.bounds[0].resource) == (250, "downstream connections")


def test_no_more_than_offered_is_answered() -> None:
    prediction = predict("/downstream", 2000, 900, snapshot(settings={}))
    assert (prediction.rps, prediction.bounds[0].resource) == (900, "offered load")


def test_latency_toxics_are_part_of_the_response_time() -> None:
    slow = snapshot(toxics=ToxicState(("x",), added_latency_ms=300.0))
    assert response_time_ms("/downstream", slow) == 500
    assert predict("/downstream", 200, None, slow).rps == 400


def test_toxics_do_not_touch_a_route_without_downstream() -> None:
    state = ToxicState(("x",), added_latency_ms=300.0, unpredicted=("downstream",))
    slow = snapshot(toxics=state, settings={})
    assert response_time_ms("/", slow) == 10
    assert predict("/", 100, None, slow).rps == 10_000


def test_toxics_that_cut_answers_leave_no_bound() -> None:
    cut = snapshot(toxics=ToxicState(("x",), unpredicted=("downstream/reset_peer",)))
    prediction = predict("/downstream", 200, None, cut)
    assert prediction.rps is None
    assert prediction.caveats == ("downstream/reset_peer",)


def test_auto_offers_ninety_percent_whatever_the_pool() -> None:
    assert auto_rate_rps("/downstream", 2000, snapshot()) == 9000
    assert auto_rate_rps("/downstream", 1, snapshot()) == 4
    assert auto_rate_rps("/?wait_ms=50", 100, snapshot()) == 1800


def test_auto_needs_something_that_waits() -> None:
    with pytest.raises(WordError, match="RATE=n"):
        auto_rate_rps("/downstream", 100, snapshot(downstream_delay_ms=0.0))
