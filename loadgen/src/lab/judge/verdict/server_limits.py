"""The limits of a server that are not its threads: CPU, memory, and what its kernel grants it.

Each function gives a Standing, or None where this server has no such resource or nothing is known
about it. A score of STRONG_FROM or more takes at least two things: the resource was full, and
something waited for it (or failed for want of it).
"""

from __future__ import annotations

from itertools import accumulate, pairwise

from lab.judge.gates.trial import HOST_FULL
from lab.judge.thread_times import RUN
from lab.judge.verdict.evidence import SeenTrial, kept, value
from lab.judge.verdict.foreign import foreign_quotas
from lab.judge.verdict.machine import NEARLY_FULL
from lab.model import Evidence, Standing

# A CPU quota binds when this share of it is used: a period (100 ms) in which the server waits
# leaves some of it, which later periods do not get.
QUOTA_FULL = 0.85
# It also binds when it stopped the server in half of its periods: then most requests met a stop,
# as one of 200 ms spans two periods. With less than 70 % in use the stops were bursts.
THROTTLED_PERIODS = 0.5
THROTTLED_USE = 0.7
# Shares of what limits (time, or CPU time) that collections took. Without the first a server does
# 1.11 times as much, without the next 1.33 times. In between it may be the cause.
GC_FELT = 0.1
GC_BINDS = 0.25
# A smaller share (1.18 times) binds where collections leave the heap full: then a larger heap makes
# them fewer. With 80 % in use G1 keeps half of the rest in reserve (G1ReservePercent=10).
GC_TIGHT = 0.15
HEAP_TIGHT = 0.8
GC_CPU = "CPU of the collector's threads"
# One end of a JVM may be anything. One that ends again and again under a load has too little memory
# for it: it leaves by ExitOnOutOfMemoryError, or the kernel kills it. It does so between two
# scrapes, so no gauge shows its heap full.
ENDS = 2
# Toxiproxy needs two for each connection, and stops accepting for good when it has none: the last
# 3 % are spikes between two scrapes.
DESCRIPTORS_FULL = 0.97
# A JVM with a descriptor left to count its open files tells them in more than this share of
# scrapes.
COUNTED = 0.5
# The local ports of a container that does not tell them: 10000 to 65535 (compose.yaml).
PORTS = 55_536
# The kernel looks for a free port from a random one on: from 90 % on that takes ten looks and more.
PORTS_FULL = 0.9
# Fewer connections that found the accept queue full in the window are an accident: each costs one
# client a second, and p95 of 200 connections is the tenth slowest.
OVERFLOWS = 10


def server_cpu(seen: SeenTrial) -> Standing | None:
    """The CPU quota of the server's container (cgroup CFS bandwidth control), or its CPU set. A
    container with neither uses the machine's CPUs: see machine.host_cpu.

    Nothing counts what waits for the CPUs of a set. One that is full has no time left, as of the
    machine's."""
    mine = {"service": seen.server}
    used = seen.rate("CPU of the server", "CPUs", "container_cpu_usage_seconds_total", **mine)
    if used is None or (seen.record.before.foreign and len(foreign_quotas(seen)) > 1):
        return None
    limit, quota = _quota(seen)
    stopped = seen.total("throttled", "s", "container_cpu_cfs_throttled_seconds_total", **mine)
    periods = seen.total("periods", "periods", "container_cpu_cfs_periods_total", **mine)
    hit = seen.total(
        "periods throttled", "periods", "container_cpu_cfs_throttled_periods_total", **mine
    )
    share = hit.value / periods.value if hit and periods and periods.value > 0 else None
    evidence = kept(used, *quota, stopped, periods, hit)
    # A foreign service does not tell how many CPUs it sees.
    cpus = seen.record.before.cpus
    own = _own_set(seen)
    if limit is None and own is not None:
        share = min(1.0, used.value / own)
        return Standing(
            "server CPU",
            utilisation=share,
            score=0.92 if share >= HOST_FULL else 0.7 if share >= NEARLY_FULL else 0.5 * share,
            sentence=f"the server's CPU: {used.value:.2f} of the {own} CPUs of its "
            f"{'machine' if _own_machine(seen) else 'set'}",
            evidence=evidence,
        )
    if limit is None:
        return Standing(
            "server CPU",
            utilisation=min(1.0, used.value / cpus) if cpus else None,
            score=min(0.5, 0.3 * used.value / cpus) if cpus else 0.0,
            sentence=f"the server's CPU: {used.value:.2f} of {cpus or 'the machine'}, "
            "without a quota",
            evidence=evidence,
        )
    usage = min(1.0, used.value / limit)
    sentence = f"the server's CPU: {used.value:.2f} of the {limit:g} CPUs of its quota"
    score = 0.5 * usage
    if share is not None:
        sentence += f", stopped in {share:.0%} of the periods"
        if usage >= QUOTA_FULL or share >= THROTTLED_PERIODS:
            score = 0.96 if share >= THROTTLED_PERIODS and usage >= THROTTLED_USE else 0.75
    if seen.rps and score >= 0.6:
        each_ms = used.value / seen.rps * 1000
        sentence += f"; {each_ms:.2f} ms of CPU per request, measured {seen.rps:,.0f} req/s"
    return Standing(
        "server CPU",
        utilisation=usage,
        saturation=value(stopped),
        waiting="s throttled",
        score=score,
        sentence=sentence,
        evidence=evidence,
    )


