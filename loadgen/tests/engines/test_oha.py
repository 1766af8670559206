"""oha: answers from its SQLite rows, errors from its JSON."""

import json
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import pytest

from lab.engines.oha import ANSWERS, DATABASE, OUTPUT, SUMMARY, Oha, collect
from lab.errors import RawDataError
from lab.types import TrialPlan

Raw = Callable[[str, str], Path]
Plan = Callable[..., TrialPlan]
# ticket or None, start, end, status
Answer = tuple[float | None, float, float, int]


def store(folder: Path, answers: Iterable[Answer], errors: dict[str, int], total_s: float) -> None:
    """What oha 1.12 leaves behind."""
    with closing(sqlite3.connect(folder / DATABASE)) as database:
        database.execute(
            "CREATE TABLE oha (url TEXT NOT NULL, start REAL NOT NULL, "
            "start_latency_correction REAL, end REAL NOT NULL, duration REAL NOT NULL, "
            "status INTEGER NOT NULL, len_bytes INTEGER NOT NULL, run INTEGER NOT NULL)"
        )
        database.executemany(
            "INSERT INTO oha VALUES ('/', ?2, ?1, ?3, ?3 - ?2, ?4, 2, 0)", list(answers)
        )
        database.commit()
    (folder / SUMMARY).write_text(
        json.dumps({"summary": {"total": total_s}, "errorDistribution": errors})
    )


def test_the_window_leaves_the_warm_up_out(plan: Plan, tmp_path: Path) -> None:
    # 10 per second for 4 s; 100 ms each, but 900 ms in the first two seconds.
    answers: list[Answer] = []
    for i in range(40):
        start = i / 10
        answers.append((start, start, start + (0.9 if i < 11 else 0.1), 200))
    store(tmp_path, answers, {}, 4.0)
    trial = plan(offered_rps=10, duration_s=2, warmup_s=2, engine="oha")
    Oha().condense(trial, tmp_path)
    reading = Oha().read(trial, tmp_path)
    # Ended in [2, 4): starts 1.9 to 3.8 s, all of 100 ms; the last ended at 4.0.
    assert reading.samples == 20
    assert reading.achieved_rps == 10
    assert reading.raw is not None
    assert reading.raw.p50_ms == pytest.approx(100, rel=0.001)
    assert reading.raw.max_ms == pytest.approx(100)
    assert reading.counts.ok == 40
    assert reading.counts.accounted_s == 4.0


def test_corrected_counts_from_the_ticket_and_raw_from_the_start(
    plan: Plan, tmp_path: Path
) -> None:
    # Tickets every 100 ms, taken up 400 ms later, answered 100 ms after that.
    store(
        tmp_path,
        [(i / 10, i / 10 + 0.4, i / 10 + 0.5, 200) for i in range(40)],
        {},
        4.0,
    )
    trial = plan(offered_rps=10, duration_s=3, warmup_s=1, engine="oha")
    Oha().condense(trial, tmp_path)
    reading = Oha().read(trial, tmp_path)
    assert reading.raw is not None
    assert reading.corrected is not None
    assert reading.raw.p50_ms == pytest.approx(100, rel=0.001)
    assert reading.corrected.p50_ms == pytest.approx(500, rel=0.001)
    assert reading.lag_ms == 0
    curves = Oha().curves(trial, tmp_path)
    assert curves.corrected is not None
    assert curves.raw is not None
    assert curves.raw.count == curves.corrected.count == reading.samples
    assert {round(ms) for _, ms in curves.raw.points} == {100}
    assert {round(ms) for _, ms in curves.corrected.points} == {500}


def test_a_generator_that_is_late_itself_does_not_hide_it(plan: Plan, tmp_path: Path) -> None:
    # Due every 100 ms, but each ticket is issued 300 ms late.
    store(
        tmp_path,
        [(i / 10 + 0.3, i / 10 + 0.3, i / 10 + 0.4, 200) for i in range(30)],
        {},
        4.0,
    )
    trial = plan(offered_rps=10, duration_s=2, warmup_s=1, engine="oha")
    Oha().condense(trial, tmp_path)
    reading = Oha().read(trial, tmp_path)
    assert reading.corrected is not None
    assert reading.raw is not None
    assert reading.corrected.p50_ms == pytest.approx(400, rel=0.001)
    assert reading.raw.p50_ms == pytest.approx(100, rel=0.001)
    assert reading.lag_ms == pytest.approx(300)


def test_failed_requests_never_make_a_generator_look_late() -> None:
    # Rate 10: the first three tickets failed, so the first answer was due at 0.3 s.
    seconds = collect([(0.3, 0.3, 0.4, 200)], 10, failed=3)
    assert seconds[0].lag_us == 0


def test_closed_load_counts_what_was_in_flight_at_the_end(raw: Raw, plan: Plan) -> None:
    folder = raw("oha-mixed-closed.json", SUMMARY)
    summary = (folder / SUMMARY).read_text()
    store(folder, [(None, 0.5, 0.6, 200), (None, 0.5, 0.7, 503)], {}, 1.0)
    (folder / SUMMARY).write_text(summary)
    trial = plan(concurrency=10, offered_rps=None, duration_s=2, warmup_s=0, engine="oha")
    Oha().condense(trial, folder)
    counts = Oha().read(trial, folder).counts
    assert (counts.ok, counts.http_errors, counts.unfinished) == (1, 1, 10)
    assert counts.sent == 12


def test_open_load_cannot_tell_what_was_in_flight(raw: Raw, plan: Plan) -> None:
    folder = raw("oha-never-open.json", SUMMARY)
    summary = (folder / SUMMARY).read_text()
    store(folder, [], {}, 1.0)
    (folder / SUMMARY).write_text(summary)
    trial = plan(concurrency=10, offered_rps=100, duration_s=2, warmup_s=1, engine="oha")
    Oha().condense(trial, folder)
    reading = Oha().read(trial, folder)
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
    summary = (folder / SUMMARY).read_text()
    store(folder, [], {}, 1.0)
    (folder / SUMMARY).write_text(summary)
    trial = plan(concurrency=10, offered_rps=offered, duration_s=1, warmup_s=1, engine="oha")
    Oha().condense(trial, folder)
    reading = Oha().read(trial, folder)
    assert reading.counts.socket_errors == errors
    assert reading.counts.timeouts == 0
    assert reading.notes[0].startswith(f"oha: {errors} ×")


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
