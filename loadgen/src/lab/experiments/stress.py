"""The search for a breaking point, in connections, under a load that grows with them.

How it searches and what it finds: `breaking`.
"""

from __future__ import annotations

from lab.experiments.breaking.findings import answers, findings
from lab.experiments.breaking.order import design
from lab.experiments.breaking.search import Stress
from lab.experiments.kind import COMMON, ToMeasure, TrialKind
from lab.experiments.objective import Objective
from lab.experiments.reading import Asked, Key, read_load, rules, target

_CONNECTIONS = rules.number(1, rules.MAX_CONNECTIONS)
KEYS = {
    "first": Key(_CONNECTIONS),
    "step": Key(_CONNECTIONS),
    "most": Key(_CONNECTIONS),
    "resolution": Key(_CONNECTIONS),
    "p95_ms": Key(rules.decimal(0.001, 1e6)),
    "error_share": Key(rules.decimal(0, 0.999)),
    "fall": Key(rules.decimal(0.001, 0.999)),
}


def read(asked: Asked) -> ToMeasure:
    """The search that a file describes, up to what this machine holds. Raises WordError."""
    load = read_load(
        asked, ("open",), ("routes", "modes", "engines"), with_connections=False, searched=True
    )
    given = asked.settings.table("stress", KEYS)
    objective = Objective(p95_ms=given.pop("p95_ms"), error_share=given.pop("error_share"))
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
    stress = Stress(objective, **{**given, "most": min(most, load.most)})
    return load.experiment("stress", stress, concurrencies=(first,)), notes


KIND = TrialKind(
    name="stress",
    title="the search for a breaking point",
    uses=(*COMMON, "load.modes", "load.arrivals", "load.duration"),
    exact="a search for what holds must not be decided by bursts of wrk2",
    keys=KEYS,
    words=target.WORDS,
    recorded_load="the largest load that each server's last JVM held",
    read=read,
    design=design,
    findings=findings,
    answers=answers,
)
