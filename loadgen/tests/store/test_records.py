"""Files of results: written whole, read with bounds, and refused in one line where damaged."""

import errno
import gzip
import os
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from lab.errors import CannotWrite, RawDataError
from lab.model import (
    Experiment,
    Fairness,
    Record,
    Recording,
    Remark,
    TrialRecord,
    WarmCycle,
    Warmth,
)
from lab.store import records, series
from lab.store.records import (
    MIB,
    from_json,
    raw_lines,
    read_json,
    read_object,
    to_json,
    write_json,
    write_packed_lines,
)
from support.fakes import plan, record

WARMTH = Warmth(True, (WarmCycle(0.0, 5.0, 90.0, None, 1.5), WarmCycle(5, 5, 99, 2.0, 0)))
GONE = Remark("server-gone", {"problem": "a b", "at": 1.5})
OWN = {"objective": {"p95_ms": 1000.0}, "first": 100, "cases": ["a", None]}


@pytest.mark.parametrize(
    "written",
    [
        record(),
        record(plan("closed"), after=None, after_problem=GONE),
        record(warmth=WARMTH, jit_share=0.01),
        Experiment("x", ("a",), ("/",), (1,), ("closed",), None, 15, None, kind="s", own=OWN),
        Fairness({"gc": ["G1"], "n": 1}, {"pool": {"a": 200, "b": None}}, {}),
    ],
)
def test_a_record_comes_back_as_it_was(tmp_path: Path, written: Record) -> None:
    path = tmp_path / "trial.json"
    write_json(path, written)
    assert read_json(path, type(written)) == written == from_json(type(written), to_json(written))
    # No temporary file stays.
    assert [*tmp_path.iterdir()] == [path]


STACKS = Recording("cpu", ("jdk.ExecutionSample",), 1, True, {})
OPEN = Experiment("x", ("a",), ("/",), (1,), ("open",), None, 15, None)


@pytest.mark.parametrize(
    ("whole", "changes", "said"),
    [
        (plan(), {"colour": "red"}, "unknown field `colour`"),
        (plan(), {"trial": ...}, "missing required field `trial`"),
        (plan(), {"concurrency": "100"}, "Expected `int`, got `str` - at `$.concurrency`"),
        (plan(), {"concurrency": 100.0}, "Expected `int`, got `float` - at `$.concurrency`"),
        (plan(), {"concurrency": 0}, "Expected `int` >= 1 - at `$.concurrency`"),
        (plan(), {"mode": "ajar"}, "Invalid enum value 'ajar' - at `$.mode`"),
        (plan(), {"mode": "closed"}, "an open trial offers a rate, a closed one does not"),
        (plan(), {"offered_rps": None}, "an open trial offers a rate, a closed one does not"),
        (plan(), {"hold": "idle"}, "a load that is held is closed"),
        (plan("closed"), {"arrivals": "poisson"}, "no arrivals of its own"),
        (plan(), {"script": [{"at_s": 1, "words": {}}]}, "length >= 1 - at `$.script[0].words`"),
        (plan(), {"spike": {"extra": 1}}, "missing required field `extra_rps` - at `$.spike`"),
        (plan(), {"condition": {"knobs": {"a": "b"}}}, "got `str` - at `$.condition.knobs[...]`"),
        (OPEN, {"servers": ()}, "servers must be given, each once"),
        (OPEN, {"routes": ("/", "/")}, "routes must be given, each once"),
        (OPEN, {"engines": ("wrk2", "wrk2")}, "engines must be given, each once"),
        (OPEN, {"arms": ("a",)}, "arms need fresh JVMs"),
        (OPEN, {"modes": ("closed",), "arrivals": "poisson"}, "only an open load has other arriv"),
        (OPEN, {"launches": -1}, "Expected `int` >= 0 - at `$.launches`"),
        (OPEN, {"scale": 0}, "Expected `float` > 0.0 - at `$.scale`"),
        (OPEN, {"concurrencies": [0]}, "Expected `int` >= 1 - at `$.concurrencies[0]`"),
        (STACKS, {"kind": "wall"}, "Invalid enum value 'wall' - at `$.kind`"),
        (STACKS, {"stacks": {"a.B.run:1": -1}}, "Expected `int` >= 0"),
        (OPEN, {"levers": {"a": {}}}, "it is empty; allowed: variable with value, cpus, memory"),
    ],
)
def test_a_wrong_field_is_refused_with_its_name_and_that_of_the_file(
    tmp_path: Path, whole: Record, changes: dict[str, Any], said: str
) -> None:
    """A value of `...` is no field at all."""
    fields = {**to_json(whole), **changes}
    path = tmp_path / "plan.json"
    write_json(path, {name: value for name, value in fields.items() if value is not ...})
    kind = type(whole)
    with pytest.raises(RawDataError) as refused:
        read_json(path, kind)
    assert refused.value.said.startswith(f"plan.json: {kind.__name__}: ")
    assert said in refused.value.said


