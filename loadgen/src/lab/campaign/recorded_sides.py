"""What was recorded on both sides of a comparison: which code costs more for each answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lab.campaign.derive import recorded_of
from lab.campaign.sides import Paired, Pool
from lab.judge.grouping import Cell, lane_of
from lab.judge.hot_difference import Side, side_of, why_not
from lab.load.engines import Engine
from lab.model import Row
from lab.report.recorded import Recorded, changed


def between(a: Pool, b: Pool, paired: Paired, engines: Sequence[Engine]) -> Iterator[str]:
    """A line for each load that was recorded on both sides, or says why it tells nothing."""
    found = _of(a, engines), _of(b, engines)
    for (_, rows_a), (_, rows_b) in paired.lanes:
        mine, other = (
            _of_lane(one, rows) for one, rows in zip(found, (rows_a, rows_b), strict=True)
        )
        for cell, of_b in other.items():
            if cell in mine:
                yield _line((a, b), mine[cell], of_b)


def _of(side: Pool, engines: Sequence[Engine]) -> list[Recorded]:
    return [one for run in side.runs for one in recorded_of(run.record, run.folder, engines)]


def _of_lane(of: Sequence[Recorded], rows: Sequence[Row]) -> dict[Cell, Recorded]:
    """The recorded trials of the lane of these rows, by load; of several the last."""
    lanes = {lane_of(row) for row in rows}
    return {Cell.of(one.row): one for one in of if lane_of(one.row) in lanes}


def _line(pools: tuple[Pool, Pool], a: Recorded, b: Recorded) -> str:
    said = f"recorded of {b.load}: "
    sides = [_side(one) for one in (a, b)]
    for pool, one in zip(pools, sides, strict=True):
        if isinstance(one, str):
            return f"{said}{pool.word} tells nothing: {one}"
    of_a, of_b = (one for one in sides if isinstance(one, Side))
    why = why_not(of_a, of_b)
    if why:
        return f"{said}not compared: {why}"
    return f"{said}{changed(of_a, of_b)}"


def _side(of: Recorded) -> Side | str:
    if of.recording is None:
        return of.problem
    if not of.row.valid:
        return f"its recorded trial is invalid: {of.row.invalid_reasons}"
    return side_of(of.row, of.recording)
