"""What limited each load, and what was predicted of it beside what was measured: for the console
and both reports.

Trials of one load on one lane (its launches) are said together; where trials have
conditions of their own (planted, explain) these tell them apart.
"""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from lab.judge.grouping import Cell, lane_of
from lab.model import (
    NONE,
    STRONG,
    UNKNOWN,
    WEAK,
    Row,
    Strength,
    Verdict,
    goodput,
    p95_of,
    strength_text,
)
from lab.report.blocks import Bullets, Section, Strong, Table
from lab.report.comparison import cell_names
from lab.report.resources import sentence
from lab.report.table import NOTHING, milliseconds, rate

HEADER = ("load", "at most req/s", "expected req/s", "binding", "measured req/s", "of expected",
          "expected p95", "measured p95", "valid")  # fmt: skip
NO_VALID = "no valid trial"
# A resource that limits is said before these.
_LAST = {UNKNOWN: 1, NONE: 2}
LEGEND = (
    "at most: the tightest bound that nothing real exceeds, of the load and the settings: "
    "connections, threads and downstream connections, each over how long a request holds one. "
    "expected: the tightest of all bounds, "
    "with those extrapolated from the CPU time of a request under a light load, or by the line of "
    "the trials before; binding: what "
    "binds there. Expected p95: max(R0 + D, N / X - Z) in a closed load by Little's law, R0 + D in "
    "an open one below its bound (R0: the wait without a queue, D: CPU time of a request, X: "
    "expected req/s, Z: the generator's think time beside a service of your own, else 0; with "
    "delays drawn for each call: the p95 of the delay with what is added to it, or nothing where "
    "requests queue); measured: raw in a closed load, corrected in an open one. Measured req/s are "
    "answers that were no errors. Latencies in ms "
    "(12.3s: seconds). Measured are medians of the valid trials; where none is valid nothing is "
    f"measured. {NOTHING}: not known, or nothing bounds it."
)


@dataclass(frozen=True, slots=True)
class Said:
    """One load on one lane; `valid` of its `trials` are. What was measured are medians of the
    valid ones, None without any; what was predicted is of all where none is valid.

    `strength` is STRONG where most of its trials say so with strong evidence, else WEAK; empty
    for an unknown bottleneck. `agree` of the trials have this `bottleneck`, `agree_valid` of the
    valid ones; `others` are what the rest say. `sentence` is of one of them, valid where there is
    one, nearest the median throughput. Latencies are those of `Row`: raw in a closed load,
    corrected in an open one.
    """

    load: str
    bottleneck: str
    strength: Strength
    sentence: str
    agree: int
    agree_valid: int
    trials: int
    valid: int
    others: tuple[str, ...]
    bound_rps: float | None
    expected_rps: float | None
    binding: str | None
    goodput_rps: float | None
    expected_p95_ms: float | None
    p95_ms: float | None

    @property
    def text(self) -> str:
        """The sentence of the verdict, how strong its evidence is, and whether its trials are
        valid."""
        notes = [strength_text(self.strength)] if self.strength else []
        if self.others:
            none = ", none of them valid" if self.valid and not self.agree_valid else ""
            also = ", ".join(self.others)
            notes.append(f"{self.agree} of {self.trials} trials{none}; also {also}")
        if not self.valid:
            notes.append(NO_VALID)
        elif self.valid < self.trials:
            notes.append(f"{self.valid} of {self.trials} trials valid")
        return f"{self.sentence} ({'; '.join(notes)})" if notes else self.sentence

    @property
    def cells(self) -> tuple[str, ...]:
        share = NOTHING
        if self.goodput_rps is not None and self.expected_rps:
            share = f"{self.goodput_rps / self.expected_rps:.0%}"
        return (
            self.load,
            rate(self.bound_rps),
            rate(self.expected_rps),
            self.binding or NOTHING,
            rate(self.goodput_rps) if self.valid else NO_VALID,
            share,
            milliseconds(self.expected_p95_ms),
            milliseconds(self.p95_ms),
            f"{self.valid} of {self.trials}",
        )


def said(
    rows: Sequence[Row],
    verdicts: Sequence[tuple[str, Verdict]],
    load_name: Callable[[Row], str] | None = None,
) -> tuple[Said, ...]:
    """Every load, as they first appear. `load_name` names it where the same load is measured
    under several conditions."""
    names = cell_names(list(dict.fromkeys(Cell.of(row) for row in rows)))
    of_trial = dict(verdicts)
    groups: dict[str, list[Row]] = {}
    for row in rows:
        load = load_name(row) if load_name else f"{lane_of(row)}, {names[Cell.of(row)]}"
        groups.setdefault(load, []).append(row)
    return tuple(
        _said(load, group, [(row, of_trial[row.trial]) for row in group if row.trial in of_trial])
        for load, group in groups.items()
    )


