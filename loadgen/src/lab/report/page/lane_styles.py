"""The style of a lane in every figure of a page: its server's hue and shape, and its arm's line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.judge.grouping import lane_of
from lab.model import Row
from lab.report.page.palette import HUES, colours
from lab.report.page.spec import SHAPES, Series

# How far on among the shapes a server of the second round is: none of its neighbours is there.
NEXT_ROUND = 3


@dataclass(frozen=True, slots=True)
class LaneStyle:
    """`dash` is the class of its line; two arms of one server differ in shape and line only, and
    so do servers that share a hue."""

    hue: int
    shape: int
    dash: str


@dataclass(frozen=True, slots=True)
class LaneStyles:
    """The style of every lane of a run, in the order they first appear, and its servers' hues."""

    lanes: Mapping[str, LaneStyle]
    servers: Mapping[str, int]

    @classmethod
    def of(cls, servers: Sequence[str], rows: Sequence[Row]) -> LaneStyles:
        numbers = colours(tuple(dict.fromkeys((*servers, *(row.server for row in rows)))))
        arms: dict[str, list[str]] = {}
        for row in rows:
            known = arms.setdefault(row.server, [])
            if lane_of(row) not in known:
                known.append(lane_of(row))
        lanes = {
            lane: _of_server(numbers[server], nth)
            for server, known in arms.items()
            for nth, lane in enumerate(known)
        }
        return cls(lanes, {server: number % HUES for server, number in numbers.items()})

    def series(self, lanes: Sequence[str]) -> tuple[Series, ...]:
        styles = ((lane, self.lanes[lane]) for lane in lanes)
        return tuple(
            Series(lane, style.hue, style.dash, SHAPES[style.shape]) for lane, style in styles
        )


def _of_server(number: int, nth: int) -> LaneStyle:
    """Of the nth of the arms of a server. A hue that is used again, by an arm or by
    a server of the second round, has another shape and a broken line."""
    again, hue = divmod(number, HUES)
    style = "dash" if nth else "long" if again else ""
    return LaneStyle(hue, (hue + nth + NEXT_ROUND * again) % len(SHAPES), style)
