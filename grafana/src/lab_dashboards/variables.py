"""The choosers on top of the dashboards."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as model

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
    """``$server``: any that Prometheus scrapes, and any other that a trial measured."""
    return any_of(
        "server",
        "Server",
        "Concurrency models, and services of your own, to show.",
        'label_values({__name__=~"up|lab_trial_info"}, server)',
    )


def service_variable() -> dashboard.QueryVariable:
    """``$service``: any service of the lab."""
    return any_of(
        "service",
        "Service",
        "Services of the lab to show.",
        "label_values(container_memory_working_set_bytes, service)",
    )


def route_variable() -> dashboard.QueryVariable:
    """``$route``: any that was asked for. The default is always among them: it is what a page
    shows that was opened before the first load."""
    default = f'label_replace(vector(0), "route", "{DEFAULT_ROUTE}", "", "")'
    return (
        asked(
            "route",
            "query_result(count by (route) "
            "(lab_http_requests_total or last_over_time(lab_trial_info[$__range])) "
            f"or {default})",
            '/route="([^"]+)"/',
            sort=model.VariableSort.ALPHABETICAL_ASC,
        )
        .label("Route")
        .description("Route whose requests are shown. Reload the page for one that is new.")
        .current(model.VariableOption(text=DEFAULT_ROUTE, value=DEFAULT_ROUTE, selected=True))
    )


def asked(
    name: str,
    query: str,
    regex: str = "",
    *,
    sort: model.VariableSort = model.VariableSort.DISABLED,
) -> dashboard.QueryVariable:
    """One value out of the answer to ``query``, the first when the page is opened unless it
    has a current one. Asked again when a variable within it changes."""
    variable = (
        dashboard.QueryVariable(name)
        .datasource(DATA_SOURCE)
        .query(query)
        .refresh(model.VariableRefresh.ON_DASHBOARD_LOAD)
        .sort(sort)
    )
    return variable.regex(regex) if regex else variable
