"""Published numbers are those of their files in docs/results/: each is recomputed by the lab's own
code, wherever a page has a mark."""

import os
import re
from copy import replace
from pathlib import Path

import pytest

from lab.judge.intervals import median_of
from lab.model import Row
from support import resampled
from support.fakes import plan
from support.planned import row
from support.published import NUMBER, curve, otherwise, problems, published, rows_of

PAGES = published.pages()
MARKED = [(name, mark) for name, text in PAGES.items() for mark in published.marks(text)]
TABLES = [(name, mark) for name, mark in MARKED if mark.block.startswith("|")]
FILES = sorted(path.stem for path in published.FOLDER.glob("*.csv"))


@pytest.mark.parametrize("mark", [mark for _, mark in MARKED if not mark.block.startswith("|")])
def test_the_numbers_of_a_block_are_those_of_its_files(mark: published.Mark) -> None:
    assert [*problems(mark)] == []


def test_every_file_is_behind_a_page_and_says_of_which_run_it_is() -> None:
    assert sorted({name for _, mark in MARKED for name in mark.files}) == FILES
    assert sorted(path.stem for path in published.FOLDER.glob("*.json")) == FILES
    text = published.PAGE.read_text()
    assert published.with_table(text) == text, "run: python3 .ci/published.py page"


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("capacity", "capacity-models-amd25-2c-k6.18-a2c5"),
        ("capacity-constant", "capacity-models"),
        ("capacity-frameworks", "capacity-frameworks"),
    ],
)
def test_the_curves_of_capacity_are_drawn_from_their_files(image: str, name: str) -> None:
    path = published.DOCS / "images" / f"{image}.svg"
    drawn = curve(name)
    if os.environ.get("LAB_STORED_ANEW") == "yes":
        path.write_text(drawn)
    assert path.read_text() == drawn, "LAB_STORED_ANEW=yes draws it anew"


def test_a_mark_that_cannot_be_read_is_found() -> None:
    good = "<!-- results\nA goodput_rps\nnetty: loops-1\n-->\n| netty | 1 |\n"
    (mark,) = published.marks(good)
    assert mark == published.Mark(("A goodput_rps",), (("netty", ("loops-1",)),), "| netty | 1 |\n")
    with pytest.raises(ValueError, match="1 marks cannot be read"):
        list(published.marks(good.replace("netty: loops-1", "netty loops-1")))


@pytest.mark.parametrize(("page", "mark"), TABLES, ids=[name for name, _ in TABLES])
def test_another_digit_in_any_number_of_a_table_is_found(page: str, mark: published.Mark) -> None:
    assert [*problems(mark)] == []
    for label, files in mark.rows:
        (row,) = [line for line in mark.block.splitlines() if line.startswith(f"| {label} |")]
        cells = row.split(" | ")
        for at, asked in enumerate(mark.cells, start=1):
            for number in re.finditer(NUMBER, cells[at] if asked != "-" else ""):
                last = number.end() - 1
                other = str((int(cells[at][last]) + 5) % 10)
                cell = cells[at][:last] + other + cells[at][last + 1 :]
                wrong = " | ".join([*cells[:at], cell, *cells[at + 1 :]])
                block = mark.block.replace(row, wrong)
                (found,) = problems(replace(mark, rows=((label, files),), block=block))
                assert found.startswith(f"{label}, {asked} of ")


def test_a_file_of_several_loads_gives_the_rows_with_the_cells_that_are_named() -> None:
    whole = rows_of("sweep-thousand")
    some = rows_of("sweep-thousand[server=fixed-pool,mode=closed]")
    assert some == tuple(row for row in whole if row.server == "fixed-pool")
    for wrong in ("[mode=open]", "[nosuch=]", "[mode=closed", "[]"):
        with pytest.raises(ValueError, match="sweep-thousand"):
            rows_of(f"sweep-thousand{wrong}")


SIX, FEW, SLOPES = (1, 2, 3, 4, 5, 6), (1, 2, 3), (-1.5, -0.42, 0.2)


@pytest.mark.parametrize(
    ("text", "values", "wrong"),
    [
        ("3.5 [1, 6]", SIX, False),
        ("4 [1, 6]", SIX, False),  # 3.5 is between 3 and 4.
        ("3.50 [1.0, 6]", SIX, False),
        ("3.4 [1, 6]", SIX, True),
        ("3.5 [2, 6]", SIX, True),
        ("3.5 (1 to 6)", SIX, True),
        ("3.5", SIX, True),
        ("3.5 req/s [1, 6]", SIX, True),
        # A range of few is in round brackets, and one value has none.
        ("2 (1 to 3)", FEW, False),
        ("2 [1, 3]", FEW, True),
        ("1,234", (1234.4,), False),
        # A slope may fall.
        ("-0.4 (-1.5 to 0.2)", SLOPES, False),
        ("0.4 (-1.5 to 0.2)", SLOPES, True),
        ("-0.4 (1.5 to 0.2)", SLOPES, True),
    ],
)
def test_a_number_is_its_files_rounded(text: str, values: tuple[float, ...], wrong: bool) -> None:
    of = median_of(values)
    assert bool(otherwise(text, of.median, of.interval, values)) == wrong


def test_gates_are_as_right_as_the_scatter_of_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(number: int, arm: str, cpu_us: float) -> Row:
        load = plan("closed", launch=number, arm=arm)
        return row(load, achieved_rps=1000.0, ok=15_000, cpu_server_us=cpu_us)

    def launches(
        scatter: float, more: float = 1.0, arms: tuple[str, str] = ("a", "b")
    ) -> list[Row]:
        a, b = arms
        cpu_us = {number: (100 + scatter * (number % 5 - 2)) * more for number in range(1, 31)}
        pairs = [(launch(n, a, 100.0), launch(n, b, us)) for n, us in cpu_us.items()]
        return [one for pair in pairs for one in pair]

    monkeypatch.setattr(resampled, "GATES", 50)
    assert resampled.shares(launches(0.5), 6, 1.0) == {"not worse": 1.0}
    assert resampled.shares(launches(0.5), 6, 1.1) == {"worse": 1.0}
    # The same launches are drawn again.
    wide = resampled.shares(launches(5), 6, 1.1)
    assert wide == resampled.shares(launches(5), 6, 1.1)
    assert 0 < wide["cannot tell"] < 1
    with pytest.raises(ValueError, match="larger sample than population"):
        resampled.shares(launches(0.5), 32, 1.0)
    # One after the other, as they were measured. 30 launches are four gates of 7.
    assert resampled.in_turn(launches(0.5), 7) == ["not worse"] * 4
    images = launches(0.5, 1.1, ("base", "candidate"))
    assert resampled.in_turn(images, 6) == ["worse"] * 5
    # Of two images the base is never the candidate.
    assert resampled.shares(images, 6, 1.0) == {"worse": 1.0}


def test_a_name_and_a_folder_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="small letters"):
        published.add(tmp_path, "../x")
    with pytest.raises(ValueError, match="no run of trials"):
        published.add(tmp_path, "x")
