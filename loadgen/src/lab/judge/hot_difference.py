"""What a method costs for each answer in two recordings of the same load.

The cost of a method is its share of its recording times what an answer cost in all: CPU time of the
server's container, bytes allocated, or time spent waiting for locks. So a side that does the same
work in less time does not look as if all of its methods had changed. Pure.
"""

import math
from dataclasses import dataclass

from lab.judge.hot import hot, interval, named
from lab.judge.intervals import CONFIDENCE
from lab.model import ALLOC, CPU, LOCK, Recording, Row

# A difference below this share of the greater whole is not named: nobody would act on it.
LEAST = 0.01
# What an answer costs, by the kind of recording.
COSTS = {CPU: "µs of CPU", ALLOC: "bytes", LOCK: "µs of waiting"}


@dataclass(frozen=True, slots=True)
class Side:
    """A recorded trial: `each` is what an answer cost in all, in the unit of COSTS."""

    row: Row
    recording: Recording
    each: float


@dataclass(frozen=True, slots=True)
class Change:
    """What a method itself, without what it calls, costs for each answer on both sides.
    `interval` is the 95 % interval of b - a by the number of samples, None where the recording has
    no such samples. It says nothing of other JVMs."""

    method: str
    a: float
    b: float
    interval: tuple[float, float] | None

    @property
    def more(self) -> float:
        """How much more it costs in b; less than 0: how much less."""
        return self.b - self.a


def answers_of(row: Row) -> float:
    """All answers of the window, errors too: an answer that is an error has waited as well."""
    return (row.achieved_rps or 0.0) * (row.window_s or 0.0)


def side_of(row: Row, recording: Recording) -> Side | str:
    """The side, or why it is none."""
    if not recording.whole:
        return "it outgrew its room"
    if not named(recording):
        return "it has too few samples"
    answers = answers_of(row)
    each = row.cpu_server_us
    if recording.kind != CPU:
        unit = 1000 if recording.kind == LOCK else 1
        each = recording.total / unit / answers if answers else None
    if not each:
        return "what an answer cost in all is not known"
    return Side(row, recording, each)


def why_not(a: Side, b: Side) -> str:
    """Why two recordings cannot be compared; empty where they can."""
    if a.recording.kind != b.recording.kind:
        return f"A was recorded by {a.recording.kind}, B by {b.recording.kind}"
    if {*a.recording.events} != {*b.recording.events}:
        return "A and B were recorded by other events, as those of another JDK"
    return ""


def changes(a: Side, b: Side) -> tuple[Change, ...]:
    """The methods that cost more or less in b, as far as samples tell that, the greatest difference
    first. Each of all that cost enough to be told has so much confidence that in 95 % of
    comparisons none is named by the chance of samples (Bonferroni)."""
    shares = [{one.method: one.alone for one in hot(side.recording)} for side in (a, b)]
    least = LEAST * max(a.each, b.each)
    of_both = {
        method: ((a, shares[0].get(method, 0.0)), (b, shares[1].get(method, 0.0)))
        for method in {**shares[0], **shares[1]}
    }
    family = {
        method: both
        for method, both in of_both.items()
        if max(share * side.each for side, share in both) >= least
    }
    confidence = 1 - (1 - CONFIDENCE) / max(1, len(family))
    found = (_change(method, *both, confidence) for method, both in family.items())
    sure = [
        one
        for one in found
        if abs(one.more) >= least and not (one.interval and one.interval[0] <= 0 <= one.interval[1])
    ]
    return tuple(sorted(sure, key=lambda one: (-abs(one.more), one.method)))


def _change(method: str, a: tuple[Side, float], b: tuple[Side, float], confidence: float) -> Change:
    """The interval of the difference follows from those of the two shares (G. Y. Zou, A. Donner,
    Statistics in Medicine 27 (2008) 1693), with what an answer costs in all taken as exact."""
    (of_a, share_a), (of_b, share_b) = a, b
    cost_a, cost_b = share_a * of_a.each, share_b * of_b.each
    ends_a, ends_b = (
        interval(share, of.recording, confidence)
        for share, of in ((share_a, of_a), (share_b, of_b))
    )
    ends = None
    if ends_a is not None and ends_b is not None:
        (low_a, high_a), (low_b, high_b) = (
            (low * side.each, high * side.each)
            for (low, high), side in ((ends_a, of_a), (ends_b, of_b))
        )
        more = cost_b - cost_a
        ends = (
            more - math.hypot(cost_b - low_b, high_a - cost_a),
            more + math.hypot(high_b - cost_b, cost_a - low_a),
        )
    return Change(method, cost_a, cost_b, ends)
