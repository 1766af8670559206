"""What a user sees while a run is under way."""

import io
from typing import Any

import pytest
from rich.console import Console

from lab.model import NONE, STRONG, UNKNOWN, WEAK
from lab.report.progress import Trials, duration
from support.fakes import plan
from support.planned import row

AT_MOST = "981 req/s of at most 1,000"
RAW = f"{AT_MOST}, p95 2,142 ms"
OF_POOL = {"bottleneck": "worker pool", "strength": STRONG}
UNBOUND = {"predicted_rps": None, "bottleneck": UNKNOWN, "strength": ""}
LOST = {"achieved_rps": None, "raw_p95_ms": None, "valid": False}
LOST |= {"invalid_reasons": "cold-restarted"}
HELD = {"achieved_rps": None, "live_heap_bytes": 67_108_864, "resident_bytes": 214_748_365}
SURE = {"bottleneck": NONE, "strength": STRONG, "p95_ms": 24_000.0}


@pytest.mark.parametrize(
    ("mode", "figures", "said"),
    [
        ("closed", OF_POOL, f"{RAW}, limit: worker pool (strong)"),
        ("open", SURE, f"{AT_MOST}, p95 24,000 ms, no limit but the load (strong)"),
        ("closed", {**SURE, "strength": WEAK}, f"{RAW}, no limit but the load (weak)"),
        ("closed", UNBOUND, "981 req/s, p95 2,142 ms, limit unknown"),
        (
            "closed",
            LOST,
            "– req/s of at most 1,000, p95 – ms, invalid: cold JVM: the JVM restarted during the "
            "warm-up",
        ),
        ("closed", HELD, "64 MiB of live heap, 205 MiB resident"),
    ],
)
def test_a_log_has_one_line_for_each_trial(mode: str, figures: dict[str, Any], said: str) -> None:
    text = io.StringIO()
    of = plan(mode, server="fixed-pool", launch=2)
    measured = {"achieved_rps": 981.0, "predicted_rps": 1000.0, "raw_p95_ms": 2142.0}
    with Trials(Console(file=text, width=80), 0, 2) as progress:
        progress.phase(of, "fresh JVM")
        progress.progress(of, "measuring", 1.0, 10.0)
        progress.finished(row(of, **{**measured, **figures}), 1)
    load = "closed 100" if mode == "closed" else "open 100 at 450/s"
    assert text.getvalue().splitlines() == [f"[1/2] fixed-pool #2 {load}: {said}"]


def test_a_terminal_has_a_live_line_while_a_trial_runs() -> None:
    text = io.StringIO()
    console = Console(file=text, width=80, force_terminal=True, color_system=None)
    with Trials(console, 3, None) as progress:
        progress.progress(plan("closed"), "measuring", 1.0, 10.0)
        progress.say("a line above it")
    assert "[4] a closed 100: measuring, 9s" in text.getvalue()


def test_a_duration_is_short() -> None:
    assert [*map(duration, (9.4, 75, 3700))] == ["9s", "1m15s", "1h01m"]
