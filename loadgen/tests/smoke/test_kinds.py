"""A search, a spike, a long load and fresh JVMs on a real lab: plumbing, never a figure."""

from itertools import pairwise
from typing import Any

import pytest

from lab.kinds import disturb, endurance
from lab.kinds.search import LEAST_TRIALS, NAME
from support.stored import Run, is_trusted


def jvms(trials: list[dict[str, Any]]) -> list[int]:
    """The JVMs as they first appear, by start time."""
    return list(dict.fromkeys(trial["jvm_started_ms"] for trial in trials))


@pytest.mark.parametrize("name", ["spiked", "endured", "launched"])
def test_only_a_busy_machine_makes_its_trials_invalid(name: str) -> None:
    # A starved generator opens a crowd's connections too late, or sends too late.
    late = ("spike-flawed",)
    assert [trial["reasons"] for trial in Run(name).trials if not is_trusted(trial, *late)] == []


@pytest.mark.parametrize(
    ("name", "launch"), [("searched", 1), ("spiked", 0), ("endured", 0), ("launched", 1)]
)
def test_it_ended_and_its_jvms_were_started_for_it_or_before(name: str, launch: int) -> None:
    run = Run(name)
    assert run.manifest.status == "complete"
    assert {trial["launch"] for trial in run.trials} == {launch}
    for trial in run.trials:
        fresh = trial["jvm_started_ms"] > run.manifest.started_at.timestamp() * 1000
        assert fresh == bool(launch), trial["trial"]


def test_a_search_goes_to_the_capacity_or_says_why_not() -> None:
    run = Run("searched")
    trials = run.trials
    # Half of what a pool of 200 gives that waits for 200 ms.
    assert trials[0]["offered_rps"] == 500
    assert len(trials) >= LEAST_TRIALS
    assert all(trial["window_s"] <= 6 for trial in trials)
    # A machine whose speed changed meanwhile has findings, too.
    found, *in_units = [one for one in run.json("findings.json") if one["name"] != "drift"]
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
    run = Run("spiked")
    (trial,) = run.trials
    assert (trial["engine"], trial["mode"]) == ("pacer", "open")
    assert len(trial["peaks"]) == 3
    assert all(one["ended_s"] > one["started_s"] for one in trial["peaks"])
    assert all(after["started_s"] > one["ended_s"] for one, after in pairwise(trial["peaks"]))
    found = run.json("findings.json")
    assert found
    for one in found:
        assert one["name"].startswith(disturb.NAME)
        assert one["value"] is None or one["value"] >= 0


def test_a_long_load_is_legs_of_one_jvm_and_has_a_growth_or_says_why_not() -> None:
    run = Run("endured")
    trials = run.trials
    # 7 s in legs of 3: the rest makes the last one longer.
    assert [trial["window_s"] for trial in trials] == [pytest.approx(3), pytest.approx(4)]
    assert len(jvms(trials)) == 1
    assert all(run.record(trial["trial"])["live_heap_bytes"] > 1e6 for trial in trials)
    servers = {trial["server"] for trial in trials}
    found = [one for one in run.json("findings.json") if one["server"] in servers]
    figures = (endurance.LIVE_HEAP, *endurance.OF_SERVER)
    assert [one["name"] for one in found] == [one.name for one in figures]
    for one in found:
        assert (one["value"] is None) == (one["levels"] is None)
        assert (one["legs"]["on_other_jvms"], one["legs"]["interruptions"]) == (0, 0)


def test_arms_are_fresh_jvms_that_take_turns() -> None:
    run = Run("launched")
    trials = run.trials
    assert [(trial["launch"], trial["arm"]) for trial in trials] == [(1, "a"), (1, "b")]
    first, second = jvms(trials)
    assert first < second
    # One launch is too few for an answer.
    [comparison] = run.json("comparison.json")["comparisons"]
    [answer] = comparison["answers"]
    assert (answer["place"], answer["question"]["figure"]) == ("cannot tell", "goodput")
