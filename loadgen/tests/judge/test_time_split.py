"""The parts of a request's mean time, from histograms made by hand in a window of ten seconds."""

import copy
from collections.abc import Mapping
from itertools import chain
from random import Random

import pytest

from lab.judge.time_split import (
    ACCEPT_QUEUE,
    ANSWERED,
    CALLS,
    LAG,
    REQUESTS,
    TOOK,
    UNREAD,
    allowed_ms,
    time_split,
)
from lab.model import Counts, Measurement, Mode, Observation, Series, Spike, TimeSplit
from support.fakes import flat, measurement, plan, reading, record
from support.series import CLOSES, OPENS, counter, gauge, mean_time

RPS = 100.0


def timed(name: str, rps: float, ms: Mapping[str, float], **labels: str) -> list[Series]:
    each = (mean_time(name, ms[of] / 1000, rps, server="a", phase=of, **labels) for of in ms)
    return list(chain.from_iterable(each))


def served(route: str = "/downstream", **ms: float) -> list[Series]:
    """What the server `a` tells of its requests, by phase."""
    return timed(REQUESTS, RPS, ms, route=route)


def called(rps: float = RPS, **ms: float) -> list[Series]:
    return timed(CALLS, rps, ms)


def answered(drawn_ms: float, lag_ms: float) -> list[Series]:
    parts = zip(TOOK, (drawn_ms, lag_ms), strict=True)
    return [counter(ANSWERED, RPS), *(counter(name, RPS * ms / 1000) for name, ms in parts)]


SERVED = served(queue=5.0, service=230.0)
CALLED = called(pending=12.0, call=210.0)
ANSWERS = answered(200.0, 1.5)


def seen(*series: Series) -> Observation:
    return Observation((OPENS, CLOSES), series)


def trial(
    mode: Mode = "open", route: str = "/downstream", spike: Spike | None = None
) -> Measurement:
    of = plan("closed") if mode == "closed" else plan("open", offered_rps=100)
    corrected = None if mode == "closed" else flat(247.0)
    said = reading(RPS, 10.0, raw=flat(240.0), corrected=corrected)
    return measurement(record(copy.replace(of, route=route, spike=spike)), said)


def rounded(split: TimeSplit) -> list[float | None]:
    return [value if value is None else round(value, 6) for value in split.parts]


# generator, connect, queue, own, pending, proxy, path, downstream, unexplained.
WHOLE = [7.0, 0.0, 5.0, 8.0, 12.0, 8.5, 201.5, 5.0]


KNOWN = (*SERVED, *CALLED, *ANSWERS)


def test_the_parts_follow_each_other_and_add_up_to_what_the_client_saw() -> None:
    split = time_split(trial(), seen(*KNOWN))
    assert (rounded(split), split.whole_ms) == (WHOLE, pytest.approx(247.0))


def test_errors_are_in_what_the_client_saw_as_in_what_the_server_took() -> None:
    # 0.5 % were quick errors: 199 answers of 240 ms and one of 40 ms.
    whole = trial()
    counts = Counts(None, 995, 5, 0, 0, None, 10.0)
    said = copy.replace(whole.reading, counts=counts, all_ms=239.0)
    split = time_split(copy.replace(whole, reading=said), seen(*KNOWN))
    assert rounded(split) == [*WHOLE[:-1], 4.0]


def summary(name: str, ms: float) -> tuple[Series, ...]:
    return mean_time(name, ms / 1000, RPS, server="a")


@pytest.mark.parametrize(
    ("series", "parts"),
    [
        # An answer that an event loop left unread was in its queue.
        ((*KNOWN, *summary(UNREAD, 3.0)), [7.0, 0.0, 8.0, 8.0, 12.0, 5.5, 201.5, 5.0]),
        # A virtual thread that goes on late was in the server's queue.
        ((*KNOWN, *summary(LAG, 4.0)), [7.0, 0.0, 9.0, 8.0, 12.0, 4.5, 201.5, 5.0]),
        # Nothing hands its requests over: it is late for the request, and for the answer.
        (
            (*served(queue=0.0, service=230.0), *CALLED, *summary(LAG, 4.0), *ANSWERS),
            [7.0, 0.0, 8.0, 8.0, 12.0, 4.5, 201.5, 6.0],
        ),
        # Its event loops read the answers, and tell.
        ((*KNOWN, *summary(LAG, 4.0), *summary(UNREAD, 0.0)), WHOLE),
        # It is unknown for how long requests of an event loop lay unread.
        (
            (*served(queue=0.0, service=230.0), *CALLED, *ANSWERS),
            [7.0, 0.0, None, 8.0, 12.0, 8.5, 201.5, 10.0],
        ),
        # 0.3 connections in the accept queue on average, and 100 requests a second: 3 ms of the 5.
        (
            (*KNOWN, gauge(ACCEPT_QUEUE, 0.3, server="a"), gauge(ACCEPT_QUEUE, 900.0, server="b")),
            [7.0, 3.0, *WHOLE[2:-1], 2.0],
        ),
        # Parts that are more than the client saw are shown as they are.
        (
            (*served(queue=5.0, service=250.0), *CALLED, *ANSWERS),
            [7.0, 0.0, 5.0, 28.0, 12.0, 8.5, 201.5, -15.0],
        ),
    ],
)
def test_waits_are_parts(series: tuple[Series, ...], parts: list[float | None]) -> None:
    split = time_split(trial(), seen(*series))
    assert (rounded(split), split.whole_ms) == (parts, pytest.approx(247.0))


