"""oha: answers from its SQLite rows, errors from its JSON."""

import dataclasses
import heapq
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import pytest

from lab.errors import RawDataError
from lab.load.engines.histogram import Histogram
from lab.load.engines.oha import ANSWERS, DATABASE, OUTPUT, SUMMARY, Oha
from lab.load.engines.oha_tickets import missing
from lab.model import Reading, TrialPlan, error_share, good_share

Raw = Callable[[str, str], Path]
Plan = Callable[..., TrialPlan]
# ticket or None, start, end, status
Answer = tuple[float | None, float, float, int]


def store(folder: Path, answers: Iterable[Answer], errors: dict[str, int], total_s: float) -> None:
    """What oha 1.12 leaves behind."""
    answers = list(answers)
    with closing(sqlite3.connect(folder / DATABASE)) as database:
        database.execute(
            "CREATE TABLE oha (url TEXT NOT NULL, start REAL NOT NULL, "
            "start_latency_correction REAL, end REAL NOT NULL, duration REAL NOT NULL, "
            "status INTEGER NOT NULL, len_bytes INTEGER NOT NULL, run INTEGER NOT NULL)"
        )
        database.executemany("INSERT INTO oha VALUES ('/', ?2, ?1, ?3, ?3 - ?2, ?4, 2, 0)", answers)
        database.commit()
    summary = {
        "summary": {"total": total_s},
        "statusCodeDistribution": Counter(str(status) for *_, status in answers),
        "errorDistribution": errors,
    }
    (folder / SUMMARY).write_text(json.dumps(summary))


def read_back(
    folder: Path, trial: TrialPlan, rows: Iterable[Answer], errors: dict[str, int]
) -> Reading:
    """What is read of a run with these answers, which lasted as planned."""
    store(folder, rows, errors, (trial.warmup_s or 0) + trial.duration_s)
    Oha().condense(trial, folder)
    return Oha().read(trial, folder)


def read_summary(folder: Path, trial: TrialPlan, rows: Iterable[Answer]) -> Reading:
    """As above, with the length and the errors of a real run, whose summary is in the folder."""
    summary = json.loads((folder / SUMMARY).read_text())
    store(folder, rows, summary["errorDistribution"], summary["summary"]["total"])
    Oha().condense(trial, folder)
    return Oha().read(trial, folder)


def test_the_window_leaves_the_warm_up_out(plan: Plan, tmp_path: Path) -> None:
    # 10 per second for 4 s; 100 ms each, but 900 ms in the first two seconds.
    answers: list[Answer] = []
    for i in range(40):
        start = i / 10
        answers.append((start, start, start + (0.9 if i < 11 else 0.1), 200))
    trial = plan(offered_rps=10, duration_s=2, warmup_s=2, engine="oha")
    reading = read_back(tmp_path, trial, answers, {})
    # Ended in [2, 4): starts 1.9 to 3.8 s, all of 100 ms; the last ended at 4.0.
    assert reading.samples == 20
    assert reading.achieved_rps == 10
    assert reading.raw.p50_ms == pytest.approx(100, rel=0.001)
    assert reading.raw.max_ms == pytest.approx(100)
    assert reading.counts.ok == 40
    assert reading.counts.accounted_s == 4.0


def test_every_second_of_the_window_is_told_with_those_without_an_answer(
    plan: Plan, tmp_path: Path
) -> None:
    # Taken up 400 ms after they were issued, answered 100 ms later; none are issued for a second,
    # and those after it are a second late.
    due = [at / 10 for at in range(40) if not 15 <= at < 25]
    rows = [(at, at + 0.4, at + 0.5, 200 if at < 3 else 503) for at in due]
    opened = plan(offered_rps=10, duration_s=3, warmup_s=1, engine="oha")
    seconds = read_back(tmp_path, opened, rows, {}).seconds
    assert [(one.answers, one.good) for one in seconds] == [(10, 10), (0, 0), (10, 5)]
    assert [one.mean_ms for one in seconds] == [pytest.approx(500), None, pytest.approx(1500)]
    closed = plan(offered_rps=None, duration_s=3, warmup_s=1, engine="oha")
    assert read_back(tmp_path, closed, rows, {}).seconds[0].mean_ms == pytest.approx(100)


