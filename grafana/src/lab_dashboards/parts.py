"""What all dashboards of the lab share: the data source, variables, marks, how a panel looks.

Built with Grafana's Foundation SDK for 11.6, the last release line whose only dashboard
format is the classic one: file provisioning of Grafana 11 to 13 takes it as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import common, dashboard, prometheus, timeseries
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model

from lab.routes import ROUTES

DATA_SOURCE = model.DataSourceRef(type_val="prometheus", uid="prometheus")
DEFAULT_ROUTE = "/downstream"
# Jobs scraped every 2 s (prometheus/prometheus.yml): a rate over them needs a wider window.
SLOW_JOBS = "2s"
# The grid is 24 wide.
HALF, THIRD = 12, 8
HEIGHT = 9


@dataclass(frozen=True, slots=True)
class Line:
    """One query of a panel and how its lines are called. ``dashed`` marks what is not
    measured but set: an offered rate, a limit."""

    expr: str
    legend: str
    dashed: bool = False


def time_series(
    title: str,
    description: str,
    unit: str,
    lines: Sequence[Line],
    *,
    width: int = HALF,
    min_step: str | None = None,
) -> timeseries.Panel:
    """A time series panel; ``unit`` is Grafana's name of it. Queries get the refs A, B, C …"""
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
    if min_step is not None:
        panel = panel.interval(min_step)
    for number, line in enumerate(lines):
        ref = chr(ord("A") + number)
        panel = panel.with_target(
            prometheus.Dataquery()
            .ref_id(ref)
            .expr(line.expr)
            .legend_format(line.legend)
            .range()
            .datasource(DATA_SOURCE)
        )
        if line.dashed:
            style = {"fill": "dash", "dash": [8, 6]}
            panel = panel.override_by_query(
                ref, [model.DynamicConfigValue(id_val="custom.lineStyle", value=style)]
            )
    return panel


def server_variable() -> dashboard.QueryVariable:
    """``$server``: any of the models that Prometheus scrapes."""
    everything = model.VariableOption(text="All", value="$__all", selected=True)
    return (
        dashboard.QueryVariable("server")
        .label("Server")
        .description("Concurrency models to show.")
        .datasource(DATA_SOURCE)
        .query('label_values(up{job="server"}, server)')
        .refresh(model.VariableRefresh.ON_DASHBOARD_LOAD)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".+")
        .current(everything)
    )


def route_variable() -> dashboard.CustomVariable:
    """``$route``: one of the contract's routes."""
    paths = [route.path for route in ROUTES]
    options = [
        model.VariableOption(text=path, value=path, selected=path == DEFAULT_ROUTE)
        for path in paths
    ]
    return (
        dashboard.CustomVariable("route")
        .label("Route")
        .description("Route whose requests are shown.")
        .values(",".join(paths))
        .options(options)
        .current(next(option for option in options if option.value == DEFAULT_ROUTE))
    )


class Mark(model.AnnotationQuery):
    """A Prometheus annotation, with the fields of that data source the SDK leaves out."""

    def __init__(self, name: str, color: str, expr: str, **fields: object) -> None:
        super().__init__(name=name, datasource=DATA_SOURCE, icon_color=color, expr=expr)
        self._fields = fields

    def to_json(self) -> dict[str, object]:
        """The annotation as Grafana reads it."""
        return super().to_json() | self._fields


def trial_marks() -> Mark:
    """A region for each phase of each trial, from the driver's own marks."""
    return Mark(
        "Trials",
        "blue",
        'lab_trial_info{server=~"$server"}',
        step="1s",
        titleFormat="{{server}}: {{concurrency}} connections, {{mode}}, {{phase}}",
        textFormat="run {{run}}, trial {{trial}}, {{engine}} on {{route}}",
        tagKeys="server,mode,phase",
    )


def toxic_marks() -> Mark:
    """A line at each moment the toxics were seen to change."""
    return Mark(
        "Toxics",
        "red",
        "lab_toxics_changed_timestamp_seconds * 1000 > 0",
        step="1s",
        titleFormat="toxics of {{proxy}} changed",
        textFormat="",
        tagKeys="proxy",
        useValueForTime=True,
    )


def new_dashboard(uid: str, title: str, description: str) -> dashboard.Dashboard:
    """An empty dashboard with the lab's variables and marks."""
    return (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["concurrency-lab"])
        .editable()
        .refresh("2s")
        .time("now-5m", "now")
        .timezone("browser")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .with_variable(server_variable())
        .with_variable(route_variable())
    )


def finish(board: dashboard.Dashboard) -> model.Dashboard:
    """The dashboard with ids on its panels and the marks in place."""
    built = board.build()
    built.annotations = model.AnnotationContainer(list_val=[trial_marks(), toxic_marks()])
    for number, panel in enumerate(built.panels or (), start=1):
        panel.id_val = number
    return built
