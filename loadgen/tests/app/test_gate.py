"""The verb `gate`, on stored runs and on a fake lab: its answers, its files, its refusals."""

import copy
import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from lab.app.call import Call
from lab.app.compare import UNTOLD, WORSE
from lab.app.gate import ARMS, SIDES, check, images_of, judge, limits_of, of_images
from lab.app.run import run
from lab.errors import LabError, WordError
from lab.judge.compare import Limits
from lab.kinds.objective import Objective
from lab.kinds.search import Search
from lab.model import Series, TrialPlan, Warmth
from lab.store import series
from lab.store.records import to_json
from support.bench import RUN, WARM, Bench
from support.runs import plans, with_images, write_manifest, write_raw
from support.series import CLOSES, OPENS, gauge
from support.slower import Slower

ONE, TWO = "20260131T120000Z-base", "20260131T130000Z-candidate"
REQUESTS = "[goodput]\nat_least = 0.95\n[p99]\nat_most = 1.1\n"
ALL = f"{REQUESTS}[cpu]\nat_most = 1.05\n"
CLOSED = [trial for trial in plans(7) if trial.mode == "closed"]


def called(home: Path, limits: str = REQUESTS, **words: str) -> Call:
    return Call("gate", words, {"LAB_HOME": str(home), "LAB_LIMITS": limits})


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for name in (ONE, TWO):
        write_raw(write_manifest(tmp_path / "results", name), plans(7))
    return tmp_path / "results"


@dataclasses.dataclass
class Judged:
    """What a gate of stored runs ended with and wrote."""

    status: int
    folder: Path

    @property
    def file(self) -> dict[str, Any]:
        return json.loads((self.folder / "gate.json").read_text())

    @property
    def places(self) -> list[str]:
        return [answer["place"] for of in self.file["comparisons"] for answer in of["answers"]]


def judged(results: Path, limits: str = REQUESTS, base: str = ONE, candidate: str = TWO) -> Judged:
    call = called(results.parent, limits, BASE=base, CANDIDATE=candidate)
    before = {*results.glob("*/gates/*")}
    status = judge(call, [Slower()])
    [folder] = {*results.glob("*/gates/*")} - before
    return Judged(status, folder)


A, B = {"base": f"{ONE}:a", "candidate": f"{ONE}:b"}, {"base": f"{ONE}:b", "candidate": f"{TWO}:b"}


@pytest.mark.parametrize(
    ("sides", "limits", "status", "places"),
    [
        ({}, REQUESTS, 0, ["within"] * 4),
        (A, REQUESTS, WORSE, ["worse"] * 2),
        (B, REQUESTS, 0, ["within"] * 2),
        # Nothing tells the CPU time.
        (A, "[cpu]\nat_most = 1.05\n", UNTOLD, ["cannot tell"] * 2),
        (A, ALL, WORSE, ["worse", "cannot tell"] * 2),
        # Eight answers take eight launches.
        ({}, ALL, UNTOLD, ["cannot tell"] * 8),
    ],
)
def test_the_answer_is_the_exit_status_and_in_every_file(
    results: Path, sides: dict[str, str], limits: str, status: int, places: list[str]
) -> None:
    found = judged(results, limits, **sides)
    assert (found.status, found.places) == (status, places)
    answers = {0: "not worse", WORSE: "worse", UNTOLD: "cannot tell"}
    assert (found.file["format_version"], found.file["answer"]) == (1, answers[status])
    suite = ElementTree.parse(found.folder / "gate.xml").getroot()
    counts = (len(places), places.count("worse"), places.count("cannot tell"))
    assert tuple(int(suite.attrib[name]) for name in ("tests", "failures", "errors")) == counts
    assert (found.folder / "gate.md").read_text().startswith(f"**gate: {answers[status]}: ")


