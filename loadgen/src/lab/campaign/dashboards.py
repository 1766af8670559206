"""``python -m lab.campaign.dashboards TO=<folder>``: a picture of every dashboard, from real data.

    TO=<folder>        where dashboard-<name>.svg are written: docs/images
    SECONDS=<n>        how much time they show; 120 where it is not given
    UNTIL=<time>       when it ends, as 2026-11-23T20:00:00Z; now where it is not given
    <variable>=<value> a chooser of a dashboard, as it is put into a query: server=netty

Grafana's own pages cannot be seen where there is no image of it. Each panel's query is asked here
as Grafana asks it, and drawn as a report draws it. Prints what each picture shows, and the panels
that had no data.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from lab.errors import LabError, WordError
from lab.experiments.reading import read_words, refuse_unknown
from lab.model import PanelAnswers, PanelLine, Panels
from lab.report.page.board import Tile, board
from lab.report.page.over_time import Moment
from lab.report.page.palette import HUES, colours
from lab.store.panels import legend_of
from lab.store.records import time_text, write_text
from lab.system.dashboards.asking import ask, expand, resolve
from lab.system.dashboards.model import Dashboard, Query, Window, load
from lab.system.http import Http
from lab.system.prometheus import Line, Prometheus
from lab.system.stack import Urls

WORDS = ("TO", "SECONDS", "UNTIL")
USUAL_S = 120.0
# As often as the slowest job is scraped, and no more samples than a picture shows.
LEAST_STEP_S, MOST_SAMPLES = 2.0, 60
# Prometheus answers with at most 11,000 samples of a line, and marks are asked for every second.
MOST_S = 7200
# Compare draws the lines of a side in its own colour.
SIDES: Mapping[str, int] = {"A": 0, "B": 1}


@dataclass(frozen=True, slots=True)
class Asked:
    """What to draw, and where to."""

    to: Path
    window: Window
    variables: Mapping[str, str]


def parse(words: Mapping[str, str], boards: Sequence[Dashboard], now_s: float) -> Asked:
    """What the words ask for. Raises WordError."""
    choosers = dict.fromkeys(name for one in boards for name in _choosers(one))
    variables = {word: text for word, text in words.items() if word in choosers}
    own = {word: text for word, text in words.items() if word not in variables}
    refuse_unknown(own, (*WORDS, *choosers), "dashboards")
    if not own.get("TO") or not Path(own["TO"]).is_dir():
        raise WordError(f"TO={own.get('TO', '')} is not allowed; allowed: a folder that is there")
    seconds = own.get("SECONDS", f"{USUAL_S:g}")
    if not seconds.isdecimal() or not LEAST_STEP_S <= int(seconds) <= MOST_S:
        raise WordError(f"SECONDS={seconds} is not allowed; allowed: {LEAST_STEP_S:g}..{MOST_S}")
    until_s = _until(own["UNTIL"]) if "UNTIL" in own else now_s
    step_s = max(LEAST_STEP_S, math.ceil(int(seconds) / MOST_SAMPLES))
    return Asked(Path(own["TO"]), Window(until_s - int(seconds), until_s, step_s), variables)


def pictures(asked: Asked, boards: Sequence[Dashboard], prometheus: Prometheus) -> Iterator[str]:
    """Write the picture of each dashboard, and say what it shows. Raises LabUnreachable,
    DashboardError, CannotWrite."""
    for one in boards:
        name = f"dashboard-{one.uid.removeprefix('lab-')}"
        over = Window(*one.range_s, 1) if one.range_s else asked.window
        values = resolve(prometheus, one, over, asked.variables)
        answers = ask(prometheus, (one,), over, values)
        lines = [
            [_line(one, query, values, series, over.start_s) for series in answer.series]
            for (_, query), answer in zip(one.queries(), answers, strict=True)
        ]
        tiles = tuple(_tiles(one, lines))
        marked = tuple(_moments(prometheus, one, values, over))
        of = Panels(one.title, _shown_s(one, over, lines), over.step_s, ())
        drawn = board(name, of, tiles, _below(one, values, over), _hues(lines), marked)
        write_text(asked.to / f"{name}.svg", drawn)
        empty = [tile.panel.title for tile in tiles if not any(_points(tile.panel))]
        yield f"{name}.svg: {len(tiles)} panels, {len(drawn.encode()) / 1000:.0f} kB" + (
            f"; no data: {', '.join(empty)}" if empty else ""
        )


def _shown_s(of: Dashboard, over: Window, lines: Sequence[Sequence[PanelLine]]) -> float:
    """How much time is drawn: of trials that end before their dashboard's, no more than theirs."""
    length_s = over.end_s - over.start_s
    last_s = max((line.points[-1][0] for one in lines for line in one if line.points), default=0.0)
    return min(length_s, math.ceil(last_s) or length_s) if of.range_s else length_s


