"""The contents of a dashboard's JSON: panels and their queries, variables, the first range."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lab.errors import LabError

DURATION_S = MappingProxyType({"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0})
# How a query that counts events draws none as zero (or_zero of grafana/src/lab_dashboards).
FALLBACK = " or on () label_replace(vector(0),"
# Grafana's "sort" of a variable, as far as this lab uses it.
ORDERS = MappingProxyType({0: 0, 1: 1, 2: -1})


class DashboardError(LabError):
    """A dashboard's JSON is not what this lab writes; names the file."""


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel. ``min_step_s`` is its own lower limit of the step ("Min step"), 0
    where it has none; ``is_dashed`` what the panel draws with dashes: not measured but set. Of a
    mark whose value is its moment (ms since 1970) ``is_moment`` is true."""

    ref: str
    expr: str
    legend: str
    min_step_s: float
    is_dashed: bool = False
    is_moment: bool = False

    @property
    def bare(self) -> str | None:
        """What is asked without the zero that is drawn where that has no series; None where
        nothing is drawn in its place."""
        asked, fallback, _ = self.expr.partition(FALLBACK)
        return asked if fallback else None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a panel stands in Grafana's grid of 24 columns: its left column, its top line, and its
    width in columns."""

    column: int = 0
    line: int = 0
    width: int = 24


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel; ``unit`` is Grafana's name of a unit (s, bytes, reqps …), "" if it has none;
    ``section`` the title of the row it stands under. The axis of one that ``is_wide`` is
    logarithmic above 1."""

    id: int
    title: str
    type: str
    description: str
    unit: str
    queries: tuple[Query, ...]
    section: str = ""
    place: Place = Place()
    is_wide: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """A variable whose values are the answers to ``query``: of each, the group of ``regex``, or
    all that it matches. Of one that has no value yet it is the first. ``order`` 1 is ascending,
    -1 descending, 0 as they came."""

    variable: str
    query: str
    regex: str = ""
    order: int = 0


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One dashboard. ``variables`` holds the value each has when the page is opened, as it
    is put into a query; ``questions`` those that are asked for, in order, each with the earlier
    ones known: what can be chosen of those that have a value. ``annotations`` are the queries of
    its marks. ``range_s`` are the seconds since 1970 it opens with, where these are fixed and no
    "now"."""

    uid: str
    title: str
    variables: Mapping[str, str]
    panels: tuple[Panel, ...]
    annotations: tuple[Query, ...]
    questions: tuple[Question, ...] = ()
    range_s: tuple[float, float] | None = None

    def queries(self) -> Iterator[tuple[Panel, Query]]:
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


def load(folder: Path) -> tuple[Dashboard, ...]:
    """Every ``*.json`` of the folder, by file name. Raises DashboardError."""
    files = sorted(folder.glob("*.json"))
    if not files:
        raise DashboardError(f"{folder}: no dashboard (*.json) is there")
    return tuple(_load_file(file) for file in files)


def _load_file(file: Path) -> Dashboard:
    try:
        text = json.loads(file.read_text(encoding="utf-8"))
        panels = tuple(_panel(panel, row) for panel, row in _flat(text["panels"]))
        annotations = text.get("annotations", {}).get("list", [])
        variables = text["templating"]["list"]
        return Dashboard(
            uid=text["uid"],
            title=text["title"],
            variables=MappingProxyType(
                {v["name"]: _opening_value(v) for v in variables if v.get("current")}
            ),
            panels=panels,
            annotations=tuple(
                Query(
                    ref=a["name"],
                    expr=a["expr"],
                    legend=a.get("titleFormat", ""),
                    min_step_s=0,
                    is_moment=a.get("useValueForTime", False),
                )
                for a in annotations
                if "expr" in a
            ),
            questions=tuple(_question(v) for v in variables if "query" in v),
            range_s=_fixed_range(text.get("time", {})),
        )
    except (KeyError, TypeError, ValueError) as failure:
        raise DashboardError(f"{file}: not a classic dashboard: {failure!r}") from failure


def _flat(panels: list[dict[str, Any]], row: str = "") -> Iterator[tuple[dict[str, Any], str]]:
    """Panels without the rows around them, each with the title of its row. A row that is open
    has its panels after it, a closed one in it."""
    for panel in panels:
        if panel["type"] == "row":
            row = panel.get("title", "")
            yield from _flat(panel.get("panels", []), row)
        else:
            yield panel, row


def _panel(panel: Mapping[str, Any], row: str) -> Panel:
    config = panel.get("fieldConfig", {})
    defaults, grid = config.get("defaults", {}), panel.get("gridPos", {})
    scale = defaults.get("custom", {}).get("scaleDistribution", {})
    dashed = _dashed(config.get("overrides", []))
    queries = tuple(
        Query(
            ref=target["refId"],
            expr=target["expr"],
            legend=target.get("legendFormat", ""),
            min_step_s=_seconds(target.get("interval")),
            is_dashed=target["refId"] in dashed,
        )
        for target in panel.get("targets", [])
    )
    return Panel(
        id=panel["id"],
        title=panel["title"],
        type=panel["type"],
        description=panel.get("description", ""),
        unit=defaults.get("unit", ""),
        queries=queries,
        section=row,
        place=Place(grid.get("x", 0), grid.get("y", 0), grid.get("w", 24)),
        is_wide=scale.get("type") == "symlog",
    )


def _dashed(overrides: list[dict[str, Any]]) -> set[str]:
    """The references of the queries that are drawn with dashes."""
    return {
        override["matcher"]["options"]
        for override in overrides
        if override["matcher"]["id"] == "byFrameRefID"
        and any(one["id"] == "custom.lineStyle" for one in override["properties"])
    }


def _question(variable: Mapping[str, Any]) -> Question:
    regex = variable.get("regex", "").removeprefix("/").removesuffix("/")
    re.compile(regex)
    order = ORDERS[variable.get("sort", 0)]
    return Question(variable["name"], variable["query"], regex, order)


def _fixed_range(time: Mapping[str, str]) -> tuple[float, float] | None:
    ends = time.get("from", "now"), time.get("to", "now")
    if any(end.startswith("now") for end in ends):
        return None
    start, end = (datetime.fromisoformat(end).timestamp() for end in ends)
    return start, end


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
