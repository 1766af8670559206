"""REPORT.md: a whole run for people, from its manifest and what was computed of its trials.

The same run gives the same text: no time but the run's own, nothing of where it lies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lab.judge.compare import Comparison
from lab.judge.grouping import Load
from lab.report import answers, fairness, recorded, settings, spent, verdicts, words
from lab.report import comparison as texts
from lab.report.recorded import Recorded
from lab.report.words import Content

NAME = "REPORT.md"
# Where this report tells what report.html tells in those sections.
_PLACES = {"validity": "Invalid trials", "fairness": "What was run"}


def text(of: Content) -> str:
    """The whole report."""
    asked = words.question(of), of.experiment.hypothesis
    sections = (
        ("Findings", [f"- {words.finding(one)}" for one in of.findings]),
        ("What limited", _limited(of)),
        ("Recorded", _recorded(of.recorded)),
        ("Comparisons", _comparisons(of.comparisons)),
        ("Predicted and measured", _predicted(of)),
        ("Loads", _loads(of.loads)),
        *((one.title, _spent(one)) for one in spent.tables(of.loads)),
        ("What was run", _what(of)),
        ("Invalid trials", [f"- {line}" for line in words.invalid(of)]),
        ("Notes", [f"- {note}" for note in words.notes(of)]),
        ("Again", _again(of)),
    )
    above = [*_answers(of), *_notices(of)]
    return document(f"{of.experiment.name}: {of.manifest.run}", above, asked, sections)


def document(
    title: str,
    above: Iterable[str],
    asked: tuple[str, str],
    sections: Iterable[tuple[str, Iterable[str]]],
) -> str:
    """A report: what stands above all, question and hypothesis, and the sections that have any
    line."""
    lines = [f"# {title}", "", *above]
    for name, said in zip(("Question", "Hypothesis"), asked, strict=True):
        if said:
            lines += [f"**{name}.** {said.strip()}", ""]
    for name, section in sections:
        body = list(section)
        if body:
            lines += [f"## {name}", "", *body, ""]
    return "\n".join(lines).rstrip() + "\n"


def _answers(of: Content) -> Iterator[str]:
    lines, notes = answers.lines(of.answers), answers.notes(of.answers)
    if lines:
        yield from ("```", *lines, "```", "", *notes, *([""] if notes else []))


def _notices(of: Content) -> Iterator[str]:
    for line in words.notices(of):
        more = f"see {_PLACES[line.place]}." if line.place else ""
        yield " ".join(filter(None, (f"> **{line.strong}**", line.text, more)))
        yield ""


def _limited(of: Content) -> Iterator[str]:
    for load, verdict, beside in verdicts.lines(of.said):
        yield f"- **{load}**: {verdict}{f'; {beside}' if beside else ''}"


def _recorded(of: Sequence[Recorded]) -> Iterator[str]:
    for one in of:
        # A constructor is called <init>, which would be a tag.
        said = "; ".join(recorded.lines(one)).replace("<", "&lt;")
        link = f" [Flame graph]({one.link})" if one.recording else ""
        yield f"**{one.load}**: {said}.{link}"
        yield ""
        rows = recorded.table(one.recording) if one.recording else []
        if rows:
            yield from table(recorded.HEADER, [(f"`{method}`", *cells) for method, *cells in rows])
            yield ""
    if of:
        yield recorded.LEGEND


def _predicted(of: Content) -> Iterator[str]:
    rows = [one.cells for one in of.said if one.expected_rps is not None]
    if rows:
        yield from table(verdicts.HEADER, rows)
        yield ""
        yield verdicts.LEGEND


def _what(of: Content) -> Iterator[str]:
    for name, value in words.what(of):
        yield f"- {name}: {value}"
    for line, _ in fairness.lines(of.manifest.fairness):
        yield f"- {line}"


def _loads(loads: Sequence[Load]) -> Iterator[str]:
    if not loads:
        return
    same = words.same(loads)
    if same:
        yield f"All: {same}."
        yield ""
    yield from table(*words.loads_table(loads))
    yield ""
    yield words.LOADS_LEGEND


def _spent(one: spent.Table) -> Iterator[str]:
    for line in one.lines:
        yield f"- {line}"
    if one.lines:
        yield ""
    yield from table(one.header, one.rows)
    yield ""
    yield one.legend


def _comparisons(comparisons: Sequence[Comparison]) -> Iterator[str]:
    for of in comparisons:
        yield f"**B = {of.b} against A = {of.a}**"
        yield ""
        if of.cells:
            rows = [(*cells, f"**{answer}**") for *cells, answer in texts.rows(of)]
            yield from table(texts.HEADER, rows)
            yield ""
        for line in texts.beside(of):
            yield f"- {line}"
        yield ""
    yield from texts.legend(comparisons)


def _again(of: Content) -> Iterator[str]:
    changed = settings.changed(of.manifest)
    command = words.command(of, changed.words)
    if command:
        yield "```"
        yield command
        yield "```"
        yield ""
        if changed.others:
            yield words.not_brought_back(changed.others)
            yield ""
    yield (
        f"`make report RUN={of.manifest.run}` computes everything here again from the run's raw "
        "data, without the lab."
    )


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a Markdown table."""
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
