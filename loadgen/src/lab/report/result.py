"""The result of a run: all that the sections of its report are made of."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lab.judge.compare import Comparison
from lab.judge.grouping import Cell, Measure, lane_of, median_per_launch, without_shorter
from lab.judge.intervals import MedianOf
from lab.model import (
    Experiment,
    Finding,
    Judgement,
    Measurement,
    PerConnection,
    Recording,
    Remark,
    Row,
    Sustained,
    Verdict,
)
from lab.report.text import cell_names, load_of
from lab.store import recording
from lab.store.manifest import Manifest

# The lines of an answer: a name, the answer, and more about it; or a note in one cell.
type Answers = Sequence[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial, measured and judged, and what limited it."""

    measurement: Measurement
    judgement: Judgement
    verdict: Verdict
    row: Row


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded trial. `beside` is the trial that it repeats, on the same JVM; None if unknown.
    `recording` None: there is none, and `problem` says why."""

    row: Row
    beside: Row | None
    recording: Recording | None
    problem: str = ""

    @property
    def load(self) -> str:
        return f"{lane_of(self.row)}, {self.row.route} {load_of(self.row)}"

    @property
    def link(self) -> str:
        return f"{recording.FOLDER}/{self.row.trial}/{recording.GRAPH}"


@dataclass(frozen=True, slots=True)
class Load:
    """The trials of one lane at one load, and the verdicts of those that have one."""

    lane: str
    cell: Cell
    name: str
    rows: Sequence[Row]
    verdicts: Sequence[tuple[Row, Verdict]]

    @property
    def valid(self) -> list[Row]:
        return [row for row in self.rows if row.valid]

    def median(self, measure: Measure) -> MedianOf | None:
        """Over the launches, of the valid trials; None without any."""
        return median_per_launch(self.rows, measure)

    def expected(self, measure: Measure) -> float | None:
        """The median of a prediction, over the valid trials; over all if none is valid."""
        values = [measure(row) for row in self.valid or self.rows]
        known = [value for value in values if value is not None]
        return statistics.median(known) if known else None


def loads(rows: Sequence[Row], verdicts: Mapping[str, Verdict]) -> tuple[Load, ...]:
    """Load by load, and for each load lane by lane, in the order of their first trials. Warm-ups
    may differ. What was measured again in a longer window counts in that one only."""
    groups: dict[tuple[Cell, str], list[Row]] = {}
    for row in without_shorter(rows):
        groups.setdefault((Cell.of(row).any_warmup, lane_of(row)), []).append(row)
    cells = list(dict.fromkeys(cell for cell, _ in groups))
    names = cell_names(cells)
    return tuple(
        Load(
            lane,
            cell,
            f"{lane}, {names[cell]}",
            group,
            [(row, verdicts[row.trial]) for row in group if row.trial in verdicts],
        )
        for (cell, lane), group in sorted(groups.items(), key=lambda each: cells.index(each[0][0]))
    )


def is_answered(findings: Sequence[Finding]) -> bool:
    return any(isinstance(finding, Sustained | PerConnection) for finding in findings)


@dataclass(frozen=True)
class Result:
    """`title` is what the run's trials are. `changes_lab`: the lab was changed from trial to trial
    on purpose, so each lane is a load of its own. `verdicts` are by trial, `notes` are (trial,
    note). `unfinished` are raw folders of trials that never ended or cannot be read. `recorded` are
    trials beside the `rows`. `verb` is the verb of make that measures such a run without a file."""

    manifest: Manifest
    title: str
    changes_lab: bool
    rows: Sequence[Row]
    verdicts: Mapping[str, Verdict]
    findings: Sequence[Finding]
    comparisons: Sequence[Comparison]
    notes: Sequence[tuple[str, Remark]]
    unfinished: Sequence[str]
    recorded: Sequence[Recorded] = ()
    verb: str = "run"

    @property
    def experiment(self) -> Experiment:
        return self.manifest.experiment

    @property
    def invalid(self) -> list[Row]:
        return [row for row in self.rows if not row.valid]

    @cached_property
    def loaded(self) -> list[Row]:
        """The trials with a load that was not held: one that is has neither throughput nor
        latencies."""
        held = {trial for trial, verdict in self.verdicts.items() if verdict.basis == "held"}
        return [row for row in self.rows if row.trial not in held]

    @cached_property
    def loads(self) -> tuple[Load, ...]:
        return loads(self.loaded, self.verdicts)

    @property
    def answered(self) -> bool:
        """True if findings of one line each answer the question, and the loads need no table."""
        return is_answered(self.findings)

    @property
    def limits(self) -> Mapping[str, float] | None:
        """The least latency in ms that an objective allows, by name, if a rate was searched."""
        limits: dict[str, float] = {}
        for finding in self.findings:
            if isinstance(finding, Sustained) and self.experiment.modes[0] == "open":
                for name, limit in finding.limits.items():
                    limits[name] = min(limit, limits.get(name, limit))
        return limits or None
