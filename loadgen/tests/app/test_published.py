"""A run reduced to a file of docs/results/ still gives the numbers that its own report has."""

import copy
import csv
import re
from pathlib import Path

import pytest

from app.test_capacity import SEARCH, Limited
from app.test_stored_runs import STORED
from lab.model import Row
from support.bench import Bench
from support.published import problems, published, rows_of


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty docs/results/."""
    found = tmp_path / "published"
    found.mkdir()
    readme = found / "README.md"
    readme.write_text("<!-- tables -->\n<!-- end of tables -->")
    monkeypatch.setattr(published, "FOLDER", found)
    monkeypatch.setattr(published, "PAGE", readme)
    return found


def test_every_column_of_a_trial_is_kept_or_known_to_be_of_no_use() -> None:
    of_no_use = {
        "run", "raw_max_ms", "sent", "unfinished", "ended_at", "expected_rps", "expected_p95_ms",
        "binding", "unexpected", "host",
    }  # fmt: skip
    assert {*published.TRIALS} == {*Row.columns()} - of_no_use


def test_a_command_brings_the_run_again() -> None:
    usual = {"downstream_delay_ms": 200.0, "spread": None, "settings": {"cpu_quota": None}}
    slow = {**usual, "downstream_delay_ms": 2000.0, "settings": {"cpu_quota": 0.5}}
    drawn = {**usual, "spread": {"words": "lognormal:mean=200,p99=400"}}
    # A pool's size is asked of the servers that have one.
    large, poolless = ({**usual, "settings": {"pool_size": size}} for size in (5000, None))
    for servers, words in (
        ([usual, usual], []),
        ([slow, slow], ["DOWNSTREAM_DELAY_MS=2000", "SERVER_CPUS=0.5"]),
        ([drawn], ["DOWNSTREAM_DELAY_MS=lognormal:mean=200,p99=400"]),
        # Servers of two settings have no word for both.
        ([usual, slow], []),
        ([large, poolless], ["SERVER_POOL_SIZE=5000"]),
    ):
        assert [*published.otherwise(servers)] == words
    run = {"experiment": {"kind": "loads", "words": ["CONC=10"]}, "jdk": ["21.0.13.1+2-1-deb13u1"]}
    assert published.command(run) == "make bench CONC=10 JDK=21"
    assert published.command({**run, "jdk": ["25.0.5.1"]}) == "make bench CONC=10"
    run = {"experiment": {"words": ["EXP=limits"]}, "settings": ["DOWNSTREAM_DELAY_MS=2000"]}
    assert published.command(run) == "make run EXP=limits DOWNSTREAM_DELAY_MS=2000"


def test_a_row_of_a_case_has_the_numbers_of_that_case() -> None:
    def wrong(label: str, cells: str) -> list[str]:
        cell = ("@ goodput_rps", "@ bottleneck")
        return [*problems(published.Mark(cell, ((label, ("limits",)),), f"| {label} | {cells} |"))]

    assert wrong("cap-breaks", "1,976 | downstream connections, 1 of 1 (strong)") == []
    assert wrong("heap-breaks", "– | garbage collection, not valid (weak)") == []
    assert wrong("set-up-holds", "250 | none, 1 of 1 (strong)") == []
    assert len(wrong("cap-breaks", "1,977 | ports, 1 of 1 (strong)")) == 2
    assert len(wrong("cap-breaks", "– | downstream connections, not valid (weak)")) == 2
    assert len(wrong("heap-breaks", "94 | garbage collection, 1 of 1 (weak)")) == 2


def test_a_search_is_recomputed(ready: Bench, folder: Path) -> None:
    ready.lab.engine = Limited()
    assert ready.run(**SEARCH) == 0
    name = published.add(ready.run_dir, "search")
    assert name.startswith("search-cpu-2c-k6.1-")
    answer = re.search(r"(?m)^b  sustains .*(?:\n {3}.*)*", ready.text.getvalue())
    assert answer is not None
    block = f"```\n{answer[0]}\n```"
    mark = published.Mark(("capacity",), (("*", (name,)),), block)
    assert [*problems(mark)] == []
    digits = [at for at, letter in enumerate(block) if letter.isdigit()]
    assert len(digits) > 10
    for at in digits[::4]:
        other = f"{block[:at]}{(int(block[at]) + 1) % 10}{block[at + 1 :]}"
        assert [*problems(copy.replace(mark, block=other))], other


@pytest.mark.parametrize("name", sorted(path.parent.name for path in STORED.glob("*/trials.csv")))
def test_what_is_kept_of_a_run_is_cell_by_cell_what_it_has(name: str, folder: Path) -> None:
    kept_as = published.add(STORED / name, "kept")
    files = (STORED / name / "trials.csv", folder / f"{kept_as}.csv")
    whole, kept = (list(csv.DictReader(path.read_text().splitlines())) for path in files)
    assert [{key: row[key] for key in kept[0]} for row in whole] == kept
    assert len(rows_of(kept_as)) == len(whole)