def with_late(of: Measurement, late_ms: float | None) -> Measurement:
    late = None if late_ms is None else flat(late_ms)
    return copy.replace(of, reading=copy.replace(of.reading, late=late))


@pytest.mark.parametrize("late_ms", [None, 3.0])
def test_a_load_is_late_by_what_its_engine_tells(late_ms: float | None) -> None:
    split = time_split(with_late(trial("closed"), late_ms), seen(*KNOWN))
    assert rounded(split) == [late_ms or 0.0, *WHOLE[1:]]
    assert split.whole_ms == pytest.approx(240.0 + (late_ms or 0.0))
    # Sent 7 ms after they were due: 2 ms late by itself, 5 ms without a connection.
    assert rounded(time_split(with_late(trial(), 2.0), seen(*KNOWN))) == [2.0, 5.0, *WHOLE[2:]]


@pytest.mark.parametrize("mode", ["open", "closed"])
def test_whatever_is_measured_the_parts_and_what_is_left_are_the_client_s_mean(mode: Mode) -> None:
    random = Random(1)
    for _ in range(200):
        call, pending, own, queue, late = (random.uniform(0, 300) for _ in range(5))
        series = (
            *served(queue=queue, service=call + pending + own),
            *called(pending=pending, call=call),
            *answered(random.uniform(0, 300), random.uniform(0, 5)),
            gauge(ACCEPT_QUEUE, random.uniform(0, 9), server="a"),
        )
        of = with_late(trial(mode), late)
        client_ms = of.reading.corrected.mean_ms if of.reading.corrected else 240.0 + late
        split = time_split(of, seen(*series))
        assert split.whole_ms == pytest.approx(client_ms)
        # What the parts say does not depend on what the client saw; only the rest does.
        slow = copy.replace(of.reading.raw, mean_ms=of.reading.raw.mean_ms + 90)
        corrected = of.reading.corrected and copy.replace(slow, mean_ms=client_ms + 90)
        slower = copy.replace(of.reading, raw=slow, corrected=corrected)
        other = time_split(copy.replace(of, reading=slower), seen(*series))
        assert other.parts[:-1] == pytest.approx(split.parts[:-1])
        assert other.time_unexplained_ms - split.time_unexplained_ms == pytest.approx(90)


def test_a_route_without_a_call_has_its_service_for_its_own() -> None:
    of = seen(*served("/block", queue=5.0, service=230.0), *ANSWERS)
    split = time_split(trial(route="/block?wait_ms=200"), of)
    assert rounded(split) == [7.0, 0.0, 5.0, 230.0, None, None, None, 5.0]
    assert split.whole_ms == pytest.approx(247.0)


# The mean is 40 ms above the downstream's, or 1 ms.
@pytest.mark.parametrize(
    ("own_ms", "rest_ms", "allowed"),
    [(36.0, 4.0, 4.0), (44.0, -4.0, 4.0), (0.7, 0.3, 0.3)],
)
def test_a_tenth_may_be_unexplained(own_ms: float, rest_ms: float, allowed: float) -> None:
    split = TimeSplit(time_own_ms=own_ms, time_downstream_ms=200.0, time_unexplained_ms=rest_ms)
    assert allowed_ms(split) == pytest.approx(allowed)


@pytest.mark.parametrize(
    "series",
    [
        (),
        (*CALLED, *ANSWERS),
        (*SERVED, *CALLED),
        (*SERVED, *CALLED, *ANSWERS[:2]),
        (*SERVED, *called(call=210.0), *ANSWERS),
        # Three calls a request: they may be made at once.
        (*SERVED, *called(3 * RPS, pending=12.0, call=210.0), *ANSWERS),
    ],
)
def test_nothing_is_told_where_a_part_is_missing(series: tuple[Series, ...]) -> None:
    assert time_split(trial(), seen(*series)) == TimeSplit()


def test_nothing_is_told_of_requests_that_got_no_answer_and_of_spikes() -> None:
    known, whole = seen(*KNOWN), trial()
    lost = copy.replace(whole.reading, counts=Counts(None, 900, 100, 0, None, None, 10.0))
    assert time_split(copy.replace(whole, reading=lost), known) == TimeSplit()
    spike = Spike(10, None, calm_s=4, peak_s=2, repeats=1, tolerance=0.1, steady_s=1)
    assert time_split(trial(spike=spike), known) == TimeSplit()
    assert time_split(whole, None) == TimeSplit()
