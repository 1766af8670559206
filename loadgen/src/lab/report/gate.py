"""A gate for people and pipelines: on the console, as Markdown, JUnit XML and JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from rich.console import Console

from lab.judge.compare import Answer, Comparison, Overall, overall
from lab.report import console as printed
from lab.report import markdown as written
from lab.report.blocks import Block, Bullets, Paragraph, Section, Strong
from lab.report.comparison import UNITS, beside, limits_text, ratio_text, reasons, sure, table
from lab.report.remarks import say
from lab.report.text import cell_names, median
from lab.store.records import json_text, to_json

JSON, MARKDOWN, JUNIT = "gate.json", "gate.md", "gate.xml"
# So many limits are in the answer; the table has all of them.
MOST_SHOWN = 3
COLUMNS = ("load", "of", "A", "B", "B/A", "interval", "A/A", "allowed", "answer", "why")


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
        return [answer for compared in self.comparisons for answer in compared.answers]

    @property
    def launches(self) -> int | None:
        """How many launches of each side would tell; None if that is unknown."""
        wanted = [answer.launches for answer in self.answers if answer.place == "cannot tell"]
        known = [launches for launches in wanted if launches is not None]
        return max(known) if known and len(known) == len(wanted) else None


def render(console: Console, gate: Gate, folder: str) -> None:
    """Print every limit, the notes, where the files are, and the answer last."""
    where = f"{folder}/{{{MARKDOWN},{JUNIT},{JSON}}}"
    last = Paragraph((Strong(answer(gate)),))
    printed.write(console, [*blocks(gate), Paragraph(where), last])


def blocks(gate: Gate) -> Iterator[Block]:
    yield Paragraph(f"base (A) {gate.base}, candidate (B) {gate.candidate}")
    for compared in gate.comparisons:
        lines = Bullets([*beside(compared)])
        yield Section(_lane(compared), [table(compared, COLUMNS), lines])
    yield Bullets((*gate.notes, say("legend", "gate", sure=sure(gate.comparisons[0].family))))


def answer(gate: Gate) -> str:
    count = len(gate.answers)
    if gate.answer == "not worse":
        return say("gate", "not worse", count=count, one=count == 1)
    named = [
        f"{load} {judged.question.figure} {_figures(judged)}"
        for load, judged in _named(gate)
        if judged.place == gate.answer
    ]
    return say(
        "gate",
        "other",
        answer=gate.answer,
        named="; ".join(named[:MOST_SHOWN]),
        more=max(0, len(named) - MOST_SHOWN),
        launches=gate.launches if gate.answer == "cannot tell" else None,
    )


def files(gate: Gate) -> dict[str, str]:
    page = written.markdown([Paragraph((Strong(answer(gate)),)), *blocks(gate)])
    known = {"format_version": 1, "answer": gate.answer, "launches": gate.launches}
    return {JSON: json_text({**known, **to_json(gate)}), MARKDOWN: f"{page}\n", JUNIT: junit(gate)}


def junit(gate: Gate) -> str:
    """A test suite with a test for each limit: worse is a failure, "cannot tell" an error."""
    places = [judged.place for judged in gate.answers]
    suite = ElementTree.Element(
        "testsuite",
        name="gate",
        tests=str(len(places)),
        failures=str(places.count("worse")),
        errors=str(places.count("cannot tell")),
    )
    for load, judged in _named(gate):
        figure = judged.question.figure
        case = ElementTree.SubElement(suite, "testcase", classname=load, name=figure)
        if kind := {"worse": "failure", "cannot tell": "error"}.get(judged.place):
            message = f"{judged.place}: {_figures(judged)}"
            unit, size = UNITS[figure]
            sides = f"base (A) {median(judged.a, size)}, candidate (B) {median(judged.b, size)}"
            text = f"{sides} {unit}. {'; '.join(reasons(judged))}".rstrip()
            ElementTree.SubElement(case, kind, message=message).text = text
    ElementTree.indent(suite)
    text_bytes: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return text_bytes.decode() + "\n"


def _named(gate: Gate) -> Iterator[tuple[str, Answer]]:
    """Each answer with the name of its lane and load."""
    for compared in gate.comparisons:
        loads = cell_names([judged.question.cell for judged in compared.answers])
        for judged in compared.answers:
            yield f"{_lane(compared)} {loads[judged.question.cell]}", judged


def _lane(compared: Comparison) -> str:
    return compared.b.rpartition(":")[2]


def _figures(judged: Answer) -> str:
    return f"{ratio_text(judged.ratio)}, allowed {limits_text(judged.question.limits)}"
