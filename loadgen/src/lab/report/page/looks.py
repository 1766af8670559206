"""How a lane looks in every figure of a page: its server's hue and shape, its arm's line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.cells import lane_of
from lab.report.page.marks import SHAPES, Key
from lab.report.page.palette import HUES, colours
from lab.types import Row

# How far on among the shapes a server of the second round is: none of its neighbours is there.
NEXT_ROUND = 3


@dataclass(frozen=True, slots=True)
class Look:
    """`style` are classes of its line; arms of one server differ in shape and line only, and so
    do servers that share a hue."""

    hue: int
    shape: int
    style: str


@dataclass(frozen=True, slots=True)
class Looks:
    """The look of every lane of a run, in the order they first appear, and its servers' hues."""

    lanes: Mapping[str, Look]
    servers: Mapping[str, int]

    @classmethod
    def of(cls, servers: Sequence[str], rows: Sequence[Row]) -> Looks:
        """Of a run of these servers."""
        numbers = colours(tuple(dict.fromkeys((*servers, *(row.server for row in rows)))))
        arms: dict[str, list[str | None]] = {}
        lanes = {}
        for row in rows:
            known = arms.setdefault(row.server, [])
            if row.arm not in known:
                known.append(row.arm)
            nth = known.index(row.arm)
            again, hue = divmod(numbers[row.server], HUES)
            # A hue that is used again has another shape, and a broken line.
            shape = (hue + nth + NEXT_ROUND * again) % SHAPES
            style = "dash" if nth % 2 else "long" if again else ""
            lanes[lane_of(row)] = Look(hue, shape, style)
        return cls(lanes, {server: number % HUES for server, number in numbers.items()})

    def keys(self, lanes: Sequence[str]) -> tuple[Key, ...]:
        """The legend of these lanes."""
        return tuple(
            Key(lane, self.lanes[lane].hue, self.lanes[lane].style, self.lanes[lane].shape)
            for lane in lanes
        )
