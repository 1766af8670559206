"""Loads as tables, and the most that each lane answered."""

from copy import replace
from typing import Any

import pytest

from lab.model import NONE, STRONG, UNKNOWN, Mode, Row
from lab.report import answers
from lab.report.loads import cpu, section, time
from lab.report.result import loads
from support.fakes import plan
from support.planned import row
from support.results import result, table, text, verdict


def measured(server: str, rps: float, mode: Mode = "closed", **planned: Any) -> Row:
    valid = planned.pop("valid", True)
    of = plan(mode, **{"trial": f"{server}-{rps:g}", "server": server, **planned})
    return row(of, achieved_rps=rps, valid=valid)


LAUNCHES = [measured("a", 1000.0 + launch, launch=launch) for launch in range(1, 7)]
PREDICTED = {
    "predicted_rps": 1200.0, "expected_rps": 1000.0, "binding": "host CPU",
    "expected_p95_ms": 204.1, "raw_p95_ms": 210.4, "raw_p99_ms": 250.0,
}  # fmt: skip


def shown(*rows: Row) -> list[dict[str, str]]:
    return table(section(result(rows)).blocks, "Loads")


def test_a_load_has_its_prediction_beside_what_was_measured() -> None:
    one, two, bad = (
        replace(measured("a", rps, launch=at, valid=at < 3), **PREDICTED, ok=90, http_errors=10)
        for at, rps in enumerate((1000.0, 1100.0, 90.0), start=1)
    )
    [found] = shown(one, two, bad)
    assert found == {
        "connections": "100", "server": "a", "at most": "1,200", "expected": "1,000",
        "binding": "host CPU", "req/s": "945", "of expected": "94%", "expected p95": "204",
        "p95": "210", "p99": "250", "errors": "30 (10%)", "valid": "2 of 3", "launches": "2",
    }  # fmt: skip
    # Without a valid trial nothing is measured, and the prediction stays.
    [found] = shown(bad)
    assert (found["expected"], found["valid"]) == ("1,000", "0 of 1")
    assert not {"req/s", "of expected", "p95"} & found.keys()


def test_from_six_launches_on_there_is_an_interval() -> None:
    [found] = shown(*LAUNCHES)
    assert found["req/s"] == "1,004 [1,001, 1,006]"


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


SPLIT = {
    "cpu_server_us": 100.0, "cpu_proxy_us": 60.0, "cpu_downstream_us": 40.0,
    "cpu_generator_us": 30.0, "cpu_observation_us": 8.25,
}  # fmt: skip
TIMES = {
    "time_generator_ms": 0.0, "time_connect_ms": 0.0, "time_queue_ms": 3.0, "time_own_ms": 1.0,
    "time_pending_ms": 0.5, "time_path_ms": 2.5, "time_downstream_ms": 201.0,
    "time_unexplained_ms": 2.0,
}  # fmt: skip


def test_the_cpu_time_of_each_load_is_split() -> None:
    known = replace(measured("a", 500.0, launch=1), **SPLIT)
    dear = replace(known, trial="x", launch=2, cpu_server_us=150.0)
    bad = replace(known, trial="y", launch=3, cpu_server_us=900.0, valid=False)
    [found] = table(cpu(result([known, dear, bad])).blocks, "CPU per request")
    assert (found["server µs"], found["around it"], found["observation"]) == ("125", "138", "8.25")
    [found] = table(cpu(result([replace(known, cpu_proxy_us=None)])).blocks, "CPU per request")
    assert "around it" not in found
    assert text(cpu(result([measured("a", 1.0)]))) == ""


def test_the_parts_of_the_mean_time_add_up() -> None:
    light = replace(measured("a", 500.0), **TIMES)
    twice = replace(light, trial="x", time_own_ms=3.0)
    found = table(time(result([light, twice])).blocks, "Where the time goes")[0]
    parts = ("generator", "queue", "own", "connection", "path", "downstream", "unexplained")
    assert sum(float(found[part]) for part in parts) == float(found["mean"]) == 211
    # A tenth of the 10 ms above the downstream's.
    assert (found["own"], found["allowed"]) == ("2", "1")
    assert text(time(result([measured("a", 1.0)]))) == ""


OVER_100 = "over 100 connections"


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        ([measured("a", 0.333, concurrency=1)], [("a", "reached 0.333 req/s over 1 connection")]),
        ([measured("a", 12345.6)], [("a", f"reached 12,346 req/s {OVER_100}")]),
        # Launches have an interval, and order nothing.
        (LAUNCHES, [("a", f"reached 1,004 [1,001, 1,006] req/s {OVER_100}")]),
        # Places are told apart, and an open load says what was offered.
        (
            [measured("a", 899.6, "open", offered_rps=900, route="/x"), measured("a", 450.0)],
            [
                ("a /x", f"reached 900 req/s of 900 offered {OVER_100}"),
                ("a /downstream", f"reached 450 req/s {OVER_100}"),
            ],
        ),
        (
            [replace(measured("a", 450.0), others_cpu=0.31)],
            [("a", f"reached 450 req/s {OVER_100} (work outside the lab took 31% of the CPUs)")],
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


def test_the_answer_names_what_limited_there() -> None:
    rows = [measured("a", 450.0), measured("b", 981.0), measured("c", 99.0)]
    verdicts = {
        "a-450": verdict(NONE, STRONG),
        "b-981": verdict("worker pool", STRONG),
        "c-99": verdict(UNKNOWN),
    }
    found = answers.of_loads(loads(rows, verdicts))
    limits = ("none (strong)", "worker pool, 200 of 200 threads (strong)", "unknown")
    assert [cells[2] for cells in found[:3]] == [f"limit: {limit}" for limit in limits]


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
