"""Files of results: written whole, read with bounds, and refused in one line where damaged."""

import errno
import gzip
import json
import os
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from lab.errors import CannotWrite, RawDataError
from lab.model import Experiment, Fairness, Remark, TrialPlan, TrialRecord, WarmCycle, Warmth
from lab.store import csv, manifest, records, series
from lab.store.records import (
    MIB,
    append_row,
    csv_text,
    from_json,
    packed_lines,
    raw_lines,
    read_json,
    read_object,
    read_rows,
    to_json,
    write_json,
    write_packed_lines,
)
from support.fakes import plan, record
from support.runs import write_manifest

WARMTH = Warmth(True, (WarmCycle(0.0, 5.0, 90.0, None, 1.5), WarmCycle(5, 5, 99, 2.0, 0)))


@pytest.mark.parametrize(
    "written",
    [
        record(),
        record(
            plan("closed"),
            after=None,
            after_problem=Remark("server-gone", {"problem": "a b", "at": 1.5}),
        ),
        record(warmth=WARMTH, jit_share=0.01),
    ],
)
def test_a_record_comes_back_as_it_was(tmp_path: Path, written: TrialRecord) -> None:
    path = tmp_path / "trial.json"
    write_json(path, written)
    assert read_json(path, TrialRecord) == written
    # No temporary file stays.
    assert [*tmp_path.iterdir()] == [path]


def test_an_unknown_missing_or_mistyped_field_is_refused() -> None:
    whole = to_json(plan())
    for changes, said in (
        ({"colour": "red"}, "no field colour"),
        ({"concurrency": "100"}, r"Expected `int`, got `str` - at `\$\.concurrency`"),
        ({"concurrency": 100.0}, r"Expected `int`, got `float`"),
        ({"concurrency": 0}, "concurrency, duration and cores start at 1"),
    ):
        with pytest.raises(ValueError, match=said):
            from_json(TrialPlan, {**whole, **changes})
    del whole["trial"]
    with pytest.raises(ValueError, match="trial"):
        from_json(TrialPlan, whole)
    nested = to_json(record(warmth=WARMTH))
    nested["warmth"]["cycles"][0]["colour"] = "red"
    with pytest.raises(ValueError, match=r"TrialRecord.warmth.cycles has no field colour"):
        from_json(TrialRecord, nested)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_broken_file_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trial.json"
    path.write_text(text)
    with pytest.raises(RawDataError, match=r"trial\.json"):
        read_json(path, TrialRecord)


NESTED = "[" * 100_000
# json.loads reads it, and Python's own recursion ends before it does.
DEEP = "[" * 2000 + "]" * 2000


@pytest.mark.parametrize("text", [NESTED, f'{{"notes": {DEEP}}}', f'{{"a": {NESTED}'])
def test_json_that_is_nested_too_deeply_is_a_damaged_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trial.json"
    path.write_text(text)
    with pytest.raises(RawDataError, match=r"trial\.json"):
        read_json(path, TrialRecord)
    with pytest.raises(ValueError, match=r"^Fairness: "):
        from_json(Fairness, {"equal": {"a": json.loads(DEEP)}, "own": {}, "unequal": {}})
    packed = tmp_path / "series.jsonl.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(RawDataError, match=r"series\.jsonl"), packed_lines(packed) as lines:
        from_json(Fairness, {"equal": next(lines), "own": {}, "unequal": {}})


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "1e999", '"\\ud800"'])
def test_json_that_cannot_be_written_again_is_a_damaged_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "host.json"
    # Facts of the host are optional, and opaque.
    assert read_object(path) == {}
    path.write_text('{"a": "\\ud83d\\ude00", "cores": 2}')
    assert read_object(path) == {"a": "\U0001f600", "cores": 2}
    for damaged, line in (("no", ":1"), (f'{{"a": {text}}}', "")):
        path.write_text(damaged)
        with pytest.raises(RawDataError, match=rf"host\.json{line}: is not JSON: "):
            read_object(path)


def test_mappings_come_back_with_their_kinds_and_json_as_it_is() -> None:
    own = {"objective": {"p95_ms": 1000.0}, "first": 100, "cases": ["a", None]}
    whole = Experiment("x", ("a",), ("/",), (1,), ("closed",), None, 15, None, kind="s", own=own)
    assert from_json(Experiment, to_json(whole)) == whole
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
def test_a_torn_last_row_is_dropped(
    tmp_path: Path, torn: Callable[[bytes], bytes], rows: int
) -> None:
    path = table(tmp_path / "rows.csv")
    path.write_bytes(torn(path.read_bytes()))
    assert len(read_rows(path, Numbered)) == rows


