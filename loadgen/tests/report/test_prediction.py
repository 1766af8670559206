"""A prediction in a line, as the console prints it before a load."""

import pytest

from lab.judge.predict import Prediction
from lab.model import Bound
from lab.report.prediction import text

CONNECTIONS = Bound("connections", 10_000, "2000 / 0.2 s")
POOL = Bound("worker pool", 12_000, "2400 / 0.2 s")
HOST = Bound("host CPU", 3750, "3 / 0.8 ms", estimate=True)


@pytest.mark.parametrize(
    ("prediction", "expected"),
    [
        (
            Prediction((HOST, CONNECTIONS, POOL), expected_p95_ms=5.0, expected_p99_ms=5.0),
            "≤ 10,000 req/s (connections: 2000 / 0.2 s); "
            "host CPU ≈ 3,800 req/s (extrapolated: 3 / 0.8 ms)",
        ),
        (
            Prediction((CONNECTIONS,), expected_p95_ms=796.4, expected_p99_ms=1100.0),
            "≤ 10,000 req/s (connections: 2000 / 0.2 s); p95 796.4 ms, p99 1100 ms",
        ),
        (
            Prediction((CONNECTIONS,), no_tail="queue"),
            "≤ 10,000 req/s (connections: 2000 / 0.2 s); "
            "p95 not predicted: requests with drawn delays queue",
        ),
        (
            Prediction((CONNECTIONS,), caveats=("downstream/reset_peer", "deadline")),
            "none: no bound covers downstream/reset_peer, a deadline within the drawn delays",
        ),
        (Prediction(()), "none: nothing that is known bounds this load"),
    ],
)
def test_a_prediction_in_a_line(prediction: Prediction, expected: str) -> None:
    assert text(prediction) == expected
