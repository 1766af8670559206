"""How often a gate would be right of measured launches: gates of a few that are drawn from many.

The many are launches of two arms, in turns: of one server against itself (experiment `aa`), or of
two images (`make gate`). A gate gets so many rounds of them, each at most once, half of them of
those in which the first arm came first. Where nothing differs between the sides, the one arm or the
other is its base, at random. A candidate of which the CPU time per request is multiplied by 1.1 is
one that needs 10 % more.
"""

from collections import Counter
from collections.abc import Sequence
from copy import replace
from datetime import timedelta

import numpy as np

from lab.app.gate import ARMS
from lab.judge.compare import Figure, Limits, compare_all, overall
from lab.model import Row
from support.system import START

GATES = 1_000
LIMITS: dict[Figure, Limits] = {
    "goodput": Limits(low=0.95), "p99": Limits(high=1.1), "cpu": Limits(high=1.05),
}  # fmt: skip


def shares(
    rows: Sequence[Row], launches: int, cpu: float, *, raw: bool = False
) -> dict[str, float]:
    """The share of each answer among GATES gates of so many launches of each side, where the
    candidate's CPU time per request is `cpu` times what was measured. `raw`: without the control
    parts as a covariate."""
    if raw:
        rows = [replace(row, cpu_generator_us=None) for row in rows]
    arms, rounds = _arms(rows), _rounds(rows)
    turns = [at for at in rounds if at % 2], [at for at in rounds if not at % 2]
    rng = np.random.default_rng([launches, round(1000 * cpu)])
    answers: Counter[str] = Counter()
    for _ in range(GATES):
        halves = (launches + 1) // 2, launches // 2
        chosen = (rng.choice(*one, replace=False) for one in zip(turns, halves, strict=True))
        drawn = {at for one in chosen for at in one.tolist()}
        a, b = arms if arms == [*ARMS] else rng.permutation(arms).tolist()
        number = {launch: at for at, launch in enumerate(sorted(drawn), start=1)}
        base, candidate = (
            [in_turns(row, number[row.launch], side) for row in rows
             if row.arm == arm and row.launch in number]
            for side, arm in enumerate((a, b))
        )  # fmt: skip
        answers[_answer(base, [_with_cpu(row, cpu) for row in candidate])] += 1
    return {answer: count / GATES for answer, count in answers.items()}


def in_turn(rows: Sequence[Row], launches: int) -> list[str]:
    """The answer of each gate of so many launches of each side, one after the other as they were
    measured: each launch is of one gate at most."""
    a, b = _arms(rows)
    rounds = _rounds(rows)
    whole = len(rounds) // launches * launches
    gates = [rounds[at : at + launches] for at in range(0, whole, launches)]
    return [
        _answer(*([row for row in rows if row.arm == arm and row.launch in gate] for arm in (a, b)))
        for gate in gates
    ]


def in_turns(row: Row, number: int, side: int) -> Row:
    """The row as one of this round of a gate, whose sides 0 and 1 are measured as A B, B A, …: so
    rounds that were drawn are the neighbours of its A/A floor."""
    place = side if number % 2 else 1 - side
    return replace(row, launch=number, started_at=START + timedelta(minutes=2 * number + place))


def _arms(rows: Sequence[Row]) -> list[str]:
    return sorted({row.arm or "" for row in rows})


def _rounds(rows: Sequence[Row]) -> list[int]:
    return sorted({row.launch for row in rows})


def _answer(base: Sequence[Row], candidate: Sequence[Row]) -> str:
    # No row tells the memory, and without a limit it is not judged.
    return overall(compare_all([(("base", base), ("candidate", candidate))], LIMITS))


def _with_cpu(row: Row, times: float) -> Row:
    cpu = row.cpu_server_us
    return replace(row, cpu_server_us=None if cpu is None else cpu * times)
