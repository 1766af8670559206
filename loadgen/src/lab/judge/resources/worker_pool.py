"""Threads of a fixed pool. Utilisation law (Denning, Buzen 1978): X ≤ size / S."""

from lab.judge.metrics import REQUESTS
from lab.judge.resources.excess import answered
from lab.judge.resources.resource import FULL, Standing, Trial, Wait, holding, resource

# A pool without figures is inferred where the CPUs were busy for less than this share of the
# time, and where at least so many times as many requests waited as were worked on.
CPUS_LEFT, QUEUED = 0.7, 1.0
INSIDE = ("own", "pending", "path", "downstream")


@resource("worker pool")
def worker_pool(trial: Trial) -> Standing | None:
    """Queue, while 95 % of its threads are busy (by the gauge or by Little's law).

    Measured: yes; of a pool that nobody shows it is inferred"""
    metrics, name = trial.server_metrics(), "lab_worker_pool_"
    size = metrics.mean("size", "threads", f"{name}size")
    active = metrics.mean("busy", "threads", f"{name}active")
    if not size or size <= 0 or (not trial.has_contract and _pools(trial) > 1):
        return None if trial.has_contract else _inferred(trial)
    if active is None:
        return None
    depth = metrics.mean("queued", "requests", f"{name}queue_depth")
    request = {"server": trial.server, "route": trial.route}
    wait_s, service_s = (
        trial.metrics(phase=phase, **request).mean_time(what, REQUESTS)
        for what, phase in (("mean wait", "queue"), ("mean hold", "service"))
    )
    rejected = trial.metrics(outcome="rejected", **request)
    refused = rejected.total("refused", "requests", "lab_http_requests_total") or 0.0
    # A refusal is an answer, but its request held no worker. A gauge shows moments; the mean of
    # all is answers × time (Little's law), without requests that have not ended.
    worked_rps = trial.reading.achieved_rps - refused / trial.observation.window_s
    held_s = service_s or (size / trial.rps if trial.rps else trial.hold_s)
    busy = max(active, worked_rps * (service_s or 0.0))
    if depth is None and not trial.has_contract and trial.reading.answer_ms is not None:
        depth = max(0.0, trial.reading.in_flight - active)
    waited_ms = trial.each_ms(depth) if wait_s is None else wait_s * 1000
    waits = (Wait("queue", ms=waited_ms),) if busy >= FULL * size and waited_ms else ()
    held = holding(trial, size, trial.hold_s or held_s, held_s, INSIDE)
    failed = refused / trial.requests
    return Standing(min(busy, size), size, "threads", failed=failed, waits=waits, held=held)


def _pools(trial: Trial) -> int:
    return len(trial.observation.series("lab_worker_pool_size", server=trial.server))


def _inferred(trial: Trial) -> Standing | None:
    """A pool without figures: X · R0 requests were worked on at a time (Little's law), far fewer
    than were in flight, on CPUs that had time left."""
    busy, working = trial.usage.host_taken, trial.rps * trial.hold_s
    waiting = trial.reading.in_flight - working
    kept_up = trial.is_open and answered(trial)
    if busy is None or busy >= CPUS_LEFT or kept_up or not 0 < QUEUED * working <= waiting:
        return None
    trial.note("at a time", working, "requests", "Little's law: achieved_rps × R0")
    waits = (Wait("queue", ms=trial.each_ms(waiting), measured=False),)
    return Standing(working, None, "requests", waits=waits)
