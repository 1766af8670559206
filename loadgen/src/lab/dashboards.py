"""Reads the dashboards Grafana shows, and asks Prometheus what their panels ask.

One definition serves Grafana, the report and the tests: the classic dashboard JSON. What
Grafana's browser side does to a query (variables, the rate interval) is done here the same
way, so every panel can be drawn and checked on machines without Grafana.

``python -m lab.dashboards [SECONDS]`` asks every query over the last SECONDS (default 300) and
prints how many samples each returned; exit status 1 when one returned none.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TextIO

import httpx

from lab.errors import LabError, LabUnreachable

# What the provisioned data source says ("Scrape interval"); Grafana's rate interval is built
# on it: grafana/provisioning/datasources/prometheus.yml.
DATA_SOURCE_INTERVAL_S = 1.0
DURATION_S = MappingProxyType({"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0})
VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)(?::\w+)?\}")
TIMEOUT_S = 30.0


class DashboardError(LabError):
    """A dashboard's JSON is not what this lab writes; names the file."""


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel. ``min_step_s`` is the panel's own lower limit of the step."""

    ref: str
    expr: str
    legend: str
    min_step_s: float


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel; ``unit`` is Grafana's name of a unit (s, bytes, reqps …), "" if it has none."""

    id: int
    title: str
    type: str
    description: str
    unit: str
    queries: tuple[Query, ...]


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One dashboard. ``variables`` holds the value each has when the page is opened, as it
    is put into a query; ``annotations`` are the queries of its marks."""

    uid: str
    title: str
    variables: Mapping[str, str]
    panels: tuple[Panel, ...]
    annotations: tuple[Query, ...]

    def queries(self) -> Iterator[tuple[Panel, Query]]:
        """Every query with its panel."""
        for panel in self.panels:
            for query in panel.queries:
                yield panel, query


@dataclass(frozen=True, slots=True)
class Window:
    """From ``start_s`` to ``end_s`` (seconds since 1970), a sample every ``step_s``."""

    start_s: float
    end_s: float
    step_s: float

    def __post_init__(self) -> None:
        if not (self.start_s < self.end_s and self.step_s > 0):
            raise ValueError(f"a window ends after it starts, in steps above 0: {self}")


@dataclass(frozen=True, slots=True)
class Series:
    """One series of an answer: its labels, and (seconds since 1970, value) pairs; samples
    that are not numbers (0/0 of an idle rate) are left out."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What one query returned. ``where`` is dashboard/panel/ref, for messages."""

    where: str
    expr: str
    series: tuple[Series, ...]

    @property
    def samples(self) -> int:
        """Number of samples over all series."""
        return sum(len(series.points) for series in self.series)


def load(folder: Path) -> tuple[Dashboard, ...]:
    """Every ``*.json`` of the folder, by file name. Raises DashboardError."""
    files = sorted(folder.glob("*.json"))
    if not files:
        raise DashboardError(f"{folder}: no dashboard (*.json) is there")
    return tuple(_load_file(file) for file in files)


def expand(expr: str, variables: Mapping[str, str], window: Window, min_step_s: float = 0) -> str:
    """The query with its variables replaced, Grafana's own included: ``$__interval`` is the
    step, ``$__range`` the window, and ``$__rate_interval`` max(step + scrape interval, 4 x
    scrape interval), where the scrape interval is the panel's minimum step or else the data
    source's (https://grafana.com/docs/grafana/latest/datasources/prometheus/template-variables/).

    Raises DashboardError for a variable that nobody knows.
    """
    scrape_s = max(min_step_s, DATA_SOURCE_INTERVAL_S)
    step_s = max(window.step_s, scrape_s)
    known = {
        **variables,
        "__interval": _duration(step_s),
        "__rate_interval": _duration(max(step_s + scrape_s, 4 * scrape_s)),
        "__range": _duration(window.end_s - window.start_s),
    }

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in known:
            raise DashboardError(f"variable ${name} is not known: {', '.join(sorted(known))}")
        return known[name]

    return VARIABLE.sub(value, expr)


