"""One second of a run, as pacer keeps it."""

from __future__ import annotations

from dataclasses import dataclass

from lab.load.engines.histogram import Histogram


@dataclass(frozen=True, slots=True)
class Second:
    """The answers that ended in one second of a run; `second` counts from its start.

    `http_errors` are those of the `answers` that were errors. `corrected` counts from when a
    request was due (empty in a closed load). `lost` counts the requests that ended without an
    answer.
    """

    second: int
    answers: int
    http_errors: int
    corrected: Histogram
    lost: int
