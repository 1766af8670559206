"""Two sides compared: is B better than A, worse, or alike within limits, and how sure is it? Pure.

One judgement serves `compare` and `gate`. A question asks how far B / A of one figure may be from 1
at one load. `compare` asks for goodput, or the p95 of an open load, within a factor of 1 + MARGIN
either way. A gate takes its limits from a file; each lies on one side of 1. The answer is the place
of the interval of B / A, here of a figure of which more is better:

        low limit      high limit
    --------|--------------|--------
            |    [----]    |            within
      [---] |              |            worse
            |              | [---]      better
         [--|--]           |            cannot tell: more launches make the interval narrower
            |           [--|--]         cannot tell

An end that is on a limit is within it. Each side has one value per launch (a fresh JVM). Launches
of one round of one run are paired, so what drifts from round to round does not count
(`intervals.ratio_of_pairs`). Launches of separate runs are not (`intervals.ratio_of`).

**Confidence.** All questions asked together are one family. With two limits each, every interval
has so much confidence that in 95 % of families all hold their true ratios (Bonferroni: O. J. Dunn,
JASA 56 (1961) 52). A limit on one side is missed half as often. A gate is worse if one answer is,
and not worse if all are: for the first the errors add up, for the second they do not (R. L. Berger,
Technometrics 24 (1982) 295). With too few launches for that confidence there is no answer.

**The machine.** The server's CPU time per request follows the speed of the host, and so does that
of the control parts, which both sides share: generator, Toxiproxy, downstream. It is a covariate
(W. G. Cochran, Biometrics 13 (1957) 261): a pair's ratio is divided by that of the control parts to
the power of CONTROL. The coefficient is a constant, so the interval stays exact whatever the true
one is: a wrong constant makes it wider. It is used only while the sides do not differ in the
control parts by more than their A/A floor, as a candidate may itself make them dearer. A difference
below the floor may move the ratio by up to that floor, so the raw ratio has to be at the same
place.

**The A/A floor.** How far does a side differ from itself? In a gate's order (A B, B A, A B, …) the
second launch of a round is followed by the first one of the next, which is of the same side. These
neighbours are as near in time as the sides of a round, and cost no launch: n rounds have n - 1 such
pairs, every other one of A, judged as pairs of A and B are. Those of A are turned round, so that a
steady drift cancels out, as it does between the sides. The order is that of `started_at`: a launch
that was measured again later, or lanes in another order, have other neighbours or none.

**What stands in the way.** A side whose requests fail more often is not better for what is left of
them: enough failed launches decide, fewer forbid an answer. Where launches were lost or measured
again on one side (UNEVEN), or the generator's own time decides, there is no answer either.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import replace
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from statistics import NormalDist
from typing import Literal

from lab.judge.checks import lab_differed, server_failures
from lab.judge.grouping import (
    Cell,
    Measure,
    Tries,
    lane_of,
    measured,
    median_per_launch,
    of_load,
    per_launch,
    per_round,
    usual_errors,
    without_shorter,
)
from lab.judge.intervals import (
    CONFIDENCE,
    MedianOf,
    RatioOf,
    most_coverage,
    needed,
    ratio_of,
    ratio_of_pairs,
)
from lab.judge.ruler import control_us
from lab.judge.slo import SHARES, judged_ms
from lab.model import Row, TrialPlan, error_share, lost_rps, offered

MARGIN = 0.05
# The power of the control parts' ratio by which the server's follows the machine. Fitted through
# the origin to the 30 A/A pairs of docs/results/gate-launches.csv: 0.86, with a standard error of
# 0.08. Of neighbours of one side it is 0.88 there, and 0.92 in gate-planted.csv.
CONTROL = 0.86
# More requests than this share that fail make a side's other requests another work.
MOST_ERRORS = 0.01
# The shares of launches that the sides lost or measured again may differ by this much. Two of seven
# launches on one side and none on the other are more; one is less.
UNEVEN = 0.2
# A backlog that grew by more than this share of the p95 makes the p95 one of the window's length.
GROWN = 0.25
# The generator's part may move the ratio by this much before it is asked whether that decides.
GENERATOR_SHARE = 0.01
# A percentile that falls among failed requests counts with as long as a server waits for a call by
# default, so that errors are never quicker than work.
FAILED_MS = 10_000.0
# How surely the launches that are asked for would tell, if the ratio is the one that was seen.
POWER = 0.9
# As many launches as LAUNCHES= takes. Where it would need more, a ratio is as good as at its limit.
MOST_LAUNCHES = 100
# Fewer pairs have no A/A floor: their widest interval holds the ratio in less than 93 % of cases.
LEAST_SAME = 5

Figure = Literal["goodput", "p95", "p99", "cpu", "memory"]
# Figures of which more is better.
MORE_IS_BETTER: tuple[Figure, ...] = ("goodput",)
Place = Literal["better", "within", "worse", "cannot tell"]
Overall = Literal["not worse", "worse", "cannot tell"]
# Why there is no answer, or what decided it in place of the interval. The numbers of each, `facts`:
Why = Literal[
    "",
    "few",  # confidence and launches that an answer takes
    "across",  # the interval reaches across a limit
    "no value",  # a side, or every round, lacks a valid trial with this figure above 0
    "failures",  # failed launches of A, of how many, of B, of how many
    "errors",  # usual shares of failed requests of A and of B
    "left out",  # see tries_a, tries_b
    "raw",  # the ratio with what the machine did, which is at another place
    "generator",  # its share of A and of B, and the interval without them
    "kept up",  # goodput of a side that answered all that was offered has an upper bound only
    "no limit",  # goodput has none, and would be judged in place of the percentile
]
# Why goodput is judged in place of a percentile.
Instead = Literal["", "errors", "overloaded"]
ControlUse = Literal["used", "differs", "no floor"]
# A side: its name, and its rows, which are of one lane of a run.
Side = tuple[str, Sequence[Row]]
Launch = tuple[str, str | None, int]


@dataclass(frozen=True, slots=True)
class Limits:
    """What B / A may be at least and at most; None: whatever it is."""

    low: float | None = None
    high: float | None = None

    @property
    def sides(self) -> int:
        return (self.low is not None) + (self.high is not None)

    def place(self, low: float, high: float, figure: Figure) -> Place:
        least, most = self.low or 0.0, self.high or math.inf
        if least <= low and high <= most:
            return "within"
        if low > most or high < least:
            return "better" if (low > most) == (figure in MORE_IS_BETTER) else "worse"
        return "cannot tell"

    def distance(self, ratio: float) -> float:
        return min(abs(math.log(limit / ratio)) for limit in (self.low, self.high) if limit)


ALIKE = Limits(1 / (1 + MARGIN), 1 + MARGIN)
COMPARE: Mapping[Figure, Limits] = {"goodput": ALIKE, "p95": ALIKE}


@dataclass(frozen=True, slots=True)
class Family:
    """How many answers are given together, with limits on one or both `sides` of 1."""

    answers: int
    sides: int = 2

    @property
    def confidence(self) -> float:
        """The least confidence of each interval, so that CONFIDENCE holds for all together."""
        missed = (1 - CONFIDENCE) / max(1, self.answers) * 2 / self.sides
        return max(CONFIDENCE, 1 - missed)

    @property
    def launches(self) -> int:
        """The fewest launches of each side that can have an answer."""
        return needed(self.confidence)


@dataclass(frozen=True, slots=True)
class Values:
    """What both sides measured of one figure, a value per launch. `paired`: the sides have rounds
    in common, and a[i] was measured beside b[i], in rounds[i]; times[i] is when, of A and of B, in
    seconds, and there are none where a time is unknown."""

    a: Sequence[float]
    b: Sequence[float]
    paired: bool
    rounds: Sequence[tuple[str, int]] = ()
    times: Sequence[tuple[float, float]] = ()

    @classmethod
    def from_rows(cls, rows_a: Sequence[Row], rows_b: Sequence[Row], metric: Measure) -> Values:
        if not side_by_side(rows_a, rows_b):
            return cls(per_launch(rows_a, metric), per_launch(rows_b, metric), paired=False)
        a, b = per_round(rows_a, metric), per_round(rows_b, metric)
        rounds = sorted({*a} & {*b})
        begun_a, begun_b = (per_round(rows, partial(_begun_s, metric)) for rows in (rows_a, rows_b))
        known = all(launch in begun_a and launch in begun_b for launch in rounds)
        return cls(
            [a[launch] for launch in rounds],
            [b[launch] for launch in rounds],
            paired=True,
            rounds=rounds,
            times=[(begun_a[launch], begun_b[launch]) for launch in rounds] if known else (),
        )

    @property
    def has_ratio(self) -> bool:
        return bool(self.a and self.b) and min(*self.a, *self.b) > 0

    def ratio(self, confidence: float) -> RatioOf:
        """B / A. With too few launches for that confidence, with the interval that they can have.
        Raises ValueError where there is no ratio."""
        most = max(most_coverage(min(len(self.a), len(self.b))), CONFIDENCE)
        return (ratio_of_pairs if self.paired else ratio_of)(self.a, self.b, min(confidence, most))

    def same(self, confidence: float) -> RatioOf | None:
        """A/A: launches of one side, of rounds that follow each other, with none of the other side
        between them; at that confidence or the most that they can have. None where there are fewer
        than LEAST_SAME of them."""
        order = sorted(
            (time, side, at)
            for at, times in enumerate(self.times)
            for side, time in enumerate(times)
        )
        pairs = [
            (self.b[at], self.b[then]) if side else (self.a[then], self.a[at])
            for (_, side, at), (_, next_side, then) in pairwise(order)
            if side == next_side
            and self.rounds[then] == (self.rounds[at][0], self.rounds[at][1] + 1)
        ]
        if len(pairs) < LEAST_SAME:
            return None
        first, then = zip(*pairs, strict=True)
        return ratio_of_pairs(first, then, min(confidence, most_coverage(len(pairs))))

    def without(self, control: Values) -> Values:
        """The values with the control parts' share of what the machine did taken out."""
        a, b = (
            [value / parts**CONTROL for value, parts in zip(*side, strict=True)]
            for side in ((self.a, control.a), (self.b, control.b))
        )
        return replace(self, a=a, b=b)


