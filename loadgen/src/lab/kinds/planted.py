"""Bottlenecks planted one after the other: does the verdict name them?

A wrong verdict with strong evidence is the worst, because people would believe it. So the findings
count such verdicts too.

And A/A with doses: is a difference found that is there, or one that is not? A load of cases whose
resource is DOSE has arms: some as they are, some slower by a known share, their severity. The first
arm is compared with each other one, as two servers are, in groups of ROUNDS rounds.
"""

from __future__ import annotations

import copy
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct

from lab.judge.compare import compare
from lab.judge.intervals import share_interval
from lab.kinds import cases
from lab.kinds.cases import Case
from lab.kinds.kind import Kind, Outcome, ToMeasure, ends, settings_of
from lab.kinds.order import Design, Listed, Planner
from lab.kinds.reading import Asked, read_load
from lab.model import (
    AS_IT_IS,
    NONE,
    STRONG,
    UNKNOWN,
    Dosed,
    Experiment,
    Finding,
    Named,
    Record,
    Row,
    Spike,
    TrialPlan,
    goodput,
    p95_of,
)

UNIT = "share named right"
# The names of findings: of all trials, of those where a limit is to be found for certain (below
# CLEAR a trial is at the knee), by resource, and by resource and severity.
NAME, CLEARLY = "planted", "planted clearly"
BY_RESOURCE, BY_DOSE = "planted resource", "planted dose"
CLEAR = 1.1
# How long the extra connections last, in the middle of the window.
PEAK_S = 2
# A JVM that a planted bottleneck gives too little for its load surely holds so many connections.
WARM_CONNECTIONS = 80
DOSE = "dose"
ROUNDS = 6
SAME, SLOWER, UNTOLD = "within", "worse", "cannot tell"
Judged = Sequence[tuple[Case, Row]]


class Picked(Struct, frozen=True):
    """The word CASE: some of the cases."""

    case: tuple[str, ...] = ()


class Planted(Record):
    """Bottlenecks planted one after the other, to see whether the verdict names them."""

    cases: tuple[Case, ...]

    def __post_init__(self) -> None:
        names = [case.name for case in self.cases]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"cases have names, each once: {names}")


def read(asked: Asked) -> ToMeasure:
    """The cases of a file that the user picked and this machine holds. Raises WordError."""
    load, settings = read_load(asked, ("closed",), searched=True), asked.settings
    if load.draft.modes != ("closed",):
        raise settings.refuse(
            "load.modes", "is not allowed; allowed: closed, and cases with a rate"
        )
    every, notes = cases.read(asked)
    settings.one_of("case", [case.name for case in every])
    picked = settings.table("", Picked).case
    chosen = tuple(case for case in every if not picked or case.name in picked)
    # Server, route and connections are those of the cases.
    whole = load.experiment(
        "planted",
        Planted(chosen),
        servers=tuple(dict.fromkeys(case.server for case in chosen)),
        routes=tuple(dict.fromkeys(case.route for case in chosen)),
        concurrencies=tuple(dict.fromkeys(case.concurrency for case in chosen)),
        modes=tuple(dict.fromkeys(case.mode for case in chosen)),
    )
    return whole, notes


def design(planner: Planner) -> Design:
    """Every case in the order of the file, `launches` times over (once at least), on the JVMs
    that run: one is fresh only where a case takes other settings of its container. Raises
    WordError."""
    plans = []
    for name, case in of_trials(planner.experiment).items():
        plan = copy.replace(_plan(planner, case), trial=name)
        planner.engine.schedule(plan, Path())
        plans.append(plan)
    return Listed(plans)


