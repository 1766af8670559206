"""The connections of an open load. Where all are busy, requests that are due wait for one in the
generator, and N / R bounds the rate (Little's law)."""

from lab.judge.resources.excess import excess_of
from lab.judge.resources.resource import Standing, Trial, holding, resource, waits

INSIDE = ("queue", "own", "pending", "path", "downstream", "unexplained")


@resource("connections of the load")
def load_connections(trial: Trial) -> Standing | None:
    """An open load's wait for a free one.

    Measured: yes"""
    excess, answer_ms, count = excess_of(trial), trial.reading.answer_ms, trial.plan.concurrency
    if not trial.is_open or not answer_ms or excess is None:
        return None
    busy = min(trial.reading.in_flight, float(count))
    trial.note("busy", busy, "connections", "Little's law: achieved_rps × answer_ms")
    alone_s = (excess.r0_ms or answer_ms) / 1000
    held = holding(trial, count, alone_s, answer_ms / 1000, INSIDE)
    return Standing(busy, count, "connections", waits=waits(("connect",)), held=held)
