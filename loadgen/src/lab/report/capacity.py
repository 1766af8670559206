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
from lab.model import Experiment, Finding, Sustained
from lab.report.remarks import say
from lab.report.text import counted
from lab.report.verdicts import in_use, shares_text

# Intervals over fewer JVMs say nothing of another one.
LEAST_LAUNCHES = 3


def answers(_: Experiment, findings: Sequence[Finding]) -> tuple[tuple[str, ...], ...]:
    """For each server and objective what it sustains and what gave way; then the limits of these
    lines."""
    each = [finding for finding in findings if isinstance(finding, Sustained)]
    objectives = list(dict.fromkeys(finding.objective for finding in each))
    each.sort(key=lambda finding: (objectives.index(finding.objective), -(finding.value or 0.0)))
    lines = [(finding.server, *_cells(finding)) for finding in each]
    return (*lines, *((note,) for note in _notes(each)))


def _cells(finding: Sustained) -> Iterator[str]:
    yield _sustains(finding)
    if limit := finding.gave_way:
        missed, verdict = counted(limit.missed, "trial"), limit.verdict
        yield say(
            "capacity",
            "then" if limit.resource else "then-unknown",
            limit=limit,
            use=verdict and verdict.named and in_use(verdict.named),
            trials=f"{limit.named} of {missed}" if 0 < limit.named < limit.missed else missed,
            shares=verdict and shares_text(verdict),
        )
    if finding.often:
        value, low, high = finding.often
        yield say("capacity", "often", value=value if value >= 1 else None, low=low, high=high)


def _sustains(finding: Sustained) -> str:
    below, above = finding.open_below, finding.open_above
    code = "unusable" if below and above else "below" if below else "above" if above else "sustains"
    low, high = finding.low or 0.0, finding.high or 0.0
    return say("capacity", code, at=finding, value=finding.value or 0.0, low=low, high=high)


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


def ratio_lines(ratio: CapacityRatio) -> Iterator[str]:
    """B against A for people."""
    yield f"B {ratio.name_b} against A {ratio.name_a}, at {ratio.a.objective}"
    yield f"  A {_sustains(ratio.a)}"
    yield f"  B {_sustains(ratio.b)}"
    if ratio.ratio is None:
        yield say("capacity", "no-ratio", place=ratio.place)
        return
    if ratio.in_units is None:
        yield say("capacity", "ratio", by=ratio.ratio, place=ratio.place)
    else:
        a_us, b_us = ratio.control_us
        yield say("capacity", "ratio-measured", by=ratio.ratio)
        yield say("capacity", "ratio-in-units", by=ratio.in_units, place=ratio.place)
        yield say("capacity", "control", a=a_us, b=b_us)
    if min(ratio.a.launches, ratio.b.launches) < LEAST_LAUNCHES:
        yield say("capacity", "few")
