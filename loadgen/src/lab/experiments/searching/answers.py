"""The lines that a reader of a run of capacity wants first, and the order of the servers. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.experiments.kind import OTHER_RULES
from lab.experiments.searching.summary import NAME, NOT_FINISHED, SEARCH, SEPARATOR
from lab.judge.intervals import LEAST_VALUES, interval_of
from lab.model import LIFTED, Experiment, Finding


def answers(experiment: Experiment, found: Sequence[Finding]) -> tuple[tuple[str, ...], ...]:
    """What a reader wants first: for each server its name, what it holds, what gave way, and what
    came of lifting it; then what these lines do not say."""
    of = [one for one in found if one.name == NAME]
    lines = []
    for one in of:
        text, _, then = one.text.partition(SEPARATOR)
        more = [it.text for it in found if (it.server, it.name) == (one.server, LIFTED)]
        cells = [f"then: {then}" if then else "", *more]
        lines.append((one.server, text, *(cells if any(cells) else [])))
    if not of:
        return ()
    notes = [*_disagree(of, found), *_notes(experiment, of, launches_of(found))]
    return (*lines, *((note,) for note in notes))


@dataclass(frozen=True, slots=True)
class Launches:
    """The ended launches of a server: `told` know what it sustains, `untold` do not."""

    told: int = 0
    untold: int = 0

    @property
    def are_enough(self) -> bool:
        """Whether they have an interval of 95 %."""
        return interval_of([0.0] * self.told, self.untold) is not None


def launches_of(each: Sequence[Finding]) -> dict[str, Launches]:
    """Those of each server; fewer than planned where the run was ended before."""
    found: dict[str, Launches] = {}
    for one in each:
        if one.name == SEARCH:
            of = found.setdefault(one.server, Launches())
            if NOT_FINISHED not in one.text and OTHER_RULES not in one.text:
                told = one.value is not None
                found[one.server] = Launches(of.told + told, of.untold + (not told))
    return found


def in_order(answers: Sequence[Finding], launches: Mapping[str, Launches]) -> Iterator[Finding]:
    """Servers whose interval is surely above that of another one come before it; others stay in
    the order that was given."""
    waiting = list(answers)
    while waiting:
        below = (any(_above(other, one, launches) for other in waiting) for one in waiting)
        first = next(
            (one for one, is_below in zip(waiting, below, strict=True) if not is_below), waiting[0]
        )
        waiting.remove(first)
        yield first


def _above(one: Finding, other: Finding, launches: Mapping[str, Launches]) -> bool:
    """Whether a server surely holds more than another one: both have an interval of 95 %."""
    sure = launches[one.server].are_enough and launches[other.server].are_enough
    return sure and one.low is not None and other.high is not None and one.low > other.high


def _disagree(of: Sequence[Finding], found: Sequence[Finding]) -> Iterator[str]:
    """Servers one launch of which held what surely broke another."""
    for server in (one.server for one in of):
        each = [one for one in found if (one.name, one.server) == (SEARCH, server)]
        tops = [one.high for one in each if one.high is not None]
        if tops and max(one.low or 0 for one in each) >= min(tops):
            told = [f"{one.value:,.0f}" for one in each if one.value is not None]
            untold = len(each) - len(told)
            also = f"; of {untold} more nobody can tell" if untold else ""
            yield f"{server}: its launches disagree. They held {', '.join(told)} req/s{also}."


def _notes(
    experiment: Experiment, of: Sequence[Finding], launches: Mapping[str, Launches]
) -> Iterator[str]:
    """What the brackets are, and which servers they do not order."""
    few = [one.server for one in of if not launches[one.server].are_enough]
    if len(few) == len(of):
        least = min(launches[server].told for server in few)
        jvms = "one JVM" if least < 2 else f"{least} JVMs"
        more = f"; LAUNCHES={LEAST_VALUES} gives a 95 % interval"
        if experiment.target or experiment.launches >= LEAST_VALUES:
            more = ""
        orders = ". That orders no servers" if len(of) > 1 else ""
        yield f"[from, to]: {_ends(jvms)}{orders}{more}."
        return
    yield "[from, to]: at least 95 %, over launches."
    for one in of:
        if one.server in few and one.value is not None:
            count, untold = launches[one.server].told, launches[one.server].untold
            jvms, these = ("one JVM", "it") if count < 2 else (f"{count} JVMs", "these")
            beside = f" beside {untold} of which nobody can tell" if untold else ""
            yield (
                f"The brackets of {one.server} are of {jvms}{beside}, too few for 95 %: "
                f"{_ends(these)}. "
                "They order nothing."
            )
    alike = [
        f"{one.server} and {other.server}"
        for at, one in enumerate(of)
        for other in of[at + 1 :]
        if not {one.server, other.server} & set(few) and not _above(one, other, launches)
    ]
    if alike:
        yield f"Not told apart: {'; '.join(alike)}."


def _ends(jvms: str) -> str:
    return f"up to the first rate every trial of {jvms} held, from the second on every one broke"