def garbage_collection(seen: SeenTrial) -> Standing | None:
    """What the collector takes, and how full the heap is after it.

    Where CPUs are short it takes CPU time, all its threads together. A pause is no measure of it
    there: it lasts longer, because the collector waits for CPUs too. Where CPUs are not short it
    takes time: the pauses. Cycles of concurrent collectors run beside the program, and are no
    pauses. `takes_cpus` says which of the two was used. A JVM that ended at least ENDS times,
    which are its `errors`, had no memory left if a scrape met its heap full, and probably so if
    none did: scrapes are a second apart and more, and a heap fills faster."""
    ends = _ends(seen)
    used = seen.peak("heap", "bytes", "jvm_memory_used_bytes", server=seen.server, area="heap")
    most = seen.peak("most heap", "bytes", "jvm_memory_max_bytes", server=seen.server, area="heap")
    if ends is not None and ends.value >= ENDS:
        taken = used.value / most.value if used and most and most.value > 0 else 0.0
        said = "which tells why" if taken >= HEAP_TIGHT else "and nothing tells why: see its log"
        return Standing(
            "garbage collection",
            errors=ends.value,
            # Weak in the end, as a trial whose JVM ended is invalid.
            score=0.95,
            sentence=f"the heap: the JVM ended {ends.value:.0f} times, with at most {taken:.0%} "
            f"of it seen in use, {said}",
            evidence=kept(ends, used, most),
        )
    name = "jvm_gc_collection_seconds_sum"
    pauses = [
        seen.rate(f"in {gc}", "of the time", name, server=seen.server, gc=gc)
        for gc in seen.each("gc", name, server=seen.server)
        if "Cycles" not in gc
    ]
    known = kept(*pauses)
    if not known:
        return None
    share, said = min(1.0, sum(one.value for one in known)), "of the time"
    cpu = seen.rate(GC_CPU, "CPUs", RUN, server=seen.server, threads="collector")
    cpus = _short_cpus(seen)
    if cpus is not None and cpu is not None:
        said = f"of {cpus:g} CPUs (pauses: {share:.0%} of the time)"
        share = min(1.0, cpu.value / cpus)
    elif cpus is not None:
        # The pauses are all there is, and lasted longer than they need.
        said += ", on CPUs that were short"
    left = seen.heap_after_collections()
    full = left.value / most.value if left and most and most.value > 0 else None
    sentence = f"garbage collection: {share:.0%} {said}"
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
        utilisation=share,
        saturation=full,
        waiting="of the heap in use after collections",
        score=score,
        sentence=sentence,
        evidence=kept(*known, cpu if cpus is not None else None, left, most),
    )


def takes_cpus(collection: Standing) -> bool:
    """Whether the standing of garbage collection explains full CPUs: it rests on CPU time, not on
    pauses, or on JVMs that start again and again."""
    return bool(collection.errors) or any(one.what == GC_CPU for one in collection.evidence)


def _ends(seen: SeenTrial) -> Evidence | None:
    """How often the server's JVM was followed by a later one, as far as scrapes met them. None of a
    service that is not the lab's: it may be several JVMs behind one name."""
    name = "process_start_time_seconds"
    found = seen.observation.series(name, job="jvm", server=seen.server)
    starts = [start for series in found for start in series.values]
    if not starts or seen.record.before.foreign:
        return None
    later = [now for before, now in pairwise(accumulate(starts, max)) if now > before]
    query = f'changes({name}{{job="jvm", server="{seen.server}"}}[{seen.window_s:.0f}s])'
    return Evidence("ends of its JVM", len(later), "ends", query)


def _short_cpus(seen: SeenTrial) -> float | None:
    """How many CPUs the server shares or is given, where they are short: those of its quota or its
    set, else those of a crowded machine. None where they are not short."""
    limit = _quota(seen)[0] or _own_set(seen)
    used = seen.observation.increase("container_cpu_usage_seconds_total", service=seen.server)
    if limit is not None and used is not None and used >= THROTTLED_USE * limit * seen.window_s:
        return limit
    return _machine_cpus(seen) if seen.crowded else None


