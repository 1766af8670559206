"""A light load on a fake lab: what the counters show is a function of time."""

import dataclasses
from pathlib import Path

import pytest

from lab.load.counters import Counters
from lab.load.demand import IDLE_S, LEAD_EACH_S, LEAD_S, LIGHT_S, light_connections, measure_demand
from lab.model import Demand, Line
from lab.system.host import HostCpu
from support.fakes import FakeLab, plan

# One rate, so no a.
LINE = Line(pytest.approx(0.001))


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "light-load"


@pytest.fixture
def lab(lab: FakeLab) -> FakeLab:
    # Idle: 0.1 CPU seconds a second. From 2 s on 500 requests a second, of 1 ms each.
    lab.answered = lambda at: 500 * max(0.0, at - IDLE_S)
    lab.cpu_s = lambda at: 0.1 * at + 0.5 * max(0.0, at - IDLE_S)
    return lab


def measured(lab: FakeLab, raw: Path) -> Demand | None:
    of = plan("open", concurrency=20)
    connections = light_connections(of, 20)
    return measure_demand(of, connections, lab.engine, lab.stack, lab.system, raw, 4)


def test_what_a_request_costs_leaves_out_what_the_idle_lab_costs(lab: FakeLab, raw: Path) -> None:
    lab.system.at(IDLE_S, lambda: lab.system.use(0.75))
    demand = measured(lab, raw)
    # 4 CPUs, a quarter of them more than the half that was busy anyway: 1 s each second.
    assert demand == Demand(200, 2000, LINE, Line(pytest.approx(0.002)))
    assert lab.system.elapsed_s == pytest.approx(
        IDLE_S + LEAD_S + 200 * LEAD_EACH_S + LIGHT_S, abs=0.5
    )
    assert lab.system.processes[0].stopped_early
    assert not raw.exists()


def test_what_other_machines_took_is_no_cost_of_a_request(
    lab: FakeLab, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.system.at(IDLE_S, lambda: lab.system.use(0.75))
    unstolen = lab.system.host_cpu

    def host_cpu() -> HostCpu:
        stolen, read = 0.1 * max(0.0, lab.system.elapsed_s - IDLE_S), unstolen()
        return dataclasses.replace(read, idle=read.idle - stolen, steal=stolen)

    monkeypatch.setattr(lab.system, "host_cpu", host_cpu)
    demand = measured(lab, raw)
    assert demand is not None
    assert demand.host == Line(pytest.approx(0.002))


def test_connections_of_a_light_load() -> None:
    cases = [("downstream", 20, 200), ("downstream", 500, 500), ("downstream", 5000, 1000)]
    for route, most, connections in (*cases, ("compute", 5000, 20)):
        of = plan("open", concurrency=20, route=f"/{route}")
        assert light_connections(of, most) == connections, (route, most)


def test_a_cost_that_is_noise_is_unknown(lab: FakeLab, raw: Path) -> None:
    # The machine seems to use less than one process on it does.
    lab.system.at(IDLE_S, lambda: lab.system.use(0.55))
    demand = measured(lab, raw)
    assert (demand.server, demand.host) == (LINE, None)
    # The load costs no more than idling.
    lab.cpu_s = lambda at: 0.1 * at
    assert measured(lab, raw) == Demand(200, 2000, None, None)


@pytest.mark.parametrize("why", ["few", "failed", "no exporter", "restarted", "ended"])
def test_what_cannot_be_told_is_none(lab: FakeLab, raw: Path, why: str) -> None:
    if why == "few":
        lab.answered = lambda at: 12 * at
    elif why == "failed":
        lab.failed = lambda at: 0.06 * lab.answered(at)
    elif why == "no exporter":
        lab.no_exporter = True
    elif why == "restarted":
        lab.answered = lambda at: 500 * at if at < 5 else 0.0
    else:
        lab.system.at(5.0, lambda: setattr(lab.system.processes[0], "_length_s", 0.0))
    assert measured(lab, raw) is None
    assert not raw.exists()


def test_a_load_that_was_there_already_is_not_made_again(lab: FakeLab, raw: Path) -> None:
    of = plan("open", concurrency=20)
    # 4 s at 500 requests of 1 ms a second, before this; since then the lab idles.
    lab.answered, lab.cpu_s = lambda _: 3000, lambda at: 3.0 + 0.1 * at
    work = lab.stack.management.work("a", "/downstream")
    before = dataclasses.replace(work, requests=1000.0)
    seen = (Counters(-4.0, None, 0.6, 1.0, before), Counters(0.0, None, 3.0, 1.0, work))
    demand = measure_demand(of, 200, lab.engine, lab.stack, lab.system, raw, 4, seen)
    # 2.4 CPU seconds, of which 0.4 are the idle lab's.
    assert demand == Demand(200, 2000, LINE, None)
    assert lab.system.processes == []
    assert lab.system.elapsed_s == pytest.approx(IDLE_S, abs=0.5)
