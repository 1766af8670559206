"""What the resources inside a server did in the window.

Each function gives a Standing, or None where this server has no such resource or nothing was
seen of it. A score of HIGH or more takes two things at least: the resource was in use to the
full, and something waited for it (or failed for want of it).
"""

from __future__ import annotations

from lab.judge.verdict.foreign import foreign_pool_unknown, foreign_quotas
from lab.judge.verdict.seen import MOST_OF_R0, Seen, kept, value
from lab.model import Standing

# A resource in use for this share of its capacity is full: samples and edges lose the rest.
FULL = 0.95
# Measured of a bound: the bound explains the measurement.
EXPLAINED = 0.9
# Something waits when this share of the load does, and at least one request.
WAITING_SHARE = 0.02
# A loop at work for this share of the time leaves no room for a burst.
LOOP_FULL = 0.9
# A CPU quota in use so far, or that stopped the server in this share of its periods, binds.
QUOTA_FULL = 0.85
THROTTLED_PERIODS = 0.5
# Share of the window spent in collections: worth a note, and surely felt.
GC_FELT = 0.1
GC_BINDS = 0.25
# Less of it binds where collections leave the heap full; a busy machine stretches pauses.
GC_TIGHT = 0.15
HEAP_TIGHT = 0.8
# Toxiproxy needs two for each connection, and stops accepting for good when it has none.
DESCRIPTORS_FULL = 0.97
# So many of its scrapes hold the number of open files where there are descriptors to count with.
COUNTED = 0.5
# The ephemeral ports of a container of the lab, 10000 to 65535 (compose.yaml).
PORTS = 55_536
PORTS_FULL = 0.9
# Connections that found the accept queue full in the window: fewer are an accident.
OVERFLOWS = 10
# Requests that a bounded queue refused in the window: fewer are an accident.
REFUSED = 100


def worker_pool(seen: Seen) -> Standing | None:
    """Threads of a fixed pool. Utilisation law (Denning, Buzen 1978): X ≤ size / S."""
    mine = {"server": seen.server}
    size = seen.mean("workers", "threads", "lab_worker_pool_size", **mine)
    active = seen.mean("busy workers", "threads", "lab_worker_pool_active", **mine)
    queued = seen.mean(
        "requests waiting for a worker", "requests", "lab_worker_pool_queue_depth", **mine
    )
    if size is None or active is None or size.value <= 0:
        return None
    foreign = seen.record.before.foreign
    if foreign and foreign_pool_unknown(seen) is not None:
        return None
    if queued is None and foreign:
        queued = seen.waiting_beside(active)
    request = {**mine, "route": seen.path}
    wait = seen.mean_time("mean wait", "lab_http_request_seconds", phase="queue", **request)
    held = seen.mean_time("mean hold", "lab_http_request_seconds", phase="service", **request)
    used = max(0.0, min(1.0, active.value / size.value))
    waiting = value(queued) or 0.0
    refused = seen.total(
        "requests refused", "requests", "lab_http_requests_total", outcome="rejected", **request
    )
    # A queue that is bounded refuses what it cannot hold.
    full = used >= FULL and (
        waiting >= max(1.0, WAITING_SHARE * seen.record.plan.concurrency)
        or (value(refused) or 0.0) >= REFUSED
    )
    score, sentence = 0.5 * used, f"the worker pool: {active.value:.0f} of {size.value:.0f} busy"
    if full:
        score = 0.6
        sentence += f", {waiting:.0f} waiting"
        if wait is not None:
            sentence += f" {wait.value:.2f} s each"
        if refused is not None and refused.value >= REFUSED:
            sentence += f", {refused.value:,.0f} refused"
        if seen.r0_s > 0:
            bound = size.value / seen.r0_s
            explained = seen.rps / bound
            if foreign and explained > MOST_OF_R0:
                score = 0.6  # R0 was measured, and it is not what a worker is held for.
            elif explained >= EXPLAINED:
                score = 0.97
            elif held is not None and seen.rps * held.value >= EXPLAINED * size.value:
                # Held longer than predicted: a pool all the same, but something makes it so.
                score = 0.75
            sentence += f"; {size.value:.0f} / {seen.r0_s:g} s = {bound:,.0f} req/s"
            sentence += f", measured {seen.rps:,.0f}"
            if held is not None and explained < EXPLAINED:
                sentence += f" as each was held {held.value:.2f} s"
    return Standing(
        "worker pool",
        used,
        waiting,
        "requests",
        None,
        score,
        sentence,
        kept(size, active, queued, wait, held),
    )