def lines(of: Sequence[Said]) -> Iterator[tuple[str, str]]:
    """(load, verdict) for people: what a resource limits first, what got all it could have last.
    Loads whose bottleneck is unknown for the same reason are one line."""
    merged: dict[str, list[Said]] = {}
    for one in sorted(of, key=lambda one: _LAST.get(one.bottleneck, 0)):
        same = one.text if one.bottleneck == UNKNOWN and not one.others else one.load
        merged.setdefault(same, []).append(one)
    for group in merged.values():
        first = group[0]
        if first.sentence:
            yield "; ".join(one.load for one in group), first.text


def limited(of: Sequence[Said]) -> Section:
    """What limited each load, for both reports."""
    told = [(Strong(load), f": {verdict}") for load, verdict in lines(of)]
    return Section("What limited", [Bullets(told)])


def predicted(of: Sequence[Said]) -> Section:
    """What was predicted of each load beside what was measured, for both reports."""
    rows = [one.cells for one in of if one.expected_rps is not None]
    none = "No bound is known of any load of this run."
    table = Table(HEADER, rows, "Predicted and measured", LEGEND, folds=True)
    return Section("Predicted and measured", [table], "prediction", none)


def render(console: Console, of: Sequence[Said]) -> None:
    """Print a line for each load: what limited it."""
    for load, verdict in lines(of):
        line = Text(load, style="bold")
        line.append(f": {verdict}", style="not bold")
        # On a terminal between words; a line of a file stays one.
        console.print(line, soft_wrap=not console.is_terminal)


def _said(load: str, rows: Sequence[Row], verdicts: Sequence[tuple[Row, Verdict]]) -> Said:
    valid = [row for row in rows if row.valid]
    bottleneck, mine, strength = agreed(verdicts)
    mine_valid = [(row, verdict) for row, verdict in mine if row.valid]
    others = Counter(
        verdict.bottleneck for _, verdict in verdicts if verdict.bottleneck != bottleneck
    )
    predicted = valid or rows
    bindings = Counter(row.binding for row in predicted if row.binding)
    return Said(
        load=load,
        bottleneck=bottleneck,
        strength=strength,
        sentence=_nearest(mine_valid or mine, _median([goodput(row) for row in predicted])),
        agree=len(mine),
        agree_valid=len(mine_valid),
        trials=len(rows),
        valid=len(valid),
        others=tuple(f"{name} ({count})" for name, count in others.most_common()),
        bound_rps=_median([row.predicted_rps for row in predicted]),
        expected_rps=_median([row.expected_rps for row in predicted]),
        binding=bindings.most_common(1)[0][0] if bindings else None,
        goodput_rps=_median([goodput(row) for row in valid]),
        expected_p95_ms=_median([row.expected_p95_ms for row in predicted]),
        p95_ms=_median(list(map(p95_of, valid))),
    )


def agreed(
    verdicts: Sequence[tuple[Row, Verdict]],
) -> tuple[str, list[tuple[Row, Verdict]], Strength]:
    """The bottleneck that most trials name, those trials, and how strong the evidence is: STRONG
    where most of all trials say so with strong evidence."""
    bottleneck = _named([verdict for _, verdict in verdicts])
    mine = [(row, verdict) for row, verdict in verdicts if verdict.bottleneck == bottleneck]
    strength: Strength = ""
    if mine and bottleneck != UNKNOWN:
        strong = sum(verdict.strength == STRONG for _, verdict in mine)
        strength = STRONG if 2 * strong > len(verdicts) else WEAK
    return bottleneck, mine, strength


def _named(verdicts: Sequence[Verdict]) -> str:
    """What most say; of as many, what strong evidence says."""
    if not verdicts:
        return UNKNOWN
    counts = Counter(one.bottleneck for one in verdicts)
    return max(
        verdicts, key=lambda one: (counts[one.bottleneck], one.strength == STRONG)
    ).bottleneck


def _nearest(verdicts: Sequence[tuple[Row, Verdict]], median_rps: float | None) -> str:
    """The sentence of the trial whose throughput is nearest the median, of as near ones of the
    one with strong evidence; empty without any."""

    def far(one: tuple[Row, Verdict]) -> tuple[float, bool]:
        row, verdict = one
        rps = goodput(row)
        off = math.inf if rps is None or median_rps is None else abs(rps - median_rps)
        return off, verdict.strength != STRONG

    return sentence(min(verdicts, key=far)[1]) if verdicts else ""


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
