"""Asks Prometheus what the Lab dashboard shows of a trial: its panels' queries over the window.

Grafana and the report draw the same panels from the same JSON. A report is made without the lab,
so the answers are kept with the trial, with all that each panel says of itself. Values are rounded
to DIGITS, for they are only drawn.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.errors import LabUnreachable
from lab.model import TrialRecord
from lab.store.panels import NAME
from lab.store.records import write_packed_lines
from lab.system.dashboards.asking import ask
from lab.system.dashboards.model import Dashboard, DashboardError, Window, load
from lab.system.prometheus import Line, Prometheus

BOARD = "lab"
DIGITS = 5
# Servers are scraped every second; more samples than this a line on a page does not show.
STEP_S = 1.0
MOST_SAMPLES = 240


def panels(
    record: TrialRecord, window_s: float, raw: Path, folder: Path, prometheus: Prometheus
) -> str | None:
    """Keep what the Lab dashboard of a folder of dashboards shows of a trial's window,
    `window_s` long, in the trial's raw folder. For when Prometheus has scraped past the window.

    Returns why nothing was kept, None when all is well: a trial is not lost for its pictures.
    """
    try:
        boards = [one for one in load(folder) if one.uid == BOARD]
        if not boards:
            return f"no panels were stored: {folder} has no dashboard {BOARD}"
        keep(record, window_s, raw, boards[0], prometheus)
    except (LabUnreachable, DashboardError) as failure:
        return f"no panels were stored: {failure}"
    return None


def keep(
    record: TrialRecord, window_s: float, raw: Path, board: Dashboard, prometheus: Prometheus
) -> None:
    """As `panels`, of this dashboard. Raises LabUnreachable, DashboardError; nothing is written
    then."""
    opens, closes = (moment.timestamp() for moment in record.window(window_s))
    window = Window(opens, closes, max(STEP_S, math.ceil(window_s / MOST_SAMPLES)))
    variables = {
        "server": re.escape(record.plan.server).replace("\\", "\\\\"),
        "route": record.plan.route.partition("?")[0],
    }
    answers = iter(ask(prometheus, (board,), window, variables))
    lines: list[dict[str, Any]] = [
        {
            "dashboard": board.title,
            "window": [round(opens * 1000), round(closes * 1000)],
            "step_ms": round(window.step_s * 1000),
            "variables": variables,
        }
    ]
    for panel in board.panels:
        queries = [
            {
                "ref": query.ref,
                "expr": answer.expr,
                "legend": query.legend,
                "is_dashed": query.is_dashed,
                "series": sorted((_packed(one, opens) for one in answer.series), key=_order),
            }
            for query, answer in zip(panel.queries, answers, strict=False)
        ]
        lines.append(
            {
                "title": panel.title,
                "section": panel.section,
                "description": panel.description,
                "unit": panel.unit,
                "queries": queries,
            }
        )
    write_packed_lines(raw / NAME, lines)


def _packed(series: Line, opens: float) -> dict[str, Any]:
    return {
        "labels": dict(sorted(series.labels.items())),
        "t": [round((at - opens) * 1000) for at, _ in series.points],
        "v": [float(f"{value:.{DIGITS}g}") for _, value in series.points],
    }


def _order(series: Mapping[str, Any]) -> list[tuple[str, str]]:
    return list(series["labels"].items())
