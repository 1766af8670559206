"""A run reduced to a file of docs/results/ still gives the numbers that its own report has."""

import csv
from pathlib import Path

import pytest

from campaign.test_capacity import PROOF, limited
from campaign.test_conditions import rejudged
from campaign.test_stored_runs import STORED
from support.bench import Bench
from support.published import problems, published, rows_of


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty docs/results/."""
    found = tmp_path / "published"
    found.mkdir()
    readme = found / "README.md"
    readme.write_text(published.BEGIN + published.END)
    monkeypatch.setattr(published, "FOLDER", found)
    monkeypatch.setattr(published, "PAGE", readme)
    return found


def test_a_search_with_what_was_lifted_is_recomputed(
    ready: Bench, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rejudged(monkeypatch, limited)
    ready.lab.pool_sizes["b"] = 200
    assert ready.run(**PROOF) == 0
    published.add(ready.run_dir, "proof")
    report = (ready.run_dir / "REPORT.md").read_text()
    block = "```\n" + report.partition("```\n")[2].partition("```\n")[0] + "```"
    mark = published.Mark(("capacity",), (("*", ("proof",)),), block)
    assert [*problems(mark)] == []
    assert "lifted to pool_size=400: holds 283" in block
    assert "with 20% of the CPUs taken away it breaks at 141" in " ".join(block.split())
    for said, other in (
        ("holds 141", "holds 142"),
        ("[141, 168]", "[141, 169]"),
        ("worker pool", "event loop"),
        ("(strong)", "(weak)"),
        ("holds 283", "holds 238"),
        ("×2.01", "×2.10"),
        ("with 20%", "with 30%"),
    ):
        assert said in block
        wrong = block.replace(said, other)
        assert [*problems(published.Mark(mark.cells, mark.rows, wrong))], said


@pytest.mark.parametrize("name", sorted(path.parent.name for path in STORED.glob("*/trials.csv")))
def test_what_is_kept_of_a_run_is_cell_by_cell_what_it_has(name: str, folder: Path) -> None:
    published.add(STORED / name, "kept")
    with (STORED / name / "trials.csv").open(newline="") as file:
        whole = list(csv.DictReader(file))
    with (folder / "kept.csv").open(newline="") as file:
        kept = list(csv.DictReader(file))
    assert [{key: row[key] for key in kept[0]} for row in whole] == kept
    assert len(rows_of("kept")) == len(whole)
