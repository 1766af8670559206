"""Recovery after a disturbance, on seconds whose recovery is known by hand."""

import pytest

from lab.kinds.disturb import Steady, calm_problem, recoveries
from lab.load.engines.histogram import Histogram
from lab.model import Peak
from support.felt import PEAKS, WINDOW, felt, second
from support.pacer import counted

STEADY = Steady(tolerance=0.25, steady_s=3)


def test_recovery_is_counted_from_the_spikes_end_to_the_first_of_the_steady_seconds() -> None:
    slow = dict.fromkeys(range(21, 29), 900.0) | {30: 400.0} | dict.fromkeys(range(35, 40), 300.0)
    calm, found = recoveries(felt(slow), WINDOW, PEAKS, STEADY)
    assert calm.p95_ms == pytest.approx(200, rel=0.001)
    assert calm.limit_ms == pytest.approx(250, rel=0.001)
    assert (calm.seconds, calm.above) == (10, 0)
    # 29 is calm, 30 is not, 31 32 33 are: recovered at 31, 6 s after 25.
    assert (found[0].after_s, found[0].worst_ms) == (6.0, pytest.approx(900, rel=0.001))
    assert (found[0].watched_s, (found[0].left, found[0].above)) == (10.0, (1, 0))
    # Slow during the spike only: as before at once.
    assert (found[1].after_s, found[1].worst_ms) == (0.0, pytest.approx(300, rel=0.001))
    # A second without answers is not calm.
    silent = dict.fromkeys(range(22, 27), None)
    _, found = recoveries(felt(silent), WINDOW, PEAKS, STEADY)
    assert (found[0].after_s, found[0].worst_ms) == (2.0, None)


@pytest.mark.parametrize(
    ("changes", "after_s"),
    [
        # Within the tolerance, and above it.
        ({at: second(249.0) for at in range(25, 35)}, 0.0),
        ({at: second(251.0) for at in range(25, 35)}, None),
        # Half of the requests are reset from 25 to 29: the others are as quick as ever.
        ({at: second(200.0, 200) for at in range(25, 30)}, 5.0),
        # A few are missing, for long.
        ({at: second(200.0, 378) for at in range(25, 35)}, None),
        # A pause: 50 ms without answers at the end of 26, which come in 27.
        ({26: second(200.0, 380), 27: second(200.0, 420)}, 0.0),
        # What 27 catches up does not make up for a 26 that answered too little.
        ({26: second(200.0, 300), 27: second(200.0, 500)}, 2.0),
        # Two steady seconds before the next spike are not three.
        ({at: second(900.0) for at in range(25, 33)}, None),
    ],
)
def test_steady_seconds_are_as_the_calm(
    changes: dict[int, Histogram], after_s: float | None
) -> None:
    _, found = recoveries({**felt(), **changes}, WINDOW, PEAKS, STEADY)
    assert found[0].after_s == after_s


def a_tenth_at(us: int) -> Histogram:
    """A second of which a tenth is slower."""
    return counted({200_000: 360, us: 40})


def test_drawn_delays_vary_the_p95_of_the_calm_too() -> None:
    # The calm's own worst second is 30 % above its p95, by 10 % of its answers.
    def after_s(slow: dict[int, float], **given: bool) -> float | None:
        seconds = {**felt(slow), 15: a_tenth_at(260_000)}
        return recoveries(seconds, WINDOW, PEAKS, STEADY, **given)[1][0].after_s

    uneven = dict.fromkeys(range(25, 30), 255.0) | {30: 262.0}
    assert (after_s(uneven), after_s(uneven, drawn=True)) == (6.0, 0.0)
    assert after_s(dict.fromkeys(range(25, 30), 265.0), drawn=True) == 5.0


def test_seconds_above_the_limit_are_counted_in_the_calm_and_after_it() -> None:
    # One of its seconds is slow, by 4 % of its answers in all: the p95 of the calm is not.
    calm, _ = recoveries(felt() | {15: a_tenth_at(900_000)}, WINDOW, PEAKS, STEADY)
    assert (calm.seconds, calm.above) == (10, 1)
    # What comes again after the steady seconds is counted.
    again = dict.fromkeys(range(28, 35), 900.0)
    _, (first, _) = recoveries(felt(again), WINDOW, PEAKS, STEADY)
    assert (first.after_s, first.left, first.above) == (0.0, 7, 7)


def test_requests_at_random_are_not_as_many_in_each_second() -> None:
    # 400 a second, give or take 60: three deviations. Seconds on end have less room each.
    some = dict.fromkeys(range(25, 35), second(200.0, 400)) | {26: second(200.0, 330)}
    _, (evenly, _) = recoveries(felt() | some, WINDOW, PEAKS, STEADY)
    _, (at_random, _) = recoveries(felt() | some, WINDOW, PEAKS, STEADY, random=True)
    assert (evenly.after_s, at_random.after_s) == (2.0, 0.0)
    fewer = dict.fromkeys(range(25, 30), second(200.0, 330))
    _, (lost, _) = recoveries(felt() | fewer, WINDOW, PEAKS, STEADY, random=True)
    assert lost.after_s > 2


def test_a_spike_within_a_second_is_felt_in_it_and_ends_with_it() -> None:
    peaks = (Peak(20.4, 25.6), PEAKS[1])
    _, (first, _) = recoveries(felt(), WINDOW, peaks, STEADY)
    # 26, 27 and 28 are steady; 26 begins 0.4 s after the end.
    assert (first.after_s, first.watched_s) == (pytest.approx(0.4), pytest.approx(9.4))
    slow = {20: 900.0} | dict.fromkeys(range(21, 26), 400.0)
    _, (first, _) = recoveries(felt(slow), WINDOW, peaks, STEADY)
    assert first.worst_ms == pytest.approx(900, rel=0.001)


@pytest.mark.parametrize(
    ("per_second", "random", "code"),
    [
        (400, False, None),
        (387, False, "no-calm"),
        # Of requests at random fewer may come: three standard deviations of 4,000.
        (380, True, None),
        (360, True, "no-calm"),
        (0, False, "no-calm"),
    ],
)
def test_a_calm_keeps_up_with_the_load(per_second: int, random: bool, code: str | None) -> None:
    calm = {at: second(200.0, per_second) for at in range(10, 20)}
    problem = calm_problem(calm, (10.0, 20.0), 400, random)
    assert (problem.code if problem else None) == code


def test_too_few_answers_a_second_have_no_p95() -> None:
    few = {at: second(200.0, 199) for at in range(10, 50)}
    problem = calm_problem(few, (10.0, 20.0), 199)
    assert problem is not None
    assert (problem.code, problem.values) == ("calm-few-answers", {"rps": 199, "needed": 200})
    # Without a second there is no calm.
    assert calm_problem(felt(), (10.0, 10.5), 400) is not None
