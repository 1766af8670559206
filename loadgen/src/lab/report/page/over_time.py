"""A trial's window over time: the panels of the Lab dashboard, with the answers kept for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.model import PanelAnswers, PanelLine, Panels, TrialRecord
from lab.report.page import spec, units
from lab.report.page.figure import Figure
from lab.report.page.palette import HUES, NEUTRAL
from lab.report.page.spec import FAINT, Series, Spec

WIDTH, HEIGHT = 320, 185
# From so many seconds on, time is told in minutes.
MINUTES_FROM_S = 360.0
# Of more lines than these only the highest have a hue and a name, and the trial's own server.
MOST_NAMED = 6
# More lines than these that never leave 0 (errors of every kind) are one entry of the legend.
MOST_IDLE = 2
# A line is not drawn across so many missing samples.
GAP_STEPS = 3.5


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that was done during a trial, `at_s` seconds after its window opened; figures
    mark it with its `number`."""

    number: int
    at_s: float
    what: str

    @property
    def text(self) -> str:
        return f"{self.number} at {self.at_s:.1f} s: {self.what}"


def moments(record: TrialRecord) -> tuple[Moment, ...]:
    """The edges of a trial's spikes and the steps of its script of toxics, as they really were."""
    extra = record.plan.spike.extra if record.plan.spike else 0
    found = [(one.started_s, f"spike of {extra:,} connections begins") for one in record.peaks]
    found += [(one.ended_s, "spike ends") for one in record.peaks]
    found += [
        (one.started_s, f"{one.change}{f' ({one.problem})' if one.problem else ''}")
        for one in record.script
    ]
    return tuple(
        Moment(number, at_s - record.window_offset_s, what)
        for number, (at_s, what) in enumerate(sorted(found, key=lambda one: one[0]), start=1)
    )


def over_time(
    trial: str, server: str, of: Panels, hues: Mapping[str, int], marked: Sequence[Moment] = ()
) -> Iterator[tuple[str, Figure]]:
    """(section, figure) of every panel that has anything to show, with the moments marked."""
    for number, panel in enumerate(of.panels, start=1):
        drawn = figure(f"{trial}-p{number}", server, panel, of, hues, marked)
        if drawn is not None:
            yield panel.section, drawn


def figure(
    name: str,
    server: str,
    panel: PanelAnswers,
    of: Panels,
    hues: Mapping[str, int],
    marked: Sequence[Moment],
    width: int = WIDTH,
) -> Figure | None:
    """One panel `of` a dashboard, with the moments marked; None where it has nothing to show.
    `server` is the one that all of it is about ("" where it is about several)."""
    lines = [line for line in panel.lines if line.points]
    if not lines:
        return None
    # Among the containers.
    own = [line for line in lines if line.labels.get("service") == server]
    idle = [line for line in lines if not any(value for _, value in line.points)]
    idle = [line for line in idle if line not in own] if len(idle) > MOST_IDLE else []
    ranked = sorted((line for line in lines if line not in idle), key=_highest, reverse=True)
    named = [line for line in lines if line in ranked[:MOST_NAMED] or line in own]
    others = [line for line in ranked if line not in named]
    entries = [
        Series(_short(line.label, server), hue, "dash" if line.is_set else "")
        for line, hue in zip(named, _hues(named, hues, server), strict=True)
    ]
    more = [
        (others, f"{len(others)} more, lower"),
        (idle, f"{len(idle)}{' more' if named else ''}, all 0"),
    ]
    unit = units.of_panel(panel.unit, max(map(_highest, lines)))
    minutes = of.length_s >= MINUTES_FROM_S
    second = 60.0 if minutes else 1.0

    def records(name: str, line: PanelLine) -> list[Spec]:
        """A line in the units of the axes, one record for each piece without a gap."""
        return [
            {
                "series": name,
                "id": f"{line.label} {piece[0][0]}",
                "x": [_short_of(at / second) for at, _ in piece],
                "y": [_short_of(value * unit.factor) for _, value in piece],
            }
            for piece in _pieces(line, GAP_STEPS * max(of.step_s, 1.0))
        ]

    faint = [one for group, name in more for line in group for one in records(name, line)]
    bold = [
        one for line, entry in zip(named, entries, strict=True) for one in records(entry.name, line)
    ]
    series = [*entries, *(Series(name, NEUTRAL) for group, name in more if group)]
    encodings = spec.of_series(series, width, unit.label)
    highest = max(map(_highest, lines)) * unit.factor
    scale, ticks = units.wide(highest) if panel.is_wide else (units.linear(highest), {})
    encoding: Spec = {
        "y": {"field": "y", "type": "quantitative",
              "axis": {**units.axis(unit), "tickCount": 4, **ticks}, "scale": scale},
        **spec.picked(encodings, "color", "strokeDash", "opacity"),
        "detail": {"field": "id"},
    }  # fmt: skip
    parts: tuple[tuple[str, list[Spec], Spec], ...] = (("more", faint, FAINT), ("lines", bold, {}))
    layers: list[Spec] = [
        {
            "name": name,
            "data": {"values": values},
            "transform": [{"flatten": ["x", "y"]}],
            "mark": {"type": "line", "clip": True, **mark},
            "encoding": encoding,
        }
        for name, values, mark in parts
        if values
    ]
    layers[-1]["params"] = [spec.zoom("x", "y"), spec.toggle()]
    length = of.length_s / second
    layers += _marks([one for one in marked if 0 <= one.at_s <= of.length_s], second)
    layers.append(_hover(bold or faint, unit, "min" if minutes else "s"))
    told = [*(_told(line, unit) for line in named), *(f"{one.text}." for one in marked)]
    view: Spec = {
        "title": panel.title,
        "width": width,
        "height": HEIGHT + spec.LEGEND_PX * spec.legend_rows([one.name for one in series], width),
        "encoding": {
            "x": {"field": "x", "type": "quantitative",
                  "scale": {"domain": [0, length], "nice": False},
                  "axis": {"title": "min" if minutes else "s", "tickCount": 6}},
        },
        "layer": layers,
    }  # fmt: skip
    return Figure(name, panel.title, f"{panel.description} {' '.join(told)}", view)


