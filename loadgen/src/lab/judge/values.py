"""The values of two sides, one per launch: their ratio, that of a side to itself, and what the
machine, the generator and failures have to do with it.

**The machine.** The server's CPU time per request follows the speed of the host, and so does that
of the control parts, which both sides share: generator, Toxiproxy, downstream. It is a covariate
(W. G. Cochran, Biometrics 13 (1957) 261): a pair's ratio is divided by that of the control parts to
the power of CONTROL. The coefficient is a constant, so the interval stays exact whatever the true
one is: a wrong constant makes it wider. It is used only while the sides do not differ in the
control parts by more than their A/A floor, as a candidate may itself make them dearer.

**The A/A floor.** How far does a side differ from itself? In a gate's order (A B, B A, A B, …) the
second launch of a round is followed by the first one of the next, which is of the same side. These
neighbours are as near in time as the sides of a round, and cost no launch: n rounds have n - 1 such
pairs, every other one of A. Those of A are turned round, so that a steady drift cancels out, as it
does between the sides. The order is that of `started_at`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from copy import replace
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from operator import attrgetter
from statistics import NormalDist
from typing import Literal, NamedTuple

from lab.judge.checks import lab_differed, server_failures
from lab.judge.grouping import (
    Launch,
    Measure,
    launch_of,
    per_launch,
    per_round,
    usual_errors,
)
from lab.judge.intervals import (
    CONFIDENCE,
    RatioOf,
    most_coverage,
    needed,
    ratio_of,
    ratio_of_pairs,
)
from lab.judge.ruler import control_us
from lab.judge.slo import SHARES, judged_ms
from lab.model import Row, error_share, goodput, lost_rps, offered

# The power of the control parts' ratio by which the server's follows the machine. Fitted through
# the origin to the 30 A/A pairs of docs/results/gate-launches.csv: 0.86, with a standard error of
# 0.08. Of neighbours of one side it is 0.88 there, and 0.92 in gate-planted.csv.
CONTROL = 0.86
# More requests than this share that fail make a side's other requests another work.
MOST_ERRORS = 0.01
# A backlog that grew by more than this share of the p95 makes the p95 one of the window's length.
GROWN = 0.25
# A percentile that falls among failed requests counts with as long as a server waits for a call by
# default, so that errors are never quicker than work.
FAILED_MS = 10_000.0
# How surely the launches that are asked for would tell, if the ratio is the one that was seen.
POWER = 0.9
# As many launches as LAUNCHES= takes. Where it would need more, a ratio is as good as at its limit.
MOST_LAUNCHES = 100
# Fewer pairs have no A/A floor: their widest interval holds the ratio in less than 93 % of cases.
LEAST_SAME = 5
ControlUse = Literal["used", "differs", "no floor"]


@dataclass(frozen=True, slots=True)
class Values:
    """One figure of both sides, a value per launch. `paired`: the sides share rounds, and a[i] and
    b[i] are of rounds[i], measured at times[i] (of A and of B, in seconds; empty if unknown)."""

    a: Sequence[float]
    b: Sequence[float]
    paired: bool
    rounds: Sequence[tuple[str, int]] = ()
    times: Sequence[tuple[float, float]] = ()

    @classmethod
    def from_rows(cls, rows_a: Sequence[Row], rows_b: Sequence[Row], measure: Measure) -> Values:
        if not side_by_side(rows_a, rows_b):
            return cls(per_launch(rows_a, measure), per_launch(rows_b, measure), paired=False)
        a, b = per_round(rows_a, measure), per_round(rows_b, measure)
        rounds = sorted({*a} & {*b})
        begun_a, begun_b = (
            per_round(rows, partial(_begun_s, measure)) for rows in (rows_a, rows_b)
        )
        timed = all(launch in begun_a and launch in begun_b for launch in rounds)
        return cls(
            [a[launch] for launch in rounds],
            [b[launch] for launch in rounds],
            paired=True,
            rounds=rounds,
            times=[(begun_a[launch], begun_b[launch]) for launch in rounds] if timed else (),
        )

    @property
    def has_ratio(self) -> bool:
        return bool(self.a and self.b) and min(*self.a, *self.b) > 0

    def ratio(self, confidence: float) -> RatioOf:
        """B / A, with the interval of that confidence, or of the most that so few launches can
        have. Raises ValueError where there is no ratio."""
        most = max(most_coverage(min(len(self.a), len(self.b))), CONFIDENCE)
        return (ratio_of_pairs if self.paired else ratio_of)(self.a, self.b, min(confidence, most))

    def same(self, confidence: float) -> RatioOf | None:
        """A/A, at that confidence or the most that these pairs can have. None for fewer than
        LEAST_SAME pairs."""
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

    def launches_for(self, distance: float, confidence: float) -> int | None:
        """How many pairs put the interval on one side of a limit with a probability of POWER, if
        the ratio and the scatter of launches are as measured. None for more than MOST_LAUNCHES, and
        of fewer than two pairs.

        n = ((z + z') s / d)² π/3 + z²/2: s is the spread of the logarithms of the ratios, d the
        distance from limit to ratio in logarithms. π/3 is what Wilcoxon's signed ranks need more
        than means of normal values (Hollander and Wolfe, section 3.11), and z²/2 stands for the
        spread, which is itself an estimate (W. C. Guenther, Am. Statist. 35 (1981) 243)."""
        count = len(self.a)
        if not self.paired or count < 2 or distance <= 0:
            return None
        spread = statistics.stdev(math.log(b / a) for a, b in zip(self.a, self.b, strict=True))
        z, more = (NormalDist().inv_cdf(share) for share in ((1 + confidence) / 2, POWER))
        wanted = ((z + more) * spread / distance) ** 2 * math.pi / 3 + z**2 / 2
        # More than there were: these gave no answer.
        wanted = max(math.ceil(wanted), needed(confidence), count + 1)
        return wanted if wanted <= MOST_LAUNCHES else None


@dataclass(frozen=True, slots=True)
class Control:
    """The control parts' CPU time per request: B / A, A/A, and whether it is a covariate."""

    ratio: RatioOf
    same: RatioOf | None
    use: ControlUse


def without_machine(
    rows: Sequence[Sequence[Row]], values: Values, confidence: float
) -> tuple[Control | None, Values]:
    """The control parts, if known of every pair, and the values corrected by them where they are a
    covariate."""
    parts = Values.from_rows(rows[0], rows[1], control_us)
    if not values.paired or parts.rounds != values.rounds or not parts.has_ratio:
        return None, values
    ratio, same = parts.ratio(confidence), parts.same(confidence)
    if same is None or same.interval is None:
        return Control(ratio, same, "no floor"), values
    floor = max(same.interval.high, 1 / same.interval.low)
    if not 1 / floor <= ratio.ratio <= floor:
        return Control(ratio, same, "differs"), values
    a, b = (
        [value / part**CONTROL for value, part in zip(*side, strict=True)]
        for side in ((values.a, parts.a), (values.b, parts.b))
    )
    return Control(ratio, same, "used"), replace(values, a=a, b=b)


def side_by_side(rows_a: Sequence[Row], rows_b: Sequence[Row]) -> bool:
    """True if the sides have a run of fresh JVMs in common."""
    runs_a, runs_b = ({row.run for row in rows if row.launch} for rows in (rows_a, rows_b))
    return bool(runs_a & runs_b)


def _begun_s(measure: Measure, row: Row) -> float | None:
    if row.started_at is None or measure(row) is None:
        return None
    return row.started_at.timestamp()


def latency_ms(name: str, row: Row) -> float | None:
    """A percentile of an open trial, in ms from when a request was due; requests without an answer
    are the slowest (`slo`). At least FAILED_MS where it falls among failed requests."""
    took_ms = judged_ms(row, name)
    if error_share(row, row.offered_rps) > 1 - SHARES[name] or took_ms == math.inf:
        return max(getattr(row, f"{name}_ms") or 0.0, FAILED_MS)
    return took_ms


MEASURES: Mapping[str, Measure] = {
    "goodput": goodput,
    "p95": partial(latency_ms, "p95"),
    "p99": partial(latency_ms, "p99"),
    "cpu": attrgetter("cpu_server_us"),
}


def generator_share(figure: str, row: Row) -> float | None:
    """The generator's share of a figure; None if unknown, and of CPU time and memory. Of goodput of
    a closed load it is that of a cycle, X · Z / N (Little) with think time Z, without which goodput
    were X / (1 - s). Of a percentile it is what that is above the one from sending, and no more
    than the p99 of the lateness, though percentiles do not add up."""
    if figure == "goodput":
        if row.mode != "closed" or row.think_ms is None or row.achieved_rps is None:
            return None
        return row.achieved_rps * row.think_ms / 1000 / row.concurrency
    took_ms, raw_ms = getattr(row, f"{figure}_ms", None), getattr(row, f"raw_{figure}_ms", None)
    if not took_ms or raw_ms is None or row.late_p99_ms is None:
        return None
    return float(min(max(0.0, took_ms - raw_ms), row.late_p99_ms) / took_ms)


def overloaded(row: Row) -> bool:
    """True if the backlog of an open trial grew, so that its p95 depends on the window's length:
    it is overloaded (see Row), or the wait grew by more than GROWN of the p95. The edges of a
    window explain as many requests as there are connections."""
    offered_rps = offered(row)
    if row.overloaded or not offered_rps or row.achieved_rps is None or row.window_s is None:
        return bool(row.overloaded)
    ended_rps = row.achieved_rps + lost_rps(row, row.offered_rps)
    grown_s = (1 - ended_rps / offered_rps) * row.window_s
    edges_s = row.concurrency / offered_rps
    return grown_s > max(GROWN * (row.p95_ms or 0.0) / 1000, edges_s)


def usually_overloaded(rows: Sequence[Row]) -> bool:
    valid = [overloaded(row) for row in rows if row.valid]
    return 2 * sum(valid) > len(valid)


class Failures(NamedTuple):
    """How many launches of A and of B failed, of how many."""

    a: int
    of_a: int
    b: int
    of_b: int

    @classmethod
    def from_rows(cls, sides: Sequence[Sequence[Row]]) -> Failures:
        """`sides` are all rows of A and of B at a load. A launch failed that fails clearly more of
        its requests than is usual of the other side."""
        usual_a, usual_b = map(usual_errors, sides)
        a, b = _failed(sides[0], usual_b), _failed(sides[1], usual_a)
        return cls(sum(a), len(a), sum(b), len(b))

    @property
    def more(self) -> float:
        """By how much the share of B is greater."""
        return (self.b / self.of_b if self.of_b else 0.0) - (
            self.a / self.of_a if self.of_a else 0.0
        )

    def by_chance(self) -> float:
        """The probability that chance alone lets a side fail in so many more of its launches
        (Fisher's exact test, one-sided)."""
        # Slow to import, and seldom needed.
        from scipy.stats import fisher_exact

        table = [[self.b, self.of_b - self.b], [self.a, self.of_a - self.a]]
        return float(fisher_exact(table, alternative="greater" if self.more > 0 else "less").pvalue)


def _failed(rows: Sequence[Row], usual: float) -> list[bool]:
    """For each launch, whether it failed: it ended, answered nothing or errors only, or failed more
    of its requests than the share that is `usual` of the other side. Left out are launches without
    a valid trial that did not fail, and those that failed while the lab was not as planned."""
    launches: dict[Launch, bool] = {}
    for row in rows:
        failed = bool(server_failures(row.reasons))
        failed = failed or (row.valid and error_share(row, row.offered_rps) > usual + MOST_ERRORS)
        if (lab_differed(row.reasons) or row.others_cpu is not None) if failed else not row.valid:
            continue
        launches[launch_of(row)] = launches.get(launch_of(row), False) or failed
    return list(launches.values())
