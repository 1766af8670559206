"""Seconds of a run whose recovery is known by hand, and a raw folder that holds them."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lab.load.engines.histogram import Histogram
from lab.load.engines.pacer_output import OUTPUT, pack
from lab.model import Peak, Row, TrialPlan
from lab.store.records import write_json
from support.fakes import plan, record
from support.pacer import counted, write
from support.pacer import second as second_of
from support.planned import row

# A warm-up of 10 s, then 40 s that are measured.
WINDOW = (10.0, 50.0)
# 10 s calm, 5 s disturbed, 10 calm, 5 disturbed, 10 calm.
PEAKS = (Peak(20.0, 25.0), Peak(35.0, 40.0))


def planned(name: str, **changes: Any) -> TrialPlan:
    """A trial of that window, at 400 requests per second."""
    return plan(trial=name, engine="pacer", offered_rps=400, duration_s=40, **changes)


def trial(name: str = "01-a", **changes: Any) -> Row:
    """Its row."""
    return row(planned(name), **changes)


def second(ms: float, count: int = 400) -> Histogram:
    return counted({round(ms * 1000): count})


def felt(changes: Mapping[int, float | None] | None = None) -> dict[int, Histogram]:
    """200 ms in every second but those; None: no answer in it."""
    at = dict.fromkeys(range(10, 50), 200.0) | dict(changes or {})
    return {s: second(ms) for s, ms in at.items() if ms is not None}


def keep_trial(
    raw: Path,
    planned: TrialPlan,
    seconds: Mapping[int, Histogram],
    statuses: Mapping[int, str] | None = None,
    **changes: Any,
) -> None:
    """Write the raw folder of a trial with the seconds as pacer's; all answers of a second have one
    status. `changes` are of the trial's record."""
    raw.mkdir(parents=True)
    write_json(raw / "trial.json", record(planned, window_offset_s=WINDOW[0], **changes))
    lines = []
    for at in range(int(WINDOW[1])):
        told = asdict(seconds.get(at, Histogram()))
        count = sum(count for _, count in told["buckets"])
        status = (statuses or {}).get(at, "200")
        line = second_of(at, [], [], [0.0] * count, {status: count} if count else {})
        good, none = ({"raw": told, "corrected": told}, {"failed": told})
        lines.append(line | (good if status < "400" else none))
    write(raw, lines, warmup_s=WINDOW[0])
    pack(raw / OUTPUT)
