"""Sides of a comparison: a row for each launch, with the figures that a test is about."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from lab.judge.compare import COMPARE, Answer, Figure, Limits, compare_all
from lab.model import Mode, Row
from support.fakes import judged_row, measurement, plan, record

CPU = Limits(high=1.05)
GATE: dict[Figure, Limits] = {
    "goodput": Limits(low=0.95), "p99": Limits(high=1.1), "cpu": CPU, "memory": Limits(high=1.1),
}  # fmt: skip
STEADY = (100.0, 101, 99, 100, 102, 98)


def times(factor: float, values: Sequence[float] = STEADY) -> list[float]:
    return [factor * value for value in values]


def row(mode: Mode = "closed", **changes: Any) -> Row:
    trial = judged_row("run", measurement(record(plan(mode))))
    return copy.replace(trial, **{"valid": True, "cpu_server_us": 50.0, **changes})


def rows(mode: Mode = "closed", launches: int = 6, first: int = 99, **changes: Any) -> list[Row]:
    """A row for each launch. The `first` ones have these changes; one that is a sequence has a
    value for each launch."""
    found = []
    for at in range(launches):
        each = {
            name: value[at] if isinstance(value, list | tuple) else value
            for name, value in changes.items()
        }
        found.append(row(mode, launch=at + 1, **(each if at < first else {})))
    return found


def goodput(values: Sequence[float], **changes: Any) -> list[Row]:
    # Without an error every answer is a good one.
    return rows(launches=len(values), achieved_rps=list(values), **changes)


def late(values: Sequence[float], **changes: Any) -> list[Row]:
    return rows("open", launches=len(values), p95_ms=list(values), **changes)


def fails(per_mille: int) -> dict[str, Any]:
    """So many of 1,000 requests."""
    return {"window_ok": 1000 - per_mille, "window_http_errors": per_mille, "window_lost": 0}


def backlog(rps: float, **changes: Any) -> list[Row]:
    """An open load of 450/s of which so many were answered, with a p99 of that backlog."""
    known = {"overloaded": True, "achieved_rps": rps, "p99_ms": 10_000.0 * (1 - rps / 450)}
    return rows("open", **{**known, **changes})


def answers(
    a: Sequence[Row], b: Sequence[Row], limits: Mapping[Figure, Limits] = COMPARE
) -> list[Answer]:
    [found] = compare_all([(("a", a), ("b", b))], limits, lambda row: 1e9)
    return list(found.answers)
