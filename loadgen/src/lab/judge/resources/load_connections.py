"""The connections of an open load. Where all are busy, requests that are due wait for one in the
generator, and N / R bounds the rate (Little's law)."""

from __future__ import annotations

from lab.judge.excess import excess_of
from lab.judge.resources.resource import Resource, holding
from lab.judge.seen import SeenTrial
from lab.model import Evidence, Standing, Wait

NAME = "connections of the load"
INSIDE = ("queue", "own", "pending", "path", "downstream", "unexplained")


def _standing(seen: SeenTrial) -> Standing | None:
    excess, answer_ms, count = excess_of(seen), seen.reading.answer_ms, seen.plan.concurrency
    if not seen.is_open or not answer_ms or excess is None:
        return None
    busy = min(seen.reading.in_flight, float(count))
    figure = Evidence("busy", busy, "connections", "Little's law: achieved_rps × answer_ms")
    alone_s = (excess.r0_ms or answer_ms) / 1000
    kept = holding(seen, count, alone_s, answer_ms / 1000, INSIDE)
    waits = (Wait("connect", part=1.0),)
    return Standing(NAME, busy, count, "connections", waits=waits, held=kept, evidence=(figure,))


LOAD_CONNECTIONS = Resource(NAME, "connections", _standing)
