"""The dashboard **Compare**: two trials, each drawn from the start of its measured phase.

How: Grafana cannot shift one query against another by a variable, but PromQL can, if the shift
is put into its text. A recorded series (prometheus/rules/trials.yml) tells when each trial was
measured; hidden variables turn that into the shift which moves its start to a fixed moment, and
every query says ``offset`` by it. The time axis then reads as time since the start.
"""

from __future__ import annotations

from dataclasses import dataclass

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.builders.timeseries import Panel
from grafana_foundation_sdk.models import dashboard as model

from lab_dashboards.boards import COMPARE, EPOCH_S, FIRST_MINUTE
from lab_dashboards.panels import Line, time_series
from lab_dashboards.parts import finish, new_dashboard
from lab_dashboards.variables import asked

MEASURED = "trial:lab_trial_info:timestamp"
# A query of a variable is asked for the end of the page's time range, which here is in the year
# 2000: look 50 years to either side of it. It costs only the samples there are.
ALL_TIME = "[100y] offset -50y"
OF_CLIENT = "It has answers without an error, so no quick failures: see Errors."
OF_SERVER = "Quick failures lower it: see Errors. What the server refused is not in it."
SORTS = {
    "a": model.VariableSort.ALPHABETICAL_ASC,
    "b": model.VariableSort.ALPHABETICAL_DESC,
}


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two trials; ``name`` is ``a`` or ``b``."""

    name: str
    color: str

    def variables(self) -> list[dashboard.QueryVariable]:
        """Run and trial are chosen; server, route and shift follow from them."""
        side, big = self.name, self.name.upper()
        of_run = f'{MEASURED}{{run="$run_{side}"}}'
        of_trial = f'{MEASURED}{{run="$run_{side}", trial="$trial_{side}"}}'
        run = self._label("run", MEASURED, sort=model.VariableSort.ALPHABETICAL_DESC)
        trial = self._label("trial", of_run, sort=SORTS[side])
        # Seconds; without a trial 1, which shows nothing. Prometheus 2.53 refuses an offset of 0.
        start = f"min(min_over_time({of_trial}{ALL_TIME}))"
        shift_query = f"query_result(floor({EPOCH_S} - {start}) or vector(1))"
        shift = asked(f"shift_{side}", shift_query, "/ (-?[0-9]+) /")
        follow = (self._label("server", of_trial), self._label("route", of_trial), shift)
        return [
            run.label(f"{big}: run").description(f"Run of trial {big}; the newest is the first."),
            trial.label(f"{big}: trial").description(
                f"Trial {big} of that run: number, server, mode and connections."
            ),
            *(variable.hide(model.VariableHide.HIDE_VARIABLE) for variable in follow),
        ]

    def _label(
        self, name: str, series: str, sort: model.VariableSort = model.VariableSort.DISABLED
    ) -> dashboard.QueryVariable:
        """A label of the measured trials among these series."""
        query = f"query_result(max by ({name}) (last_over_time({series}{ALL_TIME})))"
        return asked(f"{name}_{self.name}", query, f'/{name}="([^"]+)"/', sort=sort)

    def line(self, expr: str, legend: str = "", *, dashed: bool = False) -> Line:
        """``expr`` of this trial, drawn while it was measured. ``@`` in it stands for the
        shift, ``SERVER`` and ``ROUTE`` for matchers."""
        shift = f" offset ${{shift_{self.name}}}s"
        own = f'run="$run_{self.name}", trial="$trial_{self.name}"'
        query = expr.replace("@", shift)
        query = query.replace("SERVER", f'server="$server_{self.name}"')
        query = query.replace("ROUTE", f'route="$route_{self.name}"')
        name = f"{self.name.upper()} $server_{self.name} {legend}".rstrip()
        measured = f"max({MEASURED}{{{own}}}{shift})"
        return Line(f"({query}) and on () {measured}", name, dashed=dashed, color=self.color)


SIDES = (Side("a", "blue"), Side("b", "orange"))


def compare() -> model.Dashboard:
    """Build it."""
    board = (
        new_dashboard(
            COMPARE,
            "Two trials, A (blue) and B (orange), laid over each other from the start of their "
            "measured phase, to about a second. How to use: choose run and trial of each side "
            "on top; then press one of the links First 1 min, First 10 min, First 1 h for as "
            "much as the trials last. The axis is hours, minutes and seconds since the start "
            "(its date means nothing), so keep the time range in the year 2000: zoom in as "
            "usual, and come back with those links. Two trials are two samples: whether one "
            "model is faster is what `make compare` answers.",
        )
        .refresh("")
        .timezone("utc")
        .time(*FIRST_MINUTE)
    )
    for side in SIDES:
        for variable in side.variables():
            board = board.with_variable(variable)
    rows = {"What clients see": clients(), "What the server does": server()}
    return finish(board, rows)


def both(
    title: str,
    description: str,
    unit: str,
    *lines: tuple[str, str],
    limit: tuple[str, str] | None = None,
    slow: bool = False,
) -> Panel:
    """A panel with the same lines of both trials, each an expression and what it is called;
    ``limit`` is one that is set and not measured."""
    drawn = []
    for side in SIDES:
        drawn += [side.line(expr, name) for expr, name in lines]
        if limit:
            drawn.append(side.line(*limit, dashed=True))
    return time_series(title, description, unit, *drawn, every_second=not slow)


def p95(phase: str) -> str:
    """The server's p95 of a phase."""
    series = "server_route_phase:lab_http_request_seconds:p95_5s"
    return f'{series}{{phase="{phase}", SERVER, ROUTE}}@'


