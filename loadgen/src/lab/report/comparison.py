"""Comparisons in words: tables on the console and in both reports, and comparison.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from lab.judge.compare import (
    MARGIN,
    Answer,
    Comparison,
    Family,
    Figure,
    Instead,
    Limits,
    Place,
    Why,
)
from lab.judge.grouping import Cell
from lab.judge.intervals import CONFIDENCE, MedianOf, RatioOf
from lab.judge.values import CONTROL, MOST_ERRORS, ControlUse
from lab.report.blocks import MOST, Beside, Bullets, Folded, Paragraph, Section, Strong, Table
from lab.report.table import NOTHING, console_table, interval_text, milliseconds, rate
from lab.store.records import to_json

NAME = "comparison.json"
MIB = 1024 * 1024
HEADER = ("load", "of", "A", "B", "B/A", "interval", "answer")
# What the sides are called in a sentence.
NAMES = ("A", "B")
# Each place with its style on a console and its class on a page.
LOOKS: Mapping[Place, tuple[str, str]] = {
    "better": ("green", "good"),
    "worse": ("red", "bad"),
    "within": ("", ""),
    "cannot tell": ("yellow", ""),
}
UNITS: Mapping[Figure, str] = {
    "goodput": "req/s",
    "p95": "ms",
    "p99": "ms",
    "cpu": "µs of CPU per request",
    "memory": "MiB resident",
}
# `{A}` and `{B}` are the names of the sides, numbers those of `Answer.facts`.
_WHYS: Mapping[Why, str] = {
    "few": "too few launches: an interval of {percent} takes {1:.0f} of each side",
    "across": "the interval reaches across a limit",
    "no value": "no round has a valid trial of {A} and of {B} with this figure above 0",
    "failures": "{0:.0f} of {1:.0f} launches of {A} failed, and {2:.0f} of {3:.0f} of {B}",
    "errors": (
        "{0:.1%} of the requests of {A} fail and {1:.1%} of {B}, and an error does not cost what "
        "an answer costs"
    ),
    "raw": "the raw ratio, {0:.3f}, has another answer",
    "left out": "which launches were left out may decide the answer",
    "generator": (
        "the generator's own time is {0:.1%} of {A} and {1:.1%} of {B}; without it the interval is "
        "[{2:.3f}, {3:.3f}], which has another answer"
    ),
    "kept up": "goodput of a launch that answered all that was offered has only a lower bound",
    "no limit": "goodput is to be judged in its place, and has no limit",
}
_CONTROL: Mapping[ControlUse, str] = {
    "used": f"divided by the ratio of the control parts to the power of {CONTROL:g}",
    "differs": "as the sides differ in the control parts by more than these from themselves",
    "no floor": "as too few pairs show how much the control parts differ from themselves",
}
_INSTEAD: Mapping[Instead, str] = {
    "errors": f"more than {MOST_ERRORS:.0%} of the requests of {{A}} fail",
    "overloaded": "both sides were overloaded, and a percentile then grows with the run",
}


def to_file(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    found = to_json(list(comparisons))
    return {"margin": MARGIN, "confidence": CONFIDENCE, "comparisons": found}


def render(console: Console, comparisons: Sequence[Comparison]) -> None:
    """Print a table for each pair, then why answers are missing, and what the words mean."""
    for of in comparisons:
        console.print(Text(f"B {of.b} against A {of.a}", style="bold"), soft_wrap=True)
        print_table(console, of, HEADER)
        for line in beside(of):
            console.print(Text(line), soft_wrap=not console.is_terminal)
    for line in legend(comparisons):
        console.print(Text(line, style="dim"))


def print_table(console: Console, of: Comparison, header: Sequence[str]) -> None:
    if not of.answers:
        return
    shown = console_table(header, left=("load", "of", "interval", "allowed", "answer"))
    shown.columns[0].no_wrap = False
    for answer, cells in zip(of.answers, rows(of, header, _only_median), strict=True):
        shown.add_row(*cells[:-1], Text(cells[-1], style=LOOKS[answer.place][0]))
    console.print(shown)


def _only_median(of: MedianOf | None, figure: Figure) -> str:
    return value_text(of.median if of else None, figure)


def median_of(of: MedianOf | None, figure: Figure) -> str:
    """A median of that figure, with its interval where it has one."""
    return NOTHING if of is None else interval_text(of, lambda value: value_text(value, figure))


def rows(
    of: Comparison, header: Sequence[str], text: Callable[[MedianOf | None, Figure], str]
) -> Iterator[tuple[str, ...]]:
    """The cells of each answer under these headers; `text` writes a side."""
    names = cell_names([answer.question.cell for answer in of.answers])
    for answer in of.answers:
        figure, limits = answer.question.figure, answer.question.limits
        cells = {
            "load": names[answer.question.cell],
            "of": figure,
            "A": text(answer.a, figure),
            "B": text(answer.b, figure),
            "B/A": ratio_text(answer.ratio),
            "interval": interval_of(answer.ratio),
            "raw": f"{ratio_text(answer.raw)} {interval_of(answer.raw)}",
            "A/A": floor_text(answer.same),
            "allowed": limits_text(limits),
            "answer": answer.place,
        }
        yield tuple(cells[name] for name in header)


def beside(of: Comparison, names: tuple[str, str] = NAMES) -> list[str]:
    """What a reader must know with the table: why answers are missing, what was judged in place of
    another figure, what was measured again, the cells of one side only, and what was left out."""
    loads = cell_names([*(one.question.cell for one in of.answers), *of.only_a, *of.only_b])
    found: dict[str, list[str]] = {}
    for answer in of.answers:
        name = f"{loads[answer.question.cell]} {answer.question.figure}"
        for line in _about(answer, names):
            found.setdefault(line, []).append(name)
    lines = [line.format("; ".join(whose)) for line, whose in found.items()]
    for side, only in zip(names, (of.only_a, of.only_b), strict=True):
        if only:
            lines.append(f"only in {side}: {'; '.join(loads[cell] for cell in only)}")
    for side, count in zip(names, (of.invalid_a, of.invalid_b), strict=True):
        if count:
            are = "s of {} are" if count > 1 else " of {} is"
            lines.append(f"{count} invalid trial{are.format(side)} not compared")
    if not of.answers:
        lines.append(f"{names[0]} and {names[1]} have no load in common")
    return lines


def _about(answer: Answer, names: tuple[str, str]) -> Iterator[str]:
    """Lines about an answer, with `{}` for what it is about."""
    if answer.why:
        yield f"{answer.place}: {{}}: {why(answer, names)}"
    if answer.ratio and answer.ratio.interval and not answer.paired:
        yield (
            "unpaired: {}: the sides were not measured in turns, so what drifted between them is "
            "part of the difference"
        )
    if answer.question.instead and answer.why != "no limit":
        instead = _INSTEAD[answer.question.instead].format(A=names[0])
        yield f"goodput in place of a percentile: {{}}: {instead}"
    if answer.question.figure == "cpu" and answer.raw:
        yield f"{{}}: {_machine(answer)}"
    if answer.tries_a.share + answer.tries_b.share and answer.why != "left out":
        yield f"{{}}: {tries_text(answer, names)}"


def why(answer: Answer, names: tuple[str, str] = NAMES) -> str:
    """Why there is no answer, or what decided it; and how many launches would tell."""
    facts = answer.facts
    text = _WHYS[answer.why].format(
        *facts, A=names[0], B=names[1], percent=percent(facts[0]) if facts else ""
    )
    if answer.why == "left out":
        text = f"{tries_text(answer, names)}: {text}"
    if answer.launches is not None and answer.launches > (facts[1] if facts else 0):
        text += f"; some {answer.launches} launches of each side would tell"
    elif answer.why == "across":
        text += "; more launches hardly help"
    return text


def _machine(answer: Answer) -> str:
    """Whether the machine's speed was taken out of a CPU time, and the figure before."""
    control = answer.control
    raw = f"raw {ratio_text(answer.raw)} {interval_of(answer.raw)}"
    if control is None:
        return f"{raw}, as the CPU time of the control parts is not known in pairs"
    parts = f"control parts {ratio_text(control.ratio)}, A/A {floor_text(control.same)}"
    return f"{raw}, {_CONTROL[control.use]} ({parts})"


