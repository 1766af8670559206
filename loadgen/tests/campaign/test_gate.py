"""The verb `gate`, on stored runs and on a fake lab: its answers, its files, its refusals."""

import dataclasses
import io
import json
import shutil
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from lab.campaign.gate import (
    UNTOLD,
    WORSE,
    LimitsFile,
    arms_of,
    gate_verb,
    is_of_images,
    memory_of,
    of_images,
)
from lab.campaign.result_verbs import compare_verb, report_verb
from lab.campaign.run import run
from lab.errors import LabError, WordError
from lab.experiments.objective import Objective
from lab.experiments.reading import Here
from lab.experiments.search import Search
from lab.model import Reading, Row, Series, TrialPlan, Warmth
from lab.store import series
from lab.store.records import to_json
from support.bench import RUN, WARM, Bench
from support.fakes import START, FakeEngine, latency, reading
from support.runs import EXPERIMENT, HOST, VERSIONS, plans, with_images, write_manifest, write_raw
from support.series import CLOSES, OPENS, gauge

ONE, TWO = "20260131T120000Z-base", "20260131T130000Z-candidate"
REQUESTS = "[goodput]\nat_least = 0.95\n[p99]\nat_most = 1.1\n"
ALL = f"{REQUESTS}[cpu]\nat_most = 1.05\n"
CLOSED = [trial for trial in plans(7) if trial.mode == "closed"]


class Slower(FakeEngine):
    """Server b gives half as many answers to a closed load, and its slowest of an open one take
    twice as long."""

    def read(self, plan: TrialPlan, raw: Path) -> Reading:
        if plan.server != "b":
            return super().read(plan, raw)
        if plan.mode == "closed":
            return reading(plan.concurrency * 2.5, raw=latency(400.0))
        tail = dataclasses.replace(latency(), p99_ms=420.0, max_ms=430.0)
        return reading(float(plan.offered_rps or 0), corrected=tail, raw=tail)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for name in (ONE, TWO):
        write_raw(write_manifest(tmp_path, name), plans(7))
    return tmp_path


@dataclasses.dataclass
class Said:
    """What a gate of stored runs ended with, printed and wrote."""

    status: int
    printed: str
    folder: Path

    @property
    def text(self) -> str:
        return " ".join(self.printed.split())

    @property
    def last(self) -> str:
        """The answer, whose lines are the last ones."""
        return " ".join(self.printed[self.printed.index("\ngate: ") :].split())

    @property
    def suite(self) -> ElementTree.Element:
        return ElementTree.parse(self.folder / "gate.xml").getroot()


def judged(results: Path, limits: str = REQUESTS, hour: int = 0, **words: str) -> Said:
    text, now = io.StringIO(), START + timedelta(hours=hour)
    words, console = {"BASE": ONE, "CANDIDATE": TWO, **words}, Console(file=text, width=120)
    status = gate_verb(words, results, LimitsFile(limits), console, now, [Slower()])
    [*_, folder] = sorted(results.glob("*/gates/*"))
    return Said(status, text.getvalue(), folder)


def refused(results: Path, limits: str = REQUESTS, **words: str) -> str:
    with pytest.raises(LabError) as failure:
        judged(results, limits, **words)
    assert "\n" not in str(failure.value)
    assert not list(results.glob("*/gates/*"))
    return str(failure.value)


def test_a_run_like_its_base_is_not_worse(results: Path) -> None:
    said = judged(results)
    assert said.status == 0
    assert said.last == "gate: not worse: 4 of 4 limits hold"
    assert "\x1b" not in said.printed
    assert "is not judged" not in said.text
    image = HOST["images"]["project/a:local"]["id"]
    assert f"a is one image in both runs, {image}: whatever" in said.text


def test_the_slower_server_is_worse_and_the_answer_comes_last(results: Path) -> None:
    said = judged(results, BASE=f"{ONE}:a", CANDIDATE=f"{ONE}:b")
    assert said.status == WORSE
    assert said.last == (
        "gate: worse: b closed 100 goodput 0.500 [0.500, 0.500], allowed ≥ 0.95; b open 100 "
        "at 450/s p99 1.909 [1.909, 1.909], allowed ≤ 1.1"
    )
    assert "not interleaved" not in said.text


