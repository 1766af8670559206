"""The two sides of a comparison: which runs they pool, and what must be alike."""

import dataclasses
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from lab.campaign.derive import derive
from lab.campaign.sides import Paired, pair, read_sides
from lab.errors import LabError, WordError
from lab.experiments.explain import Explain
from lab.model import Fairness, Reading, Request, ToxicState, TrialPlan
from lab.report.comparison import reasons
from lab.store.records import to_json
from support.fakes import IDENTITY, FakeEngine, latency, reading, snapshot
from support.runs import EXPERIMENT, HOST, VERSIONS, plans, with_images, write_manifest, write_raw

ONE, TWO, THREE = (f"20260131T12000{n}Z-aa" for n in range(3))
WITHOUT_CPUS = {name: fact for name, fact in HOST.items() if name != "cpusets"}


class Halved(FakeEngine):
    """Of the arm `right` a closed load does half as much as of any other."""

    def read(self, plan: TrialPlan, raw: Path) -> Reading:
        if plan.arm != "right" or plan.mode == "open":
            return super().read(plan, raw)
        return reading(plan.concurrency * 2.5, raw=latency(400.0))


def armed(launches: int) -> list[TrialPlan]:
    """The trials of both arms of every server, in turns."""
    return [
        dataclasses.replace(one, trial=f"{one.trial}-{arm}", arm=arm)
        for one in plans(launches)
        for arm in ("left", "right")
    ]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for name in (ONE, TWO):
        write_raw(write_manifest(tmp_path, name), plans(8))
    return tmp_path


def compared(results: Path, **words: str) -> Paired:
    return pair(*read_sides({"A": ONE, "B": TWO, **words}, results, [Halved()]))


def refused(results: Path, refusal: type[LabError] = LabError, **words: str) -> str:
    with pytest.raises(refusal) as failure:
        compared(results, **words)
    assert "\n" not in str(failure.value)
    return str(failure.value)


def test_runs_alike_are_compared_server_by_server(results: Path) -> None:
    found = compared(results)
    assert [(of.a, of.b) for of in found.comparisons] == [
        (f"{ONE}:a", f"{TWO}:a"),
        (f"{ONE}:b", f"{TWO}:b"),
    ]
    assert {answer.place for of in found.comparisons for answer in of.answers} == {"within"}


def test_different_runs_are_said_not_to_be_interleaved_nor_paired(results: Path) -> None:
    def said(**words: str) -> str:
        answers = compared(results, **words).comparisons[0].answers
        return " ".join(reason for answer in answers for reason in reasons(answer))

    assert any("not interleaved" in note for note in compared(results).notes)
    assert said().count("the sides were not measured in turns") == 2
    sides = {"A": f"{ONE}:a", "B": f"{ONE}:b"}
    assert compared(results, **sides).notes == ()
    assert "in turns" not in said(**sides)
    # The JVMs that ran already have no launches to pair, and no interval either.
    running = [dataclasses.replace(one, launch=0) for one in plans(1)]
    write_raw(write_manifest(results, THREE), running)
    assert "in turns" not in said(A=f"{THREE}:a", B=f"{THREE}:b")


def test_latest_is_a_run(results: Path) -> None:
    (results / "latest").symlink_to(TWO)
    assert [of.b for of in compared(results, B="latest").comparisons] == [f"{TWO}:a", f"{TWO}:b"]


