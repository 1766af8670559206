"""Panels of the resources within a server's container: threads, CPU, memory, sockets, files."""

from __future__ import annotations

from grafana_foundation_sdk.builders.timeseries import Panel

from lab_dashboards.panels import HALF, SERVER, THREADS, Line, per_server, time_series


def threads() -> list[Panel]:
    """Who does the work: workers, carriers, loops."""
    return [
        time_series(
            "Worker pool",
            "Workers with a request, requests that wait for one, and the pool's size. Active at "
            "the size with a queue that stays: the pool is the limit, unless what its workers wait "
            "for is: a lock looks the same here (see Threads that wait for locks). The room in the "
            "queue is drawn where the queue is bounded. Only models with a pool.",
            "short",
            Line(f"lab_worker_pool_active{{{SERVER}}} >= 0", "{{server}} active {{connector}}"),
            per_server("lab_worker_pool_queue_depth", "queued"),
            # -1 is what Tomcat tells of a pool that is not its own.
            Line(
                f"lab_worker_pool_size{{{SERVER}}} > 0",
                "{{server}} size {{connector}}",
                dashed=True,
            ),
            Line(
                f"lab_worker_pool_queue_bound{{{SERVER}}} > 0",
                "{{server}} room in the queue",
                dashed=True,
            ),
        ),
        time_series(
            "Carrier threads",
            "Virtual threads on a carrier now, those ready to run that wait for one, and how many "
            "carriers the scheduler wants. Mounted at that number with a queue that stays: the "
            "work needs more CPU than there are carriers, or threads that wait keep theirs, as at "
            "a lock on JDK 21 (see Threads that wait for locks). 0 in models without virtual "
            "threads.",
            "short",
            per_server("lab_virtual_thread_scheduler_mounted", "mounted"),
            per_server("lab_virtual_thread_scheduler_queued", "queued"),
            per_server("lab_virtual_thread_scheduler_parallelism", "parallelism", dashed=True),
        ),
        time_series(
            "Event loops and fronts",
            "Share of the time that each loop's or front's thread was at work (5 s window). At "
            "100 % it is the limit, whatever other CPUs do. A front that is busy and not on a CPU "
            "waits for one: then the CPUs are the limit. Of Vert.x, WebFlux and Quarkus it is the "
            "CPU time of the loop's thread: where CPUs are short a loop is the limit below 100 %, "
            "and a loop that sleeps shows nothing. Only models with loops or fronts.",
            "percentunit",
            per_server("server_loop:lab_event_loop_busy_seconds:rate5s", "{{loop}} busy"),
            Line(
                f"rate(lab_front_busy_seconds_total{{{SERVER}}}[$__rate_interval])",
                "{{server}} {{front}} busy",
            ),
            Line(
                f'rate({THREADS}{{threads="front", {SERVER}}}[$__rate_interval])',
                "{{server}} {{front}} on a CPU",
            ),
            every_second=True,
        ),
        time_series(
            "Event loop queue",
            "Tasks handed to a loop that wait for their turn. Growing: the loop does not keep "
            "up. Only models that count them.",
            "short",
            per_server("lab_event_loop_queue_depth", "{{loop}} queued"),
            every_second=True,
        ),
        time_series(
            "Requests in flight",
            "Requests begun and not yet answered, over all routes; and the open connections of "
            "clients, where the model counts them. With a delay of 200 ms, 5 requests/s for each "
            "request in flight is all there can be (Little's law).",
            "short",
            Line(f"sum by (server) (lab_http_requests_in_flight{{{SERVER}}})", "{{server}}"),
            per_server("lab_http_connections_open", "connections"),
            every_second=True,
        ),
        time_series(
            "Wait for a thread",
            "p95 of the time from hand-over to the start of the work (phase queue, 5 s window), "
            "the longest of all routes: what a full pool or a busy scheduler costs. Quick failures "
            "lower it. The first bucket ends at 1 ms, so 0.95 ms means anything below 1 ms.",
            "s",
            Line(
                "max by (server) (server_route_phase:lab_http_request_seconds:p95_5s"
                f'{{phase="queue", {SERVER}}})',
                "{{server}} queue p95",
            ),
            every_second=True,
        ),
        time_series(
            "Threads that wait for locks, or are pinned",
            "Mean number of threads that wait for a monitor or a lock, and of virtual threads that "
            "keep their carrier while they wait (pinned), by the line of code: seconds waited per "
            "second. A platform thread's wait and a pin count when they end, so a wait longer than "
            "the window shows late and high. The first wait at a line is not drawn: its "
            "counter begins with it. Many at one line while CPUs have room: that lock "
            "is the limit. Nothing is "
            "drawn of a server whose knob lock_watch_ms is 0, its default.",
            "short",
            Line(
                "sum by (server, kind, site) "
                f"(rate(lab_wait_seconds_total{{{SERVER}}}[$__rate_interval])) "
                f"or on (server) label_replace(0 * (lab_lock_watch_ms{{{SERVER}}} > 0), "
                '"kind", "no wait", "", "")',
                "{{server}} {{kind}} {{site}}",
            ),
            width=2 * HALF,
        ),
    ]


