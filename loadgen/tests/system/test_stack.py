"""What the clients of the lab's parts read of their answers."""

from collections.abc import Callable
from datetime import timedelta

import httpx
import pytest
from msgspec.structs import asdict

from lab.errors import LabUnreachable, Refused
from lab.system.exporter import Exporter
from lab.system.management import Management
from lab.system.stack import Stack
from support.drawn_delay import SPREAD
from support.fakes import IDENTITY, START, FakeLab


def management(stack: Stack) -> Management:
    return Management(stack.http, "a")


def test_how_a_drawn_delay_spreads_is_read_back(lab: FakeLab) -> None:
    told = {name: value for name, value in asdict(SPREAD).items() if name != "words"}
    lab.drawn = {"delay_ms": SPREAD.words, "mean_ms": 200.0, **told}
    assert lab.stack.downstream.delay() == (200.0, SPREAD)
    del lab.drawn["p95_ms"]
    with pytest.raises(LabUnreachable, match=r"downstream: its delay is wrong: .* `p95_ms`"):
        lab.stack.downstream.delay()


def test_the_clock_of_prometheus_is_that_of_the_quickest_of_three_answers(lab: FakeLab) -> None:
    assert lab.stack.clocks("a", lab.system.now) == ()
    lab.ahead_s = 0.5
    # Asked and answered: after 1 s, 10 ms and 200 ms. Prometheus tells the same time each time.
    read = iter([0.0, 1.0, 0.1, 0.11, 0.3, 0.5])
    (clock,) = lab.stack.clocks("a", lambda: START + timedelta(seconds=next(read)))
    assert (clock.offset_s, clock.uncertainty_s) == pytest.approx((0.5 - 0.105, 0.005))


def test_on_several_machines_server_and_downstream_have_clocks() -> None:
    parts = {"a": -2.0, "downstream": 0.4}
    lab = FakeLab(several=True, ahead_s=0.1, parts_ahead_s=parts)
    clocks = lab.stack.clocks("a", lab.system.now)
    found = {clock.of: pytest.approx(clock.offset_s) for clock in clocks}
    assert found == {"Prometheus": 0.1, "the server": -2.0, "the downstream": 0.4}
    # A part that does not tell its time has none.
    clocks = lab.stack.clocks("b", lab.system.now)
    assert [clock.of for clock in clocks] == ["Prometheus", "the downstream"]
    alone = FakeLab(ahead_s=0.1, parts_ahead_s=parts)
    assert [clock.of for clock in alone.stack.clocks("a", alone.system.now)] == ["Prometheus"]


def test_a_pool_has_time_to_start_its_threads(lab: FakeLab) -> None:
    lab.patch_takes_s = 30.0
    management(lab.stack).change_knobs({"pool_size": 19_000})
    assert lab.patches == [("a", {"pool_size": 19_000})]
    # What a part refuses, it says in its own words.
    with pytest.raises(Refused, match=r"^b: 'pool_size' cannot be changed while this server runs"):
        Management(lab.stack.http, "b").change_knobs({"pool_size": 19_000})


IDENTIFIED = asdict(IDENTITY)
ONE = {"data": {"result": [{}]}}
WRONG: list[tuple[Callable[[Stack], object], object]] = [
    *((lambda of: management(of).routes(), IDENTIFIED | {"routes": r}) for r in (None, "/x", [1])),
    *((lambda of: management(of).identity(), body) for body in ({}, [], {"model": "a"})),
    (lambda of: management(of).identity(), IDENTIFIED | {"pid": "x"}),
    (lambda of: management(of).identity(), IDENTIFIED | {"max_heap_bytes": 10**400}),
    *((lambda of: of.prometheus.series("up[1m]", 60.0), body) for body in ({}, ONE)),
    (
        lambda of: of.prometheus.series("up[1m]", 60.0),
        {"data": {"result": [{"metric": {}, "values": [[1]]}]}},
    ),
    *((lambda of: of.prometheus.values("up", 1.0), body) for body in ({}, ONE)),
    *((lambda of: of.toxics(), body) for body in ([], {"a": 1}, {"a": {"name": "a"}})),
    *((lambda of: management(of).time_s(), {"unix_ms": at}) for at in (None, True)),
]


@pytest.mark.parametrize(("ask", "body"), WRONG)
def test_an_answer_of_another_shape_is_refused(
    ask: Callable[[Stack], object], body: object
) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=body))
    with pytest.raises(LabUnreachable, match=r"^(a|prometheus|toxiproxy): http://.* wrong "):
        ask(Stack("", transport))


def test_a_query_that_prometheus_refuses_is_one_line() -> None:
    refusal = httpx.Response(400, json={"status": "error", "error": "parse error"})
    stack = Stack("", httpx.MockTransport(lambda _: refusal))
    with pytest.raises(LabUnreachable, match="prometheus: it refused 'up': parse error"):
        stack.prometheus.values("up", 1.0)


def test_the_work_of_each_route_and_the_requests_in_flight_of_all(lab: FakeLab) -> None:
    lab.answered, lab.in_flight = lambda at: 40.0, 7
    work = management(lab.stack).work("/block?wait_ms=5")
    assert work.requests == 40
    assert work.buckets == ((0.2, 0.0), (0.21, 40.0), (float("inf"), 40.0))
    assert management(lab.stack).work("/nothing").requests == 0
    assert management(lab.stack).in_flight() == 7


def test_the_compiler_s_time_is_the_exporter_s_and_its_cpu_time_the_server_s(lab: FakeLab) -> None:
    lab.compiled_s = lambda at: 2.842
    exporter = Exporter(lab.stack.http, "a")
    assert exporter.compilation_s() == 2.842
    lab.no_exporter = True
    with pytest.raises(LabUnreachable, match="a: http://a:9404/metrics does not answer"):
        exporter.compilation_s()
    with pytest.raises(LabUnreachable, match="has no lab_thread_run_seconds_total"):
        management(lab.stack).jit()
    lab.jit_s = lambda at: (1.25, 0.5)
    assert management(lab.stack).jit() == (1.25, 0.5)
