"""The load: whether it had all it can have, and whether its own connections limit it."""

from __future__ import annotations

from collections.abc import Iterator

from lab.judge.gates.generator import BUSY_CONNECTIONS, connections_busy, overloaded
from lab.judge.verdict.evidence import EXCESS, EXPLAINED, WAITING_SHARE, SeenTrial
from lab.model import Evidence, Standing

# Nothing else limits a closed load that reached this share of N / (R0 + Z): by Little's law its
# cycle took at most 1 / 0.93, so 7.5 % longer than R0 and the generator's think time Z.
AT_LOAD_BOUND = 0.93
# Below this share a resource that is full may be what the rest is lost to: the load is at the knee.
CLEAR_OF_KNEE = 0.97
# This share of an open load must be answered without an error. The validity gate (KEPT_UP) asks for
# 99 % with errors, so this leaves 1 % for them.
ANSWERED = 0.98
# With more errors p95 is that of the few that were not refused, as FELT (downstream.py) says of
# calls.
FEW_ERRORS = 0.05
# A mean wait below this says nothing: it is two or three time slices of the kernel's scheduler
# (EEVDF: about 3 ms each on a few CPUs), which any busy machine adds.
LEAST_WAIT_MS = 10.0
# The 95th percentile of an exponential wait is ln 20 = 3.0 times its mean.
TAIL = 3.0
# Fewer requests more than before are the chance of a few samples.
LEAST_GROWTH = 10.0


def answered(seen: SeenTrial) -> bool:
    """Whether the load got the rate that it can have: N / (R0 + Z) (closed) or what it offers
    (open)."""
    plan = seen.record.plan
    enough = ANSWERED if plan.mode == "open" else AT_LOAD_BOUND
    # A spike has connections whose answers are not measured.
    return (
        seen.at_load_bound >= enough
        and seen.error_share < FEW_ERRORS
        and plan.spike is None
        and not seen.beyond_r0
        and not overloaded(seen.record, seen.reading)
    )


def at_knee(seen: SeenTrial) -> bool:
    """Whether a load that got its rate waited enough for something full to matter. A closed load
    shows waits in its rate, an open load in its mean latency. True where nobody knows what to
    expect of that."""
    if seen.record.plan.mode == "closed":
        return seen.at_load_bound < CLEAR_OF_KNEE
    latency, expected_ms = seen.reading.corrected or seen.reading.raw, seen.expected_ms
    if latency is None or expected_ms is None:
        return True
    return latency.mean_ms * CLEAR_OF_KNEE > expected_ms


def held_up(seen: SeenTrial) -> Iterator[str]:
    """Why an open load that got its rate did not have all it can have: its requests waited, or more
    and more of them do. The rate does not show it, because a queue hides what is missing. The rate
    of a closed load does (Little's law)."""
    if seen.record.plan.mode == "open":
        yield from _late(seen)
        yield from _growing(seen)


def comparable(seen: SeenTrial) -> bool:
    """Whether latency can be held against an expectation. A closed load needs none: its rate is
    its latency."""
    return seen.record.plan.mode == "closed" or seen.expected_ms is not None


def connections(seen: SeenTrial) -> Standing | None:
    """The connections of an open load. Where all are busy, requests that are due wait in the
    generator, and N / R bounds the rate, R from sending to answer (Little's law).

    Everything that is full keeps connections busy, so they are the limit only where the answers
    themselves are not late, or where nothing but busy CPUs delays them.
    """
    plan, reading = seen.record.plan, seen.reading
    busy, raw, corrected = connections_busy(seen.record, reading), reading.raw, reading.corrected
    answer_ms = reading.answer_ms
    if plan.offered_rps is None or busy is None or raw is None or corrected is None:
        return None
    if not answer_ms:
        return None
    waiting = reading.achieved_rps * max(0.0, corrected.mean_ms - raw.mean_ms) / 1000
    # An answer that the window's edge cuts off counts nowhere.
    all_busy = busy >= BUSY_CONNECTIONS - answer_ms / 1000 / reading.window_s
    used = min(1.0, busy)
    score = 0.5 * used
    sentence = (
        f"the connections of the load: {used * plan.concurrency:,.0f} of {plan.concurrency:,} "
        f"busy, {waiting:,.0f} requests waiting for one in the generator"
    )
    if all_busy and waiting >= max(1.0, WAITING_SHARE * plan.concurrency):
        sentence += (
            f"; {plan.concurrency:,} / {answer_ms / 1000:.3g} s = "
            f"{plan.concurrency * 1000 / answer_ms:,.0f} req/s of {plan.offered_rps:,} offered"
        )
        expected_ms = seen.expected_ms
        if expected_ms and seen.rps * expected_ms / 1000 >= EXPLAINED * plan.concurrency:
            score = 0.9
        elif expected_ms and seen.crowded:
            # More connections get more until the CPUs are full.
            score = 0.72
            sentence += (
                f", as an answer took {answer_ms:.0f} ms instead of {expected_ms:.0f} ms on CPUs "
                f"that were {seen.cpus_busy:.0%} busy"
            )
    law = "Little's law: achieved_rps × "
    return Standing(
        "connections of the load",
        utilisation=used,
        saturation=waiting,
        waiting="requests",
        score=score,
        sentence=sentence,
        evidence=(
            Evidence("busy connections", used * plan.concurrency, "connections", f"{law}answer_ms"),
            Evidence(
                "requests waiting for a connection",
                waiting,
                "requests",
                f"{law}(mean_ms − raw_mean_ms)",
            ),
        ),
    )


def _late(seen: SeenTrial) -> Iterator[str]:
    """The prediction is a mean, so it is held against the mean: the difference is the mean wait. A
    service without random delays also has a p95 near it, and one that draws them a p95 near
    theirs."""
    latency, expected_ms = seen.reading.corrected or seen.reading.raw, seen.expected_ms
    if latency is None or expected_ms is None:
        return
    allowed_ms = max(EXCESS * expected_ms, LEAST_WAIT_MS)
    if latency.mean_ms - expected_ms > allowed_ms:
        yield f"an answer took {latency.mean_ms:.0f} ms on average instead of {expected_ms:.0f} ms"
        return
    before = seen.record.before
    # A toxic with jitter or toxicity spreads latencies by itself, and so may a foreign service.
    even = not before.foreign and not before.toxics.in_force
    # Without jitter a latency toxic is added to each drawn delay.
    even = even or (seen.spread is not None and not before.toxics.jittered)
    p95_ms = expected_ms + (seen.p95_r0_s - seen.r0_s) * 1000
    if even and latency.p95_ms is not None and latency.p95_ms - p95_ms > TAIL * allowed_ms:
        yield f"p95 was {latency.p95_ms:.0f} ms instead of {p95_ms:.0f} ms"


def _growing(seen: SeenTrial) -> Iterator[str]:
    """By Little's law latency grows as the requests in the server do, at the same rate."""
    begun = seen.halves(
        "lab_http_requests_in_flight", server=seen.server, route=seen.call.route.path
    )
    if begun is None or seen.record.plan.script:
        return
    # Requests that wait for a worker have not begun.
    queued = seen.halves("lab_worker_pool_queue_depth", server=seen.server) or (0.0, 0.0)
    first, second = begun[0] + queued[0], begun[1] + queued[1]
    if second - first >= max(LEAST_GROWTH, EXCESS * first):
        yield (
            f"the server held {first:,.0f} requests in the first half of the window and "
            f"{second:,.0f} in the second"
        )
