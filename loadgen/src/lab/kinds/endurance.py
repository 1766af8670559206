"""A constant load for a long time, and what grows meanwhile.

The load is cut into legs: trials of their own on the same JVM. After each leg the JVM collects
everything, so that what lives is told from what died in the old generation. Servers take turns leg
by leg, so that a drift of the machine falls on all alike. Growth is per hour of *load*: the time
between a server's own legs does not count.
"""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from msgspec import Struct

from lab.errors import RawDataError
from lab.judge.checks.data import damaged
from lab.judge.checks.steady import DRIFTS
from lab.judge.intervals import slope_of
from lab.judge.metrics import HEAP_AFTER, heap_after_collections, is_old, summed
from lab.kinds.kind import SHARED, Kind, Outcome, ToMeasure, ends, settings_of
from lab.kinds.order import Design, Listed, Planner, launches, turned
from lab.kinds.reading import Asked, read_load
from lab.kinds.reading.settings import Duration
from lab.load.measure import RECORD
from lab.model import Finding, Grown, Legs, Observation, Remark, Row, TrialRecord
from lab.store import series
from lab.store.records import read_json

# A rest of the duration that is at least this long is a leg; a shorter rest makes the last leg
# longer.
LEAST_LEG_S = 30
# Samples a second apart depend on each other. So they are cut into this many parts, and the least
# of each part is one value: what grows for good raises it, and a burst does not. These depend
# less on each other, and the interval of the slope is wider for what is left (`slope_of`).
PARTS = 10
# Of the time, in which a heap's pages are touched for the first time, and pools fill: no part of
# the slope.
SETTLING = 1 / 3
MIB = 2**20
HOUR_S = 3600
# Samples: seconds, and what was there then.
Points = tuple[tuple[float, float], ...]


class Endurance(Struct, frozen=True, forbid_unknown_fields=True):
    """A long constant load, cut into legs, so that an interruption loses one."""

    leg_s: Duration


def read(asked: Asked) -> ToMeasure:
    load = read_load(asked, ("open",), ("routes", "concurrency", "modes", "engines"))
    endurance = asked.settings.table("endurance", Endurance)
    shorter = copy.replace(endurance, leg_s=min(endurance.leg_s, load.draft.duration_s))
    return load.experiment("endurance", shorter), load.notes


def design(planner: Planner) -> Design:
    """Every leg of every server and launch. Raises WordError."""
    experiment = planner.experiment
    leg_s = settings_of(Endurance, experiment).leg_s
    whole, rest = divmod(experiment.duration_s, leg_s)
    lengths_s = [leg_s] * whole
    if rest >= LEAST_LEG_S or not whole:
        lengths_s.append(rest)
    else:
        lengths_s[-1] += rest
    plans = [
        planner.single(server, duration_s=length_s, launch=launch, asks_live=True)
        for launch in launches(experiment)
        for length_s in lengths_s
        for server in turned(experiment.servers, launch)
    ]
    return Listed(planner.numbered(plans))


@dataclass(frozen=True, slots=True)
class Figure:
    """What must not grow: the `name` of its finding, the `unit` of its growth, which is `scale` of
    its samples' unit, and its samples: none where Prometheus does not see it."""

    name: str
    unit: str
    scale: float
    samples: Callable[[Observation], Points] = lambda _: ()

    def points(self, seen: Observation) -> Points:
        """The samples in the window."""
        opens, closes = seen.window
        return tuple((at, value) for at, value in self.samples(seen) if opens <= at <= closes)


def _series(metric: str, **labels: str) -> Callable[[Observation], Points]:
    """The one series with these labels; no points where there is none, or another one."""

    def points(seen: Observation) -> Points:
        series = seen.series(metric, **labels)
        return summed(series) if len(series) == 1 else ()

    return points


def resident(metric: str, **labels: str) -> Figure:
    return Figure("growth of resident memory", "MiB/h", MIB, _series(metric, **labels))


# What full collections left after each leg, in bytes.
LIVE_HEAP = Figure("growth of the live heap", "MiB/h", MIB)
# Of the measured server's process, in bytes.
OF_JVM = resident("process_resident_memory_bytes", job="jvm")
OF_SERVER: tuple[Figure, ...] = (
    Figure("growth of the heap that collections leave", "MiB/h", MIB, heap_after_collections),
    OF_JVM,
    Figure("growth of open files", "files/h", 1, _series("process_open_fds", job="jvm")),
    Figure("growth of threads", "threads/h", 1, _series("jvm_threads_current", job="jvm")),
)


@dataclass(frozen=True, slots=True)
class Leg:
    """A leg: its record, None where it cannot be read; the samples of each figure, by its name, in
    seconds since its window opened, None where they do not count, for these `problems`; and what
    collections left in the old generation. Its load counts all the same: memory grew meanwhile."""

    trial: str
    record: TrialRecord | None
    samples: Mapping[str, Points] | None = None
    old: frozenset[float] = frozenset()
    problems: tuple[Remark, ...] = ()

    @property
    def load_s(self) -> float:
        return self.record.run_s if self.record else 0.0


def findings(outcome: Outcome) -> Iterator[Finding]:
    """How fast what must not grow did, per hour of load, as slopes with their 95 % intervals, of
    each server and launch. Legs that are invalid, or whose series cannot be read, are left out, but
    for the time in which they put load on the JVM. Raises RawDataError without a trial.json."""
    for server in outcome.experiment.servers:
        for launch in launches(outcome.experiment):
            rows = [row for row in outcome.of(server) if row.launch == launch]
            if rows:
                yield from _of_launch(server, launch, [_leg(row, outcome) for row in rows])


