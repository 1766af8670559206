"""Whole searches for a capacity on a fake lab: what the user is told first, and what goes on."""

import copy
import re
from pathlib import Path

import pytest
from rich.console import Console

from lab.app.call import Call
from lab.app.compare import UNTOLD, WORSE, compare, compare_sides
from lab.app.run import run
from lab.app.sides import Side, read_sides
from lab.kinds.objective import Objective
from lab.kinds.search import Search
from lab.model import Reading, TrialPlan
from lab.report.capacity import ratio_lines
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
    assert "report.html" in after
    assert len(after.splitlines()) <= 8
    name, _, text = HOLDS.partition("  ")
    assert ready.report.splitlines()[4] == f"- **{name}**: {text}"
    page = (ready.run_dir / "report.html").read_text()
    assert page.index(f"<li><strong>{name}</strong>: {text}</li>") < page.index("<nav")


class Limited(FakeEngine):
    """Latencies exceed 500 ms above 200 requests per second of server a, and 300 of b."""

    def read(self, plan: TrialPlan, raw: Path) -> Reading:
        rate = float(plan.offered_rps or 0)
        took = flat(200 + 300 * (rate / {"a": 200, "b": 300}[plan.server]) ** 15)
        return reading(rate, plan.duration_s, raw=took, corrected=took, p99_error=0.02)


def test_two_capacities_have_a_ratio(ready: Bench, capsys: pytest.CaptureFixture[str]) -> None:
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
    for a, b, status, said in (
        ("both:b", "again:b", 0, r"B/A 1\.00 \[0\.\d\d, 1\.\d\d\]: within"),
        ("both:a", "both:b", 0, "better"),
        # Of one JVM each.
        ("both:a", "alone:b", UNTOLD, "cannot tell"),
        ("both:b", "both:a", WORSE, r"B/A 0\.6\d \[0\.\d\d, 0\.\d\d\]: worse"),
        # No end above.
        ("again:b", "low:b", UNTOLD, "cannot tell"),
    ):
        words = {}
        for word, (name, _, server) in (("A", a.partition(":")), ("B", b.partition(":"))):
            (run_dir,) = ready.place.results.glob(f"*-{name}")
            words[word] = f"{run_dir.name}:{server}"
        call = Call("compare", words, {"LAB_HOME": str(ready.place.results.parent)})
        assert compare(call, [ready.lab.engine]) == status, (a, b)
        assert re.search(said, capsys.readouterr().out), (a, b)


def test_two_runs_are_compared_at_one_speed_of_the_machine(ready: Bench) -> None:
    engines = [Limited()]
    (ready.lab.engine,) = engines
    for name in ("slow", "quick"):
        assert ready.run(**SEARCH, launches=3, name=name) == 0
    names = {
        word: next(ready.place.results.glob(f"*-{name}")).name
        for word, name in (("A", "slow"), ("B", "quick"))
    }
    call = Call("compare", names, {"LAB_HOME": str(ready.place.results.parent)})

    def costing(side: Side, times: float) -> Side:
        """The run on a machine so many times as slow."""
        lanes = {
            lane: [
                copy.replace(
                    row,
                    offered_rps=round((row.offered_rps or 0) / times),
                    achieved_rps=(row.achieved_rps or 0) / times,
                    cpu_proxy_us=50 * times,
                    cpu_downstream_us=20 * times,
                    cpu_generator_us=30 * times,
                )
                for row in rows
            ]
            for lane, rows in side.lanes.items()
        }
        return copy.replace(side, lanes=lanes)

    slow, quick = read_sides(call, engines, "A", "B")
    a, b = costing(slow, 2.0), costing(quick, 1.0)
    (found,) = compare_sides(a, b).capacities
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(2, rel=0.05)
    assert found.control_us == pytest.approx((200, 100))
    assert found.in_units is not None
    assert found.in_units.low < 1 < found.in_units.high
    assert found.place == "within"
    assert "at one speed of the machine: within" in "\n".join(ratio_lines(found))
    # The trials of one run take turns, so they need no unit.
    (found,) = compare_sides(a, copy.replace(b, folder=a.folder)).capacities
    assert (found.in_units, found.place) == (None, "better")


@pytest.mark.parametrize(
    ("changes", "said", "first"),
    [
        (
            {"servers": ("a",)},
            "2 trials of 25 s and warm-up, about 1m20s in all, with wrk2",
            "01-a-open-c200: /downstream open, 200 connections, 323 req/s, 25 s",
        ),
        # 16 × (25 + 4) s, and 22 s to warm up the JVM.
        (
            SEARCH,
            "at most 16 trials (more if some are invalid), each of about 25 s and warm-up, about "
            "8m06s in all, with wrk2",
            "001-b-open-c72: /downstream open, 72 connections, 100 req/s, 25 s",
        ),
        # Of the first launch and of the second.
        ({**SEARCH, "servers": ("a",), "launches": 2}, "at most 22 trials", "001-a-open-"),
        ({"scale": 0.1}, "durations × 0.1 (a quick look, not a result)", "01-a-open-c200: "),
    ],
    ids=["bench", "search", "search of two launches", "scaled"],
)
def test_a_plan_names_the_trials_and_measures_nothing(
    ready: Bench, changes: dict[str, object], said: str, first: str
) -> None:
    experiment = copy.replace(EXPERIMENT, **changes)
    assert run(experiment, ready.where, (), ready.stages, only_plan=True) == 0
    assert said in ready.said
    assert first in ready.said
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
