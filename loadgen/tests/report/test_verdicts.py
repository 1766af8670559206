"""What limited each load, as the console and both reports say it."""

import dataclasses
import io
from typing import Any

from rich.console import Console

from lab.judge.grouping import lane_of
from lab.model import NONE, STRONG, UNKNOWN, WEAK, Excess, Row, Standing, Verdict
from lab.report import table
from lab.report.resources import sentence
from lab.report.verdicts import Said, lines, render, said
from support.fakes import plan
from support.planned import row

EXCESS = Excess(200.0, 1800.0, 10.0, {"queue": 1800.0})
FULL = Standing(200, 200, "threads", resource="worker pool", share=0.98, measured=0.98)
POOL = Verdict("worker pool", STRONG, "excess", EXCESS, (FULL,))
SAID = "worker pool, 200 of 200 threads: 1,800 ms above R0 are worker pool 98%, unexplained 2%"
LATE = Standing(0.5, 2, "CPUs", resource="generator", share=0.6)
GENERATOR = Verdict("generator", WEAK, "excess", EXCESS, (LATE,))
NO_SERIES = Verdict(UNKNOWN, "", "no series", None)
NOTHING = Verdict(NONE, STRONG, "none", Excess(200.0, 1.5, 10.0, {}))


def trial(number: int, **changes: Any) -> Row:
    server = changes.pop("server", "fixed-pool")
    of = plan("closed", trial=f"{number:02d}-{server}-closed", server=server, launch=number)
    figures = {
        "achieved_rps": 990.0 + number,
        "predicted_rps": 1000.0,
        "expected_rps": 1000.0,
        "binding": "worker pool",
        "expected_p95_ms": 2000.0,
        "raw_p95_ms": 2010.0,
    }
    return row(of, **{**figures, **changes})


def told(rows: list[Row], *verdicts: Verdict) -> tuple[Said, ...]:
    """What is said of these rows with a verdict each, by default the same."""
    each = verdicts or [POOL] * len(rows)
    return said(rows, [(row.trial, verdict) for row, verdict in zip(rows, each, strict=True)])


def test_launches_of_a_load_are_one_sentence() -> None:
    [one] = told([trial(1), trial(2), trial(3)], POOL, GENERATOR, POOL)
    assert one.load == "fixed-pool, closed 100"
    assert (one.bottleneck, one.strength, one.agree, one.trials) == ("worker pool", STRONG, 2, 3)
    assert one.text == f"{SAID} (strong evidence; 2 of 3 trials; also generator (1))"
    load = ("fixed-pool, closed 100", "1000", "1000", "worker pool")
    assert one.cells == (*load, "992", "99%", "2000", "2010", "3 of 3")
    # Only most trials that are sure make it sure.
    [one] = told([trial(1), trial(2)], POOL, dataclasses.replace(POOL, strength=WEAK))
    assert (one.strength, one.sentence) == (WEAK, SAID)


def test_an_invalid_trial_is_in_no_median() -> None:
    [one] = told([trial(1), trial(2, valid=False, achieved_rps=5.0)])
    assert one.goodput_rps == 991
    assert one.text == f"{SAID} (strong evidence; 1 of 2 trials valid)"
    assert one.cells[-1] == "1 of 2"
    # Without a valid one nothing is measured.
    [one] = told([trial(1, valid=False), trial(2, valid=False)])
    assert (one.goodput_rps, one.p95_ms) == (None, None)
    assert one.text == f"{SAID} (strong evidence; no valid trial)"
    assert one.cells[4:] == ("no valid trial", "–", "2000", "–", "0 of 2")


def test_answers_that_are_errors_are_not_measured_against_the_prediction() -> None:
    [one] = told([trial(1, ok=300, http_errors=100)])
    assert one.goodput_rps == 743.25


def test_the_trial_that_is_quoted_is_the_valid_one_nearest_the_median() -> None:
    rates = (900.0, 960.0, 970.0, 961.0)
    rows = [trial(at, achieved_rps=rps, valid=at < 4) for at, rps in enumerate(rates, start=1)]
    verdicts = [
        dataclasses.replace(POOL, strength=sure, excess=Excess(200.0, rps, 10.0, {}))
        for rps, sure in zip(rates, (STRONG, WEAK, STRONG, STRONG), strict=True)
    ]
    [one] = told(rows, *verdicts)
    assert "960 ms above R0" in one.sentence


def test_what_only_invalid_trials_say_is_marked() -> None:
    rows = [trial(1, valid=False), trial(2, valid=False), trial(3)]
    [one] = told(rows, GENERATOR, GENERATOR, POOL)
    said = "2 of 3 trials, none of them valid; also worker pool (1); 1 of 3 trials valid"
    late = "1,800 ms above R0 are generator 60%, unexplained 40%"
    assert one.text == f"generator, 0.5 of 2 CPUs: {late} (weak evidence; {said})"


def test_what_a_resource_limits_is_said_first() -> None:
    rows = [trial(number, server=name) for number, name in enumerate("abcd", start=1)]
    loads = [load for load, _ in lines(told(rows, NOTHING, NO_SERIES, POOL, NOTHING))]
    assert loads == [f"{name}, closed 100" for name in "cbad"]


def test_conditions_are_told_apart_by_the_names_of_trials() -> None:
    names = ("001-a-1-named", "002-a-1-before", "003-a-1-after", "004-a-1-before")
    of = [row(plan("closed", trial=f"{name}-closed-c100", arm=name[6:])) for name in names]
    found = said(of, [(one.trial, POOL) for one in of], lane_of)
    lanes = [
        (f"{of[0].server}@1-{part}", count)
        for part, count in (("named", 1), ("before", 2), ("after", 1))
    ]
    assert [(one.load, one.trials) for one in found] == lanes


def test_what_is_unknown_for_the_same_reason_is_one_line() -> None:
    rows = [trial(1), trial(2, server="b"), trial(3, server="c")]
    alike, other = lines(told(rows, NO_SERIES, NO_SERIES, NOTHING))
    unknown = "unknown: no series of its window were stored"
    assert alike == ("fixed-pool, closed 100; b, closed 100", unknown)
    assert other == ("c, closed 100", f"{sentence(NOTHING)} (strong evidence)")


def test_the_console_says_it_in_a_line_and_names_the_bottleneck_where_there_is_room() -> None:
    text = io.StringIO()
    render(Console(file=text, width=120), told([trial(1)]))
    [line] = text.getvalue().splitlines()
    assert line.startswith("fixed-pool, closed 100: worker pool, 200 of 200 threads")
    rows = [trial(1, bottleneck="worker pool", strength=STRONG)]
    for width, named in ((120, False), (140, True)):
        text = io.StringIO()
        table.render(Console(file=text, width=width), rows, ())
        assert ("worker pool" in text.getvalue()) is named
        assert max(map(len, text.getvalue().splitlines())) <= width
