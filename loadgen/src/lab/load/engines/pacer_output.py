"""The lines that pacer writes, one a second: read whole, or refused.

What does not add up is damaged: a line, a histogram and the totals at the end are compared.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from lab.errors import RawDataError
from lab.load.engines.histogram import Histogram
from lab.store.records import UNREADABLE, raw_lines, sync, write_packed_lines, writing

OUTPUT = "pacer.jsonl"
PACKED = "pacer.jsonl.gz"
FORMAT = 2
_ENDED = b'{"ended"'


@dataclass(frozen=True, slots=True)
class Times:
    """A histogram: its buckets are (upper end in microseconds, count)."""

    sum_us: int = 0
    max_us: int = 0
    buckets: tuple[tuple[int, int], ...] = ()

    @property
    def histogram(self) -> Histogram:
        return Histogram(Counter(dict(self.buckets)), self.sum_us, self.max_us)

    @property
    def count(self) -> int:
        return sum(count for _, count in self.buckets)

    @property
    def mean_ms(self) -> float | None:
        return self.sum_us / self.count / 1000 if self.buckets else None


@dataclass(frozen=True, slots=True)
class Words:
    """Of the load that it was given."""

    warmup_s: float


@dataclass(frozen=True, slots=True)
class Head:
    """The first line; without `load` if it is of several processes (`pacer merge`)."""

    pacer: str
    format: int
    load: Words | None = None
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
    raw: Times
    failed: Times
    late: Times
    corrected: Times | None
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
    def counted(self) -> Times:
        """The latencies that count: from when a request was due in an open load."""
        return self.corrected or self.raw

    @property
    def wrong(self) -> str | None:
        statuses = sum(self.statuses.values())
        if statuses != self.answers or self.failed.count != self.http_errors:
            return f"its statuses and latencies are not those of {self.answers} answers"
        if {self.raw.count, self.counted.count} != {self.ok}:
            return f"its latencies are not those of {self.ok} answers without an error"
        if sum(count for *_, count in self.unexpected) > self.http_errors:
            return f"more of its answers were not as expected than the {self.http_errors} errors"
        if self.late.count != self.sent:
            return f"it has the lateness of {self.late.count} of {self.sent} requests"
        if self.sent_in_10ms and sum(self.sent_in_10ms) != self.sent:
            return f"{sum(self.sent_in_10ms)} of {self.sent} requests were sent in its parts"
        return None


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
    lines = _lines(path)
    found: list[Head | Line | End] = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(meant(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as failure:
            text = line.decode(errors="replace")[:200]
            raise RawDataError(path, number, f"is no line of pacer: {failure}: {text}") from None
        problem = _out_of_place(found)
        if problem is not None:
            raise RawDataError(path, number, problem)
    match found:
        case [Head() as head, *_, End() as end]:
            output = Output(head, tuple(line for line in found if isinstance(line, Line)), end)
        case _:
            problem = "ends before its last line (was pacer killed, or the disk full?)"
            raise RawDataError(path, len(lines) or None, problem)
    problem = _wrong_totals(output)
    if problem is not None:
        raise RawDataError(path, None, problem)
    return output


def _out_of_place(lines: Sequence[Head | Line | End]) -> str | None:
    """What is wrong with the last of these lines."""
    last, seconds = lines[-1], len(lines) - 2
    if isinstance(last, Head) != (len(lines) == 1):
        return "begins without its first line, or has it twice"
    if len(lines) > 1 and isinstance(lines[-2], End):
        return "goes on after its last line"
    if isinstance(last, Head) and last.format != FORMAT:
        return f"format {last.format} is not one of this lab's"
    if isinstance(last, Line):
        if last.second != seconds:
            return f"is second {last.second} after {seconds} seconds"
        return last.wrong
    return None


def _wrong_totals(output: Output) -> str | None:
    """Why the last line does not sum up the seconds, or all requests."""
    seconds, end = output.seconds, output.end
    for name in ("sent", "due", "ok", "http_errors", "timeouts"):
        total, last = sum(getattr(line, name) for line in seconds), getattr(end, name)
        if total != last:
            return f"{total} {name} in its seconds, {last} at its end"
    lost = summed(line.socket_errors for line in seconds)
    if lost != Counter(end.socket_errors):
        return f"{lost.total()} socket errors in its seconds, others at its end"
    closed = not seconds or seconds[0].corrected is None
    begun = end.sent if closed else end.due
    over = end.ok + end.http_errors + lost.total() + end.timeouts + end.unfinished
    return None if begun == over else f"{begun} requests began, and {over} are accounted for"


def summed(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    whole: Counter[str] = Counter()
    for each in counts:
        whole.update(each)
    return whole


def pack(plain: Path) -> None:
    """The lines as they are, gzipped, in the place of the plain file. Raises RawDataError if they
    are not whole, CannotWrite."""
    read_output(plain)
    packed = plain.with_name(f"{plain.name}.gz")
    write_packed_lines(packed, map(msgspec.json.decode, _lines(plain)))
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
