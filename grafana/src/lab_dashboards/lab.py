"""The dashboard **Lab**: what a trial offers, what clients and servers see, and what the
network does meanwhile."""

from __future__ import annotations

from grafana_foundation_sdk.builders.timeseries import Panel
from grafana_foundation_sdk.models.dashboard import Dashboard

from lab_dashboards.boards import LAB
from lab_dashboards.panels import HALF, SERVER, Line, or_zero, per_server, time_series
from lab_dashboards.parts import LIVE, finish, new_dashboard, toxic_marks, trial_marks
from lab_dashboards.server_resources import heap
from lab_dashboards.variables import route_variable, server_variable

AT = 'server=~"$server", route="$route"'
PER_REQUEST = "container_cpu_per_request_seconds:ratio"
CLIENT_REQUESTS = "server_route_source_outcome:lab_client_requests:rate5s"
P95 = "server_route_phase:lab_http_request_seconds:p95_5s"


def lab() -> Dashboard:
    """Build it."""
    board = (
        new_dashboard(
            LAB,
            "Load, latency from both sides, errors and toxics of the servers under test. Blue "
            "regions are trials and their warm-up, red lines changes of the toxics.",
        )
        .refresh(LIVE)
        .with_variable(server_variable())
        .with_variable(route_variable())
    )
    rows = {
        "Load and latency": load(),
        "The way to the downstream": way(),
        "Memory and CPU": memory_and_cpu(),
    }
    return finish(board, rows, trial_marks(), toxic_marks())


def load() -> list[Panel]:
    """What is asked, and what is answered."""
    return [
        time_series(
            "Throughput",
            "Requests per second the server ended (any outcome; a probe's are among them, about "
            "20/s), those that the load itself saw answered without an error, where its engine "
            "tells that while it runs (5 s window), and what an open trial offers. Below the "
            "dashed line the server does not keep up. A closed trial offers nothing.",
            "reqps",
            Line(f"server_route:lab_http_requests:rate5s{{{AT}}}", "{{server}} achieved"),
            Line(
                f'{CLIENT_REQUESTS}{{source="load", outcome="ok", {AT}}}',
                "{{server}} client: {{outcome}}",
            ),
            Line(
                # One line, whichever of the two tells it.
                "max by (server) "
                f"(server_route:lab_client_requests_offered:rate5s{{{AT}}} "
                f"or on (server, route) lab_trial_offered_rps{{{AT}}})",
                "{{server}} offered",
                dashed=True,
            ),
            width=HALF,
            every_second=True,
        ),
        time_series(
            "p95 latency: client beside server",
            "Client: the load's own requests where its engine tells them while it runs, or else "
            "a Poisson probe of about 20 requests/s, timed from when each was due (in a closed "
            "load: sent; 5 s window). Server: from hand-over to the executor to the answer "
            "(total), split into waiting for a thread (queue) and work (service), 5 s "
            "window. Client far above total: the wait is before the server's own code, in "
            "the accept queue or on the wire. The client's p95 has answers without an error, and "
            "no request of the load that timed out or broke off: see Errors by kind. The "
            "server's p95 has no request that the server refused or the client gave up, but a "
            "quick failure lowers it. The first bucket ends at 1 ms, so 0.95 ms means anything "
            "below 1 ms.",
            "s",
            Line(
                f"server_route_source_since:lab_client_request_seconds:p95_5s{{{AT}}}",
                "{{server}} client, since {{since}} ({{source}})",
            ),
            *(
                Line(f'{P95}{{phase="{phase}", {AT}}}', f"{{{{server}}}} server {phase}")
                for phase in ("total", "queue", "service")
            ),
            width=HALF,
            every_second=True,
        ),
        time_series(
            "Errors by kind",
            "Per second: requests the server ended otherwise than ok, requests that failed at "
            "the client (the load's, or a probe's), connections that the load could not open, "
            "downstream calls that failed (timeout, refused, error), and connections the kernel "
            "dropped at the server's full accept queue.",
            "reqps",
            Line(
                f'server_route_outcome:lab_http_requests:rate5s{{outcome!="ok", {AT}}}',
                "{{server}} answered: {{outcome}}",
            ),
            Line(
                or_zero(
                    f'sum by (server, outcome) ({CLIENT_REQUESTS}{{outcome!="ok", {AT}}})',
                    server="no",
                ),
                "{{server}} client: {{outcome}}",
            ),
            Line(
                "sum by (server) "
                f"(rate(lab_client_connect_failures_total{{{AT}}}[$__rate_interval]))",
                "{{server}} client: not connected",
            ),
            per_server(
                "server_outcome:lab_downstream_calls:rate5s",
                "downstream call: {{outcome}}",
                'outcome!="ok"',
            ),
            Line(
                f"rate(lab_kernel_listen_overflows_total{{{SERVER}}}[$__rate_interval])",
                "{{server}} accept queue overflow",
            ),
            width=HALF,
            every_second=True,
        ),
        time_series(
            "Requests in flight",
            "Requests begun and not yet answered; those handed over and still waiting for a "
            "worker thread (models with a pool); and the trial's connections, which bound "
            "the sum of the two.",
            "short",
            Line(f"lab_http_requests_in_flight{{{AT}}}", "{{server}} in flight"),
            per_server("lab_worker_pool_queue_depth", "queued"),
            Line(f"lab_trial_concurrency{{{AT}}}", "{{server}} connections", dashed=True),
            width=HALF,
            every_second=True,
        ),
    ]


