"""What the load engines report, beside nginx's own log of the same requests.

nginx counts and times with its own code: from when it read a request to when it has written the
answer. Before that a request waits until nginx gets a CPU: that wait is in the engine's latency
alone. pacer's own lateness shows how long a process waits for a CPU here.
"""

import math
from dataclasses import dataclass
from typing import Any

import pytest

from support.stored import Run, Window, ends, results

# The load engines alone send no User-Agent.
LOAD = "-"
# nginx reads the clock once a round, and logs milliseconds.
EDGE_S = 0.02
# After this what the load's end cut off is logged.
CUT_S = 0.5
# What an engine may be off: the larger of the two, and so many waits for a CPU.
SHARE, MOST_MS, WAITS = 0.02, 2.0, 2


@dataclass(frozen=True)
class Answer:
    at_s: float
    took_ms: float
    status: str


@pytest.fixture(scope="module")
def run() -> Run:
    return Run("witness")


@pytest.fixture(scope="module")
def log() -> list[Answer]:
    lines = map(str.split, (results() / "witness.log").read_text().splitlines())
    return [
        Answer(float(at_s), 1000 * float(took_s), status)
        for at_s, took_s, status, *agent in lines
        if agent == [LOAD]
    ]


def window_of(run: Run, trial: dict[str, Any]) -> Window:
    if trial["engine"] != "pacer":
        return ends(trial)
    load = run.lines(trial["trial"], "pacer.jsonl.gz")[0]
    began_s = load["unix_s"] + load["load"]["warmup_s"]
    return began_s, began_s + trial["window_s"]


def test_nginx_was_asked_and_has_answered_as_often_as_pacer_counts(
    run: Run, log: list[Answer]
) -> None:
    trials = [trial for trial in run.trials if trial["engine"] == "pacer"]
    assert sorted(trial["mode"] for trial in trials) == ["closed", "open"]
    for trial in trials:
        begin, *_, end = run.lines(trial["trial"], "pacer.jsonl.gz")
        began_s, ended_s = begin["unix_s"], begin["unix_s"] + end["run_s"]
        load = [line for line in log if began_s - EDGE_S <= line.at_s <= ended_s + CUT_S]
        answered = [line for line in load if line.status == "200" and line.at_s <= ended_s]
        at_the_edge = EDGE_S * end["sent"] / end["run_s"]
        assert len(load) == pytest.approx(end["sent"], abs=at_the_edge), trial["trial"]
        assert len(answered) == pytest.approx(end["ok"], abs=at_the_edge), trial["trial"]


def test_an_engine_reports_the_latencies_that_nginx_logged(run: Run, log: list[Answer]) -> None:
    wrong, trials = [], run.trials
    # wrk2 does not report its lateness.
    most_late_ms = max(trial["late_p99_ms"] or 0 for trial in trials)
    for trial in trials:
        began_s, ended_s = window_of(run, trial)
        answered = [line for line in log if line.status == "200" and began_s <= line.at_s < ended_s]
        times_ms = sorted(line.took_ms for line in answered)
        if trial["samples"] != pytest.approx(len(times_ms), rel=SHARE):
            wrong.append(f"{trial['trial']}: {trial['samples']} answers, {len(times_ms)} logged")
        for percent in (50, 95, 99):
            logged_ms = times_ms[math.ceil(percent / 100 * len(times_ms)) - 1]
            waits_ms = WAITS * (trial["late_p99_ms"] or most_late_ms)
            allowed_ms = max(SHARE * logged_ms, MOST_MS) + waits_ms
            reported_ms = trial[f"raw_p{percent}_ms"]
            if reported_ms != pytest.approx(logged_ms, abs=allowed_ms):
                wrong.append(f"{trial['trial']}: p{percent} {reported_ms}, logged {logged_ms:.0f}")
    assert wrong == []
