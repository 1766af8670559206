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
from copy import replace
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from lab.judge.checks.data import mostly_errors, no_success
from lab.judge.intervals import LEAST_VALUES
from lab.kinds.proving.answers import (
    Answered,
    answer_of_fall,
    answer_of_rise,
    fall_of,
    goodput_ratio,
    p95_ratio,
    uneven,
    with_ends,
)
from lab.kinds.proving.levers import GENERATOR, HOST_CPU, Change, lever, together
from lab.kinds.proving.present import MOST_CONNECTIONS, Present
from lab.model import NONE, UNKNOWN, Condition, Finding, Limit, Record, Remark, Row, Tried, goodput
from lab.model.knobs import starting

# An invalid trial says nothing of the server: it is run once more.
TRIES = 2
# A small dose is felt less than a doubled resource: so many times the rounds.
ROUNDS = 2
# The arm of the first trial, of the load as it is.
FIRST = "1-named"
LIMITS, NEXT = "bottleneck", "next bottleneck"
# What changes in one step, and why it is more than one resource (None: it is one).
Tied = tuple[tuple[str, ...], Remark | None]


class Asks(Record):
    """The keys of [explain]: `pairs` of trials for each resource that is tried, at most `steps`
    resources per server. `suspect`: the resource to try first instead of the verdict's own."""

    # 6 pairs are the least that give an interval (lab.judge.intervals).
    pairs: Annotated[int, Meta(ge=1, le=100)] = 6
    steps: Annotated[int, Meta(ge=1, le=20)] = 4
    suspect: str | None = None


class Explain(Asks):
    """What is asked, and how many connections this machine holds."""

    most_connections: int = MOST_CONNECTIONS


@dataclass(frozen=True, slots=True)
class Ask:
    """A trial that is wanted. `arm` is its part: 1-named, 1-before, 1-after, 2-named …; 1-less
    takes less away than 1-after. `fresh`: on a JVM of its own."""

    condition: Condition
    arm: str
    fresh: bool = False


