"""report.html and its figures: a whole run for people, as one page that opens anywhere.

The same run gives the same bytes: no time but the run's own, nothing of where it lies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lab.model import Sustained
from lab.report.page.by_load import by_load
from lab.report.page.figure import Figure, alone
from lab.report.page.html import html
from lab.report.page.lane_styles import LaneStyles
from lab.report.page.observed import Observed, drawn, moments, observed
from lab.report.page.trials import Shown
from lab.report.words import Content

NAME = "report.html"
FIGURES = "figures"

__all__ = ["FIGURES", "NAME", "Observed", "Shown", "build", "observed"]


def build(of: Content, shown: Sequence[Shown]) -> tuple[str, Mapping[str, str]]:
    """The page of a run and of its trials; and its figures by name, each an SVG file."""
    styles = LaneStyles.of(of.experiment.servers, of.rows)
    # A load that is held has neither throughput nor latencies. Where the lab is changed from trial
    # to trial, each lane is a load of its own.
    loaded = [one.row for one in shown if not one.measurement.record.plan.hold]
    sustained = [finding for finding in of.findings if isinstance(finding, Sustained)]
    places = () if of.changes_lab else by_load(loaded, styles, of.limits, sustained)
    files = {one.name: alone(one.svg) for place in places for one in place.figures}
    over_time = [_over_time(one, styles.servers) for one in shown]
    return html(of, shown, places, over_time), files


def _over_time(of: Shown, hues: Mapping[str, int]) -> tuple[Figure, ...]:
    if of.observed is None:
        return ()
    marked = moments(of.measurement.record)
    return tuple(drawn(of.row.trial, of.row.server, of.observed, hues, marked))