def way() -> list[Panel]:
    """Delay, toxics, and whether the downstream keeps up."""
    return [
        time_series(
            "Delay set on the way",
            "What a call of the downstream should take on average, at least: the delay the "
            "downstream is set to, and the mean that the latency toxics of both streams add. That "
            "is not drawn while nobody can tell it: with a toxic of another type, or one on some "
            "connections only (toxicity below 1). A server that calls the downstream directly "
            "meets no toxic.",
            "s",
            Line("lab_downstream_delay_seconds", "downstream delay", dashed=True),
            Line("lab_toxics_added_latency_seconds", "added by toxics of {{proxy}}"),
        ),
        time_series(
            "Toxics in force",
            "Number of toxics on each proxy, and their attributes in Toxiproxy's units: "
            "latency, jitter, delay of slow_close and timeout in ms; rate in KB/s; sizes "
            "and bytes in bytes; delay of slicer in us. Toxicity is the share of the connections "
            "that have the toxic, drawn where that is not all of them. A proxy that is down shows "
            "as 0 up.",
            "none",
            Line("lab_toxics_in_force", "{{proxy}}: toxics"),
            Line("lab_toxiproxy_proxy_enabled", "{{proxy}}: up"),
            Line(
                or_zero('lab_toxic_attribute{attribute!="toxicity"}', proxy="no toxic"),
                "{{proxy}} {{toxic}} {{stream}} {{attribute}}",
            ),
            Line(
                'lab_toxic_attribute{attribute="toxicity"} != 1',
                "{{proxy}} {{toxic}} {{stream}} toxicity",
            ),
            every_second=True,
        ),
        time_series(
            "Downstream lag",
            "How much later than its set delay the downstream answers: p99 and mean. Above "
            "a few milliseconds the downstream itself limits what is measured.",
            "s",
            Line("downstream:lab_downstream_lag_seconds:p99_6s", "p99"),
            Line(
                "sum(rate(lab_downstream_lag_seconds_sum[$__rate_interval])) / "
                "sum(rate(lab_downstream_lag_seconds_count[$__rate_interval]))",
                "mean",
            ),
        ),
    ]


def memory_and_cpu() -> list[Panel]:
    """What servers and services take of the machine."""
    return [
        heap(HALF),
        time_series(
            "CPU per container",
            "CPU in use by each service, all of its containers: 100 % is one CPU. The "
            "dashed line is what the machine has.",
            "percentunit",
            Line("service:container_cpu_usage:irate8s", "{{service}}"),
            Line("machine:machine_cpu_cores:max", "machine", dashed=True),
            width=HALF,
        ),
        time_series(
            "CPU per request",
            "CPU time that each request costs, a probe's included: of its server, of proxy and "
            "downstream, of the generator (with the driver beside it), and of what observes. "
            "What is not the server's is what the lab itself takes. Told only while a trial "
            "measures: CPU is told a few seconds later than requests, so where a load begins or "
            "ends the two are of different times. A step of the lab that takes CPUs away on "
            "purpose is part of the generator's.",
            "s",
            per_server(f"server:{PER_REQUEST}"),
            Line(f'service:{PER_REQUEST}{{service=~"toxiproxy|downstream"}}', "{{service}}"),
            Line(f'service:{PER_REQUEST}{{service="driver"}}', "generator"),
            Line(
                f'sum(service:{PER_REQUEST}{{service=~"prometheus|cadvisor|grafana|loadgen"}})',
                "observation",
            ),
            width=HALF,
        ),
        time_series(
            "Memory per container",
            "Working set of each service: what its containers hold that the kernel cannot "
            "simply drop.",
            "bytes",
            Line("service:container_memory_working_set_bytes:sum", "{{service}}"),
            width=HALF,
        ),
    ]
