"""What a killed driver left is put back by the next one, but not what somebody changed since."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from lab.cli import do
from lab.errors import LabUnreachable, RawDataError
from lab.model import Condition, ToxicStep
from lab.system.conditions import Conditions
from lab.system.host import System
from lab.system.lock import FOLDER
from lab.system.proxy_reset import clear_proxy
from lab.system.stack import Stack
from lab.system.toxic_timeline import Timeline
from lab.system.undo_log import UndoLog
from support.fakes import FakeLab, plan, toxic
from support.system import FakeSystem
from system.test_conditions import SLOW, FakeHost

LIMITED = Condition(knobs={"pool_size": 20}, toxics=(SLOW,))
SCRIPT = (
    ToxicStep(2, {"TYPE": "latency", "LATENCY": "300"}),
    ToxicStep(5, {"NAME": "latency", "LATENCY": "500"}),
    ToxicStep(8, {"NAME": "own", "REMOVE": "yes"}),
    ToxicStep(9, {"TYPE": "down"}),
)
OWN, PLANTED = toxic("own", latency=5, toxicity=0.5), toxic("planted", latency=800)
LEFT = "what a run had left changed: "
BACK = f"{LEFT}put back as they were: "


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".changed.concurrency-lab.json"


def changing(lab: FakeLab, undo_log: UndoLog) -> Conditions:
    return Conditions(lab.stack, FakeHost(lab), lab.system, FakeSystem(), undo_log)


@pytest.fixture
def conditions(lab: FakeLab, path: Path) -> Conditions:
    return changing(lab, UndoLog(path))


def timeline(lab: FakeLab, undo_log: UndoLog, *steps: ToxicStep) -> Timeline:
    """The script, or these steps, of a load whose window opens at 10 s."""
    script = plan(script=steps or SCRIPT)
    return Timeline(script, 10.0, lab.stack.toxiproxy, lab.system, undo_log)


WEAKER = toxic("planted", latency=100)
LEFT_BEHIND: dict[str, tuple[Any, Any, str | None]] = {
    # What is found, what is then, and what is said.
    "as it was left": (
        (20, [OWN, PLANTED]),
        (123, [OWN]),
        f"{BACK}downstream/planted, pool_size of a",
    ),
    "changed since": (
        (77, [OWN, WEAKER]),
        (77, [OWN, WEAKER]),
        f"{LEFT}changed since, so left alone: downstream/planted, pool_size of a",
    ),
    "back already, or not done yet": ((123, [OWN]), (123, [OWN]), None),
}


@pytest.mark.parametrize("case", LEFT_BEHIND)
def test_what_is_put_back(conditions: Conditions, lab: FakeLab, path: Path, case: str) -> None:
    (pool_size, toxics), then, said = LEFT_BEHIND[case]
    lab.pool_sizes["a"] = 123
    lab.toxics.append(OWN)
    conditions.bring("a", LIMITED)
    assert path.exists()
    lab.pool_sizes["a"], lab.toxics, patches = pool_size, [*toxics], len(lab.patches)
    assert UndoLog(path).put_back(lab.stack) == said
    assert (lab.pool_sizes["a"], lab.toxics) == then
    assert (len(lab.patches) > patches) == (pool_size == 20)
    assert not path.exists()
    assert UndoLog(path).put_back(lab.stack) is None


def test_it_is_written_before_the_change(conditions: Conditions, lab: FakeLab, path: Path) -> None:
    there: list[bool] = []
    lab.clock = lambda: float(there.append(path.exists()) or 0)
    conditions.bring("a", Condition(toxics=(SLOW,)))
    assert there == [True]


def test_a_run_that_puts_all_back_itself_leaves_no_file(conditions: Conditions, path: Path) -> None:
    conditions.bring("a", LIMITED)
    conditions.bring("a", Condition(knobs={"downstream_connections": 30}))
    assert "planted" not in path.read_text()
    assert conditions.restore() == []
    assert not path.exists()


def test_the_next_run_puts_back_the_rest(conditions: Conditions, lab: FakeLab, path: Path) -> None:
    conditions.bring("a", LIMITED)
    lab.down.add("toxiproxy")
    assert len(conditions.restore()) == 1
    # Nor can the next, which says nothing of what does not answer.
    assert UndoLog(path).put_back(lab.stack) is None
    lab.down.clear()
    assert UndoLog(path).put_back(lab.stack) == f"{BACK}downstream/planted"
    assert lab.toxics == []


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_a_script_that_was_cut_short_is_taken_back(steps: int, lab: FakeLab, path: Path) -> None:
    lab.toxics.append(OWN)
    script = timeline(lab, UndoLog(path))
    for step in SCRIPT[:steps]:
        script.tick(10.0 + step.at_s)
    assert lab.enabled == (steps < 4)
    said = UndoLog(path).put_back(lab.stack)
    changed = ["downstream/latency", "downstream/own", "downstream"]
    assert said == BACK + ", ".join(changed[: max(1, steps - 1)])
    assert (lab.toxics, lab.enabled) == ([OWN], True)
    # One that is undone leaves no file.
    script = timeline(lab, UndoLog(path))
    script.tick(12.0)
    assert path.exists()
    script.undo()
    assert not path.exists()


def test_the_next_run_takes_a_script_back(lab: FakeLab, path: Path) -> None:
    undo_log = UndoLog(path)
    script = timeline(lab, undo_log)
    script.tick(12.0)
    lab.toxiproxy_stuck = True
    with pytest.raises(LabUnreachable):
        script.undo()
    lab.toxiproxy_stuck = False
    # A later script goes back to what it found: what the first one left.
    script = timeline(lab, undo_log)
    script.tick(12.0)
    script.undo()
    assert [toxic["name"] for toxic in lab.toxics] == ["latency"]
    assert UndoLog(path).put_back(lab.stack) == f"{BACK}downstream/latency"
    assert lab.toxics == []
    assert not path.exists()


def test_a_script_s_end_keeps_what_the_condition_changed(lab: FakeLab, path: Path) -> None:
    undo_log = UndoLog(path)
    changing(lab, undo_log).bring("a", Condition(toxics=(SLOW,)))
    script = timeline(lab, undo_log, ToxicStep(2, {"NAME": "planted", "LATENCY": "900"}))
    script.tick(12.0)
    script.undo()
    assert UndoLog(path).put_back(lab.stack) is not None
    assert lab.toxics == []


def test_a_later_driver_keeps_a_knob(conditions: Conditions, lab: FakeLab, path: Path) -> None:
    conditions.bring("a", LIMITED)
    lab.down |= {"a", "toxiproxy"}
    assert UndoLog(path).put_back(lab.stack) is None
    lab.down.clear()
    # What it finds now is what was left.
    later = changing(lab, UndoLog(path))
    later.bring("a", Condition(knobs={"pool_size": 30}))
    assert later.restore() == [f"{BACK}downstream/planted, pool_size of a"]
    assert lab.pool_sizes["a"] == 200
    assert lab.toxics == []
    assert not path.exists()


def test_a_proxy_that_is_taken_down_comes_up_again(lab: FakeLab, path: Path) -> None:
    lab.proxy_files = 16_000
    kept: list[str] = []
    lab.clock = lambda: float(kept.append(path.read_text()) or 0)
    clear_proxy(lab.stack, lab.system, UndoLog(path))
    assert lab.enabled
    assert not path.exists()
    # Killed before it was up again.
    lab.clock = lambda: 0.0
    lab.enabled = False
    path.write_text(kept[1])
    assert UndoLog(path).put_back(lab.stack) == f"{BACK}downstream"
    assert lab.enabled


def test_a_file_that_is_none_is_one_line(path: Path) -> None:
    path.write_text("{}}")
    with pytest.raises(RawDataError, match="is not JSON"):
        UndoLog(path)


def test_the_next_measurement_does_it_where_it_has_the_lab_to_itself(
    conditions: Conditions,
    lab: FakeLab,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    home = tmp_path / "home"
    (home / "results").mkdir(parents=True)
    (home / "servers").mkdir()
    (home / "servers" / "core.json").write_text('[{"targets": ["a"]}]')
    kept = home / "results" / ".changed.concurrency-lab.json"
    conditions.bring("a", LIMITED)
    (tmp_path / kept.name).rename(kept)
    answers = httpx.MockTransport(lab.answer)
    monkeypatch.setattr("lab.campaign.call.Stack", lambda urls, **_: Stack(urls, answers))
    monkeypatch.setattr("lab.campaign.verbs.run", lambda *_, **__: 0)
    monkeypatch.setattr(System, "catch_signals", lambda _: None)
    # Without a lock nobody knows whether its driver lives.
    assert do(["bench", "CONC=10"], {"LAB_HOME": str(home)}) == 0
    assert kept.exists()
    (home / FOLDER).mkdir()
    assert do(["bench", "CONC=10"], {"LAB_HOME": str(home)}) == 0
    assert not kept.exists()
    assert lab.pool_sizes["a"] == 200
    assert "put back as they were: downstream/planted, pool_size of a" in capsys.readouterr().out
