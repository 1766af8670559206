"""A run of density from its raw data to its report."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from app.test_stored_runs import STORED
from lab.app import prepare
from lab.app.derive import derive
from lab.kinds.density import Density
from lab.load.engines import ENGINES
from lab.model import TrialPlan, Warmth
from lab.store.records import to_json
from support.bench import WARM, Bench


def test_a_report_of_held_connections_has_memory_and_no_requests(tmp_path: Path) -> None:
    [stored] = STORED.glob("*-density")
    run_dir = shutil.copytree(stored, tmp_path / stored.name)
    derive(run_dir, ENGINES)
    report, page = ((run_dir / name).read_text() for name in ("REPORT.md", "report.html"))
    assert "live heap per connection" in report
    assert "## Loads" not in report
    # Nor is any drawn.
    assert not list((run_dir / "figures").glob("*"))
    held = "resident memory while the connections were held"
    assert [text in page for text in ("Memory per connection", "of live heap", held)] == [True] * 3
    assert [text in page for text in ("0 req/s", "after the load")] == [False] * 2


IN_FLIGHT: dict[str, Any] = {
    "kind": "density",
    "own": to_json(Density("in-flight")),
    "modes": ("closed",),
    "concurrencies": (1000, 250),
    "launches": 1,
    "duration_s": 2,
    "warmup_s": 4,
}


def test_held_back_answers_delay_no_warm_up(ready: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    warmed: list[tuple[str, object, int]] = []
    waits: list[int] = []
    clear = prepare.clear_proxy

    def warm(plan: TrialPlan, *_: object) -> Warmth:
        warmed.append((plan.server, ready.lab.pool_sizes["a"], len(ready.lab.toxics)))
        return WARM

    def cleared(*lab: Any) -> str | None:
        waits.append(len(ready.lab.toxics))
        return clear(*lab)

    ready.warm = warm  # type: ignore[method-assign]
    monkeypatch.setattr(prepare, "clear_proxy", cleared)
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
