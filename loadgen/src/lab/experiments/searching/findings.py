"""What searches for a capacity found. Pure but for what a run says of the servers and trials that
were lifted."""

from __future__ import annotations

from lab.experiments.kind import Outcome, settings_of
from lab.experiments.searching.answers import in_order, launches_of
from lab.experiments.searching.proof import proof
from lab.experiments.searching.state import Capacity, searches
from lab.experiments.searching.summary import NAME, SEARCH, UNIT, begun, each_search, summarise
from lab.judge.ruler import in_units
from lab.model import Finding


def findings(outcome: Outcome) -> tuple[Finding, ...]:
    """The capacity of each server first, then how each of its launches was searched,
    and what came of it with what gave way lifted. Raises LabError without a
    manifest where that is not lifted."""
    experiment, rows = outcome.experiment, outcome.rows
    capacity, verdicts = settings_of(Capacity, experiment), outcome.verdicts
    answers: list[Finding] = []
    each: list[Finding] = []
    beside: list[Finding] = []
    for server in experiment.servers:
        own = [row for row in rows if row.server == server]
        found = begun(searches(experiment, own))
        if not found:
            continue
        complete = outcome.complete
        text, value = summarise(
            found, f" at {capacity.objective.text}", verdicts, complete=complete
        )
        answers.append(Finding(NAME, server, 0, value[0], UNIT, *value[1:], text))
        each += each_search(capacity, SEARCH, server, found, complete=complete)
        held = [row for one in found.values() if one.low for row in one.low.held]
        broke = [row for one in found.values() if one.broken for row, _ in one.broken.broke]
        beside += in_units(server, rows, held, broke, outcome.cpus)
        if capacity.prove:
            beside += proof(outcome, server, own, found)
    ranked = in_order(answers, launches_of(each))
    return (*ranked, *each, *beside)