def test_a_lane_is_a_server_or_an_arm_of_it(results: Path) -> None:
    write_raw(write_manifest(results, THREE), armed(7))
    [of] = compared(results, A=f"{THREE}:a@left", B=f"{THREE}:a@right").comparisons
    assert [(answer.place, answer.paired) for answer in of.answers] == [
        ("worse", True),
        ("within", True),
    ]
    [of] = compared(results, A=f"{ONE}:a", B=f"{TWO}:b").comparisons
    assert of.b == f"{TWO}:b"
    [of] = compared(results, A=f"{ONE}:a", B=f"{THREE}:a").comparisons
    assert (of.answers[0].b.count, of.answers[0].paired) == (14, False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"A": "nowhere"}, "A=nowhere is not a run"),
        ({"A": "../etc"}, "A=../etc is not a run"),
        ({"A": "/etc"}, "is not a run"),
        ({"A": ""}, "A= is not a run"),
        ({"A": f"{ONE}:A B"}, "allowed: A=<run>"),
        ({"A": f"{ONE}:c", "B": f"{TWO}:a"}, "has no trials; its servers: a, b"),
        ({"A": f"{ONE}:a@left", "B": f"{TWO}:a"}, "has no trials; its servers: a, b"),
        ({"A": f"{ONE}:a"}, f"B={TWO} names no server"),
        ({"B": ONE}, "are on both sides"),
    ],
)
def test_bad_words_are_refused(results: Path, words: Mapping[str, str], said: str) -> None:
    assert said in refused(results, WordError, **words)
    with pytest.raises(WordError, match="B is missing"):
        read_sides({"A": ONE}, results)


LIMITS: dict[str, dict[str, object]] = {
    "open_files": {"limits": {"open_files": 1024, "generator_cores": 2}},
    "generator_cores": {"limits": {"open_files": 20_000}},
    "jvm_flags": {"identity": dataclasses.replace(IDENTITY, jvm_flags=())},
    "pool_size": {"settings": {"pool_size": 400, "downstream_connections": 20_000}},
    "toxics": {"toxics": ToxicState(("latency 500 ms",), 500.0)},
    "delay": {"downstream_delay_ms": 100.0},
}


@pytest.mark.parametrize("name", LIMITS)
def test_other_limits_are_named_and_refused_by_a_gate(results: Path, name: str) -> None:
    change = LIMITS[name]
    if "limits" not in change:
        servers = {"a": snapshot(**change), "b": snapshot()}
        change = {"servers": servers}
        write_raw(results / TWO, plans(8), servers)
    write_manifest(results, TWO, **change)
    notes = compared(results).notes
    assert any(note.startswith("differs in limits: ") and name in note for note in notes)
    sides = read_sides({"A": ONE, "B": TWO}, results, [Halved()])
    with pytest.raises(LabError, match="A and B differ in limits: "):
        pair(*sides, judged=("commit", "images"))


def of_experiment(**changes: object) -> dict[str, object]:
    """Of a manifest: the experiment with these changes."""
    return {"experiment": dataclasses.replace(EXPERIMENT, **changes)}


OTHER_JDK = snapshot(identity=dataclasses.replace(IDENTITY, jdk="26"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"host": {**HOST, "kernel": "other"}}, "host: kernel is"),
        (of_experiment(arrivals="poisson"), f"limits: the arrivals of {ONE} and of "),
        ({"host": WITHOUT_CPUS}, f"limits: CPU set of loadgen is all in {ONE}, not recorded in "),
        ({"host": with_images("a")}, "images: a is"),
        ({"servers": {"a": OTHER_JDK, "b": OTHER_JDK}}, "images: jdk is 25 for a"),
        ({"versions": {**VERSIONS, "commit": "beef"}}, "commit: "),
    ],
    ids=["host", "arrivals", "CPU sets", "image", "JDK", "commit"],
)
def test_what_runs_differ_in_is_named_and_never_the_host(
    results: Path, changes: dict[str, object], said: str
) -> None:
    write_manifest(results, TWO, **changes)
    if said.startswith("host"):
        assert f"A and B differ in {said}" in refused(results)
    else:
        assert any(note.startswith(f"differs in {said}") for note in compared(results).notes)


