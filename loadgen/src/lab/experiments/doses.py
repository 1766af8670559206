"""A/A and doses: is a difference found that is there, or one that is not?

Each load has arms: some as they are, some with a dose that makes them slower by a known share. The
first arm is compared with each other one, as two servers are, in groups of ROUNDS rounds.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.judge.compare import compare
from lab.judge.intervals import share_interval
from lab.model import Dosed, Row, goodput, p95_of

NAME = "dose"
ROUNDS = 6
SAME, SLOWER, UNTOLD = "within", "worse", "cannot tell"


@dataclass(frozen=True, slots=True)
class Arm:
    """The trials of an arm, by the round in which each was made (from 1). `load` is what arms that
    are compared have in common; `dose` is the share by which it is slower, 0 for none."""

    server: str
    load: str
    dose: float
    rows: Mapping[int, Row]


def answers(a: Arm, b: Arm) -> list[str]:
    """The answer on B in each group of rounds that both arms reached the end of. Trials of one
    round are a pair, as launches of one round are."""
    found: list[str] = []
    last = min(max(arm.rows, default=0) for arm in (a, b))
    for first in range(1, last - ROUNDS + 2, ROUNDS):
        in_a, in_b = (
            [
                dataclasses.replace(arm.rows[at], launch=at, arm=None)
                for at in range(first, first + ROUNDS)
                if at in arm.rows
            ]
            for arm in (a, b)
        )
        told = compare(in_a, in_b, "a", "b").answers
        found.append(told[0].place if told else UNTOLD)
    return found


def findings(arms: Sequence[Arm]) -> Iterator[Dosed]:
    """A finding for each arm but the first of its load."""
    for load in dict.fromkeys(arm.load for arm in arms):
        first, *others = (arm for arm in arms if arm.load == load)
        for arm in others:
            yield _finding(first, arm)


def _finding(first: Arm, arm: Arm) -> Dosed:
    counts = Counter(answers(first, arm))
    if arm.dose:
        # An arm without an answer was not called slower either.
        count, trials = counts[SLOWER], counts.total()
    else:
        trials = counts.total() - counts[UNTOLD]
        count = trials - counts[SAME]
    interval = share_interval(count, trials)
    return Dosed(
        name=NAME,
        server=arm.server,
        launch=0,
        value=count / trials if trials else None,
        unit="share of answers",
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        text="",
        load=arm.load,
        dose=arm.dose,
        answers=dict(sorted(counts.items())),
        goodput_ratio=_ratio([(goodput(a), goodput(b)) for a, b in _pairs(first, arm)]),
        p95_ratio=_ratio([(p95_of(a), p95_of(b)) for a, b in _pairs(first, arm)]),
    )


def _pairs(a: Arm, b: Arm) -> list[tuple[Row, Row]]:
    both = [(row, b.rows[at]) for at, row in a.rows.items() if at in b.rows]
    return [(x, y) for x, y in both if x.valid and y.valid]


def _ratio(pairs: Sequence[tuple[float | None, float | None]]) -> float | None:
    """The median over rounds of B / A."""
    ratios = [b / a for a, b in pairs if a and b and math.isfinite(b / a)]
    return statistics.median(ratios) if ratios else None