class Inquiry:
    """The inquiry into one server, as far as its rows go.

    `wanted` is the next trial (None: it is over). `steps` are what was decided of each resource,
    and `limit` is how it ended. `now` is the server with what was lifted, and `again` counts the
    invalid trials that were run again, by arm."""

    def __init__(self, server: str, explain: Explain, present: Present) -> None:
        self.server = server
        self.explain = explain
        self.now = present
        self.steps: list[Tried] = []
        self.limit: Limit | None = None
        self.again: Counter[str] = Counter()
        self.wanted: Ask | None = None

    def replay(self, rows: Sequence[Row], conditions: Mapping[str, Condition]) -> None:
        """Goes through these rows of the server, in the order of time. `conditions` are those that
        were in force, by trial, as far as they are known. A row that was not asked for is left out
        until it is: of a trial that was damaged, another one takes the place."""
        left, trials = list(rows), self._trials()
        self.wanted = next(trials)
        while self.wanted is not None:
            ask = self.wanted
            row = next((row for row in left if _is_asked(row, ask, conditions)), None)
            if row is None:
                return
            left.remove(row)
            try:
                self.wanted = trials.send(row)
            except StopIteration:
                self.wanted = None

    def findings(self, trials: int) -> tuple[Finding, ...]:
        """What so many trials say."""
        if self.wanted is not None:
            self._end(UNKNOWN, Remark("not-finished", {"trials": trials, "arm": self.wanted.arm}))
        return (*self.steps, *([self.limit] if self.limit else ()))

    @property
    def _number(self) -> int:
        return len(self.steps) + 1

    def _end(self, resource: str, *why: Remark, strength: str | None = None) -> None:
        name = NEXT if any(step.lifted for step in self.steps) else LIMITS
        again = sum(count for arm, count in self.again.items() if arm.endswith("-named"))
        head = name, self.server, 0, None, "", None, None
        self.limit = Limit(*head, resource, strength, self.now.condition, why, again)

    def _trials(self) -> Generator[Ask, Row]:
        """Asks for one trial after the other, until there is an end."""
        suspect, named = self.explain.suspect, None
        # What the next step changes together.
        tied: Tied | None = None
        while True:
            if named is None:
                named = yield from self._valid(Ask(self.now.condition, f"{self._number}-named"))
            resource = suspect or self.now.lifted_by(named.bottleneck or UNKNOWN)
            if self._is_over(named, None if suspect or tied else resource):
                return
            resources, tie = tied or self._tied_with(resource, goodput(named))
            change = together(resources, self.now)
            strength = named.strength if named.bottleneck in resources else None
            head = f"step {self._number}", self.server, 0, None, "×", None, None
            step = Tried(*head, resources, tie, strength, suspect is not None)
            if isinstance(change, Remark):
                if suspect is None:
                    name = named.bottleneck or UNKNOWN
                    self._end(name, Remark("not-proven"), change, strength=named.strength)
                    return
                self.steps.append(replace(step, why=(change,)))
                suspect = None
                continue
            step, after = yield from self._tried(step, change)
            self.steps.append(step)
            if step.answer == "confirmed" and change.takes:
                self._end(resource, Remark("follows-cpus"))
                return
            if step.answer == "confirmed":
                self.now = replace(self.now, condition=change.lift)
                suspect = named = tied = None
                continue
            if suspect in (None, named.bottleneck):
                more = len(self.steps) < self.explain.steps and not change.takes
                tied = self._behind(resources, after) if more and step.value is not None else None
                if tied is None:
                    values = {"resources": ", ".join(resources), "answer": step.answer}
                    self._end(UNKNOWN, Remark("not-confirmed", values), *step.why)
                    return
            # A suspect was not the limit: the verdict of the same trial is next.
            suspect = None

    def _tied_with(self, resource: str, measured: float | None) -> Tied:
        """The resource, with those that by the prediction bind right behind it at the goodput
        `measured`. One with a bound of its own above that is no limit, and has none behind it."""
        resources: tuple[str, ...] = (resource,)
        why = None
        while measured and not self.now.slack(resource, measured):
            change = together(resources, self.now)
            if isinstance(change, Remark) or change.takes:
                break
            bound = self.now.near(change.step, measured)
            if bound is None or bound.resource in resources or not self._can_rise(bound.resource):
                break
            times = bound.rps / measured
            why = Remark("little-room", {"alone": ", ".join(resources), "times": times})
            resources = (*resources, bound.resource)
        return resources, why

    def _behind(self, resources: tuple[str, ...], after: Sequence[Row]) -> Tied | None:
        """What to change together after a change of `resources` that was no help: these, and the
        resource that most of its trials `after` name. None where that cannot be raised."""
        name, count = Counter(row.bottleneck or UNKNOWN for row in after).most_common(1)[0]
        if name in resources or 2 * count <= len(after) or not self._can_rise(name):
            return None
        why = Remark("named-with-change", {"named": name, "changed": ", ".join(resources)})
        return (*resources, name), why

    def _can_rise(self, resource: str) -> bool:
        change = lever(resource, self.now)
        return isinstance(change, Change) and not change.takes

    def _valid(self, ask: Ask) -> Generator[Ask, Row, Row]:
        """A valid trial, or the last of TRIES invalid ones."""
        for _ in range(TRIES - 1):
            row = yield ask
            if usable(row):
                return row
            self.again[ask.arm] += 1
        return (yield ask)

    def _is_over(self, named: Row, resource: str | None) -> bool:
        """True if nothing follows from a trial that names this resource, and is to decide what is
        changed (None: it is not). A machine that is too small makes trials invalid; the verdict
        then names the machine."""
        name, machine = named.bottleneck or UNKNOWN, (GENERATOR, HOST_CPU)
        if not usable(named):
            why = Remark("machine" if name == GENERATOR else "invalid-twice")
            self._end(name if name in machine else UNKNOWN, why, *named.reasons)
        elif self._number > self.explain.steps:
            why = Remark("steps-over", {"steps": self.explain.steps})
            self._end(name, why, strength=named.strength)
        elif resource == NONE:
            most = {} if named.predicted_rps is None else {"most_rps": named.predicted_rps}
            self._end(NONE, Remark("load-is-limit", {"rps": goodput(named) or 0.0, **most}))
        elif resource == UNKNOWN:
            self._end(UNKNOWN, Remark("unnamed"))
        elif resource == GENERATOR:
            self._end(GENERATOR, Remark("machine"), strength=named.strength)
        return self.limit is not None

    def _tried(
        self, step: Tried, change: Change
    ) -> Generator[Ask, Row, tuple[Tried, Sequence[Row]]]:
        """Makes the pairs of one step, A B B A A B …, and decides on its resources; also returns
        the trials with the change. What takes away has a third side, which takes less. The rounds
        end where a side cannot be measured; those before it count if they are enough for an
        interval.

        Where the change takes another JVM, each trial has one of its own: A A and B B on one each
        would leave 7 for six pairs, which do not vary independently then, as the interval
        supposes."""
        fresh = starting(self.now.condition.host) != starting(change.step.host)
        conditions = {"before": self.now.condition, "after": change.step}
        if change.less is not None:
            conditions["less"] = change.less
        rows: dict[str, list[Row]] = {side: [] for side in conditions}
        planned, ended = self.explain.pairs * (ROUNDS if change.takes else 1), tuple[Remark, ...]()
        for turn in range(planned):
            for side in list(conditions)[:: -1 if turn % 2 else 1]:
                if ended:
                    break
                ask = Ask(conditions[side], f"{self._number}-{side}", fresh)
                row = yield from self._valid(ask)
                if usable(row):
                    rows[side].append(row)
                else:
                    ended = (Remark("side-invalid", {"side": side, "tries": TRIES}), *row.reasons)
        again = {side: self.again[f"{self._number}-{side}"] for side in conditions}
        pairs = min(map(len, rows.values()))
        step = replace(
            step,
            changes=change.settings,
            at_most=change.at_most,
            planned=planned,
            again={side: count for side, count in again.items() if count},
        )
        # What was measured before a side could not be is not lost, where it is enough.
        if ended and pairs < LEAST_VALUES:
            return replace(step, answer="inconclusive", why=ended), ()
        before, after, *less = (tuple(side[:pairs]) for side in rows.values())
        ratio, least = goodput_ratio(before, after)
        doses: tuple[float, ...] = ()
        answered: Answered = ("inconclusive", Remark("goodput-unknown"))
        if ratio is not None and change.takes:
            dosed = (*less, after)
            doses = tuple(statistics.median(row.spun or 0.0 for row in side) for side in dosed)
            if fall := fall_of(before, *dosed):
                answered = answer_of_fall(fall, min(doses))
        elif ratio is not None:
            answered = answer_of_rise(step.resources, change, self.now, before, after, ratio)
        if fresh and answered[0] != "inconclusive":
            answered = uneven(again, {side: len(rows[side]) for side in rows}) or answered
        (value, low, high), (answer, why) = with_ends(ratio) or (None, None, None), answered
        return replace(
            step,
            value=value,
            low=low,
            high=high,
            answer=answer,
            why=(why,),
            lifted=answer == "confirmed" and not change.takes,
            least=least,
            doses=doses,
            p95=with_ends(p95_ratio(before, after)),
            goodput=(_median(before), _median(after)) if ratio else None,
            pairs=pairs,
            ended=ended,
        ), after


def _is_asked(row: Row, ask: Ask, conditions: Mapping[str, Condition]) -> bool:
    in_force = conditions.get(row.trial, ask.condition)
    return row.arm == ask.arm and in_force == ask.condition


def _median(rows: Sequence[Row]) -> float:
    return statistics.median(goodput(row) or 0.0 for row in rows)


def usable(row: Row) -> bool:
    """True if the goodput of a trial is known. It is next to nothing where most answers were
    errors."""
    return row.codes <= {no_success.code, mostly_errors.code}


def most_trials(explain: Explain) -> int:
    """The most trials of an inquiry, without invalid ones: each step is named and has its pairs,
    and one more trial tells what is next. Host CPU has three sides and ROUNDS times the rounds; it
    is tried last, or as a suspect too."""
    host_steps = min(explain.steps, 2 if explain.suspect == HOST_CPU else 1)
    extra = (3 * ROUNDS - 2) * explain.pairs
    return explain.steps * (1 + 2 * explain.pairs) + host_steps * extra + 1
