"""`capacity`: the curve around the capacity, and its knee."""

import dataclasses
from typing import Any

from lab.experiments.searching.answers import answers
from lab.experiments.searching.state import CURVE
from lab.model import DAMAGED, TrialPlan
from support.searched import (
    CAPACITY,
    LATE_GENERATOR,
    found,
    order_of,
    run,
    searched,
    server,
)


def test_the_curve_follows_in_the_last_launch_and_changes_no_answer() -> None:
    of = searched(launches=2, servers=("a", "b"), own=dataclasses.replace(CAPACITY, curve=True))
    servers = {"a": server(1650), "b": server(0)}
    rows, order = run(of, servers), order_of(of)
    # 50, 70, 80, 90, 95, 100 and 105 % of 1,646; of b, which holds nothing, there is no curve.
    curve = rows[-7:]
    assert [one.offered_rps for one in curve] == [823, 1152, 1317, 1481, 1564, 1646, 1728]
    assert {(one.server, one.launch) for one in curve} == {("a", 2)}
    plain = dataclasses.replace(of, own={**of.own, "curve": False})
    assert found(of, rows)[:2] == found(plain, rows[:-7])[:2]
    # Interrupted, it goes on.
    for at in range(len(rows)):
        plan = order.next(rows[:at])
        assert plan.trial == rows[at].trial
    # What the last launch held is recorded after it.
    assert not [*order.to_record(rows[:-1])]
    (trial,) = order.to_record(rows)
    (held,) = (one for one in rows if one.trial == trial)
    assert (held.offered_rps, held.launch) == (1646, 2)
    # Without it these rows are left out.
    assert found(plain, rows)[0].value == found(of, rows)[0].value


def test_after_a_damaged_trial_each_rate_of_the_curve_is_measured_once_and_no_search_knows_it() -> (
    None
):
    of = searched(launches=2, own=dataclasses.replace(CAPACITY, curve=True))
    servers = {"a": server(1650)}
    rows = run(of, servers)
    whole, *_ = found(of, rows)
    lost = {"valid": False, "invalid_reasons": DAMAGED, "achieved_rps": None, "p99_ms": None}
    for at, damaged in enumerate(rows):
        changed = dataclasses.replace(damaged, **lost, max_ms=None, bottleneck=None)
        resumed = run(of, servers, rows=[*rows[:at], changed, *rows[at + 1 :]])
        curve = [one for one in resumed if one.trial.endswith(CURVE)]
        assert curve == [changed if one == damaged else one for one in rows[-7:]]
        # Of a search one trial more.
        assert len(resumed) == len(rows) + (damaged not in rows[-7:])
        answer, *others = found(of, resumed)
        assert answer.value == whole.value
        (knee,) = (one for one in others if one.name == "knee")
        assert f"of {7 - (damaged in rows[-7:])} rates" in knee.text


def test_the_curve_is_relative_to_what_its_own_jvm_held() -> None:
    of = searched(launches=3, own=dataclasses.replace(CAPACITY, curve=True))
    # More than half of the launches hold 1,646; the last one does not.
    rows = run(of, {"a": lambda plan: server(1650 if plan.launch < 3 else 800)(plan)})
    answer, *details = found(of, rows)
    own = details[2].value or 0
    assert answer.value == 1646
    assert 776 <= own <= 800
    assert rows[-2].offered_rps == own
    assert rows[-7].offered_rps == round(own / 2)


def test_the_knee_is_where_latency_begins_to_grow_faster_than_the_rate() -> None:
    of = searched(own=dataclasses.replace(CAPACITY, curve=True))
    # Of 1,646 req/s: 50, 70, 80, 90, 95, 100 and 105 %.
    rates = (823, 1152, 1317, 1481, 1564, 1646, 1728)
    waits = dict(zip(rates, (205, 206, 208, 212, 240, 420, 900), strict=True))

    def bent(plan: TrialPlan) -> dict[str, Any]:
        rate = plan.offered_rps or 0
        return server(1650)(plan) | ({"p99_ms": float(waits[rate])} if rate in waits else {})

    rows = run(of, {"a": bent})
    told = found(of, rows)
    (knee,) = (one for one in told if one.name == "knee")
    # 1,481 / 212 is the most: 1,564 is 6 % more, and takes 13 % longer.
    assert (knee.value, knee.launch) == (1481, 0)
    assert knee.text == (
        "the knee is at 1,481 req/s (p99 212 ms): of 7 rates from 823 to 1,728 it has the most "
        "answers per second for its p99"
    )
    assert knee.text in answers(of, told)[0]
    # Where it does not bend nobody says that it does, nor where too few trials are valid.
    spoilt = [
        dataclasses.replace(one, valid=False, invalid_reasons=LATE_GENERATOR) for one in rows[-5:]
    ]
    assert not [one for one in found(of, [*rows[:-5], *spoilt]) if one.name == "knee"]
    # A bend below the lowest rate is not at it.
    steep = [dataclasses.replace(one, p99_ms=float(at**4)) for at, one in enumerate(rows[-7:], 10)]
    (below,) = (one for one in found(of, [*rows[:-7], *steep]) if one.name == "knee")
    assert (below.value, below.text) == (
        None,
        "the knee is at 823 req/s or below: p99 grew by a larger share than the rate, of 7 rates "
        "from 823 to 1,728",
    )
    flat = [dataclasses.replace(one, p99_ms=205.0) for one in rows[-7:]]
    (none,) = (one for one in found(of, [*rows[:-7], *flat]) if one.name == "knee")
    assert none.value is None
    assert none.text == (
        "no knee of 7 rates from 823 to 1,728 req/s: p99 grew by a smaller share than the rate"
    )
