"""How long a window must be, so that the requests at its edges do not decide its figures."""

import math

from lab.judge.predict import response_spread
from lab.model import Snapshot
from lab.model.routes import RouteCall

# A window has at least so many mean latencies. In a shorter one the edges hold more of the answers
# than the middle, and Little's law can hardly fail. A latency may prove longer than expected, so
# windows are planned to have more.
LEAST_LATENCIES = 4.5
PLANNED_LATENCIES = 5.5


def crossing_s(latency_s: float, call: RouteCall | None, snapshot: Snapshot) -> float:
    """The mean latency of the requests that are under way at an edge of the window, where that of
    all is `latency_s`. Long ones are met more often: it is E[R²] / E[R] = E[R] + Var(R) / E[R]
    (W. Feller, An Introduction to Probability Theory and Its Applications 2, 1971, I.4). Only the
    variance of a drawn delay counts. `call` None: an unknown route."""
    spread = response_spread(call, snapshot)
    if spread is None or latency_s <= 0:
        return latency_s
    return latency_s + (spread.sd_ms / 1000) ** 2 / latency_s


def needed_window_s(latency_s: float, call: RouteCall | None, snapshot: Snapshot) -> int:
    return math.ceil(PLANNED_LATENCIES * crossing_s(latency_s, call, snapshot) - 1e-9)
