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
from pathlib import Path

from lab.errors import RawDataError
from lab.experiments.growth import (
    HEAP,
    HOUR_S,
    LIVE_HEAP,
    OF_SERVER,
    Figure,
    Growth,
    Points,
    growth,
    in_window,
    said,
)
from lab.experiments.kind import SHARED, Outcome, ToMeasure, TrialKind, settings_of
from lab.experiments.order import Design, Listed, Planner, launches, turned
from lab.experiments.reading import Asked, Key, read_load, rules, target
from lab.judge.checks.steady import DRIFTS
from lab.judge.heap import AFTER, is_old
from lab.load.measure import RECORD
from lab.model import Finding, Observation, Row, TrialRecord, Warmth
from lab.report.remarks import text_of
from lab.store import series
from lab.store.records import read_json

# A rest of the duration that is at least this long is a leg; a shorter rest makes the last leg
# longer.
LEAST_LEG_S = 30
KEYS = {"leg": Key(rules.seconds(1))}


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
class Seen:
    """What Prometheus saw of the server in the window of a leg. `samples` are those of each figure,
    by its name, in seconds since the window opened; `old` is what collections left in the old
    generation."""

    samples: Mapping[str, Points]
    old: frozenset[float]

    @classmethod
    def of(cls, whole: Observation) -> Seen:
        """Of all series of a window, which are many."""
        opens, _ = whole.window
        return cls(
            {
                figure.name: tuple((at - opens, value) for at, value in in_window(whole, figure))
                for figure in OF_SERVER
            },
            frozenset(
                value
                for one in whole.series(AFTER, job="jvm")
                if is_old(one)
                for value in one.values
            ),
        )


@dataclass(frozen=True, slots=True)
class Leg:
    """A leg: the JVM it ran on and the proof that this JVM was warm, for how long the leg put load
    on it before the window and until its end, what Prometheus saw, and the bytes of heap that lived
    after it, where anybody told. `seen` is None where the figures of the leg do not count, and
    `why` says why not. Its load counts all the same: memory grew meanwhile."""

    started_ms: int
    warmth: Warmth | None
    before_window_s: float
    load_s: float
    seen: Seen | None
    live_bytes: int | None = None
    why: str = ""


def findings(outcome: Outcome) -> tuple[Finding, ...]:
    """How fast what must not grow did, per hour of load, as slopes with their 95 % intervals, of
    each server and launch. Legs that are invalid, or whose series cannot be read, are left out, but
    for the time in which they put load on the JVM, and the text says so. Raises RawDataError
    without a trial.json."""
    found: list[Finding] = []
    legs = [(row, _leg(row, outcome.raw(row))) for row in outcome.rows]
    for server in outcome.experiment.servers:
        for launch in launches(outcome.experiment):
            own = [
                (row.trial, leg)
                for row, leg in legs
                if (row.server, row.launch) == (server, launch)
            ]
            if own:
                found += _of_jvm(server, launch, own)
    return tuple(found)


def _of_jvm(server: str, launch: int, of: Sequence[tuple[str, Leg | str]]) -> Iterator[Finding]:
    legs, problems = [], []
    for trial, leg in of:
        if isinstance(leg, str):
            problems.append(f"{trial}: {leg}")
            continue
        legs.append(leg)
        if leg.why:
            problems.append(f"{trial}: {leg.why}")
    # Two JVMs have no growth in common: the findings are of the JVM with the most legs that count.
    of_jvm: dict[int, list[Leg]] = {}
    for leg in legs:
        of_jvm.setdefault(leg.started_ms, []).append(leg)
    longest = max(of_jvm.values(), key=_counting, default=[])
    others = sum(map(_counting, of_jvm.values())) - _counting(longest)
    if others:
        problems.append(f"{others} legs ran on another JVM")
    left_out = f"; {len(of) - _counting(longest)} of {len(of)} legs left out: "
    suffix = _interrupted(longest) + (left_out + "; ".join(problems) if problems else "")
    sampled = {figure: _under_load(longest, figure) for figure in OF_SERVER}
    # A foreign service tells nobody what lives in its heap.
    live = _live(longest)
    for figure, points in (({LIVE_HEAP: live} if live else {}) | sampled).items():
        grown = growth(points, figure.scale)
        hours = sum(leg.load_s for leg in longest) / HOUR_S
        over = f"{hours:.2f} h of load" + (_old_note(longest) if figure.name == HEAP else "")
        yield _finding(figure, grown, server, launch, over, suffix)


def _finding(
    figure: Figure, of: Growth | None, whose: str, launch: int, over: str, rest: str
) -> Finding:
    """`over` is the load, and `rest` what was left out of it."""
    if of is None:
        text = f"{figure.what}: its growth cannot be told, too few samples{rest}"
        return Finding(figure.name, whose, launch, None, figure.unit, None, None, text)
    text = said(figure, of, f"{over}{rest}")
    return Finding(figure.name, whose, launch, of.per_h, figure.unit, of.low, of.high, text)


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


def _leg(row: Row, raw: Path) -> Leg | str:
    """The leg, or why nobody knows on which JVM it put its load."""
    # What grows may slow the server down within a leg, and that is no reason to leave the leg out.
    counts = row.codes <= DRIFTS
    why = "" if counts else f"invalid: {text_of(row)}"
    try:
        record = read_json(raw / RECORD, TrialRecord)
    except RawDataError:
        if counts:
            raise
        return f"{why}, and its load is not counted"
    started_ms = record.before.jvm_started_ms
    if started_ms is None:
        return why or "which JVM it ran on is not known, without a JMX exporter"
    seen: Seen | None = None
    if counts:
        try:
            seen = Seen.of(series.load(raw))
        except RawDataError as failure:
            why = str(failure)
    return Leg(
        started_ms=started_ms,
        warmth=record.warmth,
        before_window_s=record.window_offset_s,
        load_s=record.run_s,
        seen=seen,
        live_bytes=record.live_heap_bytes,
        why=why,
    )


def _under_load(legs: Sequence[Leg], figure: Figure) -> list[tuple[float, float]]:
    """The samples of a figure in the windows of these legs, by seconds of load."""
    points: list[tuple[float, float]] = []
    loaded_s = 0.0
    for leg in legs:
        if leg.seen is not None:
            opens = loaded_s + leg.before_window_s
            points += [(opens + at, value) for at, value in leg.seen.samples[figure.name]]
        loaded_s += leg.load_s
    return points


def _live(legs: Sequence[Leg]) -> list[tuple[float, float]]:
    """The live heap after each leg that counts, by seconds of load."""
    points: list[tuple[float, float]] = []
    loaded_s = 0.0
    for leg in legs:
        loaded_s += leg.load_s
        if leg.seen is not None and leg.live_bytes is not None:
            points.append((loaded_s, float(leg.live_bytes)))
    return points


def _old_note(legs: Sequence[Leg]) -> str:
    """Says that the old generation was not collected within any leg; empty where it was. Between
    legs it is, where the JVM does as it is told."""
    if any(len(leg.seen.old) > 1 for leg in legs if leg.seen):
        return ""
    return "; no leg collected the old generation, so what died there within it is in it"


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
