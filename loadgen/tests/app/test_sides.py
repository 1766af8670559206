"""The two sides of a comparison: which rows they are, and what they may differ in."""

import copy
import shutil
from pathlib import Path
from typing import Any

import pytest

from lab.app.call import Call
from lab.app.derive import derive
from lab.app.sides import MAY_DIFFER, Side, notes_of, pairs, read_sides
from lab.errors import LabError, WordError
from lab.kinds.explain import Explain
from lab.model import Fairness, Remark, Request, ToxicState, TrialPlan
from lab.store.records import to_json
from support.fakes import IDENTITY, FakeEngine, snapshot
from support.runs import EXPERIMENT, HOST, VERSIONS, plans, with_images, write_manifest, write_raw

ONE, TWO, THREE = (f"20260131T12000{n}Z-aa" for n in range(3))
WITHOUT_CPUS = {name: fact for name, fact in HOST.items() if name != "cpusets"}


def armed() -> list[TrialPlan]:
    """The trials of both arms of every server, in turns."""
    return [
        copy.replace(one, trial=f"{one.trial}-{arm}", arm=arm)
        for one in plans(7)
        for arm in ("left", "right")
    ]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for name in (ONE, TWO):
        write_raw(write_manifest(tmp_path / "results", name), plans(8))
    return tmp_path / "results"


def sides(results: Path, a: str = ONE, b: str = TWO) -> tuple[Side, Side]:
    call = Call("compare", {"A": a, "B": b}, {"LAB_HOME": str(results.parent)})
    return read_sides(call, [FakeEngine()], "A", "B")


def noted(results: Path, *names: str, verb: str = "compare") -> dict[str, list[Remark]]:
    """The notes on these sides by code."""
    found: dict[str, list[Remark]] = {}
    for note in notes_of(verb, *sides(results, *names)):
        found.setdefault(note.code, []).append(note)
    return found


@pytest.mark.parametrize(
    ("a", "b", "compared"),
    [
        (ONE, TWO, [(f"{ONE}:a", f"{TWO}:a"), (f"{ONE}:b", f"{TWO}:b")]),
        ("latest", TWO, [(f"{ONE}:a", f"{TWO}:a"), (f"{ONE}:b", f"{TWO}:b")]),
        (f"{ONE}:a", f"{TWO}:b", [(f"{ONE}:a", f"{TWO}:b")]),
        # The lane of one is that of both.
        (f"{ONE}:a", TWO, [(f"{ONE}:a", f"{TWO}:a")]),
        (ONE, f"{TWO}:b", [(f"{ONE}:b", f"{TWO}:b")]),
        (f"{THREE}:a@left", f"{THREE}:a@right", [(f"{THREE}:a@left", f"{THREE}:a@right")]),
        # A server is all of its arms.
        (f"{ONE}:a", f"{THREE}:a", [(f"{ONE}:a", f"{THREE}:a")]),
        (ONE, THREE, []),
    ],
)
def test_a_side_is_a_run_a_server_or_an_arm(
    results: Path, a: str, b: str, compared: list[tuple[str, str]]
) -> None:
    write_raw(write_manifest(results, THREE), armed())
    (results / "latest").symlink_to(ONE)
    found = pairs(*sides(results, a, b))
    assert [(name_a, name_b) for (name_a, _), (name_b, _) in found] == compared
    if b == f"{THREE}:a":
        assert len(found[0][1][1]) == 2 * len(found[0][0][1]) * 7 // 8


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ("nowhere", TWO, "A=nowhere is not a run"),
        ("../etc", TWO, "A=../etc is not a run"),
        ("", TWO, "A= is not a run"),
        (f"{ONE}:c", f"{TWO}:a", "has no trials; allowed: a, b"),
        (f"{ONE}:a@left", TWO, "has no trials; allowed: a, b"),
        (ONE, ONE, "are on both sides"),
        (f"{ONE}:a", ONE, "are on both sides"),
    ],
)
def test_bad_words_are_refused(results: Path, a: str, b: str, said: str) -> None:
    with pytest.raises(WordError, match=said):
        sides(results, a, b)


def test_a_run_whose_lab_was_changed_on_purpose_is_no_side(results: Path) -> None:
    changed = of_experiment(kind="explain", launches=0, own=to_json(Explain(6, 4)))
    write_raw(write_manifest(results, THREE, **changed), plans(8))
    with pytest.raises(LabError, match="is of kind explain"):
        sides(results, THREE)


def of_experiment(**changes: object) -> dict[str, Any]:
    """Of a manifest: the experiment with these changes."""
    return {"experiment": copy.replace(EXPERIMENT, **changes)}


def of_server(**changes: object) -> dict[str, Any]:
    """Of a manifest: server a as it was read back."""
    return {"servers": {"a": snapshot(**changes), "b": snapshot()}}


