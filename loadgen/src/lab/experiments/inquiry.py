"""What the trials of one server say of a verdict, and the trial that is wanted next. Pure.

1  a trial under the condition C             its verdict names a resource R
2  pairs of trials A (C) and B (C, R changed by a step)      A B  B A  A B  …
3  B / A of the goodput, with its interval   confirmed, withdrawn or inconclusive
4  confirmed: C becomes C with R lifted, and again from 1
"""

from __future__ import annotations

import statistics
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from lab.experiments.interventions import MACHINE, Lever, Present, lever
from lab.judge.compare import MARGIN, metrics
from lab.judge.gates import NO_SUCCESS
from lab.judge.grouping import Cell
from lab.judge.intervals import LEAST_VALUES, RatioOf, ratio_of
from lab.judge.predict import response_time_ms
from lab.model import AS_IT_IS, NONE, RESOURCES, UNKNOWN, Condition, Row, goodput, strength_text
from lab.model.routes import parse

# An invalid trial says nothing of the server: it is run once more.
TRIES = 2
Answer = Literal["confirmed", "withdrawn", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Explain:
    """`pairs` of trials for each resource that is tried, at most `steps` resources per server.
    `suspect`: the resource to try first instead of the verdict's own."""

    pairs: int
    steps: int
    suspect: str | None = None

    def __post_init__(self) -> None:
        if self.pairs < 1 or self.steps < 1:
            raise ValueError("pairs and steps start at 1")
        if self.suspect is not None and self.suspect not in RESOURCES:
            raise ValueError(f"{self.suspect} is not a resource")


@dataclass(frozen=True, slots=True)
class Ask:
    """A trial that is wanted. `arm` is its part: 1-named, 1-before, 1-after, 2-named …"""

    condition: Condition
    arm: str


@dataclass(frozen=True, slots=True)
class Step:
    """One resource that was tried. `before` and `after` are the valid trials without and with the
    change. `goodput` and `p95` are the ratios after / before, None where there is no ratio. `least`
    says that the ratio is a lower bound, because the goodput before was 0. `why` is the reason for
    the answer."""

    resource: str
    suspected: bool
    strength: str | None
    lever: Lever
    before: tuple[Row, ...]
    after: tuple[Row, ...]
    goodput: RatioOf | None
    p95: RatioOf | None
    least: bool
    answer: Answer
    why: str


@dataclass(frozen=True, slots=True)
class NotTried:
    """A suspect that cannot be changed."""

    resource: str
    why: str


@dataclass(slots=True)
class Story:
    """What the rows of one server say.

    `wanted` is the next trial (None: the inquiry is over). `steps` are what was decided of each
    resource, and `end` is the last sentence. `strayed` names the first row that is not the trial
    that was wanted, and the one that was; nothing after it counts."""

    wanted: Ask | None = None
    steps: list[Step | NotTried] = field(default_factory=list)
    end: str = ""
    strayed: str = ""


def story(
    explain: Explain,
    present: Present,
    rows: Sequence[Row],
    conditions: Mapping[str, Condition] | None = None,
) -> Story:
    """Where the inquiry stands after these rows of one server, in the order of time.

    `present` is the server as it was before the first trial. `conditions` are the conditions that
    were in force, by trial, as far as they are known: another version of the lab may give another
    verdict and ask for another change than the one that was made."""
    told = Story()
    asking = _inquiry(explain, present, told)
    told.wanted = next(asking)
    for row in rows:
        told.strayed = _strayed(row, told.wanted, conditions or {})
        if told.strayed or told.wanted is None:
            break
        try:
            told.wanted = asking.send(row)
        except StopIteration:
            told.wanted = None
    return told


def most_left(explain: Explain, of: Story, rows: Sequence[Row]) -> int:
    """The most trials that an inquiry can have left after these rows of its server."""
    if of.wanted is None:
        return 0
    number, _, part = of.wanted.arm.partition("-")
    later, pairs = explain.steps - int(number), 2 * explain.pairs
    # After the last step one trial tells what is next.
    if later < 0:
        return 1
    arms = (f"{number}-before", f"{number}-after")
    made = sum(row.arm in arms and usable(row) for row in rows)
    return (part == "named") + pairs - made + later * (1 + pairs) + 1


def _strayed(row: Row, wanted: Ask | None, conditions: Mapping[str, Condition]) -> str:
    """Why a row is not the trial that was wanted; empty where it is that trial."""
    if wanted is None:
        return f"{row.trial} is not of this inquiry: it had ended"
    if row.arm != wanted.arm:
        return f"{row.trial} is not of this inquiry: {wanted.arm} was next"
    was = conditions.get(row.trial, wanted.condition)
    if was != wanted.condition:
        return (
            f"{row.trial} is not of this inquiry: it had {_in_force(was)}, {wanted.arm} was next "
            f"with {_in_force(wanted.condition)}"
        )
    return ""


def _inquiry(explain: Explain, now: Present, told: Story) -> Generator[Ask, Row]:
    """Asks for one trial after the other, and writes their answers into `told`."""
    suspect, named, number = explain.suspect, None, 1
    while True:
        if named is None:
            named = yield from _valid(Ask(now.condition, f"{number}-named"))
            told.end = _machine_or_invalid(named)
            if told.end:
                return
        resource = suspect or named.bottleneck or UNKNOWN
        if number > explain.steps:
            told.end = f"{_named(named, now)}; not tried, {explain.steps} steps were asked for"
            return
        if suspect is None:
            told.end = _end(named, now, resource)
            if told.end:
                return
        change = lever(resource, now)
        if isinstance(change, str):
            if suspect is None:
                told.end = f"{_named(named, now)}; not proven: {change}"
                return
            told.steps.append(NotTried(resource, change))
        else:
            strength = named.strength if resource == named.bottleneck else None
            step = yield from _tried(
                explain, number, resource, suspect is not None, strength, change, now
            )
            told.steps.append(step)
            if step.answer == "confirmed":
                now, suspect, named = replace(now, condition=change.lift), None, None
            elif suspect is None or suspect == named.bottleneck:
                told.end = f"unknown: {resource} was named, and is {step.answer}: {step.why}"
                return
        # The suspect was not the limit: the verdict of the same trial is next.
        suspect = None
        number += 1


def _valid(ask: Ask) -> Generator[Ask, Row, Row]:
    """A valid trial, or the last of TRIES invalid ones."""
    for _ in range(TRIES - 1):
        row = yield ask
        if usable(row):
            return row
    return (yield ask)


def usable(row: Row) -> bool:
    """Whether the goodput of a trial is known. Where every answer was an error it is 0."""
    return row.valid or row.invalid_reasons == NO_SUCCESS


def _machine_or_invalid(named: Row) -> str:
    """Why nothing follows from an invalid trial; empty for a valid trial. A machine that is too
    small makes trials invalid; the verdict then names the machine."""
    if usable(named):
        return ""
    if named.bottleneck in MACHINE:
        return f"{named.bottleneck}: the machine itself is the limit ({named.invalid_reasons})"
    return f"unknown: {TRIES} measurements were invalid: {named.invalid_reasons}"


def _end(named: Row, now: Present, resource: str) -> str:
    """Why there is nothing to change; empty where there may be."""
    if resource == NONE:
        of = "" if named.predicted_rps is None else f" of at most {named.predicted_rps:.0f}"
        return (
            f"none, with {_in_force(now.condition)}: the load itself is the limit "
            f"({goodput(named) or 0:.0f}{of} req/s), no resource binds below it"
        )
    if resource == UNKNOWN:
        return f"unknown, with {_in_force(now.condition)}: the evidence names no resource"
    if resource in MACHINE:
        return f"{_named(named, now)}: the machine itself is the limit"
    return ""


def _named(named: Row, now: Present) -> str:
    sure = "" if named.strength is None else f" ({strength_text(named.strength)})"
    return f"{named.bottleneck or UNKNOWN}{sure}, with {_in_force(now.condition)}"


def _in_force(condition: Condition) -> str:
    return "the lab as it is" if condition == AS_IT_IS else condition.text


def _tried(
    explain: Explain,
    number: int,
    resource: str,
    suspected: bool,
    strength: str | None,
    change: Lever,
    now: Present,
) -> Generator[Ask, Row, Step]:
    """Makes the pairs of one step, A B B A A B …, and decides on its resource."""
    sides = (Ask(now.condition, f"{number}-before"), Ask(change.step, f"{number}-after"))
    rows: dict[str, list[Row]] = {side.arm: [] for side in sides}
    problem = ""
    turns = (*sides, *sides[::-1]) * explain.pairs
    for ask in turns[: 2 * explain.pairs]:
        row = yield from _valid(ask)
        if not usable(row):
            with_or_without = "without" if ask == sides[0] else "with"
            problem = f"{TRIES} measurements {with_or_without} the change were invalid: "
            problem += row.invalid_reasons
            break
        rows[ask.arm].append(row)
    before, after = (tuple(rows[side.arm]) for side in sides)
    ratio, least = (None, False) if problem else _goodput_ratio(before, after)
    answer: Answer = "inconclusive"
    why = problem or "goodput cannot be told"
    if ratio is not None:
        answer, why = answer_of(ratio)
        room = _room(now, resource, before)
        if answer == "withdrawn" and room is not None and room <= 1 + MARGIN:
            answer = "inconclusive"
            why = f"this load leaves room for ×{room:.2f} only: ask with more connections"
    return Step(
        resource=resource,
        suspected=suspected,
        strength=strength,
        lever=change,
        before=before,
        after=after,
        goodput=ratio,
        p95=None if problem else _p95_ratio(before, after),
        least=least,
        answer=answer,
        why=why,
    )


def _room(now: Present, resource: str, before: Sequence[Row]) -> float | None:
    """The most that the load allows, as a multiple of the goodput before the change: the offered
    rate, or N / R0. None where it is unknown, and where the change is a change of R0."""
    known = [value for value in map(goodput, before) if value]
    if not known or resource in ("downstream", "downstream timeout", "Toxiproxy"):
        return None
    r0_s = response_time_ms(parse(now.route), now.snapshot) / 1000
    offered = before[0].offered_rps
    if offered is None and r0_s <= 0:
        return None
    return (offered or now.concurrency / r0_s) / statistics.median(known)


def answer_of(ratio: RatioOf) -> tuple[Answer, str]:
    """The answer that the ratio after / before of the goodput gives of a resource, and why."""
    interval = ratio.interval
    if interval is None:
        return "inconclusive", (
            f"no interval: {ratio.count_a} and {ratio.count_b} trials, each side needs "
            f"{LEAST_VALUES}"
        )
    if interval.low > 1 + MARGIN:
        return "confirmed", f"the whole interval is above {1 + MARGIN:g}"
    if interval.high <= 1 + MARGIN:
        return "withdrawn", f"the whole interval is at most {1 + MARGIN:g}: more of it is no help"
    return "inconclusive", f"the interval reaches from {interval.low:.2f} to above {1 + MARGIN:g}"


def _goodput_ratio(before: Sequence[Row], after: Sequence[Row]) -> tuple[RatioOf | None, bool]:
    """The ratio after / before, and whether it is only a lower bound. A goodput of 0 has no ratio.
    We then use one answer in the window, the least that could have been seen."""
    without, changed = _goodputs(before), _goodputs(after)
    if not without or not changed:
        return None, False
    seen = [max(value, least) for value, least in without]
    then = [max(value, least) for value, least in changed]
    return ratio_of(seen, then), any(value <= 0 for value, _ in without)


def _goodputs(rows: Sequence[Row]) -> list[tuple[float, float]]:
    """(goodput, one answer in the window) of each row; empty where one of them is unknown."""
    found = []
    for row in rows:
        value = goodput(row)
        if value is None or not row.window_s:
            return []
        found.append((value, 1 / row.window_s))
    return found


def _p95_ratio(before: Sequence[Row], after: Sequence[Row]) -> RatioOf | None:
    def known(rows: Sequence[Row]) -> list[float]:
        values: list[float | None] = [getattr(row, metrics(Cell.of(row))[1]) for row in rows]
        return [value for value in values if value]

    without, changed = known(before), known(after)
    if not without or (len(without), len(changed)) != (len(before), len(after)):
        return None
    return ratio_of(without, changed)
