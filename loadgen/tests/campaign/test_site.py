"""`make site`: what is read, what is refused, and what is on the disk afterwards."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from campaign.test_executors import line
from campaign.test_stored_runs import STORED
from lab.campaign.derive import derive
from lab.campaign.site import parse_site, site_verb
from lab.cli import do
from lab.errors import Interrupted, LabError, WordError
from lab.load.engines import ENGINES
from lab.model import Fairness
from lab.model.executors import ExecutorsPlan
from lab.report import site
from support.runs import HOST, Jittery, write_manifest
from support.sited import (
    ELSEWHERE,
    NEW,
    OLD,
    OTHER,
    add,
    asking,
    data,
    index,
    make_site,
    of_commit,
    points,
    three_runs,
)


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return three_runs(tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"RUN": "latest"}, "unknown word RUN; allowed: RUNS, TO"),
        ({"RUNS": "nosuch"}, "RUNS=nosuch is not a run here; allowed: latest, or a name"),
        ({"RUNS": ""}, "RUNS= is not a run here"),
        ({"RUNS": f"{OLD},"}, "RUNS= is not a run here"),
        ({"RUNS": "*-bench"}, r"RUNS=\*-bench fits no run here; allowed: names of runs with \*"),
        ({"RUNS": "../*"}, "is not a run here"),
        ({"TO": "../site"}, "TO=../site is not allowed; allowed: the name of a folder"),
        ({"TO": ".site"}, "TO=.site is not allowed"),
        ({"TO": OLD}, "is there, and is not a site of the lab"),
    ],
)
def test_wrong_words_are_refused_in_one_line(
    results: Path, words: dict[str, str], said: str
) -> None:
    with pytest.raises(WordError, match=said) as refused:
        parse_site(words, results)
    assert "\n" not in str(refused.value)
    assert sorted(path.name for path in results.iterdir()) == [OLD, NEW, OTHER]


def test_make_refuses_them_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "servers").mkdir()
    (tmp_path / "servers" / "core.json").write_text('[{"targets": ["a"]}]')
    assert do(["plan", "site", "RUNS=latest"], {"LAB_HOME": str(tmp_path)}) == 2
    assert capsys.readouterr().err == (
        "lab: RUNS=latest is not a run here; allowed: latest, or a name (there is none yet)\n"
    )


def test_runs_are_named_or_fit_a_pattern_each_once(results: Path) -> None:
    (results / "latest").symlink_to(OTHER)

    def asked(runs: str) -> list[str]:
        return [path.name for path in parse_site({"RUNS": runs}, results).runs]

    assert asked("latest") == [OTHER]
    assert asked("*") == [OLD, NEW, OTHER]
    assert asked(f"2026013?T*,{OLD},latest") == [OLD, NEW, OTHER]
    assert asked(f"{NEW},{OLD}") == [OLD, NEW]
    assert [path.name for path in parse_site({}, results).runs] == [OLD, NEW, OTHER]


def test_runs_are_only_read(results: Path) -> None:
    before = {name: files(results / name) for name in (OLD, NEW, OTHER)}
    said = make_site(results)
    assert {name: files(results / name) for name in (OLD, NEW, OTHER)} == before
    assert "[1/3] 20260130T120000Z-aa: complete, 24 trials, 24 of them valid" in said
    assert "results/site: 3 runs, 2 machines; index.html " in said
    assert set(files(results / "site")) == {"index.html", "lab-site.json"}


def test_the_same_runs_give_the_same_bytes(results: Path) -> None:
    make_site(results)
    before = files(results / "site")
    make_site(results)
    assert files(results / "site") == before
    make_site(results, TO="other", RUNS=OLD)
    assert files(results / "site") == before
    assert [run["run"] for run in data(index(results, "other"))["runs"]] == [OLD]


def test_reports_go_with_it_and_lead_nowhere_else(results: Path) -> None:
    derive(results / OLD, [Jittery()])
    (results / NEW / "report.html").symlink_to("/etc/passwd")
    make_site(results)
    copied = set(files(results / "site" / "runs"))
    assert copied == {f"{OLD}/{name}" for name in ("report.html", "REPORT.md", "trials.csv")}
    page = index(results)
    assert f'href="runs/{OLD}/report.html"' in page
    assert f"make report RUN={NEW}" in page


def test_a_report_by_other_rules_is_said_to_be_one(results: Path) -> None:
    derive(results / OLD, [Jittery()])
    make_site(results)
    assert "made by other rules" not in index(results)
    rows = results / OLD / "trials.csv"
    rows.write_text(rows.read_text().replace(",true,", ",false,", 1))
    make_site(results)
    assert "says something else of 1 of 24 trials" in index(results)


def test_figures_of_two_machines_are_never_in_one_place(results: Path) -> None:
    make_site(results)
    found = data(index(results))
    machine = {run["run"]: run["machine"] for run in found["runs"]}
    assert len(found["machines"]) == 2
    for place in found["places"]:
        assert {machine[point["run"]] for point in points(place)} == {place["machine"]}
    curves = [place for place in found["places"] if not place["trend"]]
    assert [place["mode"] for place in curves] == ["closed", "open"] * 2


def test_a_trend_is_of_the_commits_of_one_machine(results: Path) -> None:
    make_site(results)
    trends = [place for place in data(index(results))["places"] if place["trend"]]
    assert [place["mode"] for place in trends] == ["closed", "open"]
    for place in trends:
        assert {point["run"] for point in points(place)} == {OLD, NEW}
        for figure in place["figures"]:
            labels = figure["encoding"]["x"]["scale"]["domain"]
            assert [label.split()[-1] for label in labels] == ["aaaaaaa", "bbbbbbb"]


def test_an_invalid_trial_is_a_cross_and_says_why(results: Path) -> None:
    make_site(results)
    found = data(index(results))
    [cell] = [cell for cell in found["cells"] if cell["invalid"]]
    assert (cell["run"], cell["server"], cell["mode"]) == (NEW, "a", "closed")
    [[trial, why]] = cell["invalid"]
    assert trial == "01-a-closed"
    assert "toxics changed during the trial" in why
    assert "5 of 6 valid" in cell["cells"]
    crosses = {
        (point["run"], point["server"])
        for place in found["places"]
        for point in points(place)
        if point.get("valid") is False
    }
    assert crosses == {(NEW, "a")}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"limits": {"open_files": 1024, "generator_cores": 2}}, "open_files is 20000 in"),
        ({"experiment": asking(duration_s=30)}, f"duration_s is not that of {OLD}"),
        ({"experiment": asking(scale=0.5)}, f"scale is not that of {OLD}"),
    ],
)
def test_runs_that_differ_in_more_than_code_are_in_no_figure_together(
    tmp_path: Path, changes: dict[str, object], why: str
) -> None:
    add(tmp_path, OLD)
    add(tmp_path, NEW, **changes)
    make_site(tmp_path)
    page = index(tmp_path)
    for place in data(page)["places"]:
        assert not place["trend"]
        assert len({point["run"] for point in points(place)}) == 1
    assert f"Earlier runs of its machine are in no figure with it: {why}" in page


def test_images_and_code_may_differ(tmp_path: Path) -> None:
    images = {name: {"id": "sha256:new"} for name in HOST["images"]}  # type: ignore[union-attr]
    add(tmp_path, OLD)
    add(tmp_path, NEW, host={**HOST, "images": images}, versions=of_commit("d", commit_dirty=True))
    make_site(tmp_path)
    assert sum(place["trend"] for place in data(index(tmp_path))["places"]) == 2


def test_a_machine_that_is_not_recorded_is_like_no_other(tmp_path: Path) -> None:
    partial = {name: value for name, value in HOST.items() if name != "kernel"}
    for name in (OLD, NEW):
        add(tmp_path, name, host=partial)
    make_site(tmp_path)
    found = data(index(tmp_path))
    assert sorted(found["machines"]) == [f"of-{OLD}", f"of-{NEW}"]
    assert found["machines"][f"of-{OLD}"].endswith("as kernel not recorded")
    assert not any(place["trend"] for place in found["places"])


def test_what_cannot_be_judged_is_listed_and_says_why(results: Path) -> None:
    shutil.rmtree(results / OLD / "raw")
    old = json.loads((results / NEW / "manifest.json").read_text())
    (results / NEW / "manifest.json").write_text(json.dumps({**old, "format_version": 1}))
    (results / "20260128T120000Z-empty").mkdir()
    (results / "20260129T120000Z-torn").mkdir()
    (results / "20260129T120000Z-torn" / "manifest.json").write_text("{")
    make_site(results)
    page = index(results)
    assert "has no raw data: it cannot be judged again" in page
    assert "has format 1; this version of the lab reads 2" in page
    assert "has no manifest.json: it is not a run of the lab" in page
    assert "manifest.json: cannot be read" in page
    assert str(results) not in page
    assert {cell["run"] for cell in data(page)["cells"]} == {OTHER}


def test_a_copy_under_another_name_is_not_counted_twice(results: Path) -> None:
    shutil.copytree(results / OLD, results / "20260209T120000Z-copy")
    make_site(results)
    page = index(results)
    assert f"its manifest says that it is {OLD}, and so does that of {OLD}" in page
    assert {cell["run"] for cell in data(page)["cells"]} == {OLD, NEW, OTHER}


@pytest.mark.parametrize("where", [(site, "page"), (Jittery, "read")])
def test_what_is_interrupted_leaves_what_was_there(
    results: Path, where: tuple[object, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_site(results)
    before = files(results / "site")

    def stopped(*_: object) -> str:
        raise Interrupted("stopped by SIGINT")

    monkeypatch.setattr(*where, stopped)
    with pytest.raises(Interrupted):
        make_site(results, RUNS=OLD)
    assert files(results / "site") == before
    assert sorted(path.name for path in results.iterdir()) == [OLD, NEW, OTHER, "site"]


def test_a_folder_that_cannot_take_its_place_brings_the_old_one_back(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_site(results)
    before = files(results / "site")
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if self.name == ".site.part":
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(LabError, match="No space left"):
        make_site(results, RUNS=OLD)
    assert files(results / "site") == before
    assert sorted(path.name for path in results.iterdir()) == [OLD, NEW, OTHER, "site"]


def test_two_at_once_do_not_mix(results: Path) -> None:
    (results / ".site.part").mkdir()
    with pytest.raises(LabError, match=r"results/\.site\.part is there: another make site"):
        make_site(results)
    assert (results / ".site.part").is_dir()


def test_real_runs_of_every_kind_are_shown(tmp_path: Path) -> None:
    shutil.copytree(STORED, tmp_path, dirs_exist_ok=True)
    executed = "20261122T050000Z-executors"
    run_dir = write_manifest(
        tmp_path, executed, experiment=ExecutorsPlan(), servers={}, fairness=Fairness({}, {}, {})
    )
    (run_dir / "raw").mkdir()
    (run_dir / "raw" / "launches.jsonl").write_text(f"{line()}\n")
    assert site_verb({}, tmp_path, Console(quiet=True), ENGINES) == 0
    page = index(tmp_path)
    found = data(page)
    kinds = {run["run"].partition("-")[2]: run["kind"] for run in found["runs"]}
    assert kinds["density"] == "density"
    assert kinds["executors"] == "executors"
    assert kinds["held"] == "capacity"
    assert "not known" not in kinds.values()
    assert "heap B each" in page
    assert "elapsed ms" in page or "heap + MiB" in page
    assert "fixed-pool holds" in page or "held" in page
    # Where the lab was changed on purpose, there are cells and no curves.
    drawn = {point["run"] for place in found["places"] for point in points(place)}
    listed = {cell["run"] for cell in found["cells"]}
    assert listed - drawn == {
        name for name, kind in ((run["run"], run["kind"]) for run in found["runs"])
        if kind in ("explain", "planted", "observation")
    }  # fmt: skip


def test_other_machines_have_other_keys_and_a_key_is_for_good() -> None:
    here, there = (site.Machine.of(host, "r") for host in (HOST, ELSEWHERE))
    assert here.key != there.key
    assert here == site.Machine.of(dict(reversed(HOST.items())), "s")
    assert here.name == f"Abacus, 2 cores, 8.0 GiB, Linux 6.1, Docker 26.1 ({here.key})"


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ({"commit": "74a71a6d1387", "commit_dirty": False}, "74a71a6"),
        ({"commit": "74a71a6d1387", "commit_dirty": True}, "74a71a6-changed"),
        ({"commit": "74a71a6d1387"}, "74a71a6-perhaps-changed"),
        ({"commit": "unknown"}, "not recorded"),
        ({}, "not recorded"),
    ],
)
def test_code_is_named_by_its_commit_as_far_as_that_tells(
    versions: dict[str, str | bool], said: str
) -> None:
    assert site.commit(versions) == said