def test_a_time_out_of_the_calendar_is_a_damaged_file() -> None:
    class Timed(Record):
        at: datetime

    with pytest.raises(ValueError, match=r"Timed: date value out of range"):
        from_json(Timed, {"at": "0001-01-01T00:00:00+14:00"})


NESTED = "[" * 100_000


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", '"a"', '{"a": NaN}', '{"a": -Infinity}', '{"a": 1e999}'),
        *('{"a": "\\ud800"}', f'{{"a": {NESTED}', "\x00"),
    ],
)
def test_a_broken_file_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "host.json"
    # Facts of the host are optional, and opaque.
    assert read_object(path) == {}
    path.write_text('{"a": "\\ud83d\\ude00", "cores": 2}')
    assert read_object(path) == {"a": "\U0001f600", "cores": 2}
    path.write_text(text)
    with pytest.raises(RawDataError, match=r"host\.json: (is not JSON|dict): "):
        read_object(path)
    with pytest.raises(RawDataError, match=r"host\.json: (is not JSON|TrialRecord): "):
        read_json(path, TrialRecord)


@pytest.mark.parametrize(
    "write",
    [
        lambda path: write_json(path, {"a": 1}),
        lambda path: write_packed_lines(path, [{"a": 1}]),
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
    assert [*tmp_path.iterdir()] == [path]
    assert path.read_bytes() == before


HEADER = {"window": [0, 1000]}
LINE = {"labels": {"a": "b"}, "t": [0, 1], "v": [1, 2]}


@pytest.mark.parametrize(
    ("lines", "number"),
    [
        ([], None),
        ([{}], None),
        ([{"window": [1000, 0]}], 2),
        *(
            ([HEADER, LINE, {**LINE, **wrong}], 3)
            for wrong in (
                *({"labels": 5}, {"labels": {"a": []}}, {"labels": ["a"]}),
                *({"t": [1, 1]}, {"t": [0]}, {"t": [], "v": []}, {"v": [1, "2"]}),
            )
        ),
    ],
)
def test_series_that_cannot_be_are_a_damaged_line(
    tmp_path: Path, lines: list[object], number: int | None
) -> None:
    write_packed_lines(tmp_path / series.NAME, [HEADER, LINE])
    assert series.load(tmp_path).all[0].points == ((0.0, 1.0), (0.001, 2.0))
    write_packed_lines(tmp_path / series.NAME, lines)
    with pytest.raises(RawDataError, match="cannot be read") as refused:
        series.load(tmp_path)
    assert refused.value.line == number


@pytest.mark.parametrize("damage", [lambda c: c[: len(c) // 2], lambda c: c[:40] + bytes(99)])
def test_damaged_packed_lines_are_refused(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / series.NAME
    with pytest.raises(RawDataError) as refused:
        series.load(tmp_path)
    assert refused.value.said == "series.jsonl.gz: cannot be read: No such file or directory"
    several = ({**LINE, "labels": {"a": f"{n}"}} for n in range(999))
    write_packed_lines(path, [HEADER, *several])
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(RawDataError, match=r"series\.jsonl\.gz"):
        series.load(tmp_path)


def bomb(path: Path, chunk: bytes, count: int) -> Path:
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(count):
            file.write(chunk)
    return path


def test_a_line_without_a_bound_is_refused_with_its_number(tmp_path: Path) -> None:
    path = bomb(tmp_path / "series.jsonl.gz", b'{"window": [0, 1]}\n', 1)
    path.write_bytes(path.read_bytes() + bomb(tmp_path / "more", bytes(MIB), 200).read_bytes())
    tracemalloc.start()
    try:
        with pytest.raises(RawDataError) as refused:
            series.load(tmp_path)
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


@pytest.mark.parametrize("read", [lambda path: read_json(path, TrialRecord), read_object])
def test_a_pipe_is_not_waited_for(tmp_path: Path, read: Callable[[Path], object]) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RawDataError, match="it is no regular file"):
        read(tmp_path / "pipe")
    # Nor is a huge file read.
    (tmp_path / "file").touch()
    os.truncate(tmp_path / "file", records.MOST_BYTES + 1)
    with pytest.raises(RawDataError, match="file: is larger than 512 MiB"):
        read(tmp_path / "file")
