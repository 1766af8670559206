"""Percentiles with requests that got no answer, by hand."""

import copy
import math

import pytest

from lab.judge import slo
from lab.judge.slo import judged_ms
from lab.model import Row
from support.fakes import judged_row, measurement, plan

# 900 answers took up to 10 ms, 90 up to 20 ms, and 10 up to 30 ms.
RANKS = ((10.0, 900), (20.0, 990), (30.0, 1000))


@pytest.mark.parametrize(
    ("lost", "p50_ms", "p95_ms", "p99_ms"),
    [
        # The answers of rank 500, 950 and 990.
        (0, 10, 20, 20),
        # Of 1,002: 501, 952 and 992.
        (2, 10, 20, 30),
        # Of 1,010: 1,000 is the last answer. Of 1,011: 1,001 is none.
        (10, 10, 20, 30),
        (11, 10, 20, None),
        # Of 1,052: p95 is the answer of rank 1,000. Of 1,053: 1,001.
        (52, 10, 30, None),
        (53, 10, None, None),
        (1000, 30, None, None),
        (1001, None, None, None),
    ],
)
def test_a_lost_request_is_slower_than_any_answer(
    lost: int, p50_ms: float, p95_ms: float | None, p99_ms: float | None
) -> None:
    told = slo.columns(RANKS, lost)
    assert told == {"slo_p50_ms": p50_ms, "slo_p95_ms": p95_ms, "slo_p99_ms": p99_ms}


def test_too_few_requests_tell_no_percentile() -> None:
    assert slo.columns(((10.0, 999),), 0) == {
        "slo_p50_ms": 10, "slo_p95_ms": 10, "slo_p99_ms": None,
    }  # fmt: skip
    assert slo.columns(((10.0, 999),), 1)["slo_p99_ms"] == 10
    assert set(slo.columns((), 0).values()) == {None}


def row(**changes: object) -> Row:
    """1,000 answers and 2 requests without one, in 10 s."""
    whole = judged_row("run", measurement())
    known: dict[str, object] = {
        "offered_rps": 101, "achieved_rps": 100.0, "window_s": 10.0, "window_ok": 1000,
        "window_http_errors": 0, "window_lost": 2, "p99_ms": 20.0, "max_ms": 30.0,
        "slo_p99_ms": 30.0,
    }  # fmt: skip
    return copy.replace(whole, **{**known, **changes})


def test_what_is_judged_counts_the_requests_without_an_answer() -> None:
    assert (judged_ms(row(), "p99"), judged_ms(row(), "max")) == (30, math.inf)
    assert judged_ms(row(window_lost=11, slo_p99_ms=None), "p99") == math.inf
    # Too few requests for it, however many of them were lost.
    assert judged_ms(row(window_ok=900, window_lost=20, slo_p99_ms=None), "p99") is None
    # The latencies of a closed load are the raw ones.
    of_closed = copy.replace(measurement().record, plan=plan("closed"))
    raw = judged_row("run", copy.replace(measurement(), record=of_closed))
    assert judged_ms(raw, "p95") == raw.raw_p95_ms
    # All had an answer.
    assert judged_ms(row(window_lost=0, slo_p99_ms=None), "p99") == 20
    assert judged_ms(row(window_lost=0), "max") == 30


def test_an_engine_that_does_not_say_when_requests_were_lost_tells_no_percentile_of_all() -> None:
    # 2 of 1,002 in the whole run: nobody knows the answer of rank 992.
    untold = {"window_ok": None, "window_lost": None, "slo_p99_ms": None, "ok": 1000}
    lost = row(**untold, socket_errors=2, timeouts=None, accounted_s=10.0, http_errors=0)
    assert judged_ms(lost, "p99") is None
    # But it is none of the answers where more than 1 % were lost.
    many = copy.replace(lost, offered_rps=110, socket_errors=50)
    assert judged_ms(many, "p99") == math.inf
