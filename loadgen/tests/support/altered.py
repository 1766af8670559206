"""Planted servers that answer otherwise in some trials, and the texts that are said of them."""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable
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


def in_launches(launches: Container[int], there: Server, elsewhere: Server) -> Server:
    """One server in these launches, another one in the others."""
    return lambda plan: (there if plan.launch in launches else elsewhere)(plan)


def check_texts(texts: Iterable[str], pattern: str) -> None:
    """The texts are the lines of the pattern: … is any part of a line, ⋮ any lines."""
    expression = re.escape(pattern).replace("⋮", "(?s:.*)").replace("…", ".*")
    found = "\n".join(texts)
    assert re.fullmatch(expression, found), found
