"""What a user sees while a run is under way."""

import io
from typing import Any

import pytest
from rich.console import Console

from lab.model import NONE, STRONG, UNKNOWN, WEAK
from lab.report.progress import Trials
from support.fakes import plan
from support.planned import row

AT_MOST = "981 req/s of at most 1,000"
RAW = f"{AT_MOST}, raw p95 2142 ms"
NOTHING = "nothing limits but the load"
OF_POOL = {"bottleneck": "worker pool", "strength": STRONG}
UNBOUND = {"predicted_rps": None, "bottleneck": UNKNOWN, "strength": ""}
LOST = {"achieved_rps": None, "raw_p95_ms": None, "valid": False}
HELD = {"achieved_rps": None, "live_heap_bytes": 67_108_864, "resident_bytes": 214_748_365}
SURE = {"bottleneck": NONE, "strength": STRONG, "p95_ms": 24_000.0}
UNSURE = {"bottleneck": NONE, "strength": WEAK}


@pytest.mark.parametrize(
    ("mode", "figures", "said"),
    [
        ("closed", OF_POOL, f"{RAW}, limit: worker pool (strong evidence)"),
        ("open", SURE, f"{AT_MOST}, p95 24.0s, {NOTHING} (strong evidence)"),
        ("closed", UNSURE, f"{RAW}, {NOTHING} (weak evidence)"),
        ("closed", UNBOUND, "981 req/s, raw p95 2142 ms, what limits is unknown"),
        ("closed", LOST, "– req/s of at most 1,000, raw p95 –, invalid"),
        ("closed", HELD, "64 MiB of live heap, 205 MiB resident"),
    ],
)
def test_an_ended_trial_s_figures_are_said(mode: str, figures: dict[str, Any], said: str) -> None:
    text = io.StringIO()
    of = plan(mode, server="fixed-pool")
    measured = {"achieved_rps": 981.0, "predicted_rps": 1000.0, "raw_p95_ms": 2142.0}
    ended = row(of, **{**measured, **figures})
    with Trials(Console(file=text, width=80), 0, 2, lambda: 0.0) as progress:
        progress.finished(ended, 1)
        assert text.getvalue().splitlines() == [f"fixed-pool {mode} CONC=100: {said}"]
