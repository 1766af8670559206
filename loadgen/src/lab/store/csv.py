"""trials.csv: one row per trial, on disk as soon as the trial is measured.

An empty cell means that the engine cannot tell. Times are UTC with milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args, get_type_hints

from lab.model import Judgement, Measurement, Row, Verdict
from lab.store.records import append_row, cell, csv_text, read_rows

NAME = "trials.csv"
REASON_SEPARATOR = "; "
_FLOATS = frozenset(n for n, hint in get_type_hints(Row).items() if float in get_args(hint))


def row_of(run: str, measurement: Measurement, judgement: Judgement, verdict: Verdict) -> Row:
    """A judged measurement as the values of its row."""
    record, reading = measurement.record, measurement.reading
    plan = record.plan
    corrected = reading.corrected if reading else None
    raw = reading.raw if reading else None
    counts = reading.counts if reading else None
    started_at, ended_at = record.window(reading.window_s) if reading else (None, None)
    return Row(
        run=run,
        trial=plan.trial,
        server=plan.server,
        route=plan.route,
        engine=plan.engine,
        mode=plan.mode,
        concurrency=plan.concurrency,
        offered_rps=plan.offered_rps,
        predicted_rps=plan.predicted_rps,
        achieved_rps=reading.achieved_rps if reading else None,
        p50_ms=corrected.p50_ms if corrected else None,
        p95_ms=corrected.p95_ms if corrected else None,
        p99_ms=corrected.p99_ms if corrected else None,
        max_ms=corrected.max_ms if corrected else None,
        raw_p50_ms=raw.p50_ms if raw else None,
        raw_p95_ms=raw.p95_ms if raw else None,
        raw_p99_ms=raw.p99_ms if raw else None,
        raw_max_ms=raw.max_ms if raw else None,
        sent=counts.sent if counts else None,
        ok=counts.ok if counts else None,
        http_errors=counts.http_errors if counts else None,
        socket_errors=counts.socket_errors if counts else None,
        timeouts=counts.timeouts if counts else None,
        unfinished=counts.unfinished if counts else None,
        valid=judgement.valid,
        invalid_reasons=REASON_SEPARATOR.join(judgement.reasons),
        bottleneck=verdict.bottleneck,
        confidence=verdict.confidence,
        started_at=started_at,
        ended_at=ended_at,
        window_s=reading.window_s if reading else None,
        accounted_s=counts.accounted_s if counts else None,
        launch=plan.launch,
        arm=plan.arm,
        expected_rps=record.bounds[0].rps if record.bounds else None,
        # What is planned to happen meanwhile is in no prediction of it.
        expected_p95_ms=None if record.peaks or record.script else record.expected_p95_ms,
        binding=record.bounds[0].resource if record.bounds else None,
        window_ok=reading.window_ok if reading else None,
        window_http_errors=reading.window_http_errors if reading else None,
    )


def append(path: Path, row: Row) -> None:
    """Add one row (and, to a new file, the header) in one write, flushed to disk."""
    append_row(path, Row.columns(), _cells(row))


def text(rows: Sequence[Row]) -> str:
    """The whole file, as appending row by row writes it."""
    return csv_text([Row.columns(), *map(_cells, rows)])


def read(path: Path) -> tuple[Row, ...]:
    """The rows of a file. Raises RawDataError."""
    return read_rows(path, Row)


def _cells(row: Row) -> list[str]:
    return [_cell(name, getattr(row, name)) for name in Row.columns()]


def _cell(column: str, value: object) -> str:
    # A whole number in a column of floats has their decimals too.
    if column in _FLOATS and isinstance(value, int | float):
        return cell(float(value), 3)
    return cell(value, 3)
