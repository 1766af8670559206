"""The threads that a server works with: a pool, carriers of virtual threads, event loops, fronts.

Each function gives a Standing, or None where this server has no such threads or nothing is known
about them. A score of STRONG_FROM or more takes that all threads were busy, and that something
waited for them (or failed for want of them). Nothing counts what waits for loops and fronts.
"""

from __future__ import annotations

from lab.judge.predict import pinned_carriers, release_of
from lab.judge.thread_times import RUN
from lab.judge.verdict.evidence import (
    EXPLAINED,
    FULL,
    MOST_OF_R0,
    WAITING_SHARE,
    SeenTrial,
    kept,
    value,
)
from lab.judge.verdict.foreign import foreign_pool_unknown
from lab.judge.verdict.load import FEW_ERRORS
from lab.model import Evidence, Standing
from lab.model.verdict import WEAK_FROM

# A loop, front or carrier at work for this share of the time leaves no room for a burst: an arrival
# at random already waits 4.5 times as long as it is served (M/D/1).
LOOP_FULL = 0.9
# Fewer requests that a bounded queue refused in the window are a burst: 1 % of the answers of the
# slowest load in the docs (1,000/s for 10 s).
REFUSED = 100
# A pool that nobody shows is inferred where the CPUs were busy for less than this share of the
# time, and where at least so many times as many requests waited as were worked on.
CPUS_LEFT, QUEUED = 0.7, 1.0
# From this JDK on a JVM tells of its carriers (VirtualThreadSchedulerMXBean).
TELLS_OF_CARRIERS = 24


def worker_pool(seen: SeenTrial) -> Standing | None:
    """Threads of a fixed pool. Utilisation law (Denning, Buzen 1978): X ≤ size / S.

    A gauge shows the pool at a moment every 2 s, which are too few in a short window. The answers
    per second times the time of each (Little's law) is the mean of all moments, but leaves out
    requests that have not ended. The greater of the two counts."""
    mine = {"server": seen.server}
    request = {**mine, "route": seen.call.route.path}
    wait = seen.mean_time("mean wait", "lab_http_request_seconds", phase="queue", **request)
    held = seen.mean_time("mean hold", "lab_http_request_seconds", phase="service", **request)
    refused = seen.total(
        "requests refused", "requests", "lab_http_requests_total", outcome="rejected", **request
    )
    # A refusal is an answer, but its request neither waited nor was worked on.
    refused_rps = (value(refused) or 0.0) / seen.window_s
    worked_rps = max(0.0, seen.reading.achieved_rps - refused_rps)
    size = seen.mean("workers", "threads", "lab_worker_pool_size", **mine)
    active = _or_by_time(
        seen.mean("busy workers", "threads", "lab_worker_pool_active", **mine), worked_rps, held
    )
    queued = _or_by_time(
        seen.mean(
            "requests waiting for a worker", "requests", "lab_worker_pool_queue_depth", **mine
        ),
        worked_rps,
        wait,
    )
    foreign = seen.record.before.foreign
    if foreign and foreign_pool_unknown(seen) is not None:
        return _inferred_pool(seen)
    if size is None or active is None or size.value <= 0:
        return None
    if queued is None and foreign:
        queued = seen.waiting_beside(active)
    used = max(0.0, min(1.0, active.value / size.value))
    waiting = value(queued) or 0.0
    # A queue that is bounded refuses what it cannot hold.
    full = used >= FULL and (
        waiting >= max(1.0, WAITING_SHARE * seen.record.plan.concurrency)
        or (value(refused) or 0.0) >= REFUSED
    )
    score = 0.5 * used
    sentence = f"the worker pool: {used * size.value:.0f} of {size.value:.0f} busy"
    if full:
        sentence += f", {waiting:.0f} waiting"
        if wait is not None:
            sentence += f" {wait.value:.2f} s each"
        if refused is not None and refused.value >= REFUSED:
            sentence += f", {refused.value:,.0f} refused"
        score, explanation = _explained(seen, size.value, value(held))
        sentence += explanation
    return Standing(
        "worker pool",
        utilisation=used,
        saturation=waiting,
        waiting="requests",
        score=score,
        sentence=sentence,
        evidence=kept(size, active, queued, wait, held),
    )