@dataclass(frozen=True, slots=True)
class Control:
    """The control parts' CPU time per request: B / A, A/A, and whether it is a covariate."""

    ratio: RatioOf
    same: RatioOf | None
    use: ControlUse


@dataclass(frozen=True, slots=True)
class Question:
    """The limits of B / A of a figure at one load. `instead`: why it is goodput, no percentile."""

    cell: Cell
    figure: Figure
    limits: Limits
    instead: Instead = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The place of B / A. `ratio` decides; `raw` is the one without the covariate. `same` is the
    A/A floor: the ratio of a side to itself. `launches`: how many of each side would tell, where
    that is known. A side is None where it has no valid trial with this figure; then the ratio is
    None too."""

    question: Question
    a: MedianOf | None
    b: MedianOf | None
    paired: bool
    ratio: RatioOf | None
    raw: RatioOf | None
    control: Control | None
    same: RatioOf | None
    place: Place
    why: Why
    facts: tuple[float, ...]
    launches: int | None
    tries_a: Tries
    tries_b: Tries


@dataclass(frozen=True, slots=True)
class Comparison:
    """All answers on two lanes, and the cells that only one side has. `family` is of all
    comparisons that are made together. Invalid trials were left out."""

    a: str
    b: str
    family: Family
    answers: tuple[Answer, ...]
    only_a: tuple[Cell, ...]
    only_b: tuple[Cell, ...]
    invalid_a: int
    invalid_b: int


def overall(comparisons: Iterable[Comparison]) -> Overall:
    """Worse where one answer is; not worse where all can be told, and there is one."""
    places = [answer.place for comparison in comparisons for answer in comparison.answers]
    if "worse" in places:
        return "worse"
    return "not worse" if places and "cannot tell" not in places else "cannot tell"


def compare(rows_a: Sequence[Row], rows_b: Sequence[Row], a: str, b: str) -> Comparison:
    return compare_all([((a, rows_a), (b, rows_b))])[0]


def compare_all(
    pairs: Sequence[tuple[Side, Side]],
    limits: Mapping[Figure, Limits] = COMPARE,
    memory: Measure = lambda _: None,
) -> tuple[Comparison, ...]:
    """Comparisons of one family: every pair of A and B. `memory` reads what no row has. All loads
    share the probability that chance alone says that a side failed more often."""
    sides = max((limit.sides for limit in limits.values()), default=2)
    cells = [shared_cells(a, b) for (_, a), (_, b) in pairs]
    alpha = (1 - CONFIDENCE) / max(1, sides * sum(map(len, cells)))
    asked = [
        [_Load(cell, (a, b), limits, sides, alpha) for cell in shared]
        for ((_, a), (_, b)), shared in zip(pairs, cells, strict=True)
    ]
    family = Family(sum(len(load.questions) for loads in asked for load in loads), sides)
    return tuple(
        Comparison(
            a=name_a,
            b=name_b,
            family=family,
            answers=tuple(answer for load in loads for answer in load.answers(family, memory)),
            only_a=tuple(cell for cell in cells_of(a) if cell not in shared),
            only_b=tuple(cell for cell in cells_of(b) if cell not in shared),
            invalid_a=sum(not row.valid for row in a),
            invalid_b=sum(not row.valid for row in b),
        )
        for ((name_a, a), (name_b, b)), shared, loads in zip(pairs, cells, asked, strict=True)
    )


def cells_of(rows: Sequence[Row]) -> dict[Cell, None]:
    """The loads of these rows, in their order."""
    return dict.fromkeys(map(Cell.of, without_shorter(rows)))


def shared_cells(rows_a: Sequence[Row], rows_b: Sequence[Row]) -> list[Cell]:
    """The loads that both sides have, in A's order."""
    cells_b = cells_of(rows_b)
    return [cell for cell in cells_of(rows_a) if cell in cells_b]