def clients() -> list[Panel]:
    """Load, latency, errors."""
    return [
        both(
            "Throughput",
            "Requests per second the server ended (any outcome, a probe's included), and dashed "
            "what an open trial offered; a closed one offers nothing.",
            "reqps",
            ("server_route:lab_http_requests:rate5s{SERVER, ROUTE}@", "achieved"),
            limit=("lab_trial_offered_rps{SERVER, ROUTE}@", "offered"),
        ),
        both(
            "Client-side p95",
            "Latency that the load saw, or else a probe, from when each request was due (in a "
            "closed load: sent; 5 s window: the first seconds still hold the warm-up). "
            f"{OF_CLIENT}",
            "s",
            (
                "max(server_route_source_since:lab_client_request_seconds:p95_5s{SERVER, ROUTE}@)",
                "client",
            ),
        ),
        both(
            "Server-side p95",
            "From hand-over to the answer, 5 s window. Less than the client's: the wait is "
            f"before the server's own code. {OF_SERVER}",
            "s",
            (p95("total"), "total"),
        ),
        both(
            "p95 of queue",
            "Wait for a thread, 5 s window: what a full pool or a busy scheduler costs. 0.95 ms "
            f"means anything below 1 ms. {OF_SERVER}",
            "s",
            (p95("queue"), "queue"),
        ),
        both(
            "p95 of service",
            f"The work itself, 5 s window, the downstream's delay included. {OF_SERVER}",
            "s",
            (p95("service"), "service"),
        ),
        both(
            "Errors",
            "Per second: requests that the server ended otherwise than ok, and requests that "
            "failed at the client (the load's, or a probe's).",
            "reqps",
            *(
                (f'sum({series}{{outcome!="ok", SERVER, ROUTE}}@)', name)
                for series, name in (
                    ("server_route_outcome:lab_http_requests:rate5s", "answered"),
                    ("server_route_source_outcome:lab_client_requests:rate5s", "client"),
                )
            ),
        ),
    ]


def server() -> list[Panel]:
    """What it takes."""
    return [
        both(
            "Requests in flight",
            "Requests begun and not yet answered; dashed the trial's connections, which bound "
            "them.",
            "short",
            ("lab_http_requests_in_flight{SERVER, ROUTE}@", "in flight"),
            limit=("lab_trial_concurrency{SERVER, ROUTE}@", "connections"),
        ),
        both(
            "Server CPU",
            "CPU in use by the server's container: 100 % is one CPU; dashed what it may use.",
            "percentunit",
            ("server:container_cpu_usage:irate8s{SERVER}@", ""),
            limit=("server:container_spec_cpu_limit:max{SERVER}@", "limit"),
            slow=True,
        ),
        both(
            "Generator CPU",
            "CPU in use by the driver and its load engine: 100 % is one CPU. Unequal here, and "
            "the trials were not loaded alike, unless a step of the lab took CPUs away in one.",
            "percentunit",
            ('service:container_cpu_usage:irate8s{service="driver"}@', "driver"),
            slow=True,
        ),
        both(
            "Heap",
            "Heap in use, and dashed the most that the JVM may take for it.",
            "bytes",
            ("server:jvm_memory_heap_used_bytes:sum{SERVER}@", "used"),
            limit=('jvm_memory_max_bytes{area="heap", SERVER}@', "limit"),
            slow=True,
        ),
        both(
            "Time in garbage collection",
            "Share of the time that collections took, 10 s window: the first seconds still hold "
            "the warm-up.",
            "percentunit",
            ("server:jvm_gc_collection_seconds:rate10s{SERVER}@", ""),
            slow=True,
        ),
        both(
            "Downstream lag",
            "p99 of how much later than its set delay the downstream answered, 6 s window: "
            "unequal, and the trials met another downstream.",
            "s",
            ("downstream:lab_downstream_lag_seconds:p99_6s@", "p99"),
            slow=True,
        ),
    ]
