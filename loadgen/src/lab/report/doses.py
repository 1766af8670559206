"""A/A and doses, a part of docs/truth.md: is a difference found that is there, or one that is not?

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

from lab.judge.compare import MARGIN, compare
from lab.model import Row, goodput, p95_of
from lab.report import markdown
from lab.report.blocks import Block, Bullets, Paragraph, Section, Table
from lab.report.truth import made, share
from lab.store.manifest import Manifest

ROUNDS = 6
UNTOLD = "inconclusive"


@dataclass(frozen=True, slots=True)
class Arm:
    """The trials of an arm, by the round in which each was made (from 1). `load` is what arms that
    are compared have in common; `dose` is the share by which it is slower, 0 for none."""

    load: str
    dose: float
    rows: Mapping[int, Row]


def section(of: Manifest, arms: Sequence[Arm]) -> str:
    """The part of the page. The same run gives the same text."""
    return f"{markdown.section(Section('A/A and doses', tuple(_blocks(of, arms))))}\n"


def answers(a: Arm, b: Arm) -> list[str]:
    """What is said of B in each group of rounds that both arms reached the end of. Trials of one
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
        cells = compare(in_a, in_b, "a", "b").cells
        found.append(cells[0].answer if cells else UNTOLD)
    return found


def _blocks(of: Manifest, arms: Sequence[Arm]) -> Iterator[Block]:
    trials = [row for arm in arms for row in arm.rows.values()]
    yield Paragraph(
        f"{made(of)} {len(trials)} trials, {sum(row.valid for row in trials)} of them valid. An "
        f"answer is of {ROUNDS} rounds. A dose is latency that makes each answer so much slower."
    )
    rows, same, large = [], Counter[bool](), Counter[bool]()
    untold = every = 0
    for load in dict.fromkeys(arm.load for arm in arms):
        first, *others = (arm for arm in arms if arm.load == load)
        for arm in others:
            said = answers(first, arm)
            if not arm.dose:
                same.update(answer != "no difference" for answer in said if answer != UNTOLD)
            elif arm.dose >= 2 * MARGIN:
                # Whoever asks and gets no answer was not told of it either.
                large.update(answer == "slower" for answer in said)
            untold += said.count(UNTOLD)
            every += len(said)
            counts = ", ".join(f"{name} {n}×" for name, n in sorted(Counter(said).items()))
            rows.append((load, f"{arm.dose:.0%}", _ratio(first, arm), counts))
    yield Table(("load", "dose", "median ratio of goodput, of p95", "answers"), rows)
    yield Bullets(
        (
            f"A difference where there is none: {share(same[True], same.total())}.",
            f"A dose of 10 % called slower: {share(large[True], large.total())}.",
            f"Inconclusive: {share(untold, every)}, left out in the first line.",
        )
    )


def _ratio(a: Arm, b: Arm) -> str:
    """The median over rounds of B / A, of goodput and of the p95 that counts."""
    both = [(x, b.rows[at]) for at, x in a.rows.items() if at in b.rows]
    pairs = [(x, y) for x, y in both if x.valid and y.valid]

    def median(values: Sequence[tuple[float | None, float | None]]) -> str:
        ratios = [y / x for x, y in values if x and y and math.isfinite(y / x)]
        return f"{statistics.median(ratios):.3f}" if ratios else "–"

    goodputs = median([(goodput(x), goodput(y)) for x, y in pairs])
    p95s = median([(p95_of(x), p95_of(y)) for x, y in pairs])
    return f"{goodputs}, {p95s}"
