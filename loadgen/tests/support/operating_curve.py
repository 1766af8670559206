"""How often a gate would be right: its operating curve, from stored launches of four arms.

    PYTHONPATH=src:tests python tests/support/operating_curve.py RUN…   (of .ci/gate-arms.sh)

The arms took turns in each round: base, base again, and two candidates with CPU time planted in a
request's path. A run is a block: one host, one sitting. A gate gets LAUNCHES rounds of one block,
each at most once, as a gate never measures a launch twice; so its ratios are within the block. The
rates are shares of GATES gates. Their intervals hold what 36 launches leave open: percentiles of
the rates of REPLICATES bootstrap samples, each of which draws the rounds of every block with
replacement (B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap, 1993, section 13.3).
Rounds are numbered as drawn, in the order of time. So neighbours of the A/A floor may be some
rounds apart, and the floor is rather too wide.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from copy import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from lab.judge.compare import Figure, Limits, compare_all, overall
from lab.model import Row
from lab.store import csv
from support.resampled import in_turns
from support.table import read_rows

LAUNCHES, GATES, REPLICATES, GATES_OF_REPLICATE = 9, 1_000, 200, 50
# Limits of gate.toml, of what a row has.
LIMITS: Mapping[Figure, Limits] = {"goodput": Limits(low=0.95), "cpu": Limits(high=1.05)}
# A round: the rows of each arm. A block: its rounds, in the order of time.
Round = Mapping[str, Sequence[Row]]
Block = Sequence[Round]


class Rate(NamedTuple):
    """The share of gates that say so, and the ends of its 95 % interval."""

    share: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.share:6.1%} [{self.low:.1%}, {self.high:.1%}]"


def blocks_of(rows: Sequence[Row]) -> list[Block]:
    """The rounds of each run in which every arm has a row."""
    arms = {row.arm or "" for row in rows}
    found: dict[str, dict[int, dict[str, list[Row]]]] = {}
    for row in rows:
        rounds = found.setdefault(row.run, {}).setdefault(row.launch, {})
        rounds.setdefault(row.arm or "", []).append(row)
    return [
        [one for _, one in sorted(rounds.items()) if set(one) == arms] for rounds in found.values()
    ]


def rate(blocks: Sequence[Block], base: str, arm: str, said: str, *, raw: bool) -> Rate:
    """How often gates of an arm against the base say so; `raw`: without the covariate."""
    rng = np.random.default_rng([LAUNCHES, raw])
    share = _share(blocks, base, arm, said, GATES, rng, raw=raw)
    replicates = [
        _share(
            [[block[at] for at in np.sort(rng.integers(len(block), size=len(block)))]
             for block in blocks],
            base, arm, said, GATES_OF_REPLICATE, rng, raw=raw,
        )
        for _ in range(REPLICATES)
    ]  # fmt: skip
    low, high = np.percentile(replicates, (2.5, 97.5)).tolist()
    return Rate(share, low, high)


def _share(
    blocks: Sequence[Block],
    base: str,
    arm: str,
    said: str,
    gates: int,
    rng: Generator,
    *,
    raw: bool,
) -> float:
    sizes = np.array([len(block) for block in blocks], dtype=float)
    count = 0
    for _ in range(gates):
        block = blocks[rng.choice(len(blocks), p=sizes / sizes.sum())]
        drawn = np.sort(rng.choice(len(block), LAUNCHES, replace=False))
        rounds = [block[at] for at in drawn]
        sides = [
            [
                replace(
                    in_turns(row, number, side),
                    run="gate",
                    **({"cpu_generator_us": None} if raw else {}),
                )
                for number, drawn_round in enumerate(rounds, start=1)
                for row in drawn_round[name]
            ]
            for side, name in enumerate((base, arm))
        ]
        comparisons = compare_all([(("base", sides[0]), ("candidate", sides[1]))], LIMITS)
        count += overall(comparisons) == said
    return count / gates


def curve(rows: Sequence[Row]) -> Iterator[str]:
    """The lines of the operating curve. The first arm is the base, the second the base again."""
    blocks = blocks_of(rows)
    base, *arms = sorted({row.arm or "" for row in rows})
    rounds = ", ".join(str(len(block)) for block in blocks)
    yield f"gates of {LAUNCHES} launches, drawn of blocks of {rounds} rounds; base: {base}"
    for arm in arms:
        for raw in (False, True):
            told = " ".join(
                f"{said} {rate(blocks, base, arm, said, raw=raw)}"
                for said in ("worse", "not worse")
            )
            yield f"{arm} {'raw          ' if raw else 'with covariate'} {told}"


if __name__ == "__main__":
    every = [row for name in sys.argv[1:] for row in read_rows(Path(name) / csv.NAME)]
    print(*curve(every), sep="\n")
