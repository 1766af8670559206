"""The checked-in dashboards, as tests look at them."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from support.repo import REPO

FOLDER = REPO / "grafana" / "dashboards"
# The "Scrape interval" of the provisioned data source, which Grafana's rate interval is built on.
DATA_SOURCE_INTERVAL_S = 1.0
# How a query that counts events draws none as zero (or_zero of grafana/src/lab_dashboards).
FALLBACK = " or on () label_replace(vector(0),"
# `$1` is a group of label_replace, and none of Grafana's.
VARIABLE = re.compile(r"\$\{?(?!\d)(\w+)\}?")


@dataclass(frozen=True)
class Query:
    """A query of a panel or of a mark. ``min_step_s`` is its own "Min step", 0 where it has none;
    ``is_dashed``: it is drawn with dashes, as it is set and not measured."""

    ref: str
    expr: str
    legend: str = ""
    min_step_s: float = 0
    is_dashed: bool = False

    @property
    def bare(self) -> str | None:
        """What is asked without the zero that is drawn where that has no series; None where
        nothing is drawn in its place."""
        asked, fallback, _ = self.expr.partition(FALLBACK)
        return asked if fallback else None


@dataclass(frozen=True)
class Panel:
    title: str
    unit: str
    description: str
    queries: tuple[Query, ...]


@dataclass(frozen=True)
class Question:
    """A variable whose values are the answers to a query."""

    variable: str
    query: str
    regex: str


@dataclass(frozen=True)
class Dashboard:
    """``variables`` holds the value that each has when the page is opened, if it has one."""

    uid: str
    variables: Mapping[str, str]
    panels: tuple[Panel, ...]
    annotations: tuple[Query, ...]
    questions: tuple[Question, ...]

    def queries(self) -> Iterator[tuple[Panel, Query]]:
        for panel in self.panels:
            for query in panel.queries:
                yield panel, query


def load() -> tuple[Dashboard, ...]:
    return tuple(_dashboard(json.loads(file.read_text())) for file in sorted(FOLDER.glob("*.json")))


def lab() -> Dashboard:
    (found,) = (board for board in load() if board.uid == "lab")
    return found


def filled(expr: str, values: Mapping[str, str]) -> str:
    """A query with these values in the place of its variables."""
    return VARIABLE.sub(lambda found: values[found[1]], expr)


def _dashboard(board: Mapping[str, Any]) -> Dashboard:
    variables = board["templating"]["list"]
    asked = (Question(v["name"], v["query"], v.get("regex", "").strip("/")) for v in variables)
    return Dashboard(
        board["uid"],
        {one["name"]: one["current"]["value"] for one in variables if one.get("current")},
        tuple(_panel(one) for one in board["panels"] if one["type"] != "row"),
        tuple(Query(one["name"], one["expr"]) for one in board["annotations"]["list"]),
        tuple(asked),
    )


def _panel(panel: Mapping[str, Any]) -> Panel:
    dashed = {
        override["matcher"]["options"]
        for override in panel["fieldConfig"].get("overrides", [])
        if any(one["id"] == "custom.lineStyle" for one in override["properties"])
    }
    queries = (
        Query(
            one["refId"],
            one["expr"],
            one["legendFormat"],
            float(one.get("interval", "0s").removesuffix("s")),
            one["refId"] in dashed,
        )
        for one in panel["targets"]
    )
    defaults = panel["fieldConfig"]["defaults"]
    return Panel(panel["title"], defaults["unit"], panel["description"], tuple(queries))