def carrier_threads(seen: Seen) -> Standing | None:
    """Platform threads that carry virtual ones (JEP 444)."""
    mine = {"server": seen.server}
    name = "lab_virtual_thread_scheduler_"
    wanted = seen.mean("carriers", "threads", f"{name}parallelism", **mine)
    mounted = seen.mean("virtual threads running", "threads", f"{name}mounted", **mine)
    queued = seen.mean("virtual threads waiting for a carrier", "threads", f"{name}queued", **mine)
    if (
        wanted is None
        or mounted is None
        or wanted.value <= 0
        or not seen.record.before.setting("virtual_thread_parallelism")
    ):
        return None
    used = max(0.0, min(1.0, mounted.value / wanted.value))
    waiting = value(queued) or 0.0
    cpus = seen.record.before.own_identity.cpus
    score = 0.5 * used
    sentence = (
        f"carrier threads: {mounted.value:.1f} of {wanted.value:.0f} busy, "
        f"{waiting:.0f} virtual threads waiting for one"
    )
    if used >= LOOP_FULL and waiting >= 1:
        # As many as CPUs: then it is the CPUs that are short, and they have their own standing.
        score = 0.95 if wanted.value < cpus else 0.55
        sentence += f", on {cpus} CPUs"
    return Standing(
        "carrier threads",
        used,
        waiting,
        "virtual threads",
        None,
        score,
        sentence,
        kept(wanted, mounted, queued),
    )


def event_loop(seen: Seen) -> Standing | None:
    """Loops' threads. Busy is all time outside the selector: computing, or blocked."""
    name = "lab_event_loop_busy_seconds_total"
    rates = [
        seen.rate(f"loop {loop} busy", "of its time", name, server=seen.server, loop=loop)
        for loop in seen.each("loop", name, server=seen.server)
    ]
    busy = [max(0.0, min(1.0, one.value)) for one in kept(*rates)]
    if not busy or seen.record.before.foreign:
        return None
    depth = seen.mean(
        "tasks waiting for a loop", "tasks", "lab_event_loop_queue_depth", server=seen.server
    )
    cpu = seen.rate(
        "CPU of the server", "CPUs", "container_cpu_usage_seconds_total", service=seen.server
    )
    mean, cpus = sum(busy) / len(busy), seen.record.before.own_identity.cpus
    count = "the one loop" if len(busy) == 1 else f"{len(busy)} loops"
    sentence = f"the event loop: {count} at work {mean:.0%} of the time"
    score = 0.5 * mean
    if mean >= LOOP_FULL:
        blocked = seen.record.before.settings.get("block_the_loop") is True
        # As many loops as CPUs, all at work: the CPUs are short.
        score = 0.95 if blocked or len(busy) < cpus else 0.55
        sentence += f" while the server used {value(cpu) or 0:.1f} of {cpus} CPUs"
        if blocked:
            sentence += " (it waits by blocking the loop)"
        if seen.rps:
            each_ms = mean * len(busy) * 1000 / seen.rps
            sentence += f"; measured {seen.rps:,.0f} req/s = {each_ms:.2f} ms of a loop each"
    return Standing(
        "event loop",
        mean,
        value(depth),
        "tasks",
        None,
        score,
        sentence,
        kept(*rates, depth, cpu),
    )


