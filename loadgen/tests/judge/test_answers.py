"""Checks of what was answered, and of held connections."""

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from lab.judge.checks import judge
from lab.judge.checks.state import cold_silent
from lab.judge.resources import verdict_of
from lab.judge.trial import Trial
from lab.model import (
    UNKNOWN,
    Counts,
    Hold,
    Reading,
    Request,
    Second,
    TrialRecord,
    Warmth,
    error_share,
    lost_rps,
)
from support.fakes import (
    flat,
    judged_row,
    latency,
    measurement,
    observation,
    plan,
    reading,
    record,
)
from support.judged import bad, check, ok, table

IN_TIME = flat(0.1)
RANDOM = record(plan(arrivals="poisson"))
FAST = record(plan("closed", predicted_rps=100.0))
CLOSED = record(plan("closed", predicted_rps=None))
# 5,000 connections wait for a pool that answers 955 req/s.
POOLED = record(plan(offered_rps=22_500, predicted_rps=1000.0, concurrency=5000))
LONG = {"raw": latency(3900), "corrected": latency(4000)}
SILENCE = reading(0.0, corrected=None, raw=None)


def counts(
    ok: int, http: int = 0, socket: int = 0, timeouts: int | None = 0, s: float = 25.0
) -> Counts:
    return Counts(None, ok, http, socket, timeouts, None, s)


def closed(rps: float, mean_ms: float) -> dict[str, Any]:
    return {"record": CLOSED, "reading": reading(rps, corrected=None, raw=latency(mean_ms))}


def of_5000(mode: str, window_s: float, mean_ms: float, rps: float = 1000) -> dict[str, Any]:
    rate = 22_500 if mode == "open" else None
    load = plan(mode, concurrency=5000, predicted_rps=None, offered_rps=rate)
    corrected = latency(9000) if mode == "open" else None
    said = reading(rps, window_s=window_s, raw=latency(mean_ms), corrected=corrected)
    return {"record": record(load), "reading": said}


def bursts(rps: float) -> dict[str, Any]:
    """1,000 connections that began at once and wait 2 s: 5 or 6 bursts in 11 s, 500 req/s."""
    of = record(plan("closed", concurrency=1000, predicted_rps=500.0))
    raw = latency(1_000_000 / rps)
    return {"record": of, "reading": reading(rps, window_s=11.0, corrected=None, raw=raw)}


def failing(good: int, errors: int, **changes: Any) -> Reading:
    """Of an engine that reports the latencies of errors apart: these came at once."""
    known: dict[str, Any] = {
        "window_ok": good,
        "window_http_errors": errors,
        "failed": latency(1),
        # 200 ms each, and 1 ms each.
        "all_ms": (200 * good + errors) / (good + errors),
        "counts": counts(good, errors, s=15.0),
    }
    return reading((good + errors) / 15, **{**known, **changes})


# 0.2 % of 30,000: a rate limiter that answers 429 at once.
LIMITED = {"record": record(plan("closed", predicted_rps=None, concurrency=3))}
NO_ANSWERS = "without-answer share=0.04"
ERRORS_BEFORE = counts(6750, 4500)
MIXED = reading(counts=ERRORS_BEFORE, window_ok=5400, window_http_errors=1350)
HALF_GONE = reading(300.0, counts=counts(7500, socket=450))
# A server that resets at once: the engine sends the same requests again, 1,000 times a second.
RESETS = counts(10_800, socket=25_000)


def short(times: str) -> str:
    return f"window-short window_s=15 latency_s={times} times=4.5 needed_s=28"