def test_corrected_counts_from_the_ticket_and_raw_from_the_start(
    plan: Plan, tmp_path: Path
) -> None:
    # Tickets every 100 ms, taken up 400 ms later, answered 100 ms after that.
    rows = [(i / 10, i / 10 + 0.4, i / 10 + 0.5, 200) for i in range(40)]
    trial = plan(offered_rps=10, duration_s=3, warmup_s=1, engine="oha")
    reading = read_back(tmp_path, trial, rows, {})
    assert reading.raw.p50_ms == pytest.approx(100, rel=0.001)
    assert reading.corrected.p50_ms == pytest.approx(500, rel=0.001)
    assert reading.lag_ms == 0
    curves = Oha().curves(trial, tmp_path)
    assert curves.raw.count == curves.corrected.count == reading.samples
    assert {round(ms) for _, ms in curves.raw.points} == {100}
    assert {round(ms) for _, ms in curves.corrected.points} == {500}


def test_a_generator_that_is_late_itself_does_not_hide_it(plan: Plan, tmp_path: Path) -> None:
    # Due every 100 ms, but each ticket is issued 300 ms late.
    rows = [(i / 10 + 0.3, i / 10 + 0.3, i / 10 + 0.4, 200) for i in range(30)]
    trial = plan(offered_rps=10, duration_s=2, warmup_s=1, engine="oha")
    store(tmp_path, rows, {}, 4.0)
    Oha().condense(trial, tmp_path)
    reading = Oha().read(trial, tmp_path)
    assert reading.corrected.p50_ms == pytest.approx(400, rel=0.001)
    assert reading.raw.p50_ms == pytest.approx(100, rel=0.001)
    assert reading.lag_ms == pytest.approx(300)


def test_failed_requests_never_make_a_generator_look_late() -> None:
    # Rate 10: the first three tickets failed, so the first answer was due at 0.3 s.
    assert list(missing([(0.3, 0.3, 0.4, 200)], 10, 1, failed=3, aborted=0, run_s=4)) == [3]
    # No more than were due by then, and no more than failed.
    assert list(missing([(0.3, 0.3, 0.4, 200)], 10, 1, failed=9, aborted=0, run_s=4)) == [3]
    assert list(missing([(0.3, 0.3, 0.4, 200)], 10, 1, failed=2, aborted=0, run_s=4)) == [2]


CUT_OFF = "aborted due to deadline"
TOOK_S = 0.2


def played(
    rate: int,
    connections: int,
    run_s: float,
    issued: Callable[[float], float],
    fate: Callable[[int], str] = lambda ticket: "answered",
) -> tuple[list[Answer], dict[str, int], Histogram]:
    """What oha stores of a run: every ticket is taken up in order by the first connection that is
    free, and answered TOOK_S later; `issued` is when one that was due at a moment was issued,
    `fate` whether it was answered, failed or hung. And the corrected latencies of all that was
    answered after the warm-up of 2 s, as they truly were."""
    free = [0.0] * connections
    rows: list[Answer] = []
    errors = {"connection reset": 0, CUT_OFF: connections}
    truth = Histogram()
    for ticket in range(int(rate * run_s)):
        due = ticket / rate
        at = issued(due)
        start = max(at, heapq.heappop(free))
        end = start + TOOK_S
        heapq.heappush(free, 1e9 if fate(ticket) == "hung" else end)
        if end >= run_s or fate(ticket) == "hung":
            continue
        if fate(ticket) == "failed":
            errors["connection reset"] += 1
            continue
        rows.append((at, start, end, 200))
        if end >= 2:
            truth.add(round((end - due) * 1e6))
    return rows, {text: n for text, n in errors.items() if n}, truth


