"""`capacity`: the curve around the capacity."""

import dataclasses

from lab.experiments.searching.state import CURVE
from support.altered import in_launches, invalid
from support.searched import CAPACITY, found, order_of, ran, run, server

WITH_CURVE = dataclasses.replace(CAPACITY, curve=True)


def test_the_curve_follows_in_the_last_launch_and_changes_no_answer() -> None:
    of, rows = ran({"a": server(1650), "b": server(0)}, launches=2, own=WITH_CURVE)
    order = order_of(of)
    # 50, 70, 80, 90, 95, 100 and 105 % of 1,646; of b, which holds nothing, there is no curve.
    curve = rows[-7:]
    assert [one.offered_rps for one in curve] == [823, 1152, 1317, 1481, 1564, 1646, 1728]
    assert {(one.server, one.launch) for one in curve} == {("a", 2)}
    plain = dataclasses.replace(of, own={**of.own, "curve": False})
    assert found(of, rows)[:2] == found(plain, rows[:-7])[:2]
    # Interrupted, it goes on.
    for at, row in enumerate(rows):
        assert order.next(rows[:at]).trial == row.trial
    # What the last launch held is recorded after it.
    assert not [*order.to_record(rows[:-1])]
    (trial,) = order.to_record(rows)
    (held,) = (one for one in rows if one.trial == trial)
    assert (held.offered_rps, held.launch) == (1646, 2)
    # Without it these rows are left out.
    assert found(plain, rows)[0].value == found(of, rows)[0].value


def test_after_a_damaged_trial_each_rate_of_the_curve_is_measured_once() -> None:
    servers = {"a": server(1650)}
    of, rows = ran(servers, launches=2, own=WITH_CURVE)
    whole, *_ = found(of, rows)
    lost = invalid("damaged", **dict.fromkeys(("achieved_rps", "p99_ms", "max_ms", "bottleneck")))
    for at, damaged in enumerate(rows):
        changed = dataclasses.replace(damaged, **lost)
        resumed = run(of, servers, rows=[*rows[:at], changed, *rows[at + 1 :]])
        curve = [one for one in resumed if one.trial.endswith(CURVE)]
        assert curve == [changed if one == damaged else one for one in rows[-7:]]
        # Of a search one trial more.
        assert len(resumed) == len(rows) + (damaged not in rows[-7:])
        answer, *_ = found(of, resumed)
        assert answer.value == whole.value


def test_the_curve_is_relative_to_what_its_own_jvm_held() -> None:
    # More than half of the launches hold 1,646; the last one does not.
    servers = {"a": in_launches((3,), server(800), server(1650))}
    of, rows = ran(servers, launches=3, own=WITH_CURVE)
    answer, *details = found(of, rows)
    own = details[2].value or 0
    assert answer.value == 1646
    assert 776 <= own <= 800
    assert (rows[-2].offered_rps, rows[-7].offered_rps) == (own, round(own / 2))
