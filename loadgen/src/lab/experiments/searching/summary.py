"""What one or more searches of a server found, in words: what it holds, what gave way, and how each
search ended. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from lab.experiments.kind import OTHER_RULES
from lab.experiments.objective import Objective, ms_text
from lab.experiments.searching.state import Capacity, Search, capacity_of, gave_way, told_and_untold
from lab.judge.slo import judged_ms
from lab.model import LIFTED, STRONG, UNKNOWN, Finding, Row, Verdict, around_server_us, use_text

NAME = "capacity"
SEARCH = "search"
UNIT = "req/s"
# What the parts of the lab share.
SHARED = "host CPU"
SEPARATOR = "; then: "
NOT_FINISHED = "not finished"
Verdicts = Mapping[str, Verdict]
# What a capacity is: the highest rate that more than half of the launches held, and its interval.
Held = tuple[float | None, float | None, float | None]


def unfinished(then: str = "", *, complete: bool) -> str:
    """The words for a search that has another rate; `then`: what is next."""
    return OTHER_RULES if complete else f"{NOT_FINISHED}{then}"


def begun(searches: Mapping[int, Search]) -> dict[int, Search]:
    return {launch: search for launch, search in searches.items() if search.rungs}


def summarise(
    searches: Mapping[int, Search], at: str, verdicts: Verdicts, *, complete: bool
) -> tuple[str, Held]:
    """What a server holds, and what gave way, in a line; and the capacity with its interval.
    `complete` as of Outcome."""
    launches = list(searches.values())
    decided, undecided = told_and_untold(launches)
    then = _then(launches, verdicts)
    value: Held = None, None, None
    if not any(search.low for search in decided):
        broken = launches[0].broken
        text = f"does not hold {broken.rate if broken else 0:,} req/s{at}"
        if launches[0].rate is not None:
            text = unfinished(f", {launches[0].rate:,} req/s are next", complete=complete)
        elif not broken:
            text, then = then, ""
    else:
        rate, low, high = capacity_of(decided, undecided)
        # What another launch holds that broke there, nobody can tell, or not yet.
        less = any(
            search.broken and search.broken.rate <= rate
            for search in launches
            if search not in decided
        )
        value = rate, None if less else low, high
        text = f"holds {rate:,.0f} req/s{at} [{'not to be told' if less else f'{low:,.0f}'}, "
        if high is not None:
            text += f"{high:,.0f}]"
        elif any(search.broken for search in decided):
            text += "not to be told]"
        else:
            text = f"holds at least {rate:,.0f} req/s{at}"
        if any(search.rate is not None for search in launches):
            text += f", {unfinished(complete=complete)}"
        if len(decided) < len(launches):
            text += f", in {len(decided)} of {len(launches)} launches"
    return f"{text}{SEPARATOR}{then}" if then else text, value


def _then(searches: Sequence[Search], verdicts: Verdicts) -> str:
    """What gave way first, with its figures, the rate, and how many of the trials that broke there
    name it. Where no rate broke: why nobody can tell of the next."""
    first = gave_way(searches)
    if first is None:
        tops = [search.top for search in searches]
        unknown = [top for top in tops if top and top.tried.is_unknown]
        return f"cannot be told: {unknown[0].untold[-1][1]}" if unknown else ""
    named, broke = len(first.rows), len(first.broke)
    if first.resource is None:
        few = f" ({named} of {broke} trials name {first.rows[0].bottleneck})" if named else ""
        return f"{UNKNOWN}{few}"
    return what_gave_way(first.rows, first.broke, f"{first.rate:,}", verdicts)


def what_gave_way(rows: Sequence[Row], broke: Sequence[Row], at: str, verdicts: Verdicts) -> str:
    """A resource with its figures, how strong the evidence is, at which load, and how many name it
    of the trials that `broke` there: `rows`, of which the last has the figures. One trial alone is
    weak evidence, whatever it says."""
    strong = len(rows) > 1 and 2 * sum(row.strength == STRONG for row in rows) > len(broke)
    last = verdicts.get(rows[-1].trial)
    named = last.named if last else None
    full = ", ".join(filter(None, (rows[-1].bottleneck, use_text(named) if named else "")))
    if rows[-1].bottleneck == SHARED:
        full += _whose(rows[-1])
    count = f"{len(rows)}{'' if len(rows) == len(broke) else f' of {len(broke)}'}"
    trials = f"trial{'s' if len(broke) > 1 else ''}"
    return f"{full} ({'strong' if strong else 'weak'}, at {at} by {count} {trials})"


def _whose(row: Row) -> str:
    """Whose the CPU time is, where each part's is known: the lab's share is not the server's."""
    server, proxy, around_us = row.cpu_server_us, row.cpu_proxy_us, around_server_us(row)
    if not server or not proxy or around_us is None:
        return ""
    all_us = server + around_us
    return f": of the lab's CPU time server {server / all_us:.0%}, proxy {proxy / all_us:.0%}"


def each_search(
    capacity: Capacity, name: str, server: str, searches: Mapping[int, Search], *, complete: bool
) -> Iterator[Finding]:
    """How each search ended: the figures of the highest rate held, and what broke the next."""
    for launch, search in searches.items():
        low, top, broken = search.low, search.top, search.broken
        parts = ["no rate was held"]
        if low is not None:
            figures = _figures(capacity.objective, _shown(low.held))
            parts = [f"held {low.rate:,} req/s ({figures}; {len(low.held)} of {low.trials} trials)"]
        if broken is not None:
            whys = "; ".join(dict.fromkeys(why for _, why in broken.broke))
            count = f"{len(broken.broke)} of {broken.trials} trials"
            parts.append(f"broke {broken.rate:,} ({count}): {whys}")
        if top is not None and top is not broken and top.untold:
            parts.append(f"whether it holds {top.rate:,} cannot be told: {top.untold[-1][1]}")
        elif broken is None and low is not None and low.rate >= capacity.most:
            parts.append("the most that was tried")
        if search.rate is not None:
            parts.append(unfinished(f", {search.rate:,} req/s are next", complete=complete))
        # What broke and never held holds nothing. Of what nobody can tell there is no value.
        ends = (low.rate if low else 0, *search.interval)
        known = [float(end) if end is not None and search.has_told else None for end in ends]
        text = ("" if name == SEARCH else f"{LIFTED}: ") + ", ".join(parts)
        yield Finding(name, server, launch, known[0], UNIT, known[1], known[2], text)


def _shown(held: Sequence[Row]) -> Row:
    """The last of the trials that held a rate: the last valid one, if there is one."""
    return next((row for row in reversed(held) if row.valid), held[-1])


def _figures(objective: Objective, row: Row) -> str:
    """The latencies that the objective limits; the longest one for those of which there are too few
    answers. Those of an invalid trial are too high, if anything, and said to be."""
    known = [name for name, _ in objective.limits if judged_ms(row, name) is not None]
    shown = known if len(known) == len(objective.limits) else [*known, "max"]
    most = "" if row.valid else "at most "
    return ", ".join(
        f"{name} {most}{ms_text(judged_ms(row, name) or 0, row)}" for name in dict.fromkeys(shown)
    )
