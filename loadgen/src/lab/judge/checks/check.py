"""What a check is: one object with a code, what it means for a trial, and the function that asks.

The function's first line of documentation is the condition as a reader of docs/invalid.md needs it.
It is a format string over the names of its module, of `lab.judge.quantities` and of
`lab.judge.steps`, so it has the thresholds that the code has.
"""

import inspect
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from lab.judge import quantities, steps
from lab.model import Observation, Reading, Remark, Snapshot, TrialRecord, Value

# An invalid trial's figures do not mean what their columns say. A warning is about figures that do,
# and that depend on more than the server and its load. A note only explains.
Severity = Literal["invalidates", "warns", "notes"]
# What must be there for a check to be asked: the record, a reading, a reading of a load that holds
# its connections, one of any other load, and answers in it.
Asks = Literal["record", "reading", "held", "load", "answers"]
Values = Mapping[str, Value]
Found = Iterator[Values]


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a trial is judged by. `observation` is its window as Prometheus saw it, None where
    that was not stored. `start` is what the trials of its server began with, None where each has
    conditions of its own. `problem` is why there is no reading."""

    record: TrialRecord
    measured: Reading | None
    observation: Observation | None = None
    start: Snapshot | None = None
    problem: Remark | None = None

    @property
    def reading(self) -> Reading:
        """Of a check that is asked of trials with one only."""
        if self.measured is None:
            raise ValueError(f"{self.record.plan.trial} has no reading")
        return self.measured

    @property
    def kept(self) -> Iterator[Remark]:
        """What was known before any check: of the record, the warm-up and the reading."""
        record = self.record
        single = (self.problem, record.after_problem, record.warmth.problem)
        yield from (remark for remark in single if remark is not None)
        yield from (*record.unequal, *record.notes)
        yield from self.measured.remarks if self.measured is not None else ()


@dataclass(frozen=True, slots=True)
class Check:
    """One question about a trial, and what it means where it finds something.

    * `repeatable`: the same load measured again may not show it
    * `server_failed`: it says that the server itself failed; the figures mean nothing, that does
    * `lab_differed`: the lab was not the planned one, so a server's failure may follow from that
    * `symptom`: it follows from any failure of the server or of a machine, and says nothing beside
      one
    * `foreign`: its severity for a service that is not the lab's, where that is another
    """

    code: str
    severity: Severity
    find: Callable[[Evidence], Iterable[Values]]
    when: str
    asks: Asks = "record"
    repeatable: bool = False
    server_failed: bool = False
    lab_differed: bool = False
    symptom: bool = False
    foreign: Severity | None = None

    def remark(self, **values: Value) -> Remark:
        """What this check says of a trial with these values."""
        return Remark(self.code, values)

    def __call__(self, evidence: Evidence) -> tuple[Remark, ...]:
        return tuple(Remark(self.code, values) for values in self.find(evidence))

    def invalidates(self, record: TrialRecord) -> bool:
        severity = self.foreign or self.severity if record.before.foreign else self.severity
        return severity == "invalidates"


def check(
    code: str, severity: Severity, asks: Asks = "record", **meaning: bool | Severity
) -> Callable[[Callable[[Evidence], Iterable[Values]]], Check]:
    """Makes a check of the function that asks."""

    def made(find: Callable[[Evidence], Iterable[Values]]) -> Check:
        when = inspect.cleandoc(find.__doc__ or "").partition("\n\n")[0]
        when = " ".join(when.split()).format_map(
            ChainMap(find.__globals__, vars(quantities), vars(steps))
        )
        return Check(code, severity, find, when, asks, **meaning)  # type: ignore[arg-type]

    return made


def stored(code: str, severity: Severity, when: str = "", **meaning: bool | Severity) -> Check:
    """A check whose finding was made where it happened, and is kept in the record or reading."""

    def find(evidence: Evidence) -> Iterator[Values]:
        return (dict(remark.values) for remark in evidence.kept if remark.code == code)

    return Check(code, severity, find, when, **meaning)  # type: ignore[arg-type]
