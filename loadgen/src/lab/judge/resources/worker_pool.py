"""Threads of a fixed pool. Utilisation law (Denning, Buzen 1978): X ≤ size / S."""

from lab.judge.excess import answered
from lab.judge.resources.resource import FULL, SeenTrial, Standing, Wait, holding, resource

# A pool without figures is inferred where the CPUs were busy for less than this share of the
# time, and where at least so many times as many requests waited as were worked on.
CPUS_LEFT, QUEUED = 0.7, 1.0
INSIDE = ("own", "pending", "path", "downstream")


@resource("worker pool")
def worker_pool(seen: SeenTrial) -> Standing | None:
    """Queue, while 95 % of its threads are busy (by the gauge or by Little's law).

    Measured: yes; of a pool that nobody shows it is inferred"""
    mine, name = {"server": seen.server}, "lab_worker_pool_"
    request, times = {**mine, "route": seen.call.route.path}, "lab_http_request_seconds"
    size = seen.mean("size", "threads", f"{name}size", **mine)
    active = seen.mean("busy", "threads", f"{name}active", **mine)
    several = len(seen.observation.series(f"{name}size", **mine)) > 1
    if seen.before.foreign and (several or not size or size <= 0):
        return _inferred(seen)
    if not size or size <= 0 or active is None:
        return None
    depth = seen.mean("queued", "requests", f"{name}queue_depth", **mine)
    wait_s = seen.mean_time("mean wait", times, phase="queue", **request)
    service_s = seen.mean_time("mean hold", times, phase="service", **request)
    answers = "lab_http_requests_total"
    refused = seen.total("refused", "requests", answers, outcome="rejected", **request) or 0.0
    # A refusal is an answer, but its request held no worker. A gauge shows moments; the mean of
    # all is answers × time (Little's law), without requests that have not ended.
    worked_rps = seen.reading.achieved_rps - refused / seen.window_s
    held_s = service_s or (size / seen.rps if seen.rps else seen.hold_s)
    busy = max(active, worked_rps * (service_s or 0.0))
    if depth is None and seen.before.foreign and seen.reading.answer_ms is not None:
        depth = max(0.0, seen.reading.in_flight - active)
    waited_ms = seen.each_ms(depth) if wait_s is None else wait_s * 1000
    return Standing(
        *(min(busy, size), size, "threads"),
        failed=refused / seen.requests,
        waits=(Wait("queue", ms=waited_ms),) if busy >= FULL * size and waited_ms else (),
        held=holding(seen, size, seen.hold_s or held_s, held_s, INSIDE),
    )


def _inferred(seen: SeenTrial) -> Standing | None:
    """A pool without figures, of a service that is not the lab's: X · R0 requests were worked on
    at a time (Little's law), far fewer than were in flight, on CPUs that had time left."""
    busy, working = seen.record.usage.host_taken, seen.rps * seen.hold_s
    waiting = seen.reading.in_flight - working
    kept_up = seen.is_open and answered(seen)
    if busy is None or busy >= CPUS_LEFT or kept_up or not 0 < QUEUED * working <= waiting:
        return None
    seen.noted("at a time", working, "requests", "Little's law: achieved_rps × R0")
    waits = (Wait("queue", ms=seen.each_ms(waiting), measured=False),)
    return Standing(working, None, "requests", waits=waits)
