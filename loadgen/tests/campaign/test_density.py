"""A run of density from its raw data to its report."""

from pathlib import Path

from lab.campaign.derive import derive
from lab.experiments.density import Density, design
from lab.load.engines import ENGINES
from lab.load.engines.pacer import Pacer
from lab.model import TrialPlan
from lab.store import csv
from lab.store.records import write_json
from support import pacer
from support.fakes import IDENTITY, record, snapshot
from support.planned import all_of, experiment, planner
from support.runs import write_manifest

WARM_UP_S, WINDOW_S = 4, 2


def write_trial(run_dir: Path, plan: TrialPlan) -> None:
    """All of its connections are answered in the first second, and take 800 bytes each."""
    raw, count = run_dir / "raw" / plan.trial, plan.concurrency
    raw.mkdir(parents=True)
    at = snapshot(identity=IDENTITY)
    told = record(
        plan,
        before=at,
        after=at,
        window_offset_s=WARM_UP_S,
        live_heap_bytes=5_000_000 + 800 * count,
        resident_bytes=90_000_000 + 900 * count,
        in_flight=0,
    )
    write_json(raw / "trial.json", told)
    quiet = [
        pacer.second(second, [], connections=count) for second in range(1, WARM_UP_S + WINDOW_S)
    ]
    pacer.write(raw, [pacer.second(0, [1.0] * count, connections=count), *quiet])


def test_each_trial_has_its_memory_and_the_answer_is_the_slope(tmp_path: Path) -> None:
    whole = experiment(
        kind="density",
        own=Density("idle"),
        servers=("a",),
        routes=("/health",),
        modes=("closed",),
        concurrencies=(100, 200, 300, 400),
        launches=3,
        duration_s=WINDOW_S,
        warmup_s=WARM_UP_S,
    )
    run_dir = write_manifest(tmp_path, experiment=whole, servers={"a": snapshot()})
    for plan in all_of(design(planner(whole, Pacer()))):
        write_trial(run_dir, plan)
    derived = derive(run_dir, ENGINES)
    rows = csv.read(run_dir / csv.NAME)
    assert [row.invalid_reasons for row in rows] == [""] * 12
    assert {(row.concurrency, row.live_heap_bytes) for row in rows} == {
        (count, 5_000_000 + 800 * count) for count in (100, 200, 300, 400)
    }
    assert derived.answers == (
        ("a", "800 [800, 800] B of heap each", "900 [900, 900] B resident each"),
    )
    report = (run_dir / "REPORT.md").read_text()
    assert "| a | live heap | 100–400 | 800 [800, 800] | 12 |" in report
    assert "All 12 trials are valid." in report
    # No request was measured.
    assert "## Throughput and latency" not in report
    assert "No bound is known of any load of this run." in report
    assert "Memory per connection" in (run_dir / "report.html").read_text()
