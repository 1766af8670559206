"""report.html and its figures: a whole run for people, as one page that opens anywhere.

The same run gives the same bytes: no time but the run's own, nothing of where it lies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.report.page.by_load import by_load
from lab.report.page.by_rank import Ranked, by_rank
from lab.report.page.chart import stacked
from lab.report.page.html import html
from lab.report.page.looks import Looks
from lab.report.page.over_time import moments, over_time
from lab.report.page.palette import LIGHT, figure_css
from lab.report.page.png import png
from lab.report.page.trials import Shown
from lab.report.words import Content

NAME = "report.html"
FIGURES = "figures"
COLUMNS = 3

__all__ = ["FIGURES", "NAME", "Page", "Shown", "build", "png"]


@dataclass(frozen=True, slots=True)
class Page:
    """The page, and its figures by name, each an SVG file that stands alone."""

    html: str
    figures: Mapping[str, str]


def build(of: Content, shown: Sequence[Shown]) -> Page:
    """The page of a run and of its trials, in their order."""
    looks = Looks.of(of.experiment.servers, of.rows)
    places = by_load(of.rows, looks)
    curves = tuple(by_rank([Ranked(one.row, one.curves) for one in shown], looks))
    drawn = [
        tuple(
            over_time(
                one.row.trial,
                one.row.server,
                one.panels,
                looks.servers,
                moments(one.measurement.record),
            )
        )
        if one.panels
        else ()
        for one in shown
    ]
    style = figure_css(LIGHT.__getitem__)
    ground = f"svg{{background:{LIGHT['page']}}}"
    files = {
        one.chart.name: one.svg(style=ground + style) + "\n"
        for one in (*(one for place in places for one in place.figures), *curves)
    }
    for one, its in zip(shown, drawn, strict=True):
        if its:
            trial = one.row.trial
            figures = [figure for _, figure in its]
            title = trial if one.row.valid else f"{trial} (invalid)"
            below = [moment.text for moment in moments(one.measurement.record)]
            svg = stacked(figures, COLUMNS, title, ground + style, below)
            files[f"trial-{trial}"] = svg + "\n"
    return Page(html(of, shown, places, curves, drawn), files)
