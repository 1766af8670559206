"""What a server sustains: the capacity, its intervals, and what gave way first.

The words of RFC 9971 (MLRsearch): an objective is a *search goal*; the load that half of the trials
meet is a *conditional throughput* at an exceed ratio of 0.5, the one that 95 of 100 meet at 0.05;
the ends of an interval are its *relevant lower* and *upper bound*.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from lab.judge.capacity import Estimate
from lab.judge.compare import Place
from lab.model import Experiment, Finding, GaveWay, Sustained
from lab.report.remarks import say
from lab.report.text import counted
from lab.report.verdicts import in_use, shares_text

# Intervals over fewer JVMs say nothing of another one.
LEAST_LAUNCHES = 3


def answers(_: Experiment, found: Sequence[Finding]) -> tuple[tuple[str, ...], ...]:
    """For each server and objective what it sustains and what gave way; then the limits of these
    lines."""
    each = [finding for finding in found if isinstance(finding, Sustained)]
    objectives = list(dict.fromkeys(finding.objective for finding in each))
    each.sort(key=lambda finding: (objectives.index(finding.objective), -(finding.value or 0.0)))
    lines = [(finding.server, *_cells(finding)) for finding in each]
    return (*lines, *((note,) for note in _notes(each)))


def _cells(finding: Sustained) -> Iterator[str]:
    yield _sustains(finding)
    if finding.gave_way:
        yield _gave_way(finding.gave_way)
    if finding.often:
        value, low, high = finding.often
        code = "often" if value >= 1 else "often-unknown"
        yield say("capacity", code, value=value, interval=_interval(low, high))


def _sustains(finding: Sustained) -> str:
    below, above = finding.open_below, finding.open_above
    return say(
        "capacity",
        "unusable" if below and above else "below" if below else "above" if above else "sustains",
        objective=finding.objective,
        value=finding.value or 0.0,
        unit=finding.unit,
        interval=_interval(finding.low, finding.high),
        trials=finding.trials,
    )


def _gave_way(limit: GaveWay) -> str:
    missed = counted(limit.missed, "trial")
    verdict = limit.verdict
    return say(
        "capacity",
        "then" if limit.resource else "then-unknown",
        resource=limit.resource,
        use=in_use(verdict.named) if verdict and verdict.named else "",
        strength="strong" if limit.strong else "weak",
        trials=f"{limit.named} of {missed}" if 0 < limit.named < limit.missed else missed,
        shares=shares_text(verdict) if verdict else "",
    )


def _interval(low: float | None, high: float | None) -> str:
    return f"[{low or 0:,.0f}, {high or 0:,.0f}]"


def _notes(each: Sequence[Sustained]) -> Iterator[str]:
    if not each:
        return
    yield say("capacity", "meaning", interval="[from, to]")
    few = [finding.launches for finding in each if finding.launches < LEAST_LAUNCHES]
    if few:
        yield say("capacity", "few-jvms", jvms="one JVM" if max(few) < 2 else "too few JVMs")
    first = [finding for finding in each if finding.objective == each[0].objective]
    left_out = sum(finding.trials - finding.used for finding in first)
    if left_out:
        trials = counted(sum(finding.trials for finding in first), "trial")
        yield say("capacity", "not-usable", count=left_out, trials=trials)
    alike = [f"{a.server} and {b.server}" for a, b in combinations(each, 2) if _overlap(a, b)]
    if alike and not few:
        yield say("capacity", "alike", pairs="; ".join(alike))


def _overlap(a: Sustained, b: Sustained) -> bool:
    highs = [math.inf if finding.high is None else finding.high for finding in (a, b)]
    meet = (a.low or 0) <= highs[1] and (b.low or 0) <= highs[0]
    return meet and a.objective == b.objective


@dataclass(frozen=True, slots=True)
class CapacityRatio:
    """What side B sustains over what side A sustains; `ratio` is None if one of them has no
    interval. `in_units` is the same in units of the control parts, whose cost per request at both
    capacities is `control_us`; None for two sides of one run."""

    name_a: str
    name_b: str
    a: Sustained
    b: Sustained
    ratio: Estimate | None
    place: Place
    in_units: Estimate | None = None
    control_us: tuple[float, ...] = ()


def ratio_lines(found: CapacityRatio) -> Iterator[str]:
    """B against A for people."""
    yield f"B {found.name_b} against A {found.name_a}, at {found.a.objective}"
    yield f"  A {_sustains(found.a)}"
    yield f"  B {_sustains(found.b)}"
    if found.ratio is None:
        yield say("capacity", "no-ratio", place=found.place)
        return
    if found.in_units is None:
        yield say("capacity", "ratio", ratio=_ratio(found.ratio), place=found.place)
    else:
        a_us, b_us = found.control_us
        yield say("capacity", "ratio-measured", ratio=_ratio(found.ratio))
        yield say("capacity", "ratio-in-units", ratio=_ratio(found.in_units), place=found.place)
        yield say("capacity", "control", a=a_us, b=b_us)
    if min(found.a.launches, found.b.launches) < LEAST_LAUNCHES:
        yield say("capacity", "few")


def _ratio(ratio: Estimate) -> str:
    return f"{ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"
