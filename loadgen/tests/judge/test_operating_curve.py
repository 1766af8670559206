"""The operating curve of simulated launches, of which it is known how they scatter."""

import copy

import numpy as np
import pytest

from lab.judge.values import CONTROL
from lab.model import Row
from support import operating_curve
from support.fakes import judged_row, measurement, plan, record
from support.operating_curve import blocks_of, curve, rate

ARMS = {"1": 1.0, "2": 1.0, "3": 1.05, "4": 1.1}
PARTS = ("cpu_generator_us", "cpu_proxy_us", "cpu_downstream_us")


def launches(machine: float, own: float, blocks: int = 3, rounds: int = 12) -> list[Row]:
    """Launches of all arms in turns. The machine moves the CPU time of every part by `machine` from
    trial to trial, the server alone scatters by `own`."""
    rng = np.random.default_rng(53)
    blank = judged_row("run", measurement(record(plan("closed"))))
    rows = []
    for block in range(blocks):
        for launch in range(1, rounds + 1):
            for arm in ARMS if launch % 2 else reversed(ARMS):
                slow = rng.normal(0, machine)
                cost = 50 * ARMS[arm] * np.exp(CONTROL * slow + rng.normal(0, own))
                parts = dict.fromkeys(PARTS, float(20 * np.exp(slow)))
                rows.append(
                    copy.replace(
                        blank, run=f"sitting-{block}", arm=arm, launch=launch, valid=True,
                        cpu_server_us=float(cost), **parts,
                    )
                )  # fmt: skip
    return rows


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, count in (("GATES", 60), ("REPLICATES", 8), ("GATES_OF_REPLICATE", 10)):
        monkeypatch.setattr(operating_curve, name, count)


def test_on_a_machine_that_wanders_the_covariate_tells_and_the_raw_figure_does_not() -> None:
    blocks = blocks_of(launches(0.06, 0.015))
    caught = rate(blocks, "1", "4", "worse", raw=False)
    assert caught.share > 0.9
    assert caught.low <= caught.share
    assert rate(blocks, "1", "4", "worse", raw=True).share < 0.6
    # The base again: no false alarm.
    assert rate(blocks, "1", "2", "worse", raw=False).share <= 0.05
    assert rate(blocks, "1", "2", "not worse", raw=False).share > 0.9


def test_a_round_that_lacks_an_arm_is_of_no_gate() -> None:
    rows = launches(0.01, 0.01, blocks=2)
    assert [len(block) for block in blocks_of(rows)] == [12, 12]
    lacking = [row for row in rows if (row.run, row.launch, row.arm) != ("sitting-1", 3, "4")]
    assert [len(block) for block in blocks_of(lacking)] == [12, 11]


def test_every_arm_has_its_lines_and_the_same_launches_give_the_same_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(operating_curve, "GATES", 4)
    monkeypatch.setattr(operating_curve, "REPLICATES", 2)
    rows = launches(0.03, 0.02)
    lines = list(curve(rows))
    assert lines[0] == "gates of 9 launches, drawn of blocks of 12, 12, 12 rounds; base: 1"
    assert [line.partition(" ")[0] for line in lines[1:]] == ["2", "2", "3", "3", "4", "4"]
    assert list(curve(rows)) == lines
