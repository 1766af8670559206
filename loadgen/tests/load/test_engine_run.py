"""The process of an engine, what it writes, and loads beside a trial."""

import json
from pathlib import Path

import pytest

from lab.load.engine_run import STEP_S, EngineRun, Tail, closed_load, scratch
from lab.load.engines import Schedule
from lab.load.engines.pacer import Pacer
from support.fakes import plan
from support.system import FakeSystem


def run_of(system: FakeSystem, length_s: float, tmp_path: Path) -> EngineRun:
    files = {"load.json": "{}"}
    schedule = Schedule(None, 0, ("fake", str(length_s)), "out.txt", length_s, 0, 1, files=files)
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


def test_whole_lines_are_read_as_they_come_and_each_once(tmp_path: Path) -> None:
    tail, path = Tail(tmp_path / "out"), tmp_path / "out"
    assert tail.lines() == []
    path.write_text("one\ntw")
    assert tail.lines() == ["one"]
    assert tail.lines() == []
    with path.open("a") as file:
        file.write("o\n\nthr")
    assert tail.lines() == ["two", ""]
    with path.open("a") as file:
        file.write("ee\n")
    assert tail.lines() == ["three"]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_any_failure_ends_the_engine(
    system: FakeSystem, tmp_path: Path, failure: type[BaseException]
) -> None:
    with pytest.raises(failure), run_of(system, 100.0, tmp_path):
        raise failure
    assert system.processes[0].stopped_early


def test_a_scratch_folder_begins_empty_and_is_gone_afterwards(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "left").touch()
    with scratch(tmp_path / "x") as folder:
        assert list(folder.iterdir()) == []
    assert not (tmp_path / "x").exists()


def test_a_side_load_takes_nothing_of_its_trial_but_the_target(tmp_path: Path) -> None:
    load = closed_load(plan("open", warmup_s=20), "light-load", 7, 4)
    assert (load.mode, load.concurrency) == ("closed", 7)
    assert (load.offered_rps, load.warmup_s) == (None, None)
    assert load.url == plan().url
    # That of a held trial is a whole load.
    load = closed_load(plan("closed", hold="in-flight"), "warm-up", 7, 4)
    assert load.hold is None
    (told,) = Pacer().schedule(load, tmp_path).files.values()
    assert "once" not in json.loads(told)
