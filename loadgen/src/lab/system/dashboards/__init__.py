"""Reads the dashboards Grafana shows, and asks Prometheus what their panels ask.

One definition serves Grafana, the report and the tests: the classic dashboard JSON. What
Grafana's browser side does to a query (variables, the rate interval) is done here the same
way, so every panel can be drawn and checked on machines without Grafana.
"""

from lab.system.dashboards.asking import (
    DATA_SOURCE_INTERVAL_S,
    Answer,
    ask,
    ask_all,
    expand,
    options,
    resolve,
)
from lab.system.dashboards.model import (
    Dashboard,
    DashboardError,
    Panel,
    Query,
    Question,
    Window,
    load,
)

__all__ = [
    "DATA_SOURCE_INTERVAL_S",
    "Answer",
    "Dashboard",
    "DashboardError",
    "Panel",
    "Query",
    "Question",
    "Window",
    "ask",
    "ask_all",
    "expand",
    "load",
    "options",
    "resolve",
]
