"""Real outputs of the engines, and plans like the ones that made them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.model import TrialPlan
from support import fakes

CAPTURES = Path(__file__).parent / "captures"


@pytest.fixture
def raw(tmp_path: Path) -> Callable[[str, str], Path]:
    """Puts a capture into a trial's raw folder under the name the engine writes."""

    def put(capture: str, name: str) -> Path:
        shutil.copy(CAPTURES / capture, tmp_path / name)
        return tmp_path

    return put


@pytest.fixture
def plan() -> Callable[..., TrialPlan]:
    def make(
        concurrency: int = 100,
        offered_rps: int | None = 2000,
        duration_s: int = 9,
        **changes: object,
    ) -> TrialPlan:
        return fakes.plan(
            "closed" if offered_rps is None else "open",
            concurrency=concurrency,
            offered_rps=offered_rps,
            duration_s=duration_s,
            predicted_rps=None,
            **changes,
        )

    return make
