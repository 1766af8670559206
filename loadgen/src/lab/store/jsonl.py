"""trials.jsonl: one JSON object per trial, with its row and with everything that has no column.

null means that nobody can tell.
"""

from typing import Any

from msgspec.structs import asdict

from lab.model import Judgement, Measurement, Row, Verdict, Warmth
from lab.store.records import json_text

NAME = "trials.jsonl"


def line(row: Row, measurement: Measurement, judgement: Judgement, verdict: Verdict) -> str:
    record, reading = measurement.record, measurement.reading
    whole = {
        **asdict(row),
        "samples": reading.samples if reading else None,
        "lag_ms": reading.lag_ms if reading else None,
        "mean_ms": reading.corrected.mean_ms if reading and reading.corrected else None,
        "raw_mean_ms": reading.raw.mean_ms if reading and reading.raw else None,
        "answer_ms": reading.answer_ms if reading else None,
        "reasons": judgement.reasons,
        "notes": judgement.notes,
        "verdict": {**asdict(verdict), "shares": verdict.shares},
        "condition": record.plan.condition,
        "warmth": _warmth(record.warmth),
        "jit_share": record.jit_share,
        "jit_cpu": record.jit_cpu,
        "bounds": record.bounds,
        "demand": record.demand,
        "usage": record.usage,
        "peaks": record.peaks,
        "toxics": record.before.toxics.in_force,
        "jvm_started_ms": record.before.jvm_started_ms,
        "engine_version": record.engine_version,
        "status": record.status,
        "argv": record.argv,
    }
    return json_text(whole, None)


def _warmth(warmth: Warmth) -> dict[str, Any]:
    last = warmth.cycles[-1] if warmth.cycles else None
    return {
        "steady": warmth.steady,
        **({} if warmth.provable else {"provable": False}),
        **({} if warmth.run is None else {"run": warmth.run}),
        "problem": warmth.problem,
        "cycles": len(warmth.cycles),
        "seconds": last.at_s if last else None,
        "last": last,
    }
