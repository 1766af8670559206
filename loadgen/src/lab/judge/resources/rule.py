"""The one rule: the excess over R0 belongs to what was waited for, and the largest part is named.

1. Errors above the objective: the cause of most of them.
2. An excess that the trial cannot resolve, the offered load answered, p99 as expected: none.
3. Else the resource that covers most of the excess: strong where it covers half and more by
   measured waiting, weak where less, or estimated; unknown where most is unexplained.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from copy import replace
from dataclasses import dataclass

from lab.judge.metrics import CPUS_OF_EACH, HOST_CPU, without_none
from lab.judge.resources.excess import answered, excess_of, tail_as_expected
from lab.judge.resources.generator import generator
from lab.judge.resources.missing import missing
from lab.judge.resources.resource import Resource
from lab.judge.trial import Trial
from lab.model import (
    NONE,
    STRONG,
    UNEXPLAINED,
    UNKNOWN,
    WEAK,
    Balance,
    Basis,
    CpuSplit,
    Excess,
    Held,
    Standing,
    Strength,
    Verdict,
    Wait,
)

# The share of the requests that may fail: the objective that a run has by default.
OBJECTIVE = 0.01
# A pool that has this share more places than another is larger.
LARGER = 0.05
# So much of the errors, or of the excess, is most of it.
MOST = 0.5
# The whole host uses no less than the lab: a count of it that is this share less lacks samples.
SHORT = 0.02


@dataclass(frozen=True, slots=True)
class Claim:
    """`ms` of the mean time at a place, waited for `resource`."""

    place: str
    resource: str
    ms: float
    measured: bool


def verdict(trial: Trial, resources: Iterable[Resource]) -> Verdict:
    standings = without_none(*(resource.standing(trial) for resource in resources))
    excess = excess_of(trial)
    if excess is not None:
        standings = apportioned(excess, standings)
    name, strength, basis = _named(trial, excess, standings)
    gaps = tuple(missing(trial, name))
    invalid = not trial.judgement.valid and name != generator.name
    if name != UNKNOWN and (invalid or any(gap.doubts for gap in gaps)):
        strength = WEAK
    ranked = tuple(sorted(standings, key=lambda standing: (-standing.share, -standing.failed)))
    return Verdict(name, strength, basis, excess, ranked, gaps, _balance(trial))


def _named(
    trial: Trial, excess: Excess | None, standings: Sequence[Standing]
) -> tuple[str, Strength, Basis]:
    """What is named, and how surely by itself."""
    errors = trial.error_share
    # Who fails for want of something that is full cannot call what comes behind it.
    failing = max(standings, key=lambda standing: (standing.failed, standing.full), default=None)
    failed = failing.failed if failing else 0.0
    # A peak's own connections are not measured, nor are requests without an answer.
    unmeasured = failed > OBJECTIVE and (trial.plan.spike is not None or excess is None)
    if failing and ((failed and errors > OBJECTIVE) or unmeasured):
        most = errors > OBJECTIVE and failed >= MOST * errors
        return failing.resource, STRONG if most else WEAK, "errors"
    if excess is None:
        return UNKNOWN, "", "errors" if errors > OBJECTIVE else "unanswered"
    basis: Basis = "errors"
    if errors <= OBJECTIVE:
        if nothing := _nothing(trial, excess):
            return nothing
        basis = "tail" if excess.ms <= excess.resolved_ms else "excess"
    largest = max(standings, key=lambda standing: standing.share, default=None)
    if largest is None or largest.share <= 1 - sum(standing.share for standing in standings):
        return UNKNOWN, "", basis
    measured = largest.measured >= MOST
    if basis == "errors" and not measured:
        return UNKNOWN, "", basis
    # What errors, or a tail beyond a mean that is as expected, wait for is known by the mean only.
    return largest.resource, STRONG if measured and basis == "excess" else WEAK, basis


def _nothing(trial: Trial, excess: Excess) -> tuple[str, Strength, Basis] | None:
    """The verdict where no excess is to be explained; None where one is."""
    had_all = answered(trial)
    if had_all and excess.r0_ms is None and trial.is_open:
        return NONE, WEAK, "none"
    if excess.ms > excess.resolved_ms:
        return None
    if trial.plan.spike:
        return UNKNOWN, "", "spike"
    if not had_all:
        return UNKNOWN, "", "unanswered"
    return (NONE, STRONG, "none") if tail_as_expected(trial, excess) else None


def apportioned(excess: Excess, standings: Sequence[Standing]) -> tuple[Standing, ...]:
    """The standings with their shares of the excess."""
    claims = [claim for place in excess.places for claim in _at(place, excess, standings)]
    # The inner one first: what lasts longer while a connection is held also holds its worker.
    for standing in sorted(standings, key=_depth):
        holder = _behind(standing, standings)
        claims = [part for claim in claims for part in _passed_on(claim, holder, claims)]
    for standing in standings:
        for taken in standing.takes:
            claims = [part for claim in claims for part in _taken(claim, taken, standing.resource)]
    whole = sum(excess.places.values()) or 1.0
    every: dict[str, float] = defaultdict(float)
    measured: dict[str, float] = defaultdict(float)
    for claim in claims:
        every[claim.resource] += claim.ms / whole
        measured[claim.resource] += claim.ms / whole if claim.measured else 0.0
    return tuple(
        replace(standing, share=every[standing.resource], measured=measured[standing.resource])
        for standing in standings
    )


def _depth(standing: Standing) -> int:
    return len(standing.held.inside) if standing.held else 0


def _behind(holder: Standing, standings: Sequence[Standing]) -> Standing:
    """The holder; where a pool with fewer places is full that each of its requests needs, too, all
    that waits for the holder waits for that: more of the holder would be no help."""
    if holder.held is None or holder.capacity is None:
        return holder
    for inner in standings:
        places = tuple(wait.place for wait in inner.waits)
        is_pool = inner.held is not None and inner.capacity and places
        if not is_pool or not {*places} <= {*holder.held.inside}:
            continue
        if (1 + LARGER) * (inner.capacity or 0.0) <= holder.capacity:
            return replace(holder, held=Held(0.0, 0.0, places))
    return holder


def _at(place: str, excess: Excess, standings: Sequence[Standing]) -> list[Claim]:
    """The claims at a place: times before parts of what these leave, measured before inferred. A
    time at a place that is not measured apart is one of the unexplained time."""
    waits = [
        (standing.resource, wait)
        for standing in standings
        for wait in standing.waits
        if wait.place == place
        or (wait.ms is not None and place == UNEXPLAINED and wait.place not in excess.places)
    ]
    left = rest = excess.places[place]
    claims = []
    for timed, sure in ((True, True), (True, False), (False, True), (False, False)):
        group = [
            (resource, wait, rest * wait.part if wait.ms is None else wait.ms)
            for resource, wait in waits
            if (wait.ms is not None, wait.measured) == (timed, sure)
        ]
        wanted = sum(ms for *_, ms in group)
        got = min(left, wanted)
        claims += [Claim(at.place, name, got * ms / wanted, sure) for name, at, ms in group if ms]
        left -= got
        rest = left if timed else rest
    return [*claims, Claim(place, UNEXPLAINED, left, False)]


def _passed_on(claim: Claim, holder: Standing, claims: Sequence[Claim]) -> list[Claim]:
    """What waits for a place that is held longer than need be waits for what lasts longer
    meanwhile."""
    if holder.held is None or claim.resource != holder.resource:
        return [claim]
    inside = [other for other in claims if other.place in holder.held.inside]
    longer_ms = max(holder.held.longer_ms, sum(other.ms for other in inside))
    passed = claim.ms * (1 - holder.held.share)
    parts = [
        replace(
            other,
            place=claim.place,
            ms=passed * other.ms / longer_ms,
            measured=other.measured and claim.measured,
        )
        for other in inside
        if longer_ms
    ]
    left = passed - sum(part.ms for part in parts)
    unexplained = Claim(claim.place, UNEXPLAINED, left, False)
    return [replace(claim, ms=claim.ms - passed), *parts, unexplained]


def _taken(claim: Claim, taken: Wait, taker: str) -> list[Claim]:
    if claim.resource != taken.place or not taken.part:
        return [claim]
    measured, ms = claim.measured and taken.measured, claim.ms * taken.part
    return [replace(claim, ms=claim.ms - ms), Claim(claim.place, taker, ms, measured)]


def _balance(trial: Trial) -> Balance:
    """Whether the figures that a verdict rests on agree: the parts' CPU time with the busy time of
    the CPUs, and the connections of a closed load with X · (R + Z)."""
    reading, columns = trial.reading, CpuSplit.columns()
    parts = without_none(*(getattr(trial.cpu, name) for name in columns))
    busy_cpus = (trial.usage.host_busy or 0.0) * (trial.cpus or 0.0)
    # Of several machines the driver reads its own.
    alone = len(trial.metrics().values_of("machine", CPUS_OF_EACH)) < 2
    every = trial.observation.rate(HOST_CPU) if alone else None
    cpu = others = in_flight = None
    if busy_cpus and every is not None and len(parts) == len(columns):
        lab = sum(parts) * reading.achieved_rps / 1e6
        if every >= (1 - SHORT) * lab:
            others = max(0.0, every - lab) / busy_cpus
            cpu = lab / busy_cpus + others
    if not trial.is_open and reading.answer_ms is not None:
        cycle_s = (reading.answer_ms + trial.think_ms) / 1000
        in_flight = reading.achieved_rps * cycle_s / trial.plan.concurrency
    return Balance(cpu, in_flight, others)
