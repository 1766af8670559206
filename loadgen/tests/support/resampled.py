"""How often a gate would be right of measured launches: gates of a few that are drawn from many.

The many are launches of two arms, in turns: of one server against itself (experiment `aa`), or of
two images (`make gate`). A gate gets so many rounds of them, each at most once, half of them of
those in which the first arm came first. Where nothing differs between the sides, the one arm or the
other is its base, at random. A candidate of which the CPU time per request is multiplied by 1.1 is
one that needs 10 % more.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import replace
from datetime import timedelta
from itertools import batched

import numpy as np

from lab.app.gate import ARMS
from lab.judge.compare import Figure, Limits, compare_all, overall
from lab.model import Row
from support.system import START

GATES = 1_000
LIMITS: Mapping[Figure, Limits] = {
    "goodput": Limits(low=0.95), "p99": Limits(high=1.1), "cpu": Limits(high=1.05),
}  # fmt: skip
# The rows of each arm in a round.
Round = Mapping[str, Sequence[Row]]


def rounds_of(rows: Sequence[Row]) -> dict[int, Round]:
    """The rounds by the number of their launch, in the order of time."""
    found: dict[int, dict[str, list[Row]]] = {}
    for row in sorted(rows, key=lambda row: row.launch):
        found.setdefault(row.launch, {}).setdefault(row.arm or "", []).append(row)
    return dict(found)


def judged(
    rounds: Sequence[Round],
    arms: Sequence[str],
    limits: Mapping[Figure, Limits],
    cpu: float = 1.0,
    *,
    raw: bool = False,
) -> str:
    """The answer of a gate of these rounds, as if they had been measured one after the other, as
    A B, B A, …: so rounds that were drawn are the neighbours of its A/A floor. The candidate's CPU
    time is `cpu` times what was measured; `raw`: without the control parts as a covariate."""
    sides: tuple[list[Row], list[Row]] = ([], [])
    for number, drawn in enumerate(rounds, start=1):
        for side, arm in enumerate(arms):
            place = side if number % 2 else 1 - side
            changes = {
                "launch": number,
                "started_at": START + timedelta(minutes=2 * number + place),
            }
            if raw:
                changes["cpu_generator_us"] = None
            for row in drawn[arm]:
                us = row.cpu_server_us
                us = us * cpu if side and us is not None else us
                sides[side].append(replace(row, run="gate", cpu_server_us=us, **changes))
    return _answer(*sides, limits)


def shares(
    rows: Sequence[Row], launches: int, cpu: float, *, raw: bool = False
) -> dict[str, float]:
    """The share of each answer among GATES gates of so many launches of each side, where the
    candidate's CPU time per request is `cpu` times what was measured; `raw` as of `judged`."""
    rounds = rounds_of(rows)
    arms = _arms(rows)
    turns = [at for at in rounds if at % 2], [at for at in rounds if not at % 2]
    halves = (launches + 1) // 2, launches // 2
    rng = np.random.default_rng([launches, round(1000 * cpu)])
    answers: Counter[str] = Counter()
    for _ in range(GATES):
        chosen = [rng.choice(*half, replace=False) for half in zip(turns, halves, strict=True)]
        sides = arms if arms == [*ARMS] else rng.permutation(arms).tolist()
        drawn = [rounds[at] for at in sorted(np.concatenate(chosen).tolist())]
        answers[judged(drawn, sides, LIMITS, cpu, raw=raw)] += 1
    return {answer: count / GATES for answer, count in answers.items()}


def in_turn(rows: Sequence[Row], launches: int) -> list[str]:
    """The answer of each gate of so many launches of each side, one after the other as they were
    measured: each launch is of one gate at most."""
    gates = batched(rounds_of(rows).values(), launches, strict=False)
    return [
        _answer(*([row for drawn in gate for row in drawn[arm]] for arm in _arms(rows)), LIMITS)
        for gate in gates
        if len(gate) == launches
    ]


def _arms(rows: Sequence[Row]) -> list[str]:
    return sorted({row.arm or "" for row in rows})


def _answer(base: Sequence[Row], candidate: Sequence[Row], limits: Mapping[Figure, Limits]) -> str:
    # No row tells the memory, and without a limit it is not judged.
    return overall(compare_all([(("base", base), ("candidate", candidate))], limits))
