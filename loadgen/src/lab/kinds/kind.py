"""The definition of a kind: the settings it reads, the next trial it wants, its findings.

Each kind is in a file beside this one (`registry` finds it). How to add one:
docs/adding-an-experiment.md.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from lab.errors import LabError, RawDataError
from lab.judge.intervals import Interval
from lab.kinds.order import Design, Planner
from lab.kinds.reading import Asked
from lab.kinds.reading.load import LoadTable, RepeatTable
from lab.kinds.reading.settings import file_keys
from lab.kinds.reading.target import refuse_jvm
from lab.load.measure import PLAN
from lab.model import UNITS, Condition, Experiment, Finding, Row, TrialPlan, Verdict
from lab.store.records import from_json, read_json

# Keys of [load] and [repeat], of which each kind names those that mean something to it.
SHARED = (*file_keys(LoadTable, "load"), *file_keys(RepeatTable, "repeat"))
# Keys of the kinds that put a load on every server.
COMMON = (
    *("load.servers", "load.routes", "load.warmup", "load.engines"),
    *("repeat.launches", "repeat.patience"),
)
# What is to be measured, and notes on loads left out because this machine cannot hold them.
ToMeasure = tuple[Experiment, tuple[str, ...]]
# Words of make that several kinds take: the setting that each gives.
WORDS: Mapping[str, str] = {
    "CONC": "load.concurrency",
    "SERVER": "load.servers",
    "ROUTE": "load.routes",
    "MODE": "load.modes",
    "RATE": "load.rate",
    "CAPACITY": "load.capacity",
    "ARRIVALS": "load.arrivals",
    "DURATION": "load.duration",
    "WARMUP": "load.warmup",
    "ENGINE": "load.engines",
    "LAUNCHES": "repeat.launches",
    "PATIENCE": "repeat.patience",
    "NAME": "name",
    "SCALE": "scale",
}
# These words take several values, with commas.
SEVERAL = ("CONC", "SERVER", "ENGINE", "CASE")
# What is recorded of a server's JVM (lab.app.recording), in the table of a kind that records.
RECORD = "record"


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb that measures the kind from words alone, without a file. `connections` is an example
    for CONC where the verb needs that word; `defaults` are settings other than those of a file."""

    name: str
    connections: int | None = None
    defaults: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state of an experiment: the rows of its trials so far, the folder of the run, and the
    verdicts by trial, as far as they are known. `cpus` are those of the host, None if unknown."""

    experiment: Experiment
    rows: Sequence[Row]
    run_dir: Path
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    cpus: int | None = None

    def of(self, server: str) -> list[Row]:
        """The rows of a server."""
        return [row for row in self.rows if row.server == server]

    def raw(self, row: Row) -> Path:
        return self.run_dir / "raw" / row.trial

    @property
    def conditions(self) -> dict[str, Condition]:
        """The conditions of the trials, as far as their plans can be read."""
        conditions: dict[str, Condition] = {}
        for row in self.rows:
            with suppress(RawDataError):
                conditions[row.trial] = read_json(self.raw(row) / PLAN, TrialPlan).condition
        return conditions


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of experiment.

    * `title`: what its trials are, for the reports
    * `uses`: the keys of [load] and [repeat] that mean something to it
    * `table`: the keys of its own table, which has its name, as [stress]
    * `tables`: its own array of tables in a file, as [[case]]; None: none
    * `words`: its own words of make; the setting that each gives
    * `target`: its load may go to a service of the user's own
    * `records`: it takes the word RECORD
    * `verb`: measures it without a file
    * `read`: what is to be measured; raises WordError
    * `design`: the order of the trials; raises WordError
    * `findings`: what was found; raises LabError
    * `changes_lab`: the lab is changed from trial to trial on purpose, so neither servers nor
      runs can be compared, and a load is called as the arm of its trials
    * `most_to_warm`: with how many connections at most a JVM is warmed up that starts under a
      condition of its trial; None: as many as any JVM
    """

    name: str
    title: str
    uses: tuple[str, ...]
    table: type[Struct] = Struct
    tables: str | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    target: bool = True
    records: bool = False
    verb: Verb | None = None
    read: Callable[[Asked], ToMeasure]
    design: Callable[[Planner], Design]
    findings: Callable[[Outcome], Iterable[Finding]]
    changes_lab: bool = False
    most_to_warm: int | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key that a file of this kind may have."""
        record = (f"{self.name}.{RECORD}",) if self.records else ()
        head = ("question", "hypothesis", "kind")
        return (*head, *self.uses, *file_keys(self.table, self.name), *record)

    @property
    def all_words(self) -> dict[str, str]:
        """The words of make that go with a file of this kind, but EXP."""
        shared = {**WORDS, "RECORD": f"{self.name}.{RECORD}"}
        words = {word: key for word, key in shared.items() if key in (*self.keys, "name", "scale")}
        return {**words, **({"TARGET": "target"} if self.target else {}), **self.words}

    def to_measure(self, asked: Asked) -> ToMeasure:
        """What is to be measured, with what is to be recorded. Raises WordError, also for a
        recording of a service whose JVM the lab cannot replace."""
        experiment, notes = self.read(asked)
        settings, key = asked.settings, f"{self.name}.{RECORD}"
        given = settings.get(key)
        if given is None:
            return experiment, notes
        settings.one_of(key, [*UNITS])
        unit, foreign = str(given.value), experiment.target is not None
        if foreign:
            refuse_jvm(settings, key, experiment.servers[0], asked.here.own)
        note = (
            f"RECORD={unit}: a load of each server once more with a recording, beside the trials; "
            f"then it gets a fresh {'container' if foreign else 'JVM'}"
        )
        own = {**experiment.own, RECORD: unit}
        return copy.replace(experiment, own=own), (*notes, note)


def recorded(experiment: Experiment) -> str | None:
    """What is recorded in a run of this experiment; None: nothing. Raises LabError."""
    unit = experiment.own.get(RECORD)
    if unit is None or (isinstance(unit, str) and unit in UNITS):
        return unit
    raise LabError(f"{experiment.name}: {RECORD} is one of {', '.join(UNITS)}, not {unit}")


def ends(interval: Interval | None) -> tuple[float | None, float | None]:
    """The ends of an interval, as a finding has them."""
    return (interval.low, interval.high) if interval else (None, None)


def settings_of[T](record: type[T], experiment: Experiment) -> T:
    """The settings of the experiment's kind, as that kind's record. RECORD is none of them: every
    kind has it alike. Raises LabError."""
    own = {key: value for key, value in experiment.own.items() if key != RECORD}
    try:
        return from_json(record, own)
    except ValueError as failure:
        raise LabError(f"{experiment.name}: kind {experiment.kind}: {failure}") from None
