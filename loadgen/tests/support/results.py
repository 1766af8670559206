"""Results of runs as the sections of a report are given them, and what is written of these."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lab.kinds.registry import kind_of
from lab.model import Excess, Row, Standing, Strength, Verdict
from lab.report import blocks, markdown
from lab.report.result import Result
from support.runs import manifest_of

EXCESS = Excess(200.0, 1800.0, 10.0, {"queue": 1800.0})
POOL = Standing(200, 200, "threads", resource="worker pool", share=0.98, measured=0.98)


def verdict(bottleneck: str, strength: Strength = "", **changes: Any) -> Verdict:
    """A verdict of 1,800 ms above R0, of which the worker pool has 98 %."""
    basis = changes.pop("basis", "excess")
    return Verdict(bottleneck, strength, basis, changes.pop("excess", EXCESS), (POOL,), **changes)


def result(
    rows: Sequence[Row] = (), verdicts: Mapping[str, Verdict] | None = None, **changes: Any
) -> Result:
    """The result of a run of these rows; further values are of Result, or of its manifest."""
    names = {"findings", "comparisons", "notes", "unfinished", "recorded", "verb"}
    own = {name: changes.pop(name) for name in names & changes.keys()}
    manifest = manifest_of(**changes)
    kind = kind_of(manifest.experiment)
    lists = {"findings": (), "comparisons": (), "notes": (), "unfinished": ()}
    return Result(
        manifest=manifest,
        title=kind.title,
        changes_lab=kind.changes_lab,
        rows=rows,
        verdicts=verdicts or {},
        **{**lists, **own},
    )


def table(parts: Iterable[blocks.Block], label: str) -> list[dict[str, str]]:
    """The rows of the table with that label, by their headers; none if it is not there."""
    for block in parts:
        if isinstance(block, blocks.Table) and block.label == label:
            return [dict(zip(block.header, row, strict=True)) for row in block.rows]
        inside = block.blocks if isinstance(block, blocks.Section | blocks.Folded) else ()
        if found := table(inside, label):
            return found
    return []


def text(section: blocks.Section) -> str:
    return markdown.section(section)
