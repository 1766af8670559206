"""A run of density from its raw data to its report."""

import json
from pathlib import Path
from typing import Any

import pytest

from lab.app import preparation
from lab.app.derive import derive
from lab.kinds.density import Density, design
from lab.load.engines import ENGINES
from lab.load.engines.pacer import Pacer
from lab.model import TrialPlan, Warmth
from lab.report import answers
from lab.store import csv
from lab.store.records import to_json, write_json
from support import pacer
from support.bench import WARM, Bench
from support.fakes import IDENTITY, record, snapshot
from support.planned import all_of, experiment, planner
from support.runs import write_manifest
from support.table import read_rows

WARM_UP_S, WINDOW_S = 4, 2


def write_trial(run_dir: Path, plan: TrialPlan) -> None:
    """All of its connections are answered in the first second, and take 800 bytes each."""
    raw, count = run_dir / "raw" / plan.trial, plan.concurrency
    raw.mkdir(parents=True)
    at = snapshot(identity=IDENTITY)
    sizes = {"live_heap_bytes": 5_000_000 + 800 * count, "resident_bytes": 90_000_000 + 900 * count}
    told = record(plan, before=at, after=at, window_offset_s=WARM_UP_S, in_flight=0, **sizes)
    write_json(raw / "trial.json", told)
    answers = [[1.0] * count, *[[]] * (WARM_UP_S + WINDOW_S - 1)]
    pacer.write(raw, [pacer.second(at, ms, connections=count) for at, ms in enumerate(answers)])


def test_each_trial_has_its_memory_and_the_answer_is_the_slope(tmp_path: Path) -> None:
    load = {"servers": ("a",), "routes": ("/health",), "concurrencies": (100, 200, 300, 400)}
    whole = experiment(**{**IN_FLIGHT, **load, "own": Density("idle"), "launches": 3})
    run_dir = write_manifest(tmp_path, experiment=whole, servers={"a": snapshot()})
    for plan in all_of(design(planner(whole, Pacer()))):
        write_trial(run_dir, plan)
    derived = derive(run_dir, ENGINES)
    rows = read_rows(run_dir / csv.NAME)
    assert [row.invalid_reasons for row in rows] == [""] * 12
    assert {(row.concurrency, row.live_heap_bytes) for row in rows} == {
        (count, 5_000_000 + 800 * count) for count in (100, 200, 300, 400)
    }
    assert answers.of(derived.result) == (
        (
            "a",
            "800 [800, 800] bytes of live heap per connection",
            "900 [900, 900] bytes of resident memory per connection",
        ),
    )
    report, page = ((run_dir / name).read_text() for name in ("REPORT.md", "report.html"))
    assert "| a | live heap per connection | 100–400 | 800 [800, 800] | 12 |" in report
    assert "12 of 12 trials are valid." in report
    # No request was measured.
    assert "## Loads" not in report
    # Nor is any drawn.
    assert not list((run_dir / "figures").glob("*"))
    held = "resident memory while the connections were held"
    for text in ("Memory per connection", "closed 100", "of live heap", held):
        assert text in page
    assert "0 req/s" not in page
    assert "after the load" not in page


IN_FLIGHT: dict[str, Any] = {
    "kind": "density",
    "own": to_json(Density("in-flight")),
    "modes": ("closed",),
    "concurrencies": (1000, 250),
    "launches": 1,
    "duration_s": WINDOW_S,
    "warmup_s": WARM_UP_S,
}


def test_held_back_answers_delay_no_warm_up(ready: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    warmed: list[tuple[str, object, int]] = []
    waits: list[int] = []
    clear = preparation.clear_proxy

    def warm(plan: TrialPlan, *_: object) -> Warmth:
        warmed.append((plan.server, ready.lab.pool_sizes["a"], len(ready.lab.toxics)))
        return WARM

    def cleared(*lab: Any) -> str | None:
        waits.append(len(ready.lab.toxics))
        return clear(*lab)

    ready.warm = warm  # type: ignore[method-assign]
    monkeypatch.setattr(preparation, "clear_proxy", cleared)
    ready.run(**IN_FLIGHT)
    assert warmed == [("a", 200, 0), ("b", 200, 0)]
    # The next server does not wait for answers that are held back.
    assert waits == [0, 0]
    # What costs no request is not asked.
    assert ready.measured == []


def test_a_run_of_requests_in_flight_goes_on(ready: Bench) -> None:
    for server in ("a", "b"):
        ready.lab.settings[server] = {"downstream_timeout_ms": 10_000}
    ready.interrupt(30.0, **IN_FLIGHT)
    trial = json.loads(next(ready.run_dir.glob("raw/*a*/trial.json")).read_text())
    assert trial["before"]["settings"]["pool_size"] == 1000
    assert ready.lab.pool_sizes["a"] == 200
    ready.resume()
    assert (ready.manifest["status"], len(ready.rows)) == ("complete", 4)
    # No word of the user's brings these back.
    assert "SERVER_POOL_SIZE" not in ready.report