def server_cpu(seen: Seen) -> Standing | None:
    """The CPU quota of the server's container (cgroup CFS bandwidth control). Without one its
    CPUs are the machine's: see machine.host_cpu."""
    mine = {"service": seen.server}
    used = seen.rate("CPU of the server", "CPUs", "container_cpu_usage_seconds_total", **mine)
    if used is None or (seen.record.before.foreign and len(foreign_quotas(seen)) > 1):
        return None
    quota = seen.peak("CPU quota", "µs", "container_spec_cpu_quota", **mine)
    period = seen.peak("CPU period", "µs", "container_spec_cpu_period", **mine)
    stopped = seen.total("throttled", "s", "container_cpu_cfs_throttled_seconds_total", **mine)
    periods = seen.total("periods", "periods", "container_cpu_cfs_periods_total", **mine)
    hit = seen.total(
        "periods throttled", "periods", "container_cpu_cfs_throttled_periods_total", **mine
    )
    share = hit.value / periods.value if hit and periods and periods.value > 0 else None
    evidence = kept(used, quota, period, stopped, periods, hit)
    limit = quota.value / period.value if quota and period and quota.value > 0 else None
    machine = seen.machine_cpus()
    # A foreign service does not tell how many it sees.
    cpus = seen.record.before.cpus
    most = value(machine) or cpus
    # A limit that was lifted again stays as a quota of all the machine's CPUs.
    if limit is None or (most is not None and limit >= most):
        return Standing(
            "server CPU",
            min(1.0, used.value / cpus) if cpus else None,
            None,
            "",
            None,
            min(0.5, 0.3 * used.value / cpus) if cpus else 0.0,
            f"the server's CPU: {used.value:.2f} of {cpus or 'the machine'}, without a quota",
            evidence,
        )
    usage = min(1.0, used.value / limit)
    sentence = f"the server's CPU: {used.value:.2f} of the {limit:g} CPUs of its quota"
    score = 0.5 * usage
    if share is not None:
        sentence += f", stopped in {share:.0%} of the periods"
        if usage >= QUOTA_FULL or share >= THROTTLED_PERIODS:
            score = 0.96 if share >= THROTTLED_PERIODS and usage >= 0.7 else 0.75
    if seen.rps and score >= 0.6:
        each_ms = used.value / seen.rps * 1000
        sentence += f"; {each_ms:.2f} ms of CPU per request, measured {seen.rps:,.0f} req/s"
    return Standing(
        "server CPU", usage, value(stopped), "s throttled", None, score, sentence, evidence
    )


def garbage_collection(seen: Seen) -> Standing | None:
    """Pauses of the collector, and how full the heap is after them. Cycles of concurrent
    collectors run beside the program and are left out."""
    name = "jvm_gc_collection_seconds_sum"
    pauses = [
        seen.rate(f"in {gc}", "of the time", name, server=seen.server, gc=gc)
        for gc in seen.each("gc", name, server=seen.server)
        if "Cycles" not in gc
    ]
    known = kept(*pauses)
    if not known:
        return None
    share = min(1.0, sum(one.value for one in known))
    left = seen.heap_after_collections()
    most = seen.peak("heap", "bytes", "jvm_memory_max_bytes", server=seen.server, area="heap")
    full = left.value / most.value if left and most and most.value > 0 else None
    sentence = f"garbage collection: {share:.0%} of the time"
    if full is not None and most is not None:
        sentence += f", {full:.0%} of a heap of {most.value / 2**20:.0f} MB in use afterwards"
    score = 0.5 * share
    if share >= GC_BINDS:
        score = 0.93
    elif share >= GC_TIGHT and full is not None and full >= HEAP_TIGHT:
        score = 0.82
    elif share >= GC_FELT:
        score = 0.6 + (share - GC_FELT)
    return Standing(
        "garbage collection",
        share,
        full,
        "of the heap in use after collections",
        None,
        score,
        sentence,
        kept(*known, left, most),
    )


