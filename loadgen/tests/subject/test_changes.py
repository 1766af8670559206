"""What a run changed is found again as it was, wherever the driver was killed."""

import itertools
import json
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

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


class Killed(BaseException):
    """Nothing of the driver runs from here on."""


@dataclass
class Calls:
    """A driver's calls of the lab. One of them (0: none) gets no answer, or all from it on, or the
    driver is killed there. That call itself may have `arrived`."""

    lab: FakeLab
    number: int
    then: str
    arrived: bool

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.number -= 1
        here = self.number == 0
        if not here and (self.number > 0 or self.then != "stuck"):
            return self.lab.answer(request)
        if here and self.arrived:
            self.lab.answer(request)
        if self.then == "killed":
            raise Killed
        raise httpx.ReadTimeout("slow", request=request)

    @property
    def stack(self) -> Stack:
        return Stack("", httpx.MockTransport(self))


TYPES = ("latency", "bandwidth")


def drawn_toxics(numbers: st.SearchStrategy[int]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda kind, number: {**toxic(), "type": kind, "attributes": {"number": number}},
        st.sampled_from(TYPES),
        numbers,
    )


def of_proxy(values: Mapping[str, Any]) -> Values:
    return {
        ("downstream", name): {**value, "name": name} if isinstance(value, dict) else value
        for name, value in values.items()
    }


FEW, OTHERS = st.integers(1, 2), st.integers(7, 9)
NAMES = st.sampled_from("ab")
POOLS = st.dictionaries(st.sampled_from([POOL, ("a", "downstream_connections")]), FEW)
CHANGES = st.one_of(
    st.dictionaries(NAMES, drawn_toxics(FEW) | st.none(), min_size=1),
    st.dictionaries(st.just(WHOLE_PROXY), st.booleans(), min_size=1),
).map(of_proxy)
# Of each trial the condition's toxics and knobs, and the changes of its script.
TRIALS = st.lists(st.tuples(CHANGES, POOLS, st.lists(CHANGES, max_size=1)), min_size=1, max_size=2)


def measured(stack: Stack, path: Path, trials: Any) -> None:
    """A driver's changes, some of which may fail."""
    journal = Journal(path)
    condition = Change(Toxics(stack.toxiproxy), journal)
    settings = Change(Knobs(Management(stack.http, "a")), journal)
    for wanted, pools, steps in trials:
        script = Change(condition.carrier, journal)
        for change, values in ((condition, wanted), (settings, pools)):
            with suppress(LabUnreachable):
                change.bring(values)
        for values in steps:
            with suppress(LabUnreachable):
                script.apply(values)
        with suppress(LabUnreachable):
            script.undo()
    for change in (settings, condition):
        with suppress(LabUnreachable):
            change.undo()


LATENCY, BANDWIDTH = ({("downstream", "a"): {**toxic("a"), "type": each}} for each in TYPES)


# One of another type takes the place of a toxic.
@example(LATENCY, [(BANDWIDTH, {}, [])], "killed", False, 4, {}, {})
@settings(max_examples=7)
@given(
    st.dictionaries(NAMES, drawn_toxics(FEW), min_size=1).map(of_proxy),
    TRIALS,
    st.sampled_from(["late", "stuck", "killed"]),
    st.booleans(),
    st.integers(0, 4),
    st.dictionaries(NAMES, drawn_toxics(OTHERS), max_size=1).map(of_proxy),
    st.dictionaries(st.just(POOL), OTHERS),
)
def test_killed_anywhere_it_is_found_as_it_was(
    found: Values, trials: Any, then: str, arrived: bool, again: int, others: Values, pools: Values
) -> None:
    """But for what others have changed since. Also where `again` a driver is killed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "changed.json"
        for number in itertools.count(1):
            lab = FakeLab()
            lab.toxics = [*found.values()]
            before = state(lab)
            run = Calls(lab, number, then, arrived)
            with suppress(Killed):
                measured(run.stack, path, trials)
            if run.number > 0:
                assert (state(lab), path.exists()) == (before, False)
                return
            with suppress(Killed):
                Journal(path).put_back(Calls(lab, again, then, arrived).stack)
            kept = {("downstream", each["name"]): each for each in lab.toxics}
            lab.toxics = [*{**kept, **others}.values()]
            lab.pool_sizes["a"] = pools.get(POOL, lab.pool_sizes["a"])
            left = state(lab)
            news = Journal(path).put_back(lab.stack)
            assert state(lab) == {**before, **others, **pools}
            assert (news is None) == (left == state(lab))
            assert not path.exists()


def state(lab: FakeLab) -> Values:
    return {**toxics(lab).read(), **knobs(lab).read()}


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


ENTRY = {"kind": "toxic", "part": "downstream", "name": "x", "found": {"a": 1}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [("{}}", "is not JSON"), (json.dumps({"touched": [ENTRY]}), "touched")],
)
def test_a_file_that_is_none_is_one_line(path: Path, text: str, problem: str) -> None:
    path.write_text(text)
    with pytest.raises(RawDataError, match=problem):
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
