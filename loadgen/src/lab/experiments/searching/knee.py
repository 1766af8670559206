"""Where the curve of a server's latencies bends, by the trials at shares of its capacity. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from lab.experiments.objective import Objective
from lab.judge.slo import judged_ms
from lab.model import KNEE, Finding, Row, goodput

# A bend takes so many points.
LEAST_RATES = 3


def knee(server: str, launch: int, objective: Objective, curve: Sequence[Row]) -> Finding | None:
    """The measured rate with the most answers per second for their latency: the maximum of power, X
    / R, beyond which latency grows by a larger share than throughput (L. Kleinrock, "Power and
    deterministic rules of thumb for probabilistic problems in computer communications", ICC 1979).
    R is the highest percentile that the objective limits. One valid trial each of one JVM, so no
    interval; None where fewer than LEAST_RATES of them tell."""
    name = objective.limits[-1][0]
    power = {
        row: good_rps / wait_ms
        for row in curve
        if row.valid and (good_rps := goodput(row)) and (wait_ms := judged_ms(row, name))
    }
    if len(power) < LEAST_RATES:
        return None
    best = max(power, key=lambda row: power[row])
    rates = [row.offered_rps or 0 for row in power]
    rate, least, most = best.offered_rps or 0, min(rates), max(rates)
    tried = f"of {len(power)} rates from {least:,} to {most:,}"
    if rate == most:
        text = f"no knee {tried} req/s: {name} grew by a smaller share than the rate"
        return Finding(KNEE, server, launch, None, "req/s", None, None, text)
    if rate == least:
        text = (
            f"the knee is at {rate:,} req/s or below: {name} grew by a larger share than the rate, "
            f"{tried}"
        )
        return Finding(KNEE, server, launch, None, "req/s", None, None, text)
    text = (
        f"the knee is at {rate:,} req/s ({name} {judged_ms(best, name) or 0:,.0f} ms): {tried} "
        f"it has the most answers per second for its {name}"
    )
    return Finding(KNEE, server, launch, float(rate), "req/s", None, None, text)
