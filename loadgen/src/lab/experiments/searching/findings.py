"""What searches for a capacity found, and the lines that a reader wants first. Pure but for what a
run says of the servers and trials that were lifted."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from lab.errors import RawDataError
from lab.experiments.kind import Outcome, settings_of
from lab.experiments.objective import Objective, judged, latency_ms
from lab.experiments.order import STRAYED, counted, launches
from lab.experiments.proving.answers import answer_of_ends
from lab.experiments.searching.beside import NAME as BESIDE
from lab.experiments.searching.beside import beside as beside_search
from lab.experiments.searching.deprived import ARMS, Deprived
from lab.experiments.searching.knee import knee
from lab.experiments.searching.lifting import lever_of
from lab.experiments.searching.state import (
    LIFTED,
    Capacity,
    Rung,
    Search,
    are_over,
    capacity_of,
    gave_way,
    held_by,
    lifted,
    searches,
    under_way,
)
from lab.judge.intervals import LEAST_VALUES
from lab.judge.time_split import (
    SPENT,
    UNEXPLAINED_SHARE,
    allowed_ms,
    growth,
    is_explained,
    mean_split,
)
from lab.load.measure import PLAN
from lab.model import (
    EXTRAPOLATED,
    KNEE,
    STRAIGHT,
    STRONG,
    THROUGH,
    UNKNOWN,
    CpuSplit,
    Experiment,
    Finding,
    Row,
    Standing,
    TrialPlan,
    Verdict,
    three,
)
from lab.store import manifest
from lab.store.records import read_json

NAME = "capacity"
SEARCH = "search"
GREW = "what grew"
WENT = "where the time goes"
COST = "a million requests"
LIFTED_SEARCH = "lifted search"
UNIT = "req/s"
# The mean time must grow by this share before the lab says where.
LEAST_GREW = 0.05
# Windows whose lengths differ by no more than this factor are about as long.
ALIKE = 1.5
# A smaller part of the mean time rounds to nothing.
LEAST_TOLD_MS = 0.05
# What the parts of the lab share.
SHARED = "host CPU"
SEPARATOR = "; then: "
NOT_FINISHED = "not finished"
Verdicts = Mapping[str, Verdict]
# What a capacity is: the highest rate that more than half of the launches held, and its interval.
Held = tuple[float | None, float | None, float | None]


def findings(outcome: Outcome) -> tuple[Finding, ...]:
    """The capacity of each server first, then how each of its launches was searched, what grew,
    where the time goes, and what came of it with what gave way lifted. Raises LabError without a
    manifest where that is not lifted."""
    experiment, rows = outcome.experiment, counted(outcome.rows)
    capacity, verdicts = settings_of(Capacity, experiment), outcome.verdicts
    answers: list[Finding] = []
    details: list[Finding] = []
    beside: list[Finding] = []
    for server in experiment.servers:
        own = [row for row in rows if row.server == server]
        found = _begun(searches(experiment, own))
        if not found:
            continue
        text, value = _said(found, f" at {capacity.objective.text}", verdicts)
        answers.append(Finding(NAME, server, 0, value[0], UNIT, *value[1:], text))
        details += _details(capacity, SEARCH, server, found, verdicts)
        beside += _grown(server, list(found.values()))
        beside += _went(server, list(found.values()), own, capacity.objective)
        curve = _curve(capacity, own, found)
        beside += _knee(capacity, server, curve, found)
        beside += _after(capacity.objective, server, curve, own, found)
        beside += _cost(server, list(found.values()))
        if capacity.prove:
            beside += _lifted(outcome, server, own, found)
    ranked = _in_order(answers, _launches(details))
    return (*ranked, *details, *beside)


def _launches(details: Sequence[Finding]) -> Counter[str]:
    """How many launches of each server told what it holds: fewer than the experiment has where the
    run was ended before, or nobody can tell of a launch."""
    return Counter(
        one.server
        for one in details
        if one.name == SEARCH and one.value is not None and NOT_FINISHED not in one.text
    )


def _begun(of: Mapping[int, Search]) -> dict[int, Search]:
    return {launch: one for launch, one in of.items() if one.rungs}


def _in_order(answers: Sequence[Finding], launches: Mapping[str, int]) -> Iterator[Finding]:
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


def _above(one: Finding, other: Finding, launches: Mapping[str, int]) -> bool:
    """Whether a server surely holds more than another one: both have an interval of 95 %."""
    sure = min(launches[one.server], launches[other.server]) >= LEAST_VALUES
    return sure and one.low is not None and other.high is not None and one.low > other.high


def _said(found: Mapping[int, Search], at: str, verdicts: Verdicts) -> tuple[str, Held]:
    """What a server holds, and what gave way, in a line; and the capacity with its interval."""
    begun = list(found.values())
    told = [one for one in begun if one.has_told]
    strayed = [one.strayed for one in begun if one.strayed]
    then = _then(begun, verdicts)
    value: Held = None, None, None
    if strayed:
        text = f"{STRAYED}: {strayed[0]}"
    elif not any(one.low for one in told):
        broken = begun[0].broken
        text = f"does not hold {broken.rate if broken else 0:,} req/s{at}"
        if begun[0].rate is not None:
            text = f"{NOT_FINISHED}, {begun[0].rate:,} req/s are next"
        elif not broken:
            text, then = then, ""
    else:
        rate, low, high = capacity_of(told)
        # What another launch holds that broke there, nobody can tell, or not yet.
        less = any(one.broken and one.broken.rate <= rate for one in begun if one not in told)
        value = rate, None if less else low, high
        text = f"holds {rate:,.0f} req/s{at} [{'not to be told' if less else f'{low:,.0f}'}, "
        if high is not None:
            text += f"{high:,.0f}]"
        elif any(one.broken for one in told):
            text += "not to be told]"
        else:
            text = f"holds at least {rate:,.0f} req/s{at}"
        if any(one.rate is not None for one in begun):
            text += f", {NOT_FINISHED}"
        if len(told) < len(begun):
            text += f", in {len(told)} of {len(begun)} launches"
    return f"{text}{SEPARATOR}{then}" if then else text, value


def _then(of: Sequence[Search], verdicts: Verdicts) -> str:
    """What gave way first, with its figures, the rate, and how many of the trials that broke there
    name it. Where no rate broke: why nobody can tell of the next."""
    first = gave_way(of)
    if first is None:
        unknown = [one.top for one in of if one.top and one.top.tried.is_unknown]
        return f"cannot be told: {unknown[0].untold[-1][1]}" if unknown else ""
    named, broke = len(first.rows), len(first.broke)
    if first.resource is None:
        few = f" ({named} of {broke} trials name {first.rows[0].bottleneck})" if named else ""
        return f"{UNKNOWN}{few}"
    # A trial that was ended as lost tells of a part of its window only.
    rows = [row for row in first.rows if not row.ended_as_lost] or first.rows
    whole = sum(not row.ended_as_lost for row in first.broke)
    strong = 2 * sum(row.strength == STRONG for row in rows) > whole
    last = verdicts.get(rows[-1].trial)
    full = ", ".join(filter(None, (first.resource, last.figures if last else "")))
    if first.resource == SHARED:
        full += _whose(rows[-1])
    by = f" by {named}{'' if named == broke else f' of {broke}'} trial{'s' if broke > 1 else ''}"
    return f"{full} ({'strong' if strong else 'weak'}, at {first.rate:,}{by})"


def _whose(row: Row) -> str:
    """Whose the CPU time is, where that of each part is known: what the lab itself takes is no
    fault of the server."""
    server, proxy, whole_us = row.cpu_server_us, row.cpu_proxy_us, _whole_us(row)
    if not server or not proxy or not whole_us:
        return ""
    return f": of the lab's CPU time server {server / whole_us:.0%}, proxy {proxy / whole_us:.0%}"


def _details(
    capacity: Capacity, name: str, server: str, found: Mapping[int, Search], verdicts: Verdicts
) -> Iterator[Finding]:
    """How each search ended: with the figures of the highest rate that was held, why the lowest
    above it was not, and what waited more there."""
    for launch, of in found.items():
        low, top, broken = of.low, of.top, of.broken
        parts = ["no rate was held"]
        if low is not None:
            figures = _figures(capacity.objective, _shown(low.held))
            parts = [f"held {low.rate:,} req/s ({figures}; {len(low.held)} of {low.trials} trials)"]
        if broken is not None:
            whys = "; ".join(dict.fromkeys(why for _, why in broken.broke))
            count = f"{len(broken.broke)} of {broken.trials} trials"
            parts.append(f"broke {broken.rate:,} ({count}): {whys}")
            parts += _queue(low, broken, verdicts)
        if top is not None and top is not broken and top.untold:
            parts.append(f"whether it holds {top.rate:,} cannot be told: {top.untold[-1][1]}")
        elif broken is None and low is not None and low.rate >= capacity.most:
            parts.append("the most that was tried")
        if of.strayed:
            parts.append(f"{STRAYED}: {of.strayed}")
        elif of.rate is not None:
            parts.append(f"{NOT_FINISHED}, {of.rate:,} req/s are next")
        # What broke and never held holds nothing. Of what nobody can tell there is no value.
        told = of.has_told
        value, ends = low.rate if low else 0, of.interval
        known = [None if one is None or not told else float(one) for one in (value, *ends)]
        text = ("" if name == SEARCH else f"{LIFTED}: ") + ", ".join(parts)
        yield Finding(name, server, launch, known[0], UNIT, known[1], known[2], text)


def _queue(low: Rung | None, top: Rung, verdicts: Verdicts) -> Iterator[str]:
    """How much waited for the resource that gave way, before and after. Of windows about as long:
    some of it is a sum over the window, and what is overloaded waits longer with each second."""
    last, held = top.broke[-1][0], _shown(low.held) if low else None
    if low is None or held is None or not _is_about_as_long(held, [last]):
        return
    after = _standing(last, last.bottleneck, verdicts)
    before = _standing(held, last.bottleneck, verdicts)
    if after is None or before is None or None in (after.saturation, before.saturation):
        return
    # A share or a time is named by itself; others are counts of who waits.
    is_count = not after.waiting.startswith(("s ", "of "))
    yield (
        f"{after.resource}: {three(before.saturation or 0)} {after.waiting}"
        f"{' waiting' if is_count else ''} at {low.rate:,} and {three(after.saturation or 0)} at "
        f"{top.rate:,} req/s"
    )


def _standing(row: Row, name: str | None, verdicts: Verdicts) -> Standing | None:
    ranked = verdicts[row.trial].ranked if row.trial in verdicts else ()
    return next((one for one in ranked if one.resource == name), None)


def _shown(held: Sequence[Row]) -> Row:
    """The last of the trials that held a rate: the last valid one, if there is one."""
    return next((row for row in reversed(held) if row.valid), held[-1])


def _figures(objective: Objective, row: Row) -> str:
    """The latencies that the objective limits; the longest one for those of which there are too few
    answers. Those of an invalid trial are too high, if anything, and said to be."""
    known = [name for name, _ in objective.limits if latency_ms(row, name) is not None]
    shown = known if len(known) == len(objective.limits) else [*known, "max"]
    most = "" if row.valid else "at most "
    return ", ".join(
        f"{name} {most}{latency_ms(row, name) or 0:,.0f} ms" for name in dict.fromkeys(shown)
    )


def _grown(server: str, of: Sequence[Search]) -> Iterator[Finding]:
    """Where the mean time went by which a request took longer at the lowest rate that broke than at
    the highest that was held, of the launches that agree on these two; of several such pairs the
    one nearest to what is held. Of valid trials with windows about as long, as above the capacity a
    queue grows with the window. Where none is valid at the rate that broke, the next rate above it
    that has one tells. Means add up; percentiles do not."""
    ends = [(one.low.rate, one.broken.rate) for one in of if one.low and one.broken]
    if not ends:
        return
    held, counts = capacity_of([one for one in of if one.has_told])[0], Counter(ends)
    low, top = max(counts, key=lambda pair: (counts[pair], -abs(pair[0] - held)))
    agree = counts[low, top]
    before, above = list[Row](), dict[int, list[Row]]()
    for one in of:
        if one.low and one.broken and (one.low.rate, one.broken.rate) == (low, top):
            before += one.low.held
            for rung in one.rungs:
                valid = [row for row, _ in rung.broke if row.valid]
                if valid and rung.rate >= top:
                    above.setdefault(rung.rate, []).extend(valid)
    top = min(above, default=top)
    after = above.get(top, [])
    was = mean_split(row for row in before if row.valid and _is_about_as_long(row, after))
    grown = growth(was, mean_split(after), LEAST_GREW * was.whole_ms)
    if grown is not None:
        text = (
            f"of the {grown.grown_ms:,.0f} ms that the mean grew from {low:,} to {top:,} req/s, "
            f"{grown.share:.0%} is {grown.most}"
        )
        if grown.most != SPENT[-1] and abs(grown.unexplained) > UNEXPLAINED_SHARE:
            text += f", {grown.unexplained:.0%} {SPENT[-1]}"
        if agree < len(of):
            text += f" (in {agree} of {len(of)} launches)"
        yield Finding(GREW, server, 0, grown.grown_ms, "ms", None, None, text)


def _is_about_as_long(row: Row, others: Sequence[Row]) -> bool:
    lengths = [one.duration_s or 0 for one in others]
    return any(1 / ALIKE <= (row.duration_s or 0) / length <= ALIKE for length in lengths if length)


def _curve(capacity: Capacity, own: Sequence[Row], found: Mapping[int, Search]) -> Sequence[Row]:
    """The trials of the curve, which is of the last launch."""
    launch, last = max(found.items())
    its = [row for row in own if (row.launch, row.arm) == (launch, None)]
    return its[-last.curve :] if capacity.curve and last.curve else []


def _after(
    objective: Objective,
    server: str,
    curve: Sequence[Row],
    own: Sequence[Row],
    found: Mapping[int, Search],
) -> Iterator[Finding]:
    """What trials after the searches say against the interval. A JVM may lie outside of it by its
    own search, so a rate inside any launch's interval says nothing against it."""
    told = [one for one in found.values() if one.has_told]
    if under_way(found) or not told:
        return
    rows = [*curve, *(row for row in own if row.arm == THROUGH)]
    _, low, high = capacity_of(told)
    lows, highs = zip(*(one.interval for one in told), strict=True)
    ends = min(low or 0, *lows), max(math.inf if one is None else one for one in (high, *highs))
    windows = [row.duration_s or 0 for one in told for of in one.rungs for row in of.held]
    yield from beside_search(server, objective, rows, ends, max(windows, default=0))


