"""The search for a breaking point: ramp until a load is not held, then bisect.

Every decision is made from rows alone, so the same rows lead to the same next load.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lab.errors import LabError
from lab.experiments.kind import COMMON, ToMeasure, TrialKind, settings_of
from lab.experiments.kind import Outcome as OfRun
from lab.experiments.objective import Objective, Outcome, by_others, gave_way, judged
from lab.experiments.order import (
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
from lab.experiments.reading import Asked, Key, read_load, rules, target
from lab.experiments.searching.state import named_most
from lab.experiments.searching.told import SEPARATOR, Verdicts, what_gave_way
from lab.judge.intervals import LEAST_VALUES, median_of
from lab.load.engines.base import MAX_THREADS
from lab.model import UNKNOWN, Experiment, Finding, Row, TrialPlan, goodput, p95_of

NAME = "breaking point"
MEDIAN = "breaking point, median of launches"
UNIT = "connections"
# So many trials of a load that do not hold it break it. One that holds it is enough: a load that a
# server holds every other time counts as held in three of four cases, so near its limit the search
# errs upwards. The finding says so where the largest load that was held was not held at once.
TRIES = 2
# So many trials of a load that say nothing of the server leave it unknown. Where the CPUs are full
# every fifth trial is such a one (22 of 114 of the published capacity-models).
UNTOLD = 4
# More than any number of connections.
UNBOUNDED = 1e12
_CONNECTIONS = rules.number(1, rules.MAX_CONNECTIONS)
KEYS = {
    "first": Key(_CONNECTIONS),
    "step": Key(_CONNECTIONS),
    "most": Key(_CONNECTIONS),
    "resolution": Key(_CONNECTIONS),
    "p95_ms": Key(rules.decimal(0.001, 1e6)),
    "error_share": Key(rules.decimal(0, 0.999)),
    "fall": Key(rules.decimal(0.001, 0.999)),
}


@dataclass(frozen=True, slots=True)
class Stress:
    """What to search; see `search` for the steps, all in connections. A load is broken where the
    objective fails, or where throughput falls below the best so far by more than `fall` (a share).
    """

    objective: Objective
    first: int
    step: int
    most: int
    resolution: int
    fall: float

    def __post_init__(self) -> None:
        if not 1 <= self.first <= self.most or self.step < 1 or self.resolution < 1:
            raise ValueError("1 <= first <= most, and step and resolution start at 1")
        if not 0 < self.fall < 1:
            raise ValueError("fall is a share between 0 and 1")

    @property
    def p95_ms(self) -> float:
        """The p95 that the objective allows: the corrected one in an open load, the raw one in a
        closed load."""
        return self.objective.longest_s * 1000


def read(asked: Asked) -> ToMeasure:
    """The search that a file describes, up to what this machine holds. Raises WordError."""
    load = read_load(
        asked, ("open",), ("routes", "modes", "engines"), with_connections=False, searched=True
    )
    given = asked.settings.table("stress", KEYS)
    objective = Objective(p95_ms=given.pop("p95_ms"), error_share=given.pop("error_share"))
    first, most, notes = given["first"], given["most"], load.notes
    bound = asked.settings.get("stress.most")
    if bound is not None and first > min(most, load.most):
        raise bound.refuse(
            f"{most} is less than stress.first={first}"
            if first > most
            else f"{most}: this machine does not even hold stress.first={first}, only {load.held}"
        )
    if most > load.most:
        notes = (*notes, f"up to {load.most} of {most} connections: this machine holds {load.held}")
    stress = Stress(objective, **{**given, "most": min(most, load.most)})
    return load.experiment("stress", stress, concurrencies=(first,)), notes


@dataclass(frozen=True, slots=True)
class Search:
    """What the rows of one server and launch say.

    `load` is the next one to try (None: the search is over), and `missed` is how many trials did
    not hold it so far. `held` is the largest load that was held, and `after` why a trial before did
    not hold it (empty: none did not). `broke` are the trials that did not hold the smallest load
    that was not held, and `why` is the reason. `stuck` is the smallest load of which UNTOLD rows
    tell nothing, and `untold` why the last of them does not. `strayed` names the first row that is
    not the trial that was next; nothing after it counts."""

    load: int | None
    held: Row | None = None
    broke: tuple[Row, ...] = ()
    why: str = ""
    stuck: Row | None = None
    untold: str = ""
    strayed: str = ""
    missed: int = 0
    after: str = ""

    @property
    def broken(self) -> Row | None:
        """A trial of the smallest load that was not held."""
        return self.broke[-1] if self.broke else None


def search(stress: Stress, rows: Sequence[Row]) -> Search:
    """Where the search stands after these rows of one server and launch, in the order of time.

    It tries each load until one trial held it, TRIES did not, or UNTOLD say nothing of the server
    (`outcome_of`). The loads are first,
    first + step, … up to most while they are held. Then it tries the middle between the largest
    held load and the smallest load that is broken or cannot be told, until these differ by at most
    `resolution`. The middle is a number of connections that any number of an engine's threads can
    share, if there is one. The search ends at the first row that is not its own: another version of
    the lab may judge a trial otherwise and ask for another next load. After a trial was `replaced`
    it leaves such rows out.
    """
    load: int | None = stress.first
    held: Row | None = None
    broke: tuple[Row, ...] = ()
    stuck: Row | None = None
    why = strayed = after = untold = ""
    valid: list[Row] = []
    misses: list[tuple[Row, str]] = []
    unknown = 0
    for row in rows:
        if row.concurrency != load:
            if replaced(rows):
                continue
            wanted = "it had ended" if load is None else f"{load} connections were next"
            strayed = f"{row.trial} is not of this search: {wanted}"
            break
        outcome, said = outcome_of(stress, row, valid, after_miss=bool(misses))
        if row.valid:
            valid.append(row)
        if outcome == "broke":
            misses.append((row, said))
        elif outcome == "held":
            held, after = row, "; ".join(dict.fromkeys(one for _, one in misses))
        else:
            unknown += 1
        if len(misses) == TRIES:
            broke = tuple(one for one, _ in misses)
            why = f"{'; '.join(dict.fromkeys(one for _, one in misses))}, in {TRIES} trials"
        elif unknown == UNTOLD:
            stuck, untold = row, said
        elif held is not row:
            continue
        misses, unknown = [], 0
        load = _next(stress, held, _top(*broke, stuck))
    return Search(load, held, broke, why, stuck, untold, strayed, len(misses), after)


def outcome_of(
    stress: Stress, row: Row, before: Sequence[Row], *, after_miss: bool
) -> tuple[Outcome, str]:
    """Whether a trial held its load, and why not, as the objective judges it (`judged`). Besides,
    a valid one must not answer less than smaller loads did, the valid trials `before` of the same
    server and launch. `after_miss`: as of `gave_way`."""
    # A closed load has no latency from when a request was due.
    p95_ms = p95_of(row)
    felt = replace(row, p95_ms=p95_ms)
    outcome, why = judged(stress.objective, felt, after_break=after_miss)
    if row.mode == "closed" and not row.valid and outcome != "untold":
        # No backlog grows in it, so within the objective it tells nothing: neither that it broke,
        # nor, slowed by its warm-up, that it answered as much as a smaller load.
        late = (p95_ms or 0) > stress.p95_ms or gave_way(row, after_miss=after_miss)
        if outcome == "held" or not late:
            return "untold", row.invalid_reasons
    if not row.valid or outcome == "untold":
        return outcome, why
    rps = goodput(row) or 0.0
    smaller = [goodput(one) or 0.0 for one in before if one.concurrency < row.concurrency]
    if smaller and rps < max(smaller) * (1 - stress.fall):
        fell = (
            f"{rps:.0f} req/s, more than {stress.fall:.0%} below the {max(smaller):.0f} of a "
            "smaller load"
        )
        if other := by_others(row):
            return "untold", f"{other} ({fell})"
        return "broke", " and ".join(filter(None, (why, fell)))
    return outcome, why


def _top(*loads: Row | None) -> int | None:
    """The smallest of the loads that limit the search from above."""
    return min((row.concurrency for row in loads if row is not None), default=None)


def _next(stress: Stress, held: Row | None, top: int | None) -> int | None:
    if top is None:
        at = held.concurrency if held else 0
        return None if at >= stress.most else min(at + stress.step, stress.most)
    if held is None or top - held.concurrency <= stress.resolution:
        return None
    return _middle(held.concurrency, top)


def _middle(low: int, high: int) -> int:
    middle = (low + high) // 2
    even = middle - middle % MAX_THREADS
    return even if even > low else middle


def most_left(stress: Stress, state: Search) -> int:
    """The most trials that a search can have left, without invalid ones: the rest of the ramp, and
    the halving after it, each load TRIES times."""
    if state.load is None:
        return 0
    low, top = state.held.concurrency if state.held else None, _top(state.broken, state.stuck)
    ramp = 0
    if top is None:
        # The longest way is that the last step of the ramp is the one that breaks.
        ramp, top = 1 + -(-(stress.most - state.load) // stress.step), stress.most
        if ramp > 1:
            low = top - stress.step
    loads = ramp + (0 if low is None else _halvings(stress, low, top))
    return TRIES * loads - state.missed


def _halvings(stress: Stress, low: int, top: int) -> int:
    if top - low <= stress.resolution:
        return 0
    middle = _middle(low, top)
    return 1 + max(_halvings(stress, low, middle), _halvings(stress, middle, top))


@dataclass(frozen=True, slots=True)
class Ramps(Design):
    """One search per launch and server. Within a launch the server with the fewest rows is next, so
    that a drift of the machine falls on all servers alike."""

    planner: Planner

    def left(self, done: Sequence[Row]) -> int:
        """See Design; the longest way of every search that has not ended."""
        experiment, done = self.planner.experiment, counted(done)
        stress = settings_of(Stress, experiment)
        return sum(
            most_left(stress, search(stress, _rows_of(done, server, launch)))
            for launch in launches(experiment)
            for server in experiment.servers
        )

    def to_record(self, done: Sequence[Row]) -> Iterator[str]:
        """See Design: what each server held in the last launch."""
        experiment, done = self.planner.experiment, counted(done)
        for server in experiment.servers:
            rows = _rows_of(done, server, launches(experiment)[-1])
            state = search(settings_of(Stress, experiment), rows)
            if state.load is None and state.held is not None:
                yield state.held.trial

    def next(self, done: Sequence[Row]) -> TrialPlan | None:
        """The next load of the server that had the fewest trials; first what was damaged. Raises
        LabError for rows that are not of its search."""
        return after_damaged(done, self._next)

    def _next(self, done: Sequence[Row]) -> TrialPlan | None:
        experiment = self.planner.experiment
        stress = settings_of(Stress, experiment)
        for launch in launches(experiment):
            open_searches = []
            for server in turned(experiment.servers, launch):
                rows = _rows_of(done, server, launch)
                state = search(stress, rows)
                if state.strayed:
                    raise LabError(state.strayed)
                if state.load is not None:
                    open_searches.append((len(rows), server, state.load))
            if open_searches:
                _, server, load = min(open_searches, key=lambda one: one[0])
                mode, rate = experiment.modes[0], None
                if mode == "open":
                    # Not RATE=auto, whose connections are all busy long before the objective fails.
                    rate = stress.objective.rate(load)
                engine = self.planner.engine_for(mode)
                plan = self.planner.plan(server, engine, mode, load, rate, launch=launch)
                own = [row for row in done if (row.server, row.concurrency) == (server, load)]
                return self.planner.named(lengthened(plan, own), next_number(done), digits=3)
        return None


def design(planner: Planner) -> Design:
    """The searches of the experiment. Raises WordError where an engine cannot do the first
    trial."""
    ramps = Ramps(planner)
    ramps.next([])
    return ramps


def findings(outcome: OfRun) -> tuple[Finding, ...]:
    """The breaking point of each server and launch, which is the smallest load that was not held,
    and what gave way there; and the median over launches. `low` of a finding is the largest load
    that was held (0: none), and `high` the smallest that was not, as far as the search has ended.
    Where there is no breaking point the text says why, and which load was held."""
    stress = settings_of(Stress, outcome.experiment)
    found: list[Finding] = []
    for server in outcome.experiment.servers:
        points, broke = [], list[Row]()
        for launch in launches(outcome.experiment):
            own = _rows_of(counted(outcome.rows), server, launch)
            if not own:
                continue
            state = search(stress, own)
            found.append(_finding(stress, state, server, launch, outcome.verdicts))
            points.append(found[-1])
            broke += state.broke
        if len(points) > 1:
            found.append(_median(server, points, broke, outcome.verdicts))
    return tuple(found)


def _finding(
    stress: Stress, state: Search, server: str, launch: int, verdicts: Verdicts
) -> Finding:
    at = f" at {stress.objective.text}"
    held, broken, stuck = f"no load was held{at}", "", state.stuck
    # A load above a broken one may stay unknown: the breaking point is below it.
    if stuck and state.broken and stuck.concurrency > state.broken.concurrency:
        stuck = None
    if state.held is not None:
        # One that was slowed by its warm-up is not valid, and was faster than that.
        p95_ms, at_most = p95_of(state.held), "" if state.held.valid else "at most "
        held = (
            f"held {'at least ' if stuck else ''}{state.held.concurrency} connections{at} "
            f"({goodput(state.held) or 0:.0f} req/s"
            + ("" if p95_ms is None else f", p95 {at_most}{p95_ms:.0f} ms")
            + ")"
            + (f" in one of {TRIES} trials (the other: {state.after})" if state.after else "")
        )
    if state.broken is not None:
        offered = state.broken.offered_rps
        of = f" ({offered:.0f} req/s offered)" if offered else ""
        broken = (
            f", {'not' if state.held else 'not even'} {state.broken.concurrency}{of}: {state.why}"
        )
    value: float | None = None
    text = f"{held}{broken}"
    if stuck is not None:
        text += (
            f"; whether it holds {stuck.concurrency} this machine cannot tell, for {UNTOLD} "
            f"trials do not say, the last one: {state.untold}"
        )
    if state.strayed:
        text += f"; {STRAYED}: {state.strayed}"
    elif state.load is not None:
        text += f"; not finished, {state.load} connections are next"
    elif stuck is None and state.broken is not None:
        value = float(state.broken.concurrency)
        text += f"{SEPARATOR}{_then(state.broke, f'{value:,.0f}', verdicts)}"
    elif stuck is None:
        text += f", the most that was tried ({stress.most})"
    low = high = None
    if state.load is None and not state.strayed:
        low = float(state.held.concurrency if state.held else 0)
        high = float(state.broken.concurrency) if state.broken else None
    return Finding(NAME, server, launch, value, UNIT, low, high, text)


def _then(broke: Sequence[Row], at: str, verdicts: Verdicts) -> str:
    """What gave way: what most of the trials that broke name, of which valid ones have the
    figures."""
    its = sorted(named_most(broke), key=lambda row: row.valid)
    return what_gave_way(its, broke, at, verdicts) if 2 * len(its) > len(broke) else UNKNOWN


def _median(
    server: str, each: Sequence[Finding], broke: Sequence[Row], verdicts: Verdicts
) -> Finding:
    """Over launches that have ended. One without a breaking point lies between what it held and
    what it did not, if anything: left out, it would pull the median down."""
    ended = [one for one in each if one.low is not None]
    without = sum(one.value is None for one in ended)
    also = f"; {len(each) - len(ended)} more have not ended" if len(ended) < len(each) else ""
    tops = [UNBOUNDED if one.high is None else one.high for one in ended]
    of_tops = median_of(tops) if tops else None
    if of_tops is None or of_tops.median > rules.MAX_CONNECTIONS:
        text = f"no median: {without} of {len(ended)} launches without a breaking point{also}"
        return Finding(MEDIAN, server, 0, None, UNIT, None, None, text)
    value, lows = of_tops.median, median_of([one.low or 0.0 for one in ended]).interval
    if without:
        also = f"; {without} of them lie between what was held and what was not{also}"
    spread, low, high = "no interval", None, None
    if lows is not None and of_tops.interval is not None:
        # The truth lies above what was held, and at or below what was not.
        low, high = lows.low, of_tops.interval.high
        spread = f"95 % interval {low:.0f} to {high:.0f}"
        if high > rules.MAX_CONNECTIONS:
            spread, high = f"95 % interval from {low:.0f} on", None
    over = f"{len(ended)} launch{'es' if len(ended) > 1 else ''}"
    then = f"{SEPARATOR}{_then(broke, f'{value:,.0f}', verdicts)}" if broke else ""
    text = f"{value:.0f} connections over {over}, {spread}{also}{then}"
    return Finding(MEDIAN, server, 0, value, UNIT, low, high, text)


def answers(_: Experiment, found: Sequence[Finding]) -> tuple[tuple[str, ...], ...]:
    """What a reader wants first: where each server breaks, what gave way there, and what these
    lines do not say. The median of a server's launches, or else its first launch."""
    lines, ordered = [], True
    for server in dict.fromkeys(one.server for one in found if one.name in (NAME, MEDIAN)):
        its = [one for one in found if one.server == server and one.name in (NAME, MEDIAN)]
        one = next((one for one in its if one.name == MEDIAN), its[0])
        ordered = ordered and one.name == MEDIAN and None not in (one.low, one.high)
        text, *then = one.text.split(SEPARATOR, 1)
        lines.append((server, text, *(f"then: {it}" for it in then)))
    if not lines:
        return ()
    note = "One trial that holds a load decides, so near the limit the search errs upwards."
    if not ordered and len(lines) > 1:
        note += f" This orders no servers; LAUNCHES={LEAST_VALUES} gives intervals."
    return (*lines, (note,))


def _rows_of(rows: Sequence[Row], server: str, launch: int) -> list[Row]:
    return [row for row in rows if (row.server, row.launch) == (server, launch)]


KIND = TrialKind(
    name="stress",
    title="the search for a breaking point",
    uses=(*COMMON, "load.modes", "load.arrivals", "load.duration"),
    exact="a search for what holds must not be decided by bursts of wrk2",
    keys=KEYS,
    words=target.WORDS,
    recorded_load="the largest load that each server's last JVM held",
    read=read,
    design=design,
    findings=findings,
    answers=answers,
)
