"""Planted servers that answer otherwise in some trials."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from lab.model import TrialPlan

type Server = Callable[..., dict[str, Any]]
type When = Callable[[TrialPlan, int], bool]


def invalid(reason: str = "generator-late", **cells: Any) -> dict[str, Any]:
    """The cells of an invalid row; `reason` as in a cell of a table."""
    return {"valid": False, "invalid_reasons": reason, **cells}


def altered(server: Server, when: When = lambda plan, nth: True, /, **cells: Any) -> Server:
    """The same server with these cells in its rows. `when` picks trials by their plan and by their
    number among the trials of the same arm and load."""
    trials: Counter[object] = Counter()

    def answer(plan: TrialPlan, *number: int) -> dict[str, Any]:
        load = (plan.arm, plan.concurrency, plan.offered_rps)
        trials[load] += 1
        return server(plan, *number) | (cells if when(plan, trials[load]) else {})

    return answer
