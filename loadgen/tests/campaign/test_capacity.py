"""Whole searches for a capacity on a fake lab: what the user is told first, and what goes on."""

import dataclasses
import re
from pathlib import Path

import pytest
from rich.console import Console

from lab.campaign.gate import UNTOLD, WORSE
from lab.campaign.result_verbs import compare_verb
from lab.campaign.run import run
from lab.experiments.objective import Objective
from lab.experiments.search import Search
from lab.model import Reading, TrialPlan
from lab.store.records import to_json
from support.bench import EXPERIMENT, Bench
from support.fakes import FakeEngine, flat, reading

SEARCH: dict[str, object] = {
    "kind": "capacity",
    "own": to_json(Search((Objective(p99_ms=500.0),), "rate", 100, 400, 0.08, 10_000)),
    "modes": ("open",),
    "servers": ("b",),
}
HOLDS = "b  sustains at least 400 req/s at p99 ≤ 500 ms: no higher load was missed"


def test_the_answer_comes_first_on_the_console_and_in_both_reports(ready: Bench) -> None:
    assert ready.run(**SEARCH) == 0
    # As far as may be expected, at most the highest rate that is allowed, and that twice.
    assert ready.column("offered_rps") == ["100", "275", "400", "400"]
    # And nothing else but where the rest is.
    *_, after = ready.text.getvalue().partition(HOLDS)
    assert "4 trials, 0 of them invalid" in after
    assert "report.html" in after
    assert len(after.splitlines()) <= 8
    name, _, text = HOLDS.partition("  ")
    assert ready.report.splitlines()[4] == f"- **{name}**: {text}"
    page = (ready.run_dir / "report.html").read_text()
    assert page.index(f"<li><strong>{name}</strong>: {text}</li>") < page.index("<nav")
    # Beforehand: how many trials, and how long; 16 × (25 + 4) s, and 22 s to warm up the JVM.
    most = "at most 16 trials (more if some are invalid), each of about 25 s and warm-up, about"
    assert f"{most} 8m06s in all, with wrk2, open load, at a rate that is searched" in ready.said
    assert "[1] b open 72 at 100/s: " in ready.text.getvalue()
    ready.text.truncate(0)
    ready.run(servers=("a", "b"), modes=("closed",), duration_s=30)
    assert "2 trials of 40 s and warm-up, about 2m12s in all, with wrk2, closed load" in ready.said


class Limited(FakeEngine):
    """Latencies exceed 500 ms above 200 requests per second of server a, and 300 of b."""

    def read(self, plan: TrialPlan, raw: Path) -> Reading:
        rate = float(plan.offered_rps or 0)
        took = flat(200 + 300 * (rate / {"a": 200, "b": 300}[plan.server]) ** 15)
        return reading(rate, plan.duration_s, raw=took, corrected=took, p99_error=0.02)


def test_two_capacities_have_a_ratio(ready: Bench) -> None:
    ready.lab.engine = Limited()
    low = to_json(Search((Objective(p99_ms=500.0),), "rate", 50, 100, 0.08, 10_000))
    runs = {
        "both": {"servers": ("a", "b"), "launches": 3},
        "again": {"launches": 3},
        "alone": {},
        "low": {"own": low},
    }
    for name, changes in runs.items():
        assert ready.run(**{**SEARCH, **changes}, name=name) == 0

    def compared(a: str, b: str) -> tuple[int, str]:
        words = {}
        for word, side in (("A", a), ("B", b)):
            name, _, server = side.partition(":")
            (run_dir,) = ready.place.results.glob(f"*-{name}")
            words[word] = f"{run_dir.name}:{server}"
        before = len(ready.text.getvalue())
        status = compare_verb(words, ready.place.results, ready.console, [ready.lab.engine])
        return status, ready.text.getvalue()[before:]

    status, text = compared("both:b", "again:b")
    assert status == 0
    assert re.search(r"B/A 1\.00 \[0\.\d\d, 1\.\d\d\]: within", text)
    assert compared("both:a", "both:b")[0] == 0
    status, text = compared("both:a", "alone:b")
    assert status == UNTOLD
    assert "another JVM may differ by more" in text
    status, text = compared("both:b", "both:a")
    assert status == WORSE
    assert re.search(r"B/A 0\.6\d \[0\.\d\d, 0\.\d\d\]: worse", text)
    status, text = compared("again:b", "low:b")
    assert status == UNTOLD
    assert "cannot tell: a capacity without both ends has no ratio" in text


def test_a_plan_names_the_trials_and_measures_nothing(ready: Bench) -> None:
    def planned(**changes: object) -> str:
        experiment = dataclasses.replace(EXPERIMENT, **changes)
        where, engines = ready.where, [ready.lab.engine]
        assert run(experiment, where, (), engines, ready.stages, only_plan=True) == 0
        return ready.text.getvalue()

    text = planned(servers=("a",))
    assert "2 trials of 25 s and warm-up, about 1m20s in all" in text
    assert "01-a-open-c200: /downstream open, 200 connections, 323 req/s, 25 s" in text
    assert "02-a-closed-c200: /downstream closed, 200 connections, 25 s" in text
    text = planned(**SEARCH)
    assert "001-b-open-c72: /downstream open, 72 connections, 100 req/s, 25 s" in text
    assert "the others follow from what each finds" in text
    # Of the first launch and of the second.
    assert "at most 22 trials" in planned(**{**SEARCH, "servers": ("a",)}, launches=2)
    assert list(Path(ready.place.results).glob("*-bench")) == []
    assert ready.warmed == []


STRESS = to_json(Search((Objective(p95_ms=500.0),), "connections", 100, 400, 0.08, 400))


@pytest.mark.parametrize(
    ("changes", "begin"),
    [
        ({**SEARCH, "servers": ("a", "b")}, "a  sustains"),
        ({}, "a  reached"),
        ({"kind": "stress", "modes": ("open",), "own": STRESS}, "a  sustains"),
    ],
    ids=["capacity", "bench", "stress"],
)
def test_at_80_columns_nothing_is_cut(
    ready: Bench, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], begin: str
) -> None:
    looks = {"force_terminal": True, "no_color": True, "highlight": False}
    console = property(lambda self: Console(file=self.text, width=80, **looks))
    monkeypatch.setattr(Bench, "console", console)
    ready.run(**changes)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", ready.text.getvalue())
    # What comes at the end, after the progress.
    screen = text[text.rindex(begin) :]
    assert max(map(len, screen.splitlines())) <= 80
    assert "…" not in screen.replace("EXP=…", "")
