"""Searches of a capacity on simulated servers: how often their intervals hold the truth.

    PYTHONPATH=src:tests python tests/support/simulated_search.py WORLD… [--apart 300]

The servers are those of `queue_server`, which shares neither code nor a distribution with the fit.
A window ends early here as it does on the lab.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lab.judge.capacity import NEAR, Estimate
from lab.judge.trial import KEPT_UP
from lab.kinds.objective import Objective
from lab.kinds.search import HALF, OFTEN, Search, capacities, next_load
from lab.load.engines.pacer import LEAST_WINDOW_S, SETTLED
from lab.model import Row
from support.queue_server import WORLDS, Measured, Sitting, World, truth

LIMIT_MS = 500.0
OBJECTIVE = Objective(p99_ms=LIMIT_MS)
SEARCH = Search((OBJECTIVE,), "rate", 400, 1_000_000, 0.08, 1_000_000)
WINDOW_S = 15
EMPTY = dict.fromkeys(Row.columns())


class Searched(NamedTuple):
    """What a search found: the loads that half and 95 of 100 trials meet; of how many trials, in
    how many simulated seconds."""

    half: Estimate
    often: Estimate
    trials: int
    took_s: float


def search(world: World, seed: int, launches: int, apart_s: float = 0) -> Searched:
    """A whole search of a server: its launches one after the other, or with a time between them in
    which other servers are measured."""
    sitting, rows = Sitting(world, seed), list[Row]()
    for launch in range(1, launches + 1):
        sitting.clock_s += apart_s if rows else 0
        jvm = sitting.new_jvm()
        while (load := next_load(SEARCH, SEARCH.first, rows, launch)) is not None:
            rows.append(row(load, launch, *measured(sitting, load, jvm)))
    found = capacities(SEARCH, rows)[OBJECTIVE]
    return Searched(found.at(HALF), found.at(OFTEN), len(rows), sitting.clock_s)


def measured(sitting: Sitting, load: int, jvm: int) -> tuple[Measured, float]:
    """A trial, and the standard error of its p99's logarithm."""
    trial = sitting.trial(load, jvm, WINDOW_S, settled=_is_settled)
    return trial, _error(trial)


def _is_settled(trial: Measured) -> bool:
    """As `Pacer.settled_s` is."""
    if not trial.seconds or len(trial.seconds) * 1000 < 5.5 * trial.p50_ms:
        return False
    error, away = _error(trial), abs(math.log(trial.p99_ms / LIMIT_MS))
    known = error <= SETTLED and len(trial.seconds) >= 2 * LEAST_WINDOW_S
    return known or away - 2 * error > NEAR


def _error(trial: Measured) -> float:
    """Of independent seconds: this does without the bootstrap of the lab."""
    logs = [math.log(each) for each in trial.seconds]
    return statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf


def row(load: int, launch: int, trial: Measured, error: float) -> Row:
    answered = trial.goodput_rps
    return Row(
        **{
            **EMPTY,
            "run": "r", "trial": "t", "server": "a", "route": "/", "engine": "pacer",
            "mode": "open", "concurrency": load, "offered_rps": load, "achieved_rps": answered,
            "valid": True, "invalid_reasons": "", "launch": launch,
            "p50_ms": trial.p50_ms, "p99_ms": trial.p99_ms,
            "p99_error": error, "max_ms": max((trial.p99_ms, *trial.seconds)),
            "late_p99_ms": trial.late_p99_ms, "overloaded": answered < KEPT_UP * load,
            "window_s": float(len(trial.seconds)),
            "window_ok": round(answered * len(trial.seconds)), "window_http_errors": 0,
            "window_lost": round(trial.error_share * load * len(trial.seconds)),
        }
    )  # fmt: skip


def lines(names: list[str], launches: int, searches: int, apart_s: float) -> Iterator[str]:
    yield "world, half: held, bias, half width; often: held; trials, minutes"
    for name in names:
        world = WORLDS[name]
        half, often = (truth(world, LIMIT_MS, share, WINDOW_S, 1) for share in (HALF, OFTEN))
        found = [search(world, seed, launches, apart_s) for seed in range(1, searches + 1)]
        bias = statistics.median(each.half.value for each in found) / half - 1
        width = statistics.median(each.half.width for each in found)
        trials = statistics.fmean(each.trials for each in found)
        minutes = statistics.fmean(each.took_s for each in found) / 60
        yield (
            f"{name}, {half:.0f}: {held([each.half for each in found], half)}, {bias:+.1%}, "
            f"{width:.1%}; {often:.0f}: {held([each.often for each in found], often)}; "
            f"{trials:.1f}, {minutes:.1f}"
        )


def held(found: Sequence[Estimate], right: float) -> str:
    """How many of the intervals hold what is right. Below a load of 1 none is met so often."""
    count = sum((each.low < 1 or each.low <= right) and right <= each.high for each in found)
    return f"{count} of {len(found)}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("worlds", nargs="*", default=list(WORLDS))
    parser.add_argument("--launches", type=int, default=6)
    parser.add_argument("--searches", type=int, default=100)
    parser.add_argument("--apart", type=float, default=0, metavar="S")
    given = parser.parse_args()
    for line in lines(given.worlds, given.launches, given.searches, given.apart):
        print(line, flush=True)
