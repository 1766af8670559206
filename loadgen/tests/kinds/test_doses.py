"""A/A and doses: what is said of each group of six rounds is counted."""

import copy
from itertools import cycle, islice

from lab.kinds.cases import Case
from lab.kinds.planted import Arm, answers, dosed
from lab.model import Row
from support.planned import experiment, planner, row

NOISE = (0, 1, -1, 2, -2, 0.5)


def arm(mean_rps: float, dose: float = 0.0, rounds: int = 12, turn: int = 1) -> Arm:
    of = planner(experiment(servers=("a",), modes=("closed",)))
    plan = of.plan("a", of.engine, "closed", 200, None, arm=f"{dose}")
    rows: dict[int, Row] = {
        at: row(plan, achieved_rps=mean_rps + noise)
        for at, noise in enumerate(islice(cycle(NOISE[::turn]), rounds), 1)
    }
    return Arm(Case("a", "a", "/", 200, ("none",), severity=dose or None), rows)


def test_each_group_of_six_rounds_has_an_answer() -> None:
    assert answers(arm(1000), arm(1000, turn=-1)) == ["within"] * 2
    assert answers(arm(1000), arm(800, 0.25, rounds=17)) == ["worse"] * 2
    assert answers(arm(1000), arm(1000, rounds=5)) == []


def test_trials_of_one_round_are_a_pair_though_one_is_missing() -> None:
    """A machine that gets faster from round to round, and half as fast for the arm with the dose.
    By their order the arms would be paired with each other's neighbours after the gap."""

    def drifting(of: Arm, without: int = 0) -> Arm:
        rows = {
            at: copy.replace(one, achieved_rps=(one.achieved_rps or 0) * 2**at)
            for at, one in of.rows.items()
            if at != without
        }
        return copy.replace(of, rows=rows)

    a = drifting(arm(1000))
    assert answers(a, drifting(arm(500, 1.0))) == ["worse"] * 2
    b = drifting(arm(500, 1.0), without=2)
    # Five pairs are too few.
    assert answers(a, b) == ["cannot tell", "worse"]
    (found,) = dosed([a, b])
    assert (found.goodput_ratio, found.p95_ratio) == (0.5, None)


def test_what_is_found_is_counted_with_its_interval() -> None:
    same, tenth = dosed([arm(1000), arm(1000, turn=-1), arm(870, 0.1)])
    assert (same.dose, same.answers) == (0, {"within": 2})
    assert round(same.goodput_ratio or 0, 3) == 1
    # No difference where there is none.
    assert (same.value, same.low, round(same.high or 0, 2)) == (0, 0, 0.84)
    assert (tenth.dose, tenth.answers) == (0.1, {"worse": 2})
    assert round(tenth.goodput_ratio or 0, 3) == 0.87
    assert (tenth.value, round(tenth.low or 0, 2), tenth.high) == (1, 0.16, 1)
