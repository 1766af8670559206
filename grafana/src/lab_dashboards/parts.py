"""What all dashboards of the lab share: how one begins, and the marks of trials and toxics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grafana_foundation_sdk.builders import dashboard, timeseries
from grafana_foundation_sdk.models import dashboard as model

from lab_dashboards.boards import Board, links
from lab_dashboards.panels import DATA_SOURCE

# Every refresh asks Prometheus on the machine that measures. LIVE is for the one that is to show a
# toxic within seconds. Grafana refreshes only at an interval that its dashboard offers; 2 s is none
# of its own.
LIVE, REFRESH = "2s", "10s"
REFRESH_INTERVALS = ("1s", LIVE, "5s", REFRESH, "30s", "1m")


class Mark(model.AnnotationQuery):
    """A Prometheus annotation, with the fields of that data source the SDK leaves out."""

    def __init__(self, name: str, color: str, expr: str, **fields: object) -> None:
        super().__init__(name=name, datasource=DATA_SOURCE, icon_color=color, expr=expr)
        self._fields = fields

    def to_json(self) -> dict[str, object]:
        """The annotation as Grafana reads it."""
        return super().to_json() | self._fields


def trial_marks(servers: str = "$server") -> Mark:
    """A region for each phase of each trial, from the driver's own marks."""
    return Mark(
        "Trials",
        "blue",
        f'lab_trial_info{{server=~"{servers}"}}',
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


def new_dashboard(board: Board, description: str) -> dashboard.Dashboard:
    """An empty live dashboard: the last five minutes, and the way to the others."""
    return (
        dashboard.Dashboard(board.title)
        .uid(board.uid)
        .description(description)
        .tags(["concurrency-lab"])
        .links([*links(board)])
        .editable()
        .refresh(REFRESH)
        .timepicker(dashboard.TimePicker().refresh_intervals([*REFRESH_INTERVALS]))
        .time("now-5m", "now")
        .timezone("browser")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
    )


def finish(
    board: dashboard.Dashboard, rows: Mapping[str, Sequence[timeseries.Panel]], *marks: Mark
) -> model.Dashboard:
    """The dashboard with the panels of its rows, an id on each, and the marks in place."""
    for title, panels in rows.items():
        board = board.with_row(dashboard.Row(title))
        for panel in panels:
            board = board.with_panel(panel)
    built = board.build()
    built.annotations = model.AnnotationContainer(list_val=[*marks])
    for number, panel in enumerate(built.panels or (), start=1):
        panel.id_val = number
    return built
