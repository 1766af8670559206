"""What the Lab dashboard shows of a trial: its panels' queries, asked over the exact window.

Grafana and the report draw the same panels from the same JSON. A report is made without the
lab, so what Prometheus answers is kept with the trial, with all that the panel says of itself:
`panels.jsonl.gz`, whose first line says the format, the window (ms since 1970) and the values
of the dashboard's variables, and every other line is one panel. Times of samples are in ms from
the window's start; values are rounded to DIGITS, for they are only drawn.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.errors import LabUnreachable, RawDataError
from lab.model import PanelAnswers, PanelLine, Panels, TrialRecord
from lab.store.records import write_packed_lines
from lab.system import dashboards
from lab.system.dashboards import Dashboard, DashboardError, Window
from lab.system.prometheus import Line, Prometheus

PANELS = "panels.jsonl.gz"
FORMAT = 1
BOARD = "lab"
DIGITS = 5
# Servers are scraped every second; more samples than this a line on a page does not show.
STEP_S = 1.0
MOST_SAMPLES = 240
_LABEL = re.compile(r"\{\{\s*(\w+)\s*\}\}")


def panels(
    record: TrialRecord, window_s: float, raw: Path, folder: Path, prometheus: Prometheus
) -> str | None:
    """Keep what the Lab dashboard of a folder of dashboards shows of a trial's window,
    `window_s` long, in the trial's raw folder. For when Prometheus has scraped past the window.

    Returns why nothing was kept, None when all is well: a trial is not lost for its pictures.
    """
    try:
        boards = [one for one in dashboards.load(folder) if one.uid == BOARD]
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
    answers = iter(dashboards.ask(prometheus, (board,), window, variables))
    lines: list[dict[str, Any]] = [
        {
            "format": FORMAT,
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
    write_packed_lines(raw / PANELS, lines)


def load(raw: Path) -> Panels | None:
    """The panels in a trial's raw folder; None where none were stored, as by older versions of
    the lab. Raises RawDataError."""
    path = raw / PANELS
    if not path.exists():
        return None
    number = 0
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            header = json.loads(next(file, "null"))
            number = 1
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise RawDataError(path, 1, "is not of a format this version reads")
            found = []
            for text in file:
                number += 1
                found.append(_panel(json.loads(text)))
        opens, closes = header["window"]
        return Panels(
            header["dashboard"], (closes - opens) / 1000, header["step_ms"] / 1000, tuple(found)
        )
    except (OSError, EOFError, ValueError, KeyError, TypeError) as failure:
        raise RawDataError(path, number or None, f"cannot be read: {failure}") from None


def _packed(series: Line, opens: float) -> dict[str, Any]:
    return {
        "labels": dict(sorted(series.labels.items())),
        "t": [round((at - opens) * 1000) for at, _ in series.points],
        "v": [float(f"{value:.{DIGITS}g}") for _, value in series.points],
    }


def _order(series: Mapping[str, Any]) -> list[tuple[str, str]]:
    return list(series["labels"].items())


def _panel(told: Mapping[str, Any]) -> PanelAnswers:
    return PanelAnswers(
        title=told["title"],
        section=told["section"],
        description=told["description"],
        unit=told["unit"],
        lines=tuple(line for query in told["queries"] for line in _lines(query)),
    )


def _lines(query: Mapping[str, Any]) -> Iterator[PanelLine]:
    for series in query["series"]:
        times: Sequence[int] = series["t"]
        points = zip((at / 1000 for at in times), map(float, series["v"]), strict=True)
        labels = series["labels"]
        yield PanelLine(
            label=_legend(query["legend"], labels),
            labels=labels,
            is_set=query["is_dashed"],
            points=tuple(points),
        )


def _legend(legend: str, labels: Mapping[str, str]) -> str:
    """The name Grafana gives a series: {{label}} becomes the label's value."""
    if not legend:
        return ", ".join(f"{name}={value}" for name, value in labels.items()) or "value"
    return _LABEL.sub(lambda found: labels.get(found[1], ""), legend).strip()
