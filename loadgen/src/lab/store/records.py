"""Frozen dataclasses as files and back: JSON objects, and rows of CSV.

Every file is written under a temporary name and then renamed, so a reader never sees half of one.
"""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast, get_args, get_type_hints

import msgspec

from lab.errors import RawDataError


def time_text(moment: datetime) -> str:
    """A time as the lab writes it: UTC with milliseconds, 2026-01-31T12:00:00.000Z."""
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def to_json(value: object) -> Any:
    """Dataclasses, tuples, mappings and times as plain JSON values."""
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
    """Write a value as JSON: temporary file, flushed to disk, renamed."""
    write_text(path, json_text(value))


def write_text(path: Path, text: str) -> None:
    """Write a file in UTF-8: temporary file, flushed to disk, renamed."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file: temporary file, flushed to disk, renamed."""
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def csv_text(rows: Iterable[Sequence[str]]) -> str:
    """Rows of cells as CSV lines."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def write_packed_lines(path: Path, lines: Iterable[object]) -> None:
    """Write plain JSON values, one per line, gzipped: temporary file, renamed. The same lines
    always give the same bytes, as the gzip header has no time stamp."""
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file, gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed:
        for line in lines:
            packed.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
    part.replace(path)


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
    except (OSError, EOFError, ValueError, KeyError, TypeError) as failure:
        raise RawDataError(path, number or None, f"cannot be read: {failure}") from None


def header_of(path: Path, lines: Iterator[Any], version: int) -> dict[str, Any]:
    """The first of the `lines` of a file whose header tells its format. Raises RawDataError."""
    header = next(lines, None)
    if not isinstance(header, dict) or header.get("format") != version:
        raise RawDataError(path, 1, "is not of a format this version reads")
    return header


def append_row(path: Path, columns: Sequence[str], cells: Sequence[str]) -> None:
    """Add one CSV row (to a new file: the header too) in one write, flushed to disk."""
    text = csv_text([cells] if path.exists() else [columns, cells])
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, text.encode())
        os.fsync(file)
    finally:
        os.close(file)


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


def read_rows[T](path: Path, kind: type[T]) -> tuple[T, ...]:
    """The rows of a CSV file whose columns are the fields of the dataclass `kind`. Raises
    RawDataError."""
    hints = get_type_hints(kind)
    optional = {name for name, hint in hints.items() if type(None) in get_args(hint)}
    rows = []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            wrong = set(reader.fieldnames or ()) ^ hints.keys()
            if wrong:
                problem = f"does not have the columns of {path.name}: {', '.join(sorted(wrong))}"
                raise RawDataError(path, 1, problem)
            for cells in reader:
                if None in cells or None in cells.values():
                    raise RawDataError(path, reader.line_num, "has not a cell for each column")
                known = {name: text for name, text in cells.items() if text or name not in optional}
                values = dict.fromkeys(optional) | known
                rows.append(msgspec.convert(values, kind, strict=False))
    except OSError as failure:
        raise RawDataError(path, None, f"cannot be read: {failure.strerror}") from None
    except msgspec.ValidationError as failure:
        problem = f"is not a row of {path.name}: {failure}"
        raise RawDataError(path, reader.line_num, problem) from None
    except (csv.Error, UnicodeDecodeError) as failure:
        raise RawDataError(path, None, f"is not CSV: {failure}") from None
    return tuple(rows)