def _knee(
    capacity: Capacity, server: str, curve: Sequence[Row], found: Mapping[int, Search]
) -> Iterator[Finding]:
    told = knee(server, max(found), capacity.objective, curve) if curve else None
    if told is not None:
        yield told


def _went(
    server: str, of: Sequence[Search], own: Sequence[Row], objective: Objective
) -> Iterator[Finding]:
    """Where the mean time of a request goes at a rate that was held: of the pair with and without
    Toxiproxy, else of the trials that held the highest rate, where the proxy's time is in a wider
    part. A side of the pair that broke tells of no rate that was held. And whether more of it is
    unexplained than is allowed."""
    held = [row for one in of if one.low for row in one.low.held]
    known = [row for row in own if row.valid and row.time_own_ms is not None]
    kept = [row for row in known if row.arm == THROUGH and judged(objective, row)[0] == "held"]
    rows = kept or [row for row in known if row in held]
    if not rows:
        return
    rate = max(row.offered_rps or 0 for row in rows)
    rows = [row for row in rows if row.offered_rps == rate]
    # Past the proxy, too, a side that broke tells nothing.
    beside = [
        row
        for row in known
        if row.offered_rps == rate and (row.arm != STRAIGHT or judged(objective, row)[0] == "held")
    ]
    split = mean_split(rows, beside)
    parts = zip(split.parts, SPENT, strict=True)
    *told, left = [f"{part or 0.0:,.1f} ms {name}" for part, name in parts if _is_told(part, name)]
    p95s = [row.p95_ms for row in rows if row.p95_ms is not None]
    p95 = f" (its p95 {statistics.median(p95s):,.1f} ms)" if p95s else ""
    within = "within" if is_explained(split) else "beyond"
    text = (
        f"at {rate:,} req/s the mean is {split.whole_ms:,.1f} ms{p95}: {', '.join(told)}, and "
        f"{left}, {within} the {allowed_ms(split):,.1f} ms that are allowed"
    )
    if split.time_path_ms is not None:
        text += "; no pair with and without the proxy tells its time, which is on the path"
    elif split.proxy_ms is not None:
        text += "; the proxy's time is of one pair of trials, so without an interval"
    yield Finding(WENT, server, 0, split.whole_ms, "ms", None, None, text)


