"""Rows in groups: a value per launch, and the loads with their open and closed trials."""

import dataclasses
from collections.abc import Sequence

import pytest

from lab.judge.grouping import Load, loads, most_errors, per_launch, per_round
from lab.model import Row
from lab.report.blocks import Table
from lab.report.loads import measured as measured_loads
from support import planned
from support.fakes import plan
from support.sides import row, rows


@pytest.mark.parametrize(
    ("trials", "values"),
    [
        # Trials of one JVM count once with their median; launches of pooled runs are told apart,
        # but not JVMs that ran already.
        ([("x", 1, 1.0), ("x", 1, 2), ("x", 1, 9), ("x", 2, 5.0)], (2.0, 5.0)),
        ([("x", 1, 1.0), ("y", 1, 1.0)], (1.0, 1.0)),
        ([("x", 0, 1.0), ("y", 0, 1.0)], (1.0,)),
    ],
)
def test_a_launch_counts_once(
    trials: list[tuple[str, int, float]], values: Sequence[float]
) -> None:
    measured = [row(run=run, launch=launch, achieved_rps=rps) for run, launch, rps in trials]
    assert per_launch(measured, "achieved_rps") == values
    # Several JVMs in a round count with their median.
    jvms = [row(arm=arm, achieved_rps=rps, launch=1) for arm, rps in (("x", 90.0), ("y", 110.0))]
    assert per_round(jvms, "achieved_rps") == {("run", 1): 100.0}


def test_open_and_closed_stand_side_by_side_per_lane() -> None:
    trials = [
        row("closed", server=server, achieved_rps=value, predicted_rps=500.0, launch=n)
        for server in ("x", "y")
        for n, value in enumerate((100.0, 200.0, 300.0), start=1)
    ]
    trials += [row("open", server="x", p95_ms=9.0, http_errors=2, timeouts=None)]
    trials += [row("open", server="x", valid=False, offered_rps=900, predicted_rps=900.0)]
    x, y, faster = loads(trials)
    assert (x.lane, x.offered_rps, x.bound_rps) == ("x", 450, 500.0)
    assert (x.closed_rps.median, x.closed_rps.interval) == (200.0, None)
    assert x.open_p95_ms.median == 9.0
    assert (x.errors, x.valid, x.trials) == (2, 4, 4)
    assert (y.lane, y.open_rps) == ("y", None)
    # A second rate at the same concurrency: its closed load stands beside the first.
    assert (faster.offered_rps, faster.closed_rps, faster.bound_rps) == (900, None, 900.0)
    assert (faster.open_rps, faster.valid, faster.trials) == (None, 0, 1)


def test_windows_of_other_lengths_are_loads_of_their_own() -> None:
    def measured(trial: str, launch: int, duration_s: int, p95_ms: float) -> Row:
        of = plan("open", trial=trial, launch=launch, duration_s=duration_s)
        return planned.row(of, p95_ms=p95_ms)

    short, long = measured("1", 1, 15, 900.0), measured("3-again", 2, 34, 2000.0)
    # What was measured again in a longer window counts in that one only.
    first, again = loads([short, measured("3", 2, 15, 880.0), long])
    assert (first.open_s, first.open_p95_ms.median, first.trials) == (15, 900.0, 1)
    assert (again.open_s, again.open_p95_ms.median, again.trials) == (34, 2000.0, 1)
    # Its warm-up makes none: a search takes a longer one near what is sustained.
    longer = dataclasses.replace(measured("2", 2, 15, 950.0), warmup_s=20)
    [pooled] = loads([short, longer])
    assert (pooled.trials, pooled.open_p95_ms.median) == (2, 925.0)
    # The table shows which is which, and only then.
    told = table_of([first, again])
    assert list(told.header[:3]) == ["window", "connections", "server"]
    assert [cells[0] for cells in told.rows] == ["15 s", "34 s"]
    assert list(table_of([first]).header[:2]) == ["connections", "server"]


def table_of(of: Sequence[Load]) -> Table:
    (found,) = (one for one in measured_loads(of).blocks if isinstance(one, Table))
    return found


def test_each_mode_has_its_own_cpu_time_per_request() -> None:
    trials = [
        *(row(server="x", cpu_server_us=value) for value in (70.0, 71.0, 75.0)),
        row(server="x", cpu_server_us=9.0, valid=False),
        *(row("open", server="x", cpu_server_us=value) for value in (130.0, 133.0, 134.0)),
    ]
    [load] = loads(trials)
    assert (load.closed_cpu.cpu_server_us, load.open_cpu.cpu_server_us) == (71.0, 133.0)


def test_loads_show_goodput_and_the_errors_beside_it() -> None:
    failing = rows(achieved_rps=9000.0, ok=15_000, http_errors=120_000, timeouts=None)
    [load] = loads(failing)
    assert load.closed_rps.median == pytest.approx(1000)
    assert (load.error_share, load.errors) == (pytest.approx(8 / 9), 6 * 120_000)
    # One launch is enough, and an invalid one does not count.
    some = rows(achieved_rps=500.0, ok=1000)
    some[3] = dataclasses.replace(some[3], http_errors=1000)
    assert most_errors(some) == 0.5
    some[3] = dataclasses.replace(some[3], valid=False)
    assert most_errors(some) == most_errors([]) == 0
