"""Charts with one row for each lane: for runs with a single load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.report.page.chart import Chart, Drawn
from lab.report.page.marks import CHAR_PX, cross, legend, px, shape, text_at


@dataclass(frozen=True, slots=True)
class Lane:
    """A row of a row chart: its name and what stands below that, values as shapes, their median
    with an interval, the bound drawn as a stroke, and `text` at its end."""

    name: str
    below: str
    hue: int
    shape: int
    values: tuple[float, ...]
    hollow: bool
    struck: tuple[float, ...]
    median: float | None
    interval: tuple[float, float] | None
    bound: float | None
    text: str


LANE_PX = 24.0
# With something below its name.
HIGH_LANE_PX = 32.0
# Of names; what is longer is cut, and whole in the words of the chart.
MOST_PX = 205.0


def draw_lanes(chart: Chart, lanes: Sequence[Lane]) -> Drawn:
    """A chart with one row per lane, along its x axis; its y axis and traces are not used."""
    longest = max(len(text) for lane in lanes for text in (lane.name, lane.below))
    left = 10.0 + min(CHAR_PX * longest, MOST_PX)
    right = chart.width - 12.0 - CHAR_PX * max(len(lane.text) for lane in lanes)
    keys, top = legend(chart.keys, 2.0, 40.0, chart.width)
    top += 6.0
    height = HIGH_LANE_PX if any(lane.below for lane in lanes) else LANE_PX
    bottom = top + height * len(lanes)
    parts = [text_at(2, 14, chart.title, "b"), text_at(2, 31, chart.load, "s"), keys]
    grid, last = "", -1e9
    for value, text in chart.x.ticks:
        x = left + (right - left) * chart.x.place(value)
        grid += f"M{px(x)} {px(top)}V{px(bottom)}"
        half = CHAR_PX * len(text) / 2
        if x - half >= last + 6:
            parts.append(text_at(x, bottom + 15, text, "s c"))
            last = x + half
    parts.append(f'<path class="grid" d="{grid}"/>')
    parts.append(f'<path class="axis" d="M{px(left)} {px(bottom)}H{px(right)}"/>')
    for index, lane in enumerate(lanes):
        y = top + height * (index + 0.5)
        name_y = y - 2 if lane.below else y + 4
        parts.append(text_at(left - 6, name_y, _cut(lane.name), "e"))
        parts.append(text_at(left - 6, name_y + 13, _cut(lane.below), "s e"))
        parts.append(text_at(chart.width - 2, y + 4, lane.text, "e"))

        def at(value: float) -> float:
            return left + (right - left) * chart.x.place(value)

        if lane.bound is not None:
            parts.append(f'<path class="l dash k7" d="M{px(at(lane.bound))} {px(y - 11)}v22"/>')
        if lane.interval is not None:
            low, high = at(lane.interval[0]), at(lane.interval[1])
            caps = f"M{px(low)} {px(y - 4)}v8M{px(high)} {px(y - 4)}v8"
            parts.append(
                f'<path class="l thin k{lane.hue}" d="M{px(low)} {px(y)}H{px(high)}{caps}"/>'
            )
        values = lane.values if lane.median is None else (lane.median,)
        kind = "h" if lane.hollow else "f"
        d = "".join(shape(lane.shape, at(value), y, 4.2) for value in values)
        if d:
            parts.append(f'<path class="{kind} k{lane.hue}" d="{d}"/>')
        parts += [cross(lane.hue, at(value), y) for value in lane.struck]
    parts.append(text_at(right, bottom + 29, chart.x.label, "s e"))
    return Drawn(chart, "".join(parts), chart.width, bottom + 34.0)


def _cut(text: str) -> str:
    most = int(MOST_PX / CHAR_PX)
    return text if len(text) <= most else f"{text[: most - 1]}…"
