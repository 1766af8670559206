import csv
import io
from pathlib import Path

import pytest
from rich.console import Console

from driver.fakes import measurement, plan, reading, record
from lab.report import csv as report_csv
from lab.report import table
from lab.report.table import milliseconds
from lab.types import Counts, Latency, Row
from lab.validate import judge


def row(trial: str = "01-a", engine: str = "wrk2") -> Row:
    of = record(
        plan(
            trial=trial,
            engine=engine,
            server="virtual-threads",
            concurrency=10_000,
            offered_rps=45_000,
            predicted_rps=45_000.0,
        )
    )
    slow = Latency(12_000, 12_345, 23_456, 34_567, 45_678)
    said = reading(
        44_950.0,
        corrected=slow,
        raw=slow,
        counts=Counts(None, 999_999, 123, 123_456, None, None, 9),
    )
    whole = measurement(of, said)
    return report_csv.row_of("run", whole, judge(whole))


def shown(rows: list[Row], width: int) -> str:
    text = io.StringIO()
    table.render(Console(file=text, width=width), rows, ["a: a note"])
    return text.getvalue()


@pytest.mark.parametrize("width", [120, 116, 80])
def test_the_widest_row_is_neither_cut_nor_wrapped(width: int) -> None:
    text = shown([row()], width)
    assert max(map(len, text.splitlines())) <= width
    for cell in (
        "virtual-threads",
        "10000",
        "45000",
        "44950",
        "12.3s",
        "34.6s",
        "999999",
        "123456",
    ):
        assert cell in text
    assert "…" not in text


def test_engines_are_a_column_when_they_differ() -> None:
    text = shown([row(), row(engine="oha")], 120)
    assert "wrk2" in text
    assert "oha" in text
    assert max(map(len, text.splitlines())) <= 120


def test_what_cannot_be_told_is_a_dash_and_explained() -> None:
    text = shown([row()], 120)
    assert "–" in text.splitlines()[2]
    assert "the engine cannot tell" in text.replace("\n", " ")


def test_an_invalid_row_says_why() -> None:
    bad = measurement(record(after=None, after_problem="gone"))
    invalid = report_csv.row_of("run", bad, judge(bad))
    text = shown([invalid], 120)
    assert "NO" in text
    assert "gone" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.155, "0.15"),
        (9.994, "9.99"),
        (9.996, "10"),
        (214.4, "214"),
        (9999.4, "9999"),
        (9999.5, "10.0s"),
        (99_949.0, "99.9s"),
        (123_456.0, "123s"),
    ],
)
def test_a_latency_has_at_most_five_characters(value: float | None, text: str) -> None:
    assert milliseconds(value) == text
    assert len(text) <= 5


def test_rows_are_appended_one_by_one_under_one_header(tmp_path: Path) -> None:
    path = tmp_path / "trials.csv"
    report_csv.append(path, row())
    report_csv.append(path, row(trial="02-a"))
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [r["trial"] for r in rows] == ["01-a", "02-a"]
    assert tuple(rows[0]) == Row.columns()
    assert rows[0]["p50_ms"] == "12345.000"
    assert rows[0]["sent"] == ""
