"""What is derived from the raw data of a run, and when it is written."""

import copy
import json
import shutil
from pathlib import Path

import pytest

from lab.app.derive import derive, read_trial
from lab.errors import RawDataError
from lab.model import Row, ToxicState
from lab.store import csv, manifest
from lab.store.records import write_json
from support.fakes import IDENTITY, FakeEngine, cells, plan, record, rounded, snapshot
from support.runs import Jittery, plans, write_manifest, write_raw
from support.table import read_rows

TABLES = ("trials.csv", "trials.jsonl", "findings.json", "comparison.json")
FILES = (*TABLES, "REPORT.md", "answer.txt", "report.html", "figures")


def contents(run_dir: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run_dir.iterdir() if path.is_file()}


def test_everything_is_made_from_the_raw_data(run_dir: Path) -> None:
    derived = derive(run_dir, [Jittery()])
    assert derived.files == derived.changed == FILES
    assert len(derived.rows) == 28
    [of] = derived.result.comparisons
    assert {answer.place for answer in of.answers} == {"within"}
    assert json.loads((run_dir / "findings.json").read_text()) == []
    [said] = json.loads((run_dir / "comparison.json").read_text())["comparisons"]
    assert said["family"] == {"answers": 2, "sides": 2}
    # Each trial is one JSON object with all that is known.
    told = [json.loads(line) for line in (run_dir / "trials.jsonl").read_text().splitlines()]
    assert [trial["trial"] for trial in told] == [row.trial for row in derived.rows]
    first = told[0]
    assert set(Row.columns()) < set(first)
    known = {"launch": 1, "argv": ["fake"], "jit_share": 0.02, "sent": None}
    assert {name: first[name] for name in known} == known
    assert first["usage"]["run_cpu_s"] == 5.0
    assert first["warmth"]["steady"] is True


def test_again_or_elsewhere_gives_the_same_bytes(run_dir: Path, tmp_path: Path) -> None:
    derive(run_dir, [Jittery()])
    before = contents(run_dir)
    times = {path: path.stat().st_mtime_ns for path in run_dir.iterdir()}
    assert derive(run_dir, [Jittery()]).changed == ()
    assert {path: path.stat().st_mtime_ns for path in run_dir.iterdir()} == times
    copy = tmp_path / "elsewhere" / "copy"
    shutil.copytree(run_dir / "raw", copy / "raw")
    shutil.copy(run_dir / "manifest.json", copy)
    derive(copy, [Jittery()])
    assert contents(copy) == before


def test_the_table_written_trial_by_trial_is_the_derived_one(run_dir: Path) -> None:
    of = manifest.read(run_dir)
    raws = sorted((run_dir / "raw").iterdir())
    rows = [read_trial(of, raw, [Jittery()]).row for raw in raws]
    csv.write(run_dir / "trials.csv", rows)
    derived = derive(run_dir, [Jittery()])
    assert derived.changed == FILES[1:]
    assert read_rows(run_dir / "trials.csv") == tuple(map(rounded, derived.rows))


@pytest.mark.parametrize("name", ["trials.csv", "REPORT.md"])
def test_an_edit_is_replaced(run_dir: Path, name: str) -> None:
    derive(run_dir, [Jittery()])
    before = contents(run_dir)
    (run_dir / name).write_bytes(before[name][:-200])
    assert derive(run_dir, [Jittery()]).changed == (name,)
    assert contents(run_dir) == before


def test_a_trial_that_never_ended_or_is_a_copy_is_left_out_and_named(run_dir: Path) -> None:
    raw = run_dir / "raw"
    (raw / "29-a-closed").mkdir()
    (raw / "29-a-closed" / "pacer.jsonl").write_text("")
    shutil.copytree(raw / "01-a-closed", raw / "30-a-closed")
    derived = derive(run_dir, [Jittery()])
    assert derived.result.unfinished == ("29-a-closed", "30-a-closed")
    assert len(derived.rows) == 28
    assert not {"29-a-closed", "30-a-closed"} & {row.trial for row in derived.rows}
    report = (run_dir / "REPORT.md").read_text()
    assert all(f"raw/{name}" in report for name in derived.unfinished)


def test_trials_are_in_the_order_of_their_numbers_and_others_refused(tmp_path: Path) -> None:
    run_dir = write_manifest(tmp_path)
    write_raw(run_dir, [plan(trial=f"{number}-a") for number in (100, 99, 9)])
    (run_dir / "raw" / "backup").mkdir()
    with pytest.raises(RawDataError, match="does not begin with a number"):
        derive(run_dir, [FakeEngine()])
    assert list(contents(run_dir)) == ["manifest.json"]
    (run_dir / "raw" / "backup").rmdir()
    assert [row.trial for row in derive(run_dir, [FakeEngine()]).rows] == ["9-a", "99-a", "100-a"]


def test_what_prometheus_saw_counts_in_the_judgement(run_dir: Path) -> None:
    # The window's series say nothing of any job: each trial gets that as a note.
    raw, of = run_dir / "raw" / "01-a-closed", manifest.read(run_dir)
    notes = read_trial(of, raw, [Jittery()]).judgement.notes
    assert "series-missing" in [note.code for note in notes]
    (raw / "series.jsonl.gz").write_bytes(b"not gzip")
    [reason] = read_trial(of, raw, [Jittery()]).judgement.reasons
    problem = str(reason.values["problem"])
    assert problem.startswith("series.jsonl.gz: cannot be read: Not a gzipped file")


def test_trials_under_other_toxics_than_the_run_began_with_are_invalid(tmp_path: Path) -> None:
    slow = ToxicState(("downstream/latency latency latency=300",), 300.0)
    servers = {"a": snapshot(), "b": snapshot(toxics=slow)}
    folder = write_manifest(tmp_path, servers=servers)
    first, second, *_ = plans()
    write_raw(folder, [first, second])
    raw = folder / "raw" / second.trial
    of = copy.replace(IDENTITY, model="b")
    at = snapshot(identity=of, toxics=slow, downstream_delay_ms=100.0)
    write_json(raw / "trial.json", record(second, before=at, after=at))
    rows = derive(folder, [Jittery()]).rows
    # The first server's snapshot counts, whatever the second's own was.
    assert rows[0].reasons == ()
    assert cells(rows[1].reasons) == [
        "differs what=toxics was=none now=downstream/latency latency latency=300",
        "differs what=delay was=200 ms now=100 ms",
    ]
    assert derive(folder, [Jittery()]).changed == ()
