"""The simulation that is the oracle of the smoke test's `/block` runs, against exact theory."""

import random
from functools import partial
from itertools import accumulate

import pytest

from support.queueing import closed_load, erlang_c_mean_s, mva_rps, open_load

LONG_S = 4000.0


def settled(at_s: float) -> bool:
    return at_s >= LONG_S / 10


@pytest.mark.parametrize(("connections", "workers"), [(5, 2), (20, 4), (12, 12)])
def test_a_closed_load_follows_mean_value_analysis(connections: int, workers: int) -> None:
    rng = random.Random(connections)
    served, thinks = (partial(rng.expovariate, rate) for rate in (10, 4))
    done = closed_load(connections, workers, served, LONG_S, thinks)
    rps = sum(settled(one.end_s) for one in done) / (LONG_S * 0.9)
    assert rps == pytest.approx(mva_rps(connections, workers, 0.1, 0.25), rel=0.01)


@pytest.mark.parametrize(("rate", "workers"), [(5, 1), (30, 4), (85, 10)])
def test_an_open_load_of_exponential_times_is_erlangs(rate: int, workers: int) -> None:
    rng = random.Random(rate)
    gaps = (rng.expovariate(rate) for _ in range(round(rate * LONG_S)))
    done = open_load(accumulate(gaps), 100_000, workers, lambda: rng.expovariate(10))
    waits = [one.end_s - one.due_s for one in done if settled(one.due_s)]
    assert sum(waits) / len(waits) == pytest.approx(erlang_c_mean_s(rate, workers, 0.1), rel=0.05)


def test_constant_times_are_what_the_bounds_say() -> None:
    done = closed_load(80, 40, lambda: 0.1, 10)
    assert sum(5 <= one.end_s < 9 for one in done) / 4 == pytest.approx(400)
    assert {round(one.end_s - one.sent_s, 6) for one in done if one.sent_s > 1} == {0.2}
    # Two connections cannot use three workers; what is due meanwhile waits to be sent.
    late = open_load([at / 40 for at in range(400)], 2, 3, lambda: 0.1)
    assert late[-1].end_s == pytest.approx(400 / 2 * 0.1 + 1 / 40)
    assert late[-1].end_s - late[-1].sent_s == pytest.approx(0.1)
