"""Density: which trials hold how many connections, and the slope over them."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest

from kinds.conftest import SHIPPED, refusal
from lab.kinds.density import Density, design, findings
from lab.kinds.kind import Outcome, settings_of
from lab.kinds.plans import of_file
from lab.kinds.reading import Here
from lab.model import AS_IT_IS, Experiment, Finding, Row, TrialPlan
from support.fakes import SETTINGS, snapshot
from support.planned import all_of, experiment, planner, row

SERVERS = ("fixed-pool", "virtual-threads", "event-loop")
HERE = Here(SERVERS, 20_000)
IN_FLIGHT = {"HOLD": "in-flight", "CONC": "500,1000"}


def shipped(**words: str) -> Experiment:
    found, _ = of_file({"EXP": "density", **words}, HERE, SHIPPED)
    return found


def of(hold: Any = "idle", **changes: Any) -> Experiment:
    known: dict[str, Any] = {"servers": ("a", "b"), "modes": ("closed",), "launches": 2}
    known |= {"concurrencies": (8000, 2000), "duration_s": 5, "warmup_s": 40}
    return experiment(kind="density", own=Density(hold), **{**known, **changes})


def plans(whole: Experiment, **settings: Any) -> list[TrialPlan]:
    has = snapshot(settings={**SETTINGS, **settings})
    return all_of(design(planner(whole, snapshots=dict.fromkeys(whole.servers, has))))


def test_the_shipped_file_holds_idle_connections_or_requests_in_flight() -> None:
    found = shipped()
    assert settings_of(Density, found) == Density("idle")
    assert (found.routes, found.concurrencies) == (("/health",), (2000, 4000, 6000, 8000))
    # Long enough to open 8,000.
    assert (found.duration_s, found.warmup_s, found.launches) == (8, 8, 3)
    found = shipped(HOLD="in-flight", CONC="250,1000", SERVER="event-loop", DURATION="6s")
    assert (found.routes, found.concurrencies) == (("/downstream",), (250, 1000))
    assert (found.duration_s, found.warmup_s, found.servers) == (6, 5, ("event-loop",))


def test_more_idle_connections_fit_than_requests_in_flight() -> None:
    assert shipped(CONC="9000,19000").concurrencies == (9000, 19000)
    said = refusal(shipped, CONC="9000,19000", HOLD="in-flight")
    assert "is more than this machine holds (19000)" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"CONC": "2000"}, "one number of connections has no slope; allowed: two or more"),
        ({"SCALE": "0.1"}, r"a window of 1 s .*; allowed: 2\.\."),
        ({"DURATION": "1s"}, r"a window of 1 s .*; allowed: 2\.\."),
        ({**IN_FLIGHT, "DURATION": "286s"}, r"a window of 286 s .*; allowed: 2\.\.285 s"),
    ],
)
def test_words_that_give_no_slope_are_refused(words: dict[str, str], said: str) -> None:
    assert re.search(said, refusal(shipped, **words))


def test_the_longest_window_and_the_shortest() -> None:
    longest = shipped(**IN_FLIGHT, DURATION="285s")
    assert plans(longest)[0].condition.knobs["downstream_timeout_ms"] == 600_000
    assert shipped(DURATION="2s").duration_s == 2


def test_a_jvm_has_ascending_connections_and_holds_them() -> None:
    made = plans(of())
    assert [(one.server, one.launch, one.concurrency) for one in made] == [
        ("a", 1, 2000), ("a", 1, 8000), ("b", 1, 2000), ("b", 1, 8000),
        ("b", 2, 2000), ("b", 2, 8000), ("a", 2, 2000), ("a", 2, 8000),
    ]  # fmt: skip
    assert {(one.mode, one.hold) for one in made} == {("closed", "idle")}
    assert all(one.condition == AS_IT_IS for one in made)


def test_answers_come_after_the_load_and_a_pool_has_a_thread_for_each() -> None:
    first, *others = plans(of("in-flight"), pool_size=200)
    condition = first.condition
    # 40 s to open, 5 s, and 10 s more.
    assert condition.toxics == ({"TYPE": "latency", "NAME": "in-flight", "LATENCY": "55000"},)
    assert condition.knobs == {"downstream_timeout_ms": 110_000, "pool_size": 8000}
    # The same for all, so that a trial needs no change of it.
    assert {one.condition.text for one in others} == {condition.text}


def memory(plan: TrialPlan, each: float, **changes: Any) -> Row:
    heap = round(5_000_000 + each * plan.concurrency)
    return row(plan, **{"live_heap_bytes": heap, "resident_bytes": 2 * heap, **changes})


def found(rows: list[Row], whole: Experiment) -> tuple[Finding, ...]:
    return tuple(findings(Outcome(whole, rows, Path())))


def test_the_finding_is_the_slope_with_its_interval() -> None:
    whole = of(servers=("a",), concurrencies=(2000, 4000, 6000, 8000), launches=3)
    rows = [memory(plan, 800 + plan.launch) for plan in plans(whole)]
    rows[0] = copy.replace(rows[0], valid=False, live_heap_bytes=1)
    heap, resident = found(rows, whole)
    assert (heap.name, heap.server) == ("live heap per connection", "a")
    # An invalid trial is in no slope.
    assert (heap.unit, heap.trials, heap.fewest, heap.most) == ("bytes/connection", 11, 2000, 8000)
    assert heap.value == pytest.approx(802, abs=1)
    assert heap.low < 802 < heap.high
    assert resident.value == pytest.approx(1604, abs=2)


def test_few_trials_have_no_interval_and_one_level_no_slope() -> None:
    whole = of(servers=("a",), launches=1)
    told = found([memory(plan, 800) for plan in plans(whole)], whole)
    assert (told[0].value, told[0].low) == (800, None)
    alone = of(servers=("a",), launches=2, concurrencies=(2000,))
    heap, _ = found([memory(plan, 800) for plan in plans(alone)], alone)
    assert heap.value is None
