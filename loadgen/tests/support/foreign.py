"""A service that is not the lab's, a Tomcat in a container, and trials of it."""

import copy

from lab.judge.resources import verdict_of
from lab.judge.trial import Trial
from lab.model import (
    Demand,
    Exported,
    Observation,
    Series,
    Snapshot,
    TrialRecord,
    Usage,
    Verdict,
)
from support.fakes import flat, latency, measurement, plan, reading, record, snapshot
from support.series import CLOSES, OPENS, counter, gauge

URL = "http://my-service:8080"
JVM = Exported(1_000_000, "21.0.1", 2**30, 200, scraped=True)


def foreign(exported: Exported | None = JVM, **changes: object) -> Snapshot:
    whole = snapshot(identity=None, settings={"url": URL}, exported=exported)
    return copy.replace(whole, **changes)


def foreign_record(
    exported: Exported | None = JVM,
    after: Snapshot | None = None,
    concurrency: int = 400,
    r0_ms: float | None = 200.0,
    **changes: object,
) -> TrialRecord:
    before = foreign(exported)
    of = {"url": f"{URL}/x", "route": "/x", "concurrency": concurrency, "predicted_rps": None}
    known = {
        "before": before,
        "after": after or before,
        "demand": None if r0_ms is None else Demand(200, 4000, None, None, r0_ms),
        "usage": Usage(1.0, 1.0, 0.4, 0.0, 0.1, 1000),
    }
    return record(plan("closed", server="my-service", **of), **{**known, **changes})


CONTAINER = (
    gauge("up", 1, job="cadvisor"),
    counter("container_cpu_usage_seconds_total", 0.5, service="my-service"),
)
TOMCAT = (
    *CONTAINER,
    gauge("up", 1, job="jvm"),
    gauge("jvm_threads_current", 230, job="jvm", server="my-service"),
    gauge("process_open_fds", 500, job="jvm", server="my-service"),
    gauge("process_max_fds", 20_000, job="jvm", server="my-service"),
    gauge("lab_worker_pool_size", 200, server="my-service", connector="http-nio-8080"),
    gauge("lab_worker_pool_active", 200, server="my-service", connector="http-nio-8080"),
    counter("jvm_gc_collection_seconds_sum", 0.01, server="my-service", gc="G1 Young Generation"),
)


def judged(
    of: TrialRecord,
    *series: Series,
    rps: float = 1000.0,
    raw_ms: float = 400.0,
    think_ms: float | None = None,
) -> Verdict:
    late = None if think_ms is None else flat(think_ms)
    answers = latency(raw_ms)
    whole = measurement(of, reading(rps, raw=answers, corrected=answers, late=late))
    return verdict_of(Trial(whole, Observation((OPENS, CLOSES), series)))
