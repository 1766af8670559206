"""The list of runs in results/, with folders of others among them."""

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.report import index
from support.runs import EXPERIMENT, write_manifest

OWN, FOREIGN = "20260131T120000Z-own", "20260201T120000Z-foreign"
MACHINE = "cpu-2c-k6.1-839a, Abacus, 2 cores, 8.0 GiB, Linux 6.1, Docker 26.1"


def answered(results: Path, name: str, text: str = "Is it quick?\na  holds 1,000 req/s\n") -> Path:
    folder = write_manifest(results, name)
    (folder / "answer.txt").write_text(text)
    (folder / "report.html").write_text("<p>the report</p>")
    return folder


def listed(results: Path) -> list[dict[str, str]]:
    index.write(results)
    with (results / "runs.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def page(results: Path) -> str:
    return (results / "index.html").read_text()


def test_every_run_has_a_row_with_its_question_answer_report_and_host(tmp_path: Path) -> None:
    assert listed(tmp_path) == []
    assert "There is no run yet." in page(tmp_path)
    answered(tmp_path, OWN, "Is it quick?\na  holds 1,000 req/s\nb  holds   20 req/s\n")
    bare = write_manifest(tmp_path, FOREIGN, status="interrupted")
    (bare / "REPORT.md").write_text("# r\n")
    (tmp_path / "latest").symlink_to(OWN)
    (tmp_path / "notes").mkdir()
    newest, oldest = listed(tmp_path)
    both = "a holds 1,000 req/s; b holds 20 req/s"
    assert [*oldest.values()] == [OWN, "Is it quick?", both, f"{OWN}/report.html", MACHINE]
    unfinished = "the run is interrupted, not complete"
    report = f"{FOREIGN}/REPORT.md"
    assert [*newest.values()] == [FOREIGN, EXPERIMENT.question, unfinished, report, MACHINE]
    text = page(tmp_path)
    assert f'<a href="{OWN}/report.html">{OWN}</a>' in text
    assert both in text
    assert text.index(FOREIGN) < text.index(OWN)


def _link(told: Path) -> None:
    told.rename(told.parents[1] / "elsewhere.json")
    told.symlink_to("../elsewhere.json")


def _pipe(told: Path) -> None:
    told.unlink()
    os.mkfifo(told)


def _with(text: str) -> Callable[[Path], object]:
    return lambda told: told.write_text(text)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (_with("[" * 100_000), "cannot be read: manifest.json: is not JSON: "),
        (_with('{"host": ' + "[" * 3000 + "]" * 3000 + "}"), "the run is unknown"),
        (_with("{"), "cannot be read: manifest.json: is not JSON: "),
        (_with("[]"), "cannot be read: manifest.json: dict: Expected `object`"),
        (_with('{"host": {"memory_bytes": 1' + "0" * 400 + "}}"), "cannot be read: "),
        (_with('{"experiment": [], "host": 5}'), "the run is unknown, not complete"),
        (
            lambda told: os.truncate(told, 10 * index.MOST_BYTES),
            "cannot be read: manifest.json: is larger than 4 MiB",
        ),
        (_link, "cannot be read: manifest.json: is no file of the run's folder"),
        (_pipe, "cannot be read: manifest.json: is no file of the run's folder"),
        (Path.unlink, "is no file of the run's folder"),
    ],
)
def test_a_damaged_folder_costs_its_own_row_alone(
    tmp_path: Path, damage: Callable[[Path], object], says: str
) -> None:
    answered(tmp_path, OWN)
    folder = answered(tmp_path, FOREIGN)
    (folder / "answer.txt").unlink()
    damage(folder / "manifest.json")
    foreign, own = listed(tmp_path)
    assert says in foreign["answer"]
    assert own["answer"] == "a holds 1,000 req/s"
    assert OWN in page(tmp_path)


def test_a_link_to_a_folder_is_no_run_and_a_link_to_a_report_is_none(tmp_path: Path) -> None:
    folder = answered(tmp_path, OWN)
    (tmp_path / FOREIGN).symlink_to(OWN)
    for name in ("report.html", "answer.txt"):
        (folder / name).rename(tmp_path / name)
        (folder / name).symlink_to(f"../{name}")
    [row] = listed(tmp_path)
    assert (row["run"], row["report"], row["answer"]) == (OWN, "", "")


@pytest.mark.parametrize(
    "text", ['<script>alert("1")</script>', "\x1b]52;c;eA==\x07a", "a\x9b2Jb", "a\u202eb", "\ud800"]
)
def test_no_text_is_markup_or_a_terminal_s_command(tmp_path: Path, text: str) -> None:
    folder = write_manifest(tmp_path, FOREIGN)
    known = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text(known.replace('"Abacus"', json.dumps(text)))
    (folder / "answer.txt").write_bytes(f"{text}\n{text}\n".encode("utf-8", "surrogatepass"))
    [row] = listed(tmp_path)
    for shown in (page(tmp_path), "".join(row.values())):
        assert not {"\x1b", "\x9b", "\x07", "\u202e"} & set(shown)
    assert "<script>alert" not in page(tmp_path)
    assert page(tmp_path).count("<script") == 0


@pytest.mark.parametrize("first", "=+-@")
def test_no_cell_is_a_formula_or_long(tmp_path: Path, first: str) -> None:
    answered(tmp_path, FOREIGN, f'{first}HYPERLINK("http://x/")\n{first}1+1\n')
    [row] = listed(tmp_path)
    assert row["question"] == f'\'{first}HYPERLINK("http://x/")'
    assert row["answer"] == f"'{first}1+1"
    # A long text is cut.
    answered(tmp_path, FOREIGN, "q" * 10_000 + "\n" + "a\n" * 10_000)
    [row] = listed(tmp_path)
    assert len(row["question"]) == index.MOST_TEXT
    assert len(row["answer"]) < 2 * index.MOST_TEXT