def _is_told(part_ms: float | None, name: str) -> bool:
    """Whether a part is more than what rounds to nothing; what is unexplained is always told."""
    return name == SPENT[-1] or abs(part_ms or 0.0) >= LEAST_TOLD_MS


def _cost(server: str, of: Sequence[Search]) -> Iterator[Finding]:
    """What a million requests cost in CPU time at the rates that were held: medians of the valid
    trials, as in one with a cold JVM compiling would count as answering. A million times µs are
    seconds."""
    held = [row for one in of if one.low for row in one.low.held if row.valid]
    known = [
        (row.offered_rps or 0, row.cpu_server_us, whole_us)
        for row in held
        if row.cpu_server_us and (whole_us := _whole_us(row)) is not None
    ]
    if known:
        own_s = statistics.median(own_us for _, own_us, _ in known)
        whole_s = statistics.median(whole_us for _, _, whole_us in known)
        rates = sorted({rate for rate, _, _ in known})
        at = " to ".join(f"{rate:,}" for rate in dict.fromkeys((rates[0], rates[-1])))
        text = (
            f"a million requests at {at} req/s take "
            f"{own_s:,.0f} s of the server's CPU time, and {whole_s:,.0f} s with the lab around it "
            f"({EXTRAPOLATED} at any other rate: a request costs more at a lower one)"
        )
        yield Finding(COST, server, 0, own_s, "s", None, None, text)


