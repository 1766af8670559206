"""What the trials of one server say of a verdict, and the trial that is wanted next. Pure.

1  a trial under the condition C             its verdict names a resource R
2  pairs of trials A (C) and B (C, R changed by a step)      A B  B A  A B  …
3  B / A of the goodput, pair by pair, with its interval     confirmed, withdrawn or inconclusive
4  confirmed: C becomes C with R lifted, and again from 1

Resources that are full alike change together in one step: those that bind right behind R by the
prediction, and then the one that the trials with R changed name.
"""

import statistics
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lab.experiments.proving.answers import (
    Answer,
    answer_of,
    answer_of_fall,
    answer_of_time,
    crowded,
    fall_of,
    goodput_ratio,
    goodputs,
    p95_ratio,
)
from lab.experiments.proving.levers import (
    GENERATOR,
    HOST_CPU,
    MOST_CONNECTIONS,
    Lever,
    Present,
    together,
)
from lab.experiments.proving.ties import behind, no_room, tied_with
from lab.judge.checks.data import mostly_errors, no_success
from lab.judge.compare import MARGIN, UNEVEN
from lab.judge.intervals import LEAST_VALUES, RatioOf
from lab.judge.resources import RESOURCES
from lab.model import AS_IT_IS, NONE, UNKNOWN, Condition, Row, goodput, strength_text
from lab.model.knobs import starting
from lab.report.remarks import text_of

# An invalid trial says nothing of the server: it is run once more.
TRIES = 2
# A small dose is felt less than a doubled resource: so many times the rounds.
ROUNDS = 2
# The arm of the first trial, of the load as it is.
FIRST = "1-named"
SIDES = ("the server as it was", "the changed one")
LIMIT = "the machine itself is the limit"


@dataclass(frozen=True, slots=True)
class Explain:
    """`pairs` of trials for each resource that is tried, at most `steps` resources per server.
    `suspect`: the resource to try first instead of the verdict's own. `most_connections`: how many
    this machine holds."""

    pairs: int
    steps: int
    suspect: str | None = None
    most_connections: int = MOST_CONNECTIONS

    def __post_init__(self) -> None:
        if self.pairs < 1 or self.steps < 1:
            raise ValueError("pairs and steps start at 1")
        if self.suspect is not None and self.suspect not in RESOURCES:
            raise ValueError(f"{self.suspect} is not a resource")


@dataclass(frozen=True, slots=True)
class Ask:
    """A trial that is wanted. `arm` is its part: 1-named, 1-before, 1-after, 2-named …; 1-less
    takes less away than 1-after. `fresh`: on a JVM of its own."""

    condition: Condition
    arm: str
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """What was tried at once: one resource, or several, and then `tie` says why. `before` and
    `after` are the valid trials without and with the change, in pairs. `goodput` and `p95` are the
    ratios after / before; None where there is no ratio. `least` says that the ratio is a lower
    bound, because the goodput before was 0. `doses` are the shares of the CPUs that were really
    taken away, the smallest first. `why` is the reason for the answer."""

    resources: tuple[str, ...]
    tie: str
    suspected: bool
    strength: str | None
    lever: Lever
    before: tuple[Row, ...] = ()
    after: tuple[Row, ...] = ()
    goodput: RatioOf | None = None
    p95: RatioOf | None = None
    least: bool = False
    doses: tuple[float, ...] = ()
    answer: Answer = "inconclusive"
    why: str = "goodput cannot be told"

    @property
    def name(self) -> str:
        return " and ".join(self.resources)


@dataclass(frozen=True, slots=True)
class NotTried:
    """A suspect that cannot be changed."""

    resource: str
    why: str


@dataclass(slots=True)
class Story:
    """What the rows of one server say.

    `wanted` is the next trial (None: the inquiry is over). `steps` are what was decided of each
    resource, and `end` is the last sentence. `again` counts the invalid trials that were run again,
    by arm."""

    wanted: Ask | None = None
    steps: list[Step | NotTried] = field(default_factory=list)
    end: str = ""
    again: Counter[str] = field(default_factory=Counter)


def story(
    explain: Explain,
    present: Present,
    rows: Sequence[Row],
    conditions: Mapping[str, Condition] | None = None,
) -> Story:
    """Where the inquiry stands after these rows of one server, in the order of time.

    `present` is the server as it was before the first trial. `conditions` are the conditions that
    were in force, by trial, as far as they are known. A row that was not asked for is left out
    until it is: of a trial that was damaged, another one takes the place."""
    told, left = Story(), list(rows)
    asking = _inquiry(explain, present, told)
    told.wanted = next(asking)
    while told.wanted is not None:
        row = next((one for one in left if _is_asked(one, told.wanted, conditions or {})), None)
        if row is None:
            break
        left.remove(row)
        try:
            told.wanted = asking.send(row)
        except StopIteration:
            told.wanted = None
    return told


