"""A window that is not steady, and a server that stops answering in it."""

import copy
import random
from collections.abc import Callable, Sequence

import pytest

from lab.judge.checks import by_accident, judge, server_failures
from lab.judge.checks.steady import DRIFTS
from lab.judge.steps import FALSE_ALARM
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
from support.fakes import (
    START,
    USAGE,
    cells,
    latency,
    measurement,
    observation,
    plan,
    reading,
    record,
)

OPENS = START.timestamp() + 10.5


def seconds(rates: Sequence[float], latencies: Sequence[float] | None = None) -> tuple[Second, ...]:
    times = latencies or [200.0] * len(rates)
    pairs = zip(rates, times, strict=True)
    return tuple(Second(round(rps), round(rps), ms if rps else None) for rps, ms in pairs)


def closed(rates: Sequence[float], **changes: object) -> tuple[TrialRecord, Reading]:
    """A closed load of 100 connections at 200 ms, whose seconds had these rates."""
    rps = sum(rates) / len(rates)
    said = reading(rps, float(len(rates)), corrected=None, raw=latency(), seconds=seconds(rates))
    return record(plan("closed", predicted_rps=None)), copy.replace(said, **changes)


def opened(latencies: Sequence[float]) -> tuple[TrialRecord, Reading]:
    rates = [450.0] * len(latencies)
    return record(), reading(450.0, float(len(rates)), seconds=seconds(rates, latencies))


def judged(of: TrialRecord, said: Reading, seen: Observation | None = None) -> Judgement:
    return judge(measurement(of, said), seen or observation())


def ramp(first: float, last: float, count: int = 15) -> list[float]:
    return [first + (last - first) * at / (count - 1) for at in range(count)]


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        # Slopes, whose halves differ by 10 %, and jumps.
        (ramp(450, 540), (469, 521)),
        (ramp(540, 450), (521, 469)),
        ([480, 482, 478, 481] * 2 + [520, 522, 518, 519] * 2, (480, 520)),
        ([480.0] * 7 + [520.0] * 7, (480, 520)),
        # 5 s are enough for a slope.
        (ramp(400, 600, 5), (425, 575)),
    ],
)
def test_goodput_that_changes_is_a_reason(rates: Sequence[float], said: tuple[int, int]) -> None:
    (reason,) = judged(*closed(rates)).reasons
    assert reason.code == "goodput-drift"
    assert tuple(map(round, reason.values.values())) == said


@pytest.mark.parametrize(
    "rates",
    [
        [500, 497, 503, 499, 501] * 3,
        ramp(490, 510),  # less than matters: 4 %
        [500, 800, 200, 500, 790, 210, 500, 0, 900, 500, 100, 900, 500, 60],  # scatter
        # Bursts of all connections: a second has four or five of them.
        [500, 500, 500, 400, 500, 500, 500, 500, 400, 500, 500, 500, 500, 400],
        [500, 300],  # single seconds
    ],
)
def test_what_is_small_or_scattered_is_no_reason(rates: Sequence[float]) -> None:
    of, said = closed(rates)
    said = copy.replace(said, achieved_rps=500.0, samples=7500)
    assert judged(of, said) == Judgement((), ())


def test_latency_of_an_open_load_that_changes_is_a_reason_either_way() -> None:
    for times, said in ((ramp(260, 200), (247, 213)), (ramp(200, 260), (213, 247))):
        (reason,) = judged(*opened(times)).reasons
        assert reason.code == "latency-drift"
        assert tuple(map(round, reason.values.values())) == said
    # A millisecond is no change.
    assert judged(*opened(ramp(1.2, 0.4))) == Judgement((), ())


@pytest.mark.parametrize(("length", "seen"), [(2, False), (4, True), (6, True)])
def test_when_a_burst_fell_decides_nothing(length: int, seen: bool) -> None:
    # Late answers for some seconds, at the start of the window or at its end. Two seconds of 15 are
    # no trend.
    times = [400.0 + at % 2 for at in range(length)] + [200.0 + at % 3 for at in range(15 - length)]
    early, late = judged(*opened(times)), judged(*opened(times[::-1]))
    assert (early.valid, late.valid) == (not seen, not seen)
    assert by_accident(early.reasons) == by_accident(late.reasons) == seen


def test_the_latency_of_an_overloaded_load_grows_by_nature() -> None:
    of = record(plan(offered_rps=9000, predicted_rps=1000.0, concurrency=200))
    times = seconds([1000] * 15, ramp(1000, 14_000))
    judgement = judged(of, reading(1000.0, corrected=latency(7000), seconds=times))
    assert judgement.valid
    assert [note.code for note in judgement.notes] == ["overload"]


def test_spikes_and_scripts_are_unsteady_on_purpose() -> None:
    spike = Spike(100, None, calm_s=5, peak_s=5, repeats=1, tolerance=0.1, steady_s=1)
    for changed, more in (
        ({"spike": spike}, {"peaks": (Peak(15.5, 20.5),)}),
        ({"script": (ToxicStep(5, {"TYPE": "down"}),)}, {}),
    ):
        of, said = closed(ramp(450, 540))
        of = copy.replace(of, plan=copy.replace(of.plan, **changed), **more)
        assert not DRIFTS & {one.code for one in judged(of, said).reasons}
    # What has another reason is not called unsteady too.
    of, said = closed(ramp(400, 600))
    cold = copy.replace(of, jit_share=0.3)
    assert [one.code for one in judged(cold, said).reasons] == ["compiling"]


