"""Frozen dataclasses as files and back: JSON objects, and rows of CSV.

Every file is written under a temporary name and then renamed, so a reader never sees half of one.
File and folder are flushed to disk, so a power cut leaves the old file or the new one. What cannot
be written is a CannotWrite.
"""

from __future__ import annotations

import csv
import dataclasses
import errno
import gzip
import io
import json
import math
import os
import re
import stat
import zlib
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, cast, get_args, get_type_hints

import msgspec

from lab.errors import CannotWrite, RawDataError
from lab.model import Request

# What reading a damaged file may raise: of the disk, of gzip, of JSON, and of values that are not
# what they should be.
_VALUES = (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError)
UNREADABLE = (OSError, EOFError, zlib.error, *_VALUES)
# How a spreadsheet's formula begins; a number is none.
_FORMULA = re.compile(r"(?![-+]?\d+(\.\d+)?\Z)[-=+@\t\r]")
MIB = 1024 * 1024
# The most that is read of a file, unpacked, and of a line in it: a foreign file may unpack to more
# than the machine has. The series of a trial have some 25 kB for each second of its window.
MOST_BYTES = 512 * MIB
MOST_LINE_BYTES = 16 * MIB


def time_text(moment: datetime) -> str:
    """A time as the lab writes it: UTC with milliseconds, 2026-01-31T12:00:00.000Z."""
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def to_json(value: object) -> Any:
    """Dataclasses, structs, tuples, mappings and times as JSON, without requests' secrets."""
    if isinstance(value, Request):
        value = value.stored
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {field.name: to_json(getattr(value, field.name)) for field in fields}
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def from_json[T](kind: type[T], value: object) -> T:
    """A dataclass from plain JSON values. Raises ValueError naming the field that is wrong.

    An unknown field is refused.
    """
    try:
        decoded = msgspec.convert(value, kind)
        _refuse_unknown(value, to_json(decoded), kind.__name__)
    except (msgspec.ValidationError, RecursionError, OverflowError) as failure:
        raise ValueError(f"{kind.__name__}: {failure}") from None
    return decoded


def _refuse_unknown(given: Any, known: Any, where: str) -> None:
    """Raises ValueError for a field that decoding left out: msgspec ignores it in a dataclass."""
    if isinstance(given, Mapping):
        for name, item in given.items():
            if name not in known:
                raise ValueError(f"{where} has no field {name}")
            _refuse_unknown(item, known[name], f"{where}.{name}")
    elif isinstance(given, list):
        for item, decoded in zip(given, known, strict=True):
            _refuse_unknown(item, decoded, where)


def json_value(data: bytes) -> Any:
    """A JSON value that can be written again. Raises ValueError, also for a number that is none and
    for half a character (a surrogate), and RecursionError."""
    value = json.loads(data, parse_float=_number, parse_constant=_number)
    if b"\\ud" in data.lower():
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no number")
    return value


