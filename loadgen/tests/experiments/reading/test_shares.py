"""A rate that is a share of a capacity, from a stored run."""

import dataclasses
import json
from pathlib import Path

import pytest

from experiments.conftest import SHIPPED, refusal
from lab.experiments.plans import of_file
from lab.experiments.reading import Here

RATE = {"name": "capacity", "unit": "req/s"}
FOUND = [
    {**RATE, "server": "fixed-pool", "value": 990.0, "often": [970.0, 950.0, 980.0]},
    # Of two objectives the stricter one counts.
    {**RATE, "server": "event-loop", "value": 9000.0, "often": [8800.0, 8500.0, 9000.0]},
    {**RATE, "server": "event-loop", "value": 9500.0, "often": [9300.0, 9000.0, 9400.0]},
    # A load that nearly all trials meet is not known of it, nor a rate.
    {**RATE, "server": "netty", "value": 8000.0, "often": [0.0, 0.0, 7000.0]},
    {"name": "capacity", "unit": "connections", "server": "netty", "often": [900.0, 800.0, 950.0]},
    {"name": "units", "server": "event-loop", "value": 0.5},
]


@pytest.fixture
def here(tmp_path: Path) -> Here:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/findings.json").write_text(json.dumps(FOUND))
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd/findings.json").write_text('{"name": 1}')
    return Here(("fixed-pool", "event-loop", "netty"), 200_000, results=tmp_path)


def test_a_share_is_of_the_least_capacity(here: Here) -> None:
    words = {"EXP": "endurance", "RATE": "70%", "CAPACITY": "run"}
    both, _ = of_file({**words, "SERVER": "fixed-pool,event-loop"}, here, SHIPPED)
    assert both.rate_rps == 679
    alone, _ = of_file({**words, "SERVER": "event-loop"}, here, SHIPPED)
    assert alone.rate_rps == 6160


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"RATE": "70%"}, "70% is a share of a capacity; name its run, as CAPACITY=<run>"),
        ({"CAPACITY": "run"}, "run is not allowed without a share of it, as RATE=70%"),
        ({"RATE": "70%", "CAPACITY": "none"}, "CAPACITY=none"),
        ({"RATE": "70%", "CAPACITY": "odd"}, "odd is not a run of make capacity in results/"),
        ({"RATE": "70%", "CAPACITY": "../run"}, "../run is not a run; allowed: a folder of"),
        (
            {"RATE": "70%", "CAPACITY": "run", "SERVER": "netty"},
            "run knows no capacity of netty; allowed: fixed-pool, event-loop",
        ),
        ({"RATE": "170%", "CAPACITY": "run"}, "run is not allowed without a share of it"),
    ],
)
def test_a_wrong_share_gets_one_line(here: Here, words: dict[str, str], says: str) -> None:
    assert says in refusal(of_file, {"EXP": "endurance", **words}, here, SHIPPED)


def test_without_a_folder_of_results_there_is_no_share(here: Here) -> None:
    words = {"EXP": "endurance", "RATE": "70%", "CAPACITY": "run"}
    nowhere = dataclasses.replace(here, results=None)
    assert "is a share of a capacity" in refusal(of_file, words, nowhere, SHIPPED)
