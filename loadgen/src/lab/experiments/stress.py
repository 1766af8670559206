"""Stress: the number of connections at which a server still meets its objective, under a load that
grows with them.

N connections are offered what they carry at the objective's latency. It is the search of
`capacity` along another axis (`search`).
"""

from __future__ import annotations

from collections.abc import Mapping

from lab.experiments.kind import COMMON, ToMeasure, TrialKind, settings_of
from lab.experiments.objective import RULE
from lab.experiments.reading import Asked, Key, read_load, rules, target
from lab.experiments.search import Search, design, findings
from lab.model import Experiment
from lab.report.capacity import answers

_CONNECTIONS = rules.number(1, rules.MAX_CONNECTIONS)
KEYS = {
    "objective": Key(RULE),
    "first": Key(_CONNECTIONS),
    "most": Key(_CONNECTIONS),
    "width": Key(rules.decimal(0.005, 0.5), 0.08),
}


def read(asked: Asked) -> ToMeasure:
    """The search that a file describes, up to what this machine holds. Raises WordError."""
    load = read_load(
        asked, ("open",), ("routes", "modes", "engines"), with_connections=False, searched=True
    )
    given = asked.settings.table("stress", KEYS)
    first, most, notes = given["first"], given["most"], load.notes
    bound = asked.settings.get("stress.most")
    if bound is not None and first > min(most, load.most):
        raise bound.refuse(
            f"{most} is less than stress.first={first}"
            if first > most
            else f"{most}: this machine does not even hold stress.first={first}, only {load.held}"
        )
    if most > load.most:
        notes = (*notes, f"up to {load.most} of {most} connections: this machine holds {load.held}")
    most = min(most, load.most)
    objective, width = given["objective"], given["width"]
    search = Search((objective,), "connections", first, most, width, connections=most)
    return load.experiment("stress", search, concurrencies=(first,)), notes


def _limits(experiment: Experiment) -> Mapping[str, float] | None:
    """Only an open load has a rate for each number of connections."""
    is_open = experiment.modes[0] == "open"
    return settings_of(Search, experiment).least_limits() if is_open else None


KIND = TrialKind(
    name="stress",
    title="the search for the capacity in connections",
    uses=(*COMMON, "load.modes", "load.arrivals", "load.duration"),
    exact="a search must not be decided by bursts of wrk2",
    keys=KEYS,
    words=target.WORDS,
    recorded_load="the last load at which each server met its objective",
    read=read,
    design=design,
    findings=findings,
    answers=answers,
    limits=_limits,
)
