"""`capacity`: what a single trial says of its rate."""

import dataclasses
from typing import Any

import pytest

from lab.experiments.objective import judged
from lab.model import STRONG
from support.altered import altered, invalid
from support.planned import row
from support.searched import (
    CAPACITY,
    FILLED,
    JIT,
    LATE_GENERATOR,
    alone,
    order_of,
    searched,
    server,
)

FELL = "latency-drift first_ms=223 second_ms=203"
FELL_TEXT = "not steady: the mean latency went from 223 to 203 ms between the halves of the window"
FELL_AND_LATE = f"goodput-drift first_rps=900 second_rps=200; {LATE_GENERATOR}"
LOST = "not steady: goodput went from 900 to 200 req/s between the halves of the window"
NOTHING = "nothing was answered in the measured window"
SHORT = "window-short"
# 15 s of 1,000/s, and requests without an answer.
HUNG = {"window_s": 15.0, "window_ok": 15_000, "window_http_errors": 0, "window_lost": 50}
FULL_POOL = {"others_cpu": 0.4, "p99_ms": 900.0, "bottleneck": "worker pool", "strength": STRONG}
GENERATOR = {"p99_ms": 550.0, "late_p99_ms": 350.0}
OVERLOADED = {"overloaded": True, "achieved_rps": 950.0}
SLOWER = "latency-drift first_ms=210 second_ms=300"
SLOWER_TEXT = FELL_TEXT.replace("223 to 203", "210 to 300")
SENT_LATE = "the generator itself sent late, p99 by 350 ms (p99 550 ms)"
# Of 15,200 the answer of rank 15,048: there is none.
NO_P99 = "p99 is one of the 200 requests without an answer and 1.32% errors, above 1.00%"


@pytest.mark.parametrize(
    ("changes", "outcome", "why"),
    [
        ({}, "held", ""),
        ({"p99_ms": 501.0}, "broke", "p99 501 ms"),
        (OVERLOADED, "broke", "overloaded, 950 of 1,000 req/s"),
        # The generator stood still for half a second: nobody can tell, unless it was too slow so,
        # too, or was late by no more than a tenth of it, or the load was not kept.
        (GENERATOR, "untold", SENT_LATE),
        ({"p99_ms": 900.0, "late_p99_ms": 350.0}, "broke", "p99 900 ms"),
        ({"p99_ms": 550.0, "late_p99_ms": 54.0}, "broke", "p99 550 ms"),
        (GENERATOR | OVERLOADED, "broke", "overloaded, 950 of 1,000 req/s and p99 550 ms"),
        ({"window_ok": 950, "window_http_errors": 50}, "broke", "5.00% errors, above 1.00%"),
        # Too few answers for p99, and all of them in time, or not.
        ({"p99_ms": None}, "held", ""),
        ({"p99_ms": None, "max_ms": 600.0}, "untold", "not known: p99"),
        ({"p99_ms": None, "p95_ms": 600.0, "max_ms": 700.0}, "broke", "p95 600 ms"),
        # Of 15,050 requests 50 got no answer, so p99 is the answer of rank 14,900 of 15,000, and
        # not of 14,850. It may be longer than the limit, though 0.33 % of errors are allowed.
        ({**HUNG, "slo_p99_ms": 500.0}, "held", ""),
        ({**HUNG, "slo_p99_ms": 501.0}, "broke", "p99 501 ms"),
        # Nobody tells the answer of that rank.
        ({**HUNG, "slo_p99_ms": None}, "untold", "not known: p99"),
        ({**HUNG, "window_lost": 200}, "broke", NO_P99),
        (invalid(LATE_GENERATOR), "untold", LATE_GENERATOR),
        (invalid("nothing-answered"), "broke", NOTHING),
        (invalid("mostly-errors"), "broke", "most answers were errors, and too few were a success"),
        # A backlog that grows.
        (invalid(SLOWER), "broke", SLOWER_TEXT),
        (invalid(FELL_AND_LATE), "untold", f"{LOST}; {LATE_GENERATOR}"),
        # A backlog of the warm-up that drains: the latencies are too high, if anything.
        (invalid(FELL), "held", ""),
        (invalid("backlog", p99_ms=400.0), "held", ""),
        (invalid(FELL, p99_ms=501.0), "untold", FELL_TEXT),
        # A JVM that still compiled is slower, if anything.
        (invalid(JIT), "held", ""),
        (invalid(f"{JIT}; {FELL}"), "held", ""),
        # One that was never steady may have been anything.
        (invalid("cold-unsteady"), "untold", "cold-unsteady"),
        (invalid(JIT, p99_ms=501.0), "untold", JIT),
        (invalid(f"{JIT}; {LATE_GENERATOR}"), "untold", f"{JIT}; {LATE_GENERATOR}"),
        (invalid(FELL, p99_ms=None), "untold", FELL_TEXT),
        (invalid(SHORT, p99_ms=4000.0), "broke", "p99 4,000 ms"),
        (invalid(SHORT), "untold", SHORT),
        # A machine that others filled: what was not held says nothing of the rate,
        ({"others_cpu": 0.4, "p99_ms": 900.0}, "untold", f"{FILLED} (p99 900 ms)"),
        (invalid("nothing-answered", others_cpu=0.4), "untold", f"{FILLED} ({NOTHING})"),
        # but what was held does, and so does a pool that gave all it can.
        ({"others_cpu": 0.4}, "held", ""),
        ({**FULL_POOL, "predicted_rps": 990.0}, "broke", "p99 900 ms"),
        # Below its own bound a pool is full only as requests took longer: others may be why.
        ({**FULL_POOL, "predicted_rps": 1000.0}, "untold", f"{FILLED} (p99 900 ms)"),
        ({**FULL_POOL, "predicted_rps": None}, "untold", f"{FILLED} (p99 900 ms)"),
    ],
)
def test_what_a_trial_says(changes: dict[str, Any], outcome: str, why: str) -> None:
    plan = order_of(searched()).next([])
    assert plan is not None
    whole = {"achieved_rps": 1000.0, "p99_ms": 210.0, "max_ms": 250.0, **changes}
    one = row(dataclasses.replace(plan, offered_rps=1000, concurrency=600), **whole)
    assert judged(CAPACITY.objective, one) == (outcome, why)


def test_a_percentile_of_too_few_answers_is_told_by_the_longest() -> None:
    _, _, detail = alone(altered(server(1650), p99_ms=None))
    assert detail.text.startswith("held 1,646 req/s (max 210 ms; 3 of 3 trials), whether it holds")
