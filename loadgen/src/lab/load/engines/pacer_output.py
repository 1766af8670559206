"""The lines that pacer writes, one a second: read whole, or refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import replace
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from lab.errors import RawDataError
from lab.load.engines.histogram import Histogram
from lab.store.records import UNREADABLE, raw_lines, sync, write_packed_lines, writing

OUTPUT = "pacer.jsonl"
PACKED = "pacer.jsonl.gz"
FORMAT = 2
_ENDED = b'{"ended"'
# Of a line: as they are at its end.
LEVELS = ("second", "unfinished", "waiting", "connections", "untried", "oldest_us")


@dataclass(frozen=True, slots=True)
class Load:
    """The load that it was given."""

    warmup_s: float


@dataclass(frozen=True, slots=True)
class Head:
    """The first line; without `load` if it is of several processes (`pacer merge`)."""

    pacer: str
    format: int
    load: Load | None = None
    unix_s: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A second of the run. `unfinished` (sent or waiting), `waiting`, `connections`, `untried` (not
    tried to open yet) and `oldest_us` (in flight for the longest) are levels at its end. `raw` and
    `corrected` are of answers without an error; `corrected` is None in a closed load. `run_us` and
    `runq_us` are how long its threads ran, and waited for a CPU. `unexpected` are (request from 0,
    status, count) of the answers that were not as expected."""

    second: int
    length_s: float
    due: int
    sent: int
    ok: int
    http_errors: int
    statuses: Mapping[str, int]
    socket_errors: Mapping[str, int]
    timeouts: int
    connect_failed: Mapping[str, int]
    unfinished: int
    waiting: int
    connections: int
    raw: Histogram
    failed: Histogram
    late: Histogram
    corrected: Histogram | None
    unexpected: tuple[tuple[int, int, int], ...] = ()
    oldest_us: int = 0
    run_us: int | None = None
    runq_us: int | None = None
    untried: int = 0
    reopened: int = 0
    sent_in_10ms: tuple[int, ...] = ()

    @property
    def answers(self) -> int:
        return self.ok + self.http_errors

    @property
    def lost(self) -> int:
        """Requests that ended in it without an answer."""
        return sum(self.socket_errors.values()) + self.timeouts

    @property
    def counted(self) -> Histogram:
        """The latencies that count: from when a request was due in an open load."""
        return self.corrected or self.raw

    @classmethod
    def sum_of(cls, lines: Sequence[Line]) -> Line:
        """As one: what was counted is added up, and levels are those of the last."""
        names = (field.name for field in fields(cls) if field.name not in LEVELS)
        sums = {name: _sum([getattr(line, name) for line in lines]) for name in names}
        return replace(lines[-1], **sums) if lines else NOTHING

    @property
    def wrong(self) -> str | None:
        return _uneven(
            ("statuses", sum(self.statuses.values()), self.answers),
            ("latencies of errors", self.failed.count, self.http_errors),
            ("latencies of answers", self.raw.count, self.ok),
            ("corrected latencies", self.counted.count, self.ok),
            ("times of sending", self.late.count, self.sent),
            ("requests in its parts", sum(self.sent_in_10ms or (self.sent,)), self.sent),
        )


_NONE = Histogram()
NOTHING = Line(0, 0.0, 0, 0, 0, 0, {}, {}, 0, {}, 0, 0, 0, _NONE, _NONE, _NONE, None)


@dataclass(frozen=True, slots=True)
class End:
    """The last line."""

    ended: str
    run_s: float
    sent: int
    due: int
    ok: int
    http_errors: int
    socket_errors: Mapping[str, int]
    timeouts: int
    unfinished: int
    cpu_s: float

    def wrong(self, seconds: Sequence[Line]) -> str | None:
        """Why it does not sum up the seconds, or all requests."""
        lost = sum(self.socket_errors.values())
        begun = self.due if any(line.corrected for line in seconds) else self.sent
        over = self.ok + self.http_errors + lost + self.timeouts + self.unfinished
        names = ("sent", "due", "ok", "http_errors", "timeouts")
        sums = [(name, sum(getattr(line, name) for line in seconds)) for name in names]
        return _uneven(
            *((name, count, getattr(self, name)) for name, count in sums),
            ("socket errors", summed(line.socket_errors for line in seconds).total(), lost),
            ("requests accounted for", over, begun),
        )