class _Load:
    """Both sides at one load: what is asked of them, and the answers."""

    def __init__(
        self,
        cell: Cell,
        every: Sequence[Sequence[Row]],
        limits: Mapping[Figure, Limits],
        sides: int,
        alpha: float,
    ) -> None:
        if not side_by_side(*every):
            # In turns it is part of the interval that work outside the lab took CPUs.
            every = [[replace(row, valid=row.valid and row.others_cpu is None) for row in rows]
                     for rows in every]  # fmt: skip
        self.cell, self.every, self.sides, self.alpha = cell, every, sides, alpha
        self.rows = [
            [row for row in without_shorter(rows) if Cell.of(row) == cell] for rows in every
        ]
        self.usual = [usual_errors(rows) for rows in self.rows]
        self.questions = list(self._questions(limits))

    def _questions(self, limits: Mapping[Figure, Limits]) -> Iterator[Question]:
        """Goodput of a closed load, a percentile of an open one; CPU time and memory."""
        figure: Figure = "goodput"
        instead: Instead = ""
        if self.cell.mode == "open":
            percentile: Figure = "p99" if "p99" in limits else "p95"
            if self.usual[0] > MOST_ERRORS:
                instead = "errors"
            # A side that keeps up has a percentile that does not grow with the run: that of the
            # other side tells which is better.
            elif all(map(_usually_overloaded, self.rows)):
                instead = "overloaded"
            # No limit that was given is left out in silence.
            if not instead or (percentile in limits and "goodput" not in limits):
                figure = percentile
        asked: tuple[Figure, ...] = (figure, "cpu", "memory")
        for name in asked:
            if name in limits:
                yield Question(self.cell, name, limits[name], instead if name == figure else "")

    def answers(self, family: Family, memory: Measure) -> Iterator[Answer]:
        failed = _failures(self.every, self.cell)
        surely = _failed_more(failed, self.alpha)
        for at, question in enumerate(self.questions):
            answer = self._answer(question, family, memory, failed)
            # A side that surely fails more decides once, whatever its figures are.
            if surely and at == 0 and (surely == "worse" or self.sides == 2):
                answer = replace(answer, place=surely, why="failures", facts=failed, launches=None)
            yield answer

    def _answer(
        self, question: Question, family: Family, memory: Measure, failed: Sequence[int]
    ) -> Answer:
        figure, confidence = question.figure, family.confidence
        measure = memory if figure == "memory" else _MEASURES[figure]
        a, b = (median_per_launch(rows, measure) for rows in self.rows)
        tries_a, tries_b = (
            Tries.of(without_shorter(rows), self.cell, measure) for rows in self.every
        )
        values = judged = Values.from_rows(self.rows[0], self.rows[1], measure)
        ratio = raw = same = control = launches = None
        place: Place = "cannot tell"
        why: Why = "no value"
        facts: Sequence[float] = ()
        if values.has_ratio:
            if figure == "cpu":
                control, judged = _without_machine(self.rows, values, confidence)
            raw, ratio = values.ratio(confidence), judged.ratio(confidence)
            same = judged.same(confidence)
            place, why, facts = self._place(question, ratio, family)
            by_raw = question.limits.place(raw.ratio, raw.ratio, figure)
            if place not in ("cannot tell", by_raw):
                place, why, facts = "cannot tell", "raw", (raw.ratio,)
            if why in ("few", "across"):
                launches = launches_for(judged, question.limits.distance(ratio.ratio), confidence)
                launches = launches or (needed(confidence) if why == "few" else None)
            uneven = abs(tries_a.share - tries_b.share) > UNEVEN
            way = ("left out", ()) if uneven else self._in_the_way(question, place, failed)
            if way is not None:
                (why, facts), place, launches = way, "cannot tell", None
        return Answer(
            question, a, b, values.paired, ratio, raw, control, same, place, why, tuple(facts),
            launches, tries_a, tries_b,
        )  # fmt: skip

    def _place(
        self, question: Question, ratio: RatioOf, family: Family
    ) -> tuple[Place, Why, Sequence[float]]:
        """By the interval, and by that without the generator's own time."""
        interval, figure = ratio.interval, question.figure
        if interval is None or interval.coverage < family.confidence:
            return "cannot tell", "few", (family.confidence, family.launches)
        place = question.limits.place(interval.low, interval.high, figure)
        if place == "cannot tell":
            return place, "across", ()
        shares = [median_per_launch(rows, partial(generator_share, figure)) for rows in self.rows]
        a, b = (share.median if share else 1.0 for share in shares)
        if max(a, b) < 1:
            factor = (1 - a) / (1 - b) if figure in MORE_IS_BETTER else (1 - b) / (1 - a)
            ends = factor * interval.low, factor * interval.high
            moved = abs(math.log(factor)) > GENERATOR_SHARE
            if moved and question.limits.place(*ends, figure) != place:
                return "cannot tell", "generator", (a, b, *ends)
        return place, "", ()

    def _in_the_way(
        self, question: Question, place: Place, failed: Sequence[int]
    ) -> tuple[Why, Sequence[float]] | None:
        """What forbids an answer at this place; None where nothing does."""
        is_cost = question.figure in ("cpu", "memory")
        a, b = _share(failed[:2]), _share(failed[2:])
        # No figure of the side that fails more is better, nor as good.
        if (b > a and (is_cost or place != "worse")) or (
            a > b and self.sides == 2 and place != "better"
        ):
            return "failures", failed
        if is_cost and abs(self.usual[0] - self.usual[1]) > MOST_ERRORS:
            return "errors", self.usual
        if question.instead and question.figure != "goodput":
            return "no limit", ()
        if question.instead and place == "within":
            valid = [row for rows in self.rows[: self.sides] for row in rows if row.valid]
            if not all(map(overloaded, valid)):
                return "kept up", ()
        return None


