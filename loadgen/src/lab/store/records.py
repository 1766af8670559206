"""Files that are written whole and read with bounds, and records as JSON in them.

Every file is written under a temporary name and then renamed, so a reader never sees half of one.
File and folder are flushed to disk, so a power cut leaves the old file or the new one. What cannot
be written is a CannotWrite, what cannot be read a RawDataError.
"""

import dataclasses
import errno
import gzip
import json
import os
import stat
import zlib
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import msgspec

from lab.errors import CannotWrite, RawDataError
from lab.model import Request

# What reading a damaged file may raise: of the disk, of gzip, of JSON, and of values that are not
# what they should be.
_VALUES = (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError)
UNREADABLE = (OSError, EOFError, zlib.error, *_VALUES)
MIB = 1024 * 1024
# The most that is read of a file, unpacked, and of a line in it: a foreign file may unpack to more
# than the machine has. The series of a trial have some 25 kB for each second of its window.
MOST_BYTES = 512 * MIB
MOST_LINE_BYTES = 16 * MIB


def damaged(path: Path, failure: Exception, line: int | None = None) -> RawDataError:
    """What an UNREADABLE is of this file."""
    # An OSError's own text has the path, which is not the same wherever a run lies.
    problem = getattr(failure, "strerror", None) or failure
    return RawDataError(path, line, f"cannot be read: {problem}")


def time_text(moment: datetime) -> str:
    """A time as the lab writes it: UTC with milliseconds, 2026-01-31T12:00:00.000Z."""
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def to_json(value: object) -> Any:
    """Plain JSON, as every text here without requests' secrets."""
    return json.loads(json.dumps(value, default=_plain))


def json_text(value: object, indent: int | None = 1) -> str:
    text = json.dumps(value, default=_plain, indent=indent, ensure_ascii=False, allow_nan=False)
    return text + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Request):
        value = value.stored
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def from_json[T](kind: type[T], value: object) -> T:
    """A record from plain JSON. Raises ValueError naming the field that is wrong."""
    try:
        record = msgspec.convert(value, kind)
        json.dumps(record, default=_plain)  # Not a time out of the calendar, which ends here.
    except (msgspec.ValidationError, RecursionError, OverflowError) as failure:
        raise ValueError(f"{kind.__name__}: {failure}") from None
    return record


def read_json[T](path: Path, kind: type[T], most: int = MOST_BYTES) -> T:
    """A record from a file of `write_json`. Raises RawDataError."""
    try:
        value = msgspec.json.decode(read_bytes(path, most))
    except OSError as failure:
        raise damaged(path, failure) from None
    except (ValueError, RecursionError) as failure:
        raise RawDataError(path, None, f"is not JSON: {failure}") from None
    try:
        return from_json(kind, value)
    except ValueError as failure:
        raise RawDataError(path, None, str(failure)) from None


def read_object(path: Path, most: int = MOST_BYTES) -> dict[str, Any]:
    """A JSON object with keys of others; empty where there is no file. Raises RawDataError."""
    return read_json(path, dict[str, Any], most) if path.exists() else {}


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
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """A file to read. Raises OSError for what is no regular file: a pipe would be waited for, and
    a device has no end."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        yield file


def write_json(path: Path, value: object) -> None:
    write_text(path, json_text(value))


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    with _replacing(path) as file:
        file.write(content)


def write_packed_lines(path: Path, lines: Iterable[object]) -> None:
    """Write JSON values, one per line, gzipped. The same lines always give the same bytes, as the
    gzip header has no time stamp."""
    with (
        _replacing(path) as file,
        gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed,
    ):
        for line in lines:
            packed.write(msgspec.json.encode(line) + b"\n")


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