def cpu_and_memory() -> list[Panel]:
    """What the JVM computes with."""
    return [
        time_series(
            "Server CPU",
            "CPU in use by the server's container (100 % is one CPU), and what it may use: its "
            "quota (SERVER_CPUS), or the machine. A CPU set narrower than that is not seen here.",
            "percentunit",
            per_server("server:container_cpu_usage:irate8s"),
            per_server("server:container_spec_cpu_limit:max", "limit", dashed=True),
        ),
        time_series(
            "CPU throttling",
            "Share of the scheduler's periods in which the CPU quota stopped the server. Above "
            "a few percent the quota is felt in latency before the average reaches it. 0 "
            "without a quota.",
            "percentunit",
            Line(
                "label_replace(service:container_cpu_cfs_throttled_periods:ratio"
                '{service=~"$server"}, "server", "$1", "service", "(.+)") '
                f"and on (server) server:container_cpu_usage:irate8s{{{SERVER}}}",
                "{{server}}",
            ),
        ),
        time_series(
            "Time in garbage collection",
            "Share of the time that collections took (10 s window). Above 5 % to 10 % memory "
            "costs throughput; near 100 % the heap is too small for what is live.",
            "percentunit",
            per_server("server:jvm_gc_collection_seconds:rate10s"),
        ),
        heap(
            HALF,
            "After GC near the limit, with much time in collections: memory is the bottleneck.",
        ),
        time_series(
            "Memory of the server's container",
            "Resident memory of the JVM: heap, threads' stacks, buffers, code; and the limit of "
            "its container, beyond which the kernel kills it.",
            "bytes",
            per_server("process_resident_memory_bytes", "resident", 'job="jvm"'),
            Line(
                'max by (service) (container_spec_memory_limit_bytes{service=~"$server"} > 0)',
                "{{service}} limit",
                dashed=True,
            ),
            width=HALF,
        ),
    ]


def heap(width: int, reading: str = "") -> Panel:
    """The heap, and how to read it."""
    return time_series(
        "Heap",
        "Heap in use, what collections leave of it (after GC: the survivors of the last young "
        "one, and all that the old generation holds now, dead or alive), and its limit. "
        f"{reading}".rstrip(),
        "bytes",
        per_server("server:jvm_memory_heap_used_bytes:sum", "used"),
        per_server("server:jvm_memory_heap_after_collection_bytes:sum", "after GC"),
        per_server("jvm_memory_max_bytes", "limit", 'area="heap"', dashed=True),
        width=width,
    )


def sockets() -> list[Panel]:
    """What the kernel holds for the server."""
    return [
        time_series(
            "Accept queue",
            "Per second: connections the kernel refused because the accept queue was full "
            "(overflows), all SYNs it dropped (drops), and TCP segments sent again. A client "
            "notices a dropped SYN as a wait of 1 s, 3 s, 7 s.",
            "cps",
            *(
                Line(f"rate(lab_kernel_{name}_total{{{SERVER}}}[$__rate_interval])", legend)
                for name, legend in (
                    ("listen_overflows", "{{server}} overflows"),
                    ("listen_drops", "{{server}} drops"),
                    ("tcp_retransmits", "{{server}} retransmits"),
                )
            ),
            width=HALF,
            every_second=True,
        ),
        time_series(
            "Accept queue length",
            "Connections that the kernel has set up and the server has not yet accepted. At its "
            "BACKLOG the queue is full, and the next ones are overflows. A queue that lasts means "
            "that whoever accepts is too busy to.",
            "short",
            per_server("lab_kernel_accept_queue_length", "waiting"),
            width=HALF,
            every_second=True,
        ),
        time_series(
            "File descriptors",
            "Open descriptors of each process, and the most that it may have (NOFILE). A server "
            "holds one per client and one per downstream call; Toxiproxy two per connection. "
            "Logarithmic.",
            "short",
            per_server("process_open_fds", "open", 'job="jvm"'),
            per_server("process_max_fds", "limit", 'job="jvm"', dashed=True),
            Line('process_open_fds{job=~"toxiproxy|downstream"}', "{{job}} open"),
            Line('process_max_fds{job=~"toxiproxy|downstream"}', "{{job}} limit", dashed=True),
            wide_range=True,
            width=HALF,
        ),
        time_series(
            "Ports",
            "TCP sockets in use in the server's network namespace, and those that wait out "
            "TIME_WAIT. Dashed are the local ports that its connections to one address may have "
            "(SERVER_PORTS): TIME_WAIT near that number means calls open and close a connection "
            "each. Logarithmic.",
            "short",
            per_server("lab_kernel_tcp_sockets_in_use", "in use"),
            per_server("lab_kernel_tcp_time_wait", "TIME_WAIT"),
            per_server("lab_local_ports", "local ports", dashed=True),
            wide_range=True,
            width=HALF,
            every_second=True,
        ),
    ]