def test_what_the_runs_do_not_tell_is_no_pass_and_an_error_of_the_test_suite(results: Path) -> None:
    said = judged(results, "[cpu]\nat_most = 1.05\n")
    assert (said.suite.get("failures"), said.suite.get("errors")) == ("0", "4")
    said = judged(results, ALL, hour=1)
    assert said.status == UNTOLD
    assert "no round has a valid trial of the base and of the candidate with this" in said.text
    write_raw(results / TWO, plans(3))
    said = judged(results, hour=2)
    assert said.status == UNTOLD
    # Four limits, of which each has a share.
    assert said.last.endswith("; and 1 more; it takes some LAUNCHES=7")


def test_its_files_say_the_same_and_are_never_overwritten(results: Path) -> None:
    sides = {"BASE": f"{ONE}:a", "CANDIDATE": f"{TWO}:b"}
    first = judged(results, **sides)
    assert first.folder.parent == results / TWO / "gates"
    assert f"results/{TWO}/gates/{first.folder.name}/" in first.text
    told = json.loads((first.folder / "gate.json").read_text())
    assert (told["format_version"], told["answer"]) == (1, "worse")
    [of] = told["comparisons"]
    assert [answer["place"] for answer in of["answers"]] == ["worse"] * 2
    assert (told["base"], told["candidate"]) == (f"{ONE}:a", f"{TWO}:b")
    page = (first.folder / "gate.md").read_text()
    assert page.startswith("**gate: worse: ")
    cells = ("0.500", "[0.500, 0.500]", "–", "≥ 0.95", "**worse**")
    assert f" | {' | '.join(cells)} |" in page
    assert "| closed 100 | goodput, req/s | 500 " in page
    suite = first.suite
    assert dict(suite.attrib) == {"name": "gate", "tests": "2", "failures": "2", "errors": "0"}
    assert [case.get("name") for case in suite] == ["goodput", "p99"]
    assert suite[0].get("classname") == "b closed 100"
    assert "0.500" in suite[0][0].get("message", "")
    before = {path: path.read_bytes() for path in first.folder.iterdir()}
    assert judged(results, **sides).folder != first.folder
    assert {path: path.read_bytes() for path in first.folder.iterdir()} == before


def test_commit_and_images_may_differ_and_are_named_and_nothing_else(results: Path) -> None:
    write_manifest(results, TWO, host=with_images("a"), versions={**VERSIONS, "commit": "beef"})
    said = judged(results)
    assert said.status == 0
    assert "differs in images: a is" in said.text
    assert "differs in commit: commit is" in said.text
    shutil.rmtree(said.folder)
    write_manifest(results, TWO, host={**HOST, "kernel": "7"})
    assert "BASE and CANDIDATE differ in host: kernel is" in refused(results)
    # Nor an image of the lab's own.
    write_manifest(results, TWO, host=with_images("toxiproxy"))
    assert "BASE and CANDIDATE differ in images: toxiproxy is" in refused(results)
    write_manifest(results, TWO, limits={"open_files": 1024, "generator_cores": 2})
    assert "differ in limits: open_files is" in refused(results)


def test_a_limit_that_no_load_tells_is_named_and_no_gate_alone(results: Path) -> None:
    for name in (ONE, TWO):
        write_raw(results / name, CLOSED)
    said = refused(results, "[p99]\nat_most = 1.1\n")
    assert said.startswith("gate: nothing can be judged: gate.toml limits p99, and base")
    text = judged(results, "[p99]\nat_most = 1.1\n[memory]\nat_most = 1.1\n").text
    assert "p99 is not judged: no load here has it" in text


