"""Frozen dataclasses as files and back: JSON objects, and rows of CSV.

Every file is written under a temporary name and then renamed, so a reader never sees half of one.
File and folder are flushed to disk, so a power cut leaves the old file or the new one. What cannot
be written is a CannotWrite.
"""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, cast, get_args, get_type_hints

import msgspec

from lab.errors import CannotWrite, RawDataError
from lab.model import Request

# What reading a damaged file may raise: of the disk, of gzip, of JSON, and of values that are not
# what they should be.
UNREADABLE = (OSError, EOFError, zlib.error, ValueError, LookupError, TypeError, AttributeError)


def time_text(moment: datetime) -> str:
    """A time as the lab writes it: UTC with milliseconds, 2026-01-31T12:00:00.000Z."""
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def to_json(value: object) -> Any:
    """Dataclasses, tuples, mappings and times as plain JSON values, without the secrets of
    requests."""
    if isinstance(value, Request):
        value = value.stored
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

    An unknown field is refused, so that a newer format is never read as an older one.
    """
    try:
        decoded = msgspec.convert(value, kind)
    except msgspec.ValidationError as failure:
        raise ValueError(f"{kind.__name__}: {failure}") from None
    _refuse_unknown(value, to_json(decoded), kind.__name__)
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


def json_text(value: object) -> str:
    """A value as the text of a JSON file."""
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
    """Rows of cells as CSV lines."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
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
def packed_lines(path: Path) -> Iterator[Iterator[Any]]:
    """The values of a file of `write_packed_lines`, read one by one. What goes wrong in reading
    one, or with its value in the block, is a RawDataError that names its line."""
    number = 0

    def values(file: Iterable[str]) -> Iterator[Any]:
        nonlocal number
        for text in file:
            number += 1
            yield json.loads(text)

    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield values(file)
    except UNREADABLE as failure:
        # An OSError's own text has the path, which is not the same wherever a run lies.
        said = getattr(failure, "strerror", None) or failure
        raise RawDataError(path, number or None, f"cannot be read: {said}") from None


def header_of(path: Path, lines: Iterator[Any], version: int) -> dict[str, Any]:
    """The first of the `lines` of a file whose header tells its format. Raises RawDataError."""
    header = next(lines, None)
    if not isinstance(header, dict) or header.get("format") != version:
        raise RawDataError(path, 1, "is not of a format this version reads")
    return header


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
        content = path.read_bytes()
    except OSError as failure:
        raise RawDataError(path, None, f"cannot be read: {failure.strerror}") from None
    whole = content[: content.rstrip(b"\0").rfind(b"\n") + 1]
    return whole, len(whole) < len(content)


def drop_torn_row(path: Path) -> bool:
    """Cut a torn last row off the file, so that rows can be added. Whether there was one. Raises
    RawDataError and CannotWrite."""
    if not path.exists():
        return False
    whole, torn = whole_rows(path)
    if torn:
        write_bytes(path, whole)
    return torn


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
        return from_json(kind, json.loads(path.read_text(encoding="utf-8")))
    except OSError as failure:
        raise RawDataError(path, None, f"cannot be read: {failure.strerror}") from None
    except json.JSONDecodeError as failure:
        raise RawDataError(path, failure.lineno, f"is not JSON: {failure.msg}") from None
    except ValueError as failure:
        raise RawDataError(path, None, str(failure)) from None


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object with keys that the lab does not define; empty where there is no file. Raises
    RawDataError."""
    try:
        loaded = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as failure:
        raise RawDataError(path, None, f"cannot be read: {failure}") from None
    if not isinstance(loaded, dict):
        raise RawDataError(path, 1, "is not an object")
    return cast(dict[str, Any], loaded)


def read_rows[T](path: Path, kind: type[T], later: Sequence[str] = ()) -> tuple[T, ...]:
    """The rows of a CSV file whose columns are the fields of the dataclass `kind`, without a torn
    last row (see `whole_rows`). An older file may lack those that came `later`, which are None in
    its rows. Raises RawDataError."""
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
        wrong = columns ^ (hints.keys() - (set(later) - columns))
        if wrong:
            problem = f"does not have the columns of {path.name}: {', '.join(sorted(wrong))}"
            raise RawDataError(path, 1, problem)
        for cells in reader:
            number = reader.line_num
            if None in cells or None in cells.values():
                raise RawDataError(path, number, "has not a cell for each column")
            known = {name: text for name, text in cells.items() if text or name not in optional}
            values = dict.fromkeys(optional) | known
            rows.append(msgspec.convert(values, kind, strict=False))
    except msgspec.ValidationError as failure:
        problem = f"is not a row of {path.name}: {failure}"
        raise RawDataError(path, number, problem) from None
    except (csv.Error, UnicodeDecodeError) as failure:
        raise RawDataError(path, None, f"is not CSV: {failure}") from None
    return tuple(rows)