def tries_text(answer: Answer, names: tuple[str, str]) -> str:
    sides = []
    for name, tries in zip(names, (answer.tries_a, answer.tries_b), strict=True):
        text = f"{tries.again + tries.lost} of {tries.launches} launches of {name}"
        sides.append(f"{text} ({tries.lost} lost)" if tries.lost else text)
    return f"measured again or lost: {' and '.join(sides)}"


def single(of: Sequence[Comparison]) -> str:
    """What comparisons would take whose sides have one launch each: none of them has an answer.
    Empty where one has more, and where nothing is compared."""
    ratios = [answer.ratio for one in of for answer in one.answers if answer.ratio is not None]
    if not ratios or any(max(one.count_a, one.count_b) > 1 for one in ratios):
        return ""
    family, several = of[0].family, of[0].family.answers > 1
    return (
        f"Nothing is called better or worse: {'these' if several else 'this'} {family.answers} "
        f"comparison{'s take' if several else ' takes'} {family.launches} launches of each side, "
        f"and there is one (make run EXP=… LAUNCHES={family.launches})."
    )


def section(of: Sequence[Comparison]) -> Section:
    """Each behind its answers, and the legend; one line where no answer is possible."""
    if text := single(of):
        return Section("Comparisons", [Paragraph(text)])
    legends = (Paragraph(line, "legend") for line in legend(of))
    return Section("Comparisons", [*map(_folded, of), *legends])


