import dataclasses
from datetime import timedelta
from typing import Any

import httpx
import pytest

from lab.errors import LabUnreachable
from lab.model import TO_CALLED, TO_SERVER, ToxicState, Way
from lab.model.knobs import DIRECT, PROXIED
from lab.system.network import Reached
from lab.system.stack import Stack, Urls
from support.drawn_delay import SPREAD
from support.fakes import IDENTITY, SETTINGS, START, FakeLab, toxic


def test_a_snapshot_reads_everything_back(lab: FakeLab) -> None:
    lab.toxics = [toxic("slow")]
    snapshot = lab.stack.snapshot("a")
    assert snapshot.identity == IDENTITY
    assert snapshot.settings == SETTINGS
    assert snapshot.downstream_delay_ms == 200
    assert snapshot.toxics.added_latency_ms == 300
    assert "latency=300" in snapshot.toxics.in_force[0]


def test_how_a_drawn_delay_spreads_is_read_back(lab: FakeLab) -> None:
    told = {name: value for name, value in dataclasses.asdict(SPREAD).items() if name != "words"}
    lab.drawn = {"delay_ms": SPREAD.words, "mean_ms": 200.0, **told}
    snapshot = lab.stack.snapshot("a")
    assert (snapshot.downstream_delay_ms, snapshot.spread) == (200.0, SPREAD)
    assert snapshot.delay_words == "lognormal:mean=200,p99=800"
    del lab.drawn["p95_ms"]
    with pytest.raises(LabUnreachable, match="holds no p95_ms"):
        lab.stack.snapshot("a")


def test_no_toxic_is_in_force_for_a_server_that_calls_past_toxiproxy(lab: FakeLab) -> None:
    lab.toxics, lab.enabled = [toxic("slow")], False
    lab.settings["a"] = {"downstream_url": DIRECT}
    lab.settings["b"] = {"downstream_url": PROXIED}
    assert lab.stack.snapshot("a").toxics == ToxicState()
    assert lab.stack.snapshot("b").toxics == lab.stack.toxics() != ToxicState()


def test_the_clock_of_prometheus_is_told_by_the_quickest_of_three_answers(lab: FakeLab) -> None:
    lab.ahead_s = 0.5
    # Asked and answered: after 1 s, 10 ms and 200 ms. Prometheus tells the same time each time.
    read = iter([0.0, 1.0, 0.1, 0.11, 0.3, 0.5])
    (clock,) = lab.stack.clocks("a", lambda: START + timedelta(seconds=next(read)))
    assert (clock.offset_s, clock.uncertainty_s) == pytest.approx((0.5 - 0.105, 0.005))


def test_of_a_prometheus_that_does_not_tell_its_time_there_is_no_clock(lab: FakeLab) -> None:
    assert lab.stack.clocks("a", lab.system.now) == ()


def on_several(**changes: Any) -> FakeLab:
    return FakeLab(several=True, **changes)


def test_on_several_machines_the_clocks_of_server_and_downstream_are_told_too() -> None:
    lab = on_several(ahead_s=0.1, parts_ahead_s={"a": -2.0, "downstream": 0.4})
    clocks = lab.stack.clocks("a", lab.system.now)
    assert [(one.of, pytest.approx(one.offset_s)) for one in clocks] == [
        ("Prometheus", 0.1),
        ("the server", -2.0),
        ("the downstream", 0.4),
    ]
    # Whoever does not tell its time has none.
    assert [one.of for one in lab.stack.clocks("b", lab.system.now)] == [
        "Prometheus",
        "the downstream",
    ]
    alone = FakeLab(ahead_s=0.1, parts_ahead_s={"a": -2.0})
    assert [one.of for one in alone.stack.clocks("a", alone.system.now)] == ["Prometheus"]


def test_on_several_machines_the_ways_between_them_are_told() -> None:
    lab = on_several(reached=Reached(0.3, 1450), round_trip_us=420)
    assert lab.stack.snapshot("a").ways == (Way(TO_SERVER, 0.3, 1450), Way(TO_CALLED, 0.42))
    # Nobody tells.
    assert on_several().stack.snapshot("a").ways == (Way(TO_SERVER), Way(TO_CALLED))
    assert on_several().stack.snapshot("a").way_ms(TO_CALLED) == 0
    assert FakeLab(reached=Reached(0.3, 1450), round_trip_us=420).stack.snapshot("a").ways == ()


