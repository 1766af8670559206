"""The sections of a run's report, answers first: built here once, written by `markdown` and by
`page`, which adds what is drawn. A new section is a function in a file of its own, and a line of
SECTIONS."""

from collections.abc import Callable, Iterator, Sequence

from lab.report import (
    answers,
    comparison,
    density,
    fairness,
    findings,
    loads,
    planted,
    recorded,
    ruler,
    settings,
    verdicts,
    words,
)
from lab.report.blocks import Block, Bullets, Code, Link, Loud, Paragraph, Section, Table, prose
from lab.report.remarks import say, text_of
from lab.report.result import Result
from lab.report.text import counted


def first(result: Result) -> tuple[Block, ...]:
    """What stands above all sections: the answer, and what a reader must know before it is used."""
    summary = Paragraph(words.summary(result), "meta")
    return (summary, *answers.blocks(answers.of(result)), Loud(tuple(notices(result))))


def notices(result: Result) -> Iterator[str]:
    scale, status, count = result.experiment.scale, result.manifest.status, len(result.rows)
    if scale != 1:
        yield say("notice", "scale", scale=scale)
    if status != "complete":
        yield say("notice", "status", status=status, trials=counted(count, "trial"))
    if result.invalid:
        # A search may learn from one that a rate is held or broken: that rate was not measured.
        yield say("notice", "invalid", invalid=len(result.invalid), trials=counted(count, "trial"))
    yield from ruler.drifts(result.findings)
    for name in result.manifest.fairness.unequal:
        yield say("notice", "unequal", name=name)


def question(result: Result) -> Section:
    none = "No hypothesis was written down for this run."
    expected = Section("Hypothesis", prose(result.experiment.hypothesis), none=none)
    return Section("Question", [*prose(words.question(result), "asked"), expected], "question")


def found(result: Result) -> Section:
    return Section("Findings", [Bullets(findings.lines(result.findings))], "findings")


def validity(result: Result) -> Section:
    count, invalid = len(result.rows), result.invalid
    text = f"{count - len(invalid)} of {count} trials are valid."
    lines = [(Link(row.trial, f"#trial-{row.trial}"), f": {text_of(row)}") for row in invalid]
    notes = Section("Notes", [Bullets(tuple(words.notes(result)))])
    return Section("Validity", [Paragraph(text), Bullets(lines), notes], "validity")


def run(result: Result) -> Section:
    facts = Table(("what", "value"), [*words.run(result)], "What was run, on what")
    return Section("What was run, on what", [facts], "run")


def again(result: Result) -> Section:
    """The commands that run the same again, and that compute the report again."""
    changed = settings.changed(result.manifest)
    command = words.command(result, changed.words)
    blocks: list[Block] = []
    if command:
        commit = result.manifest.versions.get("commit")
        checkout = [f"git checkout {commit}"] if commit else []
        blocks += (Paragraph("On a machine with the lab:"), Code((*checkout, command)))
    if command and changed.others:
        differed = "These settings also differed, and the command does not restore them"
        blocks.append(Paragraph(f"{differed}: {'; '.join(changed.others)}."))
    computed = "Compute everything here again from what was measured, without the lab:"
    blocks += (Paragraph(computed), Code((f"make report RUN={result.manifest.run}",)))
    return Section("Run it again", blocks, "again")


SECTIONS: Sequence[Callable[[Result], Section]] = (
    question,
    found,
    planted.section,
    density.section,
    verdicts.section,
    loads.section,
    loads.cpu,
    loads.time,
    ruler.section,
    recorded.section,
    comparison.section,
    validity,
    fairness.section,
    run,
    again,
)


def sections(result: Result) -> tuple[Section, ...]:
    return tuple(section(result) for section in SECTIONS)
