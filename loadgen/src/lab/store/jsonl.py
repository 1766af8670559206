"""trials.jsonl: one JSON object per trial, with its row and with everything that has no column.

null means that nobody can tell.
"""

import json
from typing import Any

from lab.model import Judgement, Measurement, Row, Verdict, Warmth
from lab.store.records import to_json

NAME = "trials.jsonl"


def line(row: Row, measurement: Measurement, judgement: Judgement, verdict: Verdict) -> str:
    record, reading = measurement.record, measurement.reading
    whole = {
        **to_json(row),
        "samples": reading.samples if reading else None,
        "lag_ms": reading.lag_ms if reading else None,
        "mean_ms": reading.corrected.mean_ms if reading and reading.corrected else None,
        "raw_mean_ms": reading.raw.mean_ms if reading and reading.raw else None,
        "answer_ms": reading.answer_ms if reading else None,
        "reasons": to_json(judgement.reasons),
        "notes": to_json(judgement.notes),
        "verdict": {**to_json(verdict), "shares": verdict.shares},
        "condition": to_json(record.plan.condition),
        "warmth": _warmth(record.warmth),
        "jit_share": record.jit_share,
        "jit_cpu": to_json(record.jit_cpu),
        "bounds": to_json(record.bounds),
        "demand": to_json(record.demand),
        "usage": to_json(record.usage),
        "peaks": to_json(record.peaks),
        "toxics": list(record.before.toxics.in_force),
        "jvm_started_ms": record.before.jvm_started_ms,
        "engine_version": record.engine_version,
        "status": record.status,
        "argv": list(record.argv),
    }
    return json.dumps(whole, ensure_ascii=False, allow_nan=False) + "\n"


def _warmth(warmth: Warmth) -> dict[str, Any]:
    last = warmth.cycles[-1] if warmth.cycles else None
    return {
        "steady": warmth.steady,
        **({} if warmth.provable else {"provable": False}),
        **({} if warmth.run is None else {"run": warmth.run}),
        "problem": to_json(warmth.problem),
        "cycles": len(warmth.cycles),
        "seconds": last.at_s if last else None,
        "last": to_json(last),
    }
