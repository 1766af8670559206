"""What the lab judges where the downstream draws each delay."""

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from lab.judge.checks import judge
from lab.judge.checks.steady import Step, silent_s
from lab.judge.predict import crossing_s, needed_window_s, rate_error
from lab.judge.trial import Trial
from lab.kinds.proving.levers import USUAL_TIMEOUT_MS
from lab.model import STRONG, Latency, TrialRecord
from lab.model.routes import parse
from support.drawn_delay import LATENCY_300, SPREAD, drawn
from support.fakes import latency, measurement, observation, plan, reading, record, snapshot
from support.windows import calls, named, pool, seen
from support.windows import judged as judged_window

CALL = parse("/downstream")


def codes(
    rps: float, connections: int = 200, mean_ms: float | None = None, **changes: Any
) -> list[str]:
    """The reasons of a closed trial of 15 s with a bound of 5 req/s for each connection."""
    of = snapshot(**{"spread": SPREAD, **changes})
    bound = None if mean_ms else connections * 5.0
    load = plan("closed", concurrency=connections, predicted_rps=bound)
    answers = reading(rps, corrected=None, raw=latency(mean_ms or connections / rps * 1000))
    whole = measurement(record(load, before=of, after=of), answers)
    return [reason.code for reason in judge(Trial(whole, observation())).reasons]


def spread_by(sd_ms: float) -> dict[str, Any]:
    return {"spread": copy.replace(SPREAD, sd_ms=sd_ms)}


@pytest.mark.parametrize(
    ("trial", "expected"),
    [
        # 20 connections, 100 req/s: 4 × 0.8 / √1650 = 8 % beside the 2 % and 1.3 req/s of the
        # edges.
        ({"rps": 110, "connections": 20}, []),
        ({"rps": 113, "connections": 20}, ["above-bound"]),
        ({"rps": 110, "connections": 20, "spread": None}, ["above-bound"]),
        # What the deadline cuts off the few longest may make the others faster than the bound.
        ({"rps": 1070, "settings": {"downstream_timeout_ms": 9000}}, ["above-bound"]),
        ({"rps": 1070, "settings": {"downstream_timeout_ms": 900}}, []),
        # (0.2 + 1² / 0.2) × 4.5 = 23.4 s.
        ({"rps": 1000, **spread_by(1000.0)}, ["window-short"]),
        # 5 % and (0.2 + 0.4² / 0.2) / 15 = 6.7 %: 178 of 200 busy are within it, 175 are not.
        ({"rps": 890, "mean_ms": 200.0, **spread_by(400.0)}, []),
        ({"rps": 875, "mean_ms": 200.0, **spread_by(400.0)}, ["littles-law"]),
        ({"rps": 890, "mean_ms": 200.0, **spread_by(0.1)}, ["littles-law"]),
    ],
)
def test_the_luck_of_draws_and_long_delays_are_allowed_for(
    trial: dict[str, Any], expected: list[str]
) -> None:
    assert codes(**trial) == expected


def test_windows_are_as_long_as_the_long_delays_ask_for() -> None:
    # E[R²] / E[R] = 200 + 159.5² / 200 = 327 ms.
    assert crossing_s(0.2, CALL, drawn()) == pytest.approx(0.3272, rel=1e-3)
    for call, server in ((CALL, snapshot()), (parse("/block"), drawn()), (None, drawn())):
        assert crossing_s(0.2, call, server) == 0.2
    lengths = [needed_window_s(0.2, CALL, snapshot(**spread_by(ms))) for ms in (159.5, 600, 1000)]
    assert lengths == [2, 11, 29]


def test_a_rate_of_few_draws_says_how_uncertain_it_is() -> None:
    assert rate_error(CALL, drawn(), 750) == pytest.approx(0.0291, rel=1e-2)
    answers = reading(50.0, corrected=None, raw=latency(200.0))
    trial = record(
        plan("closed", concurrency=10, predicted_rps=50.0), before=drawn(), after=drawn()
    )
    judgement = judge(Trial(measurement(trial, answers), observation()))
    [note] = judgement.notes
    assert (judgement.valid, note.code, note.values["draws"]) == (True, "few-draws", 750)
    assert note.values["share"] == pytest.approx(0.0582, rel=1e-2)
    alike = copy.replace(trial, before=snapshot())
    assert judge(Trial(measurement(alike, answers), observation())).notes == ()


