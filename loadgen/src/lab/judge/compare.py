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

**What stands in the way.** A side whose requests fail more often is not better for what is left of
them: enough failed launches decide, fewer forbid an answer. Where launches were lost or measured
again on one side (UNEVEN), or the generator's own time decides, there is no answer either. Of a CPU
time what the machine did is taken out (`values.without_machine`), and the raw ratio has to be at
the same place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import replace
from dataclasses import dataclass
from functools import partial
from typing import Literal

from lab.judge.grouping import (
    Cell,
    Measure,
    Tries,
    grouped,
    lane_of,
    median_per_launch,
    usual_errors,
    without_shorter,
)
from lab.judge.intervals import CONFIDENCE, MedianOf, RatioOf, needed
from lab.judge.values import (
    MEASURES,
    MOST_ERRORS,
    Control,
    Failures,
    Values,
    generator_share,
    overloaded,
    side_by_side,
    usually_overloaded,
    without_machine,
)
from lab.model import Row, TrialPlan

MARGIN = 0.05
# The shares of launches that the sides lost or measured again may differ by this much. Two of seven
# launches on one side and none on the other are more; one is less.
UNEVEN = 0.2
# The generator may move the ratio by this much before it is asked if that decides.
GENERATOR_SHARE = 0.01

Figure = Literal["goodput", "p95", "p99", "cpu", "memory"]
MORE_IS_BETTER: tuple[Figure, ...] = ("goodput",)
COSTS: tuple[Figure, ...] = ("cpu", "memory")
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
Verdict = tuple[Place, Why, Sequence[float]]
# Why goodput is judged in place of a percentile.
Instead = Literal["", "errors", "overloaded"]
# A side: its name, and its rows, which are of one lane of a run.
Side = tuple[str, Sequence[Row]]


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
        """The fewest of each side that can have an answer."""
        return needed(self.confidence)


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
    A/A floor. `launches`: how many of each side would tell, where that is known. A side is None
    where it has no valid trial with this figure; then the ratio is None too."""

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
    """All answers on two lanes, and the cells that only one side has. `family` is of all pairs."""

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
    sides = _sides(limits)
    every = [_loads(a, b, limits) for (_, a), (_, b) in pairs]
    alpha = (1 - CONFIDENCE) / max(1, sides * sum(map(len, every)))
    family = Family(sum(len(load.questions) for loads in every for load in loads), sides)
    comparisons = []
    for ((name_a, a), (name_b, b)), loads in zip(pairs, every, strict=True):
        shared = {load.cell for load in loads}
        answers = [answer for load in loads for answer in load.answers(family, alpha, memory)]
        only_a, only_b = (
            tuple(cell for cell in cells_of(rows) if cell not in shared) for rows in (a, b)
        )
        invalid_a, invalid_b = (sum(not row.valid for row in rows) for rows in (a, b))
        comparisons.append(
            Comparison(name_a, name_b, family, tuple(answers), only_a, only_b, invalid_a, invalid_b)
        )
    return tuple(comparisons)


def cells_of(rows: Sequence[Row]) -> dict[Cell, None]:
    return dict.fromkeys(map(Cell.of, without_shorter(rows)))


def shared_cells(rows_a: Sequence[Row], rows_b: Sequence[Row]) -> list[Cell]:
    """The loads that both sides have, in A's order."""
    cells_b = cells_of(rows_b)
    return [cell for cell in cells_of(rows_a) if cell in cells_b]


def _sides(limits: Mapping[Figure, Limits]) -> int:
    return max((limit.sides for limit in limits.values()), default=2)


def _loads(a: Sequence[Row], b: Sequence[Row], limits: Mapping[Figure, Limits]) -> list[_Load]:
    if not side_by_side(a, b):
        # In turns it is part of the interval that work outside the lab took CPUs.
        a, b = (
            [row if row.others_cpu is None else replace(row, valid=False) for row in rows]
            for rows in (a, b)
        )
    windows = [grouped(rows, lambda row: Cell.of(row).any_window) for rows in (a, b)]
    return [
        _Load(cell, [rows[cell.any_window] for rows in windows], limits)
        for cell in shared_cells(a, b)
    ]