@table(
    bad("nothing-answered", reading=SILENCE),
    bad("no-success", reading=reading(counts=Counts(None, 0, 6750, 0, None, None, 15.0))),
    # In the window, after a good warm-up.
    bad("no-success",
        reading=reading(counts=counts(4500, 6750), window_ok=0, window_http_errors=6750)),
    bad("few-answers answers=150 needed=200", record(plan(offered_rps=10)), reading(10.0)),
    # Not enough, with errors or without.
    bad("few-answers answers=195 errors=15 needed=200",
        record(plan(offered_rps=14)), failing(195, 15)),
    bad("mostly-errors answers=60 of=30000 needed=200",
        reading=failing(60, 29_940, corrected=None, all_ms=1.5), **LIMITED),
    bad("mostly-errors", reading=failing(199, 200, all_ms=112.8), **LIMITED),
    # It is enough where they are many anyway.
    ok("errors", record=record(plan(offered_rps=2000)), reading=failing(200, 29_800)),
    # 300 of 450 req/s × 0.2 s: 60 of 100 connections busy; 40 were free, so it did not send.
    bad("generator-short ended_rps=", reading=reading(300.0)),
    # Without raw latency a lost rate is never blamed on the server.
    bad("generator-short ended_rps=300 of_rps=450", reading=reading(300.0, raw=None)),
    # 40 of 100 connections were free, or could not be opened: nothing was due on a free one.
    ok("overload answered_rps=300 offered_rps=450",
       reading=reading(300.0, lag_ms=0.1, late=IN_TIME)),
    # 6,500 of 6,750 planned arrivals came: chance, and no overload.
    ok(record=RANDOM, reading=reading(6500 / 15, late=IN_TIME, due=6500)),
    ok("overload answered_rps=420 offered_rps=433.333", record=RANDOM,
       reading=reading(6300 / 15, late=IN_TIME, due=6500)),
    # By chance more were in flight as the window began: 88 are, so 3 √176 = 40 beside 1 % of 6,500.
    ok(record=RANDOM, reading=reading(6600 / 15, late=IN_TIME, due=6500)),
    bad("backlog answered_rps=440.667 offered_rps=433.333", RANDOM,
        reading(6610 / 15, late=IN_TIME, due=6500)),
    bad("backlog answered_rps=440", reading=reading(6600 / 15, late=IN_TIME, due=6500)),
    ok("errors share=0.8 latencies=mixed", record=FAST,
       reading=reading(500, counts=Counts(None, 1500, 6000, 0, None, None, 15.0))),
    bad("above-bound goodput_rps=499.933 bound_rps=100", FAST,
        reading(500, counts=Counts(None, 7499, 1, 0, None, None, 15.0))),
    # A bound leaves room for one burst of all connections.
    ok(**bursts(545.5)),
    bad("above-bound", **bursts(637.0)),
    # Errors of the warm-up are none of the window.
    ok(reading=reading(counts=ERRORS_BEFORE, window_ok=6750, window_http_errors=0)),
    ok("errors share=0.2", reading=MIXED),
    ok("errors share=0.2 unexpected=1300", reading=copy.replace(MIXED, unexpected=1300)),
    ok("errors share=0.2 latencies=apart", reading=failing(5400, 1350)),
    ok("errors share=0.2 latencies=mixed", reading=failing(5400, 1350, failed=None)),
    # 4 % of 450 req/s are reset or time out: 18 a second over the 25 s that the engine accounted.
    # They were offered.
    ok(NO_ANSWERS, reading=reading(432.0, counts=counts(10_800, socket=450))),
    ok(NO_ANSWERS, reading=reading(432.0, counts=counts(10_800, timeouts=450))),
    # No more are lost than were offered and not answered.
    ok(NO_ANSWERS, reading=reading(432.0, counts=RESETS)),
    ok(reading=reading(450.0, counts=RESETS, window_ok=6750, window_http_errors=0)),
    # Those that are neither were not sent.
    bad("generator-short ended_rps=318 of_rps=450 busy=0.6", reading=HALF_GONE),
    # Little's law finds 74 % of the connections in the answers of a window of 20 s, and 3.9 s / 20
    # s more may be in none. In a window of 60 s a quarter of them was free.
    ok("overload answered_rps=955 offered_rps=22500", record=POOLED,
       reading=reading(955.0, window_s=20.0, **LONG)),
    bad("generator-short ended_rps=955 of_rps=22500 busy=0.7449", POOLED,
        reading(955.0, window_s=60.0, **LONG)),
    # 100 req/s × 1 s: all 100 connections waited for the server.
    ok("overload answered_rps=100 offered_rps=450", reading=reading(100.0, raw=latency(1000))),
    # 450 req/s for 15 s in bursts 0.3 s apart: 0.3 / 15 = 2 % beside the 1 % allowed.
    ok(reading=reading(437.0, pause_s=0.3)),
    bad("generator-short ended_rps=", reading=reading(435.0, pause_s=0.3)),
    # 100 connections at 200 ms: 500 req/s. 5 % + 0.2/15 = 6.3 % tolerance. 460 × 0.2 = 92 of 100
    # connections; 540 × 0.2 = 108.
    ok(**closed(500, 200)),
    ok(**closed(470, 200)),
    bad("littles-law answered_rps=460", **closed(460, 200)),
    bad("littles-law answered_rps=540", **closed(540, 200)),
    # 450 req/s offered: 1 % more is the window's edges, 2 % more was due before it.
    ok(reading=reading(454.0)),
    bad("backlog answered_rps=459", reading=reading(459.0)),
    # A window is five latencies long; a tenth more than planned is no reason.
    ok(**of_5000("closed", 25.0, 5400)),
    ok("overload", **of_5000("open", 25.0, 5400)),
    bad(short("5.05"), **of_5000("closed", 15.0, 5050)),
    bad(short("5.05"), **of_5000("open", 15.0, 5050)),
    # A third of the connections was missing; in 5 s with R = 5 s a tolerance of 105 % hid that.
    bad("window-short", **of_5000("closed", 5.0, 5000, 667)),
    bad("littles-law answered_rps=667 each_s=5 busy=3335 planned=5000 tolerance=0.25",
        **of_5000("closed", 25.0, 5000, 667)),
)  # fmt: skip
def test_what_was_answered(line: Any) -> None:
    check(line)