def test_its_files_are_in_the_candidates_run_and_never_overwritten(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = judged(results, **A | {"candidate": f"{TWO}:b"})
    assert (first.file["base"], first.file["candidate"]) == (f"{ONE}:a", f"{TWO}:b")
    assert first.folder.parent == results / TWO / "gates"
    out = capsys.readouterr().out
    # The answer is last.
    assert out.index(f"results/{TWO}/gates/{first.folder.name}/") < out.rindex("gate: worse: ")
    before = {path: path.read_bytes() for path in first.folder.iterdir()}
    assert judged(results).folder != first.folder
    assert {path: path.read_bytes() for path in first.folder.iterdir()} == before


def test_what_a_reader_must_know_is_noted(results: Path) -> None:
    for changed, is_said in (((), True), (("a",), False)):
        write_manifest(results, TWO, host=with_images(*changed))
        notes = judged(results).file["notes"]
        assert any("ran the same images" in note for note in notes) == is_said
    # Too few launches are no pass, and it says how many would tell.
    write_raw(results / TWO, plans(3))
    found = judged(results)
    assert (found.status, found.file["launches"]) == (UNTOLD, 7)
    # Nor is a limit that no load has a figure of.
    for name in (ONE, TWO):
        write_raw(results / name, CLOSED)
    p99 = "[p99]\nat_most = 1.1\n"
    for limits, places in ((p99, []), (f"{p99}[memory]\nat_most = 1.1\n", ["cannot tell"] * 2)):
        found = judged(results, limits)
        assert (found.status, found.places) == (UNTOLD, places)
        assert "p99 is not judged: no load here has it" in found.file["notes"]
    # Each load is judged by one of these two.
    found = judged(results, f"{p99}[goodput]\nat_least = 0.9\n")
    assert "p99 is not judged: no load here has it" not in found.file["notes"]


@pytest.mark.parametrize(
    ("trials", "lacking"),
    [
        (plans(7, ("a",)), "the candidate has no b, which"),
        (CLOSED, "the candidate has no open 100 at 450/s, which"),
        (
            [copy.replace(one, duration_s=20) for one in plans(7)],
            "has no closed 100 for 15 s, open 100 at 450/s for 15 s, which",
        ),
    ],
    ids=["a server", "a load", "a length"],
)
def test_what_is_left_out_of_the_candidate_does_not_pass(
    results: Path, trials: list[TrialPlan], lacking: str
) -> None:
    write_raw(results / TWO, trials)
    with pytest.raises(LabError, match=lacking):
        judged(results)
    assert not list(results.glob("*/gates/*"))


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "nothing"),
        ("[", "is not TOML"),
        ("[p95]\nat_most = 1.1", "p95"),
        ("cpu = 1.05", "cpu"),
        ("[cpu]\nat_most = 0.9", "cpu"),
        ("[cpu]\nat_least = 0.9", "cpu"),
        ("[cpu]\nat_most = 1.1\nif = 1", "cpu"),
        ("[goodput]\nat_least = true", "goodput"),
        ("[goodput]\nat_least = nan", "goodput"),
        ("[memory]\nat_most = inf", "memory"),
    ],
)
def test_limits_that_are_none_are_refused(tmp_path: Path, text: str, wrong: str) -> None:
    with pytest.raises(WordError) as failure:
        limits_of(called(tmp_path, text, LIMITS="own.toml"))
    assert str(failure.value).startswith(f"own.toml: {wrong}")
    found = limits_of(called(tmp_path, "[p99]\nat_most = 1\n[goodput]\nat_least = 0.9"))
    assert found == {"goodput": Limits(low=0.9), "p99": Limits(high=1)}


def test_memory_is_the_median_of_the_window(results: Path) -> None:
    seen = gauge("process_resident_memory_bytes", 5e8, job="jvm")
    # Before the window it was another.
    values = tuple(1.0 if at < OPENS else value for at, value in seen.points)
    for raw in results.glob("*/raw/*"):
        more = 1.2 if raw.parent.parent.name == TWO else 1.0
        found = [Series(seen.labels, seen.times, tuple(value * more for value in values))]
        series.write(raw, (OPENS, CLOSES), "2.53", [], found)
    memory = "[memory]\nat_most = 1.1\n"
    first, *_ = judged(results, memory).file["comparisons"][0]["answers"]
    assert (first["a"]["median"], first["ratio"]["ratio"]) == (5e8, pytest.approx(1.2))
    # A trial that lacks its series has no memory: too few launches have.
    for raw in sorted((results / TWO / "raw").iterdir())[:8]:
        (raw / series.NAME).write_bytes(b"torn")
    assert judged(results, memory).status == UNTOLD


def test_a_search_is_no_side_of_a_gate(ready: Bench) -> None:
    own = Search((Objective(p99_ms=500.0),), "rate", 100, 400, 0.08, 10_000)
    ready.run(kind="capacity", own=to_json(own), modes=("open",), launches=1)
    call = called(ready.place.results.parent, BASE=f"{RUN}:a", CANDIDATE=f"{RUN}:b")
    with pytest.raises(LabError, match=f"gate: {RUN} searched its loads"):
        judge(call, [ready.lab.engine])


# --- two images ----------------------------------------------------------------------------------

