"""The sections of a run's report, answers first: built here once, written by `markdown` and by
`page.html`, which adds what is drawn. A new section is one more of `sections`."""

from collections.abc import Iterator, Sequence

from lab.judge.grouping import lane_of
from lab.model.host_facts import host_id
from lab.report import (
    answers,
    blocks,
    comparison,
    density,
    fairness,
    findings,
    loads,
    planted,
    recorded,
    remarks,
    ruler,
    settings,
    spent,
    verdicts,
    words,
)
from lab.report.blocks import (
    Block,
    Bullets,
    Code,
    Facts,
    Link,
    Loud,
    Paragraph,
    Section,
    Strong,
    Text,
    prose,
)
from lab.report.words import Content
from lab.store.manifest import Manifest


def sections(of: Content) -> tuple[Section, ...]:
    host = host_id(of.manifest.host) or "unknown"
    return tuple(blocks.with_caption(one, f"Host {host}.") for one in _sections(of))


def _sections(of: Content) -> tuple[Section, ...]:
    changed = settings.changed(of.manifest)
    return (
        question(words.question(of), of.experiment.hypothesis),
        Section("What came out", _came_out(of), "results", "No trial ended: nothing came out."),
        verdicts.predicted(of.said),
        Section(
            "Throughput and latency",
            [loads.measured(of.loads), *spent.sections(of.loads)],
            "loads",
        ),
        Section("Validity", _validity(of), "validity"),
        fairness.section(of.manifest.fairness),
        Section(
            "What was run, on what",
            [Facts(tuple(words.what(of)))],
            "run",
        ),
        again(of.manifest, words.command(of, changed.words), changed.others),
    )


def first(of: Content) -> tuple[Block, ...]:
    """What stands above all sections: the answer, and what a reader must know before it is used."""
    return (*answers.blocks(of.answers), Loud(tuple(_notices(of))))


def question(asked: str, hypothesis: str) -> Section:
    """What was asked, and what was expected before the run; nothing without a question."""
    none = "No hypothesis was written down for this run."
    expected = Section("Hypothesis", prose(hypothesis), none=none)
    return Section("Question", [*prose(asked, "asked"), expected] if asked else [], "question")


def again(of: Manifest, command: str | None, others: Sequence[str] = ()) -> Section:
    """The commands that run the same again, and that compute the report again. `others` are the
    settings that the first does not restore."""
    return Section("Run it again", tuple(_again(of, command, others)), "again")


def _again(of: Manifest, command: str | None, others: Sequence[str]) -> Iterator[Block]:
    if command:
        commit = of.versions.get("commit")
        yield Paragraph("On a machine with the lab:")
        yield Code((*([f"git checkout {commit}"] if commit else []), command))
    if command and others:
        differed = "These settings also differed, and the command does not restore them"
        yield Paragraph(f"{differed}: {'; '.join(others)}.")
    yield Paragraph("Compute everything here again from what was measured, without the lab:")
    yield Code((f"make report RUN={of.run}",))


def _notices(of: Content) -> Iterator[Text]:
    scale = of.experiment.scale
    if scale != 1:
        strong = f"SCALE={scale:g}: every duration was multiplied by {scale:g}."
        yield Strong(strong), " This is a quick look, not a result."
    if of.manifest.status != "complete":
        strong = f"The run is {of.manifest.status}, not complete:"
        yield Strong(strong), f" {len(of.rows)} trials."
    invalid = sum(not row.valid for row in of.rows)
    if invalid:
        strong = f"{invalid} of {len(of.rows)} trials {'is' if invalid == 1 else 'are'} invalid"
        # A search may learn from one that a rate is held or broken: that rate was not measured.
        said = ", and what was measured in them is in no median: "
        yield Strong(strong), said, Link("see Validity", "#validity"), "."
    for line in ruler.drifts(of.findings):
        yield Strong(f"{line}."), " See `ref_…` in trials.csv."
    for name in of.manifest.fairness.unequal:
        see = Link("see Fairness manifest", "#fairness")
        yield Strong(f"{name} is not equal for all servers:"), " ", see, "."


def _came_out(of: Content) -> list[Block]:
    lanes = set(map(lane_of, of.rows))
    alone = len(lanes) == 1 and not (of.comparisons or of.changes_lab)
    return [
        Section("Findings", [Bullets(findings.lines(of.findings))]),
        planted.section(of.findings),
        density.section(of.findings),
        verdicts.limited(of.said),
        recorded.section(of.recorded),
        comparison.section(of.comparisons),
        Paragraph("Only one server was measured: there is nothing to compare." if alone else ""),
    ]


def _validity(of: Content) -> list[Block]:
    invalid = [row for row in of.rows if not row.valid]
    valid, every = len(of.rows) - len(invalid), len(of.rows)
    said = f"{valid} of {every} trials are valid. Not these:"
    if not invalid:
        said = f"All {every} trials are valid." if every else ""
    return [
        Paragraph(said),
        Bullets(
            [
                (Link(row.trial, f"#trial-{row.trial}"), f": {remarks.text_of(row)}")
                for row in invalid
            ]
        ),
        Section("Notes", [Bullets(tuple(words.notes(of)))]),
    ]
