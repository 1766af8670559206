"""A window that is not steady, and a server that stops answering in it."""

import copy
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from lab.judge.checks import by_accident, judge, server_failures
from lab.judge.checks.steady import DRIFTS, FALSE_ALARM
from lab.judge.trial import Trial
from lab.model import (
    Judgement,
    Observation,
    Peak,
    Reading,
    Second,
    Series,
    Spike,
    ToxicStep,
    TrialRecord,
)
from support.fakes import START, USAGE, latency, measurement, observation, plan, reading, record
from support.judged import bad, check, ok, table

OPENS = START.timestamp() + 10.5
Case = tuple[TrialRecord, Reading]


def seconds(rates: Sequence[float], latencies: Sequence[float] | None = None) -> tuple[Second, ...]:
    times = latencies or [200.0] * len(rates)
    pairs = zip(rates, times, strict=True)
    return tuple(Second(round(rps), round(rps), ms if rps else None) for rps, ms in pairs)


def closed(rates: Sequence[float], **changes: Any) -> Case:
    """A closed load of 100 connections at 200 ms, whose seconds had these rates."""
    rps = sum(rates) / len(rates)
    said = reading(rps, float(len(rates)), corrected=None, raw=latency(), seconds=seconds(rates))
    return record(plan("closed", predicted_rps=None)), copy.replace(said, **changes)


def opened(latencies: Sequence[float]) -> Case:
    rates = [450.0] * len(latencies)
    return record(), reading(450.0, float(len(rates)), seconds=seconds(rates, latencies))


def judged(of: TrialRecord, said: Reading, seen: Observation | None = None) -> Judgement:
    return judge(Trial(measurement(of, said), seen or observation()))


def ramp(first: float, last: float, count: int = 15) -> list[float]:
    return [first + (last - first) * at / (count - 1) for at in range(count)]


def scattering(rates: Sequence[float]) -> dict[str, Any]:
    of, said = closed(rates, achieved_rps=500.0, samples=7500)
    return {"record": of, "reading": said}


def on_purpose(plan_changes: dict[str, Any], **changes: Any) -> dict[str, Any]:
    of, said = closed(ramp(450, 540))
    of = copy.replace(of, plan=copy.replace(of.plan, **plan_changes), **changes)
    return {"record": of, "reading": said}


COLD = copy.replace(closed([1.0])[0], jit_share=0.3)
SPIKE = Spike(100, None, calm_s=5, peak_s=5, repeats=1, tolerance=0.1, steady_s=1)
OVERLOADED = record(plan(offered_rps=9000, predicted_rps=1000.0, concurrency=200))
GROWING = reading(1000.0, corrected=latency(7000), seconds=seconds([1000] * 15, ramp(1000, 14_000)))
# 6 s of 15 s answered: 40 of 100 connections busy by Little's law, in both kinds of load.
HUNG_S = 9
HANG = [500.0] * 6 + [0.0] * HUNG_S
OPEN = record(plan(offered_rps=500, predicted_rps=None))
STOPPED = record(OPEN.plan, usage=copy.replace(USAGE, window_throttled_s=9.0))
PAUSED = [450.0] * 5 + [0.0] * 3 + [1800.0] + [450.0] * 6
# Bursts are no hang. 100 connections, 2.5 s: all are answered at once, then nobody for 2 s.
BURSTS = closed(
    [100.0, 0.0, 0.0, 100.0, 0.0] * 3, raw=latency(2500), achieved_rps=40.0, samples=600
)


def counters(rates: Sequence[float | None]) -> Observation:
    """What Prometheus saw of a server that answered at these rates, from 2 s before the window on.
    None: it did not answer the scrape at the end of that second, and no request in it."""
    answers, scraped = 0.0, []
    for at, rate in enumerate((rates[0], rates[0], *rates, rates[-1])):
        if rate is not None:
            scraped.append((OPENS - 1.8 + at, answers))
            answers += rate
    times = tuple(at for at, _ in scraped)
    labels = {"job": "server", "server": "a", "route": "/downstream"}
    return observation(
        *(
            Series({**labels, "__name__": name, **more}, times, tuple(n * each for _, n in scraped))
            for name, more, each in (
                ("lab_http_requests_total", {"outcome": "ok"}, 1.0),
                ("lab_http_request_seconds_count", {"phase": "total"}, 1.0),
                ("lab_http_request_seconds_sum", {"phase": "total"}, 0.2),
                ("lab_http_requests_total", {"outcome": "server_error"}, 0.0),
            )
        )
    )


UNCOUNTED = record(plan("closed", predicted_rps=None)), reading(500, corrected=None)