def _inferred_pool(seen: SeenTrial) -> Standing | None:
    """A pool that nobody shows, of a foreign service: X · R0 requests were worked on at a time
    (Little's law), far fewer than were in flight, and neither the CPUs nor the load kept it from
    more. None where one of that is not so, or not known."""
    usage, r0_s = seen.record.usage, seen.r0_s
    if r0_s <= 0 or usage.host_taken is None or usage.host_taken >= CPUS_LEFT:
        return None
    if seen.at_load_bound >= EXPLAINED or seen.error_share >= FEW_ERRORS:
        return None
    law = "Little's law: achieved_rps × R0"
    at_a_time = Evidence("requests worked on at a time", seen.rps * r0_s, "requests", law)
    waiting = seen.waiting_beside(at_a_time)
    if waiting is None or waiting.value < QUEUED * at_a_time.value:
        return None
    here = seen.observation.series("container_cpu_usage_seconds_total", service=seen.server)
    elsewhere = "" if here else "; or its own CPUs, which the lab does not see"
    return Standing(
        "worker pool",
        saturation=waiting.value,
        waiting="requests",
        score=WEAK_FROM,
        sentence=(
            f"it behaves like a pool: about {float(f'{at_a_time.value:.2g}'):.0f} at a time, "
            f"{seen.rps:,.0f} req/s × {r0_s:g} s of R0, with {waiting.value:,.0f} more in flight "
            f"and CPUs of this machine {usage.host_taken:.0%} busy; of threads, of connections to "
            f"what it calls, or of what that does at a time{elsewhere}"
        ),
        evidence=(at_a_time, waiting),
    )


def _or_by_time(
    gauge: Evidence | None, worked_rps: float, each: Evidence | None
) -> Evidence | None:
    """The gauge, or how many there were on average by the time of `each`, where that is more."""
    if gauge is None or each is None:
        return gauge
    there = worked_rps * each.value
    source = f"Little's law: achieved_rps, less what was refused, × {each.what}"
    return gauge if gauge.value >= there else Evidence(gauge.what, there, gauge.unit, source)


def _explained(seen: SeenTrial, size: float, held_s: float | None) -> tuple[float, str]:
    """The score of a full pool, and how far its bound explains the measured rate."""
    if seen.hold_s <= 0:
        return 0.6, ""
    bound = size / seen.hold_s
    explained, score = seen.rps / bound, 0.6
    if seen.record.before.foreign and explained > MOST_OF_R0:
        pass  # A worker is held for less than the R0 that was measured.
    elif explained >= EXPLAINED:
        score = 0.97
    elif held_s is not None and seen.rps * held_s >= EXPLAINED * size:
        score = 0.75  # The pool is full, but something holds its workers longer than predicted.
    text = f"; {size:.0f} / {seen.hold_s:g} s = {bound:,.0f} req/s, measured {seen.rps:,.0f}"
    if held_s is not None and explained < EXPLAINED:
        text += f" as each was held {held_s:.2f} s"
    return score, text


def carrier_threads(seen: SeenTrial) -> Standing | None:
    """Platform threads that carry virtual ones (JEP 444)."""
    pinned = pinned_carriers(seen.call, seen.record.before)
    if pinned:
        return _pinned(seen, pinned)
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
        # With as many carriers as CPUs, the CPUs are short. They have a standing of their own.
        score = 0.95 if wanted.value < cpus else 0.55
        sentence += f", on {cpus} CPUs"
    return Standing(
        "carrier threads",
        utilisation=used,
        saturation=waiting,
        waiting="virtual threads",
        score=score,
        sentence=sentence,
        evidence=kept(wanted, mounted, queued),
    )


def tells_of_carriers(seen: SeenTrial) -> bool:
    """Whether there are carriers of which the server's JDK tells: a bean of JDK 24 and later."""
    before = seen.record.before
    release = release_of(before.jdk)
    told = release is not None and release >= TELLS_OF_CARRIERS
    return bool(before.setting("virtual_thread_parallelism")) and told


