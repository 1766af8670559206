"""A judged measurement as a row: what trials.csv and every answer are made of. Pure."""

from copy import replace
from typing import Any, get_type_hints

from lab.judge import slo
from lab.judge.splits import thread_times
from lab.judge.trial import Trial, think_ms
from lab.model import (
    Counts,
    CpuSplit,
    Latency,
    Reading,
    Ref,
    Row,
    ThreadTimes,
    TimeSplit,
    TrialPlan,
    Usage,
    Verdict,
    cell_of,
)


def row_of(run: str, trial: Trial, verdict: Verdict, host: str | None = None) -> Row:
    record, reading, judgement = trial.record, trial.measurement.reading, trial.judgement
    if reading and not record.plan.hold and trial.unanswered:
        reading = replace(reading, window_lost=(reading.window_lost or 0) + trial.unanswered)
    started_at, ended_at = record.window(reading.window_s) if reading else (None, None)
    return Row(
        run=run,
        **_columns(TrialPlan, record.plan),
        **_columns(Reading, reading),
        **_columns(Counts, reading.counts if reading else None),
        **_columns(Latency, reading.corrected if reading else None),
        **_columns(Latency, reading.raw if reading else None, "raw_"),
        **_columns(Latency, reading.late if reading else None, "late_"),
        **_columns(Latency, reading.failed if reading else None, "failed_"),
        **(slo.columns(reading.ranks, reading.window_lost or 0) if reading else {}),
        think_ms=think_ms(reading) if reading and not trial.is_open else None,
        **_columns(Usage, record.usage),
        **_columns(Ref, record.ref),
        **_columns(CpuSplit, trial.cpu),
        **_columns(TimeSplit, trial.split),
        **_columns(ThreadTimes, thread_times(trial)),
        valid=judgement.valid,
        invalid_reasons=cell_of(judgement.reasons),
        others_cpu=judgement.others_cpu,
        bottleneck=verdict.bottleneck,
        strength=verdict.strength or None,
        started_at=started_at,
        ended_at=ended_at,
        expected_rps=record.bounds[0].rps if record.bounds else None,
        # No prediction covers peaks or a script of toxics.
        expected_p95_ms=None if record.peaks or record.script else record.expected_p95_ms,
        binding=record.bounds[0].resource if record.bounds else None,
        live_heap_bytes=record.live_heap_bytes,
        resident_bytes=record.resident_bytes,
        host=host,
        overloaded=trial.overloaded if reading and trial.is_open else None,
    )


def _columns[T](kind: type[T], record: T | None, prefix: str = "") -> dict[str, Any]:
    """The columns that are called like the fields of a record, with its values: None without it."""
    return {
        prefix + name: None if record is None else getattr(record, name)
        for name in get_type_hints(kind)
        if prefix + name in Row.columns()
    }
