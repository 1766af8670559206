"""The process of an engine, what it writes, and loads beside a trial."""

import gzip
import json
from pathlib import Path
from unittest.mock import ANY

import pytest

from lab.load.bench import STEP_S, Bench, EngineRun, closed_load
from lab.load.engines import Schedule
from lab.load.engines.pacer import PACKED, Pacer
from lab.load.engines.pacer_output import read_output
from lab.subject.jvm import Answered
from support.fakes import FakeEngine, FakeLab, plan
from support.pacer import second
from support.repo import REPO
from support.system import FakeSystem

# A closed load of a real run.
STORED = REPO / "loadgen/tests/app/stored/20261128T142705Z-interrupted/raw"


def run_of(system: FakeSystem, length_s: float, tmp_path: Path) -> EngineRun:
    argv, files = ("fake", str(length_s)), {"load.json": "{}"}
    schedule = Schedule(argv, "out.txt", length_s, 0, 1, files=files)
    return EngineRun(system, schedule, tmp_path)


def test_steps_last_until_the_engine_ends(system: FakeSystem, tmp_path: Path) -> None:
    started: list[str] = []
    start = system.start
    system.start = lambda argv, output, _: (
        started.append((tmp_path / "load.json").read_text()),
        start(argv, output),
    )[1]
    with run_of(system, 1.0, tmp_path) as run:
        # Its files were there when it started.
        assert started == ["{}"]
        assert list(run.steps()) == pytest.approx([step * STEP_S for step in range(5)])
        assert run.ended
    assert not system.processes[0].stopped_early
    # Past its time it is ended with the block.
    with run_of(system, 100.0, tmp_path) as run:
        assert max(run.steps(most_s=2.0)) == pytest.approx(2.0)
        assert not run.ended
    assert system.processes[1].stopped_early


def test_an_engine_that_wrote_nothing_has_no_lines(system: FakeSystem, tmp_path: Path) -> None:
    run, path = run_of(system, 1.0, tmp_path), tmp_path / "out.txt"
    path.unlink()
    assert run.hear() == []
    path.write_text("one\n\ntw")
    assert (run.hear(keep=True), run.hear(), run.words) == (["one", ""], [], "tw")
    # Nothing is kept of a long load.
    path.write_text(f"one\n\n{json.dumps(second(0, [1.0]))}\n")
    assert (len(run.hear()), run.seconds) == (1, [])


def test_what_pacer_counts_is_known_while_it_runs(lab: FakeLab, tmp_path: Path) -> None:
    lab.answers, lab.errors = lambda connections: (10.0 * connections, [100, 300], 5), 0.1
    with bench(lab.system, lab.engine, tmp_path).counted.watched(7, 4) as run:
        for _ in run.steps(3.1):
            run.hear(keep=True)
        # 70 a second, of which 7 failed; those count from when they were sent.
        assert run.answered(1) == Answered(140, 14, 2.0, pytest.approx(100, rel=1e-3), ANY, 5.0)
        assert run.answered(1).mean_ms == pytest.approx(200, rel=0.02)
        assert (run.answered(1).rps, run.answered(3).rps) == (70, 0)
        assert (run.answered(1).good, run.answered(3).good) == (False, False)


def test_a_recorded_load_counts_as_its_engine_says(system: FakeSystem, tmp_path: Path) -> None:
    run, [packed] = run_of(system, 1.0, tmp_path), STORED.glob(f"*/{PACKED}")
    (tmp_path / "out.txt").write_bytes(gzip.decompress(packed.read_bytes()))
    run.hear(keep=True)
    output = read_output(packed)
    assert run.seconds == list(output.seconds)
    assert run.answered().count == output.end.ok + output.end.http_errors


def bench(system: FakeSystem, engine: FakeEngine, tmp_path: Path) -> Bench:
    return Bench(plan("open"), engine, system, tmp_path / "beside")


def test_its_folder_begins_empty_and_is_gone_afterwards(
    system: FakeSystem, engine: FakeEngine, tmp_path: Path
) -> None:
    folder = tmp_path / "beside"
    folder.mkdir()
    (folder / "left").touch()
    with bench(system, engine, tmp_path).watched(7, 4):
        assert [path.name for path in folder.iterdir()] == ["fake.txt"]
    assert not folder.exists()


def test_a_side_load_takes_nothing_of_its_trial_but_the_target(tmp_path: Path) -> None:
    load = closed_load(plan("open", warmup_s=20), 7, 4)
    assert (load.mode, load.concurrency) == ("closed", 7)
    assert (load.offered_rps, load.warmup_s) == (None, None)
    assert load.url == plan().url
    # That of a held trial is a whole load.
    load = closed_load(plan("closed", hold="in-flight"), 7, 4)
    (kept,) = Pacer().schedule(load, tmp_path).files.values()
    assert "once" not in json.loads(kept)