def most_trials(explain: Explain) -> int:
    """The most trials of an inquiry, without invalid ones: each step is named and has its pairs,
    and one more trial tells what is next. Host CPU has three sides and ROUNDS times the rounds; it
    is tried last, or as a suspect too."""
    host_steps = min(explain.steps, 2 if explain.suspect == HOST_CPU else 1)
    extra = (3 * ROUNDS - 2) * explain.pairs
    return explain.steps * (1 + 2 * explain.pairs) + host_steps * extra + 1


def _is_asked(row: Row, wanted: Ask, conditions: Mapping[str, Condition]) -> bool:
    """True if a row is the trial that is wanted."""
    in_force = conditions.get(row.trial, wanted.condition)
    return row.arm == wanted.arm and in_force == wanted.condition


def _inquiry(explain: Explain, now: Present, told: Story) -> Generator[Ask, Row]:
    """Asks for one trial after the other, and writes their answers into `told`."""
    suspect, named, number = explain.suspect, None, 1
    # What the next step changes together, and why.
    tied: tuple[tuple[str, ...], str] | None = None
    while True:
        if named is None:
            named = yield from _valid(Ask(now.condition, f"{number}-named"), told.again)
            told.end = _machine_or_invalid(named)
            if told.end:
                return
        if number > explain.steps:
            told.end = f"{_named(named, now)}; not tried, {explain.steps} steps were asked for"
            return
        resource = suspect or now.lifted_by(named.bottleneck or UNKNOWN)
        if suspect is None and tied is None:
            told.end = _end(named, now, resource)
            if told.end:
                return
        resources, why = tied or tied_with(resource, now, goodput(named))
        change = together(resources, now)
        if isinstance(change, str):
            if suspect is None:
                told.end = f"{_named(named, now)}; not proven: {change}"
                return
            told.steps.append(NotTried(resource, change))
        else:
            strength = named.strength if named.bottleneck in resources else None
            step = Step(resources, why, suspect is not None, strength, change)
            done = yield from _tried(explain, number, step, now, told.again)
            told.steps.append(done)
            if done.answer == "confirmed" and change.takes:
                told.end = f"{done.name}, with {_in_force(now.condition)}: {LIMIT}: goodput follows"
                told.end += " its CPUs"
                return
            if done.answer == "confirmed":
                now = replace(now, condition=change.lift)
                suspect = named = tied = None
                number += 1
                continue
            if suspect is None or suspect == named.bottleneck:
                tied = None
                if number < explain.steps and done.goodput is not None and not change.takes:
                    tied = behind(resources, done.after, now)
                if tied is None:
                    told.end = f"unknown: {done.name} was named, and is {done.answer}: {done.why}"
                    return
        # The suspect was not the limit: the verdict of the same trial is next.
        suspect = None
        number += 1


def _valid(ask: Ask, again: Counter[str]) -> Generator[Ask, Row, Row]:
    """A valid trial, or the last of TRIES invalid ones. `again` counts those that were repeated."""
    for _ in range(TRIES - 1):
        row = yield ask
        if usable(row):
            return row
        again[ask.arm] += 1
    return (yield ask)


def usable(row: Row) -> bool:
    """Whether the goodput of a trial is known. It is next to nothing where most answers were
    errors."""
    return row.codes <= {no_success.code, mostly_errors.code}


def _machine_or_invalid(named: Row) -> str:
    """Why nothing follows from an invalid trial; empty for a valid trial. A machine that is too
    small makes trials invalid; the verdict then names the machine."""
    if usable(named):
        return ""
    if named.bottleneck == GENERATOR:
        return f"{named.bottleneck}: {LIMIT} ({text_of(named)})"
    name = f"{HOST_CPU}, not proven" if named.bottleneck == HOST_CPU else UNKNOWN
    return f"{name}: {TRIES} measurements were invalid: {text_of(named)}"


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
    if resource == GENERATOR:
        return f"{_named(named, now)}: {LIMIT}"
    return ""


def _named(named: Row, now: Present) -> str:
    sure = "" if named.strength is None else f" ({strength_text(named.strength)})"
    return f"{named.bottleneck or UNKNOWN}{sure}, with {_in_force(now.condition)}"


