"""Threads of a fixed pool. Utilisation law (Denning, Buzen 1978): X ≤ size / S."""

from __future__ import annotations

from lab.judge.excess import answered
from lab.judge.resources.resource import FULL, Resource, holding
from lab.judge.seen import SeenTrial, known, value
from lab.model import Evidence, Standing, Wait

NAME = "worker pool"
# A pool that nobody shows is inferred where the CPUs were busy for less than this share of the
# time, and where at least so many times as many requests waited as were worked on.
CPUS_LEFT, QUEUED = 0.7, 1.0
INSIDE = ("own", "pending", "path", "downstream")


def _standing(seen: SeenTrial) -> Standing | None:
    mine, name = {"server": seen.server}, "lab_worker_pool_"
    request, times = {**mine, "route": seen.call.route.path}, "lab_http_request_seconds"
    size = seen.mean("size", "threads", f"{name}size", **mine)
    active = seen.mean("busy", "threads", f"{name}active", **mine)
    several = len(seen.observation.series(f"{name}size", **mine)) > 1
    if seen.before.foreign and (several or not size or size.value <= 0):
        return _inferred(seen)
    if not size or not active or size.value <= 0:
        return None
    depth = seen.mean("queued", "requests", f"{name}queue_depth", **mine)
    wait = seen.mean_time("mean wait", times, phase="queue", **request)
    held = seen.mean_time("mean hold", times, phase="service", **request)
    answers = "lab_http_requests_total"
    refused = seen.total("refused", "requests", answers, outcome="rejected", **request)
    # A refusal is an answer, but its request held no worker. A gauge shows moments; the mean of
    # all is answers × time (Little's law), without requests that have not ended.
    worked_rps = seen.reading.achieved_rps - (value(refused) or 0.0) / seen.window_s
    held_s = value(held) or (size.value / seen.rps if seen.rps else seen.hold_s)
    busy = max(active.value, worked_rps * (value(held) or 0.0))
    waiting = value(depth)
    if waiting is None and seen.before.foreign and seen.reading.answer_ms is not None:
        waiting = max(0.0, seen.reading.in_flight - active.value)
    waited_ms = wait.value * 1000 if wait else seen.each_ms(waiting)
    return Standing(
        *(NAME, min(busy, size.value), size.value, "threads"),
        failed=(value(refused) or 0.0) / seen.requests,
        waits=(Wait("queue", ms=waited_ms),) if busy >= FULL * size.value and waited_ms else (),
        held=holding(seen, size.value, seen.hold_s or held_s, held_s, INSIDE),
        evidence=known(size, active, depth, wait, held, refused),
    )


def _inferred(seen: SeenTrial) -> Standing | None:
    """A pool that nobody shows, of a service that is not the lab's: X · R0 requests were worked on
    at a time (Little's law), far fewer than were in flight, on CPUs that had time left."""
    busy, working = seen.record.usage.host_taken, seen.rps * seen.hold_s
    waiting = seen.reading.in_flight - working
    kept_up = seen.is_open and answered(seen)
    if busy is None or busy >= CPUS_LEFT or kept_up or not 0 < QUEUED * working <= waiting:
        return None
    figure = Evidence("at a time", working, "requests", "Little's law: achieved_rps × R0")
    waits = (Wait("queue", ms=seen.each_ms(waiting), measured=False),)
    return Standing(NAME, working, None, "requests", waits=waits, evidence=(figure,))


WORKER_POOL = Resource(NAME, "pool_size", _standing)
