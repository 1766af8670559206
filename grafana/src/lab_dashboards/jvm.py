"""The dashboard **JVM**: what the Java virtual machine of each server does with memory,
threads and compiled code."""

from __future__ import annotations

from grafana_foundation_sdk.builders.timeseries import Panel
from grafana_foundation_sdk.models.dashboard import Dashboard

from lab_dashboards.boards import JVM
from lab_dashboards.panels import SERVER, THREADS, Line, per_server, time_series
from lab_dashboards.parts import finish, new_dashboard, toxic_marks, trial_marks
from lab_dashboards.variables import server_variable

# Pools with a "usage after collection" are the collected ones: the heap, whatever the collector.
HEAP_POOLS = "on (server, pool) jvm_memory_pool_collection_used_bytes"
COMPILER = f'{THREADS}{{threads="compiler", {SERVER}}}'


def jvm() -> Dashboard:
    """Build it."""
    board = new_dashboard(
        JVM,
        "Memory, collections, threads and compiler of each server's JVM, read every 2 s. A "
        "compiler that is still busy means the JVM is not warm.",
    ).with_variable(server_variable())
    rows = {"Memory": memory(), "Garbage collection": collection(), "Threads and code": threads()}
    return finish(board, rows, trial_marks(), toxic_marks())


def memory() -> list[Panel]:
    """On the heap and off it."""
    return [
        time_series(
            "Heap",
            "Heap in use, what the JVM has taken for it (committed), and its limit. A saw tooth "
            "is normal: it falls at each collection.",
            "bytes",
            per_server("server:jvm_memory_heap_used_bytes:sum", "used"),
            per_server("jvm_memory_committed_bytes", "committed", 'area="heap"'),
            per_server("jvm_memory_max_bytes", "limit", 'area="heap"', dashed=True),
        ),
        time_series(
            "Heap pools",
            "In use, for each pool of the heap: new objects, survivors of collections, old "
            "objects. An old pool that only grows is what ends in a full collection.",
            "bytes",
            Line(
                f"jvm_memory_pool_used_bytes{{{SERVER}}} and {HEAP_POOLS}",
                "{{server}} {{pool}}",
            ),
        ),
        time_series(
            "Heap after collection",
            "What collections leave of the heap: the survivors of the last young one, and all "
            "that the old generation holds now, dead or alive. Beside it what each pool held "
            "after its own last collection; of an old pool that may be long ago, or never (0).",
            "bytes",
            per_server("server:jvm_memory_heap_after_collection_bytes:sum", "left in all"),
            per_server("jvm_memory_pool_collection_used_bytes", "{{pool}}"),
        ),
        time_series(
            "Memory beside the heap",
            "In use for classes (Metaspace, class space) and for compiled code (CodeHeap). It "
            "grows while the JVM warms up, then stays.",
            "bytes",
            Line(
                f"jvm_memory_pool_used_bytes{{{SERVER}}} unless {HEAP_POOLS}",
                "{{server}} {{pool}}",
            ),
        ),
        time_series(
            "Buffers",
            "Memory of NIO buffers outside the heap, direct and mapped: what sockets and files "
            "are read into.",
            "bytes",
            per_server("jvm_buffer_pool_used_bytes", "{{pool}}"),
        ),
        time_series(
            "Resident memory",
            "What the process holds of the machine's memory: heap touched so far, stacks, "
            "buffers, code and the JVM's own. A heap once used stays resident.",
            "bytes",
            per_server("process_resident_memory_bytes", "", 'job="jvm"'),
        ),
    ]


def collection() -> list[Panel]:
    """How often, how long, how much of the time."""
    window = f"{{{SERVER}}}[$__rate_interval]"
    pauses = f'{{gc!~".*Cycles.*", {SERVER}}}[$__rate_interval]'
    return [
        time_series(
            "Time in garbage collection",
            "Share of the time that collections took (10 s window): seconds per second, 100 % "
            "is nothing but collecting.",
            "percentunit",
            per_server("server:jvm_gc_collection_seconds:rate10s"),
        ),
        time_series(
            "Collections",
            "Collections per second, by collector. Many young ones: much is allocated. Any old "
            "one of G1 or Serial: the whole heap was stopped for. Cycles of ZGC and Shenandoah "
            "run beside the program, and are no pauses.",
            "cps",
            Line(f"rate(jvm_gc_collection_seconds_count{window})", "{{server}} {{gc}}"),
        ),
        time_series(
            "Mean pause",
            "Mean length of the collections within the window, by collector; 0 when there was "
            "none. Cycles that run beside the program are left out. The longest pause is longer "
            "than the mean; requests in flight all wait for it.",
            "s",
            Line(
                f"rate(jvm_gc_collection_seconds_sum{pauses}) "
                f"/ (rate(jvm_gc_collection_seconds_count{pauses}) > 0) "
                f"or 0 * rate(jvm_gc_collection_seconds_count{pauses})",
                "{{server}} {{gc}}",
            ),
        ),
    ]


def threads() -> list[Panel]:
    """Platform threads, virtual ones, and the compiler."""
    return [
        time_series(
            "Platform threads",
            "Threads of the operating system now, and the most there were since the JVM "
            "started. Virtual threads are not among them.",
            "short",
            per_server("jvm_threads_current", "now"),
            per_server("jvm_threads_peak", "peak"),
        ),
        time_series(
            "Platform threads by state",
            "What they do: RUNNABLE also counts those in a system call, a socket read for "
            "instance; BLOCKED wait for a monitor, which is contention.",
            "short",
            per_server("jvm_threads_state", "{{state}}", 'state!~"NEW|TERMINATED|UNKNOWN"'),
        ),
        time_series(
            "Virtual threads' scheduler",
            "Virtual threads on a carrier, those that wait for one, the carriers there are, and "
            "the number wanted. 0 in models that start no virtual thread.",
            "short",
            per_server("lab_virtual_thread_scheduler_mounted", "mounted"),
            per_server("lab_virtual_thread_scheduler_queued", "queued"),
            per_server("lab_virtual_thread_scheduler_pool_size", "carriers"),
            per_server("lab_virtual_thread_scheduler_parallelism", "parallelism", dashed=True),
        ),
        time_series(
            "JIT compilation",
            "All compiler threads: 100 % is one of them busy all the time. CPU time is what the "
            "compiler takes from the load: near 0 and steady, and the JVM is warm. On a full "
            "machine a compilation lasts longer than that, as it waits for a CPU too.",
            "percentunit",
            Line(
                f"sum by (server) (rate({COMPILER}[$__rate_interval]))",
                "{{server}} CPU time",
            ),
            Line(
                f"rate(jvm_compilation_time_seconds_total{{{SERVER}}}[$__rate_interval])",
                "{{server}} elapsed",
            ),
        ),
        time_series(
            "Classes",
            "Classes loaded now. Still rising under load: code runs for the first time.",
            "short",
            per_server("jvm_classes_currently_loaded"),
        ),
        time_series(
            "CPU of the process",
            "CPU in use by the JVM as it counts itself (100 % is one CPU): requests, "
            "collections and compiler together.",
            "percentunit",
            Line(
                f'rate(process_cpu_seconds_total{{job="jvm", {SERVER}}}[$__rate_interval])',
                "{{server}}",
            ),
        ),
    ]
