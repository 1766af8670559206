"""report.html and its figures: a whole run for people, as one page that opens anywhere.

The same run gives the same bytes: no time but the run's own, nothing of where it lies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lab.report.page.by_load import by_load
from lab.report.page.by_rank import by_rank
from lab.report.page.figure import Figure, alone, png, stacked
from lab.report.page.html import html
from lab.report.page.lane_styles import LaneStyles
from lab.report.page.observed import Observed, drawn, moments, observed
from lab.report.page.trials import Shown
from lab.report.words import Content

NAME = "report.html"
FIGURES = "figures"

__all__ = ["FIGURES", "NAME", "Observed", "Shown", "build", "observed", "png"]


def build(of: Content, shown: Sequence[Shown]) -> tuple[str, Mapping[str, str]]:
    """The page of a run and of its trials, in their order; and its figures by name, each an SVG
    file that stands alone."""
    styles = LaneStyles.of(of.experiment.servers, of.rows)
    places = by_load(of.rows, styles, of.limits, of.knees)
    curves = tuple(by_rank([(one.row, one.curves) for one in shown], styles))
    files = {
        one.name: alone(one.svg)
        for one in (*(one for place in places for one in place.figures), *curves)
    }
    over_time = []
    for one in shown:
        trial, marked = one.row.trial, moments(one.measurement.record)
        figures: tuple[Figure, ...] = ()
        if one.observed is not None:
            figures = tuple(drawn(trial, one.row.server, one.observed, styles.servers, marked))
        over_time.append(figures)
        if figures:
            title = trial if one.row.valid else f"{trial} (invalid)"
            name = f"trial-{trial}"
            files[name] = alone(stacked(figures, name, title, [moment.text for moment in marked]))
    return html(of, shown, places, curves, over_time), files
