"""What limited each load, by the verdicts of its trials."""

import math
from collections import Counter
from collections.abc import Sequence

from lab.model import (
    NONE,
    STRONG,
    UNEXPLAINED,
    UNKNOWN,
    WEAK,
    Missing,
    Row,
    Standing,
    Strength,
    Verdict,
    goodput,
    use_text,
)
from lab.report.blocks import Section, Table
from lab.report.remarks import say
from lab.report.result import Load, Result
from lab.report.text import NOTHING

HEADER = ("load", "limit", "evidence", "trials", "why", "other verdicts")
# Verdicts whose basis is the excess, and errors that it explains.
OF_EXCESS = ("errors", "none", "excess", "tail")
# Resources with a smaller share of the excess are left out of a sentence.
NAMED = 0.05
# A resource that limits comes before these.
_LAST = {UNKNOWN: 1, NONE: 2}


def section(result: Result) -> Section:
    rows = [_cells(load) for load in result.loads if load.verdicts]
    rows.sort(key=lambda cells: _LAST.get(cells[1], 0))
    legend = say("legend", "limits")
    table = Table(HEADER, rows, "What limited", legend)
    return Section("What limited", [table], "limits")


def _cells(load: Load) -> tuple[str, ...]:
    bottleneck, naming, strength = agreed(load.verdicts)
    valid = [(row, verdict) for row, verdict in naming if row.valid]
    others = Counter(verdict.bottleneck for _, verdict in load.verdicts)
    del others[bottleneck]
    count = f"{len(naming)} of {len(load.verdicts)}"
    return (
        load.name,
        bottleneck,
        strength or NOTHING,
        count if len(valid) == len(naming) else f"{count}, {len(valid)} valid",
        why(nearest(valid or naming, load.expected(goodput))),
        ", ".join(f"{name} ({times})" for name, times in others.most_common()) or NOTHING,
    )


def limit(load: Load, *, use: bool = False) -> str:
    """What most trials of the load name, and what is in use of it; nothing without a verdict."""
    if not load.verdicts:
        return NOTHING
    bottleneck, naming, strength = agreed(load.verdicts)
    named = nearest(naming, load.expected(goodput)).named if use else None
    used = f", {in_use(named)}" if named else ""
    return f"{bottleneck}{used}{f' ({strength})' if strength else ''}"


def agreed(
    verdicts: Sequence[tuple[Row, Verdict]],
) -> tuple[str, list[tuple[Row, Verdict]], Strength]:
    """The bottleneck that most trials name, of two named as often the one with strong evidence;
    those trials; and STRONG if most of all trials name it with strong evidence."""
    counts = Counter(verdict.bottleneck for _, verdict in verdicts)
    strong = {verdict.bottleneck for _, verdict in verdicts if verdict.strength == STRONG}
    bottleneck = max(counts, key=lambda name: (counts[name], name in strong))
    naming = [(row, verdict) for row, verdict in verdicts if verdict.bottleneck == bottleneck]
    if bottleneck == UNKNOWN:
        return bottleneck, naming, ""
    sure = sum(verdict.strength == STRONG for _, verdict in naming)
    return bottleneck, naming, STRONG if 2 * sure > len(verdicts) else WEAK


def nearest(verdicts: Sequence[tuple[Row, Verdict]], median_rps: float | None) -> Verdict:
    """The verdict of the trial whose throughput is nearest the median; of two as near the one with
    strong evidence."""

    def distance(each: tuple[Row, Verdict]) -> tuple[float, bool]:
        row, verdict = each
        rps = goodput(row)
        off = math.inf if rps is None or median_rps is None else abs(rps - median_rps)
        return off, verdict.strength != STRONG

    return min(verdicts, key=distance)[1]


def sentence(verdict: Verdict) -> str:
    return f"{verdict.bottleneck}: {why(verdict)}"


def why(verdict: Verdict) -> str:
    """What a trial's requests waited for."""
    excess, named, code = verdict.excess, verdict.named, str(verdict.basis)
    failed = code == "errors" and (named is None or named.failed)
    if code in OF_EXCESS and not failed:
        late = "unanswered" if excess is None else "tail" if code == "tail" else "excess"
        code = "none" if verdict.bottleneck == NONE else late
    return say(
        "verdict",
        code,
        excess=excess,
        shares=shares_text(verdict),
        use=named and in_use(named),
        failed=named and named.failed,
    )


def shares_text(verdict: Verdict) -> str:
    """The shares of the excess that are worth naming, and what is unexplained."""
    return ", ".join(
        f"{name} {share:.0%}"
        for name, share in verdict.shares.items()
        if share >= NAMED or name in (verdict.bottleneck, UNEXPLAINED)
    )


def in_use(standing: Standing) -> str:
    return ", ".join(filter(None, (standing.detail, use_text(standing))))


def missing_text(gap: Missing) -> str:
    return f"not known: {say('missing', gap.code, detail=gap.detail)}"
