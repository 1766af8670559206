import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.errors import CannotWrite, RawDataError
from lab.model import Experiment, Fairness, TrialPlan, TrialRecord, WarmCycle, Warmth
from lab.store import csv
from lab.store.records import (
    append_row,
    drop_torn_row,
    from_json,
    packed_lines,
    read_json,
    read_object,
    read_rows,
    to_json,
    write_json,
    write_packed_lines,
)
from support.fakes import plan, record, snapshot


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "trial.json"
    warmth = Warmth(True, (WarmCycle(0.0, 5.0, 90.0, None, 1.5), WarmCycle(5, 5, 99, 2.0, 0)))
    for written in (
        record(),
        record(plan("closed"), after=None, after_problem="gone"),
        record(warmth=warmth, jit_share=0.01),
    ):
        write_json(path, written)
        assert read_json(path, TrialRecord) == written


def test_no_temporary_file_stays(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", snapshot())
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(ValueError, match="no field colour"):
        from_json(TrialPlan, {**to_json(plan()), "colour": "red"})
    nested = to_json(record(warmth=Warmth(True, (WarmCycle(0.0, 5.0, 90.0, None, 1.5),))))
    nested["warmth"]["cycles"][0]["colour"] = "red"
    with pytest.raises(ValueError, match=r"TrialRecord.warmth.cycles has no field colour"):
        from_json(TrialRecord, nested)


def test_a_missing_or_mistyped_field_is_refused() -> None:
    whole = to_json(plan())
    with pytest.raises(ValueError, match=r"Expected `int`, got `str` - at `\$\.concurrency`"):
        from_json(TrialPlan, {**whole, "concurrency": "100"})
    with pytest.raises(ValueError, match=r"Expected `int`, got `float`"):
        from_json(TrialPlan, {**whole, "concurrency": 100.0})
    with pytest.raises(ValueError, match="concurrency, duration and cores start at 1"):
        from_json(TrialPlan, {**whole, "concurrency": 0})
    del whole["trial"]
    with pytest.raises(ValueError, match="trial"):
        from_json(TrialPlan, whole)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_broken_file_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trial.json"
    path.write_text(text)
    with pytest.raises(RawDataError, match=r"trial\.json"):
        read_json(path, TrialRecord)


def test_host_facts_are_optional_and_opaque(tmp_path: Path) -> None:
    assert read_object(tmp_path / "host.json") == {}
    (tmp_path / "host.json").write_text('{"cores": 2}')
    assert read_object(tmp_path / "host.json") == {"cores": 2}
    (tmp_path / "host.json").write_text("no")
    with pytest.raises(RawDataError):
        read_object(tmp_path / "host.json")


def test_an_experiment_comes_back_with_what_belongs_to_its_kind() -> None:
    own = {"objective": {"p95_ms": 1000.0}, "first": 100, "cases": ["a", None]}
    whole = Experiment("x", ("a",), ("/",), (1,), ("closed",), None, 15, None, kind="s", own=own)
    assert from_json(Experiment, to_json(whole)) == whole


def test_mappings_come_back_with_their_kinds_and_json_as_it_is() -> None:
    fairness = Fairness({"gc": ["G1"], "n": 1}, {"pool": {"a": 200, "b": None}}, {})
    assert from_json(Fairness, to_json(fairness)) == fairness
    with pytest.raises(ValueError, match=r"Fairness: Expected `object`, got `int` - at `\$\.own"):
        from_json(Fairness, {"equal": {}, "own": {"pool": 200}, "unequal": {}})


ROWS = [("1", "a"), ("2", "b")]


@dataclass(frozen=True)
class Numbered:
    number: int
    name: str | None


def table(path: Path) -> Path:
    for row in ROWS:
        append_row(path, ("number", "name"), row)
    return path


@pytest.mark.parametrize(
    ("torn", "rows"),
    [
        (lambda whole: whole[:-1], 1),
        (lambda whole: whole[:-3], 1),
        (lambda whole: whole + b"3,c", 2),
        (lambda whole: whole + bytes(20), 2),
        (lambda whole: whole[:5], 0),
        (lambda whole: b"", 0),
    ],
)
def test_a_torn_last_row_is_dropped_and_rows_can_be_added(
    tmp_path: Path, torn: Callable[[bytes], bytes], rows: int
) -> None:
    path = table(tmp_path / "density.csv")
    path.write_bytes(content := torn(path.read_bytes()))
    assert len(read_rows(path, Numbered)) == rows
    assert drop_torn_row(path) == bool(content)
    assert not drop_torn_row(path)
    append_row(path, ("number", "name"), ("9", ""))
    assert read_rows(path, Numbered)[rows:] == (Numbered(9, None),)


def test_whole_rows_are_not_touched(tmp_path: Path) -> None:
    path = table(tmp_path / "density.csv")
    assert not drop_torn_row(path)
    assert not drop_torn_row(tmp_path / "none.csv")
    assert [one.number for one in read_rows(path, Numbered)] == [1, 2]


def test_a_row_of_which_the_disk_takes_a_part_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = table(tmp_path / "density.csv")
    before, write = path.read_bytes(), os.write
    room = iter([3, 2])

    def almost_full(number: int, content: bytes) -> int:
        left = next(room, None)
        if left is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(number, content[:left])

    monkeypatch.setattr(os, "write", almost_full)
    with pytest.raises(CannotWrite, match=r"density\.csv: No space left on device"):
        append_row(path, ("number", "name"), ("3", "cccccccc"))
    assert path.read_bytes() == before


def test_a_row_that_the_disk_takes_in_parts_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda number, content: write(number, content[:2]))
    path = table(tmp_path / "density.csv")
    assert read_rows(path, Numbered) == (Numbered(1, "a"), Numbered(2, "b"))


