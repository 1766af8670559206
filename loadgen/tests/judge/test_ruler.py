"""Demand as a line, costs in units of the control parts, another host, drift: the numbers."""

from collections.abc import Sequence
from copy import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from lab.judge.ruler import control_at, demand_of, drift, expected_rps, fit, in_units
from lab.model import Demand, InUnits, Line, Row
from support.fakes import plan
from support.planned import row
from support.system import START

# What the lab's parts use on a host, in CPU seconds per second: idle, and for each request.
CONTROL = Line(b=60e-6, a=0.2)
SERVER = Line(b=80e-6, a=0.1)


def trial(rate: float, server: str = "event-loop", times: float = 1.0, **changes: Any) -> Row:
    """A trial on a host of 2 CPUs on which all CPU time is `times` as long."""
    control_us, server_us = (line.each_s(rate) * 1e6 * times for line in (CONTROL, SERVER))
    whole = row(
        plan("open", server=server, offered_rps=round(rate)),
        achieved_rps=rate,
        cpu_server_us=server_us,
        cpu_generator_us=control_us / 4,
        cpu_proxy_us=control_us / 2,
        cpu_downstream_us=control_us / 4,
        host_busy=(server_us + control_us) * rate / 1e6 / 2,
        ref_compute=1.0,
        ref_compute_all=1.0,
        ref_wake=1e5 / times,
        ref_net=5e4 / times,
    )
    return replace(whole, **changes)


def test_a_line_is_fitted_by_least_squares() -> None:
    line = fit([(1000, 0.5), (2000, 0.7), (4000, 1.1)])
    assert line == Line(pytest.approx(0.0002), pytest.approx(0.3), 3, 1000)
    assert (line.each_s(2000), line.rps(1.1)) == (pytest.approx(0.00035), pytest.approx(4000))
    # Below the rates that were measured nothing is extrapolated.
    assert line.each_s(1) == line.each_s(1000) == pytest.approx(0.0005)


def test_rates_that_are_one_give_no_a() -> None:
    assert fit([(1000, 0.5), (1400, 0.8)]) == Line(pytest.approx(1.62 / 2960), 0.0, 1, 1000)
    # Nor does a cost that falls with the rate.
    assert fit([(1000, 0.5), (2000, 0.4)]) == Line(pytest.approx(0.00026), 0.0, 1, 1000)
    # Nor a line by which a request at the lowest rate would cost less than nothing.
    bent = [(1000, 0.02), (1100, 0.02), (1200, 0.03), (1300, 0.05), (4000, 1.6)]
    assert fit(bent) == Line(pytest.approx(6543 / 21.34e6), 0.0, 1, 1000)
    assert fit([]) is None
    assert fit([(1000, 0.0)]) is None


def test_the_demand_is_that_of_the_run_s_trials_as_soon_as_these_have_rates() -> None:
    light, next_trial = (
        Demand(200, 2000, Line(0.0006), Line(0.0012)),
        plan("open", server="event-loop"),
    )
    rows = [trial(1000), trial(1400), trial(9000, valid=False), trial(9000, "netty")]
    # An overloaded trial is not on the line.
    rows.append(trial(900, offered_rps=4000, overloaded=True, cpu_server_us=20.0, host_busy=0.1))
    assert demand_of(light, next_trial, rows, 2) == light
    rows += [trial(8000, spun=0.2), trial(8000, arm="lifted"), trial(8000, route="/compute")]
    assert demand_of(light, next_trial, rows, 2) == light
    rows.append(trial(4000))
    found = demand_of(light, next_trial, rows, 2)
    assert found == replace(
        light,
        server=Line(pytest.approx(80e-6), pytest.approx(0.1), 3, 1000),
        host=Line(pytest.approx(140e-6), pytest.approx(0.3), 3, 1000),
    )
    # Without the number of CPUs the host's is that of the light load.
    assert demand_of(light, next_trial, rows, None).host == light.host
    assert demand_of(None, next_trial, rows, 2) is None


def units_of(rows: Sequence[Row], held: Sequence[Row], broke: Sequence[Row] = ()) -> InUnits:
    (units,) = in_units("x", rows, held, broke, 2)
    return units


def test_the_unit_is_the_control_parts_under_the_fixed_lane_at_the_same_rate() -> None:
    fixed = [trial(rate) for rate in (500, 1000, 4000, 8000, 12_000)]
    # This server's own control parts cost a fifth more.
    other = trial(6000, "netty")
    other = replace(other, cpu_proxy_us=other.cpu_proxy_us * 1.4)
    # A trial of the fixed lane that was overloaded is no unit.
    fixed.append(trial(6000, overloaded=True, cpu_proxy_us=1.0))
    found = units_of([other, *fixed], [other])
    assert found.lane == "event-loop"
    assert found.value == pytest.approx((0.1 / 6000 + 80e-6) / (0.2 / 6000 + 60e-6))
    # The fixed lane has no trial about there, or there is no other lane: its own.
    for rows in ([other, *fixed[:2]], [other, fixed[4]], [other]):
        found = units_of(rows, [other])
        assert found.lane is None
        assert found.value == pytest.approx((0.1 / 6000 + 80e-6) / (0.2 / 6000 + 60e-6) / 1.2)
    # Nothing without the CPU time of every part.
    assert in_units("x", [other], [replace(other, cpu_downstream_us=None)], (), 2) == ()
    assert in_units("x", [other], [replace(other, valid=False)], (), 2) == ()
    assert in_units("x", [other], [], (), 2) == ()


