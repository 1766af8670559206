"""Panels of the resources around a server: its calls, what lies behind it, what loads it."""

from __future__ import annotations

from grafana_foundation_sdk.builders.timeseries import Panel

from lab_dashboards.panels import SERVER, Line, or_zero, per_server, time_series

# The container that holds the network namespace of both.
_NETWORK = 'service="downstream-network"'


def calls() -> list[Panel]:
    """From the server to what it calls."""
    return [
        time_series(
            "Downstream connection pool",
            "Calls that hold a connection, calls that wait for one, and the cap "
            "(SERVER_DOWNSTREAM_CONNECTIONS). Leased at the cap with calls pending: the pool is "
            "the limit. Logarithmic.",
            "short",
            per_server("lab_downstream_connections_leased", "leased"),
            per_server("lab_downstream_connections_pending", "pending"),
            per_server("lab_downstream_connections_cap", "cap", dashed=True),
            wide_range=True,
        ),
        time_series(
            "Time of a downstream call",
            "p95 of a call as the server sees it (5 s window): waiting for a connection (pending), "
            "and the call itself. The delay that is set and the toxics (while their mean is known: "
            "see Delay set on the way on Lab) are the least it takes on average. A server that "
            "calls the downstream directly meets no toxic, so for it that line is too high while "
            "one is in force. Quick failures lower it (see Timeouts and failed calls).",
            "s",
            per_server("server_phase:lab_downstream_call_seconds:p95_5s", "{{phase}}"),
            Line(
                "sum(lab_downstream_delay_seconds) + sum(lab_toxics_added_latency_seconds)",
                "delay set and toxics",
                dashed=True,
            ),
        ),
        time_series(
            "Timeouts and failed calls",
            "Per second: downstream calls that timed out, were refused or failed, calls made once "
            "more as the downstream had closed the kept connection (where the server sees it), and "
            "requests that the client gave up. Timeouts set an end to latency, not to the load.",
            "reqps",
            per_server(
                "server_outcome:lab_downstream_calls:rate5s",
                "downstream call: {{outcome}}",
                'outcome!="ok"',
            ),
            Line(
                f"rate(lab_downstream_retries_total{{{SERVER}}}[$__rate_interval])",
                "{{server}} downstream call: once more",
            ),
            Line(
                or_zero(
                    "sum by (server) (server_route_source_outcome:lab_client_requests:rate5s"
                    f'{{outcome="timeout", {SERVER}}})',
                    server="no",
                ),
                "{{server}} client: timeout",
            ),
            every_second=True,
        ),
    ]


def behind() -> list[Panel]:
    """What lies behind the server."""
    return [
        time_series(
            "CPU of Toxiproxy and downstream",
            "CPU in use by the two (100 % is one CPU). Near the machine's share they limit what "
            "is measured, not the server.",
            "percentunit",
            Line(
                'service:container_cpu_usage:irate8s{service=~"toxiproxy|downstream"}',
                "{{service}}",
            ),
            Line("machine:machine_cpu_cores:max", "machine", dashed=True),
        ),
        time_series(
            "Traffic of Toxiproxy",
            "Bytes per second in and out of the network namespace of Toxiproxy and the downstream, "
            "all connections; what passes between the two is not in it. (Toxiproxy's own byte "
            "counters move only when a connection closes.)",
            "Bps",
            Line(f"service:container_network_receive_bytes:irate8s{{{_NETWORK}}}", "in"),
            Line(f"service:container_network_transmit_bytes:irate8s{{{_NETWORK}}}", "out"),
        ),
        time_series(
            "Connection set-up",
            "Connections in the accept queues of Toxiproxy and of the downstream, the most of 2 s, "
            "and connections per second that got out of them. Toxiproxy sets one up after another: "
            "calls wait while many stand there. A connection that found a queue full is tried "
            "again after a second or more. Kept connections set up none.",
            "short",
            Line("lab_path_accept_queue_length", "queue of {{listener}}"),
            Line(
                "rate(lab_downstream_accepted_connections_total[$__rate_interval])",
                "set up per second",
            ),
            Line(
                "rate(lab_path_listen_overflows_total[$__rate_interval])",
                "queue full, per second",
            ),
        ),
        time_series(
            "Goroutines of Toxiproxy",
            "About five for each connection without toxics, two more for each toxic: how much "
            "the proxy has to schedule.",
            "short",
            Line('go_goroutines{job="toxiproxy"}', "goroutines"),
        ),
        time_series(
            "Calls in the downstream",
            "Requests the downstream holds now, each for its set delay.",
            "short",
            Line("lab_downstream_in_flight", "in flight"),
        ),
        time_series(
            "Rate of the downstream",
            "Requests per second the downstream answered, from all servers: what really got "
            "through, beside what clients were answered. Calls that were given up are not in it.",
            "reqps",
            Line("rate(lab_downstream_requests_total[$__rate_interval])", "requests"),
        ),
        time_series(
            "Downstream lag",
            "p99 of how much later than its set delay the downstream answers (6 s window). "
            "Above a few milliseconds the downstream itself limits what is measured.",
            "s",
            Line("downstream:lab_downstream_lag_seconds:p99_6s", "p99"),
        ),
    ]