def test_other_requests_of_a_service_are_another_load(results: Path) -> None:
    for changed, *values in (
        ("requests", (Request("/", weight=9),), (Request("/", weight=19),)),
        ("target", "http://shop:8080/", "http://shop:8081/"),
    ):
        for name, value in zip((ONE, TWO), values, strict=True):
            write_manifest(results, name, **of_experiment(**{changed: value}))
        said = f"differs in limits: the {changed} of {ONE} and of {TWO} are others"
        assert said in compared(results).notes


def test_the_image_of_a_server_that_is_not_compared_does_not_matter(results: Path) -> None:
    write_manifest(results, TWO, host=with_images("b", "elsewhere"))
    of_a = compared(results, A=f"{ONE}:a", B=f"{TWO}:a").notes
    every = compared(results).notes
    assert ["differs in images: b" in " ".join(notes) for notes in (of_a, every)] == [False, True]


def test_different_servers_need_equal_limits_but_not_what_makes_them_models(results: Path) -> None:
    loops = {"loops": 2, "pool_size": None, "downstream_connections": 20_000}
    servers = {"a": snapshot(), "b": snapshot(settings=loops)}
    write_raw(write_manifest(results, TWO, servers=servers), plans(8), servers)
    assert "differs" not in str(compared(results, A=f"{ONE}:a", B=f"{TWO}:b").notes)
    servers["b"] = snapshot(settings={**loops, "downstream_connections": 10})
    write_raw(write_manifest(results, TWO, servers=servers), plans(8), servers)
    notes = compared(results, A=f"{ONE}:a", B=f"{TWO}:b").notes
    assert any("downstream_connections" in note for note in notes)


def test_what_a_comparison_notes(results: Path) -> None:
    write_manifest(results, ONE, **of_experiment(scale=0.1))
    write_manifest(results, TWO, status="interrupted")
    notes = compared(results).notes
    assert f"{ONE} ran with SCALE=0.1: a quick look, not a result" in notes
    assert f"{TWO} is interrupted, not complete" in notes


def test_servers_of_one_side_only_are_named(results: Path) -> None:
    only = {server: plans(servers=(server,)) for server in ("a", "b")}
    write_raw(write_manifest(results, THREE), only["b"])
    found = compared(results, B=THREE)
    assert "only in A: a" in found.notes
    assert len(found.comparisons) == 1
    write_raw(results / TWO, only["a"])
    assert "none in common" in refused(results, A=TWO, B=THREE)


def test_both_sides_are_judged_again_and_without_raw_data_refused(results: Path) -> None:
    derive(results / ONE, [Halved()])
    table = results / ONE / "trials.csv"
    table.write_text(table.read_text().replace(",true,", ",false,"))
    found = compared(results).comparisons
    assert {of.invalid_a for of in found} == {0}
    assert {answer.place for of in found for answer in of.answers} == {"within"}
    shutil.rmtree(results / ONE / "raw" / "05-a-closed")
    assert f"{ONE} has no raw data of 05-a-closed: it cannot be judged" in refused(results)
    shutil.rmtree(results / TWO / "raw")
    shutil.rmtree(results / ONE)
    write_raw(write_manifest(results, ONE), plans(8))
    assert f"{TWO} has no raw data: " in refused(results)


def test_one_run_s_own_servers_are_compared_whatever_it_recorded(results: Path) -> None:
    unequal = Fairness({}, {}, {"backlog": {"a": 1, "b": 2}})
    write_manifest(results, ONE, fairness=unequal)
    assert compared(results).comparisons
    write_manifest(results, ONE, host={}, versions={"commit_dirty": True})
    assert compared(results, A=f"{ONE}:a", B=f"{ONE}:b").comparisons


def test_a_run_whose_lab_was_changed_on_purpose_is_no_side(results: Path) -> None:
    changed = of_experiment(kind="explain", launches=0, own=to_json(Explain(6, 4)))
    write_raw(write_manifest(results, THREE, **changed), plans(8))
    assert "is of kind explain: the lab was changed" in refused(results, A=THREE)