BASE, CANDIDATE = "lab/a:1", "registry:5000/lab/a:2"
IMAGES = {"BASE": BASE, "CANDIDATE": CANDIDATE, "CONC": "100"}
LABS = "concurrency-lab/a"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({}, (("a",), ("closed",), 6, {})),
        ({"RECORD": "alloc"}, (("a",), ("closed",), 6, {"record": "alloc"})),
        ({"RATE": "400", "LAUNCHES": "9", "SERVER": "b"}, (("b",), ("open",), 9, {})),
    ],
)
def test_images_are_arms_of_one_run_of_six_launches_of_one_load(
    home: Path, words: dict[str, str], expected: tuple[Any, ...]
) -> None:
    given = {**IMAGES, **words}
    assert images_of(given) == (BASE, CANDIDATE)
    experiment, _ = of_images(called(home, **given))
    servers, modes, launches, own = expected
    assert (experiment.servers, experiment.modes, experiment.launches) == (servers, modes, launches)
    assert (experiment.arms, experiment.name) == (ARMS, "gate")
    images = {"images": {"base": BASE, "candidate": CANDIDATE}, "settings": {}}
    assert experiment.own == {**images, **own}
    assert experiment.words == tuple(f"{word}={value}" for word, value in given.items())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"CANDIDATE": ONE}, "BASE=lab/a:1 is an image, the other side is none"),
        ({"BASE": "lab/a:1;x"}, "gate: lab/a:1;x is not the name of an image"),
        ({"BASE": "lab/c:1"}, "gate: c is no server of the lab that is up; SERVER= says"),
        # It is built before it is measured.
        ({"BASE": f"{LABS}:local"}, f"docker tag {LABS}:local concurrency-lab/a:base"),
        ({"BASE": f"{LABS}:other-lab"}, f"docker tag {LABS}:other-lab concurrency-lab/a:base"),
        ({"LAUNCHES": "0"}, "gate: LAUNCHES=0"),
        ({"TARGET": "http://x"}, "TARGET"),
        ({"ACROSS": "limits"}, "gate: unknown word ACROSS"),
        ({"CONC": "x"}, "gate: CONC=x"),
    ],
)
def test_wrong_words_of_images_are_refused(home: Path, words: Mapping[str, str], said: str) -> None:
    given = {**IMAGES, **words}
    call = called(home, **given)
    tag = {"LAB_TAG": given["BASE"].rpartition(":")[2]}
    with pytest.raises(WordError) as failure:
        check(copy.replace(call, variables={**call.variables, **tag}))
    assert said in str(failure.value)


def test_each_arm_has_its_image_and_in_the_end_the_server_its_own(
    ready: Bench, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ready.hosted(tmp_path)

    def warm(plan: TrialPlan, *_: object) -> Warmth:
        # The last image that was asked for is that of the trial.
        assert {"base": BASE, "candidate": CANDIDATE}[plan.arm or ""] in asked[-1]
        return WARM

    ready.warm = warm
    # What is put back in the end has a clock of its own.
    monkeypatch.setattr("lab.subject.conditions.Clock", lambda: ready.lab.system)
    words = {**IMAGES, "LAUNCHES": "2", "DURATION": "15s", "RECORD": "cpu"}
    experiment, notes = of_images(called(home, **words))

    def judge_arms(run_dir: Path) -> int:
        lanes = (f"{run_dir.name}:a@{arm}" for arm in ARMS)
        return judge(called(home, **dict(zip(SIDES, lanes, strict=True))), [ready.lab.engine])

    assert run(experiment, ready.where, notes, ready.stages, judge=judge_arms) == UNTOLD
    # A B B A, so that the second image is there for two trials.
    images = (BASE, CANDIDATE, BASE)
    assert asked == [*(f"SERVER=a\nSERVER_IMAGE={one}\n" for one in images), "SERVER=a\n"]
    [run_dir] = ready.place.results.glob("*-gate")
    # Each image is recorded under the load of its last launch, on its own JVM.
    assert sorted(one.name for one in (run_dir / "recorded").iterdir()) == [
        "03-a-candidate-closed-c100-l2-recorded", "04-a-base-closed-c100-l2-recorded",
    ]  # fmt: skip
    [told] = run_dir.glob("gates/*/gate.json")
    notes = json.loads(told.read_text())["notes"]
    assert any(note.startswith("recorded of a@candidate, /downstream closed") for note in notes)
    compared = json.loads((run_dir / "comparison.json").read_text())["comparisons"]
    assert [(of["a"], of["b"]) for of in compared] == [("a@base", "a@candidate")]


def test_a_run_of_two_images_does_not_go_on(ready: Bench) -> None:
    ready.interrupt()
    path = ready.run_dir / "manifest.json"
    record = json.loads(path.read_text())
    record["experiment"]["loads"] = {"images": {"base": BASE, "candidate": CANDIDATE}}
    path.write_text(json.dumps(record))
    with pytest.raises(LabError, match="its arms are images"):
        ready.resume()
