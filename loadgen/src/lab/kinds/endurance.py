"""A constant load for a long time, and what grows meanwhile.

The load is cut into legs: trials of their own on the same JVM. After each leg the JVM collects
everything, so that what lives is told from what died in the old generation. Servers take turns leg
by leg, so that a drift of the machine falls on all alike. Growth is per hour of *load*: the time
between a server's own legs does not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lab.errors import RawDataError
from lab.judge.checks.data import damaged
from lab.judge.checks.steady import DRIFTS
from lab.judge.heap import AFTER, is_old
from lab.kinds.growth import LIVE_HEAP, OF_SERVER, Figure, Points, growth, in_window
from lab.kinds.kind import SHARED, Kind, Outcome, ToMeasure, settings_of
from lab.kinds.order import Design, Listed, Planner, launches, turned
from lab.kinds.reading import Asked, read_load
from lab.kinds.reading.recording import Recorded
from lab.kinds.reading.settings import Duration
from lab.load.measure import RECORD
from lab.model import Finding, Grown, Legs, Record, Remark, Row, TrialRecord
from lab.store import series
from lab.store.records import read_json

# A rest of the duration that is at least this long is a leg; a shorter rest makes the last leg
# longer.
LEAST_LEG_S = 30


class EnduranceTable(Recorded, frozen=True, kw_only=True):
    """The keys of [endurance]."""

    leg: Duration


class Endurance(Record):
    """A long constant load, cut into legs of `leg_s` seconds, so that an interruption loses one."""

    leg_s: int

    def __post_init__(self) -> None:
        if self.leg_s < 1:
            raise ValueError("leg_s starts at 1")


def read(asked: Asked) -> ToMeasure:
    load = read_load(asked, ("open",), ("routes", "concurrency", "modes", "engines"))
    leg_s = asked.settings.table("endurance", EnduranceTable).leg
    endurance = Endurance(min(leg_s, load.draft.duration_s))
    return load.experiment("endurance", endurance), load.notes


def design(planner: Planner) -> Design:
    """Every leg of every server and launch. Raises WordError."""
    experiment = planner.experiment
    leg_s = settings_of(Endurance, experiment).leg_s
    plans = [
        planner.single(server, duration_s=length_s, launch=launch, asks_live=True)
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
    """A leg: its record, None where it cannot be read; the samples of each figure, by its name, in
    seconds since its window opened, None where they do not count, for these `problems`; and what
    collections left in the old generation. Its load counts all the same: memory grew meanwhile."""

    trial: str
    record: TrialRecord | None
    samples: Mapping[str, Points] | None = None
    old: frozenset[float] = frozenset()
    problems: tuple[Remark, ...] = ()

    @property
    def started_ms(self) -> int | None:
        """The start of its JVM, None if that is unknown."""
        return self.record.before.jvm_started_ms if self.record else None

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
        figure.name: tuple((at - opens, value) for at, value in in_window(whole, figure))
        for figure in OF_SERVER
    }
    pools = [pool for pool in whole.series(AFTER, job="jvm") if is_old(pool)]
    return Leg(row.trial, record, samples, frozenset(v for pool in pools for v in pool.values))


def _of_launch(server: str, launch: int, legs: Sequence[Leg]) -> Iterator[Finding]:
    # Two JVMs have no growth in common: the findings are of the JVM with the most legs that count.
    jvms: dict[int, list[Leg]] = {}
    for leg in legs:
        if leg.started_ms is not None:
            jvms.setdefault(leg.started_ms, []).append(leg)
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
    live = _live(longest)
    points = {LIVE_HEAP: live} if live else {}
    for figure, samples in (points | {each: _sampled(longest, each) for each in OF_SERVER}).items():
        grown = growth(samples, figure.scale)
        value, low, high = (grown.per_h, grown.low, grown.high) if grown else (None, None, None)
        levels = grown.levels if grown else None
        yield Grown(figure.name, server, launch, value, figure.unit, low, high, levels, load)


def _counted(legs: Sequence[Leg]) -> int:
    return sum(leg.samples is not None for leg in legs)


def _sampled(legs: Sequence[Leg], figure: Figure) -> list[tuple[float, float]]:
    """The samples of a figure in the windows of these legs, by seconds of load."""
    points: list[tuple[float, float]] = []
    loaded_s = 0.0
    for leg in legs:
        if leg.samples is not None and leg.record is not None:
            opens = loaded_s + leg.record.window_offset_s
            points += [(opens + at, value) for at, value in leg.samples[figure.name]]
        loaded_s += leg.load_s
    return points


def _live(legs: Sequence[Leg]) -> list[tuple[float, float]]:
    """The live heap after each leg that counts, by seconds of load. A foreign service does not
    report it."""
    points: list[tuple[float, float]] = []
    loaded_s = 0.0
    for leg in legs:
        loaded_s += leg.load_s
        if leg.samples and leg.record and leg.record.live_heap_bytes is not None:
            points.append((loaded_s, float(leg.record.live_heap_bytes)))
    return points


KIND = Kind(
    name="endurance",
    title="a long constant load",
    uses=tuple(key for key in SHARED if key != "repeat.arms"),
    table=EnduranceTable,
    read=read,
    design=design,
    findings=findings,
)
