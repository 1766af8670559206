"""Several engines on one load: who agrees with whom."""

import dataclasses

import pytest

from lab.experiments.agreement import findings
from lab.model import Mode, Row
from support.planned import experiment

EXPERIMENT = experiment(servers=("a",), concurrencies=(400,), engines=("wrk2", "oha"))
THREE = dataclasses.replace(EXPERIMENT, engines=("wrk2", "oha", "wrk"))


def row(
    engine: str, mode: Mode, p50: float | None, p95: float | None, valid: bool = True, why: str = ""
) -> Row:
    values = dict.fromkeys(Row.columns())
    values.update(server="a", route="/downstream", engine=engine, mode=mode, concurrency=400)
    values.update(valid=valid, invalid_reasons=why, launch=1)
    prefix = "" if mode == "open" else "raw_"
    values.update({f"{prefix}p50_ms": p50, f"{prefix}p95_ms": p95})
    return Row(**values)  # type: ignore[arg-type]


def said(*rows: Row) -> list[str]:
    return [finding.text for finding in findings(EXPERIMENT, rows)]


def test_engines_within_the_tolerance_agree_and_the_difference_is_said() -> None:
    texts = said(row("wrk2", "closed", 200.0, 210.0), row("oha", "closed", 202.0, 216.0))
    assert texts[0].startswith("/downstream closed 400: oha and wrk2 agree on p50")
    assert "(202.0 and 200.0 ms, +1.0%" in texts[0]
    assert "agree on p95 (216.0 and 210.0 ms, +2.9%" in texts[1]


def test_a_difference_beyond_it_is_shouted() -> None:
    texts = said(row("wrk2", "open", 200.0, 210.0), row("oha", "open", 200.0, 240.0))
    assert "agree on p50" in texts[0]
    assert "DO NOT AGREE on p95" in texts[1]


def test_who_sends_in_bursts_is_said_where_that_explains_the_difference() -> None:
    many = [
        dataclasses.replace(one, concurrency=2000)
        for one in (row("wrk2", "open", 200.0, 257.0), row("oha", "open", 200.0, 206.0))
    ]
    assert "oha and wrk2 differ, as wrk2 sends in bursts, on p95 (206.0 and 257.0" in said(*many)[1]
    closed = (row("wrk", "closed", 200.0, 220.0), row("oha", "closed", 200.0, 206.0))
    assert "wrk and oha differ, as wrk sends in bursts, on p95" in findings(THREE, closed)[1].text


@pytest.mark.parametrize("cpu", ["host CPU", "server CPU"])
def test_where_the_cpu_limited_an_engine_took_from_the_server_what_it_needs(cpu: str) -> None:
    full = dataclasses.replace(row("oha", "closed", 250.0, 300.0), bottleneck=cpu)
    found = findings(EXPERIMENT, (row("wrk2", "closed", 200.0, 210.0), full))
    assert found[0].value is None
    assert "the CPU limited a under oha, and engines use it, too" in found[0].text


def test_of_how_many_trials_the_medians_are_is_said() -> None:
    rows = (row("wrk2", "open", 200.0, 210.0), *[row("oha", "open", 200.0, 210.0)] * 2)
    assert "; medians of 2 trials and 1 trial)" in said(*rows)[0]


def test_of_an_overloaded_server_the_latency_says_nothing_of_the_engines() -> None:
    late = dataclasses.replace(row("oha", "open", 900.0, 1900.0), overloaded=True)
    found = findings(EXPERIMENT, (row("wrk2", "open", 200.0, 210.0), late))
    assert [one.value for one in found] == [None, None]
    assert found[0].text.endswith(
        "is unknown: a was overloaded under oha, so latency grows with time"
    )


def test_short_latencies_may_differ_by_what_clocks_add() -> None:
    texts = said(row("wrk2", "open", 2.6, 5.0), row("oha", "open", 1.0, 3.5))
    assert all(" agree on " in text for text in texts)


def test_launches_count_by_their_median_and_invalid_trials_not_at_all() -> None:
    texts = said(
        row("wrk2", "closed", 200.0, 210.0),
        row("oha", "closed", 200.0, 211.0),
        row("oha", "closed", 201.0, 212.0),
        row("oha", "closed", 900.0, 990.0),
        row("oha", "closed", 1.0, 1.0, valid=False),
    )
    assert "(201.0 and 200.0 ms" in texts[0]


def test_a_percentile_that_an_engine_does_not_tell_is_unknown() -> None:
    found = findings(
        EXPERIMENT, (row("wrk2", "closed", 200.0, None), row("oha", "closed", 200.0, 9.0))
    )
    assert found[1].value is None
    assert "agree on p95 is unknown: wrk2 has no raw_p95_ms" in found[1].text


def test_an_engine_without_a_valid_trial_is_not_passed_over() -> None:
    rows = (row("wrk2", "open", 9.0, 9.9, False, "cold JVM"), row("oha", "open", 200.0, 210.0))
    found = findings(EXPERIMENT, rows)
    assert [one.value for one in found] == [None, None]
    assert found[0].text == (
        "/downstream open 400: whether oha and wrk2 agree on p50 is unknown: no valid trial of "
        "wrk2 (cold JVM)"
    )


def test_an_engine_that_was_left_out_of_the_run_is_no_reference() -> None:
    rows = (
        row("oha", "closed", 200.0, 210.0),
        row("wrk", "closed", 201.0, 211.0),
        row("oha", "open", 200.0, 210.0),
    )
    assert [one.text.partition(" agree on p")[0] for one in findings(THREE, rows)] == [
        "/downstream closed 400: wrk and oha"
    ] * 2


def test_the_reference_never_changes_within_a_run() -> None:
    # wrk2 ran, if only the open load: the closed one has nothing to be compared with.
    rows = (
        row("wrk2", "open", 200.0, 210.0),
        row("oha", "closed", 200.0, 210.0),
        row("wrk", "closed", 201.0, 211.0),
    )
    closed = [one.text for one in findings(THREE, rows) if " closed " in one.text]
    assert [one.partition(" closed 400: ")[2] for one in closed] == [
        f"whether {engine} and wrk2 agree on {percentile} is unknown: no trial of wrk2"
        for engine in ("oha", "wrk")
        for percentile in ("p50", "p95")
    ]


def test_an_engine_that_cannot_do_a_load_is_not_missed() -> None:
    three = dataclasses.replace(EXPERIMENT, engines=("wrk", "wrk2", "oha"))
    rows = (row("wrk2", "open", 200.0, 210.0), row("oha", "open", 200.0, 210.0))
    found = findings(three, rows)
    assert [one.name.partition(",")[0] for one in found] == [
        "engines agree on p50: oha and wrk2",
        "engines agree on p95: oha and wrk2",
    ]


def test_one_engine_agrees_with_nobody() -> None:
    alone = dataclasses.replace(EXPERIMENT, engines=())
    assert findings(alone, (row("wrk2", "closed", 200.0, 210.0),)) == ()
