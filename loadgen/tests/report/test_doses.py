"""A/A and doses: what is said of each group of six rounds is counted."""

import dataclasses
from itertools import cycle, islice

from lab.model import Row
from lab.report.doses import Arm, answers, section
from report.test_truth import OF
from support.planned import experiment, planner, row

NOISE = (0, 1, -1, 2, -2, 0.5)


def arm(mean_rps: float, dose: float = 0.0, rounds: int = 12, turn: int = 1) -> Arm:
    of = planner(experiment(servers=("a",), modes=("closed",)))
    plan = of.plan("a", of.engine_for("closed"), "closed", 200, None, arm=f"{dose}")
    rows: dict[int, Row] = {
        at: row(plan, achieved_rps=mean_rps + noise)
        for at, noise in enumerate(islice(cycle(NOISE[::turn]), rounds), 1)
    }
    return Arm("closed", dose, rows)


def test_each_group_of_six_rounds_has_an_answer() -> None:
    assert answers(arm(1000), arm(1000, turn=-1)) == ["no difference"] * 2
    assert answers(arm(1000), arm(800, 0.25, rounds=17)) == ["slower"] * 2
    assert answers(arm(1000), arm(1000, rounds=5)) == []


def test_trials_of_one_round_are_a_pair_though_one_is_missing() -> None:
    """A machine that gets faster from round to round, and half as fast for the arm with the dose.
    By their order the arms would be paired with each other's neighbours after the gap."""

    def drifting(of: Arm, without: int = 0) -> Arm:
        rows = {
            at: dataclasses.replace(one, achieved_rps=(one.achieved_rps or 0) * 2**at)
            for at, one in of.rows.items()
            if at != without
        }
        return dataclasses.replace(of, rows=rows)

    a = drifting(arm(1000))
    assert answers(a, drifting(arm(500, 1.0))) == ["slower"] * 2
    b = drifting(arm(500, 1.0), without=2)
    # Five pairs are too few.
    assert answers(a, b) == ["inconclusive", "slower"]
    assert "| 0.500, – |" in section(OF, [a, b])


def test_what_is_found_is_counted_with_its_interval() -> None:
    page = section(OF, [arm(1000), arm(1000, turn=-1), arm(870, 0.1)])
    assert "| closed | 0% | 1.000, – | no difference 2× |" in page
    assert "| closed | 10% | 0.870, – | slower 2× |" in page
    assert "A difference where there is none: 0 of 2: 0% [0%, 84%]." in page
    assert "A dose of 10 % called slower: 2 of 2: 100% [16%, 100%]." in page
    assert "36 trials, 36 of them valid" in page
