"""The capacities of two runs side by side: what B sustains over what A sustains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lab.campaign.sides import Paired, Run, missing_lanes
from lab.experiments.kind import Outcome, settings_of
from lab.experiments.registry import kind_of
from lab.experiments.search import Search, findings
from lab.judge.capacity import Estimate, ratio
from lab.judge.compare import ALIKE, Overall, Place
from lab.judge.grouping import lane_of
from lab.model import Sustained
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
        found += [
            _ratio(name_a, of_a[objective], name_b, of_b[objective])
            for objective in of_a
            if objective in of_b
        ]
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


def _ratio(name_a: str, a: Sustained, name_b: str, b: Sustained) -> CapacityRatio:
    known, found = [_estimate(side) for side in (a, b)], None
    place: Place = "cannot tell"
    if known[0] and known[1]:
        found = ratio(known[0], known[1])
        if min(a.launches, b.launches) >= LEAST_LAUNCHES:
            place = ALIKE.place(found.low, found.high, "goodput")
    return CapacityRatio(name_a, name_b, a, b, found, place)


def _estimate(found: Sustained) -> Estimate | None:
    if None in (found.value, found.low, found.high):
        return None
    return Estimate(found.value or 0.0, found.low or 0.0, found.high or 0.0)
