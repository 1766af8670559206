"""What is not known of a trial that a verdict would rest on, as codes."""

from collections.abc import Iterator

from lab.judge.checks.data import jobs
from lab.judge.metrics import PROCESS_RUNQ, RUNQ, USED
from lab.judge.predict import release_of
from lab.judge.resources.file_descriptors import OPEN
from lab.judge.resources.lock import ended
from lab.judge.resources.server_cpu import NEARLY_FULL
from lab.judge.trial import Trial
from lab.model import NONE, UNKNOWN, Missing

# From this JDK on a server also sees the waits of virtual threads (ParkedThreads.java).
SEES_VIRTUAL = 25
FAILED_LOOKS = "lab_lock_watch_failed_looks_total"


def missing(trial: Trial, named: str) -> Iterator[Missing]:
    """`named` is what the rule names."""
    for job in jobs(trial.record):
        if not trial.observation.covers(job):
            yield Missing("job", job, doubts=True)
    if trial.plan.script:
        yield Missing("script", doubts=True)
    if not trial.has_contract:
        yield from _r0(trial, doubts=named == NONE)
        yield from _unexported(trial)
    elif named != NONE:
        if not trial.observation.series(RUNQ, server=trial.server):
            yield Missing("run queue", trial.server)
        if not trial.observation.series(PROCESS_RUNQ) and trial.calls_downstream:
            yield Missing("run queue", "path")
    if named == UNKNOWN or ended(trial):
        yield from _locks(trial)


def _r0(trial: Trial, *, doubts: bool) -> Iterator[Missing]:
    demand = trial.record.demand
    if not (demand and demand.r0_ms):
        yield Missing("R0", (demand and demand.r0_problem) or "", doubts)
    elif (trial.usage.host_taken or 0.0) >= NEARLY_FULL:
        # It may have been measured on a machine as full as this one, and be too long.
        yield Missing("R0 on free CPUs", doubts=doubts)


def _unexported(trial: Trial) -> Iterator[Missing]:
    before, server, seen = trial.before, trial.server, trial.observation
    if before.exported is None:
        yield Missing("exporter", server)
    elif not before.scraped:
        yield Missing("exporter unread", server)
    else:
        pools = seen.series("lab_worker_pool_size", server=server)
        if len(pools) != 1 or pools[0].values[-1] <= 0:
            yield Missing("pool", str(len(pools)))
        if not seen.series(OPEN, server=server):
            yield Missing("descriptors", server)
    if not seen.series(USED, service=server):
        yield Missing("container", server)
    if len(seen.series("container_spec_cpu_quota", service=server)) > 1:
        yield Missing("quota", server)


def _locks(trial: Trial) -> Iterator[Missing]:
    watch, release = trial.before.lock_watch_ms, release_of(trial.before.jdk)
    if watch is None:
        if trial.before.exported is not None:
            yield Missing("locks", "no recorder")
    elif watch == 0:
        yield Missing("locks", "off")
    elif ended(trial):
        yield Missing("locks", "ended")
    elif release is not None and release < SEES_VIRTUAL:
        yield Missing("locks of virtual threads", f"JDK {release}")
    elif trial.observation.increase(FAILED_LOOKS, server=trial.server):
        yield Missing("locks of virtual threads", "looks failed")