def test_how_many_requests_are_lost() -> None:
    # Of 11,250 in the whole run 10,800 were answered: 4 % as well.
    assert error_share(reading(432.0, counts=RESETS), 450) == pytest.approx(0.04)
    # A closed load has no rate: all of them were sent.
    assert error_share(reading(432.0, counts=RESETS), None) == pytest.approx(25 / 35.8)
    # All that was offered in the window was answered: they were lost before it.
    early = reading(450.0, counts=RESETS, window_ok=6750, window_http_errors=0)
    assert error_share(early, 450) == 0
    # 200 requests timed out in the 15 s of the window, after 10 s of warm-up.
    of = counts(11_050, timeouts=200)
    said = reading(436.7, counts=of, window_ok=6550, window_http_errors=0, window_lost=200)
    assert lost_rps(said, 450) == pytest.approx(200 / 15)
    # More were lost than were offered meanwhile: they were due before it.
    for lost, share in ((200, 200 / 6750), (1000, 1000 / 7550), (0, 0.0)):
        of_window = copy.replace(said, window_lost=lost)
        assert error_share(of_window, 450) == pytest.approx(share)


# 90 are in flight: 3 √180 = 40 by chance, and 9 for a latency that rises.
def ended(count: int, **changes: Any) -> Reading:
    known = {"late": IN_TIME, "due": 6750, "window_http_errors": 0, "window_lost": 0}
    return reading(count / 15, window_ok=count, **known, **changes)


@pytest.mark.parametrize(
    ("count", "hangs", "means_ms", "lost"),
    [
        # A queue at the window's end, in which nobody waits for long.
        (6685, False, [], 0),
        (6685, True, [], 65),
        (6710, True, [], 0),
        # What waits in an overload is no loss.
        (6300, True, [], 0),
        (6615, True, [200] * 15, 135),  # 2 % of the requests hang
        # 2 % wait in a queue: who came last waits 300 ms longer, in which 135 come.
        (6615, True, range(200, 500, 20), 0),
        (
            6550,
            True,
            range(200, 320, 8),
            146,
        ),  # both: 54 of the 200 that are missing are in a queue
        (3375, True, range(250, 7750, 500), 0),  # half of the requests wait, and one hangs
    ],
)
def test_requests_that_are_never_answered_count_as_lost(
    count: int, hangs: bool, means_ms: Sequence[float], lost: int
) -> None:
    """A run that is shorter than the engine's patience has no timeout, and no latency of them."""
    seconds = tuple(Second(440, 440, mean_ms) for mean_ms in means_ms)
    said = ended(count, hangs=hangs, ranks=((210.0, count),), seconds=seconds)
    row = judged_row("run", measurement(said=said))
    assert row.window_lost == lost
    assert error_share(row, row.offered_rps) == pytest.approx(lost / (count + lost))
    notes = [note.cell for note in judge(Trial(measurement(said=said), observation())).notes]
    assert (f"never-answered requests={lost}" in notes) == (lost > 0)
    # Where more than 1 % may never be answered, p99 is one of these.
    assert row.slo_p99_ms == (210.0 if 0.99 * (count + lost) <= count else None)
    assert row.overloaded == (count + lost < 0.99 * 6750)
    # Several kinds of requests may have several queues.
    two = record(plan(requests=(Request("/"), Request("/slow"))))
    if means_ms:
        assert judged_row("run", measurement(two, said)).window_lost == 0


def held(hold: Hold = "idle", **changes: Any) -> TrialRecord:
    known = {"live_heap_bytes": 9_000_000, "resident_bytes": 90_000_000, "in_flight": 100}
    return record(plan("closed", hold=hold), **{**known, **changes})


def connected(sent: int, ok: int, errors: int = 0, samples: int = 0) -> Reading:
    of = Counts(sent, ok, errors, 0, 0, sent - ok - errors, 15.0)
    return reading(0.0, samples=samples, corrected=None, raw=None, counts=of)


# Of 100 connections.
IDLE, IN_FLIGHT = connected(100, 100), connected(100, 0)


@table(
    ok(record=held(), reading=IDLE),
    ok(record=held("in-flight"), reading=IN_FLIGHT),
    bad("cold-silent", held(warmth=Warmth(False, (), cold_silent.remark())), IDLE),
    bad("held-unread", held(live_heap_bytes=None), IDLE),
    bad("held-incomplete what=sent count=103 planned=100", held(), connected(103, 103)),
    bad("held-incomplete what=answered count=99 planned=100", held(), connected(100, 99, 1)),
    bad("held-incomplete what=answered-late count=1 planned=0", held("in-flight"),
        connected(100, 1, samples=1)),
    bad("held-incomplete what=in-flight count=99 planned=100", held("in-flight", in_flight=99),
        IN_FLIGHT),
    # Some were left over.
    bad("held-incomplete what=in-flight count=103 planned=100", held("in-flight", in_flight=103),
        IN_FLIGHT),
)  # fmt: skip
def test_held_connections(line: Any) -> None:
    check(line)


def test_the_row_of_a_held_load_has_the_memory_and_no_verdict() -> None:
    whole = measurement(held("in-flight"), IN_FLIGHT)
    row = judged_row("r", whole)
    assert (row.live_heap_bytes, row.resident_bytes) == (9_000_000, 90_000_000)
    # Who waits is not lost.
    assert not row.window_lost
    assert verdict_of(Trial(whole, observation())).bottleneck == UNKNOWN
