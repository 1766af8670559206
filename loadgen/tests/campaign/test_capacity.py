"""Whole searches for a capacity on a fake lab: what the user is told first, and what goes on."""

import dataclasses
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from campaign.test_conditions import rejudged
from lab.campaign.run import run
from lab.experiments.breaking.search import Stress
from lab.experiments.objective import Objective
from lab.experiments.searching.state import Capacity
from lab.report import answers
from lab.store.records import to_json
from support.bench import EXPERIMENT, Bench

SEARCH: dict[str, object] = {
    "kind": "capacity",
    "own": to_json(Capacity(Objective(p99_ms=500.0), 100, 400, 0.03, 10_000)),
    "modes": ("open",),
    "servers": ("b",),
}
HOLDS = "b  holds at least 400 req/s at p99 ≤ 500 ms"


def test_the_answer_comes_first_on_the_console_and_in_both_reports(ready: Bench) -> None:
    assert ready.run(**SEARCH) == 0
    # Doubled until the most, which is tried three times.
    assert ready.column("offered_rps") == ["100", "200", "400", "400", "400"]
    # And nothing else but where the rest is.
    *_, after = ready.text.getvalue().partition(HOLDS)
    assert "5 trials, 0 of them invalid" in after
    assert "report.html" in after
    assert len(after.splitlines()) <= 5
    assert ready.report.splitlines()[2:4] == ["```", HOLDS]
    page = (ready.run_dir / "report.html").read_text()
    assert page.index(f'<pre class="answer">{HOLDS}</pre>') < page.index("<nav")
    # Beforehand: how many trials, and how long; 36 × (25 + 4) s, and 22 s to warm up the JVM.
    most = "at most 36 trials (more if some are invalid), each of about 25 s and warm-up, about"
    assert f"{most} 17m46s in all, with wrk2, open load, at a rate that is searched" in ready.said
    assert "[1] b open CONC=72 warm-up\n" in ready.text.getvalue()
    ready.text.truncate(0)
    ready.run(servers=("a", "b"), modes=("closed",), duration_s=30)
    assert "2 trials of 40 s and warm-up, about 2m12s in all, with wrk2, closed load" in ready.said


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
    own = Capacity(Objective(p99_ms=500.0), 1000, 9000, 0.5, 10_000, curve=True, prove=True)
    search = {**SEARCH, "servers": ("a",), "own": to_json(own)}
    # 36 and 12 of the search, 7 of the curve, and those of the search that is lifted.
    assert "at most 103 trials" in planned(**search, launches=2)
    assert list(Path(ready.place.results).glob("*-bench")) == []
    assert ready.warmed == []


def limited(raw: Path) -> dict[str, object]:
    """150 req/s; `a` twice as many with more threads. `b` shows nothing."""
    plan = json.loads((raw / "trial.json").read_text())["plan"]
    condition = plan["condition"]
    most = 300 if condition["knobs"] else 120 if condition["spin"] else 150
    if plan["offered_rps"] <= most:
        return {"bottleneck": "none", "strength": "strong"}
    name = "worker pool" if plan["server"] == "a" and most == 150 else "host CPU"
    return {"overloaded": True, "bottleneck": name, "strength": "strong"}


PROOF: dict[str, object] = {
    **SEARCH,
    "servers": ("a", "b"),
    "own": to_json(Capacity(Objective(p99_ms=500.0), 100, 400, 0.2, 10_000, prove=True)),
}


def test_a_bottleneck_is_lifted_and_put_back(ready: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    rejudged(monkeypatch, limited)
    ready.lab.pool_sizes["b"] = 200
    ready.interrupt(500.0, **PROOF)
    assert ready.column("arm")[-1] == "lifted"
    assert ready.lab.pool_sizes == {"a": 200, "b": 200}
    assert ready.resume() == 0
    changed = {(row["server"], row["arm"]) for row in ready.rows if row["arm"]}
    # Of `b` the machine's CPUs gave way, of which some are taken away.
    assert changed == {("a", "lifted"), ("b", "all-cpu"), ("b", "less-cpu")}
    # What `a` was given on purpose is compared with nothing: neither with `b` nor with itself.
    assert {row["valid"] for row in ready.rows} == {"true"}
    assert ready.lab.pool_sizes == {"a": 200, "b": 200}
    first = "a holds 141 req/s at p99 ≤ 500 ms [141, 168] then: worker pool (strong, at 168 by "
    assert f"{first}3 trials)" in ready.said
    assert "lifted to pool_size=400: holds 283 req/s [283, 336], ×2.01 (no proof" in ready.said
    assert "with 20% of the CPUs taken away it breaks at 141 req/s and holds 99" in ready.said


VIRTUAL = "holds 4,310 req/s at p99 ≤ 500 ms [4,120, 4,480]"
POOL = "holds 970 req/s at p99 ≤ 500 ms [950, 985]"
CPU, WORKERS = "then: host CPU (strong)", "then: worker pool (strong)"
LINES = (("virtual-threads", VIRTUAL, CPU), ("fixed-pool", POOL, WORKERS), ("Not told apart: x.",))


def test_answers_fit_the_width() -> None:
    assert answers.lines(LINES, 120) == (
        f"virtual-threads  {VIRTUAL}   {CPU}",
        f"fixed-pool       {POOL}         {WORKERS}",
    )
    assert answers.lines(LINES, 80) == (
        f"virtual-threads  {VIRTUAL}",
        f"                 {CPU}",
        f"fixed-pool       {POOL}",
        f"                 {WORKERS}",
    )
    assert answers.notes(LINES) == ("Not told apart: x.",)
    assert answers.lines((), 120) == ()
    # What is beside an answer has lines of its own.
    of = (("a", "holds 1 req/s", "", "of the 310 ms 71% is in the queue"), ("bb", "holds 2 req/s"))
    assert answers.lines(of, 30) == (
        *("a   holds 1 req/s", "    of the 310 ms 71% is in", "      the queue"),
        "bb  holds 2 req/s",
    )


@pytest.mark.parametrize("width", [60, 80])
def test_no_interval_is_broken_where_a_line_is(width: int) -> None:
    of = (
        "spring-mvc-virtual",
        "holds 12,310 req/s at p99 ≤ 500 ms [12,120, 14,480], not finished",
        "then: host CPU, 96% busy: of the lab's CPU time server 38%, proxy 27% (strong)",
        "with 20% of the CPUs taken away it breaks at 12,310 req/s and holds 8,617 req/s",
    )
    told = answers.lines((of,), width)
    assert max(map(len, told)) <= width
    assert any("[12,120, 14,480]" in line for line in told)
    assert " ".join(" ".join(told).split()) == " ".join(of)


STRESS = to_json(Stress(Objective(p95_ms=500.0), 100, 100, 400, 50, 0.1))


@pytest.mark.parametrize(
    ("changes", "begin"),
    [
        ({**SEARCH, "servers": ("a", "b")}, "a  holds"),
        ({}, "a  reached"),
        ({"kind": "stress", "modes": ("open",), "own": STRESS}, "a  held"),
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
