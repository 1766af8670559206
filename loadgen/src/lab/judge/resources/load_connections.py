"""The connections of an open load. Where all are busy, requests that are due wait for one in the
generator, and N / R bounds the rate (Little's law)."""

from lab.judge.excess import excess_of
from lab.judge.resources.resource import SeenTrial, Standing, Wait, holding, resource

INSIDE = ("queue", "own", "pending", "path", "downstream", "unexplained")


@resource("connections of the load")
def load_connections(seen: SeenTrial) -> Standing | None:
    """An open load's wait for a free one.

    Measured: yes"""
    excess, answer_ms, count = excess_of(seen), seen.reading.answer_ms, seen.plan.concurrency
    if not seen.is_open or not answer_ms or excess is None:
        return None
    busy = min(seen.reading.in_flight, float(count))
    seen.noted("busy", busy, "connections", "Little's law: achieved_rps × answer_ms")
    alone_s = (excess.r0_ms or answer_ms) / 1000
    kept = holding(seen, count, alone_s, answer_ms / 1000, INSIDE)
    waits = (Wait("connect", part=1.0),)
    return Standing(busy, count, "connections", waits=waits, held=kept)
