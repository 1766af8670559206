"""What a run changed is found again as it was, wherever the driver was killed."""

from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from lab.cli import do
from lab.errors import LabUnreachable, RawDataError
from lab.model import ToxicStep
from lab.model.toxics import WHOLE_PROXY
from lab.subject.changes import Change, Journal, Knobs, Toxics, Values
from lab.subject.proxy_reset import clear_proxy
from lab.subject.timeline import Timeline
from lab.system.host import System
from lab.system.lock import FOLDER
from lab.system.management import Management
from lab.system.stack import Stack
from support.fakes import FakeLab, plan, toxic

OWN, PLANTED = toxic("own", latency=5, toxicity=0.5), toxic("planted", latency=800)
PROXY = ("downstream", WHOLE_PROXY)
POOL = ("a", "pool_size")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".changed.concurrency-lab.json"


def toxics(lab: FakeLab) -> Toxics:
    return Toxics(lab.stack.toxiproxy)


def knobs(lab: FakeLab) -> Knobs:
    return Knobs(Management(lab.stack.http, "a"))


def limited(lab: FakeLab, path: Path) -> tuple[Change, Change]:
    """A toxic and a knob that were changed."""
    journal = Journal(path)
    changes = Change(toxics(lab), journal), Change(knobs(lab), journal)
    changes[0].apply({("downstream", "planted"): PLANTED})
    changes[1].apply({POOL: 20})
    return changes


def changed(random: Random) -> Values:
    if random.random() < 0.2:
        return {PROXY: random.random() < 0.5}
    name = random.choice("abcd")
    value = random.choice([None, toxic(name, random.randrange(1, 4))])
    return {("downstream", name): value}


@pytest.mark.parametrize("seed", range(60))
def test_killed_anywhere_it_is_found_as_it_was(lab: FakeLab, path: Path, seed: int) -> None:
    random = Random(seed)
    lab.toxics = [toxic(name, latency=7) for name in random.sample("abc", random.randrange(4))]
    found, journal = toxics(lab).read(), Journal(path)
    condition, script = (Change(toxics(lab), journal) for _ in range(2))
    # From this call on nothing that is asked for happens.
    lab.stuck_from = random.choice([None, random.randrange(12)])
    with suppress(LabUnreachable):
        condition.apply(changed(random) | changed(random))
        for _ in range(random.randrange(4)):
            script.apply(changed(random))
        script.undo()
        condition.bring(changed(random))
        if random.random() < 0.5:
            condition.undo()
            assert toxics(lab).read() == found
            assert not path.exists()
    lab.stuck_from = None
    Journal(path).put_back(lab.stack)
    assert toxics(lab).read() == found
    assert not path.exists()


OTHER = toxic("planted", latency=100)


@pytest.mark.parametrize(
    ("found", "then", "back"),
    [
        ((20, [OWN, PLANTED]), (123, [OWN]), "downstream/planted, pool_size of a"),
        # Changed since; and back already, or not done yet.
        ((77, [OWN, OTHER]), (77, [OWN, OTHER]), None),
        ((123, [OWN]), (123, [OWN]), None),
    ],
)
def test_what_is_as_it_was_left_is_put_back(
    lab: FakeLab, path: Path, found: Any, then: Any, back: str | None
) -> None:
    lab.pool_sizes["a"], lab.toxics = 123, [OWN]
    limited(lab, path)
    lab.pool_sizes["a"], lab.toxics = found[0], [*found[1]]
    left = Journal(path).put_back(lab.stack)
    assert (left and left.values) == (back and {"back": back})
    assert (lab.pool_sizes["a"], lab.toxics) == then
    assert not path.exists()
    assert Journal(path).put_back(lab.stack) is None


def test_it_is_written_before_the_change(lab: FakeLab, path: Path) -> None:
    there: list[bool] = []
    lab.clock = lambda: float(there.append(path.exists()) or 0)
    Change(toxics(lab), Journal(path)).apply({PROXY: False})
    assert there == [True]


