"""Where the searches for a server's capacity stand, from its rows alone. Pure.

The first launch searches, the others confirm around what it found. Rows of the arm LIFTED are of
searches with the resource lifted that gave way first. Names that end with CURVE are of trials
around the capacity, of which no search knows.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lab.experiments.kind import settings_of
from lab.experiments.objective import Objective, Outcome, judged
from lab.experiments.order import launches
from lab.experiments.searching.rates import AGREE, AGREE_LATER, Tried, Way, bracket, ends
from lab.judge.checks.steady import DRIFTS
from lab.judge.intervals import LEAST_VALUES, interval_of
from lab.model import LIFTED, NONE, UNKNOWN, Experiment, Row

# The curve: loads as shares of the capacity.
SHARES = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05)
# How the names of its trials end.
CURVE = "-curve"


@dataclass(frozen=True, slots=True)
class Capacity:
    """What to search. The first rate is `first`, or half of the bound that the settings predict
    where that is less; none is above `most`. It ends where the highest rate that was held and the
    lowest that was not differ by at most the share `resolution`. `connections` is how many this
    machine holds. `curve`: whether loads around the capacity (SHARES) are measured after it.
    `prove`: whether what gave way first is lifted then, and the capacity searched once more."""

    objective: Objective
    first: int
    most: int
    resolution: float
    connections: int
    curve: bool = False
    prove: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.first <= self.most or self.connections < 1:
            raise ValueError("1 <= first <= most, and at least a connection")
        if not 0 < self.resolution < 1:
            raise ValueError("resolution is a share between 0 and 1")

    def given(self, rate: int) -> int:
        """The connections that this rate gets: what it takes, as far as the machine holds it."""
        return min(self.objective.connections(rate), self.connections)

    def way(self, start: int, launches: int, least: int = 1) -> Way:
        """The search of the first of so many launches, from this rate, for none below `least`.
        Where the interval is over launches, one trial at each end is enough in this one, too."""
        agree = AGREE_LATER if launches >= LEAST_VALUES else AGREE
        return Way(start, self.most, self.resolution, agree, least=least)

    def confirming(self, low: int, top: int | None, least: int = 1) -> Way:
        """The search of a launch after the first, which found these ends."""
        return Way(low, self.most, self.resolution, AGREE_LATER, (low, top), least)


@dataclass(frozen=True, slots=True)
class Rung:
    """The trials of one rate: which held it, which did not and why, and which say nothing."""

    rate: int
    held: tuple[Row, ...] = ()
    broke: tuple[tuple[Row, str], ...] = ()
    untold: tuple[tuple[Row, str], ...] = ()
    confirmed: int = 0

    @property
    def tried(self) -> Tried:
        counts = len(self.held), len(self.broke), len(self.untold), self.confirmed
        return Tried(self.rate, *counts)

    @property
    def trials(self) -> int:
        return len(self.held) + len(self.broke) + len(self.untold)

    def is_long(self, way: Way) -> bool:
        """Whether its next trial has a longer window. Near the capacity a queue takes long to grow:
        what was held, or broke only as its latency rose, gets a longer look, and so does all that a
        search tries that confirms another one."""
        grew = any(row.codes & DRIFTS for row, _ in self.broke)
        return grew or bool(self.held) or way.confirms

    def told(self, outcome: Outcome, why: str, row: Row, *, long: bool = False) -> Rung:
        """With one more trial, which says this. `long`: its window was a longer one."""
        if outcome == "held":
            confirmed = self.confirmed + long
            return dataclasses.replace(self, held=(*self.held, row), confirmed=confirmed)
        if outcome == "broke":
            return dataclasses.replace(self, broke=(*self.broke, (row, why)))
        return dataclasses.replace(self, untold=(*self.untold, (row, why)))


@dataclass(frozen=True, slots=True)
class Search:
    """Where the search of one server and launch stands. `rungs` are its rates in ascending order;
    `rate` is the next one (None: it is over)."""

    rungs: tuple[Rung, ...]
    rate: int | None
    way: Way

    @property
    def tried(self) -> list[Tried]:
        return [rung.tried for rung in self.rungs]

    @property
    def next(self) -> Rung:
        return self.of(self.rate) or Rung(self.rate or 0)

    @property
    def is_long(self) -> bool:
        return self.next.is_long(self.way)

    @property
    def low(self) -> Rung | None:
        held, _ = bracket(self.tried)
        return self.of(held.rate) if held else None

    @property
    def top(self) -> Rung | None:
        _, top = bracket(self.tried)
        return self.of(top.rate) if top else None

    @property
    def broken(self) -> Rung | None:
        """The lowest rate from `top` on that surely broke, as far as trials agree: `top` itself
        unless nobody can tell of it."""
        from_ = self.top.rate if self.top else math.inf
        above = (rung for rung in self.rungs if rung.rate >= from_ and rung.broke)
        return next((rung for rung in above if not rung.tried.is_unknown), None)

    @property
    def over(self) -> Rung | None:
        """The rate above what is held by which another search begins: `broken`, else `top`."""
        return self.broken or self.top

    @property
    def interval(self) -> tuple[int, int | None]:
        """The rates between which the capacity is, if trials agree; None for an end not found."""
        low, high = ends(self.tried)
        return low.rate if low else 0, high.rate if high is not None and self.broken else None

    @property
    def has_told(self) -> bool:
        """Whether it holds a rate, or has ended and surely holds none that was tried."""
        holds_none = self.broken is not None and not self.rungs[0].tried.is_unknown
        return self.low is not None or (self.rate is None and holds_none)

    def of(self, rate: int | None) -> Rung | None:
        return next((rung for rung in self.rungs if rung.rate == rate), None)


def search(way: Way, objective: Objective, rows: Sequence[Row]) -> Search:
    """Where a search stands after these rows of one server and launch, in the order of time. A row
    of a rate that needs no more trials is evidence of that rate. Another row that is not next is
    left out until it is: of a trial that was damaged, another one takes the place."""
    rungs: dict[int, Rung] = {}
    left = list(rows)
    rate = way.next([])
    while left:
        row = next((one for one in left if one.offered_rps in {rate, *rungs}), None)
        if row is None or row.offered_rps is None:
            break
        left.remove(row)
        at_rate = row.offered_rps
        rung = rungs.get(at_rate, Rung(at_rate))
        outcome, why = judged(objective, row, after_break=bool(rung.broke))
        rungs[at_rate] = rung.told(outcome, why, row, long=rung.is_long(way))
        rate = way.next([rungs[at].tried for at in sorted(rungs)])
    return Search(tuple(rungs[at] for at in sorted(rungs)), rate, way)


def searches(
    experiment: Experiment, rows: Sequence[Row], start: int | None = None
) -> dict[int, Search]:
    """The searches of one server by launch, from its rows. The first launch searches, from `start`
    (None: from the rate of its first row). The others confirm what it found; where it found
    nothing that is held there are none. Without rows and `start` there are none either."""
    searched = [row for row in rows if not row.trial.endswith(CURVE)]
    begun = _first_rate(searched, None) or start
    if begun is None:
        return {}
    way = settings_of(Capacity, experiment).way(begun, experiment.launches)
    return _by_launch(experiment, searched, None, way)


def lifted(
    experiment: Experiment, rows: Sequence[Row], found: Mapping[int, Search]
) -> dict[int, Search]:
    """The searches of one server with what gave way first lifted, as `searches`. `found` are those
    without. They begin at the rate that broke first. Where that is no longer held either, the rate
    that was held is the lowest that they try."""
    first = found[launches(experiment)[0]]
    if first.low is None or first.over is None:
        return {}
    begun = _first_rate(rows, LIFTED) or first.over.rate
    least = min(begun, first.low.rate)
    way = settings_of(Capacity, experiment).way(begun, experiment.launches, least)
    return _by_launch(experiment, rows, LIFTED, way)


def _first_rate(rows: Sequence[Row], arm: str | None) -> int | None:
    return next((row.offered_rps for row in rows if row.arm == arm), None)


def _by_launch(
    experiment: Experiment, rows: Sequence[Row], arm: str | None, way: Way
) -> dict[int, Search]:
    capacity = settings_of(Capacity, experiment)
    first, *later = launches(experiment)

    def one(launch: int, way: Way) -> Search:
        own = [row for row in rows if (row.launch, row.arm) == (launch, arm)]
        return search(way, capacity.objective, own)

    found = {first: one(first, way)}
    low, top = found[first].low, found[first].over
    if found[first].rate is None and low is not None:
        way = capacity.confirming(low.rate, top.rate if top else None, way.least)
        found |= {launch: one(launch, way) for launch in later}
    return found


def are_over(experiment: Experiment, found: Mapping[int, Search]) -> bool:
    """Whether every launch has ended its search, and most hold something, the first among them."""
    first, *_ = launches(experiment)
    whole = len(found) == len(launches(experiment)) and found[first].low is not None
    holding = sum(one.low is not None for one in found.values())
    return whole and all(one.rate is None for one in found.values()) and 2 * holding > len(found)


def curve(
    experiment: Experiment, rows: Sequence[Row], found: Mapping[int, Search]
) -> tuple[int, ...]:
    """The rates of a server's curve that are not measured yet, as shares of what the launch holds
    in whose JVM they are measured: none before its searches are over, nor where it holds
    nothing."""
    if not are_over(experiment, found):
        return ()
    last = found[launches(experiment)[-1]]
    if last.low is None:
        return ()
    rate = last.low.rate
    measured = {row.offered_rps for row in rows if row.trial.endswith(CURVE)}
    wanted = dict.fromkeys(max(1, round(share * rate)) for share in SHARES)
    return tuple(one for one in wanted if one not in measured)


def capacity_of(told: Sequence[Search], untold: int = 0) -> tuple[float, float, float | None]:
    """The highest rate that more than half of the launches held, and its interval: over launches,
    where enough of them have ended. Of `untold` more, which have ended, nobody can tell: a launch
    that is slow tells less often, so they are not left out of the interval."""
    value = statistics.median_low([one.low.rate if one.low else 0 for one in told])
    lows = [one.interval[0] for one in told]
    tops = [one.interval[1] or math.inf for one in told]
    low, high = float(min(lows)), float(max(tops))
    ended = all(one.rate is None for one in told)
    if len(told) >= LEAST_VALUES and ended and math.isfinite(high):
        of_lows, of_tops = interval_of(lows, untold), interval_of(tops, untold)
        if of_lows is not None and of_tops is not None:
            # The interval of the median, and the bracket that was searched first.
            low, high = min(of_lows.low, lows[0]), max(of_tops.high, tops[0])
    return float(value), low, high if math.isfinite(high) else None


def held_by(found: Mapping[int, Search]) -> tuple[float, float, float | None]:
    return capacity_of(*told_and_untold(found.values()))


def told_and_untold(of: Iterable[Search]) -> tuple[list[Search], int]:
    """The launches that have told what they hold, and how many have ended and do not tell."""
    every = list(of)
    told = [one for one in every if one.has_told]
    return told, sum(one.rate is None and one not in told for one in every)


@dataclass(frozen=True, slots=True)
class GaveWay:
    """What gave way first, at the lowest rate above what is held of which most trials name the
    same: `rows` are those that name it, of all that `broke` there. `resource` None: rates broke,
    and at none do most name the same. Then they are of all rates, and `rows` name what is named
    most often."""

    resource: str | None
    rows: tuple[Row, ...]
    broke: tuple[Row, ...]
    rate: int | None = None


def gave_way(of: Sequence[Search]) -> GaveWay | None:
    """What gave way first in these searches of one server, at a rate above the one that it is said
    to hold: what most trials that broke there name, and at least a third of those that broke up
    to there. Just above what is held nothing may show yet: then it is what the next rate names. But
    one trial far above does not speak for many that name nothing. None where no such rate broke."""
    told = [one for one in of if one.has_told]
    held = capacity_of(told)[0] if told else 0
    rungs: dict[int, list[Row]] = {}
    for one in of:
        for rung in one.rungs:
            if one.broken and rung.broke and rung.rate >= one.broken.rate and rung.rate > held:
                rungs.setdefault(rung.rate, []).extend(row for row, _ in rung.broke)
    so_far: Counter[str | None] = Counter()
    for rate in sorted(rungs):
        so_far.update(row.bottleneck for row in rungs[rate])
        its = named_most(rungs[rate])
        if 2 * len(its) > len(rungs[rate]) and 3 * so_far[its[0].bottleneck] >= so_far.total():
            return GaveWay(its[0].bottleneck, its, tuple(rungs[rate]), rate)
    every = tuple(row for rows in rungs.values() for row in rows)
    return GaveWay(None, named_most(every), every) if every else None


def named_most(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The trials that name the resource that most of these name."""
    named = [row for row in rows if row.bottleneck not in (None, NONE, UNKNOWN)]
    most = Counter(row.bottleneck for row in named).most_common(1)
    return tuple(row for row in named if row.bottleneck == most[0][0]) if most else ()
