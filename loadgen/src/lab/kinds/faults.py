"""Toxics that come and go under a constant load, and how long a server takes to recover.

A fault begins with the step of the script that adds the first toxic (or takes the downstream down).
It ends with the step that removes the last one. Recovery is measured from the answers of each
second, so this needs the engine that tells every second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from lab.kinds import script
from lab.kinds.kind import COMMON, Kind, Outcome, ToMeasure, settings_of
from lab.kinds.order import Design, Planner
from lab.kinds.reading import Asked, read_load
from lab.kinds.reading.recording import Recorded
from lab.kinds.reading.settings import Duration
from lab.kinds.recovery import Event, Steady, findings_of
from lab.kinds.spike import Tolerance
from lab.model import Finding, Peak, Record, ScriptedToxic, ToxicStep


class FaultsTable(Recorded, frozen=True, kw_only=True):
    """The keys of [faults]."""

    tolerance: Tolerance
    steady: Duration


class Faults(Record):
    """The script of toxics, and what counts as recovered: see `recovery.Steady`."""

    steps: tuple[ToxicStep, ...]
    tolerance: float
    steady_s: int

    def __post_init__(self) -> None:
        if not self.steps or self.tolerance <= 0 or self.steady_s < 1:
            raise ValueError("there are steps, tolerance is above 0, and steady_s starts at 1")
        if any(after.at_s < before.at_s for before, after in pairwise(self.steps)):
            raise ValueError("steps are in the order of time")


def read(asked: Asked) -> ToMeasure:
    """The load and the script that a file describes. Raises WordError."""
    load = read_load(asked, ("open",), ("routes", "concurrency"), exact=True)
    table = asked.settings.table("faults", FaultsTable)
    steps = script.read(asked, load.draft.duration_s, table.steady)
    return load.experiment("faults", Faults(steps, table.tolerance, table.steady)), load.notes


def design(planner: Planner) -> Design:
    """One trial per server and launch. Raises WordError."""
    return planner.one_per_launch(script=settings_of(Faults, planner.experiment).steps)


def findings(outcome: Outcome) -> Iterator[Finding]:
    faults = settings_of(Faults, outcome.experiment)
    steady = Steady(faults.tolerance, faults.steady_s)
    return findings_of("fault", steady, lambda record: [*events(record.script)], outcome)


def events(steps: Sequence[ScriptedToxic]) -> Iterator[Event]:
    """Each fault's actual start and end, and its changes of the toxics."""
    began: float | None = None
    changes: list[str] = []
    for step in steps:
        began = step.started_s if began is None else began
        if step.clear:
            yield Peak(began, step.ended_s), tuple(changes) or (step.change,)
            began, changes = None, []
        else:
            changes.append(step.change)


KIND = Kind(
    name="faults",
    title="toxics that come and go under a constant load",
    uses=(
        *COMMON,
        *("load.concurrency", "load.rate", "load.capacity", "load.arrivals", "load.duration"),
    ),
    table=FaultsTable,
    tables=script.KEY,
    read=read,
    design=design,
    findings=findings,
)