def _pinned(seen: SeenTrial, carriers: int) -> Standing:
    """Carriers that requests keep while they wait. No gauge of such a JDK shows them; how many are
    busy follows from the answers (Little's law)."""
    request = {"server": seen.server, "route": seen.call.route.path}
    wait = seen.mean_time("mean wait", "lab_http_request_seconds", phase="queue", **request)
    law = "Little's law: achieved_rps × the time of a wait"
    busy = Evidence("carriers kept by a waiting request", seen.rps * seen.hold_s, "threads", law)
    used = min(1.0, busy.value / carriers)
    waiting = seen.rps * (value(wait) or 0.0)
    if seen.record.plan.mode == "closed":
        waiting = max(waiting, seen.record.plan.concurrency - busy.value)
    score, explanation = 0.5 * used, ""
    if waiting >= 1 and used >= EXPLAINED:
        score, explanation = _explained(seen, carriers, None)
    return Standing(
        "carrier threads",
        utilisation=used,
        saturation=waiting,
        waiting="virtual threads",
        score=score,
        sentence=(
            f"carrier threads: {busy.value:.1f} of {carriers} kept by requests that wait in "
            f"synchronized{explanation}"
        ),
        evidence=kept(busy, wait),
    )


def event_loop(seen: SeenTrial) -> Standing | None:
    """Event loop threads. All time outside the selector is busy: computing, or blocked."""
    return _selecting(seen, "event loop", "loop", "lab_event_loop_busy_seconds_total")


def front(seen: SeenTrial) -> Standing | None:
    """Threads that read requests and hand them to workers. They compete with the workers for the
    CPUs: outside its selector a front may also wait for one, so without CPU times it is weak
    evidence that a front was busy."""
    return _selecting(seen, "front", "front", RUN, threads="front") or _selecting(
        seen, "front", "front", "lab_front_busy_seconds_total", strong=False
    )


def _selecting(
    seen: SeenTrial, resource: str, thread: str, name: str, *, strong: bool = True, **labels: str
) -> Standing | None:
    """Threads with a selector each. A connection stays with its thread, so the busiest counts. It
    is strong evidence only where all are full, on average."""
    mine = {"server": seen.server}
    rates = [
        seen.rate(f"{thread} {one} busy", "of its time", name, **mine, **labels, **{thread: one})
        for one in seen.each(thread, name, **mine, **labels)
    ]
    busy = [max(0.0, min(1.0, rate.value)) for rate in kept(*rates)]
    if not busy or seen.record.before.foreign:
        return None
    # What waits for a front is unread in its sockets, where nothing counts it.
    depth = seen.mean("tasks waiting for a loop", "tasks", "lab_event_loop_queue_depth", **mine)
    cpu = seen.rate(
        "CPU of the server", "CPUs", "container_cpu_usage_seconds_total", service=seen.server
    )
    used, cpus = max(busy), seen.record.before.own_identity.cpus
    count = f"the one {thread}" if len(busy) == 1 else f"the busiest of {len(busy)} {thread}s"
    sentence = f"the {resource}: {count} at work {used:.0%} of the time"
    score = 0.5 * used
    if used >= LOOP_FULL:
        block = seen.record.before.settings.get("block_the_loop")
        # With as many threads as CPUs, all at work, the CPUs are short; not where they sleep.
        strong &= sum(busy) >= LOOP_FULL * len(busy) and (block is True or len(busy) < cpus)
        score = 0.95 if strong else WEAK_FROM
        sentence += f" while the server used {value(cpu) or 0:.1f} of {cpus} CPUs"
        if block:
            sentence += f" (it waits by {'sleeping' if block is True else 'computing'} on the loop)"
        if seen.rps:
            each_ms = sum(busy) * 1000 / seen.rps
            sentence += f"; measured {seen.rps:,.0f} req/s = {each_ms:.2f} ms of a {thread} each"
    return Standing(
        resource,
        utilisation=used,
        saturation=value(depth),
        waiting="tasks",
        score=score,
        sentence=sentence,
        evidence=kept(*rates, depth, cpu),
    )