def _whole_us(row: Row) -> float | None:
    """The CPU time of all parts of the lab; None where that of one is not known."""
    parts = [getattr(row, name) for name in CpuSplit.columns()]
    return None if None in parts else sum(parts)


def _lifted(
    outcome: Outcome, server: str, own: Sequence[Row], found: Mapping[int, Search]
) -> Iterator[Finding]:
    """What the server holds with what gave way lifted, and whether that proves it; or why nothing
    was lifted."""
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
    with_it = _begun(lifted(experiment, own, found))
    if not with_it:
        record = manifest.read(outcome.run_dir)
        cores = record.limits.get("generator_cores")
        known = cores if isinstance(cores, int) else 1
        why = lever_of(experiment, found, record.servers[server], known)
        text = f"not lifted: {why}" if isinstance(why, str) else "not lifted yet"
        if not isinstance(why, str) and why.takes:
            rate, *_ = held_by(found)
            less = [row for row in own if row.arm in ARMS]
            objective = settings_of(Capacity, experiment).objective
            text = Deprived.of(objective, round(rate), less).text
        yield Finding(LIFTED, server, 0, None, UNIT, None, None, text)
        return
    text, value = _said(with_it, "", outcome.verdicts)
    text, *then = text.split(SEPARATOR, 1)
    whole = f"lifted to {_condition(outcome, own)}: {text}"
    told = min(sum(one.has_told for one in of.values()) for of in (found, with_it))
    foreign = experiment.target is not None
    answer = _answer(held_by(found), value, told, foreign=foreign)
    every = with_it.values()
    if not any(one.rate is not None or one.strayed for one in every):
        # Where the first launch holds nothing there are no others.
        left = len(with_it) < experiment.launches and next(iter(every)).low is not None
        whole += f", {NOT_FINISHED}" if left else f", {answer}" if answer else ""
    whole += "".join(f"{SEPARATOR}{one}" for one in then)
    yield Finding(LIFTED, server, 0, value[0], UNIT, *value[1:], whole)
    capacity = settings_of(Capacity, experiment)
    yield from _details(capacity, LIFTED_SEARCH, server, with_it, outcome.verdicts)


