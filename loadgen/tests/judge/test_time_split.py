"""The parts of a request's mean time, from histograms made by hand in a window of ten seconds."""

from __future__ import annotations

import dataclasses

import pytest

from lab.judge.time_split import ANSWERED, CALLS, REQUESTS, TOOK, time_split
from lab.model import Counts, Latency, Measurement, Mode, Observation, Series, Spike, TimeSplit
from support.fakes import measurement, plan, reading, record
from support.series import CLOSES, OPENS, counter, mean_time

RPS = 100.0


def served(route: str = "/downstream", **ms: float) -> list[Series]:
    """What the server `a` tells of its requests, by phase."""
    return [
        one
        for phase, each in ms.items()
        for one in mean_time(REQUESTS, each / 1000, RPS, server="a", route=route, phase=phase)
    ]


def called(rps: float = RPS, **ms: float) -> list[Series]:
    return [
        one
        for phase, each in ms.items()
        for one in mean_time(CALLS, each / 1000, rps, server="a", phase=phase)
    ]


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
    def mean(ms: float) -> Latency:
        return Latency(ms, ms, ms, ms, ms)

    of = plan("closed") if mode == "closed" else plan("open", offered_rps=100)
    said = dataclasses.replace(
        reading(RPS, 10.0),
        raw=mean(240.0),
        corrected=None if mode == "closed" else mean(247.0),
    )
    return measurement(record(dataclasses.replace(of, route=route, spike=spike)), said)


def rounded(split: TimeSplit) -> list[float | None]:
    return [value if value is None else round(value, 6) for value in dataclasses.astuple(split)]


WHOLE = [7.0, 5.0, 5.0, 8.0, 12.0, 8.5, 201.5]


def test_the_parts_follow_each_other_and_add_up_to_what_the_client_saw() -> None:
    split = time_split(trial(), seen(*SERVED, *CALLED, *ANSWERS))
    assert rounded(split) == WHOLE
    assert split.whole_ms == pytest.approx(247.0)


@pytest.mark.parametrize("late_ms", [None, 3.0])
def test_a_closed_load_is_late_by_what_its_engine_tells(late_ms: float | None) -> None:
    of = trial("closed")
    assert of.reading is not None
    late = late_ms if late_ms is None else Latency(*[late_ms] * 5)
    of = dataclasses.replace(of, reading=dataclasses.replace(of.reading, late=late))
    split = time_split(of, seen(*SERVED, *CALLED, *ANSWERS))
    assert rounded(split) == [late_ms or 0.0, *WHOLE[1:]]
    assert split.whole_ms == pytest.approx(240.0 + (late_ms or 0.0))


def test_a_route_without_a_call_has_its_service_for_its_own() -> None:
    of = seen(*served("/block", queue=5.0, service=230.0), *ANSWERS)
    split = time_split(trial(route="/block?wait_ms=200"), of)
    assert rounded(split) == [7.0, 5.0, 5.0, 230.0, None, None, None]
    assert split.whole_ms == pytest.approx(247.0)


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
    known = seen(*SERVED, *CALLED, *ANSWERS)
    whole = trial()
    assert whole.reading is not None
    lost = dataclasses.replace(whole.reading, counts=Counts(None, 900, 100, 0, None, None, 10.0))
    assert time_split(dataclasses.replace(whole, reading=lost), known) == TimeSplit()
    spike = Spike(10, None, calm_s=4, peak_s=2, repeats=1, tolerance=0.1, steady_s=1)
    assert time_split(trial(spike=spike), known) == TimeSplit()
    assert time_split(whole, None) == TimeSplit()
