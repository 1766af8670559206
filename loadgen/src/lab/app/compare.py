"""The verb `compare`, and what is found of two sides: the ratio of each figure, load by load, or of
what both sustain; and which code costs more, if both were recorded."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from lab.app.call import Call
from lab.app.sides import Side, notes_of, pairs, read_sides
from lab.app.tools import say, screen
from lab.errors import RawDataError
from lab.judge.capacity import Estimate, product, ratio
from lab.judge.compare import ALIKE, COMPARE, Comparison, Figure, Limits, Overall, compare_all
from lab.judge.grouping import Cell, Measure, lane_of
from lab.judge.ruler import control_at
from lab.kinds.endurance import OF_JVM, resident
from lab.kinds.kind import Outcome
from lab.kinds.registry import kind_of
from lab.kinds.search import RATE, findings
from lab.load.engines import ENGINES, Engine
from lab.model import Row, Sustained
from lab.report import comparison, remarks
from lab.report.capacity import LEAST_LAUNCHES, CapacityRatio, ratio_lines
from lab.report.console import write
from lab.report.recorded import difference
from lab.report.result import Recorded
from lab.report.text import cell_names
from lab.store.series import load_or_none

SIDES = ("A", "B")
# What the driver ends with. Whatever goes wrong ends with 1 or 2, so an answer is another number;
# ./lab makes 1 and 3 of these (host/lab.sh).
WORSE, UNTOLD = 11, 13
STATUS: Mapping[Overall, int] = {"not worse": 0, "worse": WORSE, "cannot tell": UNTOLD}


@dataclass(frozen=True, slots=True)
class Compared:
    """Comparisons of loads, or ratios of capacities if both sides searched. `lacking` are the
    lanes, loads and objectives of A that B was not measured at; `recorded` is a line for each load
    that was recorded on both sides."""

    comparisons: tuple[Comparison, ...]
    capacities: tuple[CapacityRatio, ...]
    lacking: tuple[str, ...]
    recorded: tuple[str, ...]

    @property
    def answer(self) -> Overall:
        """Worse if B is worse anywhere; not worse if that is known of all that A has."""
        places = [capacity.place for capacity in self.capacities]
        places += [answer.place for pair in self.comparisons for answer in pair.answers]
        if "worse" in places:
            return "worse"
        is_sure = places and "cannot tell" not in places and not self.lacking
        return "not worse" if is_sure else "cannot tell"


def compare(call: Call, engines: Sequence[Engine] = ENGINES) -> int:
    """Print B against A. Returns a number of STATUS. Raises LabError."""
    (a, b), console = read_sides(call, engines, *SIDES), screen(call.variables)
    for note in notes_of(call.verb, a, b):
        say(console, remarks.say("runs", note.code, **note.values))
    result = compare_sides(a, b)
    if not result.capacities:
        write(console, comparison.tables(result.comparisons))
    ratios = (line for capacity in result.capacities for line in ratio_lines(capacity))
    for line in (*ratios, *result.recorded):
        say(console, line)
    return STATUS[result.answer]


def compare_sides(a: Side, b: Side, limits: Mapping[Figure, Limits] = COMPARE) -> Compared:
    lacking, comparisons, capacities = a.only(b), tuple[Comparison, ...](), list[CapacityRatio]()
    if is_search(a) and is_search(b):
        same_run = a.folder == b.folder
        for (name_a, rows_a), (name_b, rows_b) in pairs(a, b):
            of_b = _sustained(b, name_b, rows_b)
            for objective, sustained in _sustained(a, name_a, rows_a).items():
                if objective in of_b:
                    capacities.append(capacity_ratio(sustained, of_b[objective], same_run=same_run))
                else:
                    lacking.append(objective)
    else:
        comparisons = compare_all(pairs(a, b), limits, _memory(a, b))
        for pair in comparisons:
            names = cell_names([*pair.only_a, *pair.only_b])
            lacking += [names[cell] for cell in pair.only_a]
    recorded = tuple(_recorded(a, b))
    return Compared(comparisons, tuple(capacities), tuple(dict.fromkeys(lacking)), recorded)


def is_search(side: Side) -> bool:
    """True if the run chose its loads itself."""
    return kind_of(side.record.experiment).findings is findings


@dataclass(frozen=True, slots=True)
class _Searched:
    """What a lane sustains by one objective, and the rows that it was found in."""

    name: str
    finding: Sustained
    rows: Sequence[Row]

    @property
    def capacity(self) -> Estimate | None:
        value, low, high = self.finding.value, self.finding.low, self.finding.high
        if value is None or low is None or high is None:
            return None
        return Estimate(value, low, high)

    @property
    def control(self) -> Estimate | None:
        """What a request costs the control parts at its capacity, in µs."""
        if self.capacity is None or self.finding.unit != RATE:
            return None
        return control_at(self.rows, self.capacity.value)


def _sustained(side: Side, name: str, rows: Sequence[Row]) -> dict[str, _Searched]:
    outcome = Outcome(side.record.experiment, rows, side.folder)
    return {
        f"{finding.objective} {finding.unit}": _Searched(name, finding, rows)
        for finding in findings(outcome)
        if isinstance(finding, Sustained)
    }


def capacity_ratio(a: _Searched, b: _Searched, *, same_run: bool) -> CapacityRatio:
    """B over A. The machine may have had another speed in the other run. So two runs are judged in
    units of the control parts (`lab.judge.ruler`): the load, times what a request costs them at
    that load. The trials of one run take turns, and need no unit."""
    measured = in_units = None
    if a.capacity and b.capacity:
        measured = ratio(a.capacity, b.capacity)
    control_a, control_b = (None, None) if same_run else (a.control, b.control)
    if measured and control_a and control_b:
        in_units = product(measured, ratio(control_a, control_b))
    judged, place = in_units or measured, None
    enough = min(a.finding.launches, b.finding.launches) >= LEAST_LAUNCHES
    if judged and enough:
        place = ALIKE.place(judged.low, judged.high, "goodput")
    costs = tuple(control.value for control in (control_a, control_b) if control)
    return CapacityRatio(
        a.name, b.name, a.finding, b.finding, measured, place or "cannot tell", in_units, costs
    )


def _memory(a: Side, b: Side) -> Measure:
    """The resident memory of a trial's server, in bytes: the median of its window. If the JVM of
    any run is unread, or there is none, it is that of the container, of both runs: it is another
    figure, and never stands in for a JVM that did not answer for a time."""
    folders = {side.record.run: side.folder for side in (a, b)}
    snapshots = (*a.record.servers.values(), *b.record.servers.values())
    unread = any(snapshot.foreign and not snapshot.scraped for snapshot in snapshots)

    @cache
    def median_bytes(run: str, trial: str, server: str) -> float | None:
        try:
            seen = load_or_none(folders[run] / "raw" / trial)
        except RawDataError:
            return None
        figure = resident("container_memory_rss", service=server) if unread else OF_JVM
        values = [value for _, value in figure.points(seen)] if seen else []
        return statistics.median(values) if values else None

    return lambda row: median_bytes(row.run, row.trial, row.server)


def _recorded(a: Side, b: Side) -> Iterator[str]:
    for (_, rows_a), (_, rows_b) in pairs(a, b):
        before, after = _by_load(a, rows_a), _by_load(b, rows_b)
        for load, trial in after.items():
            if load in before:
                text = difference(before[load], trial)
                yield remarks.say("runs", "recorded", load=trial.load, difference=text)


def _by_load(side: Side, rows: Sequence[Row]) -> dict[Cell, Recorded]:
    """The recorded trials of the lanes of these rows, by load; of several the last."""
    lanes, recorded = {lane_of(row) for row in rows}, side.result.recorded
    return {Cell.of(trial.row): trial for trial in recorded if lane_of(trial.row) in lanes}
