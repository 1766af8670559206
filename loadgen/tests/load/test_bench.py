"""The process of an engine, what it writes, and loads beside a trial."""

import json
from pathlib import Path

import pytest

from lab.errors import NoFigures, WordError
from lab.load.bench import LEAD_S, STEP_S, Bench, EngineRun, closed_load
from lab.load.engines import Schedule
from lab.load.engines.pacer import Pacer
from lab.model import TrialPlan
from support.fakes import FakeEngine, plan
from support.system import FakeSystem


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


def test_whole_lines_are_read_as_they_come_and_each_once(
    system: FakeSystem, tmp_path: Path
) -> None:
    run, path = run_of(system, 1.0, tmp_path), tmp_path / "out.txt"
    path.unlink()
    assert run.lines() == []
    path.write_text("one\ntw")
    assert run.lines() == ["one"]
    assert run.lines() == []
    with path.open("a") as file:
        file.write("o\n\nthr")
    assert run.lines() == ["two", ""]
    with path.open("a") as file:
        file.write("ee\n")
    assert (run.lines(), run.words) == (["three"], "three")


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_any_failure_ends_the_engine(
    system: FakeSystem, tmp_path: Path, failure: type[BaseException]
) -> None:
    with pytest.raises(failure), run_of(system, 100.0, tmp_path):
        raise failure
    assert system.processes[0].stopped_early


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


def test_a_short_load_is_read_at_both_edges_of_its_window(
    system: FakeSystem, tmp_path: Path
) -> None:
    class Calibrates(FakeEngine):
        """Needs its own warm-up, which the fake's is."""

        def schedule(self, plan: TrialPlan, raw: Path) -> Schedule:
            if plan.warmup_s == LEAD_S:
                raise WordError("less than its own calibration")
            return super().schedule(plan, raw)

    for engine in (FakeEngine(), Calibrates()):
        began_s = system.monotonic()
        done = bench(system, engine, tmp_path).short(7, 2, system.monotonic)
        assert done.opened - began_s == pytest.approx(10, abs=0.5)
        assert done.closed - began_s == pytest.approx(12, abs=0.5)
        assert done.reading.achieved_rps == 35


@pytest.mark.parametrize("why", ["hangs", "unreadable"])
def test_a_short_load_may_give_no_figures(
    system: FakeSystem, engine: FakeEngine, tmp_path: Path, why: str
) -> None:
    system.hangs = lambda argv: why == "hangs"
    engine.broken = "is empty"
    says = "did not end" if why == "hangs" else "gave no figures: is empty"
    with pytest.raises(NoFigures, match=says):
        bench(system, engine, tmp_path).short(7, 2, system.monotonic)
    assert not (tmp_path / "beside").exists()