def test_what_is_left_out_of_the_candidate_does_not_pass(results: Path) -> None:
    write_raw(results / TWO, CLOSED)
    assert refused(results) == (
        f"gate: {TWO}:a has no load open 100 at 450/s, which the base has; it has closed 100"
    )
    write_raw(results / TWO, [dataclasses.replace(one, duration_s=20) for one in plans(7)])
    assert "has no load closed 100 for 15 s" in refused(results)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"BASE": "nowhere"}, "BASE=nowhere is not a run"),
        ({"CANDIDATE": ONE}, "gate: the trials of"),
        ({"CANDIDATE": f"{TWO}:a"}, f"gate: BASE={ONE} names no server"),
        ({"A": ONE}, "gate: unknown word A; allowed: BASE, CANDIDATE, LIMITS"),
        ({"CONC": "5"}, "gate: unknown word CONC"),
    ],
)
def test_bad_words_are_refused(results: Path, words: Mapping[str, str], said: str) -> None:
    assert said in refused(results, **words)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "gate.toml: there is no limit; allowed: goodput, p99, cpu, memory"),
        ("[", "gate.toml: is not TOML"),
        ("[p95]\nat_most = 1.1", "gate.toml: p95 is no figure; allowed: goodput"),
        ("cpu = 1.05", "gate.toml: a limit of cpu is at_most = a number from 1 on"),
        ("[cpu]\nat_most = 0.9", "a limit of cpu is at_most = a number from 1 on"),
        ("[cpu]\nat_least = 0.9", "a limit of cpu is at_most"),
        ("[cpu]\nat_most = 1.1\nif = 1", "and no other key"),
        ("[goodput]\nat_least = true", "a limit of goodput is at_least = a number above 0"),
        ("[goodput]\nat_least = nan", "a limit of goodput is at_least"),
    ],
)
def test_limits_that_are_none_are_refused(text: str, said: str) -> None:
    with pytest.raises(WordError) as failure:
        LimitsFile(text).read()
    assert said in str(failure.value)


@pytest.fixture
def trial(tmp_path: Path) -> Row:
    """The row of a trial of run r, whose folder is there."""
    (tmp_path / "raw" / "01-a").mkdir(parents=True)
    known = {"run": "r", "trial": "01-a", "server": "shop"}
    return Row(**{**dict.fromkeys(Row.columns()), **known})


def test_memory_is_the_median_of_the_window(tmp_path: Path, trial: Row) -> None:
    seen = gauge("process_resident_memory_bytes", 5e8, job="jvm")
    # Before the window it was another.
    values = tuple(1.0 if at < OPENS else value for at, value in seen.points)
    raw, memory = tmp_path / "raw" / "01-a", memory_of({"r": tmp_path})
    assert memory(trial) is None
    series.write(raw, (OPENS, CLOSES), "2.53", [], [Series(seen.labels, seen.times, values)])
    assert memory_of({"r": tmp_path})(trial) == 5e8
    (raw / series.NAME).write_bytes(b"torn")
    assert memory_of({"r": tmp_path})(trial) is None


def test_memory_of_a_service_without_a_jvm_is_its_container_s(tmp_path: Path, trial: Row) -> None:
    sizes = {"shop": 3e8, "netty": 9e8}
    seen = [gauge("container_memory_rss", size, service=name) for name, size in sizes.items()]
    series.write(tmp_path / "raw" / "01-a", (OPENS, CLOSES), "2.53", [], seen)
    assert memory_of({"r": tmp_path}, unread=True)(trial) == 3e8
    # A JVM that did not answer for a time has none: its container's is another figure.
    assert memory_of({"r": tmp_path})(trial) is None


def gated(ready: Bench, base: str, candidate: str) -> int:
    sides, limits = {"BASE": base, "CANDIDATE": candidate}, LimitsFile(ALL)
    return gate_verb(sides, ready.place.results, limits, ready.console, START, [ready.lab.engine])


def test_a_search_is_no_side_of_a_gate(ready: Bench) -> None:
    own = Search((Objective(p99_ms=500.0),), "rate", 100, 400, 0.08, 10_000)
    ready.run(kind="capacity", own=to_json(own), modes=("open",), launches=1)
    with pytest.raises(LabError, match=f"gate: {RUN} searched its loads; compare the intervals"):
        gated(ready, f"{RUN}:a", f"{RUN}:b")