def test_what_does_not_answer_is_put_back_by_a_later_driver(lab: FakeLab, path: Path) -> None:
    limited(lab, path)
    lab.down.add("toxiproxy")
    assert Journal(path).put_back(lab.stack).values == {"back": "pool_size of a"}
    assert Journal(path).put_back(lab.stack) is None
    # What a later driver finds is what was left.
    journal = Journal(path)
    lab.down.clear()
    later = Change(toxics(lab), journal)
    later.apply({("downstream", "planted"): toxic("planted", latency=9)})
    later.undo()
    assert journal.put_back(lab.stack).values == {"back": "downstream/planted"}
    assert lab.toxics == []
    assert not path.exists()


def test_a_change_has_only_what_differs(lab: FakeLab) -> None:
    lab.pool_sizes["a"] = 123
    change = Change(knobs(lab), Journal(None))
    change.keep()
    assert change.as_found
    change.bring({POOL: 20})
    change.bring({POOL: 20})
    change.bring({("a", "downstream_connections"): 30})
    assert (lab.pool_sizes["a"], change.as_found) == (123, False)
    # A JVM that starts again has what it starts with.
    lab.pool_sizes["a"] = 200
    change.bring({}, leave=("pool_size",))
    assert lab.pool_sizes["a"] == 200
    change.undo()
    assert change.as_found
    assert lab.patches == [
        ("a", {"pool_size": 20}),
        ("a", {"pool_size": 123, "downstream_connections": 30}),
        ("a", {"downstream_connections": 20_000}),
        ("a", {"pool_size": 123}),
    ]


def test_a_script_that_was_cut_short_is_taken_back(lab: FakeLab, path: Path) -> None:
    lab.toxics.append(OWN)
    steps = (
        ToxicStep(2, {"TYPE": "latency", "LATENCY": "300"}),
        ToxicStep(5, {"NAME": "latency", "LATENCY": "500"}),
        ToxicStep(8, {"NAME": "own", "REMOVE": "yes"}),
        ToxicStep(9, {"TYPE": "down"}),
    )
    for undone in (False, True):
        # The window of the load opens at 10 s.
        script = Timeline(plan(script=steps), 10.0, lab.stack, Journal(path), lab.system)
        script.tick(19.0)
        assert (lab.enabled, lab.toxics[0]["name"], path.exists()) == (False, "latency", True)
        if undone:
            script.undo()
        else:
            back = {"back": "downstream/latency, downstream/own, downstream"}
            assert Journal(path).put_back(lab.stack).values == back
        assert (lab.toxics, lab.enabled, path.exists()) == ([OWN], True, False)


def test_a_proxy_that_is_taken_down_comes_up_again(lab: FakeLab, path: Path) -> None:
    lab.proxy_files = 16_000
    kept: list[str] = []
    lab.clock = lambda: float(kept.append(path.read_text()) or 0)
    clear_proxy(lab.stack, lab.system, Journal(path))
    assert (lab.enabled, path.exists()) == (True, False)
    # Killed before it was up again.
    lab.clock = lambda: 0.0
    lab.enabled = False
    path.write_text(kept[1])
    assert Journal(path).put_back(lab.stack).values == {"back": "downstream"}
    assert lab.enabled


def test_a_file_that_is_none_is_one_line(path: Path) -> None:
    path.write_text("{}}")
    with pytest.raises(RawDataError, match="is not JSON"):
        Journal(path)


def test_the_next_measurement_does_it_where_it_has_the_lab_to_itself(
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
    limited(lab, kept)
    answers = httpx.MockTransport(lab.answer)
    monkeypatch.setattr("lab.app.tools.Stack", lambda urls, **_: Stack(urls, answers))
    monkeypatch.setattr("lab.app.verbs.run", lambda *_, **__: 0)
    monkeypatch.setattr(System, "catch_signals", lambda _: None)
    # Without a lock nobody knows whether its driver lives.
    assert do(["bench", "CONC=10"], {"LAB_HOME": str(home)}) == 0
    assert kept.exists()
    (home / FOLDER).mkdir()
    assert do(["bench", "CONC=10"], {"LAB_HOME": str(home)}) == 0
    assert not kept.exists()
    assert lab.pool_sizes["a"] == 200
    assert "Put back as they were: downstream/planted, pool_size of a." in capsys.readouterr().out