def _in_force(condition: Condition) -> str:
    return "the lab as it is" if condition == AS_IT_IS else condition.text


def _tried(
    explain: Explain, number: int, step: Step, now: Present, again: Counter[str]
) -> Generator[Ask, Row, Step]:
    """Makes the pairs of one step, A B B A A B …, and decides on its resources. What takes away has
    a third side, which takes less. The rounds end where a side cannot be measured; those before it
    count if they are enough for an interval.

    Where the change takes another JVM, each trial has one of its own: A A and B B on one each would
    leave 7 for six pairs, which do not vary independently then, as the interval supposes."""
    change = step.lever
    fresh = starting(now.condition.host) != starting(change.step.host)
    sides = [
        Ask(now.condition, f"{number}-before", fresh),
        Ask(change.step, f"{number}-after", fresh),
    ]
    if change.less is not None:
        sides.append(Ask(change.less, f"{number}-less"))
    rows: dict[str, list[Row]] = {side.arm: [] for side in sides}
    problem, rounds = "", explain.pairs * (ROUNDS if change.takes else 1)
    for turn in range(rounds):
        for ask in sides[:: -1 if turn % 2 else 1]:
            if problem:
                continue
            row = yield from _valid(ask, again)
            if usable(row):
                rows[ask.arm].append(row)
                continue
            side = ("without the change", "with the change", "with less of it")[sides.index(ask)]
            problem = f"{TRIES} measurements {side} were invalid: {text_of(row)}"
    # What was measured before a side could not be is not lost, where it is enough for an interval.
    complete = min(map(len, rows.values()))
    enough = not problem or complete >= LEAST_VALUES
    last = complete if enough else None
    before, after, *less = (tuple(rows[side.arm][:last]) for side in sides)
    ratio, least = goodput_ratio(before, after) if enough else (None, False)
    answer, why, doses = step.answer, problem or step.why, tuple[float, ...]()
    if ratio is not None and change.takes:
        dosed = (*less, after)
        doses = tuple(statistics.median(row.spun or 0.0 for row in side) for side in dosed)
        if fall := fall_of(before, *dosed):
            answer, why = answer_of_fall(fall, min(doses))
    elif ratio is not None:
        answer, why = _answer_of_rise(step, now, before, after, ratio)
    tries = [(min(again[side.arm], len(rows[side.arm])), len(rows[side.arm])) for side in sides[:2]]
    shares = [count / trials if trials else 0.0 for count, trials in tries]
    # The second try of a JVM that the change takes anew is warmer than a first one.
    if answer != "inconclusive" and fresh and abs(shares[0] - shares[1]) > UNEVEN:
        texts = [
            f"{count} of {trials} launches of {name}"
            for (count, trials), name in zip(tries, SIDES, strict=True)
        ]
        answer = "inconclusive"
        why = f"measured again: {' and '.join(texts)}, which may decide the answer"
    if problem and ratio is not None:
        why += f"; {complete} of {rounds} pairs count: then {problem}"
    return replace(
        step,
        before=before,
        after=after,
        goodput=ratio,
        p95=p95_ratio(before, after) if enough else None,
        least=least,
        doses=doses,
        answer=answer,
        why=why,
    )


def _answer_of_rise(
    step: Step, now: Present, before: Sequence[Row], after: Sequence[Row], ratio: RatioOf
) -> tuple[Answer, str]:
    """The answer of more of the resources, and why."""
    change = step.lever
    answer, why = answer_of(ratio)
    if answer == "withdrawn":
        other = _other_than_no_limit(step, now, before, why)
        return ("inconclusive", other) if other else (answer, why)
    if answer == "confirmed" and change.saves_ms:
        answer, why = answer_of_time(before, after, change.saves_ms)
    if answer == "confirmed" and change.frees:
        full = crowded(before, now.shared_cpus)
        if full:
            return "inconclusive", f"the CPU time of {change.frees} went with it, and {full}"
    return answer, why


def _other_than_no_limit(step: Step, now: Present, before: Sequence[Row], why: str) -> str:
    """Why goodput may not have risen although the resources are the limit; empty where only another
    limit explains it. `why` is what goodput says."""
    change = step.lever
    if change.unseen:
        return f"{why}, or the service does not take {change.unseen}, which the lab cannot see"
    if change.keeps:
        return f"{why}, or too little for it: its JVM goes on with {change.keeps}"
    if room := no_room(step.resources, change, now, goodputs(before)):
        return room
    if change.at_most and change.at_most <= 1 + 2 * MARGIN:
        return f"the step allows ×{change.at_most:.2f} at most"
    return ""