@table(
    # Slopes, whose halves differ by 10 %, and jumps; 5 s are enough for a slope.
    bad("goodput-drift first_rps=469.2", *closed(ramp(450, 540))),
    bad("goodput-drift first_rps=520.7", *closed(ramp(540, 450))),
    bad("goodput-drift first_rps=480.2",
        *closed([480, 482, 478, 481] * 2 + [520, 522, 518, 519] * 2)),
    bad("goodput-drift first_rps=480 second_rps=520", *closed([480.0] * 7 + [520.0] * 7)),
    bad("goodput-drift first_rps=425 second_rps=575", *closed(ramp(400, 600, 5))),
    # What is small (4 %) or scattered, single seconds, and bursts of all connections: a second has
    # four or five of them.
    ok(**scattering([500, 497, 503, 499, 501] * 3)),
    ok(**scattering(ramp(490, 510))),
    ok(**scattering([500, 800, 200, 500, 790, 210, 500, 0, 900, 500, 100, 900, 500, 60])),
    ok(**scattering([500, 500, 500, 400, 500, 500, 500, 500, 400, 500, 500, 500, 500, 400])),
    ok(**scattering([500, 300])),
    # The latency of an open load, either way. A millisecond is no change.
    bad("latency-drift first_ms=247.1", *opened(ramp(260, 200))),
    bad("latency-drift first_ms=212.857", *opened(ramp(200, 260))),
    ok(record=opened(ramp(1.2, 0.4))[0], reading=opened(ramp(1.2, 0.4))[1]),
    # That of an overloaded load grows by nature.
    ok("overload", record=OVERLOADED, reading=GROWING),
    # Spikes and scripts are unsteady on purpose.
    ok(**on_purpose({"spike": SPIKE}, peaks=(Peak(15.5, 20.5),))),
    bad("script-short", *on_purpose({"script": (ToxicStep(5, {"TYPE": "down"}),)}).values()),
    # What has another reason is not called unsteady too.
    bad("compiling", COLD, closed(ramp(400, 600))[1]),
    # An engine that keeps no seconds has those of Prometheus.
    ok(record=UNCOUNTED[0], reading=UNCOUNTED[1], seen=counters([500.0] * 15)),
    bad("goodput-drift", *UNCOUNTED, counters(ramp(450, 550))),
    # A server that hangs is not the generator's fault.
    bad("server-silent silence_s=9", *closed(HANG)),
    bad("server-silent silence_s=9", OPEN, reading(200.0, seconds=seconds(HANG))),
    # Too few answers for a percentile are the server's doing as well.
    bad("server-silent silence_s=14", *closed([60.0] + [0.0] * 14)),
    # A hang is also seen by Prometheus. It came back: 100 requests were waiting, and are answered
    # at once.
    bad("server-silent", OPEN, reading(200.0), counters([500.0] * 6 + [None] * HUNG_S)),
    bad("server-silent", OPEN, reading(300.0),
        counters([500.0] * 5 + [None] * 6 + [600.0] + [500.0] * 3)),
    # A generator that lost its rate does not blame the server.
    bad("generator-short", OPEN, reading(300.0, seconds=seconds([300.0] * 15))),
    # A pause whose answers all came is a note: corrected latencies show the whole pause.
    ok("server-paused silence_s=3", reading=reading(450.0, seconds=seconds(PAUSED))),
    ok(record=BURSTS[0], reading=BURSTS[1]),
)  # fmt: skip
def test_a_window(line: Any) -> None:
    check(line)


def test_a_hang_is_the_servers_finding_where_the_generator_did_its_part() -> None:
    reasons = judged(*closed(HANG)).reasons
    assert server_failures(reasons) == reasons
    stopped = judged(STOPPED, reading(200.0, seconds=seconds(HANG))).reasons
    assert [reason.code for reason in stopped] == ["generator-throttled", "generator-short"]


@pytest.mark.parametrize(("length", "seen"), [(2, False), (4, True), (6, True)])
def test_when_a_burst_fell_decides_nothing(length: int, seen: bool) -> None:
    # Late answers for some seconds, at the start of the window or at its end. Two seconds of 15 are
    # no trend.
    times = [400.0 + at % 2 for at in range(length)] + [200.0 + at % 3 for at in range(15 - length)]
    early, late = judged(*opened(times)), judged(*opened(times[::-1]))
    assert (early.valid, late.valid) == (not seen, not seen)
    assert by_accident(early.reasons) == by_accident(late.reasons) == seen


def scattered(rng: random.Random, count: int, scatter: float, memory: float) -> list[float]:
    """Rates of a steady window; each depends on the one before by `memory` (AR(1))."""
    state, rates = rng.gauss(0, 1), []
    for _ in range(count):
        state = memory * state + (1 - memory**2) ** 0.5 * rng.gauss(0, 1)
        rates.append(1000 * (1 + scatter * state))
    return rates


def balanced(rates: Sequence[float]) -> Case:
    """N = X·R holds."""
    of, said = closed(rates)
    return of, copy.replace(said, raw=latency(100_000 / said.achieved_rps))


def share(windows: int, make: Callable[[], Case]) -> float:
    """How many of so many windows are called unsteady."""
    alarms = sum(not judged(*make()).valid for _ in range(windows))
    return alarms / windows


@pytest.mark.parametrize("count", [5, 15])
@pytest.mark.parametrize(
    ("scatter", "memory", "most"),
    [
        # The seconds of ten real trials scattered by 0 to 1.7 % (docs/method.md).
        (0.02, 0.0, 0.002),
        (0.02, 0.5, 0.005),
        # At any scatter, of seconds that do not depend on each other.
        (0.1, 0.0, FALSE_ALARM),
        (0.05, 0.5, 0.1),
    ],
)
def test_false_alarms_are_rare(count: int, scatter: float, memory: float, most: float) -> None:
    rng, windows = random.Random(20261122), 400
    found = share(windows, lambda: balanced(scattered(rng, count, scatter, memory)))
    # Two standard errors of the count.
    assert found <= most + 2 * (most * (1 - most) / windows) ** 0.5


@pytest.mark.parametrize(
    ("count", "shape"),
    [
        (15, ramp(0.9, 1.1)),
        (15, [1.0] * 7 + [1.1] * 8),
        (8, ramp(0.8, 1.2, 8)),
    ],
)
def test_a_drift_beyond_the_margin_is_found(count: int, shape: Sequence[float]) -> None:
    """With a scatter of 2 %: halves that differ by so much, by a slope or by a jump."""
    rng = random.Random(20261122)

    def window() -> Case:
        rates = scattered(rng, count, 0.02, 0.0)
        return balanced([a * b for a, b in zip(rates, shape, strict=True)])

    assert share(50, window) >= 0.95
    assert {"goodput-drift", "latency-drift"} == DRIFTS