def test_a_server_that_the_candidate_lacks_is_no_pass(ready: Bench) -> None:
    ready.run(launches=6)
    ready.run(launches=6, servers=("a",))
    [other] = {path.name for path in ready.place.results.glob("*-bench")} - {RUN}
    with pytest.raises(LabError, match="gate: the candidate has no b, which the base has"):
        gated(ready, RUN, other)


# --- two images ----------------------------------------------------------------------------------

BASE, CANDIDATE = "lab/a:1", "registry:5000/lab/a:2"
IMAGES = {"BASE": BASE, "CANDIDATE": CANDIDATE, "CONC": "100"}
HERE = Here(("a", "b"), 20_000)
LABS = "concurrency-lab/a"


def test_images_are_arms_of_one_run_of_six_launches_of_one_load() -> None:
    assert is_of_images(IMAGES)
    assert not is_of_images({"BASE": ONE, "CANDIDATE": TWO})
    experiment, _ = of_images(IMAGES, HERE)
    assert (experiment.servers, experiment.modes, experiment.launches) == (("a",), ("closed",), 6)
    assert (experiment.arms, experiment.name) == (("base", "candidate"), "gate")
    images = {"images": {"base": BASE, "candidate": CANDIDATE}, "settings": {}}
    assert experiment.own == images
    assert experiment.words == tuple(f"{word}={value}" for word, value in IMAGES.items())
    experiment, _ = of_images({**IMAGES, "RECORD": "alloc"}, HERE)
    assert experiment.own == {**images, "record": "alloc"}
    more = {**IMAGES, "RATE": "400", "LAUNCHES": "9", "SERVER": "b"}
    experiment, _ = of_images(more, HERE)
    assert (experiment.servers, experiment.modes, experiment.launches) == (("b",), ("open",), 9)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"CANDIDATE": ONE}, "BASE=lab/a:1 is an image, the other side is none"),
        ({"BASE": "lab/a:1;x"}, "gate: BASE=lab/a:1;x is not the name of an image"),
        ({"BASE": "lab/c:1"}, "gate: c is no server of the lab that is up; SERVER= says"),
        # It is built before it is measured.
        ({"BASE": f"{LABS}:local"}, f"docker tag {LABS}:local concurrency-lab/a:base"),
        ({"BASE": f"{LABS}:other-lab"}, f"docker tag {LABS}:other-lab concurrency-lab/a:base"),
        ({"LAUNCHES": "0"}, "gate: LAUNCHES=0 is not allowed"),
        ({"TARGET": "http://x"}, "TARGET"),
        ({"ACROSS": "limits"}, "gate: unknown word ACROSS"),
        ({"CONC": "x"}, "gate: CONC=x"),
    ],
)
def test_wrong_words_of_images_are_refused(words: Mapping[str, str], said: str) -> None:
    given = {**IMAGES, **words}
    here = dataclasses.replace(HERE, tag=given["BASE"].rpartition(":")[2])
    with pytest.raises(WordError) as failure:
        _ = is_of_images(given) and of_images(given, here)
    assert said in str(failure.value)