@pytest.mark.parametrize(
    ("rate", "connections", "stall_s", "p95_ms"), [(1800, 400, 1, 1000), (500, 5000, 9, 8000)]
)
def test_a_stall_of_the_generator_is_told_though_connections_are_cut_off_at_the_end(
    plan: Plan, tmp_path: Path, rate: int, connections: int, stall_s: int, p95_ms: float
) -> None:
    # Nothing is issued from 3 s on; then all that was due meanwhile, at once.
    def issued(due: float) -> float:
        return 3.0 + stall_s if 3 <= due < 3 + stall_s else due

    trial = plan(connections, rate, duration_s=13, warmup_s=2, engine="oha")
    rows, errors, truth = played(rate, connections, 15, issued)
    assert errors == {CUT_OFF: connections}
    reading = read_back(tmp_path, trial, rows, errors)
    true = truth.latency()
    assert true.p95_ms > p95_ms
    assert reading.corrected.p95_ms == pytest.approx(true.p95_ms, rel=0.001)
    assert reading.corrected.p50_ms == pytest.approx(true.p50_ms, rel=0.001)
    # A share of the answers was issued late by half the stall on average.
    late = rate * stall_s / reading.samples * stall_s / 2 * 1000
    assert reading.lag_ms == pytest.approx(late, rel=0.01)


def test_a_generator_that_never_catches_up_is_told_as_far_as_connections_were_busy(
    plan: Plan, tmp_path: Path
) -> None:
    # Every ticket is 500 ms late. 90 of 100 connections are busy with answers, so the other 10
    # may have waited for tickets before them: 10 / 450 s of the lateness is not proven.
    trial = plan(100, 450, duration_s=13, warmup_s=2, engine="oha")
    rows, errors, _ = played(450, 100, 15, lambda due: due + 0.5)
    reading = read_back(tmp_path, trial, rows, errors)
    assert reading.lag_ms == pytest.approx(500 - 10 / 450 * 1000, abs=3)


def test_nor_where_the_end_is_further_off_than_a_request_may_wait() -> None:
    rows = [(i / 10 + 0.3, i / 10 + 0.3, i / 10 + 0.4, 200) for i in range(400)]
    found = missing(rows, 10, 100, failed=0, aborted=100, run_s=41)
    # 10 s from the start on a request that hung would have timed out before the end.
    assert list(found) == [0] * 97 + [3] * 303


def healthy(ticket: int) -> str:
    return "answered"


def one_in_fifty_fails(ticket: int) -> str:
    return "answered" if ticket % 50 else "failed"


def one_in_a_thousand_hangs(ticket: int) -> str:
    return "answered" if ticket % 1000 else "hung"


@pytest.mark.parametrize("fate", [healthy, one_in_fifty_fails, one_in_a_thousand_hangs])
@pytest.mark.parametrize(("rate", "connections"), [(1800, 400), (2200, 400), (500, 5000)])
def test_a_generator_in_time_is_never_late(
    plan: Plan, tmp_path: Path, rate: int, connections: int, fate: Callable[[int], str]
) -> None:
    trial = plan(connections, rate, duration_s=13, warmup_s=2, engine="oha")
    rows, errors, truth = played(rate, connections, 15, lambda due: due, fate)
    reading = read_back(tmp_path, trial, rows, errors)
    assert reading.lag_ms == pytest.approx(0, abs=0.001)
    true = truth.latency()
    assert reading.corrected.p50_ms == pytest.approx(true.p50_ms, rel=0.001)
    assert reading.corrected.p95_ms == pytest.approx(true.p95_ms, rel=0.001)
    assert reading.corrected.max_ms == pytest.approx(true.max_ms, abs=0.01)


def test_what_a_timer_takes_is_no_lateness(plan: Plan, tmp_path: Path) -> None:
    # A whole millisecond, and up to one more; and a little more than that.
    trial = plan(100, 450, duration_s=13, warmup_s=2, engine="oha")
    rows, errors, _ = played(450, 100, 15, lambda due: due + 0.00199)
    reading = read_back(tmp_path, trial, rows, errors)
    assert (reading.lag_ms, reading.corrected) == (0, reading.raw)
    rows, _, _ = played(450, 100, 15, lambda due: due + 0.003)
    assert read_back(tmp_path, trial, rows, {}).lag_ms == pytest.approx(3, abs=0.01)


