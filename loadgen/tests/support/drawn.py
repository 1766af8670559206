"""What a report draws of a trial, without a lab: panels with their answers, and curves."""

from __future__ import annotations

from pathlib import Path

import httpx

from lab.model import Curve, Curves, Reading, TrialPlan
from lab.system.dashboards.model import Dashboard, Panel, Query
from lab.system.http import Http
from lab.system.panels import keep
from lab.system.prometheus import Prometheus
from support.fakes import latency, reading, record
from support.runs import Jittery

BOARD = Dashboard(
    uid="lab",
    title="Lab",
    variables={"server": ".+", "route": "/"},
    panels=(
        Panel(
            id=2,
            title="Throughput",
            type="timeseries",
            description="Requests per second.",
            unit="reqps",
            queries=(
                Query("A", 'a{server=~"$server",route="$route"}', "{{server}} achieved", 0),
                Query("B", 'b{server=~"$server"}', "{{server}} offered", 0, is_dashed=True),
            ),
            section="Load and latency",
        ),
        Panel(3, "Nothing", "timeseries", "", "", (Query("A", "c", "", 0),), "Other"),
    ),
    annotations=(),
)


def reader(asked: list[dict[str, str]] | None = None) -> Prometheus:
    def answer(request: httpx.Request) -> httpx.Response:
        query = dict(httpx.QueryParams(request.content.decode()))
        if asked is not None:
            asked.append(query)
        value = {"a": "1234.5678", "b": "1000"}.get(query["query"][0], "NaN")
        times = [float(query["start"]) + at for at in range(3)]
        result = {
            "metric": {"__name__": "x", "server": "a"},
            "values": [[at, value] for at in times],
        }
        return httpx.Response(200, json={"status": "success", "data": {"result": [result]}})

    return Prometheus("http://prometheus:9090", Http(httpx.MockTransport(answer)))


BOARD_OF_TWO = Dashboard("lab", "Lab", BOARD.variables, (BOARD.panels[0],) * 2, ())


def answered(raw: Path) -> None:
    """Puts what this dashboard would have shown into a trial's raw folder."""
    keep(record(), 15.0, raw, BOARD_OF_TWO, reader())


class Drawing(Jittery):
    """An engine whose every trial has curves too."""

    def read(self, plan: TrialPlan, raw: Path) -> Reading:
        said = super().read(plan, raw)
        corrected = latency() if plan.mode == "open" else None
        return reading(achieved_rps=said.achieved_rps, corrected=corrected)

    def curves(self, plan: TrialPlan, raw: Path) -> Curves:
        curve = Curve(6750, ((0.0, 200.0), (0.5, 201.0), (0.99, 220.0), (0.998, 230.0)))
        return Curves(curve if plan.mode == "open" else None, curve)
