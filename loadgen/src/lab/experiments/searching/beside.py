"""What trials beside a search say against its interval: those of the curve, and those of the pair
that go through Toxiproxy, as all of the search do. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lab.experiments.objective import Objective, judged
from lab.model import Finding, Row

NAME = "beside the search"


def beside(
    server: str, objective: Objective, rows: Sequence[Row], low: float | None, high: float | None
) -> Iterator[Finding]:
    """Rates below the interval that broke, and rates above it that were held. Such trials move no
    answer: their rates were chosen after it. They tell how much trials of one rate differ."""
    against = []
    for row in rows:
        rate, (outcome, why) = row.offered_rps or 0, judged(objective, row)
        if outcome == "broke" and low is not None and rate < low:
            against.append((rate, f"{rate:,} req/s broke ({why})"))
        elif outcome == "held" and high is not None and rate > high:
            against.append((rate, f"{rate:,} req/s were held"))
    if against:
        said = ", and ".join(text for _, text in sorted(against))
        text = f"measured after its search, {said}: trials differ by more than [from, to] tells"
        yield Finding(NAME, server, 0, None, "", None, None, text)
