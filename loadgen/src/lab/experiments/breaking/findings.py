"""Where each server breaks, and what gave way there, over launches; and what comes first of it."""

from __future__ import annotations

from collections.abc import Sequence

from lab.experiments.breaking.search import TRIES, UNTOLD, Search, Stress, rows_of, search
from lab.experiments.kind import Outcome, settings_of
from lab.experiments.order import launches
from lab.experiments.reading import rules
from lab.experiments.searching.state import named_most
from lab.experiments.searching.summary import SEPARATOR, Verdicts, unfinished, what_gave_way
from lab.judge.intervals import LEAST_VALUES, median_of
from lab.judge.ruler import in_units
from lab.judge.slo import judged_ms
from lab.model import UNKNOWN, Experiment, Finding, Row, goodput

NAME = "breaking point"
MEDIAN = "breaking point, median of launches"
UNIT = "connections"
# More than any number of connections.
UNBOUNDED = 1e12


def findings(outcome: Outcome) -> tuple[Finding, ...]:
    """The breaking point of each server and launch, which is the smallest load that was not held,
    and what gave way there; and the median over launches. `low` of a finding is the largest load
    that was held (0: none), and `high` the smallest that was not, as far as the search has ended.
    Where there is no breaking point the text says why, and which load was held."""
    stress = settings_of(Stress, outcome.experiment)
    found: list[Finding] = []
    for server in outcome.experiment.servers:
        points, held, broke = [], list[Row](), list[Row]()
        for launch in launches(outcome.experiment):
            own = rows_of(outcome.rows, server, launch)
            if not own:
                continue
            state = search(stress, own)
            found.append(_finding(stress, state, server, launch, outcome))
            points.append(found[-1])
            held += [state.held] if state.held else []
            broke += state.broke
        if len(points) > 1:
            found.append(_median(server, points, broke, outcome.verdicts))
        found += in_units(server, outcome.rows, held, broke, outcome.cpus)
    return tuple(found)


def _finding(stress: Stress, state: Search, server: str, launch: int, outcome: Outcome) -> Finding:
    at = f" at {stress.objective.text}"
    held, broken, stuck = f"no load was held{at}", "", state.stuck
    # A load above a broken one may stay unknown: the breaking point is below it.
    if stuck and state.broken and stuck.concurrency > state.broken.concurrency:
        stuck = None
    if state.held is not None:
        # One that was slowed by its warm-up is not valid, and was faster than that.
        p95_ms, at_most = judged_ms(state.held, "p95"), "" if state.held.valid else "at most "
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
    if state.load is not None:
        then = f", {state.load} connections are next"
        text += f"; {unfinished(then, complete=outcome.complete)}"
    elif stuck is None and state.broken is not None:
        value = float(state.broken.concurrency)
        text += f"{SEPARATOR}{_then(state.broke, f'{value:,.0f}', outcome.verdicts)}"
    elif stuck is None:
        text += f", the most that was tried ({stress.most})"
    low = high = None
    if state.load is None:
        low = float(state.held.concurrency if state.held else 0)
        high = float(state.broken.concurrency) if state.broken else None
    return Finding(NAME, server, launch, value, UNIT, low, high, text)


def _then(broke: Sequence[Row], at: str, verdicts: Verdicts) -> str:
    """What most of the trials that broke name; valid ones of these have the figures."""
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
    loads = sorted({row.concurrency for row in broke})
    at = " to ".join(f"{load:,}" for load in dict.fromkeys((*loads[:1], *loads[-1:])))
    then = f"{SEPARATOR}{_then(broke, at, verdicts)}" if broke else ""
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