@pytest.mark.parametrize(
    "write",
    [
        lambda path: write_json(path, {"a": 1}),
        lambda path: write_packed_lines(path, [{"a": 1}]),
        lambda path: append_row(path, ("a",), ("1",)),
    ],
)
def test_file_and_folder_are_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], None]
) -> None:
    flushed: list[str] = []

    def fsync(number: int) -> None:
        flushed.append(str(Path(f"/proc/self/fd/{number}").readlink()))

    monkeypatch.setattr(os, "fsync", fsync)
    path = tmp_path / "file"
    write(path)
    assert flushed[0].startswith(str(path))
    assert flushed[-1] == str(tmp_path)


def test_what_cannot_be_written_whole_leaves_nothing_and_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "lines.gz"
    write_packed_lines(path, [1])
    before = path.read_bytes()

    def lines() -> Iterator[object]:
        yield 1
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(CannotWrite, match=r"cannot write .*lines\.gz: No space left on device"):
        write_packed_lines(path, lines())
    assert [one.name for one in tmp_path.iterdir()] == ["lines.gz"]
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", [lambda c: c[: len(c) // 2], lambda c: c[:40] + bytes(99)])
def test_damaged_packed_lines_are_refused_with_their_name(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "lines.gz"
    write_packed_lines(path, [{"number": number, "of": "many"} for number in range(999)])
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(RawDataError, match=r"lines\.gz"), packed_lines(path) as lines:
        list(lines)


def test_a_missing_file_is_refused_without_its_place(tmp_path: Path) -> None:
    with pytest.raises(RawDataError) as refused, packed_lines(tmp_path / "none.gz"):
        pass
    assert refused.value.said == "none.gz: cannot be read: No such file or directory"


def test_a_torn_row_names_no_trial(tmp_path: Path) -> None:
    path = tmp_path / "trials.csv"
    path.write_bytes(b"run,trial,server\nr,0011-netty-open,netty\nr,0012-netty-op")
    assert csv.trials(path) == ("0011-netty-open",)
