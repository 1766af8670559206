"""Real outputs of wrk2, and plans like the ones that made them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.load.engines.wrk2 import OUTPUT
from lab.model import TrialPlan
from support import fakes

CAPTURES = Path(__file__).parent / "captures"


@pytest.fixture
def raw(tmp_path: Path) -> Callable[[str], Path]:
    """Puts a capture of wrk2 into a trial's raw folder under the name that it writes."""

    def put(capture: str) -> Path:
        shutil.copy(CAPTURES / f"wrk2-{capture}.txt", tmp_path / OUTPUT)
        return tmp_path

    return put


def plan(
    concurrency: int = 100, offered_rps: int | None = 2000, duration_s: int = 9, **changes: object
) -> TrialPlan:
    """A plan like the one of a capture."""
    return fakes.plan(
        "closed" if offered_rps is None else "open",
        concurrency=concurrency,
        offered_rps=offered_rps,
        duration_s=duration_s,
        predicted_rps=None,
        **changes,
    )
