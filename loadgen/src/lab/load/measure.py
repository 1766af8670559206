"""A trial's raw files to a Measurement. Works on raw data alone, without the lab."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

from lab.errors import RawDataError
from lab.load.engines import Engine
from lab.model import Latency, Measurement, Reading, Snapshot, TrialRecord, needed_samples
from lab.store.records import read_json

RECORD = "trial.json"


def measure(raw: Path, engines: Sequence[Engine]) -> Measurement:
    """The measurement of the trial in the folder `raw`.

    Raises RawDataError when its record cannot be read. Where the engine's output cannot be read,
    the measurement has no reading and says why.
    """
    record = read_json(raw / RECORD, TrialRecord)
    engine = next((e for e in engines if e.name == record.plan.engine), None)
    if engine is None:
        raise RawDataError(raw / RECORD, None, f"no engine is called {record.plan.engine}")
    if record.problem is not None:
        return Measurement(record, None, record.problem)
    try:
        reading = engine.read(record.plan, raw)
    except RawDataError as failure:
        return Measurement(record, None, failure.said)
    return Measurement(record, supported(reading))


def folders(raw: Path) -> tuple[list[Path], tuple[str, ...]]:
    """The raw folders of trials that ended, in the order of their numbers, and the names of
    the other folders. Raises RawDataError for a folder whose name has no number."""
    numbered = []
    for folder in raw.glob("*/"):
        number = re.match(r"\d+", folder.name)
        if number is None:
            raise RawDataError(
                folder, None, "is not a trial: its name does not begin with a number"
            )
        numbered.append((int(number[0]), folder.name, folder))
    folders = [folder for _, _, folder in sorted(numbered)]
    finished = [folder for folder in folders if (folder / RECORD).is_file()]
    return finished, tuple(folder.name for folder in folders if folder not in finished)


def first_snapshot(raw: Path, server: str) -> Snapshot | None:
    """The snapshot before a server's first trial, of the trials in a run's `raw` that ended. None
    where no trial ended. Raises RawDataError."""
    records = (read_json(folder / RECORD, TrialRecord) for folder in folders(raw)[0])
    return next((one.before for one in records if one.plan.server == server), None)


def supported(reading: Reading) -> Reading:
    """The reading without the percentiles that need more samples than it has, with a note."""
    missing = [p for p in (95, 99) if reading.samples < needed_samples(p / 100)]
    if not missing or reading.samples == 0:
        return reading

    def without(latency: Latency | None) -> Latency | None:
        if latency is None:
            return None
        p95_ms = None if 95 in missing else latency.p95_ms
        return dataclasses.replace(latency, p95_ms=p95_ms, p99_ms=None)

    names = " and ".join(f"p{p}" for p in missing)
    need = needed_samples(min(missing) / 100)
    note = f"{names} left out: {reading.samples} samples, p{min(missing)} needs {need}"
    return dataclasses.replace(
        reading,
        corrected=without(reading.corrected),
        raw=without(reading.raw),
        notes=(*reading.notes, note),
    )
