"""A trial's window over time: the panels of the Lab dashboard, with the answers kept for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.model import PanelAnswers, PanelLine, Panels, TrialRecord
from lab.report.page import scale
from lab.report.page.chart import Chart, Drawn, Trace, draw
from lab.report.page.marks import Key
from lab.report.page.palette import HUES, NEUTRAL

WIDTH, PLOT_HEIGHT = 360.0, 130.0
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
        """For people."""
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
) -> Iterator[tuple[str, Drawn]]:
    """(section, figure) of every panel that has anything to show, with the moments marked."""
    for number, panel in enumerate(of.panels, start=1):
        lines = [line for line in panel.lines if line.points]
        if lines:
            name = f"{trial}-p{number}"
            yield panel.section, _figure(name, server, panel, of, lines, hues, marked)


def _figure(
    name: str,
    server: str,
    panel: PanelAnswers,
    of: Panels,
    lines: list[PanelLine],
    hues: Mapping[str, int],
    marked: Sequence[Moment],
) -> Drawn:
    # Among the containers.
    own = [line for line in lines if line.labels.get("service") == server]
    idle = [line for line in lines if not any(value for _, value in line.points)]
    idle = [line for line in idle if line not in own] if len(idle) > MOST_IDLE else []
    highest = sorted((line for line in lines if line not in idle), key=_highest, reverse=True)
    named = [line for line in lines if line in highest[:MOST_NAMED] or line in own]
    others = [line for line in highest if line not in named]
    gap = GAP_STEPS * max(of.step_s, 1.0)
    traces = [Trace(NEUTRAL, line.points, "thin faint", gap=gap) for line in (*others, *idle)]
    keys = []
    for line, hue in zip(named, _hues(named, hues, server), strict=True):
        style = "thin dash" if line.is_set else ""
        traces.append(Trace(hue, line.points, style, gap=gap))
        keys.append(Key(_short(line.label, server), hue, style))
    if others:
        keys.append(Key(f"{len(others)} more, lower", NEUTRAL, "thin faint"))
    if idle:
        more = " more" if named else ""
        keys.append(Key(f"{len(idle)}{more}, all 0", NEUTRAL, "thin faint"))
    label, words = scale.in_unit(panel.unit)
    top = max(map(_highest, lines))
    is_data = panel.unit in ("bytes", "decbytes")
    axis = scale.binary(top, label, 4) if is_data else scale.linear(top, label, words, 4)
    told = [*(_told(line, words) for line in named), *(f"{one.text}." for one in marked)]
    chart = Chart(
        name=name,
        title=panel.title,
        alt=f"{panel.description} {' '.join(told)}",
        x=scale.seconds_axis(of.length_s),
        y=axis,
        traces=tuple(traces),
        keys=tuple(keys),
        marks=tuple((one.at_s, str(one.number)) for one in marked),
        width=WIDTH,
        plot_height=PLOT_HEIGHT,
    )
    return draw(chart)


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


def _told(line: PanelLine, words: scale.Words) -> str:
    values = [value for _, value in line.points]
    return f"{line.label}: {words(min(values))} to {words(max(values))}."