def _leg(row: Row, outcome: Outcome) -> Leg:
    # What grows may slow the server down within a leg, and that is no reason to leave the leg out.
    counts, raw = row.codes <= DRIFTS, outcome.raw(row)
    problems = () if counts else row.reasons
    try:
        record = read_json(raw / RECORD, TrialRecord)
    except RawDataError:
        if counts:
            raise
        return Leg(row.trial, None, problems=(*problems, Remark("load-not-counted")))
    if record.before.jvm_started_ms is None:
        problems = problems or (Remark("jvm-unknown"),)
    if problems:
        return Leg(row.trial, record, problems=problems)
    try:
        whole = series.load(raw)
    except RawDataError as failure:
        return Leg(row.trial, record, problems=(damaged.remark(problem=failure.said),))
    opens, _ = whole.window
    # Of all series of a window, which are many.
    samples = {
        figure.name: tuple((at - opens, value) for at, value in figure.points(whole))
        for figure in OF_SERVER
    }
    pools = [pool for pool in whole.series(HEAP_AFTER, job="jvm") if is_old(pool)]
    return Leg(row.trial, record, samples, frozenset(v for pool in pools for v in pool.values))


def _of_launch(server: str, launch: int, legs: Sequence[Leg]) -> Iterator[Finding]:
    # Two JVMs have no growth in common: the findings are of the JVM with the most legs that count.
    jvms: dict[int, list[Leg]] = {}
    for leg in legs:
        if leg.record and leg.record.before.jvm_started_ms is not None:
            jvms.setdefault(leg.record.before.jvm_started_ms, []).append(leg)
    longest = max(jvms.values(), key=_counted, default=[])
    proofs = [leg.record.warmth for leg in longest if leg.record]
    load = Legs(
        load_s=sum(leg.load_s for leg in longest),
        legs=len(legs),
        counted=_counted(longest),
        on_other_jvms=_counted(legs) - _counted(longest),
        left_out={leg.trial: leg.problems for leg in legs if leg.problems},
        # The JVM of a run that goes on is proven warm once more.
        interruptions=sum(was != now for was, now in pairwise(proofs)),
        old_collected=any(len(leg.old) > 1 for leg in longest),
    )
    for figure in (LIVE_HEAP, *OF_SERVER):
        points = _points(longest, figure)
        # A foreign service does not report what lives.
        if figure is not LIVE_HEAP or points:
            slope, levels = growth(points, figure.scale)
            yield Grown(
                figure.name, server, launch, slope[0], figure.unit, *slope[1:], levels, load
            )


def _counted(legs: Sequence[Leg]) -> int:
    return sum(leg.samples is not None for leg in legs)


def _points(legs: Sequence[Leg], figure: Figure) -> Points:
    """The samples of a figure in the windows of these legs, and the live heap after each leg, by
    seconds of load."""
    points: list[tuple[float, float]] = []
    for leg, ended_s in zip(legs, accumulate(leg.load_s for leg in legs), strict=True):
        if leg.samples is None or leg.record is None:
            continue
        live, opens = leg.record.live_heap_bytes, ended_s - leg.load_s + leg.record.window_offset_s
        if figure is not LIVE_HEAP:
            points += [(opens + at, value) for at, value in leg.samples[figure.name]]
        elif live is not None:
            points.append((ended_s, float(live)))
    return tuple(points)


# How much a figure grows in an hour, once it has settled, with the ends of its 95 % interval (None:
# too few samples); and what there was in the first part of all, then, and in the last part.
Slope = tuple[float | None, float | None, float | None]
Levels = tuple[float, float, float]


def growth(points: Points, scale: float) -> tuple[Slope, Levels | None]:
    """How many `scale` a figure grows in an hour: the slope of the least values of equal parts of
    its samples, without those in which it settles."""
    begins = points[0][0] + SETTLING * (points[-1][0] - points[0][0]) if points else 0.0
    parts = in_parts([(at, value) for at, value in points if at >= begins])
    if len(parts) < 2:
        return (None, None, None), None
    slope = slope_of([at for at, _ in parts], [value for _, value in parts])
    per_s = (slope.per_s, *ends(slope.interval))
    value, low, high = (None if each is None else each * HOUR_S / scale for each in per_s)
    (_, first), (_, settled), (_, last) = in_parts(points)[0], parts[0], parts[-1]
    return (value, low, high), (first / scale, settled / scale, last / scale)


def in_parts(points: Sequence[tuple[float, float]]) -> Points:
    """The median time and the least value of each of the parts. They have as many samples each, one
    behind the other: what a leg that is left out lacks falls between two. Not the time of the least
    value: two of them may be seconds apart, and a slope over seconds is no growth."""
    cuts = [len(points) * part // PARTS for part in range(PARTS + 1)]
    parts = (points[begin:end] for begin, end in pairwise(cuts))
    return tuple(
        (statistics.median(at for at, _ in part), min(value for _, value in part))
        for part in parts
        if part
    )


KIND = Kind(
    name="endurance",
    title="a long constant load",
    uses=tuple(key for key in SHARED if key != "repeat.arms"),
    table=Endurance,
    records=True,
    read=read,
    design=design,
    findings=findings,
)
