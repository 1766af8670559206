"""Comparisons: as a table on the console, in both reports, and as comparison.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from lab.judge.compare import (
    MARGIN,
    MOST_ERRORS,
    Answer,
    CellComparison,
    Comparison,
    percent,
    tries_text,
)
from lab.judge.grouping import Cell, Metric
from lab.judge.intervals import CONFIDENCE, Interval, MedianOf
from lab.report.blocks import MOST, Beside, Bullets, Folded, Paragraph, Section, Strong, Table
from lab.report.table import NOTHING, console_table, milliseconds, rate
from lab.store.records import to_json

NAME = "comparison.json"
# 1: `achieved_rps` was compared, errors included. 2: `goodput_rps`. 3: one answer for each load.
# 4: `tries_a` and `tries_b`.
# No ratio of measured rates or latencies has more.
MOST_DIGITS = 6
HEADER = ("load", "of", "A", "B", "B/A", "interval", "answer")
# Each answer with its style on a console and its class on a page.
_LOOKS: dict[Answer, tuple[str, str]] = {
    "faster": ("green", "good"),
    "slower": ("red", "bad"),
    "differs, by less than 5 %": ("", ""),
    "differs": ("", ""),
    "no difference": ("", ""),
    "inconclusive": ("dim", ""),
}
_METRICS: dict[Metric, str] = {
    "goodput_rps": "goodput",
    "p95_ms": "p95",
    "raw_p95_ms": "raw p95",
}


def to_file(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    return {
        "margin": MARGIN,
        "confidence": CONFIDENCE,
        "comparisons": to_json(list(comparisons)),
    }


def render(console: Console, comparisons: Sequence[Comparison]) -> None:
    """Print a table for each pair, then why cells have no answer, and what the words mean."""
    for of in comparisons:
        console.print(Text(f"B {of.b} against A {of.a}", style="bold"), soft_wrap=True)
        if of.cells:
            shown = console_table(HEADER, left=("load", "of", "interval", "answer"))
            shown.columns[0].no_wrap = False
            for cell, (*cells, answer) in zip(of.cells, _rows(of, _only_median), strict=True):
                shown.add_row(*cells, Text(answer, style=_LOOKS[cell.answer][0]))
            console.print(shown)
        for line in beside(of):
            console.print(Text(line), soft_wrap=not console.is_terminal)
    for line in legend(comparisons):
        console.print(Text(line, style="dim"))


def _only_median(of: MedianOf | None, metric: Metric) -> str:
    return value_text(of.median if of else None, metric)


def _rows(
    of: Comparison, text: Callable[[MedianOf | None, Metric], str]
) -> Iterator[tuple[str, ...]]:
    """The cells of each load under HEADER; `text` writes a side."""
    names = cell_names([cell.cell for cell in of.cells])
    for cell in of.cells:
        sides = (text(side, cell.metric) for side in (cell.a, cell.b))
        yield names[cell.cell], _METRICS[cell.metric], *sides, *ratio_texts(cell), cell.answer


def beside(of: Comparison) -> list[str]:
    """What a reader must know beside the table: whether launches were paired, why cells have no
    answer or another metric, what was measured again, the cells of one side only, and what was left
    out."""
    name = cell_names([*(cell.cell for cell in of.cells), *of.only_a, *of.only_b])
    whys: dict[str, list[str]] = {}
    for cell in of.cells:
        said = []
        if cell.interval and not cell.paired:
            said.append(
                "unpaired: {}: A and B were not measured in turns, so what drifted between them is "
                "part of the difference"
            )
        if cell.no_p95:
            said.append(f"goodput instead of p95: {{}}: {cell.no_p95}")
        if cell.answer in ("inconclusive", "differs"):
            said.append(f"{cell.answer}: {{}}: {cell.why}")
        tries = tries_text(cell.tries_a, cell.tries_b)
        if cell.tries_a.share + cell.tries_b.share and not cell.why.startswith(tries):
            said.append(f"{{}}: {tries}")
        for why in said:
            whys.setdefault(why, []).append(name[cell.cell])
    lines = [why.format("; ".join(cells)) for why, cells in whys.items()]
    for side, only in (("A", of.only_a), ("B", of.only_b)):
        if only:
            lines.append(f"only in {side}: {'; '.join(name[cell] for cell in only)}")
    for side, count in (("A", of.invalid_a), ("B", of.invalid_b)):
        if count:
            lines.append(
                f"{count} invalid trial{'s' if count > 1 else ''} of {side} "
                f"{'are' if count > 1 else 'is'} not compared"
            )
    if not of.cells:
        lines.append("A and B have no load in common")
    return [*lines, *_windows(of)]


def _windows(of: Comparison) -> Iterator[str]:
    """What to do where a load was measured in windows of several lengths, as one of them proved too
    short: such trials are not compared."""
    lengths: dict[Cell, set[int]] = {}
    for cell in (*(one.cell for one in of.cells), *of.only_a, *of.only_b):
        if cell.duration_s is not None:
            lengths.setdefault(cell.any_window, set()).add(cell.duration_s)
    several = {cell: of_cell for cell, of_cell in lengths.items() if len(of_cell) > 1}
    if several:
        names, lengths_s = cell_names(list(several)), sorted(set().union(*several.values()))
        yield (
            f"{'; '.join(names.values())}: windows of {' and '.join(map(str, lengths_s))} s. Only "
            "those of one length are compared: measure both sides with "
            f"DURATION={lengths_s[-1]}s"
        )


def single(of: Sequence[Comparison]) -> str:
    """What comparisons would take whose sides have one launch each: so none of them says anything.
    Empty where one has more, and where nothing is compared."""
    ratios = [cell.ratio for one in of for cell in one.cells if cell.ratio is not None]
    if not ratios or any(max(one.count_a, one.count_b) > 1 for one in ratios):
        return ""
    family, several = of[0].family, of[0].family.answers > 1
    return (
        f"Nothing is called faster or slower: {'these' if several else 'this'} {family.answers} "
        f"comparison{'s take' if several else ' takes'} {family.launches} launches of each side, "
        f"and there is one (make run EXP=… LAUNCHES={family.launches})."
    )


def section(of: Sequence[Comparison]) -> Section:
    """Each behind its answers, and what the words mean: for both reports. One line where no answer
    is possible."""
    if said := single(of):
        return Section("Comparisons", [Paragraph(said)])
    legends = (Paragraph(line, "legend") for line in legend(of))
    return Section("Comparisons", [*map(_folded, of), *legends])


def _folded(of: Comparison) -> Folded:
    counts = Counter(cell.answer for cell in of.cells)
    told = [f"{counts[answer]} × {answer}" for answer in _LOOKS if counts[answer]]
    answers = Beside(", ".join(told) or "no load in common")
    marks: dict[str, str] = {answer: on_page for answer, (_, on_page) in _LOOKS.items()}
    rows = tuple(_rows(of, median_text))
    return Folded(
        (Strong(of.b), " (B) against ", Strong(of.a), " (A)", answers),
        [
            Table(HEADER, rows, f"{of.b} against {of.a}", names=2, marks=marks),
            Bullets(beside(of)),
        ],
        is_open=MOST >= len(of.cells) > counts["inconclusive"],
    )


def legend(comparisons: Sequence[Comparison]) -> list[str]:
    """What the words mean, and how sure all answers are together."""
    if not any(of.cells for of in comparisons):
        return []
    family = comparisons[0].family
    looks = f" in each of {family.looks} looks (pooled runs)" if family.looks > 1 else ""
    answers = f"{family.answers} answer{'s' if family.answers > 1 else ''}{looks}: "
    each = percent(family.confidence)
    shown = [cell.interval.coverage for of in comparisons for cell in of.cells if cell.interval]
    least = min(shown, default=family.confidence)
    sure = (
        f"with a probability of at least {CONFIDENCE:.0%} every interval holds its true ratio, so "
        f"each has {each} or more. That takes {family.launches} launches of each side."
    )
    if least < family.confidence - 1e-9:
        sure = (
            f"that all of them hold with a probability of at least {CONFIDENCE:.0%}, each takes an "
            f"interval of {each} or more, and so {family.launches} launches of each side. An "
            f"interval of fewer launches has {percent(least)} or more by itself, and is no answer."
        )
    return [
        "B/A: Hodges-Lehmann estimate with its exact interval. In one run launch k of A is paired "
        "with launch k of B, which ran beside it (Wilcoxon's signed ranks); launches of separate "
        "runs are not paired (Mann-Whitney). faster, slower: the whole interval is beyond a factor "
        f"of {1 + MARGIN:g}; differs, by less than 5 %: it is within that factor and excludes 1; "
        "no difference: it is within that factor and holds 1; differs: it excludes 1 and reaches "
        "across that factor; inconclusive: otherwise. goodput: answers per second that were no "
        "errors. p95: from when a request was due. A closed load is compared on goodput. An open "
        "load is compared on p95, but on goodput where it overloads a side, or more than "
        f"{MOST_ERRORS:.0%} of a side's requests failed.",
        answers + sure,
    ]


def cell_names(cells: Sequence[Cell]) -> dict[Cell, str]:
    """Each cell in a few words; route, engine, window and warm-up only where they differ among
    these."""
    routes = len({cell.route for cell in cells}) > 1
    engines = len({cell.engine for cell in cells}) > 1
    windows = len({cell.duration_s for cell in cells}) > 1
    warmups = len({cell.warmup_s for cell in cells}) > 1
    return {
        cell: " ".join(
            (
                *((cell.route,) if routes else ()),
                cell.mode,
                f"{cell.concurrency}",
                *((f"at {cell.offered_rps}/s",) if cell.offered_rps is not None else ()),
                *((cell.engine,) if engines else ()),
                *((f"for {cell.duration_s} s",) if windows else ()),
                *((_warmup(cell),) if warmups else ()),
            )
        )
        for cell in cells
    }


def _warmup(cell: Cell) -> str:
    return f"warmed up {'by default' if cell.warmup_s is None else f'{cell.warmup_s} s'}"


def value_text(value: float | None, metric: Metric) -> str:
    """A value of that metric: requests per second, or milliseconds."""
    return rate(value) if metric == "goodput_rps" else milliseconds(value)


def median_text(of: MedianOf | None, metric: Metric) -> str:
    """A median, with its interval where it has one."""
    if of is None:
        return NOTHING
    text = value_text(of.median, metric)
    if of.interval is None:
        return text
    low, high = (value_text(v, metric) for v in (of.interval.low, of.interval.high))
    return f"{text} [{low}, {high}]"


def ratio_texts(cell: CellComparison) -> tuple[str, str]:
    ratio = NOTHING if cell.ratio is None else f"{cell.ratio.ratio:.3f}"
    if cell.interval is None:
        return ratio, "no interval"
    return ratio, ratio_interval(cell.interval, (1, 1 + MARGIN, 1 / (1 + MARGIN)))


def ratio_interval(interval: Interval, limits: Sequence[float]) -> str:
    """The interval of a ratio, with three digits after the point. It has more where rounding would
    move an end across one of the limits, or onto it."""

    def sides(value: float) -> list[tuple[bool, bool]]:
        return [(value < limit, value > limit) for limit in limits]

    ends = (interval.low, interval.high)
    enough = (
        digits
        for digits in range(3, MOST_DIGITS)
        if all(sides(round(end, digits)) == sides(end) for end in ends)
    )
    digits = next(enough, MOST_DIGITS)
    return f"[{interval.low:.{digits}f}, {interval.high:.{digits}f}]"
