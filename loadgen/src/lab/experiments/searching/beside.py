"""What trials beside a search say against its interval: those of the curve, and those of the pair
that go through Toxiproxy, as all of the search do. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lab.experiments.objective import Objective, judged
from lab.model import Finding, Row

NAME = "beside the search"


def beside(
    server: str,
    objective: Objective,
    rows: Sequence[Row],
    ends: tuple[float, float],
    window_s: float,
) -> Iterator[Finding]:
    """Rates below the interval with these ends that broke, and rates above it that were held in a
    window as long as those of the search: in a shorter one a queue may not have grown yet. Such
    trials move no answer: their rates were chosen after it. They tell how much trials differ."""
    against = []
    for row in rows:
        rate, (outcome, why) = row.offered_rps or 0, judged(objective, row)
        if outcome == "broke" and rate < ends[0]:
            against.append((rate, f"{rate:,} req/s broke ({why})"))
        elif outcome == "held" and rate > ends[1] and (row.duration_s or 0) >= window_s:
            against.append((rate, f"{rate:,} req/s were held"))
    if against:
        said = ", and ".join(text for _, text in sorted(against))
        text = f"measured after its search, {said}: trials differ by more than [from, to] tells"
        yield Finding(NAME, server, 0, None, "", None, None, text)
