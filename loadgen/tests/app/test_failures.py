"""What a failure costs: a disk that fails at any write, files that were damaged, a power cut."""

import contextlib
import copy
import re
import shutil
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from lab.app.derive import derive
from lab.app.run_record import RESERVE, RESERVE_BYTES, ending
from lab.errors import Interrupted, LabError, RawDataError
from lab.kinds.objective import Objective
from lab.kinds.search import Search
from lab.load.engines import ENGINES
from lab.model import Reading, Row, TrialPlan, TrialRecord
from lab.store.records import read_json, to_json, write_json
from support.bench import Bench
from support.disk import Disk

RECORDS = ("trial.json", "plan.json")
STORED = Path(__file__).parent / "stored"
LOADS: dict[str, Any] = {"servers": ("a",), "modes": ("open",), "concurrencies": (100, 200)}


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports without their figures, which take most of a short run's time."""
    monkeypatch.setattr("lab.app.derive.page.build", lambda *_: ("page", {"load": "<svg/>"}))


@pytest.mark.usefixtures("plain")
def test_what_was_measured_is_on_the_disk_before_its_row_says_so(
    ready: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[Path] = []

    def fsync(descriptor: int) -> None:
        flushed.append(Path(f"/proc/self/fd/{descriptor}").readlink())

    monkeypatch.setattr("os.fsync", fsync)
    assert ready.run(servers=("a",), modes=("open",), concurrencies=(100,)) == 0
    (raw,) = (ready.run_dir / "raw").iterdir()
    before = flushed[: flushed.index(ready.run_dir / "trials.csv.part")]
    assert {raw / "fake.txt", raw / "plan.json", raw, raw.parent} <= set(before)
    # The record is a file of its own, which takes its place once it is whole.
    assert any(path.parent == raw and path.name.startswith("trial.json") for path in before)


def again(ready: Bench, name: str) -> Bench:
    """The same bench from the same moment on, with another folder of results."""
    results = ready.place.results / name
    results.mkdir()
    # A lab of its own for each would take most of the test's time.
    ready.lab.system.elapsed_s = 0.0
    ready.lab.system.processes.clear()
    ready.lab.system.started.clear()
    place = copy.replace(ready.place, results=results, warm_jvms=results / ".warm-jvms.json")
    return Bench(place, ready.lab)


@pytest.mark.parametrize("once", [True, False], ids=["once", "from then on"])
@pytest.mark.usefixtures("plain")
def test_whichever_write_fails_the_rows_stay_and_the_run_goes_on_later(
    ready: Bench, failing_disk: Disk, *, once: bool
) -> None:
    whole = again(ready, "whole")
    failing_disk.writes = 0
    whole.run(**LOADS)
    writes = failing_disk.writes
    assert writes > 40
    for number in range(writes):
        bench = again(ready, str(number))
        failing_disk.fail(number, once=once)
        with pytest.raises(LabError) as said:
            bench.run(**LOADS)
        failing_disk.works()
        where = f"write {number}: {failing_disk.failed[0]}"
        # One line; no load is left, and no half-written file.
        assert re.search("^cannot write .*: No space left on device$", str(said.value)), where
        assert all(process.poll() is not None for process in bench.lab.system.processes), where
        assert not list(bench.place.results.rglob("*.part")), where
        if not bench.lab.system.started:
            continue
        rows = bench.csv
        assert whole.csv.startswith(rows), where
        assert rows == "" or rows.endswith("\n"), where
        if once and "manifest.json" not in failing_disk.failed[0]:
            assert bench.manifest["status"] != "running", where
        if bench.manifest["status"] != "complete":
            assert bench.resume() == 0, where
        assert bench.csv.startswith(rows), where
        same = ("trial", "achieved_rps", "valid")
        assert bench.column(*same) == whole.column(*same), where


@pytest.mark.parametrize("failure", [None, LabError("a fault"), Interrupted("stopped")])
def test_a_full_disk_has_room_for_how_the_run_ended(ready: Bench, failure: LabError | None) -> None:
    reserve, ended = ready.place.results / RESERVE, []

    def end(status: str) -> None:
        assert not reserve.exists()
        ended.append(status)
        if failure is not None:
            raise ValueError("no report")

    with contextlib.suppress(LabError), ending(reserve.parent, end, ready.console):
        assert reserve.stat().st_size == RESERVE_BYTES
        if failure is not None:
            raise failure
    status = {None: "complete", Interrupted: "interrupted"}.get(failure and type(failure), "failed")
    assert ended == [status]
    # The first error is the one that is raised.
    assert ("ValueError: no report" in ready.said) == (failure is not None)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content, middle: b"",
        lambda content, middle: content[:middle],
        # A block that was never written.
        lambda content, middle: content[:middle] + bytes(64) + content[middle + 64 :],
    ],
    ids=["empty", "half", "scrambled"],
)
@pytest.mark.usefixtures("plain")
def test_a_damaged_file_costs_one_trial_and_no_report(
    damage: Callable[[bytes, int], bytes], tmp_path: Path
) -> None:
    run_dir, raw, rows = stored("searched", tmp_path)
    known = attrgetter("trial", "server", "concurrency", "launch")
    for path in sorted(raw.iterdir()):
        content = path.read_bytes()
        path.write_bytes(damage(content, len(content) // 2))
        derived = derive(run_dir, ENGINES)
        path.write_bytes(content)
        first, *others = derived.rows
        assert others == rows[1:], path.name
        assert known(first) == known(rows[0])
        if path.name in ("trial.json", "pacer.jsonl.gz"):
            assert first.achieved_rps is None
        if path.name == "plan.json":
            assert first == rows[0]
        else:
            assert not first.valid
            assert path.name in first.invalid_reasons
    assert derive(run_dir, ENGINES).rows == tuple(rows)
    # With neither record nor plan it is left out, which is said.
    for name in RECORDS:
        (raw / name).write_text("{")
    derived = derive(run_dir, ENGINES)
    assert derived.result.unfinished == (raw.name,)
    assert [row.trial for row in derived.rows] == [row.trial for row in rows[1:]]


def stored(name: str, to: Path) -> tuple[Path, Path, list[Row]]:
    """A stored run, as it is kept today: the folder, that of its first trial, and its rows."""
    (run,) = STORED.glob(f"*-{name}")
    run_dir = shutil.copytree(run, to / run.name)
    for raw in (run_dir / "raw").iterdir():
        write_json(raw / "plan.json", read_json(raw / "trial.json", TrialRecord).plan)
    rows = [*derive(run_dir, ENGINES).rows]
    return run_dir, min((run_dir / "raw").iterdir()), rows


SEARCH: dict[str, Any] = {
    "kind": "stress", "concurrencies": (100,), "modes": ("open",), "servers": ("a",),
    "own": to_json(Search((Objective(p95_ms=500.0),), "connections", 100, 200, 0.08, 200)),
}  # fmt: skip


@pytest.mark.parametrize("damaged", [("trial.json",), ("fake.txt",), RECORDS], ids="+".join)
def test_a_damaged_trial_in_the_middle_of_a_search_costs_its_row_only(
    ready: Bench, monkeypatch: pytest.MonkeyPatch, damaged: tuple[str, ...]
) -> None:
    ready.interrupt(**SEARCH)
    first = ready.run_dir / "raw" / "001-a-open-c100"
    for name in damaged:
        (first / name).write_text("{")
    read = ready.lab.engine.read

    def read_whole(plan: TrialPlan, raw: Path) -> Reading:
        if (raw / "fake.txt").read_text() == "{":
            raise RawDataError(raw / "fake.txt", 1, "is cut off")
        return read(plan, raw)

    monkeypatch.setattr(ready.lab.engine, "read", read_whole)
    ready.resume()
    assert ready.manifest["status"] == "complete"
    trials = dict(ready.column("trial", "valid"))
    # With neither record nor plan nothing of it is left in the table.
    assert trials.pop("001-a-open-c100", None) == (None if damaged == RECORDS else "false")
    assert set(trials.values()) == {"true"}
    assert len([*ready.run_dir.glob("abandoned/*/001-a-open-c100")]) == (damaged == RECORDS)
    [found] = ready.findings
    assert (found["value"], found["open_above"]) == (200.0, True)


def test_space_is_checked_before_every_trial(ready: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    free = iter([2**30, 65 * 2**20, 63 * 2**20])
    usage = shutil.disk_usage(ready.place.results)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=next(free)))
    said = r"^[^\n]*has 63 MiB free; 02-a-root-open-c200 needs 64 MiB[^\n]*$"
    with pytest.raises(LabError, match=said):
        ready.run(servers=("a",), modes=("open",), routes=("/downstream", "/"), rate_rps=900)
    assert ready.column("valid") == ["true"]
    assert ready.manifest["status"] == "failed"


@pytest.mark.parametrize(
    ("step_s", "valid"), [(0.4, "true"), (-0.4, "true"), (5.0, "false"), (-60.0, "false")]
)
def test_a_clock_that_is_set_during_a_trial_makes_it_invalid(
    ready: Bench, step_s: float, valid: str
) -> None:
    ready.lab.system.at(15.0, lambda: setattr(ready.lab.system, "stepped_s", step_s))
    ready.run(servers=("a",), modes=("open",), concurrencies=(100, 200))
    again = ["true"] if valid == "false" else []
    assert ready.column("valid") == [valid, *again, "true"]
    if valid == "false":
        reason = f"clock-set took_s=25 wall_s={25 + step_s:g}"
        assert ready.rows[0]["invalid_reasons"] == reason


def test_the_agent_is_told_of_the_next_trial_after_it_was_lost(ready: Bench) -> None:
    ready.lab.system.at(12.0, lambda: setattr(ready.lab, "agent_up", False))
    ready.lab.system.at(20.0, lambda: setattr(ready.lab, "agent_up", True))
    ready.run(modes=("open",))
    assert ready.lab.marks == [
        mark
        for trial in ("01-a-open-c200", "02-b-open-c200")
        for mark in ((trial, "warmup"), (trial, "measure"), ("", "end"))
    ]