IMAGES, SETTINGS = {"images": {"base": "x/a:1"}}, {"settings": {"1": "FRONTS"}}
DIFFERENCES: list[tuple[str, str, dict[str, Any]]] = [
    ("host", "kernel", {"host": {**HOST, "kernel": "other"}}),
    ("limits", "open_files", {"limits": {"open_files": 1024, "generator_cores": 2}}),
    ("limits", "generator_cores", {"limits": {"open_files": 20_000}}),
    ("limits", "jvm_flags of a", of_server(identity=copy.replace(IDENTITY, jvm_flags=()))),
    ("limits", "pool_size of a", of_server(settings={"pool_size": 4})),
    ("limits", "toxics of a", of_server(toxics=ToxicState(("latency 500 ms",), 500.0))),
    ("limits", "delay", of_server(downstream_delay_ms=100.0)),
    ("limits", "CPU set of loadgen", {"host": WITHOUT_CPUS}),
    ("limits", "arrivals", of_experiment(arrivals="poisson")),
    ("limits", "target", of_experiment(target="http://shop:8080/")),
    ("limits", "requests", of_experiment(requests=(Request("/", weight=9),))),
    ("limits", "settings of arms", of_experiment(arms=("1", "2"), own=SETTINGS)),
    ("parts", "toxiproxy", {"host": with_images("toxiproxy")}),
    ("images", "a", {"host": with_images("a")}),
    ("images", "jdk of a", of_server(identity=copy.replace(IDENTITY, jdk="26"))),
    ("images", "images of arms", of_experiment(arms=("base",), own=IMAGES)),
    ("commit", "commit", {"versions": {**VERSIONS, "commit": "beef"}}),
]


@pytest.mark.parametrize(("word", "name", "changes"), DIFFERENCES)
def test_each_difference_is_noted_or_refused_as_the_table_says(
    results: Path, word: str, name: str, changes: dict[str, Any]
) -> None:
    write_raw(write_manifest(results, TWO, **changes), plans(8), changes.get("servers"))
    _, goes_on = MAY_DIFFER[word]
    for verb in ("compare", "gate"):
        if verb in goes_on:
            differs = noted(results, verb=verb)["differs"]
            assert word in {note.values["word"] for note in differs if name in note.values["name"]}
        else:
            with pytest.raises(LabError, match=f"^A and B differ in {word}: .*{name}"):
                noted(results, verb=verb)
    if name.endswith(" of a") or name == "a":
        # Nothing of the other server.
        assert "differs" not in noted(results, f"{ONE}:b", f"{TWO}:b")


def test_different_servers_need_equal_limits_but_not_what_makes_them_models(results: Path) -> None:
    loops: dict[str, Any] = {"loops": 2, "pool_size": None, "downstream_connections": 20_000}
    for connections, names in ((20_000, []), (10, ["downstream_connections"])):
        of_b = snapshot(settings={**loops, "downstream_connections": connections})
        servers = {"a": snapshot(), "b": of_b}
        write_raw(write_manifest(results, TWO, servers=servers), plans(8), servers)
        found = noted(results, f"{ONE}:a", f"{TWO}:b").get("differs", [])
        assert [note.values["name"] for note in found] == names


def test_what_else_a_reader_must_know(results: Path) -> None:
    write_manifest(results, ONE, **of_experiment(scale=0.1))
    write_manifest(results, TWO, status="interrupted")
    write_raw(results / TWO, plans(8, ("a",)))
    found = noted(results)
    assert [*found] == ["apart", "scaled", "unfinished", "only"]
    assert found["only"][0].values == {"side": "A", "lanes": "b"}
    assert [*noted(results, f"{ONE}:a", f"{ONE}:b")] == ["scaled"]


def test_one_run_s_own_servers_are_compared_whatever_it_recorded(results: Path) -> None:
    unequal = Fairness({}, {}, {"backlog": {"a": 1, "b": 2}})
    write_manifest(results, ONE, fairness=unequal, host={}, versions={"commit_dirty": True})
    assert noted(results, f"{ONE}:a", f"{ONE}:b", verb="gate") == {}


def test_both_sides_are_judged_again_and_without_raw_data_refused(results: Path) -> None:
    derive(results / ONE, [FakeEngine()])
    table = results / ONE / "trials.csv"
    table.write_text(table.read_text().replace(",true,", ",false,"))
    assert {row.valid for side in sides(results) for row in side.rows} == {True}
    shutil.rmtree(results / ONE / "raw" / "05-a-closed")
    with pytest.raises(LabError, match=f"{ONE} has no raw data of 05-a-closed"):
        sides(results)
    # Nor does a trial that cannot be read go missing without a word.
    (results / TWO / "raw" / "05-a-closed" / "plan.json").write_text("{")
    (results / TWO / "raw" / "05-a-closed" / "trial.json").write_text("{")
    with pytest.raises(LabError, match=f"{TWO} has no raw data of 05-a-closed"):
        sides(results, TWO, ONE)
    shutil.rmtree(results / TWO / "raw")
    with pytest.raises(LabError, match=f"{TWO} has no raw data: "):
        sides(results, TWO, ONE)
