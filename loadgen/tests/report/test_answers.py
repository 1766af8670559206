"""The lines that come first, of loads that were set."""

import dataclasses

import pytest

from lab.model import NONE, STRONG, UNKNOWN, WEAK, Row, Standing, Strength, Verdict
from lab.report.answers import of_loads
from support.fakes import plan
from support.planned import row

TAKES = (
    "This orders no servers: that takes 6 fresh JVMs of each (make run EXP=… LAUNCHES=6). The "
    "highest rate that is held: make capacity.",
)
MOST_SUSPECT = "limit: unknown (most suspect: worker pool, 200 of 200 busy)"
POOL = Standing(
    "worker pool",
    score=0.97,
    sentence="the worker pool: 200 of 200 busy, 800 waiting 0.8 s each; 200 / 0.2 s = 1,000 req/s",
)


def measured(server: str, rps: float, **changes: object) -> Row:
    of = plan("closed", trial=f"{server}-{rps:g}", server=server, **changes)
    return row(of, achieved_rps=rps)


def verdict(bottleneck: str, strength: Strength = "") -> Verdict:
    return Verdict(bottleneck, strength, "a sentence", (POOL,))


def test_each_server_has_the_most_that_it_answered_and_what_limited_it_there() -> None:
    rows = [
        measured("fixed-pool", 450.0, concurrency=100),
        measured("fixed-pool", 981.0, concurrency=1000),
        measured("event-loop", 4950.0, concurrency=1000),
        measured("netty", 9000.0, concurrency=2000),
    ]
    rows += [dataclasses.replace(rows[1], trial="bad", achieved_rps=5000.0, valid=False)]
    found = of_loads(
        rows,
        {
            "fixed-pool-450": verdict(NONE, STRONG),
            "fixed-pool-981": verdict("worker pool", STRONG),
            "event-loop-4950": verdict(NONE, WEAK),
            "netty-9000": verdict(UNKNOWN),
        },
    )
    assert found == (
        (
            "fixed-pool",
            "reached 981 req/s over 1,000 connections",
            "limit: worker pool, 200 of 200 busy (strong)",
        ),
        (
            "event-loop",
            "reached 4,950 req/s over 1,000 connections",
            "limit: none but the load (weak)",
        ),
        ("netty", "reached 9,000 req/s over 2,000 connections", MOST_SUSPECT),
        TAKES,
    )


def test_what_it_takes_is_what_the_comparisons_take() -> None:
    def rows(launches: int, **changes: bool) -> list[Row]:
        return [
            dataclasses.replace(measured(server, 100.0, concurrency=load), launch=launch, **changes)
            for server in ("a", "b", "c")
            for load in (100, 200, 400, 800)
            for launch in range(1, launches + 1)
        ]

    # 8 comparisons, together of 95 %.
    assert [cells for cells in of_loads(rows(8), {}) if len(cells) == 1] == [
        (TAKES[0].replace("6", "9"),)
    ]
    assert [cells for cells in of_loads(rows(9), {}) if len(cells) == 1] == []
    # A launch of which nothing is valid is none.
    lost = [dataclasses.replace(one, valid=one.launch < 9) for one in rows(9)]
    assert [cells for cells in of_loads(lost, {}) if len(cells) == 1]
    # Nor are those of the others where one server lacks them.
    lacks = [dataclasses.replace(one, valid=one.server != "b" or one.launch < 9) for one in rows(9)]
    assert [cells for cells in of_loads(lacks, {}) if len(cells) == 1]


@pytest.mark.parametrize(
    ("rps", "said"), [(0.333, "0.333"), (2.5, "2.5"), (99.4, "99.4"), (12345.6, "12,346")]
)
def test_a_small_rate_is_not_rounded_to_a_whole_one(rps: float, said: str) -> None:
    [(_, reached, *_)] = of_loads([measured("a", rps, concurrency=1)], {})
    assert reached == f"reached {said} req/s over 1 connection"


def test_the_launches_of_a_load_have_an_interval_and_order_nothing_by_themselves() -> None:
    rows = [
        dataclasses.replace(measured("a", 1000.0 + launch), trial=f"{launch}", launch=launch)
        for launch in range(1, 7)
    ]
    [(server, most)] = of_loads(rows, {})
    assert (server, most) == ("a", "reached 1,004 [1,001, 1,006] req/s over 100 connections")


def test_what_limits_is_what_most_trials_of_the_load_say() -> None:
    rows = [
        dataclasses.replace(measured("a", 1000.0 + launch), trial=f"{launch}", launch=launch)
        for launch in (1, 2, 3)
    ]
    pool, unknown = verdict("worker pool", STRONG), verdict(UNKNOWN)

    def limit(*verdicts: Verdict) -> str:
        return of_loads(rows, dict(zip("123", verdicts, strict=True)))[0][2]

    # The trial at the median does not decide it.
    assert limit(unknown, pool, unknown).startswith("limit: unknown, in 2 of 3 trials (most susp")
    assert limit(pool, pool, unknown) == (
        "limit: worker pool, 200 of 200 busy (strong, in 2 of 3 trials)"
    )
    weak = verdict("worker pool", WEAK)
    assert limit(weak, pool, weak) == "limit: worker pool, 200 of 200 busy (weak)"


def test_an_open_load_says_what_was_offered_and_places_are_told_apart() -> None:
    opened = plan("open", trial="o", server="a", offered_rps=900, route="/block")
    rows = [row(opened, achieved_rps=899.6), measured("a", 450.0)]
    assert of_loads(rows, {})[:2] == (
        ("a /block", "reached 900 req/s of 900 offered over 100 connections"),
        ("a /downstream", "reached 450 req/s over 100 connections"),
    )


def test_work_outside_the_lab_is_told_and_one_server_is_not_to_be_ordered() -> None:
    crowded = dataclasses.replace(measured("a", 450.0), others_cpu=0.31)
    assert of_loads([crowded], {}) == (
        (
            "a",
            "reached 450 req/s over 100 connections (work outside the lab took 31% of the CPUs)",
        ),
    )


def test_a_server_without_a_valid_trial_says_so() -> None:
    bad = dataclasses.replace(measured("a", 450.0), valid=False)
    assert of_loads([bad], {}) == (("a", "no valid trial"),)
    assert of_loads([], {}) == ()
