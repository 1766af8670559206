"""The tables of docs/invalid.md, which follow from the checks (lab.judge.checks) and their texts,
and that of docs/verdict.md, which follows from the resources (lab.judge.resources).

page
    writes them
sensitivity FOLDER…
    judges every trial below these folders again with each threshold x 0.8 and x 1.25 (of a share
    near 1 its distance to 1), and prints how many change: their validity, or only the codes of
    their reasons and notes
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import ModuleType

from pages import between

from lab.app.derive import as_measured, start_of
from lab.errors import LabError, RawDataError
from lab.judge import quantities, steps
from lab.judge.checks import CHECKS, QUESTIONS, checks_of, judge
from lab.judge.checks.check import Check, Evidence
from lab.judge.resources import BY_NAME
from lab.load.engines import engines_of
from lab.load.measure import measure
from lab.model import JIT_BUSY, Measurement
from lab.report.remarks import action, pattern
from lab.store import manifest, series

ROOT = Path(__file__).resolve().parent.parent
PAGE, VERDICTS = ROOT / "docs/invalid.md", ROOT / "docs/verdict.md"
SECTIONS = dict(zip(("data", "load", "state"), QUESTIONS.values(), strict=True))
FACTORS = (0.8, 1.25)
# Two of them are the same number in two roles, and none of these is a threshold.
NO_THRESHOLDS = ("EXPORTER_PORT", "PLANNED_LATENCIES", "MIN_SAMPLES", "AWAY_SCRAPES", "LEAST_STEPS")


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


def trials(folders: Sequence[Path]) -> Iterator[tuple[str, Evidence]]:
    """Every stored trial below these folders that can be read, by its name."""
    for path in sorted({path for folder in folders for path in folder.rglob("manifest.json")}):
        try:
            measured = as_measured(manifest.read(path.parent), path.parent)
        except LabError as failure:
            print(f"left out: {failure}", file=sys.stderr)
            continue
        for raw in sorted((path.parent / "raw").glob("*/")):
            try:
                found = measure(raw, engines_of(()))
                seen = series.load_or_none(raw)
            except RawDataError as failure:
                print(f"left out: {failure}", file=sys.stderr)
                continue
            start = start_of(measured, found.record.plan)
            evidence = Evidence(found.record, found.reading, seen, start, found.problem)
            yield f"{path.parent.name}/{raw.name}", evidence


def thresholds() -> Iterator[tuple[str, float]]:
    """The numbers of the checks, by their names."""
    known: dict[str, float] = {"JIT_BUSY": JIT_BUSY}
    for module in (quantities, steps, *chain.from_iterable(QUESTIONS.values())):
        for name, value in vars(module).items():
            if name.isupper() and isinstance(value, int | float) and name not in NO_THRESHOLDS:
                known.setdefault(name, value)
    yield from sorted(known.items())


def sensitivity(stored: Mapping[str, Evidence]) -> str:
    """The table of how many trials change with each threshold."""
    before = {name: _codes(evidence) for name, evidence in stored.items()}
    lines = [
        "| threshold | × 0.8: valid | codes | × 1.25: valid | codes |",
        "|---|---|---|---|---|",
    ]
    for name, value in thresholds():
        cells = []
        for factor in FACTORS:
            put = _put(name, value, _scaled(value, factor))
            try:
                now = {trial: _codes(evidence) for trial, evidence in stored.items()}
            finally:
                for module in put:
                    setattr(module, name, value)
            valid = sum(now[trial][0] != before[trial][0] for trial in stored)
            cells += [str(valid), str(sum(now[trial] != before[trial] for trial in stored) - valid)]
        lines.append(f"| `{name}` {value:g} | {' | '.join(cells)} |")
    invalid = sum(not valid for valid, _ in before.values())
    return "\n".join([f"{len(stored)} trials, {invalid} of them invalid.", "", *lines])


def _scaled(value: float, factor: float) -> float:
    """The threshold, less or more strict; for a share near 1 its distance to 1 is scaled."""
    return 1 - (1 - value) * factor if 0.5 < value < 1 else value * factor


def _put(name: str, was: float, now: float) -> list[ModuleType]:
    """Puts a threshold into every module that has it. Returns these."""
    found = [module for key, module in sys.modules.items() if key.startswith("lab.")]
    having = [module for module in found if vars(module).get(name) == was]
    for module in having:
        setattr(module, name, now)
    return having


def _codes(trial: Evidence) -> tuple[bool, frozenset[str]]:
    measurement = Measurement(trial.record, trial.measured, trial.problem)
    found = judge(measurement, trial.observation, trial.start)
    return found.valid, frozenset(remark.code for remark in (*found.reasons, *found.notes))


def main(words: Sequence[str]) -> int:
    match words:
        case ["page"]:
            PAGE.write_text(with_tables(PAGE.read_text()))
            VERDICTS.write_text(with_resources(VERDICTS.read_text()))
        case ["sensitivity", *folders] if folders:
            print(sensitivity(dict(trials([Path(folder) for folder in folders]))))
        case _:
            print("checks.py: page, or sensitivity FOLDER…", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
