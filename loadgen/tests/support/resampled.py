"""How often a gate would be right of measured launches: gates of a few that are drawn from many.

The many are launches of one server as arm a and as arm b, in turns (experiment `aa`), so nothing
differs between the sides. A gate gets so many rounds of them, each at most once, half of them of
those in which arm a came first, and the one arm or the other as its base, at random. A candidate of
which the CPU time per request is multiplied by 1.1 is one that needs 10 % more.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lab.judge import gate
from lab.judge.gate import Figure, Limit
from lab.model import Row

GATES = 1_000
LIMITS: dict[Figure, Limit] = {
    "goodput": Limit("goodput", 0.95), "p99": Limit("p99", 1.1), "cpu": Limit("cpu", 1.05),
}  # fmt: skip


def shares(rows: Sequence[Row], launches: int, cpu: float) -> dict[str, float]:
    """The share of each answer among GATES gates of so many launches of each side, where the
    candidate's CPU time per request is `cpu` times what was measured."""
    arms = sorted({row.arm or "" for row in rows})
    rounds = sorted({row.launch for row in rows})
    turns = [at for at in rounds if at % 2], [at for at in rounds if not at % 2]
    rng = np.random.default_rng([launches, round(1000 * cpu)])
    answers: Counter[str] = Counter()
    for _ in range(GATES):
        halves = (launches + 1) // 2, launches // 2
        drawn = {
            at
            for turn, count in zip(turns, halves, strict=True)
            for at in rng.choice(turn, count, replace=False).tolist()
        }
        a, b = rng.permutation(arms).tolist()
        base = [row for row in rows if row.launch in drawn and row.arm == a]
        other = [_with_cpu(row, cpu) for row in rows if row.launch in drawn and row.arm == b]
        # No row tells the memory, and without a limit it is not judged.
        asked = gate.of_loads([(("base", base), ("candidate", other))], LIMITS, "cpu_server_us")
        answers[gate.judge("base", "candidate", asked).answer] += 1
    return {answer: count / GATES for answer, count in answers.items()}


def _with_cpu(row: Row, times: float) -> Row:
    cpu = row.cpu_server_us
    return replace(row, cpu_server_us=None if cpu is None else cpu * times)
