"""The lines that come first, of loads that were set."""

from dataclasses import replace
from typing import Any

import pytest

from lab.model import NONE, STRONG, UNKNOWN, WEAK, Excess, Mode, Row, Standing, Strength, Verdict
from lab.report.answers import of_loads
from support.fakes import plan
from support.planned import row

TAKES = (
    "This orders no servers: that takes 6 fresh JVMs of each (make run EXP=… LAUNCHES=6). The "
    "rate that it sustains: make capacity.",
)
MOST_SUSPECT = "limit: unknown (worker pool 20%, unexplained 80%)"
OVER_1000 = "req/s over 1,000 connections"
POOL = Standing(200, 200, "threads", resource="worker pool", share=0.2)
EXCESS = Excess(200.0, 800.0, 10.0, {"queue": 160.0, "unexplained": 640.0})


def measured(server: str, rps: float, mode: Mode = "closed", **planned: Any) -> Row:
    valid = planned.pop("valid", True)
    of = plan(mode, **{"trial": f"{server}-{rps:g}", "server": server, **planned})
    return row(of, achieved_rps=rps, valid=valid)


LAUNCHES = [measured("a", 1000.0 + launch, launch=launch) for launch in range(1, 7)]


def verdict(bottleneck: str, strength: Strength = "") -> Verdict:
    return Verdict(bottleneck, strength, "excess", EXCESS, (POOL,))


def test_each_server_has_the_most_that_it_answered_and_what_limited_it_there() -> None:
    rows = [
        measured("fixed-pool", 450.0, concurrency=100),
        measured("fixed-pool", 981.0, concurrency=1000),
        measured("fixed-pool", 5000.0, concurrency=1000, valid=False),
        measured("event-loop", 4950.0, concurrency=1000),
        measured("netty", 9000.0, concurrency=2000),
    ]
    verdicts = {
        "fixed-pool-450": verdict(NONE, STRONG),
        "fixed-pool-981": verdict("worker pool", STRONG),
        "event-loop-4950": verdict(NONE, WEAK),
        "netty-9000": verdict(UNKNOWN),
    }
    assert of_loads(rows, verdicts) == (
        (
            "fixed-pool",
            f"reached 981 {OVER_1000}",
            "limit: worker pool, 200 of 200 threads (strong)",
        ),
        ("event-loop", f"reached 4,950 {OVER_1000}", "limit: none but the load (weak)"),
        ("netty", "reached 9,000 req/s over 2,000 connections", MOST_SUSPECT),
        TAKES,
    )


def test_what_it_takes_is_what_the_comparisons_take() -> None:
    def notes(launches: int, lost: str = "") -> list[tuple[str, ...]]:
        """The last launch of these servers has nothing valid."""
        bad = [(server, launches) for server in lost]
        rows = [
            measured(
                server, 100.0, concurrency=load, launch=launch, valid=(server, launch) not in bad
            )
            for server in "abc"
            for load in (100, 200, 400, 800)
            for launch in range(1, launches + 1)
        ]
        return [cells for cells in of_loads(rows, {}) if len(cells) == 1]

    # 8 comparisons, together of 95 %.
    takes = [(TAKES[0].replace("6", "9"),)]
    assert (notes(8), notes(9)) == (takes, [])
    # A launch of which nothing is valid is none, nor one that one server lacks.
    assert notes(9, "abc") == notes(9, "b") == takes


OVER_100 = "over 100 connections"
RATE_450 = f"reached 450 req/s {OVER_100}"


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        ([measured("a", 0.333, concurrency=1)], [("a", "reached 0.333 req/s over 1 connection")]),
        ([measured("a", 2.5, concurrency=1)], [("a", "reached 2.5 req/s over 1 connection")]),
        ([measured("a", 99.4, concurrency=1)], [("a", "reached 99.4 req/s over 1 connection")]),
        ([measured("a", 12345.6)], [("a", "reached 12,346 req/s over 100 connections")]),
        # Launches have an interval, and order nothing.
        (LAUNCHES, [("a", "reached 1,004 [1,001, 1,006] req/s over 100 connections")]),
        # Places are told apart, and an open load says what was offered.
        (
            [measured("a", 899.6, "open", offered_rps=900, route="/x"), measured("a", 450.0)],
            [("a /x", f"reached 900 req/s of 900 offered {OVER_100}"), ("a /downstream", RATE_450)],
        ),
        (
            [replace(measured("a", 450.0), others_cpu=0.31)],
            [("a", f"{RATE_450} (work outside the lab took 31% of the CPUs)")],
        ),
        ([measured("a", 450.0, valid=False)], [("a", "no valid trial")]),
        ([], []),
    ],
)
def test_a_lane_has_the_most_it_answered(rows: list[Row], lines: list[tuple[str, ...]]) -> None:
    assert of_loads(rows, {}) == (*lines,)


def test_what_limits_is_what_most_trials_of_the_load_say() -> None:
    pool, weak = verdict("worker pool", STRONG), verdict("worker pool", WEAK)
    unknown = verdict(UNKNOWN)

    def limit(*verdicts: Verdict) -> str:
        of_trials = {of.trial: each for of, each in zip(LAUNCHES[:3], verdicts, strict=True)}
        return of_loads(LAUNCHES[:3], of_trials)[0][2]

    # The trial at the median does not decide it.
    assert limit(unknown, pool, unknown).startswith(
        "limit: unknown, in 2 of 3 trials (worker pool 20%"
    )
    said = "limit: worker pool, 200 of 200 threads ({})"
    assert limit(pool, pool, unknown) == said.format("strong, in 2 of 3 trials")
    assert limit(weak, pool, weak) == said.format("weak")
