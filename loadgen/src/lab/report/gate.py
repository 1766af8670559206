"""A gate for people and pipelines: on the console, as Markdown, JUnit XML and JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from rich.console import Console
from rich.text import Text

from lab.judge.compare import Answer, Comparison, Figure, Overall, overall
from lab.report.comparison import (
    UNITS,
    beside,
    cell_names,
    interval_of,
    limits_text,
    median_of,
    print_table,
    ratio_text,
    rows,
    sure,
    why,
)
from lab.store.records import json_text, to_json

JSON, MARKDOWN, JUNIT = "gate.json", "gate.md", "gate.xml"
WIDTH = 80
# So many limits are in the answer; the table has all of them.
MOST_SHOWN = 3
STYLES: Mapping[Overall, str] = {"worse": "red", "cannot tell": "yellow", "not worse": "green"}
NAMES = ("the base", "the candidate")
_CONSOLE = ("load", "of", "B/A", "interval", "A/A", "allowed", "answer")
_PAGE = ("load", "of", "A", "B", "B/A", "interval", "raw", "A/A", "allowed", "answer")


@dataclass(frozen=True, slots=True)
class Gate:
    """All limits, judged, of a base (A) and a candidate (B), and notes on both."""

    base: str
    candidate: str
    comparisons: Sequence[Comparison]
    notes: Sequence[str]

    @property
    def answer(self) -> Overall:
        return overall(self.comparisons)

    @property
    def answers(self) -> list[Answer]:
        return [answer for of in self.comparisons for answer in of.answers]

    @property
    def launches(self) -> int | None:
        """How many launches of each side would tell; None where that is not known."""
        wanted = [one.launches for one in self.answers if one.place == "cannot tell"]
        known = [one for one in wanted if one is not None]
        return max(known) if known and len(known) == len(wanted) else None


def render(console: Console, of: Gate, folder: str) -> None:
    """Print every limit, the notes, where the files are, and the answer last. Lines have at most 80
    columns unless one word is longer."""

    def say(text: str, style: str = "") -> None:
        for line in textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False):
            console.print(Text(line, style=style), soft_wrap=True)

    say(f"base {of.base}")
    say(f"candidate {of.candidate}")
    for comparison in of.comparisons:
        say("")
        console.print(Text(_lane(comparison), style="bold"), soft_wrap=True)
        print_table(console, comparison, _CONSOLE)
    for note in notes(of):
        say(note)
    console.print(Text(f"{folder}/{{{MARKDOWN},{JUNIT},{JSON}}}"), soft_wrap=True)
    say(answer(of), STYLES[of.answer])


def answer(of: Gate) -> str:
    if of.answer == "not worse":
        count = len(of.answers)
        return f"gate: not worse: {count} of {count} limit{'s hold' if count > 1 else ' holds'}"
    named = [(name, one) for name, one in _named(of) if one.place == of.answer]
    text = "; ".join(f"{name} {_figures(one)}" for name, one in named[:MOST_SHOWN])
    if len(named) > MOST_SHOWN:
        text += f"; and {len(named) - MOST_SHOWN} more"
    if of.answer == "cannot tell" and of.launches is not None:
        text += f"; it takes some LAUNCHES={of.launches}"
    return f"gate: {of.answer}: {text}"


def notes(of: Gate) -> Iterator[str]:
    for comparison in of.comparisons:
        for line in beside(comparison, NAMES):
            yield f"{_lane(comparison)}: {line}" if len(of.comparisons) > 1 else line
    yield from of.notes
    yield (
        "B/A: candidate / base. within: the whole interval is within the limit; worse: all of it "
        "is beyond. A/A: how far a side differs from itself in as many launches. "
        f"{sure(of.comparisons[0].family)}"
    )


def files(of: Gate) -> dict[str, str]:
    return {JSON: json_text(_object(of)), MARKDOWN: markdown(of), JUNIT: junit(of)}


def _object(of: Gate) -> dict[str, object]:
    return {"format_version": 1, "answer": of.answer, "launches": of.launches, **to_json(of)}


def markdown(of: Gate) -> str:
    lines = [f"**{answer(of)}**", "", f"base (A) {of.base}, candidate (B) {of.candidate}", ""]
    for comparison in of.comparisons:
        lines += [f"**{_lane(comparison)}**", ""]
        lines += [f"| {' | '.join(_PAGE)} |", f"|{'---|' * len(_PAGE)}"]
        for one, cells in zip(comparison.answers, rows(comparison, _PAGE, median_of), strict=True):
            figure = one.question.figure
            texts = [f"{figure}, {UNITS[figure]}" if cell == figure else cell for cell in cells]
            texts[-1] = texts[-1] if one.place == "within" else f"**{one.place}**"
            lines.append(f"| {' | '.join(texts)} |")
        lines.append("")
    lines += [f"- {note}" for note in notes(of)]
    return "\n".join(lines) + "\n"


def junit(of: Gate) -> str:
    """A test suite with a test for each limit: worse is a failure, what cannot be told an error."""
    places = [one.place for one in of.answers]
    suite = ElementTree.Element(
        "testsuite",
        name="gate",
        tests=str(len(places)),
        failures=str(places.count("worse")),
        errors=str(places.count("cannot tell")),
    )
    for name, one in _named(of):
        figure: Figure = one.question.figure
        group = name.removesuffix(f" {figure}")
        case = ElementTree.SubElement(suite, "testcase", classname=group, name=figure)
        kind = {"worse": "failure", "cannot tell": "error"}.get(one.place)
        if kind is not None:
            message = f"{one.place}: {_figures(one)}"
            sides = f"base {median_of(one.a, figure)}, candidate {median_of(one.b, figure)}"
            text = f"{sides} {UNITS[figure]}. {why(one, NAMES) if one.why else ''}"
            ElementTree.SubElement(case, kind, message=message).text = text
    ElementTree.indent(suite)
    text_bytes: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return text_bytes.decode() + "\n"


def _named(of: Gate) -> Iterator[tuple[str, Answer]]:
    """Each answer with the name of its lane, load and figure."""
    for comparison in of.comparisons:
        loads = cell_names([one.question.cell for one in comparison.answers])
        for one in comparison.answers:
            question = one.question
            yield f"{_lane(comparison)} {loads[question.cell]} {question.figure}", one


def _lane(of: Comparison) -> str:
    return of.b.rpartition(":")[2]


def _figures(of: Answer) -> str:
    allowed = limits_text(of.question.limits)
    return f"{ratio_text(of.ratio)} {interval_of(of.ratio)}, allowed {allowed}"