def _without_machine(
    rows: Sequence[Sequence[Row]], values: Values, confidence: float
) -> tuple[Control | None, Values]:
    """The control parts, if they are known of every pair, and the values without what the machine
    did where these are a covariate: not where the sides differ in them by more than their A/A
    floor, nor where that is not known."""
    parts = Values.from_rows(rows[0], rows[1], control_us)
    if not values.paired or parts.rounds != values.rounds or not parts.has_ratio:
        return None, values
    ratio, same = parts.ratio(confidence), parts.same(confidence)
    if same is None or same.interval is None:
        return Control(ratio, same, "no floor"), values
    floor = max(same.interval.high, 1 / same.interval.low)
    if not 1 / floor <= ratio.ratio <= floor:
        return Control(ratio, same, "differs"), values
    return Control(ratio, same, "used"), values.without(parts)


def latency_ms(name: str, row: Row) -> float | None:
    """A percentile of an open trial, in ms from when a request was due, with requests without an
    answer as the slowest (`slo`). Where it is one that failed, FAILED_MS at least."""
    took_ms = judged_ms(row, name)
    if error_share(row, row.offered_rps) > 1 - SHARES[name] or took_ms == math.inf:
        return max(getattr(row, f"{name}_ms") or 0.0, FAILED_MS)
    return took_ms


