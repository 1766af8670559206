"""What a server sustains, in words: the capacity, its intervals, and what gave way first.

The words of RFC 9971 (MLRsearch): an objective is a *search goal*; the load that half of the trials
meet is a *conditional throughput* at an exceed ratio of 0.5, the one that 95 of 100 meet at 0.05;
the ends of an interval are its *relevant lower* and *upper bound*.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lab.judge.capacity import Estimate
from lab.judge.compare import Place
from lab.model import Experiment, Finding, GaveWay, Sustained, use_text
from lab.report.resources import shares_text

# Intervals over fewer JVMs say nothing of another one.
LEAST_LAUNCHES = 3


def answers(_: Experiment, found: Sequence[Finding]) -> tuple[tuple[str, ...], ...]:
    """For each server and objective what it sustains and what gave way; then what these lines do
    not say."""
    each = [finding for finding in found if isinstance(finding, Sustained)]
    objectives = list(dict.fromkeys(finding.objective for finding in each))
    each.sort(key=lambda finding: (objectives.index(finding.objective), -(finding.value or 0.0)))
    lines = [(finding.server, *_cells(finding)) for finding in each]
    return (*lines, *((note,) for note in _notes(each)))


@dataclass(frozen=True, slots=True)
class CapacityRatio:
    """What side B sustains over what side A sustains; `ratio` is None where one of them has no
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
    for side, name in ((found.a, "A"), (found.b, "B")):
        *_, capacity = list(_cells(side))[:1]
        yield f"  {name} {capacity}"
    if found.ratio is None:
        yield f"  {found.place}: a capacity without both ends has no ratio"
        return
    if found.in_units is None:
        yield f"  B/A {_ratio(found.ratio)}: {found.place}"
    else:
        a_us, b_us = found.control_us
        yield f"  B/A {_ratio(found.ratio)} as measured"
        yield f"  B/A {_ratio(found.in_units)} at one speed of the machine: {found.place}"
        yield f"  a request cost the parts around the server {a_us:.0f} µs in A, {b_us:.0f} µs in B"
    if min(found.a.launches, found.b.launches) < LEAST_LAUNCHES:
        yield "  too few JVMs: another JVM may differ by more. LAUNCHES=6 would tell"


def _ratio(ratio: Estimate) -> str:
    return f"{ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"


def _cells(finding: Sustained) -> Iterator[str]:
    at = f"at {finding.objective}"
    if finding.open_below and finding.open_above:
        yield f"unknown {at}: no trial of {finding.trials} is usable"
    elif finding.open_below:
        yield f"sustains less than any load that was tried {at}"
    elif finding.open_above:
        least = _load(finding.value, finding.unit)
        yield f"sustains at least {least} {at}: no higher load was missed"
    else:
        yield (
            f"sustains {_load(finding.value, finding.unit)} {at} "
            f"{_interval(finding.low, finding.high)}"
        )
    if finding.gave_way:
        yield f"then: {_gave_way(finding.gave_way)}"
    if finding.often:
        value, low, high = finding.often
        known = value >= 1
        yield (
            f"in 95 of 100 trials: {value:,.0f} {_interval(low, high)}"
            if known
            else "in 95 of 100 trials: unknown"
        )


def _load(value: float | None, unit: str) -> str:
    return f"{value or 0:,.0f} {unit}"


def _interval(low: float | None, high: float | None) -> str:
    return f"[{low or 0:,.0f}, {high or 0:,.0f}]"


def _gave_way(limit: GaveWay) -> str:
    trials = f"{limit.missed} trial{'s' if limit.missed > 1 else ''}"
    if limit.resource is None:
        return f"unknown: no resource is named by most of {trials} that missed"
    verdict = limit.verdict
    in_use = use_text(verdict.named) if verdict and verdict.named else ""
    shares = shares_text(verdict) if verdict else ""
    strength = "strong" if limit.strong else "weak"
    of = f"{limit.named} of {trials}" if limit.named < limit.missed else trials
    what = ", ".join(filter(None, (limit.resource, in_use)))
    return f"{what} ({strength}, by {of}{f'; {shares}' if shares else ''})"


def _notes(each: Sequence[Sustained]) -> Iterator[str]:
    if not each:
        return
    yield (
        "sustains: half of the trials at this load meet the objective. [from, to]: 95 % of what "
        "the trials leave possible."
    )
    few = [finding for finding in each if finding.launches < LEAST_LAUNCHES]
    if few:
        jvms = "one JVM" if max(finding.launches for finding in few) < 2 else "too few JVMs"
        yield f"An answer of {jvms}: another JVM may differ by more. LAUNCHES=6 orders servers."
    first = [finding for finding in each if finding.objective == each[0].objective]
    left_out = sum(finding.trials - finding.used for finding in first)
    if left_out:
        trials = sum(finding.trials for finding in first)
        yield f"Not usable: {left_out} of {trials} trials."
    alike = [
        f"{finding.server} and {other.server}"
        for at, finding in enumerate(each)
        for other in each[at + 1 :]
        if finding.objective == other.objective and not few and _overlap(finding, other)
    ]
    if alike:
        yield f"Not ranked, as their intervals overlap: {'; '.join(alike)}."


def _overlap(a: Sustained, b: Sustained) -> bool:
    highs = [math.inf if finding.high is None else finding.high for finding in (a, b)]
    return (a.low or 0) <= highs[1] and (b.low or 0) <= highs[0]
