"""The definition of a kind: the settings it reads, the next trial it wants, its findings.

Each kind is a file beside this one that defines KIND (`registry` finds it). How to add one:
docs/adding-an-experiment.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from lab.errors import LabError, RawDataError
from lab.experiments.order import Design, Planner
from lab.experiments.reading import Asked, Key, Word, recording
from lab.experiments.reading.rules import DURATION, RATE, TEXT, TEXTS, WHOLE, WHOLES, Shape
from lab.load.measure import PLAN
from lab.model import Condition, Experiment, Finding, Row, TrialPlan, Verdict
from lab.store.records import from_json, read_json

ALWAYS: Mapping[str, Shape] = {"question": TEXT, "hypothesis": TEXT, "kind": TEXT}
# Keys that several kinds read; each kind names its own.
SHARED: Mapping[str, Shape] = {
    "load.servers": TEXTS,
    "load.routes": TEXTS,
    "load.concurrency": WHOLES,
    "load.modes": TEXTS,
    "load.rate": RATE,
    "load.capacity": TEXT,
    "load.arrivals": TEXT,
    "load.duration": DURATION,
    "load.warmup": DURATION,
    "load.engines": TEXTS,
    "repeat.launches": WHOLE,
    "repeat.arms": TEXTS,
    "repeat.patience": DURATION,
}
# What is said of a run that is complete, and that the rules of this version would continue.
OTHER_RULES = "not to be told by this version's rules"
# What is to be measured, and notes on loads left out because this machine cannot hold them.
ToMeasure = tuple[Experiment, tuple[str, ...]]
# Keys of the kinds that put a load on every server.
COMMON = (
    *("load.servers", "load.routes", "load.warmup", "load.engines"),
    *("repeat.launches", "repeat.patience"),
)
# Words of make that several kinds take.
WORDS: Mapping[str, Word] = {
    "CONC": Word("load.concurrency", several=True),
    "SERVER": Word("load.servers", several=True),
    "ROUTE": Word("load.routes"),
    "MODE": Word("load.modes"),
    "RATE": Word("load.rate"),
    "CAPACITY": Word("load.capacity"),
    "ARRIVALS": Word("load.arrivals"),
    "DURATION": Word("load.duration"),
    "WARMUP": Word("load.warmup"),
    "ENGINE": Word("load.engines", several=True),
    "LAUNCHES": Word("repeat.launches"),
    "PATIENCE": Word("repeat.patience"),
    "NAME": Word("name"),
}


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of its own that measures the kind from words alone, without a file. `connections` is
    an example for CONC where the verb needs that word; `defaults` are settings other than those of
    a file."""

    name: str
    connections: int | None = None
    defaults: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state of an experiment: the rows of its trials so far, the folder of the run, and the
    verdicts by trial, as far as they are known. `complete`: the version that measured it wanted no
    other trial. `cpus` are those of the host, None if unknown."""

    experiment: Experiment
    rows: Sequence[Row]
    run_dir: Path
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    complete: bool = False
    cpus: int | None = None

    @property
    def conditions(self) -> dict[str, Condition]:
        """The conditions of the trials, as far as their plans can be read."""
        found: dict[str, Condition] = {}
        for row in self.rows:
            with suppress(RawDataError):
                found[row.trial] = read_json(self.raw(row) / PLAN, TrialPlan).condition
        return found

    def raw(self, row: Row) -> Path:
        return self.run_dir / "raw" / row.trial


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialKind:
    """A kind of experiment: how its settings are read, which trials it has, what it finds.

    * `uses`: the keys of [load] and [repeat] that mean something to it
    * `keys`: those of its own table, which has its name, as [stress]; what they may be
    * `words`: its own words of make; the setting that each gives
    * `tables`: its own array of tables in a file, as [[case]]; None: none
    * `recorded_load`: under which load RECORD records the servers' JVMs, for people; empty: none
    * `read`: what is to be measured; raises WordError
    * `title`: what the trials are, for the reports
    * `asks`: what a run without a file asks, before "SERVER at 400 connections?"; None: "What do"
    * `jvms`: which JVMs are measured, where that is decided by the kind and not by LAUNCHES
    * `design`: the order of the trials; raises WordError
    * `findings`: what was found; raises LabError
    * `changes_lab`: the lab is changed from trial to trial on purpose, so neither servers nor
      runs can be compared
    * `load_name`: what a trial's load is called where trials of one load differ in conditions
    * `load_said`: what its load is, for people, where the settings of [load] do not say it
    * `answers`: the lines that come first on the console and in the reports, from the findings: the
      cells of each, or a note in one cell
    * `answers_most`: these lines say the most that each server answered, and what limited it
    * `limits`: the latencies in ms that its objective allows, by name, where its trials are of one
      open load at many rates: they are drawn against the rate
    * `exact`: why its trials need the engine that is exact to the second, where they do
    * `most_to_warm`: with how many connections at most a JVM is warmed up that starts under a
      condition of its trial; None: as many as any JVM
    """

    name: str
    uses: tuple[str, ...]
    keys: Mapping[str, Key] = field(default_factory=dict)
    words: Mapping[str, Word] = field(default_factory=dict)
    tables: str | None = None
    recorded_load: str = ""
    verb: Verb | None = None
    read: Callable[[Asked], ToMeasure]
    title: str
    asks: str | None = None
    jvms: str | None = None
    design: Callable[[Planner], Design]
    findings: Callable[[Outcome], tuple[Finding, ...]]
    changes_lab: bool = False
    load_name: Callable[[Row], str] | None = None
    load_said: str | None = None
    answers: Callable[[Experiment, Sequence[Finding]], tuple[tuple[str, ...], ...]] | None = None
    answers_most: bool = False
    limits: Callable[[Experiment], Mapping[str, float] | None] | None = None
    exact: str | None = None
    most_to_warm: int | None = None

    @property
    def shapes(self) -> dict[str, Shape]:
        """The TOML type of every key that a file of this kind may have."""
        own = {f"{self.name}.{key}": of.rule.shape for key, of in self.keys.items()}
        if self.recorded_load:
            own[f"{self.name}.{recording.KEY}"] = TEXT
        return {**ALWAYS, **{key: SHARED[key] for key in self.uses}, **own}

    @property
    def all_words(self) -> dict[str, Word]:
        """The words of make that go with a file of this kind, but EXP."""
        shapes = self.shapes
        shared = {word: of for word, of in WORDS.items() if of.key in (*shapes, "name")}
        record = (
            {recording.WORD: Word(f"{self.name}.{recording.KEY}")} if self.recorded_load else {}
        )
        return {**shared, **record, **self.words, "SCALE": Word("scale")}

    def to_measure(self, asked: Asked) -> ToMeasure:
        """What is to be measured, with what is to be recorded. Raises WordError."""
        found, notes = self.read(asked)
        if not self.recorded_load:
            return found, notes
        experiment, said = recording.with_record(asked, found, self.recorded_load)
        return experiment, (*notes, *said)


def settings_of[T](record: type[T], experiment: Experiment) -> T:
    """The settings of the experiment's kind, as that kind's record. RECORD is none of them: every
    kind has it alike. Raises LabError."""
    own = {key: value for key, value in experiment.own.items() if key != recording.KEY}
    try:
        return from_json(record, own)
    except ValueError as failure:
        raise LabError(f"{experiment.name}: kind {experiment.kind}: {failure}") from None
