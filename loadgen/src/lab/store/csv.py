"""trials.csv: one row per trial, written as soon as the trial is measured.

An empty cell means that the engine cannot tell. Times are UTC with milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from csv import DictReader
from io import StringIO
from pathlib import Path
from typing import Any, get_args, get_type_hints

from lab.judge.gates.generator import overloaded
from lab.model import (
    Counts,
    CpuSplit,
    Judgement,
    Latency,
    Measurement,
    Reading,
    Row,
    TimeSplit,
    TrialPlan,
    Usage,
    Verdict,
)
from lab.store.records import append_row, cell, csv_text, read_rows

NAME = "trials.csv"
REASON_SEPARATOR = "; "
_FLOATS = frozenset(n for n, hint in get_type_hints(Row).items() if float in get_args(hint))


def row_of(
    run: str,
    measurement: Measurement,
    judgement: Judgement,
    verdict: Verdict,
    cpu: CpuSplit,
    time: TimeSplit,
) -> Row:
    """A judged measurement as the values of its row."""
    record, reading = measurement.record, measurement.reading
    started_at, ended_at = record.window(reading.window_s) if reading else (None, None)
    return Row(
        run=run,
        **_columns(TrialPlan, record.plan),
        **_columns(Reading, reading),
        **_columns(Counts, reading.counts if reading else None),
        **_columns(Latency, reading.corrected if reading else None),
        **_columns(Latency, reading.raw if reading else None, "raw_"),
        **_columns(Usage, record.usage),
        **_columns(CpuSplit, cpu),
        **_columns(TimeSplit, time),
        valid=judgement.valid,
        invalid_reasons=REASON_SEPARATOR.join(judgement.reasons),
        others_cpu=judgement.others_cpu,
        bottleneck=verdict.bottleneck,
        strength=verdict.strength or None,
        started_at=started_at,
        ended_at=ended_at,
        expected_rps=record.bounds[0].rps if record.bounds else None,
        # No prediction covers peaks or a script of toxics.
        expected_p95_ms=None if record.peaks or record.script else record.expected_p95_ms,
        binding=record.bounds[0].resource if record.bounds else None,
        overloaded=overloaded(record, reading) if reading and record.plan.mode == "open" else None,
    )


def _columns[T](kind: type[T], record: T | None, prefix: str = "") -> dict[str, Any]:
    """The columns that are called like the fields of a record, with its values: None without it."""
    return {
        prefix + name: None if record is None else getattr(record, name)
        for name in get_type_hints(kind)
        if prefix + name in Row.columns()
    }


def append(path: Path, row: Row) -> None:
    """Add one row (to a new file: the header too) in one write, flushed to disk."""
    append_row(path, Row.columns(), _cells(row))


def text(rows: Sequence[Row]) -> str:
    """The whole file, with the same bytes as rows appended one by one."""
    return csv_text([Row.columns(), *map(_cells, rows)])


def read(path: Path) -> tuple[Row, ...]:
    """The rows of a file. Raises RawDataError."""
    return read_rows(path, Row)


def trials(path: Path) -> tuple[str, ...]:
    """The names of the trials in a file, of whatever version; none without a file."""
    if not path.is_file():
        return ()
    with path.open(newline="") as file:
        return tuple(row["trial"] for row in DictReader(file) if row.get("trial"))


def told_otherwise(path: Path, rows: Sequence[Row]) -> tuple[str, ...]:
    """The trials of which a file, of whatever version, says something else than these rows, in the
    columns that both have; none without a file."""
    if not path.is_file():
        return ()
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        before = {row["trial"]: row for row in DictReader(file) if row.get("trial")}
    return tuple(
        now["trial"]
        for now in DictReader(StringIO(text(rows)))
        if (old := before.get(now["trial"]))
        and any(old[name] != now[name] for name in old.keys() & now.keys())
    )


def _cells(row: Row) -> list[str]:
    return [_cell(name, getattr(row, name)) for name in Row.columns()]


def _cell(column: str, value: object) -> str:
    # A whole number in a column of floats has decimals too.
    if column in _FLOATS and isinstance(value, int | float):
        return cell(float(value), 3)
    return cell(value, 3)
