"""A trial's raw files to a Measurement. Works on raw data alone, without the lab."""

import copy
import re
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from lab.errors import RawDataError
from lab.judge.checks import data
from lab.load.engines import Engine
from lab.load.engines.base import last_line
from lab.model import (
    Latency,
    Measurement,
    Reading,
    Remark,
    Snapshot,
    TrialPlan,
    TrialRecord,
    needed_samples,
)
from lab.store.records import read_json

# The plan, written before the load begins, and everything known about the trial after it.
PLAN = "plan.json"
RECORD = "trial.json"
# Wall clock and monotonic clock may part by this much. Time servers slew both alike, and only a
# step of the wall clock parts them. The window's series are found by the wall clock, and scraped
# every second.
CLOCK_STEP_S = 0.5


def measure(raw: Path, engines: Sequence[Engine]) -> Measurement:
    """The measurement of the trial in the folder `raw`; without a reading if the engine's output
    cannot be read.

    Raises RawDataError when its record cannot be read, and CannotWrite.
    """
    record = read_json(raw / RECORD, TrialRecord)
    if record.problem is not None:
        return Measurement(record, None, record.problem)
    engine = next((e for e in engines if e.name == record.plan.engine), None)
    if engine is None:
        raise RawDataError(raw / RECORD, None, f"no engine is called {record.plan.engine}")
    try:
        reading = engine.read(record.plan, raw)
    except RawDataError as failure:
        return Measurement(record, None, data.damaged.remark(problem=failure.said))
    except (ValueError, ArithmeticError, LookupError, TypeError) as failure:
        problem = f"the output of {engine.name} is not what it writes: {failure}"
        return Measurement(record, None, data.damaged.remark(problem=problem))
    if record.status:
        return Measurement(record, None, _ended(record, engine, raw))
    if record.wall_s is not None and abs(record.wall_s - record.run_s) > CLOCK_STEP_S:
        # The window's place in time is not known.
        stepped = data.clock_set.remark(took_s=record.run_s, wall_s=record.wall_s)
        reading = copy.replace(reading, remarks=(*reading.remarks, stepped))
    return Measurement(record, supported(reading))


def _ended(record: TrialRecord, engine: Engine, raw: Path) -> Remark:
    """How the engine ended that printed a whole result and yet failed."""
    # An engine may refuse a warm-up that it took when the trial was measured.
    plan = copy.replace(record.plan, warmup_s=None)
    output = raw / engine.schedule(plan, raw).output
    words = last_line(output, "it said nothing")
    if record.status >= 0:
        return data.engine_failed.remark(engine=engine.name, status=record.status, words=words)
    names = {number.value: number.name for number in signal.Signals}
    signal_name = names.get(-record.status, str(-record.status))
    return data.engine_killed.remark(engine=engine.name, signal=signal_name, words=words)


def supported(reading: Reading) -> Reading:
    """The reading without the percentiles that need more samples than it has, with a note of those
    of its answers."""

    def supported_by(samples: int, latency: Latency | None) -> Latency | None:
        if latency is None or samples >= needed_samples(0.99):
            return latency
        p95_ms = None if samples < needed_samples(0.95) else latency.p95_ms
        return copy.replace(latency, p95_ms=p95_ms, p99_ms=None)

    good, errors = reading.samples, 0
    # If an engine does not tell them apart, the errors are among the samples.
    if reading.all_ms is not None and reading.window_ok is not None:
        good, errors = reading.window_ok, reading.window_http_errors or 0
    missing = [p for p in (95, 99) if good < needed_samples(p / 100)]
    remarks = reading.remarks
    if missing and reading.raw:
        needed = needed_samples(missing[0] / 100)
        least = data.percentiles_left_out.remark(percentile=missing[0], samples=good, needed=needed)
        remarks = (*remarks, least)
    return copy.replace(
        reading,
        corrected=supported_by(good, reading.corrected),
        raw=supported_by(good, reading.raw),
        failed=supported_by(errors, reading.failed),
        late=supported_by(reading.samples, reading.late),
        remarks=remarks,
    )


def lost(
    raw: Path, problem: Remark, began_at: datetime, before: Mapping[str, Snapshot]
) -> Measurement:
    """The measurement of a trial whose record cannot be read, from its plan. `before` are the
    servers as the run began. Raises RawDataError if there is no plan either."""
    path = raw / PLAN
    plan = read_json(path, TrialPlan)
    if plan.trial != raw.name or plan.server not in before:
        raise RawDataError(path, None, "is not the plan of a trial of this run")
    record = TrialRecord.of_lost(plan, problem, began_at, before[plan.server])
    return Measurement(record, None, problem)


def folders(raw: Path) -> tuple[list[Path], tuple[str, ...]]:
    """The raw folders of trials that ended, in the order of their numbers, and the names of
    the other folders. Raises RawDataError for a folder whose name has no number."""
    numbered = []
    for folder in raw.glob("*/"):
        number = re.match(r"\d+", folder.name)
        if number is None:
            problem = "is not a trial: its name does not begin with a number"
            raise RawDataError(folder, None, problem)
        numbered.append((int(number[0]), folder.name, folder))
    ordered = [folder for _, _, folder in sorted(numbered)]
    finished = [folder for folder in ordered if (folder / RECORD).is_file()]
    return finished, tuple(folder.name for folder in ordered if folder not in finished)


def first_record(raw: Path, server: str) -> TrialRecord | None:
    """The record of a server's first trial, of the trials in a run's `raw` that ended. Trials whose
    record cannot be read are left out. Raises as `folders`."""
    for folder in folders(raw)[0]:
        with suppress(RawDataError):
            record = read_json(folder / RECORD, TrialRecord)
            if record.plan.server == server and not record.lost:
                return record
    return None
