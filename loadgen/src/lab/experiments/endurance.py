"""A constant load for a long time, and how memory grows meanwhile.

The load is cut into legs, trials of their own on the same JVM. Servers take turns leg by leg,
so that what drifts falls on all alike; growth is per hour of *load*, the time between a
server's own legs left out.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from lab.errors import RawDataError
from lab.experiments.order import Design, Listed, Planner, UrlOf, launches, offered_rps, turned
from lab.experiments.reading import no_auto_rate
from lab.judge.heap import AFTER, heap_after_collections, is_old
from lab.judge.intervals import slope_of
from lab.load.engines import Engine
from lab.load.measure import RECORD
from lab.model import Experiment, Finding, Observation, Row, Snapshot, TrialRecord, Warmth
from lab.store import series
from lab.store.records import read_json

HEAP = "growth of the heap that collections leave"
RESIDENT = "growth of resident memory"
UNIT = "MiB/h"
# Samples a second apart lean on each other, and Sen's interval supposes that values do not: so
# the time under load is cut into this many parts, and each part's median is one value.
PARTS = 10
# What is left of the duration is a leg of its own, or makes the last one longer where it is less.
LEAST_LEG_S = 30
MIB = 2**20
HOUR_S = 3600
Points = tuple[tuple[float, float], ...]


def design(
    experiment: Experiment,
    snapshots: Mapping[str, Snapshot],
    engines: Mapping[str, Engine],
    url_of: UrlOf,
    cores: int,
) -> Design:
    """Every leg of every server and launch; arguments as of design.loads. Raises WordError."""
    assert experiment.endurance is not None  # noqa: S101 - of this kind, says its type
    planner = Planner(experiment, engines, url_of, cores)
    mode, concurrency = experiment.modes[0], experiment.concurrencies[0]
    route = experiment.routes[0]
    engine = planner.engine_for(mode)
    rate = None
    if mode == "open":
        rate = offered_rps(experiment, route, concurrency, snapshots)
        if rate is None:
            raise no_auto_rate(route)
    plans = [
        planner.plan(server, engine, mode, concurrency, rate, duration_s=leg_s, launch=launch)
        for launch in launches(experiment)
        for leg_s in leg_lengths(experiment.duration_s, experiment.endurance.leg_s)
        for server in turned(experiment.servers, launch)
    ]
    return Listed(planner.numbered(plans))


def leg_lengths(duration_s: int, leg_s: int) -> tuple[int, ...]:
    """How long each leg is, in seconds: together as long as was asked for."""
    whole, rest = divmod(duration_s, leg_s)
    lengths = [leg_s] * whole
    if rest >= LEAST_LEG_S or not lengths:
        lengths.append(rest)
    else:
        lengths[-1] += rest
    return tuple(lengths)


@dataclass(frozen=True, slots=True)
class Leg:
    """A leg that counts: which JVM it ran on and how that was proven warm, how long it put load
    on it before and until the end of the window, and what Prometheus saw."""

    started_ms: int
    warmth: Warmth | None
    before_window_s: float
    load_s: float
    seen: Observation


def findings(experiment: Experiment, rows: Sequence[Row], run_dir: Path) -> tuple[Finding, ...]:
    """How fast heap and resident memory of each server and launch grew, as a slope with its
    95 % interval. Legs that are invalid, or whose series cannot be read, are left out, and the
    text says so. Raises RawDataError without a trial.json."""
    found: list[Finding] = []
    for server in experiment.servers:
        for launch in launches(experiment):
            own = [row for row in rows if (row.server, row.launch) == (server, launch)]
            if own:
                found += _of_jvm(server, launch, own, run_dir)
    return tuple(found)


def _of_jvm(server: str, launch: int, rows: Sequence[Row], run_dir: Path) -> list[Finding]:
    legs, problems = [], []
    for row in rows:
        leg = _leg(row, run_dir / "raw" / row.trial)
        if isinstance(leg, str):
            problems.append(f"{row.trial}: {leg}")
        else:
            legs.append(leg)
    # Two JVMs have no growth in common: the one that ran longest is looked at.
    of_jvm: dict[int, list[Leg]] = {}
    for leg in legs:
        of_jvm.setdefault(leg.started_ms, []).append(leg)
    longest = max(of_jvm.values(), key=len, default=[])
    if len(longest) < len(legs):
        problems.append(f"{len(legs) - len(longest)} legs ran on another JVM")
    left_out = f"; {len(rows) - len(longest)} of {len(rows)} legs left out: " + "; ".join(problems)
    suffix = _interrupted(longest) + (left_out if problems else "")
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


def _interrupted(legs: Sequence[Leg]) -> str:
    """Says where a run was interrupted and went on: a JVM is then proven warm once more, and that,
    and what the unfinished leg did, is load of which nobody knows how much."""
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
    """The leg, or why it does not count."""
    if not row.valid:
        return f"invalid: {row.invalid_reasons}"
    record = read_json(raw / RECORD, TrialRecord)
    try:
        seen = series.load(raw)
    except RawDataError as failure:
        return str(failure)
    return Leg(
        started_ms=record.before.own_identity.start_time_ms,
        warmth=record.warmth,
        before_window_s=record.window_offset_s,
        load_s=record.run_s,
        seen=seen,
    )


def _growth(
    legs: Sequence[Leg], read: Callable[[Observation], Points]
) -> tuple[float, float | None, float | None] | None:
    """MiB per hour of load, and the ends of its interval."""
    points: list[tuple[float, float]] = []
    loaded_s = 0.0
    for leg in legs:
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


def in_parts(points: Sequence[tuple[float, float]], count: int = PARTS) -> Points:
    """The medians (of time, of value) of equally long parts of the time; a part without
    points is left out."""
    if not points:
        return ()
    first, last = points[0][0], points[-1][0]
    length = (last - first) / count
    if length <= 0:
        return ()
    parts: list[list[tuple[float, float]]] = [[] for _ in range(count)]
    for at, value in points:
        parts[min(count - 1, int((at - first) / length))].append((at, value))
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
    """Says where the old generation was never collected in all that time."""
    after = {
        value
        for leg in legs
        for one in leg.seen.series(AFTER, job="jvm")
        if is_old(one)
        for value in one.values
    }
    if len(after) > 1:
        return ""
    return "; the old generation was not collected meanwhile, so what died there is in it"