def test_a_unit_that_all_launches_share_gives_no_interval() -> None:
    held = [trial(4000, "netty", cpu_server_us=100.0 + at, launch=at) for at in range(1, 7)]
    alone = units_of(held, held)
    assert (alone.lane, alone.low is None) == (None, False)
    fixed = [trial(rate) for rate in (3000, 5000)]
    shared = units_of([*held, *fixed], held)
    assert (shared.lane, shared.low, shared.high) == ("event-loop", None, None)


def test_the_cost_in_units_is_the_same_on_a_slower_host() -> None:
    each = []
    for times in (1.0, 2.1):
        rows = [trial(rate, lane, times) for lane in ("event-loop", "netty") for rate in (800, 900)]
        each.append(units_of(rows, rows[3:]).value)
    assert each[0] == pytest.approx(each[1])


def test_the_line_tells_another_host_s_rate_only_where_the_cpus_broke_it() -> None:
    rows = [trial(rate) for rate in (1000, 4000, 8000)]
    broke = [trial(9500, bottleneck="host CPU"), trial(10_500, bottleneck="unknown")]
    found = units_of([*rows, *broke], rows[2:], broke)
    assert found.broke
    assert found.busy == pytest.approx((0.3 + 10_000 * 140e-6) / 2)
    assert found.line is not None
    assert expected_rps(found.line, 2, found.busy) == pytest.approx(10_000)
    # (2 · 0.85 / 2 - 0.3) / 140 µs.
    assert expected_rps(found.line, 2, found.busy, 2.0) == pytest.approx(0.55 / 140e-6)
    assert expected_rps(found.line, 4, found.busy) == pytest.approx(3.1 / 140e-6)
    pool = [replace(row, bottleneck="worker pool") for row in broke]
    assert units_of([*rows, *pool], rows[2:], pool).line is None
    idle = [trial(2000)]
    assert units_of([*rows, *idle], rows[:1], idle).line is None
    # Without any that broke, the CPUs that were busy are those of the headline.
    at_most = units_of(rows, rows[2:])
    assert (at_most.broke, at_most.line) == (False, None)
    assert at_most.busy == pytest.approx((0.3 + 8000 * 140e-6) / 2)


def over_time(times: Sequence[float]) -> list[Row]:
    """Trials one after the other, of two rates."""
    return [
        trial((1000, 5000)[at % 2], times=slow, started_at=START + timedelta(minutes=at))
        for at, slow in enumerate(times)
    ]


def test_a_machine_that_slows_down_is_named_by_quarters() -> None:
    assert drift(over_time([1.0] * 16), 2) == ()
    # In the last quarter a fifth slower. The control parts differ from the median of all.
    slowed = over_time([1.0] * 12 + [1.2] * 4)
    found = {part.what: part for part in drift(slowed, 2)}
    assert {*found} == {"ref_wake", "ref_net", "control parts", "all but the server"}
    assert found["control parts"].value == pytest.approx(0.2)
    assert found["ref_wake"].value == pytest.approx(0.2)
    assert found["ref_wake"].quarters == pytest.approx((1e5, 1e5, 1e5, 1e5 / 1.2))
    # The order is that of time, whatever that of the rows.
    assert {part.what for part in drift(slowed[::-1], 2)} == {*found}
    # Trials scatter, and three of each quarter are enough.
    scattered = [1.0, 1.02, 0.98, 1.01, 0.97, 1.0, 1.03, 0.99, 1.01, 1.2, 1.22, 1.17]
    assert {part.what for part in drift(over_time(scattered), 2)} == {*found}
    # One odd trial is none, nor are too few trials, nor rates that differ.
    assert drift(over_time([1.0] * 15 + [1.5]), 2) == ()
    assert drift(over_time([1.0] * 8 + [1.2] * 3), 2) == ()
    assert drift(over_time([1.0] * 12 + [1.05] * 4), 2) == ()
    # Nor are quarters whose scatter explains it: 31 % between medians.
    assert drift(over_time([1.0, 1.4, 0.9, 1.2, 0.8, 1.3, 1.1, 0.9, 1.5, 1.2, 1.0, 1.4]), 2) == ()
    assert drift([], 2) == ()


def test_other_work_beside_a_part_of_a_run_is_named_though_no_part_of_the_lab_costs_more() -> None:
    rows = over_time([1.0] * 16)
    beside = [replace(row, host_busy=(row.host_busy or 0) + 0.3) for row in rows[8:]]
    (found,) = drift([*rows[:8], *beside], 2)
    assert found.what == "all but the server"
    # A server that gets cheaper as its JVM compiles is no other machine.
    warming = [
        replace(row, cpu_server_us=2 * us, host_busy=busy + us * rate / 1e6 / 2)
        for row in rows[:8]
        if (us := row.cpu_server_us) and (busy := row.host_busy) and (rate := row.achieved_rps)
    ]
    assert drift([*warming, *rows[8:]], 2) == ()


def test_the_control_parts_cost_at_a_rate_has_an_interval_that_holds_it() -> None:
    random = np.random.default_rng(1)
    held = 0
    for _ in range(300):
        scatter = np.exp(random.normal(0, 0.03, 8))
        rates = random.uniform(3000, 7000, 8)
        rows = [trial(rate, times=factor) for rate, factor in zip(rates, scatter, strict=True)]
        cost = control_at([*rows, trial(100, times=9)], 5000)
        assert cost is not None
        held += cost.low <= CONTROL.each_s(5000) * 1e6 <= cost.high
    assert 277 <= held <= 295
    assert control_at(rows[:3], 5000) is None
    assert control_at([replace(row, cpu_proxy_us=None) for row in rows], 5000) is None
    one_rate = control_at([trial(5000)] * 4, 5000)
    assert one_rate is not None
    assert one_rate.value == pytest.approx(CONTROL.each_s(5000) * 1e6)
