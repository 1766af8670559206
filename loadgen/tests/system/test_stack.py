"""What the clients of the lab's parts read of their answers."""

import dataclasses
from collections.abc import Callable
from datetime import timedelta

import httpx
import pytest

from lab.errors import LabUnreachable
from lab.model import TO_CALLED, TO_SERVER, ToxicState, Way
from lab.model.knobs import DIRECT, PROXIED
from lab.system.network import Reached
from lab.system.stack import Stack, Urls
from support.drawn_delay import SPREAD
from support.fakes import IDENTITY, SETTINGS, START, FakeLab, toxic


def stack_of(body: object) -> Stack:
    """A lab whose every part answers with this."""
    return Stack(Urls.read({}), httpx.MockTransport(lambda _: httpx.Response(200, json=body)))


def test_a_snapshot_reads_everything_back(lab: FakeLab) -> None:
    lab.toxics = [toxic("slow")]
    snapshot = lab.stack.snapshot("a")
    assert snapshot.identity == IDENTITY
    assert snapshot.settings == SETTINGS
    assert snapshot.downstream_delay_ms == 200
    assert snapshot.toxics.added_latency_ms == 300
    assert "latency=300" in snapshot.toxics.in_force[0]
    lab.down.add("b")
    with pytest.raises(LabUnreachable, match="b: http://b:8081/identity does not answer"):
        lab.stack.snapshot("b")


def test_how_a_drawn_delay_spreads_is_read_back(lab: FakeLab) -> None:
    told = {name: value for name, value in dataclasses.asdict(SPREAD).items() if name != "words"}
    lab.drawn = {"delay_ms": SPREAD.words, "mean_ms": 200.0, **told}
    snapshot = lab.stack.snapshot("a")
    assert (snapshot.downstream_delay_ms, snapshot.spread) == (200.0, SPREAD)
    assert snapshot.delay_words == "lognormal:mean=200,p99=800"
    del lab.drawn["p95_ms"]
    with pytest.raises(LabUnreachable, match="holds no p95_ms"):
        lab.stack.snapshot("a")


def test_toxics_are_in_force_for_a_server_that_calls_through_toxiproxy(lab: FakeLab) -> None:
    lab.enabled = False
    toxics = lab.stack.toxics()
    assert (toxics.in_force, toxics.unpredicted) == (("downstream down",), ("downstream",))
    lab.toxics = [toxic("slow")]
    lab.settings["a"] = {"downstream_url": DIRECT}
    lab.settings["b"] = {"downstream_url": PROXIED}
    assert lab.stack.snapshot("a").toxics == ToxicState()
    assert lab.stack.snapshot("b").toxics == lab.stack.toxics() != ToxicState()


def test_the_clock_of_prometheus_is_that_of_the_quickest_of_three_answers(lab: FakeLab) -> None:
    assert lab.stack.clocks("a", lab.system.now) == ()
    lab.ahead_s = 0.5
    # Asked and answered: after 1 s, 10 ms and 200 ms. Prometheus tells the same time each time.
    read = iter([0.0, 1.0, 0.1, 0.11, 0.3, 0.5])
    (clock,) = lab.stack.clocks("a", lambda: START + timedelta(seconds=next(read)))
    assert (clock.offset_s, clock.uncertainty_s) == pytest.approx((0.5 - 0.105, 0.005))


def test_on_several_machines_server_and_downstream_have_clocks() -> None:
    lab = FakeLab(several=True, ahead_s=0.1, parts_ahead_s={"a": -2.0, "downstream": 0.4})
    clocks = lab.stack.clocks("a", lab.system.now)
    assert [(clock.of, pytest.approx(clock.offset_s)) for clock in clocks] == [
        ("Prometheus", 0.1),
        ("the server", -2.0),
        ("the downstream", 0.4),
    ]
    # A part that does not tell its time has none.
    clocks = lab.stack.clocks("b", lab.system.now)
    assert [clock.of for clock in clocks] == ["Prometheus", "the downstream"]
    alone = FakeLab(ahead_s=0.1, parts_ahead_s={"a": -2.0})
    assert [clock.of for clock in alone.stack.clocks("a", alone.system.now)] == ["Prometheus"]


