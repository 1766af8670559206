"""What a user sees while a run is under way."""

import io

from rich.console import Console

from lab.report.progress import Trials, duration
from support.fakes import plan
from support.planned import row


def test_a_log_has_one_line_for_each_trial() -> None:
    text, trial = io.StringIO(), plan("closed", server="fixed-pool", launch=2)
    with Trials(Console(file=text, width=80), 0, 2) as progress:
        progress.phase(trial, "fresh JVM")
        progress.progress(trial, "measuring", 1.0, 10.0)
        progress.finished(row(trial, achieved_rps=981.0, raw_p95_ms=2142.0), 1)
    line = "[1/2] fixed-pool #2 closed 100: 981 req/s, p95 2,142 ms, limit unknown"
    assert text.getvalue().splitlines() == [line]


def test_a_terminal_has_a_live_line_while_a_trial_runs() -> None:
    text = io.StringIO()
    console = Console(file=text, width=80, force_terminal=True, color_system=None)
    with Trials(console, 3, None) as progress:
        progress.progress(plan("closed"), "measuring", 1.0, 10.0)
        progress.say("a line above it")
    assert "[4] a closed 100: measuring, 9s" in text.getvalue()


def test_a_duration_is_short() -> None:
    assert [*map(duration, (9.4, 75, 3700))] == ["9s", "1m15s", "1h01m"]