def test_answers_of_the_window_are_counted_beside_those_of_the_run(
    plan: Plan, tmp_path: Path
) -> None:
    # Good answers for 2 s, then only 503.
    rows = [(i / 10, i / 10, i / 10 + 0.05, 200 if i < 20 else 503) for i in range(40)]
    trial = plan(offered_rps=10, duration_s=2, warmup_s=2, engine="oha")
    reading = read_back(tmp_path, trial, rows, {"connection reset": 4})
    assert (reading.counts.ok, reading.counts.http_errors) == (20, 20)
    assert (reading.window_ok, reading.window_http_errors) == (0, 20)
    assert good_share(reading) == 0
    # 4 in 4 s: 2 of them in the 2 s of the window.
    assert error_share(reading, None) == 1
    better = dataclasses.replace(reading, window_ok=20, window_http_errors=0)
    assert error_share(better, None) == pytest.approx(2 / 22)


def test_closed_load_counts_what_was_in_flight_at_the_end(raw: Raw, plan: Plan) -> None:
    folder = raw("oha-mixed-closed.json", SUMMARY)
    trial = plan(concurrency=10, offered_rps=None, duration_s=2, warmup_s=0, engine="oha")
    rows = [(None, 0.5, 0.6, 200), (None, 0.5, 0.7, 503)]
    counts = read_summary(folder, trial, rows).counts
    assert (counts.ok, counts.http_errors, counts.unfinished) == (1, 1, 10)
    assert counts.sent == 12


def test_open_load_cannot_tell_what_was_in_flight(raw: Raw, plan: Plan) -> None:
    folder = raw("oha-never-open.json", SUMMARY)
    trial = plan(concurrency=10, offered_rps=100, duration_s=2, warmup_s=1, engine="oha")
    reading = read_summary(folder, trial, [])
    assert reading.samples == 0
    assert reading.corrected is None
    assert reading.raw is None
    assert (reading.counts.timeouts, reading.counts.unfinished, reading.counts.sent) == (
        20,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("capture", "offered", "errors"),
    [("oha-refused-open", 100, 200), ("oha-closes-closed", None, 13863)],
)
def test_refused_and_closed_connections_are_socket_errors(
    raw: Raw, plan: Plan, capture: str, offered: int | None, errors: int
) -> None:
    folder = raw(f"{capture}.json", SUMMARY)
    trial = plan(concurrency=10, offered_rps=offered, duration_s=1, warmup_s=1, engine="oha")
    reading = read_summary(folder, trial, [])
    assert reading.counts.socket_errors == errors
    assert reading.counts.timeouts == 0
    assert reading.notes[0].startswith(f"oha: {errors} ×")


def test_what_oha_itself_could_not_open_makes_it_the_limit(plan: Plan, tmp_path: Path) -> None:
    trial = plan(concurrency=10, offered_rps=100, duration_s=1, warmup_s=1, engine="oha")
    errors = {"Connection refused (os error 111)": 4, "Too many open files (os error 24)": 3}
    assert read_back(tmp_path, trial, [], errors).problems == (
        "the generator was the limit: it had no file descriptor left, and failed to connect 3 "
        "times in the run",
    )


def test_condensing_deletes_the_database_and_is_the_same_every_time(
    plan: Plan, tmp_path: Path
) -> None:
    trial = plan(offered_rps=10, duration_s=1, warmup_s=0, engine="oha")
    packed = []
    for _ in range(2):
        store(tmp_path, [(0.0, 0.0, 0.1, 200)], {}, 1.0)
        Oha().condense(trial, tmp_path)
        assert not (tmp_path / DATABASE).exists()
        packed.append((tmp_path / ANSWERS).read_bytes())
    assert packed[0] == packed[1]


def stored_answers(folder: Path, database: str) -> None:
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        connection.execute(database)
        connection.commit()


@pytest.mark.parametrize(
    ("left", "stored"), [("end < 0", 0), ("end < 0.05", 5)], ids=["empty", "a part"]
)
def test_a_disk_that_was_full_is_named_and_not_the_server(
    plan: Plan, tmp_path: Path, left: str, stored: int
) -> None:
    # oha writes its JSON first, then all rows in one transaction.
    trial = plan(offered_rps=100, duration_s=1, warmup_s=0, engine="oha")
    store(tmp_path, [(i / 100, i / 100, i / 100 + 0.005, 200) for i in range(90)], {}, 1.0)
    stored_answers(tmp_path, f"DELETE FROM oha WHERE NOT ({left})")
    (tmp_path / OUTPUT).write_text("Error: database or disk is full\n")
    with pytest.raises(RawDataError) as refused:
        Oha().condense(trial, tmp_path)
    assert refused.value.said == (
        f"answers.sqlite: holds {stored} of the 90 answers that oha counted (was the disk full?): "
        "Error: database or disk is full"
    )
    assert (tmp_path / DATABASE).exists()
    assert not (tmp_path / ANSWERS).exists()


