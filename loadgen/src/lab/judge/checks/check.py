"""What a check is: one object with a code, what it means for a trial, and the function that asks.

The function's first paragraph of documentation is the condition as a reader of docs/invalid.md
needs it. It is a format string over the names of its module, of `lab.judge.trial` and of
`lab.judge.predict`, so it has the thresholds that the code has.
"""

import inspect
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lab.judge import predict
from lab.judge import trial as figures
from lab.judge.metrics import without_none
from lab.judge.trial import Trial
from lab.model import Remark, Value

# An invalid trial's figures do not mean what their columns say. A warning is about figures that do,
# and that depend on more than the server and its load. A note only explains.
Severity = Literal["invalidates", "warns", "notes"]
# What must be there for a check to be asked: the record, a reading of a load that holds its
# connections, one of any other load, and answers in it.
Asks = Literal["record", "held", "load", "answers"]
Values = Mapping[str, Value]
Found = Iterator[Values]


@dataclass(frozen=True, slots=True)
class Check:
    """One question about a trial, and what it means where it finds something.

    * `repeatable`: the same load measured again may not show it
    * `server_failed`: it shows that the server itself failed; the figures mean nothing, that does
    * `lab_differed`: the lab was not the planned one, so a server's failure may follow from that
    * `symptom`: it follows from any failure of the server or of a machine, and adds nothing to one
    * `without_contract`: its severity where it is not known what the server calls
    """

    code: str
    severity: Severity
    find: Callable[[Trial], Iterable[Values]]
    when: str
    asks: Asks = "record"
    repeatable: bool = False
    server_failed: bool = False
    lab_differed: bool = False
    symptom: bool = False
    without_contract: Severity | None = None

    def remark(self, **values: Value) -> Remark:
        """What this check says of a trial with these values."""
        return Remark(self.code, values)

    def __call__(self, trial: Trial) -> tuple[Remark, ...]:
        return tuple(Remark(self.code, values) for values in self.find(trial))

    def invalidates(self, trial: Trial) -> bool:
        severity = None if trial.has_contract else self.without_contract
        return (severity or self.severity) == "invalidates"


def check(
    code: str, severity: Severity, asks: Asks = "record", **meaning: Any
) -> Callable[[Callable[[Trial], Iterable[Values]]], Check]:
    """Makes a check of the function that asks; `meaning` has the other fields of `Check`."""

    def made(find: Callable[[Trial], Iterable[Values]]) -> Check:
        paragraph = inspect.cleandoc(find.__doc__ or "").partition("\n\n")[0]
        names = ChainMap(find.__globals__, vars(figures), vars(predict))
        when = " ".join(paragraph.split()).format_map(names)
        return Check(code, severity, find, when, asks, **meaning)

    return made


def stored(code: str, severity: Severity, when: str = "", **meaning: Any) -> Check:
    """A check whose finding was made where it happened, and is kept in the record or reading."""

    def find(trial: Trial) -> Found:
        return (dict(remark.values) for remark in kept(trial) if remark.code == code)

    return Check(code, severity, find, when, **meaning)


def problems(trial: Trial) -> tuple[Remark, ...]:
    """Why there is no reading, no snapshot after the load, or no warm server."""
    record = trial.record
    return without_none(trial.measurement.problem, record.after_problem, record.warmth.problem)


def kept(trial: Trial) -> Iterator[Remark]:
    """What was known before any check: of the record, the warm-up and the reading."""
    record, reading = trial.record, trial.measurement.reading
    yield from (*problems(trial), *record.unequal, *record.notes)
    yield from reading.remarks if reading is not None else ()
