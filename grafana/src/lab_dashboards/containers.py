"""The dashboard **Containers**: what every service of the lab takes of the machine."""

from __future__ import annotations

from grafana_foundation_sdk.builders.timeseries import Panel
from grafana_foundation_sdk.models.dashboard import Dashboard

from lab_dashboards.boards import CONTAINERS
from lab_dashboards.panels import HALF, Line, time_series
from lab_dashboards.parts import finish, new_dashboard, toxic_marks, trial_marks
from lab_dashboards.variables import service_variable

SERVICE = 'service=~"$service"'
SHARED = (
    "Toxiproxy and the downstream use the interface of downstream-network, and what passes between "
    "the two does not cross it. On several machines each has an interface of its own."
)


def containers() -> Dashboard:
    """Build it."""
    board = new_dashboard(
        CONTAINERS,
        "CPU, memory and network of every service, all of its containers, as cAdvisor counts "
        "them. Everything shares one machine: what one takes, another lacks.",
    ).with_variable(service_variable())
    rows = {"CPU": cpu(), "Memory": memory(), "Network": network()}
    return finish(board, rows, trial_marks(".+"), toxic_marks())


def per_service(metric: str) -> Line:
    """A metric of each chosen service."""
    return Line(f"{metric}{{{SERVICE}}}", "{{service}}")


def cpu() -> list[Panel]:
    """In use, and held back."""
    return [
        time_series(
            "CPU",
            "CPU in use by each service: 100 % is one CPU. The dashed line is what the machine "
            "has, and host what anybody uses of it, the lab or not.",
            "percentunit",
            per_service("service:container_cpu_usage:irate8s"),
            Line("machine:host_cpu_usage:ratio * machine:machine_cpu_cores:max", "host"),
            Line("machine:machine_cpu_cores:max", "machine", dashed=True),
        ),
        time_series(
            "Throttled periods",
            "Share of the scheduler's periods in which a CPU quota stopped the service; 0 "
            "without a quota.",
            "percentunit",
            per_service("service:container_cpu_cfs_throttled_periods:ratio"),
        ),
        time_series(
            "Throttled time",
            "Seconds per second for which a CPU quota stopped the service, summed over CPUs: "
            "above 100 % where it was stopped on several at once. 0 without a quota.",
            "percentunit",
            per_service("service:container_cpu_cfs_throttled_seconds:irate8s"),
        ),
    ]


def memory() -> list[Panel]:
    """Held, and allowed."""
    return [
        time_series(
            "Memory",
            "Working set of each service: what its containers hold that the kernel cannot "
            "simply drop.",
            "bytes",
            per_service("service:container_memory_working_set_bytes:sum"),
        ),
        time_series(
            "Anonymous memory",
            "Resident memory that no file stands behind (heap, stacks), for each service: it "
            "cannot be dropped at all.",
            "bytes",
            Line(f"sum by (service) (container_memory_rss{{{SERVICE}}})", "{{service}}"),
        ),
        time_series(
            "Memory limit used",
            "Working set of each container as a share of its limit; at 100 % the kernel kills "
            "it. Beside it what all of the lab holds of the machine's memory.",
            "percentunit",
            Line(
                f"max by (service) (container_memory_working_set_bytes{{{SERVICE}}} "
                f"/ (container_spec_memory_limit_bytes{{{SERVICE}}} > 0))",
                "{{service}}",
            ),
            Line(
                "sum(service:container_memory_working_set_bytes:sum) "
                "/ machine:machine_memory_bytes:max",
                "the lab, of the machine",
            ),
        ),
    ]


def network() -> list[Panel]:
    """In, out, and lost."""
    return [
        time_series(
            "Received",
            f"Bytes per second into each service, all of its containers. {SHARED}",
            "Bps",
            per_service("service:container_network_receive_bytes:irate8s"),
            width=HALF,
        ),
        time_series(
            "Sent",
            f"Bytes per second out of each service, all of its containers. {SHARED}",
            "Bps",
            per_service("service:container_network_transmit_bytes:irate8s"),
            width=HALF,
        ),
        time_series(
            "Packets dropped",
            "Packets per second that the containers' interfaces dropped, in and out: a queue of "
            f"the kernel was full. 0 is what to expect. {SHARED}",
            "pps",
            *(
                Line(
                    f"sum by (service) (rate(container_network_{way}_packets_dropped_total"
                    f'{{{SERVICE},service!~"toxiproxy|downstream"}}[$__rate_interval])) or '
                    f"sum by (service) (rate(container_network_{way}_packets_dropped_total"
                    f'{{service=~"toxiproxy|downstream",machine!=""}}[$__rate_interval]))',
                    f"{{{{service}}}} {name}",
                )
                for way, name in (("receive", "in"), ("transmit", "out"))
            ),
            width=HALF,
        ),
    ]
