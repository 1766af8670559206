"""Is the candidate worse than the base? Limits on candidate / base, each judged by its interval.

A limit is one end of what the ratio of a figure may be. Pure. The answer follows from the place of
the whole interval, here of a figure of which less is better:

                limit
    -------[-----]|--------      not worse: the interval is within the limit
    ---------[----|----]---      cannot tell: it reaches across
    --------------|[-----]-      worse: it is beyond

The gate is worse if one of its limits says so, and not worse if all of them do. So it errs in two
ways, each in at most 5 % of gates:

* worse, though every ratio is within its limit: only a lower end errs then. Each interval misses on
  that side half as often as on both, so of m limits each has a confidence of 1 - 2 x 5 % / m, and
  95 % at least (Bonferroni, as in `compare`, but one-sided). 6 launches answer three limits. Worse
  because more launches failed is a test beside the intervals, with 5 % of its own (`failed_more`).
* not worse, though one ratio is beyond its limit: the interval of that one must have missed, and
  nothing is to be shared out (R. L. Berger, Technometrics 24 (1982) 295: intersection-union tests).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal, get_args

from lab.judge.compare import (
    MOST_ERRORS,
    Family,
    Side,
    Values,
    fails_beyond,
    generator_factor,
    overloaded,
    percent,
    shared_cells,
    uneven_others,
    uneven_tries,
)
from lab.judge.fairness import UNEQUAL
from lab.judge.gates import FAILED_ITSELF, NOT_ITS_OWN
from lab.judge.gates.generator import allowed_ms
from lab.judge.grouping import (
    Cell,
    Measure,
    Tries,
    of_load,
    usual_errors,
    without_shorter,
)
from lab.judge.intervals import CONFIDENCE, RatioOf, needed
from lab.judge.slo import judged_ms
from lab.model import AWAY, Row, error_share

Figure = Literal["goodput", "p99", "cpu", "memory"]
FIGURES: tuple[Figure, ...] = get_args(Figure)
# Figures of which more is better: their limit is the least ratio, that of all others the greatest.
MORE_IS_BETTER: tuple[Figure, ...] = ("goodput",)
Answer = Literal["worse", "cannot tell", "not worse"]
# Where more than 1 of 100 requests fail, the slowest of 100 is one without an answer. It counts
# with as long as a server waits for a call by default, so that errors are never quicker than work.
FAILED_MS = 10_000.0
# Why it cannot be told, where more launches might tell.
ACROSS = "the interval reaches across the limit"
THINKS = (
    "the generator took more of each cycle of one side, which may decide the answer: without it "
    "the interval is"
)
# What the sides are called in a sentence.
SIDES = ("the base", "the candidate")
# How surely the launches that are asked for would tell, if the ratio is the one that was seen.
POWER = 0.9
# As many launches as LAUNCHES= takes. Where it would need more, a ratio is as good as at its limit.
MOST_LAUNCHES = 100


@dataclass(frozen=True, slots=True)
class Limit:
    """What candidate / base may be of a figure: at least `ratio` where more is better, else at
    most."""

    figure: Figure
    ratio: float

    def __post_init__(self) -> None:
        if not (0 < self.ratio <= 1 if self.is_least else 1 <= self.ratio < math.inf):
            raise ValueError(f"a limit of {self.figure} is {allowed(self.figure)}")

    @property
    def is_least(self) -> bool:
        """Whether it is the least that the ratio may be."""
        return self.figure in MORE_IS_BETTER

    @property
    def text(self) -> str:
        """For people: at most 1.05."""
        return f"at {'least' if self.is_least else 'most'} {self.ratio:g}"

    def answer(self, low: float, high: float) -> Answer:
        """Of an interval with these ends. One that ends at the limit is within it."""
        if self.is_least:
            low, high = -high, -low
        limit = -self.ratio if self.is_least else self.ratio
        if high <= limit:
            return "not worse"
        return "worse" if low > limit else "cannot tell"


@dataclass(frozen=True, slots=True)
class Asked:
    """One limit to be judged, and the values for it. `wrong` says why the values, whatever they
    are, tell nothing, and `broken` why the candidate is worse whatever they are. `untold` is an
    answer that these values cannot give, and why. Without the generator's think time the ratio is
    `unthinking` times as much: an answer that is another one then is none."""

    lane: str
    load: Cell
    limit: Limit
    values: Values
    wrong: str = ""
    note: str = ""
    broken: str = ""
    untold: tuple[Answer, str] | None = None
    unthinking: float = 1.0


@dataclass(frozen=True, slots=True)
class Check:
    """One limit, judged. `launches`: how many of each side would tell, where it cannot be told and
    that can be estimated; `fewest` says that it is only the fewest that can have an answer. `why`
    says what stands in the way, or why the candidate is worse whatever its interval is; else it is
    empty."""

    lane: str
    load: Cell
    limit: Limit
    base: float | None
    candidate: float | None
    ratio: RatioOf | None
    answer: Answer
    why: str
    launches: int | None
    note: str = ""
    fewest: bool = False


@dataclass(frozen=True, slots=True)
class Gate:
    """Every limit, judged. `confidence` is the least of each interval."""

    base: str
    candidate: str
    confidence: float
    checks: tuple[Check, ...]
    notes: tuple[str, ...]

    @property
    def answer(self) -> Answer:
        return answer_of([check.answer for check in self.checks])

    @property
    def launches(self) -> int | None:
        """How many launches of each side would tell; None where nobody can say."""
        wanted = [one.launches for one in self.checks if one.answer == "cannot tell"]
        known = [one for one in wanted if one is not None]
        return max(known) if known and len(known) == len(wanted) else None


def allowed(figure: Figure) -> str:
    """How the limit of a figure is given, in a file."""
    if figure in MORE_IS_BETTER:
        return "at_least = a number above 0 and at most 1"
    return "at_most = a number from 1 on"


def answer_of(answers: Sequence[Answer]) -> Answer:
    """Worse where one is; not worse where all are, and there is one."""
    if "worse" in answers:
        return "worse"
    return "not worse" if answers and "cannot tell" not in answers else "cannot tell"


def confidence_of(limits: int, looks: int = 1) -> float:
    """The least confidence of each interval, of so many limits that are judged together."""
    both_sides = 2 * (1 - Family(limits, looks).confidence)
    return max(CONFIDENCE, 1 - both_sides)


def of_loads(
    pairs: Sequence[tuple[Side, Side]],
    limits: Mapping[Figure, Limit],
    memory: Measure,
    looks: int = 1,
) -> list[Asked]:
    """What is to be judged of pairs of lanes, base and candidate, at every load that both have:
    goodput of a closed load, p99 of an open one; and the server's CPU time per request, and memory.
    `looks`: of how many runs a side is. All loads of all lanes share the probability that chance
    alone says that the candidate failed more often (`failed_more`)."""
    cells = [list(shared_cells(without_shorter(a), without_shorter(b))) for (_, a), (_, b) in pairs]
    alpha = (1 - CONFIDENCE) / max(1, looks * sum(map(len, cells)))
    return [
        one
        for (base, candidate), its in zip(pairs, cells, strict=True)
        for one in _of_lane(base, candidate, its, alpha, limits, memory)
    ]


def _of_lane(
    base: Side,
    candidate: Side,
    cells: Sequence[Cell],
    alpha: float,
    limits: Mapping[Figure, Limit],
    memory: Measure,
) -> list[Asked]:
    (_, every_a), (lane, every_b) = base, candidate
    rows_a, rows_b = without_shorter(every_a), without_shorter(every_b)
    asked = []
    for cell in cells:
        broken, some = failed_more(every_a, every_b, cell, alpha)
        a, b = ([row for row in rows if Cell.of(row) == cell] for rows in (rows_a, rows_b))
        figure, measure, instead = _of_requests(cell, a, b)
        note = f"goodput instead of p99: {instead}" if instead else ""
        untold = _keeps_up(a) if instead else None
        unthinking = generator_factor(a, b, "goodput_rps") or 1.0
        cost = some or broken or _cost_of_errors(a, b)
        requests = some or broken
        if instead and figure not in limits and "p99" in limits:
            # No limit that was given is left out in silence.
            figure, measure, note = "p99", p99_ms, ""
            requests = requests or f"{instead}, so it takes a limit of goodput instead of p99"
        measures: dict[Figure, Measure] = {
            figure: measure, "cpu": "cpu_server_us", "memory": memory,
        }  # fmt: skip
        its = [
            Asked(
                lane,
                cell,
                limits[name],
                Values.of(a, b, of),
                # Which launches tell a figure may follow from the figure: a launch that is quick is
                # late by a larger share. So each figure has its own.
                uneven_tries(Tries.of(every_a, cell, of), Tries.of(every_b, cell, of), SIDES)
                or uneven_others(a, b, SIDES)
                or (requests if name == figure else cost),
                note if name == figure else "",
                untold=untold if name == figure else None,
                unthinking=unthinking if name == "goodput" else 1.0,
            )
            for name, of in measures.items()
            if name in limits
        ]
        # A candidate that gives way is worse whatever its figures are, and whatever has a limit.
        asked += [replace(one, broken="" if at else broken) for at, one in enumerate(its)]
    return asked


def _keeps_up(base: Sequence[Row]) -> tuple[Answer, str] | None:
    """What goodput of an open load cannot say: that a candidate is as good as a base that answered
    what was offered. How much more it can answer, and how late, is not in it."""
    if all(overloaded(row) for row in base if row.valid):
        return None
    why = "the base answered all that was offered in a launch, so goodput cannot tell a pass"
    return "not worse", why


def _cost_of_errors(base: Sequence[Row], candidate: Sequence[Row]) -> str:
    """Why a request of the one side does not cost as one of the other; empty where it does. Errors
    may be cheap, or dear."""
    a, b = usual_errors(base), usual_errors(candidate)
    if abs(a - b) <= MOST_ERRORS:
        return ""
    return (
        f"{a:.1%} of the base's requests fail and {b:.1%} of the candidate's, and an error does "
        "not cost what an answer costs"
    )


def failed_more(
    base: Sequence[Row], candidate: Sequence[Row], cell: Cell, alpha: float
) -> tuple[str, str]:
    """How the candidate itself failed at a load in more of its launches than the base: it ended,
    answered nothing or errors only; or it failed more of the requests of a closed load, where quick
    errors cost no goodput, than are usual of the base. First if chance alone does that with a
    probability of `alpha` at most (Fisher's exact test, one-sided), which is worse; else second,
    which is no pass."""
    usual = usual_errors(of_load(base, cell))
    of_base, of_candidate = (_failed(rows, cell, usual) for rows in (base, candidate))
    found = [why for why in of_candidate.values() if why]
    bad, count, of = sum(map(bool, of_base.values())), len(of_candidate), len(of_base)
    if len(found) * of <= bad * count:
        return "", ""
    also = f"{bad} of {of}" if bad else "none"
    why = f"{found[0]}: {len(found)} of {count} launches of the candidate, {also} of the base"
    # Slow to import, and seldom needed.
    from scipy.stats import fisher_exact

    table = [[len(found), count - len(found)], [bad, of - bad]]
    sure = fisher_exact(table, alternative="greater").pvalue <= alpha
    return (why, "") if sure else ("", why)


def _failed(
    rows: Sequence[Row], cell: Cell, usual: float
) -> dict[tuple[str, str | None, int], str | None]:
    """How each launch failed at a load, where this share of errors is usual; None for one that
    did not. A launch that says nothing of it is left out: one without a valid trial that did not
    fail by itself, or that failed where the lab was not its own."""
    launches: dict[tuple[str, str | None, int], str | None] = {}
    for row in of_load(rows, cell):
        why = next((reason for reason in FAILED_ITSELF if reason in row.invalid_reasons), None)
        if row.valid and cell.mode == "closed" and fails_beyond(row, usual):
            why = f"{error_share(row, row.offered_rps):.1%} of its requests failed"
        others = any(one in row.invalid_reasons for one in (AWAY, UNEQUAL, *NOT_ITS_OWN))
        if why is None and not row.valid:
            continue
        if why is not None and (others or row.others_cpu is not None):
            continue
        launch = row.run, row.arm, row.launch
        launches[launch] = launches.get(launch) or why
    return launches


def _of_requests(
    cell: Cell, base: Sequence[Row], candidate: Sequence[Row]
) -> tuple[Figure, Measure, str]:
    """What the requests of a load are judged by, and why, where that is not the usual one."""
    if cell.mode == "closed":
        return "goodput", "goodput_rps", ""
    usual = usual_errors(base)
    if usual > MOST_ERRORS:
        return "goodput", "goodput_rps", f"{usual:.1%} of the base's requests fail"
    # A side that keeps up has a p99 that does not grow with the run. Beside it the p99 of the other
    # side tells which is better.
    if _usually_overloaded(base) and _usually_overloaded(candidate):
        why = "both sides were overloaded, and p99 then grows with the length of the run"
        return "goodput", "goodput_rps", why
    return "p99", p99_ms, ""


def _usually_overloaded(rows: Sequence[Row]) -> bool:
    known = [overloaded(row) for row in rows if row.valid]
    return 2 * sum(known) > len(known)


def p99_ms(row: Row) -> float | None:
    """The p99 of an open trial, in ms from when a request was due, with requests without an answer
    as the slowest (`slo`). Where it is one that failed, FAILED_MS at least. None where too much of
    it is the generator's own lateness."""
    took_ms = judged_ms(row, "p99")
    if error_share(row, row.offered_rps) > MOST_ERRORS or took_ms == math.inf:
        return max(row.p99_ms or 0.0, FAILED_MS)
    if took_ms is not None and (row.late_p99_ms or 0.0) > allowed_ms(took_ms):
        return None
    return took_ms


def judge(
    base: str, candidate: str, asked: Sequence[Asked], notes: Sequence[str] = (), looks: int = 1
) -> Gate:
    confidence = confidence_of(len(asked), looks)
    checks = tuple(check(one, confidence) for one in asked)
    return Gate(base, candidate, confidence, checks, tuple(notes))


def check(asked: Asked, confidence: float) -> Check:
    """One limit, by an interval of at least that confidence."""
    limit, values = asked.limit, asked.values
    base, candidate = (statistics.median(side) if side else None for side in (values.a, values.b))
    ratio: RatioOf | None = None
    launches: int | None = None
    answer: Answer = "cannot tell"
    why, fewest = asked.wrong, False
    if nothing := values.without_ratio(limit.figure, "base and of candidate"):
        why = nothing
    else:
        ratio = values.ratio(confidence)
        if not why:
            answer, why, launches = _told(limit, values, ratio, confidence)
            if launches is None and why != ACROSS and answer == "cannot tell":
                launches, fewest = needed(confidence), True
            if answer != "cannot tell" and ratio.interval:
                low, high = (
                    asked.unthinking * end for end in (ratio.interval.low, ratio.interval.high)
                )
                if limit.answer(low, high) != answer:
                    answer, why = "cannot tell", f"{THINKS} [{low:.3f}, {high:.3f}]"
    if asked.untold and answer == asked.untold[0]:
        answer, why, launches, fewest = "cannot tell", asked.untold[1], None, False
    if asked.broken:
        answer, why, launches, fewest = "worse", asked.broken, None, False
    return Check(
        asked.lane, asked.load, limit, base, candidate, ratio, answer, why, launches, asked.note,
        fewest,
    )  # fmt: skip


def _told(
    limit: Limit, values: Values, ratio: RatioOf, confidence: float
) -> tuple[Answer, str, int | None]:
    interval, least = ratio.interval, needed(confidence)
    count = min(len(values.a), len(values.b))
    if interval is None or interval.coverage < confidence:
        few = f"{count} launch{'es' if count != 1 else ''} of each side"
        why = f"{few}, and an interval of {percent(confidence)} takes {least}"
        return "cannot tell", why, launches_for(values, ratio.ratio, limit.ratio, confidence)
    answer = limit.answer(interval.low, interval.high)
    if answer != "cannot tell":
        return answer, "", None
    return answer, ACROSS, launches_for(values, ratio.ratio, limit.ratio, confidence)


def launches_for(values: Values, ratio: float, limit: float, confidence: float) -> int | None:
    """How many launches of each side put the interval on one side of the limit with a probability
    of POWER, if the ratio is the one that was seen and launches scatter as these did. None where
    the ratio is too near its limit for MOST_LAUNCHES, or too few values tell how they scatter.

    n = ((z + z') s / d)² π/3 + z²/2 for pairs: s is the spread of the logarithms of their ratios, d
    the distance from limit to ratio in logarithms. π/3 is what Wilcoxon's signed ranks need more
    than means of normal values (Hollander and Wolfe, section 3.11), and z²/2 stands for the
    spread, which is itself an estimate (W. C. Guenther, Am. Statist. 35 (1981) 243). Of sides that
    are not paired the variances add up, and it is z²/4. There the interval may be as wide as that
    of a median (`ratio_of`), which needs π/2 times as many.
    """
    a, b = ([math.log(value) for value in side] for side in (values.a, values.b))
    distance = abs(math.log(limit / ratio))
    if min(len(a), len(b)) < 2 or distance <= 0:
        return None
    if values.paired:
        variance = statistics.variance([y - x for x, y in zip(a, b, strict=True)])
    else:
        variance = statistics.variance(a) + statistics.variance(b)
    z, more = (NormalDist().inv_cdf(one) for one in ((1 + confidence) / 2, POWER))
    count = (z + more) ** 2 * variance / distance**2 * math.pi / (3 if values.paired else 2)
    count += z**2 / (2 if values.paired else 4)
    # More than there were: these did not tell.
    count = max(math.ceil(count), needed(confidence), min(len(a), len(b)) + 1)
    return count if count <= MOST_LAUNCHES else None