def _quota(seen: SeenTrial) -> tuple[float | None, tuple[Evidence, ...]]:
    """The CPUs of the quota of the server's container, and its evidence. None without a quota, and
    for one of all CPUs it may use, as remains after a limit was lifted."""
    quota = seen.peak("CPU quota", "µs", "container_spec_cpu_quota", service=seen.server)
    period = seen.peak("CPU period", "µs", "container_spec_cpu_period", service=seen.server)
    evidence = kept(quota, period)
    if quota is None or period is None or quota.value <= 0 or period.value <= 0:
        return None, evidence
    limit, most = quota.value / period.value, _own_set(seen) or _machine_cpus(seen)
    return (limit if most is None or limit < most else None), evidence


def _own_set(seen: SeenTrial) -> int | None:
    """The CPUs of the set that the server's container is kept to, or of its machine where the lab
    is on several; None where it shares all CPUs with the rest of the lab."""
    own, all_of_them = seen.record.before.cpu_set, value(seen.machine_cpus())
    if own is not None and _own_machine(seen):
        return own
    return own if own is not None and all_of_them is not None and own < all_of_them else None


def _own_machine(seen: SeenTrial) -> bool:
    """Whether the lab was on several machines: then cAdvisor's series say of which one they are."""
    mine = seen.observation.series("container_cpu_usage_seconds_total", service=seen.server)
    return any("machine" in one.labels for one in mine)


def _machine_cpus(seen: SeenTrial) -> float | None:
    """The CPUs of the machine, or those that the server sees."""
    return value(seen.machine_cpus()) or seen.record.before.cpus


def accept_queue(seen: SeenTrial) -> Standing | None:
    """The connections that the kernel holds until the server accepts them (listen(2), backlog)."""
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
        utilisation=used,
        saturation=value(length),
        waiting="connections",
        errors=over.value,
        score=score,
        sentence=sentence,
        evidence=kept(over, drops, length),
    )


def file_descriptors(seen: SeenTrial) -> Standing | None:
    """The open files of the server, the proxy and the downstream, each against its own limit."""
    found = kept(
        _none_left(seen),
        _descriptors(seen, "the server", job="jvm", server=seen.server),
        _descriptors(seen, "Toxiproxy", job="toxiproxy"),
        _descriptors(seen, "the downstream", job="downstream"),
    )
    return max(found, key=lambda one: one.score, default=None)


def _descriptors(seen: SeenTrial, who: str, **labels: str) -> Standing | None:
    opened = seen.peak(f"open files of {who}", "files", "process_open_fds", **labels)
    most = seen.peak(f"most files of {who}", "files", "process_max_fds", **labels)
    if opened is None or most is None or most.value <= 0:
        return None
    used = min(1.0, opened.value / most.value)
    return Standing(
        "file descriptors",
        utilisation=used,
        score=0.97 if used >= DESCRIPTORS_FULL else 0.4 * used,
        sentence=f"file descriptors: {who} has {opened.value:.0f} of {most.value:.0f} open",
        evidence=kept(opened, most),
    )


def _none_left(seen: SeenTrial) -> Standing | None:
    """A JVM without a spare descriptor cannot open /proc to count its open files. That count is
    missing from its scrapes, which hold everything else."""
    threads = seen.samples("jvm_threads_current", server=seen.server)
    counted = seen.samples("process_open_fds", job="jvm", server=seen.server)
    if not threads.value or counted.value > COUNTED * threads.value:
        return None
    # A JVM that is not the lab's may never tell its open files, for reasons of its own.
    told = seen.observation.series("process_open_fds", job="jvm", server=seen.server)
    if seen.record.before.foreign and not told:
        return None
    return Standing(
        "file descriptors",
        utilisation=1.0,
        score=0.95,
        sentence="file descriptors: the server had none left, not even to count them in /proc",
        evidence=(threads, counted),
    )


def ports(seen: SeenTrial) -> Standing | None:
    """The local ports of the server's container for connections to the downstream. One in TIME_WAIT
    is free for the next call after a second (ip-sysctl, tcp_tw_reuse=1, as compose.yaml has it). So
    what is taken and what is in TIME_WAIT fill the ports only where calls fail as well."""
    mine = {"server": seen.server}
    gone = seen.peak("in TIME_WAIT", "sockets", "lab_kernel_tcp_time_wait", **mine)
    out = seen.peak(
        "downstream connections", "connections", "lab_downstream_connections_leased", **mine
    )
    if gone is None or out is None:
        return None
    most = seen.record.before.local_ports or PORTS
    used = min(1.0, out.value / most)
    failed = seen.rate("failed", "calls/s", "lab_downstream_calls_total", outcome="error", **mine)
    score = 0.9 if used >= PORTS_FULL else 0.4 * used
    if failed and failed.value > 0 and out.value + gone.value >= PORTS_FULL * most:
        score = max(score, 0.7)
    return Standing(
        "ports",
        utilisation=used,
        score=score,
        sentence=f"ports: {used:.0%} of {most:,} in use, and {gone.value:,.0f} in TIME_WAIT",
        evidence=kept(gone, out),
    )
