"""Frozen dataclasses as JSON and back: how stages hand over through files.

Every write goes to a temporary file that is renamed, so a reader never sees half of one.
"""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
import json
import os
import types
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from lab.errors import RawDataError

T = TypeVar("T")


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


def from_json(kind: type[T], value: object) -> T:
    """A dataclass from plain JSON values. Raises ValueError naming the field that is wrong.

    Unknown fields are refused: a newer format must not be read as an older one.
    """
    if not isinstance(value, Mapping):
        raise ValueError(f"{kind.__name__} must be an object, not {value!r}")  # noqa: TRY004
    hints = get_type_hints(kind)
    unknown = set(value) - set(hints)
    if unknown:
        raise ValueError(f"{kind.__name__} has no field {min(unknown)}")
    decoded = {}
    for name, item in value.items():
        decoded[name] = _decode(hints[name], item, f"{kind.__name__}.{name}")
    try:
        return kind(**decoded)
    except TypeError as failure:
        raise ValueError(f"{kind.__name__}: {failure}") from None


def _decode(hint: Any, value: object, where: str) -> Any:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not type(None)]
        # Of several kinds (lab.model.Json) a value is what it is.
        return value if value is None or len(kinds) > 1 else _decode(kinds[0], value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{where} must be a list, not {value!r}")
        return tuple(_decode(get_args(hint)[0], item, where) for item in value)
    if origin is Mapping:
        if not isinstance(value, Mapping):
            raise ValueError(f"{where} must be an object, not {value!r}")
        kind = get_args(hint)[1]
        return {key: _decode(kind, item, f"{where}.{key}") for key, item in value.items()}
    if origin is Literal and value not in get_args(hint):
        raise ValueError(f"{where} must be one of {', '.join(get_args(hint))}, not {value!r}")
    if hint is datetime:
        return datetime.fromisoformat(str(value))
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return from_json(hint, value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint in (int, float, str, bool) and type(value) is not hint:
        raise ValueError(f"{where} must be {hint.__name__}, not {value!r}")
    return value


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
    """Plain JSON values, one to a line, gzipped: temporary file, renamed. The same lines always
    give the same bytes, as there is no time stamp in the gzip header."""
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file, gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed:
        for line in lines:
            packed.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
    part.replace(path)


def append_row(path: Path, columns: Sequence[str], cells: Sequence[str]) -> None:
    """Add one CSV row (and, to a new file, the header) in one write, flushed to disk."""
    text = csv_text([cells] if path.exists() else [columns, cells])
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, text.encode())
        os.fsync(file)
    finally:
        os.close(file)


def cell(value: object, decimals: int) -> str:
    """A value as a CSV cell; empty for what is not known."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return time_text(value)
    return f"{value:.{decimals}f}" if isinstance(value, float) else str(value)


def read_json(path: Path, kind: type[T]) -> T:
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
    """A JSON object whose keys are not the lab's to define; empty where there is no file."""
    try:
        loaded = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as failure:
        raise RawDataError(path, None, f"cannot be read: {failure}") from None
    if not isinstance(loaded, dict):
        raise RawDataError(path, 1, "is not an object")
    return cast(dict[str, Any], loaded)


def read_rows(path: Path, kind: type[T]) -> tuple[T, ...]:
    """The rows of a CSV file whose columns are the fields of the dataclass `kind`. Raises
    RawDataError."""
    hints = get_type_hints(kind)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            wrong = set(reader.fieldnames or ()) ^ hints.keys()
            if wrong:
                problem = f"has not the columns of {path.name}: {', '.join(sorted(wrong))}"
                raise RawDataError(path, 1, problem)
            return tuple(_row(path, reader.line_num, kind, hints, cells) for cells in reader)
    except OSError as failure:
        raise RawDataError(path, None, f"cannot be read: {failure.strerror}") from None
    except (csv.Error, UnicodeDecodeError) as failure:
        raise RawDataError(path, None, f"is not CSV: {failure}") from None


def _row(
    path: Path, line: int, kind: type[T], hints: Mapping[str, Any], cells: Mapping[str, str | None]
) -> T:
    try:
        return kind(**{name: _cell_value(hints[name], text) for name, text in cells.items()})
    except (KeyError, TypeError, ValueError) as failure:
        raise RawDataError(path, line, f"is not a row of {path.name}: {failure}") from None


def _cell_value(hint: Any, text: str | None) -> Any:
    if text is None:
        raise ValueError("it is cut off")
    if not text and type(None) in get_args(hint):
        return None
    if get_origin(hint) is Literal:
        return text
    kind = next((kind for kind in get_args(hint) if kind is not type(None)), hint)
    if kind is bool:
        return {"true": True, "false": False}[text]
    return datetime.fromisoformat(text) if kind is datetime else kind(text)
