"""A constant load for a long time, and how memory grows meanwhile.

The load is cut into legs: trials of their own on the same JVM. Servers take turns leg by leg, so
that a drift of the machine falls on all alike. Growth is per hour of *load*: the time between a
server's own legs does not count.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from lab.errors import RawDataError
from lab.experiments.kind import SHARED, Outcome, ToMeasure, TrialKind, settings_of
from lab.experiments.order import Design, Listed, Planner, launches, turned
from lab.experiments.reading import Asked, Key, read_load, rules, target
from lab.judge.gates import UNSTEADY
from lab.judge.heap import AFTER, heap_after_collections, is_old
from lab.judge.intervals import slope_of
from lab.load.measure import RECORD
from lab.model import Finding, Observation, Row, TrialRecord, Warmth
from lab.store import series
from lab.store.records import read_json

HEAP = "growth of the heap that collections leave"
RESIDENT = "growth of resident memory"
UNIT = "MiB/h"
# Samples a second apart depend on each other. So the time under load is cut into this many parts,
# and the median of each part is one value. These depend less on each other, and the interval of the
# slope is wider for what is left (`slope_of`).
PARTS = 10
# A rest of the duration that is at least this long is a leg; a shorter rest makes the last leg
# longer.
LEAST_LEG_S = 30
MIB = 2**20
HOUR_S = 3600
KEYS = {"leg": Key(rules.seconds(1))}
Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Endurance:
    """A long constant load, cut into legs of `leg_s` seconds, so that an interruption loses one."""

    leg_s: int

    def __post_init__(self) -> None:
        if self.leg_s < 1:
            raise ValueError("leg_s starts at 1")


def read(asked: Asked) -> ToMeasure:
    """The load and the legs that a file describes. Raises WordError."""
    load = read_load(asked, ("open",), ("routes", "concurrency", "modes", "engines"))
    leg_s = asked.settings.table("endurance", KEYS)["leg"]
    return load.experiment("endurance", Endurance(min(leg_s, load.duration_s))), load.notes


def design(planner: Planner) -> Design:
    """Every leg of every server and launch. Raises WordError."""
    experiment = planner.experiment
    leg_s = settings_of(Endurance, experiment).leg_s
    plans = [
        planner.single(server, duration_s=length_s, launch=launch)
        for launch in launches(experiment)
        for length_s in leg_lengths(experiment.duration_s, leg_s)
        for server in turned(experiment.servers, launch)
    ]
    return Listed(planner.numbered(plans))


def leg_lengths(duration_s: int, leg_s: int) -> tuple[int, ...]:
    """The length of each leg in seconds; together they last `duration_s`."""
    whole, rest = divmod(duration_s, leg_s)
    lengths = [leg_s] * whole
    if rest >= LEAST_LEG_S or not lengths:
        lengths.append(rest)
    else:
        lengths[-1] += rest
    return tuple(lengths)


@dataclass(frozen=True, slots=True)
class Leg:
    """A leg: the JVM it ran on and the proof that this JVM was warm, for how long the leg put load
    on it before the window and until its end, and what Prometheus saw. `seen` is None where the
    figures of the leg do not count, and `why` says why not. Its load counts all the same: memory
    grew meanwhile."""

    started_ms: int
    warmth: Warmth | None
    before_window_s: float
    load_s: float
    seen: Observation | None
    why: str = ""


def findings(outcome: Outcome) -> tuple[Finding, ...]:
    """How fast heap and resident memory of each server and launch grew, as a slope with its
    95 % interval. Legs that are invalid, or whose series cannot be read, are left out, but for the
    time in which they put load on the JVM, and the text says so. Raises RawDataError without a
    trial.json."""
    found: list[Finding] = []
    for server in outcome.experiment.servers:
        for launch in launches(outcome.experiment):
            own = [row for row in outcome.rows if (row.server, row.launch) == (server, launch)]
            if own:
                found += _of_jvm(server, launch, own, outcome)
    return tuple(found)


def _of_jvm(server: str, launch: int, rows: Sequence[Row], outcome: Outcome) -> list[Finding]:
    legs, problems = [], []
    for row in rows:
        leg = _leg(row, outcome.raw(row))
        if isinstance(leg, str):
            problems.append(f"{row.trial}: {leg}")
            continue
        legs.append(leg)
        if leg.why:
            problems.append(f"{row.trial}: {leg.why}")
    # Two JVMs have no growth in common: the findings are of the JVM with the most legs that count.
    of_jvm: dict[int, list[Leg]] = {}
    for leg in legs:
        of_jvm.setdefault(leg.started_ms, []).append(leg)
    longest = max(of_jvm.values(), key=_counting, default=[])
    others = sum(map(_counting, of_jvm.values())) - _counting(longest)
    if others:
        problems.append(f"{others} legs ran on another JVM")
    left_out = f"; {len(rows) - _counting(longest)} of {len(rows)} legs left out: "
    suffix = _interrupted(longest) + (left_out + "; ".join(problems) if problems else "")
    found = []
    for name, what, read in ((HEAP, "heap that collections leave", heap_after_collections),
                             (RESIDENT, "resident memory", resident)):  # fmt: skip
        growth = _growth(longest, read)
        if growth is None:
            text = f"{what}: its growth cannot be told, too few samples{suffix}"
            found.append(Finding(name, server, launch, None, UNIT, None, None, text))
            continue
        per_h, low, high = growth
        over = f"{sum(leg.load_s for leg in longest) / HOUR_S:.2f} h of load"
        old = _old_note(longest) if name == HEAP else ""
        text = f"{what}: {per_h:+.2f} MiB/h {_spread(low, high)} over {over}{old}{suffix}"
        found.append(Finding(name, server, launch, per_h, UNIT, low, high, text))
    return found


def _counting(legs: Sequence[Leg]) -> int:
    return sum(leg.seen is not None for leg in legs)


def _interrupted(legs: Sequence[Leg]) -> str:
    """Says that a run was interrupted and went on. The JVM is then proven warm once more. Nobody
    knows how much load that proof and the unfinished leg were."""
    count = sum(one.warmth != before.warmth for before, one in pairwise(legs))
    if not count:
        return ""
    times = "once" if count == 1 else f"{count} times"
    return f"; interrupted {times}, and the load on this JVM meanwhile is not counted"


def _spread(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "(no interval)"
    shown = "" if low > 0 or high < 0 else ": no growth shown"
    return f"(95 % interval {low:+.2f} to {high:+.2f}{shown})"


def _leg(row: Row, raw: Path) -> Leg | str:
    """The leg, or why nobody knows on which JVM it put its load."""
    # What grows may slow the server down within a leg, and that is no reason to leave the leg out.
    counts = all(one.startswith(UNSTEADY) for one in row.reasons)
    why = "" if counts else f"invalid: {row.invalid_reasons}"
    try:
        record = read_json(raw / RECORD, TrialRecord)
    except RawDataError:
        if counts:
            raise
        return f"{why}, and its load is not counted"
    started_ms = record.before.jvm_started_ms
    if started_ms is None:
        return why or "which JVM it ran on is not known, without a JMX exporter"
    seen: Observation | None = None
    if counts:
        try:
            seen = series.load(raw)
        except RawDataError as failure:
            why = str(failure)
    return Leg(
        started_ms=started_ms,
        warmth=record.warmth,
        before_window_s=record.window_offset_s,
        load_s=record.run_s,
        seen=seen,
        why=why,
    )


def _growth(
    legs: Sequence[Leg], read: Callable[[Observation], Points]
) -> tuple[float, float | None, float | None] | None:
    """MiB per hour of load, and the ends of its interval."""
    points: list[tuple[float, float]] = []
    loaded_s = 0.0
    for leg in legs:
        if leg.seen is not None:
            opens, closes = leg.seen.window
            points += [
                (loaded_s + leg.before_window_s + at - opens, value)
                for at, value in read(leg.seen)
                if opens <= at <= closes
            ]
        loaded_s += leg.load_s
    parts = in_parts(points)
    if len(parts) < 2:
        return None
    slope = slope_of([at for at, _ in parts], [value for _, value in parts])
    scale = HOUR_S / MIB
    per_h = float(slope.per_s * scale)
    if slope.interval is None:
        return per_h, None, None
    return per_h, float(slope.interval.low * scale), float(slope.interval.high * scale)


def in_parts(points: Sequence[tuple[float, float]]) -> Points:
    """The medians (of time, of value) of equally long parts of the time. A part without points is
    left out."""
    if not points:
        return ()
    first, last = points[0][0], points[-1][0]
    length = (last - first) / PARTS
    if length <= 0:
        return ()
    parts: list[list[tuple[float, float]]] = [[] for _ in range(PARTS)]
    for at, value in points:
        parts[min(PARTS - 1, int((at - first) / length))].append((at, value))
    return tuple(
        (statistics.median(at for at, _ in part), statistics.median(value for _, value in part))
        for part in parts
        if part
    )


def resident(seen: Observation) -> Points:
    """Resident memory of the server's process, in bytes by time."""
    found = seen.series("process_resident_memory_bytes", job="jvm")
    return found[0].points if len(found) == 1 else ()


def _old_note(legs: Sequence[Leg]) -> str:
    """Says that the old generation was never collected in all that time; empty where it was."""
    after = {
        value
        for leg in legs
        if leg.seen is not None
        for one in leg.seen.series(AFTER, job="jvm")
        if is_old(one)
        for value in one.values
    }
    if len(after) > 1:
        return ""
    return "; the old generation was not collected meanwhile, so what died there is in it"


KIND = TrialKind(
    name="endurance",
    title="a long constant load",
    uses=tuple(key for key in SHARED if key != "repeat.arms"),
    keys=KEYS,
    words=target.WORDS,
    recorded_load="each server's last load",
    read=read,
    design=design,
    findings=findings,
)
