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

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from lab.judge.compare import Figure, Limits
from lab.model import Row
from lab.store import csv
from support.resampled import Round, judged, rounds_of
from support.table import read_rows

LAUNCHES, GATES, REPLICATES, GATES_OF_REPLICATE = 9, 1_000, 200, 50
# Limits of gate.toml, of what a row has.
LIMITS: Mapping[Figure, Limits] = {"goodput": Limits(low=0.95), "cpu": Limits(high=1.05)}
# Its rounds, in the order of time.
Block = Sequence[Round]


class Rate(NamedTuple):
    """The share of gates with this answer, and the ends of its 95 % interval."""

    share: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.share:6.1%} [{self.low:.1%}, {self.high:.1%}]"


def blocks_of(rows: Sequence[Row]) -> list[Block]:
    """The rounds of each run in which every arm has a row."""
    arms = {row.arm or "" for row in rows}
    runs = groupby(sorted(rows, key=lambda row: row.run), key=lambda row: row.run)
    rounds = (rounds_of(list(run)).values() for _, run in runs)
    return [[each for each in block if set(each) == arms] for block in rounds]


def rate(blocks: Sequence[Block], base: str, arm: str, answer: str, *, raw: bool) -> Rate:
    """How often gates of an arm against the base answer so; `raw`: without the covariate."""
    rng = np.random.default_rng([LAUNCHES, raw])

    def share(blocks: Sequence[Block], gates: int) -> float:
        drawn = (_drawn(blocks, rng) for _ in range(gates))
        answers = [judged(rounds, (base, arm), LIMITS, raw=raw) for rounds in drawn]
        return answers.count(answer) / gates

    whole = share(blocks, GATES)
    replicates = [
        share([_some(block, len(block), rng, replace=True) for block in blocks], GATES_OF_REPLICATE)
        for _ in range(REPLICATES)
    ]
    low, high = np.percentile(replicates, (2.5, 97.5)).tolist()
    return Rate(whole, low, high)


def _drawn(blocks: Sequence[Block], rng: Generator) -> Block:
    """The rounds of a gate, of one block."""
    sizes = np.array([len(block) for block in blocks], dtype=float)
    return _some(blocks[rng.choice(len(blocks), p=sizes / sizes.sum())], LAUNCHES, rng)


def _some(block: Block, count: int, rng: Generator, *, replace: bool = False) -> Block:
    """So many of its rounds, in their order."""
    return [block[at] for at in np.sort(rng.choice(len(block), count, replace=replace))]


def curve(rows: Sequence[Row]) -> Iterator[str]:
    """The lines of the operating curve. The first arm is the base, the second the base again."""
    blocks = blocks_of(rows)
    base, *arms = sorted({row.arm or "" for row in rows})
    rounds = ", ".join(str(len(block)) for block in blocks)
    yield f"gates of {LAUNCHES} launches, drawn of blocks of {rounds} rounds; base: {base}"
    for arm in arms:
        for raw in (False, True):
            answers = ("worse", "not worse")
            rates = " ".join(f"{each} {rate(blocks, base, arm, each, raw=raw)}" for each in answers)
            yield f"{arm} {'raw          ' if raw else 'with covariate'} {rates}"


if __name__ == "__main__":
    every = [row for name in sys.argv[1:] for row in read_rows(Path(name) / csv.NAME)]
    print(*curve(every), sep="\n")
