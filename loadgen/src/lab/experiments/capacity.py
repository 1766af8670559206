"""Capacity: the highest rate that a server holds under an objective, and what gave way above it.

The rate is searched: doubled until it is not held, then bisected. Connections follow from the rate,
so they are never the limit by accident. Every decision is made from rows alone, so the same rows
lead to the same next rate.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.errors import LabError
from lab.experiments.kind import Outcome, ToMeasure, TrialKind, Verb, settings_of
from lab.experiments.objective import RULE, Objective, judged, latency_ms, parse
from lab.experiments.order import (
    LONGEST_S,
    STRAYED,
    Design,
    Planner,
    after_damaged,
    counted,
    launches,
    lengthened,
    next_number,
    replaced,
    turned,
)
from lab.experiments.rate_search import AGREE_LATER, Tried, Way, bracket, ends
from lab.experiments.reading import Asked, Key, Word, read_load, rules, target
from lab.experiments.reading.load import EXACT
from lab.judge.gates import UNSTEADY
from lab.judge.intervals import LEAST_VALUES, median_of
from lab.judge.predict import predict
from lab.model import (
    NONE,
    STRONG,
    UNKNOWN,
    Experiment,
    Finding,
    Row,
    Standing,
    TrialPlan,
    Verdict,
)

NAME = "capacity"
SEARCH = "search"
UNIT = "req/s"
DEFAULT_OBJECTIVE = "p99<500ms,errors<1%"
# A rate that was held is confirmed in a window so many times as long.
LONGER = 4
# Windows are made longer up to so many seconds.
MOST_WINDOW_S = 2 * LONGEST_S
# The curve: loads as shares of the capacity.
SHARES = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05)


def _yes(text: str) -> bool:
    if text not in ("yes", "no"):
        raise ValueError(f"{text} is not allowed; allowed: yes, no")
    return text == "yes"


KEYS = {
    "objective": Key(RULE, parse(DEFAULT_OBJECTIVE)),
    "first": Key(rules.number(1, rules.MAX_RATE_RPS), 500),
    "most": Key(rules.number(1, rules.MAX_RATE_RPS), 100_000),
    "resolution": Key(rules.decimal(0.001, 0.5), 0.03),
    "curve": Key(rules.Rule(rules.TEXT, _yes), default=False),
}


@dataclass(frozen=True, slots=True)
class Capacity:
    """What to search. The first rate is `first`, or half of the bound that the settings predict
    where that is less; none is above `most`. It ends where the highest rate that was held and the
    lowest that was not differ by at most the share `resolution`. `connections` is how many this
    machine holds. `curve`: whether loads around the capacity (SHARES) are measured after it."""

    objective: Objective
    first: int
    most: int
    resolution: float
    connections: int
    curve: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.first <= self.most or self.connections < 1:
            raise ValueError("1 <= first <= most, and at least a connection")
        if not 0 < self.resolution < 1:
            raise ValueError("resolution is a share between 0 and 1")

    def given(self, rate: int) -> int:
        """The connections that this rate gets: what it takes, as far as the machine holds it."""
        return min(self.objective.connections(rate), self.connections)


def read(asked: Asked) -> ToMeasure:
    """The search that the words or a file describe. Raises WordError."""
    load = read_load(asked, ("open",), ("routes",), with_connections=False, searched=True)
    given = asked.settings.table(NAME, KEYS)
    most = asked.settings.get(f"{NAME}.most")
    if most is not None and given["first"] > given["most"]:
        raise most.refuse(f"{most.text} is less than {NAME}.first={given['first']}")
    held = min(load.most, asked.here.ports or load.most)
    capacity = Capacity(**given, connections=held)
    of = target.given_target(asked.settings)
    experiment = load.experiment(
        NAME,
        capacity,
        concurrencies=(capacity.given(capacity.first),),
        engines=(EXACT,),
        target=of.url if of else None,
    )
    if not experiment.question:
        does = "does" if len(experiment.servers) == 1 else "does each of"
        names = ", ".join(experiment.servers)
        text = f"How many requests per second {does} {names} hold at {capacity.objective.text}?"
        experiment = dataclasses.replace(experiment, question=text)
    return experiment, (*load.notes, *((of.note,) if of and of.note else ()))


@dataclass(frozen=True, slots=True)
class Rung:
    """The trials of one rate: which held it, which did not and why, and which say nothing."""

    rate: int
    held: tuple[Row, ...] = ()
    broke: tuple[tuple[Row, str], ...] = ()
    untold: tuple[tuple[Row, str], ...] = ()

    @property
    def tried(self) -> Tried:
        """How often each was the case."""
        return Tried(self.rate, len(self.held), len(self.broke), len(self.untold))


@dataclass(frozen=True, slots=True)
class Search:
    """Where the search of one server and launch stands. `rungs` are its rates in ascending order;
    `rate` is the next one (None: it is over). `strayed` names the first row that is not the trial
    that was next; nothing after it counts. `curve` counts the rows after its end, which are of the
    curve."""

    rungs: tuple[Rung, ...]
    rate: int | None
    way: Way
    strayed: str = ""
    curve: int = 0

    @property
    def tried(self) -> list[Tried]:
        """The outcomes."""
        return [rung.tried for rung in self.rungs]

    @property
    def left(self) -> int:
        """As `Way.left`."""
        return 0 if self.strayed else self.way.left(self.tried)

    @property
    def low(self) -> Rung | None:
        """The highest rate that was held."""
        held, _ = bracket(self.tried)
        return self.of(held.rate) if held else None

    @property
    def top(self) -> Rung | None:
        """The lowest rate that was not held, or of which nobody can tell that."""
        _, top = bracket(self.tried)
        return self.of(top.rate) if top else None

    @property
    def breaks(self) -> bool:
        """Whether `top` surely broke, as far as trials agree."""
        return self.top is not None and bool(self.top.broke) and not self.top.tried.is_unknown

    @property
    def interval(self) -> tuple[int, int | None]:
        """The rates between which the capacity is, as far as trials agree; None where no end was
        found."""
        low, high = ends(self.tried)
        return low.rate if low else 0, high.rate if high is not None and self.breaks else None

    def of(self, rate: int | None) -> Rung | None:
        """The trials of a rate."""
        return next((rung for rung in self.rungs if rung.rate == rate), None)


def search(
    way: Way,
    objective: Objective,
    rows: Sequence[Row],
    *,
    curve: bool = False,
    lenient: bool = False,
) -> Search:
    """Where a search stands after these rows of one server and launch, in the order of time. It
    ends at the first row that is not its own: another version of the lab may judge a trial
    otherwise, and ask for another next rate. Where it is `lenient` it leaves such rows out: a trial
    of the server was `replaced`, and what took its place may have said something else. `curve`:
    whether rows of a curve may follow."""
    rungs: dict[int, Rung] = {}
    strayed, after = "", 0
    rate = way.next([])
    for at, row in enumerate(rows):
        if rate is None and curve:
            after = len(rows) - at
            break
        if row.offered_rps != rate or rate is None:
            if lenient:
                continue
            wanted = "it had ended" if rate is None else f"{rate} req/s were next"
            strayed = f"{row.trial} is not of this search: {wanted}"
            break
        rung = rungs.get(rate, Rung(rate))
        outcome, why = judged(objective, row, after_break=bool(rung.broke))
        if outcome == "held":
            rung = dataclasses.replace(rung, held=(*rung.held, row))
        elif outcome == "broke":
            rung = dataclasses.replace(rung, broke=(*rung.broke, (row, why)))
        else:
            rung = dataclasses.replace(rung, untold=(*rung.untold, (row, why)))
        rungs[rate] = rung
        rate = way.next([rungs[at].tried for at in sorted(rungs)])
    return Search(tuple(rungs[at] for at in sorted(rungs)), rate, way, strayed, after)


def searches(
    experiment: Experiment, rows: Sequence[Row], start: int | None = None
) -> dict[int, Search]:
    """The searches of one server by launch, from its rows. The first launch searches, from `start`
    (None: from the rate of its first row). The others confirm what it found; where it found
    nothing that is held there are none. Without rows and `start` there are none either."""
    capacity = settings_of(Capacity, experiment)
    first, *later = launches(experiment)
    lenient = replaced(rows)
    own = [row for row in rows if row.launch == first]
    begun = own[0].offered_rps if own else start
    if begun is None:
        return {}
    most, resolution, objective = capacity.most, capacity.resolution, capacity.objective
    last = launches(experiment)[-1] if capacity.curve else None
    way = Way(begun, most, resolution)
    found = {first: search(way, objective, own, curve=first == last, lenient=lenient)}
    low, top = found[first].low, found[first].top
    if found[first].rate is None and low is not None and not found[first].strayed:
        around = (low.rate, top.rate if top else None)
        way = Way(low.rate, most, resolution, AGREE_LATER, around)
        for launch in later:
            own = [row for row in rows if row.launch == launch]
            found[launch] = search(way, objective, own, curve=launch == last, lenient=lenient)
    return found


def curve(experiment: Experiment, found: Mapping[int, Search]) -> tuple[int, ...]:
    """The rates of a server's curve that are not measured yet: none before its searches are over,
    nor where it holds nothing."""
    of = list(found.values())
    if not settings_of(Capacity, experiment).curve or len(of) < len(launches(experiment)):
        return ()
    if any(one.rate is not None or not one.low for one in of):
        return ()
    held, *_ = _held(of)
    return tuple(max(1, round(share * held)) for share in SHARES)[of[-1].curve :]


@dataclass(frozen=True, slots=True)
class Searches(Design):
    """One search per launch and server. Within a launch the server with the fewest rows is next, so
    that a drift of the machine falls on all servers alike."""

    planner: Planner

    def left(self, done: Sequence[Row]) -> int:
        """See Design; not counting trials that run once more because others disagree."""
        done, count = counted(done), 0
        for server in self.planner.experiment.servers:
            found = self._searches(server, done)
            missing = len(launches(self.planner.experiment)) - len(found)
            if any(one.rate is not None for one in found.values()):
                count += missing * 2 * AGREE_LATER
            count += sum(one.left for one in found.values())
            if settings_of(Capacity, self.planner.experiment).curve:
                over = all(one.rate is None for one in found.values())
                count += len(curve(self.planner.experiment, found)) if over else len(SHARES)
        return count

    def next(self, done: Sequence[Row]) -> TrialPlan | None:
        """The next rate of the server that had the fewest trials; first what was damaged. Raises
        LabError for rows that are not of its search."""
        return after_damaged(done, self._next)

    @property
    def typical(self) -> tuple[TrialPlan, ...]:
        """See Design: of servers that hold what their settings allow, but no more than the
        geometric middle of the rates that may be tried, in every launch."""
        experiment = self.planner.experiment
        capacity = settings_of(Capacity, experiment)
        most, resolution = capacity.most, capacity.resolution
        plans: list[TrialPlan] = []
        for server in experiment.servers:
            holds = min(math.sqrt(capacity.first * most), self._bound(server) or math.inf)
            way = Way(self._start(server), most, resolution)
            for launch in launches(experiment):
                course = list(way.course(holds))
                plans += [
                    self._plan(server, one.rate, launch, longer=one.held > 1) for one in course
                ]
                low = max((one.rate for one in course if one.held), default=1)
                top = min((one.rate for one in course if one.broke), default=None)
                way = Way(low, most, resolution, AGREE_LATER, (low, top))
            if capacity.curve:
                plans += [self._plan(server, max(1, round(at * holds)), launch) for at in SHARES]
        return tuple(plans)

    def _next(self, done: Sequence[Row]) -> TrialPlan | None:
        experiment = self.planner.experiment
        found = {server: self._searches(server, done) for server in experiment.servers}
        strayed = [one.strayed for of in found.values() for one in of.values() if one.strayed]
        if strayed:
            raise LabError(strayed[0])
        for launch in launches(experiment):
            waiting = [
                (sum(row.server == server and row.launch == launch for row in done), server, rate)
                for server in turned(experiment.servers, launch)
                if launch in found[server] and (rate := found[server][launch].rate) is not None
            ]
            if waiting:
                _, server, rate = min(waiting, key=lambda one: one[0])
                rung = found[server][launch].of(rate) or Rung(rate)
                # Near the capacity a queue takes long to grow: another look is a longer one.
                grew = any(why.startswith(UNSTEADY) for _, why in rung.broke)
                plan = self._plan(server, rate, launch, longer=bool(rung.held) or grew)
                plan = lengthened(plan, [row for row, _ in rung.untold])
                return self.planner.named(plan, next_number(done), digits=3)
        for server in experiment.servers:
            for rate in curve(experiment, found[server]):
                plan = self._plan(server, rate, launches(experiment)[-1])
                return self.planner.named(plan, next_number(done), digits=3)
        return None

    def _plan(self, server: str, rate: int, launch: int, *, longer: bool = False) -> TrialPlan:
        experiment = self.planner.experiment
        capacity = settings_of(Capacity, experiment)
        duration_s = experiment.duration_s
        if experiment.longer:
            objective = capacity.objective
            route = experiment.routes[0]
            needed_s = self.planner.needed_s([server], route, objective.longest_s)
            wanted_s = max(needed_s, 1.1 * objective.samples / rate)
            duration_s = max(duration_s, math.ceil(wanted_s))
            if longer:
                duration_s *= LONGER
            duration_s = max(experiment.duration_s, min(duration_s, MOST_WINDOW_S))
        return self.planner.plan(
            server,
            self.planner.engine_for("open"),
            "open",
            capacity.given(rate),
            rate,
            duration_s=duration_s,
            launch=launch,
        )

    def _searches(self, server: str, done: Sequence[Row]) -> dict[int, Search]:
        own = [row for row in done if row.server == server]
        return searches(self.planner.experiment, own, self._start(server))

    def _start(self, server: str) -> int:
        """The first rate: half of what the settings allow, where that is less."""
        first, bound = settings_of(Capacity, self.planner.experiment).first, self._bound(server)
        return first if bound is None else max(1, min(first, int(bound / 2)))

    def _bound(self, server: str) -> float | None:
        """The rate that the settings allow at most; None where they allow any."""
        experiment = self.planner.experiment
        most, snapshot = (
            settings_of(Capacity, experiment).connections,
            self.planner.snapshots[server],
        )
        return predict(experiment.routes[0], most, None, snapshot).rps


def design(planner: Planner) -> Design:
    """The searches of the experiment. Raises WordError where an engine cannot do the first
    trial."""
    found = Searches(planner)
    found.next([])
    return found


def findings(outcome: Outcome) -> tuple[Finding, ...]:
    """The capacity of each server first, then how each of its launches was searched."""
    experiment, rows = outcome.experiment, counted(outcome.rows)
    capacity = settings_of(Capacity, experiment)
    found = {
        server: {launch: one for launch, one in of.items() if one.rungs}
        for server in experiment.servers
        if (of := searches(experiment, [row for row in rows if row.server == server]))
    }
    answers = [_answer(capacity, server, of, outcome.verdicts) for server, of in found.items()]
    details = [
        _detail(capacity, server, launch, one, outcome.verdicts)
        for server, of in found.items()
        for launch, one in of.items()
    ]
    return (*_in_order(answers, ranked=experiment.launches >= LEAST_VALUES), *details)


def _in_order(answers: Sequence[Finding], *, ranked: bool) -> Iterator[Finding]:
    """Servers whose interval is surely above that of another one come before it; others stay in
    the order that was given."""
    waiting = list(answers)
    while waiting:
        first = next(
            (
                one
                for one in waiting
                if not ranked or not any(_above(other, one) for other in waiting)
            ),
            waiting[0],
        )
        waiting.remove(first)
        yield first


def _above(one: Finding, other: Finding) -> bool:
    return one.low is not None and other.high is not None and one.low > other.high


def _answer(
    capacity: Capacity, server: str, of: Mapping[int, Search], verdicts: Mapping[str, Verdict]
) -> Finding:
    """What a server holds, and what gave way, in a line."""
    begun = list(of.values())
    told = [one for one in begun if one.low or (one.rate is None and one.breaks)]
    strayed = [one.strayed for one in begun if one.strayed]
    then = _then(begun, verdicts)
    value = low = high = None
    objective = capacity.objective.text
    if strayed:
        text = f"{STRAYED}: {strayed[0]}"
    elif not any(one.low for one in told):
        text = f"does not hold {begun[0].rungs[0].rate:,} req/s at {objective}"
        if begun[0].rate is not None:
            text = f"not finished, {begun[0].rate:,} req/s are next"
        elif not begun[0].breaks:
            text, then = then, ""
    else:
        value, low, high = _held(told)
        text = f"holds {value:,.0f} req/s at {objective} [{low:,.0f}, "
        if high is not None:
            text += f"{high:,.0f}]"
        elif any(one.breaks for one in told):
            text += "not to be told]"
        else:
            text = f"holds at least {value:,.0f} req/s at {objective}"
        if any(one.rate is not None for one in begun):
            text += ", not finished"
        if len(told) < len(begun):
            text += f", in {len(told)} of {len(begun)} launches"
    whole = f"{text}{SEPARATOR}{then}" if then else text
    return Finding(NAME, server, 0, value, UNIT, low, high, whole)


# Between the two halves of an answer.
SEPARATOR = "; then: "


def _held(told: Sequence[Search]) -> tuple[float, float, float | None]:
    """The highest rate that at least half of the launches held, and its interval."""
    value = statistics.median_low([one.low.rate if one.low else 0 for one in told])
    lows = [one.interval[0] for one in told]
    tops = [one.interval[1] or math.inf for one in told]
    low, high = float(min(lows)), float(max(tops))
    if len(told) >= LEAST_VALUES and math.isfinite(high):
        of_lows, of_tops = median_of(lows).interval, median_of(tops).interval
        if of_lows is not None and of_tops is not None:
            # The interval of the median, and the bracket that was searched first.
            low, high = min(of_lows.low, lows[0]), max(of_tops.high, tops[0])
    return float(value), low, high if math.isfinite(high) else None


def _then(of: Sequence[Search], verdicts: Mapping[str, Verdict]) -> str:
    """What gave way first: the verdict of the lowest rate that broke, in most of its trials, with
    its figures. Just above its capacity a server may show nothing yet: then that of the next rate
    that names something, with the rate. Where no rate broke: why nobody can tell of the next."""
    rungs: dict[int, list[Row]] = {}
    for one in of:
        for rung in one.rungs:
            if one.breaks and one.top and rung.rate >= one.top.rate:
                rungs.setdefault(rung.rate, []).extend(row for row, _ in rung.broke)
    for at, rate in enumerate(sorted(rungs)):
        named = [row for row in rungs[rate] if row.bottleneck not in (None, NONE, UNKNOWN)]
        if named:
            counts = Counter(row.bottleneck for row in named)
            name = str(counts.most_common(1)[0][0])
            its = [row for row in named if row.bottleneck == name]
            sure = (
                "strong" if 2 * sum(row.strength == STRONG for row in its) >= len(its) else "weak"
            )
            last = verdicts.get(its[-1].trial)
            full = ", ".join(filter(None, (name, last.figures if last else "")))
            return f"{full} ({sure}{f', at {rate:,} req/s' if at else ''})"
    unknown = [one.top for one in of if one.top and one.top.tried.is_unknown]
    if rungs or not unknown:
        return UNKNOWN if rungs else ""
    return f"cannot be told: {unknown[0].untold[-1][1]}"


def _standing(row: Row, name: str | None, verdicts: Mapping[str, Verdict]) -> Standing | None:
    ranked = verdicts[row.trial].ranked if row.trial in verdicts else ()
    return next((one for one in ranked if one.resource == name), None)


def _detail(
    capacity: Capacity, server: str, launch: int, of: Search, verdicts: Mapping[str, Verdict]
) -> Finding:
    """How one search ended: with the figures of the highest rate that was held, why the lowest
    above it was not, and what waited more there."""
    low, top = of.low, of.top
    parts = ["no rate was held"]
    if low is not None:
        figures = _figures(capacity.objective, low.held[-1])
        parts = [f"held {low.rate:,} req/s ({figures}; {len(low.held)} of {_count(low)} trials)"]
    if top is not None and of.breaks:
        whys = "; ".join(dict.fromkeys(why for _, why in top.broke))
        parts.append(f"broke {top.rate:,} ({len(top.broke)} of {_count(top)} trials): {whys}")
        parts += _queue(low, top, verdicts)
    elif top is not None and top.untold:
        parts.append(f"whether it holds {top.rate:,} cannot be told: {top.untold[-1][1]}")
    elif low is not None and low.rate >= capacity.most:
        parts.append("the most that was tried")
    if of.strayed:
        parts.append(f"{STRAYED}: {of.strayed}")
    elif of.rate is not None:
        parts.append(f"not finished, {of.rate:,} req/s are next")
    value, ends_at = low.rate if low else None, of.interval if low else (None, None)
    known = [None if one is None else float(one) for one in (value, *ends_at)]
    return Finding(SEARCH, server, launch, known[0], UNIT, known[1], known[2], ", ".join(parts))


def _queue(low: Rung | None, top: Rung, verdicts: Mapping[str, Verdict]) -> Iterator[str]:
    """How much waited for the resource that gave way, before and after."""
    last = top.broke[-1][0]
    after = _standing(last, last.bottleneck, verdicts)
    before = _standing(low.held[-1], last.bottleneck, verdicts) if low else None
    if after is None or before is None or None in (after.saturation, before.saturation):
        return
    yield (
        f"{after.resource}: {before.saturation or 0:,.3g} {after.waiting} waiting at "
        f"{low.rate if low else 0:,} and {after.saturation or 0:,.3g} at {top.rate:,} req/s"
    )


def _count(rung: Rung) -> int:
    return len(rung.held) + len(rung.broke) + len(rung.untold)


def _figures(objective: Objective, row: Row) -> str:
    """The latencies that the objective limits; the longest one for those of which there are too few
    answers."""
    known = [name for name, _ in objective.limits if latency_ms(row, name) is not None]
    shown = known if len(known) == len(objective.limits) else [*known, "max"]
    return ", ".join(
        f"{name} {latency_ms(row, name) or 0:,.0f} ms" for name in dict.fromkeys(shown)
    )


def answers(experiment: Experiment, found: Sequence[Finding]) -> tuple[tuple[str, ...], ...]:
    """What a reader wants first: for each server its name, what it holds and what gave way; then
    what these lines do not say."""
    of = [one for one in found if one.name == NAME]
    halves = ((one.server, *one.text.partition(SEPARATOR)) for one in of)
    lines = (
        (server, held, *([f"then: {then}"] if then else [])) for server, held, _, then in halves
    )
    notes = [*_disagree(of, found), *_notes(experiment, of)] if of else []
    return (*lines, *((note,) for note in notes))


def _disagree(of: Sequence[Finding], found: Sequence[Finding]) -> Iterator[str]:
    """Servers one launch of which held what surely broke another."""
    for server in (one.server for one in of):
        each = [one for one in found if (one.name, one.server) == (SEARCH, server)]
        tops = [one.high for one in each if one.high is not None]
        if tops and max(one.low or 0 for one in each) >= min(tops):
            held = ", ".join(f"{one.value or 0:,.0f}" for one in each)
            yield f"{server}: its launches disagree. They held {held} req/s."


def _notes(experiment: Experiment, of: Sequence[Finding]) -> Iterator[str]:
    if experiment.launches < LEAST_VALUES:
        jvms = "one JVM" if experiment.launches < 2 else f"{experiment.launches} JVMs"
        more = "" if experiment.target else f"; LAUNCHES={LEAST_VALUES} gives a 95 % interval"
        rank = ", and ranks nothing" if len(of) > 1 else ""
        yield f"[from, to]: where trials of {jvms} agree, held to broke{rank}{more}."
        return
    yield "[from, to]: at least 95 %, over launches."
    alike = [
        f"{one.server} and {other.server}"
        for at, one in enumerate(of)
        for other in of[at + 1 :]
        if not _above(one, other)
    ]
    if alike:
        yield f"Not told apart: {'; '.join(alike)}."


KIND = TrialKind(
    name=NAME,
    title="the search for the highest rate that is held",
    uses=(
        *("load.servers", "load.routes", "load.arrivals", "load.duration", "load.warmup"),
        "repeat.launches",
    ),
    keys=KEYS,
    words={"OBJECTIVE": Word(f"{NAME}.objective"), "CURVE": Word(f"{NAME}.curve")},
    verb=Verb(NAME, words={target.WORD: Word(target.KEY)}),
    load_said="open load, at a rate that is searched",
    answers=answers,
    limits=lambda experiment: dict(settings_of(Capacity, experiment).objective.limits),
    read=read,
    design=design,
    findings=findings,
)