def _plan(planner: Planner, case: Case) -> TrialPlan:
    spike = None
    if case.peak_extra:
        calm_s = max(1, (planner.experiment.duration_s - PEAK_S) // 2)
        # No recovery is measured: tolerance and steady seconds have no meaning here.
        spike = Spike(case.peak_extra, None, calm_s, PEAK_S, 1, 0.25, 1)
    return planner.plan(
        case.server,
        planner.engine,
        case.mode,
        case.concurrency,
        case.rate,
        route=case.route,
        duration_s=spike.total_s if spike else case.duration_s,
        arm=case.name,
        spike=spike,
        condition=case.condition,
    )


def of_trials(experiment: Experiment) -> dict[str, Case]:
    """Each trial's case, by its name, as 03-slow-downstream-r2."""
    every, rounds = settings_of(Planted, experiment).cases, max(1, experiment.launches)
    digits = max(2, len(str(rounds * len(every))))
    trials: dict[str, Case] = {}
    for at in range(1, rounds + 1):
        for case in every:
            suffix = f"-r{at}" if rounds > 1 else ""
            trials[f"{len(trials) + 1:0{digits}d}-{case.name}{suffix}"] = case
    return trials


def findings(outcome: Outcome) -> Iterator[Finding]:
    """How often the verdict named right what was planted: in all trials, in those of a severity
    from CLEAR on, for each resource, and for each severity of one. An invalid trial still has a
    verdict, and counts; a trial without a verdict counts as not named. Then what was said of arms
    with a dose."""
    trials = of_trials(outcome.experiment)
    judged = [(trials[row.trial], row) for row in outcome.rows if row.trial in trials]
    if not judged:
        return
    yield _named(NAME, judged)
    if clear := [(case, row) for case, row in judged if _is_clear(case)]:
        yield _named(CLEARLY, clear)
    for resource, group in _groups(judged, planted):
        yield _named(BY_RESOURCE, group, resource)
    doses = _groups(judged, lambda case: (planted(case), case.severity or 0.0, case.mode))
    for (resource, severity, mode), group in sorted(doses, key=lambda dose: dose[0]):
        yield _named(BY_DOSE, group, resource, severity or None, mode)
    of_round = len(settings_of(Planted, outcome.experiment).cases)
    rounds = {name: 1 + at // of_round for at, name in enumerate(trials)}
    arms = [
        Arm(case, {rounds[row.trial]: row for other, row in judged if other == case})
        for case in {case.name: case for case, _ in judged}.values()
        if case.resource == DOSE
    ]
    yield from dosed(arms)


def _groups[K](judged: Judged, key: Callable[[Case], K]) -> Iterator[tuple[K, Judged]]:
    for value in dict.fromkeys(key(case) for case, _ in judged):
        yield value, [(case, row) for case, row in judged if key(case) == value]


def planted(case: Case) -> str:
    """What was planted, in the words of the file, or what is expected of the verdict."""
    return case.resource or " or ".join(case.expected)


def right(case: Case, row: Row) -> bool:
    """True if the verdict of this trial names what was planted."""
    return row.bottleneck in case.expected


def wrong_and_sure(case: Case, row: Row) -> bool:
    """True if the verdict of this trial names something else with strong evidence."""
    named = row.bottleneck not in (None, UNKNOWN)
    return named and not right(case, row) and row.strength == STRONG


def _is_clear(case: Case) -> bool:
    """True if a known resource was planted at a severity that clearly limits."""
    return (case.severity or 0.0) >= CLEAR and not {*case.expected} & {NONE, UNKNOWN}


def _named(
    name: str,
    judged: Judged,
    resource: str | None = None,
    severity: float | None = None,
    mode: str | None = None,
) -> Named:
    hits = [row for case, row in judged if right(case, row)]
    low, high = ends(share_interval(len(hits), len(judged)))
    return Named(
        *(name, "", 0, len(hits) / len(judged), UNIT, low, high),
        planted=resource,
        severity=severity,
        mode=mode,
        trials=len(judged),
        right=len(hits),
        strong=sum(row.strength == STRONG for row in hits),
        missed={row.trial: row.bottleneck or "" for case, row in judged if not right(case, row)},
        sure=tuple(row.trial for case, row in judged if wrong_and_sure(case, row)),
    )


@dataclass(frozen=True, slots=True)
class Arm:
    """The trials of a case with a dose, by the round in which each was made (from 1)."""

    case: Case
    rows: Mapping[int, Row]

    @property
    def load(self) -> str:
        """The load that the case has in common with its other doses."""
        parts = [AS_IT_IS.text, f"{self.case.route} with {self.case.concurrency} connections"]
        if self.case.rate is not None:
            parts.append(f"{self.case.rate} req/s offered")
        if self.case.peak_extra:
            parts.append(f"{self.case.peak_extra} more for {PEAK_S} s")
        return ", ".join(parts)


def dosed(arms: Sequence[Arm]) -> Iterator[Dosed]:
    """A finding for each arm but the first of its load."""
    for load in dict.fromkeys(arm.load for arm in arms):
        first, *others = (arm for arm in arms if arm.load == load)
        for arm in others:
            yield _dosed(first, arm)


def _dosed(first: Arm, arm: Arm) -> Dosed:
    counts, dose = Counter(answers(first, arm)), arm.case.severity or 0.0
    if dose:
        # An arm without an answer was not called slower either.
        count, trials = counts[SLOWER], counts.total()
    else:
        trials = counts.total() - counts[UNTOLD]
        count = trials - counts[SAME]
    low, high = ends(share_interval(count, trials))
    share = count / trials if trials else None
    pairs = [(row, arm.rows[at]) for at, row in first.rows.items() if at in arm.rows]
    pairs = [(a, b) for a, b in pairs if a.valid and b.valid]
    return Dosed(
        *(DOSE, arm.case.server, 0, share, "share of answers", low, high),
        load=arm.load,
        dose=dose,
        answers=dict(sorted(counts.items())),
        goodput_ratio=_ratio([(goodput(a), goodput(b)) for a, b in pairs]),
        p95_ratio=_ratio([(p95_of(a), p95_of(b)) for a, b in pairs]),
    )


def answers(a: Arm, b: Arm) -> list[str]:
    """The answer on B in each group of rounds that both arms reached the end of. Trials of one
    round are a pair, as launches of one round are."""
    places: list[str] = []
    last = min(max(arm.rows, default=0) for arm in (a, b))
    for first in range(1, last - ROUNDS + 2, ROUNDS):
        rounds = range(first, first + ROUNDS)
        compared = compare(_rounds(a, rounds), _rounds(b, rounds), "a", "b").answers
        places.append(compared[0].place if compared else UNTOLD)
    return places


def _rounds(arm: Arm, rounds: range) -> list[Row]:
    present = [at for at in rounds if at in arm.rows]
    return [copy.replace(arm.rows[at], launch=at, arm=None) for at in present]


def _ratio(pairs: Sequence[tuple[float | None, float | None]]) -> float | None:
    """The median over rounds of B / A."""
    ratios = [b / a for a, b in pairs if a and b and math.isfinite(b / a)]
    return statistics.median(ratios) if ratios else None


KIND = Kind(
    name="planted",
    title="planted bottlenecks",
    uses=(
        *("load.duration", "load.warmup", "load.modes", "load.engines"),
        *("repeat.launches", "repeat.patience"),
    ),
    tables=cases.KEY,
    words={"CASE": "case"},
    target=False,
    read=read,
    design=design,
    findings=findings,
    changes_lab=True,
    most_to_warm=WARM_CONNECTIONS,
)