def _condition(outcome: Outcome, own: Sequence[Row]) -> str:
    """What the lifted trials really had, for people."""
    for row in own:
        if row.arm == LIFTED:
            # A plan that cannot be read leaves it to the next one.
            with suppress(RawDataError):
                return read_json(outcome.raw(row) / PLAN, TrialPlan).condition.text
    return "what is not recorded"


def _answer(before: Held, after: Held, launches: int, *, foreign: bool) -> str:
    """Whether what was lifted was the limit; empty where nothing is held with it. Fewer launches
    than an interval needs give the ratio only. `foreign`: of a service that is not the lab's."""
    rate, low, high = before
    rate_after, low_after, high_after = after
    if not rate or not low or rate_after is None or low_after is None:
        return ""
    ratio = f"×{rate_after / rate:.2f}"
    if high is None:
        return f"{ratio} (inconclusive: how much it holds without is open above)"
    if launches < LEAST_VALUES:
        return f"{ratio} (no proof without an interval: LAUNCHES={LEAST_VALUES})"
    answer, _ = answer_of_ends(low_after / high, (high_after or math.inf) / low)
    no_help = "not confirmed: more of it is no help"
    if foreign:
        no_help += ", or the service does not take it"
    sure = {"confirmed": "confirmed", "withdrawn": no_help}
    return f"{ratio} ({sure.get(answer, answer)})"