def _folded(of: Comparison) -> Folded:
    counts = Counter(answer.place for answer in of.answers)
    shown = [f"{counts[place]} × {place}" for place in LOOKS if counts[place]]
    answers = Beside(", ".join(shown) or "no load in common")
    marks: dict[str, str] = {place: on_page for place, (_, on_page) in LOOKS.items()}
    table = tuple(rows(of, HEADER, median_of))
    return Folded(
        (Strong(of.b), " (B) against ", Strong(of.a), " (A)", answers),
        [
            Table(HEADER, table, f"{of.b} against {of.a}", names=2, marks=marks),
            Bullets(beside(of)),
        ],
        is_open=MOST >= len(of.answers) > counts["cannot tell"],
    )


def legend(comparisons: Sequence[Comparison]) -> list[str]:
    if not any(of.answers for of in comparisons):
        return []
    family = comparisons[0].family
    return [
        "B/A: Hodges-Lehmann estimate with its exact interval, of pairs from one round of one run "
        "(Wilcoxon's signed ranks), or of launches of separate runs (Mann-Whitney). within: the "
        f"whole interval is within a factor of {1 + MARGIN:g}; better, worse: all of it is beyond; "
        "cannot tell: it reaches across, or something else is in the way. goodput: answers per "
        "second that were no errors. p95: from when a request was due; of an open load that "
        "overloads both sides, or fails, goodput is compared.",
        sure(family),
    ]


def sure(family: Family) -> str:
    """How sure the answers of a family are together, and what that takes."""
    return (
        f"{family.answers} answer{'s' if family.answers > 1 else ''}: they hold together in at "
        f"least {CONFIDENCE:.0%} of cases, so each takes an interval of "
        f"{percent(family.confidence)} or more, and {family.launches} launches of each side."
    )


def percent(confidence: float) -> str:
    """A confidence, never rounded up: 99.75 %."""
    return f"{int(confidence * 10_000 + 1e-6) / 100:g} %"


def cell_names(cells: Sequence[Cell]) -> dict[Cell, str]:
    """Each cell in a few words; route, engine and times only where they differ among these."""

    def differs(name: str) -> bool:
        return len({getattr(cell, name) for cell in cells}) > 1

    def name(cell: Cell) -> Iterator[str]:
        if differs("route"):
            yield cell.route
        yield f"{cell.mode} {cell.concurrency}"
        if cell.offered_rps is not None:
            yield f"at {cell.offered_rps}/s"
        if differs("engine"):
            yield cell.engine
        if differs("duration_s"):
            yield f"for {cell.duration_s} s"
        if differs("warmup_s"):
            warmup = "by default" if cell.warmup_s is None else f"{cell.warmup_s} s"
            yield f"warmed up {warmup}"

    return {cell: " ".join(name(cell)) for cell in cells}


def value_text(value: float | None, figure: Figure) -> str:
    if figure in ("p95", "p99"):
        return milliseconds(value)
    return rate(value / MIB if value is not None and figure == "memory" else value)


def limits_text(limits: Limits) -> str:
    """What is allowed: ≥ 0.95, ≤ 1.05."""
    ends = (("≥", limits.low), ("≤", limits.high))
    return " ".join(f"{sign} {end:.3g}" for sign, end in ends if end is not None)


def floor_text(same: RatioOf | None) -> str:
    """How far a side differs from itself: ±2.1%."""
    if same is None or same.interval is None:
        return NOTHING
    return f"±{max(same.interval.high, 1 / same.interval.low) - 1:.1%}"


def ratio_text(ratio: RatioOf | None) -> str:
    return NOTHING if ratio is None else f"{ratio.ratio:.3f}"


def interval_of(ratio: RatioOf | None) -> str:
    interval = ratio.interval if ratio else None
    return f"[{interval.low:.3f}, {interval.high:.3f}]" if interval else "no interval"