def test_a_row_is_whole_or_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda number, content: write(number, content[:2]))
        path = table(tmp_path / "rows.csv")
    assert read_rows(path, Numbered) == (Numbered(1, "a"), Numbered(2, "b"))
    before, room = path.read_bytes(), iter([3, 2])

    def almost_full(number: int, content: bytes) -> int:
        left = next(room, None)
        if left is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(number, content[:left])

    monkeypatch.setattr(os, "write", almost_full)
    with pytest.raises(CannotWrite, match=r"rows\.csv: No space left on device"):
        append_row(path, ("number", "name"), ("3", "cccccccc"))
    assert path.read_bytes() == before


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
def test_damaged_packed_lines_are_refused(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "lines.gz"
    with pytest.raises(RawDataError) as refused, packed_lines(path) as lines:
        next(lines)
    assert refused.value.said == "lines.gz: cannot be read: No such file or directory"
    write_packed_lines(path, [{"number": number, "of": "many"} for number in range(999)])
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(RawDataError, match=r"lines\.gz"), packed_lines(path) as lines:
        list(lines)


def test_a_torn_row_names_no_trial_and_a_cell_without_a_bound_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "trials.csv"
    path.write_bytes(b"run,trial,server\nr,0011-netty-open,netty\nr,0012-netty-op")
    assert csv.trials(path) == ("0011-netty-open",)
    path.write_text(f"run,trial\nr,{'a' * 200_000}\n")
    with pytest.raises(RawDataError, match=r"trials\.csv.*: is not CSV: field larger"):
        csv.trials(path)


@pytest.mark.parametrize("labels", [5, {"a": []}, ["a"]])
def test_labels_that_are_no_texts_are_a_damaged_file(tmp_path: Path, labels: object) -> None:
    header = {"window": [0, 1000]}
    line = {"labels": labels, "t": [0], "v": [1]}
    write_packed_lines(tmp_path / series.NAME, [header, line])
    with pytest.raises(RawDataError, match=r"series\.jsonl\.gz:2: cannot be read"):
        series.load(tmp_path)


def test_a_kind_that_is_no_name_is_a_damaged_manifest(tmp_path: Path) -> None:
    path = write_manifest(tmp_path) / "manifest.json"
    told = read_object(path)
    told["experiment"]["kind"] = []
    write_json(path, told)
    with pytest.raises(RawDataError, match=r"manifest\.json: Manifest: "):
        manifest.read(path.parent)


def test_a_time_out_of_the_calendar_is_a_damaged_file() -> None:
    @dataclass(frozen=True)
    class Timed:
        at: datetime

    with pytest.raises(ValueError, match=r"Timed: date value out of range"):
        from_json(Timed, {"at": "0001-01-01T00:00:00+14:00"})


def bomb(path: Path, chunk: bytes, count: int) -> Path:
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(count):
            file.write(chunk)
    return path


def test_a_line_without_a_bound_is_refused_with_its_number(tmp_path: Path) -> None:
    path = bomb(tmp_path / "series.jsonl.gz", b"1\n", 1)
    path.write_bytes(path.read_bytes() + bomb(tmp_path / "more", bytes(MIB), 200).read_bytes())
    tracemalloc.start()
    try:
        with pytest.raises(RawDataError) as refused, packed_lines(path) as lines:
            list(lines)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert refused.value.said == "series.jsonl.gz:2: the line is longer than 16 MiB"
    # The line is not read to its end.
    assert peak < 100 * MIB


def test_a_file_that_unpacks_too_far_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MOST_BYTES", 2 * MIB)
    path = bomb(tmp_path / "series.jsonl.gz", (b" " * 1023 + b"\n") * 1024, 9)
    with pytest.raises(RawDataError) as refused:
        list(raw_lines(path))
    assert refused.value.said == "series.jsonl.gz:2049: the file is larger than 2 MiB"


@pytest.mark.parametrize("read", [lambda p: read_json(p, TrialRecord), read_object, csv.read])
def test_a_pipe_is_not_waited_for(tmp_path: Path, read: Callable[[Path], object]) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RawDataError, match="it is no regular file"):
        read(tmp_path / "pipe")
    # Nor is a huge file read.
    (tmp_path / "file").touch()
    os.truncate(tmp_path / "file", records.MOST_BYTES + 1)
    with pytest.raises(RawDataError, match="file: is larger than 512 MiB"):
        read(tmp_path / "file")


@pytest.mark.parametrize("first", "=+-@\t\r")
def test_no_cell_is_a_formula_and_each_comes_back(tmp_path: Path, first: str) -> None:
    path = tmp_path / "rows.csv"
    for row in (("1", f"{first}1+cmd"), ("2", "'quoted"), ("-3", "-4.5")):
        append_row(path, ("number", "name"), row)
    cells = path.read_bytes().split(b"\n", 1)[1]
    assert f"'{first}1+cmd".encode() in cells
    assert b"2,'quoted\n-3,-4.5\n" in cells
    assert [one.name for one in read_rows(path, Numbered)] == [f"{first}1+cmd", "'quoted", "-4.5"]
    # Numbers are none.
    numbers = [["-1", "+2.5", "-0.003", "=-1", "-1-1", "-"]]
    assert csv_text(numbers) == "-1,+2.5,-0.003,'=-1,'-1-1,'-\n"