def answers(experiment: Experiment, found: Sequence[Finding]) -> tuple[tuple[str, ...], ...]:
    """What a reader wants first: for each server its name, what it holds, what gave way, what grew
    and what came of lifting it; then what these lines do not say."""
    of = [one for one in found if one.name == NAME]
    lines = []
    for one in of:
        text, _, then = one.text.partition(SEPARATOR)
        more = [it.text for it in found if (it.server, it.name) in _beside(one.server)]
        cells = [f"then: {then}" if then else "", *more]
        lines.append((one.server, text, *(cells if any(cells) else [])))
    if not of:
        return ()
    after = [f"{one.server}: {one.text}." for one in found if one.name == BESIDE]
    notes = [*_disagree(of, found), *after, *_notes(experiment, of, _launches(found))]
    return (*lines, *((note,) for note in notes))


def _beside(server: str) -> tuple[tuple[str, str], ...]:
    return (server, GREW), (server, KNEE), (server, LIFTED)


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
    experiment: Experiment, of: Sequence[Finding], launches: Mapping[str, int]
) -> Iterator[str]:
    """What the brackets are, and which servers they do not order."""
    few = [one.server for one in of if launches[one.server] < LEAST_VALUES]
    if len(few) == len(of):
        least = min(launches[server] for server in few)
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
            count = launches[one.server]
            jvms, these = ("one JVM", "it") if count < 2 else (f"{count} JVMs", "these")
            yield (
                f"The brackets of {one.server} are of {jvms}, too few for 95 %: {_ends(these)}. "
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