def _pieces(line: PanelLine, gap_s: float) -> Iterator[list[tuple[float, float]]]:
    """The points of a line, cut where samples are missing."""
    piece: list[tuple[float, float]] = []
    for point in line.points:
        if piece and point[0] - piece[-1][0] > gap_s:
            yield piece
            piece = []
        piece.append(point)
    yield piece


def _short_of(value: float) -> float:
    """Four digits are more than a figure shows, and pack well."""
    short = float(f"{value:.4g}")
    return int(short) if short.is_integer() else short


def _marks(marked: Sequence[Moment], second: float) -> list[Spec]:
    """An upright line at each moment, with its number above."""
    if not marked:
        return []
    values = [
        {"x": one.at_s / second, "number": str(one.number), "tip": one.text} for one in marked
    ]
    rule = {"type": "rule", "strokeDash": [2, 3], "color": "var(--soft)", "clip": True}
    text = {"type": "text", "baseline": "bottom", "color": "var(--soft)", "fontSize": 11}
    return [
        {"name": "marks", "data": {"values": values}, "mark": rule,
         "encoding": {"tooltip": {"field": "tip"}}},
        {"name": "numbers", "data": {"values": values}, "mark": {**text, "y": 0},
         "encoding": {"text": {"field": "number"}}},
    ]  # fmt: skip


def _hover(records: list[Spec], unit: units.Unit, second: str) -> Spec:
    """A line at the sample next to the pointer, and the values of all series there."""
    line = f"datum.series+': '+{unit.written('datum.y')}"
    layer = spec.nearest(line, f"format(datum.x,'.4~r')+' {second}'")
    return {**layer, "data": {"values": records}}


def _hues(lines: Sequence[PanelLine], hues: Mapping[str, int], server: str) -> Iterator[int]:
    """A server's first line has its server's hue, the trial's own before one that shares it;
    every other line one that is not taken."""
    owners = [_owner(line, hues) for line in lines]
    holders: dict[int, int] = {}
    for owner in (server, *owners):
        if owner in owners and owner is not None:
            holders.setdefault(hues[owner], owners.index(owner))
    own = {index: hue for hue, index in holders.items()}
    free = [hue for hue in range(HUES) if hue not in holders] or list(range(HUES))
    used = 0
    for index in range(len(lines)):
        if index in own:
            yield own[index]
        else:
            yield free[used % len(free)]
            used += 1


def _owner(line: PanelLine, hues: Mapping[str, int]) -> str | None:
    mine = (line.labels.get("server"), line.labels.get("service"))
    return next((one for one in mine if one is not None and one in hues), None)


def _short(label: str, server: str) -> str:
    """Without the trial's own server in front: the whole trial is of it."""
    return label.removeprefix(f"{server} ") or label


def _highest(line: PanelLine) -> float:
    return max(value for _, value in line.points)


def _told(line: PanelLine, unit: units.Unit) -> str:
    values = [value for _, value in line.points]
    return f"{line.label}: {unit.words(min(values))} to {unit.words(max(values))}."
