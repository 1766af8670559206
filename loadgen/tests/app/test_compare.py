"""The verbs of stored runs, `compare` and `report`: exit status and files."""

import copy
from pathlib import Path

import pytest

from lab.app.call import Call
from lab.app.compare import UNTOLD, WORSE, compare
from lab.app.derive import derive
from lab.app.verbs import report
from lab.errors import WordError
from lab.model import TrialPlan
from support.fakes import FakeEngine
from support.runs import NAME, Jittery, plans, write_manifest, write_raw
from support.slower import Slower

ONE, TWO = "20260131T120000Z-base", "20260131T130000Z-candidate"
WHOLE, ONLY_A = plans(7), plans(7, ("a",))
# Twice the load, too.
TWICE = [
    *WHOLE,
    *(copy.replace(at, concurrency=200, trial=f"{at.trial}-2") for at in WHOLE),
]


def called(verb: str, home: Path, **words: str) -> Call:
    limits = "[goodput]\nat_least = 0.95\n"
    return Call(verb, words, {"LAB_HOME": str(home), "LAB_LIMITS": limits, "COLUMNS": "80"})


@pytest.mark.parametrize(
    ("first", "second", "a", "b", "status"),
    [
        (WHOLE, WHOLE, f"{ONE}:a", f"{ONE}:b", WORSE),
        (WHOLE, WHOLE, f"{ONE}:b", f"{ONE}:a", 0),
        (WHOLE, WHOLE, f"{ONE}:a", f"{TWO}:a", 0),
        (plans(3), WHOLE, f"{ONE}:a", f"{ONE}:b", UNTOLD),
        (TWICE, WHOLE, f"{ONE}:a", f"{TWO}:a", UNTOLD),
        (TWICE, WHOLE, f"{TWO}:a", f"{ONE}:a", 0),
        (WHOLE, ONLY_A, ONE, TWO, UNTOLD),
        (WHOLE, ONLY_A, TWO, ONE, 0),
        (plans(7, ("b",)), ONLY_A, ONE, TWO, UNTOLD),
    ],
    ids=[
        "slower", "faster", "alike", "too few launches", "B lacks a load", "A lacks a load",
        "B lacks a server", "A lacks a server", "nothing in common",
    ],
)  # fmt: skip
def test_compare_ends_with_its_answer(
    tmp_path: Path, first: list[TrialPlan], second: list[TrialPlan], a: str, b: str, status: int
) -> None:
    for name, trials in ((ONE, first), (TWO, second)):
        write_raw(write_manifest(tmp_path / "results", name), trials)
    assert compare(called("compare", tmp_path, A=a, B=b), [Slower()]) == status


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a run that is derived, which is the latest."""
    run_dir = write_manifest(tmp_path / "results")
    write_raw(run_dir, plans())
    derive(run_dir, [Jittery()])
    (tmp_path / "results" / "latest").symlink_to(run_dir.name)
    return tmp_path


def test_compare_prints_a_table_that_fits(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(called("compare", home, A="latest:a", B="latest:b"), [Jittery()]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"{NAME}:b (B) against {NAME}:a (A)" in lines[0]
    table = [line for line in lines if line.startswith(("load", "closed", "open"))]
    assert len(table) == 3
    assert max(map(len, table)) <= 80


def test_report_makes_every_file_again_and_ends_with_whether_any_trial_is_valid(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, engine = home / "results", FakeEngine()
    assert report(called("report", home), [Jittery()]) == 0
    (results / NAME / "REPORT.md").write_text("edited")
    assert report(called("report", home, RUN=NAME), [Jittery()]) == 0
    assert (results / NAME / "REPORT.md").read_text() != "edited"
    assert f"results/{NAME}: 28 trials, 28 of them valid" in capsys.readouterr().out
    engine.broken = "no such line"
    assert report(called("report", home), [engine]) == UNTOLD
    with pytest.raises(WordError):
        report(called("report", home, RUN="nowhere"))
    # The list of runs has one that cannot be read, too.
    (results / "20260201T120000Z-damaged").mkdir()
    (results / "20260201T120000Z-damaged" / "manifest.json").write_text("[" * 100_000)
    report(called("report", home), [Jittery()])
    assert "Z-damaged" in (results / "index.html").read_text()
