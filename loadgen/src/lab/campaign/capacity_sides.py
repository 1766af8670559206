"""The capacities of two runs side by side: what B sustains over what A sustains.

The machine may have had another speed in the other run. So two runs are judged in units of the
control parts (`lab.judge.ruler`): the load, times what a request costs them at that load.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lab.campaign.sides import Paired, Run, missing_lanes
from lab.experiments.kind import Outcome, settings_of
from lab.experiments.registry import kind_of
from lab.experiments.search import RATE, Search, findings
from lab.judge.capacity import Estimate, product, ratio
from lab.judge.compare import ALIKE, Overall
from lab.judge.grouping import lane_of
from lab.judge.ruler import control_at
from lab.model import Row, Sustained
from lab.report.capacity import LEAST_LAUNCHES, CapacityRatio


def ratios(a: Run, b: Run, paired: Paired) -> tuple[CapacityRatio, ...]:
    """The ratios of both sides for each objective that both searched and each pair of lanes; none
    where a side is no search."""
    found: list[CapacityRatio] = []
    if any(kind_of(run.record.experiment).findings is not findings for run in (a, b)):
        return ()
    for (name_a, rows_a), (name_b, rows_b) in paired.lanes:
        lanes = [{lane_of(row) for row in rows} for rows in (rows_a, rows_b)]
        of_a, of_b = map(dict, (_sustained(a, lanes[0]), _sustained(b, lanes[1])))
        for objective in of_a:
            if objective in of_b:
                sides = (
                    _Side(name_a, of_a[objective], rows_a),
                    _Side(name_b, of_b[objective], rows_b),
                )
                found.append(_ratio(*sides, same_run=a.name == b.name))
    return tuple(found)


def overall(a: Run, b: Run, found: Sequence[CapacityRatio]) -> Overall:
    """Worse where a capacity is; not worse where all that A has can be told."""
    places = [each.place for each in found]
    if "worse" in places:
        return "worse"
    searches = (settings_of(Search, run.record.experiment) for run in (a, b))
    alone = len(set.symmetric_difference(*(set(each.objectives) for each in searches)))
    if alone or missing_lanes(a, b) or "cannot tell" in places:
        return "cannot tell"
    return "not worse"


def _sustained(run: Run, lanes: set[str]) -> Iterator[tuple[tuple[str, str], Sustained]]:
    experiment = run.record.experiment
    rows = [row for row in run.rows if lane_of(row) in lanes]
    for finding in findings(Outcome(experiment, rows, run.folder)):
        if isinstance(finding, Sustained):
            yield (finding.objective, finding.unit), finding


class _Side(NamedTuple):
    name: str
    finding: Sustained
    rows: Sequence[Row]

    @property
    def capacity(self) -> Estimate | None:
        ends = self.finding.value, self.finding.low, self.finding.high
        return None if None in ends else Estimate(*(end or 0.0 for end in ends))

    @property
    def control(self) -> Estimate | None:
        """What a request costs the control parts at its capacity, in µs."""
        if self.capacity is None or self.finding.unit != RATE:
            return None
        return control_at(self.rows, self.capacity.value)


def _ratio(a: _Side, b: _Side, *, same_run: bool) -> CapacityRatio:
    measured = units = None
    if a.capacity and b.capacity:
        measured = ratio(a.capacity, b.capacity)
    # The trials of one run take turns.
    control = (None, None) if same_run else (a.control, b.control)
    if measured and control[0] and control[1]:
        units = product(measured, ratio(control[0], control[1]))
    judged, place = units or measured, None
    enough = min(a.finding.launches, b.finding.launches) >= LEAST_LAUNCHES
    if judged and enough:
        place = ALIKE.place(judged.low, judged.high, "goodput")
    costs = tuple(each.value for each in control if each)
    return CapacityRatio(
        a.name, b.name, a.finding, b.finding, measured, place or "cannot tell", units, costs
    )