def around() -> list[Panel]:
    """What makes the load, and the machine that all share."""
    return [
        time_series(
            "Generator CPU",
            "CPU in use by the driver with its load engine, and by the agent, which may probe "
            "(100 % is one CPU). An engine at its share of the machine sends late: then the "
            "generator is the limit and the trial is no measurement of the server. "
            "A step of the lab that takes CPUs away on purpose does so in the driver's container.",
            "percentunit",
            Line(
                or_zero(
                    'service:container_cpu_usage:irate8s{service="driver"}',
                    service="no driver",
                ),
                "{{service}}",
            ),
            Line('service:container_cpu_usage:irate8s{service="loadgen"}', "agent"),
            Line("machine:machine_cpu_cores:max", "machine", dashed=True),
        ),
        time_series(
            "Clients",
            "Requests that the load has sent and not seen answered, those due that wait for a free "
            "connection, and its open connections, where its engine tells that while it runs; "
            "dashed, the connections of the trial. Or else the probe's in flight, and those per "
            "second that it did not send because too many were out. Skipped above 0: the live "
            "client-side latency is too low.",
            "short",
            Line(
                or_zero(
                    f"sum by (server) (lab_client_requests_in_flight{{{SERVER}}})",
                    server="no client",
                ),
                "{{server}} in flight",
            ),
            Line(
                f"sum by (server) (lab_client_requests_waiting{{{SERVER}}})",
                "{{server}} waiting",
            ),
            Line(
                f"sum by (server) (lab_client_connections_open{{{SERVER}}})",
                "{{server}} connections",
            ),
            Line(
                f"sum by (server) (lab_trial_concurrency{{{SERVER}}})",
                "{{server}} connections of the trial",
                dashed=True,
            ),
            Line(
                or_zero(
                    "sum by (server) "
                    f"(rate(lab_client_requests_skipped_total{{{SERVER}}}[$__rate_interval]))",
                    server="no probe",
                ),
                "{{server}} skipped per second",
            ),
            every_second=True,
        ),
        time_series(
            "Host CPU",
            "Share of the machine's CPUs in use by anybody, and by the lab's containers alone. "
            "At 100 % every latency holds a wait for the CPU; the gap is somebody else's work. "
            "A step of the lab that takes CPUs away on purpose is part of the lab's share.",
            "percentunit",
            Line("machine:host_cpu_usage:ratio", "host"),
            Line(
                "sum(service:container_cpu_usage:irate8s) / machine:machine_cpu_cores:max",
                "the lab",
            ),
            Line("vector(1)", "all CPUs", dashed=True),
        ),
    ]
