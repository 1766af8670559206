"""A load that is held: which connections were there while the memory was read."""

from typing import Any

import pytest

from lab.judge.checks import judge
from lab.judge.checks.state import cold_silent
from lab.judge.resources import verdict_of
from lab.model import UNKNOWN, Counts, Hold, Judgement, Measurement, TrialRecord, Warmth
from support.fakes import cells, judged_row, measurement, observation, plan, reading, record

# Of 100 connections.
IDLE = Counts(100, 100, 0, 0, 0, 0, 15.0)
IN_FLIGHT = Counts(100, 0, 0, 0, 0, 100, 15.0)


def held(hold: Hold = "idle", **changes: Any) -> TrialRecord:
    known = {"live_heap_bytes": 9_000_000, "resident_bytes": 90_000_000, "in_flight": 100}
    return record(plan("closed", hold=hold), **{**known, **changes})


def held_by(of: TrialRecord, counts: Counts, samples: int = 0) -> Measurement:
    said = reading(0.0, samples=samples, corrected=None, raw=None, counts=counts)
    return measurement(of, said)


def judged(of: TrialRecord, counts: Counts, samples: int = 0) -> Judgement:
    return judge(held_by(of, counts, samples), observation())


def test_all_connections_were_there() -> None:
    assert judged(held(), IDLE).valid
    assert judged(held("in-flight"), IN_FLIGHT).valid


@pytest.mark.parametrize(
    ("of", "counts", "samples", "said"),
    [
        (held(warmth=Warmth(False, (), cold_silent.remark())), IDLE, 0, "cold-silent"),
        (held(live_heap_bytes=None), IDLE, 0, "held-unread"),
        (
            held(),
            Counts(103, 103, 0, 0, 0, 0, 15.0),
            0,
            "held-incomplete what=sent count=103 planned=100",
        ),
        (
            held(),
            Counts(100, 99, 1, 0, 0, 0, 15.0),
            0,
            "held-incomplete what=answered count=99 planned=100",
        ),
        (
            held("in-flight"),
            Counts(100, 1, 0, 0, 0, 99, 15.0),
            1,
            "held-incomplete what=answered-late count=1 planned=0",
        ),
        (
            held("in-flight", in_flight=99),
            IN_FLIGHT,
            0,
            "held-incomplete what=in-flight count=99 planned=100",
        ),
        # Some were left over.
        (
            held("in-flight", in_flight=103),
            IN_FLIGHT,
            0,
            "held-incomplete what=in-flight count=103 planned=100",
        ),
    ],
)
def test_a_missing_connection(of: TrialRecord, counts: Counts, samples: int, said: str) -> None:
    assert cells(judged(of, counts, samples).reasons) == [said]


def test_its_row_has_the_memory_and_no_verdict() -> None:
    whole = held_by(held("in-flight"), IN_FLIGHT)
    row = judged_row("r", whole)
    assert (row.live_heap_bytes, row.resident_bytes) == (9_000_000, 90_000_000)
    # Who waits is not lost.
    assert not row.window_lost
    assert verdict_of(whole, judged(held(), IDLE), observation()).bottleneck == UNKNOWN
