"""Real outputs of the engines, and plans like the ones that made them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.model import Arrivals, Mode, TrialPlan

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
        engine: str = "wrk2",
        warmup_s: int | None = None,
        cores: int = 2,
        arrivals: Arrivals = "constant",
    ) -> TrialPlan:
        mode: Mode = "closed" if offered_rps is None else "open"
        return TrialPlan(
            trial="01-a",
            server="a",
            url="http://a:8080/downstream",
            route="/downstream",
            engine=engine,
            mode=mode,
            concurrency=concurrency,
            offered_rps=offered_rps,
            predicted_rps=None,
            duration_s=duration_s,
            warmup_s=warmup_s,
            cores=cores,
            arrivals=arrivals,
        )

    return make