def _sum(values: Sequence[Any]) -> Any:
    """None if one is unknown."""
    if not values or None in values:
        return None
    if isinstance(values[0], Histogram):
        return Histogram.sum_of(values)
    if isinstance(values[0], Mapping):
        return summed(values)
    return tuple(chain(*values)) if isinstance(values[0], tuple) else sum(values)


def _uneven(*sums: tuple[str, int, int]) -> str | None:
    """The first of these sums that is not what it should be."""
    problems = (f"{name}: {count}, not {due}" for name, count, due in sums if count != due)
    return next(problems, None)


@dataclass(frozen=True, slots=True)
class Output:
    """All lines of a run."""

    head: Head
    seconds: tuple[Line, ...]
    end: End


_HEAD, _LINE, _END = (
    msgspec.json.Decoder(Head),
    msgspec.json.Decoder(Line),
    msgspec.json.Decoder(End),
)


def meant(line: bytes) -> Head | Line | End:
    """A line of pacer as it is meant. Raises msgspec.DecodeError. Any thread may call it."""
    if line.startswith(b'{"pacer"'):
        return _HEAD.decode(line)
    return _END.decode(line) if line.startswith(_ENDED) else _LINE.decode(line)


def read_output(path: Path) -> Output:
    """The lines of a plain or a condensed file. Raises RawDataError unless they are complete and
    add up."""
    head: Head | None = None
    seconds: list[Line] = []
    end: End | None = None
    lines = _lines(path)
    for number, text in enumerate(lines, 1):
        problem = None
        try:
            line = meant(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as failure:
            shown = text.decode(errors="replace")[:200]
            raise RawDataError(path, number, f"is no line of pacer: {failure}: {shown}") from None
        if end is not None:
            problem = "goes on after its last line"
        elif isinstance(line, Head) != (number == 1):
            problem = "begins without its first line, or has it twice"
        elif isinstance(line, Head):
            head = line
            problem = None if head.format == FORMAT else f"format {head.format} is not this lab's"
        elif isinstance(line, Line):
            if line.second != len(seconds):
                problem = f"is second {line.second} after {len(seconds)} seconds"
            seconds.append(line)
            problem = problem or line.wrong
        else:
            end = line
            problem = end.wrong(seconds)
        if problem is not None:
            raise RawDataError(path, number, problem)
    if head is None or end is None:
        problem = "ends before its last line (was pacer killed, or the disk full?)"
        raise RawDataError(path, len(lines) or None, problem)
    return Output(head, tuple(seconds), end)


def summed(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    whole: Counter[str] = Counter()
    for each in counts:
        whole.update(each)
    return whole


def pack(plain: Path) -> None:
    """The lines as they are, gzipped, in the place of the plain file. Raises RawDataError if they
    are not whole, or do not read back alike, CannotWrite."""
    output = read_output(plain)
    packed = plain.with_name(f"{plain.name}.gz")
    write_packed_lines(packed, map(msgspec.json.decode, _lines(plain)))
    if read_output(packed) != output:
        raise RawDataError(packed, None, "does not read back as it was written")
    with writing(plain):
        plain.unlink()
        sync(plain.parent)


def is_whole(plain: Path) -> bool:
    lines = _lines(plain)
    return bool(lines) and lines[-1].startswith(_ENDED)


def output_in(folder: Path) -> Path | None:
    paths = (folder / OUTPUT, folder / PACKED)
    return next((path for path in paths if path.exists()), None)


def _lines(path: Path) -> list[bytes]:
    try:
        return [line.removesuffix(b"\n") for line in raw_lines(path)]
    except UNREADABLE as failure:
        problem = getattr(failure, "strerror", None) or failure
        raise RawDataError(path, None, f"cannot be read: {problem}") from None