def test_each_arm_has_its_image_and_in_the_end_the_server_its_own(
    ready: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ready.hosted(tmp_path)

    def warm(plan: TrialPlan, *_: object) -> Warmth:
        # The last image that was asked for is that of the trial.
        assert {"base": BASE, "candidate": CANDIDATE}[plan.arm or ""] in asked[-1]
        return WARM

    ready.warm = warm
    # What is put back in the end has a clock of its own.
    monkeypatch.setattr("lab.system.conditions.Clock", lambda: ready.lab.system)
    words = {**IMAGES, "LAUNCHES": "2", "DURATION": "15s", "RECORD": "cpu"}
    experiment, notes = of_images(words, HERE)
    text = io.StringIO()

    def judge(run_dir: Path) -> int:
        sides = arms_of(run_dir.name, "a")
        console, limits = Console(file=text, width=120), LimitsFile(REQUESTS)
        return gate_verb(sides, run_dir.parent, limits, console, START, [ready.lab.engine])

    status = run(experiment, ready.where, notes, [ready.lab.engine], ready.stages, judge=judge)
    # A B B A, so that the second image is there for two trials.
    images = (BASE, CANDIDATE, BASE)
    assert asked == [*(f"SERVER=a\nSERVER_IMAGE={one}\n" for one in images), "SERVER=a\n"]
    assert status == UNTOLD
    said = " ".join(text.getvalue().split())
    assert "too few launches: an interval of 95 % takes 6 of each side" in said
    [run_dir] = ready.place.results.glob("*-gate")
    # Each image is recorded under the load of its last launch, on its own JVM.
    assert sorted(one.name for one in (run_dir / "recorded").iterdir()) == [
        "03-a-candidate-closed-c100-l2-recorded", "04-a-base-closed-c100-l2-recorded",
    ]  # fmt: skip
    assert "recorded of a@candidate, /downstream closed 100: " in said
    compared = json.loads((run_dir / "comparison.json").read_text())["comparisons"]
    assert [(of["a"], of["b"]) for of in compared] == [("a@base", "a@candidate")]
    assert "make gate BASE=lab/a:1" in (run_dir / "REPORT.md").read_text()


def test_a_run_of_two_images_does_not_go_on(ready: Bench) -> None:
    ready.interrupt()
    path = ready.run_dir / "manifest.json"
    record = json.loads(path.read_text())
    record["experiment"]["loads"] = {"images": {"base": BASE, "candidate": CANDIDATE}}
    path.write_text(json.dumps(record))
    with pytest.raises(LabError, match="whether the images of its arms are still those"):
        ready.resume()


def test_arms_of_two_images_are_no_side_against_another_run(results: Path) -> None:
    own = {"images": {"base": BASE, "candidate": CANDIDATE}}
    of_arms = dataclasses.replace(EXPERIMENT, arms=("base", "candidate"), own=own)
    write_manifest(results, TWO, experiment=of_arms)
    assert f"differ in images: the arms of {TWO} have images of their" in refused(results)


def test_arms_of_a_setting_are_no_side_against_another_run(results: Path) -> None:
    own = {"settings": {"1": "FRONTS", "2": "FRONTS"}}
    of_arms = dataclasses.replace(EXPERIMENT, arms=("1", "2"), own=own)
    write_manifest(results, TWO, experiment=of_arms)
    assert f"in limits: the arms of {TWO} have settings of their own" in refused(results)


# --- the exit status of compare and report -------------------------------------------------------


def test_compare_and_report_end_with_their_answer(results: Path) -> None:
    console, engine = Console(file=io.StringIO(), width=120), FakeEngine()
    whole, only_a = plans(7), plans(7, ("a",))
    # Twice the load, too.
    twice = [dataclasses.replace(at, concurrency=200, trial=f"{at.trial}-2") for at in whole]
    for case, first, second, a, b, status in (
        ("slower", whole, whole, f"{ONE}:a", f"{ONE}:b", WORSE),
        ("faster", whole, whole, f"{ONE}:b", f"{ONE}:a", 0),
        ("alike", whole, whole, f"{ONE}:a", f"{TWO}:a", 0),
        ("too few launches", plans(3), whole, f"{ONE}:a", f"{ONE}:b", UNTOLD),
        ("B lacks a load", [*whole, *twice], whole, f"{ONE}:a", f"{TWO}:a", UNTOLD),
        ("A lacks a load", [*whole, *twice], whole, f"{TWO}:a", f"{ONE}:a", 0),
        ("B lacks a server", whole, only_a, ONE, TWO, UNTOLD),
        ("A lacks a server", whole, only_a, TWO, ONE, 0),
    ):
        write_raw(results / ONE, first)
        write_raw(results / TWO, second)
        assert compare_verb({"A": a, "B": b}, results, console, [Slower()]) == status, case
    engine.broken = "no such line"
    assert report_verb({"RUN": ONE}, results, console, [engine]) == UNTOLD