class _Load:
    """What is asked of both sides at one load. `every`: their rows of whatever window."""

    def __init__(
        self, cell: Cell, every: Sequence[Sequence[Row]], limits: Mapping[Figure, Limits]
    ) -> None:
        self.cell, self.every, self.sides = cell, every, _sides(limits)
        self.rows = [
            [row for row in without_shorter(rows) if Cell.of(row) == cell] for rows in every
        ]
        self.usual = [usual_errors(rows) for rows in self.rows]
        self.failures = Failures.from_rows(every)
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
            elif all(map(usually_overloaded, self.rows)):
                instead = "overloaded"
            # No limit that was given is left out in silence.
            if not instead or (percentile in limits and "goodput" not in limits):
                figure = percentile
        asked: tuple[Figure, ...] = (figure, *COSTS)
        for name in asked:
            if name in limits:
                yield Question(self.cell, name, limits[name], instead if name == figure else "")

    def answers(self, family: Family, alpha: float, memory: Measure) -> Iterator[Answer]:
        failed, more = self.failures, self.failures.more
        decided = more and failed.by_chance() <= alpha
        surely: Place = "worse" if more > 0 else "better"
        for at, question in enumerate(self.questions):
            answer = self._answer(question, family, memory)
            # A side that surely fails more decides once, whatever its figures are.
            if decided and at == 0 and (surely == "worse" or self.sides == 2):
                facts = tuple(failed)
                answer = replace(answer, place=surely, why="failures", facts=facts, launches=None)
            yield answer

    def _answer(self, question: Question, family: Family, memory: Measure) -> Answer:
        figure, confidence = question.figure, family.confidence
        measure = memory if figure == "memory" else MEASURES[figure]
        a, b = (median_per_launch(rows, measure) for rows in self.rows)
        tries_a, tries_b = (Tries.from_rows(without_shorter(rows), measure) for rows in self.every)
        values = judged = Values.from_rows(self.rows[0], self.rows[1], measure)
        ratio = raw = same = control = launches = None
        verdict: Verdict = "cannot tell", "no value", ()
        if values.has_ratio:
            if figure == "cpu":
                control, judged = without_machine(self.rows, values, confidence)
            raw, ratio = values.ratio(confidence), judged.ratio(confidence)
            same = judged.same(confidence)
            verdict = self._by_interval(question, ratio, family)
            by_raw = question.limits.place(raw.ratio, raw.ratio, figure)
            if verdict[0] not in ("cannot tell", by_raw):
                verdict = "cannot tell", "raw", (raw.ratio,)
            why = verdict[1]
            if why in ("few", "across"):
                distance = question.limits.distance(ratio.ratio)
                launches = judged.launches_for(distance, confidence)
                launches = launches or (needed(confidence) if why == "few" else None)
            uneven = abs(tries_a.share - tries_b.share) > UNEVEN
            way = ("left out", ()) if uneven else self._in_the_way(question, verdict[0])
            if way is not None:
                verdict, launches = ("cannot tell", *way), None
        place, why, facts = verdict
        return Answer(
            question, a, b, values.paired, ratio, raw, control, same, place, why, tuple(facts),
            launches, tries_a, tries_b,
        )  # fmt: skip

    def _by_interval(self, question: Question, ratio: RatioOf, family: Family) -> Verdict:
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

    def _in_the_way(self, question: Question, place: Place) -> tuple[Why, Sequence[float]] | None:
        """What forbids an answer at this place; None where nothing does."""
        is_cost, more = question.figure in COSTS, self.failures.more
        # No figure of the side that fails more is better, nor as good.
        b_fails = more > 0 and (is_cost or place != "worse")
        a_fails = more < 0 and self.sides == 2 and place != "better"
        if a_fails or b_fails:
            return "failures", self.failures
        if is_cost and abs(self.usual[0] - self.usual[1]) > MOST_ERRORS:
            return "errors", self.usual
        if question.instead and question.figure != "goodput":
            return "no limit", ()
        if question.instead and place == "within":
            valid = [row for rows in self.rows[: self.sides] for row in rows if row.valid]
            if not all(map(overloaded, valid)):
                return "kept up", ()
        return None


def family_of(pairs: Sequence[tuple[Side, Side]]) -> Family:
    return Family(sum(len(shared_cells(a, b)) for (_, a), (_, b) in pairs))


def family_of_plans(plans: Sequence[TrialPlan]) -> Family:
    loads = {
        (plan.route, plan.engine, plan.mode, plan.concurrency, plan.offered_rps) for plan in plans
    }
    return Family(len(loads) * len(list(_pairs(dict.fromkeys(map(lane_of, plans))))))


def lanes(rows: Sequence[Row]) -> tuple[Comparison, ...]:
    return compare_all(pairs_in(rows))


def pairs_in(rows: Sequence[Row]) -> list[tuple[Side, Side]]:
    """What is compared inside one run. Where servers are in arms, each later arm of a server is
    compared with its first; else each later server with the first."""
    sides = grouped(rows, lane_of)
    return [((a, sides[a]), (b, sides[b])) for a, b in _pairs(sides)]


def _pairs(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    in_arms: dict[str, list[str]] = {}
    for name in names:
        in_arms.setdefault(name.partition("@")[0] if "@" in name else "", []).append(name)
    for together in in_arms.values():
        for later in together[1:]:
            yield together[0], later
