"""Charts as SVG: small, without script, their colours left to the style around them.

A chart is drawn for a width it can be read at on a phone, and grows with its page. The classes
are those of `palette.figure_css`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from lab.report.page.marks import CHAR_PX, LEGEND_PX, Key, cross, legend, px, shape, text_at
from lab.report.page.scale import Axis


@dataclass(frozen=True, slots=True)
class Trace:
    """(x, y) points of one hue: joined by a line, or shapes, or both.

    `style` are classes: thin, faint, dash, dot. `shape` None: no shapes; `hollow` are only
    outlined, `struck` is crosses: measured, and not valid. `shift_px` sets what belongs to one x
    beside another. Points further apart than `gap` are not joined.
    """

    hue: int
    points: tuple[tuple[float, float], ...]
    style: str = ""
    line: bool = True
    shape: int | None = None
    hollow: bool = False
    struck: bool = False
    shift_px: float = 0.0
    gap: float | None = None


@dataclass(frozen=True, slots=True)
class Whisker:
    """An interval at one x, or in a row chart at one row."""

    hue: int
    at: float
    low: float
    high: float
    shift_px: float = 0.0


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart; `name` is unique on its page, `alt` says in words what it shows, `load` stands
    under the title, `marks` are upright lines at an x, with a short text above."""

    name: str
    title: str
    alt: str
    x: Axis
    y: Axis
    traces: tuple[Trace, ...]
    keys: tuple[Key, ...] = ()
    whiskers: tuple[Whisker, ...] = ()
    marks: tuple[tuple[float, str], ...] = ()
    width: float = 440.0
    plot_height: float = 190.0
    load: str = ""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Markup within a box of this size."""

    chart: Chart
    markup: str
    width: float
    height: float

    def svg(self, *, style: str = "") -> str:
        """An element of its own, to stand in a page; with its own style and size as a file."""
        name = escape(self.chart.name, quote=True)
        title = ", ".join(text for text in (self.chart.title, self.chart.load) if text)
        size = f' width="{px(self.width)}" height="{px(self.height)}"' if style else ""
        inner = f"<style>{style}</style>" if style else ""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="fig" role="img"{size} '
            f'viewBox="0 0 {px(self.width)} {px(self.height)}" '
            f'aria-labelledby="{name}-t {name}-d">'
            f'<title id="{name}-t">{escape(title)}</title>'
            f'<desc id="{name}-d">{escape(self.chart.alt)}</desc>{inner}{self.markup}</svg>'
        )


def draw(chart: Chart) -> Drawn:
    """A chart of values against values."""
    left = 12.0 + max((CHAR_PX * len(text) for _, text in chart.y.ticks), default=20.0)
    right, top = chart.width - 14.0, 39.0 if chart.load else 22.0
    keys, below = legend(chart.keys, 2.0, top + 4, chart.width)
    unit = chart.y.label
    top = below + (26.0 if unit else 13.0)
    bottom = top + chart.plot_height
    parts = [text_at(2, 14, chart.title, "b"), text_at(2, 31, chart.load, "s"), keys]
    if unit:
        parts.append(text_at(2, top - 13, unit, "s"))
    parts += _frame(chart, left, right, top, bottom)

    def at(x: float, y: float, shift_px: float = 0.0) -> tuple[float, float]:
        return (
            left + (right - left) * chart.x.place(x) + shift_px,
            bottom - (bottom - top) * chart.y.place(y),
        )

    parts += _marks(chart, left, right, top, bottom)
    for whisker in chart.whiskers:
        x, y0 = at(whisker.at, whisker.low, whisker.shift_px)
        _, y1 = at(whisker.at, whisker.high, whisker.shift_px)
        caps = f"M{px(x - 4)} {px(y0)}h8M{px(x - 4)} {px(y1)}h8"
        path = f"M{px(x)} {px(y0)}V{px(y1)}{caps}"
        parts.append(f'<path class="l thin k{whisker.hue}" d="{path}"/>')
    for trace in chart.traces:
        places = [at(x, y, trace.shift_px) for x, y in trace.points]
        parts.append(_trace(trace, places))
    return Drawn(chart, "".join(parts), chart.width, bottom + 34.0)


def _frame(chart: Chart, left: float, right: float, top: float, bottom: float) -> Iterator[str]:
    """Grid, axes, names of ticks, and what x counts."""
    grid = ""
    for value, text in chart.y.ticks:
        y = bottom - (bottom - top) * chart.y.place(value)
        grid += f"M{px(left)} {px(y)}H{px(right)}"
        yield text_at(left - 5, y + 3.5, text, "s e")
    last, feet = -1e9, ""
    for value, text in chart.x.ticks:
        x = left + (right - left) * chart.x.place(value)
        feet += f"M{px(x)} {px(bottom)}v4"
        half = CHAR_PX * len(text) / 2
        if x - half < last + 6 or x + half > chart.width + 8:
            continue
        yield text_at(min(x, chart.width - half), bottom + 16, text, "s c")
        last = x + half
    yield f'<path class="grid" d="{grid}"/>'
    yield f'<path class="axis" d="M{px(left)} {px(bottom)}H{px(right)}{feet}"/>'
    yield text_at(right, bottom + 30, chart.x.label, "s e")


def _marks(chart: Chart, left: float, right: float, top: float, bottom: float) -> Iterator[str]:
    """Those within the x axis, in its order."""
    path, free = "", left
    for value, text in chart.marks:
        if chart.x.low <= value <= chart.x.high:
            x = left + (right - left) * chart.x.place(value)
            path += f"M{px(x)} {px(top)}V{px(bottom)}"
            # Texts of marks that are close stand beside each other.
            half = CHAR_PX * len(text) / 2
            middle = max(x, free + half)
            yield text_at(middle, top - 2, text, "s c")
            free = middle + half + 2
    if path:
        yield f'<path class="mark" d="{path}"/>'


def _trace(trace: Trace, places: Sequence[tuple[float, float]]) -> str:
    if trace.struck:
        return "".join(cross(trace.hue, x, y) for x, y in places)
    parts = []
    if trace.line and len(places) > 1:
        joined = [True]
        for (before, _), (after, _) in pairwise(trace.points):
            joined.append(trace.gap is None or after - before <= trace.gap)
        path = ""
        for first, (is_joined, (x, y)) in enumerate(zip(joined, places, strict=True)):
            path += f"{'L' if is_joined and first else 'M'}{px(x)} {px(y)}"
        style = f" {trace.style}" if trace.style else ""
        parts.append(f'<path class="l k{trace.hue}{style}" d="{path}"/>')
    alone = trace.line and len(places) == 1
    if trace.shape is not None or alone:
        kind = "h" if trace.hollow else "f"
        faint = " faint" if "faint" in trace.style else ""
        d = "".join(shape(trace.shape or 0, x, y, 3.0 if alone else 3.8) for x, y in places)
        parts.append(f'<path class="{kind} k{trace.hue}{faint}" d="{d}"/>')
    return "".join(parts)


def stacked(
    drawn: Sequence[Drawn], columns: int, title: str, style: str, below: Sequence[str] = ()
) -> str:
    """Several charts as one file, in rows of `columns`, under its title and the lines `below`
    that."""
    gap = 16.0
    width = drawn[0].width
    parts = [text_at(gap, 33.0 + LEGEND_PX * at, text, "s") for at, text in enumerate(below)]
    y, widest = 26.0 + LEGEND_PX * len(below), 0.0
    for start in range(0, len(drawn), columns):
        row = drawn[start : start + columns]
        for index, one in enumerate(row):
            x = gap + index * (width + gap)
            parts.append(f'<g transform="translate({px(x)} {px(y)})">{one.markup}</g>')
            widest = max(widest, x + width + gap)
        y += max(one.height for one in row) + gap
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="fig" role="img" width="{px(widest)}" '
        f'height="{px(y)}" viewBox="0 0 {px(widest)} {px(y)}"><title>{escape(title)}</title>'
        f"<style>{style}</style>{text_at(gap, 17, title, 'b')}{''.join(parts)}</svg>"
    )
