"""What a server holds with what gave way lifted, and whether that proves that it was the limit.
Reads what a run says of the servers and of the lifted trials."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from lab.errors import LabError, RawDataError
from lab.experiments.kind import OTHER_RULES, Outcome, settings_of
from lab.experiments.order import launches
from lab.experiments.proving.answers import answer_of_ends
from lab.experiments.proving.levers import Lever
from lab.experiments.searching.answers import Launches
from lab.experiments.searching.deprived import ARMS, Deprived
from lab.experiments.searching.lifting import lever_of
from lab.experiments.searching.state import (
    Capacity,
    Search,
    are_over,
    held_by,
    lifted,
    told_and_untold,
)
from lab.experiments.searching.summary import (
    SEPARATOR,
    UNIT,
    Held,
    begun,
    each_search,
    summarise,
    unfinished,
)
from lab.judge.intervals import LEAST_VALUES
from lab.load.measure import PLAN
from lab.model import LIFTED, Finding, Row, TrialPlan
from lab.store import manifest
from lab.store.records import read_json

LIFTED_SEARCH = "lifted search"


def proof(
    outcome: Outcome, server: str, own: Sequence[Row], found: Mapping[int, Search]
) -> Iterator[Finding]:
    """What the server holds with its limit lifted, if that proves it; or why nothing was lifted."""
    experiment = outcome.experiment
    if not are_over(experiment, found):
        ended = {launch: one for launch, one in found.items() if one.rate is None}
        none = [launch for launch, one in ended.items() if one.low is None and one.has_told]
        untold = [launch for launch, one in ended.items() if not one.has_told]
        # Where the first launch holds nothing there are no others.
        all_began = len(found) == len(launches(experiment)) or min(found) in (*none, *untold)
        if (none or untold) and all_began and len(ended) == len(found):
            which = ", ".join(map(str, untold or none))
            holds = "holds cannot be told" if untold else "holds is nothing that was tried"
            text = f"not lifted: what launch {which} {holds}"
            yield Finding(LIFTED, server, 0, None, UNIT, None, None, text)
        return
    with_it = begun(lifted(experiment, own, found))
    change = _change(outcome, server, found)
    if not with_it:
        yet = OTHER_RULES if outcome.complete else "not lifted yet"
        text = f"not lifted: {change}" if isinstance(change, str) else yet
        if not isinstance(change, str) and change.takes:
            rate, *_ = held_by(found)
            less = [row for row in own if row.arm in ARMS]
            objective = settings_of(Capacity, experiment).objective
            deprived = Deprived.of(objective, round(rate), less)
            text = OTHER_RULES if outcome.complete and deprived.next else deprived.text
        yield Finding(LIFTED, server, 0, None, UNIT, None, None, text)
        return
    text, value = summarise(with_it, "", outcome.verdicts, complete=outcome.complete)
    text, *then = text.split(SEPARATOR, 1)
    whole = f"lifted to {_condition(outcome, own)}: {text}"
    _, before = summarise(found, "", outcome.verdicts, complete=outcome.complete)
    enough = all(_are_enough(of.values()) for of in (found, with_it))
    foreign = experiment.target is not None
    besides, keeps = ("", "") if isinstance(change, str) else (_besides(change), change.keeps)
    answer = _answer(before, value, enough=enough, foreign=foreign, besides=besides, keeps=keeps)
    every = with_it.values()
    if all(one.rate is None for one in every):
        # Where the first launch holds nothing there are no others.
        left = len(with_it) < experiment.launches and next(iter(every)).low is not None
        more = f", {unfinished(complete=outcome.complete)}"
        whole += more if left else f", {answer}" if answer else ""
    whole += "".join(f"{SEPARATOR}{one}" for one in then)
    yield Finding(LIFTED, server, 0, value[0], UNIT, *value[1:], whole)
    capacity = settings_of(Capacity, experiment)
    yield from each_search(capacity, LIFTED_SEARCH, server, with_it, complete=outcome.complete)


def _change(outcome: Outcome, server: str, found: Mapping[int, Search]) -> Lever | str:
    try:
        record = manifest.read(outcome.run_dir)
    except LabError as failure:
        # As where only a run's rows were published.
        return str(failure)
    cores = record.limits.get("generator_cores")
    known = cores if isinstance(cores, int) else 1
    return lever_of(outcome.experiment, found, record.servers[server], known)


def _condition(outcome: Outcome, own: Sequence[Row]) -> str:
    """What the lifted trials really had, for people."""
    for row in own:
        if row.arm == LIFTED:
            # A plan that cannot be read leaves it to the next one.
            with suppress(RawDataError):
                return read_json(outcome.raw(row) / PLAN, TrialPlan).condition.text
    return "what is not recorded"


def _are_enough(of: Iterable[Search]) -> bool:
    told, untold = told_and_untold(of)
    return Launches(len(told), untold).are_enough


def _besides(change: Lever) -> str:
    """What else the lift of a limit gives, which may be all that raised the rate."""
    if change.frees:
        return f"the CPU time of {change.frees} went with it"
    if change.saves_ms:
        return f"{change.saves_ms} ms less on the path of each request are room for more"
    return ""


def _answer(
    before: Held, after: Held, *, enough: bool, foreign: bool, besides: str, keeps: str
) -> str:
    """Whether what was lifted was the limit; empty where nothing is held with it. Launches that are
    not `enough` for an interval give the ratio only. `foreign`: of a service that is not the
    lab's. `besides`: what else the lift gave. `keeps`: the threads that it left as they were."""
    rate, low, high = before
    rate_after, low_after, high_after = after
    if not rate or rate_after is None or low == 0:
        return ""
    ratio = f"×{rate_after / rate:.2f}"
    if low is None or low_after is None:
        which = "without" if low is None else "with it"
        return f"{ratio} (inconclusive: how much it holds {which} is open below)"
    if high is None:
        return f"{ratio} (inconclusive: how much it holds without is open above)"
    if not enough:
        return f"{ratio} (no proof without an interval: LAUNCHES={LEAST_VALUES})"
    answer, _ = answer_of_ends(low_after / high, (high_after or math.inf) / low)
    if answer == "confirmed" and besides:
        return f"{ratio} (inconclusive: {besides})"
    if answer == "withdrawn" and keeps:
        return f"{ratio} (inconclusive: its JVM goes on with {keeps})"
    no_help = "not confirmed: more of it is no help"
    if foreign:
        no_help += ", or the service does not take it"
    sure = {"confirmed": "confirmed", "withdrawn": no_help}
    return f"{ratio} ({sure.get(answer, answer)})"