def json_text(value: object) -> str:
    return json.dumps(to_json(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(path: Path, value: object) -> None:
    """Write a value as JSON. Raises CannotWrite."""
    write_text(path, json_text(value))


def write_text(path: Path, text: str) -> None:
    """Write a file in UTF-8. Raises CannotWrite."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file. Raises CannotWrite."""
    with _replacing(path) as file:
        file.write(content)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Any OSError of the block is a CannotWrite of this path."""
    try:
        yield
    except OSError as failure:
        raise CannotWrite(path, failure) from None


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of `path` in one step when the block is done. What
    cannot be written whole leaves nothing behind: on a full disk the next file needs the room."""
    part = path.with_name(path.name + ".part")
    with writing(path):
        try:
            with part.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise
        sync(path.parent)


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk. Raises OSError."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def sync_folder(folder: Path) -> None:
    """Flush a folder, the files in it, and its own name to disk. Raises CannotWrite."""
    with writing(folder):
        for path in sorted(folder.iterdir()):
            if path.is_file():
                sync(path)
        sync(folder)
        sync(folder.parent)


def csv_text(rows: Iterable[Sequence[str]]) -> str:
    """Rows of cells as CSV lines. A text that a spreadsheet would take for a formula begins with a
    quote, which `read_rows` drops."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [f"'{cell}" if _FORMULA.match(cell) else cell for cell in row] for row in rows
    )
    return text.getvalue()


def write_packed_lines(path: Path, lines: Iterable[object]) -> None:
    """Write plain JSON values, one per line, gzipped. The same lines always give the same bytes, as
    the gzip header has no time stamp. Raises CannotWrite."""
    with (
        _replacing(path) as file,
        gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed,
    ):
        for line in lines:
            packed.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """A file to read. Raises OSError for what is no regular file: a pipe would be waited for, and
    a device has no end."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        yield file


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """The whole file. Raises OSError, and RawDataError for one of more than `most` bytes."""
    with _opened(path) as file:
        if os.fstat(file.fileno()).st_size > most:
            raise RawDataError(path, None, f"is larger than {most // MIB} MiB")
        return file.read()


def raw_lines(path: Path) -> Generator[bytes]:
    """The lines of a file, unpacked if its name ends with .gz. Raises as reading a damaged file
    does (UNREADABLE), and RawDataError for one without a bound."""
    left, number = MOST_BYTES, 0
    with _opened(path) as file:
        lines = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
        while line := lines.readline(MOST_LINE_BYTES + 1):
            left, number = left - len(line), number + 1
            if len(line) > MOST_LINE_BYTES:
                problem = f"the line is longer than {MOST_LINE_BYTES // MIB} MiB"
                raise RawDataError(path, number, problem)
            if left < 0:
                problem = f"the file is larger than {MOST_BYTES // MIB} MiB"
                raise RawDataError(path, number, problem)
            yield line


@contextmanager
def packed_lines(path: Path) -> Iterator[Iterator[Any]]:
    """The values of a file of `write_packed_lines`, read one by one. What goes wrong in reading
    one, or with its value in the block, is a RawDataError that names its line."""
    number = 0

    def values(lines: Iterable[bytes]) -> Iterator[Any]:
        nonlocal number
        for line in lines:
            number += 1
            yield json_value(line)

    try:
        with closing(raw_lines(path)) as lines:
            yield values(lines)
    except UNREADABLE as failure:
        # An OSError's own text has the path, which is not the same wherever a run lies.
        said = getattr(failure, "strerror", None) or failure
        raise RawDataError(path, number or None, f"cannot be read: {said}") from None


def append_row(path: Path, columns: Sequence[str], cells: Sequence[str]) -> None:
    """Add one CSV row (to a new file: the header too), flushed to disk: all of it or nothing.
    Raises CannotWrite."""
    with writing(path):
        number = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            length = os.fstat(number).st_size
            left = csv_text([cells] if length else [columns, cells]).encode()
            try:
                while left:  # A disk that is almost full takes a part.
                    left = left[os.write(number, left) :]
                os.fsync(number)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(number, length)
                raise
        finally:
            os.close(number)
        if not length:
            sync(path.parent)


def whole_rows(path: Path) -> tuple[bytes, bool]:
    """The rows of a file of `append_row`, and whether a last one that a power cut left torn is cut
    off. Raises RawDataError."""
    try:
        content = read_bytes(path)
    except OSError as failure:
        raise RawDataError(path, None, f"cannot be read: {failure.strerror}") from None
    whole = content[: content.rstrip(b"\0").rfind(b"\n") + 1]
    return whole, len(whole) < len(content)


def cell(value: object, decimals: int) -> str:
    """A value as a CSV cell; empty where it is not known."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return time_text(value)
    return f"{value:.{decimals}f}" if isinstance(value, float) else str(value)


def read_json[T](path: Path, kind: type[T]) -> T:
    """A dataclass from a file of `write_json`. Raises RawDataError."""
    try:
        return from_json(kind, _json_of(path, MOST_BYTES))
    except ValueError as failure:
        raise RawDataError(path, None, str(failure)) from None


def _json_of(path: Path, most: int) -> Any:
    try:
        return json_value(read_bytes(path, most))
    except OSError as failure:
        raise RawDataError(path, None, f"cannot be read: {failure.strerror}") from None
    except json.JSONDecodeError as failure:
        raise RawDataError(path, failure.lineno, f"is not JSON: {failure.msg}") from None
    except (ValueError, RecursionError) as failure:
        raise RawDataError(path, None, f"is not JSON: {failure}") from None


def read_object(path: Path, most: int = MOST_BYTES) -> dict[str, Any]:
    """A JSON object with keys of others; empty where there is no file. Raises RawDataError."""
    if not path.exists():
        return {}
    loaded = _json_of(path, most)
    if not isinstance(loaded, dict):
        raise RawDataError(path, 1, "is not an object")
    return cast(dict[str, Any], loaded)


def read_rows[T](path: Path, kind: type[T]) -> tuple[T, ...]:
    """The rows of a CSV file whose columns are the fields of the dataclass `kind`, without a torn
    last row (see `whole_rows`). Raises RawDataError."""
    hints = get_type_hints(kind)
    optional = {name for name, hint in hints.items() if type(None) in get_args(hint)}
    rows: list[T] = []
    number = 0
    try:
        text, _ = whole_rows(path)
        reader = csv.DictReader(io.StringIO(text.decode(), newline=""), strict=True)
        if not text:
            return ()
        columns = set(reader.fieldnames or ())
        wrong = columns ^ hints.keys()
        if wrong:
            problem = f"does not have the columns of {path.name}: {', '.join(sorted(wrong))}"
            raise RawDataError(path, 1, problem)
        for cells in reader:
            number = reader.line_num
            if None in cells or None in cells.values():
                raise RawDataError(path, number, "has not a cell for each column")
            known = {
                name: text[1:] if text[:1] == "'" and _FORMULA.match(text[1:]) else text
                for name, text in cells.items()
                if text or name not in optional
            }
            values = dict.fromkeys(optional) | known
            rows.append(msgspec.convert(values, kind, strict=False))
    except msgspec.ValidationError as failure:
        problem = f"is not a row of {path.name}: {failure}"
        raise RawDataError(path, number, problem) from None
    except (csv.Error, UnicodeDecodeError) as failure:
        raise RawDataError(path, None, f"is not CSV: {failure}") from None
    return tuple(rows)
