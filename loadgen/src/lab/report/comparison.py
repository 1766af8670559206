"""Comparisons: a table of each, what a reader must know beside it, and comparison.json."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lab.judge.compare import (
    MARGIN,
    Answer,
    Comparison,
    Family,
    Figure,
    Limits,
    Place,
)
from lab.judge.intervals import CONFIDENCE, RatioOf
from lab.judge.values import CONTROL, MOST_ERRORS
from lab.report.blocks import (
    MOST,
    Block,
    Bullets,
    Folded,
    Paragraph,
    Section,
    Strong,
    Table,
)
from lab.report.remarks import say
from lab.report.result import Result
from lab.report.text import NOTHING, cell_names, counted, median
from lab.store.records import MIB, to_json

NAME = "comparison.json"
COLUMNS = ("load", "of", "A", "B", "B/A", "interval", "answer", "why")
# What the sides are called in a sentence.
type Names = tuple[str, str]
NAMES: Names = ("A", "B")
# The class of each place on a page.
MARKS: Mapping[Place, str] = {
    "better": "good",
    "worse": "bad",
    "within": "",
    "cannot tell": "unsure",
}
# Each figure's unit, and how much of what is stored that is.
UNITS: Mapping[Figure, tuple[str, float]] = {
    "goodput": ("req/s", 1),
    "p95": ("ms", 1),
    "p99": ("ms", 1),
    "cpu": ("µs", 1),
    "memory": ("MiB", MIB),
}


def to_file(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    found = to_json(list(comparisons))
    return {"margin": MARGIN, "confidence": CONFIDENCE, "comparisons": found}


def section(result: Result) -> Section:
    """Each comparison behind its answers, and the legend; one line if no answer is possible."""
    compared, text, none = result.comparisons, single(result.comparisons), ""
    if len({load.lane for load in result.loads}) == 1 and not result.kind.changes_lab:
        none = "Only one server was measured: there is nothing to compare."
    return Section("Comparisons", [Paragraph(text)] if text else tables(compared), "ab", none)


def tables(comparisons: Sequence[Comparison]) -> list[Block]:
    """Each comparison, and what the words mean."""
    if not any(comparison.answers for comparison in comparisons):
        return [*map(_folded, comparisons)]
    legend = say("legend", "comparison", factor=1 + MARGIN)
    texts = (Paragraph(text, "legend") for text in (legend, sure(comparisons[0].family)))
    return [*map(_folded, comparisons), *texts]


def single(comparisons: Sequence[Comparison]) -> str:
    """What comparisons would take whose sides have one launch each: none of them has an answer.
    Empty if one has more, and if nothing is compared."""
    answers = (answer for comparison in comparisons for answer in comparison.answers)
    ratios = [answer.ratio for answer in answers if answer.ratio]
    if not ratios or any(max(ratio.count_a, ratio.count_b) > 1 for ratio in ratios):
        return ""
    family = comparisons[0].family
    asked = counted(family.answers, "comparison")
    return say("beside", "single", asked=asked, takes=family.launches)


def _folded(comparison: Comparison) -> Folded:
    counts = Counter(answer.place for answer in comparison.answers)
    answers = ", ".join(f"{counts[place]} × {place}" for place in MARKS if counts[place])
    sides = (Strong(comparison.b), " (B) against ", Strong(comparison.a), " (A): ")
    return Folded(
        (*sides, answers or "no load in common"),
        [table(comparison), Bullets([*beside(comparison)])],
        is_open=MOST >= len(comparison.answers) > counts["cannot tell"],
    )


def table(comparison: Comparison, columns: Sequence[str] = COLUMNS, names: Names = NAMES) -> Table:
    loads = cell_names([answer.question.cell for answer in comparison.answers])
    rows = []
    for answer in comparison.answers:
        figure = answer.question.figure
        unit, size = UNITS[figure]
        cells = {
            "load": loads[answer.question.cell],
            "of": f"{figure}, {unit}",
            "A": median(answer.a, size),
            "B": median(answer.b, size),
            "B/A": ratio_text(answer.ratio),
            "interval": interval_of(answer.ratio),
            "A/A": floor_text(answer.same),
            "allowed": limits_text(answer.question.limits),
            "answer": answer.place,
            "why": "; ".join(reasons(answer, names)),
        }
        rows.append([cells[name] for name in columns])
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    label = f"{comparison.b} against {comparison.a}"
    wide = [at for at, name in enumerate(columns) if name == "why"]
    return Table(columns, rows, label, "", 2, wide, MARKS, optional=("A", "B"))


def reasons(answer: Answer, names: Names = NAMES) -> list[str]:
    """Why there is no answer, or what decided it; what was judged in place of another figure, and
    what was measured again."""
    facts, control, question = answer.facts, answer.control, answer.question
    tells = answer.launches is not None and (len(facts) < 2 or answer.launches > facts[1])
    tried = answer.tries_a.share + answer.tries_b.share > 0
    codes = (
        answer.why,
        "launches" if tells else "hardly" if answer.why == "across" else "",
        "unpaired" if answer.ratio and answer.ratio.interval and not answer.paired else "",
        f"instead-{question.instead}" if question.instead and answer.why != "no limit" else "",
        (control.use if control else "uncontrolled")
        if question.figure == "cpu" and answer.raw
        else "",
        "tries" if tried and answer.why != "left out" else "",
    )
    values: dict[str, object] = {
        "a": names[0],
        "b": names[1],
        "launches": answer.launches,
        "most": MOST_ERRORS,
        "tries": tries_text(answer, names),
        "raw": f"{ratio_text(answer.raw)} {interval_of(answer.raw)}",
        "power": CONTROL,
        "ratio": ratio_text(control.ratio) if control else None,
        "floor": floor_text(control.same) if control else None,
        "confidence": percent(facts[0]) if answer.why == "few" else None,
        "without": f"[{facts[2]:.3f}, {facts[3]:.3f}]" if len(facts) > 3 else None,
        **{f"f{at}": fact for at, fact in enumerate(facts)},
    }
    return [say("why", code, **values) for code in codes if code]


def beside(comparison: Comparison, names: Names = NAMES) -> Iterator[str]:
    """What the table leaves out: loads of one side only, and invalid trials."""
    loads = cell_names([*comparison.only_a, *comparison.only_b])
    left_out = (
        (names[0], comparison.only_a, comparison.invalid_a),
        (names[1], comparison.only_b, comparison.invalid_b),
    )
    for side, only, invalid in left_out:
        if only:
            where = "; ".join(loads[cell] for cell in only)
            yield say("beside", "only", side=side, of=where)
        if invalid:
            yield say("beside", "invalid", side=side, count=counted(invalid, "invalid trial"))
    if not comparison.answers:
        yield say("beside", "nothing", a=names[0], b=names[1])


def tries_text(answer: Answer, names: Names) -> str:
    sides = []
    for name, tries in zip(names, (answer.tries_a, answer.tries_b), strict=True):
        text = f"{tries.again + tries.lost} of {tries.launches} launches of {name}"
        sides.append(f"{text} ({tries.lost} lost)" if tries.lost else text)
    return f"measured again or lost: {' and '.join(sides)}"


def sure(family: Family) -> str:
    """How sure the answers of a family are together, and what that takes."""
    return say(
        "beside",
        "sure",
        answers=counted(family.answers, "answer"),
        together=CONFIDENCE,
        confidence=percent(family.confidence),
        launches=family.launches,
    )


def percent(confidence: float) -> str:
    """A confidence, never rounded up: 99.75 %."""
    return f"{int(confidence * 10_000 + 1e-6) / 100:g} %"


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