class PrometheusReader:
    """Asks a Prometheus at ``url``. One thread; ``transport`` is the seam for tests."""

    def __init__(self, url: str, transport: httpx.BaseTransport | None = None) -> None:
        self._url = url.rstrip("/")
        self._http = httpx.Client(
            base_url=self._url, transport=transport, timeout=TIMEOUT_S, trust_env=False
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def range(self, expr: str, window: Window) -> tuple[Series, ...]:
        """The range query's series. Raises LabUnreachable, with Prometheus's own words where
        it refuses the query."""
        asked = {
            "query": expr,
            "start": f"{window.start_s:.3f}",
            "end": f"{window.end_s:.3f}",
            "step": f"{window.step_s:g}",
        }
        try:
            answer = self._http.post("/api/v1/query_range", data=asked)
            body = answer.json()
        except (httpx.HTTPError, ValueError) as failure:
            raise LabUnreachable(
                f"prometheus does not answer at {self._url} ({type(failure).__name__})"
            ) from failure
        if not isinstance(body, dict) or body.get("status") != "success":
            why = body.get("error") if isinstance(body, dict) else answer.status_code
            raise LabUnreachable(f"prometheus refused {expr!r}: {why}")
        return tuple(_series(result) for result in body["data"]["result"])


def ask(
    reader: PrometheusReader,
    dashboards: tuple[Dashboard, ...],
    window: Window,
    variables: Mapping[str, str] | None = None,
) -> tuple[Answer, ...]:
    """Every query of every panel over the window; ``variables`` replace the values that the
    dashboards open with. Raises LabUnreachable, DashboardError."""
    answers = []
    for dashboard in dashboards:
        values = {**dashboard.variables, **(variables or {})}
        for panel, query in dashboard.queries():
            expr = expand(query.expr, values, window, query.min_step_s)
            where = f"{dashboard.uid}/{panel.title}/{query.ref}"
            answers.append(Answer(where, expr, reader.range(expr, window)))
    return tuple(answers)


def main(arguments: list[str], environ: Mapping[str, str], out: TextIO) -> int:
    """The module as a program; returns its exit status. Raises LabError."""
    seconds = float(arguments[0]) if arguments else 300.0
    home = Path(environ.get("LAB_HOME", "/lab"))
    now = time.time()
    reader = PrometheusReader(environ.get("LAB_PROMETHEUS_URL", "http://prometheus:9090"))
    answers = ask(reader, load(home / "grafana/dashboards"), Window(now - seconds, now, 2))
    out.writelines(f"{answer.samples:6d}  {answer.where}\n" for answer in answers)
    return 0 if all(answer.samples for answer in answers) else 1


def _load_file(file: Path) -> Dashboard:
    try:
        text = json.loads(file.read_text(encoding="utf-8"))
        panels = tuple(_panel(panel) for panel in _flat(text["panels"]))
        annotations = text.get("annotations", {}).get("list", [])
        return Dashboard(
            uid=text["uid"],
            title=text["title"],
            variables=MappingProxyType(
                {v["name"]: _opening_value(v) for v in text["templating"]["list"]}
            ),
            panels=panels,
            annotations=tuple(
                Query(a["name"], a["expr"], a.get("titleFormat", ""), 0)
                for a in annotations
                if "expr" in a
            ),
        )
    except (KeyError, TypeError, ValueError) as failure:
        raise DashboardError(f"{file}: not a classic dashboard: {failure!r}") from failure


def _flat(panels: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Panels without the rows around them."""
    for panel in panels:
        if panel["type"] == "row":
            yield from _flat(panel.get("panels", []))
        else:
            yield panel


def _panel(panel: Mapping[str, Any]) -> Panel:
    own_step = panel.get("interval")
    queries = tuple(
        Query(
            ref=target["refId"],
            expr=target["expr"],
            legend=target.get("legendFormat", ""),
            min_step_s=_seconds(target.get("interval") or own_step),
        )
        for target in panel.get("targets", [])
    )
    return Panel(
        id=panel["id"],
        title=panel["title"],
        type=panel["type"],
        description=panel.get("description", ""),
        unit=panel.get("fieldConfig", {}).get("defaults", {}).get("unit", ""),
        queries=queries,
    )


def _opening_value(variable: Mapping[str, Any]) -> str:
    value = variable["current"]["value"]
    values = value if isinstance(value, list) else [value]
    if "$__all" in values:
        return str(variable.get("allValue") or ".+")
    if not variable.get("multi"):
        return str(values[0])
    escaped = [re.escape(str(each)).replace("\\", "\\\\") for each in values]
    return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"


def _seconds(duration: str | None) -> float:
    if not duration:
        return 0.0
    match = re.fullmatch(r"(\d+)(ms|s|m|h)", duration)
    if match is None:
        raise ValueError(f"not a duration: {duration}")
    return int(match[1]) * DURATION_S[match[2]]


def _duration(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"


def _series(result: Mapping[str, Any]) -> Series:
    points = tuple((float(at), float(value)) for at, value in result["values"])
    return Series(
        labels=MappingProxyType(dict(result["metric"])),
        points=tuple(point for point in points if math.isfinite(point[1])),
    )


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:], os.environ, sys.stdout))
    except LabError as error:
        sys.exit(f"dashboards: {error}")