def scattered(rng: random.Random, count: int, scatter: float, memory: float) -> list[float]:
    """Rates of a steady window; each depends on the one before by `memory` (AR(1))."""
    state, rates = rng.gauss(0, 1), []
    for _ in range(count):
        state = memory * state + (1 - memory**2) ** 0.5 * rng.gauss(0, 1)
        rates.append(1000 * (1 + scatter * state))
    return rates


def share(windows: int, make: Callable[[], tuple[TrialRecord, Reading]]) -> float:
    return sum(not judged(*make()).valid for _ in range(windows)) / windows


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
    rng = random.Random(20261122)

    def window() -> tuple[TrialRecord, Reading]:
        of, said = closed(scattered(rng, count, scatter, memory))
        # N = X·R holds in every one.
        return of, copy.replace(said, raw=latency(100_000 / said.achieved_rps))

    windows = 400
    # Two standard errors of the count.
    assert share(windows, window) <= most + 2 * (most * (1 - most) / windows) ** 0.5


@pytest.mark.parametrize(("count", "drift", "least"), [(15, 0.10, 0.95), (8, 0.2, 0.95)])
def test_a_drift_beyond_the_margin_is_found(count: int, drift: float, least: float) -> None:
    """With a scatter of 2 %: halves that differ by so much, by a slope or by a jump."""
    rng = random.Random(20261122)

    def window(shape: Sequence[float]) -> tuple[TrialRecord, Reading]:
        rates = scattered(rng, count, 0.02, 0.0)
        of, said = closed([a * b for a, b in zip(rates, shape, strict=True)])
        return of, copy.replace(said, raw=latency(100_000 / said.achieved_rps))

    assert share(50, lambda: window(ramp(1 - drift, 1 + drift, count))) >= least
    if count > 8:
        jump = [1.0] * (count // 2) + [1 + drift] * (count - count // 2)
        assert share(50, lambda: window(jump)) >= least


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


def test_an_engine_that_keeps_no_seconds_has_those_of_prometheus() -> None:
    of, said = record(plan("closed", predicted_rps=None)), reading(500, corrected=None)
    assert judged(of, said, counters([500.0] * 15)) == Judgement((), ())
    assert judged(of, said, counters(ramp(450, 550))).reasons[0].code == "goodput-drift"


OPEN = record(plan(offered_rps=500, predicted_rps=None))
HUNG_S = 9
HANG = [500.0] * 6 + [0.0] * HUNG_S
STOPPED = "server-silent silence_s=9"


def test_a_server_that_hangs_is_not_the_generators_fault() -> None:
    # 6 s of 15 s answered: 40 of 100 connections busy by Little's law, in both kinds of load.
    of, said = closed(HANG)
    reasons = judged(of, said).reasons
    assert server_failures(reasons) == reasons
    assert cells(reasons) == [STOPPED]
    assert cells(judged(OPEN, reading(200.0, seconds=seconds(HANG))).reasons) == [STOPPED]
    # Too few answers for a percentile are the server's doing as well.
    of, said = closed([60.0] + [0.0] * 14)
    assert cells(judged(of, said).reasons) == ["server-silent silence_s=14"]


def test_a_hang_is_also_seen_by_prometheus() -> None:
    gone = counters([500.0] * 6 + [None] * HUNG_S)
    # It came back: 100 requests were waiting, and are answered at once.
    back = counters([500.0] * 5 + [None] * 6 + [600.0] + [500.0] * 3)
    for rps, seen in ((200.0, gone), (300.0, back)):
        [reason] = judged(OPEN, reading(rps), seen).reasons
        assert reason.code == "server-silent"


def test_a_generator_that_lost_its_rate_does_not_blame_the_server() -> None:
    [reason] = judged(OPEN, reading(300.0, seconds=seconds([300.0] * 15))).reasons
    assert reason.code == "generator-short"
    stopped = record(OPEN.plan, usage=copy.replace(USAGE, window_throttled_s=9.0))
    reasons = judged(stopped, reading(200.0, seconds=seconds(HANG))).reasons
    assert [one.code for one in reasons] == ["generator-throttled", "generator-short"]


def test_a_pause_whose_answers_all_came_is_a_note_and_bursts_are_none() -> None:
    # An open load catches up: its corrected latencies tell the whole pause.
    rates = [450.0] * 5 + [0.0] * 3 + [1800.0] + [450.0] * 6
    said = reading(450.0, seconds=seconds(rates))
    [paused] = judged(record(), said).notes
    assert paused.cell == "server-paused silence_s=3"
    # Bursts are no hang. 100 connections, 2.5 s: all are answered at once, then nobody for 2 s.
    rates = [100.0, 0.0, 0.0, 100.0, 0.0] * 3
    of, said = closed(rates, raw=latency(2500), achieved_rps=40.0, samples=600)
    assert judged(of, said) == Judgement((), ())
