"""What runs of three trials brought home in whose second one a machine was away (`.ci/several.sh`,
SUITE=long)."""

import csv
import json

import pytest

from lab.model import AWAY
from support.stored import run_of, trials_of

LOADS = ["20", "30", "40"]


def _rows(name: str) -> list[dict[str, str]]:
    with (run_of(name) / "trials.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", ["several-cut", "several-cut-long", "several-power"])
def test_a_trial_that_a_machine_missed_says_so_and_is_measured_again(name: str) -> None:
    rows = _rows(name)
    (hit,) = (
        row for row in rows if row["trial"].startswith("02-") and "-again" not in row["trial"]
    )
    assert f"{AWAY}: tested gave Prometheus no answer for " in hit["invalid_reasons"], hit
    assert hit["valid"] == "false", hit
    assert any(row["trial"] == f"{hit['trial']}-again" for row in rows), rows


@pytest.mark.parametrize(
    "name",
    ["several-cut", "several-cut-long", "several-lossy", "several-power", "several-lost"],
)
def test_each_load_was_measured_once_or_again(name: str) -> None:
    rows = _rows(name)
    trials = [row["trial"] for row in rows]
    assert len(trials) == len(set(trials)), trials
    assert sorted(row["concurrency"] for row in rows if "-again" not in row["trial"]) == LOADS, rows
    manifest = json.loads((run_of(name) / "manifest.json").read_text())
    assert manifest["status"] == "complete"


def test_a_network_that_loses_packets_is_named() -> None:
    before, *lossy = (one["verdict"]["bottleneck"] for one in trials_of("several-lossy"))
    assert before == "none"
    # The loss begins within the second one.
    assert "network" in lossy


def test_the_row_from_before_the_generators_machine_was_lost_is_kept() -> None:
    first, *_ = _rows("several-lost")
    assert first["trial"].startswith("01-")
    assert first["concurrency"] == "20"