def test_on_several_machines_there_are_ways_between_them() -> None:
    lab = FakeLab(several=True, reached=Reached(0.3, 1450), round_trip_us=420)
    assert lab.stack.snapshot("a").ways == (Way(TO_SERVER, 0.3, 1450), Way(TO_CALLED, 0.42))
    unknown = FakeLab(several=True).stack.snapshot("a")
    assert unknown.ways == (Way(TO_SERVER), Way(TO_CALLED))
    assert unknown.way_ms(TO_CALLED) == 0
    assert FakeLab(reached=Reached(0.3, 1450), round_trip_us=420).stack.snapshot("a").ways == ()


def test_a_pool_has_time_to_start_its_threads(lab: FakeLab) -> None:
    lab.patch_takes_s = 30.0
    lab.stack.management.change_knobs("a", {"pool_size": 19_000})
    assert lab.patches == [("a", {"pool_size": 19_000})]


def test_a_route_is_checked() -> None:
    # An error may be the doing of a toxic.
    for status, warning in ((200, None), (504, "/downstream answers 504")):
        traffic = FakeLab(route_status=status).stack.traffic
        assert traffic.check_route("a", "/downstream") == warning
    another, missing = FakeLab(answering_model="b"), FakeLab(route_status=404)
    for lab, refusal in ((another, "answered by b"), (missing, "not served")):
        with pytest.raises(LabUnreachable, match=refusal):
            lab.stack.traffic.check_route("a", "/downstream")


IDENTIFIED = dataclasses.asdict(IDENTITY)
WRONG: dict[str, tuple[Callable[[Stack], object], list[object], str]] = {
    "routes": (
        lambda stack: stack.management.routes("a"),
        [{**IDENTIFIED, "routes": routes} for routes in (None, "/downstream", [1])],
        "a: its routes are wrong",
    ),
    "identity": (
        lambda stack: stack.management.identity("a"),
        [{}, [], {"model": "a"}, IDENTIFIED | {"pid": "x"}],
        "a: ",
    ),
    "series": (
        lambda stack: stack.prometheus.series("up[1m]", 60.0),
        [{}, {"data": {"result": [{}]}}, {"data": {"result": [{"metric": {}, "values": [[1]]}]}}],
        "prometheus: its answer to up",
    ),
    "values": (
        lambda stack: stack.prometheus.values("up", 1.0),
        [{}, {"data": {"result": [{}]}}, {"data": {"result": [{"metric": {}, "value": [1]}]}}],
        "prometheus: its answer to up",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_answer_of_another_shape_is_refused(case: str) -> None:
    ask, bodies, says = WRONG[case]
    for body in bodies:
        with pytest.raises(LabUnreachable, match=says):
            ask(stack_of(body))


def test_urls_come_from_the_environment() -> None:
    urls = Urls.read({"LAB_AGENT_URL": "http://x:1/"})
    assert urls.agent == "http://x:1"
    assert urls.toxiproxy == "http://toxiproxy:8475"


def test_the_work_of_each_route_and_the_requests_in_flight_of_all(lab: FakeLab) -> None:
    lab.answered, lab.in_flight = lambda at: 40.0, 7
    work = lab.stack.management.work("a", "/block?wait_ms=5")
    assert work.requests == 40
    assert work.buckets == ((0.2, 0.0), (0.21, 40.0), (float("inf"), 40.0))
    assert lab.stack.management.work("a", "/nothing").requests == 0
    assert lab.stack.management.in_flight("a") == 7


def test_the_compiler_s_time_is_the_exporter_s_and_its_cpu_time_the_server_s(lab: FakeLab) -> None:
    lab.compiled_s = lambda at: 2.842
    assert lab.stack.exporter.compilation_s("a") == 2.842
    lab.no_exporter = True
    with pytest.raises(LabUnreachable, match="a: http://a:9404/metrics does not answer"):
        lab.stack.exporter.compilation_s("a")
    with pytest.raises(LabUnreachable, match="has no lab_thread_run_seconds_total of the compiler"):
        lab.stack.management.jit("a")
    lab.jit_s = lambda at: (1.25, 0.5)
    assert lab.stack.management.jit("a") == (1.25, 0.5)