def accept_queue(seen: Seen) -> Standing | None:
    """Connections that the kernel holds until the server accepts them (listen(2), backlog)."""
    mine = {"server": seen.server}
    over = seen.total("found it full", "connections", "lab_kernel_listen_overflows_total", **mine)
    if over is None:
        return None
    drops = seen.total("dropped", "connections", "lab_kernel_listen_drops_total", **mine)
    length = seen.peak("longest seen", "connections", "lab_kernel_accept_queue_length", **mine)
    backlog = seen.record.before.setting("backlog")
    used = min(1.0, length.value / backlog) if length and backlog else None
    score = 0.9 if over.value >= OVERFLOWS else 0.3 if over.value > 0 else 0.0
    sentence = f"the accept queue: {over.value:.0f} connection attempts found it full"
    if backlog:
        sentence += f" (backlog {backlog}); each waits a second or more to be sent again"
    return Standing(
        "accept queue",
        used,
        value(length),
        "connections",
        over.value,
        score,
        sentence,
        kept(over, drops, length),
    )


def file_descriptors(seen: Seen) -> Standing | None:
    """Open files of the server, the proxy and the downstream, each of its own limit."""
    found = [
        one
        for one in (
            _none_left(seen),
            _descriptors(seen, "the server", job="jvm", server=seen.server),
            _descriptors(seen, "Toxiproxy", job="toxiproxy"),
            _descriptors(seen, "the downstream", job="downstream"),
        )
        if one is not None
    ]
    return max(found, key=lambda one: one.score, default=None)


def _descriptors(seen: Seen, who: str, **labels: str) -> Standing | None:
    opened = seen.peak(f"open files of {who}", "files", "process_open_fds", **labels)
    most = seen.peak(f"most files of {who}", "files", "process_max_fds", **labels)
    if opened is None or most is None or most.value <= 0:
        return None
    used = min(1.0, opened.value / most.value)
    return Standing(
        "file descriptors",
        used,
        None,
        "",
        None,
        0.97 if used >= DESCRIPTORS_FULL else 0.4 * used,
        f"file descriptors: {who} has {opened.value:.0f} of {most.value:.0f} open",
        kept(opened, most),
    )


def _none_left(seen: Seen) -> Standing | None:
    """A JVM without a descriptor to spare cannot open /proc to count them: what it reads there
    is missing from scrapes that hold all else."""
    threads = seen.samples("jvm_threads_current", server=seen.server)
    counted = seen.samples("process_open_fds", job="jvm", server=seen.server)
    if not threads.value or counted.value > COUNTED * threads.value:
        return None
    # A JVM that is not the lab's may never tell them, for reasons of its own.
    told = seen.observation.series("process_open_fds", job="jvm", server=seen.server)
    if seen.record.before.foreign and not told:
        return None
    return Standing(
        "file descriptors",
        1.0,
        None,
        "",
        None,
        0.95,
        "file descriptors: the server had none left, not even to count them in /proc",
        (threads, counted),
    )


def ports(seen: Seen) -> Standing | None:
    """Local ports of the server's container for its connections to the downstream."""
    mine = {"server": seen.server}
    gone = seen.peak("in TIME_WAIT", "sockets", "lab_kernel_tcp_time_wait", **mine)
    out = seen.peak(
        "downstream connections", "connections", "lab_downstream_connections_leased", **mine
    )
    if gone is None:
        return None
    used = min(1.0, (gone.value + (value(out) or 0)) / PORTS)
    return Standing(
        "ports",
        used,
        None,
        "",
        None,
        0.9 if used >= PORTS_FULL else 0.4 * used,
        f"ports: {used:.0%} of {PORTS:,} in use or in TIME_WAIT",
        kept(gone, out),
    )
