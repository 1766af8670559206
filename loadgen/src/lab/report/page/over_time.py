"""A trial's window over time: the panels of the Lab dashboard, with the answers kept for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lab.report.page import scale
from lab.report.page.chart import Chart, Drawn, Trace, draw
from lab.report.page.marks import Key
from lab.report.page.palette import HUES, NEUTRAL
from lab.types import PanelAnswers, PanelLine, Panels

WIDTH, PLOT_HEIGHT = 360.0, 130.0
# Of more lines than these only the highest have a hue and a name.
MOST_NAMED = 6
# More lines than these that never leave 0 (errors of every kind) are one entry of the legend.
MOST_IDLE = 2
# A line is not drawn across so many missing samples.
GAP_STEPS = 3.5


def over_time(
    trial: str, server: str, of: Panels, hues: Mapping[str, int]
) -> Iterator[tuple[str, Drawn]]:
    """(section, figure) of every panel that has anything to show."""
    for number, panel in enumerate(of.panels, start=1):
        lines = [line for line in panel.lines if line.points]
        if lines:
            yield panel.section, _figure(f"{trial}-p{number}", server, panel, of, lines, hues)


def _figure(
    name: str,
    server: str,
    panel: PanelAnswers,
    of: Panels,
    lines: list[PanelLine],
    hues: Mapping[str, int],
) -> Drawn:
    idle = [line for line in lines if not any(value for _, value in line.points)]
    idle = idle if len(idle) > MOST_IDLE else []
    highest = sorted((line for line in lines if line not in idle), key=_highest, reverse=True)
    named = [line for line in lines if line in highest[:MOST_NAMED]]
    others = [line for line in lines if line in highest[MOST_NAMED:]]
    gap = GAP_STEPS * max(of.step_s, 1.0)
    traces = [Trace(NEUTRAL, line.points, "thin faint", gap=gap) for line in (*others, *idle)]
    keys = []
    for line, hue in zip(named, _hues(named, hues), strict=True):
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
    chart = Chart(
        name=name,
        title=panel.title,
        alt=f"{panel.description} {' '.join(_told(line, words) for line in named)}",
        x=scale.seconds_axis(of.length_s),
        y=axis,
        traces=tuple(traces),
        keys=tuple(keys),
        width=WIDTH,
        plot_height=PLOT_HEIGHT,
    )
    return draw(chart)


def _hues(lines: Sequence[PanelLine], hues: Mapping[str, int]) -> Iterator[int]:
    """A server's own line has its server's hue; every other line one that is not taken."""
    owners = [_owner(line, hues) for line in lines]
    # Of several lines of one server only the first has its hue.
    firsts = {owner: owners.index(owner) for owner in owners if owner is not None}
    taken = {hues[owner] for owner in firsts}
    free = [hue for hue in range(HUES) if hue not in taken] or list(range(HUES))
    used = 0
    for index, owner in enumerate(owners):
        if owner is not None and firsts[owner] == index:
            yield hues[owner]
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
