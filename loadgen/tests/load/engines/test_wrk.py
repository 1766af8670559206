"""wrk: its phantom samples are taken out again, exactly."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lab.errors import RawDataError
from lab.load.engines.wrk import OUTPUT, Wrk, without_phantoms
from lab.model import TrialPlan

Raw = Callable[[str, str], Path]
Plan = Callable[..., TrialPlan]
CAPTURE = "wrk-slow-every-50th.txt"


def corrected(counts: dict[int, int], expected: int) -> dict[int, int]:
    """stats_correct of wrk's src/stats.c, line by line."""
    data = dict(counts)
    n = expected * 2
    while n <= max(counts):
        count, m = data.get(n, 0), n - expected
        while count and m > expected:
            data[m] = data.get(m, 0) + count
            m -= expected
        n += 1
    return data


def test_phantoms_are_undone_exactly() -> None:
    measured = {10: 5, 21: 2, 35: 1, 64: 3, 100: 1}
    # 4 connections, 8 requests, 20 us: an expected interval of 20 // (8 // 4) = 10 us.
    phantoms = corrected(measured, 10)
    assert sum(phantoms.values()) > sum(measured.values())
    assert without_phantoms(phantoms, 20, 8, 4) == measured


def test_fewer_requests_than_connections_have_no_phantoms() -> None:
    assert without_phantoms({5: 1}, 1000, 1, 10) == {5: 1}


def test_a_real_run_has_as_many_latencies_as_requests(raw: Raw, plan: Plan) -> None:
    # 1737 requests in 2.049404 s; 2479 samples were printed. Every 50th answer took 300 ms,
    # so 2 % did: p95 is an ordinary answer, p99 a slow one.
    reading = Wrk().read(plan(concurrency=10, offered_rps=None, engine="wrk"), raw(CAPTURE, OUTPUT))
    assert reading.samples == 1737
    assert reading.achieved_rps == pytest.approx(1737 / 2.049404)
    assert reading.corrected is None
    assert reading.raw.p95_ms < 50
    assert reading.raw.p99_ms > 300
    assert reading.counts.timeouts is None
    curves = Wrk().curves(plan(concurrency=10, offered_rps=None), raw(CAPTURE, OUTPUT))
    assert curves.corrected is None
    assert (curves.raw.count, curves.raw.points[-1][1] > 300) == (1737, True)


def test_of_its_socket_errors_only_reads_are_requests(raw: Raw, plan: Plan) -> None:
    folder = raw(CAPTURE, OUTPUT)
    errors = "  Socket errors: connect 3, read 5, write 7, timeout 0\nRequests/sec:"
    text = (folder / OUTPUT).read_text().replace("Requests/sec:", errors)
    (folder / OUTPUT).write_text(text)
    reading = Wrk().read(plan(concurrency=10, offered_rps=None, engine="wrk"), folder)
    assert reading.counts.socket_errors == 5
    assert reading.notes[0].startswith("wrk failed 10 times to connect or to send")


def test_littles_law_holds_for_the_undone_latencies(raw: Raw, plan: Plan) -> None:
    reading = Wrk().read(plan(concurrency=10, offered_rps=None, engine="wrk"), raw(CAPTURE, OUTPUT))
    assert reading.achieved_rps * reading.raw.mean_ms / 1000 == pytest.approx(10, rel=0.1)


def test_a_truncated_histogram_is_refused(raw: Raw, plan: Plan) -> None:
    folder = raw(CAPTURE, OUTPUT)
    lines = (folder / OUTPUT).read_text().splitlines()
    (folder / OUTPUT).write_text("\n".join(lines[:500]))
    with pytest.raises(RawDataError) as refused:
        Wrk().read(plan(concurrency=10, offered_rps=None), folder)
    assert refused.value.line == 500


def test_a_lost_line_is_noticed(raw: Raw, plan: Plan) -> None:
    folder = raw(CAPTURE, OUTPUT)
    lines = (folder / OUTPUT).read_text().splitlines()
    del lines[100]
    (folder / OUTPUT).write_text("\n".join(lines))
    with pytest.raises(RawDataError):
        Wrk().read(plan(concurrency=10, offered_rps=None), folder)


def test_a_refused_connection_is_an_error_with_its_line(raw: Raw, plan: Plan) -> None:
    with pytest.raises(RawDataError, match="unable to connect"):
        Wrk().read(plan(offered_rps=None), raw("wrk2-10-refused-at-start.txt", OUTPUT))


def test_the_warm_up_is_a_run_of_its_own(plan: Plan) -> None:
    schedule = Wrk().schedule(plan(offered_rps=None, duration_s=15), Path())
    assert "-d10s" in schedule.warm_up
    assert schedule.window_offset_s == 0
    assert schedule.total_s == 25