_MEASURES: Mapping[Figure, Measure] = {
    "goodput": "goodput_rps",
    "p95": partial(latency_ms, "p95"),
    "p99": partial(latency_ms, "p99"),
    "cpu": "cpu_server_us",
}


def generator_share(figure: Figure, row: Row) -> float | None:
    """The generator's share of a figure. Of goodput of a closed load: that of its cycle (answer,
    next request, next answer), X · Z / N (Little), with Z its think time, without which goodput
    were X / (1 - s). Of a percentile: the time by which requests were sent late, at most what it is
    above that of the latencies from sending; it is taken as no more than the p99 of the lateness,
    though percentiles do not add up. None of another figure, or if not known."""
    if figure == "goodput":
        if row.mode != "closed" or row.think_ms is None or row.achieved_rps is None:
            return None
        return row.achieved_rps * row.think_ms / 1000 / row.concurrency
    took_ms, raw_ms = getattr(row, f"{figure}_ms", None), getattr(row, f"raw_{figure}_ms", None)
    if not took_ms or raw_ms is None or row.late_p99_ms is None:
        return None
    return float(min(max(0.0, took_ms - raw_ms), row.late_p99_ms) / took_ms)


def _failures(every: Sequence[Sequence[Row]], cell: Cell) -> tuple[int, int, int, int]:
    """How many launches of A failed at a load, of how many, and of B."""
    usual = [usual_errors(of_load(rows, cell)) for rows in every]
    a, b = _failed(every[0], cell, usual[1]), _failed(every[1], cell, usual[0])
    return sum(a.values()), len(a), sum(b.values()), len(b)


