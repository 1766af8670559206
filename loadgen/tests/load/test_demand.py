"""A light load on a fake lab: what the counters show is a function of time."""

import dataclasses
from pathlib import Path

import pytest

from lab.errors import Interrupted
from lab.load.demand import IDLE_S, LEAD_EACH_S, LEAD_S, LIGHT_S, light_connections, measure_demand
from lab.model import Demand
from lab.system.stack import Stack
from support.fakes import FakeEngine, FakeLab, FakeSystem, plan


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "light-load"


@pytest.fixture
def lab(fake_lab: FakeLab) -> FakeLab:
    # Idle: 0.1 CPU seconds a second. From 2 s on 500 requests a second, of 1 ms each.
    fake_lab.answered = lambda at: 500 * max(0.0, at - IDLE_S)
    fake_lab.cpu_s = lambda at: 0.1 * at + 0.5 * max(0.0, at - IDLE_S)
    return fake_lab


def measured(
    stack: Stack,
    system: FakeSystem,
    engine: FakeEngine,
    raw: Path,
    route: str = "/downstream",
) -> Demand | None:
    of = dataclasses.replace(plan("open"), concurrency=20, route=route)
    return measure_demand(of, 20, engine, stack, system, raw, 4)


def test_what_a_request_costs_leaves_out_what_the_idle_lab_costs(
    stack: Stack, system: FakeSystem, engine: FakeEngine, lab: FakeLab, raw: Path
) -> None:
    system.at(IDLE_S, lambda: system.use(0.75))
    demand = measured(stack, system, engine, raw)
    # 4 CPUs, a quarter of them more than the half that was busy anyway: 1 s each second.
    assert demand == Demand(200, 2000, pytest.approx(0.001), pytest.approx(0.002))  # type: ignore[arg-type]
    assert system.elapsed_s == pytest.approx(IDLE_S + LEAD_S + 200 * LEAD_EACH_S + LIGHT_S, abs=0.5)
    assert system.processes[0].stopped_early
    assert not raw.exists()


def test_what_only_computes_gets_no_more_connections_than_its_trial(
    stack: Stack, system: FakeSystem, engine: FakeEngine, lab: FakeLab, raw: Path
) -> None:
    demand = measured(stack, system, engine, raw, "/compute")
    assert demand is not None
    assert demand.connections == 20


@pytest.mark.parametrize(
    ("route", "most", "connections"),
    [
        ("/downstream", 20, 200),
        ("/downstream", 500, 500),
        ("/downstream", 5000, 1000),
        ("/compute", 5000, 20),
    ],
)
def test_what_waits_is_loaded_like_the_largest_load_to_come_up_to_a_thousand(
    route: str, most: int, connections: int
) -> None:
    of = dataclasses.replace(plan("open"), concurrency=20, route=route)
    assert light_connections(of, most) == connections


def test_a_machine_that_seems_to_use_less_than_one_process_on_it_is_noise(
    stack: Stack, system: FakeSystem, engine: FakeEngine, lab: FakeLab, raw: Path
) -> None:
    system.at(IDLE_S, lambda: system.use(0.55))
    demand = measured(stack, system, engine, raw)
    assert demand is not None
    assert (demand.server_cpu_s, demand.host_cpu_s) == (pytest.approx(0.001), None)


def test_a_load_that_costs_no_more_than_idling_says_nothing_of_cpu(
    stack: Stack, system: FakeSystem, engine: FakeEngine, lab: FakeLab, raw: Path
) -> None:
    lab.cpu_s = lambda at: 0.1 * at
    demand = measured(stack, system, engine, raw)
    assert demand == Demand(200, 2000, None, None)


@pytest.mark.parametrize("why", ["few", "failed", "no exporter", "restarted", "ended"])
def test_what_cannot_be_told_is_none(
    stack: Stack, system: FakeSystem, engine: FakeEngine, lab: FakeLab, raw: Path, why: str
) -> None:
    if why == "few":
        lab.answered = lambda at: 12 * at
    elif why == "failed":
        lab.failed = lambda at: 0.06 * lab.answered(at)
    elif why == "no exporter":
        lab.no_exporter = True
    elif why == "restarted":
        lab.answered = lambda at: 500 * at if at < 5 else 0.0
    else:
        system.at(5.0, lambda: setattr(system.processes[0], "_length_s", 0.0))
    assert measured(stack, system, engine, raw) is None
    assert not raw.exists()


def test_an_interrupt_ends_the_load(
    stack: Stack, system: FakeSystem, engine: FakeEngine, lab: FakeLab, raw: Path
) -> None:
    system.interrupt_at = 3.0
    with pytest.raises(Interrupted):
        measured(stack, system, engine, raw)
    assert system.processes[0].stopped_early
    assert not raw.exists()