def test_a_disabled_proxy_is_in_force_and_unpredicted(lab: FakeLab) -> None:
    lab.enabled = False
    toxics = lab.stack.toxics()
    assert toxics.in_force == ("downstream down",)
    assert toxics.unpredicted == ("downstream",)


def test_a_pool_has_time_to_start_its_threads(lab: FakeLab) -> None:
    lab.patch_takes_s = 30.0
    lab.stack.management.change_knobs("a", {"pool_size": 19_000})
    assert lab.patches == [("a", {"pool_size": 19_000})]


def test_a_server_that_is_down_is_named(lab: FakeLab) -> None:
    lab.down.add("b")
    with pytest.raises(LabUnreachable, match="b: http://b:8081/identity does not answer"):
        lab.stack.snapshot("b")


def test_the_right_server_answers_the_route(lab: FakeLab) -> None:
    assert lab.stack.traffic.check_route("a", "/downstream") is None


def test_another_server_on_the_name_is_refused(lab: FakeLab) -> None:
    lab.answering_model = "b"
    with pytest.raises(LabUnreachable, match="answered by b"):
        lab.stack.traffic.check_route("a", "/downstream")


def test_a_route_that_is_not_served_is_refused(lab: FakeLab) -> None:
    lab.route_status = 404
    with pytest.raises(LabUnreachable, match="not served"):
        lab.stack.traffic.check_route("a", "/downstream")


@pytest.mark.parametrize("routes", [None, "/downstream", [1]])
def test_routes_that_are_none_are_refused(routes: object) -> None:
    body = {**dataclasses.asdict(IDENTITY), "routes": routes}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=body))
    with pytest.raises(LabUnreachable, match="a: its routes are wrong"):
        Stack(Urls.read({}), transport).management.routes("a")


def test_an_error_status_may_be_the_toxics_doing(lab: FakeLab) -> None:
    lab.route_status = 504
    assert lab.stack.traffic.check_route("a", "/downstream") == "/downstream answers 504"


@pytest.mark.parametrize(
    "body", [{}, [], {"model": "a"}, dataclasses.asdict(IDENTITY) | {"pid": "x"}]
)
def test_an_identity_that_is_none_is_refused(body: object) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=body))
    with pytest.raises(LabUnreachable):
        Stack(Urls.read({}), transport).management.identity("a")


def test_an_answer_that_is_not_json_is_refused() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, text="<html>"))
    with pytest.raises(LabUnreachable, match="JSON object"):
        Stack(Urls.read({}), transport).management.settings("a")


def test_requests_in_flight_are_summed(lab: FakeLab) -> None:
    lab.in_flight = 7
    assert lab.stack.management.in_flight("a") == 7


def test_urls_come_from_the_environment() -> None:
    urls = Urls.read({"LAB_AGENT_URL": "http://x:1/"})
    assert urls.agent == "http://x:1"
    assert urls.toxiproxy == "http://toxiproxy:8475"


def test_the_work_of_one_route_and_of_no_other(lab: FakeLab) -> None:
    lab.answered = lambda at: 40.0
    work = lab.stack.management.work("a", "/block?wait_ms=5")
    assert work.requests == 40
    assert work.buckets == ((0.2, 0.0), (0.21, 40.0), (float("inf"), 40.0))
    assert lab.stack.management.work("a", "/nothing").requests == 0


def test_jit_compile_time_comes_from_the_exporter(lab: FakeLab) -> None:
    lab.compiled_s = lambda at: 2.842
    assert lab.stack.exporter.compilation_s("a") == 2.842
    lab.no_exporter = True
    with pytest.raises(LabUnreachable, match="a: http://a:9404/metrics does not answer"):
        lab.stack.exporter.compilation_s("a")


def test_the_cpu_time_of_the_compiler_comes_from_the_server_itself(lab: FakeLab) -> None:
    with pytest.raises(LabUnreachable, match="has no lab_jit_cpu_seconds_total"):
        lab.stack.management.jit("a")
    lab.jit_s = lambda at: (1.25, 0.5)
    assert lab.stack.management.jit("a") == (1.25, 0.5)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"data": {"result": [{}]}},
        {"data": {"result": [{"metric": {}, "values": [[1]], "value": [1]}]}},
    ],
)
def test_an_answer_that_holds_no_series_is_refused(body: object) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=body))
    prometheus = Stack(Urls.read({}), transport).prometheus
    for ask in (lambda: prometheus.series("up[1m]", 60.0), lambda: prometheus.values("up", 1.0)):
        with pytest.raises(LabUnreachable, match="prometheus: its answer to up"):
            ask()