def _tiles(of: Dashboard, lines: Sequence[Sequence[PanelLine]]) -> Iterator[Tile]:
    """The panels with the lines of their queries, which are in the dashboard's order."""
    by_query = iter(lines)
    for panel in of.panels:
        its = tuple(line for _ in panel.queries for line in next(by_query))
        answers = PanelAnswers(
            panel.title, panel.section, panel.description, panel.unit, its, panel.is_wide
        )
        yield Tile(panel.place.column, panel.place.line, panel.place.width, answers)


def _line(
    of: Dashboard, query: Query, values: Mapping[str, str], series: Line, start_s: float
) -> PanelLine:
    label = legend_of(_with(query.legend, values), series.labels)
    # A side's lines are of one colour, as a server's are elsewhere.
    owner = {"server": label[:1]} if of.range_s else {}
    points = tuple((at - start_s, value) for at, value in series.points)
    return PanelLine(label, {**series.labels, **owner}, query.is_dashed, points)


def _hues(lines: Sequence[Sequence[PanelLine]]) -> Mapping[str, int]:
    """The hue of every server, those of the lab as in a report."""
    owners = sorted({line.labels.get("server", "") for one in lines for line in one} - {""})
    return {**{name: hue % HUES for name, hue in colours(owners).items()}, **SIDES}


def _moments(
    prometheus: Prometheus, of: Dashboard, values: Mapping[str, str], over: Window
) -> Iterator[Moment]:
    """The marks of a dashboard within the window: where each trial was first seen in its measured
    phase, and when the toxics changed."""
    found: list[tuple[float, str]] = []
    for mark in of.annotations:
        expr = expand(mark.expr, values, over)
        for series in prometheus.range(expr, over.start_s, over.end_s, 1.0):
            said = legend_of(mark.legend, series.labels)
            if mark.is_moment:
                moments = dict.fromkeys(value / 1000 for _, value in series.points)
            else:
                moments = dict.fromkeys(at for at, _ in series.points[:1])
            if series.labels.get("phase") != "warmup":
                found += [(at - over.start_s, said) for at in moments]
    # What is seen at the very beginning began before.
    inside = sorted(one for one in found if 0 < one[0] <= over.end_s - over.start_s)
    for number, (at_s, what) in enumerate(inside, start=1):
        yield Moment(number, at_s, what)


def _below(of: Dashboard, values: Mapping[str, str], over: Window) -> Sequence[str]:
    """What stands under the title: the time, and what was chosen."""
    chosen = ", ".join(
        f"{name}: {'all' if values[name] == '.+' else values[name]}" for name in _choosers(of)
    )
    if of.range_s:
        return (chosen,)
    start, end = (datetime.fromtimestamp(at, UTC) for at in (over.start_s, over.end_s))
    return (f"{time_text(start)[:19]}Z to {time_text(end)[:19]}Z; {chosen}",)


def _choosers(of: Dashboard) -> Iterator[str]:
    """The names of a dashboard's variables, without those that follow from others."""
    asked = dict.fromkeys((*of.variables, *(question.variable for question in of.questions)))
    return (name for name in asked if not name.startswith(("shift_", "route_", "server_")))


def _with(legend: str, values: Mapping[str, str]) -> str:
    for name in sorted(values, key=len, reverse=True):
        legend = legend.replace(f"${name}", values[name])
    return legend


def _points(panel: PanelAnswers) -> Iterator[object]:
    return (line.points for line in panel.lines)


def _until(text: str) -> float:
    """Seconds since 1970 of a time, in UTC where it does not say. Raises WordError."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise WordError(
            f"UNTIL={text} is not allowed; allowed: a time as 2026-11-23T20:00:00Z"
        ) from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def main(argv: Sequence[str], environ: Mapping[str, str], out: TextIO) -> int:
    """The module as a program; returns its exit status. Raises LabError."""
    boards = load(Path(environ.get("LAB_HOME", "/lab")) / "grafana/dashboards")
    asked = parse(read_words(argv, {}), boards, time.time())
    with closing(Http()) as http:
        for said in pictures(asked, boards, Prometheus(Urls.read(environ).prometheus, http)):
            print(said, file=out)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:], os.environ, sys.stdout))
    except LabError as error:
        print(f"dashboards: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
