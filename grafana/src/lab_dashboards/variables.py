"""The choosers on top of the dashboards."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as model

from lab.routes import ROUTES
from lab_dashboards.panels import DATA_SOURCE

DEFAULT_ROUTE = "/downstream"
# Matches every value: "All" then also shows what appears after the page was opened.
ALL = ".+"


def any_of(name: str, label: str, description: str, query: str) -> dashboard.QueryVariable:
    """A chooser of one, several or all values; use it as ``=~"$name"``."""
    everything = model.VariableOption(text="All", value="$__all", selected=True)
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .description(description)
        .datasource(DATA_SOURCE)
        .query(query)
        .refresh(model.VariableRefresh.ON_DASHBOARD_LOAD)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(ALL)
        .current(everything)
    )


def server_variable() -> dashboard.QueryVariable:
    """``$server``: any of the models that Prometheus scrapes."""
    return any_of(
        "server", "Server", "Concurrency models to show.", 'label_values(up{job="server"}, server)'
    )


def service_variable() -> dashboard.QueryVariable:
    """``$service``: any service of the lab."""
    return any_of(
        "service",
        "Service",
        "Services of the lab to show.",
        "label_values(container_memory_working_set_bytes, service)",
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


def asked(
    name: str,
    query: str,
    regex: str = "",
    *,
    sort: model.VariableSort = model.VariableSort.DISABLED,
) -> dashboard.QueryVariable:
    """One value out of the answer to ``query``, the first when the page is opened. Asked
    again when a variable within it changes."""
    variable = (
        dashboard.QueryVariable(name)
        .datasource(DATA_SOURCE)
        .query(query)
        .refresh(model.VariableRefresh.ON_DASHBOARD_LOAD)
        .sort(sort)
    )
    return variable.regex(regex) if regex else variable