def _failed(rows: Sequence[Row], cell: Cell, usual: float) -> dict[Launch, bool]:
    """Which launches failed at a load, where this share of errors is usual of the other side: they
    ended, answered nothing or errors only, or failed more of their requests. A launch that says
    nothing of it is left out: one without a valid trial that did not fail by itself, or that failed
    where the lab was not its own."""
    launches: dict[Launch, bool] = {}
    for row in of_load(rows, cell):
        failed = bool(server_failures(row.reasons))
        failed = failed or (row.valid and error_share(row, row.offered_rps) > usual + MOST_ERRORS)
        if (lab_differed(row.reasons) or row.others_cpu is not None) if failed else not row.valid:
            continue
        launch = row.run, row.arm, row.launch
        launches[launch] = launches.get(launch, False) or failed
    return launches


def _failed_more(failed: tuple[int, int, int, int], alpha: float) -> Place | None:
    """The place of B where chance alone lets a side fail in so many more of its launches with a
    probability of `alpha` at most (Fisher's exact test, one-sided)."""
    a, launches_a, b, launches_b = failed
    if a * launches_b == b * launches_a:
        return None
    # Slow to import, and seldom needed.
    from scipy.stats import fisher_exact

    is_b = b * launches_a > a * launches_b
    table = [[b, launches_b - b], [a, launches_a - a]]
    sure = fisher_exact(table, alternative="greater" if is_b else "less").pvalue <= alpha
    return ("worse" if is_b else "better") if sure else None


def _begun_s(metric: Measure, row: Row) -> float | None:
    """When a trial with that metric began, in seconds."""
    if row.started_at is None or measured(row, metric) is None:
        return None
    return row.started_at.timestamp()


