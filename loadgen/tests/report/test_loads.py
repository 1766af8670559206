"""Loads as tables, and the most that each lane answered."""

from copy import replace
from typing import Any

import pytest

from lab.model import Mode, Row
from lab.report import answers
from lab.report.loads import section
from lab.report.result import loads
from support.fakes import plan
from support.planned import row
from support.results import result, table, text


def measured(server: str, rps: float, mode: Mode = "closed", **planned: Any) -> Row:
    valid = planned.pop("valid", True)
    of = plan(mode, **{"trial": f"{server}-{rps:g}", "server": server, **planned})
    return row(of, achieved_rps=rps, valid=valid)


def shown(*rows: Row) -> list[dict[str, str]]:
    return table(section(result(rows)).blocks, "Loads")


def test_without_a_valid_trial_nothing_is_measured_and_the_prediction_stays() -> None:
    [found] = shown(replace(measured("a", 90.0, valid=False), expected_rps=1000.0))
    assert (found["expected"], found["valid"]) == ("1,000", "0 of 1")
    assert not {"req/s", "of expected", "p95"} & found.keys()


def test_a_column_that_says_nothing_is_left_out_and_what_is_the_same_is_said_once() -> None:
    [found] = shown(measured("a", 1.0))
    assert not {"route", "engine", "window", "offered/s", "raw p95"} & found.keys()
    assert "All: /downstream, wrk2, 15 s, closed." in text(section(result([measured("a", 1.0)])))
    two = shown(measured("a", 1.0), measured("a", 2.0, "open", offered_rps=450, duration_s=30))
    assert [cells["window"] for cells in two] == ["15 s", "30 s"]
    assert [cells["offered/s"] for cells in two] == ["–", "450"]


def test_loads_stand_together_and_what_was_measured_again_counts_once() -> None:
    short = measured("a", 400.0, trial="01")
    again = measured("a", 500.0, trial="01-again", duration_s=30)
    found = shown(short, measured("b", 1.0), again)
    assert [(cells["server"], cells["req/s"]) for cells in found] == [("b", "1"), ("a", "500")]
    assert shown() == []
    # A longer warm-up is the same load.
    assert len(shown(short, replace(short, trial="02", warmup_s=20))) == 1


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        ([measured("a", 0.333, concurrency=1)], [("a", "reached 0.333 req/s over 1 connection")]),
        # Places are told apart, and an open load says what was offered.
        (
            [measured("a", 899.6, "open", offered_rps=900, route="/x"), measured("a", 450.0)],
            [
                ("a /x", "reached 900 req/s of 900 offered over 100 connections"),
                ("a /downstream", "reached 450 req/s over 100 connections"),
            ],
        ),
        (
            [replace(measured("a", 9.0), others_cpu=0.31)],
            [("a", "reached 9 req/s over 100 connections (work outside the lab took 31% of the "
              "CPUs)")],
        ),
        (
            [measured("a", 450.0), measured("a", 981.0, concurrency=9),
             measured("a", 5000.0, concurrency=10, valid=False)],
            [("a", "reached 981 req/s over 9 connections")],
        ),
        ([measured("a", 450.0, valid=False)], [("a", "no valid trial")]),
        ([], []),
    ],
)  # fmt: skip
def test_a_lane_has_the_most_it_answered(rows: list[Row], lines: list[tuple[str, ...]]) -> None:
    assert answers.of_loads(loads(rows, {})) == (*lines,)


def test_what_it_takes_is_what_the_comparisons_take() -> None:
    def takes(launches: int, lost: str = "") -> list[str]:
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
        return [note for note, *cells in answers.of_loads(loads(rows, {})) if not cells]

    # 8 comparisons, together of 95 %.
    [note] = takes(8)
    assert "LAUNCHES=9" in note
    assert takes(9) == []
    # A launch of which nothing is valid is none, nor one that one server lacks.
    assert takes(9, "abc") == takes(9, "b") == [note]
