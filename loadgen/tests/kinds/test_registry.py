"""The kinds there are, and the example of the page on adding one, from its file to its findings."""

import json
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from kinds.conftest import Files
from lab import kinds as package
from lab.app.derive import derive
from lab.errors import LabError
from lab.kinds.kind import settings_of
from lab.kinds.objective import Objective
from lab.kinds.registry import kind_of, kinds
from lab.kinds.search import Search
from lab.report.findings import lines
from lab.store import csv, manifest
from lab.store.records import to_json
from support.fakes import snapshot
from support.planned import all_of, experiment, planner
from support.repo import REPO
from support.runs import Jittery, write_manifest, write_raw
from support.table import read_rows

PAGE = (REPO / "docs/adding-an-experiment.md").read_text()
STRESS = Search((Objective(p95_ms=500.0),), "connections", 100, 300, 0.08, 300)


def example(language: str) -> str:
    """The page's only block of that language."""
    [block] = re.findall(rf"(?ms)^   ```{language}\n(.*?)^   ```$", PAGE)
    return textwrap.dedent(block)


@pytest.fixture
def with_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The page's file lies among the kinds."""
    folder = tmp_path / "kinds"
    folder.mkdir()
    (folder / "drift.py").write_text(example("python"))
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    kinds.cache_clear()
    yield
    sys.modules.pop("lab.kinds.drift", None)
    kinds.cache_clear()


def test_every_kind_of_a_file_is_found() -> None:
    folder = REPO / "loadgen/src/lab/kinds"
    text = "".join(path.read_text() for path in folder.glob("*.py"))
    assert len(kinds()) == text.count(" = Kind(") == 9


@pytest.mark.usefixtures("with_example")
def test_two_kinds_of_one_name_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "kinds/drift.py"
    file.write_text(file.read_text().replace('name="drift"', 'name="loads"'))
    with pytest.raises(ValueError, match="defines the kind loads"):
        kinds()


def test_no_two_kinds_mean_different_things_by_a_word() -> None:
    meanings = {
        (word, key.rpartition(".")[2])
        for kind in kinds().values()
        for word, key in kind.all_words.items()
    }
    assert len({word for word, _ in meanings}) == len(meanings)


def test_the_settings_of_a_kind_lie_under_its_name_in_the_manifest(tmp_path: Path) -> None:
    of = experiment(kind="stress", own=STRESS, modes=("open",))
    run_dir = write_manifest(tmp_path, experiment=of)
    stored = json.loads((run_dir / "manifest.json").read_text())["experiment"]
    assert stored["stress"] == to_json(STRESS)
    assert "own" not in stored
    read = manifest.read(run_dir).experiment
    assert read == of
    assert settings_of(Search, read) == STRESS


def test_a_kind_or_settings_that_are_not_there_are_said(tmp_path: Path) -> None:
    run_dir = write_manifest(tmp_path, experiment=experiment(kind="quick"))
    (run_dir / "raw").mkdir()
    known = "x is of kind quick; known are: capacity, density, endurance"
    with pytest.raises(LabError, match=known):
        derive(run_dir, [Jittery()])
    with pytest.raises(LabError, match="is of kind quick"):
        kind_of(experiment(kind="quick"))
    with pytest.raises(LabError, match=r"x: kind stress: Search: .* unknown field `last`"):
        settings_of(Search, experiment(kind="stress", own={**to_json(STRESS), "last": 1}))


@pytest.mark.usefixtures("with_example")
def test_the_example_reads_its_file_and_words(files: Files) -> None:
    text = example("toml")
    found = files.experiment(text)
    assert (found.kind, found.own, found.modes) == ("drift", {"rounds": 10}, ("closed",))
    assert files.experiment(text, ROUNDS="4").own == {"rounds": 4}
    assert "run: ROUNDS=1 is not allowed; allowed: 2..100" in files.refusal(text, ROUNDS="1")
    wrong = text.replace("rounds = 10", "round = 10")
    assert "drift.round is not a key; allowed: drift.rounds" in files.refusal(wrong)
    assert "MODE does not apply to" in files.refusal(text, MODE="open")
    loads = text.replace('kind = "drift"', "").partition("[drift]")[0]
    assert "ROUNDS does not apply to" in files.refusal(loads, ROUNDS="4")
    assert "drift.rounds is not a key" in files.refusal(loads + "[drift]\nrounds=5")
    assert "allowed: capacity, density, drift, endurance" in files.refusal(
        text.replace('"drift"', '"?"')
    )


@pytest.mark.usefixtures("with_example")
def test_the_example_runs_from_its_trials_to_its_report(files: Files, tmp_path: Path) -> None:
    of = files.experiment(example("toml"), ROUNDS="2", SERVER="fixed-pool,virtual-threads")
    kind = kind_of(of)
    made = all_of(kind.design(planner(of)))
    assert [plan.trial for plan in made] == [
        "01-fixed-pool-closed-c200", "02-virtual-threads-closed-c200",
        "03-fixed-pool-closed-c200", "04-virtual-threads-closed-c200",
    ]  # fmt: skip
    run_dir = write_manifest(tmp_path, experiment=of, servers=dict.fromkeys(of.servers, snapshot()))
    write_raw(run_dir, made)
    derived = derive(run_dir, [Jittery()])
    assert [row.trial for row in read_rows(run_dir / csv.NAME)] == [plan.trial for plan in made]
    # The fake answers 0.1 % less for every number of a trial: 0.999 / 0.997 and 0.998 / 0.996.
    found = derived.result.findings
    assert [finding.value for finding in found] == pytest.approx([0.002] * 2, abs=1e-5)
    assert len(derived.result.comparisons) == 1
    report = (run_dir / "REPORT.md").read_text()
    assert "| the same load again and again | 4 trials, 4 of them valid" in report
    assert all(line in (run_dir / "report.html").read_text() for line in lines(found))
    assert derive(run_dir, [Jittery()]).changed == ()