def _share(counts: Sequence[int]) -> float:
    return counts[0] / counts[1] if counts[1] else 0.0


def side_by_side(rows_a: Sequence[Row], rows_b: Sequence[Row]) -> bool:
    """True if the sides have a run of fresh JVMs in common."""
    runs_a, runs_b = ({row.run for row in rows if row.launch} for rows in (rows_a, rows_b))
    return bool(runs_a & runs_b)


def _usually_overloaded(rows: Sequence[Row]) -> bool:
    known = [overloaded(row) for row in rows if row.valid]
    return 2 * sum(known) > len(known)


def overloaded(row: Row) -> bool:
    """True if the backlog of an open trial grew, so that its p95 depends on the window's length:
    its load was not kept (see Row), or the wait grew by more than a quarter of the p95. The edges
    of a window explain as many requests as an engine may send at once, one for each connection."""
    if row.offered_rps is None or row.achieved_rps is None or row.window_s is None:
        return bool(row.overloaded)
    offered_rps = offered(row)
    if not offered_rps:
        return bool(row.overloaded)
    ended_rps = row.achieved_rps + lost_rps(row, row.offered_rps)
    grown_s = (1 - ended_rps / offered_rps) * row.window_s
    edges_s = row.concurrency / offered_rps
    return bool(row.overloaded) or grown_s > max(GROWN * (row.p95_ms or 0.0) / 1000, edges_s)


def launches_for(values: Values, distance: float, confidence: float) -> int | None:
    """How many pairs put the interval on one side of a limit at that distance with a probability of
    POWER, if the ratio is the one that was seen and launches scatter as these did. None where the
    ratio is too near its limit for MOST_LAUNCHES, and of fewer than two pairs.

    n = ((z + z') s / d)² π/3 + z²/2: s is the spread of the logarithms of the ratios, d the
    distance from limit to ratio in logarithms. π/3 is what Wilcoxon's signed ranks need more than
    means of normal values (Hollander and Wolfe, section 3.11), and z²/2 stands for the spread,
    which is itself an estimate (W. C. Guenther, Am. Statist. 35 (1981) 243).
    """
    count = len(values.a)
    if not values.paired or count < 2 or distance <= 0:
        return None
    spread = statistics.stdev(math.log(b / a) for a, b in zip(values.a, values.b, strict=True))
    z, more = (NormalDist().inv_cdf(share) for share in ((1 + confidence) / 2, POWER))
    wanted = ((z + more) * spread / distance) ** 2 * math.pi / 3 + z**2 / 2
    # More than there were: these did not tell.
    wanted = max(math.ceil(wanted), needed(confidence), count + 1)
    return wanted if wanted <= MOST_LAUNCHES else None


def family_of(pairs: Sequence[tuple[Side, Side]]) -> Family:
    """That of `compare_all` of these."""
    return Family(sum(len(shared_cells(a, b)) for (_, a), (_, b) in pairs))


def family_of_plans(plans: Sequence[TrialPlan]) -> Family:
    """That of the comparisons of a run, before it."""
    loads = {
        (plan.route, plan.engine, plan.mode, plan.concurrency, plan.offered_rps) for plan in plans
    }
    return Family(len(loads) * len(list(_pairs(dict.fromkeys(map(lane_of, plans))))))


def lanes(rows: Sequence[Row]) -> tuple[Comparison, ...]:
    return compare_all(pairs_in(rows))


def pairs_in(rows: Sequence[Row]) -> list[tuple[Side, Side]]:
    """What is compared inside one run. Where servers are in arms, each later arm of a server is
    compared with its first; else each later server with the first."""
    by_lane: dict[str, list[Row]] = {}
    for row in rows:
        by_lane.setdefault(lane_of(row), []).append(row)
    return [((a, by_lane[a]), (b, by_lane[b])) for a, b in _pairs(by_lane)]


def _pairs(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    in_arms: dict[str, list[str]] = {}
    for name in names:
        in_arms.setdefault(name.partition("@")[0] if "@" in name else "", []).append(name)
    for together in in_arms.values():
        for later in together[1:]:
            yield together[0], later