def silence(of: TrialRecord, steps: Sequence[Step], **changes: Any) -> float | None:
    answers = reading(1.6, corrected=None, raw=latency(200.0))
    return silent_s(Trial(measurement(of, copy.replace(answers, **changes))), steps)


def test_the_longest_delay_of_few_connections_is_no_silence() -> None:
    steps = [Step(at, at + 1, 0.0 if 5 <= at < 8 else 2.0, 0.0, 200.0) for at in range(15)]
    assert silence(record(), steps) == 3.0
    few = record(plan("closed", concurrency=1), before=drawn())
    assert silence(few, steps) is None
    # 200 connections are not all silent for longer than 169 ms by their draws, nor other routes.
    assert silence(few, steps, achieved_rps=1000.0) == 3.0
    assert silence(record(plan("closed", route="/block"), before=drawn()), steps) == 3.0


def test_the_steps_of_a_long_window_are_no_silence() -> None:
    """Of more than 20 minutes every fourth second is kept: each step is longer than a scrape, and
    half of them have fewer answers than most."""
    long = {"achieved_rps": 1000.0, "window_s": 1800.0}
    steps = tuple(
        Step(at, at + 4.0, 4000.0 * (1 + 0.01 * (-1) ** number), 0.0, None)
        for number, at in enumerate(range(0, 1800, 4))
    )
    assert silence(record(), steps, **long) is None
    # Three scrapes of them that are missing are one.
    gone = (*steps[:100], Step(400.0, 416.0, 4000.0, 0.0, None), *steps[104:])
    assert 11.5 < silence(record(), gone, **long) < 12.5


def window(connections: int, raw: Latency, rps: float, **figures: Any) -> dict[str, Any]:
    return {"concurrency": connections, "raw": raw, "corrected": raw, "rps": rps, **figures}


# The p95 of the delays is 496 ms; 150 ms more would be allowed at 200 ms.
AS_DRAWN = Latency(205.0, 160.0, 500.0, 810.0, 3000.0)
LATE = Latency(240.0, 160.0, 660.0, 1500.0, 3000.0)
# A latency toxic moves it, a toxic with jitter leaves nothing to hold it against.
SHIFTED = Latency(505.0, 460.0, 800.0, 1110.0, 3300.0)
VERY_LATE = copy.replace(SHIFTED, p95_ms=2000.0, p99_ms=2100.0)
JITTER = copy.replace(LATENCY_300, jittered=True)


@pytest.mark.parametrize(
    ("series", "figures", "name", "strength"),
    [
        # A pool is named by the mean of what holds it.
        (pool(200, 195, 0.2), window(400, latency(406), 985), "worker pool", STRONG),
        # A tail is held against the tail of the delays.
        ([], window(400, AS_DRAWN, 700, offered_rps=700), "none", STRONG),
        (pool(200, 30, 0.2), window(400, LATE, 700, offered_rps=700), "worker pool", STRONG),
        ([], window(800, SHIFTED, 350, offered_rps=350, toxics=LATENCY_300), "none", STRONG),
        ([], window(800, VERY_LATE, 350, offered_rps=350, toxics=LATENCY_300), "unknown", ""),
        ([], window(800, VERY_LATE, 350, offered_rps=350, toxics=JITTER), "none", STRONG),
        ([], window(5, latency(204), 24.5), "none", STRONG),
    ],
)
def test_what_is_named_of_drawn_delays(
    series: list[Any], figures: dict[str, Any], name: str, strength: str
) -> None:
    assert named(seen(*series), spread=SPREAD, **figures) == (name, strength)


def test_few_draws_resolve_less() -> None:
    few, many = (
        judged_window(seen(), spread=SPREAD, **window(connections, latency(204), rps))
        for connections, rps in ((5, 24.5), (200, 985))
    )
    assert few.excess.resolved_ms > 25
    assert many.excess.resolved_ms < 15


@pytest.mark.parametrize(("deadline_ms", "is_sure"), [(490, True), (500, False)])
def test_a_deadline_that_cuts_more_than_5_percent_of_the_delays_is_the_limit(
    deadline_ms: int, is_sure: bool
) -> None:
    """At a deadline that cuts less, something else is slow."""
    settings = {"downstream_timeout_ms": deadline_ms}
    found = judged_window(
        seen(calls("timeout", 90)), rps=900, errors=1350, settings=settings, spread=SPREAD
    )
    assert (found.strength == STRONG) == is_sure
    assert (found.bottleneck == "downstream timeout") == is_sure
    assert SPREAD.longest_ms < USUAL_TIMEOUT_MS
