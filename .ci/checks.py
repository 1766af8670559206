"""Writes the tables of docs/invalid.md, which follow from the checks (lab.judge.checks) and their
texts, and that of docs/verdict.md, which follows from the resources (lab.judge.resources)."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pages import between

from lab.judge.checks import CHECKS, QUESTIONS, checks_of
from lab.judge.checks.check import Check
from lab.judge.resources import BY_NAME
from lab.report.remarks import action, pattern

ROOT = Path(__file__).resolve().parent.parent
PAGE, VERDICTS = ROOT / "docs/invalid.md", ROOT / "docs/verdict.md"
SECTIONS = dict(zip(("data", "load", "state"), QUESTIONS.values(), strict=True))


def table(checks: Sequence[Check], *, notes: bool = False) -> str:
    """A row for each of these checks."""
    lines = ["| code | text | when |", "|---|---|---|"]
    if not notes:
        lines = ["| code | text | when | what to do |", "|---|---|---|---|"]
    for check in checks:
        again = "; *again*" if check.repeatable else ""
        cells = [f"`{check.code}`", pattern(check.code), check.when + again]
        cells += [] if notes else [action(check.code)]
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)


def tables() -> Iterator[tuple[str, str]]:
    """The tables of the page, by the names of their places."""
    for name, modules in SECTIONS.items():
        checks = checks_of(modules)
        yield name, table([each for each in checks if each.severity == "invalidates"])
    for name, severity in (("warnings", "warns"), ("notes", "notes")):
        checks = [each for each in CHECKS.values() if each.severity == severity]
        yield name, table(checks, notes=True)


def with_tables(page: str) -> str:
    """The page with its tables."""
    for name, text in tables():
        page = between(page, f"checks: {name}", text)
    return page


def with_resources(page: str) -> str:
    """The page with a row for each resource: the first two paragraphs of its docstring."""
    lines = ["| resource | its waiting | measured? |", "|---|---|---|"]
    for resource in BY_NAME.values():
        waiting, measured, *_ = (" ".join(part.split()) for part in resource.doc.split("\n\n"))
        what, how = waiting.removesuffix("."), measured.removeprefix("Measured: ")
        lines.append(f"| {resource.name} | {what[0].lower()}{what[1:]} | {how} |")
    return between(page, "resources", "\n".join(lines))


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
    VERDICTS.write_text(with_resources(VERDICTS.read_text()))
