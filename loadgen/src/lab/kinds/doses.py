"""A/A and doses: is a difference found that is there, or one that is not?

Each load has arms: some as they are, some with a dose that makes them slower by a known share. The
first arm is compared with each other one, as two servers are, in groups of ROUNDS rounds.
"""

from __future__ import annotations

import copy
import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.judge.compare import compare
from lab.judge.intervals import share_interval
from lab.kinds.kind import ends
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
    places: list[str] = []
    last = min(max(arm.rows, default=0) for arm in (a, b))
    for first in range(1, last - ROUNDS + 2, ROUNDS):
        rounds = range(first, first + ROUNDS)
        compared = compare(_rounds(a, rounds), _rounds(b, rounds), "a", "b").answers
        places.append(compared[0].place if compared else UNTOLD)
    return places


def _rounds(arm: Arm, rounds: range) -> list[Row]:
    present = [at for at in rounds if at in arm.rows]
    return [copy.replace(arm.rows[at], launch=at, arm=None) for at in present]


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
    low, high = ends(share_interval(count, trials))
    share = count / trials if trials else None
    pairs = [(row, arm.rows[at]) for at, row in first.rows.items() if at in arm.rows]
    pairs = [(a, b) for a, b in pairs if a.valid and b.valid]
    return Dosed(
        *(NAME, arm.server, 0, share, "share of answers", low, high),
        load=arm.load,
        dose=arm.dose,
        answers=dict(sorted(counts.items())),
        goodput_ratio=_ratio([(goodput(a), goodput(b)) for a, b in pairs]),
        p95_ratio=_ratio([(p95_of(a), p95_of(b)) for a, b in pairs]),
    )


def _ratio(pairs: Sequence[tuple[float | None, float | None]]) -> float | None:
    """The median over rounds of B / A."""
    ratios = [b / a for a, b in pairs if a and b and math.isfinite(b / a)]
    return statistics.median(ratios) if ratios else None
