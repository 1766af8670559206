"""How a panel of the lab looks, and the data source behind all of them.

Built with Grafana's Foundation SDK for 11.6, the last release line whose only dashboard
format is the classic one: file provisioning of Grafana 11 to 13 takes it as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from grafana_foundation_sdk.builders import common, prometheus, timeseries
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model

DATA_SOURCE = model.DataSourceRef(type_val="prometheus", uid="prometheus")
# Jobs scraped every 2 s (prometheus/prometheus.yml): a rate over them needs a wider window.
# $__rate_interval is built on the query's own Min step, not on the panel's Min interval.
SLOW_JOBS = "2s"
# The grid is 24 wide.
HALF, THIRD = 12, 8
HEIGHT = 9
# The series of the servers that are chosen on top of the page.
SERVER = 'server=~"$server"'
# By class of threads.
THREADS = "lab_thread_run_seconds_total"


@dataclass(frozen=True, slots=True)
class Line:
    """One query of a panel and how its lines are called. ``dashed`` marks what is not
    measured but set: an offered rate, a limit. ``color`` is for a line that has one of its
    own on every panel; the others take the palette's next."""

    expr: str
    legend: str
    dashed: bool = False
    color: str = ""

    def style(self) -> list[model.DynamicConfigValue]:
        """What differs from the panel's other lines."""
        style = []
        if self.dashed:
            dash = {"fill": "dash", "dash": [8, 6]}
            style.append(model.DynamicConfigValue(id_val="custom.lineStyle", value=dash))
        if self.color:
            color = {"mode": "fixed", "fixedColor": self.color}
            style.append(model.DynamicConfigValue(id_val="color", value=color))
        return style


def per_server(metric: str, legend: str = "", labels: str = "", *, dashed: bool = False) -> Line:
    """A metric of each chosen server; ``labels`` are matchers beside that of the server."""
    matchers = f"{labels}, {SERVER}" if labels else SERVER
    return Line(f"{metric}{{{matchers}}}", f"{{{{server}}}} {legend}".rstrip(), dashed)


def or_zero(expr: str, **labels: str) -> str:
    """``expr``, or one 0 with these labels where it has no series: "nothing" drawn as 0. Only
    for what is a count of events; a limit or a latency that is absent is not 0."""
    zero = "vector(0)"
    for name, value in labels.items():
        zero = f'label_replace({zero}, "{name}", "{value}", "", "")'
    return f"{expr} or on () {zero}"


def time_series(
    title: str,
    description: str,
    unit: str,
    *lines: Line,
    width: int = THIRD,
    every_second: bool = False,
    wide_range: bool = False,
) -> timeseries.Panel:
    """A time series panel; ``unit`` is Grafana's name of it. Queries get the refs A, B, C …

    ``every_second`` is for series that are all scraped every second, unlike those of SLOW_JOBS.
    ``wide_range`` is for a limit that stands far above what is used: the axis is logarithmic
    above 1 (and linear below, so that 0 is on it).
    """
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(DATA_SOURCE)
        .unit(unit)
        .min(0)
        .span(width)
        .height(HEIGHT)
        .line_width(2)
        .fill_opacity(0)
        .show_points(common_model.VisibilityMode.NEVER)
        .legend(
            common.VizLegendOptions()
            .show_legend(True)
            .display_mode(common_model.LegendDisplayMode.TABLE)
            .placement(common_model.LegendPlacement.BOTTOM)
            .calcs(["lastNotNull", "max"])
        )
        .tooltip(
            common.VizTooltipOptions()
            .mode(common_model.TooltipDisplayMode.MULTI)
            .sort(common_model.SortOrder.DESCENDING)
        )
    )
    if wide_range:
        panel = panel.scale_distribution(
            common.ScaleDistributionConfig()
            .type(common_model.ScaleDistribution.SYMLOG)
            .log(10)
            .linear_threshold(1)
        )
    for number, line in enumerate(lines):
        ref = chr(ord("A") + number)
        query = (
            prometheus.Dataquery()
            .ref_id(ref)
            .expr(line.expr)
            .legend_format(line.legend)
            .range()
            .datasource(DATA_SOURCE)
        )
        panel = panel.with_target(query if every_second else query.interval(SLOW_JOBS))
        style = line.style()
        if style:
            panel = panel.override_by_query(ref, style)
    return panel