def test_condensed_answers_that_are_not_those_oha_counted_are_refused(
    plan: Plan, tmp_path: Path
) -> None:
    trial = plan(offered_rps=10, duration_s=1, warmup_s=0, engine="oha")
    store(tmp_path, [(0.0, 0.0, 0.1, 200), (0.1, 0.1, 0.2, 503)], {}, 1.0)
    Oha().condense(trial, tmp_path)
    said = json.loads((tmp_path / SUMMARY).read_text())
    said["statusCodeDistribution"] = {"200": 2}
    (tmp_path / SUMMARY).write_text(json.dumps(said))
    with pytest.raises(RawDataError, match=r"holds \{200: 1, 503: 1\}, but oha counted \{200: 2\}"):
        Oha().read(trial, tmp_path)


@pytest.mark.parametrize("offered", [10, None])
def test_answers_that_ended_before_they_began_are_refused(
    plan: Plan, tmp_path: Path, offered: int | None
) -> None:
    trial = plan(offered_rps=offered, duration_s=1, warmup_s=0, engine="oha")
    store(tmp_path, [(0.0, 0.0, 0.1, 200), (0.1, 0.3, 0.2, 200)], {}, 1.0)
    with pytest.raises(RawDataError, match="1 answers ended before they began"):
        Oha().condense(trial, tmp_path)


def test_the_only_copy_is_deleted_when_the_condensed_one_was_read_back(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = plan(offered_rps=10, duration_s=1, warmup_s=0, engine="oha")
    store(tmp_path, [(0.0, 0.0, 0.1, 200)], {}, 1.0)
    monkeypatch.setattr("lab.load.engines.oha.answers", lambda _: ())
    with pytest.raises(RawDataError, match="does not read back as it was written"):
        Oha().condense(trial, tmp_path)
    assert (tmp_path / DATABASE).exists()


def test_a_truncated_answers_file_is_refused(plan: Plan, tmp_path: Path) -> None:
    trial = plan(offered_rps=100, duration_s=1, warmup_s=0, engine="oha")
    store(tmp_path, [(i / 100, i / 100, i / 90, 200) for i in range(90)], {}, 1.0)
    Oha().condense(trial, tmp_path)
    whole = (tmp_path / ANSWERS).read_bytes()
    (tmp_path / ANSWERS).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RawDataError, match=r"answers\.jsonl\.gz"):
        Oha().read(trial, tmp_path)


def test_no_result_says_what_oha_said_last(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / OUTPUT).write_text("Error: proto error: no records found\n")
    with pytest.raises(RawDataError, match="no records found"):
        Oha().read(plan(engine="oha"), tmp_path)


def test_a_truncated_json_is_refused_by_line(raw: Raw, plan: Plan) -> None:
    folder = raw("oha-mixed-open.json", SUMMARY)
    text = (folder / SUMMARY).read_text()
    (folder / SUMMARY).write_text(text[:200])
    with pytest.raises(RawDataError) as refused:
        Oha().read(plan(engine="oha"), folder)
    assert refused.value.line is not None


def test_a_database_that_is_none_is_refused(plan: Plan, tmp_path: Path) -> None:
    store(tmp_path, [], {}, 1.0)
    (tmp_path / DATABASE).write_bytes(b"not a database" * 100)
    with pytest.raises(RawDataError, match="cannot be read"):
        Oha().condense(plan(engine="oha"), tmp_path)


def test_open_load_asks_for_correction_and_closed_load_for_none(plan: Plan) -> None:
    argv = Oha().schedule(plan(offered_rps=450, engine="oha"), Path()).argv
    assert argv[argv.index("-q") + 1] == "450"
    assert "--latency-correction" in argv
    argv = Oha().schedule(plan(offered_rps=None, engine="oha"), Path()).argv
    assert "-q" not in argv
    assert "--latency-correction" not in argv
