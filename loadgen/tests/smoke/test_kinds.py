"""A search, a spike, a long load and fresh JVMs on a real lab: plumbing, never a figure."""

import json
from itertools import pairwise
from typing import Any

import pytest

from lab.kinds import disturb, endurance
from lab.kinds.search import LEAST_TRIALS, NAME
from lab.store import manifest
from support.stored import is_trusted, run_of, trials_of


def findings_of(name: str) -> list[dict[str, Any]]:
    return json.loads((run_of(name) / "findings.json").read_text())


def jvms(trials: list[dict[str, Any]]) -> list[int]:
    """The JVMs as they first appear, by start time."""
    return list(dict.fromkeys(trial["jvm_started_ms"] for trial in trials))


@pytest.mark.parametrize("name", ["spiked", "endured", "launched"])
def test_only_a_busy_machine_makes_its_trials_invalid(name: str) -> None:
    # A starved generator opens a crowd's connections too late, or sends too late.
    late = ("spike-flawed",)
    assert [trial["reasons"] for trial in trials_of(name) if not is_trusted(trial, *late)] == []


@pytest.mark.parametrize(
    ("name", "launch"), [("searched", 1), ("spiked", 0), ("endured", 0), ("launched", 1)]
)
def test_it_ended_and_its_jvms_were_started_for_it_or_before(name: str, launch: int) -> None:
    record = manifest.read(run_of(name))
    assert record.status == "complete"
    trials = trials_of(name)
    assert trials
    for trial in trials:
        assert trial["launch"] == launch
        fresh = trial["jvm_started_ms"] > record.started_at.timestamp() * 1000
        assert fresh == bool(launch), trial["trial"]


def test_a_search_goes_to_the_capacity_or_says_why_not() -> None:
    trials = trials_of("searched")
    # Half of what a pool of 200 gives that waits for 200 ms.
    assert trials[0]["offered_rps"] == 500
    assert len(trials) >= LEAST_TRIALS
    assert all(trial["window_s"] <= 6 for trial in trials)
    # A machine whose speed changed meanwhile has findings, too.
    found, *in_units = [one for one in findings_of("searched") if one["name"] != "drift"]
    assert (found["name"], found["server"], found["unit"]) == (NAME, "fixed-pool", "req/s")
    assert found["trials"] == len(trials) >= found["used"]
    if found["open_above"] or found["open_below"]:
        assert not found["often"]
    else:
        assert found["low"] < found["value"] < found["high"]
        # More than its threads give no pool has.
        assert found["low"] < 1050
    assert all((one["unit"], one["value"] > 0) == ("control parts", True) for one in in_units)


def test_a_spike_says_how_long_recovery_took_or_why_that_is_unknown() -> None:
    (trial,) = trials_of("spiked")
    assert (trial["engine"], trial["mode"]) == ("pacer", "open")
    assert len(trial["peaks"]) == 3
    assert all(one["ended_s"] > one["started_s"] for one in trial["peaks"])
    assert all(after["started_s"] > one["ended_s"] for one, after in pairwise(trial["peaks"]))
    found = findings_of("spiked")
    assert found
    for one in found:
        assert one["name"].startswith(disturb.NAME)
        assert one["value"] is None or one["value"] >= 0


def test_a_long_load_is_legs_of_one_jvm_and_has_a_growth_or_says_why_not() -> None:
    trials = trials_of("endured")
    # 7 s in legs of 3: the rest makes the last one longer.
    assert [trial["window_s"] for trial in trials] == [pytest.approx(3), pytest.approx(4)]
    assert len(jvms(trials)) == 1
    own = {trial["server"] for trial in trials}
    for trial in trials:
        record = run_of("endured") / "raw" / trial["trial"] / "trial.json"
        assert json.loads(record.read_text())["live_heap_bytes"] > 1e6
    found = [one for one in findings_of("endured") if one["server"] in own]
    figures = (endurance.LIVE_HEAP, *endurance.OF_SERVER)
    assert [one["name"] for one in found] == [one.name for one in figures]
    for one in found:
        assert (one["value"] is None) == (one["levels"] is None)
        assert (one["legs"]["on_other_jvms"], one["legs"]["interruptions"]) == (0, 0)


def test_arms_are_fresh_jvms_that_take_turns() -> None:
    trials = trials_of("launched")
    assert [(trial["launch"], trial["arm"]) for trial in trials] == [(1, "a"), (1, "b")]
    assert len(jvms(trials)) == 2
    assert jvms(trials) == sorted(jvms(trials))
    # One launch is too few for an answer.
    (of,) = json.loads((run_of("launched") / "comparison.json").read_text())["comparisons"]
    assert {answer["place"] for answer in of["answers"]} == {"cannot tell"}
    assert [answer["question"]["figure"] for answer in of["answers"]] == ["goodput"]
