"""What was recorded on both sides of a comparison: which code costs more for each answer."""

from collections.abc import Iterator, Sequence

from lab.campaign.derive import recorded_of
from lab.campaign.sides import Paired, Run
from lab.judge.grouping import Cell, lane_of
from lab.judge.hot_difference import Side, side_of, why_not
from lab.load.engines import Engine
from lab.model import Row
from lab.report.recorded import changed
from lab.report.remarks import text_of
from lab.report.result import Recorded


def between(a: Run, b: Run, paired: Paired, engines: Sequence[Engine]) -> Iterator[str]:
    """A line for each load that was recorded on both sides, or why they are not compared."""
    found = [recorded_of(run.record, run.folder, engines) for run in (a, b)]
    for (_, rows_a), (_, rows_b) in paired.lanes:
        before, after = _of_lane(found[0], rows_a), _of_lane(found[1], rows_b)
        for cell, of_b in after.items():
            if cell in before:
                yield f"recorded of {of_b.load}: {_changes((a, b), before[cell], of_b)}"


def _of_lane(recorded: Sequence[Recorded], rows: Sequence[Row]) -> dict[Cell, Recorded]:
    """The recorded trials of the lane of these rows, by load; of several the last."""
    lanes = {lane_of(row) for row in rows}
    return {Cell.of(one.row): one for one in recorded if lane_of(one.row) in lanes}


def _changes(runs: tuple[Run, Run], a: Recorded, b: Recorded) -> str:
    sides = [_side(one) for one in (a, b)]
    for run, side in zip(runs, sides, strict=True):
        if isinstance(side, str):
            return f"{run.word} tells nothing: {side}"
    of_a, of_b = (side for side in sides if isinstance(side, Side))
    problem = why_not(of_a, of_b)
    return f"not compared: {problem}" if problem else changed(of_a, of_b)


def _side(of: Recorded) -> Side | str:
    if of.recording is None:
        return of.problem
    if not of.row.valid:
        return f"its recorded trial is invalid: {text_of(of.row)}"
    return side_of(of.row, of.recording)
