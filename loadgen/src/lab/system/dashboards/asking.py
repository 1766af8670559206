"""Puts a dashboard's queries as Grafana does, and asks them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lab.system.dashboards.model import Dashboard, DashboardError, Question, Window
from lab.system.prometheus import Line, Prometheus

# The "Scrape interval" of the provisioned data source; Grafana's rate interval is built
# on it: grafana/provisioning/datasources/prometheus.yml.
DATA_SOURCE_INTERVAL_S = 1.0
QUERY_RESULT = re.compile(r"query_result\((.+)\)\s*")
# `$1` is a group of label_replace, and none of Grafana's.
VARIABLE = re.compile(r"\$(?!\d)(\w+)|\$\{(\w+)(?::\w+)?\}")


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one query. ``where`` is dashboard/panel/ref, for messages."""

    where: str
    expr: str
    series: tuple[Line, ...]

    @property
    def samples(self) -> int:
        """Number of samples over all series."""
        return sum(len(series.points) for series in self.series)


def expand(expr: str, variables: Mapping[str, str], window: Window, min_step_s: float = 0) -> str:
    """The query with its variables replaced, Grafana's own included: ``$__interval`` is the
    step, ``$__range`` the window, and ``$__rate_interval`` max(step + scrape interval, 4 x
    scrape interval), where the scrape interval is the query's Min step or else the data
    source's; a panel's Min interval is not asked
    (https://grafana.com/docs/grafana/latest/datasources/prometheus/template-variables/).

    Raises DashboardError for a variable that nobody knows.
    """
    scrape_s = min_step_s or DATA_SOURCE_INTERVAL_S
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


def resolve(
    prometheus: Prometheus,
    dashboard: Dashboard,
    window: Window,
    variables: Mapping[str, str] | None = None,
) -> Mapping[str, str]:
    """The value of every variable of the dashboard, those asked for as Grafana does when the
    page is opened: ``query_result(…)`` at the end of the window. ``variables`` are chosen and
    not asked for. One without any answer is "". Raises LabUnreachable, DashboardError."""
    values = {**dashboard.variables, **(variables or {})}
    for question in dashboard.questions:
        if question.variable in values:
            continue
        offered = options(prometheus, question, window, values)
        values[question.variable] = offered[0] if offered else ""
    return values


def options(
    prometheus: Prometheus, question: Question, window: Window, variables: Mapping[str, str]
) -> list[str]:
    """The values Grafana offers for a variable, in its order; its query may use ``variables``.
    Raises LabUnreachable, DashboardError."""
    query = QUERY_RESULT.fullmatch(question.query)
    if query is None:
        raise DashboardError(f"${question.variable} asks {question.query}: not query_result()")
    texts = prometheus.texts(expand(query[1], variables, window), window.end_s)
    matches = (re.search(question.regex, text) for text in texts)
    found = [match[min(match.re.groups, 1)] for match in matches if match is not None]
    return sorted(found, reverse=question.order < 0) if question.order else found


def ask(
    prometheus: Prometheus,
    dashboards: tuple[Dashboard, ...],
    window: Window,
    variables: Mapping[str, str] | None = None,
    *,
    everything: bool = False,
) -> tuple[Answer, ...]:
    """Every query of every panel over the window, or over the range that a dashboard is fixed
    to; ``variables`` replace the values that the dashboards open with. Raises LabUnreachable,
    DashboardError.

    With ``everything``, for who wants to know whether everything asks for something that is
    there: the queries of marks, too, and of a query that draws zero where it has no series (and
    so always answers) what it asks without that.
    """
    answers = []
    for dashboard in dashboards:
        over = Window(*dashboard.range_s, window.step_s) if dashboard.range_s else window
        values = resolve(prometheus, dashboard, over, variables)
        for where, query, min_step_s in _queries(dashboard, everything):
            expr = expand(query, values, over, min_step_s)
            series = prometheus.range(expr, over.start_s, over.end_s, over.step_s)
            answers.append(Answer(f"{dashboard.uid}/{where}", expr, series))
    return tuple(answers)


def _queries(dashboard: Dashboard, everything: bool) -> Iterator[tuple[str, str, float]]:
    """Where each query stands, the query, and its Min step."""
    for panel, query in dashboard.queries():
        yield f"{panel.title}/{query.ref}", query.expr, query.min_step_s
    if not everything:
        return
    for panel, query in dashboard.queries():
        if query.bare is not None:
            yield f"{panel.title}/{query.ref} without its zero", query.bare, query.min_step_s
    for mark in dashboard.annotations:
        yield f"marks {mark.ref}", mark.expr, mark.min_step_s


def _duration(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"
