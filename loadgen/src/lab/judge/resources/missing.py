"""What is not known of a trial that a verdict would rest on, as codes."""

from collections.abc import Iterator

from lab.judge.checks.data import jobs_unseen
from lab.judge.predict import release_of
from lab.judge.resources.host_cpu import NEARLY_FULL
from lab.judge.resources.lock import ended
from lab.judge.seen import SeenTrial
from lab.judge.thread_times import PROCESS_RUNQ, RUNQ
from lab.model import NONE, UNKNOWN, Missing

# From this JDK on a server also sees the waits of virtual threads (ParkedThreads.java).
SEES_VIRTUAL = 25
FAILED_LOOKS = "lab_lock_watch_failed_looks_total"


def missing(seen: SeenTrial, named: str) -> Iterator[Missing]:
    """`named` is what the rule names."""
    for job in jobs_unseen(seen.record, seen.observation):
        yield Missing("job", job, doubts=True)
    if seen.plan.script:
        yield Missing("script", doubts=True)
    yield from _r0(seen, named)
    if seen.before.foreign:
        yield from _of_foreign(seen)
    elif named != NONE:
        if not seen.observation.series(RUNQ, server=seen.server):
            yield Missing("run queue", seen.server)
        if not seen.observation.series(PROCESS_RUNQ) and seen.call.route.calls_downstream:
            yield Missing("run queue", "path")
    if named == UNKNOWN or ended(seen):
        yield from _locks(seen)


def _r0(seen: SeenTrial, named: str) -> Iterator[Missing]:
    demand = seen.record.demand
    if seen.before.foreign and not (demand and demand.r0_ms):
        yield Missing("R0", (demand and demand.r0_problem) or "", doubts=named == NONE)
    elif seen.before.foreign and (seen.record.usage.host_taken or 0.0) >= NEARLY_FULL:
        # It may have been measured on a machine as full as this one, and be too long.
        yield Missing("R0 on free CPUs", doubts=named == NONE)


def _of_foreign(seen: SeenTrial) -> Iterator[Missing]:
    before, server = seen.before, seen.server
    if before.exported is None:
        yield Missing("exporter", server)
    elif not before.scraped:
        yield Missing("exporter unread", server)
    else:
        found = seen.observation.series("lab_worker_pool_size", server=server)
        sizes = [series.values[-1] for series in found]
        if len(sizes) != 1 or sizes[0] <= 0:
            yield Missing("pool", str(len(sizes)))
        if not seen.observation.series("process_open_fds", server=server):
            yield Missing("descriptors", server)
    if not seen.observation.series("container_cpu_usage_seconds_total", service=server):
        yield Missing("container", server)
    if len(seen.observation.series("container_spec_cpu_quota", service=server)) > 1:
        yield Missing("quota", server)


def _locks(seen: SeenTrial) -> Iterator[Missing]:
    before = seen.before
    watch, release = before.lock_watch_ms, release_of(before.jdk)
    if watch is None:
        if before.exported is not None:
            yield Missing("locks", "no recorder")
    elif watch == 0:
        yield Missing("locks", "off")
    elif ended(seen):
        yield Missing("locks", "ended")
    elif release is not None and release < SEES_VIRTUAL:
        yield Missing("locks of virtual threads", f"JDK {release}")
    elif seen.observation.increase(FAILED_LOOKS, server=seen.server):
        yield Missing("locks of virtual threads", "looks failed")
