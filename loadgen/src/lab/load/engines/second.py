"""One second of a run, as the engines tell it that keep every second."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from lab.load.engines.histogram import Histogram
from lab.model import FAILURE


@dataclass(slots=True)
class Second:
    """The answers that ended in one second of a run; `second` counts from its start.

    `raw` counts from when a request was sent, `corrected` from when it was due (empty in a closed
    load). `lag_us` is how late the generator itself was with these requests, summed. `lost` counts
    the requests that ended without an answer in it, 0 also where the engine cannot tell the second.
    `errors` are the answers that were errors; None: those with a status above 399.
    """

    second: int
    statuses: Counter[int] = field(default_factory=Counter)
    raw: Histogram = field(default_factory=Histogram)
    corrected: Histogram = field(default_factory=Histogram)
    lag_us: int = 0
    lost: int = 0
    errors: int | None = None

    @property
    def answers(self) -> int:
        """All of them, HTTP errors included."""
        return self.statuses.total()

    @property
    def http_errors(self) -> int:
        """Those with a status above 399, or that were not as expected."""
        if self.errors is not None:
            return self.errors
        return sum(count for status, count in self.statuses.items() if status >= FAILURE)

    @property
    def good(self) -> int:
        return self.answers - self.http_errors
